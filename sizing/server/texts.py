"""Files of any kind that a log may be given as, read once: the boots in them, and what they say of a running server."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sizing.bootlog import Log, read_chunks
from sizing.bootlog.log import not_all_read
from sizing.bootlog.text import BLOCK, Progress
from sizing.server.facts import ServerFacts, facts_of
from sizing.server.reading import Taken, Texts, pieces


class Read(NamedTuple):
    """Everything that the texts hold."""

    log: Log
    """The boots; none where no line of one was found."""
    facts: ServerFacts | None
    """What a running server told; None where nothing was."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was wrong with the reading; that there is no boot is nothing wrong where a server told something."""
        of_log = self.log.problems if self.facts is None or self.log.boots else ()
        both = (*of_log, *(self.facts.problems if self.facts else ()))
        return tuple(dict.fromkeys(problem.sentence for problem in both))


def read_texts(files: Iterable[Iterable[bytes]], progress: Progress | None = None) -> Read:
    r"""Several files, each in chunks of bytes, plain or gzip, as one text; `progress` gets the bytes taken so far.

    Memory stays bounded whatever the size. What the chunks raise is passed on, and so is what `progress` raises.

    >>> read = read_texts([[b"Decode batch, #running-req: 3, #full token: 90, full token usage: 0.10, mamba num: 12, "
    ...                     b"mamba usage: 0.50, cuda graph: True, gen throughput (token/s): 9.10, #queue-req: 0\n"]])
    >>> read.facts.main.held
    4.0
    """
    texts, taken = Texts(files, progress), Taken()
    log = read_chunks(_others(texts, taken), (lambda _: progress(texts.bytes_in)) if progress else None)
    said = taken.done(texts)
    if texts.too_long or texts.broken:
        log = _cut(log, texts)
    return Read(log, facts_of(said))


def _others(texts: Texts, taken: Taken) -> Iterator[bytes]:
    """What a reader of boots has to see: in place of usual batch lines, which are most of a long log, empty ones."""
    held, size, empty = [], 0, 0
    for text in pieces(texts.blocks()):
        if taken.take(text):
            empty += text.count("\n") - 1
            continue
        held += [b"\n" * empty, text[1:].encode("latin-1")]
        size, empty = size + empty + len(text), 0
        if size >= BLOCK:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _cut(log: Log, texts: Texts) -> Log:
    """A log of which not all was there, or was read."""
    kind = log.kind
    if not log.boots and log.kind != "other_engine":
        kind = "too_large" if texts.too_long else "unreadable"
    why = not_all_read(broken=texts.broken, too_long=texts.too_long)
    return log._replace(kind=kind, cut_short=True, problems=(*log.problems, *why))
