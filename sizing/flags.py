"""The flags to set, as text that can be pasted behind a launch command."""

from pydantic import BaseModel, ConfigDict

from sizing.optimum import Optimum
from sizing.scenario import Scenario
from sizing.solve import Sizing
from sizing.split import Split
from sizing.units import count, ratio_text, requests_text

WIDTH = 92  # characters of a line that a slide still shows


class Flags(BaseModel):
    """Both ways to set the best split, which one to take and why."""

    model_config = ConfigDict(frozen=True)

    ratio: str | None
    """None where the engine ignores the ratio."""
    ratio_runs: int | None
    pin: str
    pin_runs: int
    take: str
    """`ratio` or `pin`."""
    why: str


def flags(sizing: Sizing) -> Flags | None:
    """The ratio and the safe pin for this deployment; None when no split runs a request."""
    best = sizing.optimum
    if best is None:
        return None
    balanced = sizing.balanced if isinstance(sizing.balanced, Split) and sizing.balanced.ratio is not None else None
    pin_runs = sizing.pinned.runs if isinstance(sizing.pinned, Split) else best.pin_requests
    take, why = _choice(sizing, best, balanced, pin_runs)
    return Flags(
        ratio=f"--mamba-full-memory-ratio {ratio_text(balanced.ratio)}" if balanced and balanced.ratio else None,
        ratio_runs=balanced.runs if balanced else None,
        pin=f"--max-mamba-cache-size {best.pin}",
        pin_runs=pin_runs,
        take=take,
        why=why,
    )


def _choice(sizing: Sizing, best: Optimum, balanced: Split | None, pin_runs: int) -> tuple[str, str]:
    """Which of the two to take, and why."""
    spare = " + 1; the spare slot is for the chunk boundary, where a pin of exactly requests x S can fail"
    pin_why = f"{requests_text(best.pin_requests)} x S {sizing.S}{spare if best.spare else ''}."
    if balanced is None:
        return "pin", f"The pin: the ratio cannot be used here. {pin_why}"
    if sizing.reasons_to_pin:
        cost = f" It runs {count(balanced.runs - pin_runs)} fewer than the ratio." if pin_runs < balanced.runs else ""
        return "pin", f"The pin: {' and '.join(sizing.reasons_to_pin)}. {pin_why}{cost}"
    if pin_runs > balanced.runs:
        return "pin", f"The pin: it runs {count(pin_runs)}, the balance ratio {count(balanced.runs)}. {pin_why}"
    return "ratio", (
        "The ratio: it keeps its meaning when rest changes with --mem-fraction-static or the next release. "
        f"The pin holds {count(best.pin)} slots whatever the memory: {pin_why}"
    )


def environment(scenario: Scenario) -> str | None:
    """The environment variable that the scenario needs, as a line for a shell; None where it needs none."""
    return "export SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1" if scenario.skip_decode_lock else None


def launch_flags(scenario: Scenario, found: Flags) -> str:
    """The split to set and everything that this scenario assumes, to put behind a launch command."""
    words = [found.pin if found.take == "pin" or found.ratio is None else found.ratio]
    words += [f"--kv-cache-dtype {scenario.kv_cache_dtype}", f"--mamba-ssm-dtype {scenario.mamba_ssm_dtype}"]
    words += [f"--page-size {scenario.page_size}"]
    if scenario.disable_radix_cache:
        words.append("--disable-radix-cache")
    else:
        words.append(f"--mamba-radix-cache-strategy {scenario.mamba_radix_cache_strategy}")
    if scenario.disable_overlap_schedule:
        words.append("--disable-overlap-schedule")
    words += [f"{flag} {value}" for flag, value in _sizes(scenario) if value]
    return _lines(words)


def _lines(words: list[str]) -> str:
    """Flags with their values over lines that a shell joins again."""
    lines = words[:1]
    for word in words[1:]:
        if len(lines[-1]) + len(word) < WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return " \\\n  ".join(lines)


def _sizes(scenario: Scenario) -> list[tuple[str, int | None]]:
    return [
        ("--dcp-size", scenario.dcp_size if scenario.dcp_size > 1 else None),
        ("--pp-size", scenario.pp_size if scenario.pp_size > 1 else None),
        ("--speculative-num-draft-tokens", scenario.D or None),
        ("--max-running-requests", scenario.max_running_requests),
        ("--max-total-tokens", scenario.max_total_tokens),
        ("--context-length", scenario.context_length),
    ]
