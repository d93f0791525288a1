"""One split solved for one deployment: the pools, what runs at L, what binds and where the memory goes."""

import math

from pydantic import BaseModel, ConfigDict

from sizing.basics.numeric import Numeric
from sizing.basics.problems import Refusal, RefusalKind
from sizing.basics.units import GIB, MIB, count, gib, rest_text
from sizing.engine.charges import minimum_rest_gib
from sizing.engine.kv import kv_cap, tokens_occupied, window_is_narrow
from sizing.engine.limits import Limit, limits
from sizing.engine.padding import slots_charged
from sizing.engine.pools import Pools, pools_from_slots
from sizing.engine.rank import beside_pin
from sizing.engine.resolved import Rank, Resolved, Window
from sizing.engine.slots import lever, pin_from_slots, ratio_is_ignored
from sizing.releases.flags import PIN, RATIO, REQUESTS
from sizing.scenario.inputs import MAX_RATIO, MAX_REST_GIB


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


def solve_split(rank: Rank, ratio: float, slots: Numeric, *, pinned: bool = False) -> Split | Refusal:
    """Solve the split of K = `slots` [slots per rank], which came from `ratio` [-] or a pin; or the refusal."""
    rank = beside_pin(rank) if pinned else rank
    pools, L = pools_from_slots(rank, slots), rank.scenario.L
    refusal = _refusal(rank, pools, ratio, lever(rank.resolved, pinned=pinned))
    if refusal:
        return refusal
    found = limits(rank, pools, pinned=pinned)
    return Split(
        ratio=None if pinned or ratio_is_ignored(rank.resolved) else ratio,
        slots=int(pools.slots),
        clamp=int(pools.clamp),
        kv_rest_bytes=int(pools.kv_rest_bytes),
        kv_rows=int(pools.kv_rows),
        kv_tokens=int(pools.kv_tokens),
        kv_cap=int(kv_cap(pools.kv_tokens, L)),
        kv_cap_whole_pages=int(pools.kv_tokens // tokens_occupied(rank, L)),
        admitted=int(pools.admitted),
        runs=found[0].requests,
        limits=found,
        window_rows=int(pools.window_rows),
        window_cap=None if pools.window_cap is None else int(pools.window_cap),
        crossing=int(pools.kv_tokens // pools.clamp),
        memory=_memory(rank, pools, found[0].requests),
    )


def _memory(rank: Rank, pools: Pools, runs: int) -> Memory:
    ring = rank.resolved.costs.ring_on_slot
    slot, slots, L = int(rank.slot_bytes) - ring, int(pools.slots), rank.scenario.L
    charged_slots = slots_charged(rank.rules, slots)
    state_used = rank.request_slots.slots(runs) * slot
    kv_pool = min(int(int(pools.kv_rows) * rank.token_bytes), int(pools.kv_rest_bytes))  # EAGLE's own rows are beyond
    kv_used = min(int(runs * L * rank.token_bytes // rank.dcp_size), kv_pool)
    charged = int(pools.charged_bytes) + kv_pool
    return Memory(
        state_used=state_used,
        state_idle=slots * slot - state_used,
        state_padding=(charged_slots - slots) * slot,
        rings=charged_slots * ring + int(rank.ring_fixed_bytes),
        draft_reserve=int(pools.draft_reserve_bytes),
        kv_used=kv_used,
        kv_idle=kv_pool - kv_used,
        unsplit=int(rank.rest_gib * GIB) - charged,
    )


def _refusal(rank: Rank, pools: Pools, ratio: float, by: str) -> Refusal | None:
    """The first refusal the engine would meet, in its order and words (section 8)."""
    if pools.slots <= 0:
        words = (
            "Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed "
            f"max_mamba_cache_size={int(pools.slots)} (total_rest_memory={rank.rest_gib:.2f} GB, "
            f"mamba_cache_per_req={rank.resolved.costs.slot / MIB:.2f} MB)."
        )
        return _unchecked(rank.resolved, "no_state_memory", words, _one_slot(rank, ratio, by))
    if pools.kv_rest_bytes <= 0 and rank.rules.refuses_without_kv:
        words = "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static"
        return Refusal(kind="no_kv_memory", engine_words=words, cure=_fewer_slots(rank, pools, by))
    if pools.kv_rows <= 0:
        words = "Not enough memory. Please try to increase --mem-fraction-static."
        too_much = pools.kv_rest_bytes <= 0
        cure = _fewer_slots(rank, pools, by) if too_much else _more_tokens(rank, rank.page_size, by)
        return Refusal(kind="no_tokens", engine_words=words, cure=cure)
    if rank.window is not None and window_is_narrow(rank, rank.window, pools.window_rows):
        return _narrow_window(rank, rank.window, int(pools.window_rows))
    if pools.admitted <= 0:
        words = (
            "Hybrid (mamba/linear-attention) state cache is too small to serve any requests. "
            f"max_mamba_cache_size={int(pools.slots)}, mamba_ratio={rank.S}, resulting max_num_reqs=0."
        )
        return _unchecked(rank.resolved, "no_requests", words, _one_request(rank, pools, ratio, by))
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


def _unchecked(resolved: Resolved, kind: RefusalKind, words: str, cure: str) -> Refusal:
    """A refusal that exists since 0.5.13; before, nothing is checked and the server fails later."""
    if resolved.rules.refuses_without_slots:
        return Refusal(kind=kind, engine_words=words, cure=cure)
    return Refusal(
        kind=kind, engine_words="", cure=f"SGLang {resolved.scenario.release} fails later, without a check. {cure}"
    )


def _one_slot(rank: Rank, ratio: float, by: str) -> str:
    return _more_state(rank, ratio) if by == RATIO else _divided(rank, by)


def _one_request(rank: Rank, pools: Pools, ratio: float, by: str) -> str:
    if rank.requests_asked is not None and rank.requests_asked <= 0:
        return _divided(rank, REQUESTS)
    if pools.clamp > 0:
        return _more_tokens(rank, rank.rules.tokens_per_request, by)
    if by == PIN:
        return f"Pin at least {pin_from_slots(rank.resolved, rank.resolved.request_slots.slots(1))} slots."
    return _more_state(rank, ratio)


def _divided(rank: Rank, flag: str) -> str:
    """A number that the attention-DP width leaves nothing of."""
    width = rank.scenario.attn_dp_size
    least = pin_from_slots(rank.resolved, rank.resolved.request_slots.slots(1)) if flag == PIN else width
    return f"{flag} is divided by attn_dp_size {width}: set at least {least}."


def _more_state(rank: Rank, ratio: float) -> str:
    least = minimum_rest_gib(rank, ratio)
    if least > MAX_REST_GIB:
        return f"At r = {ratio:g} no memory is enough for one request: raise the ratio."
    or_ratio = ", or the ratio" if rank.rest_gib > minimum_rest_gib(rank, MAX_RATIO) else ""
    return (
        f"One request needs rest of at least {math.ceil(least * 1000) / 1000:.3f} GiB per rank at r = {ratio:g} "
        f"(now {rest_text(float(rank.rest_gib))}): raise --mem-fraction-static{or_ratio}."
    )


def _more_tokens(rank: Rank, least: int, by: str) -> str:
    if rank.max_total_tokens is not None and rank.max_total_tokens < least:
        return f"--max-total-tokens {rank.max_total_tokens} is less than the {least} tokens it takes: raise it."
    return f"KV gets less than the {least} tokens it takes: lower {by}, or raise --mem-fraction-static."


def _fewer_slots(rank: Rank, pools: Pools, by: str) -> str:
    drafts = " and draft states" if rank.D else ""
    slots = int(pools.slots)
    charged = slots_charged(rank.rules, slots)
    return (
        f"{count(charged)} slots{' (one is padding)' if charged > slots else ''}{drafts} "
        f"take {gib(float(pools.state_bytes + pools.draft_reserve_bytes))} of {rest_text(float(rank.rest_gib))} rest: "
        f"lower {by}, or raise --mem-fraction-static."
    )
