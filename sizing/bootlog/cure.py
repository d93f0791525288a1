"""The recommended change of the flags behind a boot, put into its command, with what runs before and after."""

from typing import NamedTuple

from sizing.answers.recommended import recommended
from sizing.basics.units import count, number, requests_text
from sizing.bootlog.bounds import start_need
from sizing.bootlog.diagnosis import Diagnosis, no_cure
from sizing.bootlog.log import Boot
from sizing.command import Command, rewritten
from sizing.command.flags import FRACTION
from sizing.explain.unified_memory import UnifiedView, unified_in_force
from sizing.releases.flags import PIN, RATIO

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
    """The recommended change for what runs now [requests], and in words what it gives or why there is none."""
    if why_not := no_cure(found):
        return None, why_not
    sizing = found.sizing
    if sizing is None or before is None:
        return None, "No flags are proposed: what runs now is not known."
    if one := unified_in_force(sizing):
        return _of_unified(one, command)
    best = recommended(sizing)
    after = best.after[0] if best else 0
    if best is None or not best.change or after < before:
        return None, f"No flags are proposed: no split and no request count runs more than {requests_text(before)}."
    own = _own(command)
    words = f"{best.flag}: {count(before)} → {requests_text(after)} at L = {count(sizing.scenario.L)}."
    return Cure(best.flags, rewritten(own, _changes(best.flags)) if own else None, before, after, words), words


def _of_unified(one: UnifiedView, command: Command | None) -> tuple[Cure | None, str]:
    """The ratio to set under unified memory. The command has its flag already, or the server would run without."""
    if not one.change:
        return None, "No flags are proposed: no ratio runs more under unified memory."
    words, own = f"{one.flag}: {one.numbers}.", _own(command)
    return Cure(one.flags, rewritten(own, _changes(one.flags)) if own else None, one.runs, one.most, words), words


def _own(command: Command | None) -> Command | None:
    """The command, where it is there whole."""
    return command if command is not None and command.given and not command.problems else None


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
    own = _own(command)
    text = rewritten(own, {FRACTION: f"{fraction:g}"}) if own else None
    return Cure((f"{FRACTION} {fraction:g}",), text, 0, 1, " ".join(words)), " ".join(words)


def _changes(flags: tuple[str, ...]) -> Changes:
    """What is typed behind each flag that takes a value; the other way to split is removed."""
    values: Changes = {}
    for flag in flags:
        name, _, value = flag.partition(" ")
        if value:
            values[name] = value
    if RATIO in values or PIN in values:
        values |= {way: None for way in (RATIO, PIN) if way not in values}
    return values
