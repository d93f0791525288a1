"""Lengths that are known as buckets only: histograms of Prometheus, from /metrics, its HTTP API or a table.

A bucket counts the requests up to its bound `le`, and those of all smaller bounds with them (Prometheus, Histogram). So
how many lie between two bounds is exact, the mean is sum / count, and a quantile lies between two bounds.

The requests that stand for them have the right number in each bucket and the right sum. Which input goes with which
output is not known: the longest are put together, which makes totals differ as much as they can.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from sizing.basics.units import count
from sizing.traffic.mix import MAX_LENGTH, Array, Known, Mix, Said, mix_of, mix_of_lengths
from sizing.traffic.trace_file import TraceFile

QUANTILES = (Fraction(1, 2), Fraction(19, 20), Fraction(99, 100))
MAX_REQUESTS = 2**31 - 1  # as many as one row of a histogram of lengths counts
_CUMULATIVE = "the counts of le are cumulative"


class Histogram(NamedTuple):
    """How many requests lie up to each bound, and what they sum to."""

    bounds: tuple[float, ...]
    """Ascending [tokens]; the last one is infinite."""
    counts: tuple[int, ...]
    """Requests above the bound before and up to this one."""
    sum: float | None
    """[tokens]"""

    @property
    def total(self) -> int:
        """All requests."""
        return sum(self.counts)

    @property
    def least(self) -> list[int]:
        """The shortest length in each bucket [tokens]."""
        return [0, *(math.floor(bound) + 1 for bound in self.bounds[:-1])]

    @property
    def most(self) -> list[int | None]:
        """The longest length in each bucket [tokens]; None where nothing bounds it."""
        return [None if math.isinf(bound) else math.floor(bound) for bound in self.bounds]


class Series(NamedTuple):
    """One histogram as it is written: counts up to each bound, from one scrape or as the difference of two."""

    cumulative: Mapping[float, float]
    sum: float | None


def histogram_of(file: TraceFile, series: Sequence[Series], what: str) -> Histogram:
    """The histogram of all series together; raises TraceError where one is not cumulative or has no end."""
    counts: dict[float, int] = {}
    for one in series:
        before = 0.0
        for bound in sorted(one.cumulative):
            found = one.cumulative[bound]
            if not (math.isfinite(found) and found == int(found) and found >= 0):
                file.fail(f"has {found:g} as the count of {what} up to le = {bound:g}: give whole counts.", "columns")
            if found < before:
                file.fail(
                    f"counts {count(int(found))} {what} up to le = {bound:g} and {count(int(before))} up to the bound "
                    f"below it, and {_CUMULATIVE}: add up what stands in each bucket.",
                    "columns",
                )
            counts[bound] = counts.get(bound, 0) + int(found - before)
            before = found
        if not one.cumulative or not math.isinf(max(one.cumulative)):
            file.fail(f"has no bucket +Inf of {what}, so how many are longer is not known: {_CUMULATIVE}, add it.", "columns")
    sums = [one.sum for one in series if one.sum is not None]
    total = sum(sums) if len(sums) == len(series) else None
    found = Histogram(tuple(sorted(counts)), tuple(counts[bound] for bound in sorted(counts)), total)
    if not found.total:
        file.fail(f"counts no {what}: give it after requests were served.")
    if found.total > MAX_REQUESTS:
        file.fail(f"counts more than {MAX_REQUESTS:,} {what}: divide every count and sum by the same number.", "too_large")
    least = sum(low * size for low, size in zip(found.least, found.counts, strict=True))
    if found.sum is not None and not least <= found.sum <= MAX_LENGTH * found.total:
        file.fail(f"has {found.sum:g} as the sum of {what}, which its buckets cannot have: give both of one scrape.", "columns")
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
    """Where the rank falls if the requests of a bucket lie evenly in it."""
    reached = np.cumsum(histogram.counts)
    at = int(np.searchsorted(reached, rank))
    before = int(reached[at - 1]) if at else 0
    return min(max(low + (high - low) * (rank - before) / histogram.counts[at], low), high)


def lengths_of(file: TraceFile, histogram: Histogram, what: str) -> tuple[Array, Array]:
    """Distinct lengths [tokens] and how many have each, with the histogram's counts and its sum, rounded to a token.

    Raises TraceError where the last bucket has requests and no sum says how long they are.
    """
    least, most = histogram.least, histogram.most
    open_ended = histogram.counts[-1]
    if histogram.sum is None and open_ended:
        file.fail(
            f"has {count(open_ended)} of its {count(histogram.total)} {what} beyond the last bound of "
            f"{histogram.bounds[-2] if len(histogram.bounds) > 1 else 0:g}, and no sum that says how long they are: "
            f"{_CUMULATIVE}; give the sum too (the _sum of /metrics), or one row a request.",
            "columns",
        )
    wide = sum(
        (high - low) * size for low, high, size in zip(least, most, histogram.counts, strict=True) if high is not None
    )
    shortest = sum(low * size for low, size in zip(least, histogram.counts, strict=True))
    total = round(histogram.sum) if histogram.sum is not None else round(shortest + wide / 2)
    spare = total - shortest  # to be given to the requests beyond the least that each can have
    share = Fraction(0) if not wide else min(Fraction(spare, wide), Fraction(1, 2) if open_ended else Fraction(1))
    values, counts, given = [], [], 0
    for low, high, size in zip(least, most, histogram.counts, strict=True):
        if not size:
            continue
        wanted = spare - given if high is None else math.floor(share * (high - low) * size)
        given += wanted
        values += [low + wanted // size, low + wanted // size + 1]
        counts += [size - wanted % size, wanted % size]
    lacking = spare - given  # what rounding down left, below one token a request
    if lacking > 0:
        at = next(at for at in reversed(range(len(counts))) if counts[at] >= lacking)
        values, counts = [*values, values[at] + 1], [*counts, lacking]
        counts[at] -= lacking
    kept = [at for at, size in enumerate(counts) if size]
    lengths = np.array([values[at] for at in kept], np.int64)
    if int(lengths.max()) > MAX_LENGTH:
        file.fail(f"has {what} of {int(lengths.max()):,} tokens, above the largest length of {MAX_LENGTH:,}.")
    return lengths, np.array([counts[at] for at in kept], np.int64)


def mix_of_pair(file: TraceFile, inputs: Histogram, outputs: Histogram) -> Mix:
    """The mix of requests whose inputs and outputs are known as buckets."""
    one, other = lengths_of(file, inputs, "inputs"), lengths_of(file, outputs, "outputs")
    pairs = _together(one, other)
    found = pairs[0] + pairs[1] > 0
    a, b = known_of(inputs), known_of(outputs)
    total = None if a.mean is None or b.mean is None else a.mean + b.mean
    mix = mix_of(file.name, pairs[0][found], pairs[1][found], pairs[2][found])
    words = "Lengths are known as buckets only, and which input goes with which output is not: the longest are put together."
    if inputs.total != outputs.total:
        words += f" {count(inputs.total)} inputs and {count(outputs.total)} outputs are counted; the fewer are read."
    if inputs.sum is None or outputs.sum is None:
        words += _MIDDLE
    return mix._replace(
        said=(Said("buckets", words),), buckets={"input": a, "output": b, "total": Known(total, {})}, note=words
    )


def mix_of_total(file: TraceFile, lengths: Histogram) -> Mix:
    """The mix of requests of which input + output is known as buckets."""
    values, counts = lengths_of(file, lengths, "requests")
    if not values[0]:
        values[0] = 1
    words = "Lengths are known as buckets only, and are taken as input + output: they count as cumulative up to each le."
    if lengths.sum is None:
        words += _MIDDLE
    return mix_of_lengths(file.name, values, counts)._replace(
        said=(Said("buckets", words),), buckets={"total": known_of(lengths)}, note=words
    )


_MIDDLE = " No sum is given, so each bucket is taken at its middle: the mean is an estimate."


def _together(one: tuple[Array, Array], other: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """Both sorted, the longest with the longest: distinct pairs and how many of each."""
    order, others = np.argsort(one[0], kind="stable"), np.argsort(other[0], kind="stable")
    ends, also = np.cumsum(one[1][order][::-1]), np.cumsum(other[1][others][::-1])
    both = np.unique(np.concatenate((ends, also)))
    both = both[both <= min(ends[-1], also[-1])]
    sizes = np.diff(np.concatenate(([0], both)))
    first = one[0][order][::-1][np.searchsorted(ends, both)]
    second = other[0][others][::-1][np.searchsorted(also, both)]
    return first, second, sizes
