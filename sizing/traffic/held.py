"""KV tokens that requests in flight hold together: its distribution, and how much is needed at a chosen risk.

The model: C requests are always in flight, and when one ends the next begins. Each is part-way through its output,
independently of the others, at a decode step that is equally likely to be any of its steps. So the requests in flight
are not those of the trace: one that generates twice as long is met twice as often. This is the law of the age of a
renewal process (D. R. Cox, Renewal Theory, 1962, chapter 5). Where every request generates equally many tokens there is
no such law: those begun together stay in step and end together, so each is counted at its whole length, which is how
the balance page counts L.

C independent amounts add up by convolution: the C-th power of a generating function, inverted on a circle inside the
unit circle (J. Abate and W. Whitt, Numerical inversion of probability generating functions, Operations Research
Letters 12, 1992). Amounts are counted in steps of some tokens, once rounded down and once up; the truth lies between.
"""

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from sizing.traffic.mix import Array, Counts, Spans

ALIASING = 1e-8  # [-] what the inversion adds to a probability at most; the circle's radius follows from it
ROUNDING = 1e-6  # [-] rounding of the transforms, amplified by 1 / ALIASING; test_traffic_held.py measures far less
FINENESS = 0.01  # of the standard deviation: how far counting in steps may shift the sum, before MOST_STEPS
MOST_STEPS = 2**20  # that one transform takes; a tenth of a second and 100 MB
DEVIATIONS = 6  # above the mean: where the first transform ends; it is widened where the risk lies higher


@dataclass(frozen=True, eq=False)
class Held:
    """What one request in flight holds; compared by identity, so that what follows from it can be remembered."""

    shares: Array
    """shares[n] is the probability of n tokens [-]; the last one is above 0."""
    mean: float
    """[tokens]"""
    deviation: float
    """Standard deviation [tokens]; 0 where all hold the same."""


def held(spans: Spans, *, whole: bool = False) -> Held:
    """What a request in flight holds: part-way through its output, or at its `whole` length."""
    if whole or spans.starts is None or spans.in_step:
        return _held(_dense(spans.whole, int(spans.whole.values[-1])))
    top = int(spans.ends.values[-1])
    begun = np.cumsum(_dense(spans.starts, top))
    ended = np.cumsum(_dense(spans.ends, top))
    return _held(np.concatenate(([0.0], (begun - ended)[:-1])))


def _dense(counts: Counts, top: int) -> Array:
    found = np.zeros(top + 1)
    found[counts.values] = counts.counts
    return found


def _held(weights: Array) -> Held:
    shares = weights / weights.sum()
    tokens = np.arange(len(shares))
    if np.count_nonzero(shares) == 1:
        return Held(shares, float(len(shares) - 1), 0.0)
    mean = float(shares @ tokens)
    return Held(shares, mean, float(np.sqrt(shares @ (tokens - mean) ** 2)))


class Demand(NamedTuple):
    """The distribution of KV in use by `requests` in flight."""

    requests: int
    step: int
    """[tokens]"""
    most: Array
    """most[k] is at least the probability that up to k steps are in use [-]."""
    least: Array
    """least[k] is at most that probability [-]."""

    def overflow(self, tokens: int) -> tuple[float, float]:
        """The probability [-] that more than `tokens` are wanted: at least, at most."""
        at = min(tokens // self.step, len(self.most) - 1)
        return max(0.0, 1 - float(self.most[at]) - ROUNDING), min(1.0, 1 - float(self.least[at]) + ROUNDING)


def demand(one: Held, requests: int, tokens: int) -> Demand:
    """KV in use by `requests` in flight, up to at least `tokens`."""
    fine = FINENESS * one.deviation / np.sqrt(requests)
    step = max(1, int(fine), -(-tokens // MOST_STEPS))
    steps = tokens // step + 1
    values = np.arange(len(one.shares))
    down = _sum(np.bincount(values // step, one.shares), requests, steps)
    up = down if step == 1 else _sum(np.bincount(-(-values // step), one.shares), requests, steps)
    return Demand(requests, step, np.cumsum(down), np.cumsum(up))


def _sum(shares: Array, requests: int, steps: int) -> Array:
    """The first `steps` probabilities of a sum of so many independent amounts.

    An amount beyond them is left out: with it the sum lies beyond them too.
    """
    size = 1 << (steps - 1).bit_length()
    damping = ALIASING ** (np.arange(size) / size)
    amounts = np.zeros(size)
    known = min(len(shares), steps)
    amounts[:known] = shares[:known] * damping[:known]
    found = np.fft.irfft(_power(np.fft.rfft(amounts), requests), size)[:steps] / damping[:steps]
    return np.maximum(found, 0.0)


def _power(base: Array, exponent: int) -> Array:
    """By squaring: far faster than numpy's power of complex numbers."""
    found = np.ones_like(base)
    while exponent:
        if exponent & 1:
            found = found * base
        exponent >>= 1
        if exponent:
            base = base * base
    return found


@lru_cache(maxsize=4096)
def needed(one: Held, requests: int, risk: float) -> int:
    """The least KV [tokens] that so many in flight exceed at most this often [-]; rounded up where unsure."""
    if one.deviation == 0:
        return requests * int(one.mean)
    most = requests * (len(one.shares) - 1)
    reach = int(requests * one.mean + DEVIATIONS * one.deviation * np.sqrt(requests))
    while True:
        reach = min(reach, most)
        found = demand(one, requests, reach)
        enough = np.flatnonzero(1 - found.least + ROUNDING <= risk)
        if enough.size:
            return min(int(enough[0]) * found.step, most)
        if reach == most:
            return most
        reach *= 2


def carried(one: Held, tokens: int, risk: float) -> int:
    """The most requests [requests per rank] whose KV in use exceeds `tokens` with at most this probability [-]."""
    if one.deviation == 0:
        return tokens // int(one.mean)
    low, high = 0, tokens + 1  # each holds at least one token
    spread = NormalDist().inv_cdf(1 - risk) * one.deviation
    near = int((np.sqrt(spread**2 + 4 * one.mean * tokens) - spread) ** 2 / (4 * one.mean**2))
    while high - low > 1:
        near = min(max(near, low + 1), high - 1)
        spare = tokens - needed(one, near, risk)
        if spare >= 0:
            low = near
        else:
            high = near
        near += int(spare / (one.mean + spread / (2 * np.sqrt(near))))
        near += (near == low) - (near == high)
    return low
