"""The one change to make: what runs now, what to set, what runs then, why, and the other way to say it.

Every page, the sheet, a log's cure and the command line name this one. Its numbers are what `solve` gives for them.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from sizing.answers.band import at_low_end
from sizing.answers.solve import Sizing, solve, solve_now
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import count, gib, requests_text, rest_text, stated_ratio_text
from sizing.engine.split import Split
from sizing.releases.flags import PIN, RATIO, REQUESTS
from sizing.scenario.inputs import Scenario
from sizing.scenario.rest import end_anew, ends_of

KEPT = 4  # answers, 10 KB each: the parts of a page ask for the same one
SPARE_WHY = "a chunk border may find no free slot, and an assertion then ends the server"


class Ways(BaseModel):
    """Both ways to set the best split at the request count that stands, and which one to take."""

    model_config = ConfigDict(frozen=True)

    ratio: str | None
    """The flag with its value; None where the engine ignores the ratio or none gives this split."""
    ratio_runs: int | None
    pin: str | None
    """None where the release ignores a pin."""
    pin_runs: int | None
    take: Literal["ratio", "pin"]

    @property
    def chosen(self) -> str:
        """The flag to take, with its value."""
        return (self.pin if self.take == "pin" else self.ratio) or ""

    @property
    def runs(self) -> int:
        """What runs with it [requests per rank]."""
        return (self.pin_runs if self.take == "pin" else self.ratio_runs) or 0

    @property
    def other(self) -> str | None:
        """The way that is not taken; None where there is but one."""
        return self.ratio if self.take == "pin" else self.pin


class Recommended(BaseModel):
    """What to set. Requests are per rank; both numbers of a pair are the same unless `rest` is an estimate."""

    model_config = ConfigDict(frozen=True)

    flags: tuple[str, ...]
    """Each flag with its value, as it is typed; what stands already where `change` is false."""
    change: bool
    """Whether anything is to be changed."""
    scenario: Scenario
    """The scenario with these flags put in."""
    before: tuple[int, int] | None
    """What runs now, at the low and the high end of `rest`; None where the engine refuses what is set."""
    after: tuple[int, int]
    """What runs with the flags."""
    reason: str
    alternative: tuple[str, ...]
    """Other flags that run as many; empty where there are none."""

    @property
    def flag(self) -> str:
        """All flags on one line."""
        return " ".join(self.flags)

    @property
    def numbers(self) -> str:
        """Before and after: 51 -> 74 run; 74 run where nothing changes."""
        after = f"{_span(self.after)} {'runs' if self.after == (1, 1) else 'run'}"
        if not self.change or self.before == self.after:
            return after
        return f"{_span(self.before) if self.before else 'refused'} → {after}"

    @property
    def words(self) -> str:
        """In one line: the flags, and what runs."""
        return f"{self.flag}: {self.numbers}" if self.change else f"{self.flag}, as set: {self.numbers}"


def _span(ends: tuple[int, int]) -> str:
    low, high = ends
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def ways(sizing: Sizing) -> Ways | None:
    """The ratio and the pin that run most with a slot to spare; None when no split runs a request."""
    best = sizing.optimum
    ratio = best.ratio if best and isinstance(sizing.by_ratio, Split) else None
    ratio_runs = sizing.by_ratio.runs if isinstance(sizing.by_ratio, Split) else None
    pin_runs = sizing.pinned.runs if isinstance(sizing.pinned, Split) else None
    if best is None or (ratio_runs is None and pin_runs is None):
        return None
    by_pin = pin_runs is not None and (ratio_runs is None or pin_runs > ratio_runs or bool(sizing.reasons_to_pin))
    return Ways(
        ratio=f"{RATIO} {stated_ratio_text(ratio)}" if ratio is not None else None,
        ratio_runs=ratio_runs,
        pin=f"{PIN} {sizing.pin_flag}" if pin_runs is not None else None,
        pin_runs=pin_runs,
        take="pin" if by_pin else "ratio",
    )


@lru_cache(maxsize=KEPT)
def recommended(sizing: Sizing) -> Recommended | None:
    """The change that runs most, of equal ones the one with fewest flags; None when nothing can run a request.

    Where `rest` is an estimate it is chosen for the low end and solved at both. A split without a slot to
    spare is changed even where the change runs no more.
    """
    safe = at_low_end(sizing)
    found = _settled(safe)
    if found is None or safe is sizing:
        return found
    ends, r = ends_of(sizing.scenario) or (safe.scenario, safe.scenario), sizing.ratio_now
    then = [applied(end, found.flags) for end in ends]
    before, after = ([_runs(end, r) for end in which] for which in (ends, then))
    return found.model_copy(
        update={
            "scenario": applied(sizing.scenario, found.flags),
            "before": None if None in before else tuple(sorted(runs or 0 for runs in before)),
            "after": tuple(sorted(runs or 0 for runs in after)),
            "reason": f"{found.reason} Chosen for the low end of the estimate, {rest_text(then[0].rest_gib)}.",
        }
    )


def recommended_split(sizing: Sizing) -> Split | None:
    """The split that the recommended flags give, at the scenario's own `rest`; None where nothing runs."""
    found = recommended(sizing)
    if found is None:
        return None
    there = solve_now(found.scenario, sizing.ratio_now if found.scenario.split == "balanced" else None)
    return there if isinstance(there, Split) else None


