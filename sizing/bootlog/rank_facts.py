"""What one rank printed, in a form that stands for itself: sizes [GiB], and bytes and counts computed from them."""

from pydantic import BaseModel, ConfigDict

from sizing.bootlog.measure import Measured


class RankFacts(BaseModel):
    """One rank; None where no line says it."""

    model_config = ConfigDict(frozen=True)

    name: str
    """As in its prefix, DP0 TP3; empty where the prefix has no rank."""
    stage: int | None
    """Its pipeline stage."""
    slots: int | None
    """K."""
    slots_allocated: int | None
    """The slots that the printed sizes are of, without the padding slot: more than K on a decode server."""
    state_gib: Measured | None
    """Conv and SSM sizes together, of `slots_allocated` + 1 slots."""
    slot_bytes: Measured | None
    kv_rows: int | None
    """Tokens on this rank."""
    kv_gib: Measured | None
    """The target's KV, of `kv_rows` and one page."""
    token_bytes: Measured | None
    draft_token_bytes: Measured | None
    ring_gib: Measured | None
    """ReplaySSM rings."""
    begin_gib: Measured | None
    """Free memory before weights."""
    end_gib: Measured | None
    """Free memory when the pools were sized."""
    running: int | None
    """max_running_requests."""
