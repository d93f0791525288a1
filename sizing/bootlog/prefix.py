"""What stands before a message: the rank that wrote it, and the collector's mark of where it came from.

Source: boot-log-formats.md, "Prefix". Rank parts come in either order; a collector may put its own text before.
"""

import re
from typing import NamedTuple

# Colours, with the escape character as it is, as JSON writes it, or lost in a copy; cursor moves and links too.
COLOUR = re.compile(
    r"(?:\x1b|\\u001b|\\x1b|\\033|\^\[)?\[[0-9;:]{0,40}m|\x1b\[[0-9;:?]{0,40}[A-Za-z]"
    r"|\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)|\x1b[()][0-9A-Z]"
)
BRACKET = re.compile(r"\[([^\[\]]{1,120})\]")
PART = re.compile(r"\b(ATTN_CP|MOE_DP|DP|PP|TP|EP)(\d{1,5})\b")
# Compose and Docker (`name-1  | `), kubectl --prefix (`[pod/a/b] `), Ray (`(Actor pid=1, ip=10.0.0.2) `), stern
# (`pod container [2026-`), others (`pod: [2026-`, `[pod] [2026-`), syslog and the journal (`Jan 15 10:00:05 node `).
SOURCE = re.compile(
    r"^\s*(?:([\w.-]{1,80})\s{0,8}\| |\[(pod/[^\]]{1,160})\]|\(([^()]{1,120})\) "
    r"|([a-z0-9][a-z0-9.-]{1,80})(?: [a-z0-9][a-z0-9.-]{0,80})?(?: \u203a|:)? \[20\d\d-"
    r"|\[([a-z][\w./-]{1,80})\] \[20\d\d-|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d ([\w.-]{1,80}) )"
)
PROCESS = re.compile(r"\bpid=\d+,?\s?")
# How a new line of a log begins; what does not may be the rest of a wrapped one.
NEW_LINE = re.compile(
    r"^[^\[]{0,160}\[(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|(?:DP|PP|TP|EP|ATTN_CP|MOE_DP)\d)"
    r"|^\s*(?:#|Traceback|File |\d{4}-\d\d-\d\d[T ]|[A-Z]\w{0,60}(?:Error|Exception): )"
)


class Rank(NamedTuple):
    """The rank parts of a prefix; None where that width is 1, or the prefix is missing."""

    dp: int | None = None
    pp: int | None = None
    tp: int | None = None
    attn_cp: int | None = None
    moe_dp: int | None = None
    ep: int | None = None

    @property
    def name(self) -> str:
        """As 0.5.23 writes it: DP0 TP3; empty without any part."""
        parts = zip(("DP", "PP", "ATTN_CP", "MOE_DP", "TP", "EP"), self._order(), strict=True)
        return " ".join(f"{name}{number}" for name, number in parts if number is not None)

    def _order(self) -> tuple[int | None, ...]:
        return (self.dp, self.pp, self.attn_cp, self.moe_dp, self.tp, self.ep)

    @property
    def key(self) -> tuple[int, ...]:
        """For sorting: the first rank first."""
        return tuple(-1 if number is None else number for number in self._order())


def rank_before(text: str) -> Rank:
    """The rank in the last bracket of a text that holds one.

    >>> rank_before("sglang-1  | [2026-01-15 10:00:05 DP0 TP3] ").name
    'DP0 TP3'
    """
    for inside in reversed(BRACKET.findall(text)):
        parts = {name.lower(): int(number) for name, number in PART.findall(inside)}
        if parts:
            return Rank(**parts)
    return Rank()


def source_of(line: str) -> str:
    """The collector's mark at the start of a line, without process numbers; empty without one.

    >>> source_of("sglang-1  | [2026-01-15 10:00:05 TP0] "), source_of("[2026-01-15 10:00:05 TP0] ")
    ('sglang-1', '')
    """
    found = SOURCE.match(line)
    return PROCESS.sub("", next((part for part in found.groups() if part), "")) if found else ""


def plain(text: str) -> str:
    """A text without colours."""
    return COLOUR.sub("", text)
