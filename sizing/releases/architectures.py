"""Which release serves which state model, and what its flag resolution does with the radix cache of that model.

Source: support-by-release.md and its data (every release's own flag resolution, executed on CUDA, SM90), which are
the engine's lists `_MAMBA_RADIX_CACHE_ARCHS` and `_MAMBA_EXTRA_BUFFER_ARCHS` (arg_groups/overrides.py since 0.5.14),
the calls of `_handle_mamba_radix_cache` (server_args.py before) and the registry of models.
"""

from functools import cache
from typing import NamedTuple

from sizing.releases.rules import LATEST, RELEASES, Release

INDEX_PAGE_KEYS = 64
"""Keys in a page of a sparse index [tokens, where the index is not pooled] (engine-sizing.md section 11)."""
MULTIMODAL_OFF = ("InklingForConditionalGeneration",)
"""Multimodal only by --enable-multimodal (`mm_disabled_models` of the engine's model_config.py)."""

Stretch = tuple[Release, Release]
"""First and last release, both included."""


def _since(release: Release) -> Stretch:
    return (release, LATEST)


class Architecture(NamedTuple):
    """What the releases do with one architecture; None or () where none does."""

    served: Release | None
    """The first release that has the model; None where that was not read."""
    listed: tuple[Stretch, ...]
    """Where the engine's own step for the radix cache of state models runs: it decides what `auto` becomes, turns
    overlap off and refuses. Elsewhere the strategy flag is obeyed unchecked and `auto` keeps no buffer."""
    extra_buffer: Stretch | None
    """Where that step takes extra_buffer, and since 0.5.13 extra_buffer_lazy."""
    radix_off: Stretch | None = None
    """Where the radix cache is off whatever is asked."""
    radix_off_under_speculation: Stretch | None = None
    """Where no_buffer under speculation turns the radix cache off beside the releases that do so for every model."""
    pins_extra_buffer: bool = False
    """`auto` is extra_buffer before any rule is asked."""
    pipeline: bool = True
    """Whether --pp-size above 1 is taken."""
    forces_page: bool = False
    """Whether pages are of INDEX_PAGE_KEYS whatever is asked."""
    pages_by_index: Release | None = None
    """The first release whose page follows the pooled index of the model."""
    unified: Release | None = "0.5.15"
    """The first release whose unified memory takes the model."""


_GENERAL = Architecture("0.5.4", (("0.5.4", "0.5.7"), _since("0.5.9")), _since("0.5.7"))
"""Qwen3-Next: the one that every release serves and every rule supports. 0.5.8 forgets it in its step."""


def _later(release: Release) -> Architecture:
    """A model that is in both of the engine's lists from its first release on."""
    return Architecture(release, (_since(release),), _since(release))


def _unlisted(release: Release | None) -> Architecture:
    return Architecture(release, (), None)


