"""The table of GPUs."""

from sizing.basics.units import GIB, MIB
from sizing.models.gpus import ALL_GPUS, GPUS, UNIFIED_GPUS
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


def test_memory_is_near_the_vendors_figure() -> None:
    """Each name is there once with a source, and the driver's total lies within 6 % of the GB in it, whichever GB."""
    assert len({gpu.name for gpu in ALL_GPUS}) == len(ALL_GPUS)
    for gpu in ALL_GPUS:
        vendor = int(gpu.name.split()[-2])
        assert gpu.source
        assert 0.94 * vendor * 10**9 < gpu.memory_mib * MIB < 1.06 * vendor * GIB


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
