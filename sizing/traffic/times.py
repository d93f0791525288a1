"""What the times of requests say: how many are in flight, the busiest hour, and sessions that wait between turns.

Little's law (J. D. C. Little, A Proof for the Queuing Formula L = lambda W, 1961): the mean number in flight is the
arrival rate times the mean time that each stays. Beside it stands the direct count, which also has peaks.
"""

from typing import Any, NamedTuple

import numpy as np

Array = Any  # a numpy array; numpy's own types cannot say which shape
HOUR, MINUTE = 3600.0, 60.0  # s
BINS = 240  # of the curve over time
EPOCH = 1e8  # s; a time beyond it is a date, as no trace is three years long
MAX_MINUTES = 2**23  # of a file, 16 years: a date that is wrong must not make the search endless


class InFlight(NamedTuple):
    """How many requests were in flight."""

    stay: float
    """The mean time in flight [s]."""
    little: float
    """Arrival rate x mean time in flight [requests]."""
    mean: float
    p95: int
    most: int
    """Counted over time [requests]."""


class Waiting(NamedTuple):
    """Sessions between two turns."""

    sessions: int
    """Sessions with more than one turn."""
    mean: float
    p95: int
    most: int
    """Counted over time [sessions]."""
    tokens: int
    """What one that waits has in its context, in the mean over time [tokens]."""
    at_most: bool
    """Whether the file does not say when turns ended, so that a turn in flight counts as waiting."""


class Busiest(NamedTuple):
    """The hour, from a whole minute after the first request, with most requests in flight.

    Where the file does not say when they ended it is the hour in which most came.
    """

    start: float
    """[s] from the first request."""
    requests: int
    """Those that were in flight in it, or came in it."""
    mean: float | None
    most: int | None
    """In flight, counted over the hour; None where it is not known when requests ended."""
    first: float
    """When the first request of the file came [s]."""

    def within(self, clocks: Any) -> Array:
        """Which requests they are."""
        at = self.first + self.start
        if self.mean is None:
            return (clocks.start >= at) & (clocks.start < at + HOUR)
        return (clocks.start < at + HOUR) & (clocks.end > at)


class Times(NamedTuple):
    """What the times of a file say."""

    first: float
    """When the first request came [s]; of the epoch where it is above EPOCH."""
    span: float
    """From the first that came to the last that came or ended [s]."""
    rate: float
    """[requests/s]"""
    in_flight: InFlight | None
    """None where the file does not say when requests ended."""
    edges: Array
    """[s] from the first request: BINS + 1 of the curves."""
    came: Array
    """Requests that came in each bin."""
    mean: Array | None
    most: Array | None
    """In flight in each bin, in the mean and at most."""
    busiest: Busiest | None
    """None where the file spans an hour or less."""
    waiting: Waiting | None
    """None where no session has two turns."""


def times_of(clocks: Any, contexts: Array, session: Array | None) -> Times | None:
    """What the times of requests say; None where one has no time, or all came at once.

    `contexts` is input + output of each [tokens], `session` a number for each session.
    """
    start, end = clocks.start, clocks.end
    if not np.isfinite(start).all():
        return None
    if end is not None and (not np.isfinite(end).all() or (end < start).any()):
        end = None
    first, last = float(start.min()), float(start.max() if end is None else end.max())
    span = last - first
    if not 0 < span <= MAX_MINUTES * MINUTE:
        return None
    came, ended = np.sort(start) - first, None if end is None else np.sort(end) - first
    edges = np.linspace(0, span, BINS + 1)
    running = None if ended is None else _running(came, ended)
    return Times(
        first=first,
        span=span,
        rate=len(start) / span,
        in_flight=None if running is None else _in_flight(running, end - start, span),
        edges=edges,
        came=np.diff(np.searchsorted(came, edges[1:-1], side="left"), prepend=0, append=len(came)),
        mean=None if ended is None else np.diff(_area(came, ended, edges)) / np.diff(edges),
        most=None if running is None else _most(running, edges),
        busiest=_busiest(came, ended, running, span, first),
        waiting=None if session is None else _waiting(start, end, contexts, session, span),
    )


class _Running(NamedTuple):
    """Requests in flight from each time until the next."""

    at: Array
    """[s], ascending."""
    count: Array


