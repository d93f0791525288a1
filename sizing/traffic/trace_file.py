"""What a trace file is before anything reads it: there, of a known kind by what it holds, and within bounds."""

import codecs
import csv
import gzip
import io
import os
import re
import zlib
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, NoReturn, cast

from sizing.basics.files import GZIP, opened
from sizing.basics.problems import shown

MAX_BYTES = 2**30  # of a file and of what a .gz holds: 40 to 60 million requests as CSV
_PEEK = 2**16  # bytes in which the kind shows and a header ends
_BLOCK = 2**20
_DELIMITERS = ",\t;|"
_GIVE = "give CSV, JSON (one object a line, or a list) or Parquet"

Kind = Literal["CSV", "JSON", "Parquet", "metrics"]
# Prometheus text: a comment on a metric, or a name, labels in braces and a number. A CSV header has no such first line.
_METRICS = re.compile(r"# (HELP|TYPE) |[A-Za-z_:][\w:]*(\{[^\n]*\})?[ \t]+[-+.\d][-+.\deE]*([ \t]+\d+)?[ \t]*\r?(\n|$)")
_OTHERS = {  # by their first bytes
    b"PK\x03\x04": "is a ZIP archive: unpack it and give the file in it.",
    b"\x28\xb5\x2f\xfd": "is packed with zstd: unpack it, or pack it with gzip.",
    b"BZh": "is packed with bzip2: unpack it, or pack it with gzip.",
    b"\xfd7zXZ": "is packed with xz: unpack it, or pack it with gzip.",
    codecs.BOM_UTF16_LE: "is text in UTF-16: save it as UTF-8.",
    codecs.BOM_UTF16_BE: "is text in UTF-16: save it as UTF-8.",
}


Fault = Literal["unreadable", "columns", "too_large"]


class TraceError(ValueError):
    """A trace that cannot be read: one sentence that says what is wrong, where, and what to do."""

    def __init__(self, sentence: str, kind: Fault = "unreadable") -> None:
        super().__init__(sentence)
        self.kind = kind


class TraceFile(NamedTuple):
    """A file that may be read."""

    path: str
    """Absolute."""
    name: str
    """What sentences call it."""
    kind: Kind
    packed: bool
    """With gzip."""
    size: int
    """Unpacked [bytes]."""
    head: str
    """Its first characters; empty for Parquet."""

    def fail(self, sentence: str, kind: Fault = "unreadable") -> NoReturn:
        """Raises TraceError with the name of the file before the sentence."""
        raise TraceError(f"{shown(self.name)} {sentence}", kind)

    def fail_twice(self, column: str) -> NoReturn:
        """Raises TraceError for a length whose name stands twice."""
        self.fail(
            f"names the column {shown(column)} twice, and which one holds the lengths is not known: rename one.",
            "columns",
        )

    def header(self) -> tuple[str, list[str]]:
        """The delimiter and the column names in the first row of a CSV file; raises TraceError."""
        first = self.head.splitlines()[0]
        if not first.strip():
            self.fail("starts with an empty line: its first row must name the columns.")
        if len(first) == len(self.head) and self.size > _PEEK:
            self.fail(f"has a first row of more than {_PEEK:,} bytes: {_GIVE}.")
        delimiter = max(_DELIMITERS, key=first.count)
        try:
            return delimiter, next(csv.reader(io.StringIO(self.head, newline=""), delimiter=delimiter))
        except csv.Error:
            self.fail("has a first row that cannot be read as CSV: it must name the columns.")


def trace_file(path: str | os.PathLike[str], name: str = "") -> TraceFile:
    """Looks at the first bytes of a file and at its size; raises TraceError. Sentences call it `name`."""
    file = Path(os.path.abspath(path))
    found = TraceFile(str(file), name or file.name, "CSV", False, 0, "")
    try:
        return _looked_at(file, found)
    except (OSError, ValueError) as error:
        if isinstance(error, TraceError):
            raise
        if isinstance(error, IsADirectoryError):
            found.fail("is a folder: give one file of it.")
        found.fail("cannot be opened: give a file that is there and may be read.")


def _looked_at(file: Path, found: TraceFile) -> TraceFile:
    with opened(file) as raw:
        size = os.fstat(raw.fileno()).st_size
        if size > MAX_BYTES:
            found.fail(_too_large(f"is {size / 2**30:.1f} GiB", found.name), "too_large")
        head = raw.read(_PEEK)
    packed = head.startswith(GZIP)
    if packed:
        size, head = _unpacked(file, found)
    for magic, sentence in _OTHERS.items():
        if head.startswith(magic):
            found.fail(sentence)
    if head.startswith(b"PAR1"):
        if packed:
            found.fail("is Parquet packed with gzip: unpack it.")
        return found._replace(kind="Parquet", size=size)
    text = _text(head, found)
    if not text.strip():
        found.fail(f"is empty: {_GIVE}.")
    kind: Kind = "JSON" if text.lstrip()[0] in "{[" else "metrics" if _METRICS.match(text.lstrip()) else "CSV"
    return found._replace(kind=kind, packed=packed, size=size, head=text)


def _unpacked(file: Path, found: TraceFile) -> tuple[int, bytes]:
    """How much a gzip file holds and its first bytes; stops at the bound, so that a small file cannot hold more."""
    try:
        with gzip.open(file) as stream:
            head = stream.read(_PEEK)
            size = len(head)
            while block := cast("BinaryIO", stream).read(_BLOCK):
                size += len(block)
                if size > MAX_BYTES:
                    found.fail(_too_large(f"holds more than {MAX_BYTES / 2**30:.0f} GiB", found.name), "too_large")
    except (EOFError, zlib.error, gzip.BadGzipFile):
        found.fail("is a damaged gzip file: pack it again.")
    return size, head


def _text(head: bytes, found: TraceFile) -> str:
    if b"\0" in head:
        found.fail(f"is no text, for it holds NUL bytes: {_GIVE}.")
    try:  # the last character may be cut
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        found.fail("is not text in UTF-8: save it as UTF-8.")


def _too_large(how: str, name: str) -> str:
    plain = name.isprintable() and not set(name) & set("'*?[]\\")
    source = f"'{name if plain else 'trace.csv'}'"
    return (
        f"{how}, and at most {MAX_BYTES / 2**30:.0f} GiB is read: give a histogram of it, in DuckDB and with its own "
        f"names COPY (SELECT input, output, count(*) AS count FROM {source} GROUP BY ALL) TO 'histogram.parquet'."
    )
