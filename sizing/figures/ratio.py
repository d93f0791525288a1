"""Figure 2: requests against the ratio r at the user's L, with the peak and its plateau."""

import math
from typing import Any

import numpy as np

from sizing.answers.curves import Reals, over_ratio, ratio_grid
from sizing.answers.solve import Sizing
from sizing.basics.units import count, flag_ratio, ratio_range_text, ratio_text, requests_text
from sizing.engine.slots import ratio_is_ignored
from sizing.engine.split import Split
from sizing.figures.theme import (
    SMALL,
    Figure,
    Label,
    axis,
    inputs,
    labels,
    layout,
    line,
    points,
    requests_axis,
    solved_as,
    source_axis,
    text,
)
from sizing.scenario.inputs import DEFAULT_RATIO

HEIGHT = 420
CHARACTERS = 88  # of a line of inputs in half the main column at 1440 px
REACH = 40  # the axis goes this many times below and above what is marked on it
LINES_UP_TO = 0.76  # of the axis: the labels of the sides and of the best split stand above
BELOW = 0.07  # of the axis: how far under a plateau the labels of its marks stand
WIDE = 1.3  # high end over low end of the best ratios: a plateau whose line runs through what stands beside it
FEW = 40  # requests; below, whole requests show as steps and are drawn as such
SIDE_HEIGHT = 0.84  # of the axis: where the two sides are named
HEADROOM = 1.4  # of the peak; the two lines leave the figure above it


def ratio_figure(sizing: Sizing) -> Figure:
    """What runs at L for every ratio around the balance; the engine's default, the ratio that is set and r* marked."""
    figure = layout(inputs(sizing), "Requests against the ratio r", height=HEIGHT, characters=CHARACTERS)
    marked = _marked(sizing)
    low, high = _ends(marked)
    plateau = _plateau(sizing, low, high)
    curve = over_ratio(sizing.scenario, ratios_drawn(sizing))
    top = max(int(curve.runs.max()), 1) * HEADROOM
    figure["xaxis"] = source_axis(
        "r, --mamba-full-memory-ratio (above 1 is legal)", solved_as(sizing), type="log", **_ratio_ticks(low, high)
    )
    figure["yaxis"] = axis(requests_axis(sizing), range=[0, top], **({"dtick": 1} if top < FEW / 4 else {}))
    figure["hovermode"] = "x"
    figure["shapes"] = _band(plateau)
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
    figure["annotations"] += _best_label(sizing, top)
    runs = {name: _runs_at(curve.ratio, curve.runs, ratio) for name, ratio in marked.items()}
    symbols = ["diamond" if name == "r*" else "circle" for name in marked]
    data.append(points(list(marked.values()), list(runs.values()), symbols))
    wide = len(plateau) == 2 and plateau[1] > plateau[0] * WIDE
    data.append(labels([*_side_labels(low, high, top), *_mark_labels(marked, runs, top, wide=wide)]))
    if top < FEW:
        data = [trace | {"line": trace["line"] | {"shape": "hv"}} if "line" in trace else trace for trace in data]
    return {"data": [_finite(trace) for trace in data], "layout": figure}


def ratios_drawn(sizing: Sizing) -> Reals:
    """The ratios [-] that the figure solves: even on its axis, with every mark and both ends of the plateau."""
    marked = _marked(sizing)
    low, high = _ends(marked)
    return ratio_grid(low, high, *marked.values(), *_plateau(sizing, low, high))


def _ends(marked: dict[str, float]) -> tuple[float, float]:
    """Both ends of the axis [-]."""
    around = list(marked.values()) or [DEFAULT_RATIO]
    return min(around) / REACH, max(around) * REACH


def _below(requests: Any, top: float) -> list[float]:
    """The part of a line that leaves the head of the figure to its label."""
    return list(np.where(requests <= top * LINES_UP_TO, requests, np.nan))


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


def _ratio_ticks(low: float, high: float) -> Figure:
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [10.0**power for power in powers if low <= 10.0**power <= high]
    return {
        "tickvals": ticks,
        "ticktext": [f"{tick:g}" for tick in ticks],
        "range": [math.log10(low), math.log10(high)],
    }


def _side_labels(low: float, high: float, top: float) -> list[Label]:
    return [
        Label(" state binds,<br> KV idles", low, top * SIDE_HEIGHT, "middle right", "@state", SMALL),
        Label("KV binds, <br>state idles ", high, top * SIDE_HEIGHT, "middle left", "@kv", SMALL),
    ]


def _mark_labels(marked: dict[str, float], runs: dict[str, int], top: float, *, wide: bool) -> list[Label]:
    """Beside each mark, the rightmost to its right, the others to their left; clear of steps and of a plateau."""
    height = "top" if top < FEW and not wide else "middle"
    return [
        Label(
            f"   {name} {ratio_text(ratio)}: <b>{count(runs[name])}</b>   ",
            ratio,
            runs[name] - (top * BELOW if wide else 0),
            f"{height} right" if ratio == max(marked.values()) else f"{height} left",
        )
        for name, ratio in marked.items()
    ]


def _best_label(sizing: Sizing, top: float) -> list[Figure]:
    """Over the middle of the axis, where it is never cut; the band below it shows where the range lies."""
    best = sizing.optimum
    if best is None:
        return []
    if best.ratio_low is None:
        words = "the engine ignores the ratio here: radix cache off and a request count is set"
    else:
        words = f"best: {requests_text(best.runs)}, r {ratio_range_text(best.ratio_low, best.ratio_high)}"
    return [text(words, x=0.5, y=top, xref="paper") | {"xanchor": "center", "yanchor": "top"}]


def _runs_at(ratios: "np.ndarray", runs: "np.ndarray", ratio: float) -> int:
    return int(runs[np.searchsorted(ratios, ratio)])


def _finite(trace: Figure) -> Figure:
    """JSON knows no NaN: a gap in a line is null."""
    return trace | {"y": [None if math.isnan(value) else value for value in trace["y"]]}
