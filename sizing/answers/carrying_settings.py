"""Whether one setting carries wanted requests, and the setting that does: pin, ratios, request count, KV that remains.

To know whether C requests fit it is enough to try the fewest slots that admit them, C x S: with more slots there is
less KV. (Up to 0.5.6 EAGLE adds rows of KV for each request asked, uncharged; in every catalogued model the slots of a
request cost more than its rows.) A request count that is enough stays; otherwise exactly C are asked for, since each
one more is charged drafts or rings.
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from sizing.answers.optimum import carried_if_asked, last_spared, ratios
from sizing.basics.numeric import Numeric
from sizing.basics.search import last_that
from sizing.basics.units import GIB, count, stated_ratio_text
from sizing.engine import pools
from sizing.engine.charges import slots_from_ratio
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import beside_pin, pin_rank, rank_of
from sizing.engine.requests import asked_divisor
from sizing.engine.resolved import Rank
from sizing.engine.slots import most_slots, pin_from_slots, pin_is_ignored
from sizing.scenario.inputs import MAX_L, MAX_REQUESTS, Scenario, Tokens, Whole
from sizing.scenario.rest import end_anew


class Want(BaseModel):
    """So many requests of one length at once, in the whole deployment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    L: Tokens = Field(ge=1, le=MAX_L)
    """Context per request [tokens]."""
    requests: Whole = Field(ge=1, le=MAX_REQUESTS)
    """[requests of the deployment]"""


class Need(NamedTuple):
    """What wants take on one rank. Numbers or arrays."""

    requests: Numeric
    """The most that must run at once."""
    tokens: Numeric
    """The most logical KV tokens that must be held at once."""
    spare: bool = False
    """Whether a slot must stay free for the chunk border, where one is needed."""


class Setting(BaseModel):
    """One setting that carries every want. Slots and tokens are per rank, flags are the deployment's."""

    model_config = ConfigDict(frozen=True)

    scenario: SkipValidation[Scenario]
    """The scenario with this setting put in: the pin, or where a release ignores pins the ratio."""
    requests: int
    """What must run at once [requests per rank]."""
    slots_low: int
    slots_high: int
    """Every K from low to high carries the wants; low is that of the pin, with its slot to spare where one fits."""
    ratio_low: float | None
    ratio_high: float | None
    """Every ratio [-] in between does; both None where the engine ignores the ratio, or none gives such a K, the high
    one None where no ratio is too large."""
    ratio: float | None
    """One of them with few digits, near the middle, with a slot to spare where one fits."""
    spare: int
    """Slots beyond requests x S for the chunk boundary: 1, or 0 where none fits or nothing is tracked."""
    slots: int
    """K of this setting."""
    pin: int | None
    """--max-mamba-cache-size; None where the release ignores it."""
    asked: int | None
    """--max-running-requests that must be set; None where what stands (or the engine's own count) is enough."""
    kv_tokens: int
    """Logical tokens of the KV pool."""
    kv_left: int
    """Those that the wants do not take."""

    @property
    def words(self) -> str:
        """The same in short: the pin of the whole deployment or the ratio, and the requests to ask for."""
        split = f"ratio {stated_ratio_text(self.ratio or 0)}" if self.pin is None else f"pin {count(self.pin)}"
        return ", ".join((split, *([f"ask for {count(self.asked)}"] if self.asked else [])))

    @property
    def flags(self) -> tuple[str, ...]:
        """What to set, as it is typed."""
        by_ratio = f"--mamba-full-memory-ratio {stated_ratio_text(self.ratio or 0)}"
        split = by_ratio if self.pin is None else f"--max-mamba-cache-size {self.pin}"
        return (split, *([f"--max-running-requests {self.asked}"] if self.asked else []))


