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

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from sizing.traffic.mix import Array, Counts, Spans

ALIASING = 1e-8  # [-] what the inversion adds to a probability at most; the circle's radius follows from it
ROUNDING = 1e-6  # [-] rounding of the transforms, amplified by 1 / ALIASING; test_traffic_held.py measures far less
COARSE, FINE = 0.2, 0.01  # of the standard deviation: how far counting in steps may shift the sum, before MOST_STEPS
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

    @property
    def most(self) -> int:
        """The most that one holds [tokens]."""
        return len(self.shares) - 1

    def quantile(self, share: float) -> int:
        """The least number of tokens that at least this share [-] of those in flight do not exceed."""
        return int(np.searchsorted(np.cumsum(self.shares), share * (1 - 1e-12)))


@lru_cache(maxsize=32)
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

    def missing(self, tokens: int) -> float:
        """How much more than `tokens` is wanted in the mean over all time [tokens], as far as the arrays reach."""
        beyond = 1 - (self.most + self.least) / 2
        return float(np.maximum(beyond[tokens // self.step :], 0.0).sum()) * self.step


def reach(one: Held, requests: int) -> int:
    """KV [tokens] that so many in flight hardly ever exceed."""
    usual = requests * one.mean + DEVIATIONS * one.deviation * np.sqrt(requests)
    return int(min(usual, requests * one.most))


def demand(one: Held, requests: int, tokens: int, fineness: float = FINE) -> Demand:
    """KV in use by `requests` in flight, up to at least `tokens`."""
    step = max(1, int(fineness * one.deviation / math.sqrt(requests)), -(-tokens // MOST_STEPS))
    steps = tokens // step + 1
    down = _sum(_in_steps(one.shares, step), requests, steps)
    up = down if step == 1 else _sum(_in_steps(np.pad(one.shares, (step - 1, 0)), step), requests, steps)
    return Demand(requests, step, np.cumsum(down), np.cumsum(up))


def _in_steps(shares: Array, step: int) -> Array:
    """The same amounts counted in whole steps, rounded down."""
    return np.pad(shares, (0, -len(shares) % step)).reshape(-1, step).sum(axis=1)


def _sum(shares: Array, requests: int, steps: int) -> Array:
    """The first `steps` probabilities of a sum of so many independent amounts.

    An amount beyond them is left out: with it the sum lies beyond them too.
    """
    size = 1 << (steps - 1).bit_length()
    damping = np.exp(math.log(ALIASING) / size * np.arange(steps))
    amounts = np.zeros(size)
    known = min(len(shares), steps)
    amounts[:known] = shares[:known] * damping[:known]
    found = np.fft.irfft(_power(np.fft.rfft(amounts), requests), size)[:steps] / damping
    return np.maximum(found, 0.0)


def _power(base: Array, exponent: int) -> Array:
    """By squaring: far faster than numpy's power of complex numbers."""
    found = None
    while exponent:
        if exponent & 1:
            found = base if found is None else found * base
        exponent >>= 1
        if exponent:
            base = base * base
    return found


@lru_cache(maxsize=16384)
def needed(one: Held, requests: int, risks: tuple[float, ...], fineness: float = FINE) -> tuple[tuple[int, int], ...]:
    """For each risk [-] the KV [tokens] that so many exceed at most so often: what it is at least and at most."""
    most = requests * one.most
    if one.deviation == 0:
        return ((most, most),) * len(risks)
    tokens = reach(one, requests)
    while True:
        found = demand(one, requests, tokens, fineness)
        low = np.searchsorted(found.most, [1 - risk - ROUNDING for risk in risks])
        high = np.searchsorted(found.least, [1 - risk + ROUNDING for risk in risks])
        if high.max() < len(found.least) or tokens == most:
            steps = zip(low, high, strict=True)
            return tuple((int(least) * found.step, min(int(most_) * found.step, most)) for least, most_ in steps)
        tokens = min(tokens * 2, most)


def fits(one: Held, requests: int, tokens: int, risks: tuple[float, ...], at: int = 0) -> bool:
    """Whether so many exceed `tokens` at most as often as risks[at] says; all risks are worked out at once.

    Counting in wide steps decides wherever it is sure. Where not even narrow ones are, they do not fit.
    """
    for fineness in (COARSE, FINE):
        least, most = needed(one, requests, risks, fineness)[at]
        if tokens >= most or tokens < least:
            return tokens >= most
    return False


def most_in_flight(one: Held, tokens: int, risks: tuple[float, ...], at: int = 0) -> int:
    """The most requests [requests per rank] that `fits` holds for."""
    if one.deviation == 0:
        return tokens // one.most
    low, high = 0, tokens + 1  # each holds at least one token
    spread = NormalDist().inv_cdf(1 - risks[at]) * one.deviation
    near = int((math.sqrt(spread**2 + 4 * one.mean * tokens) - spread) ** 2 / (4 * one.mean**2))
    while high - low > 1:
        near = min(max(near, low + 1), high - 1)
        if fits(one, near, tokens, risks, at):
            low = near
        else:
            high = near
        spare = tokens - sum(needed(one, near, risks, COARSE)[at]) / 2
        near += int(spare / (one.mean + spread / (2 * math.sqrt(near))))
        near += (near == low) - (near == high)
    return low
