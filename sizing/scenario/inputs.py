"""Scenario: every input of a deployment, declared once. Widgets, link, file and command line all read this.

It holds what a user states and never what we compute. The defaults are the worked example of the
specification (compute-mamba-ratio.md): Kimi-K3 at TP8, whose byte constants follow from its geometry
(model-geometry.md section 5) and whose `rest` reproduces the boot log quoted there.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, cast, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo

from sizing.basics.dtypes import KV_ITEMSIZE, STATE_ITEMSIZE, KvDtype, StateDtype
from sizing.basics.problems import Problem, from_validation, shown
from sizing.basics.units import count, stated_ratio_text, tokens_from_text, ungrouped
from sizing.memory.loaded import OWN_DRAFTS
from sizing.models.geometry import DEFAULT_RING_LENGTH, Geometry
from sizing.models.kv import SWA_FULL_TOKENS_RATIO
from sizing.models.refusal import ModelRefusedError
from sizing.releases.flags import has_flag
from sizing.releases.rules import LATEST, Release, rules_of
from sizing.scenario.from_model import FILLED, INKLING_RATIO, Widths, filled
from sizing.scenario.registry import Condition, Group, Input, Kind, Widget
from sizing.scenario.rest import (
    EXAMPLE_REST_GIB,
    OWN_DEPLOYMENT,
    STATED_SOURCES,
    Checkpoint,
    RestSource,
    gpu_named,
    rest_of,
)

Strategy = Literal["auto", "extra_buffer", "extra_buffer_lazy", "no_buffer"]
SplitMode = Literal["ratio", "balanced", "pin"]
Source = Literal["model geometry", "boot log", "typed in"]
Family = Literal["KDA", "GDN", "Mamba2", "other"]
Attention = Literal["MLA", "GQA", "QSA", "DSA", "GQA and sliding window", "none"]
Role = Literal["null", "prefill", "decode"]
ReplaySsm = Literal["off", "spec", "decode", "both"]
Transfer = Literal["mooncake", "nixl", "ascend", "mori", "fake"]
LinearBackend = Literal["triton", "flashinfer", "cutedsl", "helion", "flashkda"]
AttentionBackend = Literal[
    "auto", "triton", "fa3", "fa4", "flashinfer", "flashmla", "trtllm_mha", "trtllm_mla", "cutedsl_mla", "cutlass_mla",
    "tokenspeed_mla", "torch_native", "flex_attention", "dual_chunk_flash_attn", "nsa", "dsa", "aiter", "wave",
    "ascend", "intel_amx", "intel_xpu",
]  # fmt: skip
MoeBackend = Literal["none", "deepep", "mooncake", "nixl", "mori", "ascend_fuseep", "flashinfer", "megamoe"]
Algorithm = Literal["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK"]

DEFAULT_RATIO = 0.9  # engine-sizing.md section 5, `--mamba-full-memory-ratio` unset, every release
MAX_BYTES = 2**50  # a bound for hostile input, far above any GPU
MAX_REST_GIB = 65_536
MAX_RATIO = 1_000_000_000
MAX_REQUESTS = 1_000_000
MAX_D = 512
MAX_DCP = 64
MAX_PIN = 10_000_000  # [slots of the deployment]
MAX_L = 2**24
# Twice this (rescaled to float32), times the most requests, times the most drafts, still fits an int64.
MAX_SLOT_BYTES = 2**33
# This, times the longest ring, times the most requests, fits an int64 too.
MAX_RING_BYTES = 2**26


CARRIED = "input"  # under which a field holds what the registry says of it
GEOMETRY = "geometry"  # under which validation finds the geometry of a configuration that is not catalogued


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    return value


Whole = Annotated[int, BeforeValidator(ungrouped), BeforeValidator(_no_bool)]
Tokens = Annotated[int, BeforeValidator(tokens_from_text), BeforeValidator(_no_bool)]
Real = Annotated[float, BeforeValidator(_no_bool)]
if TYPE_CHECKING:
    Rest = float
    DraftBytes = int
else:  # None is how one leaves them unstated: a Scenario that stands holds a number, found or following from the model
    Rest = Annotated[float | None, BeforeValidator(_no_bool)]
    DraftBytes = Annotated[int | None, BeforeValidator(ungrouped), BeforeValidator(_no_bool)]


OF_MODEL, OF_MACHINE = "It is a fact of the model.", "It is a fact of the machine."  # why there is no flag


def _input(  # noqa: PLR0913 - each is one column of the registry
    default: object,
    title: str,
    help: str,
    *,
    group: Group,
    widget: Widget | None = None,
    hidden: bool = False,
    unit: str = "",
    flag: str = "",
    aliases: tuple[str, ...] = (),
    no_flag: str = "",
    log_keys: tuple[str, ...] = (),
    hint: str = "",
    source: str = "",
    counts: Condition = "always",
    **bounds: Any,
) -> Any:
    """A field of Scenario; registry.py says what each of these is. Without `widget` it follows from the type."""
    carried: Any = {
        "group": group, "widget": widget, "hidden": hidden, "unit": unit, "flag": flag, "aliases": aliases,
        "no_flag": no_flag, "log_keys": log_keys, "hint": hint, "source": source, "counts": counts,
    }  # fmt: skip
    return Field(default, title=title, description=help, json_schema_extra={CARRIED: carried}, **bounds)


class Scenario(BaseModel):
    """What a user states about one deployment. Bytes, GiB, slots and tokens are per rank unless said otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = _input(
        "",
        "Name",
        "Free text printed on the figures; empty is the model and its TP width.",
        group="Name and conv dtype",
        no_flag="It is printed on figures.",
        hint="model and TP width",
        counts="never",
        max_length=60,
        pattern=r"^[\w .,:;+\-/()=]*$",
    )
    model: str = _input(
        "moonshotai/Kimi-K3",
        "Model",
        "A catalogued checkpoint, whose bytes then follow from its geometry at the widths and dtypes below; empty: the "
        "bytes are typed in.",
        group="Deployment",
        widget="own",
        no_flag="--model-path names a folder or a repository: one of the catalogue is recognised by its last part.",
        max_length=100,
    )
    L: Tokens = _input(
        9216,
        "L, context per request",
        "Average context of one request: input plus output tokens. 32K is 32,768.",
        group="Workload",
        widget="own",
        unit="tokens",
        no_flag="It is a fact of the requests.",
        ge=1,
        le=MAX_L,
    )
    D: Whole = _input(
        0,
        "D, draft tokens",
        "Plain speculation keeps D draft states for each running request. 0 is no speculation.",
        group="Workload",
        widget="slider",
        unit="tokens",
        flag="--speculative-num-draft-tokens",
        log_keys=("speculative_num_draft_tokens",),
        ge=0,
        le=MAX_D,
    )
    dcp_size: Whole = _input(
        1,
        "dcp_size",
        "Decode context parallelism: the KV rows of one request are spread over this many ranks.",
        group="Serving",
        widget="slider",
        flag="--dcp-size",
        aliases=("--decode-context-parallel-size",),
        log_keys=("dcp_size",),
        ge=1,
        le=MAX_DCP,
    )
    gpu: Annotated[str, BeforeValidator(gpu_named)] = _input(
        "",
        "GPU",
        "The GPU of every rank, by its name here or as people call it (H200, MI300X); other: its memory is stated. "
        "Empty: not stated, and rest is not estimated.",
        group="Deployment",
        widget="own",
        no_flag=OF_MACHINE,
        max_length=60,
    )
    gpu_memory_mib: Whole | None = _input(
        None,
        "GPU memory",
        "Of a GPU that is not listed: memory.total of nvidia-smi, Size of Pool 1 of rocminfo.",
        group="Deployment",
        hidden=True,
        unit="MiB",
        no_flag=OF_MACHINE,
        hint="memory.total of nvidia-smi",
        counts="for a GPU that is not listed",
        ge=1024,
        le=2**30,
    )
    tp_size: Whole = _input(
        8,
        "tp_size",
        "Tensor parallelism. With attn_dp_size and dcp_size it decides how many KV heads of GQA one rank keeps.",
        group="Deployment",
        flag="--tp-size",
        aliases=("--tensor-parallel-size",),
        log_keys=("tp_size",),
        ge=1,
        le=1024,
    )
    mamba_ssm_dtype: StateDtype = _input(
        "float32",
        "SSM dtype",
        "Rescales the SSM part of a slot; the conv part has a dtype of its own.",
        group="Deployment",
        flag="--mamba-ssm-dtype",
        aliases=("SGLANG_MAMBA_SSM_DTYPE",),
        log_keys=("mamba_ssm_dtype",),
    )
    mamba_conv_dtype: StateDtype = _input(
        "bfloat16",
        "Conv dtype",
        "Rescales the conv part of a slot. It never follows --mamba-ssm-dtype.",
        group="Name and conv dtype",
        flag="SGLANG_MAMBA_CONV_DTYPE",
    )
    kv_cache_dtype: KvDtype = _input(
        "fp8_e4m3",
        "KV dtype",
        "Rescales the bytes of a token, exact for plain MLA and GQA. For DSA and QSA state the bytes at the dtype you "
        "run.",
        group="Deployment",
        flag="--kv-cache-dtype",
        log_keys=("kv_cache_dtype",),
    )
    rest_gib: Rest = _input(
        None,
        "rest",
        "What both pools share on one rank: free memory when the pools are sized, less the slack of "
        "--mem-fraction-static. From a boot log: `Load weight end` avail minus `Load weight begin` avail "
        "x (1 - mem_fraction_static). The log's `avail mem` alone still contains that slack. Left empty: for the "
        f"worked example {EXAMPLE_REST_GIB} GiB; with a GPU chosen, an estimate; else unknown.",
        group="Deployment",
        widget="own",
        unit="GiB per rank",
        no_flag="The engine works it out from --mem-fraction-static.",
        hint="not stated",
        source="rest_source",
        ge=-1024,
        le=MAX_REST_GIB,
    )
    rest_source: RestSource = _input(
        "typed in",
        "rest from",
        "Where rest comes from; what is estimated or not known says so by itself.",
        group="Deployment",
        widget="none",
        no_flag="It goes with rest.",
    )
    free_gib: Real | None = _input(
        None,
        "Free before load",
        "Free memory before weights are loaded: avail mem of the first `Load weight begin`; MemAvailable where host "
        "and GPU share memory. Unset: what was seen on such GPUs.",
        group="Memory before the boot",
        unit="GiB per rank",
        no_flag=OF_MACHINE,
        hint="as seen on such GPUs",
        counts="where rest is estimated",
        gt=0,
        le=MAX_REST_GIB,
    )
    mem_fraction_static: Real | None = _input(
        None,
        "mem_fraction_static",
        "The share of free memory for weights and pools. Unset: what the release computes for this GPU.",
        group="Memory before the boot",
        flag="--mem-fraction-static",
        hint="automatic",
        counts="where rest is estimated",
        gt=0,
        lt=1,
    )
    checkpoint: Checkpoint = _input(
        "auto",
        "Checkpoint",
        "How weights are stored: as the model's name or config.json says, or bf16, FP8 in blocks, experts in 4 bits.",
        group="Memory before the boot",
        no_flag=OF_MODEL,
        counts="where rest is estimated",
    )
    weights_bytes: Whole | None = _input(
        None,
        "Checkpoint bytes",
        "total_size of model.safetensors.index.json, spread evenly over ranks. Unset: counted from the geometry.",
        group="Memory before the boot",
        unit="bytes",
        no_flag=OF_MODEL,
        hint="counted",
        counts="where rest is estimated",
        ge=1,
        le=MAX_BYTES,
    )
    draft_weights_bytes: Whole | None = _input(
        None,
        "Draft weights",
        "Of a draft model of its own. Unset: the checkpoint's MTP layer, where it has one.",
        group="Memory before the boot",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        hint="the checkpoint's MTP layer",
        counts="where rest is estimated",
        ge=0,
        le=MAX_BYTES,
    )
    language_only: bool = _input(
        False,
        "Language only",
        "A multimodal model without its encoder: the fraction is not lowered for images.",
        group="Memory before the boot",
        flag="--language-only",
        counts="where rest is estimated",
    )
    chunked_prefill_size: Whole | None = _input(
        None,
        "chunked_prefill_size",
        "Unset: by the GPU's memory. The automatic fraction follows it.",
        group="Memory before the boot",
        unit="tokens",
        flag="--chunked-prefill-size",
        hint="automatic",
        counts="where rest is estimated",
        ge=-1,
        le=2**24,
    )
    cuda_graph_max_bs: Whole | None = _input(
        None,
        "cuda_graph_max_bs",
        "Requests in the largest decode graph. Unset: by the GPU's memory. The automatic fraction follows it.",
        group="Memory before the boot",
        unit="requests",
        flag="--cuda-graph-max-bs-decode",
        aliases=("--cuda-graph-max-bs",),
        hint="automatic",
        counts="where rest is estimated",
        ge=1,
        le=2**24,
    )
    moe_a2a_backend: MoeBackend = _input(
        "none",
        "MoE all-to-all",
        "Expert parallelism: how tokens travel between ranks. Under DeepEP shared experts are on every rank.",
        group="Memory before the boot",
        flag="--moe-a2a-backend",
        counts="where rest is estimated",
    )
    split: SplitMode = _input(
        "ratio",
        "Split by",
        "How the two pools are split: by a ratio, by the balanced ratio r*, or by pinned slots.",
        group="Split",
        widget="own",
        no_flag="A pin in the command decides it.",
    )
    mamba_full_memory_ratio: Real = _input(
        DEFAULT_RATIO,
        "Ratio r",
        "State budget : KV budget. The engine's default is 0.9; above 1 is legal.",
        group="Split",
        widget="number",
        hidden=True,
        flag="--mamba-full-memory-ratio",
        log_keys=("mamba_full_memory_ratio",),
        counts="where the split is by ratio",
        gt=0,
        le=MAX_RATIO,
    )
    max_mamba_cache_size: Whole | None = _input(
        None,
        "Pinned slots",
        "State slots, divided by attn_dp_size. A pin overrides the ratio; what it takes beyond the ratio comes out "
        "of KV.",
        group="Split",
        hidden=True,
        unit="slots",
        flag="--max-mamba-cache-size",
        log_keys=("max_mamba_cache_size",),
        counts="where the split is pinned",
        ge=1,
        le=MAX_PIN,
    )
    mamba_radix_cache_strategy: Strategy = _input(
        "auto",
        "Strategy",
        "How prefix-cache snapshots are kept. Decides S, the state slots per running request. auto is the engine's "
        "default: extra_buffer where the architecture supports it, else no_buffer.",
        group="Serving",
        flag="--mamba-radix-cache-strategy",
        aliases=("--mamba-scheduler-strategy",),
        log_keys=("mamba_radix_cache_strategy", "mamba_scheduler_strategy"),
        counts="with the radix cache on",
    )
    release: Release = _input(
        LATEST,
        "SGLang release",
        "The release whose rules are followed.",
        group="Serving",
        no_flag="It is the engine's own version.",
    )
    architecture: str = _input(
        "",
        "Architecture",
        "The first of `architectures` in the model's config.json. Releases differ in what they do with it: whether "
        "they serve it, keep a radix cache, take extra_buffer. Empty: one that every release serves, like Qwen3-Next.",
        group="Byte constants",
        no_flag=OF_MODEL,
        max_length=100,
        pattern=r"^[\w.\-]*$",
    )
    linear_attn_backend: LinearBackend = _input(
        "triton",
        "Linear attention backend",
        "Since 0.5.14 extra_buffer needs triton.",
        group="Scheduler and cache",
        flag="--linear-attn-backend",
        counts="with the radix cache on",
    )
    attention_backend: AttentionBackend = _input(
        "auto",
        "Attention backend",
        "auto is the engine's choice; here that of a Hopper GPU (SM90). Unified memory needs certain ones.",
        group="Scheduler and cache",
        flag="--attention-backend",
        counts="with unified memory",
    )
    mamba_track_interval: Whole = _input(
        256,
        "mamba_track_interval",
        "extra_buffer takes a snapshot every so many tokens: a multiple of page_size, and at least D.",
        group="Scheduler and cache",
        unit="tokens",
        flag="--mamba-track-interval",
        log_keys=("mamba_track_interval",),
        counts="with the radix cache on",
        ge=1,
        le=2**24,
    )
    disable_radix_cache: bool = _input(
        False,
        "Radix cache off",
        "No prefix reuse: one slot a request.",
        group="Scheduler and cache",
        flag="--disable-radix-cache",
        log_keys=("disable_radix_cache",),
    )
    disable_overlap_schedule: bool = _input(
        False,
        "Overlap off",
        "Turns the overlap scheduler off. Pipeline parallelism turns it off as well.",
        group="Scheduler and cache",
        flag="--disable-overlap-schedule",
        log_keys=("disable_overlap_schedule",),
    )
    skip_decode_lock: bool = _input(
        False,
        "Skip decode lock",
        "Frees one resident slot per running request during decode.",
        group="Scheduler and cache",
        flag="SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK",
    )
    pp_size: Whole = _input(
        1,
        "pp_size",
        "Pipeline stages. Give the state bytes of the stage with most linear layers "
        "and the KV bytes of the stage with most attention layers.",
        group="Ranks and roles",
        flag="--pp-size",
        aliases=("--pipeline-parallel-size",),
        log_keys=("pp_size",),
        ge=1,
        le=64,
    )
    attn_dp_size: Whole = _input(
        1,
        "attn_dp_size",
        "Attention data parallelism: each of so many ranks has pools of its own. Give the bytes of one such rank.",
        group="Ranks and roles",
        flag="--attn-dp-size",
        aliases=("--attention-data-parallel-size",),
        log_keys=("attn_dp_size",),
        ge=1,
        le=1024,
    )
    disaggregation_mode: Role = _input(
        "null",
        "Role",
        "Prefill and decode on servers of their own, or null for one server that does both.",
        group="Ranks and roles",
        flag="--disaggregation-mode",
        log_keys=("disaggregation_mode",),
    )
    disaggregation_decode_extra_slots: Whole | None = _input(
        None,
        "Extra decode rows",
        "Rows that a PD decode server keeps for requests in transfer; nothing is charged for them. Unset: twice "
        "--max-running-requests where that is at most 32 on a rank, else none.",
        group="Ranks and roles",
        unit="requests",
        flag="--disaggregation-decode-extra-slots",
        hint="twice the requests, or none",
        counts="on a decode server",
        ge=0,
        le=MAX_REQUESTS,
    )
    disaggregation_decode_enable_radix_cache: bool = _input(
        False,
        "Radix cache on a decode server",
        "A PD decode server runs without radix cache (S = 1) unless this is set.",
        group="Ranks and roles",
        flag="--disaggregation-decode-enable-radix-cache",
        log_keys=("disaggregation_decode_enable_radix_cache",),
        counts="on a decode server",
    )
    disaggregation_transfer_backend: Transfer = _input(
        "mooncake",
        "Transfer backend",
        "How KV goes from prefill to decode servers. Some releases refuse some of them.",
        group="Ranks and roles",
        flag="--disaggregation-transfer-backend",
        counts="on a prefill or decode server",
    )
    enable_unified_memory: bool = _input(
        False,
        "Unified memory",
        "One buffer for both pools. Slots, S and requests are those of the static split.",
        group="Scheduler and cache",
        flag="--enable-unified-memory",
        log_keys=("enable_unified_memory",),
    )
    enable_hierarchical_cache: bool = _input(
        False,
        "Hierarchical cache",
        "A second tier of the cache in host memory. It changes no pool on the GPU; some releases refuse it.",
        group="Scheduler and cache",
        flag="--enable-hierarchical-cache",
        counts="never",
    )
    enable_int8_mamba_checkpoint: bool = _input(
        False,
        "int8 checkpoints",
        "Cached states are kept as int8 in a pool of their own, which is charged to nobody.",
        group="Scheduler and cache",
        flag="--enable-int8-mamba-checkpoint",
        counts="never",
    )
    speculative_algorithm: Algorithm = _input(
        "EAGLE",
        "Speculative algorithm",
        "Counts where D is above 0. MTP is NEXTN. NGRAM has no draft KV; DFLASH and DSPARK are charged dcp_size times.",
        group="Speculation",
        flag="--speculative-algorithm",
        log_keys=("speculative_algorithm",),
        counts="with D above 0",
    )
    speculative_num_steps: Whole | None = _input(
        None,
        "Draft steps",
        "Unset: D - 1. Up to 0.5.6 EAGLE adds rows for what is drafted.",
        group="Speculation",
        flag="--speculative-num-steps",
        log_keys=("speculative_num_steps",),
        hint="D - 1",
        counts="with D above 0",
        ge=1,
        le=4096,
    )
    speculative_eagle_topk: Whole = _input(
        1,
        "Draft top-k",
        "1 drafts a chain, more a tree. It changes no pool; trees are refused with ReplaySSM and unified memory.",
        group="Speculation",
        flag="--speculative-eagle-topk",
        log_keys=("speculative_eagle_topk",),
        counts="with D above 0",
        ge=1,
        le=64,
    )
    replayssm: ReplaySsm = _input(
        "off",
        "ReplaySSM",
        "spec: --enable-linear-replayssm-spec, rings in place of draft states (GDN and KDA). "
        "decode: --enable-linear-replayssm, rings that the engine does not charge. The engine refuses both at once.",
        group="Speculation",
        no_flag="Two switches set it.",
    )
    linear_replayssm_cache_len: Whole = _input(
        DEFAULT_RING_LENGTH,
        "Ring length",
        "Positions in a ReplaySSM ring.",
        group="Speculation",
        flag="--linear-replayssm-cache-len",
        log_keys=("linear_replayssm_cache_len",),
        counts="with ReplaySSM",
        ge=1,
        le=4096,
    )
    ring_bytes_per_position: Whole | None = _input(
        1_275_120,
        "Ring bytes per position",
        "ReplaySSM ring of one request, all linear layers of one rank, divided by the ring length. Needed with "
        "ReplaySSM only. It holds for the conv dtype that runs.",
        group="Speculation",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        hint="unknown",
        source="state_bytes_source",
        counts="with ReplaySSM",
        ge=1,
        le=MAX_RING_BYTES,
    )
    family: Family = _input(
        "KDA",
        "Linear layers",
        "The kind of linear-attention layer. ReplaySSM exists for GDN and KDA and differs between them.",
        group="Byte constants",
        no_flag=OF_MODEL,
    )
    attention: Attention = _input(
        "MLA",
        "Attention layers",
        "MLA keeps one latent row whatever the parallelism; GQA keeps KV heads; DSA is MLA and QSA is GQA with an "
        "index; a sliding window has a pool of its own.",
        group="Byte constants",
        no_flag=OF_MODEL,
    )
    kv_heads: Whole | None = _input(
        None,
        "KV heads",
        "KV heads of the whole model, for GQA: a rank keeps max(1, heads // (attention TP // dcp_size)) of them.",
        group="Byte constants",
        no_flag=OF_MODEL,
        hint="GQA only",
        counts="for GQA",
        ge=1,
        le=4096,
    )
    page_size: Whole = _input(
        64,
        "page_size",
        "KV rows are handed out in pages.",
        group="Scheduler and cache",
        unit="tokens",
        flag="--page-size",
        log_keys=("page_size",),
        ge=1,
        le=4096,
    )
    index_page_tokens: Whole | None = _input(
        None,
        "Page of the index",
        "The page that a model's sparse index forces whatever --page-size says: 64 x index_kpool for GLM-5-next, 64 "
        "for Qwen4-Exp with an indexer.",
        group="Byte constants",
        unit="tokens",
        no_flag=OF_MODEL,
        hint="none",
        counts="for a sparse index",
        ge=1,
        le=2**20,
    )
    max_running_requests: Whole | None = _input(
        None,
        "max_running_requests",
        "The cap you ask for, divided by attn_dp_size. Unset: the engine's estimate, or 48 under speculation.",
        group="Workload",
        unit="requests",
        flag="--max-running-requests",
        log_keys=("max_running_requests",),
        hint="unset",
        ge=1,
        le=MAX_REQUESTS,
    )
    max_total_tokens: Tokens | None = _input(
        None,
        "max_total_tokens",
        "Caps the KV rows of one rank.",
        group="Limits",
        unit="tokens per rank",
        flag="--max-total-tokens",
        log_keys=("max_total_tokens",),
        hint="unset",
        ge=1,
        le=2**40,
    )
    context_length: Tokens = _input(
        262_144,
        "context_length",
        "The longest context the server accepts; it enters the engine's estimate of running requests.",
        group="Limits",
        unit="tokens",
        flag="--context-length",
        log_keys=("context_length",),
        ge=1,
        le=2**24,
    )
    state_bytes_per_slot: Whole = _input(
        56_171_520,
        "State bytes per slot",
        "One slot, all linear layers of one rank, conv and SSM parts together. From a boot log divide the "
        "printed sizes by max_mamba_cache_size + 1: they include the padding slot.",
        group="Byte constants",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        source="state_bytes_source",
        ge=1,
        le=MAX_SLOT_BYTES,
    )
    conv_bytes_per_slot: Whole | None = _input(
        1_907_712,
        "of which conv",
        "The part of a slot that --mamba-ssm-dtype leaves alone. Empty is unknown.",
        group="Byte constants",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        hint="unknown",
        source="state_bytes_source",
        ge=0,
        le=MAX_SLOT_BYTES,
    )
    state_bytes_dtype: StateDtype = _input(
        "float32",
        "State bytes are at",
        "The SSM dtype for which the bytes of a slot are stated.",
        group="Byte constants",
        no_flag=OF_MODEL,
    )
    conv_bytes_dtype: StateDtype = _input(
        "bfloat16",
        "Conv bytes are at",
        "The conv dtype for which the bytes of a slot are stated.",
        group="Byte constants",
        no_flag=OF_MODEL,
    )
    conv_kernel: Whole = _input(
        4,
        "Conv kernel",
        "Width of the short convolution. Under speculation GDN and Mamba2 keep D + kernel - 2 columns of drafts.",
        group="Byte constants",
        no_flag=OF_MODEL,
        counts="with D above 0",
        ge=2,
        le=64,
    )
    state_bytes_all_stages: Whole | None = _input(
        None,
        "State bytes, all stages",
        "One slot of the whole model on one rank, all pipeline stages together. Releases before 0.5.17 charge it on "
        "every stage.",
        group="Ranks and roles",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        hint="unknown",
        source="state_bytes_source",
        counts="with pp_size above 1",
        ge=1,
        le=MAX_SLOT_BYTES,
    )
    state_bytes_source: Source = _input(
        "model geometry",
        "State bytes from",
        "Where the bytes of a slot come from.",
        group="Byte constants",
        widget="none",
        no_flag=OF_MODEL,
        counts="without a model",
    )
    kv_bytes_per_token: Whole = _input(
        13_824,
        "KV bytes per token",
        "One row of the target model's KV pool on one rank, at the dtype and the dcp_size below.",
        group="Byte constants",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        source="kv_bytes_source",
        ge=0,
        le=MAX_BYTES,
    )
    kv_bytes_dtype: KvDtype = _input(
        "fp8_e4m3",
        "KV bytes are at",
        "The KV dtype for which the bytes of a token are stated.",
        group="Byte constants",
        no_flag=OF_MODEL,
    )
    kv_bytes_dcp_size: Whole = _input(
        1,
        "KV bytes are at dcp_size",
        "The dcp_size for which the bytes of a token are stated.",
        group="Byte constants",
        no_flag=OF_MODEL,
        ge=1,
        le=64,
    )
    kv_bytes_source: Source = _input(
        "model geometry",
        "KV bytes from",
        "Where the bytes of a token come from.",
        group="Byte constants",
        widget="none",
        no_flag=OF_MODEL,
        counts="without a model",
    )
    window_bytes_per_token: Whole = _input(
        0,
        "Window KV bytes per token",
        "One row of the window pool on one rank, at the dtype of the KV bytes; 0 without such a pool.",
        group="Byte constants",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        ge=0,
        le=MAX_BYTES,
    )
    sliding_window: Whole | None = _input(
        None,
        "Sliding window",
        "Tokens that a window layer looks back.",
        group="Byte constants",
        unit="tokens",
        no_flag=OF_MODEL,
        hint="none",
        ge=1,
        le=MAX_L,
    )
    swa_full_tokens_ratio: Real | None = _input(
        None,
        "Window pool",
        f"Rows of the window pool for each row of the full one. Unset: {SWA_FULL_TOKENS_RATIO} (Inkling).",
        group="Limits",
        widget="number",
        hidden=True,
        flag="--swa-full-tokens-ratio",
        hint=f"{SWA_FULL_TOKENS_RATIO}",
        counts="with a window pool",
        gt=0,
        le=1,
    )
    side_bytes_per_slot: Whole = _input(
        0,
        "Side state bytes per slot",
        "States beside the pool for which nothing is charged (Qwen4-Exp's per-layer embeddings).",
        group="Byte constants",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        ge=0,
        le=MAX_SLOT_BYTES,
    )
    draft_kv_layers: Whole | None = _input(
        None,
        "Draft KV layers",
        "Attention layers of the draft model; the bytes of its row then follow from the target's, as the engine "
        "takes them for EAGLE, EAGLE3, MTP and STANDALONE. Needs a model.",
        group="Speculation",
        hidden=True,
        no_flag=OF_MODEL,
        hint="bytes stated below",
        counts="with a model",
        ge=0,
        le=64,
    )
    draft_kv_bytes_per_token: DraftBytes = _input(
        None,
        "Draft KV bytes per token",
        "One row of the draft model's KV pool on one rank, at the dtype and dcp_size for which the KV bytes are "
        "stated. For EAGLE, EAGLE3, MTP and STANDALONE: int(KV bytes x draft layers / full-attention layers). Unset: "
        "that of the model's own MTP layer under EAGLE and NEXTN where it has one, else 0.",
        group="Speculation",
        unit="bytes per rank",
        no_flag=OF_MODEL,
        ge=0,
        le=MAX_BYTES,
    )

    _said_by_model: dict[str, Any] | None = PrivateAttr(None)  # kept for speed alone, and dropped in a copy

    if not TYPE_CHECKING:  # a type checker knows the fields, and that there are no others

        def __getattr__(self, name: str) -> Any:
            """A field that was not stated and follows from others: it is asked for anew and never kept."""
            return _following(self, name) if name in FOLLOWING else super().__getattr__(name)

    def __eq__(self, other: object) -> bool:
        """Whether every input has the same value, stated or following."""
        if not isinstance(other, Scenario):
            return NotImplemented
        return self.__dict__ == other.__dict__ or all(getattr(self, name) == getattr(other, name) for name in FIELDS)

    def __hash__(self) -> int:
        return hash(_OWN(self.__dict__))

    @model_serializer
    def _every_input(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in FIELDS}

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """The scenario with other values, which are not checked (`changed` checks them); what follows follows them.

        Raises ValueError for bytes beside a model that says otherwise.
        """
        values = dict(update or {})
        if "rest_gib" in values:
            values.setdefault("rest_source", "typed in")
        elif not self.rest_is_stated:
            values |= {name: DEFAULTS[name] for name in ("rest_gib", "rest_source")}
        copied = super().model_copy(update=values, deep=deep)
        copied._said_by_model = None
        return copied._only_stated()._with_rest()

    @model_validator(mode="after")
    def _model_and_bytes_agree(self, info: ValidationInfo) -> Self:
        """The bytes follow from the model; given without one they stand for themselves, given beside it they agree."""
        self._unset_drafts()
        given = self.model_fields_set.intersection(FILLED)
        geometry = (info.context or {}).get(GEOMETRY)
        if "model" not in self.model_fields_set and (given or geometry):
            self._state({"model": ""})
        for name in FOLLOWING - self.model_fields_set:
            self.__dict__.pop(name, None)
        if geometry is not None:
            values = _filled(self, geometry)
            self._drop(values)
            values = {**values, **{name: self.__dict__[name] for name in values.keys() & self.__dict__.keys()}}
            return self._state({**values, "draft_kv_layers": None})  # no name to ask again: its bytes are stated
        self._only_stated()
        return self if self.model else self._without_model()

    def _state(self, values: Mapping[str, Any]) -> Self:
        self.__dict__.update(values)
        self.model_fields_set.update(values)
        return self

    def _unset_drafts(self) -> None:
        """None is how one leaves the draft's bytes to the model."""
        if self.__dict__.get("draft_kv_bytes_per_token", 0) is None:
            self.__dict__.pop("draft_kv_bytes_per_token")
            self.model_fields_set.discard("draft_kv_bytes_per_token")

    def _only_stated(self) -> Self:
        """Keep nothing that the model says. Raises ValueError where other bytes stand beside it."""
        self._unset_drafts()
        if self.model:
            self._drop(_filled(self))
        return self

    def _drop(self, values: Mapping[str, Any]) -> None:
        for name in values.keys() & self.__dict__.keys():
            stated, of_draft = self.__dict__[name], name == "draft_kv_bytes_per_token"
            if of_draft and self.draft_kv_layers is None and stated != values[name]:
                continue  # a draft model of its own: the checkpoint's MTP layer does not contradict it
            self.__dict__.pop(name)
            self.model_fields_set.discard(name)
            if stated != values[name] and (stated or not of_draft):
                raise ValueError(
                    f"{label(name)} follows from the model {self.model} here ({values[name]}, not {stated}): leave it "
                    "out, or leave the model empty to type bytes in."
                )

    def _without_model(self) -> Self:
        if self.draft_kv_layers is not None:
            raise ValueError(
                "“Draft KV layers” needs a model whose row is known. Without one state “Draft KV bytes per token”."
            )
        if self.window_bytes_per_token and self.sliding_window is None:
            raise ValueError(
                "A window pool needs its “Sliding window”: enter the tokens that a window layer looks back."
            )
        if (self.kv_bytes_per_token == 0) != (self.attention == "none"):
            raise ValueError(
                "KV bytes per token are 0 for a model without attention layers, and only for such a model."
            )
        return self

    @model_validator(mode="after")
    def _state_can_be_rescaled(self) -> Self:
        conv = self.conv_bytes_per_slot
        if conv is not None and conv > self.state_bytes_per_slot:
            raise ValueError(
                f"The conv part ({conv:,} bytes) is larger than the whole slot ({self.state_bytes_per_slot:,} bytes). "
                "Correct one of the two."
            )
        parts = (
            ("SSM", self.state_bytes_per_slot - (conv or 0), self.state_bytes_dtype, self.mamba_ssm_dtype),
            ("conv", conv or 0, self.conv_bytes_dtype, self.mamba_conv_dtype),
        )
        for name, part, stated, runs in parts:
            if conv is None and runs != stated:
                raise ValueError(
                    f"To rescale the {name} part of a slot from {stated} to {runs} its conv part must be known: fill "
                    "in “of which conv”, or state the bytes at the dtype you run."
                )
            if part * STATE_ITEMSIZE[runs] % STATE_ITEMSIZE[stated]:
                raise ValueError(
                    f"The {name} part of {part:,} bytes is not a whole number of {stated} elements. "
                    "Correct the state bytes, the conv part or their dtype."
                )
        if self.state_bytes_all_stages is not None and self.state_bytes_all_stages < self.state_bytes_per_slot:
            raise ValueError(
                f"All stages together ({self.state_bytes_all_stages:,} bytes) hold less state than one "
                f"({self.state_bytes_per_slot:,} bytes). Correct one of the two."
            )
        whole_model = self.pp_size > 1 and not rules_of(self.release).charges_largest_stage
        if whole_model and self.state_bytes_all_stages is None:
            raise ValueError(
                f"SGLang {self.release} charges all pipeline stages on every rank: fill in “State bytes, all stages”."
            )
        return self

    @model_validator(mode="after")
    def _tokens_can_be_rescaled(self) -> Self:
        if self.kv_bytes_per_token * KV_ITEMSIZE[self.kv_cache_dtype] % KV_ITEMSIZE[self.kv_bytes_dtype]:
            raise ValueError(
                f"{self.kv_bytes_per_token:,} bytes per token is not a whole number of {self.kv_bytes_dtype} elements. "
                "Correct the KV bytes or their dtype."
            )
        if self.attention in ("DSA", "QSA") and (self.kv_cache_dtype, self.dcp_size) != (
            self.kv_bytes_dtype,
            self.kv_bytes_dcp_size,
        ):
            raise ValueError(
                f"{self.attention} rows do not rescale with the dtype or with dcp_size: state the KV bytes at the "
                f"{self.kv_cache_dtype} and dcp_size {self.dcp_size} that you run."
            )
        if self.attention == "GQA" and self.kv_heads is None and self.dcp_size != self.kv_bytes_dcp_size:
            raise ValueError(
                f"To take GQA bytes from dcp_size {self.kv_bytes_dcp_size} to {self.dcp_size} the KV heads of the "
                "model must be known: fill in “KV heads”, or state the bytes at the dcp_size you run."
            )
        return self

    @model_validator(mode="after")
    def _widths_divide(self) -> Self:
        if self.tp_size % self.attn_dp_size:
            raise ValueError(_NOT_SHARED.format(tp=self.tp_size, dp=self.attn_dp_size))
        width = self.attn_tp_size
        for size in (self.dcp_size, self.kv_bytes_dcp_size):
            if width % size:
                raise ValueError(
                    f"An attention TP width of {width} (--tp-size / --attn-dp-size) cannot be shared by dcp_size "
                    f"{size}. Correct one of them."
                )
        return self

    @model_validator(mode="after")
    def _ring_is_given(self) -> Self:
        needed = self.replayssm in ("decode", "both") or (self.replayssm == "spec" and self.family in ("GDN", "KDA"))
        if needed and self.ring_bytes_per_position is None:
            raise ValueError("ReplaySSM is on but “Ring bytes per position” is empty. Enter it, or turn ReplaySSM off.")
        return self

    @model_validator(mode="after")
    def _pin_is_given(self) -> Self:
        if self.split == "pin" and self.max_mamba_cache_size is None:
            raise ValueError("The split is pinned but --max-mamba-cache-size is empty. Enter slots.")
        return self

    @model_validator(mode="after")
    def _rest_is_found(self) -> Self:
        return self._with_rest()

    def _with_rest(self) -> Self:
        """What is not stated is the worked example's, estimated, or unknown; 0 stands for what is unknown."""
        if self.rest_gib is None or self.rest_source not in STATED_SOURCES:
            found = rest_of(self)
            self.__dict__["rest_gib"] = 0.0 if found.value is None else found.value
            self.__dict__["rest_source"] = found.source
        return self

    @property
    def rest_is_stated(self) -> bool:
        """Whether rest was typed in or read from a log."""
        return self.rest_source in STATED_SOURCES

    def stated(self) -> dict[str, Any]:
        """Every input that neither the model, where there is one, nor an estimate fills in."""
        rest = {} if self.rest_is_stated else {name: DEFAULTS[name] for name in ("rest_gib", "rest_source")}
        own, names = self.__dict__, _BESIDE if self.model else FIELDS
        found = {name: own[name] if name in own else getattr(self, name) for name in names}
        if "draft_kv_bytes_per_token" not in self.__dict__:
            found["draft_kv_bytes_per_token"] = None
        return found | rest

    def differences(self) -> dict[str, Any]:
        """Only the inputs that differ from the worked example, or from the model's own default: what a link or a file
        needs to carry.
        """
        defaults = DEFAULTS | {"mamba_full_memory_ratio": self.default_ratio}
        return {key: value for key, value in self.stated().items() if value != defaults[key]}

    @property
    def default_ratio(self) -> float:
        """What the engine takes where --mamba-full-memory-ratio is not given [-]."""
        return INKLING_RATIO if self.attention == "GQA and sliding window" else DEFAULT_RATIO

    @property
    def attn_tp_size(self) -> int:
        """Ranks that share the heads of one attention layer."""
        return widths_of(self).attn_tp_size

    @property
    def title(self) -> str:
        """The name, or the model and its TP width."""
        return self.name or f"{self.model.partition('/')[2] or 'typed bytes'}, TP{self.tp_size}"


