"""A launch command with other sizing flags: everything else stays byte for byte."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from sizing.command.flags import SIZING_FLAGS
from sizing.command.reading import Command, Flag, read_command


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def rewritten(command: Command, changes: Mapping[str, str | None]) -> str:
    """The command's text with sizing flags set, replaced or, where the value is None, removed.

    Keys are of SIZING_FLAGS; values are what is typed behind the flag. Raises ValueError for another flag or for a
    value that is no plain number.

    >>> rewritten(read_command("sglang serve --tp 8 --mamba-full-memory-ratio 0.9 --page-size 64"),
    ...           {"--mamba-full-memory-ratio": None, "--max-mamba-cache-size": "371"})
    'sglang serve --tp 8 --page-size 64 --max-mamba-cache-size 371'
    """
    edits: list[_Edit] = []
    added: list[tuple[str, str]] = []
    for name, value in changes.items():
        _check(name, value)
        flags = [flag for flag in command.flags if flag.chief == name]
        if value is None:
            edits += [_removal(command, flag) for flag in flags]
        elif flags:
            edits.append(_replacement(command, flags[-1], value))  # the last of several counts
        else:
            added.append((name, value))
    text = command.text
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    # Flags are added last, in the text as it is then: its end is found anew.
    for name, value in added:
        text = _added(read_command(text), name, value)
    return text


def _check(name: str, value: str | None) -> None:
    if name not in SIZING_FLAGS:
        raise ValueError(f"{name} is not one of {', '.join(SIZING_FLAGS)}.")
    if value is not None and not re.fullmatch(r"\d{1,15}(?:\.\d{1,15})?", value):
        raise ValueError(f"{name} takes a plain number, not {value!r}.")


def _replacement(command: Command, flag: Flag, value: str) -> _Edit:
    """The new value where the old one stood, its quotes kept."""
    if len(flag.words) > 1:
        start, end = flag.words[1].start, flag.words[-1].end
    elif flag.value is None:  # nothing behind it
        return _Edit(flag.end, flag.end, f" {value}" if command.layout == "shell" or flag.in_shell else f"={value}")
    else:
        start, end = flag.start, flag.end
    raw = command.text[start:end]
    old = flag.value or ""
    at = raw.rfind(old) if old else -1
    if at < 0:  # quoted in pieces: written anew, as one plain word
        return _Edit(start, end, value if len(flag.words) > 1 else f"{flag.name}={value}")
    return _Edit(start + at, start + at + len(old), value)


def _removal(command: Command, flag: Flag) -> _Edit:
    """The flag, its value and what set it apart: the blank before it, its lines in a list, or a comma."""
    text = command.text
    if command.layout == "lines" and _bulleted(text, flag):
        start = text.rfind("\n", 0, flag.start) + 1
        end = text.find("\n", flag.end)
        return _Edit(start, len(text) if end < 0 else end + 1, "")
    if command.layout == "brackets" and not flag.in_shell:
        behind = re.compile(r"\s*,\s*").match(text, flag.end)
        if behind:
            return _Edit(flag.start, behind.end(), "")
        before = re.search(r"\s*,\s*$", text[: flag.start])
        return _Edit(before.start() if before else flag.start, flag.end, "")
    # Blanks and joined line ends in front; what is behind the flag takes their place.
    joint = re.search(r"(?:[ \t]|[\\`^]\r?\n)*$", text[: flag.start])
    start = joint.start() if joint else flag.start
    own_line = re.search(r"\r?\n[ \t]*$", text[: flag.start])
    if own_line and "\n" not in text[start : flag.start] and re.match(r"[ \t]*(?:\r?\n|$)", text[flag.end :]):
        start = own_line.start()
    return _Edit(start, flag.end, "")


def _bulleted(text: str, flag: Flag) -> bool:
    """Whether the flag and its value are list entries of their own lines."""
    begin = text.rfind("\n", 0, flag.start) + 1
    behind = text[flag.end :].partition("\n")[0]
    alone = re.fullmatch(r"[\"']?[ \t\r]*(?:#.*)?", behind)
    return bool(alone and re.fullmatch(r"[ \t]*-[ \t]+[\"']?", text[begin : flag.start]))


def _added(command: Command, name: str, value: str) -> str:
    """The flag behind the last one, laid out as that one is."""
    text, end = command.text, command.end
    if not command.flags:
        return f"{text[:end]} {name} {value}{text[end:]}"
    last = command.flags[-1]
    if command.layout == "lines" and _bulleted(text, last):
        begin = text.rfind("\n", 0, last.start) + 1
        indent = re.match(r"[ \t]*", text[begin:])
        line_end = text.find("\n", end)
        line_end = len(text) if line_end < 0 else line_end
        return f"{text[:line_end]}\n{indent[0] if indent else ''}- {name}={value}{text[line_end:]}"
    if command.layout == "brackets" and not last.in_shell:
        quote = text[end - 1] if text[end - 1] in "'\"" else '"'
        return f"{text[:end]}, {quote}{name}={value}{quote}{text[end:]}"
    joint = re.search(r"(?:[ \t]*[\\`^]\r?\n[ \t]*|\n[ \t]*)$", text[: last.start])
    return f"{text[:end]}{joint[0] if joint else ' '}{name} {value}{text[end:]}"
