"""Request traffic read from a file: a trace with a row a request, a benchmark's result, or a histogram."""

import os
from collections.abc import Mapping

import numpy as np

from sizing.basics.problems import shown
from sizing.basics.units import requests_text
from sizing.traffic.benchmarks import benchmark_requests
from sizing.traffic.duckdb_file import Opened, Place, open_in_duckdb
from sizing.traffic.formats import Plan, numeric_paths, plan_of, plan_of_format, texts_in, why_not
from sizing.traffic.layouts import Columns, guess, is_benchmark, plain_name
from sizing.traffic.mix import Array, Mix, TrafficNotice, mix_of, mix_of_lengths
from sizing.traffic.prometheus import has_buckets, read_api, read_metrics, read_table
from sizing.traffic.rows import Progress, Requests, Rows, rows_of
from sizing.traffic.times import times_of
from sizing.traffic.trace_file import TraceError, TraceFile, trace_file
from sizing.traffic.turns import Asked, Linked, from_messages, linked, numbered

__all__ = ["Columns", "TraceError", "columns_of", "columns_to_name", "guess", "mix_of_requests", "read_trace"]

_MAX_STEPS = 2**51  # of all requests: float64 counts twice as many exactly, as the mix with outputs doubled has
_BLOCK = 2**20  # rows
_READ = 0.8  # share of the time until all rows are read
_SHOWN = 20  # column names in a sentence
_API = "data.result[].metric.le"  # of Prometheus' HTTP API


def columns_of(path: str | os.PathLike[str], *, name: str = "") -> list[str]:
    """The names of a file's columns, in its order and as it writes them; raises TraceError."""
    file = trace_file(path, name)
    if file.kind == "metrics":
        return []
    with open_in_duckdb(file) as trace:
        return list(dict.fromkeys(trace.names))


def columns_to_name(path: str | os.PathLike[str], *, name: str = "") -> list[str]:
    """Which columns or paths a reader may choose of, where no lengths are found in a file; raises TraceError."""
    file = trace_file(path, name)
    if file.kind == "metrics":
        return []
    with open_in_duckdb(file) as trace:
        if is_benchmark(trace.names) or has_buckets(trace.names) or guess(trace.names).found:
            return []
        places = trace.places()
        known = _API in places or plan_of_format(places) is not None or why_not(places)
        return [] if known else numeric_paths(places)


def read_trace(
    path: str | os.PathLike[str],
    *,
    input_column: str | None = None,
    output_column: str | None = None,
    length_column: str | None = None,
    count_column: str | None = None,
    turns: Asked | None = None,
    progress: Progress | None = None,
    name: str = "",
) -> Mix:
    """The mix of the requests in a file: CSV, JSON, Parquet or Prometheus text by what it holds, also in gzip.

    Columns that are not named are found by the names in layouts.py and the paths in formats.py; a dotted path names
    one of a nested file. `turns` says what rows of conversations hold, where the file does not show it. `progress` is
    called now and then with the share done, 0 to 1; what it raises ends the reading. The mix is called `name`, else as
    the file is. Raises TraceError, one sentence.
    """
    file = trace_file(path, name)
    given = Columns(input_column, output_column, length_column, count_column)
    step = progress and (lambda share: progress(share * _READ))
    if file.kind == "metrics":
        return read_metrics(file)
    with open_in_duckdb(file) as trace:
        if given == Columns() and is_benchmark(trace.names):
            rows, warning = benchmark_requests(trace, step)
            found = Linked(rows.requests, warning)
        elif given == Columns() and has_buckets(trace.names):
            return read_table(trace)
        else:
            plan = _plan(trace, given)
            if plan is None:
                return read_api(trace)
            rows = rows_of(trace, plan, step)
            found = _linked(file, rows, plan, turns)
    if progress:
        progress(_READ)
    mix = _timed(file, found, rows)
    if progress:
        progress(1.0)
    return mix


def _linked(file: TraceFile, rows: Rows, plan: Plan, turns: Asked | None) -> Linked:
    """The requests with the contexts of their turns, where rows are turns or messages."""
    if rows.answers is not None:
        requests, note = from_messages(file, rows)
        return Linked(requests, None, note)
    if rows.turns is None:
        return Linked(rows.requests, None)
    came = rows.clocks.start if rows.clocks else None
    if came is not None and not np.isfinite(came).all():
        came = None
    return linked(file, rows.requests, rows.turns, plan.session_name, plan.context, turns, came)


