"""Reading configurations: families, aliases, precedence of dtypes, what `auto` gives, folders."""

from typing import Any

import pytest

from sizing.models import (
    StateBytes,
    conv_dtype,
    kv_bytes_per_token,
    read_config,
    shapes,
    ssm_dtype,
    state_bytes,
)
from sizing.models.families import ROWS, WRAPPERS
from sizing.models.kv import Dsa, Mla
from tests.model_configs import (
    FALCON,
    GIGACHAT,
    GLM,
    GRANITE,
    INKLING,
    KIMI,
    LFM2,
    LING,
    NEMOTRON,
    QWEN,
    SALA,
    VL,
    ZAYA,
    config,
)


def test_ssm_dtype_is_flag_then_checkpoint_then_float32() -> None:
    """A family that reads the checkpoint: the flag beats it, and without either it is float32."""
    silent, said = read_config(config(QWEN)), read_config(config(QWEN, mamba_ssm_dtype="bfloat16"))
    assert (ssm_dtype(silent), ssm_dtype(said)) == ("float32", "bfloat16")
    assert (ssm_dtype(said, "float32"), ssm_dtype(silent, "float16")) == ("float32", "float16")
    assert state_bytes(said, 8).ssm * 2 == state_bytes(silent, 8).ssm
    assert state_bytes(said, 8).conv == state_bytes(silent, 8).conv


@pytest.mark.parametrize("id", [KIMI, LING, GRANITE, GLM, "LiquidAI/LFM2-8B-A1B", "tiiuae/falcon-mamba-7b"])
def test_ssm_dtype_of_the_checkpoint_is_not_read_by_every_family(id: str) -> None:
    """Trap 4: these ignore it, and a note says so."""
    found = read_config(config(id, mamba_ssm_dtype="bfloat16"))
    assert ssm_dtype(found) == "float32"
    assert [note for note in found.notes if "mamba_ssm_dtype is in the file" in note]


def test_ssm_dtype_of_nemotron_has_another_name() -> None:
    """mamba_ssm_cache_dtype is another engine's key: it is ignored, and a note says so; mamba_ssm_dtype is obeyed."""
    found = read_config(config(NEMOTRON, mamba_ssm_cache_dtype="bfloat16"))
    assert ssm_dtype(found) == "float32"
    assert found.notes == ("mamba_ssm_cache_dtype is in the file, and SGLang does not read it for this model type.",)
    assert ssm_dtype(read_config(config(NEMOTRON, mamba_ssm_dtype="bfloat16"))) == "bfloat16"


def test_ssm_dtype_stands_inside_text_config() -> None:
    """The language model's own field counts, the wrapper's does not; an unknown name is float32."""
    assert ssm_dtype(read_config(config(VL, mamba_ssm_dtype="bfloat16") | {"mamba_ssm_dtype": "float16"})) == "bfloat16"
    assert ssm_dtype(read_config(config(VL, mamba_ssm_dtype=...) | {"mamba_ssm_dtype": "float16"})) == "float32"
    assert ssm_dtype(read_config(config(VL, mamba_ssm_dtype="fp8"))) == "float32"


def test_conv_dtype_follows_its_setting_only() -> None:
    """bfloat16 unless SGLANG_MAMBA_CONV_DTYPE says otherwise; the SSM flag does not move it."""
    found = read_config(config(KIMI))
    assert (conv_dtype(found), conv_dtype(found, "float32")) == ("bfloat16", "float32")
    wide = state_bytes(found, 8, conv_setting="float32")
    assert wide == StateBytes(conv=2 * 1_907_712, ssm=54_263_808)


def test_dtypes_of_inkling_are_fixed() -> None:
    """Its state is bfloat16 whatever is set."""
    found = read_config(config(INKLING))
    assert ssm_dtype(found, "float32") == conv_dtype(found, "float32") == "bfloat16"


