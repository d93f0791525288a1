"""The answer to a boot log, with the launch command behind it if there is one, in the vocabulary of answer.py.

What is printed is what ran: every number is the log's own, or follows from it by the rules of the release. What was
measured from rounded figures carries its band.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

from sizing.basics.problems import shown
from sizing.basics.units import count, number, requests_text
from sizing.bootlog import Boot, Facts, Log
from sizing.bootlog import Measured as Printed
from sizing.bootlog.bounds import best_runs, fraction_least
from sizing.bootlog.cure import Cure, cure_of, start_of
from sizing.bootlog.diagnosis import Diagnosis, diagnose, models_that_fit, named_model, settled
from sizing.command import Command
from sizing.engine.request_slots import SPARE_FORMULA, RequestSlots
from sizing.engine.resolve import resolution
from sizing.engine.slots import ratio_is_ignored
from sizing.engine.split import Split
from sizing.exchange.answer import Best, Measured, Notice, Number, SizingAnswer, radix_off_words, refusal
from sizing.exchange.sizing_answer import best_of, best_unified_of
from sizing.explain.unified_memory import unified_in_force
from sizing.explain.verdict import BEYOND_WORTH_SAYING
from sizing.specification import optimal_ratio

IDLE_GIB = 10  # [GiB] from here on memory that nobody uses is said: the contract of the answer
Binds = Literal["state", "kv", "cap"]


class LogAnswer(NamedTuple):
    """The answer, and what it was read from, for those that show more of it."""

    answer: SizingAnswer
    found: Diagnosis | None
    sentences: tuple[str, ...]
    """The words of the answer, the headline first."""


def log_answer(
    log: Log,
    command: Command | None = None,
    L: int | None = None,
    model: str | None = None,
    found: Diagnosis | None = None,
) -> LogAnswer:
    """Answer for the last boot of a log. Without `L` [tokens] nothing is said that depends on it.

    `model` is a name of the catalogue whose exact bytes are taken where the log allows them, "" for none; left out, the
    one that the log or the command names. `found` is that boot diagnosed, where that was done. Raises nothing.
    """
    boot = log.last
    if boot is None:
        nothing = _no_boot(log)
        return LogAnswer(nothing, None, (nothing.words,))
    if model is None:
        model = model_named_by(boot, command)
    found = found or diagnose(boot, model=model, command=command, stated={} if L is None else {"L": L})
    numbers = _Numbers(boot, found, L)
    cure, why = _cure(boot, command, found, numbers)
    of_the_command = (problem.sentence for problem in command.problems) if command else ()
    told = (*_headline(boot, found, numbers), *of_the_command, why)
    sentences = tuple(sentence for sentence in told if sentence)
    refused = boot.refused.refusal if boot.refused else None
    values = numbers.values()
    answer = SizingAnswer(
        refused=refusal(refused.answer_kind, refused.sentence) if refused else None,
        words=" ".join(sentences),
        unknown=tuple(name for name in numbers.wanted() if values.get(name) is None),
        notices=tuple(_notices(log, boot, command, found, numbers)),
        flags=cure.flags if cure else None,
        command=cure.command if cure else None,
        **values,
    )
    return LogAnswer(answer, found, sentences)


def _cure(boot: Boot, command: Command | None, found: Diagnosis, numbers: "_Numbers") -> tuple[Cure | None, str]:
    """What to set, and in words what it gives or why nothing is proposed."""
    if boot.refused is not None:
        return start_of(boot, found, command)
    if boot.no_slot:
        return None, NO_SLOT
    if boot.died_later:
        return None, "No flags are proposed: first let it stay up, with a lower --mem-fraction-static or fewer graphs."
    return cure_of(found, command, numbers.runs) if numbers.L is not None else (None, "")


NO_SLOT = (
    "A request found no free state slot and an assertion ended the server: more slots "
    f"({SPARE_FORMULA} at least for C requests, by "
    "--max-mamba-cache-size or --mamba-full-memory-ratio) or a lower --max-running-requests keep it up."
)


def model_named_by(boot: Boot, command: Command | None) -> str:
    """The model of the catalogue that log or command name, where the printed sizes allow its bytes; else empty."""
    facts = settled(boot, command)
    paths = (facts.settings.model_path, command.model_path if command else None)
    fits = models_that_fit(facts) if any(paths) else ()
    return next((name for path in paths if (name := named_model(path, fits))), "")


def _no_boot(log: Log) -> SizingAnswer:
    words = " ".join(problem.sentence for problem in log.problems) or "Nothing of an SGLang boot was found."
    kind = "not_a_log" if log.kind == "boots" else log.kind
    return SizingAnswer(refused=refusal(kind, words), words=words)


class _Numbers:
    """Every number of the answer."""

    def __init__(self, boot: Boot, found: Diagnosis, L: int | None) -> None:
        self.boot, self.found, self.L = boot, found, L
        self.facts: Facts = found.facts
        self.sizing = found.sizing
        settings = self.facts.settings
        self.cap = _per_rank(settings.max_running_requests, settings.attn_dp_size)
        self.refused = boot.refused
        stated = settings.enable_unified_memory or (found.scenario and found.scenario.enable_unified_memory)
        self.one_buffer = bool(self.facts.unified or stated)
        self.unified = unified_in_force(self.sizing) if self.sizing is not None and L is not None else None

    @property
    def S(self) -> int | None:  # noqa: N802, the specification's letter
        """State slots [slots per running request]."""
        return self.facts.S

    @property
    def request_slots(self) -> RequestSlots:
        """What requests take of the slots: by the flags where they lead to the S of the log, else by S alone."""
        by_flags = self.sizing is not None and self.sizing.S == self.S
        return (
            self.sizing.resolved.request_slots
            if self.sizing and by_flags
            else RequestSlots(self.S or 1, bool(self.facts.radix_cache))
        )

    @property
    def D(self) -> int | None:  # noqa: N802, the specification's letter
        """Draft states that are charged for a running request."""
        if self.sizing is not None:
            return self.sizing.drafts_charged
        return 0 if self.facts.settings.replayssm == "spec" else self.facts.draft_tokens

    @property
    def slots(self) -> Number:
        """K, as printed; else as the flags make it, or as decode batches tell it."""
        facts = self.facts
        if facts.slots is not None or self.refused is not None:
            return facts.slots
        if facts.settings.disable_radix_cache and self.cap is not None and facts.settings.max_mamba_cache_size is None:
            return self.cap
        return _whole(facts.slots_in_use)

    @property
    def clamp(self) -> int | None:
        """K // S [requests]."""
        slots = self.slots
        if self.refused is not None:
            return None
        if isinstance(slots, int) and self.S:
            return self.request_slots.requests(slots)
        return self.facts.clamp

    @property
    def admitted(self) -> int | None:
        """What the engine admits [requests]: as printed; else the clamp, unless a cap that is not known may be less."""
        return _alone(self._admitted_by_any_S)

    @property
    def _admitted_by_any_S(self) -> set[int]:  # noqa: N802, the specification's letter
        """What may be admitted [requests], a value for each S that the log leaves open; empty where none is known."""
        slots = self.slots
        if self.facts.running is not None:
            return {self.facts.running}
        by_rules = self._admitted_by_the_rules
        if by_rules is not None:
            return {by_rules}
        if self.clamp is not None:
            return {self.clamp if self.cap is None else min(self.clamp, self.cap)}
        if self.refused is not None or self.cap is None or not isinstance(slots, int):
            return set()
        return {min(RequestSlots(S).requests(slots), self.cap) for S in self.facts.S_possible}

    @property
    def _admitted_by_the_rules(self) -> int | None:
        """What the flags admit with the K that ran, as the release shares it out among ranks; None where not all flags
        are known, or they make another K.
        """
        now = self.sizing.now if self.sizing is not None and self.found.known else None
        return now.admitted if isinstance(now, Split) and now.slots == self.facts.slots else None

    @property
    def kv_cap(self) -> int | None:
        """Logical tokens // L [requests]."""
        return None if self.L is None or self.facts.kv_tokens is None else self.facts.kv_tokens // self.L

    @property
    def runs(self) -> int | None:
        """What runs at once at L, or is admitted where there is no L [requests]."""
        if self.refused is not None:
            return 0
        if self.L is None:
            return self.admitted
        if self.one_buffer:
            return self.unified.runs if self.unified is not None else None
        if self.kv_cap is None:
            return None
        return _alone({min(admitted, self.kv_cap) for admitted in self._admitted_by_any_S})

    @property
    def binds(self) -> Binds | None:
        """What sets `runs`; None where two may and the log does not tell."""
        if self.refused is not None or self.runs is None:
            return None
        if self.unified is not None:
            return self.unified.binds
        if self.clamp is not None and self.runs == self.clamp:
            return "state"
        if self.kv_cap is not None and self.runs == self.kv_cap < min(self._admitted_by_any_S):
            return "kv"
        if self.clamp is not None:
            return "cap"
        slots = self.slots
        least = slots // max(self.facts.S_possible, default=1) if isinstance(slots, int) else None
        return "cap" if least is not None and least > self.runs else None

    @property
    def slot_bytes(self) -> Number:
        """The target's slot [bytes]."""
        if self.found.model and self.found.scenario is not None and self.refused is None:
            return self.found.scenario.state_bytes_per_slot
        return _band(self.facts.slot_bytes)

    @property
    def token_bytes(self) -> Number:
        """The target's row [bytes]."""
        if self.found.model and self.found.scenario is not None:
            return self.found.scenario.kv_bytes_per_token
        return _band(self.facts.token_bytes)

    @property
    def draft_bytes(self) -> Number:
        """The draft's row [bytes]; 0 without one."""
        if self.facts.draft_tokens == 0:
            return 0
        return _band(self.facts.draft_token_bytes)

    def values(self) -> dict[str, Any]:
        """The answer's numbers by their names."""
        # Where nothing tells of speculation and no draft's line is printed, no draft shares the pool.
        draft = 0 if self.facts.speculation is None and self.draft_bytes is None else self.draft_bytes
        equiv = _over(self.slot_bytes, _plus(self.token_bytes, draft))
        return {
            "S": self.S,
            "D": self.D,
            "slots": self.slots,
            "clamp": self.clamp,
            "kv_rows": self.facts.kv_rows,
            "kv_tokens": self.facts.kv_tokens,
            "kv_cap": self.kv_cap,
            "runs": self.runs,
            "binds": self.binds,
            "L": self.L,
            "rest_gib": _band(self.facts.rest),
            "state_bytes_per_slot": self.slot_bytes,
            "kv_bytes_per_token": self.token_bytes,
            "draft_kv_bytes_per_token": self.draft_bytes,
            "token_equiv": equiv,
            "r_star": self._r_star(equiv),
            "best": self._best(),
            "mem_fraction_least": _band(fraction_least(self.found)),
        }

    def wanted(self) -> Iterator[str]:
        """The keys that apply: those among them that are None are not known."""
        always = ("S", "D", "rest_gib", "state_bytes_per_slot", "kv_bytes_per_token", "draft_kv_bytes_per_token")
        yield from (*always, "token_equiv")
        if self.refused is None:
            yield from ("slots", "clamp", "kv_rows", "kv_tokens", "runs", "binds")
        if self.L is not None:
            yield from ("r_star", *(("kv_cap",) if self.refused is None else ()))
        if self.L is not None and self.refused is None:
            yield "best"

    def _r_star(self, equiv: Number) -> Number:
        if self.L is None or self.S is None or self.D is None or equiv is None:
            return None
        S, D, L, dcp = self.S, self.D, self.L, self.facts.dcp_size or 1
        return _each(equiv, lambda tokens: optimal_ratio(L, tokens, 1, S, D, dcp))

    def _best(self) -> Best | None:
        if self.one_buffer:
            return best_unified_of(self.unified) if self.unified is not None and self.refused is None else None
        sizing = self.sizing
        if sizing is None or self.L is None or self.refused is not None or sizing.optimum is None:
            return None
        runs = best_runs(self.found)
        banded = _band(runs) if runs.low < runs.high else int(runs.value)
        return best_of(sizing.resolved, sizing.optimum).model_copy(update={"runs": banded})


