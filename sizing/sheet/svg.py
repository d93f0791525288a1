"""A figure as static SVG: what the figures of a sheet use of Plotly, drawn without a script.

Lines, marks, texts, stacked bars, shapes and annotations on linear, logarithmic and category axes. Anything else is a
TypeError, so that nothing is left out in silence.
"""

import math
import re
from collections.abc import Callable, Iterator, Sequence
from html import escape, unescape
from itertools import pairwise
from typing import Any
from zlib import crc32

from sizing.figures.theme import Figure

DASHES = {"solid": "", "dash": "9 6", "dot": "2.5 3.5", "dashdot": "9 4 2.5 4"}  # in Plotly's proportions
TICK, LINE = 5, 1.3  # [px] of a tick; of a line of text, times its size
LETTER, BOLD = 0.5, 0.54  # width of a letter, times its size: for the ground behind a label
TAG = re.compile(r"(<br>|<b>|</b>|<span[^>]*>|</span>)")
HATCH = 8  # [px] between the lines of a hatch
PARTS = 5  # about so many ticks where none are given

Place = Callable[[Any], float]


class _Axes:
    """Where values stand in the drawing [px]."""

    def __init__(self, figure: Figure) -> None:
        layout = figure["layout"]
        margin, self.width, self.height = layout["margin"], layout["width"], layout["height"]
        self.left, self.top = margin["l"], margin["t"]
        self.across, self.down = self.width - margin["l"] - margin["r"], self.height - margin["t"] - margin["b"]
        self.bars = [trace for trace in figure["data"] if trace["type"] == "bar"]
        self.xaxis, self.yaxis = layout["xaxis"], layout["yaxis"]
        self.categories: dict[str, int] = {}
        for trace in self.bars:
            for name in trace["y"] if trace.get("orientation") == "h" else trace["x"]:
                self.categories.setdefault(name, len(self.categories))

    def share(self, value: Any, axis: Figure, *, typed: bool = True) -> float:
        """From 0 at the low end of an axis to 1; annotations on a logarithmic axis give the power (`typed` false)."""
        if isinstance(value, str):
            value = self.categories[value]
        elif axis.get("type") == "log" and typed:
            value = math.log10(value) if value > 0 else -99.0
        low, high = axis["range"]
        return float((value - low) / (high - low))

    def x(self, value: Any, ref: str = "x", *, typed: bool = True) -> float:
        return float(
            self.left + self.across * (value if ref == "paper" else self.share(value, self.xaxis, typed=typed))
        )

    def y(self, value: Any, ref: str = "y", *, typed: bool = True) -> float:
        return float(
            self.top + self.down * (1 - (value if ref == "paper" else self.share(value, self.yaxis, typed=typed)))
        )


def svg(figure: Figure, alt: str) -> str:
    """The figure as one SVG element that scales with its page. Raises TypeError for what it cannot draw."""
    figure = _ranged(figure)
    layout, axes = figure["layout"], _Axes(figure)
    shapes = layout.get("shapes", [])
    parts = [
        f'<rect width="{axes.width}" height="{axes.height}" fill="{layout["paper_bgcolor"]}"/>',
        *_grid(axes),
        *(part for shape in shapes if shape.get("layer") == "below" for part in _shape(shape, axes)),
        *_clipped(axes, [part for trace in figure["data"] for part in _trace(trace, axes)]),
        *(part for shape in shapes if shape.get("layer") != "below" for part in _shape(shape, axes)),
        *_frame(axes, layout),
        *(part for trace in figure["data"] for part in _words(trace, axes)),
        *(part for note in layout.get("annotations", []) for part in _annotation(note, axes, layout["font"])),
    ]
    family = escape(layout["font"]["family"], quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {axes.width} {axes.height}" role="img" '
        f'aria-label="{escape(alt, quote=True)}" font-family="{family}">{"".join(parts)}</svg>'
    )


