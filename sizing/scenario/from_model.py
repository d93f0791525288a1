"""What a catalogued model fills in: the byte constants of a scenario, at its own widths and dtypes.

Source: model-geometry.md through `sizing.models`. Nothing here is rounded: every number is the engine's integer.
"""

import re
from functools import cache
from typing import Any, NamedTuple

from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.step import Step
from sizing.basics.units import count, number
from sizing.models.catalogue import Entry, catalogue, entry
from sizing.models.geometry import Geometry, kv_bytes_per_token, ring_bytes_per_request, state_bytes
from sizing.models.kv import Dsa
from sizing.models.pipeline import charged_bytes, most_kv_bytes, stages
from sizing.models.reading import read_config
from sizing.models.refusal import ModelRefusedError
from sizing.models.summary import layers_in_words
from sizing.specification import token_equiv

# The fields of a scenario that follow from its model; they are typed in only where no model is named.
FILLED = (
    "family",
    "attention",
    "kv_heads",
    "architecture",
    "index_page_tokens",
    "state_bytes_per_slot",
    "conv_bytes_per_slot",
    "conv_kernel",
    "state_bytes_dtype",
    "conv_bytes_dtype",
    "state_bytes_all_stages",
    "state_bytes_source",
    "kv_bytes_per_token",
    "kv_bytes_dtype",
    "kv_bytes_dcp_size",
    "kv_bytes_source",
    "ring_bytes_per_position",
)
INDEX_PAGE_KEYS = 64
DEFAULT_KERNEL = 4  # the width of nearly every short convolution; counts only where there is one


class Widths(NamedTuple):
    """How a model is spread over ranks, and the dtypes that run."""

    tp_size: int
    attn_dp_size: int
    dcp_size: int
    pp_size: int
    ssm: StateDtype
    conv: StateDtype
    kv: KvDtype

    @property
    def attn_tp_size(self) -> int:
        """Ranks that share the heads of one attention layer."""
        return self.tp_size // self.attn_dp_size


@cache
def geometry_of(model: str) -> Geometry:
    """The geometry of a catalogued model, by its name, that of one of the same shapes, or the name without its owner.

    Raises KeyError, or ModelRefusedError for one that cannot be sized.
    """
    found = entry_of(model)
    return read_config(found.config, found.quantisation)


def entry_of(model: str) -> Entry:
    """The catalogue's entry for such a name. Raises KeyError."""
    return entry(_ids()[model.lower()])


@cache
def _ids() -> dict[str, str]:
    """Every name in lower case to the entry's id; a short name that two owners share is left out."""
    whole = {name.lower(): item.id for item in catalogue() for name in (*_twins(item), item.id)}
    short: dict[str, set[str]] = {}
    for name, id in whole.items():
        short.setdefault(name.partition("/")[2], set()).add(id)
    return {name: ids.pop() for name, ids in short.items() if len(ids) == 1} | whole


def _twins(item: Entry) -> tuple[str, ...]:
    """Checkpoints of the same shapes that are named in full."""
    return tuple(name for name in item.same_shapes if re.fullmatch(r"[\w.-]+/[\w.-]+", name))


@cache
def servable() -> tuple[str, ...]:
    """The catalogued models that have both pools, in the catalogue's order."""
    return tuple(item.id for item in catalogue() if _is_servable(item.id))


@cache
def names() -> tuple[str, ...]:
    """The same, and every checkpoint of the same shapes, in order of the alphabet."""
    found = {name for item in catalogue() if _is_servable(item.id) for name in (item.id, *_twins(item))}
    return tuple(sorted(found, key=str.lower))


def _is_servable(model: str) -> bool:
    try:
        _check_pools(geometry_of(model))
    except ModelRefusedError:
        return False
    return True


@cache
def filled(geometry: Geometry, widths: Widths) -> dict[str, Any]:
    """The FILLED fields of a scenario with this model [bytes per rank]. Raises ModelRefusedError."""
    _check_pools(geometry)
    tp = widths.attn_tp_size
    across = stages(geometry, widths.pp_size)
    whole = state_bytes(geometry, tp, widths.ssm, widths.conv)
    ring = ring_bytes_per_request(geometry, tp, 1, widths.conv)
    return {
        "family": _family(geometry),
        "attention": geometry.attention,
        "kv_heads": geometry.kv_heads if geometry.attention == "GQA" else None,
        "architecture": geometry.architecture or "",
        "index_page_tokens": _index_page(geometry),
        "state_bytes_per_slot": charged_bytes(geometry, whole.total, across),
        "conv_bytes_per_slot": charged_bytes(geometry, whole.conv, across),
        "conv_kernel": getattr(geometry.state, "kernel", DEFAULT_KERNEL),
        "state_bytes_dtype": widths.ssm,
        "conv_bytes_dtype": widths.conv,
        "state_bytes_all_stages": whole.total if widths.pp_size > 1 else None,
        "state_bytes_source": "model geometry",
        "kv_bytes_per_token": most_kv_bytes(geometry, across, tp, widths.kv, widths.dcp_size),
        "kv_bytes_dtype": widths.kv,
        "kv_bytes_dcp_size": widths.dcp_size,
        "kv_bytes_source": "model geometry",
        "ring_bytes_per_position": charged_bytes(geometry, ring, across) or None,
    }


