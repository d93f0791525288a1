"""The requests of a file with a row each, or with a row a length and how often it occurs."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from typing import Any, NamedTuple, TypeVar

import duckdb
import numpy as np

from sizing.basics.problems import shown
from sizing.traffic.duckdb_file import Opened, View
from sizing.traffic.formats import ANSWERS, Clock, Plan
from sizing.traffic.layouts import Sign
from sizing.traffic.mix import MAX_LENGTH, Array

MAX_REQUESTS = 40_000_000  # rows: they stay below 2 GiB of memory, measured with tests/bench/traffic.py
MAX_COUNT = 2**31 - 1  # of one row of a histogram
_POLL = 0.1  # seconds
_SHOWN = 20  # column names in a sentence
_TEXT = re.compile(r"[^\W\d_]\s|^\s*\[?\s*\{")  # words, or messages, where a length is looked for

Progress = Callable[[float], object]
Result = TypeVar("Result")


class Requests(NamedTuple):
    """Requests in the order of the file."""

    inputs: Array
    """[tokens]; input + output where `outputs` is None."""
    outputs: Array | None
    times: Array | None
    """How many requests each row stands for; None for one."""


class Turns(NamedTuple):
    """What links rows to conversations, in the order of the file; each may be masked where the file has nothing."""

    session: Array
    """A number for each session."""
    turn: Array | None
    """What orders its turns; None for the order of the file."""
    first: Array | None
    """A number for the first block of each prompt, the same for prompts that begin alike."""
    ordered: bool
    """Whether the file says which turn comes after which."""


class Clocks(NamedTuple):
    """When requests came and ended, in the order of the file [s]; NaN where the file does not say."""

    start: Array
    end: Array | None
    """None where nothing says when any ended."""


class Rows(NamedTuple):
    """What a file holds."""

    requests: Requests
    failed: int
    """Requests that failed, and are left out."""
    turns: Turns | None
    clocks: Clocks | None = None
    answers: Array | None = None
    """Where rows are messages of conversations, whether each is an answer."""


FALSE = ("false", "0", "0.0", "no", "f")
TRUE = ("true", "1", "1.0", "yes", "t")
EMPTY = ("", "null", "none", "nan", "false", "0", "0.0", "-", "no", "{}", "[]", '""')
BROKEN = "^(err|fail|cancel|abort|incomplete|time.?d?.?out|reject|drop)"  # how the words of a status begin


def fails(sign: Sign, text: str) -> str:
    """SQL that is true for a request that failed, by a column's text; false where it says nothing."""
    plain = f"lower(trim({text}))"
    found = {
        "filled": f"{plain} NOT IN {EMPTY}",
        "true": f"{plain} IN {TRUE}",
        "false": f"{plain} IN {FALSE}",
        "status": f"(regexp_matches({plain}, '{BROKEN}') OR TRY_CAST({plain} AS DOUBLE) >= 400)",
        "code": f"TRY_CAST({plain} AS DOUBLE) NOT BETWEEN 100 AND 399",
        "span": f"{plain} IN ('2', 'status_code_error')",
        "zero": f"TRY_CAST({plain} AS DOUBLE) = 0",
    }
    return f"coalesce({found[sign]}, false)"


def rows_of(trace: Opened, plan: Plan, progress: Progress | None) -> Rows:
    """Reads what the plan names and checks every value; raises TraceError for the first row that is none of a trace."""
    lengths = [plan.input] if plan.output is None else [plan.input, plan.output]
    read = [*lengths, plan.times] if plan.times else lengths
    bounds = [MAX_LENGTH] * len(lengths) + [MAX_COUNT] * (len(read) - len(lengths))
    beside = [plan.session, plan.turn, plan.hashes, *(clock.place for clock in _clocks(plan)), plan.speaker]
    linked = [place for place in beside if place and not plan.times]
    places = [*read, *(place for place, _ in plan.failed), *linked, *([plan.only] if plan.only else [])]
    view = trace.view(places)
    checks = view.texts[len(read) : len(read) + len(plan.failed)]
    bad = " OR ".join(fails(sign, text) for text, (_, sign) in zip(checks, plan.failed, strict=True))
    texts = dict(zip(map(id, linked), view.texts[len(read) + len(checks) :], strict=False))
    if plan.only:
        view = view._replace(rows=f"(FROM {view.rows} WHERE {_is_request(plan, view)})")
    links = _links(plan, texts) | _times(plan, texts)
    numbers = [f"{view.numbers[at]} AS n{at}" for at in range(len(read))]
    inner = ", ".join(
        [*numbers, *(f"{sql} AS {name}" for name, sql in links.items()), *([f"{bad} AS bad"] if bad else [])]
    )
    wholes = ", ".join([*(f"{_whole(f'n{at}', bound)} AS v{at}" for at, bound in enumerate(bounds)), *links])
    where = " WHERE NOT bad" if bad else ""
    query = f"SELECT {wholes} FROM (SELECT {inner} FROM {view.rows}){where} LIMIT {MAX_REQUESTS + 1}"
    faults = _Faults(trace, view, plan.named, bounds, bad)
    try:
        found = waited(trace, lambda: _fetched(trace, query), progress)
    except duckdb.ConversionException:  # where it reads CSV straight into numbers, what is none does not turn to NULL
        _name_fault(faults)
        raise
    values = [found[f"v{at}"] for at in range(len(read))]
    failed = _failed(trace, view, bad) + sum(trace.counted(place) for place in plan.failed_lists)
    if not len(values[0]):
        trace.file.fail(
            "holds no request that succeeded: give a run that did."
            if failed
            else "names columns and holds no requests: give one with a row a request."
        )
    if len(values[0]) > MAX_REQUESTS:
        trace.file.fail(
            f"holds more than {MAX_REQUESTS:,} rows: give a histogram of it, with the columns input, output and count.",
            "too_large",
        )
    times = values[len(lengths)] if plan.times else None
    least = 0 if plan.speaker else 1
    masked = any(np.ma.is_masked(column) for column in values)
    if masked or not _in_bounds(values[: len(lengths)], times, least):
        _name_fault(faults)
    requests = Requests(values[0], None if plan.output is None else values[1], times)
    ordered = plan.turn is not None or plan.turns_in_list
    turns = Turns(found["session"], found.get("turn"), found.get("first"), ordered) if "session" in found else None
    answers = found["answer"] if plan.speaker else None
    return Rows(requests, failed, turns, _read_clocks(found), answers)


