"""The notebook runs from its first cell to its last, and each cell gives something to look at."""

import ast
import json
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go

from sizing import Scenario, Split, solve

NOTEBOOK = Path(__file__).parents[1] / "docs" / "worked-example.ipynb"


def shown() -> list[Any]:
    """What each code cell shows: the value of its last expression. All cells run in one namespace, as in a notebook."""
    names: dict[str, Any] = {}
    found = []
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]):
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"])).body
        last = body.pop()
        assert isinstance(last, ast.Expr), f"cell {number} shows nothing"
        exec(compile(ast.Module(body, []), f"cell {number}", "exec"), names)
        found.append(eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names))
    return found


def test_every_cell_runs_and_shows_something() -> None:
    """A sentence with the numbers of `solve`, frames with rows, figures with traces."""
    first, *others = shown()
    sizing = solve(Scenario())
    assert isinstance(sizing.now, Split)
    assert first.startswith(f"{sizing.now.runs} run, ")
    for one in others:
        assert isinstance(one, pd.DataFrame | go.Figure)
        assert len(one if isinstance(one, pd.DataFrame) else one.data) > 0
    kinds = [type(one) for one in others]
    assert kinds.count(pd.DataFrame) >= 4
    assert kinds.count(go.Figure) >= 4


def test_no_output_is_kept() -> None:
    """Numbers in a kept output would grow old."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")] == []
