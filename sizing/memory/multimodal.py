"""Whether the engine takes a model for multimodal, and what that costs of the static fraction.

Source: rest-before-boot.md section 1.6; configs/model_config.py and adjust_mem_fraction_for_vlm of each wheel.
"""

from sizing.memory.release import Table, at
from sizing.memory.stated import ModelFacts, Stated
from sizing.releases.architectures import MULTIMODAL_OFF

MULTIMODAL_SINCE = {
    "NemotronH_Nano_VL_V2": 6,
    "JetVLMForConditionalGeneration": 6,
    "Qwen3_5ForConditionalGeneration": 9,
    "Qwen3_5MoeForConditionalGeneration": 9,
    "KimiK25ForConditionalGeneration": 9,
    "Lfm2VlForConditionalGeneration": 10,
    "NemotronH_Nano_Omni_Reasoning_V3": 11,
    "InternS2PreviewForConditionalGeneration": 12,
    "InternS2MobiusForConditionalGeneration": 18,
    "Qwen4ExpForConditionalGeneration": 20,
    "Glm5NextForConditionalGeneration": 20,
    "NemotronH_Omni_Reasoning_V3": 20,
}
"""Architectures in the list multimodal_model_archs, by the first release that has them: those with a state pool, and
Kimi-K2.5, whose boots are evidence. Any other is multimodal by its separate text config alone."""

SUB_CONFIG_SINCE = 10
LANGUAGE_ONLY_SINCE = 9
LANGUAGE_MODEL_ONLY_SINCE = 18
NO_FACTOR_ON_DECODE_SINCE = 17
# is_lm_only: the checkpoint's own word in 0.5.18 and 0.5.19, the flag too since 0.5.20.
LM_ONLY_READS_FLAG: Table[bool] = ((4, False), (20, True))

# adjust_mem_fraction_for_vlm: ViT-L/14 counts as 1, and every doubling of its size takes a tenth of the 5 % off.
BASE_FACTOR, SENSITIVITY, LOWEST, HIGHEST = 0.95, 0.1, 0.8, 1.05
BASE_LAYERS, BASE_HIDDEN = 24, 1024


def is_multimodal(stated: Stated) -> bool:
    """Whether the release takes the model for multimodal; a text-only server is one all the same unless told so."""
    model, release = stated.model, stated.minor
    if model.architecture in MULTIMODAL_OFF:
        return False
    if release >= LANGUAGE_MODEL_ONLY_SINCE and (
        model.language_model_only or (at(LM_ONLY_READS_FLAG, release) and stated.language_model_only)
    ):
        return False
    listed = MULTIMODAL_SINCE.get(model.architecture)
    return (listed is not None and listed <= release) or (release >= SUB_CONFIG_SINCE and _sub_config(model, release))


def _sub_config(model: ModelFacts, release: int) -> bool:
    return model.separate_text_config or (release == SUB_CONFIG_SINCE and (model.vision or model.audio))


def pays_factor(stated: Stated) -> bool:
    """Whether the multimodal factor applies to an automatic fraction."""
    release = stated.minor
    return is_multimodal(stated) and not (
        (release >= LANGUAGE_ONLY_SINCE and stated.language_only)
        or (release >= LANGUAGE_MODEL_ONLY_SINCE and stated.language_model_only)
        or (release >= NO_FACTOR_ON_DECODE_SINCE and stated.disaggregation_mode == "decode")
    )


def factor(model: ModelFacts) -> float:
    """What a multimodal model multiplies the fraction with; 1 without a vision_config.

    Layers and width count where the file calls them num_hidden_layers and hidden_size, else as 24 and 1,024.
    """
    if not model.vision:
        return 1.0
    layers = BASE_LAYERS if model.vision_layers is None else model.vision_layers
    hidden = BASE_HIDDEN if model.vision_hidden is None else model.vision_hidden
    ratio = layers * hidden**2 / (BASE_LAYERS * BASE_HIDDEN**2)
    return BASE_FACTOR * max(LOWEST, min(HIGHEST, 1.0 - SENSITIVITY * (ratio - 1.0)))
