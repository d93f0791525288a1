"""What the rows of one rank measure: slots held, tokens per request, K, and which limit held when.

Source: running-server.md 2.3, 4.4, 4.5, 6.1 and 6.2. A scheduler tries to admit before every decode step, so where
requests wait in a decode line and rows are free, KV has no room for the next.
"""

from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from sizing.bootlog.measure import Measured
from sizing.server.columns import AT, OF_LINES, Table

if TYPE_CHECKING:
    from numpy.typing import NDArray

LONGEST = 60.0  # seconds that a row stands for at most: a server without requests prints nothing
FULL = 0.995  # a share that prints as 1.00
NEAR_LIMIT = 0.98  # of the request rows: one that has just ended has its place taken a step later
BLOCKED_FROM = 0.5  # of KV: below it others than KV may keep a request waiting
KV_FULL = 0.95  # of KV: the next pages are hardly there
HALF_DIGIT = 0.005 + 1e-9  # a share in a line has two decimals; one just between two of them goes either way
POINT_COLUMNS = ("time", "running", "queued", "kv", "state", "slots")
MAX_POINTS = 600  # of a figure 1,000 pixels wide

LimitKind = Literal["state", "cap"]
Pool = Literal["state", "kv"]


class Shares(NamedTuple):
    """Shares of the time [-] that add up to 1: what kept requests waiting, or that none waited."""

    state: float
    """The state pool: as many requests run as it admits, or no slot is left."""
    cap: float
    """The cap on requests, which is less than the state pool admits."""
    kv: float
    other: float
    """Neither pool is short: prefill work, or requests that have just come."""
    none: float
    """Nobody waited."""

    @property
    def most(self) -> str:
        """What kept requests waiting most of the time; none where nothing did."""
        names = ("state", "cap", "kv", "other")
        name = max(names, key=lambda name: float(getattr(self, name)))
        return name if getattr(self, name) > 0 else "none"


class Peaks(NamedTuple):
    """The most that was seen; None where it was not said."""

    running: int | None
    queued: int | None
    kv: float | None
    state: float | None
    slots: int | None


class First(NamedTuple):
    """Which pool was full first."""

    pool: Pool
    time: float | None
    """Seconds since 1970; None without times."""
    after: float | None
    """Seconds from the first row."""
    other_after: float | None
    """The same of the other pool; None where it never was."""


class Point(NamedTuple):
    """One row of the tidy series: a moment that was read, with the least and the most around it."""

    time: float | None
    running: float | None
    queued: float | None
    kv: float | None
    kv_low: float | None
    kv_high: float | None
    state: float | None
    state_low: float | None
    state_high: float | None
    slots: float | None
    rows: int
    """How many rows it stands for."""


def column(table: Table, name: str) -> Table:
    """One column of a table; NaN where its format has none."""
    at = AT[name]
    found: Table = table[:, at] if at < table.shape[1] else np.full(len(table), np.nan)
    return found


def weights(table: Table) -> Table:
    """How long each row stands [s]: until the next, at most LONGEST; one each where times are missing or the same."""
    times = column(table, "time")
    if len(times) == 0 or np.isnan(times).any() or times[-1] <= times[0]:
        return np.ones(len(times))
    found = np.minimum(np.diff(times, append=np.nan), LONGEST)
    found[-1] = np.median(found[:-1])
    return found


def span(table: Table) -> float | None:
    """Seconds from the first row to the last; None without times."""
    times = column(table, "time")
    return float(times[-1] - times[0]) if len(times) and not np.isnan(times).any() else None


def per_request(table: Table, name: str, weight: Table) -> float | None:
    """The mean of a column for each running request, over the time in which any ran; None where it was not said."""
    running, amount = column(table, "running"), column(table, name)
    known = (running > 0) & ~np.isnan(amount)
    held = float((running[known] * weight[known]).sum())
    return float((amount[known] * weight[known]).sum()) / held if held else None


def mean(table: Table, name: str, weight: Table) -> float | None:
    """The mean of a column over time."""
    values = column(table, name)
    known = ~np.isnan(values)
    total = float(weight[known].sum())
    return float((values[known] * weight[known]).sum()) / total if total else None


def peaks(table: Table) -> Peaks:
    """The most of each column."""
    most = {name: _most(column(table, name)) for name in ("running", "queued", "kv", "state", "slots")}
    whole = {name: None if value is None else round(value) for name, value in most.items()}
    return Peaks(whole["running"], whole["queued"], most["kv"], most["state"], whole["slots"])


def _most(values: Table) -> float | None:
    return None if len(values) == 0 or np.isnan(values).all() else float(np.nanmax(values))


def size_between(table: Table, amount: str, share: str, *, exact: bool = False) -> Measured | None:
    """The size of a pool from what is in use of it and the share that this is: what all rows allow together.

    A share in a line is rounded to two decimals (`exact` where it is not). None where no row says it, or where rows
    contradict each other, as those of two servers do.
    """
    used, part = column(table, amount), column(table, share)
    half = 1e-9 if exact else HALF_DIGIT
    known = (used > 0) & (part > half)
    if not known.any():
        return None
    low = float((used[known] / (part[known] + half)).max())
    high = float((used[known] / (part[known] - half)).min())
    return Measured((low + high) / 2, low, high) if low <= high else None


