"""A hand on a figure: every number that the browser is given to look up is the one that `solve` gives there."""

import os
import re
from typing import Any

import pytest

from sizing import RefusedError, Scenario, Split, solve
from sizing.answers.band import band_of
from sizing.answers.sweep import RATIO, Axis, axis_of
from sizing.explain.verdict import verdict
from sizing.figures import hand_over_context, hand_over_ratio, ratios_drawn, sweep_figure, sweep_hand
from sizing.scenario.inputs import changed

# Ten deployments: each way to split, each limit that can bind, refusals, ranks, roles and releases.
DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "worked example": {},
    "speculation": {"D": 4, "L": 16_384},
    "balanced under DCP": {"split": "balanced", "dcp_size": 8, "mamba_radix_cache_strategy": "extra_buffer_lazy"},
    "pinned": {"split": "pin", "max_mamba_cache_size": 371, "L": 65_536},
    "attention DP": {"attn_dp_size": 4, "max_running_requests": 96, "rest_gib": 28.529},
    "few requests": {"rest_gib": 2.5, "L": 131_072},
    "refused": {"rest_gib": 0.3},
    "GQA": {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp_size": 4, "rest_gib": 50, "D": 4},
    "capped tokens": {
        "max_total_tokens": 40_000,
        "release": "0.5.9",
        "model": "Qwen/Qwen3-Next-80B-A3B-Instruct",
        "tp_size": 4,
        "rest_gib": 20,
    },
    "estimated": {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp_size": 4, "gpu": "NVIDIA H100 80 GB"},
    "estimated under DP": {"gpu": "NVIDIA B300 SXM6 288 GB", "attn_dp_size": 2, "L": 300_000},
    "windowed": {"model": "thinkingmachines/Inkling", "tp_size": 8, "rest_gib": 60},
    "exact L": {"L": 10_001, "mamba_full_memory_ratio": 1.2345, "split": "ratio"},
}
EVERY = (
    7  # stops of a figure that are solved again in the suite; with the variable SIZING_ALL_STOPS set all of them are
)


def shown(hand: dict[str, Any], at: int) -> dict[str, str]:
    """What the browser writes at a stop, as its own few lines do: numbers into words."""
    values = {name: column[at] if isinstance(column, list) else column for name, column in hand["columns"].items()}
    form = hand["forms"][hand["form"][at] if isinstance(hand["form"], list) else hand["form"]]
    words = {"at": hand["words"][at], "L": hand["L"]} | {name: f"{value:,}" for name, value in values.items()}
    return {name: text.format(**words) for name, text in form.items()}


def expected(scenario: Scenario) -> dict[str, str]:
    """The same from a solve of its own."""
    sizing = solve(scenario)
    now, headline = sizing.now, verdict(sizing).headline
    if band := band_of(sizing):
        low, high = (f"{runs:,}" for runs in band.runs)
        both = f"<b>{low if low == high else f'{low} to {high}'} run</b>"
        split = band.low
        limits = f"\nmamba clamp {split.clamp:,}, KV cap {split.kv_cap:,}" if isinstance(split, Split) else ""
        return {"headline": headline, "numbers": both + limits}
    if not isinstance(now, Split):
        return {"headline": headline, "numbers": "refused"}
    binds = re.split(": |, (?=the limit you set)", headline)[-1].rstrip(".") if now.runs else "not one fits"
    cap = next(limit.requests for limit in now.limits if limit.name == "KV pool")
    rest = f"<b>{now.runs:,} run</b>, {binds}\nmamba clamp {now.clamp:,}, KV cap {cap:,}"
    return {"headline": headline, "numbers": rest}


@pytest.mark.parametrize("values", DEPLOYMENTS.values(), ids=DEPLOYMENTS)
@pytest.mark.parametrize("moved", ["L", RATIO])
def test_every_stop_says_what_solve_says(values: dict[str, Any], moved: str) -> None:
    """Headline, what runs, both limits and what binds, over all of L and all of r."""
    scenario = Scenario.model_validate(values)
    sizing = solve(scenario)
    hand = hand_over_context(sizing) if moved == "L" else hand_over_ratio(sizing, ratios_drawn(sizing).tolist())
    assert hand is not None
    (axis,) = hand["axes"]
    assert len(axis["at"]) > 100
    assert axis["own"] is None or axis["own"] in axis["at"]
    step = 1 if "SIZING_ALL_STOPS" in os.environ else EVERY
    for at in range(0, len(axis["at"]), step):
        there = changed(scenario, **{moved: axis["at"][at]}, **({"split": "ratio"} if moved == RATIO else {}))
        assert isinstance(there, Scenario)
        says, wanted = shown(hand, at), expected(there)
        assert says["headline"] == wanted["headline"]
        name, _, numbers = says["label"].partition("\n")
        assert name == f"{'L' if moved == 'L' else 'r'} = {hand['words'][at]}"
        assert numbers == wanted["numbers"]


def test_there_is_no_hand_on_a_ratio_that_is_ignored() -> None:
    """With the radix cache off and a request count set, no ratio does anything."""
    assert hand_over_ratio(solve(Scenario(disable_radix_cache=True, max_running_requests=40)), [0.9, 1.0]) is None


@pytest.mark.parametrize("names", [("L", RATIO), ("rest_gib", "D"), ("dcp_size", "kv_cache_dtype")], ids=str)
def test_both_inputs_of_a_sweep_are_under_the_hand(names: tuple[Any, Any]) -> None:
    """Every cell is a stop: as many words as cells, and the own cell is among them."""
    sizing = solve(Scenario())
    x, y = (axis_of(sizing.scenario, name, 9) for name in names)
    hand, cells = sweep_hand(sizing, x, y), sweep_figure(sizing, x, y)["data"][0]["z"]
    assert [len(hand["up"]), len(hand["words"])] == [len(cells), len(cells[0])]
    for axis, swept in zip(hand["axes"], (x, y), strict=True):
        assert axis["own"] in axis["at"]
        assert Axis(name=axis["input"], values=axis["at"]) == swept


def test_problem_flags_that_are_refused_have_no_hand() -> None:
    """A scenario whose flags are refused is not drawn at all."""
    with pytest.raises(RefusedError):
        solve(Scenario(mamba_radix_cache_strategy="no_buffer", D=4))
