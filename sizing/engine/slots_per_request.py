"""From flags, model and release to what is run: strategy, radix cache, overlap, page and S, the state slots of one
running request, as a list of reasons whose counts add up to it.

Source: engine-sizing.md sections 4 and 10 to 12 (`_calculate_mamba_ratio`, `_handle_mamba_radix_cache`), the S table of
compute-mamba-ratio.md and, for the releases, engine-versions.md and support-by-release.md.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple, get_args

from sizing.engine.resolved import BUFFERED, ResolvedStrategy, SlotUse
from sizing.releases.architectures import INDEX_PAGE_KEYS, Support
from sizing.releases.rules import RELEASES, Release, Rules, rules_of
from sizing.scenario.inputs import Scenario

# Of each input that `slot_uses` reads, values that make a difference: what a log leaves open goes through them all.
S_INPUTS: dict[str, Sequence[Any]] = {"D": (0, 1), "skip_decode_lock": (False, True)}
DEFAULT_KPOOL = 16  # index_kpool of GLM-5-next where the config does not say (section 11)


class Runs(NamedTuple):
    """What the flags come to."""

    strategy: ResolvedStrategy | None
    radix_off_why: str
    overlap: bool
    page_size: int


def what_runs(scenario: Scenario, rules: Rules, support: Support) -> Runs:
    """The engine's order: role (since 0.5.11), page, strategy, what no_buffer brings with it, speculation, PP, role."""
    page = _page(scenario, support)
    by_role = role_turns_radix_off(scenario)
    seen_off = scenario.disable_radix_cache or support.radix_off or role_comes_first(scenario, rules)
    strategy = _strategy(scenario, rules, support, page, kept=not seen_off)
    keeps_none = support.listed and not seen_off and strategy in (None, "no_buffer")
    by_auto = scenario.mamba_radix_cache_strategy == "auto" or not rules.checks_no_buffer
    off = scenario.disable_overlap_schedule or (keeps_none and rules.no_buffer_turns_overlap_off and by_auto)
    return Runs(
        strategy=strategy,
        radix_off_why=_radix_off_why(scenario, rules, support, by_role, keeps_none),
        overlap=not off and scenario.pp_size == 1 and not _speculation_turns_overlap_off(scenario, rules),
        page_size=1 if keeps_none and rules.no_buffer_sets_page_1 else page,
    )


def _page(scenario: Scenario, support: Support) -> int:
    if support.forces_page and not support.pages_by_index:
        return INDEX_PAGE_KEYS
    asked = INDEX_PAGE_KEYS * DEFAULT_KPOOL if support.forces_page else scenario.page_size
    return scenario.index_page_tokens or asked


def takes_extra_buffer(scenario: Scenario, support: Support) -> bool:
    """Whether model and linear-attention backend take extra_buffer (`supports_mamba_cache_extra_buffer`)."""
    return support.extra_buffer and scenario.linear_attn_backend == "triton"


def role_turns_radix_off(scenario: Scenario) -> bool:
    """Whether a PD decode server runs without the radix cache."""
    return scenario.disaggregation_mode == "decode" and not scenario.disaggregation_decode_enable_radix_cache


def role_comes_first(scenario: Scenario, rules: Rules) -> bool:
    """Whether the role has turned the radix cache off before the strategy is resolved."""
    return rules.decode_role_first and role_turns_radix_off(scenario)


def _strategy(scenario: Scenario, rules: Rules, support: Support, page: int, *, kept: bool) -> ResolvedStrategy | None:
    """What the strategy flag becomes; `kept`: the radix cache is on when it is resolved."""
    if not rules.strategies:
        return None
    stated = scenario.mamba_radix_cache_strategy
    if stated == "auto" and support.pins_extra_buffer:
        return "extra_buffer"
    if rules.auto == "no_buffer":
        return "no_buffer" if stated == "auto" or role_comes_first(scenario, rules) else stated
    if stated != "auto":
        return stated
    if not support.listed or not kept:
        return "auto"
    tracked = not scenario.disable_overlap_schedule or page > 1
    return "extra_buffer" if tracked and takes_extra_buffer(scenario, support) else "no_buffer"


