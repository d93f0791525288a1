"""The nearest `rest` at which the other pool is short first, exact to a thousandth of a GiB.

K never falls as rest grows. As long as K stays the same, more rest means more KV: the KV pool is short first up to some
point, and the state pool from there on. So the two ends of a stretch of rest bound what happens inside it. A stretch in
which nothing can flip is left out; any other is cut where K changes, the nearest first.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sizing.engine.draft_rules import rest_gib_for
from sizing.engine.pools import Pools, held_by_kv, pools_from_slots, starts
from sizing.engine.resolved import Rank
from sizing.engine.slots import slots_taken
from sizing.specification import PoolName, state_is_short

REST_DIGITS = 3  # [GiB] a flip of rest is given to a thousandth
STEPS = 10**REST_DIGITS
PARTS = 16  # a stretch that may hold a flip is cut in so many
PROBES = 4  # numbers of a stretch tried in one vectorised call
KEPT = 32  # stretches around a rest, 10 KB each
CHUNK = 4096  # stretches tried in one vectorised call, the nearest first

Whole = NDArray[np.int64]
Stretches = tuple[Whole, Whole]  # first and last thousandth [GiB / 1000] of each, both inside


def is_other(pools: Pools, L: int, here: PoolName) -> Any:
    """Whether the engine starts and the pool that is short first at L [tokens] is not `here`."""
    by_state = state_is_short(pools.clamp, held_by_kv(pools, L))
    return starts(pools) & (by_state != (here == "state pool"))


def nearest_rest(rank: Rank, ratio: float, here: PoolName, reach: int) -> float | None:
    """The nearest rest [GiB] up to `reach` at which the engine starts and the other pool than `here` is short first;
    None where there is none. The ratio [-], or the pin, is held; `rank` is that of the split that is set.
    """
    at = rank.scenario.rest_gib * STEPS
    deployment = _Deployment(rank, ratio, here)
    best: int | None = None
    waiting = [_around(at, reach * STEPS)]
    while waiting:
        lows, highs = waiting.pop()
        if best is not None:
            nearer = _distance(at, lows, highs) < abs(best - at)
            lows, highs = lows[nearer], highs[nearer]
        fewest, most = deployment.slots(np.stack([lows, highs]))
        may = deployment.possible(lows, highs, fewest, most)
        alike = may & (fewest == most)
        found = deployment.nearest_inside(lows[alike], highs[alike], fewest[alike], at)
        best = min([*found.tolist(), *([] if best is None else [best])], key=lambda step: abs(step - at), default=None)
        cut = may & (fewest < most)
        if cut.any():
            waiting += _chunks(at, *_cut(lows[cut], highs[cut], fewest[cut], most[cut], deployment))
    return None if best is None else best / STEPS


class _Deployment:
    """The rules over arrays of rest [GiB / 1000], for one rank whose ratio or pin stays."""

    def __init__(self, rank: Rank, ratio: float, here: PoolName) -> None:
        self.rank, self.ratio, self.here, self.L = rank, ratio, here, rank.scenario.L

    def slots(self, steps: Whole) -> Any:
        """K [slots per rank]."""
        return (slots_taken(self.rank._replace(rest_gib=steps / STEPS), self.ratio) + 0 * steps).astype(np.int64)

    def near(self, slots: Whole) -> Any:
        """Where the ratio begins to give K = `slots` [slots per rank], but for roundings."""
        return np.ceil(rest_gib_for(self.rank, slots, self.ratio / (1 + self.ratio)) * STEPS)

    def pools(self, steps: Whole, slots: Whole) -> Pools:
        """Both pools with K given."""
        return pools_from_slots(self.rank._replace(rest_gib=steps / STEPS), slots)

    def possible(self, lows: Whole, highs: Whole, fewest: Whole, most: Whole) -> Any:
        """Whether anything inside each stretch might flip; exact where it has one K."""
        L, rank, clamp = self.L, self.rank, self.rank.request_slots.requests
        # Rows beyond what was sized come with the requests, up to 0.5.6: they are not bound by the ends.
        beyond = (clamp(most) - clamp(fewest)) * rank.headroom * rank.dcp_size
        richest = self.pools(highs, fewest)
        if self.here == "state pool":
            poorest = self.pools(lows, most)
            least = poorest._replace(kv_tokens=poorest.kv_tokens - beyond)
            other = ~state_is_short(poorest.clamp, held_by_kv(least, L))
        else:
            richest = richest._replace(kv_tokens=richest.kv_tokens + beyond, kv_rows=richest.kv_rows + beyond)
            other = state_is_short(richest.clamp, held_by_kv(richest, L))
        return other & (clamp(most) >= 1) & (richest.kv_rows > 0)

    def nearest_inside(self, lows: Whole, highs: Whole, slots: Whole, at: float) -> Whole:
        """The nearest thousandth that flips of each stretch with one K; those without one are left out."""
        if not lows.size:
            return lows

        def state_short(steps: Whole) -> Any:
            return state_is_short(self.rank.request_slots.requests(slots), held_by_kv(self.pools(steps, slots), self.L))

        first = _first(lows, highs, lambda steps: starts(self.pools(steps, slots)))
        turn = _first(lows, highs, state_short)  # from here on the state pool is short
        last = turn - 1 if self.here == "state pool" else highs
        first = first if self.here == "state pool" else np.maximum(first, turn)
        found: Whole = np.where(lows > at, first, last)[first <= last]
        return found


def _first(lows: Whole, highs: Whole, holds: Callable[[Whole], Any], near: Any = None) -> Whole:
    """For each stretch the first number from which on `holds` is true; one past its end where it never is. `near` is
    where that should be: it is looked at first.
    """
    low, high = lows, highs + 1
    parts = np.arange(PROBES).reshape(-1, *[1] * lows.ndim)
    while np.any(low < high):
        if near is None:
            tried = low + (high - low) * parts // PROBES
        else:
            tried, near = np.clip(np.clip(near, lows, highs).astype(np.int64) + parts - 1, lows, highs), None
        held = holds(np.minimum(tried, highs)) | (low == high)  # what is found stays
        low, high = np.where(held, low, tried + 1).max(axis=0), np.where(held, tried, high).min(axis=0)
    return low


@lru_cache(maxsize=KEPT)  # rest stands still while other inputs move
def _around(at: float, high: int) -> Stretches:
    """Stretches around `at` from 1 up to a bound: the further away, the longer."""
    return _evenly(*_doubling(at, 1, high))


def _doubling(at: float, low: int, high: int) -> Stretches:
    """Stretches that double away from `at` on both sides, up to the bounds."""
    up, down = int(np.floor(at)) + 1, int(np.ceil(at)) - 1
    doubling = 2 ** np.arange(int(high).bit_length() + 1)
    above, below = up - 1 + doubling, down + 1 - doubling
    lows = np.maximum(np.concatenate([above, below - doubling + 1]), low)
    highs = np.minimum(np.concatenate([above + doubling - 1, below]), high)
    return lows[lows <= highs], highs[lows <= highs]


def _cut(lows: Whole, highs: Whole, fewest: Whole, most: Whole, deployment: _Deployment) -> Stretches:
    """The stretches in parts: of one K each where they have few, else of equal length."""
    few = most - fewest < PARTS
    parts = [
        _by_slots(lows[few], highs[few], fewest[few], deployment),
        _evenly(lows[~few], highs[~few]),
    ]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _by_slots(lows: Whole, highs: Whole, fewest: Whole, deployment: _Deployment) -> Stretches:
    """Cut where K changes."""
    wanted = fewest[:, None] + np.arange(1, PARTS)
    shape = wanted.shape
    low, high = np.broadcast_to(lows[:, None], shape), np.broadcast_to(highs[:, None], shape)
    changes = _first(low, high, lambda steps: deployment.slots(steps) >= wanted, deployment.near(wanted))
    firsts = np.concatenate([lows[:, None], changes], axis=1)
    lasts = np.concatenate([changes - 1, highs[:, None]], axis=1)
    inside = firsts <= lasts
    return firsts[inside], lasts[inside]


def _evenly(lows: Whole, highs: Whole) -> Stretches:
    size = -(-(highs - lows + 1) // PARTS)
    firsts = lows[:, None] + np.arange(PARTS) * size[:, None]
    lasts = np.minimum(firsts + size[:, None] - 1, highs[:, None])
    inside = firsts <= highs[:, None]
    return firsts[inside], lasts[inside]


def _chunks(at: float, lows: Whole, highs: Whole) -> Iterator[Stretches]:
    """The stretches in chunks, the nearest last."""
    order = np.argsort(_distance(at, lows, highs))
    for first in reversed(range(0, order.size, CHUNK)):
        part = order[first : first + CHUNK]
        yield lows[part], highs[part]


def _distance(at: float, lows: Whole, highs: Whole) -> Any:
    return np.maximum(np.maximum(lows - at, at - highs), 0)
