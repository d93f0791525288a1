"""Any log in the vocabulary of an answer: a boot, a running server, or both, with the launch command behind them.

What a boot printed is exact and comes first; what was measured fills in what it does not say. What has no key in the
vocabulary (occupancy, slots held, retractions) stands under `serving`.
"""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, PlainSerializer

from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import RefusedError
from sizing.bootlog import Boot
from sizing.bootlog.diagnosis import Diagnosis
from sizing.bootlog.line_records import Crashed, Decode, NoSlot
from sizing.bootlog.measure import Measured as Printed
from sizing.command import Command
from sizing.engine.request_slots import RequestSlots
from sizing.engine.unified import ENTRY_STEP
from sizing.engine.unified import HOST_STEP as ROW_STEP
from sizing.exchange.answer import ENGINE_REFUSES, Measured, Notice, Number, SizingAnswer
from sizing.exchange.log_answer import NO_SLOT, log_answer
from sizing.explain.unified_memory import UnifiedView, unified_in_force
from sizing.scenario.inputs import Scenario, changed
from sizing.server.comparison import Row, beside
from sizing.server.facts import RankFacts, ServerFacts
from sizing.server.inputs import inputs_of_server
from sizing.server.measured import Shares
from sizing.server.texts import Read
from sizing.server.unified_inputs import inputs_of_buffer
from sizing.server.verdict import Limits, died, verdict

AS_OBJECT = PlainSerializer(lambda row: row._asdict(), return_type=dict)  # with its names, not as a list


class Occupancy(BaseModel):
    """One pool over the time that was seen [-]."""

    model_config = ConfigDict(frozen=True)

    full: float | None
    """Share of the time in which it had no room for another request."""
    most: float | None
    """The most of it that was in use."""


class Serving(BaseModel):
    """One running server; of the rank that tells most, unless said otherwise."""

    model_config = ConfigDict(frozen=True)

    formats: tuple[str, ...]
    samples: int | None
    seconds: float | None
    state_pool: Occupancy | None
    kv_pool: Occupancy | None
    limit: int | None
    """The most requests that the engine runs."""
    limit_held: Annotated[Shares, AS_OBJECT] | None
    full_first: str | None
    """state or kv."""
    full_after_seconds: float | None
    slots_held: float | None
    slots_reserved: int | None
    slots_cached: float | None
    running_most: int | None
    queued_most: int | None
    length_in_use: int | None
    """KV tokens per running request: the L to size for."""
    retractions: int
    """Of all ranks."""
    retracted: int
    """Requests, of all ranks."""
    ended: tuple[str, ...]
    beside: tuple[Annotated[Row, AS_OBJECT], ...]


class LogFileAnswer(SizingAnswer):
    """Of `log`."""

    serving: Serving | None = None
    """None where the text says nothing of a running server."""


class Told(NamedTuple):
    """The answer, and what it was read from, for those that show more of it."""

    answer: LogFileAnswer
    sentences: tuple[str, ...]
    """The words of the answer, the headline first."""
    boot: Boot | None
    """The boot that counts: as printed, or in the words of a server that runs."""
    printed: bool
    """Whether that boot stands in the text."""
    found: Diagnosis | None
    sizing: Sizing | None
    """The deployment at the L that is stated, else at the length in use; None where it is not known."""
    why_not: str
    """Why a running server's deployment is not known: the end of a sentence; empty where it is."""

    @property
    def unified(self) -> UnifiedView | None:
        """Static beside unified memory, where the server runs with it and its deployment is known."""
        return unified_in_force(self.sizing) if self.sizing is not None else None


