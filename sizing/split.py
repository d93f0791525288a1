"""One split solved for one deployment: the pools, what runs at L, what binds and where the memory goes."""

import math

from pydantic import BaseModel, ConfigDict

from sizing.limits import Limit, limits
from sizing.pools import (
    TOKENS_PER_REQUEST,
    Pools,
    Rank,
    kv_cap,
    pools_from_slots,
    ratio_is_ignored,
    slots_from_ratio,
    tokens_occupied,
)
from sizing.problems import Refusal
from sizing.scenario import MAX_RATIO, MAX_REST_GIB, Scenario
from sizing.units import GIB, MIB, count, gib

PIN = "--max-mamba-cache-size"


class Memory(BaseModel):
    """Where `rest` of one rank goes [bytes] with the requests that run at L. The pieces add up to `rest`."""

    model_config = ConfigDict(frozen=True)

    state_used: int
    state_idle: int
    state_padding: int
    draft_reserve: int
    kv_used: int
    kv_idle: int
    unsplit: int
    """Less than one page, or what --max-total-tokens leaves out of the pool."""


class Split(BaseModel):
    """One way to split `rest`, solved as the engine does. Slots, rows and bytes are per rank."""

    model_config = ConfigDict(frozen=True)

    ratio: float | None
    """None for a pin, or where the engine ignores the ratio."""
    slots: int
    clamp: int
    kv_rest_bytes: int
    kv_rows: int
    kv_tokens: int
    """Logical tokens: rows x dcp_size."""
    kv_cap: int
    kv_cap_whole_pages: int
    """The cap when each request occupies whole pages of page_size x dcp_size."""
    admitted: int
    """The engine's max_running_requests."""
    runs: int
    """min(admitted, KV cap): what really runs at L."""
    limits: tuple[Limit, ...]
    crossing: int
    """The largest L [tokens] at which the KV cap still carries the whole clamp: the balance point of this split."""
    memory: Memory

    @property
    def binding(self) -> Limit:
        """The limit that decides what runs."""
        return self.limits[0]


def slots_asked(scenario: Scenario, rank: Rank, ratio: float, pin: int | None) -> int:
    """K [slots per rank]: pin, else the request count where the radix cache is off, else the ratio (section 5)."""
    if pin is not None:
        return pin
    if ratio_is_ignored(scenario) and rank.requests_wanted is not None:
        return int(rank.requests_wanted)
    return int(slots_from_ratio(rank, ratio))


