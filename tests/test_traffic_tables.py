"""Tables in an engine: the same histogram as from the file, in DuckDB and in a real Spark; only that is written."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from sizing.cli.main import main
from sizing.traffic.layouts import FAILURES, Columns
from sizing.traffic.reading import read_trace
from sizing.traffic.rows import MAX_COUNT
from sizing.traffic.tables import Counted, count_table
from sizing.traffic.trace_file import TraceError
from tests.test_traffic_formats import BAD, GOOD
from tests.test_traffic_mix import alike, told
from tests.test_traffic_reading import saved

ROWS = 100_000
# A page of its own and 200 parts of 100,000 rows are no use here; and what runs once is not worth the best compiler.
QUICK = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),  # ibis 12 beside DuckDB 2
    pytest.mark.filterwarnings("ignore:The copy keyword:DeprecationWarning"),  # PySpark 4.0 beside pandas 3
    pytest.mark.filterwarnings("ignore:The 'future.infer_string':DeprecationWarning"),  # ibis 12 beside pandas 3
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets that PySpark leaves to the end of the process
]


@pytest.fixture(scope="module", name="trace")
def fixture_trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A hundred thousand requests, some of which failed."""
    path = tmp_path_factory.mktemp("tables") / "trace.parquet"
    random = np.random.default_rng(5)
    columns = {
        "prompt_tokens": random.integers(1, 3000, ROWS),
        "completion_tokens": random.integers(0, 200, ROWS),
        "error": np.where(random.random(ROWS) < 0.01, "timeout", ""),
    }
    with duckdb.connect(":memory:") as connection:
        connection.register("rows", columns)
        connection.execute(f"COPY (FROM rows) TO '{path}'")
    return path


