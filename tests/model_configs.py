"""Configurations for tests: checkpoints of the catalogue with fields changed, and two families it has none of."""

from copy import deepcopy
from typing import Any

from sizing.models import entry

KIMI, QWEN, NEMOTRON = "moonshotai/Kimi-K3", "Qwen/Qwen3-Next-80B-A3B-Instruct", "nvidia/Nemotron-H-8B-Base-8K"
FALCON, GRANITE, LFM2 = "tiiuae/Falcon-H1-3B-Instruct", "ibm-granite/granite-4.0-h-micro", "LiquidAI/LFM2-350M"
LING, GLM, JET = "inclusionAI/Ling-3.0-tiny", "zai-org/GLM-5.3-Flash", "jet-ai/Jet-Nemotron-2B"
INKLING, ZAYA, VL = "thinkingmachines/Inkling", "Zyphra/ZAYA1-base", "Qwen/Qwen3.5-27B"
GIGACHAT = {
    "model_type": "gigachat3_5",
    "architectures": ["GigaChat35ForCausalLM"],
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "linear_num_key_heads": 8,
    "linear_num_value_heads": 16,
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_conv_kernel_dim": 4,
    "full_attention_layers": [3, 7],
}
SALA = {
    "model_type": "minicpm_sala",
    "architectures": ["MiniCPMHybridForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 5,
    "num_attention_heads": 32,
    "num_key_value_heads": 2,
    "mixer_types": ["minicpm4", "lightning-attn", "lightning"],
    "lightning_nkv": 32,
    "lightning_head_dim": 128,
}


def config(id: str, **changes: object) -> dict[str, Any]:
    """A checkpoint's configuration with some fields changed, inside text_config where it has one; ... removes one."""
    found = deepcopy(entry(id).config)
    fields = found.get("text_config", found)
    for name, value in changes.items():
        if value is ...:
            fields.pop(name, None)
        else:
            fields[name] = value
    return found
