"""The engine's own numbers for real checkpoints, exactly: state, rings, KV, layers, heads, lists."""

from typing import Any

import pytest

from sizing.basics.dtypes import StateDtype
from sizing.models import (
    Geometry,
    ModelRefusedError,
    attention_heads_divide,
    conv_dtype,
    kv_bytes_per_token,
    kv_heads_per_rank,
    read_config,
    ring_bytes_per_request,
    shapes,
    ssm_dtype,
    state_bytes,
)
from sizing.models.kv import Dsa, Mla, SlidingGqa
from tests.model_cases import KV_DTYPES, OTHER, SSM_FLAGS, ModelCase, model_cases, read_cases

default_files = pytest.mark.skipif(any(OTHER.values()), reason="counts are those of our files")

# What differs: name to (ours, the engine's).
Wrong = dict[str, tuple[object, object]]


@pytest.mark.parametrize("case", model_cases())
def test_model_case(case: ModelCase) -> None:
    """Every TP, dtype and DCP combination of a model gives the engine's integers, or is refused as it refuses."""
    if not case.served or case.engine is None:
        assert refusal_of(case) in ("not_served", "unknown")
    elif case.engine["state"] is None:
        assert refusal_of(case) in ("no_state_pool", "dense")
    else:
        geometry = read_config(case.entry["config"])
        assert compare(geometry, case) == {}


@default_files
def test_no_model_is_dropped() -> None:
    """Our files hold 43 models: 36 with state, one without, six that the engine does not serve; all rows are there."""
    cases = read_cases()
    sized = [case for case in cases if case.engine and case.engine["state"]]
    assert (len(cases), len(sized), sum(not case.served for case in cases)) == (43, 36, 6)
    states = [found for case in sized for _, found in case.states()]
    assert sum(len(found) for found in states if "error" not in found) == 429  # 36 x 4 TP x 3 dtypes, less one TP
    assert sum("error" in found for found in states) == 1
    assert sum("replayssm_ring_bytes_len16" in found.get("from_config", {}) for found in states) == 51  # 9 GDN, 4 KDA
    assert sum(len(found) for case in sized for _, _, found in case.rows()) == 1340


def refusal_of(case: ModelCase) -> str:
    """The kind of the refusal that this model's configuration meets; its sentence is one and ends as one."""
    with pytest.raises(ModelRefusedError) as refused:
        read_config(case.entry["config"])
    assert str(refused.value).endswith(".")
    return refused.value.kind


def compare(geometry: Geometry, case: ModelCase) -> Wrong:
    """All that a case holds of a model with state."""
    wrong = compare_layers(geometry, case)
    for tp, found in case.states():
        wrong |= compare_error(geometry, tp) if "error" in found else compare_states(geometry, tp, found)
    for tp, dcp, row in case.rows():
        wrong |= compare_row(geometry, tp, dcp, row)
    return wrong | compare_equivalents(geometry, case)


def compare_layers(geometry: Geometry, case: ModelCase) -> Wrong:
    """What the engine's classes make of the configuration, and its lists of the architecture, as far as a case says."""
    assert case.engine
    theirs = dict(case.engine["engine"])
    if "engine_extra_buffer_arch_list" in case.entry:
        theirs["extra_buffer"] = case.entry["engine_extra_buffer_arch_list"]
    for width, divides in case.engine.get("attention_heads_divide", {}).items():
        theirs[f"heads divide {width}"] = divides
    ours = layers_and_heads(geometry) | {
        f"heads divide tp{tp}": attention_heads_divide(geometry, tp) for tp, _ in case.states()
    }
    return {name: (ours[name], theirs[name]) for name in ours if name in theirs and ours[name] != theirs[name]}


