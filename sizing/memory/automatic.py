"""What SGLang sets by itself before the first boot, each value with the rule that gave it.

Source: rest-before-boot.md section 1, and the functions it names in the wheels of RELEASES.
"""

from pydantic import BaseModel, ConfigDict

from sizing.memory import defaults
from sizing.memory.captured import captured
from sizing.memory.graphs import decode_graph, prefill_graph
from sizing.memory.multimodal import factor, pays_factor
from sizing.memory.release import Table, at
from sizing.memory.reserve import Chosen, Part, post_capture, reserve
from sizing.memory.stated import GraphKind, Stated
from sizing.releases.rules import rules_of

# The fraction where GPU memory is unknown.
UNKNOWN_FRACTION: Table[float] = ((4, 0.88), (20, 0.95))
# Post-capture sizing takes these MiB off for the image encoder, instead of the factor.
POST_CAPTURE_VISION_SINCE, POST_CAPTURE_VISION_MIB = 20, 8 * 1024

AITER_FACTOR, AITER_ABOVE_TOKENS = 0.85, 8192
AITER_MLA_HEADS = (16, 128)  # KV heads per rank that aiter serves under latent attention
AITER_SHOWN_SINCE = 5  # before, the model runner multiplied and the printed flag did not show it
AITER_SPARES_GIVEN_SINCE = 19


class Rule(BaseModel):
    """One value that SGLang sets, or that a flag gave."""

    model_config = ConfigDict(frozen=True)

    name: str
    """As SGLang writes it."""
    value: str
    rule: str
    """What gave it, in words."""
    given: bool
    """Whether a flag gave it."""


class Automatic(BaseModel):
    """What a release sets by itself. Sizes in MiB, of one rank."""

    model_config = ConfigDict(frozen=True)

    mem_fraction_static: float
    """As the rule gives it; 0 or below where the reserve is larger than the GPU."""
    mem_fraction_static_used: float | None
    """After the aiter factor; None where AMD's attention backend cannot be told."""
    reserved_mib: float | None
    """What the rule sets aside; None where the fraction is given."""
    reserve: tuple[Part, ...]
    chunked_prefill_size: int
    """Tokens, as the rule uses them."""
    chunked_prefill_size_per_rank: int
    """After attention DP divided it."""
    cuda_graph_max_bs: int
    decode_graph: GraphKind
    prefill_graph: GraphKind
    prefill_graph_max_tokens: int | None
    prefill_graph_sizes: int
    """How many token counts the prefill graph captures."""
    post_capture: bool
    """Whether the pools are sized after the graphs are captured."""
    rules: tuple[Rule, ...]
    """What the panel shows."""


def automatic(stated: Stated) -> Automatic:
    """Everything that the release sets from these inputs.

    >>> from sizing.memory.stated import ModelFacts
    >>> qwen = ModelFacts(architecture="Qwen3NextForCausalLM", mla=False)
    >>> automatic(Stated(release="0.5.23", model=qwen, gpu_memory_mib=143771, tp_size=8)).mem_fraction_static
    0.893
    """
    chunk, max_bs = defaults.chunked_prefill_size(stated), defaults.decode_max_bs(stated)
    decode, prefill = decode_graph(stated), prefill_graph(stated)
    sizes = captured(stated, prefill.kind, chunk.value)
    chosen = Chosen(chunk.value, max_bs.value, decode, prefill, sizes)
    parts = reserve(stated, chosen) if stated.mem_fraction_static is None else ()
    fraction, fraction_rule = _fraction(stated, chosen, parts)
    used, used_rule = _used(stated, fraction)
    count, top = (len(sizes.sizes), sizes.top) if sizes else (0, None)
    per_rank = chunk.value // stated.attn_dp_size
    assumed = rules_of(stated.release).speculation_requests  # set after the fraction
    graph_flags = stated.cuda_graph_max_bs is not None or stated.cuda_graph_bs is not None
    rules = (
        _rule("mem_fraction_static", f"{fraction:.6g}", fraction_rule, stated.mem_fraction_static is not None),
        *([_rule("mem_fraction_static, used", _shown(used), used_rule)] if used != fraction else []),
        _rule("chunked_prefill_size", f"{chunk.value:,}", chunk.rule, stated.chunked_prefill_size is not None),
        *([_rule("chunked_prefill_size, per DP rank", f"{per_rank:,}", "divided by the attention-DP width")]
          if stated.attention_dp else []),
        _rule("cuda_graph_max_bs", f"{max_bs.value:,}", max_bs.rule, graph_flags),
        _rule("decode graph", decode.kind, decode.rule),
        _rule("prefill graph", prefill.kind, prefill.rule),
        *([_rule("prefill graph sizes", f"{count:,}", f"up to {sizes.top:,} tokens: {sizes.rule}")] if sizes else []),
        *([_rule("max_running_requests", f"{assumed}", "speculation, where it is not given")]
          if stated.speculative_algorithm is not None and stated.max_running_requests is None else []),
    )  # fmt: skip
    return Automatic(
        mem_fraction_static=fraction,
        mem_fraction_static_used=used,
        reserved_mib=sum(part.mib for part in parts) if parts else None,
        reserve=parts,
        chunked_prefill_size=chunk.value,
        chunked_prefill_size_per_rank=per_rank,
        cuda_graph_max_bs=max_bs.value,
        decode_graph=decode.kind,
        prefill_graph=prefill.kind,
        prefill_graph_max_tokens=top,
        prefill_graph_sizes=count,
        post_capture=post_capture(stated, chosen),
        rules=rules,
    )


