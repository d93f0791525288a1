"""Figures of real traffic: how long requests are, what KV they need, and how often the pool does not hold it."""

import math
from html import escape
from itertools import groupby
from typing import Any

import numpy as np

from sizing.basics.units import count, percent, requests_text, tokens_text
from sizing.engine.request_slots import SLOTS_FORMULA
from sizing.figures.theme import (
    HALF_COLUMN,
    SMALL,
    WHOLE_COLUMN,
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
    text,
)
from sizing.traffic.curves import InUse, Needs, in_use, lengths, needs
from sizing.traffic.mix import Array, Counts, Mix
from sizing.traffic.running import Traffic, Way
from sizing.traffic.times import BINS

NAME = 40  # characters of a name, which may be that of a file
HEIGHT, HEIGHT_WIDE = 560, 540  # [px]; a lower figure has no room for its title on a slide of 720 px
GAP = 0.05  # between rows, of the figure's height
ROWS_END = 0.95  # of the figure's height: above it stands what the line of the pool is
LINE = 18  # [px] of a line of words over a row
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
BAR = 50  # [% of a row's height] the fullest bin
OCTAVES = 4  # an axis of lengths spans at least so many
FEW_TICKS = 4  # at powers of four; where there are fewer, powers of two
HEADROOM = 1.25  # of the most KV that is left; what is needed is drawn up to there
LOWEST = 8  # times as high as the lines meet, the axis ends: higher, and they would meet at its foot
MARGIN = 1.08  # of it at least, for a name
REACH = 1.35  # requests drawn, over the most that is marked: right of it stand the names of lines
FAR = 3  # times what any split runs: a mark beyond that would press all others to the edge
HEAD = 1.06  # of the highest point: where the axis ends
ROW = 0.07  # of the axis: a line of names under it
OVER = 0.015  # of the highest point: a name stands so far over its line
SEEN = 4  # times what is in flight at most: a line of what runs beyond that would press it to the foot
NAMES = 150  # [px] of the right margin: the name of the lower line
RIGHT_LEAST, RIGHT_MOST = 1.25, 3.0  # KV pools: where the axis of KV in use ends


def lengths_figure(mix: Mix) -> Figure:
    """How long requests are: a row with histogram and cumulative curve for input, output and their sum."""
    parts = mix.parts
    said = [
        about(mix),
        "bars: requests in each quarter octave, the fullest at half height",
        "line: share at most so long",
        f"dots: {', '.join(QUANTILES)}",
        *(["0 is drawn at 1"] if any(counts.values[0] == 0 for counts in parts.values()) else []),
    ]
    figure = layout(said, "How long requests are", height=HEIGHT, characters=HALF_COLUMN)
    low = min(max(int(counts.values[0]), 1) for counts in parts.values())
    high = max(int(counts.values[-1]) for counts in parts.values())
    made = "Made from a shape, not measured" if mix.synthetic else "Counted from the traffic given"
    scale = _length_scale(low, high)
    figure["xaxis"] = source_axis("tokens of a request", made, type="log", anchor=_key(len(parts)), **scale)
    data = []
    for row, (name, counts) in enumerate(parts.items(), start=1):
        bottom, top = _row(row, len(parts))
        room = LINE / _pixels(figure, top - bottom)
        figure[f"yaxis{_key(row)[1:]}"] = axis(
            "share [%]", range=[0, 104 / (1 - room)], tickvals=[0, 50, 100], domain=[bottom, top]
        )
        at = ", ".join(f"{quantile} {count(counts.quantile(share))}" for quantile, share in QUANTILES.items())
        figure["annotations"].append(_over(f"<b>{name}</b>: {at} tokens", top))
        data += [trace | {"yaxis": _key(row)} for trace in _lengths(counts, scale["range"], name)]
    return {"data": data, "layout": figure}


