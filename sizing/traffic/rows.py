"""The requests of a file with a row each, or with a row a length and how often it occurs."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYetError
from typing import Any, NamedTuple, TypeVar

import duckdb
import numpy as np

from sizing.basics.problems import shown
from sizing.traffic.layouts import Columns
from sizing.traffic.mix import MAX_LENGTH, Array
from sizing.traffic.opened import Opened

MAX_REQUESTS = 40_000_000  # rows: they stay below 2 GiB of memory, measured with tests/bench/traffic.py
MAX_COUNT = 2**31 - 1  # of one row of a histogram
_POLL = 0.1  # seconds

Progress = Callable[[float], object]
Result = TypeVar("Result")


class Requests(NamedTuple):
    """Requests in the order of the file."""

    inputs: Array
    """[tokens]; input + output where `outputs` is None."""
    outputs: Array | None
    times: Array | None
    """How many requests each row stands for; None for one."""


def requests_of(trace: Opened, columns: Columns, progress: Progress | None) -> Requests:
    """Reads the columns, and checks every value; raises TraceError for the first row that is none of a trace."""
    lengths = [name for name in (columns.length,) if name] or [str(columns.input), str(columns.output)]
    names = [*lengths, columns.times] if columns.times else lengths
    bounds = [MAX_COUNT if name == columns.times else MAX_LENGTH for name in names]
    rows = trace.rows(dict.fromkeys(names, "VARCHAR"))
    numbers = ", ".join(f"{trace.number(name)} AS n{at}" for at, name in enumerate(names))
    wholes = ", ".join(f"{_whole(f'n{at}', bound)} AS v{at}" for at, bound in enumerate(bounds))
    query = f"SELECT {wholes} FROM (SELECT {numbers} FROM {rows}) LIMIT {MAX_REQUESTS + 1}"
    try:
        found = list(waited(trace, lambda: _fetched(trace, query), progress).values())
    except duckdb.ConversionException:  # where it reads CSV straight into numbers, what is none does not turn to NULL
        _name_fault(trace, rows, names, bounds)
        raise
    if not len(found[0]):
        trace.file.fail("names columns and holds no requests: give one with a row a request.")
    if len(found[0]) > MAX_REQUESTS:
        trace.file.fail(
            f"holds more than {MAX_REQUESTS:,} rows: give a histogram of it, with the columns input, output and count."
        )
    times = found[len(lengths)] if columns.times else None
    if any(np.ma.is_masked(values) for values in found) or not _in_bounds(found[: len(lengths)], times):
        _name_fault(trace, rows, names, bounds)
    return Requests(found[0], None if columns.length else found[1], times)


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


def _in_bounds(lengths: list[Array], times: Array | None) -> bool:
    totals = lengths[0] if len(lengths) == 1 else lengths[0] + lengths[1]
    return bool(totals.min() > 0 and totals.max() <= MAX_LENGTH and (times is None or times.min() > 0))


def _name_fault(trace: Opened, rows: str, names: list[str], bounds: list[int]) -> None:
    """Finds the first row at fault and raises TraceError for it; the file is read again, in its order."""
    texts = ", ".join(f"{trace.column(name)}::VARCHAR AS t{at}" for at, name in enumerate(names))
    wholes = [_whole(f"TRY_CAST(t{at} AS DOUBLE)", bound) for at, bound in enumerate(bounds)]
    lengths = [whole for whole, bound in zip(wholes, bounds, strict=True) if bound == MAX_LENGTH]
    counts = [whole for whole, bound in zip(wholes, bounds, strict=True) if bound != MAX_LENGTH]
    fine = [f"({' + '.join(lengths)}) BETWEEN 1 AND {MAX_LENGTH}", *(f"{count} > 0" for count in counts)]
    query = (
        f"SELECT * FROM (SELECT row_number() OVER () AS row, {texts} FROM {rows}) "
        f"WHERE ({' AND '.join(fine)}) IS NOT TRUE ORDER BY row LIMIT 1"
    )
    found = trace.connection.execute(query, [trace.pattern]).fetchone()
    if found is None:
        return
    where = trace.place(found[0])
    for name, value, bound in zip(names, found[1:], bounds, strict=True):
        if fault := value_fault(value, name, where, bound):
            trace.file.fail(fault)
    total = sum(float(value) for value, bound in zip(found[1:], bounds, strict=True) if bound == MAX_LENGTH)
    trace.file.fail(request_fault(total, where))


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
