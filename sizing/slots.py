"""S, the state slots of one running request, as a list of reasons whose counts add up to it.

Source: engine-sizing.md section 4 (`_calculate_mamba_ratio`, SGLang 0.5.23) and the S table of
compute-mamba-ratio.md. A combination the engine refuses is refused here in its words.
"""

from pydantic import BaseModel, ConfigDict

from sizing.problems import Refusal, RefusedError
from sizing.scenario import Scenario


class SlotUse(BaseModel):
    """Some slots of every running request, and why they are held."""

    model_config = ConfigDict(frozen=True)

    count: int
    why: str


def overlap_on(scenario: Scenario) -> bool:
    """Whether the overlap scheduler runs: off by flag, and off under pipeline parallelism."""
    return not scenario.disable_overlap_schedule and scenario.pp_size == 1


def slot_uses(scenario: Scenario) -> tuple[SlotUse, ...]:
    """The slots [slots per running request] and their reasons; S is the sum of the counts.

    Raises RefusedError for a combination that the engine refuses.

    >>> [use.count for use in slot_uses(Scenario())]
    [3, 2]
    """
    if scenario.disable_radix_cache:
        return (SlotUse(count=1, why="live state; the radix cache is off, nothing is kept for reuse"),)
    _check_strategy(scenario)
    uses = [SlotUse(count=3, why="base: live state, radix retention and copy-on-write headroom")]
    if scenario.skip_decode_lock:
        uses.append(SlotUse(count=-1, why="SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK frees one resident slot"))
    if scenario.mamba_radix_cache_strategy == "no_buffer":
        if scenario.skip_decode_lock:
            uses.append(SlotUse(count=1, why="added back: the prefill-to-decode peak of no_buffer does not shrink"))
    elif scenario.mamba_radix_cache_strategy == "extra_buffer_lazy":
        uses.append(SlotUse(count=1, why="ping-pong track buffer, allocated lazily at the chunk boundary"))
    elif overlap_on(scenario):
        uses.append(SlotUse(count=2, why="ping-pong track buffer, overlap on"))
    else:
        uses.append(SlotUse(count=1, why="track buffer, overlap off"))
    return tuple(uses)


def slots_per_request(scenario: Scenario) -> int:
    """S [slots per running request]. Raises RefusedError like `slot_uses`."""
    return sum(use.count for use in slot_uses(scenario))


def _check_strategy(scenario: Scenario) -> None:
    """Refusals of engine-sizing.md section 4, in the engine's words."""
    strategy = scenario.mamba_radix_cache_strategy
    if strategy == "no_buffer" and scenario.page_size != 1:
        raise RefusedError(
            Refusal(
                kind="flags",
                engine_words="no_buffer only supports page_size=1.",
                cure=f"Set --page-size 1 (now {scenario.page_size}) or choose another strategy.",
            )
        )
    if strategy == "no_buffer" and not scenario.disable_overlap_schedule:
        by_pp = " Pipeline parallelism turns overlap off too late to count." if scenario.pp_size > 1 else ""
        raise RefusedError(
            Refusal(
                kind="flags",
                engine_words="no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.",
                cure=f"Pass --disable-overlap-schedule or choose another strategy.{by_pp}",
            )
        )
    if strategy == "extra_buffer_lazy" and not overlap_on(scenario):
        cause = "--disable-overlap-schedule" if scenario.disable_overlap_schedule else f"--pp-size {scenario.pp_size}"
        raise RefusedError(
            Refusal(
                kind="flags",
                engine_words="Lazy extra buffer requires overlap schedule (--disable-overlap-schedule is incompatible)",
                cure=f"Overlap is off by {cause}: drop it, or choose extra_buffer.",
            )
        )
