"""Figures of real traffic: how long requests are, what KV they need, and how often the pool does not hold it."""

import math
from typing import Any

import numpy as np

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
    solved_as,
    source_axis,
)
from sizing.traffic.curves import in_use, lengths, needs
from sizing.traffic.mix import Counts, Mix
from sizing.traffic.running import Traffic, Way
from sizing.units import count, percent, tokens_text

CHARACTERS = 88  # of a line of inputs in half the main column at 1440 px
WIDE = 185  # and in the whole
HEIGHT, ROW = 430, 150  # [px] of a figure, of each row of lengths
QUANTILES = (0.5, 0.95, 0.99)
BAR = 50  # [% of a row's height] the fullest bin
GAP = 0.08  # between rows, of the figure's height
HEADROOM = 1.25  # of the highest line, for labels
REACH = 1.3  # requests drawn, over the most that any split admits or carries
# Ways to split belong to neither pool: they are told apart by ink and dash.
LOOKS = {
    "as set": ("@muted", "dash", 2.5),
    "best for this traffic": ("@ink", "solid", 3.0),
    "r* of the mean length": ("@muted", "dot", 2.5),
}


def parts_of(mix: Mix) -> dict[str, Counts]:
    """What is known of the lengths, by name."""
    known = {"input": mix.inputs, "output": mix.outputs, "input + output": mix.lengths}
    return {name: counts for name, counts in known.items() if counts is not None}


def lengths_figure(mix: Mix) -> Figure:
    """How long requests are: a row with histogram and cumulative curve for input, output and their sum."""
    parts = parts_of(mix)
    said = [
        about(mix),
        "bars: requests in each quarter octave, the fullest at half height",
        "line: share at most so long",
    ]
    figure = layout(said, "How long requests are", height=ROW * len(parts) + 170, characters=CHARACTERS)
    top = max(int(counts.values[-1]) for counts in parts.values())
    ticks = [4**power for power in range(1, 13) if 4**power <= top * 2]
    figure["xaxis"] = source_axis(
        "tokens of a request",
        "Counted from the traffic given" if not mix.synthetic else "Made from a shape, not measured",
        type="log",
        tickvals=ticks,
        ticktext=[tokens_text(tick) for tick in ticks],
        range=[0, math.log10(top * 1.15)],
        anchor=f"y{len(parts)}" if len(parts) > 1 else "y",
    )
    height = (1 - GAP * (len(parts) - 1)) / len(parts)
    data = []
    for row, (name, counts) in enumerate(parts.items(), start=1):
        key = "" if row == 1 else str(row)
        end = 1 - (row - 1) * (height + GAP)
        figure[f"yaxis{key}"] = axis(
            f"{name} [%]", range=[0, 104], tickvals=[0, 50, 100], domain=[max(end - height, 0), end]
        )
        data += [trace | {"yaxis": f"y{key}"} for trace in _row(counts)]
    return {"data": data, "layout": figure}


def about(mix: Mix) -> str:
    """What traffic it is, for the line of inputs of a figure."""
    return f"{mix.name}, synthetic" if mix.synthetic else f"{mix.name}: {count(mix.requests)} requests"


def _row(counts: Counts) -> list[Figure]:
    drawn = lengths(counts)
    middle = np.sqrt(drawn.edges[1:] * drawn.edges[:-1])
    seen = np.flatnonzero(drawn.shares)
    bars = {
        "type": "bar",
        "x": middle[seen].tolist(),
        "y": (drawn.shares[seen] / drawn.shares.max() * BAR).tolist(),
        "width": np.diff(drawn.edges)[seen].tolist(),
        "marker": {"color": "@other", "line": {"color": "@paper", "width": 1}},
        "customdata": (drawn.shares[seen] * 100).tolist(),
        "hovertemplate": "about %{x:,.0f} tokens: %{customdata:.1f} % of requests<extra></extra>",
    }
    at = [counts.quantile(share) for share in QUANTILES]
    marked = {
        "type": "scatter",
        "mode": "markers",
        "x": [max(value, 1) for value in at],
        "y": [share * 100 for share in QUANTILES],
        "marker": {"color": "@ink", "size": 7},
        "hoverinfo": "skip",
    }
    curve = line(np.maximum(drawn.tokens, 1).tolist(), (drawn.below * 100).tolist(), "@ink", shape="hv")
    median, high = at[0], at[1]
    words = labels(
        [
            Label(f"p50 {count(median)} ", max(median, 1), 50, "middle left", size=SMALL),
            Label(f"p95 {count(high)}, p99 {count(at[2])} ", max(high, 1), 92, "bottom left", size=SMALL),
        ]
    )
    return [bars, curve, marked, words]


