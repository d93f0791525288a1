"""A trace file opened in DuckDB, which then reaches no other file, no network and no extension."""

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import duckdb

from sizing.traffic.trace_file import TraceFile

ONE_LINE_MB = 50  # of JSON on one line that MEMORY is sure to hold: 43 MB were read, 88 MB were not
MAX_OBJECT = 2**27  # bytes of one JSON object, of which DuckDB wants room for eight a thread
MAX_COLUMNS = 1000
MEMORY = "1200MB"  # of DuckDB: eight objects at their largest. numpy holds 8 to 12 bytes a request beside it
_DEFAULT_OBJECT = 2**24  # DuckDB's own bound
_NAMES_ONLY = "maximum_depth = 1, map_inference_threshold = -1"  # names of a JSON file, and not what they hold
_WHOLE = re.compile(r"U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER")
_NUMBER = re.compile(r"FLOAT|DOUBLE|DECIMAL.*")
_NESTED = re.compile(r"STRUCT|JSON")
_LOOKED_AT = 200  # rows from which the paths of a nested file are taken
_STRUCTURE = 2**18  # characters of one column's structure; beyond them its keys are data, not names


class Place(NamedTuple):
    """Where a value of each request stands."""

    column: str
    """Of the file, or a name at the top of its objects."""
    lists: str = ""
    """DuckDB's path in it to the list of requests, with [*]; empty where each row or object is a request."""
    field: str = ""
    """The path within a request; empty for the column itself."""
    kind: str = ""
    """The type of its JSON values; empty where it was not looked at."""
    key: str = ""
    """Where the value is a list of keys and values, as attributes of OTLP are, the key; empty for the value itself."""


class View(NamedTuple):
    """Some columns of a file as SQL: one row a request."""

    rows: str
    """A relation with the file's path as its one parameter."""
    texts: tuple[str, ...]
    """Each column as text, in the order asked for."""
    numbers: tuple[str, ...]
    """Each as a number, NULL where it is none."""
    nested: bool
    """Whether the rows stand in a list within an object of the file: `owner` is then the object, from 1."""


class Opened(NamedTuple):
    """A file that DuckDB has open."""

    connection: Any
    file: TraceFile
    source: str
    """A DuckDB table function over the file, its path the one parameter. CSV columns are called c0, c1, ..."""
    pattern: str
    """That parameter: the path, with nothing in it that matches another file."""
    names: tuple[str, ...]
    """Of the columns as the file writes them, in its order; a CSV header may have one twice, or an empty one."""
    types: tuple[str, ...]
    """DuckDB's type of each."""

    def column(self, name: str) -> str:
        """SQL for a column of the file."""
        return f"c{self.names.index(name)}" if self.file.kind == "CSV" else _named(name)

    def number(self, name: str) -> str:
        """SQL for a column as a number, NULL where it is none."""
        column = self.column(name)
        if self.file.kind == "Parquet" and _WHOLE.fullmatch(self.type_of(name)):
            return column
        if self.file.kind == "Parquet" and not _NUMBER.fullmatch(self.type_of(name)):
            column += "::VARCHAR"  # DuckDB takes true for 1
        return f"TRY_CAST({column} AS DOUBLE)"

    def type_of(self, name: str) -> str:
        """DuckDB's type of a column."""
        return self.types[self.names.index(name)]

    def rows(self, types: Mapping[str, str]) -> str:
        """SQL for the rows with these columns at these types; only JSON needs to be told."""
        listed = ", ".join(f"{_literal(name)}: '{kind}'" for name, kind in types.items())
        rows = self.source.replace(_NAMES_ONLY, f"columns = {{{listed}}}")
        # An empty line in a file of one column is a row without a value; in others DuckDB passes over it by itself.
        return f"(FROM {rows} WHERE c0 IS NOT NULL)" if self.file.kind == "CSV" and len(self.names) == 1 else rows

    def view(self, places: Sequence[Place]) -> View:
        """The columns at these places; raises TraceError where they stand in different lists."""
        if all(not place.lists and not place.field for place in places):
            rows = self.rows(dict.fromkeys((place.column for place in places), "VARCHAR"))
            texts = tuple(f"{self.column(place.column)}::VARCHAR" for place in places)
            return View(rows, texts, tuple(self.number(place.column) for place in places), nested=False)
        rows = self.rows(dict.fromkeys((place.column for place in places), "JSON"))
        if nested := any(place.lists for place in places):
            if len({(place.column, place.lists) for place in places}) > 1:
                self.file.fail("has its lengths in different lists: name columns that stand in one.", "columns")
            rows = self._records(places[0], rows)
        texts = tuple(_text("record" if nested else self._json(place.column), place) for place in places)
        return View(rows, texts, tuple(f"TRY_CAST({text} AS DOUBLE)" for text in texts), nested)

    def _records(self, place: Place, rows: str) -> str:
        """SQL for the records of a list; `owner` is the object that holds it, which may stand in a list itself."""
        outer, _, inner = place.lists.removesuffix("[*]").rpartition("[*]")
        held = self._json(place.column)
        held = f"unnest(json_extract({held}, {_literal(outer + '[*]')}))" if outer else held
        inner = _literal(f"{'$' if outer else ''}{inner}[*]")
        return (
            f"(SELECT owner, unnest(json_extract(held, {inner})) AS record FROM (SELECT row_number() OVER () AS owner, "
            f"held FROM (SELECT {held} AS held FROM {rows})))"
        )

    def counted(self, place: Place) -> int:
        """How many values stand at a place of lists; the file is read for it."""
        rows = self.rows({place.column: "JSON"})
        query = f"SELECT sum(len(json_extract({self._json(place.column)}, {_literal(place.lists)}))) FROM {rows}"
        return int(self.connection.execute(query, [self.pattern]).fetchone()[0] or 0)

    def places(self) -> dict[str, Place]:
        """Every value of a nested file by its path, such as usage.prompt_tokens or requests[].in, from its first rows.

        Flat files have their columns alone; so has whatever nests deeper than is worth offering.
        """
        found = {name: Place(name) for name in self.names}
        if self.file.kind == "CSV":
            return found
        held = [name for name in self.names if self.file.kind == "JSON" or _NESTED.search(self.type_of(name))]
        if not held:
            return found
        groups = ", ".join(f"json_group_structure({self._json(name)})" for name in held)
        rows = self.rows(dict.fromkeys(held, "JSON"))
        query = f"SELECT {groups} FROM (FROM {rows} LIMIT {_LOOKED_AT})"
        for name, structure in zip(held, self.connection.execute(query, [self.pattern]).fetchone(), strict=True):
            if structure and len(structure) <= _STRUCTURE:
                _spread(json.loads(structure), name, Place(name), found)
        return found

    def _json(self, name: str) -> str:
        return self.column(name) if self.file.kind == "JSON" else f"to_json({self.column(name)})"

    def place(self, row: int) -> str:
        """The words for a row, counted from 1."""
        return {
            "CSV": f"row {row + 1:,} (the header is row 1, empty lines do not count)",
            "JSON": f"object {row:,}",
            "Parquet": f"row {row:,}",
        }[self.file.kind]


