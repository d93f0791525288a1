"""The requests in the result of SGLang's bench_serving or vLLM's bench serve, with its details."""

import numpy as np

from sizing.traffic.duckdb_file import Opened
from sizing.traffic.layouts import (
    CAME,
    COMPLETED,
    ERRORS,
    GAPS,
    INPUTS,
    LASTED,
    OUTPUTS,
    SUCCESSES,
    TOTAL_INPUT,
    WAITED,
)
from sizing.traffic.mix import MAX_LENGTH, TrafficNotice
from sizing.traffic.rows import (
    MAX_REQUESTS,
    Clocks,
    Progress,
    Requests,
    Rows,
    fails,
    request_fault,
    value_fault,
    waited,
)
from sizing.traffic.turns import first_turns

_TYPES = {
    INPUTS: "DOUBLE[]",
    OUTPUTS: "DOUBLE[]",
    ERRORS: "VARCHAR[]",
    SUCCESSES: "VARCHAR[]",
    COMPLETED: "DOUBLE",
    TOTAL_INPUT: "DOUBLE",
    "backend": "VARCHAR",
}
_TIMES = (CAME, LASTED, WAITED, GAPS)  # read as JSON: where they are none of a benchmark, lengths still count
# Whether those without output are the ones that the totals leave out; totals bear out what errors already say.
_SILENT = (
    "coalesce(completed < remain AND completed = given AND CASE WHEN total IS NULL THEN NOT told ELSE total = tokens "
    "END, false)"
)
_WHOLE = "{0} >= 0 AND {0} = floor({0})"
# Rounds of a conversation reach these alone: MULTI_TURN_BACKENDS in python/sglang/benchmark/serving.py. From 0.5.21 on
# _record_server_prompt_len there writes what the server counted, which is the whole context of a round.
_CHAT = ("sglang-oai-chat", "vllm-chat", "lmdeploy-chat")


def benchmark_requests(trace: Opened, progress: Progress | None) -> tuple[Rows, TrafficNotice | None]:
    """The requests of all runs in the file, and whether they may be rounds that carry the first one's length.

    A request failed where successes or errors say so, else by the run's own totals. Raises TraceError.
    """
    connection = trace.connection
    waited(trace, lambda: _keep(trace), progress)
    _check_lists(trace)
    _check_totals(trace)
    size, failed = connection.execute("SELECT count(*), count(*) FILTER (failed) FROM requests").fetchone()
    if size > MAX_REQUESTS:
        trace.file.fail(f"holds more than {MAX_REQUESTS:,} requests: give fewer runs.", "too_large")
    if size == failed:
        trace.file.fail("holds no request that succeeded: give a run that did.")
    _check_requests(trace)
    query = "SELECT i::INTEGER AS i, o::INTEGER AS o, came, took FROM requests WHERE NOT failed"
    found = connection.execute(query).fetchnumpy()
    runs = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    came, took = (np.ma.filled(found[name].astype(np.float64), np.nan) for name in ("came", "took"))
    # The clock is that of one process, so runs after each other are not on one.
    clocks = Clocks(came, came + took) if runs == 1 and np.isfinite(came).all() else None
    return Rows(Requests(found["i"], found["o"], None), failed, None, clocks), _rounds(trace)


def _keep(trace: Opened) -> None:
    """Keeps the lists of each run and then the requests in them, with their places from 1."""
    times = {name: "JSON" for name in _TIMES if name in trace.names}
    came, lasted, first = (_seconds(name) if name in times else "NULL::DOUBLE[]" for name in (CAME, LASTED, WAITED))
    gaps = f"list_transform(TRY_CAST({GAPS} AS DOUBLE[][]), lambda gaps: coalesce(list_sum(gaps), 0))"
    trace.connection.execute(
        f"CREATE TEMP TABLE runs AS SELECT row_number() OVER () AS run, {INPUTS} AS i, {OUTPUTS} AS o, "
        f"list_transform({ERRORS}, lambda reason: {fails('filled', 'reason')}) AS e, "
        f"list_transform({SUCCESSES}, lambda success: {fails('false', 'success')}) AS s, "
        f"{COMPLETED} AS completed, {TOTAL_INPUT} AS total, backend, {came} AS came, {lasted} AS lasted, "
        f"{first} AS first, {gaps if GAPS in times else 'NULL::DOUBLE[]'} AS gaps FROM {trace.rows(_TYPES | times)}",
        [trace.pattern],
    )
    lists = ", ".join(
        f"unnest(CASE WHEN len({name}) = len(i) THEN {name} END) AS {name}"
        for name in ("came", "lasted", "first", "gaps")
    )
    trace.connection.execute(
        "CREATE TEMP TABLE marked AS SELECT *, coalesce(s, false) OR coalesce(e, false) AS failed, "
        "coalesce(lasted, first + gaps) AS took FROM (SELECT run, unnest(range(1, len(i) + 1)) AS nth, "
        f"unnest(i) AS i, unnest(o) AS o, unnest(e) AS e, unnest(s) AS s, {lists} FROM runs)"
    )
    # Totals leave out what failed: where they agree only without the requests that have no output, those failed.
    trace.connection.execute(
        "CREATE TEMP TABLE totals AS SELECT run, completed, total, bool_or(e IS NOT NULL OR s IS NOT NULL) AS told, "
        "count(*) FILTER (NOT failed) AS remain, count(*) FILTER (NOT failed AND o > 0) AS given, "
        "sum(i) FILTER (NOT failed AND o > 0) AS tokens FROM marked JOIN (SELECT run, completed, total FROM runs) "
        "USING (run) GROUP BY run, completed, total"
    )
    trace.connection.execute(
        f"CREATE TEMP TABLE requests AS SELECT run, nth, i, o, came, took, failed OR (o = 0 AND {_SILENT}) AS failed "
        "FROM marked JOIN totals USING (run) ORDER BY run, nth"
    )


