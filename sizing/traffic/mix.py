"""A mix of requests: how long they are and how long they stay, as histograms that no longer grow with the trace.

A request of `input` and `output` tokens takes one decode step a token (one step where it generates nothing) and holds
input + 1, input + 2, up to input + output tokens while it does. How many tokens the requests in flight hold follows
from two histograms alone, of where they start and where they end; so a trace is counted once and then forgotten.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from sizing.scenario.inputs import MAX_L
from sizing.traffic.times import Times

Array = Any  # a numpy array; numpy's own types cannot say which shape
MAX_LENGTH = MAX_L  # longest request [tokens] of a trace: as long as the longest L
_BLOCK = 2**22  # requests counted at once: numpy widens each block to 8 bytes a value, so memory stays with the block
_SPARSE = 8  # values up to so many times their number are counted in one array, beyond that by sorting


class Counts(NamedTuple):
    """A histogram: how often each value occurs."""

    values: Array
    """Distinct whole numbers, ascending [tokens]."""
    counts: Array
    """How often, above 0 [requests, or steps where it says so]."""

    @property
    def total(self) -> int:
        """All counts together."""
        return int(self.counts.sum())

    @property
    def mean(self) -> float:
        """The mean value [tokens]."""
        return float(self.values @ self.counts) / self.total

    def quantile(self, share: float) -> int:
        """The least value [tokens] that at least `share` of the counts do not exceed."""
        reached = np.cumsum(self.counts)
        return int(self.values[np.searchsorted(reached, share * self.total, side="left")])


@dataclass(frozen=True, eq=False)
class Spans:
    """What requests hold over their time in flight; compared by identity, so that what follows can be remembered."""

    starts: Counts | None
    """One below the first token count that a request holds in flight; None where only whole lengths are known."""
    ends: Counts
    """Input + output of each request [tokens]."""
    whole: Counts
    """The same, each counted once a decode step: who is in flight is rather who stays long. Where only whole lengths
    are known no time is, and each request counts once."""
    in_step: bool
    """Whether all requests generate equally many tokens, so that those begun together also end together."""


About = Literal["multi_turn", "failed_left_out", "no_output", "buckets"]


class TrafficNotice(NamedTuple):
    """Something that a reader of a file's numbers has to know, in the vocabulary of answers."""

    about: About
    words: str


class Known(NamedTuple):
    """One kind of length as buckets give it [tokens]; None where they do not say."""

    mean: float | None
    quantiles: dict[float, tuple[float, float, float | None]]
    """By share: an estimate, and between which two it lies; the second is None where nothing bounds it."""


class Mix(NamedTuple):
    """Requests of one workload, and the same workload after two shifts."""

    name: str
    synthetic: bool
    """Whether a shape made it rather than requests that were served."""
    inputs: Counts | None
    outputs: Counts | None
    """None, as `inputs`, where only whole lengths are known."""
    spans: Spans
    tail_doubled: Spans
    """Every request at or above the 95th percentile of input + output twice as long, input and output alike."""
    outputs_doubled: Spans | None
    note: str = ""
    """Sentences on what was read that a reader should know; empty where there is none."""
    failed: int = 0
    """Requests of the file that failed, and are left out."""
    said: tuple[TrafficNotice, ...] = ()
    """What of the note is a warning, one a code."""
    buckets: "Buckets | None" = None
    """Where a file has buckets, what it says; the histograms above are then an estimate."""
    times: "Times | None" = None
    """What the times of a file say; None where it has none."""
    busiest: "Mix | None" = None
    """The requests of the busiest hour, where the times span more than one."""

    @property
    def lengths(self) -> Counts:
        """Input + output [tokens]."""
        return self.spans.ends

    @property
    def parts(self) -> dict[str, Counts]:
        """What is known of the lengths, by name."""
        known = {"input": self.inputs, "output": self.outputs, "input + output": self.lengths}
        return {name: counts for name, counts in known.items() if counts is not None}

    @property
    def at_least(self) -> bool:
        """Whether the lengths are a lower bound, as those of turns are whose contexts are not known."""
        return any(said.about == "multi_turn" and "lower bound" in said.words for said in self.said)

    @property
    def at_busiest(self) -> "Mix | None":
        """The requests of the busiest hour in place of all, with what the file says of its times; None without one."""
        found, name = self.busiest, f"busiest hour of {self.name}"
        return found and found._replace(name=name, times=self.times, failed=self.failed)

    @property
    def requests(self) -> int:
        """How many requests were counted."""
        return self.lengths.total


