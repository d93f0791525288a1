"""Boot logs of eleven releases: every fact of the boot is read, or lies within what the printed decimals leave open."""

from collections.abc import Callable
from typing import Any

import pytest

from sizing import Scenario, Split, read_scenario, solve
from sizing.bootlog import Facts, Measured, inputs_of, read_file
from tests.log_cases import OTHER_LOGS, LogCase, log_cases, read_log_cases

default_folder = pytest.mark.skipif(OTHER_LOGS is not None, reason="the count is that of our folder")


def holds(measured: Measured | None, number: float) -> bool:
    """Whether the log allows a number."""
    return measured is not None and measured.holds(number)


def charged(facts: Facts, number: int) -> bool:
    """Target and draft together; a log that holds the target's lines only says so by having no draft bytes."""
    target, draft = facts.token_bytes, facts.draft_token_bytes
    if target is None or draft is None:
        return holds(target, number) or bool(facts.draft_tokens)
    return target.low + draft.low <= number <= target.high + draft.high


# What facts.json may state of a boot, and how the log shows it.
CHECKS: dict[str, Callable[[Facts, Any], bool]] = {
    "version": lambda facts, release: release in facts.releases,
    "rest_gib": lambda facts, gib: holds(facts.rest_from_weights, gib),
    "available_gib_at_sizing": lambda facts, gib: holds(facts.end_gib, gib),
    "max_mamba_cache_size": lambda facts, slots: facts.slots == slots,
    "S": lambda facts, S: facts.S == S,
    "state_bytes_per_slot": lambda facts, size: holds(facts.slot_bytes, size),
    "kv_bytes_per_token_target": lambda facts, size: holds(facts.token_bytes, size),
    "kv_bytes_per_token_charged": charged,
    "kv_rows_per_rank": lambda facts, rows: facts.kv_rows == rows,
    "logical_tokens": lambda facts, tokens: facts.kv_tokens == tokens,
    "max_running_requests": lambda facts, requests: facts.running == requests,
    "page_size": lambda facts, tokens: facts.page_size == tokens,
}


@pytest.mark.parametrize("case", log_cases())
def test_log_case(case: LogCase) -> None:
    """One boot, no conflict, every fact; and the inputs that it gives lead back to the slots that were printed."""
    log = read_file(case.path)
    assert (len(log.boots), log.problems) == (1, ())
    assert log.last
    facts = log.last.facts
    assert [key for key, value in case.facts.items() if key in CHECKS and not CHECKS[key](facts, value)] == []
    if OTHER_LOGS is not None:
        return  # a log that is not ours may hold less than all of it
    assert (facts.conflicts, facts.missing) == ((), ())
    assert facts.clamp is not None
    assert facts.running is not None
    assert facts.clamp >= facts.running
    assert solved_slots(facts) == pytest.approx(facts.slots, rel=1e-3)


def solved_slots(facts: Facts) -> int:
    """K of the scenario that a log's facts make."""
    scenario = read_scenario(inputs_of(facts).values)
    assert isinstance(scenario, Scenario), scenario
    split = solve(scenario).now
    assert isinstance(split, Split)
    return split.slots


@default_folder
def test_no_log_is_dropped() -> None:
    """Our folder holds 16 logs."""
    assert len(read_log_cases()) == 16
