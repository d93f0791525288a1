"""The panel of limits: each one, which binds, which is next behind it, and the flag value that lifts the first."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from sizing.answers.optimum import Optimum, pin_flag
from sizing.answers.recommended import recommended
from sizing.answers.solve import Sizing
from sizing.basics.frames import REQUESTS, frame_of
from sizing.basics.problems import Refusal
from sizing.basics.units import count, ratio_range_text, requests_text
from sizing.engine.limits import MORE_TOKENS, Limit
from sizing.engine.resolved import Resolved
from sizing.engine.slots import pin_from_slots
from sizing.engine.split import Split
from sizing.releases import flags
from sizing.scenario.inputs import MAX_PIN

if TYPE_CHECKING:
    from pandas import DataFrame


class Lift(BaseModel):
    """One limit with its place in the order and what lifts it."""

    model_config = ConfigDict(frozen=True)

    limit: Limit
    place: str
    """`binds`, `next`, or empty."""
    lifted_by: str
    """The recommended flags with their values for the limit that binds, the flag alone for the others."""


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


NEAR = 2  # a choice of ours: the engine's own caps are listed up to so many times what runs
OWN_CAPS = ("estimate", "tokens // 2")


def lift_rows(sizing: Sizing) -> list[tuple[str, ...]]:
    """The panel as rows of text under COLUMNS, without the engine's own caps where they are far away."""
    rows = lifts(sizing)
    near = NEAR * rows[0].limit.requests if rows else 0
    return [
        (row.place, row.limit.name, count(row.limit.requests), row.limit.why, row.lifted_by)
        for row in rows
        if row.place == "binds" or row.limit.name not in OWN_CAPS or row.limit.requests <= near
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
    """The recommended flags, and what runs then; of a split every value that runs as many."""
    found = recommended(sizing)
    if found is None or not found.change or found.before is None or found.after[0] <= found.before[0]:
        return _more_memory(sizing, now)
    exact = sizing.optimum is not None and found.after == (sizing.optimum.runs,) * 2
    split = _another_split(sizing, now) if exact and flags.REQUESTS not in found.flag else ""
    return split or f"{found.flag}: {found.numbers}"


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
    return f"{ways}: {requests_text(best.runs)}" if ways else ""


def _pins(resolved: Resolved, best: Optimum) -> str:
    """The pins of the whole deployment that run so many, a slot spared; empty where the release ignores a pin."""
    first = pin_flag(resolved, best)
    if first is None:
        return ""
    last = min(pin_from_slots(resolved, best.slots_high), MAX_PIN)
    return f"--max-mamba-cache-size {first}" + (f" to {last}" if last > first else "")


def _more_memory(sizing: Sizing, now: Split) -> str:
    """No flag of the split helps: the cap on tokens where that is it, else memory."""
    if now.binding.lifted_by == MORE_TOKENS:
        return now.binding.lifted_by
    best = sizing.optimum
    spared = " with a slot to spare" if best and best.unspared > best.runs else ""
    return f"no split of this rest runs more{spared}: raise rest"
