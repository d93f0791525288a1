"""S, the state slots of one running request, as a list of reasons whose counts add up to it; and what decides it.

Source: engine-sizing.md section 4 (`_calculate_mamba_ratio`, SGLang 0.5.23), the S table of compute-mamba-ratio.md
and, for older releases, engine-versions.md. A combination the engine refuses is refused here in its words.
"""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sizing.basics.problems import Refusal, RefusedError
from sizing.releases.rules import Rules, first_with, rules_of
from sizing.scenario.inputs import Scenario

Has = Callable[[Rules], bool]
ResolvedStrategy = Literal["extra_buffer", "extra_buffer_lazy", "no_buffer", "disabled", "none"]


class SlotUse(BaseModel):
    """Some slots of every running request, and why they are held."""

    model_config = ConfigDict(frozen=True)

    count: int
    why: str


class Resolved(BaseModel):
    """What the engine makes of the flags before it counts memory."""

    model_config = ConfigDict(frozen=True)

    strategy: ResolvedStrategy
    """`disabled` with the radix cache off; `none` in releases that have no strategies."""
    overlap: bool
    uses: tuple[SlotUse, ...]

    @property
    def S(self) -> int:  # noqa: N802, the specification's letter
        """State slots [slots per running request]."""
        return sum(use.count for use in self.uses)


def resolve(scenario: Scenario) -> Resolved:
    """Strategy, overlap and S of a scenario. Raises RefusedError for flags that the engine refuses.

    >>> [use.count for use in resolve(Scenario()).uses]
    [3, 2]
    """
    rules = rules_of(scenario.release)
    _check_release(scenario, rules)
    strategy = _strategy(scenario, rules)
    # `auto` that gives no_buffer turns overlap off; pipeline parallelism does so too, but only afterwards.
    by_flag = scenario.disable_overlap_schedule or (
        strategy == "no_buffer" and scenario.mamba_radix_cache_strategy == "auto"
    )
    overlap = not by_flag and scenario.pp_size == 1
    _check_strategy(scenario, rules, strategy, by_flag, overlap)
    return Resolved(strategy=strategy, overlap=overlap, uses=_uses(scenario, rules, strategy, overlap))


def slots_per_request(scenario: Scenario) -> int:
    """S [slots per running request]. Raises RefusedError like `resolve`."""
    return resolve(scenario).S


def _strategy(scenario: Scenario, rules: Rules) -> ResolvedStrategy:
    if scenario.disable_radix_cache:
        return "disabled"
    if not rules.strategies:
        return "none"
    if scenario.mamba_radix_cache_strategy != "auto":
        return scenario.mamba_radix_cache_strategy
    tracked = not scenario.disable_overlap_schedule or scenario.page_size > 1
    if rules.auto == "extra_buffer" and scenario.extra_buffer_supported and tracked:
        return "extra_buffer"
    return "no_buffer"


def _uses(scenario: Scenario, rules: Rules, strategy: ResolvedStrategy, overlap: bool) -> tuple[SlotUse, ...]:
    if strategy == "disabled":
        return (SlotUse(count=1, why="live state; the radix cache is off, nothing is kept for reuse"),)
    uses = [SlotUse(count=3, why="base: live state, radix retention and copy-on-write headroom")]
    if scenario.skip_decode_lock and rules.reads_skip_decode_lock:
        uses.append(SlotUse(count=-1, why="SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK frees one resident slot"))
        if strategy == "no_buffer":
            uses.append(SlotUse(count=1, why="added back: the prefill-to-decode peak of no_buffer does not shrink"))
    if strategy == "extra_buffer_lazy":
        uses.append(SlotUse(count=1, why="ping-pong track buffer, allocated lazily at the chunk boundary"))
    elif strategy == "extra_buffer":
        uses.append(_track_buffer(scenario, rules, overlap))
    return tuple(uses)


def _track_buffer(scenario: Scenario, rules: Rules, overlap: bool) -> SlotUse:
    if rules.one_track_slot_if == "speculation":
        if scenario.D:
            return SlotUse(count=1, why=f"track buffer, speculation on (SGLang {scenario.release})")
        return SlotUse(count=2, why=f"track buffer, no speculation (SGLang {scenario.release})")
    if overlap:
        return SlotUse(count=2, why="ping-pong track buffer, overlap on")
    return SlotUse(count=1, why="track buffer, overlap off")


