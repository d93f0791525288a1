"""Traffic on a deployment: with one length it is the balance page to the integer, and the best split is the best."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sizing import RefusedError, Scenario, Split, solve
from sizing.engine.rank import rank_of
from sizing.engine.resolve import resolution
from sizing.engine.slots import pin_is_ignored, ratio_is_ignored
from sizing.engine.split import solve_split
from sizing.exchange.answer import Measured
from sizing.exchange.traffic_answer import traffic_answer
from sizing.traffic.admission import Declared
from sizing.traffic.kv_in_flight import kv_in_flight, kv_needed, most_in_flight
from sizing.traffic.mix import Mix, mix_of, mix_of_lengths
from sizing.traffic.running import MODEL_ERROR, Served, Traffic, around, serve, traffic_of
from sizing.traffic.words import admission_words, way_columns, way_rows
from sizing.traffic.workload import Workload, mix_of_workload
from tests.test_properties import SMALL_SLOTS, examples, pinned, scenarios

RISK = 0.01


def one_length(random: Any, L: int) -> Mix:
    """A mix of which every request is L long: requests with the same output, or lengths alone."""
    times = np.array([random.randint(1, 9)])
    if random.random() < 0.3:
        return mix_of_lengths("one", np.array([L]), times)
    output = random.randint(0, L)
    return mix_of("one", np.array([L - output]), np.array([output]), times)


def mixed(random: Any, L: int) -> Mix:
    """A mix of several lengths around L."""
    count = random.randint(2, 6)
    inputs = np.array([random.randint(0, 2 * L) for _ in range(count)])
    outputs = np.array([random.randint(1, 2 * L) for _ in range(count)])
    return mix_of("mixed", inputs, outputs, np.array([random.randint(1, 9) for _ in range(count)]))


@st.composite
def small(draw: st.DrawFn) -> Scenario:
    """Any deployment of few slots whose KV holds some ten thousand tokens, so that every K can be tried."""
    scenario = draw(scenarios(most_slots=SMALL_SLOTS))
    token = max(scenario.kv_bytes_per_token, scenario.state_bytes_per_slot // 400 * 2)
    return scenario.model_copy(update={"L": min(scenario.L, 2000), "kv_bytes_per_token": token})


@st.composite
def small_traffic(draw: st.DrawFn) -> tuple[Scenario, Mix]:
    """A small deployment and a mix of short requests."""
    scenario = draw(small())
    return scenario, mixed(draw(st.randoms(use_true_random=True)), min(scenario.L, 500))


def ways_of(traffic: Traffic) -> dict[str, Split]:
    """The splits that a solve of the same deployment gives for each way but the best; what is refused is left out."""
    given = {"as set": traffic.sizing.now, "r* of the mean length": traffic.sizing.balanced}
    return {name: split for name, split in given.items() if isinstance(split, Split)}


@given(small(), st.randoms(use_true_random=True))
@examples(150)
def test_one_length_is_the_balance_page(scenario: Scenario, random: Any) -> None:
    """Every request L long: the same optimum, and each split carries and runs the same, to the integer."""
    traffic = traffic_of(scenario, one_length(random, scenario.L), random.choice([0.001, 0.01, 0.1]))
    assert traffic.sizing == solve(scenario)
    assert traffic.optimum == traffic.sizing.optimum
    for way in traffic.ways:
        assert way.now.by_kv == way.now.by_kv_least == way.now.by_kv_most == way.split.kv_cap
        assert way.now.runs == way.split.runs
        assert way.now.admitted == way.split.admitted
        assert way.now.overflow == float(way.split.admitted > way.split.kv_cap)
        more = max(way.split.admitted * scenario.L - way.split.kv_tokens, 0)
        assert way.now.missing == pytest.approx(more / scenario.L)
    now = traffic.sizing.now
    assert traffic.whole == (now.runs if isinstance(now, Split) else None)


@given(small_traffic())
@examples(60)
def test_ways_are_what_the_engine_accepts(case: tuple[Scenario, Mix]) -> None:
    """A split that is refused is left out; the others are those of the solve, and the best runs the optimum."""
    scenario, mix = case
    traffic = traffic_of(scenario, mix, RISK)
    assert traffic.sizing == solve(scenario.model_copy(update={"L": max(1, round(mix.lengths.mean))}))
    assert {way.name: way.split for way in traffic.ways if way.name != "best for this traffic"} == ways_of(traffic)
    best, optimum = traffic.way("best for this traffic"), traffic.optimum
    if optimum is None:
        assert best is None
    elif best is None:
        assert pin_is_ignored(resolution(scenario))  # nothing to type: the ratio is ignored too
        assert ratio_is_ignored(resolution(scenario)) or optimum.ratio_low is None
    elif pin_is_ignored(resolution(scenario)):
        assert best.now.runs == optimum.runs
    else:
        assert best.now.runs == optimum.runs
        assert best.split.slots == optimum.pin


@given(small_traffic())
@examples(12)
def test_optimum_is_the_best_of_all_slots(case: tuple[Scenario, Mix]) -> None:
    """Of every number of slots none runs more of this traffic, and exactly the stated ones run as many."""
    scenario, mix = case
    traffic = traffic_of(scenario, mix, RISK)
    at_mean = traffic.sizing.scenario
    tried: dict[int, int] = {}
    for slots in range(1, 2 * SMALL_SLOTS):
        split = solve_split(rank_of(at_mean), ratio=1, slots=slots, pinned=True)
        tried[slots] = serve_runs(split, traffic) if isinstance(split, Split) else 0
    most = max(tried.values())
    if traffic.optimum is None:
        assert most == 0
    else:
        assert traffic.optimum.unspared == most
        stated = range(traffic.optimum.slots_low, traffic.optimum.slots_high + 1)
        assert {tried[slots] for slots in stated} == {traffic.optimum.runs}
        if traffic.optimum.runs == most:  # else the spare slot costs requests, and fewer slots than the best are stated
            best = [slots for slots, runs in tried.items() if runs == most]
            assert (stated[0], stated[-1]) == (best[0], best[-1])
        safe = pinned(at_mean, traffic.optimum.pin)
        assert isinstance(safe, Split)
        assert serve_runs(safe, traffic) == traffic.optimum.runs


def serve_runs(split: Split, traffic: Traffic) -> int:
    """What a split runs of the traffic."""
    return min(split.admitted, most_in_flight(traffic.one, split.kv_tokens, around(RISK), 1))


def tried_one_by_one(split: Split, traffic: Traffic) -> int:
    """The same by trying every number of requests."""
    runs = 0
    while runs < split.admitted and kv_needed(traffic.one, runs + 1, around(RISK))[1] <= split.kv_tokens:
        runs += 1
    return runs


@given(small_traffic())
@examples(40)
def test_what_is_served_is_what_fits(case: tuple[Scenario, Mix]) -> None:
    """What runs is what trying finds; the stated error puts it between its two neighbours."""
    traffic = traffic_of(*case, RISK)
    assume(traffic.ways)
    for way in traffic.ways:
        now: Served = way.now
        assert now.runs == tried_one_by_one(way.split, traffic)
        assert now.by_kv_least <= now.by_kv <= now.by_kv_most
        assert now.missing >= 0
        if now.admitted <= now.by_kv:
            assert now.overflow <= RISK
        else:
            assert now.overflow > RISK
    if traffic.whole is not None:
        assert traffic.whole <= traffic.ways[0].now.runs


@given(small_traffic())
@examples(40)
def test_longer_traffic_never_runs_more(case: tuple[Scenario, Mix]) -> None:
    """With the tail or all outputs doubled a split runs no more and overflows no less."""
    for way in traffic_of(*case, RISK).ways:
        for shifted in (way.tail_doubled, way.outputs_doubled):
            assert shifted is not None
            assert shifted.admitted == way.now.admitted
            assert shifted.by_kv <= way.now.by_kv
            assert shifted.overflow >= way.now.overflow


@given(small_traffic(), st.sampled_from([0.001, 0.01, 0.1]))
@examples(20)
def test_more_risk_never_runs_fewer(case: tuple[Scenario, Mix], risk: float) -> None:
    """At twice the risk the best split runs as many or more."""
    before, after = (traffic_of(*case, at).optimum for at in (risk, 2 * risk))
    assert (after.runs if after else 0) >= (before.runs if before else 0)


def test_the_worked_example() -> None:
    """Requests of 9,216 tokens: 51 run as on the balance page; of that mean, half way through, more do."""
    alike = traffic_of(Scenario(), mix_of("one", np.array([8192]), np.array([1024])), RISK)
    assert next(way.now.runs for way in alike.ways) == solve(Scenario()).now.runs == 51  # type: ignore[union-attr]
    assert alike.never == 0
    rng = np.random.default_rng(0)
    spread = mix_of("spread", rng.integers(0, 16384, 2000), rng.integers(1, 2048, 2000))
    real = traffic_of(Scenario(), spread, RISK)
    assert real.optimum is not None
    assert real.way("best for this traffic") is not None
    assert kv_in_flight(spread.spans).mean < spread.lengths.mean


def test_requests_longer_than_the_pool_are_counted() -> None:
    """They never end; all others are not counted."""
    mix = mix_of_lengths("long", np.array([1000, 2_000_000]), np.array([7, 3]))
    assert traffic_of(Scenario(), mix, RISK).never == 3


def test_lengths_alone_have_no_outputs_to_double() -> None:
    """Where input and output are not known apart nothing is said of doubled outputs."""
    traffic = traffic_of(Scenario(), mix_of_lengths("alone", np.array([100, 20_000])), RISK)
    assert [way.outputs_doubled for way in traffic.ways] == [None] * len(traffic.ways)
    assert traffic.ways


def test_the_stated_error_is_around_the_risk() -> None:
    """A third less and half as much again."""
    assert around(0.03) == pytest.approx((0.03 / MODEL_ERROR, 0.03, 0.03 * MODEL_ERROR))


def test_refused_flags_are_refused() -> None:
    """Flags that the engine does not take are refused as a solve refuses them."""
    refused = Scenario(mamba_radix_cache_strategy="no_buffer", disable_overlap_schedule=False, page_size=64)
    with pytest.raises(RefusedError):
        solve(refused)
    with pytest.raises(RefusedError):
        traffic_of(refused, mix_of("one", np.array([10]), np.array([10])), RISK)


def test_serving_at_the_optimum_overflows_within_the_risk() -> None:
    """On the best split all that are admitted overflow KV at most as often as the risk, seen from the split itself."""
    rng = np.random.default_rng(0)
    mix = mix_of("spread", rng.integers(0, 16384, 2000), rng.integers(1, 2048, 2000))
    way = traffic_of(Scenario(), mix, RISK).way("best for this traffic")
    assert way is not None
    assert way.now == serve(way.split, kv_in_flight(mix.spans), RISK)
    assert way.now.overflow <= RISK


@pytest.mark.parametrize("declared", [Declared(max_new_tokens=4096), Declared(margin=2000)], ids=["all", "margin"])
def test_declared_tokens_are_kept_free(declared: Declared) -> None:
    """With max_new_tokens declared no split runs more than without, where KV binds fewer; both are said."""
    scenario = Scenario(mamba_full_memory_ratio=18.0)
    mix = mix_of_workload(Workload(shape="chat"))
    free, kept = traffic_of(scenario, mix, 0.01), traffic_of(scenario, mix, 0.01, declared)
    assert free.way("as set").admitting is None  # type: ignore[union-attr]
    for way in kept.ways:
        assert way.admitting is not None
        assert way.admitting.runs <= way.now.runs
        assert way.served is way.admitting
    now = kept.way("as set")
    assert now is not None
    assert now.admitting is not None
    assert now.admitting.by_kv < now.now.by_kv
    assert admission_words(free) == ""
    assert f"{now.admitting.runs:,} requests run; with nothing kept free, {now.now.runs:,}." in admission_words(kept)
    assert traffic_answer(kept).runs in (now.admitting.runs, None) or isinstance(traffic_answer(kept).runs, Measured)
    assert way_rows(kept)[0][-1] == f"{now.admitting.runs:,}"
    assert len(way_columns(kept)) == len(way_rows(kept)[0])
    best, free_best = kept.way("best for this traffic"), free.way("best for this traffic")
    assert best is not None
    assert free_best is not None
    assert best.served.runs <= free_best.served.runs
