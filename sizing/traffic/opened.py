"""A trace file opened in DuckDB, which then reaches no other file, no network and no extension."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb

from sizing.traffic.trace_file import TraceFile

MAX_OBJECT = 2**27  # bytes of one JSON object, of which DuckDB wants room for eight a thread
MAX_COLUMNS = 1000
MEMORY = "1200MB"  # of DuckDB: eight objects at their largest. numpy holds 8 to 12 bytes a request beside it
_DEFAULT_OBJECT = 2**24  # DuckDB's own bound
_NAMES_ONLY = "maximum_depth = 1, map_inference_threshold = -1"  # names of a JSON file, and not what they hold
_WHOLE = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER")
_NUMBER = re.compile(r"FLOAT|DOUBLE|DECIMAL.*")


class Opened(NamedTuple):
    """A file that DuckDB has open."""

    connection: Any
    file: TraceFile
    source: str
    """A DuckDB table function over the file, its path the one parameter. CSV columns are called c0, c1, ..."""
    pattern: str
    """That parameter: the path, with nothing in it that matches another file."""
    types: dict[str, str]
    """DuckDB's type of each column by its name in the file, in the file's order."""

    def column(self, name: str) -> str:
        """SQL for a column."""
        return f"c{list(self.types).index(name)}" if self.file.kind == "CSV" else '"' + name.replace('"', '""') + '"'

    def number(self, name: str) -> str:
        """SQL for a column as a number, NULL where it is none."""
        column = self.column(name)
        if self.file.kind == "Parquet" and _WHOLE.fullmatch(self.types[name]):
            return column
        if self.file.kind == "Parquet" and not _NUMBER.fullmatch(self.types[name]):
            column += "::VARCHAR"  # DuckDB takes true for 1
        return f"TRY_CAST({column} AS DOUBLE)"

    def rows(self, types: Mapping[str, str]) -> str:
        """SQL for the rows with these columns at these types; only JSON needs to be told."""
        listed = ", ".join(f"{_literal(name)}: '{kind}'" for name, kind in types.items())
        rows = self.source.replace(_NAMES_ONLY, f"columns = {{{listed}}}")
        # An empty line in a file of one column is a row without a value; in others DuckDB passes over it by itself.
        return f"(FROM {rows} WHERE c0 IS NOT NULL)" if self.file.kind == "CSV" and len(self.types) == 1 else rows

    def place(self, row: int) -> str:
        """The words for a row, counted from 1."""
        return {
            "CSV": f"row {row + 1:,} (the header is row 1, empty lines do not count)",
            "JSON": f"object {row:,}",
            "Parquet": f"row {row:,}",
        }[self.file.kind]


@contextmanager
def opened(file: TraceFile) -> Iterator[Opened]:
    """Opens the file, and closes it with all that DuckDB holds; raises TraceError, also for what is read from it."""
    threads = 1 if file.kind == "JSON" and "\n" not in file.head.strip() else 2
    with said(file), duckdb.connect(":memory:", config={"threads": threads, "memory_limit": MEMORY}) as connection:
        pattern = _confined(connection, file.path)
        packed = f"compression = '{'gzip' if file.packed else 'none'}'"
        if file.kind == "CSV":
            delimiter, names = file.header()
            columns = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(len(names)))
            source = (
                f"read_csv(?, auto_detect = false, header = true, delim = '{delimiter}', quote = '\"', escape = '\"', "
                f"columns = {{{columns}}}, hive_partitioning = false, {packed})"
            )
            types = dict.fromkeys(reversed(names), "VARCHAR")
            types = {name: types[name] for name in names}
        else:
            most = max(_DEFAULT_OBJECT, min(MAX_OBJECT, file.size))
            source = (
                f"read_json(?, {_NAMES_ONLY}, maximum_object_size = {most}, hive_partitioning = false, {packed})"
                if file.kind == "JSON"
                else "read_parquet(?, hive_partitioning = false)"
            )
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}", [pattern]).fetchall()
            types = {row[0]: row[1] for row in described}
            if file.kind == "JSON" and list(types) == ["json"]:  # DuckDB's name for values that have none
                file.fail("holds no named values: give one object a request.")
        if len(types) > MAX_COLUMNS:
            file.fail(f"has {len(types):,} columns, and at most {MAX_COLUMNS:,} are read: give fewer.")
        yield Opened(connection, file, source, pattern, types)


def _confined(connection: Any, path: str) -> str:
    """Shuts the connection off from all but one file, and gives the pattern that matches this file alone."""
    pattern = "".join(f"[{char}]" if char in "*?[" else char for char in path)
    connection.execute("SET enable_progress_bar = true")  # else query_progress() knows nothing
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute("SET temp_directory = ''")  # what exceeds the memory is refused, not written to disk
    for extensions in ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"):
        connection.execute(f"SET {extensions} = false")
    connection.execute("SET allowed_paths = ?", [[path, pattern]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return pattern


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@contextmanager
def said(file: TraceFile) -> Iterator[None]:
    """What DuckDB raises, as a TraceError of one sentence."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        file.fail(f"does not fit into {MEMORY} of memory while it is read: count it first, and give a histogram.")
    except (duckdb.Error, UnicodeError) as error:
        file.fail(_sentence(file, str(error)))


def _sentence(file: TraceFile, words: str) -> str:
    words = re.sub(r"Original Line:.*", "", words)  # what the file holds must not choose the sentence
    found = re.search(r"CSV Error on Line: (\d+)", words)
    line = f"line {found[1]}" if found else "one of its lines"
    for sign, sentence in _SENTENCES[file.kind]:
        if told := re.search(sign, words):
            where = _json_line(file) if sentence == _MALFORMED else line
            return sentence.format(*told.groups(), line=where)
    raise AssertionError  # the last sign of each kind is found in everything


def _json_line(file: TraceFile) -> str:
    """The first line that is no JSON, where each is meant to be; what DuckDB says of lines is one too many at times."""
    with gzip.open(file.path) if file.packed else open(file.path, "rb") as lines:
        for at, line in enumerate(lines, start=1):
            try:
                json.loads(line.strip() or b"{}")
            except (ValueError, RecursionError):
                return f"line {at:,}" if at > 1 else "one of its lines"
    return "one of its lines"


_MALFORMED = "cannot be read as JSON at {line}: correct or remove what stands there."

_SENTENCES = {
    "CSV": (
        (
            r"Expected Number of Columns: (\d+) Found: (\d+)",
            "has {line} with {1} values, and its header names {0} columns: correct that line.",
        ),
        (r"unicode|not utf-8", "is not text in UTF-8 at {line}: save it as UTF-8."),
        (r"unterminated quote", "opens a quote in {line} that nothing closes: correct that line."),
        (r"aximum line size", "has more than 2 MB in {line}: leave out the columns with long text."),
        (r"", "cannot be read as CSV at {line}: correct or remove what stands there."),
    ),
    "JSON": (
        (
            r"aximum.object.size",
            f"holds a JSON object of more than {MAX_OBJECT // 2**20} MiB: keep of it what is read, with "
            "jq -c '{{input_lens, output_lens, errors}}'.",
        ),
        (r"recursion depth", "is nested too deeply to be a trace: give one object a request."),
        (r"unexpected end of data", "breaks off within an object: write it again, or remove its end."),
        (r"duplicate key", "has a name twice in one object: keep one of the two."),
        (r"Failed to cast", "has a list of lengths that holds something else: correct it."),
        (r"", _MALFORMED),
    ),
    "Parquet": ((r"", "is not a Parquet file that can be read: write it again."),),
}
