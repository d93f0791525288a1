"""Geometry: what a checkpoint's configuration says about its state and its KV cache, and the bytes that follow.

All bytes are of one rank. `tp` is the attention TP width: tp_size / attention-DP / attention-CP.
Source: model-geometry.md section 2; engine-sizing.md sections 2, 3 and 5 (SGLang 0.5.23).
"""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from sizing.basics.dtypes import STATE_ITEMSIZE, StateDtype
from sizing.models.families.common import FamilyName
from sizing.models.fields import MAX_RANKS
from sizing.models.kv import Dsa, Gqa, Kv, KvCacheDtype, SlidingGqa
from sizing.models.refusal import ModelRefusedError
from sizing.models.state import KdaState, Mamba2State, Shapes, State

AttentionKind = Literal["GQA", "QSA", "MLA", "DSA", "GQA and sliding window", "none"]
DEFAULT_SSM_DTYPE: StateDtype = "float32"  # section 2: neither a flag nor a checkpoint that is read says otherwise
DEFAULT_CONV_DTYPE: StateDtype = "bfloat16"  # section 2: SGLANG_MAMBA_CONV_DTYPE unset
DEFAULT_RING_LENGTH = 16  # engine-sizing.md section 5: --linear-replayssm-cache-len unset


class Geometry(BaseModel):
    """One model. Layers are numbered from 0; heads and widths are of the whole model."""

    model_config = ConfigDict(frozen=True)

    model_type: str
    """As the file has it, of the wrapper where there is one."""
    architecture: str | None
    family: FamilyName
    layers: int
    state_layers: tuple[int, ...]
    kv_layers: tuple[int, ...]
    state: State = Field(discriminator="kind")
    kv: Kv | None
    ssm_dtype_checkpoint: StateDtype | None
    """What the checkpoint asks for, where the engine reads it."""
    bfloat16_only: bool
    """State is bfloat16, and neither flag changes that."""
    replayssm: bool
    attention_heads: int
    """Query heads; 0 without attention, and where the file does not say."""
    kv_heads: int
    """KV heads; for latent attention the count that the file states, which no byte depends on."""
    context_length: int | None
    """Tokens; None where the file does not say."""
    extra_buffer: bool | None
    """Whether the engine lists the architecture for the extra_buffer strategy; None without an architecture."""
    kv_dtype_auto: KvCacheDtype
    """What `--kv-cache-dtype auto` gives."""
    draft_layers: int
    """Layers of the draft (MTP) head that comes with the checkpoint; 0 where there is none."""
    multimodal: bool = False
    """Whether the engine keeps a cache for images: a language model inside a wrapper, but not Inkling."""
    side_elements: int = 0
    """Elements [per slot, on every rank] of states beside the pool, which nothing is charged for (Qwen4-Exp)."""
    notes: tuple[str, ...]
    """What is in the file and has no effect, a sentence each."""

    @property
    def attention(self) -> AttentionKind:
        """How the attention layers keep KV."""
        return self.kv.kind if self.kv else "none"

    @property
    def gqa_heads(self) -> int | None:
        """KV heads of the whole model; None for a cache that has none."""
        return self.kv_heads if self.attention == "GQA" else None

    @property
    def strip(self) -> str:
        """One letter a layer: S state, K KV, B both, - neither.

        >>> from sizing.models import entry, read_config
        >>> read_config(entry("Qwen/Qwen3.5-0.8B").config).strip
        'SSSKSSSKSSSKSSSKSSSKSSSK'
        """
        state, kv = set(self.state_layers), set(self.kv_layers)
        return "".join("-SKB"[(layer in state) + 2 * (layer in kv)] for layer in range(self.layers))


class StateBytes(NamedTuple):
    """One slot: all state layers of one rank, for one request."""

    conv: int
    ssm: int

    @property
    def total(self) -> int:
        """Both parts [bytes]."""
        return self.conv + self.ssm


def ssm_dtype(geometry: Geometry, flag: StateDtype | None = None) -> StateDtype:
    """The dtype of the SSM part: `--mamba-ssm-dtype`, else the checkpoint's where it is read, else float32."""
    if geometry.bfloat16_only:
        return "bfloat16"
    return flag or geometry.ssm_dtype_checkpoint or DEFAULT_SSM_DTYPE


def conv_dtype(geometry: Geometry, setting: StateDtype | None = None) -> StateDtype:
    """The dtype of the conv part: SGLANG_MAMBA_CONV_DTYPE, else bfloat16; it follows nothing else."""
    return DEFAULT_CONV_DTYPE if geometry.bfloat16_only or setting is None else setting


def shapes(geometry: Geometry, tp: int) -> Shapes:
    """The state tensors of one layer on one rank. Raises ModelRefusedError where tp does not divide them."""
    _check_widths(tp)
    return geometry.state.shapes(tp)


def state_bytes(
    geometry: Geometry, tp: int, ssm_flag: StateDtype | None = None, conv_setting: StateDtype | None = None
) -> StateBytes:
    """Conv and SSM bytes of one slot on one rank, over all state layers; no padding slot.

    Raises ModelRefusedError where tp does not divide the state.

    >>> from sizing.models import entry, read_config
    >>> state_bytes(read_config(entry("moonshotai/Kimi-K3").config), tp=8)
    StateBytes(conv=1907712, ssm=54263808)
    """
    one, layers = shapes(geometry, tp), len(geometry.state_layers)
    return StateBytes(
        conv=layers * one.conv_elements * STATE_ITEMSIZE[conv_dtype(geometry, conv_setting)],
        ssm=layers * one.temporal_elements * STATE_ITEMSIZE[ssm_dtype(geometry, ssm_flag)],
    )


