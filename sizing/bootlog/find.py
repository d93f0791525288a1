"""From blocks of bytes to what their lines say: a fast search for anchors, then the forms on the lines that have one.

Most of a large log is serving traffic. `bytes.find` runs over it for each anchor at memory speed, and only where
one is found a line is cut out, decoded and read with care. Where a line is longer than WINDOW, what lies around
the anchor is read.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from sizing.bootlog.arguments import ARGUMENTS, MAX_CHARACTERS, read_arguments
from sizing.bootlog.forms import ANCHORS, BEGINNINGS, CUT, DECODE_ANCHOR, LONG_ANCHORS, Match, matches
from sizing.bootlog.line_records import Decode, LineRecord, StatePool
from sizing.bootlog.prefix import NEW_LINE, Rank, plain, rank_before, source_of

WINDOW = 8192  # bytes that are read of a line around an anchor
BEFORE = 512  # bytes before an anchor in which its prefix is looked for
CONTINUED = 3  # lines that the rest of a wrapped one may take
CONTINUED_BYTES = 400  # the length of each
MARGIN = MAX_CHARACTERS + BEFORE  # what must be there behind an anchor before it is read, unless the log ends
MAX_MESSAGES = 100_000  # a bound for hostile input; 512 ranks that boot ten times print half as many
MAX_CAREFUL = 12 * 2**20  # the same, for the bytes of lines that are read with care
MAX_JOINED = 20_000  # the same, for usual lines read together with those behind them, up to six times each
BEAT, LINE = 500, 100  # lines between two signs that the reading goes on, and the bytes of a usual line
MAX_DECODES = 32  # decode batches looked at for each boot: one says how large the state pool is

_DECODE = DECODE_ANCHOR.encode()
_EDGE = re.compile(rb"[\r\n]")
_SPACES = re.compile(r"\s+")


class Line(NamedTuple):
    """One message of a log."""

    number: int
    """Of the line it stands in, from 1."""
    rank: Rank
    source: str
    prefix: str
    text: str
    form: str
    releases: frozenset[str] | None
    """The releases that print it so; None where the form does not say."""
    cut: bool
    """It has lost its end, or what stood in its middle."""
    record: LineRecord


class Finder:
    """Feeds on blocks and gives lines; holds one block and MARGIN at most.

    `widest` is the longest line of a long log [characters]: the end of a line as long as that may be a cut. A short
    text has its marks already (text.py). `beat` is called every so many messages: what it raises ends the reading.
    """

    def __init__(self, widest: int | None = None, beat: Callable[[], None] | None = None) -> None:
        self._widest = widest
        self._beat = beat
        self._anchors = tuple(anchor.encode() for anchor in (ANCHORS if widest is None else LONG_ANCHORS))
        self._buffer = b""
        self._from = 0  # where the search goes on in the buffer
        self._done = 0  # up to where lines were read
        self._line = 1  # the line that `_from` is in
        self._messages_read = self._careful = self._decodes = self._joined = self._next_beat = 0
        self.lines_read = 0
        self.gave_up = False
        """More messages than any boot log has: the rest was not read."""

    def lines(self, blocks: Iterable[bytes]) -> Iterator[Line]:
        """The messages of all blocks, in order."""
        for block in blocks:
            kept = self._from - BEFORE if self._from > BEFORE else 0
            self._buffer = self._buffer[kept:] + block
            self._from -= kept
            self._done = max(self._done - kept, 0)
            yield from self._search(len(self._buffer) - MARGIN)
            if self.gave_up:
                break
        yield from self._search(len(self._buffer))
        self.lines_read = self._line - (1 if self._buffer[-1:] in (b"\n", b"") else 0)

    def _search(self, until: int) -> Iterator[Line]:
        """Everything from `_from` on whose anchor begins before `until`."""
        if until <= self._from:
            return
        counted = self._from
        for hit in self._hits(until):
            if hit < self._from or self.gave_up:
                continue
            self.gave_up = self._messages_read > MAX_MESSAGES or self._careful > MAX_CAREFUL
            self._line += self._buffer.count(b"\n", counted, hit)
            counted = hit
            if self._beat and (work := self._messages_read + self._careful // LINE) >= self._next_beat:
                self._next_beat = work + BEAT
                self._beat()
            yield from self._read(hit)
        end = max(self._from, until)
        self._line += self._buffer.count(b"\n", counted, end)
        self._from = end

    def _hits(self, until: int) -> list[int]:
        hits = [hit for anchor in self._anchors for hit in self._found(anchor, until)]
        hits += islice(self._found(_DECODE, until), max(MAX_DECODES - self._decodes, 0))
        return sorted(hits)

    def _found(self, anchor: bytes, until: int) -> Iterator[int]:
        """Where an anchor begins, from `_from` to before `until`."""
        end = until + len(anchor) - 1
        at = self._buffer.find(anchor, self._from, end)
        while at >= 0:
            yield at
            at = self._buffer.find(anchor, at + len(anchor), end)

    def _read(self, hit: int) -> Iterator[Line]:
        """The messages of the line around an anchor."""
        begin, end = self._line_begin(hit), self._line_end(hit, WINDOW)
        if self._buffer.startswith(b"server_args", hit):
            line = self._read_arguments(hit, _text(self._buffer[begin:hit]))
            if line is not None:
                yield line
        else:
            yield from self._messages(begin, end)
        self._from = self._done = max(self._from, end)

    def _messages(self, begin: int, end: int) -> Iterator[Line]:
        whole = end < len(self._buffer) and self._buffer[end : end + 1] in (b"\r", b"\n")
        line = _text(self._buffer[begin:end])
        line += "\n" if whole and (self._widest is None or len(line) < self._widest) else ""
        rest = self._continued(end) if whole and self._joined < MAX_JOINED else []
        self._joined += 2 * len(rest) * (1 + (end - begin) // LINE)
        found, text = best_reading(line, rest)
        self._messages_read += max(len(found), 1)
        self._careful += end - begin
        for index, match in enumerate(found):
            # A line of several messages has a prefix before each.
            yield self._line_of(match, text[found[index - 1].end if index else 0 : match.start], text)

    def _line_of(self, match: Match, before: str, text: str) -> Line:
        if isinstance(match.record, Decode):
            self._decodes += 1
        elif isinstance(match.record, StatePool):
            self._decodes = 0
        return Line(
            number=self._line,
            rank=rank_before(before),
            source=source_of(text),
            prefix=before,
            text=text[match.start : match.end].strip(),
            form=match.form.name,
            releases=None if match.form.cut else match.form.releases,
            cut=match.form.cut and not match.form.older,
            record=match.record,
        )

    def _read_arguments(self, hit: int, before: str) -> Line | None:
        end = self._line_end(hit, MAX_CHARACTERS)
        self._messages_read += 1
        self._careful += end - hit
        text = _text(self._buffer[hit:end])
        found = ARGUMENTS.match(text)
        said = read_arguments(text[found.end() :] + ("\n" if self._widest is None else "")) if found else None
        if found and said and not said.complete and said.form != "quoted":
            said = read_arguments(
                "".join([text[found.end() :].removesuffix(CUT), *self._wrapped_arguments(end, hit + MAX_CHARACTERS)])
            )
        if said is None:
            return None
        cut = not said.complete and said.form != "quoted"
        return Line(self._line, Rank(), source_of(before), before, "server_args", "arguments", None, cut, said)

    def _wrapped_arguments(self, end: int, stop: int) -> Iterator[str]:
        """The lines behind a broken arguments line, up to one that begins as a log's lines do."""
        while (at := self._after_edge(end)) < min(stop, len(self._buffer)):
            end = self._line_end(at, stop - at)
            line = _text(self._buffer[at:end])
            if not line.strip() or NEW_LINE.search(line[:300]) or line.lstrip().startswith(BEGINNINGS):
                return
            self._careful += end - at
            yield line.removesuffix(CUT)

    def _line_begin(self, hit: int) -> int:
        low = max(self._done, hit - BEFORE, 0)
        return max(self._buffer.rfind(b"\n", low, hit), self._buffer.rfind(b"\r", low, hit), low - 1) + 1

    def _line_end(self, at: int, most: int) -> int:
        found = _EDGE.search(self._buffer, at, at + most)
        return found.start() if found else min(len(self._buffer), at + most)

    def _after_edge(self, end: int) -> int:
        return end + (2 if self._buffer.startswith(b"\r\n", end) else 1)

    def _continued(self, end: int) -> list[str]:
        """The lines behind one, as far as they may be the rest of it."""
        rest: list[str] = []
        for _ in range(CONTINUED):
            at = self._after_edge(end)
            end = self._line_end(at, CONTINUED_BYTES)
            line = _text(self._buffer[at:end])
            if not line.strip() or NEW_LINE.search(line) or any(anchor in line for anchor in BEGINNINGS):
                break
            rest.append(line)
        return rest


