"""How many token counts a prefill graph captures.

Source: rest-before-boot.md section 1.5; generate_prefill_cuda_graph_batch_sizes and _handle_gpu_memory_settings.
"""

from typing import NamedTuple

from sizing.memory.release import Span, Table, at
from sizing.memory.stated import GraphKind, Stated

# Runs of sizes as (first, last, step); the last run goes on to the largest size.
RUNS: Table[tuple[tuple[int, int | None, int], ...]] = (
    (4, ((4, 32, 4), (48, 256, 16), (288, 512, 32), (640, 4096, 128), (4352, None, 256))),
    (8, ((4, 32, 4), (48, 256, 16), (288, 512, 32), (640, 1024, 64), (1280, 4096, 256), (4608, None, 512))),
    (9, ((4, 32, 4), (48, 256, 16), (288, 512, 32), (576, 1024, 64), (1280, 4096, 256), (4608, None, 512))),
)
FIXED_TOP = 4096  # the flag's default up to 0.5.6
FOLLOWS_CHUNK_SINCE = 7
# The largest size under latent attention: at most so many tokens; None: as under GQA.
MLA_TOP: Table[int | None] = ((4, None), (8, 2048))
MLA_FOLLOWS_CHUNK_SINCE, MLA_MOST = 23, 8192
CUT_TO_TOTAL_TOKENS_SINCE = 10
CUT_TO_CONTEXT = Span(13, 16)
DEEPEP_ROUNDS_SINCE, DEEPEP_STEP, DEEPEP_TOP = 17, 8, 2048


class Captured(NamedTuple):
    """The sizes a prefill graph captures."""

    top: int
    """The largest token count it may have; -1 without chunked prefill."""
    sizes: tuple[int, ...]
    rule: str


def captured(stated: Stated, kind: GraphKind, chunk: int) -> Captured | None:
    """The sizes of this prefill graph at this chunked_prefill_size [tokens]; None without a graph."""
    if kind == "disabled":
        return None
    if kind == "breakable" and stated.moe_a2a_backend == "deepep" and stated.minor >= DEEPEP_ROUNDS_SINCE:
        rounded = {-(-size // DEEPEP_STEP) * DEEPEP_STEP for size in sizes_up_to(DEEPEP_TOP, stated.minor)}
        return Captured(DEEPEP_TOP, tuple(sorted(rounded)), f"to {DEEPEP_TOP:,} in multiples of 8, for DeepEP")
    top, rule = _top(stated, chunk)
    for limit, words in _cuts(stated):
        if limit < top:
            top, rule = limit, words
    return Captured(top, sizes_up_to(top, stated.minor), rule)


def sizes_up_to(top: int, release: int) -> tuple[int, ...]:
    """The sizes, all at most `top` tokens.

    >>> [len(sizes_up_to(top, 23)) for top in (2048, 4096, 8192, 16384)]
    [42, 50, 58, 74]
    """
    runs = at(RUNS, release)
    return tuple(
        size for first, last, step in runs for size in range(first, min(top, top if last is None else last) + 1, step)
    )


def _top(stated: Stated, chunk: int) -> tuple[int, str]:
    if stated.minor < FOLLOWS_CHUNK_SINCE:
        return FIXED_TOP, "the flag's default"
    most = at(MLA_TOP, stated.minor) if stated.model.mla else None
    if most is None:
        return chunk, "chunked_prefill_size"
    if stated.minor >= MLA_FOLLOWS_CHUNK_SINCE:
        return min(MLA_MOST, chunk), f"chunked_prefill_size, at most {MLA_MOST:,} under latent attention"
    return most, "latent attention"


def _cuts(stated: Stated) -> list[tuple[int, str]]:
    cuts = []
    if stated.max_total_tokens is not None and stated.minor >= CUT_TO_TOTAL_TOKENS_SINCE:
        cuts.append((stated.max_total_tokens, "cut to max_total_tokens"))
    if stated.context_length is not None and CUT_TO_CONTEXT.holds(stated.minor):
        cuts.append((stated.context_length, "cut to context_length"))
    return cuts
