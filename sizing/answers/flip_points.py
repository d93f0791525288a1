"""What flips the verdict: for each input, the nearest value at which the other pool is the one that is short first.

Change one input and hold all others, the ratio or the pin too: at this value the other pool becomes the limit. It is
the nearest of all values that the input takes; rest is tried in thousandths of a GiB.
"""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import product
from typing import Any, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict

from sizing.answers.alternatives import STRATEGIES
from sizing.answers.nearest_rest import REST_DIGITS, Whole, is_other, nearest_rest
from sizing.answers.solve import Sizing
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.numeric import divisors
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import count, rest_text
from sizing.engine.pools import pools_from_slots, starts
from sizing.engine.rank import rank_as_set
from sizing.engine.resolve import resolve
from sizing.engine.resolved import Rank
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

KEPT = 128  # scenarios whose ranks are kept, 50 KB each: what readers move most, L and the ratio, asks for none anew
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
    width = sizing.scenario.attn_tp_size
    widths = divisors(width, MAX_DCP)
    return (
        _context(sizing),
        _rest(sizing),
        _slots(sizing),
        _drafts(sizing),
        _tried(sizing, "mamba_ssm_dtype", get_args(StateDtype), "none"),
        _tried(sizing, "kv_cache_dtype", get_args(KvDtype), "none"),
        _tried(sizing, "dcp_size", widths, "none that fits"),
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
    found = nearest_rest(sizing.scenario, sizing.ratio_now, short_pool_now(sizing), reach)
    text = None if found is None else f"{found:.{REST_DIGITS}f} GiB"
    return _flip(sizing, "rest_gib", rest_text(rest), text, f"none up to {count(reach)} GiB")


def _slots(sizing: Sizing) -> Flip:
    """S as the strategies make it, each with and without the decode-lock skip; those that change least first."""
    if not sizing.resolved.radix_cache:
        return Flip(quantity="S", now=str(sizing.S), flips_at=f"S is {sizing.S} without radix cache", then="")
    found = _ranks_by_slots(_held(sizing.scenario))
    for S in sorted(found.keys() - {sizing.S}, key=lambda S: abs(S - sizing.S)):
        for words, rank in found[S]:
            if _flips_to_other(sizing, rank):
                return _flip(sizing, "S", str(sizing.S), f"{S} ({words})" if words else str(S))
    reached = ", ".join(str(S) for S in sorted(found.keys() - {sizing.S}))
    return _flip(sizing, "S", str(sizing.S), None, f"none of {reached}" if reached else "cannot be changed here")


def _held(scenario: Scenario) -> Scenario:
    """The scenario with fixed values for inputs that no rank depends on, so that ranks are kept while L or the ratio
    moves.
    """
    return scenario.model_copy(update={"name": "", "L": 1, "mamba_full_memory_ratio": DEFAULT_RATIO})


@lru_cache(maxsize=KEPT)
def _ranks_by_slots(held: Scenario) -> dict[int, list[tuple[str, Rank | None]]]:
    """Every S that the strategies make, with the flags and the rank of each way; None for one that does not start."""
    found: dict[int, list[tuple[str, Rank | None]]] = {}
    for values, skip in product(STRATEGIES, (held.skip_decode_lock, not held.skip_decode_lock)):
        other = held.model_copy(update={**values, "skip_decode_lock": skip})
        news = [
            name for name in ("skip_decode_lock", *values) if getattr(other, name) not in (False, getattr(held, name))
        ]
        words = " ".join(flag_text(name, getattr(other, name), held.release) for name in news)
        with suppress(RefusedError):
            found.setdefault(resolve(other).S, []).append((words, _rank(other)))
    return found


def _drafts(sizing: Sizing) -> Flip:
    """Every number of draft tokens that an input takes."""
    stands = sizing.scenario
    flipped = [D for D in _flipped_drafts(sizing) if D != stands.D]
    there = min(flipped, key=lambda D: abs(D - stands.D)) if flipped else None
    return _flip(sizing, "D", str(stands.D), None if there is None else str(there), f"none up to {MAX_D}")


def _flipped_drafts(sizing: Sizing) -> Iterator[int]:
    """Every D at which the other pool is short first."""
    stands, ratio = sizing.scenario, sizing.ratio_now
    if _flips_to_other(sizing, _rank(stands.model_copy(update={"D": 0}))):
        yield 0
    for drafts, many in _ranks_with_drafts(_held(stands).model_copy(update={"D": 1, "rest_gib": 1})):
        rank = many._replace(rest_gib=stands.rest_gib)
        pools = pools_from_slots(rank, slots_taken(rank, ratio))
        flipped = is_other(pools, stands.L, short_pool_now(sizing))  # one for all where no D is charged
        yield from drafts[np.broadcast_to(flipped, drafts.shape)].tolist()


@lru_cache(maxsize=KEPT)
def _ranks_with_drafts(held: Scenario) -> list[tuple[Whole, Rank]]:
    """Every D above 0 that the engine takes, as ranks whose numbers are arrays over D: one rank for each headroom,
    which the rules take as a single number. `held` has a fixed rest and D, which do not count here.
    """
    found: dict[int, dict[int, Rank]] = {}
    for D in range(1, MAX_D + 1):
        with suppress(RefusedError):
            rank = rank_as_set(held.model_copy(update={"D": D}))
            found.setdefault(rank.headroom, {})[D] = rank
    return [(np.array(list(ranks)), _stacked([*ranks.values()])) for ranks in found.values()]


def _stacked(ranks: Sequence[Rank]) -> Rank:
    """Several ranks as one: each number in which they differ becomes an array."""
    columns = list(zip(Rank._fields, zip(*ranks, strict=True), strict=True))[1:]  # all but what they follow from
    differ: dict[str, Any] = {name: np.array(values) for name, values in columns if len({*map(repr, values)}) > 1}
    return ranks[0]._replace(**differ)


def _tried(sizing: Sizing, name: str, values: Sequence[Any], nothing: str) -> Flip:
    """Whole scenarios with one input changed, the nearest number first."""
    stands = getattr(sizing.scenario, name)
    others = [value for value in values if value != stands]
    if isinstance(stands, int):
        others.sort(key=lambda value: abs(value - stands))
    known = False
    for value, rank in zip(others, _ranks_changed(_held(sizing.scenario), name, tuple(others)), strict=True):
        flipped = _flips_to_other(sizing, rank)
        known |= flipped is not None
        if flipped:
            return _flip(sizing, name, str(stands), str(value))
    return _flip(sizing, name, str(stands), None, nothing if known else "cannot be changed as things stand")


@lru_cache(maxsize=3 * KEPT)
def _ranks_changed(held: Scenario, name: str, values: tuple[Any, ...]) -> list[Rank | None]:
    """The rank with each value of one input; None where that cannot be, or does not start."""
    others = [changed(held, **{name: value}) for value in values]
    return [_rank(other) if isinstance(other, Scenario) else None for other in others]


def _rank(scenario: Scenario) -> Rank | None:
    try:
        return rank_as_set(scenario)
    except RefusedError:
        return None


def _flips_to_other(sizing: Sizing, rank: Rank | None) -> bool | None:
    """Whether the other pool is short first on another rank; None without one, or where it does not start."""
    if rank is None:
        return None
    pools = pools_from_slots(rank, slots_taken(rank, sizing.ratio_now))
    return bool(is_other(pools, sizing.scenario.L, short_pool_now(sizing))) if starts(pools) else None


def _flip(sizing: Sizing, name: str, now: str, there: str | None, nothing: str = "none") -> Flip:
    title = str(FIELDS[name].title).split(",")[0] if name in FIELDS else name
    return Flip(quantity=title, now=now, flips_at=there or nothing, then=_other(sizing) if there else "")


def _other(sizing: Sizing) -> PoolName:
    return "KV pool" if short_pool_now(sizing) == "state pool" else "state pool"
