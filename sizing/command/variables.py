"""Shell variables that the text itself gives: NAME=value, NAME="several words", NAME=(an array), ${NAME:-default}.

NAME+= adds to what was given before. A launch command may stand in an array itself: CMD=(sglang serve ...).

What is not given stays as it stands. Nothing is run: `$(...)` stays too.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from sizing.command.words import Word, words_of

MAX_DEPTH, MAX_WORDS = 5, 5_000  # bounds for hostile input: variables in variables, and what comes of them
_ASSIGNED = re.compile(r"(?P<name>[A-Za-z_]\w{0,60})(?P<adds>\+?)=(?P<value>.*)", re.DOTALL)
_USED = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_]\w{0,60})(?:\[[@*]\])?(?::?[-=](?P<default>[^{}]*))?\}|(?P<plain>[A-Za-z_]\w{0,60}))"
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
            closing = _closing(words[index + 2 :])
            held = [item for item in words[index + 2 :] if item.kind == "word" and item.start < closing]
        else:
            held = _quoted(text, word) or [Word(match["value"], word.start, word.end)]
        before = found.setdefault(match["name"], [])
        more = before[-1].words if match["adds"] and before else ()
        before.append(_Given(word.start, (*more, *held)))
    return found


def set_on_condition(text: str, words: list[Word], own: list[Word]) -> dict[str, tuple[str, ...]]:
    """The variables of a command that an `if`, `case` or loop sets, and the words that they then hold."""
    given, left, used = _assignments(text, words), list(own), dict[str, None]()
    while left and len(used) < MAX_WORDS:
        for match in _USED.finditer(left.pop().value):
            name = match["braced"] or match["plain"]
            if name not in used:
                used[name] = None
                left += [word for one in given.get(name, []) for word in one.words]
    inside = _on_condition(words)
    found = {name: [one for one in given.get(name, []) if one.at in inside] for name in used}
    return {name: tuple(word.value for one in ones for word in one.words) for name, ones in found.items() if ones}


_OPENS, _CLOSES = ("if", "case", "for", "while", "until"), ("fi", "esac", "done")
_STARTS = ("then", "else", "elif", "do", "{", "&&", "||", ";")


def _on_condition(words: list[Word]) -> set[int]:
    """The places of the words that stand inside an `if`, a `case` or a loop."""
    inside, depth = set(), 0
    for before, word in pairwise([Word("", 0, 0, "line"), *words]):
        begins = before.kind == "line" or before.value in _STARTS
        depth += (begins and word.value in _OPENS) - (begins and depth > 0 and word.value in _CLOSES)
        if depth:
            inside.add(word.start)
    return inside


def array_around(words: list[Word], index: int) -> tuple[str, int] | None:
    """The array that the word at `index` is an item of: its name, and the index of what closes it; None without one."""
    for at in range(index - 1, 0, -1):
        if words[at].value == ")":
            return None
        if words[at].value == "(" and words[at].kind == "operator":
            match = _ASSIGNED.fullmatch(words[at - 1].value)
            if match is None or match["value"] or words[at - 1].end != words[at].start:
                return None
            closed = (later for later in range(index, len(words)) if words[later].value == ")")
            return match["name"], next(closed, len(words))
    return None


def added_to(words: list[Word], name: str, after: int) -> list[Word]:
    """The words that NAME+=( ... ) adds to an array behind the word at index `after`."""
    added: list[Word] = []
    for index, word in enumerate(words[after:-1], start=after):
        if word.value == f"{name}+=" and words[index + 1].value == "(" and words[index + 1].start == word.end:
            closing = _closing(words[index + 2 :])
            added += [item for item in words[index + 2 :] if item.kind == "word" and item.start < closing]
    return added


def _closing(words: list[Word]) -> int:
    return next((word.start for word in words if word.value == ")"), 0)


def _quoted(text: str, word: Word) -> list[Word]:
    """The words inside the quotes of NAME="..."; none where it is written otherwise."""
    raw = text[word.start : word.end]
    name, _, value = raw.partition("=")  # a += leaves the + at the name
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