def _clocks(plan: Plan) -> list[Clock]:
    """The times that are read: when a request came, and when it ended or how long it took."""
    if plan.start is None:
        return []
    after = plan.end or plan.took
    return [plan.start, *([after] if after else [])]


def _times(plan: Plan, texts: dict[int, str]) -> dict[str, str]:
    """SQL for times [s], by the name they get; empty where rows have none."""
    clocks = [] if plan.times else _clocks(plan)
    names = ("came", "ended" if plan.end else "took")
    return {name: _second(texts[id(clock.place)], clock.unit, name) for name, clock in zip(names, clocks, strict=False)}


def _second(text: str, unit: float | None, name: str) -> str:
    """SQL for a time [s]: a number in its unit, or a date. Without a unit the size of a number shows that of an epoch;
    nothing shows that of a shorter one.
    """
    number = f"TRY_CAST({text} AS DOUBLE)"
    if unit is not None:
        return f"coalesce({number} * {unit!r}, epoch(TRY_CAST({text} AS TIMESTAMP)))"
    if name == "took":
        return "NULL::DOUBLE"
    epoch = " ".join(f"WHEN {number} >= {least!r} THEN {number} * {second!r}" for least, second in _EPOCHS)
    return f"CASE {epoch} ELSE epoch(TRY_CAST({text} AS TIMESTAMP)) END"


_EPOCHS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3), (1e8, 1.0))  # of 1973 and later, and the unit [s]


def _read_clocks(found: dict[str, Array]) -> Clocks | None:
    if "came" not in found:
        return None
    came, ended, took = (
        np.ma.filled(found[name].astype(np.float64), np.nan) if name in found else None
        for name in ("came", "ended", "took")
    )
    return Clocks(came, ended if took is None else came + took)


def _is_request(plan: Plan, view: View) -> str:
    """SQL for whether a record is a request, where a file has others too."""
    calls = ", ".join(f"'{word}'" for word in plan.calls)
    return f"coalesce({view.texts[-1]} IN ({calls}), {view.texts[0]} IS NOT NULL)"


def _links(plan: Plan, texts: dict[int, str]) -> dict[str, str]:
    """SQL for what links turns, by the name it gets; empty where nothing does."""
    if plan.times or (plan.session is None and not plan.turns_in_list and not plan.speaker):
        return {}
    text = texts[id(plan.session)] if plan.session else "owner"
    found = {"session": f"CASE WHEN {text} IS NOT NULL THEN hash({text}) END"}
    if plan.speaker:
        words = ", ".join(f"'{word}'" for word in ANSWERS)
        found["answer"] = f"coalesce(lower(trim({texts[id(plan.speaker)]})) IN ({words}), false)"
    if plan.turn:
        found["turn"] = f"TRY_CAST({texts[id(plan.turn)]} AS DOUBLE)"
    if plan.hashes:
        text = texts[id(plan.hashes)]
        found["first"] = f"CASE WHEN json_valid({text}) THEN hash(json_extract_string({text}, '$[0]')) END"
    return found


def _failed(trace: Opened, view: View, bad: str) -> int:
    if not bad:
        return 0
    query = f"SELECT count(*) FILTER (bad) FROM (SELECT {bad} AS bad FROM {view.rows})"
    return int(trace.connection.execute(query, [trace.pattern]).fetchone()[0])


