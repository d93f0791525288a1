"""Which K, the state slots of one rank, is taken: by a pin, by the request count, or by the ratio.

Source: engine-sizing.md section 5 (`_handle_max_mamba_cache`), in the engine's order.
"""

import math
import sys

import numpy as np

from sizing.basics.numeric import Numeric
from sizing.basics.search import turning_point
from sizing.engine.charges import slots_from_ratio
from sizing.engine.draft_rules import drafts_of, share_of_rest
from sizing.engine.resolved import Rank, Resolved
from sizing.releases.flags import PIN, RATIO, REQUESTS
from sizing.scenario.inputs import MAX_RATIO

LEAST_RATIO = 1e-12  # [-] smaller than any ratio that leaves the state pool a slot
ROUNDED = 32 * sys.float_info.epsilon  # [-] more than the roundings on the way from a ratio to K and back add up to


def slots_set(rank: Rank, ratio: Numeric, pin: Numeric | None = None) -> Numeric:
    """K [slots per rank] that the settings give: the pin, else the request count where the radix cache is off, else the
    ratio [-]. A ratio may give 0 or less, which the engine refuses. `pin` [slots of the deployment] and the ratio stand
    in for the scenario's own.
    """
    if is_pinned(rank.resolved):
        return slots_from_pin(rank.resolved, (rank.scenario.max_mamba_cache_size or 0) if pin is None else pin)
    return slots_unpinned(rank, ratio)


def slots_unpinned(rank: Rank, ratio: Numeric) -> Numeric:
    """K [slots per rank] without a pin."""
    return slots_without_radix(rank.resolved) if ratio_is_ignored(rank.resolved) else slots_from_ratio(rank, ratio)


def slots_taken(rank: Rank, ratio: Numeric, pin: Numeric | None = None) -> Numeric:
    """The same, never below 0."""
    return np.maximum(slots_set(rank, ratio, pin), 0)


def most_slots(rank: Rank) -> Numeric:
    """The most slots [slots per rank] that a flag can give: infinity where a pin counts, else by the largest ratio."""
    return slots_from_ratio(rank, MAX_RATIO) if pin_is_ignored(rank.resolved) else math.inf


def ratios_around(rank: Rank, slots: int) -> tuple[float, float]:
    """The largest ratio [-] whose K is below `slots` [slots per rank], and the smallest that reaches it: one must."""
    slots_of = drafts_of(rank.rules).slots  # asked a dozen times

    def reaches(log: float) -> bool:
        return bool(slots_of(rank, math.exp(log)) >= slots)

    found = turning_point(math.log(LEAST_RATIO), math.log(MAX_RATIO), reaches, _log_ratio_near(rank, slots))
    low, high = found or (math.log(MAX_RATIO),) * 2
    return math.exp(low), min(math.exp(high), MAX_RATIO)


def _log_ratio_near(rank: Rank, slots: int) -> tuple[float, float] | None:
    """The logarithm of the ratio [-] that gives `slots`, as exact as floats are on both ways; None where none does."""
    share = share_of_rest(rank, slots)
    if not 0 < share < 1:
        return None
    ratio = share / (1 - share)
    log, width = math.log(ratio), ROUNDED * (1 + ratio)
    return log - width, log + width


def lever(resolved: Resolved, *, pinned: bool) -> str:
    """The flag that decides the slots of a split."""
    if pinned:
        return PIN
    return REQUESTS if ratio_is_ignored(resolved) else RATIO


def is_pinned(resolved: Resolved) -> bool:
    """Whether a pin decides the slots."""
    return resolved.scenario.split == "pin" and not pin_is_ignored(resolved)


def pin_is_ignored(resolved: Resolved) -> bool:
    """Up to 0.5.6 the ratio overwrites a pin while the radix cache is on."""
    return not resolved.rules.pin_wins and resolved.radix_cache


def ratio_is_ignored(resolved: Resolved) -> bool:
    """Radix cache off with a known request count takes exactly that many slots, whatever the ratio (section 5, 2)."""
    if resolved.radix_cache:
        return False
    return resolved.max_running_requests is not None or resolved.rules.slots_without_radix is not None


def by_ratio(resolved: Resolved) -> bool:
    """Whether the ratio decides the slots."""
    return not is_pinned(resolved) and not ratio_is_ignored(resolved)


def slots_without_radix(resolved: Resolved) -> int:
    """K [slots per rank] with the radix cache off, where the ratio is ignored."""
    asked = resolved.max_running_requests or resolved.rules.slots_without_radix or 0
    if resolved.rules.gdn_slots_over_dp:
        return asked // slots_divisor(resolved)
    return max(resolved.rules.least_requests, asked // resolved.scenario.attn_dp_size)


def slots_divisor(resolved: Resolved) -> int:
    """What every K is divided by: up to 0.5.6 the attention-DP width for GDN, else 1."""
    divided = resolved.rules.gdn_slots_over_dp and resolved.scenario.family == "GDN"
    return resolved.scenario.attn_dp_size if divided else 1


def pin_divisor(resolved: Resolved) -> int:
    """What --max-mamba-cache-size is divided by: the attention-DP width; up to 0.5.6 for GDN alone."""
    return slots_divisor(resolved) if resolved.rules.gdn_slots_over_dp else resolved.scenario.attn_dp_size


def slots_from_pin(resolved: Resolved, pin: Numeric) -> Numeric:
    """K [slots per rank] from --max-mamba-cache-size [slots]."""
    return pin // pin_divisor(resolved)


def pin_from_slots(resolved: Resolved, slots: int) -> int:
    """The least --max-mamba-cache-size [slots] that gives K [slots per rank]."""
    return slots * pin_divisor(resolved)
