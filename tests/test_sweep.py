"""Grids: random cells are the single solve, the ridge is r*, and axes that contradict each other are refused."""

import json
import time
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing import RefusedError, Scenario, Split, solve
from sizing.answers.sweep import PIN, RATIO, Axis, SweepInput, axis_of, sweep
from sizing.figures import DARK, LIGHT, painted
from sizing.figures.sweep import sweep_figure
from sizing.scenario.inputs import changed
from tests.test_properties import examples, scenarios

NAMES: tuple[SweepInput, ...] = get_args(SweepInput)
PAIRS = [pair for pair in combinations(NAMES, 2) if set(pair) != {RATIO, PIN}]


def alone(scenario: Scenario, values: dict[str, Any]) -> tuple[int, bool]:
    """What runs and whether it is refused, solved as one scenario."""
    by = {"split": "ratio"} if RATIO in values else {"split": "pin"} if PIN in values else {}
    one = changed(scenario, **({"rest_gib": scenario.rest_gib, "rest_source": "typed in"} | by | values))
    if not isinstance(one, Scenario):
        return 0, True
    try:
        now = solve(one).now
    except RefusedError:
        return 0, True
    return (now.runs, False) if isinstance(now, Split) else (0, True)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "L": st.integers(1, 2**20),
    RATIO: st.floats(1e-4, 1e4),
    "rest_gib": st.floats(-0.1, 4),  # times what it is
    PIN: st.integers(1, 100_000),
    "D": st.integers(0, 16),
    "dcp_size": st.sampled_from([1, 2, 3, 8]),
    "max_running_requests": st.integers(1, 5000),
    "page_size": st.sampled_from([1, 16, 48, 64, 256]),
    "attn_dp_size": st.sampled_from([1, 2, 3, 4]),
    "mamba_ssm_dtype": st.sampled_from(["float32", "bfloat16", "float16"]),
    "kv_cache_dtype": st.sampled_from(["bfloat16", "fp8_e4m3"]),
}


@given(scenarios(), st.sampled_from(PAIRS), st.booleans(), st.data())
@examples(250)
def test_every_cell_is_the_single_solve(
    scenario: Scenario, names: tuple[SweepInput, SweepInput], balanced: bool, data: st.DataObject
) -> None:
    """The same integer, and refused where the solve, the flags or the inputs are refused."""
    if balanced:
        scenario = scenario.model_copy(update={"split": "balanced"})
    x, y = (Axis(name=name, values=tuple(data.draw(st.lists(VALUES[name], min_size=1, max_size=3)))) for name in names)
    found = sweep(scenario, x, y)
    assert found.runs.shape == found.refused.shape == (len(y.values), len(x.values))
    for row, down in enumerate(y.values):
        for column, across in enumerate(x.values):
            cell = int(found.runs[row, column]), bool(found.refused[row, column])
            assert cell == alone(scenario, {x.name: across, y.name: down})


def _drawn(scenario: Scenario, name: SweepInput, data: st.DataObject) -> Axis:
    values = data.draw(st.lists(VALUES[name], min_size=1, max_size=3))
    return Axis(name=name, values=tuple(value * scenario.rest_gib if name == "rest_gib" else value for value in values))


@pytest.mark.parametrize("names", PAIRS, ids="-".join)
def test_usual_axes_hold_what_is_set_and_solve(names: tuple[SweepInput, SweepInput]) -> None:
    """The worked example over every pair of inputs: the cell of what is set is its own solve."""
    scenario = Scenario(max_mamba_cache_size=300, max_running_requests=60)
    x, y = (axis_of(scenario, name, points=5) for name in names)
    found = sweep(scenario, x, y)
    own: dict[str, Any] = {axis.name: getattr(scenario, axis.name) for axis in (x, y)}
    column, row = x.values.index(own[x.name]), y.values.index(own[y.name])
    assert (int(found.runs[row, column]), bool(found.refused[row, column])) == alone(scenario, own)


def test_the_ridge_is_r_star_at_every_value() -> None:
    """Over L, D and rest, whichever axis is the ratio; none where the engine ignores the ratio."""
    ratio = Axis(name=RATIO, values=(1.0, 2.0))
    for name, values in (("L", (1000, 9216)), ("D", (0, 4)), ("rest_gib", (10.0, 20.0)), ("dcp_size", (1, 8))):
        other = Axis.model_validate({"name": name, "values": values})
        expected = tuple(solve(Scenario.model_validate({name: value})).r_star for value in values)
        for found in (sweep(Scenario(), other, ratio), sweep(Scenario(), ratio, other)):
            assert found.ridge == pytest.approx(expected)
    ignored = Scenario(disable_radix_cache=True, max_running_requests=10)
    assert sweep(ignored, Axis(name="L", values=(1, 2)), ratio).ridge is None
    assert sweep(Scenario(), Axis(name="L", values=(1,)), Axis(name="D", values=(1,))).ridge is None


def test_axes_that_contradict_each_other_are_refused() -> None:
    """The same input twice, or the ratio with the pin that overrides it."""
    L, ratio, pin = (axis_of(Scenario(), name, points=3) for name in ("L", RATIO, PIN))
    for x, y in ((L, L), (ratio, pin), (pin, ratio)):
        with pytest.raises(ValueError, match=r"choose two inputs|sweep one"):
            sweep(Scenario(), x, y)


def test_forty_thousand_cells_take_less_than_a_fifth_of_a_second() -> None:
    """200 x 200 of L and r, the best of three: what a slider can redraw."""
    x, y = (axis_of(Scenario(), name, points=200) for name in ("L", RATIO))

    def seconds() -> float:
        start = time.perf_counter()
        sweep(Scenario(), x, y)
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 0.2


