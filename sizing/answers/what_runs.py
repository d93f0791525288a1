"""The rules that every answer asks again, over numbers or numpy arrays: how many slots carry so many requests, how much
KV they leave, and the last value for which something holds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from sizing.basics.numeric import Numeric
from sizing.engine.pools import Pools, carries
from sizing.engine.resolved import Rank

PROBES = 64  # values tried in one vectorised call; a search over 2**34 of them takes six calls


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
