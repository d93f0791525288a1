"""What flips the verdict: for each input, the nearest value at which the other pool is the one that is short first.

Every value is solved by the engine's rules with all other inputs, and the ratio or the pin, held where they are.
"""

from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict

from sizing.answers.solve import Sizing
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import count, number, rest_text
from sizing.engine.pools import (
    Pools,
    Rank,
    is_pinned,
    kv_cap,
    pools_from_slots,
    rank_as_set,
    rank_of,
    ratio_is_ignored,
    slots_from_ratio,
)
from sizing.engine.split import Split, slots_set
from sizing.scenario.inputs import FIELDS, Scenario, changed
from sizing.specification import PoolName

SLOTS_PER_REQUEST = (3, 4, 5)  # what S can be with the radix cache on, engine-sizing.md section 4
DRAFTS = 16  # draft tokens tried
DCP_SIZES = (1, 2, 4, 8, 16, 32, 64)
REST_REACH = 16  # rest is tried from a sixteenth of what it is to sixteen times as much
REST_STEPS = 256
REST_DIGITS = 3  # [GiB] a flip of rest is given to a thousandth


class Flip(BaseModel):
    """One input: where it stands and the nearest value that changes which pool is short first."""

    model_config = ConfigDict(frozen=True)

    quantity: str
    now: str
    flips_at: str
    then: str
    """The pool that is short first there; empty where nothing flips."""


def flips(sizing: Sizing) -> tuple[Flip, ...]:
    """For L, rest, S, D, both dtypes and dcp_size; empty where the engine refuses the split that is set."""
    now = sizing.now
    if isinstance(now, Refusal):
        return ()
    return (
        _context(sizing, now),
        _rest(sizing, now),
        _slots(sizing, now),
        _tried(sizing, now, "D", range(DRAFTS + 1), f"none up to {DRAFTS}"),
        _tried(sizing, now, "mamba_ssm_dtype", get_args(StateDtype), "none"),
        _tried(sizing, now, "kv_cache_dtype", get_args(KvDtype), "none"),
        _tried(sizing, now, "dcp_size", DCP_SIZES, "none that fits"),
    )


COLUMNS = ("input", "now", "flips at", "short first there")


def flip_rows(sizing: Sizing) -> list[tuple[str, ...]]:
    """The same as rows of text under COLUMNS."""
    return [(turn.quantity, turn.now, turn.flips_at, turn.then) for turn in flips(sizing)]


def flips_words(sizing: Sizing) -> str:
    """What the rows say, in a sentence."""
    return (
        f"The {short_pool_now(sizing)} is short first. Each row moves one input alone to the nearest value at which "
        "the other pool is, the ratio or the pin held where it is."
    )


def short_pool(clamp: int, cap: int) -> PoolName:
    """Which pool is short first; a tie is the state pool's, as in limits.py."""
    return "state pool" if clamp <= cap else "KV pool"


def short_pool_now(sizing: Sizing) -> PoolName:
    """The pool of the split that is set. Raises TypeError where the engine refuses that split."""
    if isinstance(sizing.now, Refusal):
        raise TypeError("a refused split has no pools")
    return _short(sizing.now)


def _short(split: Split) -> PoolName:
    return short_pool(split.clamp, split.kv_cap)


def _context(sizing: Sizing, now: Split) -> Flip:
    """The cap falls with L and the clamp does not: the balance point is the last L of the state pool."""
    here = _short(now)
    there = now.crossing + 1 if here == "state pool" else now.crossing
    return _flip("L", count(sizing.scenario.L), count(there) if there else None, _other(here))


def _rest(sizing: Sizing, now: Split) -> Flip:
    scenario, here = sizing.scenario, _short(now)
    rest = scenario.rest_gib
    steps = np.geomspace(1, REST_REACH, REST_STEPS)[1:]
    tried = np.round(np.concatenate([rest / steps, rest * steps]), REST_DIGITS)
    flipped = tried[_flipped(scenario, sizing.ratio_now, {"rest_gib": tried}, here)]
    if not flipped.size:
        nothing = f"none from {number(tried.min())} to {number(tried.max())} GiB"
        return _flip("rest_gib", rest_text(rest), None, _other(here), nothing)
    nearest = float(flipped[np.argmin(np.abs(np.log(flipped / rest)))])
    edge = _rest_edge(scenario, sizing.ratio_now, here, nearest)
    return _flip("rest_gib", rest_text(rest), f"{edge:.{REST_DIGITS}f} GiB", _other(here))


