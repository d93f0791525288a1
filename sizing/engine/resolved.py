"""What follows from a scenario before memory is split: resolved once, and passed on."""

from functools import cached_property
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from sizing.basics.numeric import Numeric
from sizing.basics.problems import Refusal
from sizing.engine.byte_costs import ByteCosts
from sizing.engine.request_slots import RequestSlots, request_slots_of
from sizing.releases.architectures import Support
from sizing.releases.rules import Rules
from sizing.scenario.inputs import Scenario

ResolvedStrategy = Literal["auto", "no_buffer", "extra_buffer", "extra_buffer_lazy"]
BUFFERED: tuple[ResolvedStrategy, ...] = ("extra_buffer", "extra_buffer_lazy")
"""The strategies that keep a track buffer."""


class SlotUse(BaseModel):
    """Some slots of every running request, and why they are held."""

    model_config = ConfigDict(frozen=True)

    count: int
    why: str


class Resolved(BaseModel):
    """One scenario as its release and its model decide it: strategy, radix cache, overlap, page, S and what all costs.

    Every rule of the engine takes this; none asks the scenario's release again.
    """

    model_config = ConfigDict(frozen=True)

    scenario: SkipValidation[Scenario] = Field(exclude=True, repr=False)
    """What is stated."""
    rules: SkipValidation[Rules] = Field(exclude=True, repr=False)
    """What its release does."""
    support: SkipValidation[Support] = Field(exclude=True, repr=False)
    """What its release does with its model."""
    strategy: ResolvedStrategy | None
    """What stands in the strategy flag afterwards; None in releases that have no such flag. `auto` stays `auto` for
    models outside the engine's list and with the radix cache off: no buffer is kept."""
    radix_off_why: str
    """Who turns the radix cache off, in words; empty while it is on."""
    overlap: bool
    page_size: int
    """Page [tokens]: the one asked, or the one that the model or the strategy forces."""
    uses: tuple[SlotUse, ...]
    max_running_requests: int | None
    """As asked for the deployment, 48 under speculation, None where the engine estimates [requests]."""
    refusal: Refusal | None
    """The first refusal of the flags; what else stands here is what led to it."""
    costs: ByteCosts
    """What a slot, a ring, a token and a draft's row cost [bytes per rank]."""

    @property
    def radix_cache(self) -> bool:
        """Whether finished requests are kept for reuse."""
        return not self.radix_off_why

    @property
    def logical_page(self) -> int:
        """What a request occupies in steps of: page_size x dcp_size [tokens] (engine-sizing.md section 6)."""
        return self.page_size * self.scenario.dcp_size

    @property
    def served(self) -> bool:
        """Whether the release has the model."""
        return self.refusal is None or self.refusal.kind != "not_served"

    @cached_property
    def S(self) -> int:  # noqa: N802, the specification's letter
        """State slots [slots per running request]."""
        return sum(use.count for use in self.uses)

    @property
    def request_slots(self) -> RequestSlots:
        """What running requests take of the slots."""
        return request_slots_of(self)


class Window(NamedTuple):
    """The sliding-window pool beside the full one (engine-sizing.md section 11)."""

    tokens: int
    """How far back a window layer looks."""
    share: float
    """Its rows for each row of the full pool."""
    bytes: int
    """One of its rows [bytes]."""


class Rank(NamedTuple):
    """What one rank brings to the split. What is `Numeric` may be a numpy array; arrays broadcast."""

    resolved: Resolved
    rest_gib: Numeric
    slot_bytes: Numeric
    """What a slot is charged: its state and, for KDA under ReplaySSM, its ring."""
    ring_fixed_bytes: Numeric
    """The ring of GDN under ReplaySSM: taken once, from the state budget."""
    token_bytes: Numeric
    """KV bytes the engine divides by: target plus draft, with a share of the window pool. 0 without attention."""
    S: Numeric
    D: Numeric
    """Draft states that are charged for each running request; 0 where none are."""
    page_size: int
    dcp_size: int
    context_length: int
    requests_asked: Numeric | None
    """The share of --max-running-requests that admission takes, 48 under speculation, or None for the estimate."""
    requests_charged: Numeric
    """The share whose draft states are charged."""
    slots_divisor: int
    """The attention-DP width where a release divides every K by it, else 1."""
    max_total_tokens: Numeric | None
    headroom: int = 0
    """Rows that EAGLE adds for each request beyond what was sized (`headroom_rows`); 0 where none are."""
    window: Window | None = None

    @property
    def request_slots(self) -> RequestSlots:
        """What running requests take of the slots."""
        return request_slots_of(self)

    @property
    def logical_page(self) -> int:
        """What a request occupies in steps of [tokens], as in `Resolved`; of arrays where those are."""
        return self.page_size * self.dcp_size

    @property
    def rules(self) -> Rules:
        """What the release does."""
        return self.resolved.rules

    @property
    def scenario(self) -> Scenario:
        """What is stated."""
        return self.resolved.scenario

    @property
    def radix_cache(self) -> bool:
        """Whether finished requests are kept for reuse."""
        return self.resolved.radix_cache


class Numbers:
    """A rank by which answers are kept that follow from its numbers alone: one of the same numbers, whatever its L, its
    ratio and its pin, finds them again. They must be numbers, not arrays.
    """

    __slots__ = ("_key", "rank")

    def __init__(self, rank: Rank) -> None:
        self.rank = rank
        self._key = (rank.scenario.release, rank.radix_cache, *rank[1:])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbers) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)