def widths_of(scenario: Scenario) -> Widths:
    """How the model of a scenario is spread, and its dtypes."""
    return Widths(
        tp_size=scenario.tp_size,
        attn_dp_size=scenario.attn_dp_size,
        dcp_size=scenario.dcp_size,
        pp_size=scenario.pp_size,
        ssm=scenario.mamba_ssm_dtype,
        conv=scenario.mamba_conv_dtype,
        kv=scenario.kv_cache_dtype,
        release=scenario.release,
        draft_layers=scenario.draft_kv_layers,
        own_draft=scenario.speculative_algorithm in OWN_DRAFTS,
    )


def _following(scenario: Scenario, name: str) -> Any:
    """The value of a field of FOLLOWING that is not stated."""
    if name == "mamba_full_memory_ratio":
        return scenario.default_ratio
    if not scenario.model:
        return _default(name)
    kept = scenario.__pydantic_private__  # read as it lies: a private attribute costs more than what it saves
    if not kept:
        return _filled(scenario).get(name, _default(name))
    if kept["_said_by_model"] is None:
        kept["_said_by_model"] = dict(_filled(scenario))
    said = kept["_said_by_model"]
    return said[name] if name in said else _default(name)


def _default(name: str) -> Any:
    """What stands where neither a user nor a model says it: no draft has no bytes."""
    return 0 if name == "draft_kv_bytes_per_token" else DEFAULTS[name]


