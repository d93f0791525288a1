"""What state is charged: slots, the padding slot, draft states and rings; and how many slots a budget then holds.

Source: engine-sizing.md section 5 (`_handle_max_mamba_cache`); how draft states are charged stands in draft_rules.py.
"""

import numpy as np

from sizing.basics.numeric import Numeric
from sizing.engine.draft_rules import drafts_of, least_rest_gib
from sizing.engine.padding import slots_charged
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


def draft_reserve_bytes(rank: Rank, slots: Numeric, clamp: Numeric) -> Numeric:
    """What is reserved for draft states [bytes]: each is charged as much as a whole slot."""
    if not isinstance(rank.D, np.ndarray) and rank.D == 0:
        return 0
    holders = drafts_of(rank.rules).holders(rank.rules, slots, clamp, rank.requests_charged)
    return holders * rank.D * rank.slot_bytes


def state_bytes(rank: Rank, slots: Numeric) -> Numeric:
    """What K = `slots` is charged [bytes], the padding slot and rings included."""
    return slots_charged(rank.rules, slots) * rank.slot_bytes + rank.ring_fixed_bytes


def slots_from_ratio(rank: Rank, ratio: Numeric) -> Numeric:
    """K [slots, float holding a whole number] from a ratio [-]; may be 0 or less, which the engine refuses."""
    return drafts_of(rank.rules).slots(rank, ratio)


def minimum_rest_gib(rank: Rank, ratio: float) -> float:
    """The least `rest` [GiB per rank] that gives one request its slots by ratio [-]: the inverse of the above."""
    return least_rest_gib(rank, ratio / (1 + ratio))
