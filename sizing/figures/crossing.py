"""Figure 1: the mamba clamp (flat) against the KV cap (falling) across L. Where they cross, neither pool idles."""

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from sizing.answers.band import at_low_end, band_of
from sizing.answers.curves import L_HIGH, L_LOW, ContextCurve, Fall, Integers, context_grid, over_context
from sizing.answers.recommended import recommended_split
from sizing.answers.solve import Sizing
from sizing.answers.unified_curves import unified_over_context
from sizing.basics.problems import Refusal
from sizing.basics.units import count, ratio_text, requests_text, tokens_text
from sizing.engine.split import Split
from sizing.figures.placement import Ground, Seen, Spot, seen
from sizing.figures.theme import (
    DOT,
    OWN,
    Figure,
    Label,
    Wanted,
    axis,
    inputs,
    labels,
    layout,
    line,
    log_ticks,
    own_dot,
    placed,
    points,
    requests_axis,
    solved_as,
    source_axis,
    text,
)

HEIGHT = 510
CAPS = {"requests asked": "--max-running-requests binds", "estimate": "the engine's estimate binds"}
CHARACTERS = 185  # of a line of inputs at the narrowest main column (1440 px with the sidebar open)
FEW = 5  # requests; a clamp below it leaves no room under the lines
ROW = 18  # [px] of words
LINE_OFF = 5  # [px] from a level line to its label: half the widest line, and a little
UNIFIED = "unified memory"
BELOW_ALL = 1e-6  # requests: none run, which has no place on the axis
ALONG_A_FALL = (0.08, 0.14, 0.2, 0.28, 0.36, 0.44, 0.04, 0.52, 0.6, 0.7, 0.8)  # where on it words are tried
L_ALONG = tuple(L_LOW * (L_HIGH / L_LOW) ** share for share in ALONG_A_FALL)  # [tokens]
# Axes [px] and heights [px] at which the figure is seen: on a review sheet, on a page at 1440, as a picture, at 1920.
SHOWN_AT = ((770.0, HEIGHT), (880.0, HEIGHT), (1190.0, 720), (1360.0, HEIGHT))
WIDTHS = tuple(width for width, _ in SHOWN_AT)
MARGIN = 0.02  # of a decade, so that the outer ticks are not cut
ACROSS = math.log10(L_LOW) - MARGIN, math.log10(L_HIGH) + MARGIN
KEPT = 16  # splits as they are drawn, 100 KB each


def crossing_figure(sizing: Sizing) -> Figure:
    """The figure for the split that is set, with the recommended split's pair lightly behind it; under unified memory,
    where no other split is recommended, with what its buffer runs.

    Of an estimated `rest` the low end is drawn, with a band up to the high one.
    """
    between = _band(sizing)
    sizing = at_low_end(sizing)
    best = recommended_split(sizing)
    shown = sizing.now if isinstance(sizing.now, Split) else best
    figure = layout(inputs(sizing), "Requests that run, across context length", height=HEIGHT, characters=CHARACTERS)
    figure["xaxis"] = source_axis("L, context per request [tokens]", solved_as(sizing), type="log", **_context_ticks())
    if shown is None:
        figure["yaxis"] = axis(requests_axis(sizing), range=[0, 1], tickvals=[0])
        figure["annotations"].append(_nothing())
        return {"data": [], "layout": figure}
    unified = sizing.scenario.enable_unified_memory
    behind = [best] if best and best.slots != shown.slots and not unified else []
    still = _still(Fall(shown.clamp, shown.admitted, shown.kv_tokens, shown.crossing, shown.window_cap))
    curve = still.curve
    one = unified_over_context(sizing.scenario, shown, curve.L)
    low, high = _range(curve, behind)
    figure["yaxis"] = axis(requests_axis(sizing), type="log", **_request_ticks(low, high))
    figure["hovermode"] = "x"
    # What follows from the split alone is drawn as traces. What moves with L is drawn as shapes and annotations,
    # which Plotly updates without drawing the traces again.
    data = [*between, *still.lines, *_unified(curve, one), *_balance_mark(shown), still.hover]
    figure["shapes"] = [*_pairs_behind(behind), _own_line(sizing)]
    figure["annotations"].append(_own_dot(sizing, shown, low))
    ground = _ground(sizing, figure, still, behind, shown, one)
    words = [*_must(sizing, shown, curve, behind, low, high), *_unified_label(sizing, shown, curve, one)]
    for wanted in words:
        spot, covers = ground.place_anyway(wanted.words, wanted.spots)
        figure["annotations"].append(placed(wanted, spot, grounded=covers))
    regions = [(wanted, ground.place(wanted.words, wanted.spots)) for wanted in _regions(shown, low, high)]
    data.append(
        labels([Label(each.words, 10**spot.x, 10**spot.y, spot.side, "@muted") for each, spot in regions if spot])
    )
    for wanted in _caps_behind(behind, shown, low):
        if free := ground.place(wanted.words, wanted.spots):
            figure["annotations"].append(placed(wanted, free, grounded=False))
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
    return {
        "tickvals": ticks,
        "ticktext": names,
        "range": [*ACROSS],
        "showspikes": True,
        "spikemode": "across",
        "spikethickness": 1,
        "spikedash": "dot",
        "spikecolor": "@muted",
    }