def _ranged(figure: Figure) -> Figure:
    """Axes whose range Plotly would find: from the data."""
    layout = figure["layout"]
    horizontal = any(trace.get("orientation") == "h" for trace in figure["data"])
    found: Figure = {}
    for name, of in (("xaxis", "x"), ("yaxis", "y")):
        axis = layout[name]
        if "range" in axis:
            continue
        along = [trace[of] for trace in figure["data"] if trace["type"] == "bar"]
        if any(isinstance(value, str) for values in along for value in values):
            many = len({value for values in along for value in values})
            found[name] = axis | {"range": [many - 0.5, -0.5] if horizontal else [-0.5, many - 0.5], "type": "category"}
        else:
            sums = [sum(filter(None, values)) for values in zip(*along, strict=True)] if along else [1.0]
            found[name] = axis | {"range": [0, max(sums, default=1) * 1.05 or 1]}
    return figure | {"layout": layout | found}


def _ticks(axis: Figure) -> list[tuple[float, str]]:
    """Values and their words."""
    if "tickvals" in axis:
        return list(
            zip(axis["tickvals"], axis.get("ticktext", [f"{value:,}" for value in axis["tickvals"]]), strict=True)
        )
    low, high = sorted(axis["range"])
    rough = axis.get("dtick") or (high - low) / PARTS
    power = 10 ** math.floor(math.log10(rough))
    step = axis.get("dtick") or next(times * power for times in (1, 2, 5, 10) if times * power >= rough)
    first = math.ceil(low / step)
    return [(at * step, f"{at * step:,.10g}") for at in range(first, math.floor(high / step) + 1)]


def _grid(axes: _Axes) -> Iterator[str]:
    for axis, across in ((axes.xaxis, True), (axes.yaxis, False)):
        if axis.get("type") == "category" or axis.get("showgrid") is False:
            continue
        for value, _ in _ticks(axis):
            share = axes.share(value, axis)
            if 0 <= share <= 1:
                yield _line(*_through(axes, share, across=across), axis["gridcolor"], 1)


def _through(axes: _Axes, share: float, *, across: bool) -> tuple[float, float, float, float]:
    if across:
        x = axes.left + axes.across * share
        return x, axes.top, x, axes.top + axes.down
    y = axes.top + axes.down * (1 - share)
    return axes.left, y, axes.left + axes.across, y


def _frame(axes: _Axes, layout: Figure) -> Iterator[str]:
    """Both axes with ticks and titles, and the figure's title."""
    foot, left = axes.top + axes.down, axes.left
    for axis, across in ((axes.xaxis, True), (axes.yaxis, False)):
        category = axis.get("type") == "category"
        ticks = list(axes.categories.items()) if category else [(word, value) for value, word in _ticks(axis)]
        size, ink = axis["tickfont"]["size"], axis["tickfont"]["color"]
        if across:
            yield _line(left, foot, left + axes.across, foot, axis["linecolor"], 1)
        else:
            yield _line(left, axes.top, left, foot, axis["linecolor"], 1)
        for word, value in ticks:
            share = axes.share(value, axis, typed=not category)
            if not -0.001 <= share <= 1.001:
                continue
            x, y = (
                (left + axes.across * share, foot + TICK + size)
                if across
                else (left - TICK - 3, axes.y(share, "paper"))
            )
            if axis.get("ticks"):
                yield (
                    _line(x, foot, x, foot + TICK, axis["tickcolor"], 1)
                    if across
                    else _line(left - TICK, y, left, y, axis["tickcolor"], 1)
                )
            yield _text(
                word,
                x,
                y if across else y - _height(word, size) / 2 + size * 0.85,
                size,
                ink,
                "middle" if across else "end",
            )
        title = axis.get("title", {}).get("text", "")
        if title:
            font = axis["title"]["font"]
            x, y = left + axes.across / 2, foot + TICK + size * 1.4 + font["size"] * 1.4
            turned = "" if across else f' transform="rotate(-90 {_n(font["size"] + 4)} {_n(axes.top + axes.down / 2)})"'
            if not across:
                x, y = font["size"] + 4, axes.top + axes.down / 2
            yield _text(title, x, y, font["size"], font["color"], "middle", turned)
    title = layout["title"]
    yield _text(title["text"], 12, 26, title["font"]["size"], title["font"]["color"], "start", weight=600)
    under = title["subtitle"]
    yield _text(under["text"], 12, 26 + 20, under["font"]["size"], under["font"]["color"], "start")


