"""Static beside unified memory for one deployment: the rows of a table, the sentences, and the flags to set under it.

Source: running-server.md 2.2 and 2.3.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from sizing.answers.recommended import Recommended, applied
from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import count, gib, number, ratio_text, requests_text, stated_ratio_text
from sizing.engine.request_slots import CLAMP_FORMULA
from sizing.engine.split import Split
from sizing.engine.unified import Unified, UnifiedBest, best_unified, in_words, unified
from sizing.releases.flags import RATIO
from sizing.scenario.inputs import Scenario

COLUMNS = ("per rank", "static split", "unified memory", "why")
FLAG = "--enable-unified-memory"
ONE_BUFFER = "what one buffer runs, Balance and Log say."


Row = tuple[str, str, str, str]


class UnifiedView(NamedTuple):
    """One deployment both ways."""

    found: Unified
    runs: int
    """At L: none where it does not start, or where L is longer than max_total_num_tokens."""
    best: UnifiedBest | None
    """None where no ratio runs a request."""
    sentences: tuple[str, ...]
    """Whether it helps, why, which ratio to set, what this rests on."""
    rows: tuple[Row, ...]
    flags: tuple[str, ...]
    """What to set under it."""

    headline: str
    """What runs both ways."""
    numbers: str
    """What runs now and with the flags."""
    alternative: tuple[str, ...] = ()
    """No other flags run as many."""

    @property
    def change(self) -> bool:
        """Whether another ratio runs more."""
        return len(self.flags) > 1

    @property
    def most(self) -> int:
        """What runs with the flags [requests per rank]."""
        return self.best.runs if self.best is not None and self.change else self.runs

    @property
    def binds(self) -> Literal["state", "kv", "cap"]:
        """What sets `runs`: the buffer, K // S, or the request cap."""
        if self.runs < self.found.admitted:
            return "kv"
        return "state" if self.found.admitted == self.found.clamp else "cap"

    @property
    def flag(self) -> str:
        """All flags on one line."""
        return " ".join(self.flags)

    @property
    def reason(self) -> str:
        """Whether it helps, and why."""
        return self.sentences[0]

    @property
    def told(self) -> tuple[str, ...]:
        """What runs, why, which ratio to set, and what this rests on."""
        return (self.headline, *self.sentences)


def static_alone(scenario: Scenario) -> str:
    """That numbers are those of the static split, behind a sentence, where the flag is set; empty where it is not."""
    return f" This is the static split: {ONE_BUFFER}" if scenario.enable_unified_memory else ""


def static_among(names: Sequence[str], scenarios: Sequence[Scenario]) -> str:
    """Of which of several scenarios the numbers are those of the static split; empty where the flag is set in none."""
    found = [name for name, one in zip(names, scenarios, strict=True) if one.enable_unified_memory]
    return f"{FLAG} is set in {' and '.join(found)}, compared is the static split: {ONE_BUFFER}" if found else ""


def unified_in_force(sizing: Sizing) -> UnifiedView | None:
    """What runs where the flag is set; None where it is not, and like `unified_view`."""
    return unified_view(sizing) if sizing.scenario.enable_unified_memory else None


def change_under(sizing: Sizing, one: UnifiedView) -> Recommended:
    """The change as one of the split, for the whole launch command, which has the flag itself by the scenario."""
    by_r_star = sizing.scenario.split == "balanced"
    flags = one.flags[1:] or ((f"{RATIO} {stated_ratio_text(sizing.ratio_now)}",) if by_r_star else ())
    return Recommended(
        flags=flags,
        change=one.change,
        scenario=applied(sizing.scenario, flags),
        before=(one.runs, one.runs),
        after=(one.most, one.most),
        reason=one.reason,
        alternative=one.alternative,
    )


def unified_view(sizing: Sizing) -> UnifiedView | None:
    """Static beside unified, whether the flag is set or not; None where the static solve does not start or the rules
    of this model's buffer are not known.
    """
    split, scenario = sizing.now, sizing.scenario
    if isinstance(split, Refusal):
        return None
    elsewhere = _static_elsewhere(sizing, split)
    try:
        found = unified(scenario, split.slots)
        best, sentences = best_unified(scenario), in_words(scenario, split, elsewhere)
    except RefusedError:
        return None
    runs = found.runs if found.refusal is None and found.label >= scenario.L else 0
    better = best is not None and best.runs > runs
    ratio = f"{RATIO} {ratio_text(best.ratio)}" if best is not None and better else ""
    most = best.runs if best is not None and better else runs
    return UnifiedView(
        found=found,
        runs=runs,
        best=best,
        sentences=sentences,
        rows=tuple(_rows(sizing, split, found, best, runs)),
        flags=(FLAG, *((ratio,) if ratio else ())),
        headline=f"{requests_text(runs)} {'runs' if runs == 1 else 'run'} under unified memory at L = "
        f"{count(scenario.L)}, {count(split.runs)} in the static split{f' as set{elsewhere}' if elsewhere else ''}.",
        numbers=f"{count(runs)} → {count(most)} run" if better else f"{count(runs)} run, and no ratio runs more",
    )


def _static_elsewhere(sizing: Sizing, split: Split) -> str:
    """What the static split runs at its best, as the end of a clause; empty where that is no more than as set."""
    best = sizing.optimum
    if best is None or best.runs <= split.runs:
        return ""
    where = "with another pin" if best.ratio is None else f"at r = {ratio_text(best.ratio)}"
    return f", {count(best.runs)} {where}"


def _rows(
    sizing: Sizing, split: Split, found: Unified, best: UnifiedBest | None, runs: int
) -> list[tuple[str, str, str, str]]:
    scenario, S = sizing.scenario, sizing.S
    spare = max(found.total_bytes - found.floor_bytes - split.runs * found.held * found.state_entry_bytes, 0)
    tokens = spare * scenario.dcp_size // found.kv_entry_bytes
    longest = max(min(scenario.context_length, split.kv_tokens) - 1, 0)
    optimum = sizing.optimum
    best_static = count(optimum.runs) if optimum else "none"
    at_best = f"{count(best.runs)} at r = {ratio_text(best.ratio)}" if best else "none"
    return [
        ("K, state slots", count(split.slots), count(found.slots), "the static solve sets both"),
        (f"request rows, {CLAMP_FORMULA}", count(split.clamp), count(found.clamp), "a row reserves S slots either way"),
        (
            "state slots a running request takes",
            f"{S} reserved",
            f"{found.held} held",
            "what is not held becomes KV",
        ),
        (
            "max_total_num_tokens",
            count(split.kv_tokens),
            count(found.label),
            "the label: it bounds the longest request",
        ),
        ("longest request [tokens]", count(longest), count(found.longest_request), "a higher ratio shortens it"),
        (
            f"KV tokens beside {requests_text(split.runs)}",
            count(split.kv_tokens),
            count(tokens),
            f"of a buffer of {gib(found.total_bytes)}, {number(found.floor_bytes / 2**20, 0)} MiB of it never used",
        ),
        (f"requests that run at L = {count(scenario.L)}", count(split.runs), count(runs), ""),
        ("the most at any ratio", best_static, at_best, "with a slot to spare, and where rows and buffer meet"),
    ]