class _Option(NamedTuple):
    """Flags to set, what runs with them, and others that run as many."""

    flags: tuple[str, ...]
    runs: int
    others: tuple[str, ...]


def _settled(sizing: Sizing) -> Recommended | None:
    """Another request count can change an estimated `rest` itself: then the change is chosen for what it leaves."""
    found = _at(sizing)
    if found is None or found.scenario.rest_gib >= sizing.scenario.rest_gib:
        return found
    left = {"rest_gib": found.scenario.rest_gib, "rest_source": sizing.scenario.rest_source}
    again = _at(solve(sizing.scenario.model_copy(update=left)))
    if again is None or not again.change:
        return found
    runs = _runs(again.scenario, sizing.ratio_now) or 0
    return again.model_copy(update={"before": found.before, "after": (runs, runs), "reason": found.reason})


def _at(sizing: Sizing) -> Recommended | None:
    options = list(_options(sizing))
    if not options:
        return None
    best = max(options, key=lambda option: option.runs)  # of equal ones the first
    now = sizing.now if isinstance(sizing.now, Split) else None
    change = now is None or now.runs < best.runs or _may_spare(sizing, now)
    kept = () if change else _as_set(sizing)
    flags = kept or best.flags
    return Recommended(
        flags=flags,
        change=change,
        scenario=applied(sizing.scenario, flags) if change or not kept else sizing.scenario,
        before=(now.runs, now.runs) if now else None,
        after=(best.runs, best.runs) if change or now is None else (now.runs, now.runs),
        reason=_reason(sizing, now, best),
        alternative=best.others if change or not kept else (),
    )


def _options(sizing: Sizing) -> Iterator[_Option]:
    """The split alone, the request count alone, then both together."""
    found = ways(sizing)
    if found is not None:
        yield _Option((found.chosen,), found.runs, (found.other,) if found.other else ())
    if sizing.raised is not None and spared(sizing, sizing.raised):
        yield _Option((f"{REQUESTS} {sizing.raised_flag}", *_r_star(sizing)), sizing.raised.runs, ())
    pair = sizing.pair
    if pair is None:
        return
    asked = f"{REQUESTS} {pair.asked}"
    pin = (asked, f"{PIN} {pair.pin}") if pair.pin is not None else None
    ratio = (asked, f"{RATIO} {stated_ratio_text(pair.ratio)}") if pair.ratio is not None else None
    if pair.alone:
        yield _Option((asked,), pair.runs, ())
    elif pin and ratio and _runs(applied(sizing.scenario, ratio), sizing.ratio_now) == pair.runs:
        first, second = (pin, ratio) if found is None or found.take == "pin" else (ratio, pin)
        yield _Option(first, pair.runs, second)
    elif one := pin or ratio:
        yield _Option(one, pair.runs, ())


