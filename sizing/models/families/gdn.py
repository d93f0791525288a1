"""Gated delta net: Qwen3-Next, Qwen3.5, Jet-Nemotron, GigaChat 3.5.

Source: model-geometry.md section 3, rows GDN and GDN + MLA.
"""

from sizing.models.families.common import Layout, gqa, head_dim, mla, others, typed_layers, where
from sizing.models.fields import Fields
from sizing.models.state import Mamba2State


def qwen(fields: Fields) -> Layout:
    """Every full_attention_interval-th layer has attention; layer_types is in the file and the engine ignores it."""
    layers = fields.layers()
    if not fields.has("full_attention_interval"):
        raise fields.missing("full_attention_interval", "The engine reads no other field for the layer split.")
    interval = fields.whole("full_attention_interval")
    attention = tuple(range(interval - 1, layers, interval))
    return Layout(
        family="GDN",
        layers=layers,
        state_layers=others(layers, attention),
        kv_layers=attention,
        state=_linear_state(fields),
        kv=gqa(fields, fields.whole("head_dim")),  # hidden_size // heads would be wrong for every Qwen3.5
    )


def jet(fields: Fields) -> Layout:
    """Layers by type; sliding-window layers keep every token, like full ones."""
    kinds = typed_layers(fields, "layer_types", {"jet": "state", "attn": "kv", "swa": "kv"})
    block = fields.inner("efficient_attention_config").inner("jet")
    heads, keys = block.whole("num_heads"), block.whole("head_dim")
    values = int(keys * block.number("expand_v"))  # 96 x 2.6666666667 is 256: the engine truncates
    return Layout(
        family="GDN",
        layers=len(kinds),
        state_layers=where(kinds, "state"),
        kv_layers=where(kinds, "kv"),
        state=Mamba2State(
            inner=heads * values,
            groups=heads,
            heads=heads,
            head_dim=values,
            state_size=keys,
            kernel=block.whole("conv_size"),
        ),
        kv=gqa(fields, head_dim(fields)),
    )


GIGACHAT_TYPES = {"linear_attention": "state", "attention": "kv", "full_attention": "kv"}


def gigachat(fields: Fields) -> Layout:
    """Layers by type, else all but full_attention_layers [0-indexed]; attention is latent."""
    layers = fields.layers()
    if fields.has("layer_types"):
        attention = where(typed_layers(fields, "layer_types", GIGACHAT_TYPES), "kv")
    else:
        attention = tuple(sorted(set(fields.wholes("full_attention_layers"))))
        if attention and attention[-1] >= layers:
            raise fields.wrong("full_attention_layers", f"hold layers below {layers:,} (num_hidden_layers)")
    return Layout(
        family="GDN",
        layers=layers,
        state_layers=others(layers, attention),
        kv_layers=attention,
        state=_linear_state(fields),
        kv=mla(fields),
    )


def _linear_state(fields: Fields) -> Mamba2State:
    value_heads, value_dim = fields.whole("linear_num_value_heads"), fields.whole("linear_value_head_dim")
    return Mamba2State(
        inner=value_heads * value_dim,
        groups=fields.whole("linear_num_key_heads"),
        heads=value_heads,
        head_dim=value_dim,
        state_size=fields.whole("linear_key_head_dim"),
        kernel=fields.whole("linear_conv_kernel_dim"),
    )
