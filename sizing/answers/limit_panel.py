"""The panel of limits: each one, which binds, which is next behind it, and the flag value that lifts the first."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from sizing.answers.solve import Sizing
from sizing.basics.frames import REQUESTS, frame_of
from sizing.basics.problems import Refusal
from sizing.basics.units import count, ratio_range_text, requests_text
from sizing.engine.limits import Limit
from sizing.engine.pools import asked_divisor, is_pinned, pin_from_slots, pin_is_ignored, ratio_is_ignored
from sizing.engine.split import Split
from sizing.scenario.inputs import Scenario

if TYPE_CHECKING:
    from pandas import DataFrame


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


COLUMNS = ("place", "limit", "requests", "how it comes about", "lifted by")


def lift_rows(sizing: Sizing) -> list[tuple[str, ...]]:
    """The panel as rows of text under COLUMNS."""
    return [
        (row.place, row.limit.name, count(row.limit.requests), row.limit.why, row.lifted_by) for row in lifts(sizing)
    ]


def frame(sizing: Sizing) -> "DataFrame":
    """One row a limit, the smallest first; no row where the engine refuses."""
    rows = lifts(sizing)
    return frame_of(
        {
            "place": [row.place for row in rows],
            "limit": [row.limit.name for row in rows],
            f"requests [{REQUESTS}]": [row.limit.requests for row in rows],
            "why": [row.limit.why for row in rows],
            "lifted_by": [row.lifted_by for row in rows],
        }
    )


def _value(sizing: Sizing, now: Split) -> str:
    """The flag value that lifts the limit that binds, and what runs then."""
    name = now.binding.name
    if name == "estimate":
        return _ask(sizing, now)
    if name == "requests asked" and sizing.raised and sizing.raised_flag:
        alone = f"--max-running-requests {sizing.raised_flag}: {requests_text(sizing.raised.runs)}"
        further = _pair(sizing, sizing.raised.runs)
        return f"{alone}; {further}" if further else alone
    split = _another_split(sizing, now)
    best = sizing.optimum.runs if sizing.optimum and split else now.runs
    return "; ".join(filter(None, (split, _pair(sizing, best)))) or _more_memory(sizing, now)


def _ask(sizing: Sizing, now: Split) -> str:
    """The engine's own count gives way to one that is asked; from 0.5.10 to 0.5.13 it caps that one too."""
    if sizing.scenario.max_running_requests is not None:
        return now.binding.lifted_by
    return f"--max-running-requests {now.limits[1].requests * asked_divisor(sizing.scenario)}"


def _another_split(sizing: Sizing, now: Split) -> str:
    """Every ratio and every pin that runs most; empty where none runs more than now."""
    best, scenario = sizing.optimum, sizing.scenario
    if best is None or best.runs <= now.runs:
        return ""
    slots = _slots_range(scenario, best.slots_low, best.slots_high)
    ratio = (
        f"--mamba-full-memory-ratio {ratio_range_text(best.ratio_low, best.ratio_high)}"
        if best.ratio_low is not None
        else ""
    )
    return f"{', or '.join(filter(None, (ratio, slots)))}: {requests_text(best.runs)}"


def _slots_range(scenario: Scenario, low: int, high: int) -> str:
    """The pins of the whole deployment that give such slots; empty where the release ignores a pin."""
    if pin_is_ignored(scenario):
        return ""
    first, last = pin_from_slots(scenario, low), pin_from_slots(scenario, high)
    return f"--max-mamba-cache-size {first}" + (f" to {last}" if last > first else "")


def _pair(sizing: Sizing, runs: int) -> str:
    """A request count with the slots it takes; empty where that runs no more."""
    pair, scenario = sizing.pair, sizing.scenario
    if pair is None or pair.runs <= runs:
        return ""
    asked = f"--max-running-requests {pair.asked}"
    if ratio_is_ignored(scenario) and not is_pinned(scenario):
        return f"{asked}: {requests_text(pair.runs)}"
    if pin_is_ignored(scenario):
        return f"{asked} with a ratio for {count(pair.pin)} slots: {requests_text(pair.runs)}"
    return f"{asked} with --max-mamba-cache-size {pair.pin}: {requests_text(pair.runs)}"


def _more_memory(sizing: Sizing, now: Split) -> str:
    """No flag of the split helps: the cap on tokens where that is it, else memory."""
    if now.binding.lifted_by == "a larger --max-total-tokens":
        return now.binding.lifted_by
    return "no split of this rest runs more: raise rest"
