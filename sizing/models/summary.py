"""A model in words and rows: its bytes at each TP width, and how it stands in the catalogue."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.frames import frame_of
from sizing.basics.units import count
from sizing.models.catalogue import Entry, catalogue
from sizing.models.geometry import Geometry, attention_heads_divide, kv_bytes_per_token, state_bytes
from sizing.models.reading import read_config
from sizing.models.refusal import ModelRefusedError
from sizing.specification import token_equiv

if TYPE_CHECKING:
    from pandas import DataFrame

TP_WIDTHS = (1, 2, 4, 8, 16)


class AtWidth(NamedTuple):
    """The bytes of one rank at one attention TP width; None with the reason where it cannot be."""

    tp: int
    conv: int | None
    ssm: int | None
    token: int | None
    why_not: str
    note: str = ""
    """What else the width does to the model."""

    @property
    def slot(self) -> int | None:
        """Both parts of a slot [bytes per rank]."""
        return None if self.conv is None or self.ssm is None else self.conv + self.ssm

    @property
    def token_equiv(self) -> float | None:
        """KV tokens that one slot costs [tokens per slot]; None where there is no KV."""
        return token_equiv(self.slot, self.token) if self.slot is not None and self.token else None


def at_widths(geometry: Geometry, ssm: StateDtype, conv: StateDtype, kv: KvDtype) -> tuple[AtWidth, ...]:
    """The bytes at every TP width of TP_WIDTHS, without DCP and pipeline stages [bytes per rank]."""
    return tuple(_at_width(geometry, tp, ssm, conv, kv) for tp in TP_WIDTHS)


def _at_width(geometry: Geometry, tp: int, ssm: StateDtype, conv: StateDtype, kv: KvDtype) -> AtWidth:
    try:
        slot, token = state_bytes(geometry, tp, ssm, conv), kv_bytes_per_token(geometry, tp, kv)
    except ModelRefusedError as refused:
        return AtWidth(tp, None, None, None, str(refused))
    return AtWidth(tp, slot.conv, slot.ssm, token, "", heads_note(geometry, tp))


def heads_note(geometry: Geometry, tp: int) -> str:
    """That a width does not divide the query heads: sizing does not check it, loading does (trap 14)."""
    if attention_heads_divide(geometry, tp) is not False:
        return ""
    return f"{geometry.attention_heads} query heads do not divide by {tp}: the model would not load"


def layers_in_words(geometry: Geometry) -> str:
    """How many layers there are and what they hold."""
    state, kv = set(geometry.state_layers), set(geometry.kv_layers)
    both, neither = len(state & kv), geometry.layers - len(state | kv)
    words = [
        f"{count(len(state))} of {count(geometry.layers)} layers hold state ({geometry.family})",
        f"{count(len(kv))} hold KV ({geometry.attention})" if kv else "none holds KV",
    ]
    words += [f"{count(both)} of them hold both"] if both else []
    words += [f"{count(neither)} hold neither"] if neither else []
    return ", ".join(words) + "."


class CatalogueRow(NamedTuple):
    """One checkpoint of the catalogue; without a geometry where it is refused, with the sentence that says why."""

    entry: Entry
    geometry: Geometry | None
    why_not: str


def catalogue_rows() -> tuple[CatalogueRow, ...]:
    """Every checkpoint with its geometry, or why it has none."""
    return tuple(_row(item) for item in catalogue())


def _row(item: Entry) -> CatalogueRow:
    try:
        return CatalogueRow(item, read_config(item.config, item.quantisation), "")
    except ModelRefusedError as refused:
        return CatalogueRow(item, None, str(refused))


def frame(rows: Iterable[CatalogueRow] | None = None) -> "DataFrame":
    """One row a checkpoint of the catalogue, or of the rows given: its layers, and how sure the entry is.

    A model that is refused has no layers; `refusal` says why.
    """
    each = [*(catalogue_rows() if rows is None else rows)]
    shapes = [row.geometry for row in each]
    return frame_of(
        {
            "model": [row.entry.id for row in each],
            "state_layers [layers]": [len(shape.state_layers) if shape else None for shape in shapes],
            "kv_layers [layers]": [len(shape.kv_layers) if shape else None for shape in shapes],
            "layers [layers]": [shape.layers if shape else None for shape in shapes],
            "family": [shape.family if shape else None for shape in shapes],
            "attention": [shape.attention if shape else None for shape in shapes],
            "how_sure": [row.entry.verification for row in each],
            "same_shapes": [", ".join(row.entry.same_shapes) for row in each],
            "refusal": [row.why_not for row in each],
        }
    )
