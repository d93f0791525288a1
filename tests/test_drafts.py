"""Draft models: known by their architecture, with KV bytes of their own and no state."""

from typing import Any

import pytest

from sizing.models import ModelRefusedError, entry, is_draft, read_config, read_draft
from sizing.models.drafts import ALGORITHMS, OTHER_ROWS

# Five layers of Qwen3 as the DSpark and DFLASH drafts of Qwen and Ling have them; the numbers of rows are worked out
# here: KV heads on a rank x (key + value width) x layers x bytes of an element.
QWEN3: dict[str, Any] = {
    "model_type": "qwen3",
    "num_hidden_layers": 5,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "dtype": "bfloat16",
}
LATENT = QWEN3 | {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "num_nextn_predict_layers": 1}


def draft(architecture: str, **changes: object) -> dict[str, Any]:
    """A draft's configuration."""
    return QWEN3 | {"architectures": [architecture]} | changes


@pytest.mark.parametrize(
    ("config", "tp", "dtype", "algorithm", "row"),
    [
        (draft("LingDSparkModel"), 1, "bfloat16", "DSPARK", 8 * 256 * 5 * 2),
        (draft("LingDSparkModel"), 16, "fp8_e4m3", "DSPARK", 1 * 256 * 5),
        (draft("DFlashDraftModel", num_nextn_predict_layers=1), 4, "bfloat16", "DFLASH", 2 * 256 * 5 * 2),
        (draft("LlamaForCausalLMEagle3", num_hidden_layers=1), 8, "bfloat16", "EAGLE3", 256 * 2),
        (draft("LlamaForCausalLMEagle", head_dim=None), 8, "bfloat16", "EAGLE", 256 * 5 * 2),
        (draft("Qwen3NextForCausalLMMTP", num_nextn_predict_layers=1), 1, "bfloat16", "NEXTN", 8 * 256 * 2),
        (LATENT | {"architectures": ["BailingMoeForCausalLMNextN"]}, 8, "bfloat16", "NEXTN", 576 * 2),
        (LATENT | {"architectures": ["Eagle3DeepseekV2ForCausalLM"]}, 2, "fp8_e4m3", "EAGLE3", 576),
    ],
)
def test_draft_row(config: dict[str, Any], tp: int, dtype: Any, algorithm: str, row: int) -> None:
    """A draft's row by its own heads and layers; a block draft counts all of its layers."""
    found = read_draft(config)
    assert (found.algorithm, found.row_bytes(tp, dtype)) == (algorithm, row)
    assert is_draft(config)


@pytest.mark.parametrize("architecture", ALGORITHMS)
def test_no_draft_is_a_model_with_state(architecture: str) -> None:
    """No draft is sized as if it were the target, whatever its fields say; a row of another form is refused."""
    config = {**entry("Qwen/Qwen3-Next-80B-A3B-Instruct").config, "architectures": [architecture]}
    with pytest.raises(ModelRefusedError) as refused:
        read_config(config)
    assert refused.value.kind == "draft"
    if architecture in OTHER_ROWS:
        with pytest.raises(ModelRefusedError):
            read_draft(config)
    else:
        assert read_draft(config).layers >= 1


def test_a_target_is_no_draft() -> None:
    """A model with state, and a file without architectures, are not drafts."""
    target: dict[str, Any] = entry("moonshotai/Kimi-K3").config
    others: list[dict[str, Any]] = [{}, {"architectures": []}, {"architectures": "DFlashDraftModel"}]
    for config in (target, *others):
        assert not is_draft(config)
        with pytest.raises(ModelRefusedError, match="no draft model"):
            read_draft(config)


@pytest.mark.parametrize("field", ["num_hidden_layers", "num_attention_heads", "num_key_value_heads"])
def test_a_missing_field_is_named(field: str) -> None:
    """What the row needs and the file lacks is said."""
    config = {name: value for name, value in draft("DFlashDraftModel", head_dim=None).items() if name != field}
    with pytest.raises(ModelRefusedError, match=field):
        read_draft(config)
