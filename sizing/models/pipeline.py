"""Pipeline stages: which layers a rank has, and the bytes that the engine charges it for.

State is charged at the largest stage's share on every rank, KV at a rank's own layers (trap 16 of model-geometry.md).
Source: engine-sizing.md section 2, PP (`get_pp_indices`, SGLang 0.5.23).
"""

from typing import NamedTuple

from sizing.basics.problems import shown
from sizing.models.geometry import Geometry, kv_bytes_per_token
from sizing.models.kv import KvCacheDtype
from sizing.models.refusal import ModelRefusedError

PARTITION = "SGLANG_PP_LAYER_PARTITION"


class Stage(NamedTuple):
    """The layers of one pipeline stage, numbered from 0 over the whole model."""

    layers: tuple[int, ...]
    state_layers: tuple[int, ...]
    kv_layers: tuple[int, ...]


def stages(geometry: Geometry, pp_size: int = 1, partition: str | None = None) -> tuple[Stage, ...]:
    """The stages in order: layers // pp_size each, the remainder one more to each of the LAST stages.

    `partition` is SGLANG_PP_LAYER_PARTITION, as in "60,33"; the engine ignores it without pipeline parallelism.
    Raises ModelRefusedError (layout) for a partition that does not fit and for more stages than layers.
    """
    counts = _counts(geometry.layers, pp_size, partition)
    ends = [sum(counts[: stage + 1]) for stage in range(pp_size)]
    state, kv = set(geometry.state_layers), set(geometry.kv_layers)
    owned = [tuple(range(end - count, end)) for end, count in zip(ends, counts, strict=True)]
    return tuple(
        Stage(
            layers=layers,
            state_layers=tuple(layer for layer in layers if layer in state),
            kv_layers=tuple(layer for layer in layers if layer in kv),
        )
        for layers in owned
    )


def _counts(layers: int, pp_size: int, partition: str | None) -> list[int]:
    if not 1 <= pp_size <= layers:
        raise ModelRefusedError("layout", "pp_size", f"pp_size must be from 1 to {layers:,} (layers), not {pp_size:,}.")
    if partition is None or pp_size == 1:
        return [layers // pp_size + (stage >= pp_size - layers % pp_size) for stage in range(pp_size)]
    parts = [part.strip() for part in partition.split(",")]
    counts = [int(part) for part in parts if part.isdecimal() and len(part) < 6]
    if len(counts) != len(parts) or len(counts) != pp_size or sum(counts) != layers:
        raise ModelRefusedError(
            "layout",
            PARTITION,
            f"{PARTITION} must be {pp_size:,} whole numbers that add up to {layers:,} layers, not {shown(partition)}.",
        )
    return counts


def charged_bytes(geometry: Geometry, whole_model_bytes: int, across: tuple[Stage, ...]) -> int:
    """State or ring bytes [bytes per rank] that every rank is charged: the largest stage's share of the whole model's.

    The engine multiplies by a float share and truncates, in this order.
    """
    if len(across) == 1:
        return whole_model_bytes
    largest = max(len(stage.state_layers) for stage in across)
    return int(whole_model_bytes * (largest / len(geometry.state_layers)))


def most_kv_layers(across: tuple[Stage, ...]) -> tuple[int, ...]:
    """The attention layers of the stage that has most of them: it is the one that bounds the tokens."""
    return max((stage.kv_layers for stage in across), key=len)


def most_kv_bytes(geometry: Geometry, across: tuple[Stage, ...], tp: int, dtype: KvCacheDtype, dcp: int = 1) -> int:
    """KV bytes of a row [bytes per rank] on the stage that has most of them."""
    return max(kv_bytes_per_token(geometry, tp, dtype, dcp, layers=stage.kv_layers) for stage in across)
