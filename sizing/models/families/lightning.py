"""Lightning attention: Ling-2.5 and Ring-2.5 (latent attention), MiniCPM-SALA (GQA).

Source: model-geometry.md section 3, rows lightning.
"""

from sizing.models.families.common import Layout, gqa, head_dim, mla, others, where
from sizing.models.fields import Fields
from sizing.models.state import LightningState


def bailing_attention(fields: Fields) -> tuple[int, tuple[int, ...]]:
    """How many layers Ling has, and which [0-indexed] have attention.

    layer_group_size is a number, whose every multiple ends in an attention layer and whose incomplete last group
    is linear (trap 9), or a list in which 1 marks a linear layer.
    """
    layers = fields.layers()
    if not fields.is_list("layer_group_size"):
        size = fields.whole("layer_group_size")
        return layers, tuple(range(size - 1, layers, size))
    marks = fields.wholes("layer_group_size")
    if len(marks) != layers:
        raise fields.wrong("layer_group_size", f"be a number or a list of {layers:,} (num_hidden_layers)")
    return layers, tuple(layer for layer, mark in enumerate(marks) if mark != 1)


def bailing(fields: Fields) -> Layout:
    """Ling-2.5: as many state heads as query heads; the rope part always stays in the row."""
    layers, attention = bailing_attention(fields)
    return Layout(
        family="lightning",
        layers=layers,
        state_layers=others(layers, attention),
        kv_layers=attention,
        state=LightningState(heads=fields.whole("num_attention_heads"), head_dim=head_dim(fields)),
        kv=mla(fields),
    )


SALA_TYPES = {
    **dict.fromkeys(("lightning", "lightning_attn", "lightning-attn"), "state"),
    **dict.fromkeys(("minicpm4", "minicpm", "standard", "attention", "attn"), "kv"),
}


def minicpm_sala(fields: Fields) -> Layout:
    """mixer_types is repeated until it covers all layers. The side cache of its sparse attention is not counted."""
    layers, cycle = fields.layers(), fields.words("mixer_types", SALA_TYPES)
    if len(cycle) > layers:
        raise fields.wrong("mixer_types", f"have at most {layers:,} entries (num_hidden_layers)")
    kinds = tuple(cycle[layer % len(cycle)] for layer in range(layers))
    width = head_dim(fields)
    attention = gqa(fields, width)
    return Layout(
        family="lightning",
        layers=layers,
        state_layers=where(kinds, "state"),
        kv_layers=where(kinds, "kv"),
        state=LightningState(
            heads=fields.whole("lightning_nkv") if fields.has("lightning_nkv") else attention.kv_heads,
            head_dim=fields.whole("lightning_head_dim") if fields.has("lightning_head_dim") else width,
        ),
        kv=attention,
    )
