"""Figure: what several scenarios run over context lengths, on the same axes, each line with its name."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from sizing.answers.band import at_low_end
from sizing.answers.compare import of_deployment
from sizing.answers.curves import L_HIGH, L_LOW, context_grid, over_context
from sizing.answers.solve import Sizing
from sizing.basics.units import count, tokens_text
from sizing.engine.split import Split
from sizing.figures.placement import Box, first_free, spread, wrapped
from sizing.figures.theme import (
    NORMAL,
    SMALL,
    WHOLE_COLUMN,
    Figure,
    axis,
    layout,
    line,
    log_ticks,
    points,
    source_axis,
    text,
)

HEIGHT = 470
RIGHT, BOTTOM = 236, 76  # [px] margins: names stand in the right one
WIDTH = 560  # [px] of the axes at the least: on a review sheet, which is narrower than any window
KEY_SIZE = 12.0  # [px] of the mark beside a name
NAME_LINE = 15  # [px] from one line of a name to the next
TITLE_LENGTH = 100  # characters of a title at the narrowest main column
FLOOR, CEILING = 0.8, 2.0  # requests, and times the most requests: where the axis ends
ENDS, KEYS = 0.955, 0.985  # of the width: where lines end, and where the marks beside their names stand

# Colour, dash, width [px] and mark of each. A dash and a mark stand for one scenario in greyscale too; each line is
# narrower than the one before, so that of lines that run together all are seen.
LOOKS = (
    ("@line1", "solid", 5.0, "circle"),
    ("@line2", "dash", 4.2, "square"),
    ("@line3", "solid", 3.2, "diamond"),
    ("@line4", "dashdot", 3.0, "triangle-up"),
    ("@line5", "dot", 3.0, "star"),
    ("@line6", "dash", 1.8, "cross"),
)


class _Curve(NamedTuple):
    """One scenario as it is drawn."""

    name: str
    L: list[int]
    runs: list[int]
    """Requests of the deployment."""
    own: tuple[int, int] | None
    """The scenario's own L and what runs there, where it lies on the axes."""


class _Axes(NamedTuple):
    """Where a point of the figure stands [px], from the lower left corner of its axes."""

    most: int
    height: float

    def across(self, L: Any) -> Any:
        """From L [tokens]."""
        return np.log(np.asarray(L) / L_LOW) / math.log(L_HIGH / L_LOW) * WIDTH * ENDS

    def up(self, runs: Any) -> Any:
        """From requests; none stand at the foot."""
        return np.log(np.maximum(runs, FLOOR) / FLOOR) / math.log(self.most * CEILING / FLOOR) * self.height

    def length(self, share: float) -> float:
        """L [tokens] at a share of the width."""
        return float(L_LOW * (L_HIGH / L_LOW) ** (share / ENDS))

    def requests(self, up: float) -> float:
        """Requests at a height [px]."""
        return float(FLOOR * (self.most * CEILING / FLOOR) ** (up / self.height))


def compare_figure(named: dict[str, Sizing], story: str = "") -> Figure:
    """What runs over L for each of up to six scenarios [requests of the deployment], marked at each one's own L.

    `story` is the title where it fits, else the first line below it. Of an estimated `rest` the low end is drawn.
    """
    named = {name: at_low_end(sizing) for name, sizing in named.items()}
    what = [f"{name}: {_said(sizing)}" for name, sizing in named.items()]
    fits = 0 < len(story) <= TITLE_LENGTH
    what = what if fits or not story else [story, *what]
    figure = layout(
        what,
        story if fits else "What runs, side by side",
        height=HEIGHT,
        characters=WHOLE_COLUMN,
        right=RIGHT,
        bottom=BOTTOM,
    )
    curves = [_curve(name, sizing, sizing.now) for name, sizing in named.items() if isinstance(sizing.now, Split)]
    axes = _Axes(max((max(curve.runs) for curve in curves), default=1) or 1, HEIGHT - figure["margin"]["t"] - BOTTOM)
    ticks = [L_LOW * 4**step for step in range(7)]
    figure["xaxis"] = source_axis(
        "L, context per request [tokens]",
        "Solved as each scenario's own release does",
        type="log",
        range=[math.log10(L_LOW), math.log10(axes.length(1))],
        tickvals=ticks,
        ticktext=[tokens_text(tick) for tick in ticks],
    )
    if not curves:
        words = "None of these splits starts."
        figure["annotations"].append(text(words, x=0.5, y=0.5, xref="paper", yref="paper"))
        return {"data": [], "layout": figure}
    figure["yaxis"] = axis("requests of the deployment", type="log", **_scale(axes.most))
    lines = [
        line(curve.L, [runs or None for runs in curve.runs], colour, width=width, dash=dash, name=curve.name)
        for curve, (colour, dash, width, _) in zip(curves, LOOKS, strict=False)
    ]
    leaders, keys = _names(curves, axes)
    return {"data": [*lines, leaders, _own_marks(curves, axes), keys], "layout": figure}


