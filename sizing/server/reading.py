"""From any text to what it says of a running server: recognised by content, alone or mixed, in bounded memory.

Batch lines, retractions, the assertions that end a server short of slots, Prometheus text, and JSON answers may stand
in one file, with a boot log among them.
"""

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sizing.bootlog.prefix import source_of
from sizing.bootlog.text import MAX_BYTES, Progress, Reader, chunks_of
from sizing.server.batches import MAX_BEFORE, RETRACT, Batch, Retraction, Usual, lines_of, time_in, usual_lines
from sizing.server.columns import Key, Row
from sizing.server.metrics import Metrics, Scrape
from sizing.server.server_info import MAX_JSON, WORDS, ServerInfo, read_json
from sizing.server.tables import Tables
from sizing.server.unified_lines import POOL_WORDS, UnifiedPool, UnifiedReader, whole_lines

PIECE = 2**17  # characters that are read at once: small enough that what they give is freed before it counts
MAX_INFOS, MAX_ENDS, MAX_GAUGES, MAX_RETRACTIONS, MAX_COUNTED = 64, 64, 4096, 200_000, 200_000
MAX_ANSWERS = 32 * 2**20  # characters of JSON that are parsed in one text, a bound for hostile input

# running-server.md 6.5 and 6.4, in the engine's words, and what they mean.
ENDS = {
    "Not enough space for mamba cache": "new request",
    "Can not alloc mamba cache": "chunk border",
    "Out of memory even after retracting all other requests": "kv",
}
STARTS = ("server_args=", "Load weight begin")
_JSON = re.compile(r"\n(?=\{|\[[ \t]*(?:\{|\r?\n))")


class Texts:
    """Several files as one text, each plain or gzip; read once, from the first to the last."""

    def __init__(self, files: Iterable[Iterable[bytes]], progress: Progress | None = None) -> None:
        self._files, self._progress = files, progress
        self._before = 0  # bytes of the files before, as they came
        self.bytes_in = self.bytes_read = 0
        """Bytes as they came, packed or not, and unpacked."""
        self.too_long = self.broken = False

    def blocks(self) -> Iterator[bytes]:
        """All of it in UTF-8, nothing beyond MAX_BYTES; a file begins on a line of its own."""
        for number, chunks in enumerate(self._files):
            reader = Reader(chunks, self._shown)
            if number:
                yield b"\n"
            for block in reader.blocks():
                if self.bytes_read >= MAX_BYTES:
                    self.too_long = True
                    return
                self.bytes_read += len(block)
                yield block
            self._before += reader.bytes_in
            self.too_long, self.broken = self.too_long or reader.too_long, self.broken or reader.broken

    def _shown(self, done: int) -> None:
        self.bytes_in = self._before + done
        if self._progress:
            self._progress(self.bytes_in)


class Ended(NamedTuple):
    """One of the assertions that end a server, once for each kind and source."""

    why: str
    """new request, chunk border, or kv: the last request was aborted because KV was full."""
    source: str
    time: float


class ServerReading(NamedTuple):
    """Everything that a text says of a running server, as it was read."""

    tables: Tables
    retractions: dict[Key, list[Retraction]]
    retracted: dict[Key, list[tuple[float, float]]]
    """The counter of retracted requests whenever it was another: when [s since 1970], and what it said."""
    gauges: dict[Key, dict[str, float]]
    """The last value of what does not change: capacity, limit, page, memory."""
    infos: tuple[ServerInfo, ...]
    ends: tuple[Ended, ...]
    pools: tuple[UnifiedPool, ...]
    starts: int
    """How often a server started anew after it had served."""
    bytes_read: int
    too_long: bool
    broken: bool

    @property
    def is_empty(self) -> bool:
        """Whether the text says nothing of a running server."""
        return not (self.infos or self.ends or self.pools or self.retractions or self.tables.keys)


def reading_of(chunks: Iterable[bytes], progress: Progress | None = None) -> ServerReading:
    """What chunks of bytes say, plain or gzip. Raises nothing but what the chunks raise."""
    reader, taken = Reader(chunks, progress), Taken()
    for text in pieces(reader.blocks()):
        taken.take(text)
    return taken.done(reader)


def reading_of_file(path: Path, progress: Progress | None = None) -> ServerReading:
    """The same of a file. Raises OSError where it cannot be read."""
    return reading_of(chunks_of(path), progress)


def pieces(blocks: Iterable[bytes]) -> Iterator[str]:
    """Texts that begin with a newline and end with one, the last as it is; each byte is a character."""
    rest = ""
    for block in blocks:
        text = rest + block.decode("latin-1")
        begin = 0
        while len(text) - begin > PIECE:
            end = text.rfind("\n", begin, begin + PIECE) + 1
            if not end and (end := text.find("\n", begin + PIECE, begin + MAX_JSON) + 1) == 0:
                if len(text) - begin < MAX_JSON:
                    break
                end = begin + MAX_JSON  # a line that no server writes
            yield "\n" + text[begin:end]
            begin = end
        rest = text[begin:]
    if rest:
        yield "\n" + rest