QUANTISED = [
    ({}, {"quantization": {"kv_cache_quant_algo": "FP8"}}, "fp8_e4m3"),
    ({}, {"quantization": {"kv_cache_quant_algo": "fp8"}}, "fp8_e4m3"),
    ({}, {"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": None}}, "bfloat16"),
    ({}, None, "bfloat16"),
    ({"quantization_config": {"kv_cache_scheme": {"type": "float", "num_bits": 8}}}, None, "fp8_e4m3"),
    ({"quantization_config": {"kv_cache_scheme": {"type": "int", "num_bits": 8}}}, None, "bfloat16"),
    ({"quantization_config": {"kv_cache_scheme": {"type": "float", "num_bits": 4}}}, None, "bfloat16"),
    ({"quantization_config": {"kv_cache_scheme": "FP8"}}, None, "fp8_e4m3"),
    ({"quantization_config": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}, None, "fp8_e4m3"),
    ({"quantization_config": {"quant_method": "fp8"}}, {"quantization": {"kv_cache_quant_algo": "FP8"}}, "bfloat16"),
    (
        {
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "kv_cache_scheme": {"type": "float", "num_bits": 8, "strategy": "tensor"},
            }
        },
        None,
        "fp8_e4m3",
    ),
    (
        {
            "quantization_config": {
                "quant_method": "compressed-tensors",
                "kv_cache_scheme": {"type": "float", "num_bits": 8, "strategy": "tensor", "dynamic": True},
            }
        },
        None,
        "bfloat16",
    ),
    ({"dtype": "float16"}, None, "float16"),
    ({"dtype": "float32"}, None, "float16"),
]


@pytest.mark.parametrize(("fields", "quantisation", "auto"), QUANTISED)
def test_kv_dtype_of_auto(fields: dict[str, Any], quantisation: dict[str, Any] | None, auto: str) -> None:
    """The model's dtype, or fp8 where the quantisation stores KV so; config.json beats hf_quant_config.json."""
    assert read_config(config(QWEN, **fields), quantisation).kv_dtype_auto == auto


def test_kv_dtype_of_auto_in_a_wrapper() -> None:
    """The language model's dtype, else the wrapper's; the quantisation may stand in either."""
    found = config(VL, dtype="float16")
    assert read_config(found).kv_dtype_auto == "float16"
    found = config(VL, dtype=...) | {"torch_dtype": "float16"}
    assert read_config(found).kv_dtype_auto == "float16"
    found["text_config"]["quantization_config"] = {"kv_cache_quant_algo": "FP8"}
    assert read_config(found).kv_dtype_auto == "fp8_e4m3"


def test_gigachat_is_gdn_with_latent_attention() -> None:
    """Layers listed from 0 or typed, GDN state, and a latent row; ReplaySSM and extra_buffer are not for it."""
    listed = read_config(GIGACHAT)
    assert (listed.family, listed.strip, listed.replayssm, listed.extra_buffer) == ("GDN", "SSSKSSSK", False, False)
    assert listed.kv == Mla(kv_lora_rank=512, rope_dim=64)
    kinds = ["linear_attention"] * 3 + ["attention"] + ["linear_attention"] * 3 + ["full_attention"]
    assert read_config(GIGACHAT | {"layer_types": kinds, "full_attention_layers": None}) == listed


def test_minicpm_sala_repeats_its_mixers() -> None:
    """Three mixers over five layers; state by its own heads, KV by hidden_size / heads."""
    found = read_config(SALA)
    assert found.strip == "KSSKS"
    assert state_bytes(found, 2) == StateBytes(conv=0, ssm=3 * 16 * 128 * 128 * 4)
    assert kv_bytes_per_token(found, 2, "bfloat16") == 2 * 1 * (128 + 128) * 2


@pytest.mark.parametrize("outer", ["NemotronH_Nano_VL_V2", "NemotronH_Nano_Omni_Reasoning_V3", "nemotron_h_omni"])
def test_nemotron_may_stand_in_llm_config(outer: str) -> None:
    """The same numbers inside a vision or omni model."""
    inside = config(NEMOTRON)
    outside = read_config({"model_type": outer, "architectures": ["NemotronH"], "llm_config": inside})
    alone = read_config(inside)
    assert outside == alone.model_copy(
        update={"model_type": outer, "architecture": "NemotronH", "extra_buffer": False, "multimodal": True},
    )


def test_flat_and_nested_glm_agree() -> None:
    """GLM-5-Next's fields may stand outside text_config; inside wins."""
    nested = config(GLM)
    flat = {**nested["text_config"], "model_type": "glm5_next", "architectures": nested["architectures"]}
    assert read_config(flat) == read_config(nested)
    assert read_config(flat | {"num_hidden_layers": 8, "text_config": nested["text_config"]}) == read_config(nested)


def test_layers_are_listed_from_one_or_from_zero() -> None:
    """Trap 10: Kimi's lists begin at 1, GLM's at 0."""
    linear = {"num_heads": 64, "head_dim": 128, "short_conv_kernel_size": 4, "kda_layers": [1, 2, 3]}
    assert read_config(config(KIMI, linear_attn_config=linear)).state_layers == (0, 1, 2)
    assert read_config(config(GLM, linear_attn_config=linear)).state_layers == (1, 2, 3)