def _range(curve: ContextCurve, behind: list[Split]) -> tuple[float, float]:
    """Lowest and highest place on the axis; below 1 is room for the label of the user's L."""
    top = max([int(curve.kv_cap.max()), curve.clamp, *(split.clamp for split in behind)])
    return _lowest(curve), top * 1.6


def _lowest(curve: ContextCurve) -> float:
    return 0.7 if curve.clamp >= FEW else 0.15


def _request_ticks(low: float, high: float) -> dict[str, Any]:
    ticks = log_ticks(low, high)
    return {
        "tickvals": ticks,
        "ticktext": [count(tick) for tick in ticks],
        "range": [math.log10(low), math.log10(high)],
    }


def _visible(values: Any) -> list[float | None]:
    """0 requests have no place on a logarithmic axis: the line ends there."""
    return [float(value) if value > 0 else None for value in values]


def _pairs_behind(behind: list[Split]) -> list[Figure]:
    """What the recommended split admits and its cap, lightly; on two logarithmic axes tokens / L is a straight line."""
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


class _Still(NamedTuple):
    """What follows from the split alone, and stands still while L moves."""

    curve: ContextCurve
    lines: list[Figure]
    hover: Figure
    seen: Seen


@lru_cache(maxsize=KEPT)
def _still(fall: Fall) -> _Still:
    curve = over_context(fall, context_grid(fall))
    lines = [*_idle(curve), *_pair(curve), *_envelope(curve)]
    return _Still(curve, lines, _hover(curve, _lowest(curve)), _seen(curve.L, curve.kv_cap, curve.runs))


def _seen(L: Integers, *requests: Integers) -> Seen:
    """Lines over L as they are drawn."""
    return seen(WIDTHS, ACROSS, [(np.log10(L), np.log10(np.maximum(each, BELOW_ALL))) for each in requests])


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


def _unified(curve: ContextCurve, one: Integers | None) -> list[Figure]:
    """What runs in one buffer for both pools, where that is set."""
    if one is None:
        return []
    return [line(curve.L.tolist(), _visible(one), "@many", width=3, dash="dashdot", name=UNIFIED)]


def _unified_label(sizing: Sizing, shown: Split, curve: ContextCurve, one: Integers | None) -> list[Wanted]:
    """Along its fall, outside the static lines first."""
    here = unified_over_context(sizing.scenario, shown, np.array([sizing.scenario.L]))
    if one is None or here is None:
        return []
    runs = int(here[0])
    spots = []
    for share in (0.72, 0.66, 0.78, 0.6, 0.84, 0.54, 0.9, 0.48, 0.4, 0.3, 0.2, 0.1):
        index = int(np.searchsorted(curve.L, L_LOW * (L_HIGH / L_LOW) ** share))
        if one[index] > 0:
            place = math.log10(curve.L[index]), math.log10(one[index])
            spots += [Spot(*place, "top right", (6, 4)), Spot(*place, "bottom left", (-6, -4))]
    words = f"{UNIFIED}: {count(runs)} {'runs' if runs == 1 else 'run'} at this L"
    return [Wanted(words, spots, "@many", own=True)] if spots else []


def _balance_mark(shown: Split) -> list[Figure]:
    return [points([shown.crossing], [shown.clamp], ["diamond"])] if L_LOW <= shown.crossing <= L_HIGH else []


def _own_line(sizing: Sizing) -> Figure:
    """The user's L, over the whole height."""
    L = sizing.scenario.L
    return _dotted(L, 0, L, 1, "@ink") | {"yref": "paper", "opacity": 1, "name": OWN}


def _own_dot(sizing: Sizing, shown: Split, low: float) -> Figure:
    """What runs at the user's L."""
    x, y = math.log10(sizing.scenario.L), math.log10(max(shown.runs, low))
    return own_dot(x, y)


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


