"""Unified memory (`--enable-unified-memory`): one buffer for both pools, and what runs in it beside the static split.

Source: running-server.md 2.2 and 2.3, engine-sizing.md section 13. Refusals, K, label, requests and the configured
total were executed on 0.5.15 to 0.5.23; the buffer, its entries, what fits and what runs rest on reading.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.search import last_that_holds
from sizing.basics.units import count, gib, ratio_range_text, ratio_text, requests_text
from sizing.engine.charges import slots_from_ratio
from sizing.engine.pools import Pools, pools_from_slots
from sizing.engine.rank import rank_of
from sizing.engine.request_slots import CLAMP_FORMULA
from sizing.engine.resolve import resolution, resolve
from sizing.engine.resolved import BUFFERED, Rank
from sizing.engine.slots import ratios_around
from sizing.engine.split import Split
from sizing.releases.rules import Release, at_least
from sizing.scenario.inputs import MAX_RATIO, Scenario

Integers = int | NDArray[np.int64]

BYTES_SINCE: Release = "0.5.19"  # the buffer is what is left in bytes, not in whole tokens
FUSED_SINCE: Release = "0.5.22"  # a draft's KV is part of an entry
TOTAL_STEP = 4096  # `unified_total_bytes` is rounded down to it
ENTRY_STEP, HOST_STEP = 32, 16  # a KV entry, and the target's part of a fused one
NEAR = 8  # requests above the balance that are tried one by one
LEAST_STATES = 3  # of one request, in the boot check
FUSED = ("EAGLE", "EAGLE3", "NEXTN", "DFLASH")  # NEXTN is EAGLE to the engine
RESTS_ON_READING = "What runs under unified memory rests on reading the engine, not on a run."


class Unified(BaseModel):
    """One deployment under unified memory. Bytes, slots and rows are per rank, requests per attention-DP rank."""

    model_config = ConfigDict(frozen=True)

    slots: int
    """K of the static solve, which still limits request rows."""
    clamp: int
    """K // S."""
    admitted: int
    """max_running_requests."""
    label: int
    """max_total_num_tokens, logical [tokens]: bounds the longest request, not what the buffer holds."""
    longest_request: int
    """Input and output together [tokens]."""
    held: int
    """State slots that one running request really holds, S less the peak between prefill and decode."""
    config_total_bytes: int | None
    """`unified_total_bytes`; None before 0.5.19, and where a token cap lowered the tokens."""
    total_bytes: int
    """The buffer."""
    state_entry_bytes: int
    kv_entry_bytes: int
    floor_bytes: int
    """Reserved at the low end."""
    page_size: int
    """[tokens per rank]"""
    in_buffer: int
    """How many requests of L the buffer holds."""
    in_buffer_whole_pages: int
    """The same where each occupies whole pages."""
    runs: int
    """min(admitted, in_buffer)."""
    refusal: Refusal | None
    """The engine's check at boot."""

    def fits(self, states: int, pages: int) -> bool:
        """Whether so many states and KV pages are in the buffer together (2.2, 7)."""
        page_bytes = self.page_size * self.kv_entry_bytes
        reserved = -(-self.floor_bytes // self.state_entry_bytes)
        whole = self.total_bytes // self.kv_entry_bytes // self.page_size
        return (reserved + states) * self.state_entry_bytes + pages * page_bytes <= whole * page_bytes


class UnifiedBest(NamedTuple):
    """The ratio to set under unified memory: the lowest that gives a row to every request that the buffer holds."""

    ratio: float
    runs: int
    label: int


def held_slots(scenario: Scenario) -> int:
    """State slots that a running request holds while it decodes [slots]: 1 active, those that track, and the state of
    its last tree node, which is locked unless SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK is set (2.3). Raises RefusedError.

    >>> held_slots(Scenario()), held_slots(Scenario(disable_radix_cache=True))
    (4, 1)
    """
    resolved = resolve(scenario)
    if not resolved.radix_cache:
        return 1
    if resolved.strategy in BUFFERED:
        return resolved.S - 1
    return 1 if scenario.skip_decode_lock and resolved.rules.reads_skip_decode_lock else 2


def unified(scenario: Scenario, slots: int) -> Unified:
    """A scenario under unified memory, with the K [slots per rank] of its static split, which must boot.

    The flag itself need not be set. Raises RefusedError like `rank_of`, and for a model with a sliding window.
    """
    rank = _without_window(_unified_rank(scenario))
    pools, held = pools_from_slots(rank, slots), held_slots(scenario)
    state, entry = resolution(scenario).costs.slot, _entry(scenario)
    config_total = _config_total(scenario, rank, pools)
    kv_bytes = int(pools.kv_rows) * entry if config_total is None else config_total
    total, floor = kv_bytes + slots * state, max(state, entry, int(rank.page_size) * entry)
    page = int(rank.logical_page)
    label = int(pools.kv_tokens)
    in_buffer = int(_holds(total - floor, held * state, entry, scenario.dcp_size, scenario.L))
    return Unified(
        slots=slots,
        clamp=int(pools.clamp),
        admitted=int(pools.admitted),
        label=label,
        longest_request=max(min(scenario.context_length, label) - 1, 0),
        held=held,
        config_total_bytes=config_total,
        total_bytes=total,
        state_entry_bytes=state,
        kv_entry_bytes=entry,
        floor_bytes=floor,
        page_size=int(rank.page_size),
        in_buffer=in_buffer,
        in_buffer_whole_pages=int(
            _holds(total - floor, held * state, entry, scenario.dcp_size, -(-scenario.L // page) * page)
        ),
        runs=min(int(pools.admitted), in_buffer),
        refusal=_check(scenario, total, state, floor),
    )


def runs_of(found: Unified, dcp_size: int, L: Integers) -> Any:
    """What runs at one or many L [tokens]: none where L is longer than max_total_num_tokens, which bounds a request."""
    states = found.held * found.state_entry_bytes
    in_buffer = _holds(found.total_bytes - found.floor_bytes, states, found.kv_entry_bytes, dcp_size, L)
    return np.minimum(in_buffer, found.admitted) * (np.asarray(L) <= found.label)


def runs_over_slots(scenario: Scenario, slots: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same at the scenario's L for many K [slots per rank]; 0 where it does not start. Raises like `unified`."""
    rank = _without_window(_unified_rank(scenario))
    state, entry, held = resolution(scenario).costs.slot, _entry(scenario), held_slots(scenario)
    pools = pools_from_slots(rank, slots)
    kv_bytes = np.asarray(pools.kv_rows) * entry
    if at_least(scenario.release, BYTES_SINCE):
        uncapped = pools_from_slots(rank._replace(max_total_tokens=None), slots)
        whole = np.asarray(pools.kv_rest_bytes).astype(np.int64) // TOTAL_STEP * TOTAL_STEP
        kv_bytes = np.where(np.asarray(pools.kv_rows) < np.asarray(uncapped.kv_rows), kv_bytes, whole)
    floor = max(state, entry, int(rank.page_size) * entry)
    total = kv_bytes + slots * state
    in_buffer = _holds(np.maximum(total - floor, 0), held * state, entry, scenario.dcp_size, scenario.L)
    starts = (np.asarray(pools.kv_rows) > 0) & (np.asarray(pools.admitted) > 0)
    if at_least(scenario.release, BYTES_SINCE):
        starts &= total >= LEAST_STATES * state + floor
    runs = np.minimum(in_buffer, pools.admitted) * (np.asarray(pools.kv_tokens) >= scenario.L) * starts
    return np.asarray(runs, dtype=np.int64)


def best_unified(scenario: Scenario) -> UnifiedBest | None:
    """The ratio [-] that runs most at L under unified memory, where rows and buffer meet; None where none boots.

    A higher one only shortens the longest request. Before 0.5.19, and under --max-total-tokens, where the buffer is
    made of whole tokens and of K, another ratio may run a little more. Raises RefusedError like `rank_of`.
    """
    rank = rank_of(scenario)
    high = rank.request_slots.requests(int(slots_from_ratio(rank, MAX_RATIO)))
    low = last_that_holds(1, high, lambda requests: _carries(scenario, rank, requests))
    # Whole pages make the buffer a little larger for some slots than for fewer.
    low += max((more for more in range(NEAR) if _carries(scenario, rank, low + more)), default=0)
    if not low:
        return None
    typed = ratio_range_text(ratios_around(rank, rank.request_slots.slots(low))[1], None)  # rounded up to five digits
    ratio = float(typed.removesuffix(" or more"))
    found = unified(scenario, int(slots_from_ratio(rank, ratio)))
    return UnifiedBest(ratio, found.runs, found.label)


def in_words(scenario: Scenario, split: Split, elsewhere: str = "") -> tuple[str, ...]:
    """Static beside unified in sentences: whether it helps, why, which ratio to set, and what this rests on.

    `elsewhere` is what the static split runs at its best, as the end of a clause, where that is more. Raises
    RefusedError like `unified`.
    """
    found, S = unified(scenario, split.slots), resolve(scenario).S
    if found.refusal:
        return (found.refusal.sentence, RESTS_ON_READING)
    static, L = requests_text(split.runs), count(scenario.L)
    if found.label < scenario.L:
        first = (
            f"No request of L = {L} is taken under unified memory either: max_total_num_tokens, {count(found.label)}, "
            "bounds the longest. A lower ratio raises it."
        )
    elif found.runs > split.runs:
        first = (
            f"Unified memory runs {requests_text(found.runs)} at L = {L}; the static split {count(split.runs)} as set"
            f"{elsewhere}. KV binds the static split as set; a running request holds {found.held} of the {S} slots "
            "reserved for it, and the others become KV."
        )
    elif split.clamp == split.runs:
        first = (
            f"Unified memory does not help here: {CLAMP_FORMULA} = {count(split.clamp)} limits the request rows in "
            f"both, {static} at L = {L} either way. A higher ratio lifts it."
        )
    else:
        first = f"Unified memory does not help here: {requests_text(found.runs)} at L = {L}, static {static}."
    return (first, *_ratio_words(scenario, found), *_warnings(scenario), RESTS_ON_READING)


def _ratio_words(scenario: Scenario, now: Unified) -> tuple[str, ...]:
    best = best_unified(scenario)
    if best is None or best.runs <= now.runs:
        return ()
    return (
        f"Under it --mamba-full-memory-ratio {ratio_text(best.ratio)} runs {count(best.runs)}; the longest request is "
        f"then {count(max(min(scenario.context_length, best.label) - 1, 0))} tokens, as a higher ratio shortens "
        "max_total_num_tokens.",
    )


def _warnings(scenario: Scenario) -> tuple[str, ...]:
    if scenario.replayssm == "off":
        return ()
    return (
        "ReplaySSM with it: the sizing drops the draft states, but the unified pool builds no ring and allocates them "
        "all, out of the slack.",
    )


def _check(scenario: Scenario, total: int, state: int, floor: int) -> Refusal | None:
    """Since 0.5.19: three states and the reserved low end must be in the buffer."""
    least = LEAST_STATES * state + floor
    if not at_least(scenario.release, BYTES_SINCE) or total >= least:
        return None
    words = "cannot fit ONE worst-case request (bs=1 floor"
    cure = f"The buffer of {gib(total)} must hold {gib(least)}: raise --mem-fraction-static."
    return Refusal(kind="no_kv_memory", engine_words=words, cure=cure)


def _is_fused(scenario: Scenario) -> bool:
    """Whether a token's entry holds the draft's KV as well."""
    return scenario.D > 0 and scenario.speculative_algorithm in FUSED and at_least(scenario.release, FUSED_SINCE)


def _entry(scenario: Scenario) -> int:
    """KV bytes of one token in the buffer [bytes per rank]."""
    costs = resolution(scenario).costs
    row = costs.target_token
    return _aligned(_aligned(row, HOST_STEP) + costs.draft_row if _is_fused(scenario) else row, ENTRY_STEP)


def _aligned(size: int, step: int) -> int:
    return -(-size // step) * step


def _unified_rank(scenario: Scenario) -> Rank:
    """The static solve's rank; a fused entry is also what the tokens are divided by."""
    rank = rank_of(scenario)
    return rank._replace(token_bytes=_entry(scenario)) if _is_fused(scenario) else rank


def _without_window(rank: Rank) -> Rank:
    """The rank, of a model without a sliding window."""
    if rank.window is not None:
        cure = "With a sliding window the buffer has a third part, whose rules are not known: nothing is computed."
        raise RefusedError(Refusal(kind="not_served", engine_words="", cure=cure))
    return rank


def _config_total(scenario: Scenario, rank: Rank, pools: Pools) -> int | None:
    if not at_least(scenario.release, BYTES_SINCE):
        return None
    uncapped = pools_from_slots(rank._replace(max_total_tokens=None), pools.slots)
    lowered = int(pools.kv_rows) < int(uncapped.kv_rows)
    return None if lowered else int(pools.kv_rest_bytes) // TOTAL_STEP * TOTAL_STEP


def _holds(available: Integers, states: int, entry: int, dcp_size: int, L: Integers) -> Any:
    """floor(available / (states + L x entry / dcp_size)), in whole numbers, for one or many L [tokens]."""
    return np.maximum(available, 0) * dcp_size // (states * dcp_size + L * entry)


def _carries(scenario: Scenario, rank: Rank, requests: int) -> bool:
    slots = rank.request_slots.slots(requests)
    pools = pools_from_slots(_unified_rank(scenario), slots)
    if pools.kv_rows <= 0 or pools.kv_tokens < scenario.L or pools.admitted < requests:
        return False
    found = unified(scenario, slots)
    return found.refusal is None and found.runs >= requests
