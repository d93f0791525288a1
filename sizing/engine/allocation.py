"""What the engine allocates beside what it charges `rest` for; where it allocates more, the slack pays.

Source: engine-sizing.md sections 2, 3, 5 ("charged at the whole per", "Uncharged") and 6 (the draft pool).
"""

from pydantic import BaseModel, ConfigDict

from sizing.engine.pools import (
    Rank,
    charged_slot_bytes,
    conv_bytes,
    draft_charged_bytes,
    draft_row_bytes,
    replays_drafts,
    ring_bytes,
    ring_bytes_per_slot,
    slot_bytes,
    ssm_bytes,
    target_token_bytes,
)
from sizing.engine.slots_per_request import page_size_of
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


def allocations(scenario: Scenario, rank: Rank, split: Split) -> tuple[Allocation, ...]:
    """Everything that a solved split puts into memory on one rank, where it is not nothing."""
    rows = (_slots(scenario, rank, split), _drafts(scenario, rank, split), _windows(scenario, split))
    found = (*rows, _rings(scenario, rank, split), _kv(scenario, split), _draft_kv(scenario, rank, split))
    return tuple(row for row in found if row.charged or row.allocated != 0)


def beyond(found: tuple[Allocation, ...]) -> int | None:
    """How much more is allocated than charged [bytes per rank], at least 0; None where a part is not known."""
    if any(row.allocated is None for row in found):
        return None
    return max(sum((row.allocated or 0) - row.charged for row in found), 0)


def _slots(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    padding = 1 if rank.rules.charges_padding else 0
    return Allocation(
        what="state slots and the padding slot",
        charged=(split.slots + padding) * charged_slot_bytes(scenario),
        allocated=(split.slots + 1) * slot_bytes(scenario),
    )


def _drafts(scenario: Scenario, rank: Rank, split: Split) -> Allocation:
    """Draft states of the running requests and one more; up to 0.5.6 of every slot and one more."""
    held = (split.slots if rank.rules.drafts == "in every slot" else split.admitted) + 1
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


def _windows(scenario: Scenario, split: Split) -> Allocation:
    """Under ReplaySSM the conv windows of the drafts stay, uncharged."""
    window = _window_bytes(scenario) if replays_drafts(scenario) else 0
    kept = replays_drafts(scenario) and split.memory.draft_reserve == 0
    return Allocation(
        what="conv windows of drafts",
        charged=0,
        allocated=None if window is None else (split.admitted + 1) * window if kept else 0,
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
        allocated: int | None = (split.slots + 1) * ring_bytes(scenario)
    else:
        allocated = None if ring_bytes(scenario) and not ring_bytes_per_slot(scenario) else 0
    return Allocation(what="ReplaySSM rings", charged=0, allocated=allocated)


def _kv(scenario: Scenario, split: Split) -> Allocation:
    row = target_token_bytes(scenario)
    return Allocation(
        what="KV pool and its padding page",
        charged=split.kv_rows * row,
        allocated=(split.kv_rows + page_size_of(scenario)) * row,
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