def _fraction(stated: Stated, chosen: Chosen, parts: tuple[Part, ...]) -> tuple[float, str]:
    """Rounded to three digits first; the multimodal factor comes after, so that it leaves many digits."""
    if stated.mem_fraction_static is not None:
        return stated.mem_fraction_static, "given"
    memory, reserved = stated.gpu_memory_mib, sum(part.mib for part in parts)
    if memory is None:
        fraction, words = at(UNKNOWN_FRACTION, stated.minor), "GPU memory unknown"
    else:
        fraction = round((memory - reserved) / memory, 3)
        words = f"({memory:,.0f} - {reserved:,.0f}) / {memory:,.0f} MiB, rounded to 3 digits"
    if not pays_factor(stated):
        return fraction, words
    if stated.minor >= POST_CAPTURE_VISION_SINCE and post_capture(stated, chosen):
        taken = POST_CAPTURE_VISION_MIB / memory if memory is not None else 0.0
        return fraction - taken, f"{words}; less 8 GiB for the image encoder"
    by = factor(stated.model)
    return fraction * by, f"{words}; x {by:.6g} for a multimodal model" if by != 1 else words


def _used(stated: Stated, fraction: float) -> tuple[float | None, str]:
    """What the pools get: aiter takes 15 % off for its workspace, above 8,192 tokens of context."""
    aiter = _aiter(stated)
    if aiter is None:
        return None, "AMD runs aiter at 16 or 128 KV heads per rank, triton at others; KV heads are not known"
    context = stated.context_length or stated.model.context_length
    # Unknown counts as long: every hybrid that is served reads more than 8,192 tokens unless a flag cuts it.
    if not aiter or (context is not None and context <= AITER_ABOVE_TOKENS):
        return fraction, ""
    given = stated.mem_fraction_static is not None
    if given and stated.aiter_honors_fraction and stated.minor >= AITER_SPARES_GIVEN_SINCE:
        return fraction, ""
    hidden = "" if stated.minor >= AITER_SHOWN_SINCE else "; the printed flag does not show it"
    return fraction * AITER_FACTOR, f"x 0.85 for aiter above 8,192 tokens of context{hidden}"


def _aiter(stated: Stated) -> bool | None:
    """Whether attention runs on aiter: by flag, or as AMD's default. None where that cannot be told."""
    if stated.attention_backend is not None:
        return stated.attention_backend == "aiter"
    if stated.vendor != "AMD":
        return False
    if not stated.model.mla:
        return True
    if stated.model.kv_heads is None:
        return None
    return max(1, stated.model.kv_heads // stated.tp_size) in AITER_MLA_HEADS


def _rule(name: str, value: str, rule: str, given: bool = False) -> Rule:
    return Rule(name=name, value=value, rule=rule, given=given)


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.6g}"
