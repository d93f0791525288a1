"""Whose `rest` it is: stated, estimated from the GPU, the worked example's own, or not known.

`rest` belongs to one deployment: model, GPU, widths, the dtype of the weights. Nothing carries it into another.
Source: rest-before-boot.md through `sizing.memory`.
"""

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeVar

from sizing.basics.problems import shown
from sizing.basics.units import GIB, number, rest_text
from sizing.memory.automatic import Automatic, automatic
from sizing.memory.before_load import Hardware, NotEstimatedError
from sizing.memory.loaded import Loaded, counted, typed
from sizing.memory.rest import RestEstimate, estimate
from sizing.memory.stated import ModelFacts, Stated, model_facts
from sizing.memory.weights.per_rank import Ranks, weights_per_rank
from sizing.memory.weights.table import ASK, Counted, count, fields_of
from sizing.memory.weights.variants import Variant, variant_of
from sizing.models.gpus import ALL_GPUS, Gpu
from sizing.models.refusal import ModelRefusedError
from sizing.scenario.from_model import entry_of, geometry_of

RestSource = Literal["typed in", "boot log", "estimated", "low end", "high end", "worked example", "unknown"]
# An end of the estimate's band stands for a rest that was stated: flags are chosen for it.
STATED_SOURCES = ("typed in", "boot log", "low end", "high end")
Checkpoint = Literal["auto", "bf16", "fp8", "mxfp4", "nvfp4"]
EXAMPLE_REST_GIB = 28.529  # fitted to the boot log quoted in compute-mamba-ratio.md
OTHER = "other"  # a GPU whose memory is stated
# What a rest belongs to: it is not carried from one of these to another.
OWN_DEPLOYMENT = (
    "model", "tp_size", "attn_dp_size", "pp_size", "gpu", "gpu_memory_mib", "free_gib", "mem_fraction_static",
    "checkpoint", "weights_bytes", "draft_weights_bytes", "language_only", "chunked_prefill_size",
    "cuda_graph_max_bs", "moe_a2a_backend",
)  # fmt: skip
_OWN = attrgetter(*OWN_DEPLOYMENT)
ENDS = {"low end": "low end of the estimate", "high end": "high end of the estimate"}
NO_GPU = "Choose the GPU and rest is estimated, or enter rest from a boot log."
WHERE = {"draft": "draft_weights_bytes", "memory_mib": "gpu_memory_mib"}  # inputs of the core by their fields here


class _Deployed(Protocol):
    """What is read of a `Scenario` here, and more of its inputs by name: `inputs.py` asks this module for rest."""

    @property
    def rest_gib(self) -> float | None: ...
    @property
    def rest_source(self) -> RestSource: ...
    @property
    def model(self) -> str: ...
    @property
    def checkpoint(self) -> Checkpoint: ...
    @property
    def weights_bytes(self) -> int | None: ...
    def model_copy(self, *, update: Mapping[str, Any] | None = None) -> Self: ...


_D = TypeVar("_D", bound=_Deployed)


class Rest(NamedTuple):
    """`rest` of one rank [GiB] and where it comes from."""

    value: float | None
    """None: not known."""
    low: float | None
    high: float | None
    source: RestSource
    estimate: RestEstimate | None = None
    automatic: Automatic | None = None
    missing: str = ""
    """What to give where it is not known, in a sentence."""
    where: str = ""
    """The input to give."""

    @property
    def words(self) -> str:
        """The number and its source, as a page says it: estimated: 61.3 ± 1.1 GiB."""
        if self.value is None:
            return "not known"
        if self.estimate is not None:
            return f"estimated: {self.estimate.in_words}"
        return f"{self.origin}: {rest_text(self.value)}"

    @property
    def origin(self) -> str:
        """Where it comes from, in a word or two."""
        names = {"boot log": "from your log", **ENDS, "worked example": "fitted to the published log"}
        return names.get(self.source, self.source)