FIGURES: list[tuple[dict[str, Any], tuple[SweepInput, SweepInput]]] = [
    ({}, ("L", RATIO)),
    ({"split": "balanced"}, ("L", RATIO)),
    ({}, (RATIO, "D")),
    ({"split": "pin", "max_mamba_cache_size": 300}, ("L", PIN)),
    ({}, ("mamba_ssm_dtype", "kv_cache_dtype")),
    ({}, ("kv_cache_dtype", "L")),
    ({"model": "", "rest_gib": 28.529, "tp_size": 32, "attn_dp_size": 2}, ("attn_dp_size", "dcp_size")),
    ({"rest_gib": 0.2}, ("L", RATIO)),
    ({"rest_gib": -5}, ("rest_gib", "page_size")),
    ({"disable_radix_cache": True, "max_running_requests": 40}, ("L", RATIO)),
    ({"L": 2**24}, ("L", RATIO)),
    ({"L": 1, "mamba_full_memory_ratio": 1e9}, ("L", RATIO)),
]


@pytest.mark.parametrize(("values", "names"), FIGURES, ids=str)
def test_every_sweep_figure_is_strict_json_in_both_palettes(
    values: dict[str, Any], names: tuple[SweepInput, SweepInput]
) -> None:
    """Integers or gaps in the cells, nothing unpainted, and the deployment is named on the figure."""
    scenario = Scenario(**values)
    figure = sweep_figure(solve(scenario), *(axis_of(scenario, name, points=9) for name in names))
    for palette in (LIGHT, DARK):
        text = json.dumps(painted(figure, palette), allow_nan=False)
        assert '"@' not in text
        assert scenario.title in text
    cells = {type(cell) for line in figure["data"][0]["z"] for cell in line}
    assert cells <= {int, type(None)}


def test_sweep_figure_draws_the_grid_the_ridge_and_the_own_point() -> None:
    """The cells are those of the sweep; the ridge is r* and the mark what is set, with what runs there."""
    sizing = solve(Scenario())
    x, y = axis_of(Scenario(), "L", points=40), axis_of(Scenario(), RATIO, points=40)
    found, figure = sweep(Scenario(), x, y), sweep_figure(sizing, x, y)
    traces = {trace["name"]: trace for trace in figure["data"]}
    assert [[cell or 0 for cell in line] for line in traces["runs"]["z"]] == found.runs.tolist()
    assert traces["r*"]["x"] == list(x.values)
    drawn = [(ratio, exact) for ratio, exact in zip(traces["r*"]["y"], found.ridge or (), strict=True) if ratio]
    assert drawn
    assert all(ratio == pytest.approx(exact, rel=1e-4) for ratio, exact in drawn)
    dot = next(note for note in figure["layout"]["annotations"] if note["text"] == "●")
    assert (10 ** dot["x"], 10 ** dot["y"]) == (pytest.approx(9216), pytest.approx(0.9))
    words = [label["text"] for label in figure["layout"]["annotations"]]
    assert words == ["●", "now, L 9,216, r 0.9: <b>51 run</b>", "r*, the balance ratio"]


SHORT: list[tuple[SweepInput, tuple[Any, ...], SweepInput, tuple[Any, ...]]] = [
    ("mamba_ssm_dtype", ("float32", "bfloat16"), "kv_cache_dtype", ("bfloat16", "fp8_e4m3")),
    ("L", (4096, 9216, 65_536, 262_144), RATIO, (0.5, 0.9, 2.2045)),
    ("D", (0, 4), "rest_gib", (0.2, 28.529)),
]


@pytest.mark.parametrize(("across", "columns", "up", "rows"), SHORT, ids=str)
def test_few_cells_hold_their_numbers_and_the_words_stand_above(
    across: SweepInput, columns: tuple[Any, ...], up: SweepInput, rows: tuple[Any, ...]
) -> None:
    """On short axes no label covers a cell: the own one is framed, and what it is stands above all of them."""
    x, y = Axis(name=across, values=columns), Axis(name=up, values=rows)
    figure = sweep_figure(solve(Scenario()), x, y)
    (cells,) = figure["data"]
    assert cells["texttemplate"]
    own = [axis.values.index(getattr(Scenario(), axis.name)) for axis in (x, y)]
    for frame in figure["layout"]["shapes"]:
        assert [frame["x0"] + 0.5, frame["y0"] + 0.5, frame["x1"] - 0.5, frame["y1"] - 0.5] == own * 2
    (label,) = figure["layout"]["annotations"]
    assert (label["yref"], label["y"], label["yanchor"]) == ("paper", 1, "bottom")
    assert label["text"].endswith("<b>51 run</b>")
    for name, axis in (("xaxis", x), ("yaxis", y)):
        assert figure["layout"][name]["range"] == [-0.5, len(axis.values) - 0.5]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_the_colour_scale_survives_greyscale(palette: dict[str, str]) -> None:
    """From few to many its lightness goes one way and far."""
    figure = painted(sweep_figure(solve(Scenario()), *(axis_of(Scenario(), name, 5) for name in ("L", RATIO))), palette)
    grey = [_lightness(colour) for _, colour in figure["data"][0]["colorscale"]]
    assert grey in (sorted(grey), sorted(grey, reverse=True))
    assert abs(grey[-1] - grey[0]) > 0.5
    assert np.all(np.diff(grey) != 0)


def _lightness(colour: str) -> float:
    """Rec. 601 luma of #rrggbb, 0 to 1: what a greyscale print makes of it."""
    red, green, blue = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue
