"""Which graphs a release captures: decode, prefill, and why there is no prefill graph where there is none.

Source: rest-before-boot.md section 1.4; arg_groups/cuda_graph_hook.py and, before 0.5.19, server_args.py of each wheel.
"""

from collections.abc import Callable
from typing import NamedTuple

from sizing.memory.multimodal import is_multimodal
from sizing.memory.release import Span, Table, at
from sizing.memory.stated import GraphKind, Stated

# What a release captures on NVIDIA unless something speaks against it. Up to 0.5.9 only when asked.
DEFAULT_KIND: Table[GraphKind] = ((4, "disabled"), (10, "piecewise"), (14, "tc_piecewise"), (15, "breakable"))
OPT_IN = Span(4, 9)
ENFORCED = Span(10, 13)  # --enforce-piecewise-cuda-graph wins over everything
PHASES_SINCE = 14  # --disable-cuda-graph reaches the prefill graph, and a backend can be given by flag
ROLES_SINCE = 16  # a prefill server has no decode graphs, a decode server no prefill graph
FULL_BY_DEFAULT = {"InklingForConditionalGeneration": 16, "InklingForConditionalGenerationMTP": 16}

# Multimodal models that keep a graph, by the first release that lets them.
BREAKABLE_PERMIT = {
    "Qwen3_5ForConditionalGeneration": 16,
    "Qwen3_5MoeForConditionalGeneration": 16,
    "InternS2MobiusForConditionalGeneration": 18,
    "KimiK3ForConditionalGeneration": 18,
    "KimiK25ForConditionalGeneration": 18,
    "Glm5NextForConditionalGeneration": 20,
    "Qwen4ExpForConditionalGeneration": 22,
}
# multimodal_piecewise_cuda_graph_supported_model_archs: these are captured by torch.compile instead.
PIECEWISE_PERMIT = {"KimiK25ForConditionalGeneration": Span(16, 17)}
# piecewise_cuda_graph_disabled_model_archs, without DeepSeek-V4 and diffusion models.
PIECEWISE_REFUSED = {
    "Qwen3NextForCausalLM": Span(10),
    "BailingMoeV2_5ForCausalLM": Span(10),
    "DeepseekV32ForCausalLM": Span(10, 12),
    "GlmMoeDsaForCausalLM": Span(10, 12),
    "Glm5NextForConditionalGeneration": Span(20),
}
GLM_KDA_ALLOWED_SINCE = 22
BREAKABLE_A2A = ("none", "deepep", "megamoe", "flashinfer")


class Graph(NamedTuple):
    """A kind of graph and the rule that gave it."""

    kind: GraphKind
    rule: str


class Blocker(NamedTuple):
    """Something that switches the default prefill graph off."""

    words: str
    span: Span
    applies: Callable[[Stated], bool]


def _has_permit(stated: Stated) -> bool:
    return BREAKABLE_PERMIT.get(stated.model.architecture, stated.minor + 1) <= stated.minor


def _kda_blocks(stated: Stated) -> bool:
    glm = stated.model.architecture == "Glm5NextForConditionalGeneration"
    return stated.model.kda and not (glm and stated.minor >= GLM_KDA_ALLOWED_SINCE)


def _piecewise_refused(stated: Stated) -> bool:
    span = PIECEWISE_REFUSED.get(stated.model.architecture)
    return span is not None and span.holds(stated.minor)


def _piecewise_permit(stated: Stated) -> bool:
    span = PIECEWISE_PERMIT.get(stated.model.architecture)
    return span is not None and span.holds(stated.minor)


# _handle_piecewise_cuda_graph (0.5.10 to 0.5.13), _disable_tc_piecewise_cudagraph_if_incompatible (since 0.5.14).
PIECEWISE_BLOCKERS = (
    Blocker("the architecture", Span(10), _piecewise_refused),
    Blocker("speculation", Span(10, 10), lambda s: s.speculative_algorithm is not None),
    Blocker("attention DP", Span(10), lambda s: s.attention_dp),
    Blocker("pipeline parallelism", Span(10), lambda s: s.pp_size > 1),
    Blocker("AMD", Span(10), lambda s: s.vendor == "AMD"),
    Blocker("the MoE all-to-all", Span(10), lambda s: s.moe_a2a_backend != "none"),
    Blocker("a multimodal model", Span(10), lambda s: is_multimodal(s) and not _piecewise_permit(s)),
    Blocker("HiCache", Span(10), lambda s: s.enable_hierarchical_cache),
    Blocker("PD disaggregation", Span(10), lambda s: s.disaggregation_mode != "null"),
    Blocker("DCP", Span(16), lambda s: s.dcp_size > 1),
)
# _disable_breakable_cudagraph_if_incompatible, and pipeline parallelism from _apply_cuda_graph_compatibility.
BREAKABLE_BLOCKERS = (
    Blocker("AMD", Span(15), lambda s: s.vendor == "AMD"),
    Blocker("pipeline parallelism", Span(19), lambda s: s.pp_size > 1),
    Blocker("KDA layers", Span(20), _kda_blocks),
    Blocker("latent attention", Span(15, 17), lambda s: s.model.mla),
    Blocker("Nemotron-H", Span(17, 17), lambda s: s.model.architecture.startswith("NemotronH")),
    Blocker("DCP", Span(16), lambda s: s.dcp_size > 1),
    Blocker("the MoE all-to-all", Span(15, 16), lambda s: s.moe_a2a_backend != "none"),
    Blocker("the MoE all-to-all", Span(17), lambda s: s.moe_a2a_backend not in BREAKABLE_A2A),
    Blocker("attention DP", Span(15, 16), lambda s: s.attention_dp),
    Blocker("a multimodal model", Span(15), lambda s: is_multimodal(s) and not _has_permit(s)),
)


def decode_graph(stated: Stated) -> Graph:
    """The decode graph: full unless a flag or the role switches it off."""
    if stated.disable_cuda_graph:
        return Graph("disabled", "off by --disable-cuda-graph")
    if stated.minor >= PHASES_SINCE and stated.disable_decode_cuda_graph:
        return Graph("disabled", "off by --disable-decode-cuda-graph")
    if stated.minor >= ROLES_SINCE and stated.disaggregation_mode == "prefill":
        return Graph("disabled", "a PD prefill server has none")
    return Graph("full", "the default")


def prefill_graph(stated: Stated) -> Graph:
    """The prefill graph of this release, or none."""
    release = stated.minor
    if OPT_IN.holds(release):
        if stated.enable_piecewise_cuda_graph:
            return Graph("piecewise", "on by --enable-piecewise-cuda-graph")
        return Graph("disabled", "up to 0.5.9 only by --enable-piecewise-cuda-graph")
    if release < PHASES_SINCE:
        return _one_flag(stated)
    return _by_backend(stated)


def _one_flag(stated: Stated) -> Graph:
    """0.5.10 to 0.5.13: --disable-cuda-graph says nothing of it."""
    if ENFORCED.holds(stated.minor) and stated.enforce_piecewise_cuda_graph:
        return Graph("piecewise", "on by --enforce-piecewise-cuda-graph")
    if stated.disable_prefill_cuda_graph:
        return Graph("disabled", "off by --disable-piecewise-cuda-graph")
    return _default(stated, "piecewise")


def _by_backend(stated: Stated) -> Graph:
    """Since 0.5.14: a backend by flag wins and skips the table, also over --disable-cuda-graph."""
    if stated.cuda_graph_backend_prefill is not None:
        return Graph(stated.cuda_graph_backend_prefill, "given by --cuda-graph-backend-prefill")
    if _full(stated) and not stated.disable_prefill_cuda_graph:
        return Graph("full", "the model captures the whole prefill")
    if stated.disable_cuda_graph or stated.disable_prefill_cuda_graph:
        flag = "--disable-cuda-graph" if stated.disable_cuda_graph else "--disable-prefill-cuda-graph"
        return Graph("disabled", f"off by {flag}")
    graph = _default(stated, _kind(stated))
    if graph.kind != "disabled" and stated.minor >= ROLES_SINCE and stated.disaggregation_mode == "decode":
        return Graph("disabled", "a PD decode server has none")
    return graph


def _full(stated: Stated) -> bool:
    return FULL_BY_DEFAULT.get(stated.model.architecture, stated.minor + 1) <= stated.minor


def _kind(stated: Stated) -> GraphKind:
    kind = at(DEFAULT_KIND, stated.minor)
    return "tc_piecewise" if kind == "breakable" and _piecewise_permit(stated) else kind


def _default(stated: Stated, kind: GraphKind) -> Graph:
    blockers = BREAKABLE_BLOCKERS if kind == "breakable" else PIECEWISE_BLOCKERS
    for blocker in blockers:
        if blocker.span.holds(stated.minor) and blocker.applies(stated):
            return Graph("disabled", f"{blocker.words} switches it off in {stated.release}")
    return Graph(kind, f"the default of {stated.release}")
