"""Read a boot log: from text, chunks or a file to boots with their facts, and what could not be read.

Source: boot-log-formats.md.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

from sizing.basics.problems import Problem
from sizing.basics.units import count
from sizing.bootlog.boots import BootLines, boots_of, died_later, is_serving
from sizing.bootlog.engines import LOOKED_AT, OtherEngine, other_engine
from sizing.bootlog.facts import Facts
from sizing.bootlog.find import Finder, Line
from sizing.bootlog.gather import facts_of
from sizing.bootlog.line_records import Crashed, NoSlot
from sizing.bootlog.refusals import RefusedBoot, refused_of
from sizing.bootlog.text import (
    MAX_BYTES,
    MAX_UNWRAPPED,
    Progress,
    Reader,
    chunks_of,
    prepared,
    uncoloured,
    widest,
)

WHERE = "log"
MAX_BOOTS = 200  # of a log; a server that restarts more often needs another cure


class Boot(NamedTuple):
    """One start of one server."""

    lines: tuple[Line, ...]
    """What each line said, with its rank, in order."""
    facts: Facts
    refused: RefusedBoot | None
    """Why the engine would not start."""
    crashed: bool
    """It ended with an exception that is no refusal."""
    serving: bool
    """It got as far as serving."""
    died_later: bool
    """Its pools were made, and it ended with an exception afterwards."""
    server: int
    """Which of the text's servers it is of, from 0."""
    no_slot: bool = False
    """A request found no free state slot: an assertion ended the process."""

    @property
    def failed(self) -> bool:
        """Whether the engine refused to start."""
        return self.refused is not None

    @property
    def first_line(self) -> int:
        """Where it begins in the log, from 1."""
        return self.lines[0].number

    @property
    def source(self) -> str:
        """The collector's mark of its first line, as a container's name; empty without one."""
        return next((line.source for line in self.lines if line.source), "")

    @property
    def cut(self) -> tuple[Line, ...]:
        """Lines that have lost their end, or what stood in their middle."""
        return tuple(line for line in self.lines if line.cut)


# What a text is: one with boots of SGLang, or why there is none.
LogKind = Literal["boots", "not_a_log", "other_engine", "unreadable", "too_large"]


class Log(NamedTuple):
    """A whole log."""

    kind: LogKind
    boots: tuple[Boot, ...]
    """Oldest first; replicas are boots of their own."""
    other_engine: str | None
    """The engine that wrote it, if it is not SGLang."""
    problems: tuple[Problem, ...]
    lines_read: int
    bytes_read: int
    flags_elsewhere: tuple[str, ...] = ()
    """Launch flags in the text whose values stand in a file or a variable: `--config FILE`, `--tp-size $TP`."""
    cut_short: bool = False
    """Not all of it was there, or was read: a packed file that breaks off, too many bytes or lines."""

    @property
    def servers(self) -> tuple[str, ...]:
        """The collector's mark of each server in the text, in the order of their first boots."""
        marks: dict[int, str] = {}
        for boot in self.boots:
            marks.setdefault(boot.server, boot.source)
        return tuple(marks.values())

    @property
    def last_server(self) -> tuple[Boot, ...]:
        """The boots of the server whose boot counts, oldest first."""
        last = self.last
        return tuple(boot for boot in self.boots if last is not None and boot.server == last.server)

    @property
    def last(self) -> Boot | None:
        """The boot that counts: the last that got as far as a pool and was not refused, else the last one."""
        started = [boot for boot in self.boots if not boot.failed]
        sized = [boot for boot in started if boot.facts.slots is not None or boot.facts.kv_rows is not None]
        counting = sized or started or list(self.boots)
        return counting[-1] if counting else None

    @property
    def failed(self) -> tuple[Boot, ...]:
        """The boots that the engine refused."""
        return tuple(boot for boot in self.boots if boot.failed)


def read_text(text: str, progress: Progress | None = None) -> Log:
    """A log as text, as from a paste. Raises nothing: what is wrong is among `problems`."""
    return read_chunks([text.encode("utf-8", "replace")], progress)


def read_file(path: Path, progress: Progress | None = None) -> Log:
    """A log in a file, plain or gzip. Raises OSError where it cannot be read."""
    return read_chunks(chunks_of(path), progress)


