"""The same rules over arrays: requests against L at a given split, and against r at a given L."""

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sizing.basics.frames import REQUESTS, frame_of
from sizing.basics.units import flag_ratio
from sizing.engine.kv import kv_cap
from sizing.engine.pools import held_by_kv, pools_from_slots, running
from sizing.engine.rank import rank_of
from sizing.engine.resolved import Rank
from sizing.engine.slots import slots_unpinned
from sizing.engine.split import Split
from sizing.scenario.inputs import Scenario

if TYPE_CHECKING:
    from pandas import DataFrame

Integers = NDArray[np.int64]
Reals = NDArray[np.float64]

L_LOW, L_HIGH = 256, 2**20  # [tokens] the range of the slider and of the figure
DOUBLINGS = (L_HIGH // L_LOW).bit_length() - 1  # from one end to the other
VISIBLE_STEPS = 24  # requests; above, one request is thinner than a line on the figure


class Fall(NamedTuple):
    """What a split brings to a curve over context lengths: neither pool depends on L."""

    clamp: int
    admitted: int
    kv_tokens: int
    crossing: int
    window_cap: int | None


class ContextCurve(BaseModel):
    """One split over context lengths. Arrays of one shape; requests per rank."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    L: Any
    clamp: int
    admitted: int
    kv_cap: Any
    runs: Any

    def frame(self) -> "DataFrame":
        """One row a context length."""
        counts = {f"{name} [{REQUESTS}]": getattr(self, name) for name in ("clamp", "admitted", "kv_cap", "runs")}
        return frame_of({"L [tokens]": self.L, **counts})


class RatioCurve(BaseModel):
    """One deployment over ratios at its L. Arrays of one shape; requests per rank."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    ratio: Any
    clamp: Any
    kv_cap: Any
    runs: Any

    def frame(self) -> "DataFrame":
        """One row a ratio."""
        counts = {f"{name} [{REQUESTS}]": getattr(self, name) for name in ("clamp", "kv_cap", "runs")}
        return frame_of({"ratio [-]": self.ratio, **counts})


def context_grid(split: Split | Fall, points: int = 121) -> Integers:
    """Context lengths [tokens] from 256 to 1M, evenly spaced on a logarithmic axis, and every L that matters.

    Those are the balance point and, where the cap is small enough for its steps to show, both sides of each step:
    a line through these points is the cap itself, not a smoothed one.
    """
    steps = [split.kv_tokens // requests for requests in range(1, VISIBLE_STEPS + 1)]
    edges = np.array([*steps, split.crossing], dtype=np.int64)
    grid = np.concatenate([_even_lengths(points), edges, edges + 1])
    return np.unique(grid[(grid >= L_LOW) & (grid <= L_HIGH)])


@cache
def _even_lengths(points: int) -> Integers:
    return np.rint(np.geomspace(L_LOW, L_HIGH, points)).astype(np.int64)


@cache
def stepped_lengths(steps: int) -> tuple[int, ...]:
    """Context lengths [tokens] from 256 to 1M, `steps` to each doubling, evenly spaced within it."""
    starts = [L_LOW * 2**octave for octave in range(DOUBLINGS)]
    return (*(start * (steps + step) // steps for start in starts for step in range(steps)), L_HIGH)


def stepped_end(end: float, rounded: Callable[[float], int]) -> float:
    """The end of an axis of ratios [-] in thirds of a decade, so that it stands still while L moves a little."""
    return float(10 ** (rounded(math.log10(end) * 3) / 3))


def ratio_grid(low: float, high: float, *marks: float, points: int = 121) -> Reals:
    """Ratios [-] evenly spaced on a logarithmic axis from low to high, and every mark in between.

    Each is a number that can be typed (five digits), and solved as it stands.
    """
    inside = [mark for mark in marks if low <= mark <= high]
    return np.unique([*_even_ratios(low, high, points), *inside])


@lru_cache(maxsize=128)
def _even_ratios(low: float, high: float, points: int) -> tuple[float, ...]:
    """Kept, because an axis stands still while something moves on it."""
    return tuple(flag_ratio(ratio) for ratio in np.geomspace(low, high, points))


def over_context(split: Split | Fall, L: Integers) -> ContextCurve:
    """A solved split at many L [tokens]: neither pool depends on L, so only the cap has to be taken again."""
    cap = kv_cap(split.kv_tokens, L)
    if split.window_cap is not None:
        cap = np.minimum(cap, split.window_cap)
    return ContextCurve(
        L=L, clamp=split.clamp, admitted=split.admitted, kv_cap=cap, runs=np.minimum(split.admitted, cap)
    )


def over_ratio(scenario: Scenario, ratio: Reals) -> RatioCurve:
    """The engine's solve at many ratios [-] at once, at the scenario's L. Raises RefusedError like `solve`.

    Where the engine refuses to start, `runs` is 0.
    """
    return rank_over_ratio(rank_of(scenario), ratio)


def rank_over_ratio(rank: Rank, ratio: Reals) -> RatioCurve:
    """The same for a rank by ratio."""
    L, slots = rank.scenario.L, np.maximum(slots_unpinned(rank, ratio), 0)
    pools = pools_from_slots(rank, np.broadcast_to(slots, ratio.shape))
    return RatioCurve(ratio=ratio, clamp=pools.clamp, kv_cap=held_by_kv(pools, L), runs=running(pools, L))
