"""What holds for every deployment: bytes are conserved, pools move one way, the optimum is the best there is."""

import contextlib
import io
import json
import math
import os
from collections.abc import Callable
from typing import Any, get_args
from unittest import mock

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sizing import Refusal, RefusedError, Scenario, Split, read_scenario, solve
from sizing.answers.curves import over_context, over_ratio
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.units import GIB, flag_ratio, ratio_text
from sizing.cli.main import main
from sizing.engine.charges import minimum_rest_gib, slots_from_ratio
from sizing.engine.draft_rules import DRAFTS, drafts_of
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import pin_rank, rank_of
from sizing.engine.resolve import resolution
from sizing.engine.resolved import Rank
from sizing.engine.slots import LEAST_RATIO, most_slots, ratios_around, slots_unpinned
from sizing.engine.split import solve_split
from sizing.exchange.link import from_query, to_query
from sizing.models.gpus import ALL_GPUS
from sizing.releases.rules import LATEST, RELEASES, Release, rules_of
from sizing.scenario.from_model import names
from sizing.scenario.inputs import FIELDS, MAX_RATIO, Algorithm

RATIOS = np.geomspace(1e-4, 1e4, 161)
SMALL_SLOTS = 300  # so many slots at most where every K is tried


def examples(most: int) -> Callable[[Any], Any]:
    """The same examples on every run, without a clock or a database; SIZING_EXAMPLES=10 takes ten times as many."""
    most *= int(os.environ.get("SIZING_EXAMPLES", "1"))
    return settings(max_examples=most, derandomize=True, deadline=None, database=None)