def _ground(
    sizing: Sizing, figure: Figure, still: _Still, behind: list[Split], shown: Split, one: Integers | None
) -> Ground:
    """All lines and points, at each size that the figure is shown in."""
    y, high, curve = figure["yaxis"]["range"], figure["margin"]["t"] + figure["margin"]["b"], still.curve
    sizes = [(width, height - high) for width, height in SHOWN_AT]
    levels = [curve.clamp, curve.admitted, *(split.admitted for split in behind)]
    drawn = [still.seen, _straight(levels, [split.kv_tokens for split in behind])]
    drawn += [] if one is None else [_seen(curve.L, one)]
    ground = Ground(sizes, ACROSS, y, drawn)
    ground.upright(math.log10(sizing.scenario.L))
    ground.point(math.log10(sizing.scenario.L), math.log10(max(shown.runs, 10 ** y[0])), DOT)
    if L_LOW <= shown.crossing <= L_HIGH:
        ground.point(math.log10(shown.crossing), math.log10(shown.clamp), DOT)
    return ground


def _straight(levels: list[int], falling: list[int]) -> Seen:
    """Level lines of so many requests, and lines of so many tokens / L, from end to end."""
    found = [(0, level) for level in levels if level > 0] + [(1, tokens) for tokens in falling if tokens > 0]
    slopes, up = [slope for slope, _ in found], np.log10([high for _, high in found])[:, np.newaxis]
    return Seen(*(each[slopes] + up for each in _slopes()))


@cache
def _slopes() -> Seen:
    """A level line of one request, and 1 / L."""
    ends = np.log10([L_LOW, L_HIGH])
    return seen(WIDTHS, ACROSS, [(ends, 0 * ends), (ends, -ends)])


def _must(
    sizing: Sizing, shown: Split, curve: ContextCurve, behind: list[Split], low: float, high: float
) -> list[Wanted]:
    """What is always said: what is set, the balance point, and each line on itself."""
    refused = [_refused(low, high)] if isinstance(sizing.now, Refusal) else []
    return [
        *refused,
        _own_label(sizing, shown, low, high),
        _balance_label(shown, low, high),
        _clamp_label(shown, curve),
        *(_label_behind(split, shown) for split in behind),
        *_cap_label(curve),
    ]


def _along(y: float, sides: tuple[str, ...], *, first: float = L_HIGH, rows: int = 2) -> Iterator[Spot]:
    """At the height of a level line, off it by a few pixels or some `rows` of words more, from one end inward."""
    ends = (math.log10(L_HIGH), math.log10(L_LOW))
    start, stop = ends if first == L_HIGH else ends[::-1]
    shares, height = (0.0, 0.12, 0.24, 0.36, 0.5, 0.62, 0.74, 0.86, 0.97), math.log10(max(y, BELOW_ALL))
    for off in (LINE_OFF + ROW * row for row in range(rows)):
        for share in shares:
            for side in sides:
                yield Spot(start + (stop - start) * share, height, side, (0, off if "top" in side else -off))


def _clamp_label(shown: Split, curve: ContextCurve) -> Wanted:
    cut = f" (the engine admits {count(curve.admitted)})" if curve.admitted < curve.clamp else ""
    spots = chain(_along(shown.clamp, ("bottom left", "top left")), _along(shown.clamp, ("top right",), first=L_LOW))
    return Wanted(f"mamba clamp {count(shown.clamp)}{cut}", spots, "@state")


def _label_behind(split: Split, shown: Split) -> Wanted:
    """At its clamp: on its outer side first, away from the one that is set, on whose other side it would be its."""
    outer, inner = ("top", "bottom") if split.admitted >= shown.clamp else ("bottom", "top")
    spots = chain(
        _along(split.admitted, (f"{outer} left",), rows=4),
        _along(split.admitted, (f"{outer} right",), first=L_LOW),
        _along(split.admitted, (f"{inner} left",)),
    )
    ratio = f" r = {ratio_text(split.ratio)}" if split.ratio else ""
    return Wanted(f"recommended{ratio}: {count(split.runs)} run at this L", spots, "@muted", own=True)


def _caps_behind(behind: list[Split], shown: Split, low: float) -> list[Wanted]:
    """On the recommended split's cap, where there is room: on its outer side, away from the one that is set."""
    found = []
    for split in behind:
        side, off = ("bottom left", (-7, -5)) if split.kv_tokens < shown.kv_tokens else ("top right", (7, 5))
        tokens = math.log10(max(split.kv_tokens, BELOW_ALL))
        places = map(math.log10, L_ALONG)
        spots = [Spot(x, tokens - x, side, off) for x in places if tokens - x > math.log10(low)]
        found.append(Wanted("recommended: KV cap", spots, "@kv", own=True))
    return found


