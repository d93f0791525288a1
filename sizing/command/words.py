"""A launch command as words, each with its place in the text, so that the rest can stay byte for byte.

Three layouts are read: a shell's, a YAML list (`- --tp-size`), and a list in brackets (JSON, or YAML's flow form).
"""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Layout = Literal["shell", "lines", "brackets"]
MAX_CHARACTERS = 100_000  # a bound for hostile input; a long command has some 4,000

_BULLET_FLAG = re.compile(r"^[ \t]*-[ \t]+[\"']?--[a-z]", re.MULTILINE)
_BRACKET_FLAG = re.compile(r"\[\s*[\"'][^\[\]]{0,20000}?--[a-z]")
_QUOTED = r"""'[^']*'|"(?:[^"\\]|\\.)*\""""
# A backslash, and in a Windows shell ` or ^, at the end of a line joins it with the next.
_SHELL = re.compile(
    rf"(?P<space>[ \t\r]+|[\\`^]\r?\n)|(?P<line>\n)|(?P<comment>#[^\n]*)"
    rf"|(?P<operator>&&|\|\||\d?>>?&?\d?|[;|&<()])|(?P<word>(?:{_QUOTED}|\$\(\((?:[^()]|\([^()]*\))*\)\)|\$\([^()]*\)|\\(?!\r?\n).|[^\s'\"\\;|&<>()`]|['\"\\`])+)",
    re.DOTALL,
)
_LIST = re.compile(
    rf"(?P<space>[\s,\[\]]+|\\\r?\n)|(?P<comment>#[^\n]*)|(?P<word>(?:{_QUOTED}|[^\s'\"\\,\[\]]|\\.|['\"\\])+)",
    re.DOTALL,
)
_PIECE = re.compile(rf"{_QUOTED}|\\.|.", re.DOTALL)
_INSIDE = re.compile(r"\s--[a-z]|sglang")


class Word(NamedTuple):
    """One word: its value without quotes, and where it stands."""

    value: str
    start: int
    end: int
    kind: Literal["word", "operator", "line"] = "word"
    inside: bool = False
    """Cut out of a command inside quotes."""


def layout_of(text: str) -> Layout:
    """How the flags are laid out."""
    if _BULLET_FLAG.search(text):
        return "lines"
    return "brackets" if _BRACKET_FLAG.search(text) else "shell"


def words_of(text: str, layout: Layout, offset: int = 0, inside: bool = False) -> Iterator[Word]:
    r"""The words of a text, as a shell or a list cuts it; a command inside quotes (`sh -c "..."`) is cut as well.

    >>> [word.value for word in words_of("a --b='c d' \\\n  --e", "shell")]
    ['a', '--b=c d', '--e']
    """
    pattern = _SHELL if layout == "shell" else _LIST
    for found in pattern.finditer(text):
        kind, raw = found.lastgroup, found[0]
        start = offset + found.start()
        if kind == "word":
            if _is_command(raw):
                yield from words_of(raw[1:-1], "shell", start + 1, inside=True)
            elif raw != "-":  # a list's bullet
                yield Word(_value(raw), start, start + len(raw), "word", inside)
        elif kind == "operator":
            yield Word(raw, start, start + len(raw), "operator")
        elif kind == "line":
            yield Word(raw, start, start + len(raw), "line")


def is_open(raw: str) -> bool:
    """Whether a word as it stands holds a quote that nothing closes."""
    return any(piece[0] in ("'", '"') for piece in _PIECE.finditer(raw))


def _is_command(raw: str) -> bool:
    quoted = len(raw) > 1 and raw[0] == raw[-1] and raw[0] in "'\""
    return quoted and re.search(r"\s", raw) is not None and _INSIDE.search(raw) is not None and "--" in raw


def _value(raw: str) -> str:
    return "".join(_unquoted(piece[0]) for piece in _PIECE.finditer(raw))


def _unquoted(piece: str) -> str:
    if len(piece) > 1 and piece[0] == piece[-1] == "'":
        return piece[1:-1]
    if len(piece) > 1 and piece[0] == piece[-1] == '"':
        return re.sub(r"\\(.)", r"\1", piece[1:-1], flags=re.DOTALL)
    return piece[1:] if piece[0] == "\\" and len(piece) == 2 else piece
