"""What one moment of a server is: a row of numbers, the same for every format. NaN is not said.

A row stands for one line, scrape or answer; rows of one rank and one format make a table.
"""

from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Table = NDArray[np.float64]
else:
    Table = np.ndarray

Row = tuple[float, ...]
COLUMNS = (
    "time",  # seconds since 1970 by the server's own clock
    "running",  # requests
    "queued",  # requests that wait
    "tokens",  # of the KV pool in use, without what could be evicted
    "kv",  # the share of the pool that they are
    "slots",  # of the state pool in use, without what could be evicted
    "state",  # the share of the pool that they are
    "cached",  # slots that hold states which could be evicted
    "free",  # slots that hold nothing
)
OF_LINES = 7  # columns of a table of batch lines, which say nothing of the others
AT = {name: index for index, name in enumerate(COLUMNS)}
NAN = float("nan")
DAY, HOUR, MINUTE = 86_400, 3_600, 60
STAMP = 19  # characters: 2026-01-15 10:00:05


class Key(NamedTuple):
    """Whose rows a table holds."""

    kind: str
    """decode, prefill, metrics or loads."""
    source: str
    """The collector's mark, or the instance that was scraped; empty without one."""
    rank: str
    """As the engine writes it: DP0 TP3; empty without any."""


def row(values: dict[str, float], width: int = len(COLUMNS)) -> Row:
    """One row of these values; what is missing is NaN."""
    return tuple(values.get(name, NAN) for name in COLUMNS[:width])


def seconds(stamps: list[str]) -> Table:
    """Times of day [s since 1970], from texts like 2026-01-15 10:00:05; NaN for what is no date."""
    digits = np.frombuffer("".join(stamps).encode("latin-1"), np.uint8).reshape(-1, STAMP).astype(np.int64) - ord("0")
    days = digits[:, [0, 1, 2, 3, 5, 6, 8, 9]] @ 10 ** np.arange(7, -1, -1)
    clock = digits[:, [11, 12, 14, 15, 17, 18]] @ np.array([10 * HOUR, HOUR, 10 * MINUTE, MINUTE, 10, 1])
    unique, places = (days[:1], np.zeros(len(days), np.int64)) if (days == days[0]).all() else _unique(days)
    begin = np.array([_day(int(day)) for day in unique])
    found: Table = begin[places] + clock
    return found


def second_of(stamp: str) -> float:
    """One such text [s since 1970]; NaN for what is no date."""
    day = _day(int(stamp[:4] + stamp[5:7] + stamp[8:10]))
    return day + int(stamp[11:13]) * HOUR + int(stamp[14:16]) * MINUTE + int(stamp[17:19])


def _unique(days: "NDArray[np.int64]") -> tuple["NDArray[np.int64]", "NDArray[np.int64]"]:
    values, places = np.unique(days, return_inverse=True)
    return values, places


@lru_cache(maxsize=1024)
def _day(digits: int) -> float:
    """The first second of a day that is written as 20260115."""
    try:
        return float((date(digits // 10_000, digits // 100 % 100, digits % 100).toordinal() - EPOCH) * DAY)
    except ValueError:
        return NAN


EPOCH = date(1970, 1, 1).toordinal()
