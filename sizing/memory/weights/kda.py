"""Parameters of Kimi-Linear and Kimi-K3: KDA and latent attention, experts, these in a latent width for K3.

Source: models/kimi_linear.py, models/kimi_k3.py, models/kimi_k3_vl.py and models/deepseek_v2.py of SGLang 0.5.23.
"""

from sizing.memory.weights.pieces import Piece, ends, gated_mlp
from sizing.models.fields import Fields
from sizing.models.geometry import Geometry


def kimi(outer: Fields, inner: Fields, geometry: Geometry) -> list[Piece]:
    """Target without MTP, vision included."""
    state = set(geometry.state_layers)
    pieces = ends(inner, tied=inner.true("tie_word_embeddings"))
    for layer in range(geometry.layers):
        pieces += _kda(layer, inner) if layer in state else _mla(layer, inner)
        pieces += _mlp(layer, inner)
        pieces.append(Piece("norms", layer, 2 * inner.whole("hidden_size"), "every rank"))
        if inner.has("attn_res_block_size"):
            pieces.append(Piece("residual projections", layer, 2 * inner.whole("hidden_size"), "every rank"))
    return pieces + (_vision(outer.inner("vision_config")) if outer.is_object("vision_config") else [])


def _kda(layer: int, fields: Fields) -> list[Piece]:
    hidden, linear = fields.whole("hidden_size"), fields.inner("linear_attn_config")
    width, heads = linear.whole("head_dim"), linear.whole("num_heads")
    values, kernel = heads * width, linear.whole("short_conv_kernel_size")
    full_gate = linear.true("use_full_rank_gate")
    gate = hidden * values if full_gate else width * values
    low_rank = (1 if full_gate else 2) * hidden * width
    return [
        Piece("KDA", layer, 4 * hidden * values + hidden * heads + width * values + gate, "attention", "linear"),
        Piece("KDA", layer, 3 * values * kernel + values + heads, "attention"),
        Piece("KDA, low rank", layer, low_rank, "every rank", "linear"),
        Piece("norms", layer, width, "every rank"),
    ]


def _mla(layer: int, fields: Fields) -> list[Piece]:
    hidden, heads = fields.whole("hidden_size"), fields.whole("num_attention_heads")
    nope, rope = fields.whole("qk_nope_head_dim"), fields.whole("qk_rope_head_dim")
    values, latent = fields.whole("v_head_dim"), fields.whole("kv_lora_rank")
    query_rank = fields.whole("q_lora_rank") if fields.has("q_lora_rank") else None
    query = heads * (nope + rope) * (query_rank or hidden)
    gate = hidden * heads * values if fields.true("mla_use_output_gate") else 0
    sharded = query + latent * heads * (nope + values) + heads * values * hidden + gate
    repeated = hidden * (latent + rope) + (hidden * query_rank if query_rank else 0)
    return [
        Piece("attention", layer, sharded, "attention", "linear"),
        Piece("attention, low rank", layer, repeated, "every rank", "linear"),
        Piece("norms", layer, latent + (query_rank or 0), "every rank"),
    ]


def _mlp(layer: int, fields: Fields) -> list[Piece]:
    """The first layers are dense; experts sit in every moe_layer_freq-th layer after them."""
    hidden = fields.whole("hidden_size")
    first = fields.whole("first_k_dense_replace", low=0)
    every = fields.whole("moe_layer_freq") if fields.has("moe_layer_freq") else 1
    if layer < first or layer % every:
        return [gated_mlp("MLP", layer, hidden, fields.whole("intermediate_size"), "dense")]
    experts, inner = fields.whole("num_experts"), fields.whole("moe_intermediate_size")
    latent = fields.whole("routed_expert_hidden_size") if fields.has("routed_expert_hidden_size") else None
    shared = fields.whole("num_shared_experts", low=0)
    return [
        Piece("experts", layer, experts * 3 * (latent or hidden) * inner, "tp", "expert"),
        Piece("routers", layer, experts * (hidden + 1), "every rank"),
        Piece("latent projections", layer, 2 * hidden * latent + latent if latent else 0, "every rank"),
        gated_mlp("shared experts", layer, hidden, shared * inner, "shared experts"),
    ]


def _vision(fields: Fields) -> list[Piece]:
    """MoonViT without biases, and its merger: whole on every rank."""
    width, layers = fields.whole("vt_hidden_size"), fields.whole("vt_num_hidden_layers")
    attention, inner = fields.whole("qkv_hidden_size"), fields.whole("vt_intermediate_size")
    merge = fields.wholes("merge_kernel_size")
    merged = width * (merge[0] * merge[1] if len(merge) == 2 else 1)
    block = 4 * width * attention + 2 * width * inner + 2 * width
    positions = fields.whole("init_pos_emb_height") * fields.whole("init_pos_emb_width") * width
    patch = 3 * fields.whole("patch_size") ** 2 * width
    merger = merged * (merged + fields.whole("text_hidden_size"))
    return [Piece("vision", "all", layers * block + positions + patch + merger, "every rank")]
