"""What the draft states of speculation cost, in each of the three ways that releases have (`Rules.drafts`).

Each way stands here once: K by the ratio with its inverse and its words, and how many hold draft states. A release that
does it in a fourth way is a function of each kind and a row in `DRAFTS`. All take D = 0 as well.

Source: engine-sizing.md section 5 (`_handle_max_mamba_cache`), engine-versions.md. The engine computes in GiB floats
and floors; the order of operations below is its order.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

from sizing.basics.numeric import Numeric, lesser
from sizing.basics.units import GIB, count, rest_text, stated_ratio_text
from sizing.engine.padding import slots_charged
from sizing.engine.resolved import Rank
from sizing.releases.rules import DraftRule, Rules


class Formula(NamedTuple):
    """A formula in words, and with the numbers in."""

    words: str
    numbers: str


class Taken(NamedTuple):
    """What some slots take of `rest` [bytes per rank]."""

    budget: Numeric
    """The state budget that holds them."""
    ahead: Numeric = 0
    """What comes off before the ratio splits."""


class Drafts(NamedTuple):
    """One way to charge draft states."""

    slots: Callable[[Rank, Numeric], Numeric]
    """K [slots, float holding a whole number] of a ratio [-]; may be 0 or less, which the engine refuses."""
    takes: Callable[[Rank, Numeric], Taken]
    """What K [slots] takes: the inverse of `slots`."""
    formula: Callable[[Rank, float], Formula]
    """K of a ratio [-] in words."""
    holders: Callable[[Rules, Numeric, Numeric, Numeric], Numeric]
    """How many hold D draft states each, of K [slots], the clamp and the requests that are charged."""
    why: str
    """Why K is not the specification's, in words."""
    in_every_slot: bool = False
    """Whether it is slots that hold them, not requests."""
    asks_clamp: bool = False
    """Whether the clamp limits how many requests are charged for."""


def drafts_of(rules: Rules) -> Drafts:
    """The way of a release."""
    return DRAFTS[rules.drafts]


def least_rest_gib(rank: Rank, share: float) -> float:
    """The least `rest` [GiB per rank] that gives one request its slots, by the state budget's share of rest [-]."""
    return float(rest_gib_for(rank, rank.request_slots.slots(1), share))


def rest_gib_for(rank: Rank, slots: Numeric, share: float) -> Numeric:
    """The least `rest` [GiB per rank] that gives K [slots] by the state budget's share of it [-], but for roundings."""
    budget, ahead = drafts_of(rank.rules).takes(rank, slots)
    return (budget / share + ahead) / GIB


def share_of_rest(rank: Rank, slots: int) -> float:
    """The share of rest [-] that the state budget of K = `slots` [slots per rank] takes; none from 0 to 1 where no rest
    is left for it.
    """
    budget, ahead = drafts_of(rank.rules).takes(rank, slots)
    rest = rank.rest_gib * GIB - ahead
    return float(budget / rest) if rest > 0 else math.inf


def state_budget_bytes(rest_gib: Numeric, ratio: Numeric) -> Numeric:
    """State budget [bytes, float] of a ratio [-]: rest x r / (1 + r)."""
    return rest_gib * ratio / (1 + ratio) * GIB


def _budget_words(rest: str, ratio: float) -> str:
    r = stated_ratio_text(ratio)
    return f"{rest} x {r} / (1 + {r})"


# In every slot: a slot costs 1 + D states.


def _slots_in_every_slot(rank: Rank, ratio: Numeric) -> Numeric:
    return state_budget_bytes(rank.rest_gib, ratio) // rank.slot_bytes // (1 + rank.D) // rank.slots_divisor


def _taken_in_every_slot(rank: Rank, slots: Numeric) -> Taken:
    return Taken(slots * rank.slots_divisor * (1 + rank.D) * rank.slot_bytes)


def shared_words(width: int) -> tuple[str, str]:
    """A division by the attention-DP width in words and in numbers; both empty where there is none."""
    return (" // attn_dp_size", f" // {width}") if width > 1 else ("", "")


