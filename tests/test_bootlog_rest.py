"""`rest` from what a boot prints: the engine's cases in many releases, their sizes rounded as a log rounds them."""

from typing import Any

import pytest
from pydantic import ValidationError

from sizing import RefusedError, Scenario, Split, solve
from sizing.basics.units import GIB
from sizing.bootlog import Measured
from sizing.bootlog.measure import Printed, share, total
from sizing.bootlog.rank_facts import RankFacts
from sizing.bootlog.rest import Charging, gap_gib, rest_from_pools, rest_from_weights
from sizing.engine.requests import requests_charged
from sizing.engine.resolve import resolution
from sizing.engine.slots import is_pinned, ratio_is_ignored
from sizing.releases.rules import RELEASES, rules_of
from tests.cases import read_cases

STEPS, TOPK = 3, 1
CASES = [case for case in read_cases() if case.derived and case.inputs["flags"].get("pp_size", 1) == 1]


def rounded(size: float, decimals: int = 2) -> Printed:
    """A size [bytes] as a line prints it [GiB]."""
    return Printed(round(size / GIB, decimals), 0.5 / 10**decimals)


def printed(scenario: Scenario, split: Split) -> RankFacts:
    """What one rank prints of a solved split."""
    costs = resolution(scenario).costs
    slots, rows = split.slots, split.kv_rows
    state = total([rounded((slots + 1) * part) for part in (costs.conv, costs.ssm)])
    added = 0
    if rules_of(scenario.release).eagle_headroom and scenario.D and scenario.speculative_algorithm != "NGRAM":
        added = split.admitted * (STEPS * TOPK + scenario.D) + 100  # engine-sizing.md section 14
    shown, page = rows + added, scenario.page_size
    halves = 1 if scenario.attention == "MLA" else 2
    kv = total([rounded((shown + page) * costs.target_token / halves)] * halves)
    spans = scenario.dcp_size if rules_of(scenario.release).draft_pool_spans_dcp else 1
    draft = total([rounded((rows * spans + page) * costs.draft_row)]) if costs.draft_row else None
    rings = split.memory.rings
    if costs.rings_are_fixed:  # charged for the requests asked for, printed for those that run
        rings = rings * (split.admitted + 1) // (requests_charged(resolution(scenario)) + 1)
    return RankFacts(
        name="TP0",
        stage=None,
        slots=slots,
        slots_allocated=slots,
        state_gib=state,
        slot_bytes=share(state, slots + 1),
        kv_rows=shown,
        kv_gib=kv,
        token_bytes=share(kv, shown + page),
        draft_token_bytes=share(draft, rows * spans + page) if draft else None,
        ring_gib=rounded(rings, 3).measured if rings else None,
        begin_gib=None,
        end_gib=None,
        running=split.admitted,
    )


def charging(scenario: Scenario, S: int) -> Charging:
    """The flags that decide what is charged."""
    asked, rules = scenario.max_running_requests, rules_of(scenario.release)
    return Charging(
        release=scenario.release,
        page_size=scenario.page_size,
        dcp_size=scenario.dcp_size,
        S=S,
        D=scenario.D,
        requests=max(asked // (scenario.attn_dp_size if rules.drafts_over_dp else 1), 1) if asked else None,
        algorithm=scenario.speculative_algorithm,
        steps=STEPS,
        topk=TOPK,
        replayssm=scenario.replayssm,
        family=scenario.family,
        role=scenario.disaggregation_mode,
        by_ratio=not (is_pinned(resolution(scenario)) or ratio_is_ignored(resolution(scenario))),
    )


def solved(case: Any, release: str) -> tuple[Scenario, Any] | None:
    """A case's scenario in some release; None where that release refuses it, or a cap leaves memory unused."""
    values = {**case.scenario.model_dump(), "release": release}
    try:
        scenario = Scenario.model_validate(values)
        sizing = solve(scenario)
    except (RefusedError, ValidationError):
        return None
    capped = scenario.max_total_tokens is not None
    return (scenario, sizing) if isinstance(sizing.now, Split) and not capped else None


@pytest.mark.parametrize("release", RELEASES)
def test_printed_pools_hold_rest(release: str) -> None:
    """In every release: `rest` lies within the ends, which are no wider than rounding, one page and one slot leave."""
    tried, wrong = 0, []
    for case in CASES:
        found = solved(case, release)
        if found is None:
            continue
        scenario, sizing = found
        rest = rest_from_pools((printed(scenario, sizing.now),), charging(scenario, sizing.S))
        if rest is None:
            continue
        tried += 1
        if not rest.low - 1e-9 <= scenario.rest_gib <= rest.high + 1e-9:
            wrong.append((case.id, scenario.rest_gib, rest))
        page = scenario.page_size * (
            resolution(scenario).costs.target_token + resolution(scenario).costs.draft_row * scenario.dcp_size
        )
        assert (
            rest.high - rest.low
            <= 0.02 * (1 + scenario.D) + 0.1 + 1.2 * page / GIB + resolution(scenario).costs.slot / GIB
        )
    assert wrong == []
    assert tried >= 60


def test_what_is_not_charged_is_left_out() -> None:
    """The padding slot from 0.5.17 on only; a decode server's extra slots never."""
    rank = printed_plain(slots=9, allocated=9)
    old, new = (rest_from_pools((rank,), Charging(release)) for release in ("0.5.16", "0.5.17"))
    assert old
    assert new
    assert new.value - old.value == pytest.approx(1.0)
    decode = rest_from_pools((printed_plain(slots=4, allocated=9),), Charging("0.5.23", S=1, role="decode"))
    assert decode
    assert new.value - decode.value == pytest.approx(5.0)
    assert rest_from_pools((rank,), Charging("0.5.10", S=1, role="decode")) is None
    assert rest_from_pools((rank,), Charging("0.5.23", D=None)) is None
    assert rest_from_pools((rank,), Charging("0.5.23", D=4, S=5, algorithm="EAGLE")) is None  # no draft KV is printed


def printed_plain(slots: int, allocated: int) -> RankFacts:
    """Slots of one GiB each, and ten tokens of one."""
    return RankFacts(
        name="",
        stage=None,
        slots=slots,
        slots_allocated=allocated,
        state_gib=Measured(allocated + 1.0, allocated + 1.0, allocated + 1.0),
        slot_bytes=Measured(GIB, GIB, GIB),
        kv_rows=10,
        kv_gib=Measured(11.0, 11.0, 11.0),
        token_bytes=Measured(GIB, GIB, GIB),
        draft_token_bytes=None,
        ring_gib=None,
        begin_gib=None,
        end_gib=None,
        running=None,
    )


def test_weights_and_pools_that_contradict() -> None:
    """Nothing within rounding; else how far the two are apart, and which has more."""
    begin, end = Measured(94.0, 93.995, 94.005), Measured(58.8, 58.795, 58.805)
    weights = rest_from_weights(begin, end, 0.8)
    assert weights == pytest.approx((40.0, 39.994, 40.006))
    assert weights
    assert gap_gib(weights, Measured(40.01, 40.0, 40.02)) == 0
    assert gap_gib(weights, Measured(30.0, 29.98, 30.02)) == pytest.approx(39.994 - 30.02)
    assert gap_gib(weights, Measured(50.0, 49.98, 50.02)) == pytest.approx(40.006 - 49.98)
    assert gap_gib(weights, Measured(30.0, 29.98, 30.02), pools_are_least=True) == 0
    assert gap_gib(weights, Measured(50.0, 49.98, 50.02), pools_are_least=True) < 0
