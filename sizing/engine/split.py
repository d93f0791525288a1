"""One split solved for one deployment: the pools, what runs at L, what binds and where the memory goes."""

import math

from pydantic import BaseModel, ConfigDict

from sizing.basics.problems import Refusal, RefusalKind
from sizing.basics.units import GIB, MIB, count, gib, rest_text
from sizing.engine.limits import Limit, limits
from sizing.engine.pools import (
    TOKENS_PER_REQUEST,
    Pools,
    Rank,
    Window,
    beside_pin,
    is_pinned,
    kv_cap,
    pin_from_slots,
    pools_from_slots,
    ratio_is_ignored,
    ring_bytes_per_slot,
    slot_bytes,
    slots_from_pin,
    slots_from_ratio,
    slots_without_radix,
    tokens_occupied,
)
from sizing.engine.slots_per_request import slots_per_request
from sizing.releases.rules import rules_of
from sizing.scenario.inputs import MAX_RATIO, MAX_REST_GIB, Scenario

PIN = "--max-mamba-cache-size"


class Memory(BaseModel):
    """Where `rest` of one rank goes [bytes] with the requests that run at L. The pieces add up to `rest`."""

    model_config = ConfigDict(frozen=True)

    state_used: int
    state_idle: int
    state_padding: int
    rings: int
    """ReplaySSM rings that are charged: of every slot, or fixed."""
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
    window_rows: int = 0
    """Tokens of the sliding-window pool; 0 without one."""
    window_cap: int | None = None
    """How many requests' windows that pool holds; None without one."""
    crossing: int
    """The largest L [tokens] at which the KV cap still carries the whole clamp: the balance point of this split."""
    memory: Memory

    @property
    def binding(self) -> Limit:
        """The limit that decides what runs."""
        return self.limits[0]


def slots_set(scenario: Scenario, rank: Rank, ratio: float) -> int:
    """K [slots per rank] that this scenario's settings give: pin, else the request count where the radix cache is off,
    else the ratio (section 5)."""
    if is_pinned(scenario) and scenario.max_mamba_cache_size is not None:
        return slots_from_pin(scenario, scenario.max_mamba_cache_size)
    return slots_unpinned(scenario, rank, ratio)


def slots_unpinned(scenario: Scenario, rank: Rank, ratio: float) -> int:
    """K [slots per rank] without a pin."""
    if ratio_is_ignored(scenario):
        return slots_without_radix(scenario)
    return int(slots_from_ratio(rank, ratio))


