"""What the model of traffic predicts beside a replay of the engine's scheduler, within the error that it states.

Both count the share of time in which KV does not hold all that are admitted. A replay is random too, so each is done
RUNS times with seeds of its own, and DEVIATIONS standard errors of their mean come on top of the stated error.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest

from sizing.traffic.admission import Declared, admitting, kept_free
from sizing.traffic.kv_in_flight import KvInFlight, demand, kv_in_flight, kv_needed
from sizing.traffic.mix import mix_of
from sizing.traffic.running import MODEL_ERROR
from tests.replay import replay

RUNS = 12
REQUESTS = 15_000  # of one run
DEVIATIONS = 3  # of the mean of 12 runs: 98.8 % by Student's t with 11 degrees of freedom


class Requests(NamedTuple):
    """Requests to draw from [tokens each]."""

    inputs: Any
    outputs: Any


def lognormal(rng: Any, median: int, sigma: float, most: float = 2) -> Any:
    """Lengths around a median, none beyond `most` sigmas: no request is longer than about a third of KV."""
    return np.maximum(1, np.exp(np.log(median) + sigma * np.clip(rng.normal(size=4000), -3, most))).astype(int)


def one_of(rng: Any, share: float, first: tuple[int, int], second: tuple[int, int]) -> Any:
    """Even within either range; `share` [-] of them in the first."""
    return np.where(rng.random(4000) < share, rng.integers(*first, 4000), rng.integers(*second, 4000))


def requests(kind: str) -> Requests:
    """Requests of that kind; the same ones on every call."""
    rng = np.random.default_rng(0)
    if kind == "chat":
        return Requests(lognormal(rng, 200, 0.8), lognormal(rng, 150, 0.8))
    if kind == "rag":
        return Requests(lognormal(rng, 3000, 0.5), lognormal(rng, 100, 0.6))
    if kind == "agent":
        return Requests(lognormal(rng, 2000, 0.9, most=1.8), lognormal(rng, 300, 1.0, most=1.8))
    if kind == "uniform":
        return Requests(rng.integers(1, 200, 4000), rng.integers(1, 200, 4000))
    return Requests(one_of(rng, 0.8, (40, 80), (500, 700)), one_of(rng, 0.8, (20, 50), (150, 250)))


class Case(NamedTuple):
    """So many requests in flight, in KV that they overflow about as often as `risk` [-] says."""

    kind: str
    admitted: int
    risk: float

    @property
    def one(self) -> KvInFlight:
        """What one of them holds."""
        return kv_in_flight(mix_of(self.kind, *requests(self.kind)).spans)

    @property
    def tokens(self) -> int:
        """KV [tokens]."""
        return kv_needed(self.one, self.admitted, (self.risk,))[0]


class Share(NamedTuple):
    """A share of time [-], measured."""

    mean: float
    error: float
    """Its standard error."""

    def agrees(self, predicted: float) -> bool:
        """Whether a prediction [-] is right within the stated error and what the replays leave open."""
        spread = DEVIATIONS * self.error
        return predicted / MODEL_ERROR - spread <= self.mean <= predicted * MODEL_ERROR + spread


@lru_cache
def replayed(case: Case, waiting: int = 0, max_new_tokens: int | None = None, margin: int | None = None) -> Share:
    """The replays of one case."""
    inputs, outputs = requests(case.kind)
    runs = [
        replay(
            inputs,
            outputs,
            case.admitted,
            case.tokens,
            REQUESTS,
            np.random.default_rng(seed),
            waiting=waiting,
            max_new_tokens=max_new_tokens,
            margin=margin,
        )
        for seed in range(RUNS)
    ]
    return Share(float(np.mean(runs)), float(np.std(runs, ddof=1)) / RUNS**0.5)


CASES = [
    *(Case(kind, 8, 0.01) for kind in ("chat", "rag", "agent", "uniform", "bimodal")),
    *(Case(kind, 24, 0.05) for kind in ("chat", "rag", "agent", "uniform", "bimodal")),
    Case("uniform", 48, 0.05),
]
CASE_IDS = [f"{case.kind}-{case.admitted}-{case.risk}" for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=CASE_IDS)
def test_replays_agree_with_the_prediction(case: Case) -> None:
    """KV overflows as often as predicted, within the stated error; a prediction wrong by 2.5 lies outside."""
    predicted = demand(case.one, case.admitted, case.tokens).overflow(case.tokens)
    assert predicted == pytest.approx(case.risk, rel=0.05)
    share = replayed(case)
    assert share.agrees(predicted)
    assert not share.agrees(predicted / 2.5)
    assert not share.agrees(predicted * 2.5)


@pytest.mark.parametrize("case", [Case("chat", 8, 0.01), Case("bimodal", 8, 0.01)], ids=str)
def test_other_models_are_refuted(case: Case) -> None:
    """Requests at their whole length, or not weighted by their time in flight, or the mean alone: all are outside."""
    inputs, outputs = requests(case.kind)
    share = replayed(case)
    whole = kv_in_flight(mix_of(case.kind, inputs, outputs).spans, whole=True)
    for other in (whole, unweighted(inputs, outputs)):
        assert not share.agrees(demand(other, case.admitted, case.tokens).overflow(case.tokens))
    by_mean = float(case.admitted * case.one.mean > case.tokens)
    assert not share.agrees(by_mean)


def unweighted(inputs: Any, outputs: Any) -> KvInFlight:
    """What one request holds if all were met equally often, however long they stay."""
    density = np.zeros(int((inputs + outputs).max()) + 2)
    np.add.at(density, inputs + 1, 1 / outputs)
    np.add.at(density, inputs + outputs + 1, -1 / outputs)
    shares = np.maximum(np.cumsum(density)[:-1], 0) / len(inputs)
    tokens = np.arange(len(shares))
    mean = float(shares @ tokens)
    return KvInFlight(shares, mean, float(np.sqrt(shares @ (tokens - mean) ** 2)))


@pytest.mark.parametrize("kind", ["chat", "rag"])
def test_a_queue_makes_it_no_worse(kind: str) -> None:
    """With others waiting a short one takes the place of a retracted one: fewer steps are short, never more."""
    case = Case(kind, 8, 0.01)
    alone, queued = replayed(case), replayed(case, waiting=case.admitted)
    assert queued.mean <= alone.mean + DEVIATIONS * (alone.error**2 + queued.error**2) ** 0.5


@pytest.mark.parametrize("case", [Case("chat", 8, 0.01), Case("agent", 24, 0.05)], ids=str)
@pytest.mark.parametrize("margin", [None, 60], ids=["longest", "margin"])
def test_what_the_engine_keeps_free_is_kv_less(case: Case, margin: int | None) -> None:
    """The engine admits only where there is room for tokens to come; the model then holds for KV less that room, with
    one max_new_tokens for all as with a margin above what each generates.
    """
    inputs, outputs = requests(case.kind)
    longest = int(outputs.max()) if margin is None else None
    room = admitting(case.one, mix_of(case.kind, inputs, outputs), Declared(longest, margin), page=0)
    share = replayed(case, max_new_tokens=longest, margin=margin)
    predicted = demand(room.one, case.admitted, case.tokens).overflow(case.tokens - room.extra)
    without = demand(case.one, case.admitted, case.tokens).overflow(case.tokens)
    assert predicted > 1.2 * without
    assert share.agrees(predicted)
    assert margin is not None or not share.agrees(without)


def test_kept_free_by_hand() -> None:
    """Outputs of 2 and 4 tokens: of six steps two are the first, two the second, one the third and one the fourth."""
    outputs = mix_of("two", np.array([1, 1]), np.array([2, 4])).outputs
    assert outputs is not None
    # Of 10 declared 9, 8, 7 and 6 are left: (2 x 9 + 2 x 8 + 7 + 6) / 6 = 7.83, of which 9.8 % is 0.77.
    assert kept_free(outputs, Declared(max_new_tokens=10), 64) == (10 + 64, 1)
    # A margin of 100 above 2 and 4: 102 and 104; what is left is 0, 1, 2 or 3 and the margin, 101.17 in the mean.
    assert kept_free(outputs, Declared(margin=100), 1) == (103 + 1, 10)
    assert kept_free(outputs, Declared(max_new_tokens=1_000_000), 1) == (4097, 402)


@pytest.mark.parametrize(("tokens", "share"), [(5, 1), (9, 1), (10, 0), (99, 0)])
def test_replay_of_equal_requests(tokens: int, share: float) -> None:
    """Two of 5 tokens, 4 of them input, need 10; in fewer one runs alone, always."""
    found = replay(np.array([4]), np.array([1]), 2, tokens, 100, np.random.default_rng(0))
    assert found == share


def test_replay_by_hand() -> None:
    """Two of input 1 and output 2 in 4 tokens: they begin together, one is retracted and the other ends, then the one
    that came back is alone with the 2 tokens that it kept, and ends. So two steps of three are short.
    """
    found = replay(np.array([1]), np.array([2]), 2, 4, 10_000, np.random.default_rng(0))
    assert found == pytest.approx(2 / 3, abs=1e-3)
