"""Which lines belong to one boot of one deployment: a log may hold restarts, replicas and several nodes.

Source: boot-log-formats.md, "Prefix", sections 2 and 5.
"""

from collections.abc import Iterable, Iterator

from sizing.bootlog.find import Line
from sizing.bootlog.prefix import Rank
from sizing.bootlog.said import (
    AfterCapture,
    Arguments,
    Crashed,
    Decode,
    KvPool,
    PoolEnd,
    Refused,
    Ring,
    StatePool,
    Summary,
    WeightsBegin,
    WeightsEnd,
)

OF_A_RANK = (WeightsBegin, WeightsEnd, StatePool, KvPool)
POOLS = (StatePool, KvPool, PoolEnd, Ring, AfterCapture)


def boots_of(lines: Iterable[Line]) -> list[list[Line]]:
    """The lines of each boot, in order of their first line."""
    boots = [boot for group in _deployments(list(lines)) for boot in _split(group)]
    return sorted(boots, key=lambda boot: boot[0].number)


def _deployments(lines: list[Line]) -> list[list[Line]]:
    """Lines by deployment. Collectors' marks tell replicas, whose ranks repeat, from nodes, whose ranks do not."""
    marks: dict[str, set[Rank]] = {}
    for line in lines:
        ranks = marks.setdefault(line.source, set())
        if isinstance(line.said, OF_A_RANK):
            ranks.add(line.rank)
    groups: list[tuple[set[str], set[Rank]]] = []
    for mark, ranks in marks.items():
        home = next((group for group in groups if not group[1] & ranks), None)
        if home is None:
            groups.append(({mark}, set(ranks)))
        else:
            home[0].add(mark)
            home[1].update(ranks)
    return [[line for line in lines if line.source in names] for names, _ in groups]


def _split(lines: list[Line]) -> Iterator[list[Line]]:
    """The boots of one deployment, without what a collector wrote twice."""
    boot = _Boot()
    for line in lines:
        if boot.begins_anew(line):
            yield from boot.closed()
            boot = boot.successor(line)
        boot.add(line)
    yield from boot.closed()


class _Boot:
    """One boot as it is read."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._seen: set[tuple[str, str]] = set()
        self._by_rank: dict[Rank, list[Line]] = {}
        self._over = False  # refused, or crashed: whatever a rank prints next is another start
        self._arguments: list[Arguments] = []

    def closed(self) -> Iterator[list[Line]]:
        if any(not isinstance(line.said, Crashed) for line in self.lines):
            yield self.lines

    def add(self, line: Line) -> None:
        """Take a line, unless it is one that is there already."""
        if self._is_there(line):
            return
        self.lines.append(line)
        self._seen.add((line.prefix, line.text))
        self._by_rank.setdefault(line.rank, []).append(line)
        if isinstance(line.said, Arguments):
            self._arguments.append(line.said)
        self._over = self._over or isinstance(line.said, Refused | Crashed)

    def _is_there(self, line: Line) -> bool:
        """The same line twice from a collector, or the same pool from ranks whose prefix was lost."""
        if isinstance(line.said, Arguments):
            return False
        if (line.prefix, line.text) in self._seen and any(char.isdigit() for char in line.prefix):
            return True
        return isinstance(line.said, StatePool | KvPool | Ring | Summary) and any(
            other.said == line.said and other.form == line.form for other in self._by_rank.get(line.rank, ())
        )

    def begins_anew(self, line: Line) -> bool:
        """Whether a line cannot belong to this boot any more."""
        said, before = line.said, self._by_rank.get(line.rank, [])
        if isinstance(said, Arguments):
            return self._has_ranks() or self._over or any(self._same_node(said, other) for other in self._arguments)
        if isinstance(said, OF_A_RANK) and self._over:
            return True
        if isinstance(said, WeightsBegin):
            return any(isinstance(other.said, Summary) for other in before) or _loads_again(said, before)
        if isinstance(said, StatePool):
            return self._other_pool(line, before)
        return False

    def _has_ranks(self) -> bool:
        return any(isinstance(line.said, OF_A_RANK) for line in self.lines)

    def _same_node(self, one: Arguments, other: Arguments) -> bool:
        return one.values.get("node_rank") == other.values.get("node_rank")

    def _other_pool(self, line: Line, before: list[Line]) -> bool:
        """A second state pool: a restart, unless it is the first one's line from a rank whose prefix was lost."""
        pools = [other for other in before if isinstance(other.said, StatePool)]
        if not pools:
            return False
        return any(other.said != line.said for other in pools) or any(
            isinstance(other.said, WeightsBegin | WeightsEnd) for other in _behind_pools(before)
        )

    def successor(self, line: Line) -> "_Boot":
        """The next boot. Weights that a rank loaded after its pools belong to it, if a state pool follows them."""
        after = _Boot()
        if isinstance(line.said, StatePool) and not self._over:
            moved = [
                late
                for lines in self._by_rank.values()
                for late in _behind_pools(lines)
                if isinstance(late.said, WeightsBegin | WeightsEnd)
            ]
            for late in sorted(moved, key=lambda late: late.number):
                self.lines.remove(late)
                after.add(late)
        return after


def _behind_pools(lines: list[Line]) -> list[Line]:
    """What a rank printed after its last pool line; nothing before it has pools."""
    last = max((index for index, line in enumerate(lines) if isinstance(line.said, POOLS)), default=len(lines))
    return lines[last + 1 :]


def _loads_again(begin: WeightsBegin, before: list[Line]) -> bool:
    """Whether a rank begins from scratch: with as much free memory as at first, not with what weights left.

    A draft model's weights are loaded with what the target's left.
    """
    begins = [line.said.available.value for line in before if isinstance(line.said, WeightsBegin)]
    ends = [line.said.available.value for line in before if isinstance(line.said, WeightsEnd) and line.said.available]
    if not begins or not ends:
        return False
    return abs(begin.available.value - begins[0]) < abs(begin.available.value - ends[-1])


def is_serving(lines: Iterable[Line]) -> bool:
    """Whether a boot got as far as serving."""
    return any(isinstance(line.said, Summary | Decode) for line in lines)