def _radix_off_why(scenario: Scenario, rules: Rules, support: Support, by_role: bool, keeps_none: bool) -> str:
    if scenario.disable_radix_cache:
        return "--disable-radix-cache"
    if support.radix_off:
        return f"SGLang {scenario.release} turns it off for {scenario.architecture}"
    if by_role:
        return "a PD decode server runs without it"
    by_speculation = rules.no_buffer_speculates == "without the radix cache" or support.radix_off_under_speculation
    if scenario.D and keeps_none and by_speculation:
        return f"SGLang {scenario.release} turns it off for speculation with no_buffer"
    return ""


def _speculation_turns_overlap_off(scenario: Scenario, rules: Rules) -> bool:
    if not scenario.D:
        return False
    tree = scenario.speculative_eagle_topk > 1 and not rules.overlap_with_trees
    return tree or scenario.speculative_algorithm not in rules.overlap_with


def slot_uses(scenario: Scenario, rules: Rules, found: Runs) -> tuple[SlotUse, ...]:
    """What the slots of one running request are for; their counts add up to S."""
    strategy = found.strategy
    if found.radix_off_why:
        why = "live state; the radix cache is off, nothing is kept for reuse"
        return (SlotUse(count=rules.slots_radix_off, why=why),)
    uses = [SlotUse(count=rules.base_slots, why="base: live state, radix retention and copy-on-write headroom")]
    buffers = strategy in BUFFERED
    if rules.slots_unused and not buffers:
        why = f"SGLang {scenario.release} reserves a track buffer without using it"
        uses.append(SlotUse(count=rules.slots_unused, why=why))
    if scenario.skip_decode_lock and rules.reads_skip_decode_lock:
        uses.append(SlotUse(count=-1, why="SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK frees one resident slot"))
        if not buffers:
            uses.append(SlotUse(count=1, why="added back: the prefill-to-decode peak of no_buffer does not shrink"))
    if strategy == "extra_buffer_lazy":
        uses.append(SlotUse(count=1, why="ping-pong track buffer, allocated lazily at the chunk boundary"))
    elif strategy == "extra_buffer":
        uses.append(_track_buffer(scenario, rules, found.overlap))
    return tuple(uses)


def _track_buffer(scenario: Scenario, rules: Rules, overlap: bool) -> SlotUse:
    if rules.one_track_slot_if == "speculation":
        if scenario.D:
            return SlotUse(count=1, why=f"track buffer, speculation on (SGLang {scenario.release})")
        return SlotUse(count=2, why=f"track buffer, no speculation (SGLang {scenario.release})")
    if overlap:
        return SlotUse(count=2, why="ping-pong track buffer, overlap on")
    return SlotUse(count=1, why="track buffer, overlap off")


def possible_slots(releases: tuple[Release, ...] = RELEASES, *, radix_cache: bool | None = None) -> tuple[int, ...]:
    """Every S that these releases can come to [slots per running request], the least first; with the radix cache on or
    off alone where that is said.

    >>> possible_slots(), possible_slots(("0.5.4",)), possible_slots(radix_cache=False)
    ((1, 3, 4, 5), (1, 3), (1,))
    """
    asked = (True, False) if radix_cache is None else (radix_cache,)
    return tuple(sorted({S for release in releases for on in asked for S in _slots_of(rules_of(release), on)}))


@cache
def _slots_of(rules: Rules, radix_cache: bool) -> frozenset[int]:
    """Over strategies, overlap, speculation and the decode-lock skip, whether or not they go together."""
    off = "" if radix_cache else "off"
    strategies: tuple[ResolvedStrategy | None, ...] = get_args(ResolvedStrategy) if rules.strategies else (None,)
    stated = (
        Scenario().model_copy(update=dict(zip(S_INPUTS, values, strict=True))) for values in product(*S_INPUTS.values())
    )
    ways = product(stated, strategies, (False, True))
    uses = (slot_uses(one, rules, Runs(strategy, off, overlap, 1)) for one, strategy, overlap in ways)
    return frozenset(sum(use.count for use in each) for each in uses)
