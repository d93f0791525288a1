"""Which lines belong to one boot of one deployment: a log may hold restarts, replicas and several nodes.

Source: boot-log-formats.md, "Prefix", sections 2 and 5.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from sizing.bootlog.find import Line
from sizing.bootlog.line_records import (
    AfterCapture,
    Arguments,
    Capped,
    Capture,
    Crashed,
    Decode,
    KvPool,
    LineRecord,
    NoSlot,
    PoolEnd,
    Refused,
    Ring,
    StatePool,
    Summary,
    Unified,
    WeightsBegin,
    WeightsEnd,
)
from sizing.bootlog.prefix import Rank

OF_A_RANK = (WeightsBegin, WeightsEnd, StatePool, KvPool)
TELLS_SERVERS = (*OF_A_RANK, Capped, PoolEnd, Summary)
SIZED = (StatePool, KvPool, PoolEnd, Ring, AfterCapture, Unified, Capture, Summary, Decode)
MAX_MARKS = 256  # more different marks than that are no containers: each line has one of its own
POOLS = (StatePool, KvPool, PoolEnd, Ring, AfterCapture)


class BootLines(NamedTuple):
    """The lines of one boot, and which of the text's servers it is of, from 0."""

    server: int
    lines: list[Line]


def boots_of(lines: Iterable[Line]) -> list[BootLines]:
    """The lines of each boot, in order of their first line."""
    servers = enumerate(_deployments(list(lines)))
    boots = [BootLines(server, boot) for server, group in servers for boot in _split(group)]
    return sorted(boots, key=lambda boot: boot.lines[0].number)


def _deployments(lines: list[Line]) -> list[list[Line]]:
    """Lines by deployment. Collectors' marks tell replicas, whose ranks repeat, from nodes, whose ranks do not."""
    marks: dict[str, set[Rank]] = {}
    for line in lines:
        ranks = marks.setdefault(line.source, set())
        if isinstance(line.record, TELLS_SERVERS):
            ranks.add(line.rank)
    if len(marks) > MAX_MARKS:
        return [lines]
    groups: list[set[Rank]] = []
    home: dict[str, int] = {}
    for mark, ranks in marks.items():
        free = (index for index, taken in enumerate(groups) if not taken & ranks)
        home[mark] = next(free, len(groups))
        if home[mark] == len(groups):
            groups.append(set())
        groups[home[mark]] |= ranks
    deployments: list[list[Line]] = [[] for _ in groups]
    for line in lines:
        deployments[home[line.source]].append(line)
    return deployments


def _split(lines: list[Line]) -> Iterator[list[Line]]:
    """The boots of one deployment, without what a collector wrote twice."""
    boot = _Boot()
    for line in lines:
        if boot.begins_anew(line):
            yield from boot.closed()
            boot = boot.successor(line)
        boot.add(line)
    yield from boot.closed()


class _Progress:
    """How far one rank has got."""

    def __init__(self) -> None:
        self.first_begin: float | None = None
        self.last_end: float | None = None
        self.pools: set[LineRecord] = set()
        self.state: LineRecord | None = None
        self.summary = False
        self.kinds: set[type[LineRecord]] = set()
        self.late: list[Line] = []
        """Weights loaded after the last pool: a draft's before 0.5.14, or a restart's."""

    def add(self, line: Line) -> None:
        said = line.record
        self.kinds.add(type(said))
        if isinstance(said, WeightsBegin | WeightsEnd):
            self._add_weights(said)
            if self.pools:
                self.late.append(line)
        elif isinstance(said, POOLS):
            self.pools.add(said)
            self.late = []
            self.state = said if isinstance(said, StatePool) else self.state
        self.summary = self.summary or isinstance(said, Summary)

    def _add_weights(self, said: WeightsBegin | WeightsEnd) -> None:
        if isinstance(said, WeightsEnd):
            self.last_end = said.available.value if said.available else self.last_end
        elif self.first_begin is None and said.available:
            self.first_begin = said.available.value

    def loads_again(self, begin: WeightsBegin) -> bool:
        """Whether it begins from scratch: with as much free memory as at first, not with what weights left.

        A draft model's weights are loaded with what the target's left.
        """
        if self.summary:
            return True
        if self.first_begin is None or self.last_end is None or begin.available is None:
            return False
        now = begin.available.value
        return abs(now - self.first_begin) < abs(now - self.last_end)


