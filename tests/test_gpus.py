"""GPU memory, and the estimate of rest against the engine's own cases."""

from typing import Any

import pytest

from sizing.basics.units import GIB
from sizing.models.gpus import GPUS, estimate_rest
from tests.cases import read_cases

MEASURED = [case for case in read_cases() if case.numeric and "rest_gib" in case.numeric]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in MEASURED])
def test_rest_by_the_engines_rule(case: Any) -> None:
    """From the free memory of a case before loading, and what loading took of it, the rest it had."""
    hardware, fraction = case.inputs["hardware"], case.inputs["flags"]["mem_fraction_static"]
    before, after = hardware["pre_model_load_gib"], hardware["available_gib"]
    rest = estimate_rest(round(before * GIB), round((before - after) * GIB), fraction)
    assert rest == pytest.approx(case.numeric["rest_gib"], abs=1e-6)


def test_weights_are_spread_and_what_is_taken_counts_as_not_there() -> None:
    """Ranks share the weights; memory taken before loading lowers rest by the static fraction of itself."""
    whole = estimate_rest(80 * GIB, 100 * GIB, 0.9)
    assert whole < 0
    assert estimate_rest(80 * GIB, 100 * GIB, 0.9, tp_size=2, pp_size=2) == pytest.approx(72 - 25)
    assert estimate_rest(80 * GIB, 0, 0.9, taken_bytes=GIB) == pytest.approx(72 - 0.9)


def test_memory_is_near_the_vendors_figure() -> None:
    """Each name is there once, and the driver's total lies within 6 % of the GB in it, whichever GB is meant."""
    assert len({gpu.name for gpu in GPUS}) == len(GPUS)
    for gpu in GPUS:
        vendor = int(gpu.name.split()[-2])
        assert 0.94 * vendor * 10**9 < gpu.memory_bytes < 1.06 * vendor * GIB