def times_figure(traffic: Traffic) -> Figure:
    """Requests in flight over the time of the file, in the mean and at most, with the busiest hour and what one
    deployment runs; where the file does not say when requests ended, how many came.
    """
    times = traffic.mix.times
    assert times is not None
    unit, name = (3600.0, "hours") if times.span >= 2 * 3600 else (60.0, "minutes") if times.span >= 120 else (1.0, "s")
    title = "Requests in flight over time" if times.mean is not None else "Requests that came over time"
    drawn = [f"bold: the mean in each of {BINS} steps; thin: the most in it"] if times.mean is not None else []
    said = [*drawn, about(traffic.mix), f"risk {percent(traffic.risk)}", *inputs(traffic.sizing)]
    figure = layout(said, title, height=HEIGHT, characters=WHOLE_COLUMN, right=NAMES)
    edges = times.edges / unit
    middles, right = ((edges[1:] + edges[:-1]) / 2).tolist(), float(edges[-1])
    figure["xaxis"] = source_axis(
        f"time from the first request [{name}]", "Counted from the traffic given", range=[0, right], showgrid=False
    )
    if times.mean is None or times.most is None:
        minutes = np.diff(times.edges) / 60
        rates = (times.came / minutes).tolist()
        figure["yaxis"] = axis("requests per minute", range=[0, 1.08 * max(rates)])
        data = [line(middles, rates, "@ink", name="came")]
    else:
        runs = {way.name: way.now.runs * traffic.sizing.scenario.attn_dp_size for way in traffic.ways}
        most = float(times.most.max())
        shown = {way: value for way, value in runs.items() if value <= SEEN * most}
        top = 1.08 * max(most, *shown.values(), 1)
        figure["yaxis"] = axis("requests in flight", range=[0, top])
        data = [
            line(middles, times.most.tolist(), "@other", width=1.5, name="most"),
            line(middles, times.mean.tolist(), "@ink", width=2.5, name="mean"),
        ]
        names, foot = [], -math.inf
        for value, equal in groupby(sorted(shown, key=shown.__getitem__), key=shown.__getitem__):
            data.append(line([0, right], [value, value], "@line3", dash="dash", name=f"runs {value}"))
            words = list(equal)
            height = LINE / _pixels(figure, 1) * top * len(words)
            foot = max(value, foot + height)
            told = ",<br>".join(f"  {way}" for way in words)
            names.append(Label(f"{told}: <b>{count(value)}</b>", right, foot, "middle right", "@line3"))
        data.append(labels(names))
    if times.busiest is not None:
        low, high = times.busiest.start / unit, (times.busiest.start + 3600) / unit
        place = {"x0": low, "x1": high, "y0": 0, "y1": 1, "yref": "paper", "layer": "below"}
        figure["shapes"] = [place | {"type": "rect", "fillcolor": "@kv_soft", "line": {"width": 0}}]
        figure["annotations"].append(
            text("busiest hour", x=(low + high) / 2, y=1, yref="paper", yanchor="top", size=SMALL)
        )
    return {"data": data, "layout": figure}


def about(mix: Mix) -> str:
    """What traffic it is, for the line of inputs of a figure; no name becomes markup."""
    name = escape(mix.name if len(mix.name) <= NAME else f"{mix.name[: NAME - 1]}…", quote=False)
    return f"{name}, synthetic" if mix.synthetic else f"{name}: {requests_text(mix.requests)}"


def _length_scale(low: int, high: int) -> Figure:
    """From the shortest to the longest request, each with half a bin beside it."""
    first, last = math.log2(low) - 0.25, math.log2(high) + 0.25
    short = max(0.0, OCTAVES - (last - first)) / 2
    first, last = first - short, last + short
    ticks = [2**power for power in range(max(0, math.ceil(first)), math.floor(last) + 1)]
    fours = [tick for tick in ticks if math.log2(tick) % 2 == 0]
    shown = fours if len(fours) >= FEW_TICKS else ticks
    return {
        "tickvals": shown,
        "ticktext": [tokens_text(tick) for tick in shown],
        "range": [first * math.log10(2), last * math.log10(2)],
    }


def _lengths(counts: Counts, ends: list[float], name: str) -> list[Figure]:
    drawn = lengths(counts)
    seen = np.flatnonzero(drawn.shares)
    bars = {
        "type": "bar",
        "name": f"{name}, bars",
        "x": np.sqrt(drawn.edges[1:] * drawn.edges[:-1])[seen].tolist(),
        "y": (drawn.shares[seen] / drawn.shares.max() * BAR).tolist(),
        "width": np.diff(drawn.edges)[seen].tolist(),
        "marker": {"color": "@other", "line": {"color": "@paper", "width": 1}},
        "customdata": (drawn.shares[seen] * 100).tolist(),
        "hovertemplate": "about %{x:,.0f} tokens: %{customdata:.1f} % of requests<extra></extra>",
    }
    tokens, below = np.maximum(drawn.tokens, 1).tolist(), (drawn.below * 100).tolist()
    left, right = (10**end for end in ends)
    curve = line([left, *tokens, right], [0, *below, 100], "@ink", name=name)
    curve["line"]["shape"] = "hv"
    marks = points(
        [max(counts.quantile(share), 1) for share in QUANTILES.values()],
        [share * 100 for share in QUANTILES.values()],
        ["circle"] * len(QUANTILES),
    )
    marks["marker"] |= {"size": 9, "line": {"color": "@paper", "width": 1}}
    return [bars, curve, marks]


