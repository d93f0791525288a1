"""Draft models: a config.json that names one, and the bytes of its KV row. A draft has attention alone, and no state.

Source: the architectures that SGLang 0.5.13 to 0.5.23 register as drafts, sgl-project/sglang,
python/sglang/srt/models/, `EntryClass` of llama_eagle.py, llama_eagle3.py, qwen2_eagle.py, mistral_eagle.py,
mistral_large_3_eagle.py, kimi_k25_eagle3.py, ernie4_eagle.py, gemma4_mtp.py, glm4_moe.py, inkling.py, dflash.py,
dspark.py, dspark_minimax.py, lfm2_dspark.py, lilicorr.py, deepseek_v4_dspark.py, *_nextn.py and *_mtp.py. A draft's
model_type is that of the dense family it is built on (llama, qwen3, ...), so the architecture alone tells. Layers and
bytes: model_executor/model_runner_components/spec_aux_hidden_state.py and speculative/dflash_utils.py
(`dflash_draft_cell_size_per_token`) there.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sizing.models.families.common import gqa, head_dim, mla
from sizing.models.fields import Fields, object_of
from sizing.models.kv import Gqa, KvCacheDtype, Mla
from sizing.models.quantisation import kv_dtype_auto
from sizing.models.refusal import ModelRefusedError

DraftAlgorithm = Literal["EAGLE", "EAGLE3", "NEXTN", "DFLASH", "DSPARK"]

_BY_ALGORITHM: dict[DraftAlgorithm, tuple[str, ...]] = {
    "EAGLE": (
        "LlamaForCausalLMEagle", "Qwen2ForCausalLMEagle", "MistralForCausalLMEagle", "MistralLarge3ForCausalLMEagle",
    ),
    "EAGLE3": ("LlamaForCausalLMEagle3", "Eagle3DeepseekV2ForCausalLM"),
    "NEXTN": (
        "BailingMoeForCausalLMNextN", "DeepseekV3ForCausalLMNextN", "DeepseekV4ForCausalLMNextN",
        "Dots3NoteForCausalLMNextN", "Ernie4_5_MoeForCausalLMMTP", "ExaoneMoEForCausalLMMTP",
        "Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM", "GigaChat35ForCausalLMNextN",
        "Glm4MoeForCausalLMNextN", "Glm4MoeLiteForCausalLMNextN", "Glm5NextForConditionalGenerationNextN",
        "GlmMoeDsaForCausalLMNextN", "GlmOcrForConditionalGenerationNextN", "HYV3ForCausalLMNextN",
        "HYV4ForCausalLMNextN", "IQuestQ1MTP", "InklingForConditionalGenerationMTP", "LongcatFlashForCausalLMNextN",
        "MiMoMTP", "MiMoV2MTP", "NemotronHForCausalLMMTP", "Qwen3MoeForCausalLMMTP", "Qwen3NextForCausalLMMTP",
        "Qwen3_5ForCausalLMMTP", "Qwen4ExpForCausalLMMTP", "Step3p5MTP",
    ),
    "DFLASH": (
        "DFlashDraftModel", "DFlashLagunaForCausalLM", "DFlash2DraftModel", "DFlash2BeamDraftModel",
        "MiniMaxDFlash2DraftModel", "MuseGlimmerAssistantModel", "LiLiCorrDraftModel",
    ),
    "DSPARK": (
        "DSparkDraftModel", "Qwen3DSparkModel", "LingDSparkModel", "Lfm2DSparkDraftModel", "DSparkMiniMaxDraftModel",
        "DeepseekV4ForCausalLMDSpark",
    ),
}  # fmt: skip
ALGORITHMS = {name: algorithm for algorithm, names in _BY_ALGORITHM.items() for name in names}
# DeepSeek-V4's compressed rows and those of a draft with a window or an index of its own are not of these two forms.
OTHER_ROWS = (
    "DeepseekV4ForCausalLMNextN", "DeepseekV4ForCausalLMDSpark", "Dots3NoteForCausalLMNextN",
    "Glm5NextForConditionalGenerationNextN", "GlmMoeDsaForCausalLMNextN", "HYV4ForCausalLMNextN",
    "InklingForConditionalGenerationMTP", "MiMoV2MTP",
)  # fmt: skip


class Draft(BaseModel):
    """A draft model. Layers and heads are of the whole model."""

    model_config = ConfigDict(frozen=True)

    architecture: str
    algorithm: DraftAlgorithm
    """The --speculative-algorithm that runs it."""
    layers: int
    kv: Gqa | Mla
    kv_dtype_auto: KvCacheDtype
    """What `--kv-cache-dtype auto` gives."""

    def row_bytes(self, tp: int, dtype: KvCacheDtype) -> int:
        """Bytes of one row of its KV pool on one rank of attention TP `tp`; no DCP shards it.

        >>> draft = read_draft({"architectures": ["Qwen3DSparkModel"], "num_hidden_layers": 5, "head_dim": 128,
        ...     "num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 2560, "dtype": "bfloat16"})
        >>> draft.row_bytes(tp=2, dtype="bfloat16")
        10240
        """
        if tp < 1:
            raise ModelRefusedError("layout", "tp", f"Attention TP must be 1 or more, not {tp:,}.")
        return self.kv.row_bytes(tuple(range(self.layers)), tp, 1, dtype)


def is_draft(config: Mapping[str, object]) -> bool:
    """Whether a parsed config.json is that of a draft model, by its first architecture."""
    return _architecture(config) in ALGORITHMS


def read_draft(config: str | bytes | Mapping[str, object]) -> Draft:
    """The draft model of a config.json, given as text, bytes or a parsed object.

    Raises ModelRefusedError, and nothing else: for what is no draft, and for one whose rows this tool has no rule for.
    """
    values = object_of(config)
    architecture = _architecture(values)
    if architecture not in ALGORITHMS:
        raise ModelRefusedError("unknown", "architectures", "architectures names no draft model that SGLang has.")
    if architecture in OTHER_ROWS:
        raise ModelRefusedError(
            "layout", "architectures", f"The KV rows of the draft model {architecture} are of a form of their own."
        )
    outer = Fields(values)
    inner = outer.inner("text_config").over(outer) if outer.is_object("text_config") else outer
    latent = inner.has("kv_lora_rank")
    return Draft(
        architecture=architecture,
        algorithm=ALGORITHMS[architecture],
        layers=_layers(inner, ALGORITHMS[architecture]),
        kv=mla(inner) if latent else gqa(inner, head_dim(inner)),
        kv_dtype_auto=kv_dtype_auto(outer, inner, None),
    )


def _layers(fields: Fields, algorithm: DraftAlgorithm) -> int:
    """EAGLE and MTP heads: num_nextn_predict_layers where it is there; a block draft's layers all count."""
    block = algorithm in ("DFLASH", "DSPARK")
    counted = not block and fields.has("num_nextn_predict_layers")
    return fields.layers("num_nextn_predict_layers" if counted else "num_hidden_layers")


def _architecture(config: Mapping[str, object]) -> str:
    names = config.get("architectures")
    return names[0] if isinstance(names, list | tuple) and names and isinstance(names[0], str) else ""
