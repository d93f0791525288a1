"""What the engine allocates beside what it charges `rest` for; where it allocates more, the slack pays.

Source: engine-sizing.md sections 2, 3, 5 ("charged at the whole per", "Uncharged"), 6 (the draft pool), 10 (PD) and 11.
"""

from pydantic import BaseModel, ConfigDict

from sizing.engine.pools import (
    Rank,
    cell_bytes,
    charged_slot_bytes,
    conv_bytes,
    draft_charged_bytes,
    draft_row_bytes,
    replays_drafts,
    ring_bytes,
    ring_bytes_per_slot,
    slot_bytes,
    ssm_bytes,
    window_bytes,
    window_share,
)
from sizing.engine.slots_per_request import page_size_of, resolve
from sizing.engine.split import Split
from sizing.releases.rules import RELEASES
from sizing.scenario.inputs import Scenario

# The conv windows of drafts are whole in the 0.5.8 boot log and deduplicated in that of 0.5.15; the release that
# changed it was not read.
DENSE_UNTIL, DEDUPLICATED_SINCE = RELEASES.index("0.5.8"), RELEASES.index("0.5.15")


class Allocation(BaseModel):
    """One thing in GPU memory [bytes per rank]."""

    model_config = ConfigDict(frozen=True)

    what: str
    charged: int
    allocated: int | None
    """None where it is not known."""


SLOTS = "state slots and the padding slot"


class DecodePool(BaseModel):
    """What a PD decode server makes of a solved split, after the sizing and charged to nobody (section 10)."""

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


def decode_pool(scenario: Scenario, rank: Rank, split: Split) -> DecodePool | None:
    """The rows and slots of a PD decode server; None on any other server."""
    if scenario.disaggregation_mode != "decode":
        return None
    extra = _extra_rows(scenario, rank, split)
    rows = split.admitted + extra
    slots = {
        "rows": rows,
        "K and extra": split.slots + extra,
        "least of K and rows": min(split.slots, rows),
        "most of K and what rows need": max(split.slots, rows * (1 + _tracked(scenario))),
    }[rank.rules.decode_slots]
    every_slot = rank.rules.drafts == "in every slot"
    return DecodePool(
        extra_rows=extra,
        rows=rows,
        slots=slots,
        slots_charged=split.slots,
        draft_rows=0 if not scenario.D else None if every_slot else rows,
    )