def rest_of(scenario: _Deployed) -> Rest:
    """`rest` of a scenario: as stated, else the worked example's own, else estimated, else unknown with what to give.

    Estimated GiB are rounded to the thousandth. Never raises.
    """
    if scenario.rest_source in STATED_SOURCES and scenario.rest_gib is not None:
        return Rest(scenario.rest_gib, scenario.rest_gib, scenario.rest_gib, scenario.rest_source)
    if is_example(scenario):
        return Rest(EXAMPLE_REST_GIB, EXAMPLE_REST_GIB, EXAMPLE_REST_GIB, "worked example")
    return _estimated(_key(scenario))


def is_example(scenario: _Deployed) -> bool:
    """Whether the deployment is the worked example's."""
    return bool(_OWN(scenario) == _example(type(scenario)))


@cache
def _example(stated: Any) -> tuple[Any, ...]:
    return tuple(stated.model_fields[name].default for name in OWN_DEPLOYMENT)


def estimate_of(scenario: _Deployed) -> Rest:
    """The estimate alone, whatever is stated; unknown with what to give where there is none."""
    return _estimated(_key(scenario))


# What the estimate reads beside the deployment.
_ALSO = (
    "architecture", "attention", "kv_heads", "release", "D", "speculative_algorithm", "kv_cache_dtype", "dcp_size",
    "attention_backend", "max_running_requests", "max_total_tokens", "context_length", "disaggregation_mode",
    "enable_hierarchical_cache", "enable_unified_memory",
)  # fmt: skip
_READ = (*OWN_DEPLOYMENT, *_ALSO)
_READ_OF = attrgetter(*_READ)


class Deployment(NamedTuple):
    """What an estimate is made from; `loaded` gives the weights at another width."""

    stated: Stated
    hardware: Hardware
    load: "Load"


class Load(NamedTuple):
    """Weights at a TP width."""

    values: tuple[tuple[str, Any], ...]

    def __call__(self, tp_size: int, checkpoint: Checkpoint | None = None) -> Loaded:
        """Bytes on one rank. Raises NotEstimatedError and ModelRefusedError."""
        at = dict(self.values) | {"tp_size": tp_size} | ({"checkpoint": checkpoint} if checkpoint else {})
        return _loaded(at)


def deployment_of(scenario: _Deployed) -> Deployment:
    """Raises NotEstimatedError where an input is missing."""
    return _deployment(_key(scenario))


def _key(scenario: _Deployed) -> tuple[tuple[str, Any], ...]:
    return tuple(zip(_READ, _READ_OF(scenario), strict=True))


@lru_cache(maxsize=4096)
def _estimated(key: tuple[tuple[str, Any], ...]) -> Rest:
    try:
        stated, hardware, load = _deployment(key)
        found = estimate(stated, hardware, load(stated.tp_size))
    except NotEstimatedError as missing:
        where = WHERE.get(missing.where, missing.where)
        return Rest(None, None, None, "unknown", missing=missing.sentence, where=where)
    except ModelRefusedError as refused:
        return Rest(None, None, None, "unknown", missing=refused.problem.sentence, where="weights_bytes")
    low, value, high = (round(gib, 3) for gib in (found.low_gib, found.rest_gib, found.high_gib))
    return Rest(value, low, high, "estimated", found, automatic(stated))


@lru_cache(maxsize=128)
def _deployment(key: tuple[tuple[str, Any], ...]) -> Deployment:
    values = dict(key)
    if not values["gpu"] and values["gpu_memory_mib"] is None:
        raise NotEstimatedError("gpu", NO_GPU)
    gpu, facts = _gpu(values), _facts(values)
    stated = Stated(
        release=values["release"],
        model=facts,
        vendor=gpu.vendor,
        gpu_memory_mib=gpu.memory_mib,
        tp_size=values["tp_size"],
        pp_size=values["pp_size"],
        attn_dp_size=values["attn_dp_size"],
        dcp_size=values["dcp_size"],
        mem_fraction_static=values["mem_fraction_static"],
        chunked_prefill_size=values["chunked_prefill_size"],
        max_running_requests=values["max_running_requests"],
        max_total_tokens=values["max_total_tokens"],
        context_length=values["context_length"],
        cuda_graph_max_bs=values["cuda_graph_max_bs"],
        speculative_algorithm=_algorithm(values),
        speculative_num_draft_tokens=values["D"] or None,
        moe_a2a_backend=values["moe_a2a_backend"],
        disaggregation_mode=values["disaggregation_mode"],
        enable_hierarchical_cache=values["enable_hierarchical_cache"],
        enable_unified_memory=values["enable_unified_memory"],
        language_only=values["language_only"],
        attention_backend=None if values["attention_backend"] == "auto" else values["attention_backend"],
        kv_cache_dtype=values["kv_cache_dtype"],
    )
    hardware = Hardware(vendor=gpu.vendor, memory_mib=gpu.memory_mib, unified=gpu.unified, free_gib=values["free_gib"])
    return Deployment(stated, hardware, Load(key))


