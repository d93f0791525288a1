"""A model's weights as pieces: how many parameters, in which layer, and how ranks share them.

Source: rest-before-boot.md section 3.2; the model files of SGLang 0.5.23 (models/).
"""

from typing import Literal, NamedTuple

from sizing.models.fields import Fields
from sizing.models.kv import Gqa

Shared = Literal["attention", "tp", "dense", "shared experts", "every rank", "embedding", "head", "vision"]
"""By which width a piece is divided; `every rank` is not divided at all."""
Precision = Literal["linear", "expert", "plain"]
"""What a quantised checkpoint stores small: linear layers, routed experts, or never (plain)."""
Place = int | Literal["first", "last", "all"]
"""A layer, counted from 0, or the first, the last or every pipeline stage."""


class Piece(NamedTuple):
    """One kind of weight in one place."""

    part: str
    """What it is called in the answer."""
    place: Place
    parameters: int
    shared: Shared
    precision: Precision = "plain"
    units: int | None = None
    """Heads or groups it is made of: with more ranks than units, each rank holds one of them whole."""


def attention_gqa(
    layer: int, hidden: int, kv: Gqa, heads: int, gated: bool = False, norms: bool = False
) -> list[Piece]:
    """Query, key, value and output of grouped attention; a gated one has the query twice."""
    query = hidden * heads * kv.head_dim * (2 if gated else 1)
    pair = hidden * kv.kv_heads * (kv.head_dim + kv.v_head_dim)
    return [
        Piece("attention", layer, query + heads * kv.v_head_dim * hidden, "attention", "linear"),
        Piece("attention", layer, pair, "attention", "linear", units=kv.kv_heads),
        Piece("norms", layer, 2 * kv.head_dim if norms else 0, "every rank"),
    ]


def gated_mlp(part: str, layer: int, hidden: int, inner: int, shared: Shared = "tp") -> Piece:
    """Gate, up and down."""
    return Piece(part, layer, 3 * hidden * inner, shared, "linear")


def ends(fields: Fields, tied: bool) -> list[Piece]:
    """The embedding on the first stage, the head and the last norm on the last.

    A tied head is the embedding itself, and a copy of it where the last stage is not the first.
    """
    vocabulary, hidden = fields.whole("vocab_size"), fields.whole("hidden_size")
    head = "tied head" if tied else "head"
    return [
        Piece("embedding", "first", vocabulary * hidden, "embedding"),
        Piece(head, "last", vocabulary * hidden, "head"),
        Piece("norms", "last", hidden, "every rank"),
    ]
