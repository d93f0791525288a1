"""Figure 2: requests against the ratio r at the user's L, with the peak and its plateau."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from sizing.answers.band import at_low_end
from sizing.answers.curves import Integers, RatioCurve, Reals, rank_over_ratio, ratio_grid, stepped_end
from sizing.answers.solve import Sizing
from sizing.answers.unified_curves import unified_over_ratio
from sizing.basics.units import count, flag_ratio, ratio_range_text, ratio_text
from sizing.engine.slots import is_pinned, ratio_is_ignored
from sizing.engine.split import Split
from sizing.figures.placement import Ground, Spot, seen
from sizing.figures.theme import (
    HALF_COLUMN,
    OWN,
    SMALL,
    Figure,
    Wanted,
    axis,
    inputs,
    layout,
    line,
    linear_ticks,
    placed,
    points,
    requests_axis,
    solved_as,
    source_axis,
)
from sizing.scenario.inputs import DEFAULT_RATIO

HEIGHT = 440
REACH = 40  # the axis goes this many times below and above what is marked on it
NEAR = 8  # times the end of the axis: a ratio that is set this near has its label cut
LINES_UP_TO = 0.76  # of the axis: the labels of the sides and of the best split stand above
FEW = 40  # requests; below, whole requests show as steps and are drawn as such
MARK = 17  # [px] of a mark with its rim
# How a label stands off its mark [px]: to the side, above or below.
BESIDE = (
    *((13, "middle", 0), (9, "top", 7), (9, "bottom", -7), (11, "top", 20), (11, "bottom", -20), (11, "top", 36)),
    *((11, "bottom", -36), (30, "top", 20), (30, "bottom", -20), (11, "top", 52), (11, "bottom", -52)),
    *((11, "top", 72), (11, "bottom", -72), (60, "top", 20), (60, "bottom", -20), (11, "top", 92), (11, "bottom", -92)),
)
# Axes [px] and heights [px] at which the figure is seen: on a page at 1440 and 1920, on a review sheet, as a picture.
SHOWN_AT = ((385.0, HEIGHT), (625.0, HEIGHT), (770.0, HEIGHT), (1190.0, 720))
WIDTHS = tuple(width for width, _ in SHOWN_AT)
MOST_TICKS = 8  # steps of the axis of requests
HEADROOM = 1.4  # of the peak; the two lines leave the figure above it


def ratio_figure(sizing: Sizing) -> Figure:
    """What runs at L for every ratio around the balance; the engine's default, the ratio that is set and r* marked.

    Of an estimated `rest` the low end is drawn.
    """
    sizing = at_low_end(sizing)
    figure = layout(inputs(sizing), "Requests against the ratio r", height=HEIGHT, characters=HALF_COLUMN)
    marked = _marked(sizing)
    low, high = _ends(marked)
    plateau = _plateau(sizing, low, high)
    curve = rank_over_ratio(sizing.rank, ratios_drawn(sizing))
    one = unified_over_ratio(sizing.scenario, curve.ratio)
    top = max(int(curve.runs.max()), 0 if one is None else int(one.max()), 1) * HEADROOM
    figure["xaxis"] = source_axis(
        "r, --mamba-full-memory-ratio (above 1 is legal)", solved_as(sizing), type="log", **_ratio_ticks(low, high)
    )
    figure["yaxis"] = axis(
        requests_axis(sizing), range=[0, top], **linear_ticks(top, MOST_TICKS if top >= MOST_TICKS else int(top))
    )
    figure["hovermode"] = "x"
    figure["shapes"] = [*_band(plateau), *_own_line(sizing, curve)]
    x = curve.ratio.tolist()
    by_kv = (curve.runs == curve.kv_cap) & (curve.kv_cap < curve.clamp)
    by_state = (curve.runs == curve.clamp) & ~by_kv
    hover = {
        "hoverinfo": "all",
        "customdata": np.stack([curve.clamp, curve.kv_cap], axis=1).tolist(),
        "hovertemplate": "r %{x:.4g}<br>mamba clamp %{customdata[0]:,}<br>KV cap %{customdata[1]:,}<br>"
        "<b>%{y:,} run</b><extra></extra>",
    }
    data = [
        line(x, _below(curve.clamp, top), "@state", dash="dash", name="mamba clamp"),
        line(x, _below(curve.kv_cap, top), "@kv", dash="dash", name="KV cap"),
        *(
            line(x, np.where(side, curve.runs, np.nan).tolist(), color, width=6, name=name) | hover
            for side, color, name in (
                (by_state, "@state", "runs, state pool binds"),
                (by_kv, "@kv", "runs, KV pool binds"),
                (~by_state & ~by_kv, "@ink", "runs, the engine's cap binds or it refuses"),
            )
            if side.any()
        ),
    ]
    if one is not None:
        data.append(line(x, one.tolist(), "@many", width=3, dash="dashdot", name="unified memory"))
    runs = {name: _runs_at(curve.ratio, curve.runs, ratio) for name, ratio in marked.items()}
    symbols = ["diamond" if name == "r*" else "circle" for name in marked]
    data.append(points(list(marked.values()), list(runs.values()), symbols))
    figure["annotations"] += _written(sizing, figure, (curve, one), marked, runs, top)
    if top < FEW:
        data = [trace | {"line": trace["line"] | {"shape": "hv"}} if "line" in trace else trace for trace in data]
    return {"data": [_finite(trace) for trace in data], "layout": figure}


def ratios_drawn(sizing: Sizing) -> Reals:
    """The ratios [-] that the figure solves: even on its axis, with every mark and both ends of the plateau."""
    marked = _marked(sizing)
    low, high = _ends(marked)
    return ratio_grid(low, high, sizing.ratio_now, *marked.values(), *_plateau(sizing, low, high))


def _ends(marked: dict[str, float]) -> tuple[float, float]:
    """Both ends of the axis [-]: the ratio that is set moves them only where it lies near one, so that the axis stands
    still under a hand.
    """
    still = [ratio for name, ratio in marked.items() if name != "now"] or [DEFAULT_RATIO]
    near = [marked["now"]] if "now" in marked else still
    low, high = min(*still, near[0] * NEAR) / REACH, max(*still, near[0] / NEAR) * REACH
    return stepped_end(low, math.floor), stepped_end(high, math.ceil)


def _below(requests: Any, top: float) -> Any:
    """The part of a line that leaves the head of the figure to its label."""
    return np.where(requests <= top * LINES_UP_TO, requests, np.nan).tolist()


def _marked(sizing: Sizing) -> dict[str, float]:
    """The ratios to mark; one mark where two of them are the same, none where the engine ignores the ratio."""
    if ratio_is_ignored(sizing.resolved):
        return {}
    r_star = flag_ratio(sizing.r_star)
    marks = {"r*": r_star}
    now = sizing.now.ratio if isinstance(sizing.now, Split) else sizing.ratio_now
    if sizing.scenario.split == "ratio" and now not in (None, r_star, DEFAULT_RATIO):
        marks["now"] = sizing.ratio_now
    if r_star != DEFAULT_RATIO:
        is_now = sizing.scenario.split == "ratio" and sizing.ratio_now == DEFAULT_RATIO
        marks["now (default)" if is_now else "default"] = DEFAULT_RATIO
    return marks


def _plateau(sizing: Sizing, low: float, high: float) -> list[float]:
    """The ratios of the optimum, as far as they lie on the axis; empty where there are none."""
    best = sizing.optimum
    if best is None or best.ratio_low is None:
        return []
    edges = [max(best.ratio_low, low), min(best.ratio_high or high, high)]
    return edges if edges[0] <= edges[1] else []


def _band(plateau: list[float]) -> list[Figure]:
    if not plateau:
        return []
    return [
        {
            "type": "rect",
            "x0": plateau[0],
            "x1": plateau[1],
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"width": 0},
            "fillcolor": "@grid",
            "layer": "below",
        }
    ]


def _own_line(sizing: Sizing, curve: RatioCurve) -> list[Figure]:
    """From the axis up to what runs at the ratio that is set; there is none beside a pin."""
    if not _drawn(sizing, curve):
        return []
    runs = _runs_at(curve.ratio, curve.runs, sizing.ratio_now)
    look = {"color": "@ink", "width": 1.5, "dash": "dot"}
    place = {"x0": sizing.ratio_now, "x1": sizing.ratio_now, "y0": 0, "y1": runs}
    return [{"type": "line", **place, "line": look, "layer": "below", "name": OWN}]


def _drawn(sizing: Sizing, curve: RatioCurve) -> bool:
    """Whether the ratio that is set counts and lies on the axis: where a release ignores a pin it may lie beyond."""
    counts = not is_pinned(sizing.resolved) and not ratio_is_ignored(sizing.resolved)
    return counts and bool(curve.ratio[0] <= sizing.ratio_now <= curve.ratio[-1])


def _ratio_ticks(low: float, high: float) -> Figure:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [10.0**power for power in powers if low <= 10.0**power <= high]
    return {
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
        "range": [math.log10(low), math.log10(high)],
    }


def _written(
    sizing: Sizing,
    figure: Figure,
    curves: tuple[RatioCurve, Integers | None],
    marked: dict[str, float],
    runs: dict[str, int],
    top: float,
) -> list[Figure]:
    """Every label, where it covers no line, no point and no other; else on a ground of its own."""
    curve, one = curves
    low, high = figure["xaxis"]["range"]
    margins = figure["margin"]["t"] + figure["margin"]["b"]
    sizes = [(width, height - margins) for width, height in SHOWN_AT]
    x = np.log10(curve.ratio)
    drawn = [
        curve.runs,
        *(() if one is None else (one,)),
        *(np.array(_below(line, top)) for line in (curve.clamp, curve.kv_cap)),
    ]
    paths = [_stepped(x, each) if top < FEW else (x, each) for each in drawn]
    ground = Ground(sizes, (low, high), (0, top), [seen(WIDTHS, (low, high), paths)])
    for name, ratio in marked.items():
        ground.point(math.log10(ratio), runs[name], MARK)
    if _drawn(sizing, curve):
        own = math.log10(sizing.ratio_now)
        ground.upright(own, (0, _runs_at(curve.ratio, curve.runs, sizing.ratio_now)))
    wanted = [*_mark_labels(marked, runs), *_best_label(sizing, low, high, top), *_side_labels(low, high, top)]
    wanted += _unified_label(x, one)
    found = [(each, *ground.place_anyway(each.words, each.spots, size=each.size)) for each in wanted]
    return [placed(each, spot, grounded=covers) for each, spot, covers in found]


def _stepped(x: Any, y: Any) -> tuple[Any, Any]:
    """A line of few requests as it is drawn: level to the next ratio, then straight up or down."""
    return np.repeat(x, 2)[1:], np.repeat(y, 2)[:-1]


def _side_labels(low: float, high: float, top: float) -> list[Wanted]:
    """Which pool binds, on its side: near the head, or as far down as it takes."""
    shares = (0.92, 0.84, 0.76, 0.68, 0.6, 0.5, 0.4, 0.3)
    left = (Spot(low, top * share, "bottom right", (5, 0)) for share in shares)
    right = (Spot(high, top * share, "bottom left", (-5, 0)) for share in shares)
    return [
        Wanted("state binds,<br>KV idles", left, "@state", size=SMALL),
        Wanted("KV binds,<br>state idles", right, "@kv", size=SMALL),
    ]


def _mark_labels(marked: dict[str, float], runs: dict[str, int]) -> list[Wanted]:
    """Beside each mark, the rightmost to its right, the others to their left, at a height where nothing runs."""
    found = []
    for name, ratio in marked.items():
        sides = ("right", "left") if ratio == max(marked.values()) else ("left", "right")
        words = f"{name} {ratio_text(ratio)}: <b>{count(runs[name])}</b>"
        spots = _beside(math.log10(ratio), runs[name], sides)
        found.append(Wanted(words, spots, own=name.startswith("now")))
    return found


def _beside(x: float, y: float, sides: tuple[str, str]) -> Iterator[Spot]:
    """Beside a mark, on the first of both sides rather than on the other; else over it."""
    for across, up, off in BESIDE:
        for side in sides:
            yield Spot(x, y, f"{up} {side}", (across if side == "right" else -across, off))
    for off in (11, 28):
        yield Spot(x, y, "top center", (0, off))


def _best_label(sizing: Sizing, low: float, high: float, top: float) -> list[Wanted]:
    """At the head of the axes; the band below it shows where the range lies."""
    best = sizing.optimum
    if best is None:
        return []
    if best.ratio_low is None:
        words = "the engine ignores the ratio here:<br>radix cache off and a request count is set"
    else:
        words = f"best ratio: {count(best.runs)} run at {ratio_range_text(best.ratio_low, best.ratio_high)}"
    shares = ((0.5, "center"), (1, "left"), (0, "right"), (0.25, "center"), (0.75, "center"))
    places = [(low + (high - low) * share, f"bottom {side}") for share, side in shares]
    spots = (Spot(x, top, side, (0, -off)) for off in (1, 18, 36, 54, 80, 110, 140) for x, side in places)
    return [Wanted(words, spots)]


def _unified_label(x: Any, one: Integers | None) -> list[Wanted]:
    """On the line of what runs in one buffer for both pools, where that is set."""
    if one is None:
        return []
    places = [int(share * (len(x) - 1)) for share in (0.85, 0.75, 0.92, 0.65, 0.55, 0.3, 0.2)]
    spots = [Spot(float(x[at]), int(one[at]), f"{up} center", (0, off)) for up, off in OFF_LINE for at in places]
    return [Wanted("unified memory", spots, "@many", size=SMALL)]


OFF_LINE = (("top", 5), ("bottom", -5), ("top", 16), ("bottom", -16))


def _runs_at(ratios: "np.ndarray", runs: "np.ndarray", ratio: float) -> int:
    return int(runs[np.searchsorted(ratios, ratio)])


def _finite(trace: Figure) -> Figure:
    """JSON knows no NaN: a gap in a line is null."""
    return trace | {"y": [value if value == value else None for value in trace["y"]]}  # noqa: PLR0124, NaN is not