def _text(held: str, place: Place) -> str:
    """SQL for a value as text; of a list of keys and values the one of its key, whatever type it is stated as."""
    if not place.key:
        return f"json_extract_string({held}, {_literal('$' + place.field)})"
    entries = f"json_extract({held}, {_literal('$' + place.field + '[*]')})"
    found = f"list_filter({entries}, lambda one: json_extract_string(one, '$.key') = {_literal(place.key)})[1]"
    kinds = ("intValue", "stringValue", "doubleValue", "boolValue")
    values = ", ".join(f"json_extract_string({found}, '$.value.{kind}')" for kind in kinds)
    return f"coalesce({values})"


def _named(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _spread(structure: Any, path: str, place: Place, found: dict[str, Place]) -> None:
    """Adds what stands below a place: names of objects, and of objects in lists."""
    if len(found) >= MAX_COLUMNS:
        return
    if isinstance(structure, dict):
        found[path] = place._replace(kind="OBJECT")
        for key, inner in structure.items():
            if '"' not in key:
                _spread(inner, f"{path}.{key}", place._replace(field=f'{place.field}."{key}"'), found)
    elif isinstance(structure, list) and structure and isinstance(structure[0], dict):
        lists = (place.lists or "$") + place.field + "[*]"
        if {"key", "value"} <= set(structure[0]):
            found[path] = place._replace(kind="LIST")
        _spread(structure[0], f"{path}[]", Place(place.column, lists), found)
    else:
        found[path] = place._replace(kind=structure if isinstance(structure, str) else "LIST")


@contextmanager
def open_in_duckdb(file: TraceFile) -> Iterator[Opened]:
    """Opens the file, and closes it with all that DuckDB holds; raises TraceError, also for what is read from it."""
    threads = 1 if file.kind == "JSON" and "\n" not in file.head.strip() else 2
    with (
        duckdb_errors(file),
        duckdb.connect(":memory:", config={"threads": threads, "memory_limit": MEMORY}) as connection,
    ):
        pattern = _confined(connection, file.path)
        packed = f"compression = '{'gzip' if file.packed else 'none'}'"
        if file.kind == "CSV":
            delimiter, names = file.header()
            columns = ", ".join(f"'c{at}': 'VARCHAR'" for at in range(len(names)))
            source = (
                f"read_csv(?, auto_detect = false, header = true, delim = '{delimiter}', quote = '\"', escape = '\"', "
                f"columns = {{{columns}}}, hive_partitioning = false, {packed})"
            )
            types = ["VARCHAR"] * len(names)
        else:
            most = max(_DEFAULT_OBJECT, min(MAX_OBJECT, file.size))
            source = (
                f"read_json(?, {_NAMES_ONLY}, maximum_object_size = {most}, hive_partitioning = false, {packed})"
                if file.kind == "JSON"
                else "read_parquet(?, hive_partitioning = false)"
            )
            described = connection.execute(f"DESCRIBE SELECT * FROM {source}", [pattern]).fetchall()
            names, types = [row[0] for row in described], [row[1] for row in described]
            if file.kind == "JSON" and names == ["json"]:  # DuckDB's name for values that have none
                file.fail("holds no named values: give one object a request.", "columns")
        if len(names) > MAX_COLUMNS:
            file.fail(f"has {len(names):,} columns, and at most {MAX_COLUMNS:,} are read: give fewer.", "too_large")
        yield Opened(connection, file, source, pattern, tuple(names), tuple(types))


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
def duckdb_errors(file: TraceFile) -> Iterator[None]:
    """What DuckDB raises, as a TraceError of one sentence."""
    try:
        yield
    except duckdb.OutOfMemoryException:
        cure = (
            "write one request a line, as CSV or JSON lines"
            if file.kind == "JSON"
            else "count it first, and give a histogram"
        )
        file.fail(f"does not fit into {MEMORY} of memory while it is read: {cure}.", "too_large")
    except (duckdb.Error, UnicodeError) as error:
        sentence = _sentence(file, str(error))
        file.fail(sentence, "too_large" if sentence.startswith("holds a JSON object of more than") else "unreadable")


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