def needs_figure(traffic: Traffic) -> Figure:
    """KV that requests in flight need against KV that is left beside their slots: where they meet is the best split."""
    said = [about(traffic.mix), f"risk {percent(traffic.risk)}", *inputs(traffic.sizing)]
    title = "KV needed, and KV left beside the slots"
    figure = layout(said, title, height=HEIGHT_WIDE, characters=WHOLE_COLUMN, right=NAMES)
    if not traffic.ways:
        return _nothing(figure, "requests in flight per rank", "KV per rank [tokens]", traffic)
    drawn = needs(traffic, _most_drawn(traffic.ways))
    right = int(drawn.requests[-1])
    top = min(_top(drawn), LOWEST * _meeting(drawn))
    lowest = -top * ROW * (len(traffic.ways) + 0.5) / (1 - ROW * (len(traffic.ways) + 0.5))
    figure["xaxis"] = source_axis(
        "requests in flight per rank",
        solved_as(traffic.sizing),
        range=[0, right],
        tickformat=",d",
        showgrid=False,
        **({"tickvals": list(range(right + 1))} if right <= 12 else {}),
    )
    ticks = _steps(top)
    figure["yaxis"] = axis("KV per rank [tokens]", range=[lowest, top * HEAD], tickvals=ticks)
    figure["yaxis"] |= {"zeroline": True, "zerolinecolor": "@muted"}
    rising = {
        f"needed at {percent(traffic.risk)} risk": _up_to(drawn.requests, drawn.needed, top),
        "C x mean length": _up_to(drawn.requests, drawn.at_mean, top),
    }
    (needed, need), (mean, means) = rising.items()
    admitted = drawn.left >= 0
    data = [
        line(drawn.requests[admitted].tolist(), drawn.left[admitted].tolist(), "@kv", width=4, name="left"),
        line(*need, "@ink", width=3, name=needed),
        line(*means, "@muted", width=2.5, dash="dash", name=mean),
    ]
    marks, drops, names = _marks(traffic.ways, right, lowest)
    figure["shapes"] = drops
    data += [marks, *_above(traffic.ways, right, top), labels([*_line_names(drawn, rising, top), *names])]
    return {"data": data, "layout": figure}


def _nothing(figure: Figure, x: str, y: str, traffic: Traffic) -> Figure:
    figure["xaxis"] = source_axis(x, solved_as(traffic.sizing), range=[0, 1], tickvals=[])
    figure["yaxis"] = axis(y, range=[0, 1], tickvals=[0])
    figure["annotations"].append(text("No split starts.", x=0.5, y=0.5, xref="paper", yref="paper", size=17))
    return {"data": [], "layout": figure}


def _most_drawn(ways: tuple[Way, ...]) -> int:
    """Where the axis of requests ends."""
    runs = max(1, *(way.now.runs for way in ways))
    marked = [way.split.admitted for way in ways if way.split.admitted <= FAR * runs]
    return math.ceil(max(runs, *marked, 1) * REACH)


def _top(drawn: Needs) -> float:
    """The highest point of any line: all of what is left, and where one request needs more than that, this."""
    shown = float(max(drawn.left.max(), drawn.needed[0], drawn.at_mean[0]))
    return min(HEADROOM * shown, max(MARGIN * shown, float(drawn.needed[-1]), float(drawn.at_mean[-1])))


def _meeting(drawn: Needs) -> float:
    """KV [tokens] where what is needed meets what is left; endless where it never does."""
    beyond = np.flatnonzero(drawn.needed > np.maximum(drawn.left, 0))
    return max(float(drawn.needed[beyond[0]]), 1.0) if len(beyond) else math.inf


def _steps(top: float) -> list[float]:
    """Four to eight even steps from 0 to the top."""
    unit = 10.0 ** math.floor(math.log10(top))
    step = next(part * unit for part in (0.2, 0.5, 1, 2) if top / (part * unit) <= 8)
    return [step * number for number in range(int(top / step) + 1)]


