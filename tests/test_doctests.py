"""The examples in the core's docstrings give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHOWING = [path for path in sorted((ROOT / "sizing").rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


def module_of(path: Path) -> str:
    """The dotted name of a file of the core."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@pytest.mark.parametrize("module", [module_of(path) for path in SHOWING])
def test_doctests(module: str) -> None:
    """Every example in this module's docstrings runs and prints what stands there."""
    done = doctest.testmod(importlib.import_module(module))
    assert done.failed == 0
    assert done.attempted > 0


def test_there_are_doctests() -> None:
    """The package, the closed form and S show an example each."""
    assert {"sizing", "sizing.specification", "sizing.engine.resolve"} <= set(map(module_of, SHOWING))
