"""Frames hold the numbers of the pages, as numbers, with their units in the names of the columns."""

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from sizing import Scenario, Sizing, Split, solve
from sizing.answers import compare, limit_panel
from sizing.answers.curves import context_grid, over_context, over_ratio
from sizing.answers.sweep import Axis, Sweep, axis_of, sweep
from sizing.basics.units import count
from sizing.exchange.exports import context_csv, context_frame
from sizing.explain.reference_tables import measured_table, ratio_table
from sizing.models import summary
from sizing.scenario.inputs import changed
from sizing.traffic import words
from sizing.traffic.exports import histogram_frame, lengths_frame
from sizing.traffic.running import traffic_of
from sizing.traffic.workload import Workload, mix_of_workload

TIMEOUT = 30  # seconds

KEPT = (
    Scenario(),
    Scenario(name="drafts", D=4, L=20_000),
    Scenario(mamba_full_memory_ratio=0.001),  # refused as it is set
    Scenario(mamba_radix_cache_strategy="no_buffer"),  # refused whatever the split
    Scenario(attn_dp_size=8, rest_gib=28.529),
)


def swept(x: Axis, y: Axis) -> Sweep:
    """The worked example over two inputs."""
    return sweep(Scenario(), x, y)


L = Axis(name="L", values=(1024, 9216, 400_000))
RATIO = Axis(name="mamba_full_memory_ratio", values=(0.001, 0.9, 2.2045))
DTYPE = Axis(name="mamba_ssm_dtype", values=("float32", "bfloat16"))
DCP = Axis(name="dcp_size", values=(1, 3, 8))


def every_frame() -> dict[str, Any]:
    """One frame of each kind."""
    sizing = solve(Scenario())
    assert isinstance(sizing.now, Split)
    traffic = traffic_of(Scenario(), mix_of_workload(Workload()), 0.01)
    return {
        "over L": over_context(sizing.now, context_grid(sizing.now)).frame(),
        "over r": over_ratio(Scenario(), np.array([0.5, 0.9])).frame(),
        "sweep": swept(L, RATIO).frame(),
        "sweep of dtypes": swept(DTYPE, DCP).frame(),
        "compare": compare.frame(KEPT),
        "limits": limit_panel.frame(sizing),
        "lengths": lengths_frame(traffic),
        "histogram": histogram_frame(traffic.mix),
        "catalogue": summary.frame(),
    }


@pytest.mark.parametrize("name", list(every_frame()))
def test_numbers_have_units_and_whole_numbers_stay_whole(name: str) -> None:
    """Every column of numbers says its unit in brackets; what is counted is never a float, missing or not."""
    frame = every_frame()[name]
    assert len(frame)
    for column in frame.select_dtypes("number"):
        assert column.endswith("]"), column
        if any(unit in column for unit in ("requests", "slots", "layers")):
            assert pd.api.types.is_integer_dtype(frame[column]), column


@pytest.mark.parametrize(("x", "y"), [(L, RATIO), (RATIO, L), (DTYPE, DCP), (L, DCP)], ids=str)
def test_a_row_of_a_sweep_is_a_solve_of_its_own(x: Axis, y: Axis) -> None:
    """Each row holds what `solve` gives at its two values, and r* there."""
    frame = swept(x, y).frame()
    assert len(frame) == len(x.values) * len(y.values)
    for row in frame.to_dict("records"):
        values = {name.partition(" ")[0]: value for name, value in row.items()}
        found = changed(Scenario(), **{axis.name: values[axis.name] for axis in (x, y)})
        sizing = solve(found) if isinstance(found, Scenario) else None
        split = sizing.now if sizing else None
        assert values["refused"] == (not isinstance(split, Split))
        assert values["runs"] == (split.runs if isinstance(split, Split) else 0)
        if sizing and "r_star" in values:
            assert values["r_star"] == sizing.r_star


def test_comparison_holds_the_cells_of_the_page() -> None:
    """Each number is that of the table's cell; what is missing there is missing here, with the reason beside it."""
    frame, found = compare.frame(KEPT), compare.solved(KEPT)
    assert list(frame["name"]) == list(compare.names_of(KEPT))
    cells = {row.quantity: row.cells for row in compare.results(found)}
    for quantity, column in compare.COLUMNS.items():
        if quantity in ("r*", *compare.IDLE):
            continue
        for value, cell in zip(frame[column], cells[quantity], strict=True):
            expected = count(value) if pd.notna(value) else "refused" if quantity == "runs at L" else "-"
            assert cell.partition(" (")[0] == expected
    stars = [item.r_star if isinstance(item, Sizing) else None for item in found]
    assert [None if pd.isna(value) else value for value in frame["r_star [-]"]] == stars
    assert [pd.notna(value) for value in frame["refusal"]] == [False, False, True, True, False]
    assert list(frame["L [tokens]"]) == [scenario.L for scenario in KEPT]


