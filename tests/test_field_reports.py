"""What people saw on their own servers, against what we compute from the inputs they stated.

golden/reports holds one file for each report: the settings, the figures of its log's lines as read by hand, the bytes
(from the architecture, or from the log where the architecture is not known) and what came out. A report names no
release; the newest is taken. What a report does not print stands at a default that its results do not depend on.
Reading a log, how far its rounding reaches, and the slot size by dividing by N are a later part's.
"""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sizing import Refusal, Scenario, Split, solve
from sizing.answers.solve import Sizing
from sizing.basics.units import GIB
from sizing.engine.rank import rank_of
from sizing.engine.slots import slots_set
from sizing.specification import optimal_ratio, token_equiv

Report = dict[str, Any]
FOLDER = Path(__file__).parent / "golden" / "reports"
REPORTS: list[Report] = [json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))]

# Where a report prints no bytes, only counts are compared: the worked example's bytes stand in, with room for all.
ROOM_GIB = 2000
FIGURE = 0.005  # GiB, the rounding of a figure with two decimals

A_LATER_PART = "needs the log's lines, which a later part reads"
# Reports, or parts of one, that do not come out of our functions, and why.
NOT_COMPARED = {
    "F02": ["r*, the clamp of the log and the binding pool: S is not stated; each S is compared instead"],
    "F07": [f"two ranks that print the same pools: {A_LATER_PART}"],
    "F08": [f"progress bars between the lines: {A_LATER_PART}"],
    "F10": [
        "a spare slot of the pin (21): with the radix cache off nothing is tracked, and our pin spares none",
        f"the traceback behind the pool lines: {A_LATER_PART}",
    ],
    "F12": ["the idle 72.65 GiB: what is free after graph capture is no part of the pools"],
    "F13": ["the idle 35 GiB: what is free after graph capture is no part of the pools"],
    "F15": ["r* and token_equiv: the KV bytes are not printed", f"the missing KV line: {A_LATER_PART}"],
    "F16": [
        "r*, token_equiv and the KV cap: neither KV bytes nor tokens are printed",
        f"one clamp printed by four ranks: {A_LATER_PART}",
    ],
    "F19": ["out of memory in graph capture: what the graphs take is no part of the pools"],
    "F25": ["the diagnosis in the report's words; our refusal has words of its own"],
    "F28": ["bytes, r* and the KV cap: no size is printed and the token count was made up", A_LATER_PART],
    "F29": ["bytes, r* and the KV cap: no size is printed"],
    "F32": ["bytes, r* and the KV cap: the rows are counts"],
    "F34": [f"lines that wrap, and a rank without a time: {A_LATER_PART}"],
    "F36": ["K of both runs from one rest: neither rest nor the number of drafts is printed; 8 drafts stand in"],
    "F38": [f"asking for the slot count that is missing: {A_LATER_PART}"],
    "F39": ["the engine is not SGLang: one pool of blocks, no ratio"],
    "F41": [f"two boots in one log, the first of which fails: {A_LATER_PART}"],
    "F47": [f"16 slots from the usage that is printed: {A_LATER_PART}"],
    "F48": ["the range of token_equiv from a KV size with one digit: a later part reads the log's rounding"],
    "F49": [f"the sizes that are missing: {A_LATER_PART}"],
}


def flags_of(strategy: str, *, radix_cache: bool = True, overlap: bool = True) -> dict[str, Any]:
    """A strategy and the two flags that S depends on beside it."""
    return {
        "mamba_radix_cache_strategy": strategy,
        "disable_radix_cache": not radix_cache,
        "disable_overlap_schedule": not overlap,
    }


# Flags that give each S (compute-mamba-ratio.md, the table of S).
FLAGS_OF_S = {
    1: flags_of("auto", radix_cache=False),
    3: flags_of("no_buffer", overlap=False),
    4: flags_of("extra_buffer_lazy"),
    5: flags_of("extra_buffer"),
}
# Four slots serve nothing at the S = 5 of F02's settings, yet its server started: where S plays no part, 3 stands in.
STARTS_WITH = {"F02": FLAGS_OF_S[3]}