def _algorithm(values: dict[str, Any]) -> str | None:
    return values["speculative_algorithm"] if values["D"] else None


def _gpu(values: dict[str, Any]) -> Gpu:
    if values["gpu"] not in ("", OTHER):
        return gpu_of(values["gpu"])
    if values["gpu_memory_mib"] is None:
        raise NotEstimatedError("gpu_memory_mib", "Enter the memory of the GPU: memory.total of nvidia-smi in MiB.")
    return Gpu(OTHER, values["gpu_memory_mib"], "stated")


def gpu_of(name: str) -> Gpu:
    """The GPU of this name in the table. Raises KeyError."""
    return {gpu.name: gpu for gpu in ALL_GPUS}[name]


def _facts(values: dict[str, Any]) -> ModelFacts:
    if values["model"]:
        found = geometry_of(values["model"])
        mla = found.attention in ("MLA", "DSA")
        return model_facts(entry_of(values["model"]).config, mla, found.kv_heads or None, found.context_length)
    if values["mem_fraction_static"] is None:
        raise NotEstimatedError(
            "mem_fraction_static",
            "Without a model of the catalogue the automatic fraction is not known: enter --mem-fraction-static.",
        )
    return ModelFacts(
        architecture=values["architecture"], mla=values["attention"] in ("MLA", "DSA"), kv_heads=values["kv_heads"]
    )


def _loaded(values: dict[str, Any]) -> Loaded:
    ranks = Ranks(
        tp_size=values["tp_size"],
        pp_size=values["pp_size"],
        attn_dp_size=values["attn_dp_size"],
        moe_a2a_backend=values["moe_a2a_backend"],
    )
    algorithm, draft, release = _algorithm(values), values["draft_weights_bytes"], values["release"]
    if values["weights_bytes"] is not None:
        four_bit = values["checkpoint"] in ("mxfp4", "nvfp4")
        draft = _own_draft(values, ranks) if draft is None and algorithm in ("EAGLE", "NEXTN") else draft
        return typed(values["weights_bytes"], ranks, release, four_bit, algorithm, draft)
    if not values["model"]:
        raise NotEstimatedError("weights_bytes", ASK)
    variant = values["checkpoint"] if values["checkpoint"] != "auto" else variant_named(values["model"])
    if variant is None:
        raise NotEstimatedError("checkpoint", f"How {values['model']} stores its weights is not known. {ASK}")
    return counted(_counted(values["model"]), variant, ranks, release, algorithm, draft)


def _own_draft(values: dict[str, Any], ranks: Ranks) -> int | None:
    """The checkpoint's own MTP layer beside weights that are typed in; None where it cannot be counted."""
    variant: Variant = values["checkpoint"] if values["checkpoint"] != "auto" else "bf16"
    if not values["model"]:
        return None
    try:
        return counted(_counted(values["model"]), variant, ranks, values["release"], "NEXTN").draft_bytes
    except (ModelRefusedError, NotEstimatedError):
        return None


@cache
def _counted(model: str) -> Counted:
    return count(entry_of(model).config)


@cache
def variant_named(model: str) -> Variant | None:
    """How a catalogued checkpoint stores its weights: by its name, else by its config.json; None where not known."""
    name = model.lower()
    if "nvfp4" in name:
        return "nvfp4"
    if "mxfp4" in name:
        return "mxfp4"
    if "fp8" in name:
        return "fp8"
    if re.search(r"awq|gptq|int4|int8|4bit|gguf", name):
        return None
    return variant_of(*fields_of(entry_of(model).config))