def _alone(numbers: set[int]) -> int | None:
    """The one number of a set; None where there is none, or several."""
    return next(iter(numbers)) if len(numbers) == 1 else None


def _per_rank(asked: int | None, width: int | None) -> int | None:
    """A share of a count for each attention-DP rank."""
    return None if asked is None else max(asked // (width or 1), 1)


def _whole(measured: Printed | None) -> Number:
    """The one whole number that an interval holds; else the interval."""
    if measured is None:
        return None
    middle = round(measured.value)
    alone = (
        measured.low <= middle <= measured.high and not measured.holds(middle - 1) and not measured.holds(middle + 1)
    )
    return middle if alone else _band(measured)


def _band(measured: Printed | None) -> Measured | None:
    return None if measured is None else Measured(value=measured.value, low=measured.low, high=measured.high)


def _each(number: Number, change: Any) -> Number:
    """A rising function of a number, at both of its ends too."""
    if isinstance(number, Measured):
        return Measured(value=change(number.value), low=change(number.low), high=change(number.high))
    return None if number is None else change(number)


def _ends(number: int | float | Measured) -> tuple[float, float, float]:
    return (number.value, number.low, number.high) if isinstance(number, Measured) else (number, number, number)


def _plus(one: Number, other: Number) -> Number:
    if one is None or other is None:
        return None
    if not isinstance(one, Measured) and not isinstance(other, Measured):
        return one + other
    value, low, high = (a + b for a, b in zip(_ends(one), _ends(other), strict=True))
    return Measured(value=value, low=low, high=high)


def _over(one: Number, other: Number) -> Number:
    if one is None or other is None:
        return None
    if not isinstance(one, Measured) and not isinstance(other, Measured):
        return one / other if other else None
    (top, least, most), (below, small, large) = _ends(one), _ends(other)
    return Measured(value=top / below, low=least / large, high=most / small) if small > 0 else None


def _headline(boot: Boot, found: Diagnosis, numbers: _Numbers) -> Iterator[str]:
    """What happened, with its reasons."""
    if found.differ:
        yield "The log and the command are not of one run."
        yield from found.differ
        yield "The log alone is answered for."
    if boot.refused is not None:
        yield boot.refused.refusal.sentence
        return
    yield from _what_runs(numbers)
    yield from (problem.sentence for problem in found.problems)
    yield found.refused


BINDS_WORDS = {
    "state": "the state pool binds",
    "kv": "the KV pool binds",
    "cap": "a cap on requests binds",
    None: "what binds is not known",
}


def _what_runs(numbers: _Numbers) -> Iterator[str]:
    """The headline of a boot that started: what runs, by which numbers."""
    L, runs = numbers.L, numbers.runs
    if numbers.unified is not None:
        yield from numbers.unified.told
        yield _said(numbers)
        return
    at = f" at L = {count(L)}" if L is not None else ""
    if runs is None and numbers.boot.crashed and not numbers.boot.died_later:
        yield "The process ended in an error before its pools were sized: it serves nothing."
        yield "That error is no refusal of sizing: the last line of its traceback says what it is."
        return
    if runs is None:
        yield f"The log does not say what runs{at}."
    elif L is None:
        yield f"The engine admits {requests_text(runs)}{_each_rank(numbers, runs)}: {BINDS_WORDS[numbers.binds]}."
    else:
        what = f"{requests_text(runs)} {'runs' if runs == 1 else 'run'}{at}{_each_rank(numbers, runs)}"
        yield f"{what}: {BINDS_WORDS[numbers.binds]}."
    yield _said(numbers)


def _each_rank(numbers: _Numbers, runs: int) -> str:
    """Under attention DP, that the requests are one rank's; those of the deployment where its ranks are alike."""
    ranks = numbers.facts.settings.attn_dp_size or 1
    if ranks == 1:
        return ""
    if numbers.facts.ranks_differ:
        return f" on one of {ranks} attention-DP ranks"
    return f" on each of {ranks} attention-DP ranks, {count(ranks * runs)} in the deployment"


def _said(numbers: _Numbers) -> str:
    """The counts that the log holds."""
    parts = []
    if isinstance(numbers.slots, int):
        slots = f"{count(numbers.slots)} slots"
        if numbers.S and numbers.clamp is not None:
            slots = f"{slots}, {numbers.S} per request: {count(numbers.clamp)} fit"
        parts.append(slots)
    if numbers.facts.kv_tokens is not None:
        tells = numbers.kv_cap is not None and not numbers.one_buffer  # there the label bounds one request, no more
        held = f" hold {count(numbers.kv_cap)}" if tells and numbers.kv_cap is not None else ""
        parts.append(f"{count(numbers.facts.kv_tokens)} KV tokens{held}")
    if numbers.cap is not None:
        parts.append(f"{count(numbers.cap)} asked")
    return f"{'; '.join(parts)}." if parts else ""


def _notices(log: Log, boot: Boot, command: Command | None, found: Diagnosis, numbers: _Numbers) -> Iterator[Notice]:
    """Everything a reader has to know, one a code."""
    if found.differ:
        yield Notice(about="log_and_command_differ", words=" ".join(found.differ))
    yield from _of_the_log(log, boot, numbers)
    if elsewhere := (*(command.elsewhere if command else ()), *map(_left_out, log.flags_elsewhere)):
        yield Notice(about="flags_elsewhere", words=" ".join(elsewhere))
    if command is not None and command.unread:
        names = ", ".join(command.unread)
        yield Notice(about="unread_flags", words=f"No release of SGLang has {names}: what it changes is not known.")
    yield from _of_requests(numbers)
    yield from _of_the_cache(found, numbers)
    yield from _of_memory(boot, found, numbers)


def _left_out(flag: str) -> str:
    return f"{shown(flag)} in the log names what is not given: paste it."


def _of_the_log(log: Log, boot: Boot, numbers: _Numbers) -> Iterator[Notice]:
    if len(log.servers) > 1:
        words = f"{len(log.servers)} servers write into this log: the answer is for {boot.source or 'the last one'}."
        yield Notice(about="several_servers", words=words)
    if len(log.last_server) > 1:
        failed = sum(other.failed for other in log.last_server)
        refused = f", {failed} of them refused" if failed else ""
        words = f"{len(log.last_server)} boots{refused}: the one from line {count(boot.first_line)} on counts."
        yield Notice(about="several_boots", words=words)
    if numbers.facts.ranks_differ:
        yield Notice(about="ranks_differ", words=numbers.facts.ranks_differ)
    if boot.cut or log.cut_short:
        where = f"Line {count(boot.cut[0].number)} ends in the middle" if boot.cut else "The text ends in the middle"
        yield Notice(about="cut_short", words=f"{where}: a number counts only where what follows it is there.")
    if boot.died_later:
        yield Notice(
            about="died_later",
            words="The pools were made and the process ended in an error afterwards: this did not serve.",
        )


def _of_requests(numbers: _Numbers) -> Iterator[Notice]:
    asked, runs = numbers.cap or numbers.facts.asked, numbers.runs
    if numbers.refused is None and asked is not None and runs is not None and runs < asked:
        pool = {"state": "the state pool", "kv": "the KV pool"}.get(numbers.binds or "", "what is left")
        yield Notice(about="asked_more", words=f"{requests_text(asked)} asked for, {pool} lets {count(runs)} run.")
    slots, admitted = numbers.slots, numbers.admitted
    each = numbers.request_slots
    if isinstance(slots, int) and admitted and each.is_tight(slots, admitted) and numbers.refused is None:
        words = f"{each.product(count(admitted))} is all of the {count(slots)} slots: at a chunk border a request may "
        words += "find no slot, and an assertion ends the server."
        yield Notice(about="no_spare_slot", words=words)


def _of_the_cache(found: Diagnosis, numbers: _Numbers) -> Iterator[Notice]:
    if numbers.S is None or numbers.facts.radix_cache is not False:
        return
    why = numbers.facts.radix_off or _why_off(found)
    yield Notice(about="radix_cache_off", words=radix_off_words(why, numbers.S))
    settings, scenario = numbers.facts.settings, found.scenario
    pinned = settings.max_mamba_cache_size is not None
    ignored = (
        ratio_is_ignored(resolution(scenario)) if scenario is not None else settings.disable_radix_cache and numbers.cap
    )
    if ignored and not pinned:
        words = "With the radix cache off and a request cap the slots are the cap: the ratio counts for nothing."
        yield Notice(about="ratio_not_used", words=words)


def _why_off(found: Diagnosis) -> str:
    scenario = found.scenario
    return resolution(scenario).radix_off_why or "" if scenario is not None else ""


def _slots_beyond(facts: Facts) -> float | None:
    """The slots that a decode server allocates beyond K [bytes], by its own lines."""
    if facts.slots is None or facts.slots_allocated is None or facts.slot_bytes is None:
        return None
    return (facts.slots_allocated - facts.slots) * facts.slot_bytes.value


def _of_memory(boot: Boot, found: Diagnosis, numbers: _Numbers) -> Iterator[Notice]:
    sizing = found.sizing
    more = sizing.beyond if sizing is not None and isinstance(sizing.now, Split) else _slots_beyond(numbers.facts)
    if more is not None and more >= BEYOND_WORTH_SAYING:
        words = f"{number(more / 2**30)} GiB are allocated and not charged: they come out of the slack."
        yield Notice(about="not_charged", words=words)
    idle = numbers.facts.idle_gib
    if idle is not None and idle >= IDLE_GIB and not boot.died_later and numbers.refused is None:
        words = f"{number(idle)} GiB stay free after pools and graphs: a higher --mem-fraction-static gives them more."
        yield Notice(about="memory_idle", words=words)