def _up_to(x: Array, y: Array, top: float) -> tuple[list[float], list[float]]:
    """A line that rises from 0, as far as it lies under the top, with the point where it leaves."""
    inside = y <= top
    if inside.all():
        return [0, *x.tolist()], [0, *y.tolist()]
    return [0, *x[inside].tolist(), float(np.interp(top, y, x))], [0, *y[inside].tolist(), top]


def _line_names(drawn: Needs, rising: dict[str, Any], top: float) -> list[Label]:
    """The falling line's name over its start, or over its end where not one request fits under that start.

    Of the two that rise, the upper one's name stands over its end, where no line is, and the lower one's right of its
    end, in the margin if need be.
    """
    over = top * OVER
    seen = np.flatnonzero(drawn.left >= 0)
    words, found = f"left beside {SLOTS_FORMULA} slots", []
    if len(seen) and drawn.left[0] > top:
        x = float(np.interp(-0.8 * top, -drawn.left[seen], drawn.requests[seen]))
        found.append(Label(f" {words}", x, 0.8 * top + over, "top right", "@kv"))
    elif len(seen) and drawn.needed[0] <= drawn.left[0]:
        found.append(Label(f"  {words}", 0, float(drawn.left[0]) + over, "top right", "@kv"))
    elif len(seen):
        x, y = float(drawn.requests[seen[-1]]), float(drawn.left[seen].max())
        found.append(Label(f"{words}  ", x, y + over, "top left", "@kv"))
    lower, upper = sorted(rising, key=lambda name: rising[name][1][-1] / rising[name][0][-1])
    colours = dict(zip(rising, ("@ink", "@muted"), strict=True))
    for name, words, side in ((upper, f"{upper}  ", "top left"), (lower, f"  {lower}", "middle right")):
        x, y = (float(values[-1]) for values in rising[name])
        found.append(Label(words, x, y + over if name == upper else y, side, colours[name]))
    return found


def _marks(ways: tuple[Way, ...], right: int, lowest: float) -> tuple[Figure, list[Figure], list[Label]]:
    """Each split on the axis of requests, and its name in a line of its own below.

    The names grow to the right and the leftmost stands lowest, so a line dropped from a mark meets no other's name.
    Splits that admit equally many have one name, in the order of their marks. One far off is named at the edge.
    """
    inside = [way for way in ways if way.split.admitted <= right]
    beyond = [way for way in ways if way.split.admitted > right]
    height = lowest / (len(ways) + 0.5)
    marks = points(
        [way.split.admitted for way in inside], [way.split.kv_tokens for way in inside], ["circle"] * len(inside)
    )
    row, drops, names = 0, [], []
    for admitted, equal in groupby(_sorted(inside, descending=True), key=lambda way: way.split.admitted):
        together = list(equal)
        middle = height * (row + 0.5 + len(together) / 2)
        row += len(together)
        words = ",<br>".join(f"  {way.name}" for way in together)
        names.append(Label(f"{words}: <b>{count(admitted)}</b>", admitted, middle, "middle right"))
        drops.append(_dropped(admitted, float(max(way.split.kv_tokens for way in together)), middle))
    for way in _sorted(beyond):
        row += 1
        words = f"{way.name}: <b>{count(way.split.admitted)}</b>, beyond this axis →"
        names.append(Label(words, right, height * row, "middle left"))
    return marks, drops, names


def _above(ways: tuple[Way, ...], right: int, top: float) -> list[Figure]:
    """At the head, a sign for each mark that lies above it."""
    x = [way.split.admitted for way in ways if way.split.admitted <= right and way.split.kv_tokens > top * HEAD]
    return [points(x, [top] * len(x), ["triangle-up"] * len(x)) | {"name": "above"}] if x else []


def _sorted(ways: list[Way], *, descending: bool = False) -> list[Way]:
    sign = -1 if descending else 1
    return sorted(ways, key=lambda way: (sign * way.split.admitted, -way.split.kv_tokens))


