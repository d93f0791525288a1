"""The figures of a sheet: the pages' own, drawn at one width for screen and paper, in the light palette."""

from collections.abc import Sequence
from html import escape
from unicodedata import east_asian_width

from sizing.answers.solve import Sizing
from sizing.engine.split import Split
from sizing.figures import LIGHT, crossing_figure, memory_figure, painted, ratio_figure
from sizing.figures.theme import GOES_ON, SEPARATOR, Figure, layout

WIDTH = 860  # [px] every figure is drawn at this width and then scaled to the page
CHARACTERS = 135  # of a line of inputs at that width
WIDE, CAPITAL = 2.0, 1.4  # characters that one of a name takes: Chinese, Japanese, Korean, M and W; other capitals


def sheet_figures(sizing: Sizing) -> dict[str, Figure]:
    """Crossing, ratio and memory by name; none where no split would start, for there is nothing to draw then."""
    if not isinstance(sizing.now, Split) and not isinstance(sizing.balanced, Split):
        return {}
    title = sizing.scenario.title
    named = sizing.model_copy(update={"scenario": sizing.scenario.model_copy(update={"name": inert(title)})})
    drawn = {
        "crossing": crossing_figure(named),
        "ratio": ratio_figure(named),
        "memory": memory_figure(named),
    }
    return {name: fitted(figure, names=(title,)) for name, figure in drawn.items()}


def inert(words: str) -> str:
    """Words that Plotly, which reads tags in its texts, shows as they are."""
    return escape(words, quote=False)


def fitted(figure: Figure, names: Sequence[str]) -> Figure:
    """A figure at the sheet's width: the inputs under its title wrapped anew, and higher or lower by the lines that
    this makes. `names` are the strangers' words among them.
    """
    old = figure["layout"]
    lines = old["title"]["subtitle"]["text"].replace(f"{GOES_ON}<br>", GOES_ON).split("<br>")
    pieces = [piece for line in lines for piece in line.split(SEPARATOR)]
    wrapped = {"title": old["title"]["text"], "characters": min(map(_characters, names))}
    top = layout(pieces, height=old["height"], **wrapped)["margin"]["t"]
    height = old["height"] + top - old["margin"]["t"]
    new = layout(pieces, height=height, **wrapped)
    margin = old["margin"] | {"t": top}
    sized = {"title": new["title"], "margin": margin, "height": height, "width": WIDTH, "autosize": False}
    fit: Figure = painted(figure | {"layout": old | sized}, LIGHT)
    return fit


def _characters(name: str) -> int:
    """Characters of a line of inputs, fewer by what the name in it is wider than so many ordinary characters."""
    wide = sum(char in "MW" or east_asian_width(char) in "FW" for char in name)
    capitals = sum(char.isupper() and char not in "MW" for char in name)
    narrow = CHARACTERS - round(wide * (WIDE - 1) + capitals * (CAPITAL - 1))
    return max(narrow, round(CHARACTERS / WIDE))  # a name longer than a line is broken: no line needs fewer
