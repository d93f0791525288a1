"""Pure Mamba-1: Mamba and Falcon-Mamba, without attention.

Source: model-geometry.md section 3, row Mamba-1/2 only.
"""

from sizing.models.families.common import Layout
from sizing.models.fields import Fields
from sizing.models.state import Mamba1State


def pure(fields: Fields) -> Layout:
    """All layers keep state; intermediate_size wins over expand x hidden_size, which it need not equal."""
    layers = tuple(range(fields.layers()))
    if fields.has("intermediate_size"):
        inner = fields.whole("intermediate_size")
    else:
        inner = int(fields.number("expand") * fields.whole("hidden_size"))
    return Layout(
        family="Mamba-1",
        layers=len(layers),
        state_layers=layers,
        kv_layers=(),
        state=Mamba1State(inner=inner, state_size=fields.whole("state_size"), kernel=fields.whole("conv_kernel")),
        kv=None,
    )
