"""The best change of the flags behind a boot: what a printed flag gives when it is solved again, before and after."""

from collections.abc import Iterator
from typing import NamedTuple

from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import RefusedError
from sizing.basics.units import count, number, requests_text, stated_ratio_text
from sizing.bootlog.diagnosis import Diagnosis, no_cure
from sizing.bootlog.least import start_need
from sizing.bootlog.log import Boot
from sizing.command import Command, rewritten
from sizing.command.flags import FRACTION
from sizing.engine.split import Split
from sizing.explain.launch_flags import flags
from sizing.releases.flags import PIN, RATIO, REQUESTS
from sizing.scenario.inputs import Scenario, changed

Changes = dict[str, str | None]
"""Sizing flags and what is typed behind them; None removes the flag."""


class Cure(NamedTuple):
    """A change that runs more, verified by solving it."""

    flags: tuple[str, ...]
    """Each flag to set, with its value."""
    command: str | None
    """The launch command with them; None without one that is there whole."""
    before: int
    """What runs at L by the log [requests]."""
    after: int
    """What runs with the change [requests]."""
    words: str


def cure_of(found: Diagnosis, command: Command | None, before: int | None) -> tuple[Cure | None, str]:
    """The best change for what runs now [requests], and in words what it gives or why there is none."""
    if why_not := no_cure(found):
        return None, why_not
    sizing = found.sizing
    if sizing is None or before is None:
        return None, "No flags are proposed: what runs now is not known."
    tried = [(runs, changes) for changes in _changes(sizing) if (runs := _runs(sizing.scenario, changes)) > before]
    if not tried:
        return None, f"No flags are proposed: no split and no request count runs more than {requests_text(before)}."
    after, changes = max(tried, key=lambda one: one[0])  # of equal ones the first, which is the one to take
    own = command if command is not None and command.flags and not command.problems else None
    set_to = tuple(f"{name} {value}" for name, value in changes.items() if value is not None)
    words = f"{' '.join(set_to)}: {count(before)} → {requests_text(after)} at L = {count(sizing.scenario.L)}."
    return Cure(set_to, rewritten(own, changes) if own else None, before, after, words), words


def start_of(boot: Boot, found: Diagnosis, command: Command | None) -> tuple[Cure | None, str]:
    """What would make a refused boot start: memory to free, the least fraction, fewer drafts; and the flag for it.

    The flag is proposed only where all flags behind the boot are known and solving it starts one request.
    """
    need = start_need(found)
    if need is None:
        return None, ""
    words = [f"One request starts with {number(need.missing_gib)} GiB more of rest."]
    fraction = need.fraction
    if fraction is not None:
        words.append(f"--mem-fraction-static {fraction:g} is the least that gives it.")
    if need.drafts is not None:
        words.append(f"So it does with {need.drafts} draft tokens.")
    if fraction is None:
        return None, " ".join(words)
    own = command if command is not None and command.flags and not command.problems else None
    text = rewritten(own, {FRACTION: f"{fraction:g}"}) if own else None
    return Cure((f"{FRACTION} {fraction:g}",), text, 0, 1, " ".join(words)), " ".join(words)


def _changes(sizing: Sizing) -> Iterator[Changes]:
    """Every change there is to try, the one to take first."""
    found = flags(sizing)
    if found is not None:
        by_ratio: Changes = {RATIO: _value(found.ratio), PIN: None}
        by_pin: Changes = {PIN: _value(found.pin), RATIO: None}
        both = [by_pin, by_ratio] if found.take == "pin" else [by_ratio, by_pin]
        yield from (changes for changes in both if any(changes.values()))
    if sizing.raised_flag is not None:
        yield {REQUESTS: str(sizing.raised_flag)}
    if sizing.pair is not None:
        yield {REQUESTS: str(sizing.pair.asked)}
        if sizing.pair.pin is not None:
            yield {REQUESTS: str(sizing.pair.asked), PIN: str(sizing.pair.pin), RATIO: None}
        elif sizing.pair.ratio is not None:
            yield {REQUESTS: str(sizing.pair.asked), RATIO: stated_ratio_text(sizing.pair.ratio), PIN: None}


def _value(flag: str | None) -> str | None:
    return flag.partition(" ")[2] if flag else None


def _runs(scenario: Scenario, changes: Changes) -> int:
    """What runs at L with these flags [requests]; 0 where the engine refuses them."""
    values: dict[str, float | int | str] = {}
    if changes.get(RATIO) is not None:
        values |= {"split": "ratio", "mamba_full_memory_ratio": float(changes[RATIO] or 0)}
    if changes.get(PIN) is not None:
        values |= {"split": "pin", "max_mamba_cache_size": int(changes[PIN] or 0)}
    if changes.get(REQUESTS) is not None:
        values |= {"max_running_requests": int(changes[REQUESTS] or 0)}
    other = changed(scenario, **values)
    if not isinstance(other, Scenario):
        return 0
    try:
        now = solve(other).now
    except RefusedError:
        return 0
    return now.runs if isinstance(now, Split) else 0