class Taken:
    """What was read so far."""

    def __init__(self) -> None:
        self._tables, self._metrics, self._pools = Tables(), Metrics(), UnifiedReader()
        self._retractions: dict[Key, list[Retraction]] = {}
        self._retracted: dict[Key, list[tuple[float, float]]] = {}
        self._counted = 0
        self._gauges: dict[Key, dict[str, float]] = {}
        self._infos: list[ServerInfo] = []
        self._ends: dict[tuple[str, str], Ended] = {}
        self._started: set[str] = set()  # sources that started anew; what they served before is dropped once they serve
        self._answer: list[str] = []  # lines of a JSON answer that is not closed yet
        self._answer_size = self._answers_read = self._starts = self._retraction_lines = 0

    def take(self, text: str) -> bool:
        """The next piece; whether it held usual batch lines alone, so that nothing else is in it."""
        usual = usual_lines(text) if text.endswith("\n") and not self._answer else None
        if usual is not None and usual.alone:
            self._add_usual(usual)
            return True
        if self._answer or _JSON.search(text):
            text = self._without_answers(text)
        parts = list(_parts(text))
        for part in parts:
            self._take_part(part, usual if len(parts) == 1 else None)
        return False

    def done(self, reader: "Reader | Texts") -> ServerReading:
        """Everything, with how the reader of the bytes ended."""
        self._close_answer()
        for scrape in self._metrics.close():
            self._add(scrape)
        return ServerReading(
            tables=self._tables,
            retractions=self._retractions,
            retracted=self._retracted,
            gauges=self._gauges,
            infos=tuple(self._infos),
            ends=tuple(self._ends.values()),
            pools=self._pools.pools,
            starts=self._starts,
            bytes_read=reader.bytes_read,
            too_long=reader.too_long,
            broken=reader.broken,
        )

    def _take_part(self, text: str, usual: Usual | None) -> None:
        first = text[1 : text.find("\n", 1)]
        if any(start in first for start in STARTS):
            self._started.add(source_of(first))
        self._take_batches(text, usual)
        if "sglang:" in text or "sglang_" in text or "\n# scrape " in text:
            for scrape in self._metrics.scrapes(text):
                self._add(scrape)
        if POOL_WORDS in text:
            self._pools.take(text)
        for words, why in ENDS.items():
            for place in _places(text, words):
                self._take_end(text, place, why)

    def _take_batches(self, text: str, usual: Usual | None) -> None:
        if " batch" not in text and "Retract" not in text:
            return
        if usual is None and text.endswith("\n"):
            usual = usual_lines(text)
        if usual is not None:
            self._add_usual(usual)
        if usual is not None and RETRACT not in text:
            return
        rows: dict[Key, list[Row]] = {}
        for line in lines_of(text, batches=usual is None):
            if isinstance(line, Batch):
                rows.setdefault(line.key, []).append(line.row)
            elif self._retraction_lines < MAX_RETRACTIONS:
                self._serves(line.key.source)
                self._retraction_lines += 1
                self._retractions.setdefault(line.key, []).append(line)
        for key, table in rows.items():
            self._serves(key.source)
            self._tables.add(key, table)

    def _add_usual(self, usual: Usual) -> None:
        for key, table in usual.tables:
            self._serves(key.source)
            self._tables.add(key, table)

    def _serves(self, source: str) -> None:
        """A server that started anew serves again: what it served before is of another run."""
        if not self._started or source not in self._started:
            return
        self._started.discard(source)
        if self._tables.forget(source):
            self._starts += 1
            self._retractions = {key: lines for key, lines in self._retractions.items() if key.source != source}

    def _take_end(self, text: str, place: int, why: str) -> None:
        low = max(place - MAX_BEFORE, 0)
        before = text[max(text.rfind("\n", low, place) + 1, low) : place]
        found = Ended(why, source_of(before), time_in(before))
        if len(self._ends) < MAX_ENDS:
            self._ends.setdefault((found.why, found.source), found)

    def _add(self, scrape: Scrape) -> None:
        key, values = scrape
        self._tables.add(key, [scrape.row])
        if key not in self._gauges and len(self._gauges) >= MAX_GAUGES:
            return
        self._gauges.setdefault(key, {}).update(
            {name: value for name, value in values.items() if name in ("capacity", "limit", "page", "context")}
        )
        if "retracted" in values:
            counter = self._retracted.setdefault(key, [])
            if self._counted < MAX_COUNTED and (not counter or counter[-1][1] != values["retracted"]):
                counter.append((values.get("time", math.nan), values["retracted"]))
                self._counted += 1

    def _without_answers(self, text: str) -> str:
        """A text without the JSON answers that stand on lines of their own; they are read."""
        kept = [""]
        for line in whole_lines(text[1:]):
            if self._answer:
                self._answer.append(line)
                self._answer_size += len(line)
                if line[:1] in "}]" or self._answer_size > MAX_JSON:
                    self._close_answer()
            elif line.startswith(("{", "[{")) and line.rstrip().endswith(("}", "]", "}%")):
                self._read_answer(line)
                kept.append(line)  # a collector writes lines of a log as JSON too
            elif line.startswith(("{", "[{")) or line.strip() == "[":
                self._answer, self._answer_size = [line], len(line)
            else:
                kept.append(line)
        return "\n" + "".join(kept)

    def _close_answer(self) -> None:
        lines, self._answer = self._answer, []
        if lines:
            self._read_answer("".join(lines))

    def _read_answer(self, text: str) -> None:
        if self._answers_read > MAX_ANSWERS or not any(word in text for word in WORDS):
            return
        self._answers_read += len(text)
        for found in read_json(text.encode("latin-1").decode("utf-8", "replace")):
            if isinstance(found, Scrape):
                self._add(found)
            elif len(self._infos) < MAX_INFOS:
                self._infos.append(found)


def _parts(text: str) -> Iterator[str]:
    """A text, cut before every line that a server writes when it starts."""
    begin = 0
    for hit in sorted(place for words in STARTS for place in _places(text, words)):
        line = text.rfind("\n", begin, hit)
        if line > begin:
            yield text[begin : line + 1]
            begin = line
    yield text[begin:]


def _places(text: str, words: str) -> Iterator[int]:
    """Where words begin in a text."""
    at = text.find(words)
    while at >= 0:
        yield at
        at = text.find(words, at + len(words))
