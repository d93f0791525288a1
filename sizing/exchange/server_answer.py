"""What a running server tells, in the vocabulary of an answer, and what has no key there in further ones."""

from typing import Any

from pydantic import BaseModel, ConfigDict

from sizing.answers.solve import Sizing
from sizing.bootlog.measure import Measured as Printed
from sizing.exchange.answer import Measured, Notice, Number, SizingAnswer
from sizing.exchange.sizing_answer import sizing_answer
from sizing.server.beside import Row, beside
from sizing.server.facts import RankFacts, ServerFacts
from sizing.server.measured import Shares
from sizing.server.verdict import died, verdict


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
    limit_held: Shares | None
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
    beside: tuple[Row, ...]


def serving(facts: ServerFacts, sizing: Sizing | None = None) -> Serving:
    """The further keys."""
    main = facts.main
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
        slots_reserved=sizing.S if sizing else main.S if main else None,
        slots_cached=main.cached if main else None,
        running_most=main.peaks.running if main else None,
        queued_most=main.peaks.queued if main else None,
        length_in_use=facts.length_in_use,
        retractions=facts.retractions,
        retracted=facts.retracted,
        ended=tuple(died(end, facts) for end in facts.ends),
        beside=beside(facts, sizing) if sizing else (),
    )


def server_answer(facts: ServerFacts, *, L: int | None = None, sizing: Sizing | None = None) -> SizingAnswer:
    """The vocabulary's keys: as measured where they were, else as the solved scenario gives them, else unknown."""
    base = sizing_answer(sizing) if sizing else SizingAnswer(words="")
    known = {name: value for name, value in _measured(facts, L).items() if value is not None}
    values = {**base.model_dump(include=set(SizingAnswer.model_fields) - {"unknown", "notices"}), **known}
    values["words"] = verdict(facts, sizing)
    keys = ("S", "slots", "clamp", "kv_tokens", "runs", "rest_gib", "state_bytes_per_slot", "kv_bytes_per_token")
    return SizingAnswer(
        **values,
        unknown=tuple(name for name in keys if values.get(name) is None),
        notices=(*base.notices, *_notices(facts)),
    )


def _measured(facts: ServerFacts, L: int | None) -> dict[str, Any]:
    main = facts.main
    slots: Number = facts.slots
    if slots is None and main and main.slots_between and not facts.unified:
        slots = _band(main.slots_between)
    tokens: Number = main.kv_tokens if main else facts.info.tokens if facts.info else None
    if tokens is None and main and main.kv_tokens_between:
        tokens = _band(main.kv_tokens_between)
    cap = tokens // L if isinstance(tokens, int) and L else None
    limit = facts.limit
    runs = min(limit, cap) if limit is not None and cap is not None else limit
    return {
        "S": main.S if main else None,
        "slots": slots,
        "clamp": facts.slots // main.S if main and main.S and facts.slots is not None else None,
        "kv_tokens": tokens,
        "kv_cap": cap,
        "runs": runs,
        "binds": _binds(main, limit, cap),
        "L": L,
    }


def _binds(main: RankFacts | None, limit: int | None, cap: int | None) -> str | None:
    if limit is None or (cap is not None and cap < limit):
        return "kv" if cap is not None else None
    return main.limit_kind if main else None


def _band(printed: Printed) -> Measured:
    return Measured(value=printed.value, low=printed.low, high=printed.high)


def _notices(facts: ServerFacts) -> tuple[Notice, ...]:
    found = []
    if facts.starts:
        found.append(Notice(about="several_boots", words="More than one run of the server: the last counts."))
    if len({rank.source for rank in facts.ranks}) > 1:
        words = "Lines of several servers: the answer is for the one in which requests waited longest."
        found.append(Notice(about="several_servers", words=words))
    if facts.ends:
        found.append(Notice(about="died_later", words=" ".join(died(end, facts) for end in facts.ends)))
    return tuple(found)
