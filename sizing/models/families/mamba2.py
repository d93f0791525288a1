"""Mamba2: Nemotron-H, Falcon-H1, Granite 4.0 hybrids, and pure Mamba2.

Source: model-geometry.md section 3, rows Mamba2 and Mamba-1/2 only.
"""

from sizing.models.families.common import Layout, gqa, head_dim, typed_layers, where
from sizing.models.fields import Fields
from sizing.models.refusal import ModelRefusedError
from sizing.models.state import Mamba2State

NEMOTRON_SIGNS = {"M": "state", "*": "kv", "-": "neither", "E": "neither"}
NEMOTRON_TYPES = {
    **dict.fromkeys(("mamba", "linear_attention"), "state"),
    **dict.fromkeys(("attention", "full_attention"), "kv"),
    **dict.fromkeys(("mlp", "moe"), "neither"),
}
NEMOTRON_HEAD_DIM = 128  # section 3: the class default; attention_head_dim of the first releases is not read


def nemotron_h(fields: Fields) -> Layout:
    """The pattern says what each layer is, and num_hidden_layers is ignored (trap 8)."""
    kinds = _nemotron_layers(fields)
    if not fields.has("n_groups"):
        raise fields.missing("n_groups", "The engine does not start without it.")
    heads, width = fields.whole("mamba_num_heads"), fields.whole("mamba_head_dim")
    return Layout(
        family="Mamba2",
        layers=len(kinds),
        state_layers=where(kinds, "state"),
        kv_layers=where(kinds, "kv"),
        state=Mamba2State(
            inner=heads * width,
            groups=fields.whole("n_groups"),
            heads=heads,
            head_dim=width,
            state_size=fields.whole("ssm_state_size"),
            kernel=fields.whole("conv_kernel"),
        ),
        kv=gqa(fields, fields.whole("head_dim") if fields.has("head_dim") else NEMOTRON_HEAD_DIM),
    )


def _nemotron_layers(fields: Fields) -> tuple[str, ...]:
    if fields.has("layers_block_type"):
        return fields.words("layers_block_type", NEMOTRON_TYPES)
    pattern = fields.text("hybrid_override_pattern")
    if not pattern:
        raise fields.missing("hybrid_override_pattern", "Neither it nor layers_block_type says what each layer is.")
    return Fields({"hybrid_override_pattern": list(pattern)}, fields.name("")).words(
        "hybrid_override_pattern", NEMOTRON_SIGNS
    )


def falcon_h1(fields: Fields) -> Layout:
    """State and attention side by side in every layer; mamba_d_ssm null means mamba_expand x hidden_size."""
    layers = tuple(range(fields.layers()))
    inner = fields.whole("mamba_d_ssm") if fields.has("mamba_d_ssm") else _expanded(fields)
    return Layout(
        family="Mamba2",
        layers=len(layers),
        state_layers=layers,
        kv_layers=layers,
        state=_prefixed_state(fields, inner),
        kv=gqa(fields, head_dim(fields)),
    )


GRANITE_TYPES = {
    **dict.fromkeys(("mamba", "linear_attention"), "state"),
    **dict.fromkeys(("attention", "full_attention"), "kv"),
}
GRANITE_PERIOD = 6  # section 3: without layer_types every sixth layer has attention


def granite(fields: Fields) -> Layout:
    """Layers by type. One whose layers are all attention is no hybrid (trap 13) and its Mamba fields do not count."""
    if fields.has("layer_types"):
        kinds = typed_layers(fields, "layer_types", GRANITE_TYPES)
    else:
        kinds = tuple("state" if (layer + 1) % GRANITE_PERIOD else "kv" for layer in range(fields.layers()))
    if "state" not in kinds:
        raise ModelRefusedError(
            "no_state_pool",
            fields.name("layer_types"),
            f"{fields.name('layer_types')} holds attention layers only: there is no state pool to size.",
        )
    return Layout(
        family="Mamba2",
        layers=len(kinds),
        state_layers=where(kinds, "state"),
        kv_layers=where(kinds, "kv"),
        state=_prefixed_state(fields, _expanded(fields)),
        kv=gqa(fields, head_dim(fields)),
    )


def pure(fields: Fields) -> Layout:
    """No attention. intermediate_size must be in the file: the engine does not start without it."""
    layers = tuple(range(fields.layers()))
    return Layout(
        family="Mamba2",
        layers=len(layers),
        state_layers=layers,
        kv_layers=(),
        state=Mamba2State(
            inner=fields.whole("intermediate_size"),
            groups=fields.whole("n_groups"),
            heads=fields.whole("num_heads"),
            head_dim=fields.whole("head_dim"),
            state_size=fields.whole("state_size"),
            kernel=fields.whole("conv_kernel"),
        ),
        kv=None,
    )


def _expanded(fields: Fields) -> int:
    return fields.whole("mamba_expand") * fields.whole("hidden_size")


def _prefixed_state(fields: Fields, inner: int) -> Mamba2State:
    """Falcon's and Granite's spelling; the engine refuses heads whose widths do not add up to the inner width."""
    heads = fields.whole("mamba_n_heads")
    automatic = not fields.has("mamba_d_head") or fields.says("mamba_d_head", "auto")
    width = inner // heads if automatic else fields.whole("mamba_d_head")
    if heads * width != inner:
        raise ModelRefusedError(
            "wrong",
            fields.name("mamba_n_heads"),
            f"{fields.name('mamba_n_heads')} {heads:,} x mamba_d_head {width:,} is not the inner width {inner:,}.",
        )
    return Mamba2State(
        inner=inner,
        groups=fields.whole("mamba_n_groups"),
        heads=heads,
        head_dim=width,
        state_size=fields.whole("mamba_d_state"),
        kernel=fields.whole("mamba_d_conv"),
    )