def _formula_in_every_slot(rank: Rank, ratio: float) -> Formula:
    drafts = (" // (1 + D)", f" // {1 + rank.D}") if rank.D else ("", "")
    width = rank.slots_divisor
    shared = shared_words(width)
    budget, slot = _budget_words(rest_text(float(rank.rest_gib)), ratio), count(int(rank.slot_bytes))
    return Formula(
        f"budget // slot{drafts[0]}{shared[0]}, budget = rest x r / (1 + r)",
        f"{budget} // {slot}{drafts[1]}{shared[1]}",
    )


# Before the split: D states of each request that is asked for come off rest.


def _slots_before_the_split(rank: Rank, ratio: Numeric) -> Numeric:
    ahead = rank.slot_bytes * rank.requests_charged * rank.D / GIB
    return state_budget_bytes(rank.rest_gib - ahead, ratio) // rank.slot_bytes


def _taken_before_the_split(rank: Rank, slots: Numeric) -> Taken:
    return Taken(slots * rank.slot_bytes, rank.requests_charged * rank.D * rank.slot_bytes)


def _formula_before_the_split(rank: Rank, ratio: float) -> Formula:
    rest, words = rest_text(float(rank.rest_gib)), "rest"
    if rank.D:
        ahead = int(rank.requests_charged * rank.D * rank.slot_bytes)
        rest, words = f"({rest} - {count(ahead)})", "(rest - requests x D x slot)"
    return Formula(
        f"budget // slot, budget = {words} x r / (1 + r)",
        f"{_budget_words(rest, ratio)} // {count(int(rank.slot_bytes))}",
    )


# Joint: D draft states for each S slots, and for the padding slot. Rings that are fixed come off the budget.


def _slots_jointly(rank: Rank, ratio: Numeric) -> Numeric:
    budget = state_budget_bytes(rank.rest_gib, ratio) - rank.ring_fixed_bytes
    padding = rank.slot_bytes * slots_charged(rank.resolved.rules, 0) * (1 + rank.D)
    return (budget - padding) // (rank.slot_bytes * (1 + rank.D / rank.S))


def _taken_jointly(rank: Rank, slots: Numeric) -> Taken:
    states = slots + slots * rank.D / rank.S + slots_charged(rank.rules, 0) * (1 + rank.D)
    return Taken(states * rank.slot_bytes + rank.ring_fixed_bytes)


def _formula_jointly(rank: Rank, ratio: float) -> Formula:
    D, slot = int(rank.D), count(int(rank.slot_bytes))
    words, budget = "budget", _budget_words(rest_text(float(rank.rest_gib)), ratio)
    taken, filled = "", ""
    if rank.ring_fixed_bytes:
        taken, filled = " - rings", f" - {count(int(rank.ring_fixed_bytes))}"
    if slots_charged(rank.rules, 0):
        taken += " - (1 + D) x slot" if D else " - slot"
        filled += f" - {1 + D} x {slot}" if D else f" - {slot}"
    if taken:
        words, budget = f"({words}{taken})", f"({budget}{filled})"
    each = ("(slot x (1 + D / S))", f"({slot} x (1 + {D} / {rank.S}))") if D else ("slot", slot)
    return Formula(f"{words} // {each[0]}, budget = rest x r / (1 + r)", f"{budget} // {each[1]}")


DRAFTS: dict[DraftRule, Drafts] = {
    "in every slot": Drafts(
        slots=_slots_in_every_slot,
        takes=_taken_in_every_slot,
        formula=_formula_in_every_slot,
        holders=lambda rules, slots, clamp, requests: slots,
        why="takes draft states for every slot",
        in_every_slot=True,
    ),
    "before the split": Drafts(
        slots=_slots_before_the_split,
        takes=_taken_before_the_split,
        formula=_formula_before_the_split,
        holders=lambda rules, slots, clamp, requests: requests + 0 * clamp,
        why="takes draft states off rest before the split",
    ),
    "joint": Drafts(
        slots=_slots_jointly,
        takes=_taken_jointly,
        formula=_formula_jointly,
        holders=lambda rules, slots, clamp, requests: slots_charged(rules, lesser(requests, clamp)),
        why="solves for draft states too (D / S of a slot each, 1 + D padding)",
        asks_clamp=True,
    ),
}