def _filled(scenario: Scenario, geometry: Geometry | None = None) -> Mapping[str, Any]:
    if scenario.tp_size % scenario.attn_dp_size:
        raise ValueError(_NOT_SHARED.format(tp=scenario.tp_size, dp=scenario.attn_dp_size))
    try:
        return filled(geometry or scenario.model, widths_of(scenario))
    except KeyError:
        raise ValueError(
            f"{shown(scenario.model)} is no model of the catalogue. Take one of its names, or leave it empty."
        ) from None
    except ModelRefusedError as refused:
        raise ValueError(f"{scenario.model}: {refused}") from None


_NOT_SHARED = "--tp-size {tp} is not a multiple of --attn-dp-size {dp}. Correct one."


def _complete(field: FieldInfo) -> Input:
    """What a field carries, with what its type says: `int | None` is a whole number."""
    carried: Any = cast("Any", field.json_schema_extra)[CARRIED]
    types = [field.annotation]
    while any(get_args(one) and get_origin(one) is not Literal for one in types):
        types = [inner for one in types for inner in _inside(one)]
    stated = next(one for one in types if one is not type(None))
    options = get_args(stated)
    kind = KINDS.get(stated, "word")
    widget: Widget = carried["widget"] or WIDGETS.get(kind) or ("choice" if options else "text")
    return Input(**{**carried, "widget": widget}, kind=kind, options=options)


