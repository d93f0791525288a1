"""What an automatic fraction leaves free: the parts of the reserve, in MiB.

Source: rest-before-boot.md section 1.3; _handle_gpu_memory_settings, reserve_for_graph_mb, reserve_for_deepep_a2a_mb
and post_capture_kv_sizing_planned of each wheel.
"""

from typing import NamedTuple

from sizing.memory.captured import Captured
from sizing.memory.graphs import Graph
from sizing.memory.release import Span, Table, at
from sizing.memory.stated import Stated

META_MIB = 512
MIB_PER_TOKEN, FEWEST_TOKENS = 1.5, 2048
MIB_PER_REQUEST = 2
MIB_PER_DP_REQUEST, MIB_PER_LARGE_DP_REQUEST, LARGE_DP_GRAPH = 3, 1.5, 300
MIB_PER_RANK = 1024 / 8
MIB_PER_PREFILL_SIZE, MLA_PREFILL_MIB = 8, 1536
FLOOR_MIB, FLOOR_ABOVE_MIB = 10 * 1024, 60 * 1024

ROLES_SINCE = 15  # PD roles and switched-off decode graphs count
# The opt-in prefill graph before it was counted by its sizes, after the floor: its tokens are divided by this.
OPT_IN_DIVISOR: Table[int | None] = ((4, None), (6, 4), (7, 8), (8, None))
PREFILL_BY_SIZES_SINCE = 8
MLA_PREFILL_SINCE = 10
# Speculation, after the floor, until the draft's weights are measured instead.
SPECULATION_UNTIL = 13
STANDALONE_MIB = 6 * 1024
DRAFT_MIB: Table[int] = ((4, 2 * 1024), (10, 4 * 1024))
DEEPEP_DECODE_SINCE, DEEPEP_DECODE_MIB = 15, 2 * 1024
DEEPEP_PREFILL_SINCE, DEEPEP_PREFILL_MIB = 17, 1024

POST_CAPTURE_SINCE = 16
POST_CAPTURE_MIB: Table[int] = ((16, 512), (18, 1536))
POST_CAPTURE_WITHOUT_DP = Span(16, 16)
POST_CAPTURE_NEEDS_COVER_SINCE = 17  # the largest chunk must be captured
POST_CAPTURE_WITHOUT_FP4 = Span(16, 20)
POST_CAPTURE_WITHOUT_UNIFIED_SINCE = 21


class Part(NamedTuple):
    """One part of the reserve."""

    name: str
    mib: float
    rule: str


class Chosen(NamedTuple):
    """What is decided before the reserve is added up."""

    chunk: int
    max_bs: int
    decode: Graph
    prefill: Graph
    captured: Captured | None


def post_capture(stated: Stated, chosen: Chosen) -> bool:
    """Whether pools are sized after the graphs are captured, so that nothing is set aside for graphs."""
    release, role = stated.minor, stated.disaggregation_mode
    if not stated.post_capture_kv_sizing or release < POST_CAPTURE_SINCE:
        return False
    if stated.vendor != "NVIDIA" or stated.dcp_size != 1 or stated.model.mla:
        return False
    if POST_CAPTURE_WITHOUT_FP4.holds(release) and stated.kv_cache_dtype == "fp4_e2m1":
        return False
    if POST_CAPTURE_WITHOUT_DP.holds(release) and stated.attention_dp:
        return False
    if release >= POST_CAPTURE_WITHOUT_UNIFIED_SINCE and stated.enable_unified_memory:
        return False
    if role != "prefill" and chosen.decode.kind == "disabled":
        return False
    return role == "decode" or _prefill_covered(release, chosen)


def _prefill_covered(release: int, chosen: Chosen) -> bool:
    if chosen.captured is None:
        return False
    if release < POST_CAPTURE_NEEDS_COVER_SINCE:
        return True
    return 0 < chosen.chunk <= max(chosen.captured.sizes, default=0)


def reserve(stated: Stated, chosen: Chosen) -> tuple[Part, ...]:
    """The parts, in the order in which the engine adds them; their sum is the reserve [MiB]."""
    ranks = stated.tp_size * stated.pp_size
    width = Part("ranks", ranks * MIB_PER_RANK, f"128 MiB for each of {ranks:,} ranks (TP x PP)")
    if post_capture(stated, chosen):
        least = at(POST_CAPTURE_MIB, stated.minor)
        return (Part("post-capture KV sizing", least, "graphs are measured, not set aside for"), width)
    before = (
        Part("constant data", META_MIB, "attention backend and the like"),
        _activations(stated, chosen),
        width,
        *_decode_parts(stated, chosen),
        *_prefill_parts(stated, chosen),
    )
    return (*before, *_floor(stated, before), *_after_floor(stated, chosen))


