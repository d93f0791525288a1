"""The releases' own results, case by case, from flags and a configuration alone: integers, and refusals by kind."""

from collections import Counter
from typing import Any

import pytest

from sizing import Refusal, RefusedError, Scenario, Split
from sizing.answers.solve import solve_now
from sizing.engine.allocation import decode_pool
from sizing.engine.rank import rank_of
from sizing.engine.resolve import resolve
from tests.release_cases import CASES, OTHER_FILE, ReleaseCase, read_cases, release_cases

default_file = pytest.mark.skipif(OTHER_FILE is not None, reason=f"counts are those of our file, not {CASES.name}")


@pytest.mark.parametrize("case", release_cases())
def test_release_case(case: ReleaseCase) -> None:
    """The release's integers, or its kind of refusal."""
    assert found(case) == expected(case)


@default_file
def test_no_case_is_dropped() -> None:
    """All 424 cases of our file are compared, each under an id of its own."""
    cases = read_cases()
    assert len(cases) == len({case.id for case in cases}) == 424
    kinds = Counter(case.expect["error"]["kind"] for case in cases if "error" in case.expect)
    assert kinds == {"flags": 65, "not_served": 19, "no_such_flag": 4, "engine_crash": 4, "no_tokens": 1}


def expected(case: ReleaseCase) -> dict[str, Any]:
    """What a case says, less what is said of a unified pool."""
    if "error" in case.expect:
        return {"refused": case.expect["error"]["kind"]}
    return {name: value for name, value in case.expect.items() if name != "unified"}


def found(case: ReleaseCase) -> dict[str, Any]:
    """The same from our side."""
    scenario = case.scenario
    assert isinstance(scenario, Scenario), scenario
    try:
        now = solve_now(scenario)
    except RefusedError as refused:
        return {"refused": refused.refusal.kind}
    if isinstance(now, Refusal):
        return {"refused": now.kind}
    return numbers(scenario, now)


def numbers(scenario: Scenario, now: Split) -> dict[str, Any]:
    """Every number that a case holds of a server that starts, by its name there."""
    resolved, decode = resolve(scenario), decode_pool(rank_of(scenario), now)
    rows = (
        {
            "slots_allocated": decode.slots,
            "slots_charged": decode.slots_charged,
            "request_rows": decode.rows,
            "pre_alloc_size": decode.extra_rows,
            "draft_state_rows": decode.draft_rows,
        }
        if decode
        else {}
    )
    return {
        "S": resolved.S,
        "resolved_strategy": resolved.strategy if resolved.radix_cache else "disabled",
        "resolved_disable_overlap": not resolved.overlap,
        "rest_gib": scenario.rest_gib,
        "max_mamba_cache_size": now.slots,
        "mamba_clamp": now.clamp,
        "kv_rest_bytes": now.kv_rest_bytes,
        "kv_tokens_per_rank": now.kv_rows,
        "kv_tokens_logical": now.kv_tokens,
        "max_running_requests": now.admitted,
        **({"decode_pool": rows} if rows else {}),
        **({"swa_tokens_per_rank": now.window_rows} if now.window_rows else {}),
    }