def waited(trace: Opened, work: Callable[[], Result], progress: Progress | None) -> Result:
    """What `work` gives, which queries the file meanwhile; `progress` is told its share, 0 to 1, in this thread."""
    if progress is None:
        return work()
    with ThreadPoolExecutor(1) as worker:
        done = worker.submit(work)
        try:
            while True:
                try:
                    return done.result(_POLL)
                except NotYetError:
                    progress(min(max(trace.connection.query_progress() / 100, 0.0), 1.0))
        except BaseException:  # the page may be left or run again while it reads
            trace.connection.interrupt()
            raise


def _fetched(trace: Opened, query: str) -> dict[str, Array]:
    """The columns of a query over the file; masked where a value is NULL."""
    found: dict[str, Array] = trace.connection.execute(query, [trace.pattern]).fetchnumpy()
    return found


def _whole(number: str, most: int) -> str:
    """SQL for a number where it is whole and from 0 to `most`, NULL for anything else; 12.0 is whole."""
    return f"CASE WHEN {number} BETWEEN 0 AND {most} AND {number} = floor({number}) THEN {number}::INTEGER END"


def _in_bounds(lengths: list[Array], times: Array | None, least: int) -> bool:
    totals = lengths[0] if len(lengths) == 1 else lengths[0] + lengths[1]
    return bool(totals.min() >= least and totals.max() <= MAX_LENGTH and (times is None or times.min() > 0))


class _Faults(NamedTuple):
    """What is needed to find the first row at fault."""

    trace: Opened
    view: View
    names: tuple[str, ...]
    bounds: list[int]
    bad: str


def _name_fault(faults: _Faults) -> None:
    """Finds the first row at fault and raises TraceError for it; the file is read again, in its order."""
    trace, view, names, bounds, bad = faults
    texts = ", ".join(f"{view.texts[at]} AS t{at}" for at in range(len(names)))
    wholes = [_whole(f"TRY_CAST(t{at} AS DOUBLE)", bound) for at, bound in enumerate(bounds)]
    lengths = [whole for whole, bound in zip(wholes, bounds, strict=True) if bound == MAX_LENGTH]
    counts = [whole for whole, bound in zip(wholes, bounds, strict=True) if bound != MAX_LENGTH]
    fine = [f"({' + '.join(lengths)}) BETWEEN 1 AND {MAX_LENGTH}", *(f"{count} > 0" for count in counts)]
    query = (
        f"SELECT * EXCLUDE bad FROM (SELECT row_number() OVER () AS row, {texts}, {bad or 'false'} AS bad FROM "
        f"{view.rows}) WHERE NOT bad AND ({' AND '.join(fine)}) IS NOT TRUE ORDER BY row LIMIT 1"
    )
    found = trace.connection.execute(query, [trace.pattern]).fetchone()
    if found is None:
        return
    where = trace.place(found[0])
    for name, value, bound in zip(names, found[1:], bounds, strict=True):
        if fault := value_fault(value, name, where, bound):
            if found[0] > 1 or value is None or _is_number(value):
                trace.file.fail(fault)
            trace.file.fail(_text_fault(trace, name, where) if _TEXT.search(str(value)) else fault, "columns")
    total = sum(float(value) for value, bound in zip(found[1:], bounds, strict=True) if bound == MAX_LENGTH)
    trace.file.fail(request_fault(total, where))


def _text_fault(trace: Opened, name: str, where: str) -> str:
    listed = ", ".join(shown(other) for other in list(dict.fromkeys(trace.names))[:_SHOWN])
    return (
        f"holds text as {shown(name)} in {where} and no length: count its tokens with the model's tokenizer into "
        f"columns input_length and output_length, or say which of {listed} are the input and the output "
        "(--input-column and --output-column)."
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def value_fault(value: Any, name: str, where: str, most: int) -> str:
    """What is wrong with a value of a column where a whole number up to `most` belongs; empty where nothing is."""
    if value is None or not str(value).strip():
        return f"has no {shown(name)} in {where}: fill it in or leave the request out."
    least, what = (0, "length") if most == MAX_LENGTH else (1, "count")
    try:
        number = float(value)
    except ValueError:
        number = np.nan
    if not np.isfinite(number):
        rule = "must be a number"
    elif number < least:
        rule = f"must be {least} or more"
    elif number > most:
        rule = f"is above the largest {what} of {most:,}"
    elif number != int(number):
        rule = "must be a whole number"
    else:
        return ""
    return f"has {shown(value)} as {shown(name)} in {where}, which {rule}: correct it or leave the request out."


def request_fault(total: float, where: str) -> str:
    """What is wrong with a request of so many tokens whose lengths are fine by themselves."""
    if not total:
        return f"has a request of no tokens at all in {where}: leave it out."
    return f"has a request of {total:,.0f} tokens in {where}, above the largest length of {MAX_LENGTH:,}: leave it out."