def _running(came: Array, ended: Array) -> _Running:
    """What begins and ends, both sorted; one that ends when another begins makes room for it."""
    at = np.concatenate((ended, came))
    step = np.concatenate((np.full(len(ended), -1, np.int64), np.ones(len(came), np.int64)))
    order = np.argsort(at, kind="stable")
    at, count = at[order], np.cumsum(step[order])
    last = np.append(np.flatnonzero(np.diff(at)), len(at) - 1)  # what holds after all that is at one time
    return _Running(at[last], count[last])


def _over_time(running: _Running, span: float) -> tuple[float, int, int]:
    """Mean, p95 and most over a span [s] of time, before and after which there is none."""
    lasting = np.diff(running.at, append=running.at[-1])
    held = np.bincount(np.maximum(running.count, 0), lasting)
    held[0] += max(span - held.sum(), 0)
    reached = np.cumsum(held)
    p95 = int(np.searchsorted(reached, 0.95 * reached[-1] * (1 - 1e-12)))
    return float(held @ np.arange(len(held)) / span), p95, int(np.flatnonzero(held)[-1])


def _in_flight(running: _Running, stays: Array, span: float) -> InFlight:
    stay = float(stays.mean())
    mean, p95, most = _over_time(running, span)
    return InFlight(stay, len(stays) / span * stay, mean, p95, most)


def _area(came: Array, ended: Array, at: Array) -> Array:
    """Requests in flight, summed up over time until each `at` [requests x s]."""
    return _since(came, at) - _since(ended, at)


def _since(times: Array, at: Array) -> Array:
    """The sum of how long ago each of the sorted times was [s]; those to come do not count."""
    before = np.searchsorted(times, at, side="right")
    return before * at - np.concatenate(([0.0], np.cumsum(times)))[before]


def _most(running: _Running, edges: Array) -> Array:
    """The most between each two edges; what holds at the first edge counts."""
    places = np.searchsorted(running.at, edges[:-1], side="right")
    before = np.concatenate(([0], running.count))[places]
    inside = np.zeros(len(edges) - 1, np.int64)
    low, high = np.searchsorted(running.at, edges[[0, -1]], side="left")
    bins = np.searchsorted(edges, running.at[low:high], side="right") - 1
    np.maximum.at(inside, bins, running.count[low:high])
    return np.maximum(before, inside)


def _busiest(came: Array, ended: Array | None, running: _Running | None, span: float, first: float) -> Busiest | None:
    if span <= HOUR:
        return None
    starts = np.arange(0, np.ceil((span - HOUR) / MINUTE) + 1) * MINUTE
    begun = np.searchsorted(came, starts + HOUR, side="left") - np.searchsorted(came, starts, side="left")
    if ended is None or running is None:
        at = int(np.argmax(begun))
        return Busiest(float(starts[at]), int(begun[at]), None, None, first)
    area = _area(came, ended, starts + HOUR) - _area(came, ended, starts)
    at = int(np.argmax(area))
    low, high = float(starts[at]), float(starts[at]) + HOUR
    held = int(np.searchsorted(came, high, side="left") - np.searchsorted(ended, low, side="right"))
    return Busiest(low, held, float(area[at]) / HOUR, int(_most(running, np.array([low, high]))[0]), first)


def _waiting(start: Array, end: Array | None, contexts: Array, session: Array, span: float) -> Waiting | None:
    """Between the end of a turn and the begin of the next one of its session."""
    order = np.lexsort((start, session))
    after = np.flatnonzero(session[order][1:] == session[order][:-1]) + 1
    if not len(after):
        return None
    before, turn = order[after - 1], order[after]
    begin, until = (start if end is None else end)[before], start[turn]
    waits = until > begin  # a turn that comes before the one before it has ended waits for nothing
    begin, until, before = begin[waits], until[waits], before[waits]
    sessions = len(np.unique(session[turn]))
    if not len(begin):
        return Waiting(sessions, 0.0, 0, 0, 0, end is None)
    origin = start.min()
    running = _running(np.sort(begin) - origin, np.sort(until) - origin)
    mean, p95, most = _over_time(running, span)
    lasting = until - begin
    return Waiting(sessions, mean, p95, most, round(float(lasting @ contexts[before] / lasting.sum())), end is None)