def layers_and_heads(geometry: Geometry) -> dict[str, object]:
    """Layers, heads and lists under the names of the cases."""
    kv = geometry.kv
    ours: dict[str, object] = {
        "attention_arch": "MLA" if isinstance(kv, Mla | Dsa) else "MHA" if kv else "SSM",
        "is_hybrid_swa": isinstance(kv, SlidingGqa),
        "num_hidden_layers": geometry.layers,
        "total_kv_heads": geometry.kv_heads,
        "num_attention_layers": len(geometry.kv_layers),
        "num_state_layers": len(geometry.state_layers),
        "full_attention_layer_ids": list(geometry.kv_layers),
        "extra_buffer": geometry.extra_buffer,
    }
    if isinstance(kv, Mla | Dsa):
        return ours | {"kv_lora_rank": kv.kv_lora_rank, "qk_rope_head_dim": kv.rope_dim}
    heads = kv.full if isinstance(kv, SlidingGqa) else kv
    return ours | ({"head_dim": heads.head_dim, "v_head_dim": heads.v_head_dim} if heads else {})


def compare_error(geometry: Geometry, tp: int) -> Wrong:
    """Where the engine stops with an assertion, a TP width is refused."""
    try:
        return {f"tp{tp}": (state_bytes(geometry, tp), "an assertion")}
    except ModelRefusedError as refused:
        return {} if refused.kind == "layout" else {f"tp{tp}": (refused.kind, "layout")}


def compare_states(geometry: Geometry, tp: int, found: dict[str, dict[str, Any]]) -> Wrong:
    """A slot at every SSM dtype: shapes, dtypes, both parts, their sum, and the rings."""
    wrong: Wrong = {}
    for name, theirs in found.items():
        ours = slot(geometry, tp, SSM_FLAGS[name])
        if "replayssm_ring_bytes_len16" in theirs:
            ours["replayssm_ring_bytes_len16"] = ring_bytes_per_request(geometry, tp, length=16)
        wrong |= {f"tp{tp} {name} {key}": (ours[key], theirs[key]) for key in theirs if ours[key] != theirs[key]}
    return wrong


def slot(geometry: Geometry, tp: int, flag: StateDtype | None) -> dict[str, Any]:
    """The numbers of a slot under the names of the cases."""
    one, found = shapes(geometry, tp), state_bytes(geometry, tp, flag)
    return {
        "ssm_dtype": ssm_dtype(geometry, flag),
        "conv_dtype": conv_dtype(geometry),
        "conv_shapes": [list(shape) for shape in one.conv],
        "temporal_shape": list(one.temporal),
        "conv_bytes": found.conv,
        "ssm_bytes": found.ssm,
        "state_bytes_per_slot": found.total,
    }


def compare_row(geometry: Geometry, tp: int, dcp: int, row: dict[str, int]) -> Wrong:
    """A KV row at every dtype, and the heads that a rank holds."""
    wrong: Wrong = {}
    for name, theirs in row.items():
        if name == "kv_heads_per_gpu":
            ours = kv_heads_per_rank(geometry, tp, dcp)
        else:
            ours = kv_bytes_per_token(geometry, tp, KV_DTYPES[name], dcp)
        if ours != theirs:
            wrong[f"tp{tp} dcp{dcp} {name}"] = (ours, theirs)
    return wrong


def compare_equivalents(geometry: Geometry, case: ModelCase) -> Wrong:
    """State bytes over KV bytes at each dtype of both, to the four decimals that the cases have."""
    assert case.engine
    wrong: Wrong = {}
    for width, found in case.engine.get("token_equiv", {}).items():
        tp = int(width.removeprefix("tp"))
        for dtypes, theirs in found.items():
            ssm, kv = dtypes.split("|")
            ours = state_bytes(geometry, tp, SSM_FLAGS[ssm]).total / kv_bytes_per_token(geometry, tp, KV_DTYPES[kv])
            if theirs is not None and abs(ours - theirs) > 0.5001e-4:
                wrong[f"{width} {dtypes} equivalent"] = (ours, theirs)
    return wrong
