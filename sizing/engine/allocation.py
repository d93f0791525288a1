"""What the engine allocates beside what it charges `rest` for; any excess comes out of the reserve that
--mem-fraction-static leaves.

Source: engine-sizing.md sections 2, 3, 5 ("charged at the whole per", "Uncharged"), 6 (the draft pool), 10 (PD) and 11.
"""

from pydantic import BaseModel, ConfigDict

from sizing.engine.draft_rules import drafts_of
from sizing.engine.padding import slots_charged, with_padding
from sizing.engine.resolved import BUFFERED, Rank, Resolved
from sizing.engine.split import Split


class Allocation(BaseModel):
    """One thing in GPU memory [bytes per rank]."""

    model_config = ConfigDict(frozen=True)

    what: str
    charged: int
    allocated: int | None
    """None where it is not known."""


SLOTS = "state slots and the padding slot"


class DecodePool(BaseModel):
    """Rows and slots that a PD decode server allocates after sizing; what is beyond K is not charged (section 10)."""

    model_config = ConfigDict(frozen=True)

    extra_rows: int
    """Rows for requests in transfer [requests per rank]."""
    rows: int
    """All rows [requests per rank]: those that may run, and the extra ones."""
    slots: int
    """State slots that are allocated, without the padding slot; the log prints these."""
    slots_charged: int
    draft_rows: int | None
    """Requests whose draft states are allocated; 0 without speculation, None where every slot has its own."""


EXTRA_ROWS, EXTRA_ROWS_UP_TO = 2, 32  # section 10: twice the requests where they are at most 32, else none


def decode_pool(rank: Rank, split: Split) -> DecodePool | None:
    """The rows and slots of a PD decode server; None on any other server."""
    if rank.scenario.disaggregation_mode != "decode":
        return None
    extra = _extra_rows(rank, split)
    rows = split.admitted + extra
    slots = {
        "rows": rows,
        "K and extra": split.slots + extra,
        "least of K and rows": min(split.slots, rows),
        "most of K and what rows need": max(split.slots, rows * (1 + _tracked(rank.resolved))),
    }[rank.rules.decode_slots]
    every_slot = drafts_of(rank.rules).in_every_slot
    return DecodePool(
        extra_rows=extra,
        rows=rows,
        slots=slots,
        slots_charged=split.slots,
        draft_rows=0 if not rank.scenario.D else None if every_slot else rows,
    )