def _clipped(axes: _Axes, parts: list[str]) -> list[str]:
    """What stands inside the axes alone."""
    name = f"plot{crc32(''.join(parts).encode())}"
    size = f'width="{_n(axes.across)}" height="{_n(axes.down)}"'
    clip = f'<clipPath id="{name}"><rect x="{_n(axes.left)}" y="{_n(axes.top)}" {size}/></clipPath>'
    return [f"<defs>{clip}</defs>", f'<g clip-path="url(#{name})">', *parts, "</g>"]


def _trace(trace: Figure, axes: _Axes) -> Iterator[str]:
    if trace["type"] == "bar":
        yield from _bars(trace, axes)
    elif trace["type"] != "scatter":
        raise TypeError(f"a trace of type {trace['type']} is not drawn")
    elif "lines" in trace["mode"] and trace.get("opacity") != 0:
        yield from _path(trace, axes)


def _path(trace: Figure, axes: _Axes) -> Iterator[str]:
    look, filled = trace["line"], trace.get("fill") == "toself"
    for run in _runs(trace["x"], trace["y"]):
        points = [(axes.x(x), axes.y(y)) for x, y in run]
        if look.get("shape") == "hv":
            points = [
                points[0],
                *(p for (_, y), (x, z) in pairwise(points) for p in ((x, y), (x, z))),
            ]
        drawn = "M" + "L".join(f"{_n(x)},{_n(y)}" for x, y in points) + ("Z" if filled else "")
        fill = f'fill="{trace["fillcolor"]}"' if filled else 'fill="none"'
        stroke = f' stroke="{look["color"]}" stroke-width="{look["width"]}"{_dash(look)}' if look["width"] else ""
        yield f'<path d="{drawn}" {fill}{stroke} stroke-linejoin="round"/>'


def _runs(xs: Sequence[Any], ys: Sequence[Any]) -> Iterator[list[tuple[Any, Any]]]:
    """The points between gaps."""
    run: list[tuple[Any, Any]] = []
    for x, y in zip(xs, ys, strict=True):
        if x is None or y is None or math.isnan(y):
            if run:
                yield run
            run = []
        else:
            run.append((x, y))
    if run:
        yield run


def _bars(trace: Figure, axes: _Axes) -> Iterator[str]:
    """One piece of each stack, on those before it, with a hatch where its pattern says so."""
    for x, y, width, height in _boxes(trace, axes):
        marker = trace["marker"]
        at = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
        colour = marker["color"] if isinstance(marker["color"], str) else marker["color"][0]
        yield f'<rect {at} fill="{colour}" stroke="{marker["line"]["color"]}" stroke-width="1"/>'
        if marker.get("pattern", {}).get("shape"):
            edge = marker["pattern"]["fgcolor"]
            ends = [
                (max(0, at - height), min(at, height), min(at, width), max(0, at - width))
                for at in range(0, int(width + height), HATCH)
            ]
            lines = "".join(f"M{_n(x + x0)},{_n(y + y0)}L{_n(x + x1)},{_n(y + y1)}" for x0, y0, x1, y1 in ends)
            yield f'<path d="{lines}" stroke="{edge}" stroke-width="1" fill="none"/>' if lines else ""


def _boxes(trace: Figure, axes: _Axes) -> list[tuple[float, float, float, float]]:
    horizontal = trace.get("orientation") == "h"
    names, sizes = ("y", "x") if horizontal else ("x", "y")
    before = axes.bars[: next(at for at, other in enumerate(axes.bars) if other is trace)]
    gap = 0.5 if len(axes.categories) < 2 else 0.42
    found = []
    for name, size in zip(trace[names], trace[sizes], strict=True):
        start = sum(dict(zip(other[names], other[sizes], strict=True)).get(name) or 0 for other in before)
        if horizontal:
            x, end = axes.x(start), axes.x(start + (size or 0))
            high = abs(axes.y(0, typed=False) - axes.y(1, typed=False)) * gap
            found.append((x, axes.y(name) - high / 2, end - x, high))
        else:
            y, end = axes.y(start), axes.y(start + (size or 0))
            wide = abs(axes.x(0, typed=False) - axes.x(1, typed=False)) * gap
            found.append((axes.x(name) - wide / 2, end, wide, y - end))
    return found