SSM_DTYPES = get_args(StateDtype)
ALGORITHMS = get_args(Algorithm)
KV_DTYPES = get_args(KvDtype)
FLAGS: list[dict[str, Any]] = [
    {"mamba_radix_cache_strategy": "extra_buffer"},
    {"mamba_radix_cache_strategy": "extra_buffer", "disable_overlap_schedule": True},
    {"mamba_radix_cache_strategy": "extra_buffer", "pp_size": 4},
    {"mamba_radix_cache_strategy": "extra_buffer_lazy"},
    {"mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True, "page_size": 1},
    {"mamba_radix_cache_strategy": "auto"},
    {"mamba_radix_cache_strategy": "auto", "architecture": "Lfm2ForCausalLM", "page_size": 1},
    {"mamba_radix_cache_strategy": "auto", "disaggregation_mode": "prefill"},
    {"mamba_radix_cache_strategy": "auto", "disaggregation_mode": "decode"},
    {"disable_radix_cache": True},
]


def known(release: Release, flags: dict[str, Any]) -> dict[str, Any]:
    """Flags as this release takes them: what it does not know is left at its default."""
    rules = rules_of(release)
    unknown = {
        "mamba_radix_cache_strategy": flags.get("mamba_radix_cache_strategy", "auto")
        not in ("auto", *rules.strategies),
        "mamba_ssm_dtype": flags["mamba_ssm_dtype"] not in rules.ssm_dtypes,
        "dcp_size": not rules.dcp,
        "replayssm": rules.spec_ring == "none",
        "linear_replayssm_cache_len": not rules.decode_ring,
    }
    return {"release": release} | {name: value for name, value in flags.items() if not unknown.get(name)}


@st.composite
def estimated(draw: st.DrawFn) -> Scenario:
    """A deployment of the catalogue on a GPU of the table, whose `rest` is an estimate."""
    random = draw(st.randoms(use_true_random=True))
    while True:
        values = {
            "model": random.choice(names()),
            "gpu": random.choice(ALL_GPUS).name,
            "tp_size": random.choice([1, 2, 4, 8]),
            "dcp_size": random.choice([1, 1, 2]),
            "D": random.choice([0, 0, 0, 1, 4, 8]),
            "L": random.choice([1000, 4096, 9216, 32_768, 131_072]),
            "checkpoint": random.choice(["auto", "auto", "bf16", "fp8"]),
            "kv_cache_dtype": random.choice(["bfloat16", "fp8_e4m3"]),
            "split": random.choice(["ratio", "ratio", "balanced"]),
            "mamba_full_memory_ratio": random.choice([0.9, 0.3, 2.0]),
            "max_running_requests": random.choice([None, None, 48, 200]),
        }
        found = read_scenario(values)
        if isinstance(found, Scenario) and found.rest_source == "estimated":
            with contextlib.suppress(RefusedError):
                solve(found)
                return found


@st.composite
def scenarios(draw: st.DrawFn, most_slots: int = 100_000) -> Scenario:
    """Any deployment whose flags the engine takes; `rest` holds up to `most_slots` slots, or is negative.

    Drawn from one seed: value by value, Hypothesis prefers small and equal ones, and nothing would start.
    """
    random = draw(st.randoms(use_true_random=True))

    def between(low: float, high: float) -> int:
        """Even on a logarithmic axis, so that small numbers are as likely as large ones."""
        return round(math.exp(random.uniform(math.log(low), math.log(high))))

    conv = random.choice([0, between(1, 10_000_000)])
    slot = conv + 4 * between(1, 50_000_000)
    states, stated = random.choice(SSM_DTYPES), random.choice(SSM_DTYPES)
    token = 2 * between(1, slot)
    drafts = random.choice([0, between(1, 16)])
    slots = random.choice([between(4, most_slots) + random.random()] * 9 + [random.randint(-2, 8)])
    tokens = max(slots * slot / token, 2)
    ranks = random.choice([1, 1, 1, 2, 4])
    flags = known(
        random.choice([LATEST, LATEST, random.choice(RELEASES)]),
        {
            **{"page_size": random.choice([1, 16, 64, 256]), **random.choice(FLAGS)},
            "dcp_size": random.choice([1, 1, 2, 8]),
            "mamba_ssm_dtype": states,
            "replayssm": random.choice(["off", "off", "spec"]),
            "linear_replayssm_cache_len": 32,
        },
    )
    states = flags.get("mamba_ssm_dtype", "float32")
    scenario = Scenario(
        **flags,
        name=random.choice(["", "A (1)", "é_/=+.,:;-"]),
        L=random.choice([between(1, min(tokens, 2**24)), between(1, 2**20)]),
        D=drafts,
        family=random.choice(["KDA", "GDN", "Mamba2"]),
        ring_bytes_per_position=random.choice([1, between(1, min(slot, 2**26))]),
        tp_size=32,
        attn_dp_size=ranks,
        speculative_algorithm=random.choice(ALGORITHMS),
        state_bytes_dtype=stated,
        conv_bytes_per_slot=random.choice([conv, None]) if states == stated else conv,
        state_bytes_per_slot=slot,
        state_bytes_all_stages=slot * random.choice([1, 4]),
        kv_bytes_per_token=token,
        kv_bytes_dcp_size=flags.get("dcp_size", 1),
        kv_cache_dtype=random.choice(KV_DTYPES),
        kv_bytes_dtype=random.choice(KV_DTYPES),
        draft_kv_bytes_per_token=random.choice([0, token // 7]),
        skip_decode_lock=random.choice([False, True]),
        split=random.choice(["ratio", "pin"]),
        mamba_full_memory_ratio=between(1, 100_000) / between(1, 10_000),
        max_mamba_cache_size=max(1, round(slots / (1 + drafts / 3) * 1.1 * random.random())) * ranks,
        max_running_requests=random.choice([None, between(1, 20_000)]),
        max_total_tokens=random.choice([None, None, between(1, min(2 * tokens, 2**40))]),
        context_length=between(1, 2**20),
        rest_gib=0,
    )
    return taken(scenario.model_copy(update={"rest_gib": slots * resolution(scenario).costs.slot / GIB}))


def taken(scenario: Scenario) -> Scenario:
    """The scenario, or what is left of it after dropping flags that its release refuses together."""
    drop: list[dict[str, Any]] = [{}, {"architecture": ""}, {"replayssm": "off"}, {"pp_size": 1}, {"D": 0}]
    for less in drop:
        scenario = scenario.model_copy(update=less)
        with contextlib.suppress(RefusedError):
            rank_of(scenario)
            return scenario
    raise AssertionError(f"refused whatever is dropped: {scenario}")


def solved(scenario: Scenario) -> Split:
    """The split that is set; gives up the example where the engine refuses it."""
    now = solve(scenario).now
    assume(isinstance(now, Split))
    assert isinstance(now, Split)
    return now


def pinned(scenario: Scenario, slots: int) -> Split | Refusal:
    """The split with this many slots."""
    return solve_split(rank_of(scenario), ratio=1, slots=slots, pinned=True)


def runs(split: Split | Refusal) -> int:
    """What really runs; nothing where the engine refuses to start."""
    return 0 if isinstance(split, Refusal) else split.runs


@given(scenarios())
@examples(150)
def test_more_ratio_never_lowers_the_clamp_nor_raises_the_kv_cap(scenario: Scenario) -> None:
    """Along r the clamp only rises and the KV cap only falls."""
    curve = over_ratio(scenario, RATIOS)
    assert np.all(np.diff(curve.clamp) >= 0)
    assert np.all(np.diff(curve.kv_cap) <= 0)
    assert min(curve.clamp[0], curve.kv_cap[-1]) >= 0


@given(scenarios())
@examples(300)
def test_what_runs_is_the_smallest_limit(scenario: Scenario) -> None:
    """What runs is the first of the limits, none is smaller, and it is what the engine admits or KV carries."""
    now = solved(scenario)
    assert now.runs == min(now.admitted, now.kv_cap) == now.binding.requests
    assert [limit.requests for limit in now.limits] == sorted(limit.requests for limit in now.limits)


@given(scenarios())
@examples(300)
def test_memory_adds_up_to_rest(scenario: Scenario) -> None:
    """The pieces of memory are all of rest, none is negative, and what is charged for is what was taken."""
    memory = solved(scenario).memory
    pieces = memory.model_dump()
    assert sum(pieces.values()) == int(scenario.rest_gib * GIB)
    assert [name for name, size in pieces.items() if size < 0] == []
    charged = sum(row.charged for row in solve(scenario).allocations)
    assert charged == sum(pieces.values()) - memory.unsplit <= scenario.rest_gib * GIB


@given(scenarios())
@examples(300)
def test_what_is_allocated_beyond_the_charge_is_said(scenario: Scenario) -> None:
    """The excess is that of the rows, at least the uncharged padding; unknown where one row is."""
    solved(scenario)
    sizing = solve(scenario)
    allocated = [row.allocated for row in sizing.allocations]
    if sizing.beyond is None:
        assert None in allocated
    else:
        whole = sum(size for size in allocated if size is not None)
        assert sizing.beyond == max(whole - sum(row.charged for row in sizing.allocations), 0)


@given(scenarios(), st.lists(st.floats(0.5, 2), min_size=1, max_size=8))
@examples(100)
def test_one_call_over_many_ranks_is_the_single_solve(scenario: Scenario, factors: list[float]) -> None:
    """Arrays of rest give, element by element, the integers of one rank at a time."""
    rank = rank_of(scenario)
    rests = np.array(factors) * scenario.rest_gib
    ratio = scenario.mamba_full_memory_ratio
    many = rank._replace(rest_gib=rests)
    together = pools_from_slots(many, slots_from_ratio(many, ratio))
    for at, rest in enumerate(rests):
        one = rank._replace(rest_gib=float(rest))
        alone = pools_from_slots(one, slots_from_ratio(one, ratio))
        there = [np.broadcast_to(value, rests.shape)[at] for value in together if value is not None]
        assert there == [value for value in alone if value is not None]


@given(scenarios(), st.floats(0, 1))
@examples(200)
def test_more_rest_never_lowers_the_clamp_nor_the_optimum(scenario: Scenario, more: float) -> None:
    """With more memory the clamp of every ratio and the best that any split runs only rise."""
    richer = scenario.model_copy(update={"rest_gib": scenario.rest_gib + more})
    assert np.all(over_ratio(richer, RATIOS).clamp >= over_ratio(scenario, RATIOS).clamp)
    before, after = solve(scenario).optimum, solve(richer).optimum
    assert (after.runs if after else 0) >= (before.runs if before else 0)


@given(scenarios())
@examples(200)
def test_crossing_is_where_the_pools_meet(scenario: Scenario) -> None:
    """Up to the crossing KV carries the whole clamp, one token beyond it does not."""
    now = solved(scenario)
    at = over_context(now, np.array([now.crossing, now.crossing + 1])).kv_cap if now.crossing else None
    if at is None:  # fewer tokens than requests: they meet at no length at all
        assert now.kv_tokens < now.clamp
    else:
        assert at[0] >= now.clamp > at[1]


@given(scenarios(), st.lists(st.integers(1, 2**24), min_size=1, max_size=5))
@examples(100)
def test_curve_over_context_is_the_single_solve(scenario: Scenario, lengths: list[int]) -> None:
    """Each point over L holds the integers of a solve at that L."""
    now = solved(scenario)
    curve = over_context(now, np.array(lengths))
    for point, L in enumerate(lengths):
        alone = pinned(scenario.model_copy(update={"L": L}), now.slots)
        assert isinstance(alone, Split)
        assert (curve.kv_cap[point], curve.runs[point]) == (alone.kv_cap, alone.runs)
        assert (curve.clamp, curve.admitted) == (alone.clamp, alone.admitted)


@given(scenarios(), st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=20))
@examples(200)
def test_curve_over_ratio_is_the_single_solve(scenario: Scenario, ratios: list[float]) -> None:
    """Each point over r holds the integers of a solve at that r, and runs nothing where that is refused."""
    curve = over_ratio(scenario, np.array(ratios))
    for point, ratio in enumerate(ratios):
        rank = rank_of(scenario)
        alone = solve_split(rank, ratio, slots_unpinned(rank, ratio))
        assert curve.runs[point] == runs(alone)
        if isinstance(alone, Split):
            assert (curve.clamp[point], curve.kv_cap[point]) == (alone.clamp, alone.kv_cap)


@given(scenarios(most_slots=SMALL_SLOTS))
@examples(60)
def test_optimum_is_the_best_of_all_slots(scenario: Scenario) -> None:
    """Of every number of slots that a flag gives none runs more, with a slot to spare and without; the stated do."""
    sizing = solve(scenario)
    best, S = sizing.optimum, sizing.S
    given = most_slots(rank_of(scenario))
    tried = {slots: runs(pinned(scenario, slots)) for slots in range(1, 2 * SMALL_SLOTS) if slots <= given}
    spared = [min(run, (slots - 1) // S) for slots, run in tried.items() if S > 1]
    most = max(tried.values(), default=0)
    if best is None:
        assert most == 0
        return
    assert (best.runs, best.unspared) == (max(spared, default=0) or most, most)
    assert best.slots_low == best.runs * S
    assert {tried[slots] for slots in range(best.slots_low, best.slots_high + 1)} == {best.runs}
    assert tried.get(best.slots_high + 1) != best.runs


@given(scenarios(), st.lists(st.integers(1, 999), max_size=10))
@examples(150)
def test_best_ratios_are_all_of_them(scenario: Scenario, inside: list[int]) -> None:
    """Every ratio between the two ends runs the optimum, the ends included, and no ratio outside asks for its slots."""
    best = solve(scenario).optimum
    assume(best is not None and best.ratio_low is not None)
    assert best is not None
    low = best.ratio_low
    high = MAX_RATIO if best.ratio_high is None else best.ratio_high
    assert low is not None
    assert low <= high
    between_them = [low * (high / low) ** (part / 1000) for part in inside]
    within = np.clip([low, high, *between_them], low, high)
    assert set(over_ratio(scenario, within).runs) == {best.runs}
    rank = rank_of(scenario)
    assert slots_from_ratio(rank, low * (1 - 1e-9)) < best.slots_low
    if high < MAX_RATIO * (1 - 1e-9):
        assert slots_from_ratio(rank, high * (1 + 1e-9)) > best.slots_high


@given(scenarios())
@examples(150)
def test_safe_pin_runs_what_it_says(scenario: Scenario) -> None:
    """The safe pin runs exactly its requests, and no pin of its kind runs more."""
    best = solve(scenario).optimum
    assume(best is not None)
    assert best is not None
    S = solve(scenario).S
    assert best.spare == 0 or S > 1
    assert best.pin == best.runs * S + best.spare
    assert runs(pinned(scenario, best.pin)) == best.runs >= 1
    given = most_slots(rank_of(scenario))
    more = (best.runs + 1) * S + best.spare
    assert more > given or runs(pinned(scenario, more)) <= best.runs


@given(scenarios(), st.sampled_from([0.05, 0.9, 14.0]))
@examples(150)
def test_least_rest_is_the_least(scenario: Scenario, ratio: float) -> None:
    """A hair above the rest that a refusal names there are slots for one request, a hair below there are not."""
    rank = rank_of(scenario)
    least = minimum_rest_gib(rank, ratio)
    above, below = (rank._replace(rest_gib=least * (1 + by)) for by in (1e-9, -1e-9))
    assert slots_from_ratio(above, ratio) >= rank.S > slots_from_ratio(below, ratio)


def halved(rank: Rank, slots: int) -> tuple[float, float]:
    """The ratios around K = `slots` by halving alone, with every number in between tried."""
    low, high = math.log(LEAST_RATIO), math.log(MAX_RATIO)
    if slots_from_ratio(rank, math.exp(high)) < slots:
        return math.exp(high), math.exp(high)
    while low < (middle := (low + high) / 2) < high and high - low > 1e-22:
        low, high = (low, middle) if slots_from_ratio(rank, math.exp(middle)) >= slots else (middle, high)
    return math.exp(low), min(math.exp(high), MAX_RATIO)


@given(scenarios(), st.lists(st.floats(0, 1.01), min_size=8, max_size=8))
@examples(100)
def test_the_ratio_of_a_slot_is_that_of_plain_halving(scenario: Scenario, parts: list[float]) -> None:
    """To the last bit, for few slots as for many and where no ratio gives them; a dozen numbers tried are enough."""
    by_ratio = rank_of(scenario)
    for rank in (by_ratio, pin_rank(by_ratio)):
        most = max(int(slots_from_ratio(rank, MAX_RATIO)), 1)
        for slots in (-2, 1, most + 1, *(round(most * part) for part in parts), *(round(most**part) for part in parts)):
            rule = drafts_of(rank.rules)
            counted = mock.Mock(wraps=rule.slots)
            with mock.patch.dict(DRAFTS, {rank.rules.drafts: rule._replace(slots=counted)}):
                found = ratios_around(rank, slots)
            assert found == halved(rank, slots)
            if 1 <= slots <= most and found[1] < 0.5:
                assert counted.call_count < 20


@given(scenarios())
@examples(200)
def test_link_gives_the_scenario_back(scenario: Scenario) -> None:
    """A scenario written as a link and read again is the same, with nothing to report."""
    assert from_query(to_query(scenario)) == (scenario, [])


@given(scenarios())
@examples(200)
def test_json_gives_the_scenario_back(scenario: Scenario) -> None:
    """A scenario written as JSON and read again is the same."""
    assert Scenario.model_validate_json(scenario.model_dump_json()) == scenario


VALUES = st.sampled_from(
    ["", "0", "-1", "7", "1e999", "nan", "true", " 12 ", "1_000", "1.0", "\uff19", "pin", "9" * 5000]
)


@given(
    st.dictionaries(
        st.sampled_from(sorted(FIELDS)) | st.text(),
        VALUES | st.text(st.characters(codec=None)),
        max_size=8,
    )
)
@examples(400)
def test_any_text_in_a_link_is_taken_or_reported(query: dict[str, str]) -> None:
    """Whatever a link holds a scenario comes out, and what was not taken is at its default and reported inertly."""
    scenario, problems = from_query(query)
    named = {problem.where for problem in problems if problem.where}
    unknown = query.keys() - FIELDS.keys()
    assert to_query(scenario).keys() - {"model"} <= query.keys() - named  # bytes alone mean: no model
    assert sum(problem.sentence.endswith("ignored.") for problem in problems) == bool(unknown)
    assert all(problem.sentence.isprintable() and "<" not in problem.sentence for problem in problems)


@given(st.floats(1e-6, 1e6))
@examples(200)
def test_ratio_is_typed_as_it_is_solved(ratio: float) -> None:
    """The text of a ratio, read back, is the ratio that was solved."""
    assert float(ratio_text(ratio)) == flag_ratio(ratio)


def no_constant(name: str) -> None:
    """Called by the JSON reader for NaN and Infinity, which no other reader takes."""
    raise AssertionError(name)


@given(scenarios())
@examples(100)
def test_every_deployment_can_be_told(scenario: Scenario) -> None:
    """The command prints a table and strict JSON for any deployment; its status says whether SGLang starts."""
    status = 0 if isinstance(solve(scenario).now, Split) else 1
    for options in ([], ["--json"]):
        printed = io.StringIO()
        with mock.patch("sys.stdin", io.StringIO(scenario.model_dump_json())), contextlib.redirect_stdout(printed):
            assert main(["plan", "-", *options]) == status
        if options:
            answer = json.loads(printed.getvalue(), parse_constant=no_constant)
            assert Scenario.model_validate(answer["sizing"]["scenario"]) == scenario
        else:
            assert printed.getvalue()
            assert "nan" not in printed.getvalue()


ATOMS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None))
JSON = st.recursive(ATOMS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(st.dictionaries(st.sampled_from(sorted(FIELDS)) | st.text(st.characters(codec=None)), JSON, max_size=4))
@examples(400)
def test_any_json_is_taken_or_reported(values: dict[str, Any]) -> None:
    """Whatever a file holds, it is a scenario that says the same, or sentences that can be shown as they are."""
    found = read_scenario(values)
    if isinstance(found, Scenario):
        assert found.differences().keys() - {"model"} <= values.keys() <= FIELDS.keys()
    else:
        assert found
        assert all(problem.sentence.isprintable() and "<" not in problem.sentence for problem in found)