def told(
    read: Read, command: Command | None = None, L: int | None = None, model: str | None = None, **stated: Any
) -> Told:
    """Answer for what a text holds. Without `L` [tokens] no key is filled that depends on it.

    `model` is a name of the catalogue, "" for none; left out, the one that is named. `stated` holds what a user adds to
    a running server's words, such as state_bytes_per_slot. Raises nothing.
    """
    log, facts = read
    if facts is None:
        plain = log_answer(log, command, L, model)
        values = dict(plain.answer)
        return Told(LogFileAnswer(**values), plain.sentences, log.last, True, plain.found, _of(plain.found), "")
    one_buffer = facts.unified or bool(command and command.values.get("enable_unified_memory"))
    facts = facts if facts.unified or not one_buffer else _without_measured_slots(facts)
    at_L = {} if L is None else {"L": L}
    printed = log.last is not None and is_boot(log.last)
    base = log_answer(log, command, L, model)
    own = None
    if not printed or base.found is None or base.found.sizing is None:
        own = inputs_of_server(facts, command, model, **at_L, **stated)
    buffer = log.last if printed and log.last is not None and log.last.facts.unified is not None else None
    if buffer is not None:  # its lines say all that a boot says of two pools, but not as one
        found = inputs_of_buffer(buffer, facts.pools, command, model, **at_L, **stated)
        if found is not None:
            base, own = log_answer(log, command, L, model, found), None
        elif own is not None:  # the flags may be the server's own
            own = own._replace(
                diagnosis=inputs_of_buffer(own.boot, facts.pools, command, model, **at_L, **stated) or own.diagnosis
            )
    # A boot of which too little is left to solve it says less than a server that has all of it.
    if own is not None and (not printed or own.diagnosis.sizing is not None):
        boots = log._replace(kind="boots", boots=(own.boot,), problems=())
        base = log_answer(boots, command, L, model, own.diagnosis)
        printed = False
    boot = own.boot if own is not None and not printed else log.last
    sizing = _solved(base.found, L or facts.length_in_use)
    limits = _limits(facts, base.answer)
    known = _known(base.answer, facts, L, one_buffer=one_buffer)
    of_boot_alone = printed and not (facts.ranks or facts.ends or facts.info)  # the lines of one buffer
    said = "" if of_boot_alone else verdict(facts, sizing, limits)
    why_not = "" if printed or sizing is not None else own.why_not if own is not None else NO_DEPLOYMENT
    sentences = _sentences(facts, said, base.sentences if printed or base.found else (), base.found, why_not)
    answer = LogFileAnswer(
        **known | {"words": " ".join(sentences), "notices": _together(base.answer if boot else None, facts, limits)},
        unknown=tuple(name for name in _wanted(base.answer, L) if known.get(name) is None),
        serving=None if of_boot_alone else serving(facts, sizing, limits),
    )
    return Told(answer, sentences, boot, printed, base.found, sizing, why_not)


def _without_measured_slots(facts: ServerFacts) -> ServerFacts:
    """Of a server whose command asks for one buffer: what is counted there are the slots of all of it, and no K."""
    if facts.info is not None and any(rank.slots is not None for rank in facts.info.ranks):
        return facts
    unknown = {"slots": None, "slots_between": None, "S": None, "limit_kind": None}
    return facts.model_copy(update={"ranks": tuple(rank.model_copy(update=unknown) for rank in facts.ranks)})


def is_boot(boot: Boot) -> bool:
    """Whether a boot holds more than what a server prints while it runs, or ends."""
    return any(not isinstance(line.record, Decode | NoSlot | Crashed) for line in boot.lines)


def _of(found: Diagnosis | None) -> Sizing | None:
    return found.sizing if found else None


def _solved(found: Diagnosis | None, L: int | None) -> Sizing | None:
    """The deployment at so many tokens a request; None where either is not known."""
    scenario = found.scenario if found is not None and found.sizing is not None else None
    other = changed(scenario, L=L) if scenario is not None and L is not None else None
    try:
        return solve(other) if isinstance(other, Scenario) else None
    except RefusedError:
        return None


def _limits(facts: ServerFacts, base: SizingAnswer) -> Limits:
    """S and the requests that are admitted, as the boot has them, else as they were measured."""
    main = facts.main
    S = base.S if isinstance(base.S, int) else main.S if main else None
    clamp = base.clamp if isinstance(base.clamp, int) else None
    return Limits(S, facts.limit if facts.limit is not None else clamp)


def _known(base: SizingAnswer, facts: ServerFacts, L: int | None, *, one_buffer: bool) -> dict[str, Any]:
    """Every key as the boot gives it, what is missing there as measured; of a boot that was refused nothing was."""
    values = {name: value for name, value in base if name not in ("words", "notices", "unknown")}
    if base.refused is not None and base.status == ENGINE_REFUSES:
        return values
    values["refused"] = None  # no boot was found, and none is needed
    for name, value in _measured(facts, base, L, one_buffer=one_buffer).items():
        if values[name] is None or (isinstance(values[name], Measured) and value is not None):
            values[name] = value
    return values


NO_DEPLOYMENT = "add /server_info, or /metrics with the launch command, or the boot log"


def _sentences(
    facts: ServerFacts, said: str, of_boot: tuple[str, ...], found: Diagnosis | None, why_not: str
) -> tuple[str, ...]:
    """What was measured, then what the boot says, or why nothing follows for another split."""
    ended = any(end.why != "kv" for end in facts.ends)
    own = tuple(sentence for sentence in of_boot if not (ended and sentence == NO_SLOT))
    if why_not:
        own = (*(found.differ if found else ()), f"What another split would run is not known: {why_not}.")
    return tuple(sentence for sentence in (said, *own) if sentence)


