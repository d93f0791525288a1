"""Turns of conversations: what a row's input is, and the contexts that follow.

A turn's context is what came before it plus what it adds. Rows hold either the whole of it (the traces of Bailian, what
a server counts as prompt tokens) or what the turn adds alone (a Mooncake session as AIPerf replays it), and some
benchmarks write the first turn's length for all of them (bench_serving of SGLang before 0.5.21).
"""

from typing import Literal, NamedTuple

import numpy as np

from sizing.basics.problems import shown
from sizing.traffic.formats import Context
from sizing.traffic.mix import MAX_LENGTH, Array, TrafficNotice
from sizing.traffic.rows import Requests, Rows, Turns
from sizing.traffic.trace_file import TraceFile

MOST = 0.9  # [-] of the turns that follow another, for what holds for all of them in a file without slips
HALF = 0.5
Asked = Literal["whole", "added"]
_LOWER = "so the lengths are a lower bound: contexts may be longer"


class Linked(NamedTuple):
    """Requests with the contexts of their turns, and what there is to say."""

    requests: Requests
    said: TrafficNotice | None
    note: str = ""


def linked(
    file: TraceFile,
    requests: Requests,
    turns: Turns,
    name: str,
    context: Context,
    asked: Asked | None,
    start: Array | None = None,
) -> Linked:
    """Requests of which rows are turns; `context` is what the format says of them, `asked` what the user says.

    Turns follow each other by their numbers, else by when they came (`start` [s]), else as the file has them.

    Raises TraceError where a context becomes longer than any request.
    """
    outputs = requests.outputs
    if outputs is None:
        return Linked(requests, None)
    session = numbered(turns.session)
    order = np.lexsort((_ordered(turns.turn, start, len(session)), session))
    session, inputs, outputs = session[order], np.ma.getdata(requests.inputs)[order], np.ma.getdata(outputs)[order]
    after = np.flatnonzero(session[1:] == session[:-1]) + 1  # turns that follow another
    if not len(after):
        return Linked(requests, None)
    first = None if turns.first is None else turns.first[order]
    held = asked or _judged(inputs, outputs, after, first, context, ordered=turns.ordered)
    sessions = int(len(session) - len(after))
    of = f"Rows are turns of {sessions:,} session{'s' if sessions != 1 else ''}{f' ({shown(name)})' if name else ''}"
    if held == "whole":
        return Linked(requests, None, f"{of}, each with its whole context.")
    if held == "added":
        contexts = np.empty(len(order), np.int64)
        contexts[order] = _added_up(file, session, inputs, outputs)
        return Linked(
            Requests(contexts, requests.outputs, None),
            TrafficNotice(
                "multi_turn",
                f"{of} that hold what a turn adds: the context of each is what came before plus what it adds. Taken as "
                f"they stand (--turns whole) their mean would be {(inputs + outputs).mean():,.0f} tokens.",
            ),
        )
    why = {
        "first": "and all turns of a session carry the same input, the first turn's perhaps",
        "unclear": "and whether an input is the whole context or what the turn adds cannot be told",
    }[held]
    return Linked(
        requests,
        TrafficNotice("multi_turn", f"{of}, {why}: taken as they stand, {_LOWER} (--turns added adds the turns up)."),
    )


def _judged(
    inputs: Array, outputs: Array, after: Array, first: Array | None, context: Context, *, ordered: bool
) -> Literal["whole", "added", "first", "unclear"]:
    """What an input is, by what the format says and the turns that follow another show."""
    if context == "whole":
        return "whole"
    if first is not None:
        known = ~(np.ma.getmaskarray(first)[after] | np.ma.getmaskarray(first)[after - 1])
        if known.mean() >= HALF:  # a prompt that goes on from another begins with the same block
            begins = np.ma.getdata(first)
            alike = (begins[after] == begins[after - 1])[known].mean()
            return "whole" if alike >= HALF else "added"
    if context == "added":
        return "added"
    now, before = inputs[after].astype(np.int64), inputs[after - 1].astype(np.int64)
    if (now >= before + outputs[after - 1]).mean() >= MOST:
        return "whole"
    if context == "added unless they grow":
        return "added"
    if (now == before).mean() >= MOST:
        return "first"
    return "added" if ordered and (now < before).mean() >= HALF else "unclear"


def numbered(session: Array) -> Array:
    """Sessions by number; a row that names none is one of its own."""
    mask = np.ma.getmaskarray(session)
    _, numbers = np.unique(np.ma.getdata(session), return_inverse=True)
    return np.where(mask, len(session) + np.arange(len(session)), numbers)


def _ordered(turn: Array | None, start: Array | None, size: int) -> Array:
    """What orders the turns of a session."""
    if turn is not None and not np.ma.is_masked(turn):
        return np.ma.getdata(turn)
    return np.arange(size) if start is None else start


def _added_up(file: TraceFile, session: Array, inputs: Array, outputs: Array) -> Array:
    """Inputs with all that came before them in their session [tokens]; rows stand by session and turn."""
    ends = np.cumsum(inputs.astype(np.int64) + outputs)
    starts = np.flatnonzero(np.concatenate(([True], session[1:] != session[:-1])))
    before = np.concatenate(([0], ends))[starts]
    contexts = ends - np.repeat(before, np.diff(np.append(starts, len(session))))
    if (longest := int(contexts.max())) > MAX_LENGTH:
        file.fail(
            f"adds up to a context of {longest:,} tokens in one session, above the largest length of {MAX_LENGTH:,}: "
            "its rows may be whole contexts (--turns whole)."
        )
    return (contexts - outputs).astype(np.int64)


def first_turns(inputs: Array) -> bool:
    """Whether inputs come in runs of equal ones, as rounds do that all carry the first one's length."""
    if len(inputs) < 4 or (inputs == inputs[0]).all():
        return False
    changes = np.flatnonzero(np.concatenate(([True], inputs[1:] != inputs[:-1], [True])))
    return bool((np.diff(changes) >= 2).all())


def from_messages(file: TraceFile, rows: Rows) -> tuple[Requests, str]:
    """The requests of conversations given as messages with their tokens, and a sentence on them.

    Each answer is a request: its context is all that stands before it in its conversation. Raises TraceError.
    """
    assert rows.turns is not None
    assert rows.answers is not None
    answers, tokens = np.ma.getdata(rows.answers).astype(bool), np.ma.getdata(rows.requests.inputs)
    session = numbered(rows.turns.session)
    order = np.argsort(session, kind="stable")
    contexts = _added_up(file, session[order], tokens[order], np.zeros_like(tokens))
    before, answers, tokens = contexts - tokens[order], answers[order], tokens[order]
    kept = answers & (contexts > 0)
    if not kept.any():
        file.fail("holds no answer of a model: give conversations with the tokens of every message.", "columns")
    said = "Each answer of a conversation is a request, and its context all that stands before it."
    return Requests(before[kept], tokens[kept], None), said