def test_glm_layers_may_share_an_indexer() -> None:
    """Layers that reuse the choice of an earlier one have no index keys."""
    every = read_config(config(GLM))
    some = read_config(config(GLM, index_topk_freq=4))
    marked = read_config(config(GLM, index_topk_pattern="S" * 45))
    assert isinstance(some.kv, Dsa)
    assert len(some.kv.indexer_layers) < 11
    rows = [kv_bytes_per_token(found, 8, "bfloat16") for found in (every, some, marked)]
    assert rows == [11 * 1024 + 11 * 9, 11 * 1024 + len(some.kv.indexer_layers) * 9, 11 * 1024]
    assert read_config(config(GLM, index_topk=...)).attention == "MLA"


def test_ling_layer_groups() -> None:
    """Trap 9: an incomplete last group is linear; a list marks linear layers with 1."""
    assert read_config(config(LING, num_hidden_layers=6)).strip == "SSSKSS"
    assert read_config(config(LING, num_hidden_layers=3, layer_group_size=[1, 0, 1])).strip == "SKS"
    assert read_config(config(LING, use_mla_nope=True)).kv == Mla(kv_lora_rank=512, rope_dim=0)


def test_aliases_of_layer_types() -> None:
    """Granite's and Nemotron's newer words, LFM2's older field and Granite's default mean the same layers."""
    types = config(GRANITE)["layer_types"]
    newer = [{"mamba": "linear_attention", "attention": "full_attention"}[kind] for kind in types]
    assert read_config(config(GRANITE, layer_types=newer)) == read_config(config(GRANITE))
    assert read_config(config(GRANITE, layer_types=...)).kv_layers == (5, 11, 17, 23, 29, 35)
    attention = [layer for layer, kind in enumerate(config(LFM2)["layer_types"]) if kind == "full_attention"]
    assert read_config(config(LFM2, layer_types=..., full_attn_idxs=attention)) == read_config(config(LFM2))


def test_widths_that_follow_from_others() -> None:
    """mamba_d_ssm null is expand x hidden, mamba_d_head may be auto, KV heads null are the query heads."""
    found = read_config(config(FALCON, mamba_d_ssm=None, mamba_d_head="auto", num_key_value_heads=None))
    assert shapes(found, 1).temporal == (32, 160, 256)
    assert found.kv_heads == 10
    assert read_config(config(FALCON, head_dim=...)).kv == read_config(config(FALCON, head_dim=256)).kv


def test_zaya_layers_are_marked() -> None:
    """The list says which layers there are and which hold both; the first listed query heads count."""
    found = read_config(config(ZAYA, zaya_layers=["a", 16, "a", 16], cca_num_q_heads=[0, 4]))
    assert (found.strip, found.attention_heads) == ("B-B-", 4)
    assert shapes(found, 1).conv == (((4 + 2) * 128, 2), (2048, 1))


def test_groups_are_replicated() -> None:
    """Trap 6: one group becomes tp of them, and six become four at TP 4."""
    six = read_config(config(NEMOTRON, n_groups=6))
    assert shapes(six, 4).conv == (((8192 + 2 * 4 * 128) // 4, 3),)
    assert shapes(six, 2).conv == (((8192 + 2 * 6 * 128) // 2, 3),)


def test_context_length() -> None:
    """The first field that is there, stretched by rope scaling unless the file states the original length."""
    assert read_config(config(QWEN)).context_length == 262_144
    assert read_config(config(QWEN, max_seq_len=1000)).context_length == 1000
    assert read_config(config(QWEN, rope_scaling={"factor": 4})).context_length == 4 * 262_144
    stated = {"factor": 4, "original_max_position_embeddings": 262_144}
    assert read_config(config(QWEN, rope_scaling=stated)).context_length == 262_144
    assert read_config(config(QWEN, max_position_embeddings=...)).context_length is None
    assert read_config(config("tiiuae/falcon-mamba-7b")).context_length == 2048


def test_architecture_decides_extra_buffer() -> None:
    """The engine's list, and unknown without an architecture."""
    assert read_config(config(QWEN)).extra_buffer is True
    assert read_config(config(LFM2)).extra_buffer is False
    assert read_config(config(QWEN, architectures=...)).extra_buffer is None


def test_every_model_type_has_a_row() -> None:
    """Wrappers lead to rows."""
    assert {wrapper.inner for wrapper in WRAPPERS.values()} <= ROWS.keys()
    assert not WRAPPERS.keys() & ROWS.keys()
