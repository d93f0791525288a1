"""Request traffic read from a file: a trace with a row a request, a benchmark's result, or a ready histogram."""

import os

from sizing.basics.problems import shown
from sizing.basics.units import requests_text
from sizing.traffic.benchmarks import benchmark_requests
from sizing.traffic.layouts import Columns, guess, is_benchmark, missing_details
from sizing.traffic.mix import Array, Mix, mix_of, mix_of_lengths
from sizing.traffic.opened import Opened, opened
from sizing.traffic.rows import Progress, Requests, requests_of
from sizing.traffic.trace_file import TraceError, TraceFile, trace_file

__all__ = ["Columns", "TraceError", "columns_of", "guess", "read_trace"]

_MAX_STEPS = 2**51  # of all requests: float64 counts twice as many exactly, as the mix with outputs doubled has
_BLOCK = 2**20  # rows
_READ = 0.8  # share of the time until all rows are read
_SHOWN = 20  # column names in a sentence


def columns_of(path: str | os.PathLike[str], *, name: str = "") -> list[str]:
    """The names of a file's columns, in its order and as it writes them; raises TraceError."""
    with opened(trace_file(path, name)) as trace:
        return list(trace.types)


def read_trace(
    path: str | os.PathLike[str],
    *,
    input_column: str | None = None,
    output_column: str | None = None,
    length_column: str | None = None,
    count_column: str | None = None,
    progress: Progress | None = None,
    name: str = "",
) -> Mix:
    """The mix of the requests in a file: CSV, JSON or Parquet by what it holds, text also packed with gzip.

    Columns that are not named are found by the names in layouts.py. `progress` is called now and then with the share
    done, 0 to 1; what it raises ends the reading. The mix is called `name`, else as the file is. Raises TraceError,
    one sentence.
    """
    file = trace_file(path, name)
    given = Columns(input_column, output_column, length_column, count_column)
    step = progress and (lambda share: progress(share * _READ))
    with opened(file) as trace:
        if given == Columns() and is_benchmark(list(trace.types)):
            requests, failed = benchmark_requests(trace, step)
        else:
            requests, failed = requests_of(trace, _chosen(trace, given), step), 0
    if progress:
        progress(_READ)
    mix = _mix(file, requests, failed)
    if progress:
        progress(1.0)
    return mix


def _chosen(trace: Opened, given: Columns) -> Columns:
    """The columns to read; raises TraceError where they are not all there."""
    names = list(trace.types)
    known = given
    if given[:3] == (None, None, None):
        known = guess(names)
        known = known._replace(times=given.times or known.times)
    for name in known:
        if name is not None and name not in names:
            trace.file.fail(f"has no column {shown(name)}: take one of {_listed(names)}.")
    if not known.found and (flag := missing_details(names)):
        trace.file.fail(f"holds a benchmark's totals and not its requests: run the benchmark again with {flag}.")
    if not known.found:
        trace.file.fail(
            f"has no columns known to hold lengths: say which of {_listed(names)} are the input and the output "
            "(--input-column and --output-column)."
        )
    return known


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(shown(name) for name in names[:_SHOWN]) + more


def _mix(file: TraceFile, requests: Requests, failed: int) -> Mix:
    inputs, outputs, times = requests
    if times is not None and _steps(inputs if outputs is None else outputs, times) > _MAX_STEPS:
        file.fail("counts more requests than can be told apart: divide every count by the same number.")
    if outputs is None:
        return mix_of_lengths(file.name, inputs, times)
    mix = mix_of(file.name, inputs, outputs, times)
    return mix._replace(note=_note(mix, failed))


def _steps(lengths: Array, times: Array) -> float:
    """Decode steps of all requests, or more, added up block by block."""
    return sum(
        float((lengths[at : at + _BLOCK] + 1.0) @ times[at : at + _BLOCK]) for at in range(0, len(lengths), _BLOCK)
    )


def _note(mix: Mix, failed: int) -> str:
    sentences = []
    if failed:
        sentences.append(f"Failed, and left out: {failed:,} of {failed + mix.requests:,} requests.")
    if mix.outputs and mix.outputs.values[0] == 0:
        sentences.append(
            f"Without output, and counted as one decode step each: {requests_text(mix.outputs.counts[0])}."
        )
    return " ".join(sentences)