def _rest_edge(scenario: Scenario, ratio: float, here: PoolName, found: float) -> float:
    """Every thousandth of a GiB between the step before and the value found: the one nearest to rest that flips."""
    step = REST_REACH ** (1 / (REST_STEPS - 1))
    before = found / step if found > scenario.rest_gib else found * step
    low, high = sorted((before, found))
    thousandths = np.round(np.arange(low, high, 10.0**-REST_DIGITS), REST_DIGITS)
    tried = np.append(thousandths, found)
    flipped = tried[_flipped(scenario, ratio, {"rest_gib": tried}, here)]
    return float(flipped[np.argmin(np.abs(flipped - scenario.rest_gib))])


def _slots(sizing: Sizing, now: Split) -> Flip:
    """S as the strategies can make it, held apart from them; not with the radix cache off, where S is 1."""
    here, S = _short(now), sizing.S
    if not sizing.resolved.radix_cache:
        return Flip(quantity="S", now=str(S), flips_at="S is 1 without radix cache", then="")
    tried = np.array([value for value in SLOTS_PER_REQUEST if value != S])
    flipped = tried[_flipped(sizing.scenario, sizing.ratio_now, {"S": tried}, here)]
    if not flipped.size:
        return Flip(quantity="S", now=str(S), flips_at="none of 3, 4, 5", then="")
    return Flip(quantity="S", now=str(S), flips_at=str(flipped[np.argmin(np.abs(flipped - S))]), then=_other(here))


def _flipped(scenario: Scenario, ratio: float, varied: dict[str, Any], here: PoolName) -> Any:
    """Where, over arrays of one member of Rank, the other pool is short first; never where the engine refuses."""
    rank = rank_as_set(scenario)._replace(**varied)
    pools = pools_from_slots(rank, _slots_over(scenario, rank, ratio))
    short = np.where(pools.clamp <= kv_cap(pools.kv_tokens, scenario.L), "state pool", "KV pool")
    return (short != here) & _starts(pools)


def _slots_over(scenario: Scenario, rank: Rank, ratio: float) -> Any:
    """K for every value of the member that varies; a pin and a request count do not depend on it."""
    if is_pinned(scenario) or ratio_is_ignored(scenario):
        return np.full(np.shape(rank.rest_gib) or np.shape(rank.S), slots_set(scenario, rank_of(scenario), ratio))
    return np.maximum(slots_from_ratio(rank, ratio), 0)


def _starts(pools: Pools) -> Any:
    return (pools.slots > 0) & (pools.kv_rest_bytes > 0) & (pools.admitted > 0)


def _tried(sizing: Sizing, now: Split, name: str, values: Sequence[Any], nothing: str) -> Flip:
    """Whole scenarios with one input changed, the nearest number first."""
    here, stands = _short(now), getattr(sizing.scenario, name)
    others = [value for value in values if value != stands]
    if isinstance(stands, int):
        others.sort(key=lambda value: abs(value - stands))
    known = False
    for value in others:
        there = _short_with(sizing, name, value)
        known |= there is not None
        if there not in (None, here):
            return _flip(name, str(stands), str(value), _other(here))
    return _flip(name, str(stands), None, _other(here), nothing if known else "cannot be changed as things stand")


def _short_with(sizing: Sizing, name: str, value: Any) -> PoolName | None:
    """The pool that is short first with one input changed; None where that cannot be, or does not start."""
    other = changed(sizing.scenario, **{name: value})
    if not isinstance(other, Scenario):
        return None
    try:
        rank = rank_as_set(other)
    except RefusedError:
        return None
    pools = pools_from_slots(rank, slots_set(other, rank, sizing.ratio_now))
    return short_pool(int(pools.clamp), int(kv_cap(pools.kv_tokens, other.L))) if _starts(pools) else None


def _flip(name: str, now: str, there: str | None, then: PoolName, nothing: str = "none") -> Flip:
    title = str(FIELDS[name].title).split(",")[0]
    return Flip(quantity=title, now=now, flips_at=there or nothing, then=then if there else "")


def _other(pool: PoolName) -> PoolName:
    return "KV pool" if pool == "state pool" else "state pool"
