"""`rest` without a boot log: value, band, and every part with where it comes from.

    rest = f x pre_load - weights - draft - multimodal reservation      [GiB, on the rank that has least]

Source: rest-before-boot.md, first formula, sections 3.4 and 4.4; engine-sizing.md section 1.
"""

from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from sizing.basics.units import GIB, number
from sizing.memory.automatic import automatic
from sizing.memory.before_load import Hardware, NotEstimatedError, before_load
from sizing.memory.defaults import chunked_prefill_size
from sizing.memory.loaded import Loaded
from sizing.memory.multimodal import is_multimodal
from sizing.memory.reserve import FEWEST_TOKENS, FLOOR_ABOVE_MIB, FLOOR_MIB, META_MIB, MIB_PER_RANK, MIB_PER_TOKEN
from sizing.memory.stated import Stated
from sizing.releases.rules import rules_of

ON_GPU = ("cuda_ipc", "cuda_vmm")

# The band: GiB, and GiB for each GiB of weights.
NARROW, WIDE = (0.4, 0.015), (0.8, 0.03)
NARROW_TP = 4
FOUR_BIT_SHARE = 0.06
AMD_GIB = 5.0
UNMEASURED = "No boot with attention DP, pipeline stages or a counted draft was found: by the engine's code alone."


PartName = Literal["driver, context and communicators", "kept free", "weights", "draft", "multimodal reservation"]


class Part(NamedTuple):
    """One part of the GPU's memory [GiB per rank]."""

    name: PartName
    gib: float
    source: str


class RestEstimate(BaseModel):
    """`rest` of one rank before the first boot [GiB]."""

    model_config = ConfigDict(frozen=True)

    rest_gib: float
    """Below 0 where weights leave nothing."""
    band_gib: float
    """Plus or minus; a boot log makes it exact."""
    mem_fraction_static: float
    """The fraction the pools get, after every factor."""
    fraction_source: str
    total_gib: float | None
    """The driver's total, which the parts and rest add up to; None where only free memory is known."""
    pre_load_gib: float
    """Free before weights."""
    parts: tuple[Part, ...]
    """From the total down, rest not among them."""
    notes: tuple[str, ...]

    def part_gib(self, name: PartName) -> float:
        """One of the parts [GiB]."""
        return next(part.gib for part in self.parts if part.name == name)

    @property
    def low_gib(self) -> float:
        """The low end, for which flags are chosen."""
        return self.rest_gib - self.band_gib

    @property
    def high_gib(self) -> float:
        """The high end."""
        return self.rest_gib + self.band_gib

    @property
    def fits(self) -> bool:
        """Whether weights leave anything for the pools, by the value itself."""
        return self.rest_gib > 0

    @property
    def missing_gib(self) -> float:
        """By how much weights do not fit; 0 where they do."""
        return max(0.0, -self.rest_gib)

    @property
    def least_fraction(self) -> float | None:
        """The least mem_fraction_static that leaves the pools something; None where not even all of it would."""
        needed = self.pre_load_gib * self.mem_fraction_static - self.rest_gib
        return needed / self.pre_load_gib if needed < self.pre_load_gib else None

    @property
    def in_words(self) -> str:
        """As a page says it: 61.3 ± 1.1 GiB.

        A band that reaches below 0 is not cut: the reader is to see that the weights may not fit.
        """
        return f"{number(self.rest_gib, 1)} ± {number(self.band_gib, 1)} GiB"


def estimate(stated: Stated, hardware: Hardware, loaded: Loaded, mm_feature_transport: str = "cpu") -> RestEstimate:
    """`rest` of the rank that has least. Where it does not fit it is below 0, and missing_gib says by how much.

    Raises NotEstimatedError for unified memory without MemAvailable, for a GPU whose memory is not known, and where
    AMD's attention backend, and so the fraction, cannot be told.
    """
    ranks = stated.tp_size * stated.pp_size
    before, set_by_itself = before_load(hardware, ranks), automatic(stated)
    fraction = set_by_itself.mem_fraction_static_used
    if fraction is None:
        raise NotEstimatedError("attention_backend", "Name the attention backend: aiter takes 15 % off the fraction.")
    slack, slack_source = _slack(stated, before.free, fraction, set_by_itself.post_capture)
    weights, draft = loaded.weights_bytes / GIB, loaded.draft_bytes / GIB
    parts = (
        Part("driver, context and communicators", before.taken, before.source),
        Part("kept free", slack, slack_source),
        Part("weights", weights, loaded.weights_source),
        Part("draft", draft, loaded.draft_source),
        Part("multimodal reservation", *_multimodal(stated, mm_feature_transport)),
    )
    taken = sum(part.gib for part in parts[1:])
    given = stated.mem_fraction_static is not None
    return RestEstimate(
        rest_gib=before.free - taken,
        band_gib=band_gib(stated.tp_size, weights, loaded.four_bit, before.unsettled),
        mem_fraction_static=fraction,
        fraction_source="given" if given else f"automatic in {stated.release}",
        total_gib=before.total,
        pre_load_gib=before.free,
        parts=parts,
        notes=(UNMEASURED,) if stated.attention_dp or stated.pp_size > 1 or draft else (),
    )


def band_gib(tp_size: int, weights_gib: float, four_bit: bool = False, unsettled: bool = False) -> float:
    """What the estimate may be off by [GiB]: more for wide TP, 4-bit experts, and AMD with more than one rank.

    >>> round(band_gib(1, 61), 3)
    1.315
    """
    fixed, share = NARROW if tp_size <= NARROW_TP else WIDE
    share += FOUR_BIT_SHARE if four_bit else 0
    return fixed + share * weights_gib + (AMD_GIB if unsettled else 0)


def _slack(stated: Stated, free: float, fraction: float, post_capture: bool) -> tuple[float, str]:
    """What the fraction leaves [GiB]; with post-capture sizing at least the activations, and 10 GiB above 60 GiB."""
    slack, words = free * (1 - fraction), f"(1 - {fraction:.6g}) x free before weights"
    if not post_capture:
        return slack, words
    chunk = max(chunked_prefill_size(stated).value, FEWEST_TOKENS)
    least = META_MIB + chunk * MIB_PER_TOKEN + stated.tp_size * stated.pp_size * MIB_PER_RANK
    if stated.gpu_memory_mib is not None and stated.gpu_memory_mib > FLOOR_ABOVE_MIB:
        least = max(least, FLOOR_MIB)
    if least / 1024 <= slack:
        return slack, words
    return least / 1024, "activations, with post-capture KV sizing"


def _multimodal(stated: Stated, transport: str) -> tuple[float, str]:
    rules = rules_of(stated.release)
    cache_mib, feature_mib = rules.multimodal_cache_mib, rules.multimodal_feature_mib
    if not cache_mib or not is_multimodal(stated):
        return 0.0, "none"
    if transport in ON_GPU:
        return (cache_mib + feature_mib) / 1024, f"embedding cache and {transport} transport"
    return cache_mib / 1024, "embedding cache"
