"""Verdict, advice and flags: sentences are what a user reads first, so they are compared whole."""

import pytest

from sizing import Scenario, Split, solve
from sizing.answers.recommended import recommended
from sizing.basics.units import count
from sizing.explain.launch_flags import environment, flags, launch_flags
from sizing.explain.verdict import advice, verdict

VERDICTS = [
    (
        {},
        "51 requests run at L = 9,216: the state pool binds. 257 slots, 5 per request: 51 fit. The KV pool holds 126. "
        "--mamba-full-memory-ratio 2.2045: 51 → 74 run. 8.98 GiB of KV lie idle: the state pool is short.",
    ),
    (
        {"L": 200_000},
        "5 requests run at L = 200,000: the KV pool binds. 1,167,552 tokens, 200,000 per request: 5 fit. The state "
        "pool admits 51. --max-mamba-cache-size 51: 5 → 10 run. 12.14 GiB of state lie idle: the KV pool is short.",
    ),
    (
        {"split": "balanced"},
        "74 requests run at L = 9,216: the state pool binds. 374 slots, 5 per request: 74 fit. The KV pool holds 75. "
        "--mamba-full-memory-ratio 2.2045, as set: 74 run. Nothing to change: no split and no request count runs more.",
    ),
    (
        {"max_running_requests": 20},
        "20 requests run at L = 9,216, the limit you set. The state pool admits 51. The KV pool holds 126. "
        "--max-running-requests 74 --mamba-full-memory-ratio 2.2: 20 → 74 run. --max-running-requests (20) binds.",
    ),
    (
        {"D": 4, "rest_gib": 60, "L": 2048},
        "48 requests run at L = 2,048: --max-running-requests (48) binds. --max-running-requests is not set: "
        "speculation takes 48. The state pool admits 59. The KV pool holds 1,291. --max-running-requests 120 "
        "--mamba-full-memory-ratio 18.4: 48 → 120 run. --max-running-requests (48) binds.",
    ),
]


@pytest.mark.parametrize(("values", "sentences"), VERDICTS, ids=str)
def test_verdict_says_what_runs_and_what_binds(values: dict[str, object], sentences: str) -> None:
    """The first line and its reasons, whole."""
    assert verdict(solve(Scenario.model_validate(values))).text == sentences


@pytest.mark.parametrize(
    ("values", "topics"),
    [
        ({}, ["Free lever first: --mem-fraction-static", "Accuracy gate"]),
        ({"kv_cache_dtype": "bfloat16"}, ["Free lever first: --mem-fraction-static"]),
        (
            {"split": "balanced"},
            ["Free lever first: --mem-fraction-static", "If L is uncertain, bias r up", "Accuracy gate"],
        ),
        ({"L": 200_000, "mamba_full_memory_ratio": 0.1}, ["Fragile ratio", "Accuracy gate"]),
        (
            {"L": 300, "dcp_size": 8, "mamba_full_memory_ratio": 500},
            ["Free lever first: --mem-fraction-static", "DCP: pin the slots", "Short requests occupy whole pages"],
        ),
        ({"D": 4, "split": "pin", "max_mamba_cache_size": 300}, ["Draft KV is not counted"]),
        ({"rest_gib": 28.529, "pp_size": 2}, ["Pipeline stages"]),
        ({"L": 300_000}, ["L is above --context-length", "Accuracy gate"]),
        ({"max_total_tokens": 100_000}, ["KV pool below --context-length"]),
    ],
    ids=str,
)
def test_advice_applies_now_and_is_silent_otherwise(values: dict[str, object], topics: list[str]) -> None:
    """Each topic comes where its reason holds, in order; the worked example has only the two that hold for it."""
    found = [item.topic for item in advice(solve(Scenario.model_validate(values)))]
    assert [topic for topic in found if topic in topics] == topics
    if values in ({}, {"kv_cache_dtype": "bfloat16"}, {"split": "balanced"}):
        assert found == topics


def test_raising_the_request_count_is_advised_only_where_it_runs_more() -> None:
    """Under plain speculation the unused reserve is KV's; giving it back can cost requests."""
    harmful = Scenario(L=32_768, D=4, mamba_ssm_dtype="bfloat16")
    raised = solve(harmful.model_copy(update={"max_running_requests": 54})).now
    now, change = solve(harmful).now, recommended(solve(harmful))
    assert isinstance(raised, Split)
    assert isinstance(now, Split)
    assert change is not None
    assert raised.runs < now.runs
    assert "--max-running-requests" not in change.flag

    useful = Scenario(L=2048, D=4, rest_gib=60)
    sizing, change = solve(useful), recommended(solve(useful))
    assert change is not None
    assert change.flags[0].startswith("--max-running-requests")
    assert isinstance(sizing.now, Split)
    (said,) = [item.text for item in advice(sizing) if item.topic == "Speculation"]
    assert said == (
        "With speculation the pools do not divide exactly as r says: draft memory is reserved for "
        f"{count(sizing.now.clamp)} requests, 48 are used, KV gets the rest."
    )
    solved = solve(change.scenario).now
    assert isinstance(solved, Split)
    assert change.after == (solved.runs, solved.runs)


@pytest.mark.parametrize(
    ("values", "take"),
    [({}, "ratio"), ({"dcp_size": 8}, "pin"), ({"L": 200_000}, "pin"), ({"disable_radix_cache": True, "D": 2}, "pin")],
    ids=str,
)
def test_the_flag_to_take_follows_the_rule_for_pinning(values: dict[str, object], take: str) -> None:
    """A pin under DCP, below a fragile ratio and where the ratio is ignored; else the ratio."""
    found = flags(solve(Scenario.model_validate(values)))
    assert found is not None
    assert found.take == take


def test_launch_flags_are_one_command_over_whole_lines() -> None:
    """A flag and its value stay on one line, the split to take is among them, the variable is apart."""
    scenario = Scenario(D=4, dcp_size=8, skip_decode_lock=True, max_running_requests=64)
    sizing = solve(scenario)
    found = recommended(sizing)
    assert found is not None
    lines = launch_flags(sizing, found).split(" \\\n  ")
    assert all(line.startswith("--") for line in lines)
    assert " ".join(lines).startswith("--max-mamba-cache-size")
    assert environment(scenario) == "export SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1"
    assert environment(Scenario()) is None
