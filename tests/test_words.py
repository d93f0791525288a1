"""Verdict, advice and flags: sentences are what a user reads first, so they are compared whole."""

import pytest

from sizing import Scenario, Split, solve
from sizing.explain.launch_flags import environment, flags, launch_flags
from sizing.explain.verdict import advice, verdict

VERDICTS = [
    (
        {},
        "51 requests run at L = 9,216: the state pool binds. 257 slots // 5 slots per request = 51. The KV pool would "
        "hold 126. The balanced split r = 2.2045 runs 74: 23 more (+45%).",
    ),
    (
        {"L": 200_000},
        "5 requests run at L = 200,000: the KV pool binds. 1,167,552 tokens // L 200,000 = 5. The state pool would "
        "admit 51. --max-mamba-cache-size 51 runs 10: 5 more (+100%).",
    ),
    (
        {"split": "balanced"},
        "74 requests run at L = 9,216: the state pool binds. 374 slots // 5 slots per request = 74. The KV pool would "
        "hold 75. This is the balanced split.",
    ),
    (
        {"max_running_requests": 20},
        "20 requests run at L = 9,216: --max-running-requests binds. As asked: 20. The state pool would admit 51, the "
        "KV pool hold 126. --max-running-requests 51 runs 51. The balanced split r = 2.2045 runs 20: no gain.",
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
        ({"L": 300_000}, ["L is above --context-length"]),
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
    (said,) = [item.text for item in advice(solve(harmful)) if item.topic == "Speculation: the split is not r"]
    assert said.endswith("Raising --max-running-requests alone runs no more here.")
    raised = solve(harmful.model_copy(update={"max_running_requests": 54})).now
    now = solve(harmful).now
    assert isinstance(raised, Split)
    assert isinstance(now, Split)
    assert raised.runs < now.runs

    useful = Scenario(L=2048, D=4, rest_gib=60)
    (said,) = [item.text for item in advice(solve(useful)) if item.topic == "Speculation: the split is not r"]
    more, flag = solve(useful).raised, solve(useful).raised_flag
    assert more is not None
    assert said.endswith(f"Raise --max-running-requests to {flag}: {more.runs} run.")
    solved = solve(useful.model_copy(update={"max_running_requests": flag})).now
    assert isinstance(solved, Split)
    assert solved.runs == more.runs


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
    found = flags(sizing)
    assert found is not None
    assert found.pin is not None
    lines = launch_flags(sizing, found).split(" \\\n  ")
    assert all(line.startswith("--") for line in lines)
    assert " ".join(lines).startswith(found.pin)
    assert environment(scenario) == "export SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1"
    assert environment(Scenario()) is None
