"""What flips the verdict: for each input, the nearest value at which the other pool is the one that is short first.

Change one input and hold all others, the ratio or the pin too: at this value the other pool becomes the limit. It is
the nearest of all values that the input takes; rest is tried in thousandths of a GiB.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sizing.answers.alternatives import STRATEGIES
from sizing.answers.nearest_rest import REST_DIGITS, Whole, is_other, nearest_rest
from sizing.answers.solve import Sizing
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.numeric import divisors
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import count, rest_text
from sizing.engine.pools import Pools, pools_from_slots, starts
from sizing.engine.rank import as_set, rank_from
from sizing.engine.resolve import resolve
from sizing.engine.resolved import Rank, Resolved
from sizing.engine.slots import slots_taken
from sizing.engine.split import Split
from sizing.scenario.inputs import (
    DEFAULT_RATIO,
    FIELDS,
    MAX_D,
    MAX_DCP,
    MAX_L,
    MAX_REST_GIB,
    Scenario,
    changed,
    flag_text,
)
from sizing.specification import PoolName, binding_pool

KEPT = 128  # scenarios whose ranks are kept: what readers move most, L and the ratio, asks for none anew
KEPT_SOLVED = 8  # of their pools, 60 KB each: those of one ratio at every L
REST_REACH = 1024  # [GiB] no GPU holds as much; beyond twice what rest is, nothing larger is tried


class Flip(BaseModel):
    """One input: where it stands and the nearest value that changes which pool is short first."""

    model_config = ConfigDict(frozen=True)

    quantity: str
    now: str
    flips_at: str
    then: str
    """The pool that is short first there; empty where nothing flips."""

    @property
    def factor(self) -> float | None:
        """How far it may move: the value there over the one now [-]; None where nothing flips, or it is no number."""
        both = [re.match(r"[\d,.]+", text) for text in (self.flips_at, self.now)] if self.then else []
        there, now = (float(found[0].replace(",", "")) if found else 0.0 for found in both) if both else (0.0, 0.0)
        return there / now if there and now else None


def flips(sizing: Sizing) -> tuple[Flip, ...]:
    """For L, rest, S, D, both dtypes and dcp_size; empty where the engine refuses the split that is set."""
    if isinstance(sizing.now, Refusal):
        return ()
    others, drafts, named = _solved(_held(sizing.scenario), sizing.ratio_now)
    turned = dict(zip(*(each.tolist() for each in _turned(sizing, others)), strict=True))
    tried = [(other, turned.get(place)) for place, other in enumerate(named)]
    return (
        _context(sizing),
        _rest(sizing),
        _slots(sizing, tried),
        _drafts(sizing, drafts),
        _tried(sizing, tried, "mamba_ssm_dtype", "none"),
        _tried(sizing, tried, "kv_cache_dtype", "none"),
        _tried(sizing, tried, "dcp_size", "none that fits"),
    )


COLUMNS = ("input", "now", "turns at", "factor")


def flip_rows(found: Sequence[Flip]) -> list[tuple[str, ...]]:
    """Those that turn the verdict, as rows of text under COLUMNS; the nearest first."""
    turning = sorted((turn for turn in found if turn.then), key=_far)
    return [(turn.quantity, turn.now, turn.flips_at, _factor_text(turn.factor)) for turn in turning]


def _far(turn: Flip) -> float:
    return abs(math.log(turn.factor)) if turn.factor else math.inf


def _factor_text(factor: float | None) -> str:
    return "" if factor is None else f"x {factor:,.3g}"


def flips_words(sizing: Sizing, found: Sequence[Flip]) -> str:
    """What the rows say, in a sentence or two."""
    none = [_unturned(turn) for turn in found if not turn.then]
    other = _other(sizing)
    at = f"Below: what would make the {other} the limit, one input changed alone. " if len(none) < len(found) else ""
    so = "does not" if at else f"does not make the {other} the limit"
    rest = f"Changing {', '.join(none)} alone {so}." if none else ""
    return f"The {short_pool_now(sizing)} is short first. {at}{rest}".strip()


def _unturned(turn: Flip) -> str:
    """An input that turns nothing, and how far it was tried."""
    tried = turn.flips_at.removeprefix("none").replace("that fits", "of those that fit").strip()
    return f"{turn.quantity} ({tried})" if tried else turn.quantity


def short_pool_now(sizing: Sizing) -> PoolName:
    """The pool of the split that is set. Raises TypeError where the engine refuses that split."""
    if isinstance(sizing.now, Refusal):
        raise TypeError("a refused split has no pools")
    return _short(sizing.now)


def _short(split: Split) -> PoolName:
    windows = split.kv_cap if split.window_cap is None else split.window_cap
    return binding_pool(split.clamp, min(split.kv_cap, windows))


def _context(sizing: Sizing) -> Flip:
    """The cap falls with L and the clamp does not: the balance point is the last L of the state pool."""
    if isinstance(sizing.now, Refusal):
        raise TypeError("a refused split has no balance point")
    balance, windows = sizing.now.crossing, sizing.now.window_cap
    there = balance + 1 if short_pool_now(sizing) == "state pool" else balance
    flips_at = 1 <= there <= MAX_L and (windows is None or windows >= sizing.now.clamp)
    return _flip(sizing, "L", count(sizing.scenario.L), count(there) if flips_at else None)


def _rest(sizing: Sizing) -> Flip:
    """The nearest thousandth of a GiB."""
    rest = sizing.scenario.rest_gib
    reach = min(max(REST_REACH, math.ceil(2 * rest)), MAX_REST_GIB)
    found = nearest_rest(as_set(sizing.rank), sizing.ratio_now, short_pool_now(sizing), reach)
    text = None if found is None else f"{found:.{REST_DIGITS}f} GiB"
    return _flip(sizing, "rest_gib", rest_text(rest), text, f"none up to {count(reach)} GiB")


class _Other(NamedTuple):
    """A deployment with one input changed alone, or with S as a strategy makes it."""

    name: str
    value: Any
    words: str = ""
    """The flags that S takes."""


Solved = Sequence[tuple[Whole, Pools]]
"""The pools of ranks as arrays, with their places."""
Tried = Sequence[tuple[_Other, bool | None]]
"""Each with whether the other pool is short first there; None where it cannot be, or does not start."""
Ranks = Sequence[tuple[Whole, Rank]]
"""Many ranks as few whose numbers are arrays, each with the places of its own among the many."""


def _slots(sizing: Sizing, tried: Tried) -> Flip:
    """S as the strategies make it, each with and without the decode-lock skip; those that change least first."""
    if not sizing.resolved.radix_cache:
        return Flip(quantity="S", now=str(sizing.S), flips_at=f"S is {sizing.S} without radix cache", then="")
    ways = [(other, turned) for other, turned in tried if other.name == "S" and other.value != sizing.S]
    ways.sort(key=lambda way: (abs(way[0].value - sizing.S), way[0].value))
    for (_, S, words), turned in ways:
        if turned:
            return _flip(sizing, "S", str(sizing.S), f"{S} ({words})" if words else str(S))
    reached = ", ".join(str(S) for S in sorted({other.value for other, _ in ways}))
    return _flip(sizing, "S", str(sizing.S), None, f"none of {reached}" if reached else "cannot be changed here")


def _drafts(sizing: Sizing, solved: Solved) -> Flip:
    """Every number of draft tokens that an input takes."""
    stands = sizing.scenario.D
    drafts, turns = _turned(sizing, solved)
    flipped = drafts[turns & (drafts != stands)]
    there = str(flipped[np.argmin(np.abs(flipped - stands))]) if flipped.size else None
    return _flip(sizing, "D", str(stands), there, f"none up to {MAX_D}")


def _tried(sizing: Sizing, tried: Tried, name: str, nothing: str) -> Flip:
    """Whole scenarios with one input changed, the nearest number first."""
    mine = [(other.value, turned) for other, turned in tried if other.name == name]
    there = next((str(value) for value, turned in mine if turned), None)
    known = any(turned is not None for _, turned in mine)
    return _flip(
        sizing,
        name,
        str(getattr(sizing.scenario, name)),
        there,
        nothing if known else "cannot be changed as things stand",
    )


def _turned(sizing: Sizing, solved: Solved) -> tuple[Whole, NDArray[np.bool_]]:
    """The places of those that start, and whether the other pool is short first there."""
    found = [(np.empty(0, np.int64), np.empty(0, np.bool_))]
    for places, pools in solved:
        up, other = starts(pools), is_other(pools, sizing.scenario.L, short_pool_now(sizing))
        found.append((places[up], other[up]))
    return np.concatenate([places for places, _ in found]), np.concatenate([turns for _, turns in found])


@lru_cache(maxsize=KEPT_SOLVED)
def _solved(held: Scenario, ratio: float) -> tuple[Solved, Solved, Sequence[_Other]]:
    """The pools of every other deployment that is tried, those with other draft tokens, and what the first are."""
    others, ranks, drafts = _others(held)
    return _pools(ranks, ratio), _pools(drafts, ratio), others


def _pools(ranks: Ranks, ratio: float) -> Solved:
    taken = ((places, rank, slots_taken(rank, ratio)) for places, rank in ranks)
    return [(places, pools_from_slots(rank, np.broadcast_to(slots, places.shape))) for places, rank, slots in taken]


def _held(scenario: Scenario) -> Scenario:
    """The scenario with fixed values for inputs that no rank depends on, so that ranks are kept while L or the ratio
    moves.
    """
    return scenario.model_copy(update={"name": "", "L": 1, "mamba_full_memory_ratio": DEFAULT_RATIO})


@lru_cache(maxsize=KEPT)
def _others(held: Scenario) -> tuple[Sequence[_Other], Ranks, Ranks]:
    """Every other deployment that is tried, the ranks of those that can be, and those with other draft tokens."""
    found = [*_by_strategy(held), *_by_input(held)]
    drafts = _ranks_with_drafts(held.model_copy(update={"D": 1, "rest_gib": 1}))
    return (
        [other for other, _ in found],
        _stacked(dict(enumerate(rank for _, rank in found))),
        [(places, rank._replace(rest_gib=held.rest_gib)) for places, rank in drafts],
    )


def _by_strategy(held: Scenario) -> Iterator[tuple[_Other, Rank | None]]:
    """Every way of the strategies to an S."""
    for values, skip in product(STRATEGIES, (held.skip_decode_lock, not held.skip_decode_lock)):
        other = held.model_copy(update={**values, "skip_decode_lock": skip})
        news = [
            name for name in ("skip_decode_lock", *values) if getattr(other, name) not in (False, getattr(held, name))
        ]
        words = " ".join(flag_text(name, getattr(other, name), held.release) for name in news)
        with suppress(RefusedError):
            resolved = resolve(other)
            yield _Other("S", resolved.S, words), _rank(other, resolved)


def _by_input(held: Scenario) -> Iterator[tuple[_Other, Rank | None]]:
    """The dtypes, and every dcp_size that divides the width, the nearest first."""
    widths = sorted(divisors(held.attn_tp_size, MAX_DCP), key=lambda width: abs(width - held.dcp_size))
    choices = {"mamba_ssm_dtype": get_args(StateDtype), "kv_cache_dtype": get_args(KvDtype), "dcp_size": widths}
    for name, values in choices.items():
        for value in values:
            if value != getattr(held, name):
                other = changed(held, **{name: value})
                yield _Other(name, value), _rank(other) if isinstance(other, Scenario) else None


@lru_cache(maxsize=KEPT)
def _ranks_with_drafts(held: Scenario) -> Ranks:
    """Every D that the engine takes, placed by it. `held` has a fixed rest and D, which do not count here."""
    return _stacked({D: _rank(held.model_copy(update={"D": D})) for D in range(MAX_D + 1)})


def _rank(scenario: Scenario, resolved: Resolved | None = None) -> Rank | None:
    try:
        return as_set(rank_from(resolved or resolve(scenario)))
    except RefusedError:
        return None


def _stacked(ranks: Mapping[int, Rank | None]) -> Ranks:
    """Those that there are by their places: one rank of arrays for all in which what the rules take as one is alike."""
    alike: dict[Any, dict[int, Rank]] = {}
    for place, rank in ranks.items():
        if rank is not None:
            asked = rank.resolved.radix_cache, rank.resolved.max_running_requests
            alike.setdefault((rank.headroom, rank.window, asked), {})[place] = rank
    return [(np.array([*found]), _as_arrays([*found.values()])) for found in alike.values()]


def _as_arrays(ranks: Sequence[Rank]) -> Rank:
    """Several ranks as one: each number in which they differ becomes an array."""
    columns = list(zip(Rank._fields, zip(*ranks, strict=True), strict=True))[1:]  # all but what they follow from
    differ: dict[str, Any] = {name: np.array(values) for name, values in columns if len({*map(repr, values)}) > 1}
    return ranks[0]._replace(**differ)


def _flip(sizing: Sizing, name: str, now: str, there: str | None, nothing: str = "none") -> Flip:
    title = str(FIELDS[name].title).split(",")[0] if name in FIELDS else name
    return Flip(quantity=title, now=now, flips_at=there or nothing, then=_other(sizing) if there else "")


def _other(sizing: Sizing) -> PoolName:
    return "KV pool" if short_pool_now(sizing) == "state pool" else "state pool"
