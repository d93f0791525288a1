"""From whatever a log is given as to blocks of bytes: text, chunks or a file, plain or gzip, UTF-8 or UTF-16.

Memory stays bounded: no block is larger than what came in one piece, or than BLOCK.
"""

import codecs
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sizing.basics.files import GZIP, opened
from sizing.bootlog.forms import BEGINNINGS, CUT
from sizing.bootlog.prefix import NEW_LINE, plain

MAX_BYTES = 200 * 2**20  # what is read of a log, unpacked
BLOCK = 2**20
MAX_UNWRAPPED = 4 * 2**20  # what is looked through for wrapped lines: a paste, not a file of serving logs
NARROWEST, FEWEST = 40, 3  # a terminal's width, and how many lines of exactly that length tell that it wrapped them
LONGEST_CODE = 64  # bytes of a colour code
CODES = re.compile(rb"\x1b\[[0-9;:?]{0,40}[A-Za-z]|\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]")

Progress = Callable[[int], None]
UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


class Reader:
    """Blocks of a log, with what was found on the way."""

    def __init__(self, chunks: Iterable[bytes], progress: Progress | None = None) -> None:
        self._chunks = chunks
        self._progress = progress
        self.bytes_in = 0
        """Bytes as they came, packed or not."""
        self.bytes_read = 0
        self.too_long = False
        self.broken = False
        """The packed data ended, or was damaged, before its end."""

    def blocks(self) -> Iterator[bytes]:
        """The log in UTF-8, in blocks of at most BLOCK bytes; nothing beyond MAX_BYTES."""
        for piece in self._decoded():
            for start in range(0, len(piece), BLOCK):
                if self.bytes_read >= MAX_BYTES:
                    self.too_long = True
                    return
                block = piece[start : start + BLOCK][: MAX_BYTES - self.bytes_read]
                self.bytes_read += len(block)
                yield block

    def _counted(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            for start in range(0, len(chunk), BLOCK):
                yield chunk[start : start + BLOCK]
            self.bytes_in += len(chunk)
            if self._progress:
                self._progress(self.bytes_in)

    def _decoded(self) -> Iterator[bytes]:
        """Unpacked, and UTF-16 (as a Windows shell redirects output) as UTF-8."""
        pieces = _with_head(self._unpacked())
        decoder = None
        for first, piece in pieces:
            if first and piece[:2] in UTF_16:
                decoder = codecs.getincrementaldecoder(UTF_16[piece[:2]])(errors="replace")
            yield decoder.decode(piece).encode("utf-8", "replace") if decoder else piece

    def _unpacked(self) -> Iterator[bytes]:
        unpacker = None
        for first, piece in _with_head(self._counted()):
            if first and piece.startswith(GZIP):
                unpacker = _Unpacker()
            if unpacker is None:
                yield piece
                continue
            try:
                yield from unpacker.unpack(piece)
            except zlib.error:
                self.broken = True
                return
        self.broken = unpacker is not None and not unpacker.finished


class _Unpacker:
    """gzip, also of several members, never more than BLOCK unpacked at once."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=31)
        self._behind = b""  # bytes behind a member that may begin another

    @property
    def finished(self) -> bool:
        return self._member.eof

    def unpack(self, piece: bytes) -> Iterator[bytes]:
        while True:
            if self._member.eof:
                piece, self._behind = self._behind + piece, b""
                if len(piece) < len(GZIP):
                    self._behind = piece
                    return
                if not piece.startswith(GZIP):
                    return  # padding behind the last member
                self._member = zlib.decompressobj(wbits=31)
            part = self._member.decompress(piece, BLOCK)
            yield part
            piece = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
            if not piece and len(part) < BLOCK:
                return


class _Head(NamedTuple):
    first: bool
    piece: bytes


def _with_head(pieces: Iterable[bytes]) -> Iterator[_Head]:
    """Pieces, the first of them at least two bytes long: as many as tell a format."""
    head, first = b"", True
    for piece in pieces:
        head += piece
        if first and len(head) < len(GZIP):
            continue
        yield _Head(first, head)
        head, first = b"", False
    if head:
        yield _Head(first, head)


def chunks_of(path: Path) -> Iterator[bytes]:
    """A file in blocks. Raises OSError."""
    with opened(path) as file:
        while block := file.read(BLOCK):
            yield block


def prepared(text: bytes) -> bytes:
    """A short text as it is read: no colours, broken lines made whole, and a mark where an end may be a cut.

    A width that cuts lines leaves the cut ones longest, so behind every line as long as the longest stands CUT, and
    behind the last one: nothing says that it goes no further. A line's end counts only where there is no CUT.
    """
    raw = text.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    lines = [plain(line) for line in raw]
    widths = (max(map(len, raw)), max(map(len, lines)))
    last = max((at for at, line in enumerate(lines) if line.strip()), default=0)
    marked = [
        line + CUT if line.strip() and (at == last or len(raw[at]) == widths[0] or len(line) == widths[1]) else line
        for at, line in enumerate(lines)
    ]
    return "\n".join(_unwrapped(lines, marked)).encode()


def _unwrapped(lines: list[str], marked: list[str]) -> list[str]:
    """The marked lines, those that a terminal broke at its width whole again.

    Several lines of exactly the same greatest length are its sign; a line that begins as a log's lines do stays.
    """
    width = max(map(len, lines))
    if width < NARROWEST or sum(len(line) == width for line in lines) < FEWEST:
        return marked
    joined: list[str] = []
    parts: list[str] = []
    for line, mark, after in zip(lines, marked, [*lines[1:], ""], strict=True):
        goes_on = len(line) == width and after != "" and not begins_anew(after)
        parts.append(line if goes_on else mark)
        if not goes_on:
            joined.append("".join(parts))
            parts = []
    return joined


def begins_anew(line: str) -> bool:
    """Whether a line begins as a line of a log does: with a time or a rank in brackets, or a message of the boot."""
    return bool(NEW_LINE.search(line[:300])) or line.lstrip().startswith(BEGINNINGS)


def uncoloured(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The blocks of a long log without colours; a code that two blocks share is held back until it is whole."""
    held = b""
    for block in blocks:
        text = held + block
        begins = text.rfind(b"\x1b", max(len(text) - LONGEST_CODE, 0))
        held = text[begins:] if begins >= 0 else b""
        whole = text[:begins] if begins >= 0 else text
        yield CODES.sub(b"", whole) if b"\x1b" in whole else whole
    if held:
        yield CODES.sub(b"", held)


def widest(blocks: Iterable[bytes]) -> int:
    """The most characters of a line in these blocks: a line as long as that may be cut."""
    return max(len(line) for line in b"".join(blocks).decode("utf-8", "replace").split("\n"))
