"""What the readers of several families share: the result they give, attention heads, and lists of layers."""

from typing import Literal, NamedTuple

from sizing.models.fields import Fields
from sizing.models.kv import Gqa, Kv, Mla
from sizing.models.refusal import ModelRefusedError
from sizing.models.state import State

FamilyName = Literal["GDN", "KDA", "lightning", "Mamba2", "short conv", "CCA", "sconv", "Mamba-1"]


class Layout(NamedTuple):
    """What a family's reader finds in the fields of a model. Layers are numbered from 0."""

    family: FamilyName
    layers: int
    """All layers, also those that hold neither state nor KV (MLP, MoE)."""
    state_layers: tuple[int, ...]
    kv_layers: tuple[int, ...]
    state: State
    kv: Kv | None
    """None for a model without attention."""
    query_heads: int | None = None
    """Where num_attention_heads does not say."""
    side_elements: int = 0
    """Elements of states beside the pool [per slot, whole on every rank]."""


def where(kinds: tuple[str, ...], kind: str) -> tuple[int, ...]:
    """The layers [0-indexed] of one kind."""
    return tuple(layer for layer, found in enumerate(kinds) if found == kind)


def others(layers: int, these: tuple[int, ...]) -> tuple[int, ...]:
    """The layers [0-indexed] of a model of `layers` that are not among these."""
    taken = set(these)
    return tuple(layer for layer in range(layers) if layer not in taken)


def typed_layers(fields: Fields, field: str, allowed: dict[str, str]) -> tuple[str, ...]:
    """One kind for each layer from a list of words. Raises ModelRefusedError where the list is not that long."""
    kinds, layers = fields.words(field, allowed), fields.layers()
    if len(kinds) != layers:
        raise ModelRefusedError(
            "wrong",
            fields.name(field),
            f"{fields.name(field)} has a length of {len(kinds):,} for {layers:,} layers (num_hidden_layers).",
        )
    return kinds


def kv_heads(fields: Fields) -> int:
    """KV heads of the whole model; null means one for each query head (`get_total_num_kv_heads`)."""
    if not fields.has("num_key_value_heads") and "num_key_value_heads" in fields.names():
        return fields.whole("num_attention_heads")
    return fields.whole("num_key_value_heads")


def head_dim(fields: Fields) -> int:
    """The explicit head_dim, else hidden_size // num_attention_heads (trap 11 of model-geometry.md)."""
    if fields.has("head_dim"):
        return fields.whole("head_dim")
    return fields.whole("hidden_size") // fields.whole("num_attention_heads")


def gqa(fields: Fields, width: int) -> Gqa:
    """KV heads of this head width [elements]; values have their own width only where v_head_dim says so."""
    values = fields.whole("v_head_dim", low=0) if fields.has("v_head_dim") else 0
    return Gqa(kv_heads=kv_heads(fields), head_dim=width, v_head_dim=values or width)


def mla(fields: Fields, rope: bool = True) -> Mla:
    """The latent row; the rope part is kept whether or not the model rotates it, unless `rope` is false."""
    return Mla(
        kv_lora_rank=fields.whole("kv_lora_rank"),
        rope_dim=fields.whole("qk_rope_head_dim", low=0) if rope else 0,
    )
