"""What the engine keeps free when it admits a request: room for tokens to come, by the declared max_new_tokens.

Source: running-server.md 6.2 and 6.3 (schedule_policy.py, PrefillAdder; prefill_budget.py). A request is admitted where
its input, its own max_new_tokens and a page are free beside a share of what each running request may still generate.
So KV that is free is not all KV that is not in use, and fewer run than KV holds.
"""

import math
from typing import NamedTuple

import numpy as np

from sizing.traffic.kv_in_flight import KvInFlight
from sizing.traffic.mix import Counts, Mix

CLIP = 4096  # [tokens] SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION
# new_token_ratio once it has fallen, 600 steps after a start or a retraction: SGLANG_INIT_NEW_TOKEN_RATIO x
# SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR at the default --schedule-conservativeness.
SHARE = 0.7 * 0.14  # [-]


class Declared(NamedTuple):
    """What requests declare as max_new_tokens: one number for all, or each its own output and a margin [tokens]."""

    max_new_tokens: int | None = None
    margin: int | None = None

    @property
    def words(self) -> str:
        """As a sentence names it."""
        if self.max_new_tokens is not None:
            return f"max_new_tokens {self.max_new_tokens:,}"
        return f"max_new_tokens {self.margin or 0:,} above what each generates"


class Kept(NamedTuple):
    """Tokens that are kept free, on average."""

    next: int
    """For the request that is admitted: what it may generate, and a page."""
    each: int
    """For each that runs: its share of what it may still generate."""


class Admitting(NamedTuple):
    """Requests with what is kept free for them: so many of `one` and `extra` tokens must fit into KV."""

    one: KvInFlight
    extra: int
    """[tokens], once; it may be negative."""


def kept_free(outputs: Counts, declared: Declared, page: int) -> Kept:
    """What is kept free for requests of these outputs [tokens], `page` the tokens of one page.

    A running request is met at each step of its output equally often, as in kv_in_flight.py.
    """
    top = int(outputs.values[-1])
    longer = np.zeros(top + 1)
    longer[outputs.values] = outputs.counts
    at_least = longer[::-1].cumsum()[::-1]  # requests whose output is that long, or longer
    steps, weights = np.arange(1, top + 1), at_least[1:]
    if declared.max_new_tokens is not None:
        most: float = min(declared.max_new_tokens, CLIP)
        left = np.clip(declared.max_new_tokens - steps, 0, CLIP)
    else:
        margin = declared.margin or 0
        most = float(np.minimum(outputs.values + margin, CLIP) @ outputs.counts) / outputs.total
        left = np.minimum(steps - 1 + margin, CLIP)  # what is left is spread as what is done
    mean_left = float(left @ weights) / float(weights.sum()) if len(steps) and weights.sum() else 0.0
    return Kept(math.ceil(most) + page, math.ceil(SHARE * mean_left))


def admitting(one: KvInFlight, mix: Mix, declared: Declared | None, page: int) -> Admitting:
    """What one in flight counts for at admission: what it holds, where nothing is declared or no output is known."""
    outputs = mix.outputs
    if declared is None or outputs is None or not outputs.values[-1]:
        return Admitting(one, 0)
    kept = kept_free(outputs, declared, page)
    if not kept.each:
        return Admitting(one, kept.next)
    shares = np.concatenate((np.zeros(kept.each), one.shares))
    return Admitting(KvInFlight(shares, one.mean + kept.each, one.deviation), kept.next - kept.each)
