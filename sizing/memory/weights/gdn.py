"""Parameters of Qwen3-Next and Qwen3.5: GDN and gated attention, dense or sparse MLP, vision tower, MTP layer.

Source: models/qwen3_next.py, models/qwen3_5.py, models/qwen2_moe.py and models/qwen3_vl.py of SGLang 0.5.23.
"""

from sizing.memory.weights.pieces import Piece, attention_gqa, ends, gated_mlp
from sizing.models.fields import Fields
from sizing.models.geometry import Geometry
from sizing.models.kv import Gqa


def qwen(outer: Fields, inner: Fields, geometry: Geometry) -> list[Piece]:
    """Target without MTP, vision included."""
    state = set(geometry.state_layers)
    pieces = ends(inner, tied=_tied(outer, inner))
    for layer in range(geometry.layers):
        pieces += _gdn(layer, inner) if layer in state else _attention(layer, inner, geometry)
        pieces += _mlp(layer, inner)
        pieces.append(Piece("norms", layer, 2 * inner.whole("hidden_size"), "every rank"))
    return pieces + (_vision(outer.inner("vision_config")) if outer.is_object("vision_config") else [])


def mtp(outer: Fields, inner: Fields, geometry: Geometry) -> list[Piece]:
    """The MTP layer as a draft: joining projection, one attention layer with its MLP, own embedding and head."""
    hidden, last = inner.whole("hidden_size"), geometry.layers - 1
    own = [
        Piece("norms", last, 5 * hidden, "every rank"),
        Piece("joining projection", last, 2 * hidden**2, "every rank"),
    ]
    return [*ends(inner, tied=False), *own, *_attention(last, inner, geometry), *_mlp(last, inner)]


def _tied(outer: Fields, inner: Fields) -> bool:
    return outer.true("tie_word_embeddings") or inner.true("tie_word_embeddings")


def _gdn(layer: int, fields: Fields) -> list[Piece]:
    hidden = fields.whole("hidden_size")
    keys = fields.whole("linear_num_key_heads") * fields.whole("linear_key_head_dim")
    heads, width = fields.whole("linear_num_value_heads"), fields.whole("linear_value_head_dim")
    values = heads * width
    return [
        Piece("GDN", layer, hidden * (2 * keys + 2 * values) + values * hidden, "attention", "linear"),
        Piece("GDN", layer, 2 * hidden * heads, "attention"),
        Piece("GDN", layer, (2 * keys + values) * fields.whole("linear_conv_kernel_dim") + 2 * heads, "attention"),
        Piece("norms", layer, width, "every rank"),
    ]


def _attention(layer: int, fields: Fields, geometry: Geometry) -> list[Piece]:
    """attn_output_gate is in every published file; the engine's own default is on as well."""
    if not isinstance(geometry.kv, Gqa):
        raise fields.wrong("num_key_value_heads", "describe grouped attention")
    gated = fields.true("attn_output_gate") if fields.has("attn_output_gate") else True
    return attention_gqa(
        layer, fields.whole("hidden_size"), geometry.kv, fields.whole("num_attention_heads"), gated, norms=True
    )


def _mlp(layer: int, fields: Fields) -> list[Piece]:
    hidden = fields.whole("hidden_size")
    if not fields.has("num_experts"):
        return [gated_mlp("MLP", layer, hidden, fields.whole("intermediate_size"))]
    experts, shared = fields.whole("num_experts"), fields.whole("shared_expert_intermediate_size", low=0)
    return [
        Piece("experts", layer, experts * 3 * hidden * fields.whole("moe_intermediate_size"), "tp", "expert"),
        Piece("routers", layer, hidden * experts + (hidden if shared else 0), "every rank"),
        gated_mlp("shared experts", layer, hidden, shared, "shared experts"),
    ]


def _vision(fields: Fields) -> list[Piece]:
    """The Qwen tower, on every pipeline stage: blocks, patch embedding, positions, merger."""
    depth, width, inner = fields.whole("depth"), fields.whole("hidden_size"), fields.whole("intermediate_size")
    patch = fields.whole("in_channels") * fields.whole("temporal_patch_size") * fields.whole("patch_size") ** 2
    merged = width * fields.whole("spatial_merge_size") ** 2
    out = fields.whole("out_hidden_size")
    block = 4 * width * width + 2 * width * inner + 9 * width + inner
    return [
        Piece("vision", "all", depth * block + merged * (merged + 1) + merged * out + out, "vision"),
        Piece("vision", "all", width * (patch + fields.whole("num_position_embeddings") + 3), "every rank"),
    ]
