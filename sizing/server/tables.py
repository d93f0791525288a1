"""The rows of every rank while a text is read: bounded, whatever the size of the text."""

import numpy as np

from sizing.server.columns import AT, Key, Row, Table

MAX_ROWS = 2**20  # of all tables; where more come every second row of each is dropped
FIRST_ROOM = 64  # rows
MAX_KEYS = 1024  # ranks x formats; 512 ranks print no more


class _Rows:
    """Rows of one rank, in an array that doubles: nothing is copied at the end."""

    def __init__(self, width: int) -> None:
        self._room = np.empty((FIRST_ROOM, width))
        self._count = 0

    @property
    def table(self) -> Table:
        return self._room[: self._count]

    def add(self, table: Table | list[Row]) -> None:
        needed = self._count + len(table)
        if needed > len(self._room):
            room = np.empty((max(needed, 2 * len(self._room)), self._room.shape[1]))
            room[: self._count] = self.table
            self._room = room
        self._room[self._count : needed] = table
        self._count = needed

    def thin(self) -> None:
        """Keep every second row."""
        half = self.table[::2].copy()
        self._room, self._count = half, len(half)


class Tables:
    """Rows by rank and format."""

    def __init__(self) -> None:
        self._rows: dict[Key, _Rows] = {}
        self._count = 0
        self.kept_of = 1
        """Of so many rows one is kept."""
        self.crowded = False
        """More ranks than any deployment has: some were left out."""

    def add(self, key: Key, table: Table | list[Row]) -> None:
        """Take rows of a rank, at least one, later than those that are there."""
        if key not in self._rows:
            if len(self._rows) >= MAX_KEYS:
                self.crowded = True
                return
            self._rows[key] = _Rows(len(table[0]))
        kept = table[:: self.kept_of]
        self._rows[key].add(kept)
        self._count += len(kept)
        if self._count > MAX_ROWS:
            for rows in self._rows.values():
                rows.thin()
            self.kept_of *= 2
            self._count = sum(len(rows.table) for rows in self._rows.values())

    def forget(self, source: str) -> int:
        """Drop the batch lines of one source, which has started anew; gives how many rows there were."""
        gone = [key for key in self._rows if key.source == source and key.kind in ("decode", "prefill")]
        rows = sum(len(self._rows.pop(key).table) for key in gone)
        self._count -= rows
        return rows

    @property
    def keys(self) -> tuple[Key, ...]:
        """Every rank and format, in order of appearance."""
        return tuple(self._rows)

    def table(self, key: Key) -> Table:
        """All rows of one rank in one format, in order of time where times are known."""
        return in_time(self._rows[key].table)


def in_time(table: Table) -> Table:
    """Rows by their time; as they are where a time is missing, or where they are in order."""
    times = table[:, AT["time"]]
    if np.isnan(times).any() or bool((np.diff(times) >= 0).all()):
        return table
    return table[np.argsort(times, kind="stable")]
