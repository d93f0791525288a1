"""Scenario: every input of a deployment, declared once. Widgets, link, file and command line all read this.

It holds what a user states and never what we compute. The defaults are the worked example of the
specification (compute-mamba-ratio.md): Kimi-K3 at TP8, whose byte constants follow from its geometry
(model-geometry.md section 5) and whose `rest` reproduces the boot log quoted there.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sizing.basics.dtypes import KV_ITEMSIZE, STATE_ITEMSIZE, KvDtype, StateDtype
from sizing.basics.problems import Problem, from_validation, shown
from sizing.basics.units import count, stated_ratio_text, tokens_from_text, ungrouped
from sizing.models.refusal import ModelRefusedError
from sizing.releases.rules import LATEST, Release, rules_of
from sizing.scenario.from_model import FILLED, Widths, filled, geometry_of

Strategy = Literal["auto", "extra_buffer", "extra_buffer_lazy", "no_buffer"]
SplitMode = Literal["ratio", "balanced", "pin"]
Source = Literal["model geometry", "boot log", "typed in"]
Family = Literal["KDA", "GDN", "Mamba2", "other"]
Attention = Literal["MLA", "GQA", "DSA"]
Role = Literal["null", "prefill", "decode"]
ReplaySsm = Literal["off", "spec", "decode"]
Algorithm = Literal["EAGLE", "EAGLE3", "NEXTN", "STANDALONE", "NGRAM", "DFLASH", "DSPARK"]

DEFAULT_RATIO = 0.9  # engine-sizing.md section 5, `--mamba-full-memory-ratio` unset, every release
MAX_BYTES = 2**50  # a bound for hostile input, far above any GPU
MAX_REST_GIB = 65_536
MAX_RATIO = 1_000_000_000
MAX_REQUESTS = 1_000_000
MAX_L = 2**24
# Twice this (rescaled to float32), times the most requests, times the most drafts, still fits an int64.
MAX_SLOT_BYTES = 2**34
# This, times the longest ring, times the most requests, fits an int64 too.
MAX_RING_BYTES = 2**26


def _no_bool(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    return value


Whole = Annotated[int, BeforeValidator(ungrouped), BeforeValidator(_no_bool)]
Tokens = Annotated[int, BeforeValidator(tokens_from_text), BeforeValidator(_no_bool)]
Real = Annotated[float, BeforeValidator(_no_bool)]


def _input(default: object, title: str, help: str, *, unit: str = "", flag: str = "", **bounds: Any) -> Any:
    return Field(default, title=title, description=help, json_schema_extra={"unit": unit, "flag": flag}, **bounds)


class Scenario(BaseModel):
    """What a user states about one deployment. Bytes, GiB, slots and tokens are per rank unless said otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str = _input(
        "",
        "Name",
        "Free text printed on the figures; empty is the model and its TP width.",
        max_length=60,
        pattern=r"^[\w .,:;+\-/()=]*$",
    )
    model: str = _input(
        "moonshotai/Kimi-K3",
        "Model",
        "A catalogued checkpoint, whose bytes then follow from its geometry at the widths and dtypes below; empty: the "
        "bytes are typed in.",
        max_length=100,
    )
    release: Release = _input(
        LATEST, "SGLang release", "The release whose rules are followed; those between the listed ones were not read."
    )
    L: Tokens = _input(
        9216,
        "L, context per request",
        "Average context of one request: input plus output tokens. 32K is 32,768.",
        unit="tokens",
        ge=1,
        le=MAX_L,
    )
    D: Whole = _input(
        0,
        "D, draft tokens",
        "Plain speculation keeps D draft states for each running request. 0 is no speculation.",
        unit="tokens",
        flag="--speculative-num-draft-tokens",
        ge=0,
        le=256,
    )
    dcp_size: Whole = _input(
        1,
        "dcp_size",
        "Decode context parallelism: the KV rows of one request are spread over this many ranks.",
        flag="--dcp-size",
        ge=1,
        le=64,
    )
    mamba_ssm_dtype: StateDtype = _input(
        "float32",
        "SSM dtype",
        "Rescales the SSM part of a slot; the conv part has a dtype of its own.",
        flag="--mamba-ssm-dtype",
    )
    mamba_conv_dtype: StateDtype = _input(
        "bfloat16",
        "Conv dtype",
        "Rescales the conv part of a slot. It never follows --mamba-ssm-dtype.",
        flag="SGLANG_MAMBA_CONV_DTYPE",
    )
    kv_cache_dtype: KvDtype = _input(
        "fp8_e4m3",
        "KV dtype",
        "Rescales the bytes of a token, exact for plain MLA and GQA. For DSA state the bytes at the dtype you run.",
        flag="--kv-cache-dtype",
    )
    rest_gib: Real = _input(
        28.529,
        "rest",
        "What both pools share on one rank: free memory when the pools are sized, less the slack of "
        "--mem-fraction-static. From a boot log: `Load weight end` avail minus `Load weight begin` avail "
        "x (1 - mem_fraction_static). The log's `avail mem` alone still contains that slack.",
        unit="GiB per rank",
        ge=-1024,
        le=MAX_REST_GIB,
    )
    split: SplitMode = _input(
        "ratio",
        "Split by",
        "How the two pools are split: by a ratio, by the balanced ratio r*, or by pinned slots.",
    )
    mamba_full_memory_ratio: Real = _input(
        DEFAULT_RATIO,
        "Ratio r",
        "State budget : KV budget. The engine's default is 0.9; above 1 is legal.",
        flag="--mamba-full-memory-ratio",
        gt=0,
        le=MAX_RATIO,
    )
    max_mamba_cache_size: Whole | None = _input(
        None,
        "Pinned slots",
        "State slots, divided by attn_dp_size. A pin overrides the ratio; what it takes beyond the ratio comes out "
        "of KV.",
        unit="slots",
        flag="--max-mamba-cache-size",
        ge=1,
        le=10_000_000,
    )
    mamba_radix_cache_strategy: Strategy = _input(
        "auto",
        "Strategy",
        "How prefix-cache snapshots are kept. Decides S, the state slots per running request. auto is the engine's "
        "default: extra_buffer where the architecture supports it, else no_buffer.",
        flag="--mamba-radix-cache-strategy",
    )
    extra_buffer_supported: bool = _input(
        True,
        "extra_buffer supported",
        "The architecture is on the engine's list for extra_buffer and --linear-attn-backend is triton. "
        "LFM2, Jet-Nemotron, Zaya and GigaChat are not on it.",
    )
    mamba_track_interval: Whole = _input(
        256,
        "mamba_track_interval",
        "extra_buffer takes a snapshot every so many tokens: a multiple of page_size, and at least D.",
        unit="tokens",
        flag="--mamba-track-interval",
        ge=1,
        le=2**24,
    )
    disable_radix_cache: bool = _input(
        False,
        "Radix cache off",
        "No prefix reuse: one slot a request.",
        flag="--disable-radix-cache",
    )
    disable_overlap_schedule: bool = _input(
        False,
        "Overlap off",
        "Turns the overlap scheduler off. Pipeline parallelism turns it off as well.",
        flag="--disable-overlap-schedule",
    )
    skip_decode_lock: bool = _input(
        False,
        "Skip decode lock",
        "Frees one resident slot per running request during decode.",
        flag="SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK",
    )
    pp_size: Whole = _input(
        1,
        "pp_size",
        "Pipeline stages. Give the state bytes of the stage with most linear layers "
        "and the KV bytes of the stage with most attention layers.",
        flag="--pp-size",
        ge=1,
        le=64,
    )
    tp_size: Whole = _input(
        8,
        "tp_size",
        "Tensor parallelism. With attn_dp_size and dcp_size it decides how many KV heads of GQA one rank keeps.",
        flag="--tp-size",
        ge=1,
        le=1024,
    )
    attn_dp_size: Whole = _input(
        1,
        "attn_dp_size",
        "Attention data parallelism: each of so many ranks has pools of its own. Give the bytes of one such rank.",
        flag="--attn-dp-size",
        ge=1,
        le=1024,
    )
    disaggregation_mode: Role = _input(
        "null",
        "Role",
        "Prefill and decode on servers of their own, or null for one server that does both.",
        flag="--disaggregation-mode",
    )
    speculative_algorithm: Algorithm = _input(
        "EAGLE",
        "Speculative algorithm",
        "Counts where D is above 0. MTP is NEXTN. NGRAM has no draft KV; DFLASH and DSPARK are charged dcp_size times.",
        flag="--speculative-algorithm",
    )
    replayssm: ReplaySsm = _input(
        "off",
        "ReplaySSM",
        "spec: --enable-linear-replayssm-spec, rings in place of draft states (GDN and KDA). "
        "decode: --enable-linear-replayssm, rings that the engine does not charge.",
    )
    linear_replayssm_cache_len: Whole = _input(
        16,
        "Ring length",
        "Positions in a ReplaySSM ring.",
        flag="--linear-replayssm-cache-len",
        ge=1,
        le=4096,
    )
    ring_bytes_per_position: Whole | None = _input(
        1_275_120,
        "Ring bytes per position",
        "ReplaySSM ring of one request, all linear layers of one rank, divided by the ring length. Needed with "
        "ReplaySSM only. It holds for the conv dtype that runs.",
        unit="bytes per rank",
        ge=1,
        le=MAX_RING_BYTES,
    )
    family: Family = _input(
        "KDA",
        "Linear layers",
        "The kind of linear-attention layer. ReplaySSM exists for GDN and KDA and differs between them.",
    )
    attention: Attention = _input(
        "MLA",
        "Attention layers",
        "MLA keeps one latent row whatever the parallelism; GQA keeps KV heads; DSA is MLA with an index.",
    )
    kv_heads: Whole | None = _input(
        None,
        "KV heads",
        "KV heads of the whole model, for GQA: a rank keeps max(1, heads // (attention TP // dcp_size)) of them.",
        ge=1,
        le=4096,
    )
    page_size: Whole = _input(
        64, "page_size", "KV rows are handed out in pages.", unit="tokens", flag="--page-size", ge=1, le=4096
    )
    max_running_requests: Whole | None = _input(
        None,
        "max_running_requests",
        "The cap you ask for, divided by attn_dp_size. Unset: the engine's estimate, or 48 under speculation.",
        unit="requests",
        flag="--max-running-requests",
        ge=1,
        le=MAX_REQUESTS,
    )
    max_total_tokens: Tokens | None = _input(
        None,
        "max_total_tokens",
        "Caps the KV rows of one rank.",
        unit="tokens per rank",
        flag="--max-total-tokens",
        ge=1,
        le=2**40,
    )
    context_length: Tokens = _input(
        262_144,
        "context_length",
        "The longest context the server accepts; it enters the engine's estimate of running requests.",
        unit="tokens",
        flag="--context-length",
        ge=1,
        le=2**24,
    )
    state_bytes_per_slot: Whole = _input(
        56_171_520,
        "State bytes per slot",
        "One slot, all linear layers of one rank, conv and SSM parts together. From a boot log divide the "
        "printed sizes by max_mamba_cache_size + 1: they include the padding slot.",
        unit="bytes per rank",
        ge=1,
        le=MAX_SLOT_BYTES,
    )
    conv_bytes_per_slot: Whole | None = _input(
        1_907_712,
        "of which conv",
        "The part of a slot that --mamba-ssm-dtype leaves alone. Empty is unknown.",
        unit="bytes per rank",
        ge=0,
        le=MAX_SLOT_BYTES,
    )
    state_bytes_dtype: StateDtype = _input(
        "float32", "State bytes are at", "The SSM dtype for which the bytes of a slot are stated."
    )
    conv_bytes_dtype: StateDtype = _input(
        "bfloat16", "Conv bytes are at", "The conv dtype for which the bytes of a slot are stated."
    )
    conv_kernel: Whole = _input(
        4,
        "Conv kernel",
        "Width of the short convolution. Under speculation GDN and Mamba2 keep D + kernel - 2 columns of drafts.",
        ge=2,
        le=64,
    )
    state_bytes_all_stages: Whole | None = _input(
        None,
        "State bytes, all stages",
        "One slot of the whole model on one rank, all pipeline stages together. Releases before 0.5.17 charge it on "
        "every stage.",
        unit="bytes per rank",
        ge=1,
        le=MAX_SLOT_BYTES,
    )
    state_bytes_source: Source = _input("model geometry", "State bytes from", "Where the bytes of a slot come from.")
    kv_bytes_per_token: Whole = _input(
        13_824,
        "KV bytes per token",
        "One row of the target model's KV pool on one rank, at the dtype and the dcp_size below.",
        unit="bytes per rank",
        ge=1,
        le=MAX_BYTES,
    )
    kv_bytes_dtype: KvDtype = _input(
        "fp8_e4m3", "KV bytes are at", "The KV dtype for which the bytes of a token are stated."
    )
    kv_bytes_dcp_size: Whole = _input(
        1, "KV bytes are at dcp_size", "The dcp_size for which the bytes of a token are stated.", ge=1, le=64
    )
    kv_bytes_source: Source = _input("model geometry", "KV bytes from", "Where the bytes of a token come from.")
    draft_kv_bytes_per_token: Whole = _input(
        0,
        "Draft KV bytes per token",
        "One row of the draft model's KV pool on one rank, at the dtype and dcp_size for which the KV bytes are "
        "stated. For EAGLE, EAGLE3, MTP and STANDALONE: int(KV bytes x draft layers / full-attention layers).",
        unit="bytes per rank",
        ge=0,
        le=MAX_BYTES,
    )

    @model_validator(mode="after")
    def _model_fills_in(self) -> Self:
        """The bytes follow from the model; given without one they stand for themselves, given beside it they agree."""
        given = self.model_fields_set.intersection(FILLED)
        if "model" not in self.model_fields_set and given:
            self.__dict__["model"] = ""
        if not self.model:
            return self
        fields = _filled(self)
        for name in given:
            if getattr(self, name) != fields[name]:
                raise ValueError(
                    f"{label(name)} follows from the model {self.model} here ({fields[name]}, not "
                    f"{getattr(self, name)}): leave it out, or leave the model empty to type bytes in."
                )
        self.__dict__.update(fields)
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
        if self.attention == "DSA" and (self.kv_cache_dtype, self.dcp_size) != (
            self.kv_bytes_dtype,
            self.kv_bytes_dcp_size,
        ):
            raise ValueError(
                "DSA rows do not rescale with the dtype or with dcp_size: state the KV bytes at the "
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
        needed = self.replayssm == "decode" or (self.replayssm == "spec" and self.family in ("GDN", "KDA"))
        if needed and self.ring_bytes_per_position is None:
            raise ValueError("ReplaySSM is on but “Ring bytes per position” is empty. Enter it, or turn ReplaySSM off.")
        return self

    @model_validator(mode="after")
    def _pin_is_given(self) -> Self:
        if self.split == "pin" and self.max_mamba_cache_size is None:
            raise ValueError("The split is pinned but --max-mamba-cache-size is empty. Enter slots.")
        return self

    def stated(self) -> dict[str, Any]:
        """Every input that the model, where there is one, does not fill in."""
        values = self.model_dump()
        return {key: value for key, value in values.items() if key not in FILLED} if self.model else values

    def differences(self) -> dict[str, Any]:
        """Only the inputs that differ from the worked example: what a link or a file needs to carry."""
        return {key: value for key, value in self.stated().items() if value != DEFAULTS[key]}

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
    )