def _activations(stated: Stated, chosen: Chosen) -> Part:
    if stated.minor >= ROLES_SINCE and stated.disaggregation_mode == "decode":
        running = stated.max_running_requests or chosen.max_bs or 1
        drafts = stated.speculative_num_draft_tokens or 1
        tokens, words = running * drafts, f"{running:,} requests x {drafts:,} draft tokens"
    elif chosen.chunk > 0:
        tokens, words = chosen.chunk, f"chunked_prefill_size {chosen.chunk:,}"
    else:
        tokens, words = stated.max_prefill_tokens, f"max_prefill_tokens {stated.max_prefill_tokens:,}"
    return Part("activations", max(tokens, FEWEST_TOKENS) * MIB_PER_TOKEN, f"1.5 MiB a token, at least 2,048: {words}")


def _decode_parts(stated: Stated, chosen: Chosen) -> list[Part]:
    bs, width, parts = chosen.max_bs, stated.attn_dp_size, []
    counts_roles = stated.minor >= ROLES_SINCE
    prefill_server = counts_roles and stated.disaggregation_mode == "prefill"
    if not prefill_server and not (counts_roles and chosen.decode.kind == "disabled"):
        parts.append(Part("decode graphs", bs * MIB_PER_REQUEST, f"2 MiB for each of {bs:,} requests"))
    if stated.attention_dp and not prefill_server:
        each = MIB_PER_DP_REQUEST + (MIB_PER_LARGE_DP_REQUEST if bs > LARGE_DP_GRAPH else 0)
        words = f"{each:g} MiB x {bs:,} requests x width {width:,}"
        parts.append(Part("attention DP", bs * width * each, words))
    return parts


def _prefill_parts(stated: Stated, chosen: Chosen) -> list[Part]:
    release, found = stated.minor, chosen.captured
    decode_server = release >= ROLES_SINCE and stated.disaggregation_mode == "decode"
    if found is None or decode_server or release < PREFILL_BY_SIZES_SINCE:
        return []
    if stated.model.mla and release >= MLA_PREFILL_SINCE:
        parts = [Part("prefill graph", MLA_PREFILL_MIB, "flat under latent attention")]
    else:
        count = len(found.sizes)
        parts = [Part("prefill graph", count * MIB_PER_PREFILL_SIZE, f"8 MiB for each of {count:,} sizes")]
    deepep = stated.moe_a2a_backend == "deepep" and chosen.prefill.kind == "breakable"
    if deepep and release >= DEEPEP_PREFILL_SINCE:
        parts.append(Part("DeepEP in the prefill graph", DEEPEP_PREFILL_MIB, f"since 0.5.{DEEPEP_PREFILL_SINCE}"))
    return parts


def _floor(stated: Stated, before: tuple[Part, ...]) -> list[Part]:
    missing = FLOOR_MIB - sum(part.mib for part in before)
    if stated.gpu_memory_mib is None or stated.gpu_memory_mib <= FLOOR_ABOVE_MIB or missing <= 0:
        return []
    return [Part("up to the floor", missing, "at least 10,240 MiB on a GPU above 60 GiB")]


def _after_floor(stated: Stated, chosen: Chosen) -> list[Part]:
    release, parts = stated.minor, []
    algorithm = stated.speculative_algorithm
    if algorithm is not None and algorithm != "NGRAM" and release <= SPECULATION_UNTIL:
        mib = STANDALONE_MIB if algorithm == "STANDALONE" else at(DRAFT_MIB, release)
        parts.append(Part("speculation", mib, f"{algorithm}, up to 0.5.{SPECULATION_UNTIL}"))
    divisor = at(OPT_IN_DIVISOR, release)
    if divisor is not None and chosen.captured is not None:
        top = chosen.captured.top
        parts.append(Part("prefill graph", top // divisor, f"1 MiB for every {divisor} of {top:,} tokens"))
    role = stated.disaggregation_mode
    if (
        release >= DEEPEP_DECODE_SINCE
        and stated.moe_a2a_backend == "deepep"
        and role != "prefill"
        and chosen.decode.kind != "disabled"
    ):
        parts.append(Part("DeepEP in the decode graphs", DEEPEP_DECODE_MIB, f"since 0.5.{DEEPEP_DECODE_SINCE}"))
    return parts
