"""Where a GPU's memory goes: pieces add up to the driver's total, estimated and measured, and the lever is real."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing import RefusedError, Scenario, Split, read_scenario, solve
from sizing.answers import gpu_memory as parts
from sizing.answers.fleet import AS_SET, carriers
from sizing.answers.gpu_memory import free_lever, gpu_memory
from sizing.bootlog.diagnosis import diagnose, likely_model, models_that_fit
from sizing.bootlog.gpu_memory import beside, boot_memory_words
from sizing.bootlog.log import read_text
from sizing.figures import memory_figure
from sizing.figures.gpu_memory import LINES, LOOKS
from sizing.scenario.inputs import changed
from sizing.scenario.rest import rest_of
from tests.test_properties import examples

LOGS = sorted((Path(__file__).parent / "golden" / "boot_logs").glob("*.log"))
QWEN: dict[str, Any] = {
    "model": "Qwen/Qwen3.5-397B-A17B", "gpu": "H200", "checkpoint": "fp8", "D": 4, "L": 32_768,
    "kv_cache_dtype": "bfloat16",
}  # fmt: skip

deployments = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["Qwen/Qwen3.5-9B", "Qwen/Qwen3-Next-80B-A3B-Instruct", "moonshotai/Kimi-K3"]),
        "gpu": st.sampled_from(["H100 80", "H200", "B300", "MI300X", "RTX 4090"]),
        "tp_size": st.sampled_from([1, 2, 4, 8]),
        "kv_cache_dtype": st.just("bfloat16"),
    },
    optional={
        "mem_fraction_static": st.sampled_from([0.5, 0.7, 0.9, 0.98]),
        "D": st.sampled_from([0, 3]),
        "release": st.sampled_from(["0.5.13", "0.5.18", "0.5.22"]),
        "language_only": st.booleans(),
    },
)


@examples(120)
@given(deployments)
def test_the_pieces_add_up_to_the_gpu(values: dict[str, Any]) -> None:
    """To the driver's total where weights fit, to what is asked for beyond it where they do not; none is negative."""
    scenario = read_scenario(values)
    if not isinstance(scenario, Scenario) or scenario.rest_source != "estimated":
        return
    try:
        sizing = solve(scenario)
    except RefusedError:
        return
    found = gpu_memory(sizing, sizing.now if isinstance(sizing.now, Split) else None)
    estimate = rest_of(scenario).estimate
    assert found is not None
    assert estimate is not None
    assert min(gib for _, gib in found.pieces) > 0
    whole = sum(gib for _, gib in found.pieces)
    if estimate.fits:
        assert whole == pytest.approx(found.total_gib, abs=0.002)  # rest is rounded to the thousandth
        assert sum(gib for _, gib in found.pooled.pieces) == pytest.approx(whole)
    else:
        assert whole <= found.total_gib + estimate.missing_gib + 0.002
    lever = free_lever(sizing)
    if lever is not None:
        raised = changed(scenario, mem_fraction_static=lever.fraction)
        assert isinstance(raised, Scenario)
        after = {way.name: way.runs for way in carriers(solve(raised))}
        assert after.get(AS_SET, 0) == lever.runs
        assert raised.rest_gib - scenario.rest_gib <= lever.free_gib + 0.002
        assert lever.more >= 0


def test_nothing_is_free_beside_the_engine_s_own_rule() -> None:
    """An automatic fraction keeps what it keeps for something, unless the floor of 10 GiB is above it."""
    assert free_lever(solve(Scenario.model_validate(QWEN))) is None
    lowered = solve(Scenario.model_validate({**QWEN, "mem_fraction_static": 0.75}))
    lever = free_lever(lowered)
    assert lever is not None
    assert lever.more >= 0
    assert lever.best_more > 0


def test_every_piece_is_drawn_and_said() -> None:
    """Each has a look, and stands in one line of the words below a bar."""
    names = {*parts.ORDER, parts.STATE_POOL, parts.KV_POOL}
    assert set(LOOKS) == names
    said = [name for line in LINES for name in line]
    assert sorted(said) == sorted(names)


def test_the_figure_shows_the_estimate_of_the_whole_gpu() -> None:
    """With a GPU the third figure goes down from the driver's total; without one it shows rest alone."""
    figure = memory_figure(solve(Scenario.model_validate(QWEN)))
    drawn = {trace["name"]: trace["x"][0] for trace in figure["data"]}
    assert {parts.WEIGHTS, parts.GRAPHS, parts.KV, parts.STATE, parts.DRAFT_KV} <= set(drawn)
    assert sum(drawn.values()) == pytest.approx(143_771 / 1024, rel=0.01)
    assert "estimated" in figure["layout"]["title"]["subtitle"]["text"]
    assert parts.WEIGHTS not in {trace["name"] for trace in memory_figure(solve(Scenario()))["data"]}


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_log_s_pieces_add_up(path: Path) -> None:
    """What was free before weights, and with a GPU its whole; the words name the lever or say what is not known."""
    boot = read_text(path.read_text(encoding="utf-8")).last
    assert boot is not None
    found = diagnose(boot, model=likely_model(boot.facts, models_that_fit(boot.facts)))
    seen = beside(boot.facts, found.scenario)
    assert seen is not None
    assert found.sizing is not None
    assert sum(gib for _, gib in seen.measured.pieces) == pytest.approx(seen.measured.total_gib, abs=0.02)
    assert boot_memory_words(seen, boot.facts, found.sizing)
    if seen.estimated is not None:
        assert sum(gib for _, gib in seen.estimated.pieces) <= seen.estimated.total_gib + 0.01
        title = found.sizing.scenario.title  # taken for its shapes: the log names none
        assert f"weights are not those of {title}" in boot_memory_words(seen, boot.facts, found.sizing)
