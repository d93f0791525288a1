"""Traces from files: every layout that is known, and one sentence for every file that is none."""

import gzip
import json
import os
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing.traffic import rows, trace_file
from sizing.traffic.duckdb_file import open_in_duckdb
from sizing.traffic.layouts import PAIRS, Columns
from sizing.traffic.mix import Mix
from sizing.traffic.reading import TraceError, columns_of, guess, read_trace
from tests.test_properties import examples
from tests.test_traffic_mix import alike, mixed, told

HEADER = "(the header is row 1, empty lines do not count)"
MEND = "correct it or leave the request out."
FILL = "fill it in or leave the request out."
LONG = "above the largest length of 16,777,216"
NO_ROWS = "names columns and holds no requests: give one with a row a request."
GIVE = "give CSV, JSON (one object a line, or a list) or Parquet."
REQUESTS = [(10, 2), (3, 0), (10, 2), (700, 50)]


def saved(folder: Path, content: str | bytes, name: str = "trace") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path: Path, **columns: str) -> str:
    """What is said of a file, without the name that each sentence begins with."""
    with pytest.raises(TraceError) as error:
        read_trace(path, **columns)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
    name, sentence = str(error.value).split("” ", 1)
    assert name == f"“{path.name}"
    return sentence


def csv_of(names: tuple[str, ...], requests: Sequence[tuple[int, ...]], mark: str = ",") -> str:
    return "\n".join([mark.join(names), *(mark.join(map(str, request)) for request in requests)]) + "\n"


def jsonl_of(names: tuple[str, ...], requests: Sequence[tuple[int, ...]]) -> str:
    return "".join(
        json.dumps({"id": "x", **dict(zip(names, r, strict=True)), "hash_ids": [1, 2]}) + "\n" for r in requests
    )


def parquet_of(path: Path, query: str) -> Path:
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


def run(inputs: list[Any], outputs: list[Any], errors: list[str] | None = None, **more: Any) -> str:
    """One line of SGLang's bench_serving --output-details."""
    totals = {"completed": 1, "total_input_tokens": 9, "request_throughput": 1.5, "sharegpt_output_len": None}
    lists = {"input_lens": inputs, "output_lens": outputs, "errors": errors or [""] * len(inputs)}
    return json.dumps({**totals, **lists, "itls": [[0.1, 0.2]] * len(inputs), "generated_texts": ["a"], **more}) + "\n"


@pytest.mark.parametrize("names", [*PAIRS, ("Request tokens", "Response tokens"), ("ContextTokens", "GeneratedTokens")])
def test_known_names(tmp_path: Path, names: tuple[str, str]) -> None:
    """Published traces and logs, as CSV and as JSONL, whatever stands beside."""
    assert alike(read_trace(saved(tmp_path, csv_of(names, REQUESTS))), mixed(REQUESTS))
    assert alike(read_trace(saved(tmp_path, jsonl_of(names, REQUESTS))), mixed(REQUESTS))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(csv_of(("input", "output"), REQUESTS, "\t"), id="TSV"),
        pytest.param(csv_of(("input", "output"), REQUESTS, ";"), id="semicolons"),
        pytest.param(csv_of(("input", "output"), REQUESTS).replace("\n", "\r\n"), id="CRLF"),
        pytest.param(csv_of(("input", "output"), REQUESTS).replace("\n", "\n\n") + "\n\n", id="empty lines"),
        pytest.param("\ufeff" + csv_of(("input", "output"), REQUESTS), id="byte order mark"),
        pytest.param(csv_of(("INPUT", " Output"), REQUESTS).replace(",2", ", 2.0"), id="spaces, capitals, 2.0"),
        pytest.param(
            'input,"a ""prompt"", long",output\n10,"x\ny, z",2\n3,"""",0\n10,,2\n700,"",50', id="quotes and line breaks"
        ),
        pytest.param(json.dumps([{"input": i, "output": str(o)} for i, o in REQUESTS]), id="a list"),
        pytest.param("\n".join(json.dumps({"input": i, "output": o}, indent=1) for i, o in REQUESTS), id="spread out"),
        pytest.param("input,output,count\n10,2,2\n3,0,1\n700,50,1\n", id="histogram"),
        pytest.param(gzip.compress(csv_of(("input", "output"), REQUESTS).encode()), id="gzip"),
        pytest.param(
            gzip.compress(b"input,output\n10,2\n3,0\n") + gzip.compress(b"10,2\n700,50\n"), id="gzip in two parts"
        ),
        pytest.param(gzip.compress(jsonl_of(("input", "output"), REQUESTS).encode()), id="JSON in gzip"),
    ],
)
def test_ways_to_write_the_same_requests(tmp_path: Path, content: str | bytes) -> None:
    """By what a file holds, not by its name."""
    mix = read_trace(saved(tmp_path, content, "trace.dat"))
    assert alike(mix, mixed(REQUESTS))
    assert (mix.name, mix.synthetic) == ("trace.dat", False)
    assert mix.note == "Without output, and counted as one decode step each: 1 request."


