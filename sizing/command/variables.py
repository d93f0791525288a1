"""Shell variables that the text itself gives: NAME=value, NAME="several words", NAME=(an array), ${NAME:-default}.

What is not given stays as it stands. Nothing is run: `$(...)` stays too.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from sizing.command.words import Word, words_of

MAX_DEPTH, MAX_WORDS = 5, 5_000  # bounds for hostile input: variables in variables, and what comes of them
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w{0,60})=(?P<value>.*)", re.DOTALL)
_USED = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w{0,60})(?:\[[@*]\])?(?::?-(?P<default>[^{}]*))?\}|(?P<plain>[A-Za-z_]\w{0,60}))"
)
ANY_EXPANSION = re.compile(r"\$[\w{(@*]|\{\{|`")
"""What a shell, or a template, would still fill in."""


class _Given(NamedTuple):
    at: int
    words: tuple[Word, ...]


def expanded(text: str, words: list[Word], own: list[Word]) -> list[Word]:
    """The words of a command with the variables filled in that `words`, those of the whole text, give.

    A variable that holds several words gives them with their own places, so that a flag can be replaced where it
    stands; a single value has the place of the variable.
    """
    given = _assignments(text, words)
    found: list[Word] = []
    for word in own:
        for one in _filled(word, given, MAX_DEPTH):
            if len(found) >= MAX_WORDS:
                return found
            found.append(one)
    return found


def _assignments(text: str, words: list[Word]) -> dict[str, list[_Given]]:
    found: dict[str, list[_Given]] = {}
    for index, (word, after) in enumerate(pairwise([*words, Word("", 0, 0)])):
        match = _ASSIGNED.fullmatch(word.value) if word.kind == "word" else None
        if match is None:
            continue
        if not match["value"] and after.value == "(" and after.start == word.end:
            array = [item for item in words[index + 2 :] if item.start < _closing(words[index + 2 :])]
            held = [item for item in array if item.kind == "word"]
        else:
            held = _quoted(text, word) or [Word(match["value"], word.start, word.end)]
        found.setdefault(match["name"], []).append(_Given(word.start, tuple(held)))
    return found


def _closing(words: list[Word]) -> int:
    return next((word.start for word in words if word.value == ")"), 0)


def _quoted(text: str, word: Word) -> list[Word]:
    """The words inside the quotes of NAME="..."; none where it is written otherwise."""
    raw = text[word.start : word.end]
    name, _, value = raw.partition("=")
    if len(value) < 2 or value[0] != value[-1] or value[0] not in "'\"":
        return []
    inner = words_of(value[1:-1], "shell", word.start + len(name) + 2, inside=True)
    return [item for item in inner if item.kind == "word"]


def _filled(word: Word, given: dict[str, list[_Given]], depth: int) -> Iterator[Word]:
    whole = _USED.fullmatch(word.value)
    if whole is None or depth == 0:
        yield word._replace(value=_USED.sub(lambda used: _text(used, word, given), word.value)) if depth else word
        return
    held = _held(whole, word, given)
    if held is None:
        yield word
    elif len(held) == 1:  # one value stands where the variable stands
        yield from _filled(held[0]._replace(start=word.start, end=word.end), given, depth - 1)
    else:
        for item in held:
            yield from _filled(item, given, depth - 1)


def _held(used: re.Match[str], word: Word, given: dict[str, list[_Given]]) -> tuple[Word, ...] | None:
    """What a variable holds where it is used: the last that was given before; else its default."""
    name = used["braced"] or used["plain"]
    before = [item for item in given.get(name, []) if item.at < word.start]
    if before:
        return before[-1].words
    if used["default"] is None:
        return None
    return tuple(Word(part, word.start, word.end) for part in used["default"].split()) or (word._replace(value=""),)


def _text(used: re.Match[str], word: Word, given: dict[str, list[_Given]]) -> str:
    """A variable inside a word, as text; as it stands where it is not given or holds several words."""
    held = _held(used, word, given)
    return held[0].value if held is not None and len(held) == 1 and "$" not in held[0].value else used[0]
