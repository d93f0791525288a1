"""Kimi delta attention with latent attention: Kimi-Linear, Kimi-K3, Ling-3.0, GLM-5-Next.

Source: model-geometry.md section 3, rows KDA + MLA and KDA + DSA.
"""

from sizing.models.families.common import Layout, mla, others, typed_layers, where
from sizing.models.families.lightning import bailing_attention
from sizing.models.fields import Fields
from sizing.models.kv import Dsa, Kv
from sizing.models.state import KdaState


def kimi(fields: Fields) -> Layout:
    """linear_attn_config.kda_layers counts from 1 (trap 10); the rope part stays in the row with mla_use_nope."""
    layers, linear = fields.layers(), fields.inner("linear_attn_config")
    state = tuple(sorted({layer - 1 for layer in linear.wholes("kda_layers") if 0 < layer <= layers}))
    return Layout(
        family="KDA",
        layers=layers,
        state_layers=state,
        kv_layers=others(layers, state),
        state=_listed_state(linear),
        kv=mla(fields),
    )


def bailing(fields: Fields) -> Layout:
    """Ling-3.0: Ling's layer groups with KDA; use_mla_nope drops the rope part."""
    layers, attention = bailing_attention(fields)
    return Layout(
        family="KDA",
        layers=layers,
        state_layers=others(layers, attention),
        kv_layers=attention,
        state=KdaState(
            heads=fields.whole("num_attention_heads"),
            head_dim=fields.whole("head_dim"),
            kernel=fields.whole("short_conv_kernel_size"),
        ),
        kv=mla(fields, rope=not fields.true("use_mla_nope")),
    )


GLM_TYPES = {"linear_attention": "state", "full_attention": "kv", "attention": "kv"}
GLM_PERIOD = 4  # model-geometry.md section 3: without a list, layers with i % 4 != 3 keep state


def glm(fields: Fields) -> Layout:
    """GLM-5-Next: linear_attn_config.kda_layers counts from 0 here; without it layer_types, else three in four."""
    layers = fields.layers()
    if fields.has("linear_attn_config"):
        linear = fields.inner("linear_attn_config")
        state = tuple(sorted({layer for layer in linear.wholes("kda_layers") if layer < layers}))
        kda = _listed_state(linear)
    else:
        state = _glm_state_layers(fields, layers)
        kda = KdaState(
            heads=fields.whole("linear_num_heads"),
            head_dim=fields.whole("linear_head_dim"),
            kernel=fields.whole("linear_conv_kernel_dim"),
        )
    attention = others(layers, state)
    return Layout("KDA", layers, state, attention, kda, _glm_kv(fields, attention))


def _glm_state_layers(fields: Fields, layers: int) -> tuple[int, ...]:
    if fields.has("layer_types"):
        return where(typed_layers(fields, "layer_types", GLM_TYPES), "state")
    return tuple(layer for layer in range(layers) if layer % GLM_PERIOD != GLM_PERIOD - 1)


def _glm_kv(fields: Fields, attention: tuple[int, ...]) -> Kv:
    if not fields.has("index_topk"):
        return mla(fields)  # sparse only with an indexer
    latent = mla(fields)
    return Dsa(
        kv_lora_rank=latent.kv_lora_rank,
        rope_dim=latent.rope_dim,
        index_head_dim=fields.whole("index_head_dim"),
        index_kpool=fields.whole("index_kpool") if fields.has("index_kpool") else 1,
        indexer_layers=tuple(layer for layer in attention if not _shares_topk(fields, layer)),
    )


def _shares_topk(fields: Fields, layer: int) -> bool:
    """Whether this layer reuses an earlier layer's choice, so that it has no index keys (`dsa_layer_skips_topk`)."""
    if pattern := fields.text("index_topk_pattern"):
        return pattern[layer : layer + 1] == "S"
    every = fields.whole("index_topk_freq") if fields.has("index_topk_freq") else 1
    first = fields.whole("index_skip_topk_offset") if fields.has("index_skip_topk_offset") else 2
    return max(layer - first + 1, 0) % every != 0


def _listed_state(linear: Fields) -> KdaState:
    return KdaState(
        heads=linear.whole("num_heads"),
        head_dim=linear.whole("head_dim"),
        kernel=linear.whole("short_conv_kernel_size"),
    )