@pytest.mark.parametrize("kind", ["BIGINT", "SMALLINT", "UBIGINT", "DOUBLE", "DECIMAL(9, 1)", "VARCHAR", "HUGEINT"])
def test_parquet(tmp_path: Path, kind: str) -> None:
    """Any type that holds whole numbers."""
    listed = ", ".join(map(str, REQUESTS))
    query = f"SELECT i::{kind} AS input, o::{kind} AS output FROM (VALUES {listed}) AS t(i, o)"
    assert alike(read_trace(parquet_of(tmp_path / "a", query)), mixed(REQUESTS))


@given(st.lists(st.tuples(st.integers(0, 2**23), st.integers(0, 2**23)).filter(any), min_size=1, max_size=30))
@examples(25)
def test_a_trace_and_its_histogram_are_the_same(pairs: list[tuple[int, int]]) -> None:
    """The SQL that a file too large is answered with gives a histogram that reads as the trace does."""
    with tempfile.TemporaryDirectory() as folder:
        trace = saved(Path(folder), csv_of(("input", "output"), pairs), "trace.csv")
        query = f"SELECT input, output, count(*) AS count FROM '{trace}' GROUP BY ALL"
        assert alike(read_trace(trace), read_trace(parquet_of(Path(folder) / "histogram.parquet", query)))


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("length\n5\n\n6\n5\n\n", {5: 2, 6: 1}),
        ("len,count\n5,2\n6,1\n", {5: 2, 6: 1}),
        ("total_tokens;n\n5;2\n6;1\n", {5: 2, 6: 1}),
        ('{"tokens": 5, "requests": 2}\n{"tokens": 6, "requests": 1}', {5: 2, 6: 1}),
    ],
)
def test_lengths_without_input_and_output(tmp_path: Path, content: str, wanted: dict[int, int]) -> None:
    """One row a request, or a ready histogram."""
    mix = read_trace(saved(tmp_path, content))
    assert told(mix.lengths) == wanted
    assert mix.inputs is None


def test_columns_that_are_named(tmp_path: Path) -> None:
    """Names of any kind; what is named is what is read."""
    csv = saved(tmp_path, 'a,"b"" \'; c",input,output,n\n1,2,30,40,5\n')
    assert columns_of(csv) == ["a", "b\" '; c", "input", "output", "n"]
    assert told(read_trace(csv, input_column="a", output_column="b\" '; c").lengths) == {3: 1}
    assert told(read_trace(csv, length_column="a", count_column="n").lengths) == {1: 5}
    assert told(read_trace(csv, count_column="n").lengths) == {70: 5}
    assert told(read_trace(csv).lengths) == {70: 1}  # an n beside two lengths need not be a count
    parquet = parquet_of(tmp_path / "p", 'SELECT 1 AS "x"" \'", 2 AS y')
    assert told(read_trace(parquet, input_column="x\" '", output_column="y").lengths) == {3: 1}
    objects = saved(tmp_path, json.dumps({"x\" ': é": 1, "y": 2}))
    assert told(read_trace(objects, input_column="x\" ': é", output_column="y", name="mine").lengths) == {3: 1}


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (
            ["ts", "Prompt_Tokens", "completion_tokens", "total_tokens"],
            ("Prompt_Tokens", "completion_tokens", None, None),
        ),
        (["input", "output", "cnt"], ("input", "output", None, "cnt")),
        (["LEN", "num"], (None, None, "LEN", "num")),
        (["input_len", "tokens"], (None, None, "tokens", None)),
        (["a", "count"], (None, None, None, None)),
        ([], (None, None, None, None)),
    ],
)
def test_guesses(names: list[str], wanted: tuple[str | None, ...]) -> None:
    """What a page fills its boxes with."""
    assert guess(names) == Columns(*wanted)
    assert guess(names).found == any(wanted)


