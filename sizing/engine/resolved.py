"""What the engine makes of the flags before it counts memory."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sizing.basics.problems import Refusal

ResolvedStrategy = Literal["auto", "no_buffer", "extra_buffer", "extra_buffer_lazy"]


class SlotUse(BaseModel):
    """Some slots of every running request, and why they are held."""

    model_config = ConfigDict(frozen=True)

    count: int
    why: str


class Resolved(BaseModel):
    """Strategy, radix cache, overlap, page and S of one scenario, as its release and its model decide them."""

    model_config = ConfigDict(frozen=True)

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

    @property
    def radix_cache(self) -> bool:
        """Whether finished requests are kept for reuse."""
        return not self.radix_off_why

    @property
    def served(self) -> bool:
        """Whether the release has the model."""
        return self.refusal is None or self.refusal.kind != "not_served"

    @property
    def S(self) -> int:  # noqa: N802, the specification's letter
        """State slots [slots per running request]."""
        return sum(use.count for use in self.uses)
