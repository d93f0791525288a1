"""What one rank of a boot said: each line by its meaning, the first or the last where a rank prints several."""

from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from sizing.bootlog import said
from sizing.bootlog.find import Line
from sizing.bootlog.measure import Measured, Printed, share, total
from sizing.bootlog.prefix import Rank

T = TypeVar("T")


class RankReport(NamedTuple):
    """One rank. Sizes are in GiB as printed, bytes are computed from them; None where no line says it."""

    rank: Rank
    begin: Printed | None
    """Free memory before the first weights."""
    end: Printed | None
    """Free memory after the last weights that were loaded before the pools: what they were sized from."""
    state: said.StatePool | None
    ring: said.Ring | None
    kv: said.KvPool | None
    """The target's pool."""
    draft_kv: said.KvPool | None
    """A second pool of the same rank: a draft model's (section 5)."""
    after_capture: said.AfterCapture
    capped: said.Capped | None
    summary: said.Summary | None
    unified: said.Unified | None
    free: tuple[Printed, ...]
    """Free memory as it went down: pools, captures, summary."""

    @property
    def slots(self) -> int | None:
        """K [slots], without the padding slot."""
        if self.state and self.state.slots is not None:
            return self.state.slots
        return self.capped.slots if self.capped else self.unified.slots if self.unified else None

    @property
    def state_sizes(self) -> tuple[Printed, ...]:
        """Conv and SSM sizes of all slots and the padding slot; empty where either is missing."""
        if self.state is None or self.state.conv is None or self.state.ssm is None:
            return ()
        return (self.state.conv, self.state.ssm)

    @property
    def slot_bytes(self) -> Measured | None:
        """Bytes of one slot: the sizes cover N + 1 of them (engine-sizing.md section 2)."""
        if not self.state_sizes or self.state is None or self.state.slots is None:
            return None
        return share(total(self.state_sizes), self.state.slots + 1)

    @property
    def conv_bytes(self) -> Measured | None:
        """The conv part of a slot [bytes]."""
        if self.slot_bytes is None or self.state is None or self.state.slots is None:
            return None
        return share(self.state_sizes[0].measured, self.state.slots + 1)

    @property
    def rows(self) -> int | None:
        """KV rows of this rank [tokens]: after capture, else as allocated."""
        if self.after_capture.rows is not None:
            return self.after_capture.rows
        return self.kv.rows if self.kv else None

    def token_bytes(self, page_size: int) -> Measured | None:
        """Bytes of one row of the target: the sizes cover the rows and one page (engine-sizing.md section 3)."""
        if self.kv and self.kv.sizes and self.kv.rows + page_size:
            return share(total(self.kv.sizes), self.kv.rows + page_size)
        if self.after_capture.size is not None and self.after_capture.rows:
            return share(self.after_capture.size.measured, self.after_capture.rows + page_size)
        return None

    def draft_token_bytes(self, page_size: int) -> Measured | None:
        """Bytes of one row of the draft's pool."""
        if self.draft_kv is None or not self.draft_kv.sizes:
            return None
        return share(total(self.draft_kv.sizes), self.draft_kv.rows + page_size)

    def pools_gib(self, with_draft_kv: bool) -> Measured | None:
        """Everything that the pools take on this rank [GiB]; None where the state or the KV pool has no size."""
        kv = (self.after_capture.size,) if self.after_capture.size else self.kv.sizes if self.kv else ()
        reserved = self.kv is not None and self.kv.reserved and self.after_capture.size is None
        if not self.state_sizes or not kv or reserved:
            return None
        drafts = [size for size in (self.state.draft_ssm, self.state.draft_conv) if size] if self.state else []
        rings = list(self.ring.sizes) if self.ring else []
        draft_kv = list(self.draft_kv.sizes) if self.draft_kv and with_draft_kv else []
        return total([*self.state_sizes, *drafts, *rings, *kv, *draft_kv])


def reports_of(lines: Iterable[Line]) -> tuple[RankReport, ...]:
    """A report for each rank, the first rank first."""
    by_rank: dict[Rank, list[said.Said]] = {}
    for line in lines:
        if not isinstance(line.said, said.Arguments):
            by_rank.setdefault(line.rank, []).append(line.said)
    return tuple(_report(rank, by_rank[rank]) for rank in sorted(by_rank, key=lambda rank: rank.key))


def _report(rank: Rank, words: list[said.Said]) -> RankReport:
    pools = [word for word in words if isinstance(word, said.KvPool)]
    ends = [word.available for word in _of(said.WeightsEnd, _before_pools(words)) if word.available]
    begins = _of(said.WeightsBegin, words)
    return RankReport(
        rank=rank,
        begin=begins[0].available if begins else None,
        end=ends[-1] if ends else None,
        state=_first(said.StatePool, words),
        ring=_first(said.Ring, words),
        kv=pools[0] if pools else None,
        draft_kv=pools[1] if len(pools) > 1 else None,
        after_capture=_merged(_of(said.AfterCapture, words)),
        capped=_first(said.Capped, words),
        summary=_first(said.Summary, words),
        unified=_first(said.Unified, words),
        free=tuple(_free(words)),
    )


def _before_pools(words: list[said.Said]) -> list[said.Said]:
    """What was said before the first pool; the draft of releases before 0.5.14 loads its weights after it."""
    first = next((at for at, word in enumerate(words) if isinstance(word, said.StatePool | said.KvPool)), len(words))
    return words[:first]


def _of(kind: type[T], words: Iterable[object]) -> list[T]:
    return [word for word in words if isinstance(word, kind)]


def _first(kind: type[T], words: Iterable[object]) -> T | None:
    return next(iter(_of(kind, words)), None)


def _merged(words: list[said.AfterCapture]) -> said.AfterCapture:
    """Post-capture sizing says its numbers in several lines; the last word on each counts."""
    merged = said.AfterCapture()
    for word in words:
        merged = merged._replace(**{name: value for name, value in word._asdict().items() if value is not None})
    return merged


def _free(words: list[said.Said]) -> Iterable[Printed]:
    for word in words:
        if isinstance(word, said.PoolEnd | said.Capture) or (isinstance(word, said.Summary) and word.available):
            assert word.available is not None
            yield word.available