def _timed(file: TraceFile, found: Linked, rows: Rows) -> Mix:
    """The mix, with what its times say where it has some."""
    mix = mix_of_requests(file, found, rows.failed)
    if rows.clocks is None or rows.answers is not None or found.requests.times is not None:
        return mix
    requests = found.requests
    contexts = requests.inputs if requests.outputs is None else requests.inputs + requests.outputs
    session = None if rows.turns is None else numbered(rows.turns.session)
    times = times_of(rows.clocks, contexts, session)
    if times is None:
        return mix
    busiest = None
    if times.busiest is not None:
        held = times.busiest.within(rows.clocks)
        inputs, outputs = requests.inputs[held], None if requests.outputs is None else requests.outputs[held]
        busiest = mix_of_requests(file, Linked(Requests(inputs, outputs, None), found.said, found.note), 0)
    return mix._replace(times=times, busiest=busiest)


def _plan(trace: Opened, given: Columns) -> Plan | None:
    """What to read of the file, None for an answer of Prometheus; raises TraceError where lengths are not found."""
    names = list(trace.names)
    known = given
    if given[:3] == (None, None, None):
        known = guess(names)
        known = known._replace(times=given.times or known.times)
    places = {name: Place(name) for name in names}
    if any(name is not None and name not in places for name in known) or not known.found:
        places = trace.places()
    for name in known:
        if name is not None and name not in places:
            trace.file.fail(f"has no column {shown(name)}: take one of {_listed(names, places)}.", "columns")
    if known.found:
        _check_once(trace, known, given)
        return plan_of(known, places)
    if given == Columns():
        if _API in places:
            return None
        if plan := plan_of_format(places):
            return plan
    _fail_unknown(trace, places)
    raise AssertionError  # it always raises


def _check_once(trace: Opened, known: Columns, given: Columns) -> None:
    """Refuses a length whose name stands twice: as it is written where it was named, else however it is written."""
    for name in known:
        alike = [one for one in trace.names if one == name or (given[:3] == (None,) * 3 and _same(one, name))]
        if name is not None and len(alike) > 1:
            trace.file.fail_twice(name)


def _same(one: str, other: str | None) -> bool:
    return other is not None and plain_name(one) == plain_name(other)


def _fail_unknown(trace: Opened, places: Mapping[str, Place]) -> None:
    if sentence := why_not(places):
        trace.file.fail(sentence, "columns")
    offered = numeric_paths(places)
    paths = any(places[path].field or places[path].lists for path in offered)
    listed = _listed(offered, places)
    if text := texts_in(places):
        trace.file.fail(
            f"holds text ({shown(text)}) and no columns known to hold lengths: count its tokens with the model's "
            f"tokenizer into columns input_length and output_length, or say which of {listed} are the input and the "
            "output (--input-column and --output-column).",
            "columns",
        )
    dotted = ", dotted as here; or flatten it to one row a request, for instance with jq" if paths else ""
    trace.file.fail(
        f"has no columns known to hold lengths: say which of {listed} are the input and the output "
        f"(--input-column and --output-column{dotted}).",
        "columns",
    )


def _listed(names: list[str], places: Mapping[str, Place]) -> str:
    """Names in a sentence: those of columns, and the numbers of a nested file."""
    found = (
        list(dict.fromkeys([*names, *numeric_paths(places)]))
        if len(places) > len(names)
        else list(dict.fromkeys(names))
    )
    more = f" and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else ""
    return ", ".join(shown(name) for name in found[:_SHOWN]) + more


def mix_of_requests(file: TraceFile, found: Linked, failed: int) -> Mix:
    """The mix of requests that were read, with what there is to say of them; raises TraceError for too many."""
    inputs, outputs, times = found.requests
    if times is not None and _steps(inputs if outputs is None else outputs, times) > _MAX_STEPS:
        file.fail("counts more requests than can be told apart: divide every count by the same number.", "too_large")
    if outputs is None:
        return _noted(mix_of_lengths(file.name, inputs, times), found, failed)
    return _noted(mix_of(file.name, inputs, outputs, times), found, failed)


def _steps(lengths: Array, times: Array) -> float:
    """Decode steps of all requests, or more, added up block by block."""
    return sum(
        float((lengths[at : at + _BLOCK] + 1.0) @ times[at : at + _BLOCK]) for at in range(0, len(lengths), _BLOCK)
    )


def _noted(mix: Mix, found: Linked, failed: int) -> Mix:
    """The mix with what a reader should know of the file."""
    said = [found.said] if found.said else []
    if failed:
        said.append(
            TrafficNotice("failed_left_out", f"Failed, and left out: {failed:,} of {failed + mix.requests:,} requests.")
        )
    if mix.outputs and mix.outputs.values[0] == 0:
        without = requests_text(mix.outputs.counts[0])
        said.append(TrafficNotice("no_output", f"Without output, and counted as one decode step each: {without}."))
    sentences = [*([found.note] if found.note else []), *(one.words for one in said)]
    return mix._replace(note=" ".join(sentences), failed=failed, said=tuple(said))
