"""The engine's own results, case by case: exact integers, and refusals in its words."""

from collections import Counter
from typing import Any
from urllib.parse import urlencode

import pytest

from sizing import Refusal, RefusedError, Scenario, Split, solve
from sizing.answers.solve import Sizing
from sizing.engine.rank import rank_of
from sizing.engine.resolve import resolve
from sizing.engine.slots import slots_set
from sizing.exchange.link import to_query
from tests.cases import FILE, GROUPS, OTHER_FILE, Case, engine_cases, read_cases, stated

default_file = pytest.mark.skipif(OTHER_FILE is not None, reason=f"counts are those of our file, not {FILE.name}")


@pytest.mark.parametrize("case", engine_cases())
def test_engine_case(case: Case) -> None:
    """The solve gives the engine's integers, or refuses as the engine refuses."""
    scenario = case.scenario
    wrong = compare(scenario, case)
    assert not wrong, f"{wrong}\nopen it with ?{urlencode(to_query(scenario))}"


@default_file
def test_no_case_is_dropped() -> None:
    """All 155 cases of our file are compared, group by group."""
    assert Counter(case.group for case in read_cases()) == GROUPS
    assert sum(GROUPS.values()) == 155


@default_file
def test_case_ids_are_unique() -> None:
    """Each case has an id of its own, so that no result hides another."""
    assert [id for id, times in Counter(case.id for case in read_cases()).items() if times > 1] == []


@default_file
def test_refusals_are_among_the_cases() -> None:
    """Refusals of every kind that the file holds are compared."""
    kinds = Counter(case.expect["error"]["kind"] for case in read_cases() if "error" in case.expect)
    assert kinds == {"flags": 7, "no_kv_memory": 3, "no_requests": 3, "no_state_memory": 3}


@pytest.mark.parametrize("case", [case for case in engine_cases() if "error" not in case.values[0].expect])
def test_flags_alone_resolve(case: Case) -> None:
    """Strategy, overlap, S and D come out of the flags and environment variables as a user states them."""
    scenario = Scenario(**stated(case.inputs))
    resolved = resolve(scenario)
    found = (resolved.strategy if resolved.radix_cache else "disabled", not resolved.overlap, resolved.S, scenario.D)
    expect = case.expect
    assert case.numeric is not None
    assert found == (
        expect["resolved_strategy"],
        expect["resolved_disable_overlap"],
        expect["S"],
        case.numeric["D"],
    )


@pytest.mark.parametrize("case", engine_cases())
def test_adapter_does_not_see_the_result(case: Case) -> None:
    """A scenario is made from what went into the engine alone."""
    assert case._replace(expect={}).scenario == case.scenario


def compare(scenario: Scenario, case: Case) -> dict[str, Any]:
    """What differs from the engine: name to (ours, the engine's)."""
    error = case.expect.get("error")
    if error and error["kind"] == "flags":
        return compare_flags(scenario, error)
    sizing = solve(scenario)
    ours = {"S": sizing.S, "max_mamba_cache_size": slots_now(sizing)}
    if error:
        wrong = compare_refusal(sizing.now, error)
    else:
        wrong = {}
        ours |= solved(sizing)
    allowed = within_one(sizing) if case.rounding_sensitive else {}
    wrong |= {
        name: (value, case.expect[name])
        for name, value in ours.items()
        if abs(value - case.expect[name]) > allowed.get(name, 0)
    }
    return wrong


def compare_flags(scenario: Scenario, error: dict[str, str]) -> dict[str, Any]:
    """Refused before any memory is counted, with the whole of the engine's message."""
    try:
        solve(scenario)
    except RefusedError as refused:
        before, dots, after = refused.refusal.engine_words.partition("…")
        said = error["message"]
        same = said.startswith(before) and said.endswith(after) if dots else said == before
        return {} if refused.refusal.kind == error["kind"] and same else {"refusal": (refused.refusal, error)}
    return {"refusal": (None, error)}


def compare_refusal(now: Split | Refusal, error: dict[str, str]) -> dict[str, Any]:
    """The same kind of refusal, and our words are the first words of the engine's message."""
    if isinstance(now, Refusal) and now.kind == error["kind"] and error["message"].startswith(now.engine_words):
        return {}
    return {"refusal": (now, error)}


def solved(sizing: Sizing) -> dict[str, int]:
    """Every number that a case holds of a split that starts."""
    now = sizing.now
    assert isinstance(now, Split), f"the engine starts, we refuse: {now}"
    return {
        "kv_rest_bytes": now.kv_rest_bytes,
        "kv_tokens_per_rank": now.kv_rows,
        "kv_tokens_logical": now.kv_tokens,
        "mamba_clamp": now.clamp,
        "max_running_requests": now.admitted,
        "resolved_disable_overlap": not sizing.resolved.overlap,
    }


def slots_now(sizing: Sizing) -> int:
    """K [slots] of the split that is set, also where the engine goes on to refuse it."""
    scenario = sizing.scenario
    return int(slots_set(rank_of(scenario), sizing.ratio_now))


def within_one(sizing: Sizing) -> dict[str, int]:
    """One slot and one page, in every unit that they move."""
    scenario = sizing.scenario
    slot = sizing.slot_bytes * (1 + scenario.D)  # with its draft states
    rows = slot // sizing.token_bytes + scenario.page_size
    return {
        "max_mamba_cache_size": 1,
        "mamba_clamp": 1,
        "max_running_requests": 1,
        "kv_rest_bytes": slot,
        "kv_tokens_per_rank": rows,
        "kv_tokens_logical": rows * scenario.dcp_size,
    }
