"""Figure 1: the mamba clamp (flat) against the KV cap (falling) across L. Where they cross, neither pool idles."""

import math
from typing import Any

import numpy as np

from sizing.answers.band import band_of
from sizing.answers.curves import L_HIGH, L_LOW, ContextCurve, context_grid, over_context
from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal
from sizing.basics.units import count, ratio_text, requests_text, tokens_text
from sizing.engine.split import Split
from sizing.figures.theme import (
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

HEIGHT = 510
CHARACTERS = 185  # of a line of inputs at the narrowest main column (1440 px with the sidebar open)
ROOM = 12  # how many times longer than its start a region must reach in L to hold its label
FEW = 5  # requests; a clamp below it leaves no room under the lines
DOT = 22  # [px] size of the user's dot, which is a letter
CLEAR = 1.1  # a label stands this factor off its line
LOW_CLAMP = 0.52  # of the axis: below it the corner under the envelope is too small for a label


def crossing_figure(sizing: Sizing) -> Figure:
    """The figure for the split that is set, with the balanced split's pair lightly behind it."""
    balanced = sizing.balanced if isinstance(sizing.balanced, Split) else None
    shown = sizing.now if isinstance(sizing.now, Split) else balanced
    figure = layout(inputs(sizing), "Requests that run, across context length", height=HEIGHT, characters=CHARACTERS)
    figure["xaxis"] = source_axis("L, context per request [tokens]", solved_as(sizing), type="log", **_context_ticks())
    if shown is None:
        figure["yaxis"] = axis(requests_axis(sizing), range=[0, 1], tickvals=[0])
        figure["annotations"].append(_nothing())
        return {"data": [], "layout": figure}
    behind = [balanced] if balanced and balanced.slots != shown.slots else []
    curve = over_context(shown, context_grid(shown))
    low, high = _range(curve, behind)
    figure["yaxis"] = axis(requests_axis(sizing), type="log", **_request_ticks(low, high))
    figure["hovermode"] = "x"
    # What follows from the split alone is drawn as traces. What moves with L is drawn as shapes and annotations,
    # which Plotly updates without drawing the traces again.
    data = [*_band(sizing), *_idle(curve), *_pair(curve), *_envelope(curve), *_balance_mark(shown), _hover(curve, low)]
    data.append(labels([*_line_labels(shown, curve, behind), *_region_labels(shown, low)]))
    figure["shapes"] = [*_pairs_behind(behind), _own_line(sizing)]
    figure["annotations"] += [*_labels_behind(shown, behind), _balance_label(shown, low, high)]
    figure["annotations"] += [_own_dot(sizing, shown, low), _own_label(sizing, shown, low, high)]
    if isinstance(sizing.now, Refusal):
        figure["annotations"].append(_refused_label())
    return {"data": data, "layout": figure}


def _band(sizing: Sizing) -> list[Figure]:
    """What runs at both ends of an estimated rest: a light band."""
    band = band_of(sizing)
    if band is None or not isinstance(band.low, Split) or not isinstance(band.high, Split):
        return []
    low, high = (over_context(end, context_grid(end)) for end in (band.low, band.high))
    x, y = [*low.L.tolist(), *high.L.tolist()[::-1]], [*low.runs.tolist(), *high.runs.tolist()[::-1]]
    return [
        line(x, _visible(np.array(y)), "@muted", width=0) | {"fill": "toself", "fillcolor": "@grid", "name": "band"}
    ]


def _context_ticks() -> dict[str, Any]:
    ticks = [4**power for power in range(4, 11)]  # 256, 1K, ... 1M: each label costs time at every move
    names = [tokens_text(tick) for tick in ticks]
    margin = 0.02  # of a decade, so that the outer ticks are not cut
    return {
        "tickvals": ticks,
        "ticktext": names,
        "range": [math.log10(L_LOW) - margin, math.log10(L_HIGH) + margin],
        "showspikes": True,
        "spikemode": "across",
        "spikethickness": 1,
        "spikedash": "dot",
        "spikecolor": "@muted",
    }


def _range(curve: ContextCurve, behind: list[Split]) -> tuple[float, float]:
    """Lowest and highest place on the axis; below 1 is room for the label of the user's L."""
    top = max([int(curve.kv_cap.max()), curve.clamp, *(split.clamp for split in behind)])
    return (0.7 if curve.clamp >= FEW else 0.15), top * 1.6


def _request_ticks(low: float, high: float) -> dict[str, Any]:
    ticks = [
        mantissa * 10**power for power in range(8) for mantissa in (1, 2, 5) if low <= mantissa * 10**power <= high
    ]
    return {
        "tickvals": ticks,
        "ticktext": [count(tick) for tick in ticks],
        "range": [math.log10(low), math.log10(high)],
    }


def _visible(values: Any) -> list[float | None]:
    """0 requests have no place on a logarithmic axis: the line ends there."""
    return [float(value) if value > 0 else None for value in values]


def _pairs_behind(behind: list[Split]) -> list[Figure]:
    """What the balanced split admits and its cap, lightly; on two logarithmic axes tokens / L is a straight line."""
    return [
        _dotted(L_LOW, first, L_HIGH, last, color)
        for split in behind
        for first, last, color in (
            (split.admitted, split.admitted, "@state"),
            (split.kv_tokens / L_LOW, split.kv_tokens / L_HIGH, "@kv"),
        )
    ]


def _dotted(x0: float, y0: float, x1: float, y1: float, color: str) -> Figure:
    return {
        "type": "line",
        "x0": x0,
        "y0": y0,
        "x1": x1,
        "y1": y1,
        "line": {"color": color, "width": 1.5, "dash": "dot"},
        "opacity": 0.6,
        "layer": "below",
    }


def _idle(curve: ContextCurve) -> list[Figure]:
    """The side where each pool idles: between the two lines, in the colour of the pool that idles."""
    left, right = curve.kv_cap >= curve.clamp, (curve.kv_cap <= curve.clamp) & (curve.kv_cap > 0)
    areas = []
    for side, colour in ((left, "@kv_soft"), (right, "@state_soft")):
        x, cap = curve.L[side].tolist(), curve.kv_cap[side].tolist()
        outline = line(x + x[::-1], cap + [curve.clamp] * len(x), colour, width=0)
        areas.append(outline | {"fill": "toself", "fillcolor": colour})
    return areas


def _pair(curve: ContextCurve) -> list[Figure]:
    x = curve.L.tolist()
    return [
        line(x, [curve.clamp] * len(x), "@state", dash="dash", name="mamba clamp"),
        line(x, _visible(curve.kv_cap), "@kv", dash="dash", name="KV cap"),
    ]


def _envelope(curve: ContextCurve) -> list[Figure]:
    """What runs, drawn strong in the colour of the pool that binds; a third limit is drawn in ink."""
    by_kv = curve.kv_cap < curve.admitted
    colour = "@state" if curve.admitted == curve.clamp else "@ink"
    sides = [
        line(
            curve.L[~by_kv].tolist(),
            curve.runs[~by_kv].tolist(),
            colour,
            width=6,
            name="runs, state pool binds",
        ),
        line(curve.L[by_kv].tolist(), _visible(curve.runs[by_kv]), "@kv", width=6, name="runs, KV pool binds"),
    ]
    return [side for side in sides if side["x"]]


def _balance_mark(shown: Split) -> list[Figure]:
    return [points([shown.crossing], [shown.clamp], ["diamond"])] if L_LOW <= shown.crossing <= L_HIGH else []


def _own_line(sizing: Sizing) -> Figure:
    """The user's L, over the whole height."""
    L = sizing.scenario.L
    return _dotted(L, 0, L, 1, "@ink") | {"yref": "paper", "opacity": 1}


def _own_dot(sizing: Sizing, shown: Split, low: float) -> Figure:
    """What runs at the user's L."""
    x, y = math.log10(sizing.scenario.L), math.log10(max(shown.runs, low))
    return text("●", x=x, y=y, size=DOT) | {"yanchor": "middle"}


def _hover(curve: ContextCurve, low: float) -> Figure:
    """An invisible line that answers for every L under the pointer, so that exploring needs no round trip."""
    binds = np.where(
        curve.kv_cap < curve.admitted,
        "KV pool",
        "state pool" if curve.admitted == curve.clamp else "engine's cap",
    )
    rows = zip(curve.kv_cap.tolist(), curve.runs.tolist(), binds.tolist(), strict=True)
    return line(curve.L.tolist(), np.maximum(curve.runs, low).tolist(), "@ink", width=0, opacity=0) | {
        "name": "hover",
        "hoverinfo": "all",
        "customdata": [list(row) for row in rows],
        "hovertemplate": f"L %{{x:,}} tokens<br>mamba clamp {count(curve.clamp)}<br>KV cap %{{customdata[0]:,}}<br>"
        "<b>%{customdata[1]:,} run</b>, %{customdata[2]} binds<extra></extra>",
    }


def _line_labels(shown: Split, curve: ContextCurve, behind: list[Split]) -> list[Label]:
    """Named on the lines themselves: the clamp at its right end, the cap along its fall."""
    cut = f" (the engine admits {count(curve.admitted)})" if curve.admitted < curve.clamp else ""
    clamp = f"mamba clamp {count(shown.clamp)}{cut}"
    side, y = ("bottom left", shown.clamp / CLEAR) if _higher(shown, behind) else ("top left", shown.clamp * CLEAR)
    found = [Label(clamp, L_HIGH, y, side, "@state")]
    index = int(np.searchsorted(curve.L, L_LOW * 2))  # one octave in, clear of the axis
    if curve.kv_cap[index] > 0:
        outside = all(shown.kv_tokens >= split.kv_tokens for split in behind)
        side = "top right" if outside else "bottom left"
        found.append(Label("  KV cap  ", int(curve.L[index]), int(curve.kv_cap[index]), side, "@kv"))
    return found


def _higher(shown: Split, behind: list[Split]) -> bool:
    """Whether the balanced clamp is drawn above the one that is set."""
    return any(split.admitted >= shown.clamp for split in behind)


def _labels_behind(shown: Split, behind: list[Split]) -> list[Figure]:
    """Above the balanced clamp at its right end; where it is the lower one, at the left, where nothing else is."""
    place: Figure = (
        {"x": math.log10(L_HIGH), "xanchor": "right", "yanchor": "bottom"}
        if _higher(shown, behind)
        else {"x": math.log10(L_LOW), "xanchor": "left", "yanchor": "top"}
    )
    return [
        text(
            f"balanced split r = {ratio_text(split.ratio or 0)}: {count(split.runs)} run at this L",
            y=math.log10(max(split.admitted, 1)),
            color="@muted",
            **place,
        )
        for split in behind
    ]


def _region_labels(shown: Split, low: float) -> list[Label]:
    """Which pool idles on which side of the balance point, where there is room to say so."""
    found = []
    crossing = max(shown.crossing, L_LOW)  # 0 where the KV pool holds fewer tokens than there are requests
    binds = "state binds" if shown.admitted == shown.clamp else "the engine's cap binds"
    if crossing > L_LOW * ROOM:
        middle = math.sqrt(L_LOW * crossing) / 1.6
        height = math.sqrt(shown.clamp * shown.kv_tokens / middle) / 1.15
        found.append(Label(f"KV pool idles:<br>{binds}", middle, height, "middle center", "@muted"))
    if crossing * ROOM < L_HIGH and shown.clamp >= FEW:
        middle = math.sqrt(L_HIGH * crossing) * 1.6
        height = math.sqrt(shown.clamp * max(shown.kv_tokens / middle, low)) * 1.1
        found.append(Label("state pool idles:<br>KV binds", middle, height, "middle center", "@muted"))
    return found


def _balance_label(shown: Split, low: float, high: float) -> Figure:
    """In the empty corner under the envelope; above the lines where the clamp lies too low for that."""
    if not L_LOW <= shown.crossing <= L_HIGH:
        side = "below" if shown.crossing < L_LOW else "above"
        return text(
            f"balance point at L = {count(shown.crossing)}, {side} this range",
            x=1,
            y=1,
            xref="paper",
            yref="paper",
        ) | {"xanchor": "right", "yanchor": "top"}
    under = math.log(shown.clamp / low) > LOW_CLAMP * math.log(high / low)
    left = shown.crossing > L_HIGH / 6
    return {
        "text": f"<b>balance point</b><br>L = {count(shown.crossing)}, {_meeting(shown)}",
        "x": math.log10(shown.crossing),
        "y": math.log10(shown.clamp),
        "ax": -20 if left else 20,
        "ay": 88 if under else -84,
        "xanchor": "right" if left else "left",
        "arrowcolor": "@muted",
        "arrowwidth": 1,
        "arrowhead": 0,
        "standoff": 8,
        "align": "right" if left else "left",
        "font": {"color": "@ink", "size": 13},
    }


def _meeting(shown: Split) -> str:
    """How many requests both pools carry at the balance point; fewer run where something else binds."""
    both = requests_text(shown.clamp)
    return both if shown.admitted == shown.clamp else f"clamp = cap = {count(shown.clamp)}"


def _own_label(sizing: Sizing, shown: Split, low: float, high: float) -> Figure:
    """The user's L and what runs there, in the empty corner below the lines (above them at very long L)."""
    L, short = sizing.scenario.L, sizing.scenario.L < L_HIGH / ROOM
    runs = f"<b>{count(shown.runs)} run</b>" if shown is sizing.now else "<b>refused as set</b>"
    side: Figure = {"xanchor": "left", "yanchor": "bottom", "xshift": 6, "align": "left"}
    if not short:
        side = {"xanchor": "right", "yanchor": "top", "xshift": -6, "align": "right"}
    x, y = math.log10(min(max(L, L_LOW), L_HIGH)), math.log10(low if short else high)
    beyond = "" if L_LOW <= L <= L_HIGH else ", outside this range"
    return text(f"L = {count(L)}{beyond}<br>{runs}", x=x, y=y, bgcolor="@paper", **side)


def _nothing() -> Figure:
    return text("No split of this rest runs a request.", x=0.5, y=0.5, xref="paper", yref="paper", size=17)


def _refused_label() -> Figure:
    return text(
        "The split that is set would be refused; shown is the balanced split.",
        x=0.5,
        y=1,
        xref="paper",
        yref="paper",
    ) | {"yanchor": "top", "bgcolor": "@paper"}
