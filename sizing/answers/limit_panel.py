"""The panel of limits: each one, which binds, which is next behind it, and the flag value that lifts the first."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from sizing.answers.optimum import Optimum, pin_flag
from sizing.answers.solve import Sizing, solve_now
from sizing.basics.frames import REQUESTS, frame_of
from sizing.basics.problems import Refusal
from sizing.basics.units import count, ratio_range_text, requests_text, stated_ratio_text
from sizing.engine.limits import Limit
from sizing.engine.requests import asked_divisor
from sizing.engine.resolved import Resolved
from sizing.engine.slots import pin_from_slots
from sizing.engine.split import Split
from sizing.scenario.inputs import MAX_PIN, MAX_REQUESTS

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
        further = pair_words(sizing, sizing.raised.runs)
        return f"{alone}; {further}" if further else alone
    split = _another_split(sizing, now)
    best = sizing.optimum.runs if sizing.optimum and split else now.runs
    return "; ".join(filter(None, (split, pair_words(sizing, best)))) or _more_memory(sizing, now)


def _ask(sizing: Sizing, now: Split) -> str:
    """The engine's own count gives way to one that is asked; from 0.5.10 to 0.5.13 it caps that one too."""
    scenario = sizing.scenario
    if scenario.max_running_requests is not None:
        return now.binding.lifted_by
    asked = min(now.limits[1].requests * asked_divisor(sizing.resolved), MAX_REQUESTS)
    other = scenario.model_copy(update={"max_running_requests": asked})
    there = solve_now(other, sizing.ratio_now)
    if isinstance(there, Refusal) or there.runs <= now.runs:
        return now.binding.lifted_by
    return f"--max-running-requests {asked}: {requests_text(there.runs)}"


def _another_split(sizing: Sizing, now: Split) -> str:
    """Every ratio and every pin that runs most with a slot to spare; empty where none runs more than now."""
    best = sizing.optimum
    if best is None or best.runs <= now.runs:
        return ""
    ratio = (
        f"--mamba-full-memory-ratio {ratio_range_text(best.ratio_low, best.ratio_high)}"
        if best.ratio_low is not None
        else ""
    )
    ways = ", or ".join(filter(None, (ratio, _pins(sizing.resolved, best))))
    return f"{ways}: {requests_text(best.runs)}{no_spare_words(sizing)}" if ways else ""


def _pins(resolved: Resolved, best: Optimum) -> str:
    """The pins of the whole deployment that run so many, a slot spared; empty where the release ignores a pin."""
    first = pin_flag(resolved, best)
    if first is None:
        return ""
    last = min(pin_from_slots(resolved, best.slots_high), MAX_PIN)
    return f"--max-mamba-cache-size {first}" + (f" to {last}" if last > first else "")


def no_spare_words(sizing: Sizing) -> str:
    """What the slot to spare costs, in brackets; empty where it costs nothing."""
    best = sizing.optimum
    return f" ({count(best.unspared)} with no slot to spare)" if best and best.unspared > best.runs else ""


def pair_words(sizing: Sizing, runs: int) -> str:
    """A request count with the slots it takes, and what runs then; empty where that is no more than `runs`."""
    pair = sizing.pair
    if pair is None or pair.runs <= runs:
        return ""
    asked = f"--max-running-requests {pair.asked}"
    if pair.alone:
        return f"{asked}: {requests_text(pair.runs)}"
    if pair.pin is not None:
        return f"{asked} with --max-mamba-cache-size {pair.pin}: {requests_text(pair.runs)}"
    if pair.ratio is not None:
        ratio = stated_ratio_text(pair.ratio)
        return f"{asked} with --mamba-full-memory-ratio {ratio}: {requests_text(pair.runs)}"
    return ""


def _more_memory(sizing: Sizing, now: Split) -> str:
    """No flag of the split helps: the cap on tokens where that is it, else memory."""
    if now.binding.lifted_by == "a larger --max-total-tokens":
        return now.binding.lifted_by
    spared = " with a slot to spare" if no_spare_words(sizing) else ""
    return f"no split of this rest runs more{spared}: raise rest"
