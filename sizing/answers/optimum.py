"""The best that a flag can give: the most requests that really run at L, every ratio that gives it, and the pin.

The clamp never falls and the KV cap never rises with K, so C requests fit if and only if they fit with the fewest slots
that admit them. Where the radix cache is on one slot more is kept (`RequestSlots.spare`).

All at one length, C requests need KV of C x L tokens; for real traffic sizing/traffic/kv_in_flight.py says how much.
"""

from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sizing.answers.what_runs import kv_tokens_for
from sizing.basics.numeric import Numeric
from sizing.basics.search import last_that, last_that_holds
from sizing.basics.units import GIB, typed_ratio
from sizing.engine.charges import slots_from_ratio
from sizing.engine.pools import carries, pools_from_slots, running
from sizing.engine.rank import asking, pin_rank, rank_of
from sizing.engine.requests import asked_divisor
from sizing.engine.resolved import Numbers, Rank, Resolved
from sizing.engine.slots import (
    is_pinned,
    most_slots,
    pin_from_slots,
    pin_is_ignored,
    ratio_is_ignored,
    ratios_around,
    slots_taken,
)
from sizing.scenario.inputs import MAX_PIN, MAX_RATIO, MAX_REQUESTS
from sizing.specification import optimal_ratio

KEPT = 16  # ranks, up to 70 KB each: what runs most is asked of one and of its like with a GiB more, at every L
Need = Callable[[Any], Any]  # KV tokens that so many requests need at once


class Optimum(BaseModel):
    """The best that any flag of this `rest` gives at L, with a slot to spare where slots are tracked."""

    model_config = ConfigDict(frozen=True)

    runs: int
    slots_low: int
    slots_high: int
    """Every K [slots per rank] from low to high runs this many; low is runs x S."""
    ratio_low: float | None
    ratio_high: float | None
    """Every ratio [-] in between gives such a K; both None where the engine ignores the ratio or no ratio that an input
    takes gives one, the high one None where none is too large."""
    ratio: float | None
    """One of them as it is typed, with a slot to spare."""
    spare: int
    """Slots of the pin beyond runs x S: 1 for the chunk boundary, 0 where none fits or nothing is tracked."""
    pin: int
    """runs x S + spare [slots per rank]. It runs exactly `runs`."""
    unspared: int
    """The most that runs with no slot to spare; more than `runs` where that slot costs a request."""


def r_star(rank: Rank, L: Numeric) -> Numeric:
    """r* [-] at L [tokens] of what the engine charges; of an array of L an array."""
    return optimal_ratio(L, rank.slot_bytes, rank.token_bytes, rank.S, rank.D, rank.dcp_size)


def best_split(rank: Rank, need: Need | None = None, liked: float | None = None) -> Optimum | None:
    """The optimum for one rank; None when no split runs even one request.

    `need` gives the KV [tokens] of so many requests, by default L each; `liked` is a ratio to name if it is one of the
    best.
    """
    need = need or _at_one_length(rank)
    of_ratio, rank = rank, pin_rank(rank)
    runs, spare, unspared = _most(rank, need)
    if runs == 0:
        return None
    low, tokens = rank.request_slots.slots(runs), need(runs)
    most = int(min(rank.rest_gib * GIB / rank.slot_bytes + 1, most_slots(rank)))
    if unspared > runs:
        most = min(most, rank.request_slots.slots(unspared) - 1)
    high = last_that(low, most, lambda slots: carries(pools_from_slots(rank, slots), runs, tokens))
    by_ratio = rank if of_ratio.D == rank.D else None
    spared = low + spare, last_spared(rank, runs, high)
    ratio_low, ratio_high, ratio = ratios(by_ratio, (low, high), spared, liked)
    return Optimum(
        runs=runs,
        slots_low=low,
        slots_high=high,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        ratio=ratio,
        spare=spare,
        pin=low + spare,
        unspared=unspared,
    )


def most_runs(rank: Rank) -> int:
    """What the optimum runs, without the settings that give it [requests per rank]; 0 where nothing runs."""
    return _most(pin_rank(rank), _at_one_length(rank))[0]


def _at_one_length(rank: Rank) -> Need:
    return lambda requests: requests * rank.scenario.L


def _most(rank: Rank, need: Need) -> tuple[int, int, int]:
    """The most requests that run with a slot to spare where slots are tracked, that slot, and the most without."""
    spare = rank.request_slots.spare
    unspared, *spared = (_last_held(need, tokens) for tokens in _tokens_held(Numbers(rank)))
    return (spared[0], spare, unspared) if any(spared) else (unspared, 0, unspared)


class Pair(BaseModel):
    """The most that runs at L when the request count may be asked anew too: both settings together."""

    model_config = ConfigDict(frozen=True)

    runs: int
    asked: int
    """--max-running-requests [requests of the deployment]."""
    alone: bool
    """Whether the request count alone does it: it is what decides the slots."""
    ratio: float | None
    """--mamba-full-memory-ratio [-]; None where the engine ignores it."""
    pin: int | None
    """--max-mamba-cache-size [slots of the deployment]; None where the release ignores it."""