def _extra_rows(scenario: Scenario, rank: Rank, split: Split) -> int:
    if not rank.rules.decode_extra_flag:
        return EXTRA_ROWS * split.admitted if split.admitted <= EXTRA_ROWS_UP_TO else 0
    if scenario.disaggregation_decode_extra_slots is not None:
        return scenario.disaggregation_decode_extra_slots
    if scenario.max_running_requests is None:
        return 0
    asked = max(int(rank.rules.one_request_at_least), scenario.max_running_requests // scenario.attn_dp_size)
    return EXTRA_ROWS * asked if asked <= EXTRA_ROWS_UP_TO else 0


def _tracked(scenario: Scenario) -> int:
    """Track slots of a row: with the radix cache on and an extra buffer two, or one without overlap."""
    found = resolve(scenario)
    buffers = found.radix_cache and found.strategy in ("extra_buffer", "extra_buffer_lazy")
    return (2 if found.overlap else 1) if buffers else 0


def allocations(scenario: Scenario, rank: Rank, split: Split) -> tuple[Allocation, ...]:
    """Everything that a solved split puts into memory on one rank, where it is not nothing."""
    rows = (_slots(scenario, rank, split), _drafts(scenario, rank, split), _windows(scenario, rank, split))
    sides = _side_states(scenario, rank, split)
    found = (*rows, _rings(scenario, rank, split), sides, _kv(scenario, split), _draft_kv(scenario, rank, split))
    return tuple(row for row in found if row.charged or row.allocated != 0)


def beyond(found: tuple[Allocation, ...]) -> int | None:
    """How much more is allocated than charged [bytes per rank], at least 0; None where a part is not known."""
    if any(row.allocated is None for row in found):
        return None
    return max(sum((row.allocated or 0) - row.charged for row in found), 0)


def _slots(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    padding = 1 if rank.rules.charges_padding else 0
    return Allocation(
        what=SLOTS,
        charged=(split.slots + padding) * charged_slot_bytes(scenario),
        allocated=(_slots_allocated(scenario, rank, split) + 1) * slot_bytes(scenario),
    )


def _slots_allocated(scenario: Scenario, rank: Rank, split: Split) -> int:
    decode = decode_pool(scenario, rank, split)
    return decode.slots if decode else split.slots


def _rows(scenario: Scenario, rank: Rank, split: Split) -> int:
    """Requests that have a row: those that may run, and on a PD decode server those in transfer."""
    decode = decode_pool(scenario, rank, split)
    return decode.rows if decode else split.admitted


def _drafts(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    """Draft states of the running requests and one more; up to 0.5.6 of every slot and one more."""
    every_slot = rank.rules.drafts == "in every slot"
    held = (_slots_allocated(scenario, rank, split) if every_slot else _rows(scenario, rank, split)) + 1
    window = _window_bytes(scenario)
    return Allocation(
        what="draft states",
        charged=split.memory.draft_reserve,
        allocated=None
        if window is None and rank.D
        else held * (rank.D * ssm_bytes(scenario) + (window or 0))
        if rank.D
        else 0,
    )


def _windows(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    """Under ReplaySSM the conv windows of the drafts stay, uncharged."""
    window = _window_bytes(scenario) if replays_drafts(scenario) else 0
    kept = replays_drafts(scenario) and scenario.D > 0 and split.memory.draft_reserve == 0
    return Allocation(
        what="conv windows of drafts",
        charged=0,
        allocated=None if window is None else (_rows(scenario, rank, split) + 1) * window if kept else 0,
    )


def _window_bytes(scenario: Scenario) -> int | None:
    """Conv windows of one request's drafts [bytes]: D whole ones for KDA, else D + kernel - 2 columns (topk 1)."""
    release = RELEASES.index(scenario.release)
    if scenario.conv_bytes_per_slot is None:
        return None
    if scenario.family == "KDA" or release <= DENSE_UNTIL:
        return scenario.D * conv_bytes(scenario)
    if release < DEDUPLICATED_SINCE:
        return None
    columns = scenario.conv_kernel - 1
    return conv_bytes(scenario) // columns * (scenario.D + columns - 1) if scenario.D else 0


def _rings(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    """Rings of ReplaySSM; those of the decode kind, and of 0.5.16, are not charged."""
    if split.memory.rings:
        return Allocation(what="ReplaySSM rings", charged=split.memory.rings, allocated=split.memory.rings)
    if scenario.replayssm == "decode":
        allocated: int | None = (_slots_allocated(scenario, rank, split) + 1) * ring_bytes(scenario)
    else:
        allocated = None if ring_bytes(scenario) and not ring_bytes_per_slot(scenario) else 0
    return Allocation(what="ReplaySSM rings", charged=0, allocated=allocated)


def _side_states(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    """Qwen4-Exp's states beside the pool: of every slot, and of each row's drafts (`ShortConvPool`)."""
    holders = _slots_allocated(scenario, rank, split) + 1 + (_rows(scenario, rank, split) + 1) * scenario.D
    return Allocation(what="side states", charged=0, allocated=holders * scenario.side_bytes_per_slot)


def _kv(scenario: Scenario, split: Split) -> Allocation:
    draft, window, page = draft_charged_bytes(scenario), window_bytes(scenario), page_size_of(scenario)
    charged = min(int(split.kv_rows * cell_bytes(scenario)), split.kv_rest_bytes) - split.kv_rows * draft
    row = round(cell_bytes(scenario) - draft - window_share(scenario) * window)
    windows = (split.window_rows + page) * window
    return Allocation(
        what="KV pool and its padding page",
        charged=charged,
        allocated=(split.kv_rows + page) * row + windows,
    )


def _draft_kv(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    """The draft model's pool is replicated: under DCP it has dcp_size times the rows of one rank."""
    spans = scenario.dcp_size if rank.rules.draft_pool_spans_dcp else 1
    row = draft_row_bytes(scenario)
    return Allocation(
        what="draft KV pool and its padding page",
        charged=split.kv_rows * draft_charged_bytes(scenario),
        allocated=(split.kv_rows * spans + page_size_of(scenario)) * row,
    )
