"""The curves of the Traffic page: lengths, KV in use, and KV needed against KV left beside the slots. Per rank."""

from typing import NamedTuple

import numpy as np

from sizing.optimum import kv_tokens_for
from sizing.pools import pools_from_slots, rank_of
from sizing.traffic.held import demand, needed, reach
from sizing.traffic.mix import Array, Counts
from sizing.traffic.running import Traffic, Way, around

BINS_PER_OCTAVE = 4  # of the histogram over lengths
POINTS = 160  # of a curve, more than a figure has room to show
NEEDS = 24  # convolutions for the curve of what is needed; it bends so little that lines between them are right


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


class InUse(NamedTuple):
    """KV in use by all that a split admits."""

    pool: Array
    """KV wanted, as a share of the split's KV pool [-]."""
    density: Array
    """How likely it is, the highest point 1 [-]."""


def in_use(way: Way, traffic: Traffic) -> InUse:
    """The distribution of KV wanted by all that one way admits."""
    one, tokens, requests = traffic.one, way.split.kv_tokens, way.split.admitted
    if one.deviation == 0:
        return InUse(np.array([requests * one.most / tokens]), np.ones(1))
    found = demand(one, requests, max(tokens, reach(one, requests)))
    chances = np.diff(found.below, prepend=0)
    wide = max(1, len(chances) // (POINTS * 4))
    chances = np.add.reduceat(chances, np.arange(0, len(chances), wide))
    pool = (np.arange(len(chances)) * wide + wide / 2) * found.step / tokens
    seen = chances > chances.max() / 1000
    low, high = int(np.argmax(seen)), len(seen) - int(np.argmax(seen[::-1]))
    return InUse(pool[low:high], chances[low:high] / chances.max())


class Needs(NamedTuple):
    """KV [tokens] over requests in flight."""

    requests: Array
    needed: Array
    """At the risk."""
    at_mean: Array
    """Each at the mean length, which is how the balance page counts."""
    left: Array
    """The KV pool that is left beside C x S slots; below 0 where so many are not admitted."""


def needs(traffic: Traffic, most: int) -> Needs:
    """What 1 to `most` requests need, and what KV is left beside their slots."""
    scenario, risks = traffic.sizing.scenario, around(traffic.risk)
    requests = np.unique(np.linspace(1, max(most, 2), NEEDS).astype(np.int64))
    middle = [needed(traffic.one, int(C), risks)[1] for C in requests]
    rank = rank_of(scenario)
    left = kv_tokens_for(pools_from_slots(rank, requests * rank.S), requests)
    return Needs(requests, np.array(middle), requests * scenario.L, left)
