"""Exact bytes: the integers that a model's geometry gives, where the printed sizes allow them.

Two decimals leave an interval; the geometry gives one integer for each dtype. An integer outside the interval is not
taken, and a sentence says so: then the model, its TP width or a dtype is not what was started.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar, get_args

from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.units import count, number
from sizing.bootlog.facts import Facts
from sizing.bootlog.measure import Measured
from sizing.models import (
    Geometry,
    ModelRefusedError,
    Stage,
    charged_bytes,
    draft_kv_bytes_per_token,
    most_kv_bytes,
    ring_bytes_per_request,
    stages,
    state_bytes,
)
from sizing.scenario.inputs import Attention, Family

Name = TypeVar("Name", bound=str)


class Exact(NamedTuple):
    """Bytes of one rank that are exact; None where the log and the model do not agree on one."""

    state: int | None = None
    conv: int | None = None
    ssm_dtype: StateDtype | None = None
    state_all_stages: int | None = None
    kv: int | None = None
    kv_dtype: KvDtype | None = None
    draft_kv: int | None = None
    ring_per_position: int | None = None
    family: Family | None = None
    attention: Attention | None = None
    kv_heads: int | None = None
    architecture: str | None = None
    sentences: tuple[str, ...] = ()
    """Why a number is missing."""


def exact_bytes(facts: Facts, geometry: Geometry, tp_size: int | None = None) -> Exact:
    """The bytes of a slot and of a token that the geometry gives within what the log printed.

    `tp_size` [ranks] is asked for only where the log has no arguments line. Raises nothing.
    """
    settings = facts.settings
    tp = settings.tp_size or tp_size
    if tp is None:
        return Exact(sentences=("tp_size is not in the log: state it, so that the model's bytes can be compared.",))
    width = tp // (settings.attn_dp_size or 1) // (settings.attn_cp_size or 1)
    try:
        across = stages(geometry, settings.pp_size or 1)
        state = _state(facts, geometry, width, across)
        kv = _kv(facts, geometry, width, across)
    except ModelRefusedError as refused:
        return Exact(sentences=(f"{refused} The printed sizes stay as they are.",))
    return kv._replace(
        state=state.state,
        conv=state.conv,
        ssm_dtype=state.ssm_dtype,
        state_all_stages=state.state_all_stages,
        ring_per_position=ring_bytes_per_request(geometry, width, length=1) or None,
        family=next((name for name in get_args(Family) if name == geometry.family), "other"),
        attention=next((kind for kind in get_args(Attention) if kind == geometry.attention), None),
        kv_heads=geometry.gqa_heads,
        architecture=geometry.architecture,
        sentences=(*state.sentences, *kv.sentences),
    )


def _state(facts: Facts, geometry: Geometry, width: int, across: tuple[Stage, ...]) -> Exact:
    """The slot at the SSM dtype that the log states, or that its size tells."""
    if facts.slot_bytes is None:
        return Exact()
    stated = facts.settings.mamba_ssm_dtype
    dtypes: tuple[StateDtype, ...] = (stated,) if stated else get_args(StateDtype)
    offers = {dtype: charged_bytes(geometry, state_bytes(geometry, width, dtype).total, across) for dtype in dtypes}
    dtype = _taken(facts.slot_bytes, offers)
    if dtype is None:
        return Exact(sentences=(_outside("State bytes per slot", facts.slot_bytes, offers),))
    whole = state_bytes(geometry, width, dtype)
    return Exact(
        state=offers[dtype],
        conv=charged_bytes(geometry, whole.conv, across),
        ssm_dtype=dtype,
        state_all_stages=whole.total if len(across) > 1 else None,
    )


def _kv(facts: Facts, geometry: Geometry, width: int, across: tuple[Stage, ...]) -> Exact:
    """The row at the KV dtype that the log states, or that its size tells."""
    if facts.token_bytes is None:
        return Exact()
    dcp = facts.dcp_size or 1
    dtypes: tuple[KvDtype, ...] = (facts.kv_cache_dtype,) if facts.kv_cache_dtype else ("bfloat16", "fp8_e4m3")
    offers = {dtype: most_kv_bytes(geometry, across, width, dtype, dcp) for dtype in dtypes}
    dtype = _taken(facts.token_bytes, offers)
    if dtype is None:
        return Exact(sentences=(_outside("KV bytes per token", facts.token_bytes, offers),))
    offered = [draft_kv_bytes_per_token(geometry, width, dtype, dcp, layers) for layers in DRAFT_LAYERS]
    return Exact(kv=offers[dtype], kv_dtype=dtype, draft_kv=_draft(facts, offered))


# Draft models of one to so many layers are tried; where the printed size allows more than one, none is taken.
DRAFT_LAYERS = range(1, 9)


def _draft(facts: Facts, offered: list[int]) -> int | None:
    if facts.draft_token_bytes is None:
        return None
    held = [offer for offer in offered if offer and facts.draft_token_bytes.holds(offer)]
    return held[0] if len(held) == 1 else None


def _taken(measured: Measured, offers: Mapping[Name, int]) -> Name | None:
    """The first dtype whose bytes the printed sizes allow: float32 before the narrower ones, the engine's default."""
    return next((dtype for dtype, offer in offers.items() if measured.holds(offer)), None)


def _outside(what: str, measured: Measured, offers: Mapping[Any, int]) -> str:
    told = ", ".join(f"{count(offer)} at {dtype}" for dtype, offer in offers.items())
    return (
        f"{what}: the log allows {number(measured.low, 0)} to {number(measured.high, 0)}, the model gives {told}. "
        "Check the model and tp_size; the printed size stays."
    )
