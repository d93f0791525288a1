"""The curves of the Traffic page: lengths, KV in use, and KV needed against KV left beside the slots. Per rank."""

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from sizing.answers.what_runs import kv_tokens_for
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import rank_of
from sizing.traffic.kv_in_flight import KvInFlight, demand, in_steps, reach
from sizing.traffic.mix import Array, Counts
from sizing.traffic.running import Traffic, Way

BINS_PER_OCTAVE = 4  # of the histogram over lengths
POINTS = 160  # of a curve: nearer together than a figure of 1560 px can show a corner
STEPS = 1000  # of a figure's height or width: what counting in steps spreads a sum by is below half a pixel
OVER = 1.5  # times the most KV that is left: what is needed is worked out up to there
EVERY = 128  # requests: up to so many each is worked out, half a millisecond a convolution
FIRST = 9  # convolutions for the curve of what more need; then where a line between two is not right
MOST = 60  # convolutions of it; a smooth curve takes about 20, one with a jump about 10 more


class Lengths(NamedTuple):
    """One histogram of lengths, over bins that are equally wide on a logarithmic axis, and its cumulative curve."""

    edges: Array
    """[tokens], one more than `shares`"""
    shares: Array
    """The share of all requests in each bin [-]."""
    tokens: Array
    below: Array
    """The share of requests [-] that have at most so many `tokens`."""


def lengths(counts: Counts) -> Lengths:
    """The figure's view of a histogram; a length of 0 counts in the first bin."""
    top = max(int(counts.values[-1]), 2)
    octaves = np.arange(0, np.ceil(np.log2(top) * BINS_PER_OCTAVE) + 2) / BINS_PER_OCTAVE
    edges = 2.0 ** (octaves - 0.5 / BINS_PER_OCTAVE)
    shares = np.histogram(np.maximum(counts.values, 1), edges, weights=counts.counts)[0] / counts.total
    below = np.cumsum(counts.counts) / counts.total
    shown = np.unique(np.searchsorted(below, np.linspace(0, 1, POINTS)).clip(0, len(below) - 1))
    return Lengths(edges, shares, counts.values[shown], below[shown])


def counted(one: KvInFlight, step: int) -> KvInFlight:
    """The same amounts counted in steps [tokens], for drawing."""
    shares = np.trim_zeros(in_steps(one.shares, step), "b")
    return one if step == 1 else KvInFlight(shares, one.mean / step, one.deviation / step)


def _step(tokens: int, requests: int) -> int:
    """A step [tokens] that spreads the sum of so many by at most half of 1 / STEPS of `tokens`."""
    return max(1, int(tokens / (STEPS * math.sqrt(requests))))


class InUse(NamedTuple):
    """KV in use by all that a split admits."""

    pool: Array
    """KV wanted, as a share of the split's KV pool [-], ascending."""
    density: Array
    """How likely it is, the highest point 1 [-]."""


def in_use(way: Way, traffic: Traffic) -> InUse:
    """The distribution of KV wanted by all that one way admits; an upright line where all requests hold the same."""
    one, tokens, requests = traffic.one, way.split.kv_tokens, way.split.admitted
    if one.deviation == 0:
        return InUse(np.full(2, requests * one.most / tokens), np.array([0.0, 1.0]))
    step = _step(max(tokens, reach(one, requests)), requests)
    steps = counted(one, step)
    found = demand(steps, requests, reach(steps, requests))
    chances = np.diff(found.below, prepend=0)
    seen = np.flatnonzero(chances > chances.max() / 1000)
    low, high = int(seen[0]), int(seen[-1]) + 1
    wide = -(-(high - low) // POINTS)
    chances = np.add.reduceat(chances[low:high], np.arange(0, high - low, wide))
    at = (low + np.arange(len(chances)) * wide + (wide - 1) / 2) * found.step * step
    pool = np.concatenate(([at[0] - wide * step], at, [at[-1] + wide * step])) / tokens
    return InUse(np.maximum(pool, 0), np.pad(chances / chances.max(), 1))


class Needs(NamedTuple):
    """KV [tokens] over requests in flight."""

    requests: Array
    """1 to the most drawn, ascending."""
    needed: Array
    """At the risk; where it is more than OVER times what is left or one request needs, that much instead."""
    at_mean: Array
    """Each at the mean length, which is how the balance page counts."""
    left: Array
    """The KV pool that is left beside C x S slots; below 0 where so many are not admitted."""


def needs(traffic: Traffic, most: int) -> Needs:
    """What 1 to `most` requests need, and what KV is left beside their slots."""
    rank, L = rank_of(traffic.sizing.scenario), traffic.sizing.scenario.L
    whole = np.arange(1, max(most, 2) + 1)
    left = kv_tokens_for(pools_from_slots(rank, rank.request_slots.slots(whole)), whole)
    last = int(np.flatnonzero(left >= 0)[-1]) if left.max() >= 0 else 0
    needed = _needed(traffic, int(whole[-1]), max(int(left.max()), L))
    at = np.unique([*np.linspace(1, whole[-1], POINTS).astype(int), *needed, *whole[last : last + 2]])
    known = sorted(needed)
    between = np.interp(at, known, [needed[requests] for requests in known])
    return Needs(at, between, at * L, left[at - 1])


def _needed(traffic: Traffic, most: int, tokens: int) -> dict[int, float]:
    """What so many need [tokens]: each of a few, of many enough that a line between two is right to half a pixel."""
    one, risk = traffic.one, traffic.risk
    if one.deviation == 0:
        return {requests: float(requests * one.most) for requests in (1, most)}
    top = int(OVER * max(one.quantile(1 - risk), tokens))
    step = _step(top, most)
    steps = counted(one, step)

    def need(requests: int) -> float:
        found = demand(steps, requests, top // step)
        return float(np.interp(1 - risk, found.below, np.arange(len(found.below)))) * found.step * step

    # It bends like the square root of the requests, so the first lie nearer together where they are few.
    places = np.linspace(0, 1, most if most <= EVERY else FIRST) ** (1 if most <= EVERY else 2)
    first = np.unique(np.rint(1 + (most - 1) * places).astype(int)).tolist()
    known = {requests: need(requests) for requests in first}
    unsure = list(pairwise(first))
    while unsure and len(known) < MOST:
        low, high = unsure.pop(0)
        middle = (low + high) // 2
        if middle == low:
            continue
        known[middle] = need(middle)
        straight = known[low] + (known[high] - known[low]) * (middle - low) / (high - low)
        if abs(known[middle] - straight) > top / OVER / STEPS:
            unsure += [(low, middle), (middle, high)]
    return known
