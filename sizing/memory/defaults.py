"""chunked_prefill_size and the largest decode graph, from the memory of one GPU.

Source: rest-before-boot.md section 1.2; _handle_gpu_memory_settings of each wheel.
"""

from typing import NamedTuple

from sizing.memory.release import Table, at
from sizing.memory.stated import Stated


class Tier(NamedTuple):
    """One row of the table: GPUs below so many GiB."""

    below_gib: float
    chunk: int
    """chunked_prefill_size [tokens]."""
    max_bs: int
    """Requests in the largest decode graph, TP below 4."""
    wide_max_bs: int
    """The same from TP 4 on."""


SMALL = Tier(20, 2048, 8, 8)
MIDDLE = (Tier(60, 4096, 32, 160), Tier(160, 8192, 256, 512), Tier(float("inf"), 16384, 512, 512))
TIERS: Table[tuple[Tier, ...]] = (
    (4, (SMALL, Tier(35, 2048, 16, 80), *MIDDLE)),
    (5, (SMALL, Tier(35, 2048, 24, 80), *MIDDLE)),
    (20, (SMALL, Tier(35, 4096, 48, 160), *MIDDLE)),
)
UNKNOWN = Tier(float("inf"), 4096, 160, 160)
WIDE_TP = 4  # the whole --tp-size, also under attention DP
CUT_TO_RUNNING_SINCE = 22


class Chosen(NamedTuple):
    """A value and the rule that gave it."""

    value: int
    rule: str


def tier(stated: Stated) -> Tier:
    """The row that holds; limits are binary GiB of memory.total."""
    if stated.gpu_memory_mib is None:
        return UNKNOWN
    return next(row for row in at(TIERS, stated.minor) if stated.gpu_memory_mib < row.below_gib * 1024)


def chunked_prefill_size(stated: Stated) -> Chosen:
    """Tokens of one prefill chunk, before attention DP divides it; -1 without chunks."""
    if stated.chunked_prefill_size is not None:
        return Chosen(stated.chunked_prefill_size, "given")
    return Chosen(tier(stated).chunk, _memory_in_words(stated))


def decode_max_bs(stated: Stated) -> Chosen:
    """Requests in the largest decode graph."""
    if stated.cuda_graph_bs is not None:
        return Chosen(max(stated.cuda_graph_bs), "the largest of the sizes given")
    if stated.cuda_graph_max_bs is not None:
        return Chosen(stated.cuda_graph_max_bs, "given")
    row, running = tier(stated), stated.max_running_requests
    size = row.wide_max_bs if stated.tp_size >= WIDE_TP else row.max_bs
    if running is not None and stated.minor >= CUT_TO_RUNNING_SINCE and size > running:
        return Chosen(running, f"{size:,} for this GPU, cut to max_running_requests")
    return Chosen(size, f"{_memory_in_words(stated)}, TP {'4 or more' if stated.tp_size >= WIDE_TP else 'below 4'}")


def _memory_in_words(stated: Stated) -> str:
    if stated.gpu_memory_mib is None:
        return "GPU memory unknown"
    limit = tier(stated).below_gib
    return f"GPU below {limit:g} GiB" if limit < float("inf") else "GPU of 160 GiB or more"
