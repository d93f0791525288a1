"""What a running server tells, as one record: per rank what was measured, and what the server says of itself.

Source: running-server.md 4 and 6.
"""

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from sizing.basics.frames import frame_of
from sizing.basics.problems import Problem
from sizing.basics.units import count
from sizing.bootlog.log import not_all_read
from sizing.bootlog.measure import Measured
from sizing.engine.request_slots import RequestSlots
from sizing.engine.slots_per_request import possible_slots
from sizing.server import measured
from sizing.server.batches import Retraction
from sizing.server.columns import Key, Table
from sizing.server.measured import First, LimitKind, Peaks, Point, Shares
from sizing.server.reading import Ended, ServerReading
from sizing.server.server_info import InfoRank, ServerInfo
from sizing.server.tables import in_time
from sizing.server.unified_lines import UnifiedPool

if TYPE_CHECKING:
    from pandas import DataFrame

WHERE = "running server"
Format = Literal["server_info", "metrics", "loads", "batch lines", "unified memory lines", "assertion"]
LimitFrom = Literal["server_info", "loads", "observed"]
UNIFIED_SLOTS = (
    "Under unified memory the slots that metrics count are those of the whole buffer: K is not known from them."
)


class RankFacts(BaseModel):
    """One rank (attention-DP rank) in one format. Shares of time are by how long each row stood."""

    model_config = ConfigDict(frozen=True)

    source: str
    rank: str
    format: Format
    samples: int
    seconds: float | None
    """From the first row to the last; None without times."""
    slots: int | None
    """K where it is known to the slot."""
    slots_between: Measured | None
    """K by the shares that lines print."""
    kv_tokens: int | None
    """What the KV pool holds, in the unit that the scheduler counts in."""
    kv_tokens_between: Measured | None
    S: int | None
    limit: int | None
    """The most requests that the engine runs."""
    limit_from: LimitFrom | None
    limit_kind: LimitKind | None
    """Whether the state pool sets it, or a cap on requests."""
    held: float | None
    """State slots per running request."""
    cached: float | None
    """Slots that hold states of idle sessions, which could be evicted, on average."""
    tokens_per_request: float | None
    """KV tokens per running request: the length in use."""
    peaks: Peaks
    shares: Shares | None
    state_full: float | None
    """Share of the time in which the state pool had no room for another request [-]."""
    kv_full: float | None
    first: First | None
    retractions: int
    """Times that running requests were put back because KV was full."""
    retracted: int
    """Requests that were, of all of them."""
    aborted: int
    points: tuple[Point, ...]