def test_sglang_runs_are_put_together(tmp_path: Path) -> None:
    """One line a run; what failed is marked twice, and left out."""
    path = saved(tmp_path, run([10, 9, 3], [2, 0, 0], ["", "Connection reset", ""]) + run([10, 700], [2, 50]))
    mix = read_trace(path)
    assert alike(mix, mixed(REQUESTS))
    assert mix.note == (
        "Failed, and left out: 1 of 5 requests. Without output, and counted as one decode step each: 1 request."
    )


def test_vllm_result(tmp_path: Path) -> None:
    """One object, spread out or not; errors may be missing."""
    result = {"tokenizer_id": "x", "input_lens": [10, 3, 10, 700], "output_lens": [2, 0, 2, 50]}
    assert alike(read_trace(saved(tmp_path, json.dumps(result))), mixed(REQUESTS))
    assert alike(read_trace(saved(tmp_path, json.dumps(result, indent=2))), mixed(REQUESTS))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(
            json.dumps({"completed": 1, "total_input_tokens": 9, "request_throughput": 1, "sharegpt_output_len": None}),
            "holds a benchmark's totals and not its requests: run the benchmark again with --output-details.",
            id="SGLang totals",
        ),
        pytest.param(
            json.dumps({"completed": 1, "total_input_tokens": 9, "request_throughput": 1, "tokenizer_id": "x"}),
            "holds a benchmark's totals and not its requests: run the benchmark again with --save-detailed.",
            id="vLLM totals",
        ),
        pytest.param(
            run([1], [1]) + json.dumps({"completed": 1}),
            "run 2 holds totals and no requests: leave it out, or run it again with its details.",
            id="totals among details",
        ),
        pytest.param(
            run([1, 2], [1]), "run 1 has 2 input_lens and 1 output_lens: each request needs one of each.", id="outputs"
        ),
        pytest.param(
            run([1, 2], [1, 1], [""]),
            "run 1 has 2 input_lens and 1 errors: each request needs one of each.",
            id="errors",
        ),
        pytest.param(run([1], [0], ["x"]), "holds no request that succeeded: give a run that did.", id="all failed"),
        pytest.param(
            run([1, 0], [1, 0]), "has a request of no tokens at all in request 2 of run 1: leave it out.", id="nothing"
        ),
        pytest.param(
            run([1], [1]) + run([1, -2], [1, 1]),
            f"has “-2” as “input_lens” in request 2 of run 2, which must be 0 or more: {MEND}",
            id="negative",
        ),
        pytest.param(
            run([1], [2.5]),
            f"has “2.5” as “output_lens” in request 1 of run 1, which must be a whole number: {MEND}",
            id="fraction",
        ),
        pytest.param(
            run([None], [2]),
            f"has no “input_lens” in request 1 of run 1: {FILL}",
            id="null",
        ),
        pytest.param(
            run([1], [1]) + run(["a"], [1]),
            "has a list of lengths that holds something else: correct it.",
            id="text",
        ),
        pytest.param(
            run([2**24], [1]),
            "has a request of 16,777,217 tokens in request 1 of run 1, above the largest length of 16,777,216: "
            "leave it out.",
            id="too long",
        ),
    ],
)
def test_results_that_are_refused(tmp_path: Path, content: str, sentence: str) -> None:
    """Which run, which request, and what to do."""
    assert refusal(saved(tmp_path, content)) == sentence


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("6,-1,1", f"has “-1” as “output” in row 4 {HEADER}, which must be 0 or more: {MEND}"),
        ("6,1.5,1", f"has “1.5” as “output” in row 4 {HEADER}, which must be a whole number: {MEND}"),
        ("6,nan,1", f"has “nan” as “output” in row 4 {HEADER}, which must be a number: {MEND}"),
        ("1e999,1,1", f"has “1e999” as “input” in row 4 {HEADER}, which must be a number: {MEND}"),
        ("6,<b>x</b>,1", f"has “?b?x?/b?” as “output” in row 4 {HEADER}, which must be a number: {MEND}"),
        ("6,,1", f"has no “output” in row 4 {HEADER}: {FILL}"),
        ("16777217,1,1", f"has “16777217” as “input” in row 4 {HEADER}, which is {LONG}: {MEND}"),
        ("16777216,1,1", f"has a request of 16,777,217 tokens in row 4 {HEADER}, {LONG}: leave it out."),
        ("0,0,1", f"has a request of no tokens at all in row 4 {HEADER}: leave it out."),
        ("6,1,0", f"has “0” as “count” in row 4 {HEADER}, which must be 1 or more: {MEND}"),
        (
            "6,1,2147483648",
            f"has “2147483648” as “count” in row 4 {HEADER}, which is above the largest count of 2,147,483,647: {MEND}",
        ),
        ("6,1", "has line 4 with 2 values, and its header names 3 columns: correct that line."),
        ("6,1,1,1", "has line 4 with 4 values, and its header names 3 columns: correct that line."),
        ('6,"1,1', "opens a quote in line 4 that nothing closes: correct that line."),
        ("6,\x00,1", "is no text, for it holds NUL bytes: " + GIVE),
        (f"6,{'1' * 3_000_000},1", "has more than 2 MB in line 4: leave out the columns with long text."),
    ],
)
def test_rows_that_are_refused(tmp_path: Path, row: str, sentence: str) -> None:
    """Which row, which column, what stands there."""
    assert refusal(saved(tmp_path, f"input,output,count\n1,1,1\n2,2,2\n{row}\n3,3,3\n")) == sentence


