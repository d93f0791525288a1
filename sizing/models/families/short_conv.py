"""Convolutions without an SSM part: LFM2 (short conv), ZAYA (CCA), Inkling (sconv).

Source: model-geometry.md section 3, rows short conv, CCA and sconv.
"""

from sizing.models.families.common import (
    Layout,
    gqa,
    head_dim,
    kv_heads,
    others,
    typed_layers,
    where,
)
from sizing.models.fields import Fields
from sizing.models.kv import Gqa, SlidingGqa
from sizing.models.state import CcaState, SconvState, ShortConvState

LFM2_TYPES = {**dict.fromkeys(("conv", "short_conv"), "state"), "full_attention": "kv"}

# The configuration class's own default (catalogue, thinkingmachines/Inkling) [tokens].
INKLING_WINDOW = 512


def lfm2(fields: Fields) -> Layout:
    """Layers by type; older files list the attention layers in full_attn_idxs [0-indexed] instead."""
    if fields.has("layer_types"):
        kinds = typed_layers(fields, "layer_types", LFM2_TYPES)
        layers, attention, state = len(kinds), where(kinds, "kv"), where(kinds, "state")
    else:
        if not fields.has("full_attn_idxs"):
            raise fields.missing("layer_types", "Neither it nor full_attn_idxs says what each layer is.")
        layers = fields.layers()
        attention = tuple(sorted({layer for layer in fields.wholes("full_attn_idxs") if layer < layers}))
        state = others(layers, attention)
    return Layout(
        family="short conv",
        layers=layers,
        state_layers=state,
        kv_layers=attention,
        state=ShortConvState(hidden=fields.whole("hidden_size"), kernel=fields.whole("conv_L_cache")),
        kv=gqa(fields, head_dim(fields)),
    )


def zaya(fields: Fields) -> Layout:
    """The attention layers hold both state and KV: those marked "a" in zaya_layers, else every even one."""
    if fields.has("zaya_layers") and (marks := fields.items("zaya_layers")):
        layers, both = len(marks), tuple(layer for layer, mark in enumerate(marks) if mark == "a")
    else:
        layers = fields.layers()
        both = tuple(range(0, layers, 2))
    width = fields.whole("head_dim" if fields.has("head_dim") else "kv_channels")
    heads = _zaya_query_heads(fields)
    channels = (heads + kv_heads(fields)) * width
    padding = fields.whole("cca_time0") - 1 + fields.whole("cca_time1") - 1
    return Layout(
        family="CCA",
        layers=layers,
        state_layers=both,
        kv_layers=both,
        state=CcaState(channels=channels, padding=padding, hidden=fields.whole("hidden_size")),
        kv=gqa(fields, width),
        query_heads=heads,
    )


def _zaya_query_heads(fields: Fields) -> int:
    """cca_num_q_heads lists them for each layer, 0 where there is none; the first one counts for all."""
    if fields.has("cca_num_q_heads"):
        for heads in fields.wholes("cca_num_q_heads"):
            if heads:
                return heads
    return fields.whole("num_attention_heads")


def inkling(fields: Fields) -> Layout:
    """Every layer keeps conv state and KV; local_layer_ids [0-indexed] have a sliding window."""
    layers = tuple(range(fields.layers()))
    width = head_dim(fields)
    full = gqa(fields, width)
    sliding = _inkling_sliding(fields, full)
    local = set(fields.wholes("local_layer_ids")) if fields.has("local_layer_ids") else set()
    return Layout(
        family="sconv",
        layers=len(layers),
        state_layers=layers,
        kv_layers=layers,
        state=SconvState(
            kv_heads=full.kv_heads,
            head_dim=width,
            swa_kv_heads=sliding.kv_heads,
            swa_head_dim=sliding.head_dim,
            hidden=fields.whole("hidden_size"),
            kernel=fields.whole("sconv_kernel_size"),
        ),
        kv=SlidingGqa(
            full=full,
            sliding=sliding,
            sliding_layers=tuple(layer for layer in layers if layer in local),
            window=fields.whole("sliding_window_size") if fields.has("sliding_window_size") else INKLING_WINDOW,
            draft_window_layers=fields.wholes("mtp_local_layer_ids") if fields.has("mtp_local_layer_ids") else (),
        ),
    )


def _inkling_sliding(fields: Fields, full: Gqa) -> Gqa:
    """The window layers' own heads, where they have their own."""
    width = fields.whole("swa_head_dim") if fields.has("swa_head_dim") else full.head_dim
    return Gqa(
        kv_heads=fields.whole("swa_num_key_value_heads") if fields.has("swa_num_key_value_heads") else full.kv_heads,
        head_dim=width,
        v_head_dim=fields.whole("swa_v_head_dim") if fields.has("swa_v_head_dim") else width,
    )
