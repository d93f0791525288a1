"""The table of model types: which reader understands a configuration, and what the engine does with its dtype.

To add a model type: write a reader (fields in, Layout out) in the module of its kind of state, or take one that is
there, and add a row. Source: model-geometry.md section 3; the dtype and ReplaySSM columns were read in SGLang 0.5.23.
"""

from collections.abc import Callable
from typing import NamedTuple

from sizing.models.families import gdn, kda, lightning, mamba1, mamba2, short_conv
from sizing.models.families.common import Layout
from sizing.models.fields import Fields


def bailing(fields: Fields) -> Layout:
    """Ling: a short conv selects KDA (3.0), none selects lightning attention (2.5)."""
    read = kda.bailing if fields.has("short_conv_kernel_size") else lightning.bailing
    return read(fields)


class Row(NamedTuple):
    """One model type."""

    read: Callable[[Fields], Layout]
    reads_ssm_dtype: bool = False
    """Whether mamba_ssm_dtype of the checkpoint is obeyed (trap 4)."""
    replayssm: bool = False
    """Whether ReplaySSM can run: GDN and KDA, but not what registers itself with the engine from outside."""
    bfloat16_only: bool = False
    """State is bfloat16 whatever the flags say."""


ROWS: dict[str, Row] = {
    "qwen3_next": Row(gdn.qwen, reads_ssm_dtype=True, replayssm=True),
    "qwen3_5_text": Row(gdn.qwen, reads_ssm_dtype=True, replayssm=True),
    "qwen3_5_moe_text": Row(gdn.qwen, reads_ssm_dtype=True, replayssm=True),
    "interns2_mobius_text": Row(gdn.qwen, reads_ssm_dtype=True, replayssm=True),
    "qwen4_exp_text": Row(gdn.qwen4_exp, reads_ssm_dtype=True, replayssm=True),
    "jet_nemotron": Row(gdn.jet, reads_ssm_dtype=True, replayssm=True),
    "gigachat3_5": Row(gdn.gigachat, reads_ssm_dtype=True),
    "kimi_linear": Row(kda.kimi, replayssm=True),
    "glm5_next_text": Row(kda.glm, replayssm=True),
    "bailing_hybrid": Row(bailing, replayssm=True),
    "minicpm_sala": Row(lightning.minicpm_sala),
    "nemotron_h": Row(mamba2.nemotron_h, reads_ssm_dtype=True),
    "nemotron_h_puzzle": Row(mamba2.nemotron_h, reads_ssm_dtype=True),
    "falcon_h1": Row(mamba2.falcon_h1, reads_ssm_dtype=True),
    "granitemoehybrid": Row(mamba2.granite),
    "mamba2": Row(mamba2.pure),
    "mamba": Row(mamba1.pure),
    "falcon_mamba": Row(mamba1.pure),
    "lfm2": Row(short_conv.lfm2, reads_ssm_dtype=True),
    "lfm2_moe": Row(short_conv.lfm2),
    "zaya": Row(short_conv.zaya, reads_ssm_dtype=True),
    "inkling_model": Row(short_conv.inkling, bfloat16_only=True),
}


class Wrapper(NamedTuple):
    """A model type whose language model stands in an inner object; the outer type decides what that is."""

    field: str
    inner: str
    flat: bool = False
    """Whether the fields may stand outside as well."""


WRAPPERS: dict[str, Wrapper] = {
    "qwen3_5": Wrapper("text_config", "qwen3_5_text"),
    "qwen3_5_moe": Wrapper("text_config", "qwen3_5_moe_text"),
    "intern_s2_preview": Wrapper("text_config", "qwen3_5_moe_text"),
    "interns2_mobius": Wrapper("text_config", "interns2_mobius_text"),
    "qwen4_exp": Wrapper("text_config", "qwen4_exp_text", flat=True),
    "minicpmv4_6": Wrapper("text_config", "qwen3_5_text"),
    "minicpmv4_7": Wrapper("text_config", "qwen3_5_text"),
    "jet_vlm": Wrapper("text_config", "jet_nemotron"),
    "kimi_k3": Wrapper("text_config", "kimi_linear"),
    "glm5_next": Wrapper("text_config", "glm5_next_text", flat=True),
    "bailing_moe_v3_vl": Wrapper("text_config", "bailing_hybrid"),
    "lfm2_vl": Wrapper("text_config", "lfm2_moe"),  # lfm2, but a checkpoint's dtype is not read here
    "inkling_mm_model": Wrapper("text_config", "inkling_model"),
    "NemotronH_Nano_VL_V2": Wrapper("llm_config", "nemotron_h"),
    "NemotronH_Nano_Omni_Reasoning_V3": Wrapper("llm_config", "nemotron_h"),
    "nemotron_h_omni": Wrapper("llm_config", "nemotron_h"),
}

# Hybrids that SGLang 0.5.23 does not have (model-geometry.md section 3), by their names.
NOT_SERVED = {
    "bamba": "Bamba",
    "jamba": "Jamba",
    "zamba2": "Zamba2",
    "recurrent_gemma": "RecurrentGemma",
    "minimax": "MiniMax-Text-01",
    "minimax_text_01": "MiniMax-Text-01",
    "minimax_m1": "MiniMax-M1",
    "olmo_hybrid": "Olmo-Hybrid",
    "plamo2": "Plamo2",
}
