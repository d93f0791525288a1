"""One input moved, everything else as it is set: at each stop the integers that `solve` gives, as arrays.

A page sends these with a figure: whoever drags in it sees solved numbers at once.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

from sizing.answers.curves import stepped_lengths
from sizing.answers.sweep import RATIO, ratios_over
from sizing.basics.units import flag_ratio
from sizing.engine.limits import LimitName, requests_by_limit
from sizing.engine.pools import pools_from_slots, starts
from sizing.engine.rank import as_set
from sizing.engine.resolved import Rank
from sizing.engine.slots import slots_set, slots_unpinned
from sizing.scenario.inputs import MAX_L

OCTAVE = 16  # stops in each doubling of L: twice those of the slider, which are among them


class InputCurve(NamedTuple):
    """One input at its stops. Arrays of one shape; requests and tokens are per rank, as those of `Split` are."""

    name: Literal["L", "mamba_full_memory_ratio"]
    at: tuple[int | float, ...]
    """L [tokens] or the ratio [-], rising."""
    clamp: Any
    kv_cap: Any
    kv_tokens: Any
    runs: Any
    binding: tuple[LimitName, ...]
    """The limit that decides what runs."""
    refused: Any
    """Where the engine refuses to start; the numbers there mean nothing."""


def over_input(rank: Rank, name: Literal["L", "mamba_full_memory_ratio"], at: Sequence[float]) -> InputCurve:
    """Solve a scenario at every stop; moving the ratio sets the split by it. `rank` is its rank by ratio."""
    scenario, values, by_ratio = rank.scenario, np.array(at), name == RATIO
    rank, L = (rank, scenario.L) if by_ratio else (as_set(rank), values)
    slots = slots_unpinned(rank, values) if by_ratio else slots_set(rank, ratios_over(scenario, rank, L, {}))
    pools = pools_from_slots(rank, np.maximum(slots, 0))
    by_limit = requests_by_limit(rank, pools, L)
    each = np.zeros(values.shape, np.int64)  # added to what is one number for all stops
    requests = np.stack([limit + each for limit in by_limit.values()])
    names = tuple(by_limit)
    return InputCurve(
        name=name,
        at=tuple(values.tolist()),
        clamp=pools.clamp + each,
        kv_cap=by_limit["KV pool"] + each,
        kv_tokens=pools.kv_tokens + each,
        runs=requests.min(axis=0),
        binding=tuple(map(names.__getitem__, requests.argmin(axis=0).tolist())),
        refused=~np.broadcast_to(starts(pools), values.shape),
    )


def context_stops(*more: int) -> list[int]:
    """L [tokens] from 256 to 1M in even steps within each doubling, and those of `more` that an input takes."""
    return sorted({*stepped_lengths(OCTAVE), *(stop for stop in more if 1 <= stop <= MAX_L)})


def ratio_stops(ratios: Sequence[float]) -> list[float]:
    """Those of these ratios [-] that can be set: a flag takes five digits."""
    return sorted(set(filter(_can_be_set, ratios)))


@lru_cache(maxsize=1024)  # an axis stands still while something moves on it
def _can_be_set(ratio: float) -> bool:
    return ratio > 0 and flag_ratio(ratio) == ratio