def solve_split(scenario: Scenario, rank: Rank, ratio: float, pin: int | None = None) -> Split | Refusal:
    """Solve one split: by `ratio` [-] unless `pin` [slots per rank] is given; or the engine's refusal."""
    pools = pools_from_slots(rank, slots_asked(scenario, rank, ratio, pin))
    refusal = _refusal(rank, pools, ratio, _lever(scenario, pin))
    if refusal:
        return refusal
    found = limits(scenario, rank, pools)
    return Split(
        ratio=None if pin is not None or ratio_is_ignored(scenario) else ratio,
        slots=int(pools.slots),
        clamp=int(pools.clamp),
        kv_rest_bytes=int(pools.kv_rest_bytes),
        kv_rows=int(pools.kv_rows),
        kv_tokens=int(pools.kv_tokens),
        kv_cap=int(kv_cap(pools.kv_tokens, scenario.L)),
        kv_cap_whole_pages=int(pools.kv_tokens // tokens_occupied(rank, scenario.L)),
        admitted=int(pools.admitted),
        runs=found[0].requests,
        limits=found,
        crossing=int(pools.kv_tokens // pools.clamp),
        memory=_memory(rank, pools, scenario.L, found[0].requests),
    )


def _memory(rank: Rank, pools: Pools, L: int, runs: int) -> Memory:
    state_used = runs * rank.S * rank.slot_bytes
    kv_pool = int(pools.kv_rows) * rank.token_bytes
    kv_used = runs * L * rank.token_bytes // rank.dcp_size
    charged = int(pools.state_bytes) + int(pools.draft_reserve_bytes) + kv_pool
    return Memory(
        state_used=state_used,
        state_idle=int(pools.slots) * rank.slot_bytes - state_used,
        state_padding=rank.slot_bytes,
        draft_reserve=int(pools.draft_reserve_bytes),
        kv_used=kv_used,
        kv_idle=kv_pool - kv_used,
        unsplit=int(rank.rest_gib * GIB) - charged,
    )


def minimum_rest_gib(rank: Rank, ratio: float) -> float:
    """The least `rest` [GiB per rank] that admits one request by ratio: S + 1 + 2D slots of budget (section 5)."""
    least = (rank.S + 1 + 2 * rank.D) * rank.slot_bytes / GIB
    return float(least / (ratio / (1 + ratio)))


def _lever(scenario: Scenario, pin: int | None) -> str:
    """The flag that decides the slots of this split."""
    if pin is not None:
        return PIN
    return "--max-running-requests" if ratio_is_ignored(scenario) else "--mamba-full-memory-ratio"


def _refusal(rank: Rank, pools: Pools, ratio: float, lever: str) -> Refusal | None:
    """The first refusal the engine would meet, in its order and words (section 8)."""
    if pools.slots <= 0:
        words = (
            "Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
            f"max_mamba_cache_size={int(pools.slots)} (total_rest_memory={rank.rest_gib:.2f} GB, "
            f"mamba_cache_per_req={rank.slot_bytes / MIB:.2f} MB)."
        )
        return Refusal(kind="no_state_memory", engine_words=words, cure=_more_state(rank, ratio))
    if pools.kv_rest_bytes <= 0:
        words = "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static"
        return Refusal(kind="no_kv_memory", engine_words=words, cure=_fewer_slots(rank, pools, lever))
    if pools.kv_rows <= 0:
        words = "Not enough memory. Please try to increase --mem-fraction-static."
        return Refusal(kind="no_tokens", engine_words=words, cure=_more_tokens(rank, rank.page_size, lever))
    if pools.admitted <= 0:
        words = (
            "Hybrid (mamba/linear-attention) state cache is too small to serve any requests. "
            f"max_mamba_cache_size={int(pools.slots)}, mamba_ratio={rank.S}, resulting max_num_reqs=0."
        )
        return Refusal(kind="no_requests", engine_words=words, cure=_one_request(rank, pools, ratio, lever))
    return None


def _one_request(rank: Rank, pools: Pools, ratio: float, lever: str) -> str:
    if pools.clamp > 0:
        return _more_tokens(rank, TOKENS_PER_REQUEST, lever)
    return f"Pin at least {rank.S} slots." if lever == PIN else _more_state(rank, ratio)


def _more_state(rank: Rank, ratio: float) -> str:
    least = minimum_rest_gib(rank, ratio)
    if least > MAX_REST_GIB:
        return f"At r = {ratio:g} no memory is enough for one request: raise the ratio."
    or_ratio = ", or the ratio" if rank.rest_gib > minimum_rest_gib(rank, MAX_RATIO) else ""
    return (
        f"One request needs rest of at least {math.ceil(least * 1000) / 1000:.3f} GiB per rank at r = {ratio:g} "
        f"(now {rank.rest_gib:g} GiB): raise --mem-fraction-static{or_ratio}."
    )


def _more_tokens(rank: Rank, least: int, lever: str) -> str:
    if rank.max_total_tokens is not None and rank.max_total_tokens < least:
        return f"--max-total-tokens {rank.max_total_tokens} is less than the {least} tokens it takes: raise it."
    return f"KV gets less than the {least} tokens it takes: lower {lever}, or raise --mem-fraction-static."


def _fewer_slots(rank: Rank, pools: Pools, lever: str) -> str:
    drafts = " and draft states" if rank.D else ""
    return (
        f"{count(int(pools.slots) + 1)} slots (one is padding){drafts} "
        f"take {gib(float(pools.state_bytes + pools.draft_reserve_bytes))} of {rank.rest_gib:g} GiB rest: "
        f"lower {lever}, or raise --mem-fraction-static."
    )