def _dropped(x: float, y0: float, y1: float) -> Figure:
    look = {"color": "@muted", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": y0, "y1": y1, "line": look, "layer": "below"}


def overflow_figure(traffic: Traffic) -> Figure:
    """KV wanted by all that each way admits, over its own pool, a row each; what lies beyond the pool overflows."""
    said = [about(traffic.mix), *inputs(traffic.sizing)]
    figure = layout(said, "KV in use with all admitted in flight", height=HEIGHT, characters=HALF_COLUMN)
    x_title = "KV in use over the KV pool of that split"
    if not traffic.ways:
        return _nothing(figure, x_title, "likelihood", traffic)
    ways = [list(same) for _, same in groupby(traffic.ways, key=lambda way: (way.split.admitted, way.split.kv_tokens))]
    curves = [in_use(same[0], traffic) for same in ways]
    right = min(max(RIGHT_LEAST, *(float(curve.pool[-1]) for curve in curves)), RIGHT_MOST)
    figure["xaxis"] = source_axis(
        x_title,
        solved_as(traffic.sizing),
        range=[0, right],
        tickformat=".0%",
        dtick=0.2 if right <= 2 else 0.5,
        showgrid=False,
        anchor=_key(len(ways)),
    )
    figure["shapes"], data = [], []
    for row, (same, curve) in enumerate(zip(ways, curves, strict=True), start=1):
        bottom, top = _row(row, len(ways))
        room = 2.2 * LINE / _pixels(figure, top - bottom)
        figure[f"yaxis{_key(row)[1:]}"] = axis(
            "likelihood", range=[0, 1 / (1 - room)], tickvals=[], showgrid=False, domain=[bottom, top]
        ) | {"zeroline": True, "zerolinecolor": "@muted"}
        figure["annotations"].append(_over(_said_of(same, curve, right), top))
        figure["shapes"] += _pool(right, bottom, bottom + (top - bottom) * (1 - room))
        data += [trace | {"yaxis": _key(row)} for trace in _density(same, curve)]
    words = "beyond 100% KV overflows: requests are retracted"
    figure["annotations"].append(_over(words, 1, color="@kv") | {"x": 1, "xanchor": "right", "xshift": 0})
    return {"data": data, "layout": figure}


def _said_of(same: list[Way], curve: InUse, right: float) -> str:
    way = same[0]
    names = ", ".join(each.name for each in same)
    overflows = f"KV overflows {percent(way.now.overflow)} of the time"
    far = ", far beyond this axis" if curve.pool[0] >= right else ""
    return f"<b>{names}</b><br>{count(way.split.admitted)} admitted, {overflows}{far}"


def _pool(right: float, bottom: float, top: float) -> list[Figure]:
    """The end of the KV pool, and what lies beyond, beside one row."""
    place = {"x0": 1, "y0": bottom, "y1": top, "yref": "paper", "layer": "below"}
    return [
        place | {"type": "rect", "x1": right, "fillcolor": "@kv_soft", "line": {"width": 0}},
        place | {"type": "line", "x1": 1, "line": {"color": "@kv", "width": 3}},
    ]


def _density(same: list[Way], curve: InUse) -> list[Figure]:
    """The curve over its area, and in the pool's colour the part of the area that the pool does not hold."""
    pool, density = curve.pool, curve.density
    name = ", ".join(way.name for way in same)
    area = {"fill": "tozeroy", "fillcolor": "@grid"}
    found = [line(pool.tolist(), density.tolist(), "@ink", width=2.5, name=name) | area]
    beyond = pool > 1
    if beyond.any() and pool[0] < pool[-1]:
        start = max(1.0, float(pool[0]))
        x = [start, *pool[beyond].tolist()]
        y = [float(np.interp(start, pool, density)), *density[beyond].tolist()]
        found.append(line(x, y, "@ink", width=2.5, name=f"{name}, beyond") | area | {"fillcolor": "@kv"})
    return found


def _key(row: int) -> str:
    """Plotly's name of the vertical axis of a row."""
    return "y" if row == 1 else f"y{row}"


def _row(row: int, rows: int) -> tuple[float, float]:
    """The foot and the head of a row, as shares of the figure's height; the first is the uppermost."""
    height = (ROWS_END - GAP * (rows - 1)) / rows
    top = ROWS_END - (row - 1) * (height + GAP)
    return max(0.0, top - height), top


def _pixels(figure: Figure, share: float) -> float:
    """The height of a part of the figure on a page [px]."""
    return float(share * (figure["height"] - figure["margin"]["t"] - figure["margin"]["b"]))


def _over(words: str, y: float, color: str = "@ink") -> Figure:
    """Words over a row, from its left edge; they cross nothing there, whatever the row shows."""
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "align": "left", "xshift": 4}
    return text(words, x=0, y=y, color=color, size=SMALL) | place | {"bgcolor": "@paper", "borderpad": 0}