def need(scenario: Scenario, requests: Sequence[Numeric], lengths: Sequence[Numeric]) -> Need:
    """What requests [of the deployment] of these lengths [tokens] take on the fullest rank."""
    each = [-(-count // scenario.attn_dp_size) for count in requests]
    tokens = [count * length for count, length in zip(each, lengths, strict=True)]
    return Need(requests=reduce(np.maximum, each), tokens=reduce(np.maximum, tokens))


def need_of(scenario: Scenario, wants: Sequence[Want]) -> Need:
    """What wants take on one rank."""
    return need(scenario, [want.requests for want in wants], [want.L for want in wants])


def fits(rank: Rank, needed: Need, carried: Any = None) -> Any:
    """Whether some split carries the need, with the request count that stands or one asked anew. `carried` is what
    `carries` says, where that is known.
    """
    enough = most_slots(rank) >= rank.request_slots.slots(needed.requests, spare=needed.spare)
    as_it_stands = (carries(rank, needed) if carried is None else carried) & enough
    if not isinstance(as_it_stands, np.ndarray) and as_it_stands:
        return True
    return as_it_stands | carried_if_asked(rank, needed.requests, needed.tokens, spare=needed.spare)


def carries(rank: Rank, needed: Need, slots: Numeric | None = None) -> Any:
    """Whether K = `slots` [slots per rank], by default the fewest that admit them, carries the need."""
    fewest = rank.request_slots.slots(needed.requests, spare=needed.spare)
    there = pools_from_slots(rank, fewest if slots is None else slots)
    return pools.carries(there, needed.requests, needed.tokens)


def setting_on(of_ratio: Rank, wants: Sequence[Want]) -> Setting | None:
    """The setting that carries every want, with a slot to spare where one fits; None where none does.

    Raises RefusedError for flags that are refused.
    """
    rank, least = pin_rank(of_ratio), need_of(of_ratio.scenario, wants)
    for needed in (least._replace(spare=True), least):
        carried = carries(rank, needed)
        if not fits(rank, needed, carried):
            continue
        if carried:
            return _setting(of_ratio, needed, None)
        there, asked = _asking(rank, int(needed.requests))
        if there.rest_gib >= rank.rest_gib or fits(pin_rank(there), needed):
            return _setting(there, needed, asked)
    return None


def _asking(rank: Rank, requests: int) -> tuple[Rank, int]:
    """The rank by ratio of the scenario that asks for so many [requests per rank], with the estimate of `rest` that
    holds then; and what is asked for.
    """
    asked = requests * asked_divisor(rank.resolved)
    return rank_of(end_anew(rank.scenario.model_copy(update={"max_running_requests": asked}))), asked


def settles(rank: Rank, needed: Need) -> bool:
    """Whether a need that fits still fits once its requests are asked for, which can lower an estimated `rest`."""
    if rank.scenario.rest_source != "low end" or carries(rank, needed):
        return True
    return bool(fits(pin_rank(_asking(rank, int(needed.requests))[0]), needed))


def _setting(of_ratio: Rank, needed: Need, asked: int | None) -> Setting:
    rank = pin_rank(of_ratio)
    by_ratio = rank if of_ratio.D == rank.D else None
    low = int(rank.request_slots.slots(needed.requests))
    most = int(min(rank.rest_gib * GIB / rank.slot_bytes + 1, most_slots(rank)))
    high = last_that(low, most, lambda slots: carries(rank, needed, slots))
    spare = min(rank.request_slots.spare, high - low)
    spared = low + spare, last_spared(rank, int(needed.requests), high)
    ratio_low, ratio_high, ratio = ratios(by_ratio, (low + spare, high), spared)
    slots, pin = low + spare, pin_from_slots(rank.resolved, low + spare)
    values: dict[str, Any] = {"split": "pin", "max_mamba_cache_size": pin}
    if pin_is_ignored(rank.resolved):
        assert ratio is not None  # what fits is carried by a ratio where a pin is ignored
        slots, values = int(slots_from_ratio(rank, ratio)), {"split": "ratio", "mamba_full_memory_ratio": ratio}
    by_pin = values["split"] == "pin"
    tokens = int(pools_from_slots(beside_pin(rank) if by_pin else rank, slots).kv_tokens)
    return Setting(
        scenario=rank.scenario.model_copy(update=values),
        requests=int(needed.requests),
        slots_low=low + spare,
        slots_high=high,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        ratio=ratio,
        spare=spare,
        slots=slots,
        pin=None if pin_is_ignored(rank.resolved) else pin,
        asked=asked,
        kv_tokens=tokens,
        kv_left=tokens - int(needed.tokens),
    )
