"""Whether one setting carries wanted requests, and the setting that does: pin, ratios, request count, KV that remains.

C requests are carried if and only if they are with the fewest slots that admit them, C x S: more slots admit no
fewer, and leave less KV (the argument of optimum.py). A request count is kept where it is enough and asked anew,
as exactly C, where it is not: more asked charges more drafts or rings.
"""

from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from sizing.answers.optimum import ratio_range
from sizing.basics.units import GIB, count, stated_ratio_text
from sizing.engine.pools import (
    Numeric,
    Rank,
    asked_divisor,
    asking,
    beside_pin,
    pin_from_slots,
    pin_is_ignored,
    pools_from_slots,
    rank_of,
    slots_from_ratio,
)
from sizing.scenario.inputs import MAX_L, MAX_RATIO, MAX_REQUESTS, Scenario, Tokens, Whole

PROBES = 64  # values tried in one vectorised call; a search over 2**34 of them takes six calls
RATIO_DIGITS = range(2, 18)  # the shortest text that lies in the range; 17 digits name any float


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


class Setting(BaseModel):
    """One setting that carries every want. Slots and tokens are per rank, flags are the deployment's."""

    model_config = ConfigDict(frozen=True)

    scenario: Scenario
    """The scenario with this setting put in: the pin, or where a release ignores pins the ratio."""
    requests: int
    """What must run at once [requests per rank]."""
    slots_low: int
    slots_high: int
    """Every K from low to high carries the wants."""
    ratio_low: float | None
    ratio_high: float | None
    """Every ratio [-] in between does; both None where the engine ignores the ratio, or none gives such a K, the high
    one None where no ratio is too large."""
    ratio: float | None
    """One of them with few digits, near the middle."""
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
    """What requests [of the deployment] of such lengths [tokens] take on one rank, the fullest one."""
    each = [-(-count // scenario.attn_dp_size) for count in requests]
    tokens = [count * length for count, length in zip(each, lengths, strict=True)]
    return Need(requests=reduce(np.maximum, each), tokens=reduce(np.maximum, tokens))


def need_of(scenario: Scenario, wants: Sequence[Want]) -> Need:
    """What wants take on one rank."""
    return need(scenario, [want.requests for want in wants], [want.L for want in wants])


def fits(scenario: Scenario, rank: Rank, needed: Need) -> Any:
    """Whether some split carries the need, with the request count that stands or one asked anew."""
    found = carries(rank, needed) | carries(asking(scenario, rank, needed.requests), needed)
    return found & _reached(rank, needed) if pin_is_ignored(scenario) else found


def carries(rank: Rank, needed: Need, slots: Numeric | None = None) -> Any:
    """Whether K = `slots` [slots per rank], by default the fewest that admit them, carries the need."""
    pools = pools_from_slots(rank, needed.requests * rank.S if slots is None else slots)
    starts = (pools.slots > 0) & (pools.kv_rest_bytes > 0) & (pools.window_cap >= needed.requests)
    return starts & (pools.admitted >= needed.requests) & (pools.kv_tokens >= needed.tokens)


def _reached(rank: Rank, needed: Need) -> Any:
    """Whether a ratio gives the slots: not every K, where a release divides it by the attention-DP width."""
    return slots_from_ratio(rank, MAX_RATIO) >= needed.requests * rank.S


def last_that(low: int, high: int, holds: Callable[[Any], Any]) -> int:
    """The last whole number from low to high for which `holds` (array in, array out), given that it holds up to some
    point only; low - 1 where it never does.

    >>> last_that(1, 10_000, lambda tried: tried**2 < 1_000_000)
    999
    """
    good, bad = low - 1, high + 1
    while bad - good > 1:
        tried = np.unique(np.linspace(good + 1, bad - 1, PROBES).astype(np.int64))
        hold = int(np.count_nonzero(holds(tried)))
        good, bad = (int(tried[hold - 1]) if hold else good), (int(tried[hold]) if hold < tried.size else bad)
    return good


def setting_of(scenario: Scenario, wants: Sequence[Want]) -> Setting | None:
    """The setting that carries every want; None where none does. Raises RefusedError for flags that are refused."""
    rank, needed = rank_of(scenario), need_of(scenario, wants)
    if not fits(scenario, rank, needed):
        return None
    asked = None if carries(rank, needed) else int(needed.requests) * asked_divisor(scenario)
    settled = scenario.model_copy(update={"max_running_requests": asked}) if asked else scenario
    return _setting(settled, needed, asked)


def _setting(scenario: Scenario, needed: Need, asked: int | None) -> Setting:
    rank = rank_of(scenario)
    low = int(needed.requests) * int(rank.S)
    most = int(rank.rest_gib * GIB / rank.slot_bytes) + 1
    high = last_that(low, most, lambda slots: carries(rank, needed, slots))
    reached = bool(_reached(rank, needed))
    ratio_low, ratio_high = ratio_range(scenario, rank, low, high) if reached else (None, None)
    ratio = typed_ratio(ratio_low, ratio_high) if ratio_low is not None else None
    spare = int(rank.S > 1 and high > low)
    slots, pin = low + spare, pin_from_slots(scenario, low + spare)
    values: dict[str, Any] = {"split": "pin", "max_mamba_cache_size": pin}
    if pin_is_ignored(scenario):
        slots, values = int(slots_from_ratio(rank, ratio)), {"split": "ratio", "mamba_full_memory_ratio": ratio}
    by_pin = values["split"] == "pin"
    tokens = int(pools_from_slots(beside_pin(rank) if by_pin else rank, slots).kv_tokens)
    return Setting(
        scenario=scenario.model_copy(update=values),
        requests=int(needed.requests),
        slots_low=low,
        slots_high=high,
        ratio_low=ratio_low,
        ratio_high=ratio_high,
        ratio=ratio,
        spare=spare,
        slots=slots,
        pin=None if pin_is_ignored(scenario) else pin,
        asked=asked,
        kv_tokens=tokens,
        kv_left=tokens - int(needed.tokens),
    )


def typed_ratio(low: float, high: float | None) -> float:
    """The ratio [-] in a range that takes the fewest digits: near the geometric middle, or just above an open range's
    low end.

    >>> typed_ratio(2.42239, 2.53334), typed_ratio(4.11, None)
    (2.5, 4.2)
    """
    middle = Decimal(low if high is None else (low * high) ** 0.5)
    for digits in RATIO_DIGITS:
        step = Decimal(1).scaleb(middle.adjusted() - digits + 1)
        found = float(middle.quantize(step, rounding=ROUND_CEILING) if high is None else middle.quantize(step))
        if low <= found <= (found if high is None else high):
            return found
    return low