def _check_release(scenario: Scenario, rules: Rules) -> None:
    """A flag or a value that the release does not know is refused by its argument parser."""
    strategy, ssm = scenario.mamba_radix_cache_strategy, scenario.mamba_ssm_dtype
    if strategy != "auto" and not rules.strategies:
        _refuse_flag(scenario, f"--mamba-radix-cache-strategy {strategy}", lambda r: strategy in r.strategies)
    if strategy != "auto" and strategy not in rules.strategies:
        _refuse_value(scenario, rules.strategy_flag, strategy, lambda r: strategy in r.strategies)
    if ssm not in rules.ssm_dtypes:
        _refuse_value(scenario, "--mamba-ssm-dtype", ssm, lambda r: ssm in r.ssm_dtypes)
    if scenario.dcp_size > 1 and not rules.dcp:
        _refuse_flag(scenario, f"--dcp-size {scenario.dcp_size}", lambda r: r.dcp)
    if scenario.replayssm == "decode" and not rules.decode_ring:
        _refuse_flag(scenario, "--enable-linear-replayssm", lambda r: r.decode_ring)
    if scenario.replayssm == "spec" and rules.spec_ring == "none":
        _refuse_flag(scenario, "--enable-linear-replayssm-spec", lambda r: r.spec_ring != "none")


def _refuse_flag(scenario: Scenario, flag: str, has: Has) -> None:
    _refuse(f"unrecognized arguments: {flag}", f"SGLang {scenario.release} has no such flag: {_newer(has)}")


def _refuse_value(scenario: Scenario, flag: str, value: str, has: Has) -> None:
    words = f"argument {flag}: invalid choice: '{value}'"
    _refuse(words, f"SGLang {scenario.release} does not take {value}: {_newer(has)}")


def _newer(has: Has) -> str:
    return f"choose another, or SGLang {first_with(has)} or newer."


def _check_strategy(
    scenario: Scenario, rules: Rules, strategy: ResolvedStrategy, overlap_off_by_flag: bool, overlap: bool
) -> None:
    """Refusals of engine-sizing.md section 4, in the engine's words."""
    if scenario.replayssm == "decode" and "no_buffer" not in (strategy, scenario.mamba_radix_cache_strategy):
        _refuse(
            "--enable-linear-replayssm requires --mamba-radix-cache-strategy no_buffer",
            "Choose no_buffer, or turn ReplaySSM off.",
        )
    if strategy == "no_buffer" and rules.checks_no_buffer:
        _check_no_buffer(scenario, overlap_off_by_flag)
    if strategy in ("extra_buffer", "extra_buffer_lazy"):
        _check_extra_buffer(scenario, strategy)
    if strategy == "extra_buffer_lazy" and not overlap:
        cause = "--disable-overlap-schedule" if scenario.disable_overlap_schedule else f"--pp-size {scenario.pp_size}"
        _refuse(
            "Lazy extra buffer requires overlap schedule (--disable-overlap-schedule is incompatible)",
            f"Overlap is off by {cause}: drop it, or choose extra_buffer.",
        )


def _check_no_buffer(scenario: Scenario, overlap_off_by_flag: bool) -> None:
    if scenario.page_size != 1:
        came = " It is what auto gives here." if scenario.mamba_radix_cache_strategy == "auto" else ""
        _refuse(
            "no_buffer only supports page_size=1.",
            f"Set --page-size 1 (now {scenario.page_size}) or choose another strategy.{came}",
        )
    if not overlap_off_by_flag:
        by_pp = " Pipeline parallelism turns overlap off too late to count." if scenario.pp_size > 1 else ""
        _refuse(
            "no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.",
            f"Pass --disable-overlap-schedule or choose another strategy.{by_pp}",
        )


def _check_extra_buffer(scenario: Scenario, strategy: str) -> None:
    interval, page = scenario.mamba_track_interval, scenario.page_size
    if not scenario.extra_buffer_supported:
        # The engine names the architecture where the dots stand.
        _refuse("extra_buffer is not supported for …; use no_buffer.", "Choose no_buffer with --page-size 1, or auto.")
    if strategy == "extra_buffer_lazy" and scenario.disaggregation_mode != "null":
        _refuse(
            "extra_buffer_lazy unsupported under PD disaggregation; use --mamba-radix-cache-strategy extra_buffer.",
            f"Choose extra_buffer, or --disaggregation-mode null (now {scenario.disaggregation_mode}).",
        )
    if interval < scenario.D or interval % page:
        least = -(-max(scenario.D, page) // page) * page
        # The two assertions of 0.5.23 carry no words of their own.
        _refuse(
            "AssertionError",
            f"--mamba-track-interval {interval} must be a multiple of page_size ({page}) and at least D "
            f"({scenario.D}): set it to {least} or a multiple of that.",
        )


def _refuse(engine_words: str, cure: str) -> None:
    raise RefusedError(Refusal(kind="flags", engine_words=engine_words, cure=cure))
