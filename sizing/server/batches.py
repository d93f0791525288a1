"""`Prefill batch` and `Decode batch` lines, retractions and the ends of a server, of all releases.

Source: running-server.md 4.5 and 6.5. A line is `name: number` pieces with a comma and a space between, in an order
that changes with the release; a number counts only where the next piece, or the end of the line, is there.

Most of a large log is whole lines of the one usual form: one expression reads all of them at once. Where a stretch of
text holds any other, its lines are read piece by piece.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np

from sizing.bootlog.prefix import plain, rank_before, source_of
from sizing.server.columns import AT, NAN, OF_LINES, STAMP, Key, Row, Table, row, second_of, seconds

MAX_LINE = 2_000  # characters of a line that are read behind its first words; a real one has some 300
MAX_BEFORE = 400  # and before them
MAX_NUMBERS = 65_536  # texts of numbers that are remembered

# The pieces that sizing reads; the same name means the same in every release.
COUNTS = {
    "#running-req": "running", "#queue-req": "queued", "#full token": "tokens", "#token": "tokens",
    "mamba num": "slots",
}  # fmt: skip
SHARES = {"full token usage": "kv", "token usage": "kv", "mamba usage": "state"}
BATCH = re.compile(r"\b(Prefill|Decode) batch(?: \[\d{1,15}\])?, ")
RETRACT = "KV cache pool is full. Retract requests. "
RETRACTED = {"#retracted_reqs", "#aborted_retracted_reqs", "#new_tokens_gained", "#mamba_num_gained"}

_PIECE = re.compile(r"(#?[A-Za-z][\w \-]{0,40}): (\d{1,15}(?:\.\d{1,6})?)")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
# A collector may write the end of a line as \n inside a string of its own.
_END = re.compile(r'\r|\n|\\r|\\n|"')
_RETRACT = re.compile(r"Retract requests\. ")
_ANCHOR = re.compile(r"(?:Prefill|Decode) batch|Retract requests\. ")


class Batch(NamedTuple):
    """One batch line."""

    key: Key
    row: Row


class Retraction(NamedTuple):
    """One retraction line."""

    key: Key
    time: float
    requests: int
    """Requests that gave up their KV and wait again."""
    aborted: int
    slots: int | None
    """State slots that this freed; since 0.5.11."""


def pieces_of(text: str, whole: bool) -> dict[str, float]:
    """The numbers of a line behind its first words, by name; `whole` is whether the line was there to its end.

    >>> pieces_of("#running-req: 8, mamba num: 8, mamba usage: 0.5", whole=False)
    {'#running-req': 8.0, 'mamba num': 8.0}
    """
    pieces = text.split(", ")
    if not whole:
        pieces.pop()
    else:
        pieces[-1] = pieces[-1].rstrip(" ,")
    found: dict[str, float] = {}
    for piece in pieces:
        match = _PIECE.fullmatch(piece)
        if match:
            found.setdefault(match[1], float(match[2]))
    return found


def read_batch(kind: Literal["Prefill", "Decode"], before: str, text: str, whole: bool) -> Batch | None:
    """A batch line from what stands before its words and behind them; None where it gives no number."""
    said = pieces_of(text, whole)
    values = {column: said[name] for name, column in COUNTS.items() if said.get(name, 0.5).is_integer()}
    values |= {column: said[name] for name, column in SHARES.items() if name in said}
    if not values:
        return None
    return Batch(_key(kind.lower(), before), row({"time": time_in(before), **values}, OF_LINES))


def read_retraction(before: str, text: str, whole: bool) -> Retraction | None:
    """A retraction line, from the text behind RETRACT."""
    said = {name: int(value) for name, value in pieces_of(text, whole).items() if name in RETRACTED}
    if "#retracted_reqs" not in said:
        return None
    return Retraction(
        key=_key("decode", before),
        time=time_in(before),
        requests=said["#retracted_reqs"],
        aborted=said.get("#aborted_retracted_reqs", 0),
        slots=said.get("#mamba_num_gained"),
    )


def time_in(text: str) -> float:
    """The last date and time of a text [s since 1970]; NaN without one."""
    found = _STAMP.findall(text)
    return second_of(found[-1]) if found else NAN


def lines_of(text: str, *, batches: bool = True) -> Iterator[Batch | Retraction]:
    """Every batch and retraction line of a text, each read piece by piece; without batches the retractions alone.

    No character is read twice, however many of their words stand in one line.
    """
    hits = [hit.span() for hit in (_ANCHOR if batches else _RETRACT).finditer(text)]
    done = 0
    for (start, stop), (after, _) in zip_longest(hits, hits[1:], fillvalue=(len(text), 0)):
        low, high = max(start - MAX_BEFORE, done), min(stop + MAX_LINE, after)
        begin = max(text.rfind("\n", low, start) + 1, low)
        end = _END.search(text, stop, high)
        done = end.end() if end else high
        line = text[begin : end.start() if end else high]
        # What follows a line's end belongs to it only as the sign that it was whole.
        found = _read(plain(line), end is not None and end[0] != '"')
        if found is not None:
            yield found


def _read(line: str, whole: bool) -> Batch | Retraction | None:
    if (at := line.find(RETRACT)) >= 0:
        return read_retraction(line[:at], line[at + len(RETRACT) :], whole)
    batch = BATCH.search(line)
    if batch is None:
        return None
    kind: Literal["Prefill", "Decode"] = "Prefill" if batch[1] == "Prefill" else "Decode"
    return read_batch(kind, line[: batch.start()], line[batch.end() :], whole)


def _key(kind: str, before: str) -> Key:
    source = source_of(before).encode("latin-1", "replace").decode("utf-8", "replace")
    return Key(kind, source, rank_before(before).name)


# The usual forms, whole: prefix, numbers, and what the engine prints behind each of them.
_N, _U = r"(\d{1,15}+)", r"(\d{1,3}+\.\d\d)"
_HEAD = r"\n([^\n\[]{0,120}+)\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,]\d{1,6})?+([^\]\n]{0,60}+)\] "
_DECODE = re.compile(
    rf"{_HEAD}Decode batch(?: \[\d{{1,15}}\])?, #running-req: {_N}, #full token: {_N}, full token "
    rf"usage: {_U}, (?:#swa token: \d+, swa token usage: [\d.]+, )?mamba num: {_N}, mamba usage: {_U}, .*"
    rf"#queue-req: {_N}(?=,? ?\r?\n)"
)
_PREFILL = re.compile(
    rf"{_HEAD}Prefill batch(?: \[\d{{1,15}}\])?, #new-seq: \d++, #new-token: \d++, #cached-token: \d++, "
    rf"full token usage: {_U}, mamba usage: {_U}, #running-req: {_N}, #queue-req: {_N}(?=,)"
)
_USUAL = (
    ("decode", "Decode batch", _DECODE, ("running", "tokens", "kv", "slots", "state", "queued")),
    ("prefill", "Prefill batch", _PREFILL, ("kv", "state", "running", "queued")),
)


class _Numbers(dict[str, float]):
    """Texts of numbers and what they are: most occur again and again."""

    def __missing__(self, text: str) -> float:
        if len(self) >= MAX_NUMBERS:
            self.clear()
        value = self[text] = float(text)
        return value


_numbers = _Numbers()


class Usual(NamedTuple):
    """Batch lines of the usual form."""

    tables: list[tuple[Key, Table]]
    alone: bool
    """Whether the text has no other lines."""


def usual_lines(text: str) -> Usual | None:
    """All batch lines of a text whose lines are whole, as tables; None where any of them is not of the usual form.

    The text begins with a newline and ends with one.
    """
    found: list[tuple[Key, Table]] = []
    read, lines = 0, text.count("\n") - 1
    for kind, words, pattern, names in _USUAL:
        if words not in text:
            continue
        matches = pattern.findall(text)
        if len(matches) < lines - read and len(matches) != text.count(words):
            return None
        read += len(matches)
        if matches:
            found += _tables(kind, matches, names)
        if read == lines:
            break
    return Usual(found, alone=read == lines)


def _tables(kind: str, matches: list[Any], names: tuple[str, ...]) -> list[tuple[Key, Table]]:
    sources, stamps, ranks, *numbers = zip(*matches, strict=True)
    table = np.full((len(matches), OF_LINES), np.nan)
    table[:, AT["time"]] = seconds(list(stamps))
    for name, texts in zip(names, numbers, strict=True):
        # Tokens hardly ever occur twice.
        values = map(float if name == "tokens" else _numbers.__getitem__, texts)
        table[:, AT[name]] = np.fromiter(values, np.float64, len(texts))
    if len(set(sources)) == len(set(ranks)) == 1:
        return [(_key_of(kind, sources[0], ranks[0]), table)]
    keys = [_key_of(kind, source, rank) for source, rank in zip(sources, ranks, strict=True)]
    places = {key: index for index, key in enumerate(dict.fromkeys(keys))}
    index = np.array([places[key] for key in keys])
    return [(key, table[index == place]) for key, place in places.items()]


@lru_cache(maxsize=4096)
def _key_of(kind: str, source: str, rank: str) -> Key:
    return _key(kind, f"{source}[{'0' * STAMP}{rank}] ")
