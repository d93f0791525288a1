"""Weights on one rank [bytes]: each piece divided as the engine shards it, on the heaviest pipeline stage.

Source: rest-before-boot.md section 3.2, rules 30 to 35.
"""

from collections import defaultdict
from fractions import Fraction
from typing import NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sizing.memory.weights.pieces import Piece
from sizing.memory.weights.table import ASK, Counted, Embedding
from sizing.memory.weights.variants import FOUR_BIT, VARIANTS, Variant
from sizing.models.fields import MAX_RANKS
from sizing.models.pipeline import stages
from sizing.models.refusal import ModelRefusedError


class Ranks(BaseModel):
    """How a deployment spreads one model."""

    model_config = ConfigDict(frozen=True)

    tp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    """The whole width, attention DP included; expert parallelism only changes the cut, not the bytes."""
    pp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    attn_dp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    attn_cp_size: int = Field(default=1, ge=1, le=MAX_RANKS)
    enable_dp_lm_head: bool = False
    moe_a2a_backend: str = "none"
    moe_dense_tp_size: int | None = Field(default=None, ge=1, le=MAX_RANKS)
    mm_enable_dp_encoder: bool = False
    pp_partition: str | None = None
    """SGLANG_PP_LAYER_PARTITION."""

    @model_validator(mode="after")
    def _widths_divide(self) -> Self:
        if self.tp_size % (self.attn_dp_size * self.attn_cp_size):
            raise ValueError("tp_size must be a multiple of attn_dp_size x attn_cp_size")
        return self

    @property
    def attention_tp(self) -> int:
        """Ranks that share one copy of the attention weights."""
        return self.tp_size // (self.attn_dp_size * self.attn_cp_size)


class Held(NamedTuple):
    """Weights of one rank."""

    bytes: int
    parts: tuple[tuple[str, int], ...]
    """Name and bytes, the largest first; they add up."""
    stage: int
    """The pipeline stage that holds most, counted from 0."""


def weights_per_rank(model: Counted, variant: Variant, ranks: Ranks, draft: bool = False) -> Held:
    """The heaviest stage's weights on one rank; `draft` puts the checkpoint's own draft on the last stage.

    Raises ModelRefusedError for stages the model cannot have, for a draft it does not have, and for 4 bits in a model
    without experts, where checkpoints differ in what is 4-bit.
    """
    check_variant(model, variant)
    if draft and model.draft is None:
        raise ModelRefusedError("missing", "draft", "The checkpoint has no draft that can be counted: give its bytes.")
    held = [_stage(model, variant, ranks, stage, draft) for stage in range(ranks.pp_size)]
    return max(held, key=lambda one: one.bytes)


def draft_per_rank(model: Counted, variant: Variant, ranks: Ranks) -> int:
    """Bytes on one rank of the checkpoint's own MTP layer as a draft, with its own embedding and head.

    Before the pools it holds both itself; it shares the target's only after them (rule 38). Raises as above.
    """
    alone = Ranks(**{**ranks.model_dump(), "pp_size": 1, "pp_partition": None})
    pieces = model._replace(pieces=model.draft or (), draft=None)
    if model.draft is None:
        raise ModelRefusedError("missing", "draft", "The checkpoint has no draft that can be counted: give its bytes.")
    return _stage(pieces, variant, alone, 0, draft=False).bytes


def check_variant(model: Counted, variant: Variant) -> None:
    """Refuses 4 bits for a model without routed experts."""
    if variant in FOUR_BIT and not any(piece.precision == "expert" for piece in model.pieces):
        raise ModelRefusedError(
            "unknown", "variant", f"4-bit checkpoints of dense models differ in what is 4-bit. {ASK}"
        )


def _stage(model: Counted, variant: Variant, ranks: Ranks, stage: int, draft: bool) -> Held:
    own = set(stages(model.geometry, ranks.pp_size, ranks.pp_partition)[stage].layers)
    first, last = stage == 0, stage == ranks.pp_size - 1
    sums: dict[str, Fraction] = defaultdict(Fraction)
    for piece in model.pieces:
        if piece.part == "tied head" and first:
            continue  # it is the embedding of this very stage
        if _is_here(piece, own, first, last):
            sums[piece.part] += _bytes(piece, variant, ranks, model.row.embedding, model.row.dp_head)
    if draft and last:
        sums["draft"] += draft_per_rank(model, variant, ranks)
    parts = sorted(((name, round(size)) for name, size in sums.items() if size), key=lambda part: -part[1])
    return Held(sum(size for _, size in parts), tuple(parts), stage)


def _is_here(piece: Piece, own: set[int], first: bool, last: bool) -> bool:
    if isinstance(piece.place, int):
        return piece.place in own
    return piece.place == "all" or (first if piece.place == "first" else last)


def _bytes(piece: Piece, variant: Variant, ranks: Ranks, embedding: Embedding, dp_head: bool) -> Fraction:
    width = _width(piece, ranks, embedding, dp_head)
    share = Fraction(1, width)
    if piece.units is not None:
        share = Fraction(max(1, piece.units // width), piece.units)
    return piece.parameters * share * VARIANTS[variant].of(piece.precision)


def _width(piece: Piece, ranks: Ranks, embedding: Embedding, dp_head: bool) -> int:
    dp = ranks.attn_dp_size > 1
    attention = ranks.attention_tp
    return {
        "attention": attention,
        "tp": ranks.tp_size,
        "dense": ranks.moe_dense_tp_size or ranks.tp_size,
        "shared experts": ranks.tp_size if ranks.moe_a2a_backend == "none" else 1,
        "every rank": 1,
        "embedding": {"every rank": 1, "attention": attention, "tp": ranks.tp_size}[embedding] if dp else ranks.tp_size,
        "head": attention if dp and ranks.enable_dp_lm_head and dp_head else ranks.tp_size,
        "vision": 1 if ranks.mm_enable_dp_encoder else attention,
    }[piece.shared]
