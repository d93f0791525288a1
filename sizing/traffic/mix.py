"""A mix of requests: how long they are and how long they stay, as histograms that no longer grow with the trace.

A request of `input` and `output` tokens takes one decode step a token (one step where it generates nothing) and holds
input + 1, input + 2, up to input + output tokens while it does. How many tokens the requests in flight hold follows
from two histograms alone, of where they start and where they end; so a trace is counted once and then forgotten.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sizing.scenario import MAX_L

Array = Any  # a numpy array; numpy's own types cannot say which shape
MAX_LENGTH = MAX_L  # longest request [tokens] of a trace: as long as the longest L


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

    @property
    def lengths(self) -> Counts:
        """Input + output [tokens]."""
        return self.spans.ends

    @property
    def requests(self) -> int:
        """How many requests were counted."""
        return self.lengths.total


def mix_of(name: str, inputs: Array, outputs: Array, times: Array | None = None, *, synthetic: bool = False) -> Mix:
    """A mix of requests given one by one, or of distinct ones and how often each occurs.

    `inputs` and `outputs` are whole numbers of the same length [tokens], no request is of length 0, `times` counts.
    """
    ends = inputs + outputs
    tail = np.where(ends >= _counts(ends, times).quantile(0.95), 2, 1)
    return Mix(
        name=name,
        synthetic=synthetic,
        inputs=_counts(inputs, times),
        outputs=_counts(outputs, times),
        spans=_spans(inputs, outputs, times),
        tail_doubled=_spans(inputs * tail, outputs * tail, times),
        outputs_doubled=_spans(inputs, outputs * 2, times),
    )


def mix_of_lengths(name: str, lengths: Array, times: Array | None = None) -> Mix:
    """A mix of which only input + output is known [tokens]."""
    known = _counts(lengths, times)
    tail = np.where(known.values >= known.quantile(0.95), 2, 1)
    doubled = Counts(known.values * tail, known.counts)
    return Mix(name, False, None, None, Spans(None, known, known, True), Spans(None, doubled, doubled, True), None)


def _spans(inputs: Array, outputs: Array, times: Array | None) -> Spans:
    ends = inputs + outputs
    steps = np.maximum(outputs, 1)
    return Spans(
        starts=_counts(np.minimum(inputs, ends - 1), times),
        ends=_counts(ends, times),
        whole=_counts(ends, steps if times is None else steps * times),
        in_step=bool((outputs == outputs[0]).all()),
    )


def _counts(values: Array, times: Array | None) -> Counts:
    """Counted in float64 where there are counts: exact below 2**53, far above what a trace of MAX_L tokens sums to."""
    found = np.bincount(values, times, minlength=1)
    held = np.flatnonzero(found)
    return Counts(held, found[held].astype(np.int64))
