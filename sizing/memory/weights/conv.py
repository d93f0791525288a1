"""Parameters of LFM2: short convolutions, grouped attention and a gated MLP.

Source: models/lfm2.py of SGLang 0.5.23.
"""

from sizing.memory.weights.pieces import Piece, attention_gqa, ends, gated_mlp
from sizing.models.fields import Fields
from sizing.models.geometry import Geometry
from sizing.models.kv import Gqa


def lfm2(outer: Fields, inner: Fields, geometry: Geometry) -> list[Piece]:
    """The head is tied unless the file says otherwise (the class's default)."""
    hidden, state = inner.whole("hidden_size"), set(geometry.state_layers)
    if not isinstance(geometry.kv, Gqa):
        raise inner.wrong("num_key_value_heads", "describe grouped attention")
    tied = inner.true("tie_word_embeddings") if inner.has("tie_word_embeddings") else True
    pieces = ends(inner, tied=tied)
    for layer in range(geometry.layers):
        if layer in state:
            pieces.append(Piece("short conv", layer, 4 * hidden * hidden, "attention", "linear"))
            pieces.append(Piece("short conv", layer, hidden * inner.whole("conv_L_cache"), "attention"))
        else:
            heads = inner.whole("num_attention_heads")
            pieces += attention_gqa(layer, hidden, geometry.kv, heads, norms=True)
        pieces.append(gated_mlp("MLP", layer, hidden, _inner(inner)))
        pieces.append(Piece("norms", layer, 2 * hidden, "every rank"))
    return pieces


def _inner(fields: Fields) -> int:
    """Lfm2MLP: two thirds of intermediate_size, scaled, up to the next multiple, unless the file switches that off."""
    width = fields.whole("intermediate_size" if fields.has("intermediate_size") else "block_ff_dim")
    if not (fields.true("block_auto_adjust_ff_dim") if fields.has("block_auto_adjust_ff_dim") else True):
        return width
    width = 2 * width // 3
    if fields.has("block_ffn_dim_multiplier"):
        width = int(fields.number("block_ffn_dim_multiplier") * width)
    multiple = fields.whole("block_multiple_of")
    return -(-width // multiple) * multiple