def scenario_of(report: Report, **inputs: Any) -> Scenario:
    """The settings and bytes that a report states, with some inputs changed."""
    settings, stated = report["settings"], report.get("bytes", {})
    dtype = "fp8_e4m3" if settings["kv_dtype"] == "fp8" else "bfloat16"
    values: dict[str, Any] = {
        **flags_of(settings["strategy"], radix_cache=settings["radix_cache"], overlap=settings["overlap"]),
        "D": settings["D"],
        "speculative_algorithm": settings.get("algorithm", "EAGLE"),
        "tp_size": settings["tp"],
        "attn_dp_size": settings["attn_dp"],
        "max_running_requests": settings.get("asked"),
        "kv_cache_dtype": dtype,
        "kv_bytes_dtype": dtype,
        "L": settings.get("L", 4096),
        "page_size": 1,
        "family": "GDN",
        "rest_gib": ROOM_GIB,
    }
    if stated:
        values |= {"state_bytes_per_slot": stated["slot"], "conv_bytes_per_slot": stated.get("conv")}
    if "token" in stated:
        values |= {"kv_bytes_per_token": stated["token"], "draft_kv_bytes_per_token": stated.get("draft_token", 0)}
    return Scenario.model_validate(values | STARTS_WITH.get(report["id"], {}) | inputs)


def pin(report: Report, slots: int | None = None) -> dict[str, Any]:
    """The slots of the log, pinned for all ranks; none where the engine took them from the request count."""
    if slots is None and (report["id"] in ("F10", "F19") or "slots" not in report.get("log", {})):
        return {}
    number = report["log"]["slots"] if slots is None else slots
    return {"split": "pin", "max_mamba_cache_size": number * report["settings"]["attn_dp"]}


def as_counted(report: Report, **inputs: Any) -> Sizing:
    """The slots and the tokens that the log counts, with room for both."""
    return solve(scenario_of(report, max_total_tokens=report.get("log", {}).get("tokens"), **pin(report), **inputs))


def split_of(sizing: Sizing) -> Split:
    """The split that is set, where it starts."""
    assert isinstance(sizing.now, Split), sizing.now
    return sizing.now


def rest_printed(report: Report) -> float:
    """All pools that the log prints, and what draft states are charged beyond what is printed of them [GiB]."""
    log = report["log"]
    total = sum(sum(log.get(name, [])) for name in ("state_gib", "kv_gib", "draft_kv_gib"))
    if "drafts_gib" in log:
        total += (report["settings"]["asked"] + 1) * report["settings"]["D"] * report["bytes"]["slot"] / GIB
    return float(total)


def pool_that_binds(split: Split) -> str:
    """The first of the two pools among the limits, whatever else binds before."""
    return next(limit.name for limit in split.limits if limit.name in ("state pool", "KV pool"))


def check_s(report: Report, expected: int) -> None:
    """S follows from the strategy."""
    assert expected == as_counted(report).S


def check_slots(report: Report, expected: int) -> None:
    """K comes from the request count of one rank where the radix cache is off, whatever the ratio."""
    for ratio in (0.1, 0.9, 9):
        now = split_of(as_counted(report, mamba_full_memory_ratio=ratio))
        assert (now.slots, now.ratio) == (expected, None)


def check_clamp(report: Report, expected: int) -> None:
    """The clamp is slots // S."""
    assert split_of(as_counted(report)).clamp == expected


def check_admitted(report: Report, expected: int) -> None:
    """Running requests of one rank as the log ends up with."""
    assert split_of(as_counted(report)).admitted == expected


def check_admitted_by_all_ranks(report: Report, expected: int) -> None:
    """Running requests of all attention-DP ranks."""
    assert split_of(as_counted(report)).admitted * report["settings"]["attn_dp"] == expected


def check_kv_cap(report: Report, expected: int) -> None:
    """The KV cap at L from the tokens that are counted."""
    now = split_of(as_counted(report))
    assert now.kv_rows == report["log"]["tokens"]
    assert now.kv_cap == expected


def check_binding_pool(report: Report, expected: str) -> None:
    """Which pool is short first."""
    assert pool_that_binds(split_of(as_counted(report))) == {"state": "state pool", "kv": "KV pool"}[expected]


def check_binding_now(report: Report, expected: str) -> None:
    """What binds before either pool."""
    assert split_of(as_counted(report)).binding.name == expected


def check_at_other_l(report: Report, expected: dict[str, Any]) -> None:
    """The same pools at another L."""
    now = split_of(as_counted(report, L=expected["L"]))
    assert now.kv_cap == expected["kv_cap"]
    assert pool_that_binds(now) == {"state": "state pool", "kv": "KV pool"}[expected["binding_pool"]]


def check_clamp_if_s(report: Report, expected: dict[str, int]) -> None:
    """The clamp under flags that give another S; 0 is a server that does not start."""
    for S, clamp in expected.items():
        found = as_counted(report, **FLAGS_OF_S[int(S)])
        assert int(S) == found.S
        if clamp == 0:
            assert isinstance(found.now, Refusal)
            assert found.now.kind == "no_requests"
        else:
            assert split_of(found).clamp == clamp


