"""What state is charged: slots, the padding slot, draft states and rings; and how many slots a budget then holds.

Source: engine-sizing.md section 5 (`_handle_max_mamba_cache`); where older releases differ, sizing/releases/rules.py.
The engine computes in GiB floats and floors; the order of operations below is its order.
"""

import numpy as np

from sizing.basics.numeric import Numeric
from sizing.basics.units import GIB
from sizing.engine.resolved import Rank, Resolved
from sizing.releases.rules import Rules


def drafts_charged(resolved: Resolved, *, by_ratio: bool) -> int:
    """How many draft states a running request is charged [states]: D, or 0 where none are reserved.

    `by_ratio`: whether the ratio decides the slots; in 0.5.7 nothing else charges drafts.
    """
    rules, scenario = resolved.rules, resolved.scenario
    if not charges_drafts(rules, scenario.disaggregation_mode, by_ratio=by_ratio):
        return 0
    return 0 if resolved.costs.replays_drafts and rules.rings_replace_drafts else scenario.D


def charges_drafts(rules: Rules, role: str | None, *, by_ratio: bool) -> bool:
    """Whether a release charges a server in this PD role for draft states, or for the rings in their place."""
    if role == "prefill" and not rules.prefill_reserves_drafts:
        return False
    return by_ratio or not rules.drafts_by_ratio_only


def draft_holders(rules: Rules, slots: Numeric, clamp: Numeric, requests: Numeric) -> Numeric:
    """How many hold D draft states each [slots or requests]: every slot, every request that is charged, or those of
    them that the slots admit and the padding slot.
    """
    if rules.drafts == "in every slot":
        return slots
    if rules.drafts == "before the split":
        return requests + 0 * clamp
    return np.minimum(requests, clamp) + rules.padding_slots


def draft_reserve_bytes(rank: Rank, slots: Numeric, clamp: Numeric) -> Numeric:
    """Draft states [bytes], at the whole slot each."""
    return draft_holders(rank.rules, slots, clamp, rank.requests_charged) * rank.D * rank.slot_bytes


def state_bytes(rank: Rank, slots: Numeric) -> Numeric:
    """What K = `slots` is charged [bytes], the padding slot and rings included."""
    return (slots + rank.rules.padding_slots) * rank.slot_bytes + rank.ring_fixed_bytes


def state_budget_bytes(rest_gib: Numeric, ratio: Numeric) -> Numeric:
    """State budget [bytes, float] of a ratio [-]: rest x r / (1 + r)."""
    return rest_gib * ratio / (1 + ratio) * GIB


def slots_from_ratio(rank: Rank, ratio: Numeric) -> Numeric:
    """K [slots, float holding a whole number] from a ratio; may be 0 or less, which the engine refuses.

    Without drafts one padding slot comes off the budget. Under plain speculation the joint solve charges
    D draft states for each S slots, and 1 + D padding states.
    """
    rules = rank.resolved.rules  # asked a thousand times in a search: no property
    if rules.drafts == "in every slot":
        return state_budget_bytes(rank.rest_gib, ratio) // rank.slot_bytes // (1 + rank.D) // rank.slots_divisor
    if rules.drafts == "before the split":
        ahead = rank.slot_bytes * rank.requests_charged * rank.D / GIB
        return state_budget_bytes(rank.rest_gib - ahead, ratio) // rank.slot_bytes
    budget = state_budget_bytes(rank.rest_gib, ratio) - rank.ring_fixed_bytes
    padding = rank.slot_bytes * (1 + rank.D) if rules.charges_padding else 0
    return (budget - padding) // (rank.slot_bytes * (1 + rank.D / rank.S))


def minimum_rest_gib(rank: Rank, ratio: float) -> float:
    """The least `rest` [GiB per rank] that gives one request its slots by ratio [-]: the inverse of the above."""
    share = ratio / (1 + ratio)
    if rank.rules.drafts == "in every slot":
        return float(rank.S * rank.slots_divisor * (1 + rank.D) * rank.slot_bytes / GIB / share)
    if rank.rules.drafts == "before the split":
        return float((rank.S / share + rank.requests_charged * rank.D) * rank.slot_bytes / GIB)
    padding = rank.rules.padding_slots * (1 + rank.D)
    least = (rank.S + rank.D + padding) * rank.slot_bytes + rank.ring_fixed_bytes
    return float(least / GIB / share)
