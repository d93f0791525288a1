"""How many requests are asked for, charged and admitted.

Source: engine-sizing.md sections 5 (`reqs`) and 7 (`resolve_max_num_reqs`).
"""

from functools import reduce

import numpy as np

from sizing.basics.numeric import Numeric, greater, lesser
from sizing.engine.resolved import Rank, Resolved


def requests_charged(resolved: Resolved) -> int:
    """Requests of one attention-DP rank whose drafts or rings are charged [requests]."""
    asked = resolved.scenario.max_running_requests or resolved.rules.speculation_requests
    width = resolved.scenario.attn_dp_size if resolved.rules.drafts_over_dp else 1
    return max(resolved.rules.least_requests, asked // width)


def requests_asked(resolved: Resolved) -> int | None:
    """What admission aims for on one rank [requests]: the share of the flag, 48 under speculation, or None."""
    asked, width = resolved.max_running_requests, asked_divisor(resolved)
    return max(resolved.rules.least_requests, asked // width) if asked is not None and width > 1 else asked


def asked_divisor(resolved: Resolved) -> int:
    """What admission divides --max-running-requests by: the attention-DP width, in releases that do, else 1."""
    rule = resolved.rules.asked_over_dp
    divided = rule == "always" or (rule == "under speculation" and resolved.scenario.D > 0)
    return resolved.scenario.attn_dp_size if divided else 1


def admitted(rank: Rank, rows: Numeric, clamp: Numeric) -> Numeric:
    """max_running_requests of one rank [requests], as its release caps them; 0 where no KV is left."""
    caps: list[Numeric] = [clamp]
    if rank.requests_asked is not None:
        caps.append(rank.requests_asked)
    if caps_by_estimate(rank):
        caps.append(estimate(rank, rows))
    if caps_by_tokens(rank):
        caps.append(cap_by_tokens(rank, rows))
    return greater(reduce(lesser, caps), 0) * (rows > 0)


def estimate(rank: Rank, rows: Numeric) -> Numeric:
    """The engine's own guess at running requests [requests] from rows of one rank and the context length."""
    factor, low, high = rank.rules.estimate
    guess = np.trunc(rows / rank.context_length * factor).astype(np.int64)
    return lesser(greater(guess, low), high)


def cap_by_tokens(rank: Rank, rows: Numeric) -> Numeric:
    """How many requests the KV rows of one rank allow [requests], of whatever length: never more than tokens // 2."""
    return rows // rank.rules.tokens_per_request


def caps_by_estimate(rank: Rank) -> bool:
    """Whether the engine's estimate is one of the caps."""
    return rank.requests_asked is None or rank.rules.asked_capped_by == "estimate"


def caps_by_tokens(rank: Rank) -> bool:
    """Whether tokens // 2 is one of the caps."""
    if rank.requests_asked is None:
        return rank.rules.estimate_capped_by_tokens
    return rank.rules.asked_capped_by == "tokens // 2"