def _extra_rows(rank: Rank, split: Split) -> int:
    scenario = rank.scenario
    if not rank.rules.decode_extra_flag:
        return EXTRA_ROWS * split.admitted if split.admitted <= EXTRA_ROWS_UP_TO else 0
    if scenario.disaggregation_decode_extra_slots is not None:
        return scenario.disaggregation_decode_extra_slots
    if scenario.max_running_requests is None:
        return 0
    asked = max(rank.rules.least_requests, scenario.max_running_requests // scenario.attn_dp_size)
    return EXTRA_ROWS * asked if asked <= EXTRA_ROWS_UP_TO else 0


def _tracked(found: Resolved) -> int:
    """Track slots of a row: with the radix cache on and an extra buffer two, or one without overlap."""
    buffers = found.radix_cache and found.strategy in BUFFERED
    return (2 if found.overlap else 1) if buffers else 0


def allocations(rank: Rank, split: Split) -> tuple[Allocation, ...]:
    """Everything that a solved split puts into memory on one rank; what takes no bytes is left out."""
    rows = (_slots(rank, split), _drafts(rank, split), _windows(rank, split))
    sides = _side_states(rank, split)
    found = (*rows, _rings(rank, split), sides, _kv(rank, split), _draft_kv(rank, split))
    return tuple(row for row in found if row.charged or row.allocated != 0)


def beyond(found: tuple[Allocation, ...]) -> int | None:
    """How much more is allocated than charged [bytes per rank], at least 0; None where a part is not known."""
    if any(row.allocated is None for row in found):
        return None
    return max(sum((row.allocated or 0) - row.charged for row in found), 0)


def _slots(rank: Rank, split: Split) -> Allocation:
    costs = rank.resolved.costs
    return Allocation(
        what=SLOTS,
        charged=slots_charged(rank.rules, split.slots) * costs.charged_slot,
        allocated=with_padding(_slots_allocated(rank, split)) * costs.slot,
    )


def _slots_allocated(rank: Rank, split: Split) -> int:
    decode = decode_pool(rank, split)
    return decode.slots if decode else split.slots


def _rows(rank: Rank, split: Split) -> int:
    """Requests that have a row: those that may run, and on a PD decode server those in transfer."""
    decode = decode_pool(rank, split)
    return decode.rows if decode else split.admitted


def _drafts(rank: Rank, split: Split) -> Allocation:
    """Draft states of the running requests and one more; up to 0.5.6 of every slot and one more."""
    every_slot = drafts_of(rank.rules).in_every_slot
    held = with_padding(_slots_allocated(rank, split) if every_slot else _rows(rank, split))
    window, D = _window_bytes(rank.resolved), int(rank.D)
    return Allocation(
        what="draft states",
        charged=split.memory.draft_reserve,
        allocated=None if window is None and D else held * (D * rank.resolved.costs.ssm + (window or 0)) if D else 0,
    )


def _windows(rank: Rank, split: Split) -> Allocation:
    """Under ReplaySSM the conv windows of the drafts stay, uncharged."""
    replays = rank.resolved.costs.replays_drafts
    window = _window_bytes(rank.resolved) if replays else 0
    kept = replays and rank.scenario.D > 0 and split.memory.draft_reserve == 0
    return Allocation(
        what="conv windows of drafts",
        charged=0,
        allocated=None if window is None else with_padding(_rows(rank, split)) * window if kept else 0,
    )


def _window_bytes(resolved: Resolved) -> int | None:
    """Conv windows of one request's drafts [bytes]: D whole ones for KDA, else D + kernel - 2 columns (topk 1)."""
    scenario, conv = resolved.scenario, resolved.costs.conv
    windows = resolved.rules.draft_windows
    if scenario.conv_bytes_per_slot is None:
        return None
    if scenario.family == "KDA" or windows == "whole":
        return scenario.D * conv
    if windows == "not known":
        return None
    columns = scenario.conv_kernel - 1
    return conv // columns * (scenario.D + columns - 1) if scenario.D else 0


def _rings(rank: Rank, split: Split) -> Allocation:
    """Rings of ReplaySSM; those of the decode kind, and of 0.5.16, are not charged."""
    if split.memory.rings:
        return Allocation(what="ReplaySSM rings", charged=split.memory.rings, allocated=split.memory.rings)
    costs = rank.resolved.costs
    if rank.scenario.replayssm == "decode":
        allocated: int | None = with_padding(_slots_allocated(rank, split)) * costs.ring
    else:
        allocated = None if costs.ring and not costs.ring_on_slot else 0
    return Allocation(what="ReplaySSM rings", charged=0, allocated=allocated)


def _side_states(rank: Rank, split: Split) -> Allocation:
    """Qwen4-Exp's states beside the pool: of every slot, and of each row's drafts (`ShortConvPool`)."""
    holders = with_padding(_slots_allocated(rank, split)) + with_padding(_rows(rank, split)) * rank.scenario.D
    return Allocation(what="side states", charged=0, allocated=holders * rank.resolved.costs.side)


def _kv(rank: Rank, split: Split) -> Allocation:
    costs, page = rank.resolved.costs, rank.page_size
    charged = min(int(split.kv_rows * costs.cell), split.kv_rest_bytes) - split.kv_rows * costs.draft_charged
    row = round(costs.cell - costs.draft_charged - costs.window_share * costs.window)
    windows = (split.window_rows + page) * costs.window
    return Allocation(
        what="KV pool and its padding page",
        charged=charged,
        allocated=(split.kv_rows + page) * row + windows,
    )


def _draft_kv(rank: Rank, split: Split) -> Allocation:
    """The draft model's pool is replicated: under DCP it has dcp_size times the rows of one rank."""
    costs, spans = rank.resolved.costs, rank.dcp_size if rank.rules.draft_pool_spans_dcp else 1
    return Allocation(
        what="draft KV pool and its padding page",
        charged=split.kv_rows * costs.draft_charged,
        allocated=(split.kv_rows * spans + rank.page_size) * costs.draft_row,
    )
