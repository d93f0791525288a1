"""The rows of every rank while a text is read: bounded, whatever the size of the text."""

import numpy as np

from sizing.server.columns import AT, COLUMNS, Key, Table

MAX_ROWS = 2**20  # of all tables; where more come every second row of each is dropped
MAX_KEYS = 1024  # ranks x formats; 512 ranks print no more


class Tables:
    """Rows by rank and format."""

    def __init__(self) -> None:
        self._parts: dict[Key, list[Table]] = {}
        self._rows = 0
        self.kept_of = 1
        """Of so many rows one is kept."""
        self.crowded = False
        """More ranks than any deployment has: some were left out."""

    def add(self, key: Key, table: Table) -> None:
        """Take rows of a rank, later than those that are there."""
        if key not in self._parts and len(self._parts) >= MAX_KEYS:
            self.crowded = True
            return
        self._parts.setdefault(key, []).append(table[:: self.kept_of])
        self._rows += -(-len(table) // self.kept_of)
        if self._rows > MAX_ROWS:
            self._thin()

    def _thin(self) -> None:
        for key in self._parts:
            self._parts[key] = [self.table(key)[::2]]
        self.kept_of *= 2
        self._rows = sum(len(parts[0]) for parts in self._parts.values())

    def forget(self, source: str) -> int:
        """Drop the batch lines of one source, which has started anew; gives how many rows there were."""
        gone = [key for key in self._parts if key.source == source and key.kind in ("decode", "prefill")]
        rows = sum(len(part) for key in gone for part in self._parts.pop(key))
        self._rows -= rows
        return rows

    @property
    def keys(self) -> tuple[Key, ...]:
        """Every rank and format, in order of appearance."""
        return tuple(self._parts)

    def table(self, key: Key) -> Table:
        """All rows of one rank in one format, in order of time where times are known."""
        parts = self._parts.get(key, [])
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        if not parts:
            return np.empty((0, len(COLUMNS)))
        return in_time(parts[0])


def in_time(table: Table) -> Table:
    """Rows by their time; as they are where a time is missing, or where they are in order."""
    times = table[:, AT["time"]]
    if np.isnan(times).any() or bool((np.diff(times) >= 0).all()):
        return table
    return table[np.argsort(times, kind="stable")]
