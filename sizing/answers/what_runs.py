"""The rules that every answer asks again, over numbers or numpy arrays: which K is taken, whether it starts, what runs,
which pool is short, how many slots carry so many requests, and the last value for which something holds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sizing.engine.pools import (
    Numeric,
    Pools,
    Rank,
    beside_pin,
    is_pinned,
    kv_cap,
    pin_divisor,
    pin_is_ignored,
    ratio_is_ignored,
    slots_from_ratio,
    slots_without_radix,
)
from sizing.scenario.inputs import MAX_RATIO, Scenario

PROBES = 64  # values tried in one vectorised call; a search over 2**34 of them takes six calls


def slots_taken(scenario: Scenario, rank: Rank, ratio: Numeric, pin: Numeric | None = None) -> Any:
    """K [slots per rank] that the settings give, in the engine's order: the pin, the request count where the radix
    cache is off, the ratio [-]. Never below 0. `pin` [slots of the deployment] stands in for the scenario's own."""
    if is_pinned(scenario):
        return (pin if pin is not None else scenario.max_mamba_cache_size or 0) // pin_divisor(scenario)
    if ratio_is_ignored(scenario):
        return slots_without_radix(scenario)
    return np.maximum(slots_from_ratio(rank, ratio), 0)


def pin_rank(scenario: Scenario, rank: Rank) -> Rank:
    """One rank with its slots pinned, or by ratio where the release ignores a pin; `rank` is that by ratio."""
    return rank if pin_is_ignored(scenario) else beside_pin(rank)


def starts(pools: Pools) -> Any:
    """Whether the engine starts: it admits a request, which takes slots for it and a row of KV."""
    return pools.admitted > 0


def held_by_kv(pools: Pools, L: Numeric) -> Any:
    """How many requests of L tokens KV holds [requests per rank]: its full rows, and its window rows if there are."""
    return np.minimum(kv_cap(pools.kv_tokens, L), pools.window_cap)


def running(pools: Pools, L: Numeric) -> Any:
    """What really runs at L [requests per rank], 0 where the engine refuses: min(admitted, KV cap)."""
    return np.minimum(pools.admitted, held_by_kv(pools, L))


def carries(pools: Pools, requests: Numeric, tokens: Numeric) -> Any:
    """Whether pools run so many requests that need so many full KV tokens together."""
    enough = (pools.kv_tokens >= tokens) & (pools.window_cap >= requests)
    return starts(pools) & (pools.admitted >= requests) & enough


def kv_tokens_for(pools: Pools, requests: Numeric) -> Any:
    """The KV [tokens] of pools that admit so many requests; below 0 where they do not, or the engine refuses."""
    return np.where(carries(pools, requests, 0), pools.kv_tokens, -1)


def spare_slots(rank: Rank) -> int:
    """Slots [slots per rank] to keep free beyond requests x S: 1 where the radix cache is on, 0 where it is off.

    At a chunk border a request takes a new slot before it gives one up; where all K = requests x S are locked, the
    assertion "Can not alloc mamba cache" ends the server (sgl-project/sglang#37066, #37074). With the radix cache off
    (S = 1) nothing is tracked.
    """
    return int(rank.S > 1)


def slots_for(rank: Rank, requests: Numeric, *, spare: bool = True) -> Any:
    """K [slots per rank] for so many requests: requests x S, and the slot to spare."""
    return requests * rank.S + (spare_slots(rank) if spare else 0)


def most_slots(scenario: Scenario, rank: Rank) -> Any:
    """The most slots [slots per rank] that a flag can give: no bound, but what the largest ratio gives where the
    release overwrites a pin with the ratio."""
    return slots_from_ratio(rank, MAX_RATIO) if pin_is_ignored(scenario) else np.inf


def last_that(low: int, high: int, holds: Callable[[Any], Any], probes: int = PROBES) -> int:
    """The last whole number from low to high for which `holds` (array in, array out), given that it holds up to some
    point only; low - 1 where it never does.

    >>> last_that(1, 10_000, lambda tried: tried**2 < 1_000_000)
    999
    """
    good, bad = low - 1, high + 1
    while bad - good > 1:
        step = max((bad - good) // (probes + 1), 1)
        tried = np.arange(good + step, bad, step)[:probes]
        hold = int(np.count_nonzero(holds(tried)))
        good, bad = (int(tried[hold - 1]) if hold else good), (int(tried[hold]) if hold < tried.size else bad)
    return good


def last_that_holds(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The same where `holds` takes one number: halving.

    >>> last_that_holds(0, 100, lambda value: value * value <= 50)
    7
    """
    return last_that(low, high, lambda tried: [holds(value) for value in tried.tolist()], probes=1)
