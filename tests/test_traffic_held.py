"""Numerics of what so many requests hold together, beside exact answers: convolution, binomials, brute force."""

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.traffic import kv_in_flight as module
from sizing.traffic.kv_in_flight import (
    ALIASING,
    MOST_SOUGHT,
    MOST_STEPS,
    SURE,
    Demand,
    KvInFlight,
    demand,
    kv_in_flight,
    kv_needed,
    most_in_flight,
    reach,
)
from sizing.traffic.mix import Spans, mix_of, mix_of_lengths
from tests.test_properties import examples

RISKS = (0.001, 0.01, 0.05, 0.3)


def one_of(shares: Any) -> KvInFlight:
    """What one request holds, given how often each number of tokens is met."""
    weights = np.asarray(shares, dtype=float)
    weights = weights / weights.sum()
    tokens = np.arange(len(weights))
    mean = float(weights @ tokens)
    spread = float(np.sqrt(weights @ (tokens - mean) ** 2)) if np.count_nonzero(weights) > 1 else 0.0
    return KvInFlight(weights, mean, spread)


def exactly(one: KvInFlight, requests: int) -> Any:
    """The distribution of the sum, convolved term by term: element n is the probability of n tokens."""
    found = np.array([1.0])
    for _ in range(requests):
        found = np.convolve(found, one.shares)
    return found


def overflow(one: KvInFlight, requests: int, tokens: int) -> float:
    """The probability of more than `tokens`, term by term."""
    return min(1.0, float(exactly(one, requests)[tokens + 1 :].sum()))


def brute(one: KvInFlight, risks: tuple[float, ...], most: int) -> dict[int, list[int]]:
    """For every number of requests and each risk the least tokens that they exceed at most so often."""
    found = {}
    for requests in range(1, most + 1):
        beyond = 1 - np.cumsum(exactly(one, requests))
        found[requests] = [int(np.flatnonzero(beyond <= risk)[0]) for risk in risks]
    return found


@st.composite
def mixes(draw: st.DrawFn, longest: int = 40) -> KvInFlight:
    """What one request of a small random mix holds; at least two amounts."""
    random = draw(st.randoms(use_true_random=True))
    count = random.randint(2, 8)
    inputs = np.array([random.randint(0, longest) for _ in range(count)])
    outputs = np.array([random.randint(1, longest) for _ in range(count)])
    outputs[0] = outputs[1] % longest + 1  # not all alike
    return kv_in_flight(mix_of("random", inputs, outputs, np.array([random.randint(1, 9) for _ in range(count)])).spans)


def spans(*requests: tuple[int, int]) -> Spans:
    """Spans of requests of (input, output) tokens."""
    inputs, outputs = np.array(requests).T
    return mix_of("given", inputs, outputs).spans


def test_one_request_is_met_at_each_of_its_steps() -> None:
    """Input 2, output 3 holds 3, 4 and 5; input 0, output 1 holds 1, once against three times."""
    one = kv_in_flight(spans((2, 3), (0, 1)))
    assert one.shares == pytest.approx([0, 0.25, 0, 0.25, 0.25, 0.25])
    assert one.mean == pytest.approx(float(Fraction(1 + 3 + 4 + 5, 4)))
    assert one.deviation == pytest.approx(math.sqrt(Fraction(1 + 9 + 16 + 25, 4) - Fraction(13, 4) ** 2))
    assert one.most == 5


def test_a_request_without_output_is_one_step_at_its_input() -> None:
    """Where nothing is generated the input is held for one step."""
    assert kv_in_flight(spans((4, 0), (2, 2))).shares == pytest.approx([0, 0, 0, 1 / 3, 2 / 3])


def test_whole_lengths_count_by_their_steps() -> None:
    """At its whole length each request is met once a decode step."""
    assert kv_in_flight(spans((2, 3), (0, 1)), whole=True).shares == pytest.approx([0, 0.25, 0, 0, 0, 0.75])


