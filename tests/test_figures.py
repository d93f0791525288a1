"""Figures show the curves' own values, are strict JSON, and hold at every edge."""

import json
from typing import Any

import numpy as np
import pytest

from sizing import Scenario, Split, solve
from sizing.answers.curves import context_grid, over_context, over_ratio
from sizing.basics.units import GIB
from sizing.figures import DARK, LIGHT, crossing_figure, memory_figure, painted, ratio_figure
from sizing.figures.theme import HALF_COLUMN, Figure
from sizing.models.gpus import GPUS
from sizing.scenario.from_model import names

EDGES: list[dict[str, Any]] = [
    {},
    {"rest_gib": 100, "max_total_tokens": 100},
    {"rest_gib": 0.2},
    {"rest_gib": -5},
    {"L": 1},
    {"L": 2**24},
    {"mamba_full_memory_ratio": 0.001},
    {"D": 16, "max_running_requests": 1, "L": 256},
    {"disable_radix_cache": True, "max_running_requests": 40},
    {"split": "pin", "max_mamba_cache_size": 10_000_000},
    {"rest_gib": 28.529, "model": "", "tp_size": 64, "dcp_size": 64, "L": 300},
]


def trace(figure: Figure, name: str) -> Figure:
    """One trace by its name."""
    (found,) = [item for item in figure["data"] if item.get("name") == name]
    return dict(found)


@pytest.mark.parametrize("values", EDGES, ids=str)
def test_every_figure_is_strict_json_in_both_palettes(values: dict[str, object]) -> None:
    """No scenario stops a figure, no value is NaN, no colour name is left unpainted."""
    sizing = solve(Scenario.model_validate(values))
    for build in (crossing_figure, ratio_figure, memory_figure):
        for palette in (LIGHT, DARK):
            text = json.dumps(painted(build(sizing), palette), allow_nan=False)
            assert '"@' not in text
            assert sizing.scenario.title in text


def test_crossing_figure_draws_the_curve() -> None:
    """Clamp, cap and envelope are the values of the curve; the diamond stands where they meet."""
    sizing = solve(Scenario())
    assert isinstance(sizing.now, Split)
    curve, figure = over_context(sizing.now, context_grid(sizing.now)), crossing_figure(sizing)
    assert trace(figure, "KV cap")["x"] == curve.L.tolist()
    assert trace(figure, "KV cap")["y"] == curve.kv_cap.tolist()
    assert set(trace(figure, "mamba clamp")["y"]) == {51}
    drawn = trace(figure, "runs, state pool binds")["y"] + trace(figure, "runs, KV pool binds")["y"]
    assert drawn == curve.runs.tolist()
    assert trace(figure, "marks")["x"] == [22_893]
    assert trace(figure, "hover")["customdata"][0] == [int(curve.kv_cap[0]), 51, "state pool"]
    said = [words["text"] for words in figure["layout"]["annotations"]]
    assert said.count("recommended: KV cap") == 1


def test_ratio_figure_marks_what_runs() -> None:
    """The marks stand at r* and at the ratio that is set, at the height of what runs there."""
    figure = ratio_figure(solve(Scenario()))
    marks = trace(figure, "marks")
    assert marks["x"] == [2.2045, 0.9]
    assert marks["y"] == over_ratio(Scenario(), np.array([2.2045, 0.9])).runs.tolist() == [74, 51]


def test_memory_figure_shows_the_pieces_of_both_splits() -> None:
    """Each bar's pieces are the split's own bytes in GiB."""
    sizing = solve(Scenario())
    assert isinstance(sizing.now, Split)
    assert isinstance(sizing.balanced, Split)
    figure = memory_figure(sizing)
    for name, field in (("state in use", "state_used"), ("KV in use", "kv_used"), ("KV idle", "kv_idle")):
        expected = [getattr(split.memory, field) / GIB for split in (sizing.now, sizing.balanced)]
        assert trace(figure, name)["x"] == expected


@pytest.mark.parametrize("gpu", [gpu.name for gpu in GPUS])
def test_what_a_figure_is_of_stays_within_it(gpu: str) -> None:
    """An estimate tells the most of what it is of: no line is longer than half the main column holds."""
    model = next(name for name in names() if name.endswith("Qwen3.5-397B-A17B"))
    sizing = solve(Scenario(model=model, gpu=gpu, tp_size=8))
    for build in (ratio_figure, memory_figure):
        lines = build(sizing)["layout"]["title"]["subtitle"]["text"].split("<br>")
        assert max(map(len, lines)) <= HALF_COLUMN, lines