def _cap_label(curve: ContextCurve) -> list[Wanted]:
    """Along the fall of the cap, above or below it."""
    index = np.searchsorted(curve.L, L_ALONG)
    places = [(L, cap) for L, cap in zip(curve.L[index].tolist(), curve.kv_cap[index].tolist(), strict=True) if cap > 0]
    spots = (
        Spot(math.log10(L), math.log10(cap), side, off)
        for L, cap in places
        for side, off in (("top right", (5, 3)), ("bottom left", (-5, -3)))
    )
    return [Wanted("KV cap", spots, "@kv")] if places else []


def _regions(shown: Split, low: float, high: float) -> list[Wanted]:
    """Which pool idles on which side of the balance point, where there is room to say so."""
    found = []
    crossing = min(max(shown.crossing, L_LOW), L_HIGH)  # 0 where the KV pool holds fewer tokens than requests
    binds = "state binds" if shown.admitted == shown.clamp else CAPS.get(shown.binding.name, "requests are capped")
    for words, ends in (
        (f"KV pool idles:<br>{binds}", (L_LOW, crossing)),
        ("state pool idles:<br>KV binds", (L_HIGH, crossing)),
    ):
        found.append(Wanted(words, _between(shown, ends, low)))
    return found


def _between(shown: Split, ends: tuple[float, float], low: float) -> Iterator[Spot]:
    """Between the clamp and the cap, from one L [tokens] to another."""
    clamp = math.log10(shown.clamp)
    for share in (0.4, 0.3, 0.5, 0.2, 0.6):
        L = ends[0] * (ends[1] / ends[0]) ** share
        cap = math.log10(max(shown.kv_tokens / L, low))
        for part in (0.5, 0.4, 0.6, 0.3, 0.7):
            yield Spot(math.log10(L), clamp + (cap - clamp) * part, "middle center")


def _corners(low: float, high: float) -> list[Spot]:
    """Inside the axes, the upper right first."""
    left, right = math.log10(L_LOW), math.log10(L_HIGH)
    edges = [("bottom", math.log10(high), -4.0), ("top", math.log10(low), 4.0)]
    return [
        Spot(left + (right - left) * share, y, f"{up} {side}", (0, off))
        for up, y, off in edges
        for share, side in ((1, "left"), (0.5, "center"), (0, "right"))
    ]


def _balance_label(shown: Split, low: float, high: float) -> Wanted:
    """Near its point, where nothing runs through it: under the envelope, or above the lines."""
    if not L_LOW <= shown.crossing <= L_HIGH:
        side = "below" if shown.crossing < L_LOW else "above"
        return Wanted(f"balance point at L = {count(shown.crossing)}, {side} this range", _corners(low, high))
    words = f"<b>balance point</b><br>L = {count(shown.crossing)}, {_meeting(shown)}"
    x, y = math.log10(shown.crossing), math.log10(shown.clamp)
    left, right = [("bottom left", -1), ("top left", -1)], [("top right", 1), ("bottom right", 1)]
    spots = (
        Spot(x, y, side, (14 * across, off if "top" in side else -off))
        for off in (12, 24, 40, 60, 85, 115)
        for side, across in (left[0], right[0], right[1], left[1])
    )
    return Wanted(words, spots, grounded=True)


def _meeting(shown: Split) -> str:
    """How many requests both pools carry at the balance point; fewer run where something else binds."""
    both = requests_text(shown.clamp)
    return both if shown.admitted == shown.clamp else f"clamp = cap = {count(shown.clamp)}"


def _own_label(sizing: Sizing, shown: Split, low: float, high: float) -> Wanted:
    """The user's L and what runs there, beside its line: in the empty corner below the lines if it can."""
    L = sizing.scenario.L
    runs = f"<b>{count(shown.runs)} run</b>" if shown is sizing.now else "<b>refused as set</b>"
    beyond = "" if L_LOW <= L <= L_HIGH else ", outside this range"
    x = math.log10(min(max(L, L_LOW), L_HIGH))
    foot, head = math.log10(low), math.log10(high)
    heights = [(foot, "top", 4.0), (head, "bottom", -4.0)]
    heights += [(foot + (head - foot) * share, "middle", 0.0) for share in (0.2, 0.35, 0.5, 0.65, 0.8)]
    spots = (
        Spot(x, y, f"{up} {side}", (6 if side == "right" else -6, off))
        for y, up, off in heights
        for side in ("right", "left")
    )
    return Wanted(f"L = {count(L)}{beyond}<br>{runs}", spots, grounded=True, own=True)


def _nothing() -> Figure:
    return text("No split of this rest runs a request.", x=0.5, y=0.5, xref="paper", yref="paper", size=17)


def _refused(low: float, high: float) -> Wanted:
    words = "The split that is set would be refused; shown is the recommended one."
    return Wanted(words, _corners(low, high), grounded=True)
