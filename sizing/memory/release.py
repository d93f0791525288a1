"""Releases in tables: what holds since which release.

A table lists (first release, value), oldest first; a release has the last value whose first release is not after it.
Releases are written by their last number: 20 stands for 0.5.20. Source: the wheels of RELEASES.
"""

from typing import NamedTuple, TypeVar

from sizing.releases.rules import COVERED, RELEASES

Value = TypeVar("Value")
Table = tuple[tuple[int, Value], ...]

OLDEST, NEWEST = (int(release.rpartition(".")[2]) for release in (RELEASES[0], RELEASES[-1]))


def minor(release: str) -> int:
    """The last number of a release. Raises ValueError for one whose wheel was not read.

    >>> minor("0.5.20")
    20
    """
    if release not in RELEASES:
        raise ValueError(f"Release must be one of {COVERED}, not {release}.")
    return int(release.rpartition(".")[2])


def at(table: Table[Value], release: int) -> Value:
    """What holds in a release.

    >>> at(((4, "old"), (20, "new")), 19)
    'old'
    """
    return next(value for first, value in reversed(table) if first <= release)


class Span(NamedTuple):
    """From one release to another, both included."""

    first: int
    last: int = NEWEST

    def holds(self, release: int) -> bool:
        """Whether the release is within."""
        return self.first <= release <= self.last
