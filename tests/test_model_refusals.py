"""What is refused, each in one whole sentence, and that nothing a stranger sends raises anything else."""

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing.models import (
    Geometry,
    ModelRefusedError,
    byte_steps,
    catalogue,
    charged_bytes,
    draft_kv_bytes_per_token,
    kv_bytes_per_token,
    kv_heads_per_rank,
    most_kv_bytes,
    read_config,
    ring_bytes_per_request,
    stages,
    state_bytes,
)
from sizing.models.fields import MAX_DEPTH, MAX_FILE_BYTES
from tests.conftest import Run
from tests.model_configs import (
    GIGACHAT,
    GLM,
    GRANITE,
    JET,
    KIMI,
    LFM2,
    LING,
    NEMOTRON,
    QWEN,
    SALA,
    ZAYA,
    config,
)


def refusal(source: Any, **more: Any) -> ModelRefusedError:
    """How a configuration is refused."""
    with pytest.raises(ModelRefusedError) as refused:
        read_config(source, **more)
    return refused.value


REFUSALS = [
    ("{", "unreadable", "config.json is not JSON. Paste the whole file."),
    ('{"a": NaN}', "unreadable", "config.json is not JSON. Paste the whole file."),
    (b"\xff\xfe", "unreadable", "config.json is not JSON. Paste the whole file."),
    ("9" * 5000, "unreadable", "config.json is not JSON. Paste the whole file."),
    ("[" * 100_000, "unreadable", "config.json is not JSON. Paste the whole file."),
    ("[]", "unreadable", "config.json is not a JSON object: it must begin with { and name its fields."),
    ("null", "unreadable", "config.json is not a JSON object: it must begin with { and name its fields."),
    ("{}" + " " * MAX_FILE_BYTES, "unreadable", "config.json is larger than 4 MiB."),
    ('{"a":' * 40 + "1" + "}" * 40, "unreadable", "config.json is nested more than 32 levels deep."),
    ({}, "missing", "model_type is missing. It says which family a model is of."),
    ({"model_type": 7}, "wrong", "model_type must be text, not “7”."),
    (
        {"model_type": "llama", "num_attention_heads": 32, "hidden_size": 4096},
        "dense",
        "model_type “llama” is a model with attention layers only: there is no state pool to size.",
    ),
    (
        {"model_type": "my_own", "mamba_d_state": 128, "num_attention_heads": 32},
        "unknown",
        "model_type “my_own” is none that this tool has a rule for.",
    ),
    (
        {"model_type": "MiniMaxText01", "attn_type_list": [0, 1], "num_attention_heads": 64},
        "unknown",
        "model_type “MiniMaxText01” is none that this tool has a rule for.",
    ),
    ({"model_type": "<b>"}, "unknown", "model_type “?b?” is none that this tool has a rule for."),
    (config("ibm-ai-platform/Bamba-9B-v2"), "not_served", "SGLang 0.5.23 has no Bamba model, so it sizes no pools."),
    ({"model_type": "jamba"}, "not_served", "SGLang 0.5.23 has no Jamba model, so it sizes no pools."),
    ({"model_type": "zamba2"}, "not_served", "SGLang 0.5.23 has no Zamba2 model, so it sizes no pools."),
    (
        {"model_type": "recurrent_gemma"},
        "not_served",
        "SGLang 0.5.23 has no RecurrentGemma model, so it sizes no pools.",
    ),
    ({"model_type": "minimax"}, "not_served", "SGLang 0.5.23 has no MiniMax-Text-01 model, so it sizes no pools."),
    ({"model_type": "minimax_m1"}, "not_served", "SGLang 0.5.23 has no MiniMax-M1 model, so it sizes no pools."),
    ({"model_type": "olmo_hybrid"}, "not_served", "SGLang 0.5.23 has no Olmo-Hybrid model, so it sizes no pools."),
    ({"model_type": "plamo2"}, "not_served", "SGLang 0.5.23 has no Plamo2 model, so it sizes no pools."),
    (
        config("ibm-granite/granite-4.0-micro"),
        "no_state_pool",
        "layer_types holds attention layers only: there is no state pool to size.",
    ),
    (
        config(QWEN, full_attention_interval=1),
        "no_state_pool",
        "Every layer has attention only: there is no state pool to size.",
    ),
    (
        config(QWEN, full_attention_interval=...),
        "missing",
        "full_attention_interval is missing. The engine reads no other field for the layer split.",
    ),
    (config(NEMOTRON, n_groups=...), "missing", "n_groups is missing. The engine does not start without it."),
    (
        config(NEMOTRON, hybrid_override_pattern=...),
        "missing",
        "hybrid_override_pattern is missing. Neither it nor layers_block_type says what each layer is.",
    ),
    (
        config(NEMOTRON, hybrid_override_pattern="M-X"),
        "wrong",
        "hybrid_override_pattern holds “X”, which is no layer type of this family.",
    ),
    (config(KIMI, kv_lora_rank=None), "missing", "text_config.kv_lora_rank is missing."),
    (
        config(KIMI, linear_attn_config=[]),
        "wrong",
        "text_config.linear_attn_config must be an object with named fields, not “[]”.",
    ),
    (
        config(KIMI, linear_attn_config={"kda_layers": [1, "2"]}),
        "wrong",
        "text_config.linear_attn_config.kda_layers must be a list of whole numbers from 0 to 16,777,216, "
        "not “[1, '2']”.",
    ),
    ({"model_type": "kimi_k3"}, "missing", "text_config is missing."),
    (config(QWEN, head_dim=...), "missing", "head_dim is missing."),
    (
        config(QWEN, linear_num_value_heads="32"),
        "wrong",
        "linear_num_value_heads must be a whole number from 1 to 16,777,216, not “32”.",
    ),
    (
        config(QWEN, linear_num_value_heads=True),
        "wrong",
        "linear_num_value_heads must be a whole number from 1 to 16,777,216, not “true”.",
    ),
    (
        config(QWEN, num_hidden_layers=10**9),
        "wrong",
        "num_hidden_layers must be a whole number from 1 to 4,096, not “1000000000”.",
    ),
    (config(LFM2, layer_types=["conv"]), "wrong", "layer_types has a length of 1 for 16 layers (num_hidden_layers)."),
    (
        config(LFM2, layer_types=...),
        "missing",
        "layer_types is missing. Neither it nor full_attn_idxs says what each layer is.",
    ),
    (config(LFM2, layer_types=[]), "wrong", "layer_types must have at least one entry, not “[]”."),
    (
        config(GRANITE, mamba_n_heads=63),
        "wrong",
        "mamba_n_heads 63 x mamba_d_head 64 is not the inner width 4,096.",
    ),
    (
        config(LING, layer_group_size=[1, 0]),
        "wrong",
        "layer_group_size must be a number or a list of 24 (num_hidden_layers), not “[1, 0]”.",
    ),
    (
        GIGACHAT | {"full_attention_layers": [8]},
        "wrong",
        "full_attention_layers must hold layers below 8 (num_hidden_layers), not “[8]”.",
    ),
    (
        SALA | {"num_hidden_layers": 2},
        "wrong",
        "mixer_types must have at most 2 entries (num_hidden_layers), not “['minicpm4', 'lightning-attn', 'lightnin…”.",
    ),
    (config(JET, layer_types="jet"), "wrong", "layer_types must be a list of at most 4,096 entries, not “jet”."),
    (config(QWEN, dtype="int8"), "wrong", "dtype must be bfloat16, float16 or float32, not “int8”."),
    (config(QWEN, architectures=[1]), "wrong", "architectures must be a list of names, not “[1]”."),
]


