"""A mix of requests: what its histograms say is what the requests say, counted one by one."""

from collections import Counter
from itertools import chain, repeat

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sizing.traffic.mix import Counts, Mix, Spans, mix_of, mix_of_lengths
from tests.test_properties import examples

LENGTHS = st.one_of(st.integers(0, 9), st.integers(0, 2000), st.integers(0, 2**23))
PAIRS = st.lists(st.tuples(LENGTHS, LENGTHS).filter(any), min_size=1, max_size=40)


def told(counts: Counts | None) -> dict[int, int]:
    """A histogram as a dictionary."""
    return {} if counts is None else dict(zip(counts.values.tolist(), counts.counts.tolist(), strict=True))


def spans_of(pairs: list[tuple[int, int]]) -> list[dict[int, int]]:
    """The three histograms of Spans, one request after the other."""
    starts = Counter(i if o else i - 1 for i, o in pairs)
    whole = Counter(chain.from_iterable(repeat(i + o, max(o, 1)) for i, o in pairs if o < 3000))
    for i, o in pairs:
        if o >= 3000:
            whole[i + o] += o
    return [dict(starts), dict(Counter(i + o for i, o in pairs)), dict(whole)]


def same(spans: Spans | None, pairs: list[tuple[int, int]]) -> bool:
    if spans is None:
        return False
    in_step = len({o for _, o in pairs}) == 1
    return [told(c) for c in (spans.starts, spans.ends, spans.whole)] == spans_of(pairs) and spans.in_step == in_step


def alike(one: Mix, other: Mix) -> bool:
    """Whether two mixes hold the same histograms."""
    return all_of(one) == all_of(other)


def all_of(mix: Mix) -> list[object]:
    spans = [s and [told(s.starts), told(s.ends), told(s.whole), s.in_step] for s in shifts(mix)]
    return [told(mix.inputs), told(mix.outputs), *spans]


def shifts(mix: Mix) -> tuple[Spans | None, ...]:
    return mix.spans, mix.tail_doubled, mix.outputs_doubled


def mixed(pairs: list[tuple[int, int]], kind: type = np.int64) -> Mix:
    inputs, outputs = np.array(pairs, kind).T
    return mix_of("test", inputs, outputs)


@given(PAIRS)
@examples(200)
def test_every_request_is_counted(pairs: list[tuple[int, int]]) -> None:
    """Also after both shifts, and in the 4 bytes that a file is read into."""
    mix = mixed(pairs, np.int32)
    ends = sorted(i + o for i, o in pairs)
    cut = next(end for at, end in enumerate(ends, start=1) if at >= 0.95 * len(ends))
    assert same(mix.spans, pairs)
    assert same(mix.outputs_doubled, [(i, 2 * o) for i, o in pairs])
    assert same(mix.tail_doubled, [(2 * i, 2 * o) if i + o >= cut else (i, o) for i, o in pairs])
    assert mix.requests == len(pairs)


@given(PAIRS, st.data())
@examples(100)
def test_a_histogram_is_its_rows(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Distinct pairs and how often each occurs give the same mix as the requests one by one."""
    times = data.draw(st.lists(st.integers(1, 5), min_size=len(pairs), max_size=len(pairs)))
    rows = list(chain.from_iterable(repeat(pair, n) for pair, n in zip(pairs, times, strict=True)))
    inputs, outputs = np.array(pairs).T
    assert alike(mixed(rows), mix_of("test", inputs, outputs, np.array(times, np.int32)))


@given(PAIRS, st.floats(0.01, 1))
@examples(200)
def test_quantiles_are_numpys(pairs: list[tuple[int, int]], share: float) -> None:
    """The least value that the share does not exceed: numpy's inverted distribution."""
    ends = np.array(pairs).sum(axis=1)
    assert mixed(pairs).lengths.quantile(share) == np.quantile(ends, share, method="inverted_cdf")


@given(PAIRS)
@examples(200)
def test_a_doubled_tail_doubles_the_p95(pairs: list[tuple[int, int]]) -> None:
    """Requests at the 95th percentile are in the tail, and none below it can overtake them."""
    mix = mixed(pairs)
    assert mix.tail_doubled.ends.quantile(0.95) == 2 * mix.lengths.quantile(0.95)
    assert mix.tail_doubled.ends.total == mix.requests


@given(st.lists(st.integers(1, 2**24), min_size=1, max_size=40))
@examples(100)
def test_lengths_alone(lengths: list[int]) -> None:
    """Without input and output no time in flight is known: each request counts once."""
    mix = mix_of_lengths("test", np.array(lengths))
    assert told(mix.lengths) == told(mix.spans.whole) == dict(Counter(lengths))
    assert (mix.inputs, mix.outputs, mix.spans.starts, mix.outputs_doubled) == (None,) * 4
    assert mix.tail_doubled.ends.quantile(0.95) == 2 * mix.lengths.quantile(0.95)


def test_blocks_add_up() -> None:
    """More requests than are counted at once, and counts that 4 bytes do not hold."""
    size = 2**22 + 5
    mix = mix_of("test", np.full(size, 7, np.int32), np.arange(size, dtype=np.int32) % 3)
    assert told(mix.inputs) == {7: size}
    assert sum(told(mix.outputs).values()) == size
    large = mix_of("test", np.array([1], np.int32), np.array([2**20], np.int32), np.array([2**31 - 1], np.int32))
    assert told(large.spans.whole) == {2**20 + 1: 2**20 * (2**31 - 1)}