def suggested(geometry: Geometry) -> dict[str, Any]:
    """What a checkpoint itself asks for, as fields of a scenario: the dtypes that run unless flags say otherwise."""
    auto = geometry.kv_dtype_auto
    return {
        "mamba_ssm_dtype": "bfloat16" if geometry.bfloat16_only else geometry.ssm_dtype_checkpoint or "float32",
        "kv_cache_dtype": "fp8_e4m3" if auto.startswith("fp8") else "bfloat16",
        **({"context_length": geometry.context_length} if geometry.context_length else {}),
    }


def draft_bytes(geometry: Geometry, widths: Widths) -> int:
    """One KV row of the model's own draft (MTP) head [bytes per rank]; 0 where it has none.

    int(row x draft layers / full-attention layers) (engine-sizing.md section 3).
    """
    tp = widths.attn_tp_size
    row = kv_bytes_per_token(geometry, tp, widths.kv, widths.dcp_size)
    return int(row * geometry.draft_layers / len(geometry.kv_layers)) if geometry.kv_layers else 0


def draft_steps(geometry: Geometry, widths: Widths) -> tuple[Step, ...]:
    """The KV row of the draft head that comes with a model, as a formula; empty without one."""
    size = draft_bytes(geometry, widths)
    if not size:
        return ()
    row = kv_bytes_per_token(geometry, widths.attn_tp_size, widths.kv, widths.dcp_size)
    return (
        Step(
            quantity="Draft KV bytes per token, its own head",
            formula="int(KV bytes x draft layers / attention layers)",
            numbers=f"int({count(row)} x {geometry.draft_layers} / {len(geometry.kv_layers)})",
            result=count(size),
        ),
    )


def stage_steps(geometry: Geometry, widths: Widths, fields: dict[str, Any]) -> tuple[Step, ...]:
    """What pipeline stages leave of the bytes, as formulas; empty without stages."""
    if widths.pp_size == 1:
        return ()
    across = stages(geometry, widths.pp_size)
    whole = state_bytes(geometry, widths.attn_tp_size, widths.ssm, widths.conv).total
    state, kv = (max(len(layers) for layers in kind) for kind in zip(*(stage[1:] for stage in across), strict=True))
    return (
        Step(
            quantity="State bytes per slot, largest stage",
            formula="int(bytes per slot x state layers of the stage / all state layers)",
            numbers=f"int({count(whole)} x {state} / {len(geometry.state_layers)})",
            result=count(fields["state_bytes_per_slot"]),
        ),
        Step(
            quantity="KV bytes per token, stage with most attention",
            formula="the row of its attention layers",
            numbers=f"{kv} of {len(geometry.kv_layers)} attention layers",
            result=count(fields["kv_bytes_per_token"]),
        ),
    )


def _check_pools(geometry: Geometry) -> None:
    """A scenario weighs one state pool against one full-KV pool."""
    if geometry.attention == "none":
        raise ModelRefusedError("layout", "model", "It has no attention layers: there is no KV pool to balance.")
    if geometry.attention == "GQA and sliding window":
        raise ModelRefusedError(
            "layout", "model", "It has a sliding-window pool besides: the engine splits it by another rule."
        )


def _index_page(geometry: Geometry) -> int | None:
    """The page [tokens] of a sparse index: 64 keys, each of index_kpool tokens (engine-sizing.md section 11)."""
    return INDEX_PAGE_KEYS * geometry.kv.index_kpool if isinstance(geometry.kv, Dsa) else None


def _family(geometry: Geometry) -> str:
    """ReplaySSM is asked for by family, so a GDN that the engine gives no rings (GigaChat) counts as other."""
    if geometry.family in ("GDN", "KDA"):
        return geometry.family if geometry.replayssm else "other"
    return "Mamba2" if geometry.family == "Mamba2" else "other"


def costs_in_words(name: str, geometry: Geometry, widths: Widths) -> tuple[str, str]:
    """What a slot and a token cost on one rank: a headline, and the price of the one in the other.

    Raises ModelRefusedError for widths that the model cannot have.
    """
    bytes_here = filled(geometry, widths)
    slot, row, dcp = bytes_here["state_bytes_per_slot"], bytes_here["kv_bytes_per_token"], widths.dcp_size
    token, equiv = "a token", "token_equiv"
    if dcp > 1:
        token, equiv = f"a KV row of dcp_size {dcp} tokens", "token_equiv x dcp_size"
    spread = f"TP{widths.attn_tp_size}" + (f", {widths.pp_size} stages" if widths.pp_size > 1 else "")
    price = f"One slot costs as much as {number(token_equiv(slot, row) * dcp)} KV tokens ({equiv})"
    return (
        f"{name}: a slot costs {count(slot)} bytes, {token} {count(row)} bytes on one rank at {spread}",
        f"{layers_in_words(geometry)} {price}, at {widths.ssm} SSM and {widths.kv} KV.",
    )