@pytest.mark.parametrize(("source", "kind", "sentence"), REFUSALS)
def test_problem_is_one_sentence(source: Any, kind: str, sentence: str) -> None:
    """The kind and the whole sentence of each refusal."""
    found = refusal(source)
    assert (found.kind, found.problem.sentence, str(found)) == (kind, sentence, sentence)


def test_problem_names_its_field() -> None:
    """The field stands apart as well, with its place in the file."""
    assert refusal(config(KIMI, kv_lora_rank=None)).problem.where == "text_config.kv_lora_rank"
    assert refusal("{", quantisation="{}").problem.where == "config.json"
    assert refusal(config(QWEN), quantisation="[").problem.where == "hf_quant_config.json"


def test_problem_of_depth_is_where_it_begins() -> None:
    """MAX_DEPTH levels are read, one more is refused, given as text or as an object."""

    def nested(levels: int) -> str:
        return '{"a":' * (levels - 1) + "{}" + "}" * (levels - 1)

    assert refusal(nested(MAX_DEPTH)).kind == "missing"
    assert refusal(nested(MAX_DEPTH + 1)).kind == "unreadable"
    assert refusal(json.loads(nested(MAX_DEPTH + 1))).kind == "unreadable"


WIDTHS = [
    (JET, 8, 1, "The state heads cannot be spread over attention TP 8: 12 is not divisible by 8."),
    (KIMI, 5, 1, "The KDA channels cannot be spread over attention TP 5: 12288 is not divisible by 5."),
    (LFM2, 3, 1, "The conv channels cannot be spread over attention TP 3: 1024 is not divisible by 3."),
    (ZAYA, 3, 1, "The CCA channels cannot be spread over attention TP 3: 1280 is not divisible by 3."),
    (KIMI, 0, 1, "Attention TP must be from 1 to 4,096, not 0."),
    (KIMI, 8, 3, "dcp_size 3 must divide attention TP 8."),
    (KIMI, 8, 0, "dcp_size 0 must divide attention TP 8."),
]