def _inside(stated: Any) -> tuple[Any, ...]:
    """The types that a union or an annotation is made of."""
    if get_origin(stated) is Literal:
        return (stated,)
    return get_args(stated)[:1] if get_origin(stated) is Annotated else get_args(stated) or (stated,)


KINDS: dict[Any, Kind] = {bool: "switch", int: "whole", float: "number"}
WIDGETS: dict[Kind, Widget] = {"switch": "toggle", "whole": "typed", "number": "typed"}

FIELDS = Scenario.model_fields
DEFAULTS: dict[str, Any] = {name: field.default for name, field in FIELDS.items()}
# What follows from other inputs where it is not stated: from the model, and the ratio from the kind of attention.
FOLLOWING = frozenset((*FILLED, "draft_kv_bytes_per_token", "mamba_full_memory_ratio"))
_BESIDE = tuple(name for name in FIELDS if name not in FILLED)
"""What is stated beside a model."""
_OWN = itemgetter(*(name for name in FIELDS if name not in FOLLOWING))


def rest_is_given(scenario: Scenario) -> bool:
    """Whether `rest` is known: stated, estimated, or the worked example's for its own deployment."""
    return scenario.rest_source != "unknown"


INPUTS: dict[str, Input] = {name: _complete(field) for name, field in FIELDS.items()}


