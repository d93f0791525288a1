"""The requests in the result of SGLang's bench_serving or vLLM's bench serve, with its details."""

from sizing.traffic.layouts import ERRORS, INPUTS, OUTPUTS
from sizing.traffic.mix import MAX_LENGTH
from sizing.traffic.opened import Opened
from sizing.traffic.rows import MAX_REQUESTS, Progress, Requests, request_fault, value_fault, waited

_TYPES = {INPUTS: "DOUBLE[]", OUTPUTS: "DOUBLE[]", ERRORS: "VARCHAR[]"}
_WHOLE = "{0} >= 0 AND {0} = floor({0})"


def benchmark_requests(trace: Opened, progress: Progress | None) -> tuple[Requests, int]:
    """The requests of all runs in the file, and how many more failed: output 0, and a reason among the errors.

    Raises TraceError.
    """
    connection = trace.connection
    waited(trace, lambda: _keep(trace), progress)
    _check_lists(trace)
    size, failed = connection.execute("SELECT count(*), count(*) FILTER (failed) FROM requests").fetchone()
    if size > MAX_REQUESTS:
        trace.file.fail(f"holds more than {MAX_REQUESTS:,} requests: give fewer runs.")
    if size == failed:
        trace.file.fail("holds no request that succeeded: give a run that did.")
    _check_requests(trace)
    found = connection.execute("SELECT i::INTEGER AS i, o::INTEGER AS o FROM requests WHERE NOT failed").fetchnumpy()
    return Requests(found["i"], found["o"], None), failed


def _keep(trace: Opened) -> None:
    """Keeps the lists of each run and then the requests in them, with their places from 1."""
    trace.connection.execute(
        f"CREATE TEMP TABLE runs AS SELECT row_number() OVER () AS run, {INPUTS} AS i, {OUTPUTS} AS o, "
        f"list_transform({ERRORS}, lambda reason: coalesce(reason, '') <> '') AS e FROM {trace.rows(_TYPES)}",
        [trace.pattern],
    )
    trace.connection.execute(
        "CREATE TEMP TABLE requests AS SELECT *, o IS NOT DISTINCT FROM 0 AND coalesce(e, false) AS failed FROM "
        "(SELECT run, unnest(range(1, len(i) + 1)) AS nth, unnest(i) AS i, unnest(o) AS o, unnest(e) AS e FROM runs)"
    )


def _check_lists(trace: Opened) -> None:
    odd = trace.connection.execute(
        "SELECT run, len(i), len(o), len(e) FROM runs WHERE i IS NULL OR o IS NULL OR len(i) <> len(o) "
        "OR len(e) <> len(i) ORDER BY run LIMIT 1"
    ).fetchone()
    if odd is None:
        return
    run, inputs, outputs, errors = odd
    if inputs is None or outputs is None:
        trace.file.fail(f"run {run:,} holds totals and no requests: leave it out, or run it again with its details.")
    name, other = (OUTPUTS, outputs) if inputs != outputs else (ERRORS, errors)
    trace.file.fail(f"run {run:,} has {inputs:,} {INPUTS} and {other:,} {name}: each request needs one of each.")


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
