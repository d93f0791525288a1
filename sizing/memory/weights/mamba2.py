"""Parameters of the Mamba2 hybrids: Nemotron-H, Granite 4.0 hybrids, Falcon-H1.

Source: models/nemotron_h.py, models/granitemoehybrid.py, models/falcon_h1.py and layers/attention/mamba/mamba.py of
SGLang 0.5.23.
"""

from sizing.memory.weights.pieces import Piece, attention_gqa, ends, gated_mlp
from sizing.models.fields import Fields
from sizing.models.geometry import Geometry
from sizing.models.kv import Gqa
from sizing.models.state import Mamba2State

MLP, MOE = ("-", "mlp"), ("E", "moe")


def nemotron_h(outer: Fields, inner: Fields, geometry: Geometry) -> list[Piece]:
    """One mixer a layer: Mamba2, attention, MLP (two matrices) or experts, these in a latent width where given."""
    hidden, state = inner.whole("hidden_size"), set(geometry.state_layers)
    pieces = ends(inner, tied=inner.true("tie_word_embeddings"))
    for layer, kind in enumerate(_kinds(inner)):
        pieces.append(Piece("norms", layer, hidden, "every rank"))
        if layer in state:
            pieces += _mamba(layer, hidden, geometry)
        elif layer in geometry.kv_layers:
            pieces += _attention(layer, inner, geometry)
        elif kind in MOE:
            pieces += _latent_experts(layer, inner)
        elif kind in MLP:
            pieces.append(Piece("MLP", layer, 2 * hidden * inner.whole("intermediate_size"), "tp", "linear"))
    return pieces


def _kinds(fields: Fields) -> tuple[object, ...]:
    if fields.has("layers_block_type"):
        return fields.items("layers_block_type")
    return tuple(fields.text("hybrid_override_pattern") or "")


def _latent_experts(layer: int, fields: Fields) -> list[Piece]:
    hidden, experts = fields.whole("hidden_size"), fields.whole("n_routed_experts")
    latent = fields.whole("moe_latent_size") if fields.has("moe_latent_size") else None
    inner = fields.whole("moe_intermediate_size")
    shared = fields.whole("n_shared_experts", low=0) if fields.has("n_shared_experts") else 0
    pieces = [
        Piece("experts", layer, experts * 2 * (latent or hidden) * inner, "tp", "expert"),
        Piece("routers", layer, experts * (hidden + 1), "every rank"),
        Piece("latent projections", layer, 2 * hidden * latent if latent else 0, "every rank", "linear"),
    ]
    if shared:
        width = shared * fields.whole("moe_shared_expert_intermediate_size")
        pieces.append(Piece("shared experts", layer, 2 * hidden * width, "shared experts", "linear"))
    return pieces


def granite(outer: Fields, inner: Fields, geometry: Geometry) -> list[Piece]:
    """Mamba2 or attention, then experts and a shared MLP; without experts the shared MLP alone."""
    hidden, state = inner.whole("hidden_size"), set(geometry.state_layers)
    pieces = ends(inner, tied=inner.true("tie_word_embeddings"))
    experts = inner.whole("num_local_experts", low=0)
    for layer in range(geometry.layers):
        pieces += _mamba(layer, hidden, geometry) if layer in state else _attention(layer, inner, geometry)
        pieces.append(gated_mlp("shared MLP", layer, hidden, inner.whole("shared_intermediate_size", low=0)))
        pieces.append(Piece("norms", layer, 2 * hidden, "every rank"))
        if experts:
            width = 3 * hidden * inner.whole("intermediate_size")
            pieces.append(Piece("experts", layer, experts * width, "tp", "expert"))
            pieces.append(Piece("routers", layer, hidden * experts, "every rank"))
    return pieces


def falcon_h1(outer: Fields, inner: Fields, geometry: Geometry) -> list[Piece]:
    """Mamba2 and attention side by side in every layer, then an MLP."""
    hidden = inner.whole("hidden_size")
    pieces = ends(inner, tied=inner.true("tie_word_embeddings"))
    for layer in range(geometry.layers):
        pieces += _mamba(layer, hidden, geometry, norm=inner.true("mamba_rms_norm"))
        pieces += _attention(layer, inner, geometry)
        pieces.append(gated_mlp("MLP", layer, hidden, inner.whole("intermediate_size")))
        pieces.append(Piece("norms", layer, 2 * hidden, "every rank"))
    return pieces


def _mamba(layer: int, hidden: int, geometry: Geometry, norm: bool = True) -> list[Piece]:
    """in_proj, conv with bias, per-head terms, gated norm, out_proj; B and C by groups."""
    state = geometry.state
    if not isinstance(state, Mamba2State):
        raise TypeError("a Mamba2 family without a Mamba2 state")
    inner, pair = state.inner, 2 * state.groups * state.state_size
    channels = state.kernel + 1
    return [
        Piece("Mamba2", layer, hidden * (2 * inner + state.heads) + inner * hidden, "attention", "linear"),
        Piece("Mamba2", layer, hidden * pair, "attention", "linear", units=state.groups),
        Piece("Mamba2", layer, inner * channels + 3 * state.heads + (inner if norm else 0), "attention"),
        Piece("Mamba2", layer, pair * channels, "attention", units=state.groups),
    ]


def _attention(layer: int, fields: Fields, geometry: Geometry) -> list[Piece]:
    if not isinstance(geometry.kv, Gqa):
        raise fields.wrong("num_key_value_heads", "describe grouped attention")
    return attention_gqa(layer, fields.whole("hidden_size"), geometry.kv, fields.whole("num_attention_heads"))