def test_requests_in_step_count_whole() -> None:
    """Where all generate equally many tokens those begun together end together; so do lengths alone."""
    assert kv_in_flight(spans((2, 3), (5, 3))).shares == pytest.approx([0, 0, 0, 0, 0, 0.5, 0, 0, 0.5])
    assert kv_in_flight(mix_of_lengths("alone", np.array([2, 2, 3])).spans).shares == pytest.approx(
        [0, 0, 2 / 3, 1 / 3]
    )


def close(found: float, truth: float) -> bool:
    """Whether a probability is right to SURE; one that cannot be told from 0 is 0."""
    return abs(found - truth) <= 2 * SURE


@given(mixes(), st.integers(1, 12), st.floats(0, 1.1))
@examples(150)
def test_overflow_is_the_truth(one: KvInFlight, requests: int, part: float) -> None:
    """In steps of one token it is what term by term convolution gives, to SURE."""
    tokens = int(part * requests * one.most)
    found = demand(one, requests, tokens)
    assert found.step == 1
    assert close(found.overflow(tokens), overflow(one, requests, tokens))


@given(mixes(longest=300), st.integers(1, 8), st.floats(0, 1), st.integers(16, 400))
@examples(150)
def test_wide_steps_stay_near_the_truth(one: KvInFlight, requests: int, part: float, steps: int) -> None:
    """Counted in steps, each request is off by less than one, by nothing in the mean: so the sum is off by more than
    3 x step x the root of their number once in 60 million (W. Hoeffding, J. Amer. Statist. Assoc. 58, 1963).
    """
    tokens = int(part * requests * one.most)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "STEPS", steps)
        patch.setattr(module, "MOST_STEPS", steps)
        found = demand(one, requests, tokens)
    shift = math.ceil(3 * found.step * math.sqrt(requests)) + found.step
    least, most = (1.0 if at < 0 else overflow(one, requests, at) for at in (tokens + shift, tokens - shift))
    assert least - 2 * SURE <= found.overflow(tokens) <= most + 2 * SURE


@given(mixes(longest=300), st.integers(2, 100))
@examples(60)
def test_steps_keep_the_mean(one: KvInFlight, step: int) -> None:
    """Shared between the two steps around it an amount keeps its mean."""
    counted = module.in_steps(one.shares, step)
    assert counted.sum() == pytest.approx(1)
    assert float(counted @ np.arange(len(counted))) * step == pytest.approx(one.mean)