def _said(sizing: Sizing) -> str:
    if not isinstance(sizing.now, Split):
        return "refused"
    return f"{count(of_deployment(sizing, sizing.now.runs))} run at L = {count(sizing.scenario.L)}"


def _curve(name: str, sizing: Sizing, split: Split) -> _Curve:
    own = sizing.scenario.L
    drawn = L_LOW <= own <= L_HIGH
    curve = over_context(split, np.union1d(context_grid(split), [own] if drawn else []).astype(np.int64))
    runs = [of_deployment(sizing, int(value)) for value in curve.runs]
    there = of_deployment(sizing, split.runs)
    return _Curve(name, curve.L.tolist(), runs, (own, there) if drawn and there else None)


def _scale(most: int) -> Figure:
    return {
        "tickvals": log_ticks(1, most * CEILING),
        "range": [math.log10(FLOOR), math.log10(most * CEILING)],
    }


def _own_marks(curves: Sequence[_Curve], axes: _Axes) -> Figure:
    """Each scenario at its own L, with what runs there where there is room for it."""
    marked = [(curve.own, look) for curve, look in zip(curves, LOOKS, strict=False) if curve.own]
    places = [(float(axes.across(L)), float(axes.up(runs)), _size(look)) for (L, runs), look in marked]
    taken = [Box.sized(x - size / 2, y - size / 2, size, size) for x, y, size in places]
    paths = [(axes.across(curve.L), axes.up(curve.runs)) for curve in curves]
    sides: dict[tuple[int, int], str] = {}  # by place: what several scenarios have in common is written once
    words = []
    for (own, _), (x, y, size) in zip(marked, places, strict=True):
        side, box = first_free(count(own[1]), x, y, size, taken, paths, (WIDTH, axes.height))
        words.append(f"<b>{count(own[1])}</b>" if side and own not in sides else "")
        taken += [box] if box and own not in sides else []
        sides.setdefault(own, side)
    return _marks(
        "marks",
        [(L, runs, look) for (L, runs), look in marked],
        [size for *_, size in places],
        words,
        [sides[own] or "top center" for own, _ in marked],
        NORMAL,
    )


def _names(curves: Sequence[_Curve], axes: _Axes) -> tuple[Figure, Figure]:
    """Beside the right end of each line its mark and its name, as far apart as the names need, and a thread to it."""
    looks = list(zip(curves, LOOKS, strict=False))
    looks.sort(key=lambda each: (each[0].runs[-1], each[0].runs))
    names = [_number_and_name(curve) for curve, _ in looks]
    ends = [max(curve.runs[-1], 1) for curve, _ in looks]
    heights = [name.count("<br>") * NAME_LINE + NAME_LINE + 2.0 for name in names]
    stand = [axes.requests(y) for y in spread([float(axes.up(end)) for end in ends], heights, axes.height)]
    key = axes.length(KEYS)
    threads = line(
        [x for _ in ends for x in (L_HIGH, key, None)],
        [y for end, at in zip(ends, stand, strict=True) for y in (end, at, None)],
        "@muted",
        width=1,
        name="threads",
    )
    placed = [(key, at, look) for at, (_, look) in zip(stand, looks, strict=True)]
    return threads, _marks("names", placed, [KEY_SIZE] * len(names), names, ["middle right"] * len(names), SMALL)


def _number_and_name(curve: _Curve) -> str:
    if curve.own is None:
        return wrapped(curve.name)
    number = f"{count(curve.own[1])} at {tokens_text(curve.own[0])}:"
    return wrapped(f"{number} {curve.name}").replace(number, f"<b>{number}</b>", 1)


def _marks(
    name: str,
    placed: Sequence[tuple[float, float, Any]],
    sizes: list[float],
    words: list[str],
    sides: list[str],
    letters: int,
) -> Figure:
    """Marks of such sizes [px], each in its scenario's look, with words beside them."""
    looks = [look for _, _, look in placed]
    found = points(
        [x for x, _, _ in placed],
        [y for _, y, _ in placed],
        [symbol for *_, symbol in looks],
        color=[colour for colour, *_ in looks],
        size=sizes,
        opacity=1,
    )
    return found | {
        "name": name,
        "mode": "markers+text",
        "text": words,
        "textposition": sides,
        "textfont": {"color": "@ink", "size": letters},
        "cliponaxis": False,
    }


def _size(look: tuple[str, str, float, str]) -> float:
    """[px] of a mark, larger for a wider line, so that of marks at one place each is seen."""
    return 9 + 1.6 * look[2]