def named_with_unit(name: str) -> str:
    """A field as a table's column names it: kv_bytes_per_token [bytes per rank], D [-], mamba_ssm_dtype."""
    unit = INPUTS[name].unit or ("-" if type(DEFAULTS[name]) in (int, float) else "")
    return f"{name} [{unit}]" if unit else name


def label(name: str) -> str:
    """What a user calls a field: its flag where the engine has one, else the first words of its title."""
    title = str(FIELDS[name].title).split(",")[0]
    return INPUTS[name].flag or title


LABELS = {name: label(name) for name in FIELDS}


def changed(scenario: Scenario, **values: Any) -> Scenario | list[Problem]:
    """The scenario with other values, its bytes following where they follow from its model.

    A stated rest does not follow into another deployment: it is estimated anew there, or unknown.
    """
    stated = scenario.stated()
    if any(name in values and values[name] != stated[name] for name in OWN_DEPLOYMENT if name in stated):
        stated |= {name: DEFAULTS[name] for name in ("rest_gib", "rest_source")}
    return read_scenario({**stated, **values})


def read_scenario(values: Mapping[str, Any], geometry: Geometry | None = None) -> Scenario | list[Problem]:
    """Check values from anywhere; gives the scenario, or a sentence for every fault at once.

    `geometry` is that of a configuration without a name in the catalogue: it fills in what a model does, and the
    scenario then states those bytes.
    """
    try:
        return Scenario.model_validate(dict(values), context={GEOMETRY: geometry})
    except ValidationError as error:
        return from_validation(error, LABELS)


def flag_text(name: str, value: Any, release: Release = LATEST) -> str:
    """What sets an input in a launch command of the release: --page-size 64, a switch alone, VARIABLE=1.

    >>> flag_text("page_size", 64), flag_text("mamba_radix_cache_strategy", "no_buffer", "0.5.10")
    ('--page-size 64', '--mamba-scheduler-strategy no_buffer')
    >>> flag_text("disable_radix_cache", True), flag_text("skip_decode_lock", True)
    ('--disable-radix-cache', 'SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1')
    """
    own = INPUTS[name]
    flag = next((one for one in own.names if has_flag(release, one)), own.flag)
    if not flag.startswith("--"):
        return f"{flag}={int(value) if own.kind == 'switch' else value}"
    if own.kind == "switch":
        return flag if value else f"without {flag}"
    return f"{flag} {stated_ratio_text(value) if own.kind == 'number' else value}"


def value_text(name: str, value: Any) -> str:
    """The value of a field with every digit it was given with, and its unit."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = f" {INPUTS[name].unit}".rstrip()
    if isinstance(value, float):
        return stated_ratio_text(value) + unit
    if isinstance(value, int):
        return count(value) + unit
    return str(value) or ("none, bytes stated" if name == "model" else "empty")