@pytest.fixture(scope="module", name="spark")
def fixture_spark() -> Iterator[str]:
    """The engine of a real Spark on this machine, where Java is; one session, set to start and to plan quickly."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        told = "Spark needs Java, and none was found: install a JRE of 17 or later"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]")
    for name, value in QUICK.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield "spark:local[2]"
    session.stop()


def rows_of(found: Counted) -> list[tuple[int, ...]]:
    """The histogram, row for row."""
    return sorted(zip(*(lengths.tolist() for lengths in found.lengths), found.counts.tolist(), strict=True))


def test_duckdb_counts_as_the_file_is_read(trace: Path, tmp_path: Path) -> None:
    """The same mix, also of a folder, a pattern and a table of a database; and of the histogram that is written."""
    wanted = read_trace(trace)
    found = count_table(str(trace), "duckdb", Columns())
    assert alike(found.mix, wanted)
    assert found.failed == wanted.failed > 0
    for name in (str(trace.parent), f"{trace.parent}/*.parquet"):
        assert rows_of(count_table(name, "duckdb", Columns())) == rows_of(found)
    database = tmp_path / "base.duckdb"
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE SCHEMA served; CREATE TABLE served.requests AS FROM '{trace}'")
    assert rows_of(count_table("served.requests", f"duckdb://{database}", Columns())) == rows_of(found)
    for ending in ("parquet", "csv"):
        found.write(tmp_path / f"histogram.{ending}")
        assert alike(read_trace(tmp_path / f"histogram.{ending}"), wanted._replace(failed=0))


def test_spark_counts_the_same(trace: Path, spark: str) -> None:
    """Row for row, by the same expression."""
    here, there = (count_table(str(trace), engine, Columns()) for engine in ("duckdb", spark))
    assert rows_of(here) == rows_of(there)
    assert here.failed == there.failed > 0
    assert sum(here.counts) + here.failed == ROWS


@pytest.mark.parametrize("name", FAILURES)
def test_failures_by_name(tmp_path: Path, name: str) -> None:
    """What marks a request as failed in a file marks it in a table."""
    sign = FAILURES[name]
    marks = [*GOOD[sign], BAD[sign]]
    path = tmp_path / "t.parquet"
    with duckdb.connect(":memory:") as connection:
        columns: dict[str, Any] = {
            "input": np.arange(10, 10 + len(marks)),
            "output": np.full(len(marks), 2),
            name: np.array(marks),
        }
        connection.register("rows", columns)
        connection.execute(f"COPY (FROM rows) TO '{path}'")
    found, wanted = count_table(str(path), "duckdb", Columns()), read_trace(path)
    assert (found.failed, told(found.mix.lengths)) == (wanted.failed, told(wanted.lengths))
    assert found.failed == 1


def parquet(folder: Path, query: str) -> str:
    path = folder / "t.parquet"
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({query}) TO '{path}'")
    return str(path)


def test_columns_and_counts(tmp_path: Path) -> None:
    """Named, of one length, and with a row for several requests; a mark that is true or false, or a number."""
    one = parquet(tmp_path, "SELECT 7 AS a, 3 AS b, 5 AS n UNION ALL SELECT 7, 3, 6")
    found = count_table(one, "duckdb", Columns("a", "b", None, "n"))
    assert rows_of(found) == [(7, 3, 11)]
    assert rows_of(count_table(one, "duckdb", Columns(None, None, "a", None))) == [(7, 2)]
    marked = parquet(
        tmp_path,
        "SELECT unnest([1, 2, 3, 4]) AS input, 1 AS output, unnest([true, true, false, NULL]) AS success, "
        "unnest([200, 500, 200, NULL]) AS status_code",
    )
    assert rows_of(count_table(marked, "duckdb", Columns())) == [(1, 1, 1), (4, 1, 1)]
    assert count_table(marked, "duckdb", Columns()).failed == 2


def test_sessions_are_said(tmp_path: Path) -> None:
    """No engine adds turns up: a lower bound."""
    path = parquet(tmp_path, "SELECT 7 AS input, 3 AS output, 's' AS session_id")
    mix = count_table(path, "duckdb", Columns()).mix
    assert mix.at_least
    assert "“session_id”" in mix.note


def test_counts_beyond_one_row(tmp_path: Path) -> None:
    """Ten billion requests of one length take several rows."""
    path = parquet(tmp_path, "SELECT 7 AS input, 3 AS output, 1250000000 AS count FROM range(8)")
    found = count_table(path, "duckdb", Columns())
    assert rows_of(found) == [(7, 3, 10**10)]
    found.write(tmp_path / "h.parquet")
    with duckdb.connect(":memory:") as connection:
        rows = connection.execute(f"SELECT max(count), sum(count) FROM '{tmp_path / 'h.parquet'}'").fetchall()
    assert rows == [(MAX_COUNT, 10**10)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELECT 7 AS a, 3 AS b", "has no columns known to hold lengths: say which of “a”, “b”"),
        ("SELECT 'x' AS input, 3 AS output", "has string as “input”: give a column of numbers"),
        ("SELECT 7 AS input, -3 AS output", "has “-3” as “output” in 1 of its rows, which must be 0 or more"),
        ("SELECT 7.5 AS input, 3 AS output", "which must be a whole number"),
        ("SELECT NULL::INT AS input, 3 AS output", "has no “input” in 1 of its rows"),
        ("SELECT 0 AS input, 0 AS output", "no tokens at all"),
        ("SELECT 1 AS input, 1 AS output, -1 AS count", "each must be 1 or more"),
        ("SELECT 1 AS input, 1 AS output WHERE false", "holds no requests"),
        ("SELECT 1 AS input, 1 AS output, true AS failed", "holds no request that succeeded"),
    ],
)
def test_tables_that_are_refused(tmp_path: Path, query: str, words: str) -> None:
    """One sentence, as for a file."""
    with pytest.raises(TraceError) as error:
        count_table(parquet(tmp_path, query), "duckdb", Columns())
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_the_command(trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says what it says of the file, and writes a histogram that it reads again; what is wrong is a sentence."""
    scenario, out = str(saved(tmp_path, "{}", "s.json")), tmp_path / "histogram.parquet"
    assert main(["traffic", scenario, str(trace), "--json"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    assert main(["traffic", scenario, str(trace), "--table", "--histogram", str(out), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["answer"]["lengths"] == wanted["answer"]["lengths"]
    assert found["ways"] == wanted["ways"]
    assert main(["traffic", scenario, str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ways"] == wanted["ways"]
    for options, words in (
        ([str(trace), "--histogram", str(out)], "It is what --table counts"),
        ([str(trace), "--table", "--histogram", "x.txt"], "ends in neither .parquet nor .csv"),
        (["nothing", "--table"], "“nothing” cannot be opened in duckdb"),
        (["nothing", "--table", "oracle"], "names the engine “oracle”"),
        (["nothing", "--table", "nosuch://x"], "“nothing”"),
        ([str(trace), "--table", "--input-column", "x"], "has no column “x”"),
    ):
        assert main(["traffic", scenario, *options]) == 2
        assert words in capsys.readouterr().err
