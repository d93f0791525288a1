"""The arguments line: which flags a server runs with. A scanner for both of its forms; nothing is evaluated.

Source: boot-log-formats.md section 1. Since 0.5.19 the values are a dictionary, before a call of ServerArgs with
nested reprs. Both are read alike: the commas and brackets outside strings cut it into entries, and of the
entries that sizing reads the value must be one plain literal.
"""

import ast
import re
from collections.abc import Iterator

from sizing.bootlog.forms import CUT
from sizing.bootlog.line_records import Arguments, ArgumentsForm, Value
from sizing.scenario.inputs import INPUTS

ARGUMENTS = re.compile(r"server_args\s?[=:]\s?")
MAX_CHARACTERS = 131_072  # a bound for hostile input; the longest real line has some 20,000
MAX_VALUE = 200  # the same, for one value
MAX_DEPTH = 32  # the same; real values nest two or three deep

# Keys that are no input of a Scenario, or only part of one.
OTHER_KEYS = (
    "attn_cp_size", "chunked_prefill_size", "dp_size", "enable_dp_attention", "enable_gdn_replayssm_spec",
    "enable_linear_replayssm", "enable_linear_replayssm_spec", "linear_attn_backend", "mem_fraction_static",
    "model_path", "nnodes", "node_rank",
)  # fmt: skip
WANTED = frozenset((*OTHER_KEYS, *(key for own in INPUTS.values() for key in own.log_keys)))
"""The keys that are read; those of an input stand at the input (sizing/scenario/inputs.py)."""

_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_TOKEN = re.compile(rf"""{_STRING}|[(\[{{]|[)\]}}]|,|['"]|[^'"()\[\]{{}},]+""", re.DOTALL)
_ENTRY = re.compile(r"""\s*(?:['"](\w{1,80})['"]\s*:|(\w{1,80})\s*=)\s*(.{1,200}?)\s*""", re.DOTALL)
_LOOSE = re.compile(rf"""\b(\w{{1,80}})['"]?\s?[=:]\s?({_STRING}|[\w.+-]{{1,40}})(?=[\s,}})])""")
# What is left of a line that is cut before its first entry ends.
_BROKEN_OFF = re.compile(rf"""(?:\{{?|S\w{{0,9}}\(?|(?:\{{['"]|ServerArgs\()[^,}})]{{0,180}})(?:{CUT})?\s*""")
_LITERAL = re.compile(rf"-?\d{{1,15}}(?:\.\d{{1,15}})?(?:e-?\d{{1,3}})?|True|False|None|{_STRING}")


def read_arguments(text: str) -> Arguments | None:
    r"""The flags in a text that begins behind `server_args=`; None where there are none.

    A text that breaks off gives the entries before the break. Without an opening bracket (a line quoted in part)
    the wanted names are looked for in the text as it is.

    >>> read_arguments("ServerArgs(tp_size=8, json='{\"tp_size\": 4}', page_size=64, dp").values
    {'tp_size': 8, 'page_size': 64}
    """
    text = text[:MAX_CHARACTERS]
    if _BROKEN_OFF.fullmatch(text[:200]):  # a line that was there, and says nothing of what it would have stated
        form: ArgumentsForm = "dict" if text.startswith("{") else "ServerArgs" if text.startswith("S") else "quoted"
        return Arguments({}, frozenset(), form, 0, complete=False)
    if text.startswith("{"):
        return _read(text, 1, "dict")
    if text.startswith("ServerArgs("):
        return _read(text, len("ServerArgs("), "ServerArgs")
    found = {name: value for name, value in _LOOSE.findall(text) if name in WANTED}
    return Arguments(_literals(found), frozenset(found), "quoted", len(found), complete=False) if found else None


def _read(text: str, start: int, form: ArgumentsForm) -> Arguments | None:
    entries, complete = _entries(text, start)
    found: dict[str, str] = {}
    keys = 0
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match:
            keys += 1
            name = match[1] or match[2]
            if name in WANTED:
                found.setdefault(name, match[3])
        elif re.match(r"""\s*(?:['"]\w{1,80}['"]\s*:|\w{1,80}\s*=)""", entry):
            keys += 1  # a long or nested value, none that sizing reads
    if not keys:
        return None
    return Arguments(_literals(found), frozenset(found), form, keys, complete)


def _entries(text: str, start: int) -> tuple[list[str], bool]:
    """The texts between the commas of the outermost bracket, and whether that bracket is closed.

    The last entry of a text that breaks off is left out: its value may have lost its end.
    """
    entries: list[str] = []
    begin, depth = start, 0
    for token, at in _tokens(text, start):
        if token in "([{":
            depth += 1
            if depth > MAX_DEPTH:
                break
        elif token in ")]}":
            depth -= 1
            if depth < 0:
                return [*entries, text[begin:at]], True
        elif token == "," and not depth:
            entries.append(text[begin:at])
            begin = at + 1
        elif token in "'\"":  # a string that does not end: nothing behind it can be told apart
            break
    return entries, False


def _tokens(text: str, start: int) -> Iterator[tuple[str, int]]:
    for match in _TOKEN.finditer(text, start):
        yield match[0], match.start()


def _literals(found: dict[str, str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for name, text in found.items():
        if len(text) <= MAX_VALUE and _LITERAL.fullmatch(text):
            try:
                value = ast.literal_eval(text)
            except (ValueError, SyntaxError):  # "\x" with nothing behind it
                continue
            if isinstance(value, int | float | str | bool | None):
                values[name] = value
    return values