def checkpoint_of(config: str | bytes) -> dict[str, Any]:
    """Inputs for a config.json of one's own: the bytes of its whole checkpoint and how it stores them.

    Empty where they cannot be counted. Raises nothing.
    """
    try:
        variant = variant_of(*fields_of(config))
        if variant is None:
            return {}
        return {"weights_bytes": weights_per_rank(count(config), variant, Ranks()).bytes, "checkpoint": variant}
    except (ModelRefusedError, NotEstimatedError):
        return {}


_GIGABYTES = re.compile(r" \d+ GB$")


def gpu_named(value: object) -> object:
    """The name in the table for what people call a GPU; ambiguous and unknown ones are said in a sentence."""
    if value is None or value == "":
        return ""
    if not isinstance(value, str) or value == OTHER or any(gpu.name == value for gpu in ALL_GPUS):
        return value
    wanted = _words(value)
    exact = [gpu.name for gpu in ALL_GPUS if any(wanted == name for name in _short(gpu.name))]
    found = exact or [gpu.name for gpu in ALL_GPUS if wanted and wanted <= _words(gpu.name)]
    if len(found) == 1:
        return found[0]
    which = f"may be {' or '.join(found)}" if 1 < len(found) <= 4 else "is no GPU of the table"
    raise ValueError(f"{shown(value)} {which}: take one of its names, or “{OTHER}” with gpu_memory_mib")


def _words(name: str) -> frozenset[str]:
    text = re.sub(r"(\d)\s*(gb|gib)\b", r"\1", re.sub(r"[(),]", " ", name.lower()))
    return frozenset(text.split()) - {"nvidia", "amd", "instinct", "gpu", "sxm", "geforce", "gb"}


def _short(name: str) -> list[frozenset[str]]:
    """Each name in an entry without its memory."""
    base = _GIGABYTES.sub("", name)
    return [_words(part) for part in base.split(",")] if "," in base else [_words(base)]


def missing_words(rest: Rest) -> str:
    """By how much weights do not fit, in words; empty where they do."""
    found = rest.estimate
    if found is None or found.fits:
        return ""
    return f"{number(found.missing_gib, 1)} ± {number(found.band_gib, 1)} GiB are missing on each rank"


EXACT = "a boot log makes it exact"


def condition(scenario: _Deployed) -> str:
    """What a headline adds where its rest is an estimate, in brackets with a space before; empty where it is stated."""
    if scenario.rest_source in ENDS:
        return f" ({scenario.rest_source} of an estimate; {EXACT})"
    return f" (estimate; {EXACT})" if scenario.rest_source == "estimated" else ""


def asked_for(scenario: _Deployed) -> str:
    """What to give where rest is not known."""
    return estimate_of(scenario).missing


def for_bytes_alone(scenario: _D) -> _D:
    """The scenario with 1 GiB of rest where it is not known, for what does not rest on it: bytes, S, r*."""
    if scenario.rest_source != "unknown":
        return scenario
    return scenario.model_copy(update={"rest_gib": 1.0, "rest_source": "low end"})


def ends_of(scenario: _D) -> tuple[_D, _D] | None:
    """The scenario at the low and at the high end of its estimate; None where rest is no estimate."""
    rest = rest_of(scenario) if scenario.rest_source == "estimated" else None
    if rest is None or rest.low is None or rest.high is None:
        return None
    low = scenario.model_copy(update={"rest_gib": rest.low, "rest_source": "low end"})
    return low, scenario.model_copy(update={"rest_gib": rest.high, "rest_source": "high end"})


def end_anew(scenario: _D) -> _D:
    """The scenario with its end of the estimate taken again for its inputs now; unchanged where rest is no such end."""
    if scenario.rest_source not in ("low end", "high end"):
        return scenario
    rest = estimate_of(scenario)
    end = rest.low if scenario.rest_source == "low end" else rest.high
    if end is None:
        return scenario
    return scenario.model_copy(update={"rest_gib": end, "rest_source": scenario.rest_source})


def variant_words(scenario: _Deployed) -> str:
    """How weights are stored, in a word; the bytes where they are typed in."""
    if scenario.weights_bytes is not None:
        return f"{number(scenario.weights_bytes / GIB, 1)} GiB typed in"
    if scenario.checkpoint != "auto" or not scenario.model:
        return scenario.checkpoint
    return f"{variant_named(scenario.model)} by name"