ARCHITECTURES: dict[str, Architecture] = {
    "Qwen3NextForCausalLM": _GENERAL,
    "Qwen3_5ForConditionalGeneration": _later("0.5.9"),
    "Qwen3_5MoeForConditionalGeneration": _later("0.5.9"),
    "Qwen3_5ForCausalLM": Architecture("0.5.17", (_since("0.5.19"),), _since("0.5.19")),
    "Qwen3_5MoeForCausalLM": Architecture("0.5.17", (_since("0.5.19"),), _since("0.5.19")),
    "InternS2PreviewForConditionalGeneration": _later("0.5.12"),
    "InternS2MobiusForConditionalGeneration": Architecture("0.5.18", (_since("0.5.18"),), None, pipeline=False),
    "Qwen4ExpForConditionalGeneration": _later("0.5.20")._replace(unified=None),
    "KimiLinearForCausalLM": Architecture(
        "0.5.5", (_since("0.5.14"),), _since("0.5.16"), radix_off=("0.5.5", "0.5.13")
    ),
    "KimiK3ForConditionalGeneration": _later("0.5.17"),
    "KimiK3LinearForCausalLM": _unlisted("0.5.19"),
    "BailingMoeV3ForCausalLM": _later("0.5.19"),
    "BailingMoeV2_5ForCausalLM": Architecture(
        "0.5.9", (_since("0.5.13"),), _since("0.5.13"), radix_off=("0.5.9", "0.5.12")
    ),
    "MiniCPMSALAForCausalLM": _unlisted("0.5.19")._replace(radix_off=_since("0.5.19")),
    "Glm5NextForConditionalGeneration": _later("0.5.20")._replace(forces_page=True, pages_by_index="0.5.22"),
    "NemotronHForCausalLM": Architecture(
        "0.5.4",
        (_since("0.5.7"),),
        _since("0.5.13"),
        radix_off=("0.5.4", "0.5.6"),
        radix_off_under_speculation=("0.5.8", "0.5.8"),
    ),
    "FalconH1ForCausalLM": Architecture("0.5.4", (_since("0.5.7"),), _since("0.5.13"), radix_off=("0.5.4", "0.5.6")),
    "NemotronHPuzzleForCausalLM": _later("0.5.13"),
    "NemotronH_Omni_Reasoning_V3": _later("0.5.20"),
    "NemotronH_Nano_VL_V2": _unlisted("0.5.6"),
    "NemotronH_Nano_Omni_Reasoning_V3": _unlisted("0.5.11"),
    "GraniteMoeHybridForCausalLM": Architecture("0.5.9", (_since("0.5.9"),), _since("0.5.13")),
    "Lfm2ForCausalLM": Architecture("0.5.9", (_since("0.5.9"),), None),
    "Lfm2MoeForCausalLM": Architecture("0.5.9", (_since("0.5.17"),), None),
    "Lfm2VlForConditionalGeneration": _unlisted("0.5.10"),
    "JetNemotronForCausalLM": Architecture("0.5.6", (_since("0.5.7"),), ("0.5.13", "0.5.13")),
    "ZayaForCausalLM": Architecture("0.5.14", (_since("0.5.14"),), None),
    "InklingForConditionalGeneration": Architecture(
        "0.5.16", (_since("0.5.21"),), _since("0.5.21"), pins_extra_buffer=True, unified="0.5.19"
    ),
    "FalconMambaForCausalLM": _unlisted("0.5.20"),
    "Mamba2ForCausalLM": _unlisted("0.5.20"),
    "MambaForCausalLM": _unlisted("0.5.20"),
    # Read in the engine's lists and not executed.
    "GigaChat35ForCausalLM": Architecture("0.5.21", (_since("0.5.21"),), None),
    "JetVLMForConditionalGeneration": Architecture(None, (_since("0.5.7"),), ("0.5.13", "0.5.13")),
    "BailingMoeV3VLForConditionalGeneration": _later("0.5.19")._replace(served=None),
    "MiniCPMV4_6ForConditionalGeneration": _later("0.5.14")._replace(served=None),
    "MiniCPMV4_7ForConditionalGeneration": _later("0.5.14")._replace(served=None),
}


class Support(NamedTuple):
    """What one release does with one architecture."""

    served: bool
    served_since: Release | None
    listed: bool
    extra_buffer: bool
    radix_off: bool
    radix_off_under_speculation: bool
    pins_extra_buffer: bool
    pipeline: bool
    forces_page: bool
    pages_by_index: bool
    unified: bool


@cache
def support_of(architecture: str, release: Release) -> Support:
    """What the release does with the architecture; an empty or unknown one counts as Qwen3-Next.

    >>> support_of("KimiLinearForCausalLM", "0.5.10").radix_off
    True
    """
    found = ARCHITECTURES.get(architecture, _GENERAL)
    at = RELEASES.index(release)
    return Support(
        served=found.served is None or _reached(found.served, at),
        served_since=found.served,
        listed=any(_holds(stretch, at) for stretch in found.listed),
        extra_buffer=_holds(found.extra_buffer, at),
        radix_off=_holds(found.radix_off, at),
        radix_off_under_speculation=_holds(found.radix_off_under_speculation, at),
        pins_extra_buffer=found.pins_extra_buffer,
        pipeline=found.pipeline,
        forces_page=found.forces_page,
        pages_by_index=_reached(found.pages_by_index, at),
        unified=_reached(found.unified, at),
    )


def _reached(first: Release | None, at: int) -> bool:
    return first is not None and at >= RELEASES.index(first)


def _holds(stretch: Stretch | None, at: int) -> bool:
    return stretch is not None and RELEASES.index(stretch[0]) <= at <= RELEASES.index(stretch[1])


def takes_extra_buffer(architecture: str) -> bool:
    """Whether the newest release lists the architecture for extra_buffer; False for one that is not in the table."""
    return architecture in ARCHITECTURES and support_of(architecture, LATEST).extra_buffer