def _seconds(name: str) -> str:
    return f"TRY_CAST({name} AS DOUBLE[])"


def _check_lists(trace: Opened) -> None:
    odd = trace.connection.execute(
        "SELECT run, len(i), len(o), len(e), len(s) FROM runs WHERE i IS NULL OR o IS NULL OR len(i) <> len(o) "
        "OR len(e) <> len(i) OR len(s) <> len(i) ORDER BY run LIMIT 1"
    ).fetchone()
    if odd is None:
        return
    run, inputs, outputs, errors, successes = odd
    if inputs is None or outputs is None:
        trace.file.fail(
            f"run {run:,} holds totals and no requests: leave it out, or run it again with its details.", "columns"
        )
    others = ((OUTPUTS, outputs), (ERRORS, errors), (SUCCESSES, successes))
    name, other = next((name, other) for name, other in others if other is not None and other != inputs)
    trace.file.fail(f"run {run:,} has {inputs:,} {INPUTS} and {other:,} {name}: each request needs one of each.")


def _check_totals(trace: Opened) -> None:
    """Refuses a run that says how many failed and not which."""
    odd = trace.connection.execute(
        f"SELECT run, completed, remain FROM totals WHERE NOT told AND completed < remain AND NOT {_SILENT} "
        "ORDER BY run LIMIT 1"
    ).fetchone()
    if odd is not None:
        run, completed, size = odd
        trace.file.fail(
            f"run {run:,} completed {completed:,.0f} of its {size:,} requests and does not say which failed: run it "
            f"again with its details, or give its {ERRORS}."
        )


def _rounds(trace: Opened) -> TrafficNotice | None:
    """A warning where the inputs of a chat benchmark are those of rounds that all carry the first one's length."""
    chats = ", ".join(f"'{name}'" for name in _CHAT)
    runs = trace.connection.execute(
        f"SELECT run FROM runs WHERE backend IN ({chats}) AND len(i) >= 4 ORDER BY run LIMIT 100"
    ).fetchall()
    query = "SELECT i FROM requests WHERE run = ? ORDER BY nth"
    found = [run for (run,) in runs if first_turns(trace.connection.execute(query, [run]).fetchnumpy()["i"])]
    if not found:
        return None
    return TrafficNotice(
        "multi_turn",
        f"In run {found[0]:,} equal inputs follow each other, as in rounds of conversations that all carry the first "
        "round's length (SGLang's bench_serving before 0.5.21): contexts may be longer, so the lengths are a lower "
        "bound.",
    )


def _check_requests(trace: Opened) -> None:
    fine = f"{_WHOLE.format('i')} AND {_WHOLE.format('o')} AND i + o BETWEEN 1 AND {MAX_LENGTH}"
    odd = trace.connection.execute(
        f"SELECT run, nth, i, o FROM requests WHERE NOT failed AND ({fine}) IS NOT TRUE ORDER BY run, nth LIMIT 1"
    ).fetchone()
    if odd is None:
        return
    run, nth, *lengths = odd
    where = f"request {nth:,} of run {run:,}"
    for name, length in zip((INPUTS, OUTPUTS), lengths, strict=True):
        if fault := value_fault(None if length is None else f"{length:.15g}", name, where, MAX_LENGTH):
            trace.file.fail(fault)
    trace.file.fail(request_fault(sum(lengths), where))
