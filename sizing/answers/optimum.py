"""The exact optimum: over all splits, the most requests that really run at L, and every ratio that gives it.

The clamp never falls and the KV cap never rises with K, so C requests fit if and only if they fit
with the fewest slots that admit them, C x S.

All at one length, C requests fit into KV of C x L tokens; for real traffic sizing/traffic/held.py says when they do.
"""

import math
from bisect import bisect_left
from collections.abc import Callable

import numpy as np
from pydantic import BaseModel, ConfigDict

from sizing.basics.units import GIB
from sizing.engine.pools import (
    ESTIMATE_HIGH,
    Numeric,
    Pools,
    Rank,
    asked_divisor,
    asking,
    kv_cap,
    pin_from_slots,
    pools_from_slots,
    ratio_is_ignored,
    slots_from_ratio,
)
from sizing.scenario.inputs import MAX_REQUESTS, Scenario

SEARCHED_RATIOS = (1e-12, 1e12)  # [-] wider than any ratio that leaves both pools one page


class Optimum(BaseModel):
    """The best that any split of this `rest` gives at L."""

    model_config = ConfigDict(frozen=True)

    runs: int
    slots_low: int
    slots_high: int
    """Every K [slots per rank] from low to high runs this many."""
    ratio_low: float | None
    ratio_high: float | None
    """Every ratio [-] in between gives such a K; both None where the engine ignores the ratio, the high one None
    where no ratio is too large."""
    spare: int
    """Slots of the pin beyond requests x S: 1 for the chunk boundary, 0 where none fits or nothing is tracked."""
    pin_requests: int
    pin: int
    """The safe pin [slots per rank]: pin_requests x S + spare. It runs exactly pin_requests."""


Fits = Callable[[int, int], bool]  # whether so many requests fit into KV of so many tokens


def best_split(scenario: Scenario, rank: Rank, fits: Fits | None = None) -> Optimum | None:
    """The optimum for one rank, at L unless `fits` says otherwise; None when no split runs even one request.

    The spare slot of the safe pin: sgl-project/sglang#37066 and #37074, a pin of exactly C x S can fail an
    assertion at a chunk boundary. With the radix cache off (S = 1) nothing is tracked and no slot is spared.
    """
    fits = fits or (lambda requests, tokens: tokens >= requests * scenario.L)
    runs = _most_requests(rank, fits, spare=0)
    if runs == 0:
        return None
    S = int(rank.S)
    low = runs * S
    most = int(rank.rest_gib * GIB / rank.slot_bytes) + 1
    high = last_that_holds(low, most, lambda slots: fits(runs, int(kv_tokens_for(pools_from_slots(rank, slots), runs))))
    ratios = ratio_range(scenario, rank, low, high)
    spared = _most_requests(rank, fits, spare=1) if S > 1 else 0
    spare, requests = (1, spared) if spared else (0, runs)
    return Optimum(
        runs=runs,
        slots_low=low,
        slots_high=high,
        ratio_low=ratios[0],
        ratio_high=ratios[1],
        spare=spare,
        pin_requests=requests,
        pin=requests * S + spare,
    )


class Pair(BaseModel):
    """The most that runs at L when the request count may be asked anew too: both settings together."""

    model_config = ConfigDict(frozen=True)

    runs: int
    asked: int
    """--max-running-requests [requests of the deployment]."""
    pin: int
    """--max-mamba-cache-size [slots of the deployment]."""


def best_pair(scenario: Scenario, rank: Rank) -> Pair | None:
    """The optimum over all splits and all request counts; None where the count is the engine's own, or nothing runs.

    Asking for C charges the drafts or rings of C, so C run if and only if they run with C asked and C x S slots.
    """
    if rank.requests_asked is None:
        return None
    wanted = np.arange(1, min(most_by_state(rank), MAX_REQUESTS // asked_divisor(scenario)) + 1)
    pools = pools_from_slots(asking(scenario, rank, wanted), wanted * rank.S)
    runs = int(np.max(np.where(running(pools, scenario.L) >= wanted, wanted, 0), initial=0))
    if runs == 0:
        return None
    pin = pin_from_slots(scenario, runs * int(rank.S))
    return Pair(runs=runs, asked=runs * asked_divisor(scenario), pin=pin)


def ratio_range(scenario: Scenario, rank: Rank, low: int, high: int) -> tuple[float | None, float | None]:
    """Every ratio [-] that gives K from `low` to `high` [slots per rank]; as `Optimum` says it."""
    if ratio_is_ignored(scenario):
        return None, None
    endless = slots_from_ratio(rank, SEARCHED_RATIOS[1]) <= high
    return _ratios_around(rank, low)[1], None if endless else _ratios_around(rank, high + 1)[0]


def kv_tokens_for(pools: Pools, requests: Numeric) -> Numeric:
    """The KV [tokens] of pools that admit so many requests; below 0 where they do not, or the engine refuses."""
    carried = (pools.admitted >= requests) & (pools.window_cap >= requests)
    valid = (pools.slots > 0) & (pools.kv_rest_bytes > 0) & carried
    return np.where(valid, pools.kv_tokens, -1)


def running(pools: Pools, L: Numeric) -> Numeric:
    """What really runs at L [requests per rank], 0 where the engine refuses: min(admitted, KV cap, windows)."""
    valid = (pools.slots > 0) & (pools.kv_rest_bytes > 0)
    cap = np.minimum(kv_cap(pools.kv_tokens, L), pools.window_cap)
    return np.where(valid, np.minimum(pools.admitted, cap), 0)


def most_by_state(rank: Rank) -> int:
    """The most requests [requests per rank] whose slots `rest` could hold, were there no KV: no search goes beyond."""
    return int(max(rank.rest_gib, 0) * GIB / rank.slot_bytes) // int(rank.S)


def _most_requests(rank: Rank, fits: Fits, spare: int) -> int:
    """The largest C that runs with C x S + spare slots; the engine never wants more than asked, or its top estimate."""
    S = int(rank.S)
    top = int(rank.requests_asked) if rank.requests_asked is not None else ESTIMATE_HIGH
    wanted = np.arange(1, min(top, most_by_state(rank)) + 1)
    tokens = kv_tokens_for(pools_from_slots(rank, wanted * S + spare), wanted).tolist()
    return last_that_holds(0, len(tokens), lambda C: C == 0 or fits(C, tokens[C - 1]))


def last_that_holds(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The last whole number from low to high for which `holds`, given that it holds up to some point only."""
    return low + bisect_left(range(low, high + 1), True, key=lambda value: not holds(value)) - 1


def _ratios_around(rank: Rank, slots: int) -> tuple[float, float]:
    """The last ratio [-] whose K is below `slots` and the first that reaches it, by bisection on the logarithm."""
    low, high = (math.log(edge) for edge in SEARCHED_RATIOS)
    while (middle := (low + high) / 2) not in (low, high):
        if slots_from_ratio(rank, math.exp(middle)) >= slots:
            high = middle
        else:
            low = middle
    return math.exp(low), math.exp(high)
