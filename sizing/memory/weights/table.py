"""Which model's weights can be counted from its config.json, and by which reader.

A model that is not here, or whose file lacks a field, gets no number: the bytes are asked for.
"""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from sizing.memory.weights import conv, gdn, kda, mamba2
from sizing.memory.weights.pieces import Piece
from sizing.models.families import WRAPPERS
from sizing.models.fields import Fields, object_of
from sizing.models.geometry import Geometry
from sizing.models.reading import read_config
from sizing.models.refusal import ModelRefusedError

Reader = Callable[[Fields, Fields, Geometry], list[Piece]]
Embedding = Literal["every rank", "attention", "tp"]


class Row(NamedTuple):
    """One model type."""

    read: Reader
    embedding: Embedding
    """How attention DP shares the embedding (rest-before-boot.md rule 31, and the model file of 0.5.23)."""
    draft: Reader | None = None
    """The checkpoint's own MTP layer as a draft."""
    dp_head: bool = True
    """Whether --enable-dp-lm-head reaches the head."""
    draft_unsaid: bool = False
    """Whether every checkpoint has the MTP layer, though its config.json does not say so."""


ROWS: dict[str, Row] = {
    "qwen3_next": Row(gdn.qwen, "attention", gdn.mtp, draft_unsaid=True),
    "qwen3_5": Row(gdn.qwen, "every rank", gdn.mtp),
    "qwen3_5_text": Row(gdn.qwen, "every rank", gdn.mtp),
    "qwen3_5_moe": Row(gdn.qwen, "every rank", gdn.mtp),
    "qwen3_5_moe_text": Row(gdn.qwen, "every rank", gdn.mtp),
    "nemotron_h": Row(mamba2.nemotron_h, "attention"),
    "falcon_h1": Row(mamba2.falcon_h1, "attention"),
    "granitemoehybrid": Row(mamba2.granite, "tp", dp_head=False),
    "kimi_linear": Row(kda.kimi, "tp", dp_head=False),
    "kimi_k3": Row(kda.kimi, "attention"),
    "lfm2": Row(conv.lfm2, "tp", dp_head=False),
}

ASK = "Weights cannot be counted: give their bytes, total_size of model.safetensors.index.json."


class Counted(NamedTuple):
    """A model whose weights are counted."""

    geometry: Geometry
    row: Row
    pieces: tuple[Piece, ...]
    draft: tuple[Piece, ...] | None
    """The checkpoint's own draft; None where it has none that can be counted."""

    @property
    def parameters(self) -> int:
        """Parameters of the target, a tied head counted once."""
        return sum(piece.parameters for piece in self.pieces if piece.part != "tied head")


def count(config: str | bytes | Mapping[str, object]) -> Counted:
    """The pieces of a model. Raises ModelRefusedError where its file does not say them all: the bytes are asked for.

    >>> from sizing.models import entry
    >>> count(entry("Qwen/Qwen3.5-27B").config).parameters
    27356728560
    """
    geometry = read_config(config)
    if geometry.model_type not in ROWS:
        raise ModelRefusedError(
            "unknown", "model_type", f"No rule counts the parameters of {geometry.model_type}. {ASK}"
        )
    row = ROWS[geometry.model_type]
    outer, inner = fields_of(config)
    try:
        pieces = tuple(row.read(outer, inner, geometry))
        has_draft = row.draft and (geometry.draft_layers or row.draft_unsaid)
        draft = tuple(row.draft(outer, inner, geometry)) if row.draft and has_draft else None
    except ModelRefusedError as refused:
        problem = refused.problem
        raise ModelRefusedError(refused.kind, problem.where, f"{problem.sentence} {ASK}") from None
    return Counted(geometry, row, pieces, draft)


def fields_of(config: str | bytes | Mapping[str, object]) -> tuple[Fields, Fields]:
    """The outer fields of a config.json, and the language model's: the same where there is no wrapper."""
    values = object_of(config)
    outer = Fields(values)
    wrapper = WRAPPERS.get(outer.text("model_type") or "")
    return outer, outer.inner(wrapper.field) if wrapper and outer.has(wrapper.field) else outer