def test_a_fault_far_into_a_file(tmp_path: Path) -> None:
    """The first one is named, though two threads read."""
    lines = ["1,1\n"] * 400_000
    lines[299_999] = lines[350_000] = "1,x\n"
    sentence = refusal(saved(tmp_path, "input,output\n" + "".join(lines)))
    assert sentence == f"has “x” as “output” in row 300,001 {HEADER}, which must be a number: {MEND}"


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT 1 AS input, true AS output", f"has “true” as “output” in row 1, which must be a number: {MEND}"),
        ("SELECT 1 AS input, [1] AS output", f"has “[1]” as “output” in row 1, which must be a number: {MEND}"),
        ("SELECT 1 AS input, NULL::INT AS output", f"has no “output” in row 1: {FILL}"),
        ("SELECT 1 AS input, 2::HUGEINT ** 60 AS output", None),
        ("SELECT 1 AS input, 1 AS output LIMIT 0", NO_ROWS),
        (
            "SELECT range + 1 AS input, 2 - range AS output FROM range(4)",
            f"has “-1” as “output” in row 4, which must be 0 or more: {MEND}",
        ),
    ],
)
def test_parquet_that_is_refused(tmp_path: Path, query: str, sentence: str | None) -> None:
    """Rows of Parquet have no header before them."""
    found = refusal(parquet_of(tmp_path / "a", query))
    assert found == sentence if sentence else "above the largest length" in found


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param('{"input": 1, "output": 2}\n{"input": 3}', f"has no “output” in object 2: {FILL}", id="missing"),
        pytest.param(
            '{"input": 1, "output": [2]}',
            f"has “[2]” as “output” in object 1, which must be a number: {MEND}",
            id="list",
        ),
        pytest.param(
            '{"input": 1, "output": 2}\n{"input": 3,',
            "breaks off within an object: write it again, or remove its end.",
            id="broken off",
        ),
        pytest.param(
            '{"input": 1, "output": 2}\n\n{"input" 3}\n',
            "cannot be read as JSON at line 3: correct or remove what stands there.",
            id="no colon",
        ),
        pytest.param(
            '{"input": 1, "input": 2, "output": 2}',
            "has a name twice in one object: keep one of the two.",
            id="twice",
        ),
        pytest.param(
            '{"input":' + "[" * 100_000 + "]" * 100_000 + "}",
            "is nested too deeply to be a trace: give one object a request.",
            id="deep",
        ),
        pytest.param("[1, 2]", "holds no named values: give one object a request.", id="numbers"),
        pytest.param("[]", "holds no named values: give one object a request.", id="nothing"),
    ],
)
def test_json_that_is_refused(tmp_path: Path, content: str, sentence: str) -> None:
    """Objects are counted from 1, in a list and on lines."""
    assert refusal(saved(tmp_path, content)) == sentence


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("", "is empty: " + GIVE, id="empty"),
        pytest.param(" \n\n", "is empty: " + GIVE, id="white space"),
        pytest.param(gzip.compress(b""), "is empty: " + GIVE, id="empty gzip"),
        pytest.param("input,output", NO_ROWS, id="header"),
        pytest.param(
            "\ninput,output\n1,2\n", "starts with an empty line: its first row must name the columns.", id="late"
        ),
        pytest.param("a" * 70_000 + "\n1\n", "has a first row of more than 65,536 bytes: " + GIVE, id="long header"),
        pytest.param(
            ",".join(f"c{at}" for at in range(1001)),
            "has 1,001 columns, and at most 1,000 are read: give fewer.",
            id="wide",
        ),
        pytest.param(
            "a,<b>\n1,2\n",
            "has no columns known to hold lengths: say which of “a”, “?b?” are the input and the output "
            "(--input-column and --output-column).",
            id="unknown",
        ),
        pytest.param(b"input,output\n1,\xff\n", "is not text in UTF-8: save it as UTF-8.", id="Latin"),
        pytest.param(
            b"input,output\n" + b"1,2\n" * 20_000 + b"1,\xff\n",
            "is not text in UTF-8 at line 20002: save it as UTF-8.",
            id="Latin, late",
        ),
        pytest.param("input,output\n1,2\n".encode("utf-16"), "is text in UTF-16: save it as UTF-8.", id="UTF-16"),
        pytest.param(bytes(range(256)) * 9, "is no text, for it holds NUL bytes: " + GIVE, id="binary"),
        pytest.param(b"PAR1" + b"x" * 99, "is not a Parquet file that can be read: write it again.", id="no Parquet"),
        pytest.param(
            gzip.compress(b"PAR1" + b"x" * 99), "is Parquet packed with gzip: unpack it.", id="Parquet in gzip"
        ),
        pytest.param(
            gzip.compress(b"input,output\n" * 99)[:-9], "is a damaged gzip file: pack it again.", id="cut gzip"
        ),
        pytest.param(b"BZh9 x", "is packed with bzip2: unpack it, or pack it with gzip.", id="bzip2"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    """Whatever they are called."""
    assert refusal(saved(tmp_path, content, "trace.csv")) == sentence


def test_files_that_are_no_trace(tmp_path: Path) -> None:
    """A folder, nothing at all, a name that no file can have, an archive."""
    assert refusal(tmp_path) == "is a folder: give one file of it."
    assert refusal(tmp_path / "none") == "cannot be opened: give a file that is there and may be read."
    with pytest.raises(TraceError, match=r"^“a\?b” cannot be opened: give a file that is there and may be read\.$"):
        read_trace("a\0b")
    with zipfile.ZipFile(tmp_path / "trace.csv", "w") as archive:
        archive.writestr("a.csv", "input,output\n1,2\n")
    assert refusal(tmp_path / "trace.csv") == "is a ZIP archive: unpack it and give the file in it."


def test_columns_that_are_not_there(tmp_path: Path) -> None:
    """A name that is wrong, and half a pair."""
    path = saved(tmp_path, "a,b\n1,2\n")
    assert refusal(path, input_column="a", output_column="c") == "has no column “c”: take one of “a”, “b”."
    assert refusal(path, input_column="a") == (
        "has no columns known to hold lengths: say which of “a”, “b” are the input and the output "
        "(--input-column and --output-column)."
    )


def test_a_file_too_large(tmp_path: Path) -> None:
    """Refused by its size, unread: this one is a hole in the disk."""
    path = saved(tmp_path, "input,output\n", "large.csv")
    os.truncate(path, 2 * 2**30)
    assert refusal(path) == (
        "is 2.0 GiB, and at most 1 GiB is read: give a histogram of it, in DuckDB and with its own names COPY (SELECT "
        "input, output, count(*) AS count FROM 'large.csv' GROUP BY ALL) TO 'histogram.parquet'."
    )


def test_json_on_one_line_that_memory_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is said how to write it; the page says the limit beforehand."""
    monkeypatch.setattr("sizing.traffic.duckdb_file.MEMORY", "24MB")
    rows = ",".join(f'{{"input": {at % 9999 + 1}, "output": {at % 999 + 1}}}' for at in range(200_000))
    assert refusal(saved(tmp_path, f"[{rows}]", "one.json")) == (
        "does not fit into 24MB of memory while it is read: write one request a line, as CSV or JSON lines."
    )


def test_a_small_file_that_unpacks_to_a_large_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unpacking stops at the bound."""
    path = saved(tmp_path, gzip.compress(b"input,output\n" + b"1,1\n" * 2**20), "bomb.gz")
    assert path.stat().st_size < 2**15
    monkeypatch.setattr(trace_file, "MAX_BYTES", 2**21)
    assert refusal(path).startswith("holds more than 0 GiB, and at most 0 GiB is read: ")


def test_too_many_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One more than are read."""
    monkeypatch.setattr(rows, "MAX_REQUESTS", 1000)
    query = "SELECT 1 AS input, 2 AS output FROM range({})"
    assert read_trace(parquet_of(tmp_path / "a", query.format(1000))).requests == 1000
    assert refusal(parquet_of(tmp_path / "b", query.format(1001))) == (
        "holds more than 1,000 rows: give a histogram of it, with the columns input, output and count."
    )


def test_more_requests_than_can_be_told_apart(tmp_path: Path) -> None:
    """Histograms are summed in float64, which is exact to 2**53 alone."""
    assert refusal(saved(tmp_path, "length,count\n16000000,2147483647\n")) == (
        "counts more requests than can be told apart: divide every count by the same number."
    )


@pytest.mark.parametrize("name", ["a*.csv", "[ab].csv", "??.csv", "x' ; DROP.csv", "k=v.csv", "**", "é “”.csv"])
def test_a_name_reaches_no_other_file(tmp_path: Path, name: str) -> None:
    """What would match other names matches itself alone."""
    for other in ("ab.csv", "a.csv", "bb.csv"):
        saved(tmp_path, "input,output\n500,500\n", other)
    assert told(read_trace(saved(tmp_path, "input,output\n1,2\n", name)).lengths) == {3: 1}


def test_a_connection_is_confined(tmp_path: Path) -> None:
    """It opens no other file, and its settings are locked."""
    path, other = saved(tmp_path, "input,output\n1,2\n", "a.csv"), saved(tmp_path, "secret", "b.csv")
    with open_in_duckdb(trace_file.trace_file(path)) as trace:
        for query in (f"FROM read_text('{other}')", f"COPY (SELECT 1) TO '{tmp_path / 'c'}'", "INSTALL httpfs",
                      "SET enable_external_access = true", f"ATTACH '{tmp_path / 'd'}'"):  # fmt: skip
            with pytest.raises(duckdb.Error):
                trace.connection.execute(query)


def test_progress_is_told_in_the_callers_thread(tmp_path: Path) -> None:
    """Rising, from 0 to 1."""
    told_in, shares = set(), []

    def progress(share: float) -> None:
        told_in.add(threading.get_ident())
        shares.append(share)

    path = parquet_of(tmp_path / "a", "SELECT range % 1000 + 1 AS input, range % 77 AS output FROM range(3000000)")
    assert read_trace(path, progress=progress).requests == 3_000_000
    assert told_in == {threading.get_ident()}
    assert all(0 <= share <= 1 for share in shares)
    assert shares[-1] == 1


def test_what_progress_raises_ends_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the page that shows it is left."""

    class LeftError(Exception):
        pass

    def leave(share: float) -> None:
        raise LeftError

    monkeypatch.setattr(rows, "_POLL", 1e-4)
    path = parquet_of(tmp_path / "a", "SELECT range % 1000 + 1 AS input, range % 77 AS output FROM range(3000000)")
    with pytest.raises(LeftError):
        read_trace(path, progress=leave)


def test_the_same_in_every_kind(tmp_path: Path) -> None:
    """CSV, JSON and Parquet of one trace, of lengths drawn at random."""
    random = np.random.default_rng(7)
    pairs = list(zip(random.integers(1, 9000, 500).tolist(), random.integers(0, 900, 500).tolist(), strict=True))
    csv = saved(tmp_path, csv_of(("input_len", "output_len"), pairs), "a.csv")
    mixes: list[Mix] = [
        read_trace(csv),
        read_trace(saved(tmp_path, jsonl_of(("input_length", "output_length"), pairs), "a.jsonl")),
        read_trace(parquet_of(tmp_path / "a.parquet", f"FROM '{csv}'")),
        read_trace(saved(tmp_path, run([i for i, _ in pairs], [o for _, o in pairs]), "run.jsonl")),
    ]
    assert all(alike(mix, mixed(pairs)) for mix in mixes)