def best_pair(rank: Rank, optimum: Optimum | None) -> Pair | None:
    """The optimum over all splits and all request counts; None where nothing runs, or where no count is set and setting
    one runs no more than `optimum`.

    Asking for C charges the drafts or rings of C and lifts the engine's own estimate, so C run if and only if they run
    with C asked and C x S slots.
    """
    scenario, rank = rank.scenario, pin_rank(rank)
    runs = _most_asked(rank, spare=True) or _most_asked(rank, spare=False)
    if runs == 0 or (rank.requests_asked is None and optimum and runs <= optimum.runs):
        return None
    asked = runs * asked_divisor(rank.resolved)
    there = rank_of(scenario.model_copy(update={"max_running_requests": asked}))
    best = best_split(there)
    if best is None or best.runs < runs:
        return None
    by_count = ratio_is_ignored(there.resolved) and not is_pinned(there.resolved)
    alone = by_count and running(pools_from_slots(there, slots_taken(there, 1)), scenario.L) == runs
    return Pair(
        runs=runs,
        asked=asked,
        alone=bool(alone),
        ratio=best.ratio,
        pin=pin_flag(there.resolved, best),
    )


def pin_flag(resolved: Resolved, best: Optimum) -> int | None:
    """What to write after --max-mamba-cache-size for an optimum [slots of the deployment]; None where the release
    ignores it, or the number is more than an input takes.
    """
    pin = pin_from_slots(resolved, best.pin)
    return None if pin_is_ignored(resolved) or pin > MAX_PIN else pin


def counts_tried(rank: Rank) -> NDArray[np.int64]:
    """Every count of requests [requests per rank] that the state pool can hold and the input takes, from 1."""
    return np.arange(1, _most_tried(rank) + 1)


def _most_tried(rank: Rank) -> int:
    return min(most_by_state(rank), MAX_REQUESTS // asked_divisor(rank.resolved))


def _most_asked(rank: Rank, *, spare: bool) -> int:
    """The largest C that runs with C asked and its slots."""
    L = rank.scenario.L
    return last_that(1, _most_tried(rank), lambda tried: carried_if_asked(rank, tried, tried * L, spare=spare))


def carried_if_asked(rank: Rank, requests: Numeric, tokens: Numeric, *, spare: bool) -> Any:
    """Whether so many requests, which need so many KV tokens together, run if just they are asked for."""
    there = asking(rank, requests)
    slots = rank.request_slots.slots(requests, spare=spare)
    return carries(pools_from_slots(there, slots), requests, tokens) & (most_slots(there) >= slots)


class Ratios(NamedTuple):
    """Ratios [-] that an input takes, as `Optimum` says; all None where none gives what is asked."""

    low: float | None = None
    high: float | None = None
    typed: float | None = None


def ratios(rank: Rank | None, span: tuple[int, int], spared: tuple[int, int], liked: float | None = None) -> Ratios:
    """Every ratio [-] that gives a K of `span`, from and to [slots per rank]; and one to type that gives a K of
    `spared`: the one that is liked if it does, else one with few digits.

    `rank` is None where no ratio can give what a pin gives.
    """
    if rank is None or ratio_is_ignored(rank.resolved):
        return Ratios()
    most, around = slots_from_ratio(rank, MAX_RATIO), cache(partial(ratios_around, rank))  # both share their ends
    low, high = _range(most, around, *span)
    if liked is not None and liked <= MAX_RATIO and spared[0] <= slots_from_ratio(rank, liked) <= spared[1]:
        return Ratios(low, high, liked)
    first, last = _range(most, around, *spared)
    return Ratios(low, high, None if first is None else min(typed_ratio(first, last), MAX_RATIO))


def _range(
    most: Numeric, around: Callable[[int], tuple[float, float]], low: int, high: int
) -> tuple[float | None, float | None]:
    """The ratios [-] that give K from `low` to `high`; `most` is what the largest gives [slots per rank]."""
    if most < low:
        return None, None
    first, last = around(low)[1], None if most <= high else around(high + 1)[0]
    if last is not None and last < first:  # no float lies between: K jumps over the range
        return None, None
    return first, last


def last_spared(rank: Rank, requests: int, high: int) -> int:
    """The largest K up to `high` [slots per rank] at which so many requests have a slot to spare. With S more slots one
    more request is admitted, unless no more are asked for.
    """
    capped = rank.requests_asked is not None and rank.requests_asked <= requests
    each = rank.request_slots
    return high if capped or not each.spare else min(high, each.slots(requests + 1) - 1)


def most_by_state(rank: Rank) -> int:
    """The most requests [requests per rank] whose slots fit into `rest` with no KV at all: where every search ends."""
    return rank.request_slots.requests(int(max(rank.rest_gib, 0) * GIB / rank.slot_bytes))


@lru_cache(maxsize=KEPT)
def _tokens_held(numbers: Numbers) -> list[list[int]]:
    """The KV [tokens] of the pools of every C with its slots, and with one to spare where slots are tracked; -1 where
    they do not run C. The engine never wants more than asked, or its top estimate.
    """
    rank = numbers.rank
    top = int(rank.requests_asked) if rank.requests_asked is not None else rank.rules.estimate.high
    wanted = np.arange(1, min(top, most_by_state(rank)) + 1, dtype=np.int64)
    each = rank.request_slots
    slots = np.stack([each.slots(wanted, spare=spare) for spare in ((False, True) if each.spare else (False,))])
    found: list[list[int]] = np.where(
        slots <= most_slots(rank), kv_tokens_for(pools_from_slots(rank, slots), wanted), -1
    ).tolist()
    return found


def _last_held(need: Need, tokens: list[int]) -> int:
    """The largest C whose KV [tokens] its own pools hold."""
    return last_that_holds(0, len(tokens), lambda C: C == 0 or need(C) <= tokens[C - 1])
