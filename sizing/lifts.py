"""The panel of limits: each one, which binds, which is next behind it, and the flag value that lifts the first."""

from pydantic import BaseModel, ConfigDict

from sizing.limits import Limit
from sizing.pools import is_pinned, pin_from_slots, pin_is_ignored, ratio_is_ignored
from sizing.problems import Refusal
from sizing.scenario import Scenario
from sizing.solve import Sizing
from sizing.split import Split
from sizing.units import count, ratio_range_text, requests_text


class Lift(BaseModel):
    """One limit with its place in the order and what lifts it."""

    model_config = ConfigDict(frozen=True)

    limit: Limit
    place: str
    """`binds`, `next`, or empty."""
    lifted_by: str
    """The flag with its value for the limit that binds, the flag alone for the others."""


def lifts(sizing: Sizing) -> tuple[Lift, ...]:
    """Every limit of the split that is set, smallest first; empty where the engine refuses."""
    now = sizing.now
    if isinstance(now, Refusal):
        return ()
    places = ("binds", "next")
    return tuple(
        Lift(
            limit=limit,
            place=places[at] if at < len(places) else "",
            lifted_by=_value(sizing, now) if at == 0 else limit.lifted_by,
        )
        for at, limit in enumerate(now.limits)
    )


def _value(sizing: Sizing, now: Split) -> str:
    """The flag value that lifts the limit that binds, and what runs then."""
    name = now.binding.name
    if name in ("state pool", "KV pool", "tokens // 2"):
        return _another_split(sizing, now)
    if name == "requests asked":
        return _more_asked(sizing, now)
    if sizing.scenario.max_running_requests is None:
        asked = now.limits[1].requests * sizing.scenario.attn_dp_size
        return f"--max-running-requests {count(asked)}"
    return now.binding.lifted_by


def _another_split(sizing: Sizing, now: Split) -> str:
    best, scenario = sizing.optimum, sizing.scenario
    if ratio_is_ignored(scenario) and now.binding.name == "state pool" and not is_pinned(scenario):
        return "a larger --max-running-requests: it decides the slots here"
    if best is None or best.runs <= now.runs:
        return "no split of this rest runs more: raise rest"
    slots = _slots_range(scenario, best.slots_low, best.slots_high)
    if best.ratio_low is None:
        return f"{slots}: {requests_text(best.runs)}"
    ratio = f"--mamba-full-memory-ratio {ratio_range_text(best.ratio_low, best.ratio_high)}"
    return f"{ratio}{f', or {slots}' if slots else ''}: {requests_text(best.runs)}"


def _slots_range(scenario: Scenario, low: int, high: int) -> str:
    """The pins of the whole deployment that give such slots; empty where the release ignores a pin."""
    if pin_is_ignored(scenario):
        return ""
    first, last = pin_from_slots(scenario, low), pin_from_slots(scenario, high)
    return f"--max-mamba-cache-size {count(first)}" + (f" to {count(last)}" if last > first else "")


def _more_asked(sizing: Sizing, now: Split) -> str:
    if sizing.raised is None or sizing.raised_flag is None:
        return now.binding.lifted_by
    return f"--max-running-requests {count(sizing.raised_flag)}: {requests_text(sizing.raised.runs)}"