def _words(trace: Figure, axes: _Axes) -> Iterator[str]:
    """Marks, and the texts of marks and bars."""
    if trace["type"] == "bar":
        font = trace.get("textfont", {"size": 12, "color": "#10141f"})
        for words, (x, y, width, height) in zip(trace.get("text", []), _boxes(trace, axes), strict=False):
            size = font["size"]
            middle = y + height / 2 - _height(words, size) / 2 + size * 0.85
            inside = trace.get("textposition", "inside") == "inside"
            at = x + width / 2 if inside else x + width + 5
            yield _text(words, at, middle, size, font["color"], "middle" if inside else "start") if words else ""
        return
    if not {"markers", "text"} & set(trace["mode"].split("+")):
        return
    for at, (x, y) in enumerate(zip(trace["x"], trace["y"], strict=True)):
        if x is None or y is None:
            continue
        px, py, size = axes.x(x), axes.y(y), 0.0
        if "markers" in trace["mode"]:
            marker = trace["marker"]
            size = _each(marker["size"], at)
            yield _mark(_each(marker["symbol"], at), px, py, size, _each(marker["color"], at), marker["line"])
        if "text" in trace["mode"] and trace["text"][at]:
            font = trace["textfont"]
            yield _beside(trace["text"][at], px, py, size, _each(trace["textposition"], at), font, at)


def _beside(words: str, x: float, y: float, mark: float, where: str, font: Figure, at: int) -> str:
    size, colour = _each(font["size"], at), _each(font["color"], at)
    up, side = where.split()
    high, off = _height(words, size), mark / 2 + 3
    top = {"top": y - off - high, "middle": y - high / 2, "bottom": y + off}[up]
    shift = {"left": -off, "center": 0.0, "right": off}[side]
    anchor = {"left": "end", "center": "middle", "right": "start"}[side]
    return _text(words, x + shift, top + size * 0.95, size, colour, anchor)


CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
    "diamond": [(0, -1.3), (1.3, 0), (0, 1.3), (-1.3, 0)],
    "triangle-up": [(0, -1.2), (1.1, 0.9), (-1.1, 0.9)],
    "cross": [
        (-0.4, -1), (0.4, -1), (0.4, -0.4), (1, -0.4), (1, 0.4), (0.4, 0.4),
        (0.4, 1), (-0.4, 1), (-0.4, 0.4), (-1, 0.4), (-1, -0.4), (-0.4, -0.4),
    ],
}  # fmt: skip
RAYS = [(turn * math.pi / 5, 0.6 if turn % 2 else 1.4) for turn in range(10)]
STAR = [(math.sin(angle) * far, -math.cos(angle) * far) for angle, far in RAYS]


def _mark(symbol: str, x: float, y: float, size: float, colour: str, edge: Figure) -> str:
    half = size / 2
    look = f'fill="{colour}" stroke="{edge["color"]}" stroke-width="{edge["width"]}"'
    if symbol == "circle":
        return f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(half)}" {look}/>'
    corners = STAR if symbol == "star" else CORNERS[symbol]
    points = " ".join(f"{_n(x + dx * half)},{_n(y + dy * half)}" for dx, dy in corners)
    return f'<polygon points="{points}" {look}/>'