def kv_bytes_per_token(
    geometry: Geometry, tp: int, dtype: KvCacheDtype, dcp: int = 1, layers: tuple[int, ...] | None = None
) -> int:
    """Bytes of one KV row on one rank, over all attention layers or over these; 0 without attention, no draft.

    Under DCP dcp rows, one on each rank, make dcp logical tokens. Raises ModelRefusedError for widths or a dtype
    that cannot be.

    >>> from sizing.models import entry, read_config
    >>> kv_bytes_per_token(read_config(entry("moonshotai/Kimi-K3").config), tp=8, dtype="fp8_e4m3")
    13824
    """
    _check_widths(tp, dcp)
    if geometry.kv is None:
        return 0
    return geometry.kv.row_bytes(geometry.kv_layers if layers is None else layers, tp, dcp, dtype)


def kv_heads_per_rank(geometry: Geometry, tp: int, dcp: int = 1) -> int | None:
    """KV heads on one rank; 0 without attention, None for latent attention, which has no heads in its cache."""
    _check_widths(tp, dcp)
    if geometry.kv is None:
        return 0
    heads = geometry.kv.full if isinstance(geometry.kv, SlidingGqa) else geometry.kv
    return heads.heads_here(tp, dcp) if isinstance(heads, Gqa) else None


def attention_heads_divide(geometry: Geometry, tp: int) -> bool | None:
    """Whether tp divides the query heads, which loading the model needs and sizing does not check (trap 14).

    None without attention, and where the file does not say how many there are.
    """
    _check_widths(tp)
    return geometry.attention_heads % tp == 0 if geometry.attention_heads else None


def ring_bytes_per_request(
    geometry: Geometry,
    tp: int,
    length: int = DEFAULT_RING_LENGTH,
    conv_setting: StateDtype | None = None,
    folded: bool = False,
) -> int:
    """ReplaySSM ring bytes of one request on one rank, over all state layers, at a ring `length` [tokens].

    0 where ReplaySSM does not run: the engine has it for GDN and KDA only. GDN's rings are fixed scratch for the
    running requests, KDA's are charged on every slot. `folded` is the window of GDN in 0.5.17 to 0.5.19, with a second
    gate and without a low part. Source: engine-sizing.md section 5, ReplaySSM.
    """
    if not geometry.replayssm:
        return 0
    state, item = geometry.state, STATE_ITEMSIZE[conv_dtype(geometry, conv_setting)]
    heads, value_dim, key_dim = shapes(geometry, tp).temporal
    gates = 4 * heads  # float32, one for each head
    if isinstance(state, KdaState):
        pair = (heads * value_dim + -(-state.heads // tp) * key_dim) * item
        per_token = 2 * pair + gates + gates * key_dim
    elif isinstance(state, Mamba2State):
        pair = (heads * value_dim + -(-state.groups // tp) * key_dim) * item
        # A low part beside each ring, unless the rings are float32 themselves.
        low = pair if item != STATE_ITEMSIZE["float32"] else 0
        per_token = pair + (2 * gates if folded else gates + low)
    else:
        return 0
    return length * per_token * len(geometry.state_layers)


def draft_kv_bytes_per_token(
    geometry: Geometry,
    tp: int,
    dtype: KvCacheDtype,
    dcp: int = 1,
    draft_layers: int | None = None,
    *,
    layers: tuple[int, ...] | None = None,
    with_target: bool = False,
) -> int:
    """What an EAGLE, MTP or STANDALONE draft adds to the bytes of a row on one rank.

    int(row x draft layers / attention layers); `draft_layers` is the checkpoint's own unless given, `layers` the
    attention layers of a pipeline stage. `with_target` rounds the sum instead, as up to 0.5.21
    (`Rules.rounds_draft_with_target`). DSA charges the latent rows that way, and an index key for each draft layer,
    both times dcp; the draft layers of a sliding-window model are rows of their own.
    Source: engine-sizing.md section 3.
    """
    drafts = geometry.draft_layers if draft_layers is None else draft_layers
    row, full = (
        kv_bytes_per_token(geometry, tp, dtype, dcp, layers),
        len(geometry.kv_layers if layers is None else layers),
    )
    if not drafts or not full:
        return 0
    if isinstance(geometry.kv, Dsa):
        latent = geometry.kv.latent_bytes(dtype) * full
        return (int(latent * drafts / full) + geometry.kv.index_bytes * drafts) * dcp
    if isinstance(geometry.kv, SlidingGqa):
        return geometry.kv.draft_bytes(drafts, tp, dtype)
    return int(row * (1 + drafts / full)) - row if with_target else int(row * drafts / full)


def _check_widths(tp: int, dcp: int = 1) -> None:
    if not 1 <= tp <= MAX_RANKS:
        raise ModelRefusedError("layout", "tp", f"Attention TP must be from 1 to {MAX_RANKS:,}, not {tp:,}.")
    if dcp < 1 or tp % dcp:
        raise ModelRefusedError("layout", "dcp_size", f"dcp_size {dcp:,} must divide attention TP {tp:,}.")
