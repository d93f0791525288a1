"""A table in any engine, counted where it is: one expression of Ibis for all of them, and only the histogram travels.

Ibis (ibis-project/ibis) writes the expression in the words of DuckDB, Spark, BigQuery, Snowflake, Trino, ClickHouse or
Postgres. It is imported where it is used, for it takes longer to import than all of the core.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np

from sizing.basics.problems import shown
from sizing.traffic.layouts import FAILURES, SESSIONS, Columns, Sign, first, guess, plain_names
from sizing.traffic.mix import MAX_LENGTH, Array, Mix, TrafficNotice
from sizing.traffic.reading import mix_of_requests
from sizing.traffic.rows import BROKEN, EMPTY, FALSE, MAX_COUNT, MAX_REQUESTS, TRUE, Requests, value_fault
from sizing.traffic.trace_file import Fault, TraceError, TraceFile
from sizing.traffic.turns import Linked

DUCKDB, SPARK = "duckdb", "spark"
_FILES = {".parquet": "read_parquet", ".csv": "read_csv", ".json": "read_json", ".jsonl": "read_json"}
_NAMED = ("input", "output", "count")  # columns of the histogram, as the reader of files knows them
_MOST_WORDS = 300  # characters of what an engine says


class Counted(NamedTuple):
    """The histogram of a table: distinct requests and how often each occurs."""

    name: str
    lengths: tuple[Array, ...]
    """Input and output, or their sum alone [tokens]."""
    counts: Array
    failed: int
    """Requests that failed, and are left out."""
    session: str | None
    """A column that links turns, which nothing here adds up."""

    @property
    def mix(self) -> Mix:
        """The mix of the requests; raises TraceError for more than can be told apart."""
        inputs, outputs = self.lengths[0], self.lengths[1] if len(self.lengths) > 1 else None
        said = None
        if self.session:
            words = (
                f"Rows have a session ({shown(self.session)}) and are taken as whole contexts: where they hold what a "
                "turn adds, the lengths are a lower bound."
            )
            said = TrafficNotice("multi_turn", words)
        file = TraceFile(self.name, self.name, "Parquet", packed=False, size=0, head="")
        return mix_of_requests(file, Linked(Requests(inputs, outputs, self.counts), said), self.failed)

    def write(self, path: Path) -> None:
        """The histogram as a file that every reader here takes, Parquet or CSV by the ending of its name.

        A row counts up to 2,147,483,647; more of one length take several rows.
        """
        rows = np.arange(len(self.counts)).repeat(-(-self.counts // MAX_COUNT))
        place = np.arange(len(rows)) - np.searchsorted(rows, rows)
        counts = np.minimum(self.counts[rows] - place * MAX_COUNT, MAX_COUNT)
        names = _NAMED if len(self.lengths) > 1 else ("length", "count")
        columns = dict(zip(names, [*(lengths[rows] for lengths in self.lengths), counts], strict=True))
        import pyarrow
        from pyarrow import csv, parquet

        table = pyarrow.table(columns)
        if path.suffix.lower() == ".csv":
            csv.write_csv(table, path)
        else:
            parquet.write_table(table, path)


def count_table(name: str, engine: str, columns: Columns) -> Counted:
    """The histogram of a table, or of a file, a folder or a pattern of files, in an engine.

    `engine` is duckdb, spark, spark:MASTER or an address that `ibis.connect` takes, such as bigquery://project/dataset.
    Columns that are not named are found as those of a file are. Raises TraceError, one sentence.
    """
    try:
        table = _table(name, engine)
    except TraceError:
        raise
    except Exception as error:  # every engine has errors of its own
        _fail(name, f"cannot be opened in {engine.partition(':')[0]}: {_words(error)}")
    known = _columns(name, list(table.columns), columns)
    read = [str(column) for column in known if column is not None]
    _check_types(name, table, read)
    signs = {column: FAILURES[plain] for plain, column in plain_names(table.columns).items() if plain in FAILURES}
    try:
        found = histogram_of(table, known, signs).limit(MAX_REQUESTS + 1).to_pyarrow()
    except Exception as error:
        _fail(name, f"cannot be counted in {engine.partition(':')[0]}: {_words(error)}")
    if found.num_rows > MAX_REQUESTS:
        _fail(name, f"has more than {MAX_REQUESTS:,} different requests: round the lengths in a view.", "too_large")
    held = {column: found[column].to_numpy() for column in found.column_names}
    return _checked(name, held, read[: 1 if known.length else 2], first(plain_names(table.columns), SESSIONS))


def histogram_of(table: Any, columns: Columns, failures: Mapping[str, Sign]) -> Any:
    """The query, for every engine: how often each pair of lengths occurs, and how many requests failed.

    `table` is a table of Ibis, and so is the result, not yet computed: v0 and v1 (lengths [tokens], null of what
    failed), bad, and n (requests).
    """
    import ibis

    bad = ibis.literal(False)
    for name, sign in failures.items():
        bad = bad | _fails(table[name], sign).fill_null(False)
    names = [columns.length] if columns.length else [columns.input, columns.output]
    lengths = {f"v{at}": ibis.ifelse(bad, None, table[name].cast("float64")) for at, name in enumerate(names)}
    one = ibis.literal(1, "int64") if columns.times is None else table[columns.times].cast("int64")
    rows = table.select(**lengths, bad=bad, one=one)
    return rows.group_by([*lengths, "bad"]).aggregate(n=rows.one.sum())


def _fails(column: Any, sign: Sign) -> Any:
    """What `fails` in rows.py says in SQL, for every engine."""
    if column.type().is_boolean():
        return column if sign in ("filled", "true") else ~column if sign == "false" else column.isnull() & False
    text = column.cast("string").strip().lower()
    number = column.cast("float64") if column.type().is_numeric() else text.try_cast("float64")
    if sign == "filled":
        return text.notin(EMPTY)
    if sign in ("true", "false"):
        return text.isin(TRUE if sign == "true" else FALSE)
    if sign == "status":
        return text.re_search(BROKEN) | (number >= 400).fill_null(False)
    return ~number.between(100, 399)


def _table(name: str, engine: str) -> Any:
    """The table of Ibis: a table by its name, or what stands in files."""
    try:
        import ibis
    except ImportError:
        _fail(name, "needs Ibis to be counted in an engine: pip install ibis-framework[duckdb].")
    connection = _connected(ibis, name, engine)
    folder = os.path.isdir(name)
    suffix = ".parquet" if folder or name.endswith("/") else Path(name).suffix.lower()
    if suffix in _FILES and ("/" in name or "*" in name or folder or os.path.exists(name)):
        path = f"{name.rstrip('/')}/**/*.parquet" if folder and connection.name == DUCKDB else name
        return getattr(connection, _FILES[suffix])(path)
    *database, table = name.split(".")
    return connection.table(table, database=tuple(database) or None)


def _connected(ibis: Any, name: str, engine: str) -> Any:
    if engine == DUCKDB:
        return ibis.duckdb.connect()
    kind, _, master = engine.partition(":")
    if kind == SPARK and not master.startswith("//"):
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            _fail(name, "needs PySpark to be counted in Spark: pip install ibis-framework[pyspark].")
        builder = SparkSession.builder.config("spark.sql.execution.arrow.pyspark.enabled", "true")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        return ibis.pyspark.connect((builder.master(master) if master else builder).getOrCreate())
    if "://" not in engine:
        _fail(name, f"names the engine {shown(engine)}: take duckdb, spark, spark:MASTER, or an address such as "
                    "bigquery://project/dataset.")  # fmt: skip
    try:
        return ibis.connect(engine)
    except ImportError:
        _fail(name, f"needs more to be counted in {kind}: pip install ibis-framework[{kind}].")


def _columns(name: str, names: list[str], given: Columns) -> Columns:
    """Where lengths stand, as named or by the names that are known."""
    known = given if given[:3] != (None, None, None) else guess(names)._replace(times=given.times or guess(names).times)
    listed = ", ".join(shown(one) for one in names[:20])
    for column in known:
        if column is not None and column not in names:
            _fail(name, f"has no column {shown(column)}: take one of {listed}.", "columns")
    if not known.found:
        _fail(
            name,
            f"has no columns known to hold lengths: say which of {listed} are the input and the output (--input-column "
            "and --output-column).",
            "columns",
        )
    return Columns(None, None, known.length, known.times) if known.length else known


def _check_types(name: str, table: Any, read: list[str]) -> None:
    for column in read:
        kind = table.schema()[column]
        if not kind.is_numeric():
            _fail(name, f"has {kind} as {shown(column)}: give a column of numbers, or a view with one.", "columns")


def _checked(name: str, held: dict[str, Array], names: list[str], session: str | None) -> Counted:
    """What came back, every value checked as those of a file are."""
    bad = held["bad"].astype(bool)
    counts = held["n"]
    failed = int(np.nansum(counts[bad].astype(np.float64)))
    lengths = [held[f"v{at}"][~bad].astype(np.float64) for at in range(len(names))]
    counts = counts[~bad].astype(np.float64)
    if not len(counts):
        _fail(name, "holds no request that succeeded: give one that did." if failed else "holds no requests.")
    for column, values in zip(names, lengths, strict=True):
        odd = ~((values >= 0) & (values <= MAX_LENGTH) & (values == np.floor(values)))
        if odd.any():
            value = values[odd][0]
            told = None if np.isnan(value) else f"{value:.15g}"
            where = f"{int(np.nansum(counts[odd])):,} of its rows"
            _fail(name, value_fault(told, column, where, MAX_LENGTH))
    if not (np.isfinite(counts) & (counts > 0)).all():
        _fail(name, "has a count that is none, or none of some rows: each must be 1 or more.")
    total = np.sum(lengths, axis=0)
    if total.min() < 1 or total.max() > MAX_LENGTH:
        _fail(name, f"has requests of no tokens at all, or of more than {MAX_LENGTH:,}: leave them out in a view.")
    whole = tuple(values.astype(np.int64) for values in lengths)
    return Counted(name, whole, counts.astype(np.int64), failed, session)


def _words(error: Exception) -> str:
    """What an engine says, in one line."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= _MOST_WORDS else f"{words[:_MOST_WORDS]}…"


def _fail(name: str, sentence: str, kind: Fault = "unreadable") -> NoReturn:
    raise TraceError(f"{shown(name)} {sentence}", kind) from None
