"""What is stated before the first boot: the model's facts, the hardware and the flags that the automatic values read.

Not read, since no case covers it: NPU, XPU, CPU and MUSA, two-batch overlap, attention context parallelism, LoRA,
GGUF, deterministic mode, torch.compile, expert recording, KV sharding and the JSON of --cuda-graph-config.
Source: rest-before-boot.md sections 1 and 6.
"""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from sizing.memory.release import minor
from sizing.models.fields import MAX_RANKS, MAX_WIDTH, Fields, checked_object
from sizing.releases.rules import COVERED, RELEASES

Vendor = Literal["NVIDIA", "AMD"]
GraphKind = Literal["disabled", "full", "breakable", "piecewise", "tc_piecewise"]

SUB_CONFIGS = ("text_config", "llm_config", "language_config", "thinker_config")
"""What makes a model's text config a separate one. Source: utils/hf_transformers/common.py, get_hf_text_config."""


class ModelFacts(BaseModel):
    """What the automatic values read of a model."""

    model_config = ConfigDict(frozen=True)

    architecture: str
    """The first of config.json's architectures."""
    mla: bool
    """Whether attention is latent (MLA or DSA)."""
    kv_heads: int | None = Field(default=None, ge=0, le=MAX_WIDTH)
    """KV heads of the whole model; it decides AMD's attention backend under MLA."""
    kda: bool = False
    """Whether config.json names KDA layers the way the engine looks for them."""
    separate_text_config: bool = False
    vision: bool = False
    """Whether there is a vision_config."""
    audio: bool = False
    vision_layers: int | None = Field(default=None, ge=0, le=MAX_WIDTH)
    """vision_config.num_hidden_layers; None where the file does not call them so."""
    vision_hidden: int | None = Field(default=None, ge=0, le=MAX_WIDTH)
    """vision_config.hidden_size; None where the file does not call it so."""
    language_model_only: bool = False
    """What the checkpoint says of itself."""
    context_length: int | None = Field(default=None, ge=1)
    """Tokens; None where the file does not say."""


def model_facts(
    config: dict[str, Any], mla: bool, kv_heads: int | None = None, context_length: int | None = None
) -> ModelFacts:
    """The facts of a config.json. Raises ModelRefusedError for fields of a wrong type.

    >>> model_facts({"architectures": ["LlamaForCausalLM"]}, mla=False).vision
    False
    """
    outer = Fields(checked_object(config))
    named = outer.items("architectures") if outer.has("architectures") else ()
    architecture = named[0] if named and isinstance(named[0], str) else ""
    vision = outer.inner("vision_config") if outer.is_object("vision_config") else Fields({}, "vision_config.")
    return ModelFacts(
        architecture=architecture,
        mla=mla,
        kv_heads=kv_heads,
        kda=_kda(outer) or (outer.is_object("text_config") and _kda(outer.inner("text_config"))),
        separate_text_config=any(outer.is_object(name) for name in SUB_CONFIGS),
        vision=outer.is_object("vision_config"),
        audio=outer.is_object("audio_config"),
        vision_layers=_count(vision, "num_hidden_layers"),
        vision_hidden=_count(vision, "hidden_size"),
        language_model_only=outer.true("language_model_only"),
        context_length=context_length,
    )


def _count(fields: Fields, name: str) -> int | None:
    return fields.whole(name, low=0) if fields.has(name) else None


def _kda(fields: Fields) -> bool:
    """configs/model_config.py, uses_kda_attention (0.5.20 to 0.5.23)."""
    if fields.is_object("linear_attn_config"):
        linear = fields.inner("linear_attn_config")
        if linear.is_list("kda_layers") and linear.items("kda_layers"):
            return True
    listed = fields.is_list("layer_types") and "linear_attention" in fields.items("layer_types")
    return listed and fields.has("linear_num_heads") and fields.has("linear_head_dim")


class Stated(BaseModel):
    """One deployment as its flags state it. None is a flag that is not given."""

    model_config = ConfigDict(frozen=True)

    release: str
    model: ModelFacts
    vendor: Vendor = "NVIDIA"
    gpu_memory_mib: float | None = Field(default=None, gt=0, le=2**30)
    """The smallest GPU of the machine, as the engine reads it; None where no tool tells it."""
    tp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    pp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    attn_dp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    """Width of attention data parallelism; before 0.5.22 --dp-size with --enable-dp-attention."""
    dcp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    mem_fraction_static: float | None = Field(default=None, gt=0, lt=1)
    chunked_prefill_size: int | None = Field(default=None, ge=-1, le=MAX_WIDTH)
    """Tokens; -1 switches chunking off."""
    max_prefill_tokens: int = Field(default=16384, ge=1, le=MAX_WIDTH)
    max_running_requests: int | None = Field(default=None, ge=1, le=MAX_WIDTH)
    max_total_tokens: int | None = Field(default=None, ge=1)
    context_length: int | None = Field(default=None, ge=1)
    cuda_graph_max_bs: int | None = Field(default=None, ge=1, le=MAX_WIDTH)
    cuda_graph_bs: tuple[int, ...] | None = None
    """Decode graph sizes given by hand; at least one."""
    disable_cuda_graph: bool = False
    disable_decode_cuda_graph: bool = False
    disable_prefill_cuda_graph: bool = False
    """Before 0.5.14 --disable-piecewise-cuda-graph."""
    cuda_graph_backend_prefill: GraphKind | None = None
    enable_piecewise_cuda_graph: bool = False
    """Up to 0.5.9."""
    enforce_piecewise_cuda_graph: bool = False
    """0.5.10 to 0.5.13."""
    speculative_algorithm: str | None = None
    speculative_num_draft_tokens: int | None = Field(default=None, ge=1, le=MAX_WIDTH)
    moe_a2a_backend: str = "none"
    disaggregation_mode: Literal["null", "prefill", "decode"] = "null"
    enable_hierarchical_cache: bool = False
    enable_unified_memory: bool = False
    language_only: bool = False
    language_model_only: bool = False
    attention_backend: str | None = None
    kv_cache_dtype: str = "auto"
    post_capture_kv_sizing: bool = False
    """SGLANG_ENABLE_POST_CAPTURE_KV_SIZING=1."""
    aiter_honors_fraction: bool = False
    """SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION=1."""

    @field_validator("release")
    @classmethod
    def _release_was_read(cls, release: str) -> str:
        if release not in RELEASES:
            raise ValueError(f"must be one of {COVERED}: no other wheel was read")
        return release

    @model_validator(mode="after")
    def _sizes_are_sizes(self) -> Self:
        if self.cuda_graph_bs is not None and not (
            self.cuda_graph_bs and all(1 <= size <= MAX_WIDTH for size in self.cuda_graph_bs)
        ):
            raise ValueError("cuda_graph_bs must list at least one size, each above 0")
        return self

    @property
    def minor(self) -> int:
        """The last number of the release."""
        return minor(self.release)

    @property
    def attention_dp(self) -> bool:
        """Whether attention runs data-parallel."""
        return self.attn_dp_size > 1