def _filled(scenario: Scenario) -> dict[str, Any]:
    if scenario.tp_size % scenario.attn_dp_size:
        raise ValueError(_NOT_SHARED.format(tp=scenario.tp_size, dp=scenario.attn_dp_size))
    try:
        return filled(geometry_of(scenario.model), widths_of(scenario))
    except KeyError:
        raise ValueError(
            f"{shown(scenario.model)} is no model of the catalogue. Take one of its names, or leave it empty."
        ) from None
    except ModelRefusedError as refused:
        raise ValueError(f"{scenario.model}: {refused}") from None


_NOT_SHARED = "--tp-size {tp} is not a multiple of --attn-dp-size {dp}. Correct one."


FIELDS = Scenario.model_fields
DEFAULTS: dict[str, Any] = {name: field.default for name, field in FIELDS.items()}


def extra(name: str, key: str) -> str:
    """The `unit` or the `flag` of a field, empty where it has none."""
    found = FIELDS[name].json_schema_extra
    return str(found[key]) if isinstance(found, dict) else ""


def named_with_unit(name: str) -> str:
    """A field as a table's column names it: kv_bytes_per_token [bytes per rank], D [-], mamba_ssm_dtype."""
    unit = extra(name, "unit") or ("-" if type(DEFAULTS[name]) in (int, float) else "")
    return f"{name} [{unit}]" if unit else name


def label(name: str) -> str:
    """What a user calls a field: its flag where the engine has one, else the first words of its title."""
    title = str(FIELDS[name].title).split(",")[0]
    return extra(name, "flag") or title


LABELS = {name: label(name) for name in FIELDS}


def changed(scenario: Scenario, **values: Any) -> Scenario | list[Problem]:
    """The scenario with other values, its bytes following where they follow from its model."""
    return read_scenario({**scenario.stated(), **values})


def read_scenario(values: Mapping[str, Any]) -> Scenario | list[Problem]:
    """Check values from anywhere; gives the scenario, or a sentence for every fault at once."""
    try:
        return Scenario.model_validate(dict(values))
    except ValidationError as error:
        return from_validation(error, LABELS)


def value_text(name: str, value: Any) -> str:
    """The value of a field with every digit it was given with, and its unit."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    unit = f" {extra(name, 'unit')}".rstrip()
    if isinstance(value, float):
        return stated_ratio_text(value) + unit
    if isinstance(value, int):
        return count(value) + unit
    return str(value) or ("none, bytes stated" if name == "model" else "empty")
