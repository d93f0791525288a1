"""Free memory before weights are loaded, on a GPU that nothing else uses.

What the driver keeps, the CUDA context and the communicators are taken off the driver's total; observed, not computed.
Source: rest-before-boot.md section 3.1. The sightings are partly those of the boots the estimate is judged by.
"""

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sizing.basics.units import number
from sizing.models.gpus import Vendor

SMALL_MIB = 24 * 1024  # RTX 3090, RTX 4090 and below
SMALL_ALONE_GIB, SMALL_FEW_GIB = 0.9, 1.1  # TP 1: 15.33, 15.24 and 23.09 GiB free; TP 2: 22.93
FEW_GIB, MANY_GIB = 1.2, 2.4  # up to 4 ranks; more
FEW = 4
AMD_ALONE_GIB = 0.7
# Unsettled: three sightings with more than one rank, and no rule found; other widths get the middle of them.
AMD_GIB = {2: 8.7, 4: 9.3, 8: 4.3}
AMD_OTHER_GIB = 6.5


class Hardware(BaseModel):
    """The GPU of every rank, and what is known to be free on it."""

    model_config = ConfigDict(frozen=True)

    vendor: Vendor = "NVIDIA"
    memory_mib: float | None = Field(default=None, gt=0, le=2**30)
    """The driver's total, as the engine reads it."""
    unified: bool = False
    free_gib: float | None = Field(default=None, gt=0, le=2**20)
    """Free memory before loading, typed: `Load weight begin. avail mem` of a log, or MemAvailable on unified memory."""


class BeforeLoad(NamedTuple):
    """pre_load [GiB] and what it is made of."""

    total: float | None
    """The driver's total; None where free memory is typed and the total is not known."""
    taken: float
    """Driver, context and communicators."""
    free: float
    source: str
    unsettled: bool
    """Whether AMD's spread of 4 to 9 GiB between ranks is in it."""


class NotEstimatedError(Exception):
    """Raised where `rest` cannot be estimated: one sentence that says what to give."""

    def __init__(self, where: str, sentence: str) -> None:
        super().__init__(sentence)
        self.where = where
        self.sentence = sentence


def before_load(hardware: Hardware, ranks: int) -> BeforeLoad:
    """Free memory before weights on each of so many ranks (TP x PP).

    Raises NotEstimatedError for unified memory without MemAvailable, and for a GPU whose memory is not known.
    """
    total = None if hardware.memory_mib is None else hardware.memory_mib / 1024
    if hardware.free_gib is not None:
        if total is not None and hardware.free_gib > total:
            raise NotEstimatedError(
                "free_gib",
                f"{number(hardware.free_gib)} GiB cannot be free on a GPU of {number(total)} GiB: check both.",
            )
        return BeforeLoad(total, 0.0 if total is None else total - hardware.free_gib, hardware.free_gib, "typed", False)
    if hardware.unified:
        raise NotEstimatedError(
            "free_gib",
            "On unified memory the host takes 8 to 12 GiB of the GPU's: give MemAvailable of /proc/meminfo in GiB.",
        )
    if hardware.memory_mib is None or total is None:
        raise NotEstimatedError("memory_mib", "The GPU's memory is not known: give memory.total of nvidia-smi in MiB.")
    taken, words = _taken(hardware.vendor, hardware.memory_mib, ranks)
    if taken >= total:
        raise NotEstimatedError("memory_mib", f"A GPU of {number(total)} GiB has nothing left before weights.")
    return BeforeLoad(total, taken, total - taken, words, hardware.vendor == "AMD" and ranks > 1)


def _taken(vendor: Vendor, memory_mib: float, ranks: int) -> tuple[float, str]:
    """GiB, and where the number comes from."""
    if vendor == "AMD":
        gib = AMD_ALONE_GIB if ranks == 1 else AMD_GIB.get(ranks, AMD_OTHER_GIB)
        seen = ranks == 1 or ranks in AMD_GIB
        return gib, f"{number(gib, 1)} GiB {'seen' if seen else 'between what was seen'} on AMD with {_ranks(ranks)}"
    if memory_mib <= SMALL_MIB and ranks <= FEW:
        gib = SMALL_ALONE_GIB if ranks == 1 else SMALL_FEW_GIB
        return gib, f"{number(gib, 1)} GiB seen on GPUs up to 24 GB with {_ranks(ranks)}"
    gib = FEW_GIB if ranks <= FEW else MANY_GIB
    return gib, f"{number(gib, 1)} GiB seen with {'up to 4 ranks' if ranks <= FEW else '8 and more ranks'}"


def _ranks(ranks: int) -> str:
    return "1 rank" if ranks == 1 else f"{ranks:,} ranks"
