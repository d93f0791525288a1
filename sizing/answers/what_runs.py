"""The rules that every answer asks again, over numbers or numpy arrays: how many slots carry so many requests, and how
much KV they leave.
"""

from typing import Any

import numpy as np

from sizing.basics.numeric import Numeric
from sizing.engine.pools import Pools, carries
from sizing.engine.resolved import Rank


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
