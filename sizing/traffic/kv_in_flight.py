"""KV tokens that requests in flight hold together: its distribution, and how much is needed at a chosen risk.

The model: C requests are always in flight, and when one ends the next begins. Each is part-way through its output,
independently of the others, at a decode step that is equally likely to be any of its steps. So the requests in flight
are not those of the trace: one that generates twice as long is met twice as often. This is the law of the age of a
renewal process (D. R. Cox, Renewal Theory, 1962, chapter 5). Where every request generates equally many tokens there is
no such law: those begun together stay in step and end together, so each is counted at its whole length, which is how
the balance page counts L.

C independent amounts add up by convolution: the C-th power of a generating function, inverted on a circle inside the
unit circle (J. Abate and W. Whitt, Numerical inversion of probability generating functions, Operations Research
Letters 12, 1992). Where KV is large, amounts are counted in steps of some tokens; one between two steps is shared out
so that the mean stays exact. test_traffic_held.py puts the result beside exact convolutions.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from sizing.traffic.mix import Array, Counts, Spans

ALIASING = 1e-8  # [-] what the inversion adds to a probability at most; the circle's radius follows from it
SURE = 1e-6  # [-] probabilities are right to this, rounding of the transforms included (test_traffic_held.py)
STEPS = 2**16  # a transform has about so many; a few milliseconds
COARSEST = 1 / 8  # of a standard deviation: a step is never wider, up to
MOST_STEPS = 2**22  # in one transform; half a second and 200 MB
MOST_SOUGHT = 100_000  # requests in flight, where a caller does not say less
DEVIATIONS = 6  # above the mean: where the first transform ends; it is widened where the risk lies higher


@dataclass(frozen=True, eq=False)
class KvInFlight:
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
def kv_in_flight(spans: Spans, *, whole: bool = False) -> KvInFlight:
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


def _held(weights: Array) -> KvInFlight:
    shares = weights / weights.sum()
    tokens = np.arange(len(shares))
    if np.count_nonzero(shares) == 1:
        return KvInFlight(shares, float(len(shares) - 1), 0.0)
    mean = float(shares @ tokens)
    return KvInFlight(shares, mean, float(np.sqrt(shares @ (tokens - mean) ** 2)))


class Demand(NamedTuple):
    """The distribution of KV in use by `requests` in flight."""

    requests: int
    step: int
    """[tokens]"""
    below: Array
    """below[k] is the probability that up to k steps are in use [-]."""

    def overflow(self, tokens: int) -> float:
        """The probability that more than `tokens` are wanted [-]; 0 where it is too small to be told from it."""
        over = 1 - float(self.below[min(tokens // self.step, len(self.below) - 1)])
        return over if over > SURE else 0.0

    def missing(self, tokens: int) -> float:
        """How much more than `tokens` is wanted in the mean over all time [tokens], as far as the array reaches."""
        return float((1 - self.below[tokens // self.step :]).sum()) * self.step


def reach(one: KvInFlight, requests: int) -> int:
    """KV [tokens] that so many in flight hardly ever exceed."""
    usual = requests * one.mean + DEVIATIONS * one.deviation * math.sqrt(requests)
    return int(min(usual, requests * one.most))


def demand(one: KvInFlight, requests: int, tokens: int) -> Demand:
    """KV in use by `requests` in flight, up to at least `tokens`."""
    widest, step = min(tokens / STEPS, one.deviation * COARSEST), 1
    while step * 2 <= widest or tokens // step >= MOST_STEPS:
        step *= 2
    return Demand(requests, step, np.cumsum(_sum(_counted(one, step), requests, tokens // step + 1)))


@lru_cache(maxsize=64)
def _counted(one: KvInFlight, step: int) -> Array:
    """Steps are powers of two, so few are met again and again: a long tail is counted once for each."""
    return in_steps(one.shares, step)


def in_steps(shares: Array, step: int) -> Array:
    """The same amounts counted in whole steps, each shared between the two steps around it so that the mean stays.

    The variance grows by at most step**2 / 4.
    """
    rows = np.pad(shares, (0, -len(shares) % step)).reshape(-1, step)
    upper = rows @ (np.arange(step) / step)
    return np.append(rows.sum(axis=1) - upper, 0) + np.append(0, upper)


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
def kv_needed(one: KvInFlight, requests: int, risks: tuple[float, ...]) -> tuple[int, ...]:
    """For each risk [-] the KV [tokens] that so many in flight exceed at most so often."""
    most = requests * one.most
    if one.deviation == 0:
        return (most,) * len(risks)
    tokens = reach(one, requests)
    while True:
        found = demand(one, requests, tokens)
        at = np.searchsorted(found.below, [1 - risk for risk in risks])
        if at.max() < len(found.below) or tokens == most:
            return tuple(min(int(steps) * found.step, most) for steps in at)
        tokens = min(tokens * 2, most)


def most_in_flight(
    one: KvInFlight, tokens: int, risks: tuple[float, ...], at: int = 0, sought: int = MOST_SOUGHT
) -> int:
    """The most requests [requests per rank] that exceed `tokens` at most as often as risks[at] says, up to `sought`.

    That bound does not hold where all requests are of one length. One convolution gives what all risks need, so all
    are worked out at once.
    """
    if one.deviation == 0:
        return tokens // one.most
    low, high = 0, min(tokens, sought) + 1  # each holds at least one token
    spread = NormalDist().inv_cdf(1 - risks[at]) * one.deviation
    near = int((math.sqrt(spread**2 + 4 * one.mean * tokens) - spread) ** 2 / (4 * one.mean**2))
    turn = 0
    while high - low > 1:
        turn += 1  # every fourth halves what is left: under a heavy tail the secant is poor
        near = (low + high) // 2 if turn % 4 == 0 else min(max(near, low + 1), high - 1)
        spare = tokens - kv_needed(one, near, risks)[at]
        low, high = (near, high) if spare >= 0 else (low, near)
        near += int(spare / (one.mean + spread / (2 * math.sqrt(near))))
        near += (near == low) - (near == high)
    return low