@pytest.mark.parametrize(("id", "tp", "dcp", "sentence"), WIDTHS)
def test_problem_of_a_width(id: str, tp: int, dcp: int, sentence: str) -> None:
    """A TP or DCP width that the model cannot have, where the engine would stop with an assertion."""
    geometry = read_config(config(id))
    with pytest.raises(ModelRefusedError, match=re.escape(sentence)) as refused:
        kv_bytes_per_token(geometry, tp, "bfloat16", dcp) and state_bytes(geometry, tp)
    assert refused.value.kind == "layout"


def test_problem_of_mxfp8_with_latent_attention() -> None:
    """MXFP8 rows exist for GQA only."""
    for id in (KIMI, GLM):
        with pytest.raises(ModelRefusedError, match="mxfp8 is a KV layout of GQA models; this one has latent"):
            kv_bytes_per_token(read_config(config(id)), 8, "mxfp8")


def test_folder_is_read(tmp_path: Path, sizing_command: Run) -> None:
    """config.json alone, and with hf_quant_config.json beside it, which decides the KV dtype."""
    (tmp_path / "config.json").write_text(json.dumps(config(NEMOTRON)))
    assert "fp8" not in sizing_command("model", str(tmp_path))[1]
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {"kv_cache_quant_algo": "FP8"}}')
    assert "fp8_e4m3" in sizing_command("model", str(tmp_path))[1]


def test_problem_of_a_folder(tmp_path: Path, sizing_command: Run) -> None:
    """No config.json, one that is a folder, one that is too large, and a name that no system takes."""

    def sentence(folder: object) -> str:
        status, printed, said = sizing_command("model", str(folder))
        assert (status, printed) == (2, "")
        return said

    assert "no file or folder to read" in sentence(tmp_path)
    assert "no file or folder to read" in sentence(f"{tmp_path}\0")
    (tmp_path / "config.json").mkdir()
    assert "no file or folder to read" in sentence(tmp_path)
    (tmp_path / "config.json").rmdir()
    (tmp_path / "config.json").write_bytes(b"{}" + b" " * MAX_FILE_BYTES)
    assert "larger than 4 MiB" in sentence(tmp_path)


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-1, 64)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["mamba", "attention", "a", "*", "auto", "\ud800", "bfloat16", 10**400]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=6,
)


def use_everything(geometry: Geometry, tp: int, dcp: int, pp_size: int) -> None:
    """Every number that a page could ask for."""
    assert len(geometry.strip) == geometry.layers
    found = state_bytes(geometry, tp)
    assert found.total >= 0
    assert kv_bytes_per_token(geometry, tp, "fp8_e4m3", dcp) >= 0
    kv_heads_per_rank(geometry, tp, dcp)
    ring_bytes_per_request(geometry, tp)
    draft_kv_bytes_per_token(geometry, tp, "bfloat16", dcp)
    byte_steps(geometry, tp, "bfloat16", dcp)
    across = stages(geometry, pp_size)
    charged_bytes(geometry, found.total, across)
    most_kv_bytes(geometry, across, tp, "bfloat16", dcp)


@given(data=st.data())
@settings(derandomize=True, deadline=None, max_examples=600, suppress_health_check=list(HealthCheck))
def test_mutated_configurations_raise_nothing_else(data: st.DataObject) -> None:
    """Any field of a real configuration made into anything: numbers, or the package's own refusal in one sentence."""
    found = deepcopy(data.draw(st.sampled_from([*(item.config for item in catalogue()), GIGACHAT, SALA])))
    for _ in range(data.draw(st.integers(1, 3))):
        fields = found
        inner = [key for key, value in fields.items() if isinstance(value, dict)]
        if inner and data.draw(st.integers(0, 3)) > 0:
            fields = fields[data.draw(st.sampled_from(inner))]
        if fields:
            fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(JUNK)
    tp, dcp, pp_size = (data.draw(st.integers(0, 8)) for _ in range(3))
    sentence = sentence_of(found, tp, dcp, pp_size)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert sentence.encode()


def sentence_of(found: dict[str, Any], tp: int, dcp: int, pp_size: int) -> str:
    """How a configuration is refused, or that it is not."""
    try:
        use_everything(read_config(found), tp, dcp, pp_size)
    except ModelRefusedError as refused:
        return str(refused)
    return "Sized."


@given(text=st.text() | st.binary() | JUNK.map(json.dumps))
@settings(derandomize=True, deadline=None)
def test_any_text_raises_nothing_else(text: str | bytes) -> None:
    """Text and bytes of any kind are refused."""
    assert refused_text(text)


def refused_text(text: str | bytes) -> bool:
    """Whether a text is refused as a configuration and as a quantisation."""
    with pytest.raises(ModelRefusedError):
        read_config(text)
    try:
        read_config(config(QWEN), text)
    except ModelRefusedError:
        return True
    return isinstance(json.loads(text), dict)
