"""The flags to set, as text that can be pasted behind a launch command."""

import textwrap

from pydantic import BaseModel, ConfigDict

from sizing.scenario import Scenario
from sizing.solve import Sizing
from sizing.units import count, flag_ratio, ratio_text

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
    ratio = flag_ratio(sizing.r_star)
    balanced = sizing.balanced
    usable = getattr(balanced, "ratio", None) is not None
    pin_why = (
        f"{count(best.pin_runs)} requests x S {sizing.S} + 1 = {count(best.pin)} slots; the spare slot is for the "
        "chunk boundary, where a pin of exactly requests x S can fail."
    )
    if not usable:
        take, why = "pin", f"The ratio is not usable here. {pin_why}"
    elif sizing.reasons_to_pin:
        take, why = "pin", f"Pin, because {' and '.join(sizing.reasons_to_pin)}. {pin_why}"
    else:
        take, why = (
            "ratio",
            (
                "The ratio: it keeps its meaning when rest changes with --mem-fraction-static or the next release. "
                f"Pin instead when you want this many slots whatever the memory: {pin_why}"
            ),
        )
    return Flags(
        ratio=f"--mamba-full-memory-ratio {ratio_text(ratio)}" if usable else None,
        ratio_runs=getattr(balanced, "runs", None),
        pin=f"--max-mamba-cache-size {best.pin}",
        pin_runs=best.pin_runs,
        take=take,
        why=why,
    )


def launch_flags(scenario: Scenario) -> str:
    """Everything that this scenario assumes of the launch command, the split apart, ready for a shell."""
    words = ["SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1"] if scenario.skip_decode_lock else []
    words += [f"--kv-cache-dtype {scenario.kv_cache_dtype}", f"--mamba-ssm-dtype {scenario.mamba_ssm_dtype}"]
    words += [f"--page-size {scenario.page_size}"]
    if scenario.disable_radix_cache:
        words.append("--disable-radix-cache")
    else:
        words.append(f"--mamba-radix-cache-strategy {scenario.mamba_radix_cache_strategy}")
    if scenario.disable_overlap_schedule:
        words.append("--disable-overlap-schedule")
    words += [f"{flag} {value}" for flag, value in _sizes(scenario) if value]
    return " \\\n  ".join(textwrap.wrap(" ".join(words), WIDTH, break_on_hyphens=False, break_long_words=False))


def _sizes(scenario: Scenario) -> list[tuple[str, int | None]]:
    return [
        ("--dcp-size", scenario.dcp_size if scenario.dcp_size > 1 else None),
        ("--pp-size", scenario.pp_size if scenario.pp_size > 1 else None),
        ("--speculative-num-draft-tokens", scenario.D or None),
        ("--max-running-requests", scenario.max_running_requests),
        ("--max-total-tokens", scenario.max_total_tokens),
        ("--context-length", scenario.context_length),
    ]