def needs_figure(traffic: Traffic) -> Figure:
    """KV that requests in flight need against KV that is left beside their slots: where they meet is the best split."""
    said = [about(traffic.mix), f"risk {percent(traffic.risk)}", *inputs(traffic.sizing)]
    figure = layout(said, "KV needed, and KV left beside the slots", height=HEIGHT, characters=CHARACTERS, right=40)
    most = max((max(way.split.admitted, way.now.runs) for way in traffic.ways), default=1)
    drawn = needs(traffic, int(most * REACH) + 1)
    admitted = drawn.left >= 0
    top = max(float(drawn.left.max()), 1.0) * HEADROOM
    x = drawn.requests
    figure["xaxis"] = source_axis("requests in flight per rank", solved_as(traffic.sizing), range=[0, int(x[-1])])
    figure["yaxis"] = axis("KV per rank [tokens]", range=[0, top])
    lines = (
        ("left beside C x S slots", drawn.left, admitted, "@kv", "solid", 4.0),
        (f"needed at {percent(traffic.risk)} risk", drawn.needed, drawn.needed <= top, "@ink", "solid", 3.0),
        ("C x mean length", drawn.at_mean, drawn.at_mean <= top, "@muted", "dash", 2.5),
    )
    data = [
        line(x[seen].tolist(), values[seen].tolist(), colour, dash=dash, width=width, name=name)
        for name, values, seen, colour, dash, width in lines
    ]
    marks = {way.name: (way.split.admitted, way.split.kv_tokens) for way in traffic.ways}
    data.append(
        points([mark[0] for mark in marks.values()], [mark[1] for mark in marks.values()], ["circle"] * len(marks))
    )
    data.append(labels([*_ends(x, lines), *_marks(traffic.ways)]))
    return {"data": data, "layout": figure}


def _ends(x: Any, lines: tuple[tuple[str, Any, Any, str, str, float], ...]) -> list[Label]:
    """The name of each line: the falling one's over its start, the rising ones' left and right of them."""
    (left, *_), (needed, need, seen, *_), (mean, means, shown, *_) = lines
    high, low = int(np.flatnonzero(seen)[-1]), int(np.flatnonzero(shown)[-1])
    return [
        Label(f"  {left}", float(x[0]), float(lines[0][1].max()), "top right", "@kv"),
        Label(f"{needed}  ", float(x[high]), float(need[high]), "middle left"),
        Label(f"  {mean}", float(x[low]), float(means[low]), "middle right", "@muted"),
    ]


def _marks(ways: tuple[Way, ...]) -> list[Label]:
    sides = {"as set": "bottom left", "best for this traffic": "bottom center", "r* of the mean length": "middle right"}
    return [
        Label(f"{way.name}: {count(way.split.admitted)}", way.split.admitted, way.split.kv_tokens, sides[way.name])
        for way in ways
    ]


def overflow_figure(traffic: Traffic) -> Figure:
    """KV wanted by all that each way admits, over its own pool; what lies beyond the pool overflows."""
    said = [about(traffic.mix), *inputs(traffic.sizing)]
    figure = layout(said, "KV in use with all admitted in flight", height=HEIGHT, characters=CHARACTERS)
    drawn = {way.name: (way, in_use(way, traffic)) for way in traffic.ways}
    right = min(max([1.15, *(float(curve.pool[-1]) for _, curve in drawn.values())]), 4)
    figure["xaxis"] = source_axis(
        "KV in use over the KV pool of that split", solved_as(traffic.sizing), range=[0, right], tickformat=".0%"
    )
    figure["yaxis"] = axis("likelihood, each peak at the same height", range=[0, 1.5], tickvals=[])
    figure["shapes"] = [
        {
            "type": "rect",
            "x0": 1,
            "x1": right,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "fillcolor": "@kv_soft",
            "line": {"width": 0},
            "layer": "below",
        },
        {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "line": {"color": "@kv", "width": 3}},
    ]
    data, found = [], [Label(" the pool overflows: requests are retracted", 1, 1.44, "middle right", "@kv")]
    for row, (way, curve) in enumerate(drawn.values()):
        colour, dash, width = LOOKS[way.name]
        peak = int(np.argmax(curve.density))
        data.append(line(curve.pool.tolist(), curve.density.tolist(), colour, dash=dash, width=width, name=way.name))
        words = f"{way.name}: {count(way.split.admitted)}, over for {percent(way.now.overflow)} of the time"
        found.append(Label(words, float(curve.pool[peak]), 1.04 + 0.1 * row, "top center", colour))
    data.append(labels(found))
    return {"data": data, "layout": figure}


def _upright(kind: str, x0: float, x1: float) -> Figure:
    return {"type": kind, "x0": x0, "x1": x1, "y0": 0, "y1": 1, "yref": "paper"}
