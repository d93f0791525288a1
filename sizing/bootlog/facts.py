"""The facts of one boot, as one record: every number with what its rounding leaves open, None where no line says it.

Source: engine-sizing.md sections 1 to 3 and 7. gather.py fills it, checks.py says what is missing or contradicts.
"""

from pydantic import BaseModel, ConfigDict

from sizing.basics.dtypes import KvDtype
from sizing.bootlog.measure import Measured
from sizing.bootlog.said import Ring, Unified
from sizing.bootlog.settings import Settings
from sizing.bootlog.slots import SlotsFrom
from sizing.releases.rules import Release
from sizing.scenario.inputs import Attention, Family

PAGE_UNSTATED = 1  # the engine's --page-size unless a backend or the user asks for another


class Facts(BaseModel):
    """One boot. Bytes, slots and rows are of one rank; with pipeline stages, of the stage that has most of them."""

    model_config = ConfigDict(frozen=True)

    ranks: tuple[str, ...]
    releases: tuple[Release, ...]
    """All that print these lines; empty where no one release does."""
    settings: Settings
    model: str | None
    """The class of the model, from `Load weight end`."""
    slots: int | None
    """K, printed as max_mamba_cache_size; one slot more is allocated."""
    slots_in_use: Measured | None
    """K from a decode batch: slots in use over the share of the pool that they are."""
    slot_bytes: Measured | None
    conv_bytes: Measured | None
    ssm_bytes: Measured | None
    token_bytes: Measured | None
    """The target's. By the page size that the log states, else by 1."""
    draft_token_bytes: Measured | None
    attention: Attention | None
    kv_cache_dtype: KvDtype | None
    S: int | None
    S_from: SlotsFrom | None
    S_possible: tuple[int, ...]
    clamp: int | None
    """K // S [requests]."""
    draft_tokens: int | None
    """D; 0 without speculation."""
    dcp_size: int | None
    kv_rows: int | None
    kv_tokens: int | None
    """Logical tokens: rows x dcp_size."""
    printed_tokens: int | None
    """max_total_num_tokens, rows or logical tokens by release."""
    running: int | None
    """max_running_requests that the engine runs with, of one attention-DP rank."""
    context_length: int | None
    begin_gib: Measured | None
    """Free memory before weights, the least of all ranks."""
    end_gib: Measured | None
    """Free memory when the pools were sized, the least of all ranks."""
    rest_from_weights: Measured | None
    """GiB: section 1 of engine-sizing.md."""
    rest_from_pools: Measured | None
    """GiB: the sum of what the pools take; a pin, a token cap and rounding down leave it below `rest`."""
    idle_gib: float | None
    """Free memory at the end, the least of all ranks: the summary's, else the last that was printed."""
    ring: Ring | None
    ring_bytes_per_position: Measured | None
    family: Family | None
    unified: Unified | None
    conflicts: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def rest(self) -> Measured | None:
        """`rest` [GiB], the better of the two."""
        return self.rest_from_weights or self.rest_from_pools

    @property
    def page_size(self) -> int:
        """The page size that the bytes of a token were divided by [tokens]."""
        return self.settings.page_size or PAGE_UNSTATED

    def clamp_at(self, S: int) -> int | None:
        """K // S [requests] for an S [slots per request] that is stated elsewhere."""
        return None if self.slots is None else self.slots // S
