"""The facts of one boot, as one record: every number with what its rounding leaves open, None where no line says it.

Source: engine-sizing.md sections 1 to 3 and 7. gather.py fills it, checks.py says what is missing or contradicts.
"""

from pydantic import BaseModel, ConfigDict

from sizing.basics.dtypes import KvDtype
from sizing.bootlog.line_records import Ring, Unified
from sizing.bootlog.measure import Measured, common
from sizing.bootlog.rank_facts import RankFacts
from sizing.bootlog.rest import Charging, gap_gib, rest_from_pools
from sizing.bootlog.settings import Settings
from sizing.engine.request_slots import RequestSlots
from sizing.releases.rules import Release
from sizing.scenario.inputs import Attention, Family

PAGE_UNSTATED = 1  # the engine's --page-size unless a backend or the user asks for another


class Facts(BaseModel):
    """One boot. Bytes, slots and rows are of one rank; with pipeline stages, of the stage that has most of them."""

    model_config = ConfigDict(frozen=True)

    ranks: tuple[str, ...]
    by_rank: tuple[RankFacts, ...]
    """Every rank with its own numbers."""
    ranks_differ: str
    """A sentence where ranks print different numbers; empty where they agree."""
    releases: tuple[Release, ...]
    """All that print these lines; empty where no one release does."""
    settings: Settings
    model: str | None
    """The class of the model, from `Load weight end`."""
    slots: int | None
    """K, printed as max_mamba_cache_size, or by a warning or refusal; one slot more is allocated."""
    slots_allocated: int | None
    """What the state line prints: more than K on a decode server."""
    slots_in_use: Measured | None
    """K from a decode batch: slots in use over the share of the pool that they are."""
    slot_bytes: Measured | None
    conv_bytes: Measured | None
    ssm_bytes: Measured | None
    token_bytes: Measured | None
    """The target's. By the page size that the log states, else by 1."""
    token_bytes_of_either: Measured | None
    """Of the only KV line of a boot with speculation, where nothing tells whether it is the target's or the draft's."""
    draft_token_bytes: Measured | None
    attention: Attention | None
    kv_cache_dtype: KvDtype | None
    S: int | None
    S_from: str | None
    """The form of the line that states S, or what S follows from."""
    S_possible: tuple[int, ...]
    draft_tokens: int | None
    """D; 0 without speculation."""
    speculation: bool | None
    """Whether there is any: by the flags, or by draft states on the state line; None where neither is known."""
    radix_off: str
    """The engine's words where it turned the radix cache off by itself; empty without them."""
    radix_cache: bool | None
    """Whether finished requests are kept for reuse; None where neither S, nor a line, nor a flag tells."""
    dcp_size: int | None
    kv_rows: int | None
    kv_tokens: int | None
    """Logical tokens: rows x dcp_size; as printed where --dcp-size is in no line of the log, so not known to be set."""
    printed_tokens: int | None
    """max_total_num_tokens, rows or logical tokens by release."""
    running: int | None
    """max_running_requests that the engine runs with, of one attention-DP rank: the least that one prints."""
    asked: int | None
    """--max-running-requests, where a warning names what was asked for."""
    context_length: int | None
    begin_gib: Measured | None
    """Free memory before weights, the least of all ranks."""
    end_gib: Measured | None
    """Free memory when the pools were sized, the least of all ranks."""
    rest_from_weights: Measured | None
    """GiB: section 1 of engine-sizing.md."""
    rest_from_pools: Measured | None
    """GiB: what the printed pools were charged by the rules of these releases (rest.py)."""
    rest_from_pools_is_least: bool
    """A token cap, or a stage that holds less, leaves memory unused: `rest` may be more than was charged."""
    rest_from_refusal: Measured | None
    """GiB: total_rest_memory of a refusal; it may be negative."""
    mem_fraction_least: float | None
    """The least --mem-fraction-static that a refusal names; it leaves nothing to the KV pool."""
    pools_gib: Measured | None
    """GiB: all that the pools take as printed, charged or not, the most of all ranks; the draft's KV pool left out."""
    idle_gib: float | None
    """Free memory after pools and graphs, the least of all ranks: the summary's, else what the last capture left."""
    ring: Ring | None
    ring_bytes_per_position: Measured | None
    family: Family | None
    unified: Unified | None
    conflicts: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def rest(self) -> Measured | None:
        """`rest` [GiB]: as a refusal prints it, else what weights and pools both allow, else the one that is known."""
        given = [rest for rest in (self.rest_from_weights, self.rest_from_pools) if rest is not None]
        if self.rest_from_refusal is not None or not given:
            return self.rest_from_refusal
        return (None if self.rest_from_pools_is_least else common(given)) or given[0]

    @property
    def rests_apart(self) -> float:
        """How far `rest` by the weights lies from `rest` by the pools, beyond rounding [GiB]; 0 where they agree."""
        if self.rest_from_weights is None or self.rest_from_pools is None:
            return 0.0
        return gap_gib(self.rest_from_weights, self.rest_from_pools, pools_are_least=self.rest_from_pools_is_least)

    def rest_by_pools_at(self, charging: Charging) -> Measured | None:
        """`rest` [GiB] by the printed pools under flags that are stated elsewhere."""
        return rest_from_pools(self.by_rank, charging)

    @property
    def page_size(self) -> int:
        """The page size that the bytes of a token were divided by [tokens]."""
        return self.settings.page_size or PAGE_UNSTATED

    @property
    def clamp(self) -> int | None:
        """K // S [requests]; None where one of them is not known."""
        return self.clamp_at(self.S) if self.S else None

    def clamp_at(self, S: int) -> int | None:
        """K // S [requests] for an S [slots per request] that is stated elsewhere."""
        return None if self.slots is None else RequestSlots(S).requests(self.slots)
