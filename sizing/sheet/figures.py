"""The three figures of a sheet: the page's own, drawn at one width for screen and paper, in the light palette."""

from html import escape
from unicodedata import east_asian_width

from sizing.figures import LIGHT, crossing_figure, memory_figure, painted, ratio_figure
from sizing.figures.theme import Figure, inputs, layout
from sizing.solve import Sizing
from sizing.split import Split

WIDTH = 860  # [px] every figure is drawn at this width and then scaled to the page
CHARACTERS = 135  # of a line of inputs at that width
WIDE, CAPITAL = 2.0, 1.4  # characters that one of a name takes: Chinese, Japanese, Korean, M and W; other capitals


def sheet_figures(sizing: Sizing) -> dict[str, Figure]:
    """Crossing, ratio and memory by name; none where no split would start, for there is nothing to draw then."""
    if not isinstance(sizing.now, Split) and not isinstance(sizing.balanced, Split):
        return {}
    drawn = {
        "crossing": crossing_figure(sizing),
        "ratio": ratio_figure(sizing),
        "memory": memory_figure(sizing),
    }
    return {name: painted(_fitted(figure, sizing), LIGHT) for name, figure in drawn.items()}


def _fitted(figure: Figure, sizing: Sizing) -> Figure:
    """A figure at the sheet's width: its inputs wrapped anew, and higher or lower by the lines that this makes."""
    old = figure["layout"]
    pieces = [escape(piece, quote=False) for piece in inputs(sizing)]  # Plotly reads tags in its texts
    wrapped = {"title": old["title"]["text"], "characters": _characters(sizing.scenario.title)}
    top = layout(pieces, height=old["height"], **wrapped)["margin"]["t"]
    height = old["height"] + top - old["margin"]["t"]
    new = layout(pieces, height=height, **wrapped)
    margin = old["margin"] | {"t": top}
    return figure | {
        "layout": old | {"title": new["title"], "margin": margin, "height": height, "width": WIDTH, "autosize": False}
    }


def _characters(name: str) -> int:
    """Characters of a line of inputs, fewer by what the name in it is wider than so many ordinary characters."""
    wide = sum(char in "MW" or east_asian_width(char) in "FW" for char in name)
    capitals = sum(char.isupper() and char not in "MW" for char in name)
    return CHARACTERS - round(wide * (WIDE - 1) + capitals * (CAPITAL - 1))