def check_token_equiv(report: Report, expected: float) -> None:
    """State bytes over KV bytes of the target."""
    found = as_counted(report)
    assert token_equiv(found.slot_bytes, found.target_token_bytes) == pytest.approx(expected, rel=1e-3)


def check_token_equiv_with_draft(report: Report, expected: float) -> None:
    """State bytes over KV bytes of target and draft, to one decimal."""
    assert as_counted(report).token_equiv == pytest.approx(expected, abs=0.05)


def check_token_bytes(report: Report, expected: int) -> None:
    """What the engine divides by: target and draft."""
    assert as_counted(report).token_bytes == expected


def check_r_star(report: Report, expected: float) -> None:
    """The balance ratio as the specification writes it, from the best bytes."""
    assert as_counted(report).r_star_specification == pytest.approx(expected, rel=1e-3)


def check_r_star_without_d(report: Report, expected: float) -> None:
    """The same with D = 0."""
    found = as_counted(report)
    ratio = optimal_ratio(found.scenario.L, found.slot_bytes, found.target_token_bytes, found.S)
    assert ratio == pytest.approx(expected, rel=1e-3)


def check_at_r_star(report: Report, expected: dict[str, Any]) -> None:
    """K, clamp and KV cap at the balance ratio, within one; no request count, which could take the ratio's place."""
    rest = expected["rest_gib"]
    assert rest == pytest.approx(rest_printed(report), abs=0.0051)
    now = split_of(solve(scenario_of(report, split="balanced", rest_gib=rest, max_running_requests=None)))
    assert abs(now.slots - expected["slots"]) <= 1
    assert abs(now.clamp - expected["clamp"]) <= 1
    assert abs(now.kv_cap - expected["kv_cap"]) <= 1


def check_pin(report: Report, expected: dict[str, int]) -> None:
    """The fewest slots for so many requests, and the pin with one to spare, which runs exactly as many."""
    found = solve(scenario_of(report, max_running_requests=expected["requests"]))
    assert found.optimum is not None
    assert (found.optimum.slots_low, found.pin_flag) == (expected["seed"], expected["safe"])
    assert isinstance(found.pinned, Split)
    assert (found.pinned.slots, found.pinned.admitted) == (expected["safe"], expected["requests"])


def check_slots_needed(report: Report, expected: int) -> None:
    """The fewest slots for the requests that are asked for."""
    found = solve(scenario_of(report))
    assert found.optimum is not None
    assert (found.optimum.runs, found.optimum.slots_low) == (report["settings"]["asked"], expected)


def check_rows(report: Report, expected: list[dict[str, int]]) -> None:
    """Slots, S and requests asked for, to the clamp and what is admitted; D does not divide."""
    for row in expected:
        asked = {"max_running_requests": row["asked"], "D": row.get("D", 0)}
        found = solve(scenario_of(report, **asked, **pin(report, row["slots"])))
        now = split_of(found)
        assert (now.slots, found.S, now.clamp, now.admitted) == (row["slots"], row["S"], row["clamp"], row["effective"])


def check_slots_by_default_ratio(report: Report, expected: int) -> None:
    """K at r = 0.9, also where the engine goes on to refuse it."""
    scenario = scenario_of(report, rest_gib=report["rest_gib"])
    assert slots_set(rank_of(scenario), 0.9) == expected


def check_refused(report: Report, expected: str) -> None:
    """Refused in the engine's words, numbers included, and no ratio is offered."""
    found = solve(scenario_of(report, rest_gib=report["rest_gib"]))
    assert isinstance(found.now, Refusal)
    assert found.now.kind == "no_state_memory"
    assert found.now.engine_words
    assert expected.startswith(found.now.engine_words)
    assert isinstance(found.balanced, Refusal)
    assert (found.optimum, found.pin_flag) == (None, None)


def check_drafts_charged(report: Report, expected: dict[str, int]) -> None:
    """(requests + 1) x D whole states come out of rest; what is allocated is what the log prints."""
    found = as_counted(report)
    states = expected["requests"] * expected["drafts"]
    assert split_of(found).memory.draft_reserve == states * report["bytes"]["slot"]
    drafts = next(row for row in found.allocations if row.what == "draft states")
    assert drafts.charged == states * report["bytes"]["slot"]
    assert (drafts.allocated or 0) / GIB == pytest.approx(sum(report["log"]["drafts_gib"]), abs=2 * FIGURE)


def state_pool_gib(report: Report, slots: int) -> float:
    """What the slots of this pin and the padding slot allocate [GiB]."""
    found = solve(scenario_of(report, **pin(report, slots)))
    return next(row.allocated or 0 for row in found.allocations if row.what.startswith("state slots")) / GIB


