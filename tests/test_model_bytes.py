"""Bytes beyond one rank and one token: pipeline stages, drafts, rings, and the formulas with numbers."""

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.models import (
    KvCacheDtype,
    ModelRefusedError,
    byte_steps,
    catalogue,
    charged_bytes,
    draft_kv_bytes_per_token,
    kv_bytes_per_token,
    most_kv_bytes,
    read_config,
    ring_bytes_per_request,
    stages,
    state_bytes,
)
from tests.cases import read_cases
from tests.model_configs import FALCON, GLM, INKLING, KIMI, LFM2, LING, NEMOTRON, QWEN, VL, ZAYA, config

SHAPES_OF_CASES = {"kda-mla-93l": KIMI, "gdn-48l": QWEN, "mamba2-56l": "nvidia/NVIDIA-Nemotron-Nano-9B-v2"}
PP_CASES = [
    case for case in read_cases() if case.group == "pp" and case.inputs["arch"] in SHAPES_OF_CASES and case.numeric
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in PP_CASES])
def test_stages_are_the_engines(case: Any) -> None:
    """Largest stage, its charged bytes and a rank's KV bytes, as the engine's cases have them."""
    geometry, flags, derived = (
        read_config(config(SHAPES_OF_CASES[case.inputs["arch"]])),
        case.inputs["flags"],
        case.derived,
    )
    across = stages(geometry, flags["pp_size"], case.inputs["env"].get("SGLANG_PP_LAYER_PARTITION"))
    tp, dtype = flags["tp_size"], case.inputs["kv_cache_dtype"]
    whole = state_bytes(geometry, tp, derived["ssm_dtype"]).total
    assert whole == derived["state_bytes_per_slot_all_layers"]
    assert max(len(stage.state_layers) for stage in across) == derived["linear_layers_on_largest_pp_stage"]
    assert charged_bytes(geometry, whole, across) == case.numeric["state_bytes_per_slot"]
    here = [len(stage.kv_layers) for stage in across].index(derived["full_attention_layers_on_this_rank"])
    row = kv_bytes_per_token(geometry, tp, dtype, layers=across[here].kv_layers)
    assert row == derived["target_kv_bytes_per_token_per_rank"]


def test_stages_of_kimi() -> None:
    """93 layers over two stages are 46 and 47, and over the listed partition 60 and 33."""
    geometry = read_config(config(KIMI))
    even, listed = stages(geometry, 2), stages(geometry, 2, "60,33")
    assert [len(stage.layers) for stage in even] == [46, 47]
    assert [len(stage.layers) for stage in listed] == [60, 33]
    assert [(len(stage.state_layers), len(stage.kv_layers)) for stage in listed] == [(45, 15), (24, 9)]
    assert charged_bytes(geometry, 56_171_520, listed) == 56_171_520 * 45 // 69
    assert most_kv_bytes(geometry, listed, 8, "fp8_e4m3") == 15 * 576
    assert stages(geometry, 1, "1,2") == stages(geometry)
    assert charged_bytes(geometry, 56_171_520, stages(geometry)) == 56_171_520


@pytest.mark.parametrize(
    ("pp_size", "partition", "sentence"),
    [
        (0, None, "pp_size must be from 1 to 93 (layers), not 0."),
        (94, None, "pp_size must be from 1 to 93 (layers), not 94."),
        (
            2,
            "60,34",
            "SGLANG_PP_LAYER_PARTITION must be 2 whole numbers that add up to 93 layers, not “60,34”.",
        ),
        (2, "93", "SGLANG_PP_LAYER_PARTITION must be 2 whole numbers that add up to 93 layers, not “93”."),
        (2, "a,b", "SGLANG_PP_LAYER_PARTITION must be 2 whole numbers that add up to 93 layers, not “a,b”."),
    ],
)
def test_problem_of_stages(pp_size: int, partition: str | None, sentence: str) -> None:
    """Stages and partitions that do not fit the model."""
    with pytest.raises(ModelRefusedError, match=re.escape(sentence)):
        stages(read_config(config(KIMI)), pp_size, partition)


@given(layers=st.integers(1, 200), pp_size=st.integers(1, 20))
@settings(derandomize=True, deadline=None)
def test_stages_cover_every_layer_once(layers: int, pp_size: int) -> None:
    """No layer is lost or doubled, and the last stages are never smaller than the first."""
    geometry = read_config(config(LING, num_hidden_layers=max(layers, pp_size)))
    across = stages(geometry, pp_size)
    assert [layer for stage in across for layer in stage.layers] == list(range(geometry.layers))
    assert sum(len(stage.state_layers) for stage in across) == len(geometry.state_layers)
    sizes = [len(stage.layers) for stage in across]
    assert sizes == sorted(sizes)
    assert sizes[-1] - sizes[0] <= 1