def _r_star(sizing: Sizing) -> tuple[str, ...]:
    """The flag of r*, where the inputs name the balanced split and not a ratio."""
    by_r_star = sizing.scenario.split == "balanced"
    return (f"{RATIO} {stated_ratio_text(sizing.ratio_now)}",) if by_r_star else ()


def spared(sizing: Sizing, split: Split) -> bool:
    """Whether a split keeps a slot free for the chunk border, or needs none."""
    return not sizing.resolved.request_slots.is_tight(split.slots, split.admitted)


def _may_spare(sizing: Sizing, now: Split) -> bool:
    """Whether no slot is spare as it is set, and the best split has one."""
    return not spared(sizing, now) and sizing.optimum is not None and sizing.optimum.spare > 0


def _as_set(sizing: Sizing) -> tuple[str, ...]:
    """The flag of the split that stands; empty for r*, which no flag names, and where no flag splits."""
    scenario = sizing.scenario
    if isinstance(sizing.now, Split) and sizing.now.ratio is not None and scenario.split == "ratio":
        return (f"{RATIO} {stated_ratio_text(scenario.mamba_full_memory_ratio)}",)
    if scenario.split == "pin" and scenario.max_mamba_cache_size:
        return (f"{PIN} {scenario.max_mamba_cache_size}",)
    return ()


def _reason(sizing: Sizing, now: Split | None, best: _Option) -> str:
    """The one reason, the number first."""
    if now is None:
        return "What is set does not start."
    if now.runs < best.runs:
        return _what_is_short(sizing, now)
    if _may_spare(sizing, now):
        just = sizing.resolved.request_slots.product(requests_text(now.admitted))
        return f"{count(now.slots)} slots are just {just}: {SPARE_WHY}."
    return "Nothing to change: no split and no request count runs more."


def _what_is_short(sizing: Sizing, now: Split) -> str:
    name = now.binding.name
    if name == "state pool" and now.memory.kv_idle:
        return f"{gib(now.memory.kv_idle)} of KV lie idle: the state pool is short."
    if name == "KV pool" and now.memory.state_idle:
        return f"{gib(now.memory.state_idle)} of state lie idle: the KV pool is short."
    if name == "requests asked":
        return f"--max-running-requests ({count(sizing.resolved.max_running_requests or 0)}) binds."
    of_the_engine = {"estimate": "The engine's own estimate", "tokens // 2": "The engine's tokens // 2"}
    return f"{of_the_engine.get(name, f'The {name}')} binds: {requests_text(now.binding.requests)}."


def applied(scenario: Scenario, flags: tuple[str, ...]) -> Scenario:
    """The scenario with flags of a split, as they are typed, put in; an estimated rest is the one that holds then."""
    values: dict[str, Any] = {}
    for flag in flags:
        name, _, value = flag.partition(" ")
        if name == RATIO:
            values |= {"split": "ratio", "mamba_full_memory_ratio": float(value)}
        elif name == PIN:
            values |= {"split": "pin", "max_mamba_cache_size": int(value)}
        else:
            values |= {"max_running_requests": int(value)}
    return end_anew(scenario.model_copy(update=values))


def _runs(scenario: Scenario, ratio: float) -> int | None:
    """What runs [requests per rank], with `ratio` [-] where r* splits; None where the engine refuses."""
    try:
        now = solve_now(scenario, ratio if scenario.split == "balanced" else None)
    except RefusedError:
        return None
    return None if isinstance(now, Refusal) else now.runs