def _shape(shape: Figure, axes: _Axes) -> Iterator[str]:
    xref, yref = shape.get("xref", "x"), shape.get("yref", "y")
    x0, x1 = axes.x(shape["x0"], xref), axes.x(shape["x1"], xref)
    y0, y1 = axes.y(shape["y0"], yref), axes.y(shape["y1"], yref)
    y0, y1 = (min(max(y, axes.top), axes.top + axes.down) for y in (y0, y1)) if x0 == x1 else (y0, y1)
    look = shape["line"]
    if shape["type"] == "rect":
        at = f'x="{_n(min(x0, x1))}" y="{_n(min(y0, y1))}" width="{_n(abs(x1 - x0))}" height="{_n(abs(y1 - y0))}"'
        yield f'<rect {at} fill="{shape["fillcolor"]}" opacity="{shape.get("opacity", 1)}"/>'
    elif shape["type"] == "line":
        drawn = _line(x0, y0, x1, y1, look["color"], look["width"], _dash(look), shape.get("opacity", 1))
        yield from _clipped(axes, [drawn])
    else:
        raise TypeError(f"a shape of type {shape['type']} is not drawn")


def _annotation(note: Figure, axes: _Axes, plain: Figure) -> Iterator[str]:
    if note.get("showarrow", True):
        raise TypeError("an annotation with an arrow is not drawn")
    font = plain | note.get("font", {})
    size, words = font["size"], note["text"]
    x = axes.x(note["x"], note.get("xref", "x"), typed=False) + note.get("xshift", 0)
    y = axes.y(note["y"], note.get("yref", "y"), typed=False) - note.get("yshift", 0)
    high, wide = _height(words, size), _width(words, size)
    top = {"top": y, "middle": y - high / 2, "bottom": y - high}[note.get("yanchor", "middle")]
    anchor = {"left": "start", "center": "middle", "right": "end"}[note.get("xanchor", "center")]
    left = {"start": x, "middle": x - wide / 2, "end": x - wide}[anchor]
    if note.get("bgcolor"):
        at = f'x="{_n(left - 2)}" y="{_n(top)}" width="{_n(wide + 4)}" height="{_n(high)}"'
        yield f'<rect {at} fill="{note["bgcolor"]}"/>'
    yield _text(words, x, top + size * 0.98, size, font["color"], anchor)


def _text(
    words: str, x: float, y: float, size: float, colour: str, anchor: str, more: str = "", weight: int = 400
) -> str:
    """Words with Plotly's own tags; everything else in them is shown as it is."""
    lines: list[list[str]] = [[]]
    bold, small = False, ""
    for piece in TAG.split(words):
        if piece == "<br>":
            lines.append([])
        elif piece in ("<b>", "</b>"):
            bold = piece == "<b>"
        elif piece.startswith("<span"):
            found = re.search(r"font-size:\s*(\d+)px", piece)
            small = f' font-size="{found[1]}"' if found else ""
        elif piece == "</span>":
            small = ""
        elif piece:
            inside = escape(unescape(piece), quote=False)
            heavy = ' font-weight="700"' if bold else ""
            lines[-1].append(f"<tspan{heavy}{small}>{inside}</tspan>" if heavy or small else inside)
    rows = "".join(
        f'<tspan x="{_n(x)}" dy="{_n(size * LINE) if at else 0}">{"".join(line)}</tspan>'
        for at, line in enumerate(lines)
    )
    heavy = f' font-weight="{weight}"' if weight != 400 else ""
    look = f'font-size="{size}" fill="{colour}" text-anchor="{anchor}"{heavy}{more}'
    return f'<text x="{_n(x)}" y="{_n(y)}" {look}>{rows}</text>'


def _line(
    x0: float, y0: float, x1: float, y1: float, colour: str, width: float, dash: str = "", opacity: float = 1
) -> str:
    faint = f' opacity="{opacity}"' if opacity != 1 else ""
    look = f'stroke="{colour}" stroke-width="{width}" fill="none"{dash}{faint}'
    return f'<path d="M{_n(x0)},{_n(y0)}L{_n(x1)},{_n(y1)}" {look}/>'


def _dash(look: Figure) -> str:
    dash = DASHES[look.get("dash", "solid")]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _each(value: Any, at: int) -> Any:
    return value if isinstance(value, str | int | float) else value[at]


def _height(words: str, size: float) -> float:
    return (words.count("<br>") + 1) * size * LINE


def _width(words: str, size: float) -> float:
    lines = words.split("<br>")
    return max(len(unescape(TAG.sub("", line))) * (BOLD if "<b>" in line else LETTER) for line in lines) * size


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")