class Buckets(NamedTuple):
    """What buckets say of the lengths."""

    known: dict[str, Known]
    """Of input, output and total, as far as there are."""
    bounds: tuple[Mix, Mix]
    """The same requests as far apart, and as close to each other, as the buckets allow."""


def mix_of(name: str, inputs: Array, outputs: Array, times: Array | None = None, *, synthetic: bool = False) -> Mix:
    """A mix of requests given one by one, or of distinct ones and how often each occurs.

    `inputs` and `outputs` are whole numbers of the same length [tokens], no request is of length 0, `times` counts.
    """
    spans, generated = _spans(inputs, outputs, times), _counts(outputs, times)
    tail = np.flatnonzero(inputs + outputs >= spans.ends.quantile(0.95))
    return Mix(
        name=name,
        synthetic=synthetic,
        inputs=_counts(inputs, times),
        outputs=generated,
        spans=spans,
        tail_doubled=_tail_doubled(
            spans, generated, (inputs[tail], outputs[tail], None if times is None else times[tail])
        ),
        # Where a request starts does not depend on how much it generates, as long as that is nothing or something.
        outputs_doubled=_ended(spans.starts, inputs, outputs * 2, times),
    )


def mix_of_lengths(name: str, lengths: Array, times: Array | None = None) -> Mix:
    """A mix of which only input + output is known [tokens]."""
    known = _counts(lengths, times)
    tail = np.where(known.values >= known.quantile(0.95), 2, 1)
    doubled = Counts(known.values * tail, known.counts)
    return Mix(name, False, None, None, Spans(None, known, known, True), Spans(None, doubled, doubled, True), None)


def _spans(inputs: Array, outputs: Array, times: Array | None) -> Spans:
    return _ended(_counts(np.where(outputs, inputs, inputs - 1), times), inputs, outputs, times)


def _ended(starts: Counts | None, inputs: Array, outputs: Array, times: Array | None) -> Spans:
    ends = inputs + outputs
    steps = np.maximum(outputs, 1)
    stays = steps if times is None else np.multiply(steps, times, dtype=np.float64)  # int32 would not hold them
    return Spans(starts, _counts(ends, times), _counts(ends, stays), bool((outputs == outputs[0]).all()))


def _tail_doubled(spans: Spans, outputs: Counts, tail: tuple[Array, Array, Array | None]) -> Spans:
    """Spans of which some requests are twice as long: only those need counting again."""
    inputs, generated, times = tail
    taken, put = _spans(inputs, generated, times), _spans(inputs * 2, generated * 2, times)
    after = _exchanged(outputs, _counts(generated, times), _counts(generated * 2, times))
    return Spans(
        starts=_exchanged(spans.starts, taken.starts, put.starts),
        ends=_exchanged(spans.ends, taken.ends, put.ends),
        whole=_exchanged(spans.whole, taken.whole, put.whole),
        in_step=len(after.values) == 1,
    )


def _exchanged(whole: Any, taken: Any, put: Any) -> Counts:
    """The whole without what is taken and with what is put."""
    values = np.concatenate([whole.values, taken.values, put.values])
    return _counts(values, np.concatenate([whole.counts, -taken.counts, put.counts]))


def _counts(values: Array, times: Array | None) -> Counts:
    """Counted in float64 where there are counts: exact below 2**53, far above what a trace of MAX_L tokens sums to."""
    size = int(values.max()) + 1
    if size > _SPARSE * len(values):
        distinct, places = np.unique(values, return_inverse=True)
        return _held(distinct, np.bincount(places, times))
    found = np.zeros(size, np.int64 if times is None else np.float64)
    for at in range(0, len(values), _BLOCK):
        weights = None if times is None else times[at : at + _BLOCK]
        block = np.bincount(values[at : at + _BLOCK], weights)
        found[: len(block)] += block
    return _held(None, found)


def _held(values: Array | None, counts: Array) -> Counts:
    held = np.flatnonzero(counts)
    return Counts((held if values is None else values[held]).astype(np.int64), counts[held].astype(np.int64))