@pytest.mark.parametrize("requests", [1, 7, 64, 1000])
def test_two_amounts_are_a_binomial(requests: int) -> None:
    """Of 1 and 3 tokens, 3 in one of four: as exact integers by math.comb."""
    found = demand(one_of([0, 3, 0, 1]), requests, 3 * requests)
    for more in {0, 1, requests // 4, requests // 3, requests - 1}:
        beyond = Fraction(
            sum(math.comb(requests, many) * 3 ** (requests - many) for many in range(more + 1, requests + 1)),
            4**requests,
        )
        assert close(found.overflow(requests + 2 * more), float(beyond))


@pytest.mark.parametrize("requests", [100, 10_000])
def test_rounding_and_aliasing_are_far_below_what_is_stated(requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another radius of the circle gives the same distribution; both errors stay far below SURE."""
    one = one_of(np.concatenate(([0], 1 / np.arange(1, 3001) ** 1.5)))
    tokens = reach(one, requests)
    first = demand(one, requests, tokens)
    monkeypatch.setattr(module, "ALIASING", 1e-5)
    wider = demand(one, requests, tokens)
    monkeypatch.setattr(module, "ALIASING", 1e-10)
    narrower = demand(one, requests, tokens)
    assert np.abs(first.below - narrower.below).max() < SURE / 3
    assert np.abs(first.below - wider.below).max() < 1e-5


def test_a_large_transform_is_exact_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """A binomial over a million steps is within SURE of the exact one."""
    requests, length = 40, 2**20 // 40
    monkeypatch.setattr(module, "STEPS", 2**21)
    found = demand(one_of([0, 0.5] + [0] * (length - 2) + [0.5]), requests, requests * length)
    assert found.step == 1
    for many in range(requests):
        beyond = Fraction(sum(math.comb(requests, above) for above in range(many + 1, requests + 1)), 2**requests)
        assert close(found.overflow(requests + many * (length - 1)), float(beyond))


def test_aliasing_adds_what_is_stated() -> None:
    """What lies beyond the transform comes back damped: all mass just beyond it adds ALIASING at most."""
    found = demand(one_of([0, 1, 1]), 2**11, 2**11 - 1)  # never below 2**11 tokens
    assert found.below[-1] <= ALIASING * 2


@given(mixes(longest=12), st.integers(0, 3))
@examples(60)
def test_needed_is_the_least_that_holds(one: KvInFlight, at: int) -> None:
    """It is the least tokens by brute force, for every number of requests and all risks at once."""
    risks = (RISKS[at] + 2 * SURE, RISKS[at] - 2 * SURE)
    for requests, (least, most) in brute(one, risks, 8).items():
        assert least <= kv_needed(one, requests, RISKS)[at] <= most


@given(mixes(longest=12), st.integers(0, 3), st.integers(0, 150))
@examples(100)
def test_most_in_flight_is_the_most_that_fits(one: KvInFlight, at: int, tokens: int) -> None:
    """It is what trying every number of requests gives, and what convolution gives."""
    tried = [requests for requests in range(1, tokens + 2) if kv_needed(one, requests, RISKS)[at] <= tokens]
    most = most_in_flight(one, tokens, RISKS, at)
    assert most == max(tried, default=0) == len(tried)
    if most:
        assert overflow(one, most, tokens) <= RISKS[at] + 2 * SURE
    if most < 12:
        assert overflow(one, most + 1, tokens) > RISKS[at] - 2 * SURE


@given(mixes(longest=200), st.integers(0, 20_000), st.integers(0, 2_000))
@examples(60)
def test_more_tokens_or_risk_never_runs_fewer(one: KvInFlight, tokens: int, more: int) -> None:
    """What runs rises with KV and with the risk; what is needed rises with requests and falls with the risk."""
    by_risk = [most_in_flight(one, tokens, RISKS, at) for at in range(len(RISKS))]
    assert by_risk == sorted(by_risk)
    assert most_in_flight(one, tokens + more, RISKS, 1) >= by_risk[1]
    wanted = [kv_needed(one, requests, RISKS) for requests in (1, 2, 3, 10, 11, 100)]
    assert all(few <= many for fewer, more_ in pairwise(wanted) for few, many in zip(fewer, more_, strict=True))
    assert all(list(risks) == sorted(risks, reverse=True) for risks in wanted)


@given(st.integers(1, 2**24), st.integers(0, 2**40), st.integers(1, 10_000))
@examples(200)
def test_one_length_is_a_division(L: int, tokens: int, requests: int) -> None:
    """Where all hold L they need requests x L, and tokens // L run at any risk."""
    one = KvInFlight(np.array([1.0]), float(L), 0.0)  # only its last element counts where nothing deviates
    object.__setattr__(one, "shares", _Last(L))
    assert most_in_flight(one, tokens, RISKS, 2) == tokens // L
    assert kv_needed(one, requests, RISKS) == (requests * L,) * len(RISKS)


class _Last:
    """As long as the shares of one length, without their gigabytes."""

    def __init__(self, L: int) -> None:
        self.L = L

    def __len__(self) -> int:
        return self.L + 1


@given(st.integers(0, 5000), st.integers(1, 5000), st.integers(0, 2**40))
@examples(60)
def test_one_kind_of_request_is_a_division(input: int, output: int, tokens: int) -> None:
    """The same from requests, and from lengths alone."""
    for one in (
        kv_in_flight(spans((input, output), (input, output))),
        kv_in_flight(mix_of_lengths("alone", np.array([input + output])).spans),
    ):
        assert most_in_flight(one, tokens, RISKS, 1) == tokens // (input + output)


def test_reach_widens_for_a_heavy_tail() -> None:
    """One request of a million tokens in 10,000 of 100: at a small risk it is in KV, and what is needed says so."""
    lengths, times = np.array([100, 1_000_000]), np.array([9_999, 1])
    one = kv_in_flight(mix_of_lengths("tail", lengths, times).spans)
    risk = 0.0001 / 4  # two of 10 at once: 45e-8, none: 0.999
    assert kv_needed(one, 10, (0.01,))[0] == 1000
    assert kv_needed(one, 10, (risk,))[0] == pytest.approx(1_000_900, rel=0.001)
    assert reach(one, 10) < 1_000_900
    assert most_in_flight(one, 999_999, (0.00015,)) == 1  # two are short of it twice as often
    assert most_in_flight(one, 1_001_000, (0.00015,)) > 1


@pytest.mark.parametrize(("requests", "tokens"), [(100_000, 2**40), (1, 2**40), (100_000, 1), (100_000, 2**32)])
def test_extremes_end(requests: int, tokens: int) -> None:
    """The most requests, the most tokens: answers of the normal law, in arrays of MOST_STEPS at most."""
    rng = np.random.default_rng(0)
    one = kv_in_flight(mix_of("wide", rng.integers(0, 2**20, 1000), rng.integers(1, 2**14, 1000)).spans)
    found = demand(one, requests, tokens)
    assert len(found.below) <= MOST_STEPS + 1
    assert found.overflow(tokens) == pytest.approx(float(tokens < requests * one.mean), abs=1e-5)
    usual = requests * one.mean + 2.326 * one.deviation * math.sqrt(requests)
    assert requests == 1 or kv_needed(one, requests, (0.01,))[0] == pytest.approx(usual, rel=0.001)


@pytest.mark.parametrize("tokens", [2**12, 2**16, 2**20, 2**24])
def test_the_search_is_short_where_steps_are_wide(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However wide the steps, a search by halves finds the most that fits; one by one it took thousands."""
    asked: list[int] = []

    def counted(one: KvInFlight, requests: int, tokens: int) -> Demand:
        asked.append(requests)
        return demand(one, requests, tokens)

    monkeypatch.setattr(module, "MOST_STEPS", 2**12)
    monkeypatch.setattr(module, "demand", counted)
    one = kv_in_flight(spans((10, 90), (90, 10), (150, 60)))
    most = most_in_flight(one, tokens, (0.01,))
    assert len(asked) <= 100
    assert kv_needed(one, most, (0.01,))[0] <= tokens
    assert most == MOST_SOUGHT or kv_needed(one, most + 1, (0.01,))[0] > tokens


def test_a_vast_pool_is_sought_to_its_end() -> None:
    """2**40 tokens of short requests run more than are ever sought."""
    assert most_in_flight(kv_in_flight(spans((10, 90), (90, 10))), 2**40, (0.01,)) == MOST_SOUGHT


def test_a_request_longer_than_the_pool() -> None:
    """Part of its time it fits: alone it overflows for the steps beyond the pool, and none runs at a smaller risk."""
    one = kv_in_flight(spans((0, 1000), (0, 900)))
    assert close(demand(one, 1, 950).overflow(950), 50 / 1900)
    assert most_in_flight(one, 950, (0.03,)) == 1
    assert most_in_flight(one, 950, (0.02,)) == 0
    assert most_in_flight(kv_in_flight(spans((0, 1000), (0, 1000))), 950, (0.9,)) == 0


@given(mixes(longest=100), st.integers(1, 10), st.floats(0.1, 0.9))
@examples(60)
def test_missing_is_the_mean_excess(one: KvInFlight, requests: int, part: float) -> None:
    """What is missing is the mean of what is wanted beyond the pool, over all time [tokens]."""
    tokens = int(part * requests * one.most)
    wanted = np.arange(requests * one.most + 1)
    truth = float(exactly(one, requests) @ np.maximum(wanted - tokens, 0))
    found = demand(one, requests, requests * one.most)
    assert found.missing(tokens) == pytest.approx(truth, rel=1e-3, abs=2 * found.step * requests)
