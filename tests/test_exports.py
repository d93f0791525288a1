"""Exports hold the curves' and the solve's own numbers, exactly, and nothing in them runs in a spreadsheet."""

import csv
import io
import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from pydantic import BaseModel

from sizing import Scenario, Sizing, Split, solve
from sizing.answers.curves import over_context, over_ratio
from sizing.cli.main import main
from sizing.engine.split import Memory
from sizing.exchange.exports import (
    SPLIT_UNITS,
    SPLITS,
    UNITS,
    context_csv,
    curves_json,
    ratio_csv,
    result_csv,
    result_json,
)
from sizing.figures import DARK, LIGHT, crossing_figure, memory_figure, painted, ratio_figure
from sizing.scenario.inputs import FIELDS

CASES: list[dict[str, Any]] = [
    {},
    {"D": 4, "L": 20_000, "max_running_requests": 64},
    {"rest_gib": 28.529, "attn_dp_size": 8, "tp_size": 8},
    {"split": "pin", "max_mamba_cache_size": 300},
    {"disable_radix_cache": True, "max_running_requests": 40},
    {"mamba_full_memory_ratio": 0.001},
    {"rest_gib": 0.2},
]


def rows_of(text: str) -> tuple[list[str], list[dict[str, str]]]:
    """The lines after # and the rows by column."""
    lines = text.splitlines()
    header = [line for line in lines if line.startswith("#")]
    assert lines[: len(header)] == header
    return header, list(csv.DictReader(io.StringIO("\n".join(lines[len(header) :]))))


@pytest.mark.parametrize("values", CASES, ids=str)
def test_curve_over_context_is_the_core_s(values: dict[str, Any]) -> None:
    """Each row is the clamp, the cap and what runs of its split at its L; the scenario's own L is among them."""
    sizing = solve(Scenario.model_validate(values))
    _, rows = rows_of(context_csv(sizing))
    for name, split in (("now", sizing.now), ("balanced", sizing.balanced)):
        own = [row for row in rows if row["split"] == name]
        if not isinstance(split, Split):
            assert own == []
            continue
        L = np.array([int(row["L [tokens]"]) for row in own])
        curve = over_context(split, L)
        assert sizing.scenario.L in L
        assert [int(row["kv_cap [requests per rank]"]) for row in own] == curve.kv_cap.tolist()
        assert [int(row["runs [requests per rank]"]) for row in own] == curve.runs.tolist()
        assert {int(row["clamp [requests per rank]"]) for row in own} == {split.clamp}
        (here,) = [row for row in own if row["L [tokens]"] == str(sizing.scenario.L)]
        assert int(here["runs [requests per rank]"]) == split.runs


@pytest.mark.parametrize("values", CASES, ids=str)
def test_curve_over_ratio_is_the_core_s(values: dict[str, Any]) -> None:
    """Every ratio can be read back as it was solved."""
    sizing = solve(Scenario.model_validate(values))
    _, rows = rows_of(ratio_csv(sizing))
    ratios = np.array([float(row["ratio [-]"]) for row in rows])
    curve = over_ratio(sizing.scenario, ratios)
    assert sizing.ratio_now in ratios
    assert [int(row["clamp [requests per rank]"]) for row in rows] == curve.clamp.tolist()
    assert [int(row["kv_cap [requests per rank]"]) for row in rows] == curve.kv_cap.tolist()
    assert [int(row["runs [requests per rank]"]) for row in rows] == curve.runs.tolist()


@pytest.mark.parametrize("values", CASES, ids=str)
def test_curves_as_json_are_those_of_the_csv(values: dict[str, Any]) -> None:
    """The same numbers in both, with the inputs beside them."""
    sizing = solve(Scenario.model_validate(values))
    found = json.loads(curves_json(sizing))
    assert found["inputs"] == sizing.scenario.model_dump(mode="json")
    _, over_r = rows_of(ratio_csv(sizing))
    assert found["over_ratio"]["runs"] == [int(row["runs [requests per rank]"]) for row in over_r]
    _, over_L = rows_of(context_csv(sizing))
    assert [runs for curve in found["over_context"].values() for runs in curve["runs"]] == [
        int(row["runs [requests per rank]"]) for row in over_L
    ]


