"""Lengths that are known as buckets only: histograms of Prometheus, from /metrics, its HTTP API or a table.

A bucket counts the requests up to its bound `le`, and those of all smaller bounds with them (Prometheus, Histogram). So
how many lie between two bounds is exact, the mean is sum / count, and a quantile lies between two bounds.

The requests that stand for them have the right number in each bucket and the right sum. Which input goes with which
output is not known: the longest are put together, which makes totals differ as much as they can.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Literal, NamedTuple

import numpy as np

from sizing.basics.units import count
from sizing.traffic.mix import MAX_LENGTH, Array, Buckets, Known, Mix, TrafficNotice, mix_of, mix_of_lengths
from sizing.traffic.trace_file import TraceFile

_Within = Literal["middle", "apart", "close"]  # how the requests of one bucket differ
QUANTILES = (Fraction(1, 2), Fraction(19, 20), Fraction(99, 100))
MAX_REQUESTS = 2**31 - 1  # as many as one row of a histogram of lengths counts
CUMULATIVE = "the counts of le are cumulative"


class Histogram(NamedTuple):
    """How many requests lie up to each bound, and what they sum to."""

    bounds: tuple[float, ...]
    """Ascending [tokens]; the last one is infinite."""
    counts: tuple[int, ...]
    """Requests above the bound before and up to this one."""
    sum: float | None
    """[tokens]"""
    first: int = 0
    """The shortest that any can be [tokens]."""

    @property
    def total(self) -> int:
        """All requests."""
        return sum(self.counts)

    @property
    def least(self) -> list[int]:
        """The shortest length in each bucket [tokens]."""
        return [self.first, *(math.floor(bound) + 1 for bound in self.bounds[:-1])]

    @property
    def most(self) -> list[int | None]:
        """The longest length in each bucket [tokens]; None where nothing bounds it."""
        return [None if math.isinf(bound) else math.floor(bound) for bound in self.bounds]


class Series(NamedTuple):
    """One histogram as it is written: counts up to each bound, from one scrape or as the difference of two."""

    cumulative: Mapping[float, float]
    sum: float | None


def histogram_of(file: TraceFile, series: Sequence[Series], what: str, first: int) -> Histogram:
    """The histogram of all series together, of which none is shorter than `first` [tokens].

    Raises TraceError where one is not cumulative or has no end.
    """
    bounds = sorted(series[0].cumulative)
    if any(sorted(one.cumulative) != bounds for one in series):
        file.fail(f"has buckets of {what} with different bounds le: give those of one model.", "columns")
    if not bounds or not math.isinf(bounds[-1]):
        file.fail(
            f"has no bucket +Inf of {what}, so how many are longer is not known: {CUMULATIVE}, add it.", "columns"
        )
    apart = [_apart(file, one.cumulative, what) for one in series]
    sums = [one.sum for one in series if one.sum is not None]
    counts = tuple(map(sum, zip(*apart, strict=True)))
    shortest = first if math.isinf(bounds[0]) else min(first, math.floor(bounds[0]))
    found = Histogram(tuple(bounds), counts, sum(sums) if len(sums) == len(series) else None, max(0, shortest))
    if not found.total:
        file.fail(f"counts no {what}: give it after requests were served.")
    if found.total > MAX_REQUESTS:
        file.fail(
            f"counts more than {MAX_REQUESTS:,} {what}: divide every count and sum by the same number.", "too_large"
        )
    least = sum(low * size for low, size in zip(found.least, counts, strict=True))
    ends = [(MAX_LENGTH if high is None else high) * size for high, size in zip(found.most, counts, strict=True)]
    if found.sum is not None and not least <= found.sum <= sum(ends):
        file.fail(
            f"has {found.sum:g} as the sum of {what}, which its buckets cannot have: give both of one scrape.",
            "columns",
        )
    return found


def _apart(file: TraceFile, cumulative: Mapping[float, float], what: str) -> list[int]:
    """How many requests lie in each bucket, of counts up to each bound."""
    found, before = [], 0.0
    for bound in sorted(cumulative):
        held = cumulative[bound]
        if not (math.isfinite(held) and held == int(held) and held >= 0):
            file.fail(f"has {held:g} as the count of {what} up to le = {bound:g}: give whole counts.", "columns")
        if held < before:
            file.fail(
                f"counts {count(int(held))} {what} up to le = {bound:g} and {count(int(before))} up to the bound "
                f"below it, and {CUMULATIVE}: add up what stands in each bucket.",
                "columns",
            )
        found.append(int(held - before))
        before = held
    return found


def known_of(histogram: Histogram) -> Known:
    """Mean and quantiles as far as they are known."""
    mean = None if histogram.sum is None else histogram.sum / histogram.total
    found = {}
    for share in QUANTILES:
        rank = math.ceil(share * histogram.total)
        low, high = _between(histogram, rank)
        value = low if high is None else _inside(histogram, rank, low, high)
        found[float(share)] = (value, low, high)
    return Known(mean, found)


def _between(histogram: Histogram, rank: int) -> tuple[float, float | None]:
    """Between which lengths the request of this rank, from 1, lies; the sum bounds the longest ones."""
    reached = np.cumsum(histogram.counts)
    at = int(np.searchsorted(reached, rank))
    low, high = histogram.least[at], histogram.most[at]
    if histogram.sum is not None:
        below = sum(least * size for least, size in zip(histogram.least[:at], histogram.counts[:at], strict=True))
        below += low * (rank - 1 - (int(reached[at - 1]) if at else 0))
        longest = math.floor((histogram.sum - below) / (histogram.total - rank + 1))
        high = longest if high is None else max(low, min(high, longest))
    return low, high


def _inside(histogram: Histogram, rank: int, low: float, high: float) -> float:
    """Where the rank falls if the requests of a bucket lie evenly in it; beyond the last bound, their mean."""
    reached = np.cumsum(histogram.counts)
    at = int(np.searchsorted(reached, rank))
    size, before = histogram.counts[at], int(reached[at - 1]) if at else 0
    if histogram.most[at] is None and histogram.sum is not None:
        ends = zip(histogram.least, histogram.bounds, histogram.counts, strict=True)
        others = sum((least + bound) / 2 * held for least, bound, held in ends if math.isfinite(bound))
        value = (histogram.sum - others) / size
    else:
        value = low + (high - low) * (rank - before) / size
    return min(max(value, low), high)


class _Lengths(NamedTuple):
    """Distinct lengths and how many requests have each."""

    lengths: Array
    """[tokens]"""
    counts: Array


def _lengths(file: TraceFile, histogram: Histogram, what: str, within: _Within) -> _Lengths:
    """Requests with the histogram's counts, and with its sum to a token where it has one.

    Raises TraceError where the last bucket has requests and no sum says how long they are.
    """
    least, most = histogram.least, histogram.most
    open_ended = histogram.counts[-1]
    if histogram.sum is None and open_ended:
        file.fail(
            f"has {count(open_ended)} of its {count(histogram.total)} {what} beyond the last bound of "
            f"{histogram.bounds[-2] if len(histogram.bounds) > 1 else 0:g}, and no sum that says how long they are: "
            f"{CUMULATIVE}; give the sum too (the _sum of /metrics), or one row a request.",
            "columns",
        )
    spare = _spare(histogram, within)
    wide = sum((high - low) * size for low, high, size in zip(least, most, histogram.counts, strict=True) if high)
    share = Fraction(0) if not wide else min(Fraction(spare, wide), Fraction(1, 2) if open_ended else Fraction(1))
    found: dict[int, int] = {}
    for low, high, size in zip(least, most, histogram.counts, strict=True):
        if size:
            wanted = spare if high is None else min(spare, math.ceil(share * (high - low) * size))
            spare -= wanted
            step = high - low if within == "apart" and high is not None and high > low else 1
            for length, held in _shared(low, size, wanted, step):
                found[length] = found.get(length, 0) + held
    kept = [(length, held) for length, held in sorted(found.items()) if held]
    if kept[-1][0] > MAX_LENGTH:
        file.fail(f"has {what} of {kept[-1][0]:,} tokens, above the largest length of {MAX_LENGTH:,}: leave them out.")
    lengths, counts = np.array(kept, np.int64).T
    return _Lengths(lengths, counts)


def _spare(histogram: Histogram, within: _Within) -> int:
    """What the requests have together beyond the least that their buckets allow [tokens]."""
    shortest = sum(low * size for low, size in zip(histogram.least, histogram.counts, strict=True))
    if histogram.sum is not None:
        return round(histogram.sum) - shortest
    ends = zip(histogram.least, histogram.most, histogram.counts, strict=True)
    widest = sum((high - low) * size for low, high, size in ends if high is not None)
    return {"apart": widest, "close": 0, "middle": widest // 2}[within]


def _shared(low: int, size: int, wanted: int, step: int) -> list[tuple[int, int]]:
    """Lengths of so many requests from `low` on, `wanted` tokens more in all: in steps, or evenly where a step is 1."""
    if step == 1:
        each, more = divmod(wanted, size)
        return [(low + each, size - more), (low + each + 1, more)]
    full, rest = divmod(wanted, step)
    partly = 1 if rest else 0
    return [(low, size - full - partly), (low + rest, partly), (low + step, full)]


def mix_of_pair(file: TraceFile, inputs: Histogram, outputs: Histogram) -> Mix:
    """The mix of requests whose inputs and outputs are known as buckets."""
    a, b = known_of(inputs), known_of(outputs)
    total = None if a.mean is None or b.mean is None else a.mean + b.mean
    words = (
        "Lengths are known as buckets only, and which input goes with which output is not known: the longest are put "
        "together."
    )
    if inputs.total != outputs.total:
        words += f" {count(inputs.total)} inputs and {count(outputs.total)} outputs are counted; the fewer are read."
    known = {"input": a, "output": b, "total": Known(total, {})}

    def mix(within: _Within) -> Mix:
        one, other = _lengths(file, inputs, "inputs", within), _lengths(file, outputs, "outputs", within)
        first, second, sizes = _together(one, other, alike=within != "close")
        return mix_of(file.name, np.where(first + second, first, 1), second, sizes)

    return _said(mix, known, words, summed=total is not None)


def mix_of_total(file: TraceFile, lengths: Histogram) -> Mix:
    """The mix of requests of which input + output is known as buckets."""
    words = "Lengths are known as buckets only, and are taken as input + output."

    def mix(within: _Within) -> Mix:
        values, counts = _lengths(file, lengths, "requests", within)
        return mix_of_lengths(file.name, np.maximum(values, 1), counts)

    return _said(mix, {"total": known_of(lengths)}, words, summed=lengths.sum is not None)


def _said(mix: Callable[[_Within], Mix], known: dict[str, Known], words: str, *, summed: bool) -> Mix:
    if not summed:
        words += " No sum is given, so each bucket is taken at its middle: the mean is an estimate."
    bounds = Buckets(known, (mix("apart"), mix("close")))
    return mix("middle")._replace(said=(TrafficNotice("buckets", words),), buckets=bounds, note=words)


def _together(one: _Lengths, other: _Lengths, *, alike: bool) -> tuple[Array, Array, Array]:
    """Distinct pairs and how many of each: the longest with the longest, or with the shortest."""
    lengths, counts = one.lengths[::-1], one.counts[::-1]
    others, also = (other.lengths[::-1], other.counts[::-1]) if alike else other
    ends, other_ends = np.cumsum(counts), np.cumsum(also)
    both = np.unique(np.concatenate((ends, other_ends)))
    both = both[both <= min(ends[-1], other_ends[-1])]
    sizes = np.diff(np.concatenate(([0], both)))
    return lengths[np.searchsorted(ends, both)], others[np.searchsorted(other_ends, both)], sizes
