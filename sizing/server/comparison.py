"""Prediction beside measurement, quantity by quantity, with what explains a difference.

Source: running-server.md 2.3, 4.4 and 6.5: what a running request holds, and who else holds slots.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sizing.answers.solve import Sizing
from sizing.basics.units import count, number, percent
from sizing.engine.split import Split
from sizing.engine.unified import held_slots
from sizing.explain.unified_memory import UnifiedView, unified_in_force
from sizing.server.facts import RankFacts, ServerFacts

CLOSE = 0.25  # slots per request: what requests that are just beginning or ending make of a mean
WITHIN = 0.05  # of a predicted number
AGREES = ""


class Row(NamedTuple):
    """One quantity."""

    quantity: str
    predicted: str
    measured: str
    why: str
    """Empty where they agree."""


def beside(facts: ServerFacts, sizing: Sizing) -> tuple[Row, ...]:
    """Every quantity that both know; empty where the scenario does not boot."""
    main, split = facts.main, sizing.now
    if not isinstance(split, Split):
        return ()
    return (*_pools(facts, split), *(_serving(main, sizing, split) if main else ()))


def _pools(facts: ServerFacts, split: Split) -> Iterator[Row]:
    main = facts.main
    if facts.slots is not None:
        yield Row("K, state slots", count(split.slots), count(facts.slots), _exact(split.slots, facts.slots))
    elif main and main.slots_between and not facts.unified:
        between = main.slots_between
        open_ = f"{count(-int(-between.low // 1))} to {count(int(between.high // 1))}"
        why = AGREES if between.holds(split.slots) else "another pin, ratio or rest than these inputs have"
        yield Row("K, state slots", count(split.slots), open_, why)
    if main and main.kv_tokens is not None:
        tokens = {split.kv_tokens, split.kv_rows}
        agrees = main.kv_tokens in tokens
        why = AGREES if agrees else _exact(split.kv_tokens, main.kv_tokens)
        yield Row("KV tokens", count(main.kv_tokens if agrees else split.kv_tokens), count(main.kv_tokens), why)
    if facts.limit is not None:
        why = (
            AGREES if facts.limit == split.admitted else "another --max-running-requests, S or K than these inputs have"
        )
        yield Row("max_running_requests", count(split.admitted), count(facts.limit), why)


def _exact(predicted: int, measured: int) -> str:
    return AGREES if predicted == measured else "another pin, ratio or rest than these inputs have"


def _serving(main: RankFacts, sizing: Sizing, split: Split) -> Iterator[Row]:
    held, one = held_slots(sizing.scenario), unified_in_force(sizing)
    if main.held is not None:
        yield Row(
            "state slots per running request",
            f"{held} held, {sizing.S} reserved",
            number(main.held, 1),
            _held_why(main.held, held, sizing.S),
        )
    if main.cached is not None and one is None:  # one buffer has no slots apart from KV: what is left is not fixed
        left = max(split.slots - split.admitted * held, 0)
        why = AGREES if abs(main.cached - left) <= WITHIN * split.slots else _cached_why(main.cached, left)
        yield Row("slots of idle sessions", f"{count(left)} where all rows run", number(main.cached, 0), why)
    if main.tokens_per_request:
        L, used = sizing.scenario.L, main.tokens_per_request
        why = AGREES if abs(used - L) <= WITHIN * L else _length_why(used, L)
        yield Row("KV tokens per running request", count(L), count(-int(-used // 1)), why)
    if main.peaks.running is not None:
        runs = one.runs if one else split.runs
        why = AGREES if main.peaks.running == runs else _runs_why(main, runs)
        yield Row("requests that run", count(runs), f"{count(main.peaks.running)} at most", why)
    if one is not None:
        yield from _of_the_buffer(main, one)
        return
    if main.peaks.state is not None:
        predicted = min(split.runs * held / split.slots, 1.0)
        why = AGREES if abs(main.peaks.state - predicted) <= WITHIN else _state_why(main, predicted)
        yield Row("state pool in use", percent(predicted), f"{percent(main.peaks.state)} at most", why)
    if main.peaks.kv is not None:
        predicted = split.runs * sizing.scenario.L / split.kv_tokens
        why = AGREES if abs(main.peaks.kv - predicted) <= WITHIN else _kv_why(main, predicted)
        yield Row("KV pool in use", percent(min(predicted, 1.0)), f"{percent(main.peaks.kv)} at most", why)


def _held_why(measured: float, held: int, S: int) -> str:
    if abs(measured - held) <= CLOSE:
        return f"S = {S} counts one more, the peak between prefill and decode" if held < S else AGREES
    if measured > held:
        return "more than decoding needs: states locked in the tree by chunks and by requests that are being admitted"
    return "less: requests that share a prefix lock one state together, or SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK is set"


def _cached_why(measured: float, left: int) -> str:
    if measured > left:
        return "fewer requests run than rows allow, and sessions kept warm fill the slots that these leave"
    return "fewer sessions are kept warm than there is room for: few finished, or KV ran short and evicted them"


def _length_why(used: float, L: int) -> str:
    if used < L:
        return (
            "a request holds its prompt and what it has generated so far, half of its output on average, not all of L"
        )
    return "requests are longer than the L of these inputs"


def _of_the_buffer(main: RankFacts, one: UnifiedView) -> Iterator[Row]:
    """The states' share of the slots that the whole buffer would hold, which is what the engine prints there (2.4)."""
    slots = one.found.total_bytes // one.found.state_entry_bytes - 1
    if main.peaks.state is None or slots <= 0:
        return
    predicted = min(one.runs * one.found.held / slots, 1.0)
    why = AGREES if abs(main.peaks.state - predicted) <= WITHIN else _state_why(main, predicted)
    yield Row("states' share of the buffer", percent(predicted), f"{percent(main.peaks.state)} at most", why)


def _runs_why(main: RankFacts, runs: int) -> str:
    if main.peaks.running is not None and main.peaks.running > runs:
        return "the engine admits more than KV holds at L, and retracts when KV is full"
    if main.shares is not None and main.shares.most == "none":
        return "no request waited: more did not come"
    return "held back before that: see which limit held"


def _state_why(main: RankFacts, predicted: float) -> str:
    if main.peaks.state is not None and main.peaks.state > predicted:
        return "states locked in the tree, tracking and copies of requests that are being admitted come on top"
    return "fewer requests ran, or they hold fewer slots each"


def _kv_why(main: RankFacts, predicted: float) -> str:
    if main.peaks.kv is not None and main.peaks.kv > predicted:
        return "requests are longer than L, or more of them ran"
    return "requests hold less than L while they run, or fewer ran"