def best_reading(line: str, rest: list[str]) -> tuple[list[Match], str]:
    """What a line says alone, or with the lines behind it, wrapped at a space or within a word: what says most.

    A number is taken from joined lines only as part of a form that is whole, and the line alone wins a tie.
    """
    alone = _spaced(line)
    readings = [(matches(alone), alone)]
    for count in range(1, len(rest) + 1):
        parts = [part.rstrip("\r\n").removesuffix(CUT) for part in (line, *rest[: count - 1])] + [rest[count - 1]]
        # A message that begins in a later line is read with that line.
        readings += [
            ([match for match in matches(text) if match.start < len(alone) - 1], text)
            for text in (_spaced(" ".join(parts) + "\n"), _spaced("".join(parts) + "\n"))
        ]
    return max(readings, key=lambda reading: _weight(reading[0]))


def _weight(found: list[Match]) -> int:
    """How much was found: fields that are not None, numbers of a refusal; a whole form is more than a cut one."""
    return sum(sum(map(_told, match.record)) + (0 if match.form.cut else 1) for match in found)


def _told(value: object) -> int:
    return len(value) if isinstance(value, dict) else int(value is not None and value != ())


def _spaced(text: str) -> str:
    """One space for each run of them, the newline at the end kept: it says that the line was whole."""
    return _SPACES.sub(" ", text.rstrip("\r\n")) + ("\n" if text.endswith("\n") else "")


def _text(raw: bytes) -> str:
    return plain(raw.decode("utf-8", "replace"))
