"""Public boots the estimate is judged by: what was stated, what it predicts, and what the log showed.

The overheads of before_load.py were read from partly the same boots, so the errors are somewhat in-sample; no hybrid
on NVIDIA at TP 4 or 8 is among them, none with attention DP, stages or speculation. A source is a public boot log by
its id, its repository not known. Source: rest-before-boot.md sections 4.1, 4.3 and 4.5.
"""

from typing import Any, NamedTuple

from sizing.basics.units import GIB
from sizing.memory.automatic import automatic
from sizing.memory.before_load import Hardware
from sizing.memory.loaded import Loaded, counted, typed
from sizing.memory.rest import RestEstimate, estimate
from sizing.memory.stated import ModelFacts, Stated, model_facts
from sizing.memory.weights.per_rank import Ranks
from sizing.memory.weights.table import count
from sizing.memory.weights.variants import Variant
from sizing.models import entry, read_config

DENSE = ModelFacts(architecture="Qwen3ForCausalLM", mla=False)
MOE = ModelFacts(architecture="Qwen3MoeForCausalLM", mla=False)
LFM2 = ModelFacts(architecture="Lfm2ForCausalLM", mla=False, context_length=128_000)
DEEPSEEK = ModelFacts(architecture="DeepseekV32ForCausalLM", mla=True, kv_heads=128)
KIMI_K25 = ModelFacts(
    architecture="KimiK25ForConditionalGeneration",
    mla=True,
    kv_heads=64,
    separate_text_config=True,
    vision=True,
    vision_layers=27,
    vision_hidden=1152,
)
CARD_16_GB = 16_384  # MiB; the log does not name the card, such cards have 15.9 to 16.0 GiB


def facts_of(id: str) -> ModelFacts:
    """The facts of a model of the catalogue. Raises KeyError."""
    config = entry(id).config
    geometry = read_config(config)
    mla = geometry.attention in ("MLA", "DSA")
    return model_facts(config, mla, geometry.kv_heads or None, geometry.context_length)


class Printed(NamedTuple):
    """An automatic fraction that a log printed, or that its pools give."""

    source: str
    release: str
    gpu: str
    memory_mib: int
    tp_size: int
    model: str
    facts: ModelFacts
    seen: float
    how: str
    vendor: str = "NVIDIA"

    @property
    def predicted(self) -> float:
        """By the rule."""
        return automatic(
            Stated.model_validate(
                {
                    "release": self.release,
                    "model": self.facts,
                    "vendor": self.vendor,
                    "gpu_memory_mib": self.memory_mib,
                    "tp_size": self.tp_size,
                }
            )
        ).mem_fraction_static


H100, H200, B200, MI355X = 81_559, 143_771, 183_359, 294_896
LOG = "public boot log "
GRANITE_MICRO = "ibm-granite/granite-4.0-h-micro"
PRINTED = (
    *(
        Printed(LOG + id, "0.5.9", "H100 80", H100, 1, "a small text model", DENSE, 0.835, "printed")
        for id in ("15059374970", "15000422991", "15412392950", "15574385905", "15003710305")
    ),
    Printed(LOG + "15168560520", "0.5.9", "H200", H200, 1, "a small text model", DENSE, 0.907, "printed"),
    *(
        Printed(LOG + id, "0.5.10", "H100 80", H100, 1, "Qwen2.5-0.5B", DENSE, 0.830, "printed")
        for id in ("53322373626", "53201483917", "53227915747")
    ),
    *(
        Printed(LOG + id, "0.5.10", "H200", H200, 1, "Qwen2.5-0.5B, 7B", DENSE, 0.903, "printed")
        for id in ("53561118111", "51927623556", "52125906000")
    ),
    Printed("sgl-project/sglang#29092", "0.5.13", "H100 80", H100, 2, "Qwen3-32B", DENSE, 0.828, "printed, TP assumed"),
    Printed(LOG + "60250377458", "0.5.12", "H200", H200, 8, "DeepSeek-V3.2", DEEPSEEK, 0.897, "printed"),
    Printed(
        LOG + "1272019175", "0.5.9", "MI355X", MI355X, 8, "Kimi-K2.5", KIMI_K25, 0.8260405859375, "printed", "AMD"
    ),
    Printed(LOG + "46415979912", "0.5.6", "16 GB", CARD_16_GB, 1, "LFM2-700M", LFM2, 0.771, "from pools"),
    Printed(
        LOG + "46857556603", "0.5.8", "16 GB", CARD_16_GB, 1, "Granite-H-Micro", facts_of(GRANITE_MICRO), 0.774,
        "from pools",
    ),
    Printed(LOG + "52132052242", "0.5.11", "B200", B200, 1, "Qwen3-8B", DENSE, 0.8539, "from pools"),
    Printed(LOG + "69624180828", "0.5.18", "H100 80", H100, 1, "Qwen3-30B-A3B-FP8", MOE, 0.8299, "from pools"),
)  # fmt: skip


