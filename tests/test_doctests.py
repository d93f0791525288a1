"""The examples in the core's docstrings give what they say."""

import doctest
import importlib
import pkgutil

import pytest

import sizing

MODULES = ["sizing", *(module.name for module in pkgutil.walk_packages(sizing.__path__, "sizing."))]


@pytest.mark.parametrize("module", MODULES)
def test_doctests(module: str) -> None:
    """Every example in this module's docstrings runs and prints what stands there."""
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def test_there_are_doctests() -> None:
    """The package, the closed form and S show an example each."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    shown = {test.name for module in MODULES for test in finder.find(importlib.import_module(module)) if test.examples}
    assert {"sizing", "sizing.specification.optimal_ratio", "sizing.engine.resolve.resolve"} <= shown