def check_state_gib_of_pins(report: Report, expected: dict[str, list[float]]) -> None:
    """The state pool of each pin is as large as printed, the padding slot included."""
    for slots, figures in expected.items():
        assert state_pool_gib(report, int(slots)) == pytest.approx(sum(figures), abs=2 * FIGURE)


def check_slot_by_difference(report: Report, expected: int) -> None:
    """Between two pins each slot costs its bytes and no padding: 48 slots, four figures of two decimals."""
    found = (state_pool_gib(report, 64) - state_pool_gib(report, 16)) * GIB / 48
    assert found == pytest.approx(report["bytes"]["slot"], rel=1e-9)
    assert found == pytest.approx(expected, abs=4 * FIGURE * GIB / 48)


CHECKS: dict[str, Callable[[Report, Any], None]] = {
    "S": check_s,
    "admitted": check_admitted,
    "admitted_by_all_ranks": check_admitted_by_all_ranks,
    "at_other_L": check_at_other_l,
    "at_r_star": check_at_r_star,
    "binding_now": check_binding_now,
    "binding_pool": check_binding_pool,
    "clamp": check_clamp,
    "clamp_if_S": check_clamp_if_s,
    "drafts_charged": check_drafts_charged,
    "kv_cap": check_kv_cap,
    "pin": check_pin,
    "r_star": check_r_star,
    "r_star_without_D": check_r_star_without_d,
    "refused": check_refused,
    "rows": check_rows,
    "slot_by_difference": check_slot_by_difference,
    "slots": check_slots,
    "slots_by_default_ratio": check_slots_by_default_ratio,
    "slots_needed": check_slots_needed,
    "state_gib_of_pins": check_state_gib_of_pins,
    "token_bytes": check_token_bytes,
    "token_equiv": check_token_equiv,
    "token_equiv_with_draft": check_token_equiv_with_draft,
}


def parameters(holds: Callable[[Report], bool]) -> pytest.MarkDecorator:
    """One run of the test for each report for which `holds`, under the report's own id."""
    return pytest.mark.parametrize("report", [pytest.param(each, id=each["id"]) for each in REPORTS if holds(each)])


@parameters(lambda report: bool(report["expected"]))
def test_field_report(report: Report) -> None:
    """Everything that a report says came out, comes out."""
    for name, value in report["expected"].items():
        CHECKS[name](report, value)


def has_both_sizes(report: Report) -> bool:
    """Whether the sizes of both pools are printed."""
    return {"state_gib", "kv_gib"} <= set(report.get("log", {}))


@parameters(has_both_sizes)
def test_pools_as_large_as_printed(report: Report) -> None:
    """With the slots and tokens that are counted, each pool takes what the log prints, within its rounding."""
    found = {row.what: (row.allocated or 0) / GIB for row in as_counted(report).allocations}
    log = report["log"]
    for what, figures in (
        ("state slots and the padding slot", log["state_gib"]),
        ("KV pool and its padding page", log["kv_gib"]),
    ):
        assert found[what] == pytest.approx(sum(figures), abs=FIGURE * len(figures) + 1e-4)
    draft = sum(log.get("draft_kv_gib", []))
    assert found.get("draft KV pool and its padding page", 0) == pytest.approx(draft, abs=2 * FIGURE + 1e-4)


@parameters(has_both_sizes)
def test_tokens_from_the_sizes(report: Report) -> None:
    """With the printed sizes as `rest`, the solve gives the tokens that are counted, within the rounding."""
    found = solve(scenario_of(report, rest_gib=rest_printed(report), **pin(report)))
    log = report["log"]
    figures = sum(len(log.get(name, [])) for name in ("state_gib", "kv_gib", "draft_kv_gib"))
    # The padding page, one token here, is in the printed size and is not charged.
    rounding = math.ceil(figures * FIGURE * GIB / found.token_bytes) + 1
    assert abs(split_of(found).kv_rows - log["tokens"]) <= rounding


def test_every_report_is_compared_or_listed() -> None:
    """Each report has something compared, or stands in the table with a reason; the table names reports only."""
    ids = [report["id"] for report in REPORTS]
    assert len(ids) == len(set(ids)) == 25
    assert [report["id"] for report in REPORTS if not report["expected"] and report["id"] not in NOT_COMPARED] == []
    assert set(NOT_COMPARED) <= set(ids)
    assert all(reason for reasons in NOT_COMPARED.values() for reason in reasons)
    assert [report["id"] for report in REPORTS if not report["expected"]] == ["F39"]


def test_every_check_is_used() -> None:
    """No check stands there without a report, and every report says where it is from."""
    assert {name for report in REPORTS for name in report["expected"]} == set(CHECKS)
    assert all(report["source"] for report in REPORTS)