def test_draft_kv_is_a_share_of_the_row() -> None:
    """int(row x draft layers / full layers); the checkpoint's own draft layers unless given."""
    qwen = read_config(config(VL))
    assert qwen.draft_layers == 1
    assert draft_kv_bytes_per_token(qwen, 1, "bfloat16") == kv_bytes_per_token(qwen, 1, "bfloat16") // 16
    kimi = read_config(config(KIMI))
    assert (kimi.draft_layers, draft_kv_bytes_per_token(kimi, 8, "fp8_e4m3")) == (0, 0)
    assert draft_kv_bytes_per_token(kimi, 8, "fp8_e4m3", draft_layers=1) == 576  # engine.json, pd-443: 14,400 - 13,824
    assert draft_kv_bytes_per_token(read_config(config("tiiuae/falcon-mamba-7b")), 1, "bfloat16", draft_layers=1) == 0


def test_draft_kv_of_other_layouts() -> None:
    """DSA charges latent rows and index keys dcp times; a sliding-window model's drafts are full layers."""
    glm, inkling = read_config(config(GLM)), read_config(config(INKLING))
    assert draft_kv_bytes_per_token(glm, 8, "bfloat16", dcp=2, draft_layers=1) == (1024 + 9) * 2
    assert draft_kv_bytes_per_token(inkling, 8, "bfloat16", draft_layers=2) == 1 * (128 + 128) * 2 * 2


def test_rings_only_where_replayssm_runs() -> None:
    """GDN and KDA have rings, nothing else has; length and conv dtype scale them."""
    kimi, qwen = read_config(config(KIMI)), read_config(config(QWEN))
    assert ring_bytes_per_request(kimi, 8) == 20_401_920  # engine.json: kda-mla-93l at TP 8
    assert ring_bytes_per_request(kimi, 8, length=32) == 2 * 20_401_920
    # float32 rings of GDN need no low parts: 36 layers x 16 x (8 x 128 x 4 + 4 x 128 x 4 + 4 x 8) at TP 4.
    assert ring_bytes_per_request(qwen, 4, conv_setting="float32") == 36 * 16 * (8 * 128 * 4 + 4 * 128 * 4 + 4 * 8)
    for id in (NEMOTRON, FALCON, LFM2, INKLING, ZAYA, "inclusionAI/Ling-2.5-1T", "tiiuae/falcon-mamba-7b"):
        assert ring_bytes_per_request(read_config(config(id)), 2) == 0


SIZED = [item for item in catalogue() if item.id not in ("ibm-granite/granite-4.0-micro", "google/recurrentgemma-9b")]


def evaluated(numbers: str) -> float:
    """A step's numbers as arithmetic."""
    text = numbers.replace(",", "").replace(" x ", " * ")
    assert re.fullmatch(r"[\d+*/(). ]|(?:[\d+*/(). ]|ceil)+", text), text
    return float(eval(text, {"__builtins__": {}, "ceil": math.ceil}))


@pytest.mark.parametrize("dtype", ["bfloat16", "fp8_e4m3", "mxfp8"])
@pytest.mark.parametrize("item", [pytest.param(item, id=item.id) for item in SIZED])
def test_steps_give_what_they_say(item: Any, dtype: KvCacheDtype) -> None:
    """Each formula with numbers, worked out, is its result, for every model of the catalogue."""
    try:
        steps = byte_steps(read_config(item.config), 2, dtype, dcp=2)
    except ModelRefusedError:
        assert dtype == "mxfp8" or refused(item.config), item.id
        return
    assert len(steps) == 4
    for step in steps:
        assert int(evaluated(step.numbers)) == int(step.result.replace(",", "")), step


def refused(source: dict[str, Any]) -> bool:
    """Whether a configuration is refused by itself."""
    try:
        read_config(source)
    except ModelRefusedError:
        return True
    return False


def test_steps_of_kimi() -> None:
    """The worked example of model-geometry.md section 5, in its numbers."""
    steps = byte_steps(read_config(config(KIMI)), 8, "fp8_e4m3")
    assert [(step.quantity, f"{step.numbers} = {step.result}") for step in steps] == [
        ("Conv part of a slot", "69 x (3 x 4,608) x 2 = 1,907,712"),
        ("SSM part of a slot", "69 x (12 x 128 x 128) x 4 = 54,263,808"),
        ("State bytes per slot", "1,907,712 + 54,263,808 = 56,171,520"),
        ("KV bytes per token", "24 x (512 + 64) x 1 = 13,824"),
    ]