def whole_between(size: Measured | None) -> int | None:
    """The only whole number between two ends; None where there are several or none."""
    if size is None:
        return None
    least, most = -int(-size.low // 1), int(size.high // 1)
    return least if least == most else None


def slots_of_scrapes(table: Table) -> int | None:
    """K as the sum of the slots that are free, cached and in use, of the last scrape that has all three."""
    total = column(table, "free") + column(table, "cached") + column(table, "slots")
    known = total[~np.isnan(total)]
    return round(float(known[-1])) if len(known) else None


class WhatHeld(NamedTuple):
    """Of the rows that tell running and waiting, in which of them what held."""

    known: "NDArray[np.bool_]"
    """Of all rows: which those are."""
    weight: Table
    state: "NDArray[np.bool_]"
    cap: "NDArray[np.bool_]"
    kv: "NDArray[np.bool_]"
    other: "NDArray[np.bool_]"
    none: "NDArray[np.bool_]"
    state_full: "NDArray[np.bool_]"
    """No room in the state pool for another request, waited for or not."""
    kv_full: "NDArray[np.bool_]"

    def share(self, name: str) -> float:
        """How much of the time one of these held [-]."""
        return float(self.weight[getattr(self, name)].sum()) / float(self.weight.sum())


def what_held(table: Table, weight: Table, limit: int | None, kind: LimitKind | None) -> WhatHeld | None:
    """What held when, with the most requests that run and what sets it; None where no row tells running and waiting."""
    running, queued = column(table, "running"), column(table, "queued")
    known = ~np.isnan(running) & ~np.isnan(queued)
    weight = weight[known]
    if not weight.sum():
        return None
    running, queued = running[known], queued[known]
    kv, state = np.nan_to_num(column(table, "kv")[known]), np.nan_to_num(column(table, "state")[known])
    waiting = queued > 0
    at_limit = running >= limit * NEAR_LIMIT if limit else np.zeros(len(running), bool)
    by_rows = (waiting & at_limit) | (running >= limit if limit else at_limit)
    state_full = (by_rows & (kind == "state")) | (state >= FULL)
    by_state, by_cap = waiting & state_full, waiting & at_limit & ~state_full
    by_kv = waiting & ~by_state & ~by_cap & (kv >= BLOCKED_FROM)
    return WhatHeld(
        known=known,
        weight=weight,
        state=by_state,
        cap=by_cap,
        kv=by_kv,
        other=waiting & ~by_state & ~by_cap & ~by_kv,
        none=~waiting,
        state_full=state_full,
        kv_full=by_kv | (kv >= KV_FULL),
    )


def shares(found: WhatHeld) -> Shares:
    """What kept requests waiting, as shares of the time."""
    return Shares(*(found.share(name) for name in Shares._fields))


def first_full(table: Table, found: WhatHeld) -> First | None:
    """Which pool had no room first; None where neither ever was full."""
    times = column(table, "time")[found.known]
    begins: dict[Pool, int] = {}
    if found.state_full.any():
        begins["state"] = int(np.argmax(found.state_full))
    if found.kv_full.any():
        begins["kv"] = int(np.argmax(found.kv_full))
    if not begins:
        return None
    pool = min(begins, key=lambda name: begins[name])
    timed = not np.isnan(times).any()
    others = [at for name, at in begins.items() if name != pool]
    return First(
        pool=pool,
        time=float(times[begins[pool]]) if timed else None,
        after=float(times[begins[pool]] - times[0]) if timed else None,
        other_after=float(times[others[0]] - times[0]) if timed and others else None,
    )


def plateau(table: Table) -> int | None:
    """The requests that run while others wait, where it is one number most of the time: a limit on request rows."""
    running, queued = column(table, "running"), column(table, "queued")
    waited = running[(queued > 0) & ~np.isnan(running)]
    if not len(waited):
        return None
    most = float(waited.max())
    return round(most) if most and float((waited >= most * NEAR_LIMIT).mean()) >= 0.5 else None


def points(table: Table) -> tuple[Point, ...]:
    """The series, at most MAX_POINTS: of each stretch the row whose fuller pool is fullest, with the least and most."""
    if not len(table):
        return ()
    edges = np.linspace(0, len(table), min(len(table), MAX_POINTS) + 1).astype(int)
    return tuple(_point(table[begin:end]) for begin, end in pairwise(edges))


def _point(rows: Table) -> Point:
    fullest = np.nan_to_num(np.fmax(column(rows, "kv"), column(rows, "state")))
    at = int(np.argmax(fullest))
    row = {name: _known(column(rows, name)[at]) for name in POINT_COLUMNS}
    ends = {name: (_end(column(rows, name), np.fmin), _end(column(rows, name), np.fmax)) for name in ("kv", "state")}
    return Point(
        time=row["time"],
        running=row["running"],
        queued=row["queued"],
        kv=row["kv"],
        kv_low=ends["kv"][0],
        kv_high=ends["kv"][1],
        state=row["state"],
        state_low=ends["state"][0],
        state_high=ends["state"][1],
        slots=row["slots"],
        rows=len(rows),
    )


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _end(values: Table, which: np.ufunc) -> float | None:
    return _known(float(which.reduce(values)))


def no_rows() -> Table:
    """A table without rows."""
    return np.empty((0, OF_LINES))


def stacked(tables: list[Table]) -> Table:
    """Tables one behind the other."""
    found: Table = np.concatenate(tables)
    return found
