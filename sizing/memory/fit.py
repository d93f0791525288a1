"""The other way round: the least number of GPUs that holds a model.

Source: rest-before-boot.md section 4.4; widths are those at which the model's heads and state divide.
"""

from collections.abc import Callable
from typing import NamedTuple

from sizing.memory.before_load import Hardware
from sizing.memory.loaded import Loaded
from sizing.memory.rest import RestEstimate, estimate
from sizing.memory.stated import Stated
from sizing.models.geometry import Geometry, attention_heads_divide, shapes
from sizing.models.refusal import ModelRefusedError

WIDTHS = (1, 2, 4, 8, 16, 32, 64)


class Fit(NamedTuple):
    """One TP width and what it leaves."""

    tp_size: int
    gpus: int
    """Over all stages."""
    estimate: RestEstimate


def widths(geometry: Geometry | None, attn_dp_size: int = 1) -> tuple[int, ...]:
    """The TP widths that load the model: attention DP divides them, and heads and state divide by what is left."""
    whole = [width for width in WIDTHS if width % attn_dp_size == 0]
    return tuple(width for width in whole if geometry is None or _loads(geometry, width // attn_dp_size))


def _loads(geometry: Geometry, attention_tp: int) -> bool:
    try:
        shapes(geometry, attention_tp)
    except ModelRefusedError:
        return False
    return attention_heads_divide(geometry, attention_tp) is not False


def at_width(stated: Stated, hardware: Hardware, load: Callable[[int], Loaded], tp_size: int) -> Fit:
    """What one TP width leaves; `load` gives the weights at a width. Raises what `estimate` and `load` raise."""
    at = stated.model_copy(update={"tp_size": tp_size})
    return Fit(tp_size, tp_size * stated.pp_size, estimate(at, hardware, load(tp_size)))


def least_gpus(
    stated: Stated, hardware: Hardware, load: Callable[[int], Loaded], geometry: Geometry | None = None
) -> Fit | None:
    """The narrowest TP width whose low end leaves something, at this number of stages; None where 64 are too few.

    Free memory that was typed holds for one width only, so it is not carried to another. Raises as `at_width`.
    """
    alone = hardware if hardware.unified else hardware.model_copy(update={"free_gib": None})
    for width in widths(geometry, stated.attn_dp_size):
        found = at_width(stated, alone, load, width)
        if found.estimate.low_gib > 0:
            return found
    return None