def _wanted(base: SizingAnswer, L: int | None) -> Iterator[str]:
    """The keys that apply, in the order of the vocabulary."""
    yield from ("S", "D", "slots", "clamp", "kv_rows", "kv_tokens", *(("kv_cap",) if L is not None else ()))
    yield from ("runs", "binds", "rest_gib", "state_bytes_per_slot", "kv_bytes_per_token", "draft_kv_bytes_per_token")
    yield from ("token_equiv", *(("r_star", "best") if L is not None else ()))


def serving(facts: ServerFacts, sizing: Sizing | None = None, limits: Limits | None = None) -> Serving:
    """The further keys."""
    main, limits = facts.main, limits or _limits(facts, SizingAnswer(words=""))
    return Serving(
        formats=facts.formats,
        samples=main.samples if main else None,
        seconds=main.seconds if main else None,
        state_pool=Occupancy(full=main.state_full, most=main.peaks.state) if main else None,
        kv_pool=Occupancy(full=main.kv_full, most=main.peaks.kv) if main else None,
        limit=facts.limit,
        limit_held=main.shares if main else None,
        full_first=main.first.pool if main and main.first else None,
        full_after_seconds=main.first.after if main and main.first else None,
        slots_held=main.held if main else None,
        slots_reserved=sizing.S if sizing else limits.S,
        slots_cached=main.cached if main else None,
        running_most=main.peaks.running if main else None,
        queued_most=main.peaks.queued if main else None,
        length_in_use=facts.length_in_use,
        retractions=facts.retractions,
        retracted=facts.retracted,
        ended=tuple(died(end, limits) for end in facts.ends),
        beside=beside(facts, sizing) if sizing else (),
    )


def _measured(facts: ServerFacts, base: SizingAnswer, L: int | None, *, one_buffer: bool) -> dict[str, Any]:
    main = facts.main
    slots: Number = facts.slots
    if slots is None and main and main.slots_between and not one_buffer:
        slots = _band(main.slots_between)
    tokens: Number = main.kv_tokens if main else facts.info.tokens if facts.info else None
    if tokens is None and main and main.kv_tokens_between:
        tokens = _band(main.kv_tokens_between)
    S = base.S if isinstance(base.S, int) else main.S if main else None
    held = base.kv_tokens if base.kv_tokens is not None else tokens
    cap = held // L if isinstance(held, int) and L else None
    limit = facts.limit
    runs = limit if L is None else None if limit is None or cap is None or one_buffer else min(limit, cap)
    return {
        "S": S,
        "slots": slots,
        "clamp": RequestSlots(S).requests(slots) if S and isinstance(slots, int) else None,
        "kv_tokens": tokens,
        "kv_cap": cap,
        "runs": runs,
        "binds": _binds(main, limit, cap) if runs is not None else None,
        "L": L,
        **_entries(facts, base),
    }


def _entries(facts: ServerFacts, base: SizingAnswer) -> dict[str, Any]:
    """Bytes by the entries of a unified buffer, where no draft is fused into them (running-server.md 2.2, 5)."""
    pool = facts.pools[0] if len(facts.pools) == 1 else None
    if pool is None or base.D != 0:
        return {}
    entry = pool.kv_entry_bytes
    least = Measured(value=entry, low=entry - ENTRY_STEP + ROW_STEP, high=entry) if entry else None
    told = {"state_bytes_per_slot": pool.state_entry_bytes, "kv_bytes_per_token": least}
    return {name: value for name, value in told.items() if getattr(base, name) is None}


def _binds(main: RankFacts | None, limit: int | None, cap: int | None) -> str | None:
    if limit is not None and cap is not None and cap < limit:
        return "kv"
    return main.limit_kind if main else None


def _band(printed: Printed) -> Measured:
    return Measured(value=printed.value, low=printed.low, high=printed.high)


def _together(base: SizingAnswer | None, facts: ServerFacts, limits: Limits) -> tuple[Notice, ...]:
    """The notices of both, one a code: of a running server first, which tells more."""
    both = (*_notices(facts, limits), *(base.notices if base is not None else ()))
    return tuple({notice.about: notice for notice in reversed(both)}.values())[::-1]


def _notices(facts: ServerFacts, limits: Limits) -> Iterator[Notice]:
    if facts.starts:
        yield Notice(about="several_boots", words="More than one run of the server: the last counts.")
    if len({rank.source for rank in facts.ranks}) > 1:
        words = "Lines of several servers: the answer is for the one in which requests waited longest."
        yield Notice(about="several_servers", words=words)
    if facts.ends:
        yield Notice(about="died_later", words=" ".join(died(end, limits) for end in facts.ends))