@pytest.mark.parametrize("values", CASES, ids=str)
def test_every_header_names_every_input_with_its_unit(values: dict[str, Any]) -> None:
    """A table that is passed on alone still says what deployment it is of."""
    sizing = solve(Scenario.model_validate(values))
    for export in (context_csv, ratio_csv, result_csv):
        header, _ = rows_of(export(sizing))
        assert header[0].startswith("# Hybrid Pool Sizing ")
        assert [line.split(" = ")[0].removeprefix("# ").removesuffix(" =") for line in header[1:]] == list(FIELDS)
        assert f"# L = {sizing.scenario.L} [tokens]" in header
        assert f"# rest_gib = {sizing.scenario.rest_gib} [GiB per rank]" in header


def test_a_name_is_no_formula() -> None:
    """A name may hold = and what separates cells in some country; no cell of the table begins with it."""
    sizing = solve(Scenario(name="a,=1+1;-2+3,+4"))
    for export in (context_csv, ratio_csv, result_csv):
        table = export(sizing)
        assert "# name = a / =1+1 / -2+3 / +4" in table.splitlines()
        cells = [cell for mark in ",;\t" for row in csv.reader(io.StringIO(table), delimiter=mark) for cell in row]
        assert [cell for cell in cells if cell[:1] in ("=", "+", "@", "\t")] == []
        assert [cell for cell in cells if cell[:1] == "-" and not _is_number(cell) and cell != "-"] == []


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def test_every_number_has_a_unit() -> None:
    """A number that is added to a Sizing, a Split or a Memory must be given one."""
    numbers = (int, float, int | None, float | None)

    def named(model: type[BaseModel]) -> set[str]:
        return {name for name, field in model.model_fields.items() if field.annotation in numbers}

    assert named(Sizing) <= set(UNITS)
    assert named(Split) <= set(SPLIT_UNITS)
    assert set(UNITS) <= set(Sizing.model_fields)
    assert set(SPLIT_UNITS) <= set(Split.model_fields)
    assert {field.annotation for field in Memory.model_fields.values()} == {int}


@pytest.mark.parametrize("values", CASES, ids=str)
def test_result_rows_are_the_numbers_of_the_solve(values: dict[str, Any]) -> None:
    """Each split's fields and pieces of memory as they are, a refusal in words."""
    sizing = solve(Scenario.model_validate(values))
    _, rows = rows_of(result_csv(sizing))
    found = {(row["split"], row["quantity"]): row["value"] for row in rows}
    assert found["", "S"] == str(sizing.S)
    assert float(found["", "r_star"]) == sizing.r_star
    for name in SPLITS:
        split = getattr(sizing, name)
        if isinstance(split, Split):
            for field in SPLIT_UNITS:
                value = getattr(split, field)
                assert found[name, field] == ("" if value is None else str(value))
            assert found[name, "memory.kv_idle"] == str(split.memory.kv_idle)
            assert found[name, "binding"] == split.binding.name
        elif split is not None:
            assert found[name, "refusal"] == split.sentence


def test_result_as_json_is_what_the_command_line_prints(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One form of the result, wherever it is taken from."""
    monkeypatch.setattr("sys.stdin", io.StringIO('{"L": 16384, "D": 4}'))
    assert main(["plan", "-", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(result_json(solve(Scenario(L=16_384, D=4))))


@pytest.mark.parametrize("build", [crossing_figure, ratio_figure, memory_figure])
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_a_figure_is_what_plotly_reads(build: Any, palette: dict[str, str]) -> None:
    """Plotly's own checks take every trace and every setting, and no colour name is left."""
    text = json.dumps(painted(build(solve(Scenario())), palette), allow_nan=False)
    assert '"@' not in text
    assert go.Figure(json.loads(text)).layout.title.text
