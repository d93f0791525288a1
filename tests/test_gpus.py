"""GPU memory, and the estimate of rest against the engine's own cases."""

from typing import Any

import pytest

from sizing.basics.units import GIB
from sizing.models.gpus import ALL_GPUS, GPUS, UNIFIED_GPUS, estimate_rest
from tests.cases import read_cases
from tests.memory_cases import read_cases as read_memory_cases

NAMES = {
    "L4": "NVIDIA L4 24 GB",
    "RTX 4090": "NVIDIA RTX 4090 24 GB",
    "RTX 5090": "NVIDIA RTX 5090 32 GB",
    "A100 40": "NVIDIA A100 40 GB",
    "L40S": "NVIDIA L40S, L20, A6000 48 GB",
    "H100 80": "NVIDIA H100 80 GB",
    "A100 80": "NVIDIA A100 80 GB",
    "H100 NVL": "NVIDIA H100 NVL 94 GB",
    "H20 96": "NVIDIA H20, GH200 96 GB",
    "GH200 96": "NVIDIA H20, GH200 96 GB",
    "RTX PRO 6000": "NVIDIA RTX PRO 6000 Blackwell 96 GB",
    "H200": "NVIDIA H200 141 GB",
    "H20 141": "NVIDIA H20-3e 141 GB",
    "B200": "NVIDIA B200 180 GB",
    "GB200": "NVIDIA GB200 186 GB",
    "B300": "NVIDIA B300 SXM6 288 GB",
    "GB300": "NVIDIA GB300 288 GB",
    "MI300X": "AMD Instinct MI300X 192 GB",
    "MI325X": "AMD Instinct MI325X 256 GB",
    "MI355X": "AMD Instinct MI355X 288 GB",
}
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
    """Each name is there once with a source, and the driver's total lies within 6 % of the GB in it, whichever GB."""
    assert len({gpu.name for gpu in ALL_GPUS}) == len(ALL_GPUS)
    for gpu in ALL_GPUS:
        vendor = int(gpu.name.split()[-2])
        assert gpu.source
        assert 0.94 * vendor * 10**9 < gpu.memory_bytes < 1.06 * vendor * GIB


def test_unified_memory_stands_apart() -> None:
    """A list of GPUs to estimate with holds none that shares the host's memory."""
    assert all(gpu.unified for gpu in UNIFIED_GPUS)
    assert not any(gpu.unified for gpu in GPUS)


def test_cases_use_the_tables_memory() -> None:
    """Where a case of the engine names a GPU of the table, it has the table's MiB; most cases do."""
    pairs = [(case.gpu, case.stated["gpu_memory_mib"]) for case in read_memory_cases() if case.gpu in NAMES]
    assert len(pairs) > 700
    table = {gpu.name: gpu.memory_mib for gpu in GPUS}
    assert [pair for pair in pairs if table[NAMES[pair[0]]] != pair[1]] == []
