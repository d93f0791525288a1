"""The verdict on a running server, in one or two sentences, number first."""

from collections.abc import Iterator
from typing import NamedTuple

from sizing.answers.recommended import recommended
from sizing.answers.solve import Sizing
from sizing.basics.units import count, number, percent, requests_text
from sizing.engine.request_slots import SPARE_FORMULA, RequestSlots
from sizing.engine.split import Split
from sizing.explain.unified_memory import unified_in_force
from sizing.releases.flags import RATIO
from sizing.server.facts import RankFacts, ServerFacts
from sizing.server.reading import Ended

DIED = {
    "new request": "The server ended because a new request found no state slot, with KV free or not",
    "chunk border": "The server ended because a chunk border needs one more state slot and all were locked, with KV "
    "free or not",
    "kv": "A request was aborted because KV was full and no other was left to retract",
}


class Limits(NamedTuple):
    """What bounds the requests that run."""

    S: int | None
    requests: int | None


def verdict(facts: ServerFacts, sizing: Sizing | None = None, limits: Limits | None = None) -> str:
    """What held the server back, what would run instead, and the slots that a request holds.

    `sizing` is the same deployment solved at the length in use, `limits` what is known of it besides.
    """
    main = facts.main
    limits = limits or Limits(main.S if main else None, facts.limit)
    return " ".join((*_occupancy(facts, sizing, limits), *(died(end, limits) for end in facts.ends))) or (
        "The server says what it is, and nothing of its load: add /metrics, or lines of its log."
    )


def died(end: Ended, limits: Limits) -> str:
    """Why a server died with free KV, and the pin that prevents it: one slot more than S for each request."""
    words = DIED[end.why]
    if end.why == "kv":
        return f"{words}: that request is longer than the pool. Raise KV, or lower --context-length."
    S, requests = limits
    if requests is not None and S is not None:
        each = RequestSlots(S)
        pin = f"{each.product(count(requests), 1, letter='')} = {count(each.slots(requests) + 1)}"
    else:
        pin = f"{SPARE_FORMULA}, C the requests that run and S the slots that each may hold"
    return f"{words}: set --max-mamba-cache-size to at least {pin}."


def _occupancy(facts: ServerFacts, sizing: Sizing | None, limits: Limits) -> Iterator[str]:
    main = facts.main
    if main is None:
        return
    if main.shares is None:
        if main.peaks.queued is not None:
            waited = f"{requests_text(main.peaks.queued)} waited at most" if main.peaks.queued else "No request waited"
            yield f"{waited}; which pool was short is not said: add /metrics, or lines of its log."
        return
    tail = [*_better(sizing), *_held(main, sizing.S if sizing else limits.S)]
    yield f"{_limit(main)}{': ' + '; '.join(tail) if tail else ''}."
    yield from _length(sizing, facts.length_in_use)
    if facts.retracted:
        times = "once" if facts.retractions == 1 else f"{count(facts.retractions)} times"
        how = f" {times}" if facts.retractions else ""
        requests = "1 request was" if facts.retracted == 1 else f"{count(facts.retracted)} requests were"
        yield f"KV ran full{how} and {requests} put back."


def _limit(main: RankFacts) -> str:
    assert main.shares is not None
    most = main.shares.most
    if most == "state":
        return f"State pool admitted nobody {percent(main.state_full or 0)} of the time, {_never('KV', main.peaks.kv)}"
    if most == "kv":
        return f"KV short {percent(main.kv_full or 0)} of the time, {_never('state pool', main.peaks.state)}"
    if most == "cap":
        cap = f"The cap of {count(main.limit)} requests" if main.limit else "A cap on requests"
        pools = f"{_never('state pool', main.peaks.state)}, {_never('KV', main.peaks.kv)}"
        return f"{cap} held {percent(main.shares.cap)} of the time, {pools}"
    pools = f"{_never('state pool', main.peaks.state)}, {_never('KV', main.peaks.kv)}"
    if most == "other":
        return f"Requests waited {percent(main.shares.other)} of the time with neither pool short, {pools}"
    return f"No request waited: {pools}"


def _never(pool: str, share: float | None) -> str:
    return f"{pool} not said" if share is None else f"{pool} never above {percent(share)}"


def _better(sizing: Sizing | None) -> Iterator[str]:
    """The split that runs more at the length in use, where there is one."""
    if sizing is None or sizing.optimum is None or not isinstance(sizing.now, Split):
        return
    found, one = recommended(sizing), unified_in_force(sizing)
    if one is not None:
        if one.change and one.best is not None:
            ratio = one.flags[-1].removeprefix(RATIO).strip()
            yield f"r = {ratio} runs {count(one.most)} at L = {count(sizing.scenario.L)}"
    elif found is not None and found.change and found.after[0] > sizing.now.runs:
        what = found.flag
        if what.startswith(f"{RATIO} ") and len(found.flags) == 1:
            what = f"r = {what.removeprefix(RATIO).strip()}"
        yield f"{what} runs {count(found.after[0])} at L = {count(sizing.scenario.L)}"


def _length(sizing: Sizing | None, in_use: int | None) -> Iterator[str]:
    """That requests are of another length than the one that the numbers are for."""
    if sizing is not None and in_use is not None and in_use != sizing.scenario.L:
        yield f"Requests hold {count(in_use)} tokens each: the L to size for, not {count(sizing.scenario.L)}."


def _held(main: RankFacts, reserved: int | None) -> Iterator[str]:
    if main.held is not None:
        yield f"held {number(main.held, 1)} slots a request" + (f", {reserved} reserved" if reserved else "")