class ServerFacts(BaseModel):
    """A running server, or one that has ended."""

    model_config = ConfigDict(frozen=True)

    formats: tuple[Format, ...]
    info: ServerInfo | None
    """The last answer of /server_info."""
    ranks: tuple[RankFacts, ...]
    ends: tuple[Ended, ...]
    pools: tuple[UnifiedPool, ...]
    starts: int
    """How often a server started anew after it had served; what was measured is of the last run."""
    problems: tuple[Problem, ...]

    @property
    def main(self) -> RankFacts | None:
        """The rank that tells most: of those that know both pools the one in which requests waited longest."""
        return max(self.ranks, key=_worth, default=None)

    @property
    def unified(self) -> bool:
        """Whether it runs with one buffer."""
        return bool(self.pools) or (self.info is not None and self.info.settings.enable_unified_memory is True)

    @property
    def slots(self) -> int | None:
        """K: of /server_info, else as measured; of the rank that has least."""
        said = [rank.slots for rank in (self.info.ranks if self.info else ()) if rank.slots is not None]
        said = said or [pool.slots for pool in self.pools if pool.slots is not None]
        return min(said or [rank.slots for rank in self.ranks if rank.slots is not None], default=None)

    @property
    def limit(self) -> int | None:
        """The most requests that a rank runs: as the server says it, else as observed."""
        said = [rank.limit for rank in (self.info.ranks if self.info else ()) if rank.limit is not None]
        return min(said or [rank.limit for rank in self.ranks if rank.limit is not None], default=None)

    @property
    def length_in_use(self) -> int | None:
        """KV tokens per running request, rounded up [tokens]: the L to size for."""
        main = self.main
        if main is None or not main.tokens_per_request:
            return None
        return -int(-main.tokens_per_request // 1)

    @property
    def retractions(self) -> int:
        """Of all ranks, in the format that tells most of them."""
        return max((sum(r.retractions for r in self.ranks if r.format == f) for f in self.formats), default=0)

    @property
    def retracted(self) -> int:
        """Requests that were put back, in the format that tells most of them."""
        return max((sum(r.retracted for r in self.ranks if r.format == f) for f in self.formats), default=0)


def frame(facts: ServerFacts) -> "DataFrame":
    """The series of every rank and format as a pandas frame: one row a moment that was read."""
    rows = [(rank, point) for rank in facts.ranks for point in rank.points]
    columns: dict[str, list[object]] = {
        "source": [rank.source for rank, _ in rows],
        "rank": [rank.rank for rank, _ in rows],
        "format": [rank.format for rank, _ in rows],
    }
    units = {"time": "s since 1970", "running": "requests", "queued": "requests", "slots": "slots", "rows": "rows"}
    for name in Point._fields:
        columns[f"{name} [{units.get(name, '-')}]"] = [getattr(point, name) for _, point in rows]
    return frame_of(columns)


def facts_of(said: ServerReading) -> ServerFacts | None:
    """The facts of what was read; None where the text says nothing of a running server."""
    if said.is_empty:
        return None
    info = said.infos[-1] if said.infos else None
    unified = bool(said.pools) or (info is not None and info.settings.enable_unified_memory is True)
    ranks = tuple(_ranks(said, info, unified))
    return ServerFacts(
        formats=tuple(dict.fromkeys(_formats(said, ranks))),
        info=info,
        ranks=ranks,
        ends=said.ends,
        pools=said.pools,
        starts=said.starts,
        problems=tuple(_problems(said, unified)),
    )


def _worth(rank: RankFacts) -> tuple[bool, bool, float, int]:
    waited = 1 - rank.shares.none if rank.shares else 0.0
    return (rank.peaks.state is not None, rank.shares is not None, waited, rank.samples)


def _formats(said: ServerReading, ranks: tuple[RankFacts, ...]) -> Iterator[Format]:
    if said.infos:
        yield "server_info"
    for rank in ranks:
        yield rank.format
    if said.retractions:
        yield "batch lines"
    if said.pools:
        yield "unified memory lines"
    if said.ends:
        yield "assertion"


class _Group(NamedTuple):
    """The tables of one rank in one format."""

    format: Format
    source: str
    rank: str
    table: Table
    """All rows."""
    steady: Table
    """Those that tell what holds: decode lines where there are any."""


def _groups(said: ServerReading) -> Iterator[_Group]:
    lines: dict[tuple[str, str], dict[str, Table]] = {}
    for key in said.tables.keys:
        if key.kind in ("decode", "prefill"):
            lines.setdefault((key.source, key.rank), {})[key.kind] = said.tables.table(key)
    for key in said.retractions:
        if not any((key.source, _dp(key.rank)) == (source, _dp(rank)) for source, rank in lines):
            lines[key.source, key.rank] = {}
    for (source, rank), tables in lines.items():
        table = _together(list(tables.values()))
        yield _Group("batch lines", source, rank, table, tables.get("decode", table))
    for key in said.tables.keys:
        if key.kind in ("metrics", "loads"):
            table = said.tables.table(key)
            yield _Group("metrics" if key.kind == "metrics" else "loads", key.source, key.rank, table, table)


def _together(tables: list[Table]) -> Table:
    if not tables:
        return measured.no_rows()
    return tables[0] if len(tables) == 1 else in_time(measured.stacked(tables))


def _dp(rank: str) -> str:
    """The attention-DP part of a rank's name; empty without one."""
    first = rank.partition(" ")[0]
    return first if first.startswith("DP") else ""


def _ranks(said: ServerReading, info: ServerInfo | None, unified: bool) -> Iterator[RankFacts]:
    for group in _groups(said):
        yield _rank(said, group, _inner(info, group.rank), info, unified)


def _inner(info: ServerInfo | None, rank: str) -> InfoRank | None:
    """What /server_info says of this rank: by its number, else the only one, else the first."""
    if info is None or not info.ranks:
        return None
    number = _dp(rank).removeprefix("DP")
    return info.ranks[int(number)] if number and int(number) < len(info.ranks) else info.ranks[0]


def _rank(
    said: ServerReading, group: _Group, inner: InfoRank | None, info: ServerInfo | None, unified: bool
) -> RankFacts:
    gauges = said.gauges.get(Key(group.format, group.source, group.rank), {})
    exact = group.format == "metrics"
    # Under unified memory the shares are of the whole buffer's slots: K is not known from them.
    between = None if unified else measured.size_between(group.steady, "slots", "state", exact=exact)
    slots = _slots(group, inner, between, _static_slots(said) if unified else None)
    tokens_between = measured.size_between(group.steady, "tokens", "kv", exact=exact)
    limit, limit_from = _limit(group, inner, gauges)
    S, kind = _reserved(slots, between, limit, info)
    weight = measured.weights(group.steady)
    held = measured.what_held(group.steady, weight, limit, kind)
    retraction_lines = _retractions(said, group)
    return RankFacts(
        source=group.source,
        rank=group.rank,
        format=group.format,
        samples=len(group.table),
        seconds=measured.span(group.table),
        slots=slots,
        slots_between=between,
        kv_tokens=_whole(gauges.get("capacity")) or (info.tokens if info else None),
        kv_tokens_between=tokens_between,
        S=S,
        limit=limit,
        limit_from=limit_from,
        limit_kind=kind,
        held=measured.per_request(group.steady, "slots", weight),
        cached=measured.mean(group.steady, "cached", weight),
        tokens_per_request=measured.per_request(group.steady, "tokens", weight),
        peaks=measured.peaks(group.table),
        shares=measured.shares(held) if held else None,
        state_full=held.share("state_full") if held else None,
        kv_full=held.share("kv_full") if held else None,
        first=measured.first_full(group.steady, held) if held else None,
        retractions=len(retraction_lines),
        retracted=_retracted(said, group, retraction_lines),
        aborted=sum(line.aborted for line in retraction_lines),
        points=measured.points(group.table),
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)


def _slots(group: _Group, inner: InfoRank | None, between: Measured | None, of_buffer: int | None) -> int | None:
    if inner and inner.slots is not None:
        return inner.slots
    if of_buffer is not None or between is None:
        return of_buffer
    counted = measured.slots_of_scrapes(group.table)
    return measured.whole_between(between) if counted is None else counted


def _static_slots(said: ServerReading) -> int | None:
    """K of the static solve as the lines of the buffer say it; None where they differ."""
    given = {pool.slots for pool in said.pools if pool.slots is not None}
    return next(iter(given)) if len(given) == 1 else None


def _limit(group: _Group, inner: InfoRank | None, gauges: dict[str, float]) -> tuple[int | None, LimitFrom | None]:
    if inner and inner.limit is not None:
        return inner.limit, "server_info"
    if "limit" in gauges:
        return _whole(gauges["limit"]), "loads"
    observed = measured.plateau(group.steady)
    return observed, None if observed is None else "observed"


def _reserved(
    slots: int | None, between: Measured | None, limit: int | None, info: ServerInfo | None
) -> tuple[int | None, LimitKind | None]:
    """S, and what the limit is: K // S of some S that there is, or less than the state pool admits."""
    possible = possible_slots(radix_cache=False if info and info.settings.disable_radix_cache else None)
    ends = (slots, slots) if slots is not None else (between.low, between.high) if between else None
    if ends is None or limit is None:
        return None, None
    matching = [
        S for S in possible if int(RequestSlots(S).requests(ends[0])) <= limit <= int(RequestSlots(S).requests(ends[1]))
    ]
    if matching:
        return (matching[0] if len(matching) == 1 else None), "state"
    return None, "cap"


def _retractions(said: ServerReading, group: _Group) -> list[Retraction]:
    """The lines of this attention-DP rank: each of its TP ranks may print them, so those of the one with most count."""
    if group.format != "batch lines":
        return []
    of_rank = [
        lines
        for key, lines in said.retractions.items()
        if (key.source, _dp(key.rank)) == (group.source, _dp(group.rank))
    ]
    return max(of_rank, key=len, default=[])


def _retracted(said: ServerReading, group: _Group, lines: list[Retraction]) -> int:
    if group.format == "batch lines":
        return sum(line.requests for line in lines)
    counter = said.retracted.get(Key(group.format, group.source, group.rank), [])
    if all(math.isfinite(time) for time, _ in counter):  # else as they were read
        counter = sorted(counter)
    # A counter that fell was set to 0 by a new start.
    return round(sum(now - last if now >= last else now for (_, last), (_, now) in pairwise(counter)))


def _problems(said: ServerReading, unified: bool) -> Iterator[Problem]:
    yield from not_all_read(broken=said.broken, too_long=said.too_long)
    if said.tables.kept_of > 1:
        yield _problem(f"There are more lines than are kept: one of {count(said.tables.kept_of)} counts in shares.")
    if said.tables.crowded:
        yield _problem("There are more ranks than any deployment has: some were left out. Cut the log to one server.")
    if said.starts:
        yield _problem(f"The server started anew {count(said.starts)} times: what was measured is of the last run.")
    if unified and any(key.kind == "metrics" for key in said.tables.keys):
        yield _problem(UNIFIED_SLOTS)


def _problem(sentence: str) -> Problem:
    return Problem(where=WHERE, sentence=sentence)