class Boot(NamedTuple):
    """One boot on which `rest` can be read."""

    name: str
    source: str
    stated: dict[str, Any]
    """Release, fraction and width; the model's facts and the GPU come from the other fields."""
    memory_mib: int
    model: ModelFacts | str
    """Facts, or an id of the catalogue, whose weights are counted."""
    variant: Variant
    weights_gib: float | None
    """Per rank, as the document computes them for a model that is not in the catalogue."""
    seen_gib: float
    document_error: float
    """Of the document's own prediction: a share, 0.01 is 1 %."""
    vendor: str = "NVIDIA"
    free_gib: float | None = None
    """MemAvailable, on unified memory."""
    four_bit: bool = False

    @property
    def predicted(self) -> RestEstimate:
        """Without a log."""
        stated = Stated.model_validate(
            {"model": self._facts, "vendor": self.vendor, "gpu_memory_mib": self.memory_mib, **self.stated}
        )
        hardware = Hardware.model_validate(
            {
                "vendor": self.vendor,
                "memory_mib": self.memory_mib,
                "unified": self.free_gib is not None,
                "free_gib": self.free_gib,
            }
        )
        return estimate(stated, hardware, self._loaded(stated))

    @property
    def error(self) -> float:
        """A share of what was seen; above 0 where the prediction is too high."""
        return self.predicted.rest_gib / self.seen_gib - 1

    @property
    def _facts(self) -> ModelFacts:
        return facts_of(self.model) if isinstance(self.model, str) else self.model

    def _loaded(self, stated: Stated) -> Loaded:
        ranks = Ranks(tp_size=stated.tp_size)
        if isinstance(self.model, str):
            return counted(count(entry(self.model).config), self.variant, ranks, stated.release)
        total = round((self.weights_gib or 0) * GIB) * stated.tp_size
        return typed(total, ranks, stated.release, self.four_bit)


QWEN_27B = "Qwen/Qwen3.5-27B"
# A fraction that is given leaves a release no say before 0.5.18, when the multimodal reservation begins.
BOOTS = (
    Boot("LFM2-700M, 16 GB", LOG + "46415979912", {"release": "0.5.6"}, CARD_16_GB, LFM2, "bf16", 1.38, 10.30, -0.003),
    Boot("Granite-H-Micro, 16 GB", LOG + "46857556603", {"release": "0.5.8"}, CARD_16_GB, GRANITE_MICRO, "bf16", None,
         5.79, -0.013),
    Boot("Granite-H-Small, H200", LOG + "53368567226", {"release": "0.5.10"}, H200, "ibm-granite/granite-4.0-h-small",
         "bf16", None, 65.75, -0.001),
    Boot("Qwen3.6-27B-FP8, RTX PRO 6000", LOG + "55026830196", {"release": "0.5.11"}, 97_887, QWEN_27B, "fp8", None,
         46.89, 0.003),
    Boot("Qwen3-8B, B200", LOG + "52132052242", {"release": "0.5.11"}, B200, DENSE, "bf16", 15.26, 136.36, 0.002),
    Boot("Qwen3-30B-A3B-FP8, H100", LOG + "69624180828", {"release": "0.5.18"}, H100, MOE, "fp8", 29.03, 35.98, 0.003),
    Boot("Kimi-K2.5, MI355X, TP 8", LOG + "1272019175", {"release": "0.5.9", "tp_size": 8}, MI355X, KIMI_K25, "bf16",
         69.2, 160.63, 0.028, "AMD", four_bit=True),
    Boot("Qwen3.5-4B, RTX 4090", LOG + "54618842866", {"release": "0.5.11", "mem_fraction_static": 0.85}, 24_564,
         "Qwen/Qwen3.5-4B", "bf16", None, 11.01, 0.015),
    Boot("Qwen3.5-9B, RTX 4090, TP 2", LOG + "53944457073",
         {"release": "0.5.10", "mem_fraction_static": 0.80, "tp_size": 2}, 24_564, "Qwen/Qwen3.5-9B", "bf16", None,
         9.48, 0.007),
    Boot("Qwen3.8-27B-FP8, H100", LOG + "65830671609", {"release": "0.5.18", "mem_fraction_static": 0.85}, H100,
         QWEN_27B, "fp8", None, 38.08, 0.005),
    Boot("Qwen3-32B, H100", LOG + "70687021461", {"release": "0.5.19", "mem_fraction_static": 0.90}, H100, DENSE,
         "bf16", 61.02, 9.54, 0.004),
    Boot("Qwen3.8-27B-FP8, MI355X", LOG + "65830671609", {"release": "0.5.17", "mem_fraction_static": 0.85}, MI355X,
         QWEN_27B, "fp8", None, 179.0, 0.002, "AMD"),
    Boot("Qwen3.8-27B-FP8, MI355X, TP 2", LOG + "65830671609",
         {"release": "0.5.17", "mem_fraction_static": 0.85, "tp_size": 2}, MI355X, QWEN_27B, "fp8", None, 187.2, 0.002,
         "AMD"),
    Boot("Qwen3.8-27B, GB10", LOG + "57759592298", {"release": "0.5.15", "mem_fraction_static": 0.80}, 124_610,
         QWEN_27B, "bf16", None, 37.5, 0.21, free_gib=111.73),
)  # fmt: skip