def read_chunks(chunks: Iterable[bytes], progress: Progress | None = None) -> Log:
    """A log in chunks of bytes, plain or gzip; `progress` is called with the bytes taken so far,
    at short intervals of work too: what it raises ends the reading.

    Memory stays bounded whatever the size; nothing beyond MAX_BYTES is read. What the chunks raise is passed on.

    >>> log = read_chunks([b"Mamba Cache is allocated. max_mamba_cache_size: 257, conv_state size: 0.46GB, ",
    ...                    b"ssm_state size: 13.04GB "])
    >>> log.last.facts.slots, round(log.last.facts.slot_bytes.value)
    (257, 56184165)
    """
    reader, head = Reader(chunks, progress), bytearray()
    text = _blocks(reader)
    finder = Finder(text.widest, (lambda: progress(reader.bytes_in)) if progress else None)
    found = boots_of(finder.lines(_watched(text.blocks, head)))
    boots = tuple(map(_boot, found[-MAX_BOOTS:]))
    # SGLang's own lines count whatever else the log holds.
    other = None if boots else other_engine(bytes(head))
    return Log(
        kind="boots" if boots else _why_none(reader, bytes(head), other),
        boots=() if other else boots,
        other_engine=other.name if other else None,
        problems=tuple(_problems(reader, finder, len(found), other)),
        lines_read=finder.lines_read,
        bytes_read=reader.bytes_read,
        flags_elsewhere=_flags_elsewhere(bytes(head)) if boots else (),
        cut_short=reader.broken or reader.too_long or finder.gave_up,
    )


def _why_none(reader: Reader, head: bytes, other: OtherEngine | None) -> LogKind:
    if other:
        return "other_engine"
    if reader.too_long:
        return "too_large"
    readable = head.strip() and b"\x00" not in head
    return "unreadable" if reader.broken or not readable else "not_a_log"


# A launch command in the log, as a container's start script echoes it: which of its values are not in the text.
LAUNCH = re.compile(r"sglang(?:\.launch_server|[ .]serve)\b([^\n]{0,4000})")
ELSEWHERE = re.compile(r"--config[ =][^\s'\"]{1,200}|--[\w-]{1,60}[ =][\"']?\$[\w{}]{1,80}")


def _flags_elsewhere(head: bytes) -> tuple[str, ...]:
    launches = LAUNCH.findall(head.decode("utf-8", "replace"))
    return tuple(dict.fromkeys(flag for launch in launches for flag in ELSEWHERE.findall(launch)))


def _boot(found: BootLines) -> Boot:
    lines = found.lines
    return Boot(
        lines=tuple(lines),
        facts=facts_of(lines),
        refused=refused_of(lines),
        crashed=any(isinstance(line.record, Crashed | NoSlot) for line in lines),
        serving=is_serving(lines),
        died_later=died_later(lines) and refused_of(lines) is None,
        server=found.server,
        no_slot=any(isinstance(line.record, NoSlot) for line in lines),
    )


class _Text(NamedTuple):
    """A log's blocks, and the longest line of a long one [characters], by what stands at its beginning."""

    blocks: Iterable[bytes]
    widest: int | None


def _blocks(reader: Reader) -> _Text:
    """The blocks of a log; a short one is one block, prepared as a whole."""
    blocks, short, size = reader.blocks(), [], 0
    for block in blocks:
        short.append(block)
        size += len(block)
        if size > MAX_UNWRAPPED:
            return _Text(uncoloured(chain(short, blocks)), widest(short))
    return _Text([prepared(b"".join(short))], None)


def _watched(blocks: Iterable[bytes], head: bytearray) -> Iterator[bytes]:
    """The same blocks, the first bytes kept in `head`."""
    for block in blocks:
        head += block[: max(LOOKED_AT - len(head), 0)]
        yield block


def _problems(reader: Reader, finder: Finder, boots: int, other: OtherEngine | None) -> Iterator[Problem]:
    if other:
        yield _problem(f"This is a log of {other.name}, not of SGLang: {other.why}. Paste the log of an SGLang server.")
    elif not boots:
        yield _problem(
            f"No line of an SGLang boot was found in the {count(finder.lines_read)} lines read. Paste from “Load "
            "weight begin” to “max_total_num_tokens=”."
        )
    if boots > MAX_BOOTS:
        yield _problem(
            f"The log holds {count(boots)} boots: the last {MAX_BOOTS} were read. Cut it to the one you mean."
        )
    yield from not_all_read(broken=reader.broken, too_long=reader.too_long)
    if finder.gave_up:
        yield _problem("The log has more boot lines than any server prints: the rest was not read. Cut it to one boot.")


def not_all_read(*, broken: bool, too_long: bool) -> Iterator[Problem]:
    """A sentence for each reason why not all of a log was read."""
    if broken:
        yield _problem("The packed file breaks off or is damaged: only what came before was read.")
    if too_long:
        yield _problem(f"Only the first {count(MAX_BYTES // 2**20)} MiB were read: cut the log to what you mean.")


def _problem(sentence: str) -> Problem:
    return Problem(where=WHERE, sentence=sentence)