def test_limits_are_those_of_the_split() -> None:
    """One row a limit, in the order of the panel; none where the engine refuses."""
    sizing = solve(Scenario(D=4))
    assert isinstance(sizing.now, Split)
    frame = limit_panel.frame(sizing)
    assert list(frame["requests [requests per rank]"]) == [limit.requests for limit in sizing.now.limits]
    rows = [*zip(*(frame[name] for name in ("place", "limit")), strict=True)]
    assert rows == [(row.place, row.limit.name) for row in limit_panel.lifts(sizing)]
    assert len(limit_panel.frame(solve(Scenario(mamba_full_memory_ratio=0.001)))) == 0


def test_traffic_lengths_are_those_of_the_page() -> None:
    """Mean and quantiles are the page's cells; the histogram counts every request once in each part."""
    traffic = traffic_of(Scenario(), mix_of_workload(Workload()), 0.01)
    shown = [
        (row[0], *(count(round(value)) for value in row[1:])) for row in lengths_frame(traffic).itertuples(index=False)
    ]
    assert shown == words.length_rows(traffic)
    histogram = histogram_frame(traffic.mix)
    for part, rows in histogram.groupby("part"):
        counts = rows["count [requests]"]
        assert counts.sum() == traffic.mix.parts[part].total
        assert (rows["length [tokens]"] * counts).sum() / counts.sum() == pytest.approx(traffic.mix.parts[part].mean)


def test_catalogue_has_layers_or_a_refusal() -> None:
    """A row a checkpoint; one that is refused has no layers."""
    frame = summary.frame()
    assert list(frame["model"]) == [row.entry.id for row in summary.catalogue_rows()]
    assert list(frame["state_layers [layers]"].isna()) == [bool(refusal) for refusal in frame["refusal"]]


def test_reference_tables_keep_their_cells() -> None:
    """Columns of numbers are numbers, a missing one is missing, and words stay."""
    table = ratio_table(Scenario())
    frame = table.frame()
    assert [count(value) for value in frame["L"]] == [row[0] for row in table.rows]
    assert [f"{value:.5g}" for value in frame["r*"]] == [row[1] for row in table.rows]
    measured = measured_table().frame()
    assert pd.api.types.is_integer_dtype(measured["predicted"])
    assert list(measured["difference"]) == [row[4] for row in measured_table().rows]


@pytest.mark.parametrize("values", [{}, {"rest_gib": 0.2}], ids=str)
def test_csv_is_the_frame(values: dict[str, Any]) -> None:
    """The file is read back as the frame, also where no split starts."""
    sizing = solve(Scenario.model_validate(values))
    text = context_csv(sizing)
    rows = len([line for line in text.splitlines() if not line.startswith("#")]) - 1
    frame = context_frame(sizing)
    assert rows == len(frame) == (0 if values else rows)
    assert text.endswith(frame.to_csv(index=False))


def test_sweep_s_rows_stand_on_the_page_when_asked() -> None:
    """The page's rows are the frame of the sweep in its figure; unasked they are not sent to the browser."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT).run().switch_page("pages/compare.py").run()
    assert not page.dataframe
    (shown,) = page.toggle(key="sweep_rows").set_value(True).run().dataframe
    own = Scenario()
    expected = sweep(own, axis_of(own, "L"), axis_of(own, "mamba_full_memory_ratio")).frame()
    pd.testing.assert_frame_equal(shown.value, expected, check_dtype=False)


def test_pandas_is_imported_for_a_frame_alone() -> None:
    """Solving and a curve need no pandas."""
    program = (
        "import sys, numpy\nfrom sizing import Scenario, solve\nfrom sizing.answers.curves import over_ratio\n"
        "solve(Scenario())\ncurve = over_ratio(Scenario(), numpy.array([0.9]))\nassert 'pandas' not in sys.modules\n"
        "curve.frame()\nassert 'pandas' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