class _Boot:
    """One boot as it is read."""

    def __init__(self) -> None:
        self._lines: list[Line] = []
        self._seen: set[tuple[str, str]] = set()
        self._ranks: dict[Rank, _Progress] = {}
        self._nodes: set[object] = set()
        self._has_ranks = False
        self._over = False  # refused, or crashed: whatever a rank prints next is another start

    def closed(self) -> Iterator[list[Line]]:
        """The lines, unless a crash that any program may have is all that was seen."""
        if any(not isinstance(line.record, Crashed) for line in self._lines):
            yield self._lines

    def add(self, line: Line) -> None:
        """Take a line, unless it is one that is there already."""
        if self._is_there(line):
            return
        self._lines.append(line)
        self._seen.add((line.prefix, line.text))
        self._ranks.setdefault(line.rank, _Progress()).add(line)
        self._has_ranks = self._has_ranks or isinstance(line.record, OF_A_RANK)
        self._over = self._over or isinstance(line.record, Refused | Crashed | NoSlot)
        if isinstance(line.record, Arguments):
            self._nodes.add(line.record.values.get("node_rank"))

    def _is_there(self, line: Line) -> bool:
        """The same line twice from a collector, or the same pool from ranks whose prefix was lost."""
        if isinstance(line.record, Arguments):
            return False
        if (line.prefix, line.text) in self._seen and any(char.isdigit() for char in line.prefix):
            return True
        rank = self._ranks.get(line.rank)
        return rank is not None and isinstance(line.record, StatePool | KvPool | Ring) and line.record in rank.pools

    def begins_anew(self, line: Line) -> bool:
        """Whether a line cannot belong to this boot any more."""
        said, rank = line.record, self._ranks.get(line.rank)
        if isinstance(said, Arguments):
            return self._has_ranks or self._over or said.values.get("node_rank") in self._nodes
        if isinstance(said, OF_A_RANK) and self._over:
            # A rank may be a moment behind the one that was refused: what it prints for the first time is no start.
            behind = rank is not None and WeightsBegin in rank.kinds and type(said) not in rank.kinds
            return isinstance(said, WeightsBegin) or not behind
        if rank is None:
            return False
        if isinstance(said, WeightsBegin):
            return rank.loads_again(said)
        # A second state pool is a restart, unless it is the first one's line from a rank whose prefix was lost.
        return isinstance(said, StatePool) and rank.state is not None and (rank.state != said or bool(rank.late))

    def successor(self, line: Line) -> "_Boot":
        """The next boot. Weights that a rank loaded after its pools belong to it, if a state pool follows them."""
        after = _Boot()
        if isinstance(line.record, StatePool) and not self._over:
            moved = [late for rank in self._ranks.values() for late in rank.late]
            gone = {id(late) for late in moved}
            self._lines = [kept for kept in self._lines if id(kept) not in gone]
            for late in sorted(moved, key=lambda late: late.number):
                after.add(late)
        return after


def died_later(lines: Iterable[Line]) -> bool:
    """Whether a boot ended with an exception after its pools were made."""
    sized = False
    for line in lines:
        sized = sized or isinstance(line.record, SIZED)
        if isinstance(line.record, NoSlot) or (sized and isinstance(line.record, Crashed)):
            return True
    return False


def is_serving(lines: Iterable[Line]) -> bool:
    """Whether a boot got as far as serving."""
    return any(isinstance(line.record, Summary | Decode) for line in lines)