def solve_split(scenario: Scenario, rank: Rank, ratio: float, slots: int, *, pinned: bool = False) -> Split | Refusal:
    """Solve the split of K = `slots` [slots per rank], which came from `ratio` [-] or a pin; or the refusal."""
    rank = beside_pin(rank) if pinned else rank
    pools = pools_from_slots(rank, slots)
    refusal = _refusal(scenario, rank, pools, ratio, _lever(scenario, pinned))
    if refusal:
        return refusal
    found = limits(scenario, rank, pools, pinned=pinned)
    return Split(
        ratio=None if pinned or ratio_is_ignored(scenario) else ratio,
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
        window_rows=int(pools.window_rows),
        window_cap=int(pools.window_cap) if rank.window else None,
        crossing=int(pools.kv_tokens // pools.clamp),
        memory=_memory(scenario, rank, pools, found[0].requests),
    )


def _memory(scenario: Scenario, rank: Rank, pools: Pools, runs: int) -> Memory:
    ring = ring_bytes_per_slot(scenario)
    slot, slots, L = int(rank.slot_bytes) - ring, int(pools.slots), scenario.L
    padding = 1 if rank.rules.charges_padding else 0
    state_used = runs * rank.S * slot
    kv_pool = min(int(int(pools.kv_rows) * rank.token_bytes), int(pools.kv_rest_bytes))  # EAGLE's own rows are beyond
    kv_used = min(int(runs * L * rank.token_bytes // rank.dcp_size), kv_pool)
    charged = int(pools.state_bytes) + int(pools.draft_reserve_bytes) + kv_pool
    return Memory(
        state_used=state_used,
        state_idle=slots * slot - state_used,
        state_padding=padding * slot,
        rings=(slots + padding) * ring + int(rank.ring_fixed_bytes),
        draft_reserve=int(pools.draft_reserve_bytes),
        kv_used=kv_used,
        kv_idle=kv_pool - kv_used,
        unsplit=int(rank.rest_gib * GIB) - charged,
    )


def minimum_rest_gib(rank: Rank, ratio: float) -> float:
    """The least `rest` [GiB per rank] that admits one request by ratio (section 5; releases.py where it differs)."""
    share = ratio / (1 + ratio)
    if rank.rules.drafts == "in every slot":
        return float(rank.S * rank.slots_divisor * (1 + rank.D) * rank.slot_bytes / GIB / share)
    if rank.rules.drafts == "before the split":
        return float((rank.S / share + rank.requests_charged * rank.D) * rank.slot_bytes / GIB)
    padding = 1 + rank.D if rank.rules.charges_padding else 0
    least = (rank.S + rank.D + padding) * rank.slot_bytes + rank.ring_fixed_bytes
    return float(least / GIB / share)


def _lever(scenario: Scenario, pinned: bool) -> str:
    """The flag that decides the slots of this split."""
    if pinned:
        return PIN
    return "--max-running-requests" if ratio_is_ignored(scenario) else "--mamba-full-memory-ratio"


def _refusal(scenario: Scenario, rank: Rank, pools: Pools, ratio: float, lever: str) -> Refusal | None:
    """The first refusal the engine would meet, in its order and words (section 8)."""
    if pools.slots <= 0:
        words = (
            "Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
            f"max_mamba_cache_size={int(pools.slots)} (total_rest_memory={rank.rest_gib:.2f} GB, "
            f"mamba_cache_per_req={slot_bytes(scenario) / MIB:.2f} MB)."
        )
        return _unchecked(scenario, "no_state_memory", words, _one_slot(scenario, rank, ratio, lever))
    if pools.kv_rest_bytes <= 0 and rank.rules.refuses_without_kv:
        words = "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static"
        return Refusal(kind="no_kv_memory", engine_words=words, cure=_fewer_slots(rank, pools, lever))
    if pools.kv_rows <= 0:
        words = "Not enough memory. Please try to increase --mem-fraction-static."
        too_much = pools.kv_rest_bytes <= 0
        cure = _fewer_slots(rank, pools, lever) if too_much else _more_tokens(rank, rank.page_size, lever)
        return Refusal(kind="no_tokens", engine_words=words, cure=cure)
    if rank.window is not None and pools.window_rows <= rank.window.tokens + rank.page_size:
        return _narrow_window(rank, rank.window, int(pools.window_rows))
    if pools.admitted <= 0:
        words = (
            "Hybrid (mamba/linear-attention) state cache is too small to serve any requests. "
            f"max_mamba_cache_size={int(pools.slots)}, mamba_ratio={rank.S}, resulting max_num_reqs=0."
        )
        return _unchecked(scenario, "no_requests", words, _one_request(scenario, rank, pools, ratio, lever))
    return None


def _narrow_window(rank: Rank, window: Window, rows: int) -> Refusal:
    """A window pool that no request fits (`validate_swa_pool_size`)."""
    words = (
        f"SWA pool ({rows} tokens) cannot hold even one request: the prefill admission floor is sliding_window_size "
        f"({window.tokens}) + page_size ({rank.page_size})."
    )
    cure = (
        "Raise --swa-full-tokens-ratio, or leave KV more memory: a smaller state pool, a larger --mem-fraction-static."
    )
    return Refusal(kind="no_tokens", engine_words=words, cure=cure)


def _unchecked(scenario: Scenario, kind: RefusalKind, words: str, cure: str) -> Refusal:
    """A refusal that exists since 0.5.13; before, nothing is checked and the server fails later."""
    if rules_of(scenario.release).refuses_without_slots:
        return Refusal(kind=kind, engine_words=words, cure=cure)
    return Refusal(kind=kind, engine_words="", cure=f"SGLang {scenario.release} fails later, without a check. {cure}")


def _one_slot(scenario: Scenario, rank: Rank, ratio: float, lever: str) -> str:
    if lever == "--mamba-full-memory-ratio":
        return _more_state(rank, ratio)
    return _divided(scenario, lever)


def _one_request(scenario: Scenario, rank: Rank, pools: Pools, ratio: float, lever: str) -> str:
    if rank.requests_asked is not None and rank.requests_asked <= 0:
        return _divided(scenario, "--max-running-requests")
    if pools.clamp > 0:
        return _more_tokens(rank, TOKENS_PER_REQUEST, lever)
    if lever == PIN:
        return f"Pin at least {pin_from_slots(scenario, rank.S)} slots."
    return _more_state(rank, ratio)


def _divided(scenario: Scenario, flag: str) -> str:
    """A number that the attention-DP width leaves nothing of."""
    least = pin_from_slots(scenario, slots_per_request(scenario)) if flag == PIN else scenario.attn_dp_size
    return f"{flag} is divided by attn_dp_size {scenario.attn_dp_size}: set at least {least}."


def _more_state(rank: Rank, ratio: float) -> str:
    least = minimum_rest_gib(rank, ratio)
    if least > MAX_REST_GIB:
        return f"At r = {ratio:g} no memory is enough for one request: raise the ratio."
    or_ratio = ", or the ratio" if rank.rest_gib > minimum_rest_gib(rank, MAX_RATIO) else ""
    return (
        f"One request needs rest of at least {math.ceil(least * 1000) / 1000:.3f} GiB per rank at r = {ratio:g} "
        f"(now {rest_text(float(rank.rest_gib))}): raise --mem-fraction-static{or_ratio}."
    )


def _more_tokens(rank: Rank, least: int, lever: str) -> str:
    if rank.max_total_tokens is not None and rank.max_total_tokens < least:
        return f"--max-total-tokens {rank.max_total_tokens} is less than the {least} tokens it takes: raise it."
    return f"KV gets less than the {least} tokens it takes: lower {lever}, or raise --mem-fraction-static."


def _fewer_slots(rank: Rank, pools: Pools, lever: str) -> str:
    drafts = " and draft states" if rank.D else ""
    padding = 1 if rank.rules.charges_padding else 0
    return (
        f"{count(int(pools.slots) + padding)} slots{' (one is padding)' if padding else ''}{drafts} "
        f"take {gib(float(pools.state_bytes + pools.draft_reserve_bytes))} of {rest_text(float(rank.rest_gib))} rest: "
        f"lower {lever}, or raise --mem-fraction-static."
    )
