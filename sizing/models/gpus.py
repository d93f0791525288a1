"""GPUs by name with their memory, and a first guess of `rest` before there is a boot log to read it from."""

from typing import NamedTuple

from sizing.basics.units import GIB, MIB, number


class Gpu(NamedTuple):
    """One GPU."""

    name: str
    memory_bytes: int
    """Total memory as the driver reports it; the GB in the name are the vendor's."""


# `memory.total` of nvidia-smi, and VRAM total of rocm-smi for AMD, as quoted alike in many published logs. The
# vendors' own GB are rounded and mean now 10**9 and now 2**30 bytes, so they cannot be computed with.
GPUS = (
    Gpu("NVIDIA A100 SXM 80 GB", 81_920 * MIB),
    Gpu("NVIDIA L40S 48 GB", 46_068 * MIB),
    Gpu("NVIDIA H20 96 GB", 97_871 * MIB),
    Gpu("NVIDIA H100 SXM 80 GB", 81_559 * MIB),
    Gpu("NVIDIA H200 141 GB", 143_771 * MIB),
    Gpu("NVIDIA RTX PRO 6000 Blackwell 96 GB", 97_887 * MIB),
    Gpu("NVIDIA B200 180 GB", 183_359 * MIB),
    Gpu("NVIDIA GB200 186 GB", 189_471 * MIB),
    Gpu("NVIDIA B300 288 GB", 275_040 * MIB),
    Gpu("AMD Instinct MI300X 192 GB", 206_141_652_992),
)


def estimate_rest(
    memory_bytes: int,
    weights_bytes: int,
    mem_fraction_static: float,
    tp_size: int = 1,
    pp_size: int = 1,
    taken_bytes: int = 0,
) -> float:
    """`rest` [GiB per rank] from the memory of one GPU [bytes] and the weights of the whole model [bytes].

    rest = free_now - pre_load_free x (1 - mem_fraction_static), where pre_load_free is the memory less
    `taken_bytes`, what the driver, the CUDA context and others hold before loading, and free_now is that less the
    weights spread evenly over tp_size x pp_size ranks. Below 0 the weights do not fit.

    It is an estimate. Left out: weights that every rank repeats or that the stages do not share evenly, a draft
    model's weights, what loading leaves behind, the multimodal reservation, and the larger slack of post-capture
    KV sizing. Each of them makes the real rest smaller; take it from a boot log once there is one.

    Source: engine-sizing.md section 1.

    >>> round(estimate_rest(178 * GIB, 8 * 100 * GIB, 0.85, tp_size=8), 3)
    51.3
    """
    pre_load_free = memory_bytes - taken_bytes
    free_now = pre_load_free - weights_bytes / (tp_size * pp_size)
    return (free_now - pre_load_free * (1 - mem_fraction_static)) / GIB


def estimate_in_words(
    memory_bytes: int, weights_bytes: int, mem_fraction_static: float, tp_size: int, pp_size: int
) -> str:
    """The same with nothing taken before loading, as its formula with the numbers in it.

    >>> estimate_in_words(178 * GIB, 8 * 100 * GIB, 0.85, 8, 1)
    'rest = 178.00 x 0.85 - 800 / 8 = 51.30 GiB per rank.'
    """
    rest = estimate_rest(memory_bytes, weights_bytes, mem_fraction_static, tp_size, pp_size)
    budget = f"{number(memory_bytes / GIB)} x {mem_fraction_static:g}"
    return f"rest = {budget} - {weights_bytes / GIB:g} / {tp_size * pp_size} = {number(rest)} GiB per rank."
