"""What one rank of a boot said: each line by its meaning, the first or the last where a rank prints several."""

from collections.abc import Iterable
from types import UnionType
from typing import NamedTuple, TypeVar

from sizing.bootlog import line_records as records
from sizing.bootlog.find import Line
from sizing.bootlog.measure import Measured, Printed, share, total
from sizing.bootlog.prefix import Rank
from sizing.engine.padding import with_padding
from sizing.engine.request_slots import RequestSlots
from sizing.engine.slots_per_request import possible_slots

T = TypeVar("T")


class RankReport(NamedTuple):
    """One rank. Sizes are in GiB as printed, bytes are computed from them; None where no line says it."""

    rank: Rank
    model: str | None
    """Of its first weights: a draft's come after them."""
    begin: Printed | None
    """Free memory before the first weights."""
    end: Printed | None
    """Free memory after the last weights that were loaded before the pools: what they were sized from. None where that
    line has no number, or where nothing behind it says that no other weights followed."""
    loads_draft: bool
    """Weights of two classes before the pools: a draft model's are among them."""
    state: records.StatePool | None
    ring: records.Ring | None
    kv: records.KvPool | None
    """The target's pool."""
    draft_kv: records.KvPool | None
    """A second pool of the same rank, or the only one behind `Memory pool end`: a draft model's (section 5)."""
    kv_alone: bool
    """One KV line and no `Memory pool end`: under speculation it may be either's."""
    raised: records.Raised | None
    reduced: records.Reduced | None
    finalized: records.Finalized | None
    short: records.ContextShort | None
    after_capture: records.AfterCapture
    capped: records.Capped | None
    summary: records.Summary | None
    unified: records.Unified | None
    forms: dict[type, str]
    """The form of the first line of each record: `Form.name`."""
    idle: Printed | None
    """Free memory when pools and graphs were made: the summary's, else what the last capture left."""

    @property
    def slots(self) -> int | None:
        """K [slots], without the padding slot: what was charged, where a decode server allocated more."""
        if self.raised:
            return self.raised.charged
        if self.state and self.state.slots is not None:
            return self.state.slots
        if self.capped and self.capped.slots is not None:
            return self.capped.slots
        return self.unified.slots if self.unified else self._slots_at_end

    @property
    def _slots_at_end(self) -> int | None:
        """A count that stands at its line's end, where what runs leaves one S: with lost digits it would not."""
        count, running = (
            self.state.slots_at_end if self.state else None,
            self.summary.requests if self.summary else None,
        )
        if count is None or not running:
            return None
        return count if sum(RequestSlots(S).requests(count) >= running for S in possible_slots()) == 1 else None

    @property
    def S(self) -> int | None:  # noqa: N802, the specification's letter
        """State slots [slots per running request], where a line of this rank states them."""
        return self._states_S.S if self._states_S else None

    @property
    def S_from(self) -> str | None:  # noqa: N802
        """The form of the line that states S, whole or cut."""
        return self.forms[type(self._states_S)].removesuffix(", cut") if self._states_S else None

    @property
    def _states_S(self) -> records.Capped | None:  # noqa: N802
        """The first line that states S; a record of another line that does stands in the order in which they count."""
        return next((word for word in (self.capped,) if word and word.S), None)

    @property
    def asked(self) -> int | None:
        """Requests that were asked for [requests per data-parallel worker], where a line states them."""
        return self.reduced.asked if self.reduced else None

    @property
    def printed_tokens(self) -> int | None:
        """max_total_num_tokens [tokens] of the summary, or of the warning before it."""
        if self.summary and self.summary.tokens is not None:
            return self.summary.tokens
        if self.short:
            return self.short.tokens
        return self.unified.tokens if self.unified else None

    @property
    def running(self) -> int | None:
        """What the engine runs with [requests]: the last word on it."""
        warned = [word.requests for word in (self.capped, self.reduced) if word is not None]
        for found in (
            self.after_capture.requests,
            self.summary.requests if self.summary else None,
            self.unified.requests if self.unified else None,
            min(warned, default=None),
            self.finalized.requests if self.finalized else None,
        ):
            if found is not None:
                return found
        return None

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
        return share(total(self.state_sizes), with_padding(self.state.slots))

    @property
    def conv_bytes(self) -> Measured | None:
        """The conv part of a slot [bytes]."""
        if self.slot_bytes is None or self.state is None or self.state.slots is None:
            return None
        return share(self.state_sizes[0].measured, with_padding(self.state.slots))

    @property
    def rows(self) -> int | None:
        """KV rows of this rank [tokens]: after capture, else as allocated."""
        if self.after_capture.rows is not None:
            return self.after_capture.rows
        return self.kv.rows if self.kv else None

    @property
    def ssm_bytes(self) -> Measured | None:
        """The SSM part of a slot [bytes]."""
        if self.slot_bytes is None or self.state is None or self.state.slots is None:
            return None
        return share(self.state_sizes[1].measured, with_padding(self.state.slots))

    @property
    def kv_gib(self) -> Measured | None:
        """The target's KV pool [GiB]: after capture, else as allocated; a reservation is no memory."""
        if self.after_capture.size is not None:
            return self.after_capture.size.measured
        return total(self.kv.sizes) if self.kv and self.kv.sizes and not self.kv.reserved else None

    def token_bytes(self, page_size: int) -> Measured | None:
        """Bytes of one row of the target: the sizes cover the rows and one page (engine-sizing.md section 3)."""
        if self.kv and self.kv.sizes and self.kv.rows is not None:
            return share(total(self.kv.sizes), self.kv.rows + page_size)
        if self.after_capture.size is not None and self.after_capture.rows:
            return share(self.after_capture.size.measured, self.after_capture.rows + page_size)
        return None

    def draft_token_bytes(self, page_size: int) -> Measured | None:
        """Bytes of one row of the draft's pool."""
        if self.draft_kv is None or not self.draft_kv.sizes or self.draft_kv.rows is None:
            return None
        return share(total(self.draft_kv.sizes), self.draft_kv.rows + page_size)


def reports_of(lines: Iterable[Line]) -> tuple[RankReport, ...]:
    """A report for each rank, the first rank first."""
    by_rank: dict[Rank, list[Line]] = {}
    for line in lines:
        if not isinstance(line.record, records.Arguments):
            by_rank.setdefault(line.rank, []).append(line)
    return tuple(_report(rank, by_rank[rank]) for rank in sorted(by_rank, key=lambda rank: rank.key))


def _report(rank: Rank, lines: list[Line]) -> RankReport:
    words = [line.record for line in lines]
    begins, ends = _of(records.WeightsBegin, words), _of(records.WeightsEnd, words)
    before = _of(records.WeightsEnd, _before_pools(words))
    target, draft, alone = _kv_pools(words)
    first = next(iter(_of(records.WeightsBegin | records.WeightsEnd, words)), None)
    return RankReport(
        rank=rank,
        model=ends[0].model if ends else None,
        begin=begins[0].available if begins and first is begins[0] else None,
        end=before[-1].available if before and _loaded(words) else None,
        loads_draft=len({end.model for end in before if end.model}) > 1,
        state=_first(records.StatePool, words),
        ring=_first(records.Ring, words),
        kv=target,
        draft_kv=draft,
        kv_alone=alone,
        raised=_first(records.Raised, words),
        reduced=_first(records.Reduced, words),
        finalized=_first(records.Finalized, words),
        short=_first(records.ContextShort, words),
        after_capture=_merged(_of(records.AfterCapture, words)),
        capped=_first(records.Capped, words),
        summary=_first(records.Summary, words),
        unified=_first(records.Unified, words),
        forms={type(line.record): line.form for line in reversed(lines)},
        idle=_idle(words),
    )


def _kv_pools(words: list[records.LineRecord]) -> tuple[records.KvPool | None, records.KvPool | None, bool]:
    """The target's KV pool, the draft's, and whether the only one could be either's.

    After each pool set stands `Memory pool end` (section 6): what comes behind the first of them is the draft's.
    """
    ends = [at for at, word in enumerate(words) if isinstance(word, records.PoolEnd)]
    first_end = ends[0] if ends else len(words)
    before = _of(records.KvPool, words[:first_end])
    after = _of(records.KvPool, words[first_end:])
    drafts = before[1:] + after
    return before[0] if before else None, drafts[0] if drafts else None, len(before) == 1 and not after and not ends


def _loaded(words: list[records.LineRecord]) -> bool:
    """Whether every weight that was begun before the pools has ended, and something stands behind the last end."""
    before = _before_pools(words)
    ends = [at for at, word in enumerate(before) if isinstance(word, records.WeightsEnd)]
    return bool(ends) and not _of(records.WeightsBegin, before[ends[-1] :]) and (len(words) > ends[-1] + 1)


def _before_pools(words: list[records.LineRecord]) -> list[records.LineRecord]:
    """What was said before the first pool; the draft of releases before 0.5.14 loads its weights after it."""
    pools = records.StatePool | records.KvPool | records.PoolEnd
    first = next((at for at, word in enumerate(words) if isinstance(word, pools)), len(words))
    return words[:first]


def _of(kind: type[T] | UnionType, words: Iterable[object]) -> list[T]:
    return [word for word in words if isinstance(word, kind)]


def _first(kind: type[T], words: Iterable[object]) -> T | None:
    return next(iter(_of(kind, words)), None)


def _merged(words: list[records.AfterCapture]) -> records.AfterCapture:
    """Post-capture sizing says its numbers in several lines; the last word on each counts."""
    merged = records.AfterCapture()
    for word in words:
        merged = merged._replace(**{name: value for name, value in word._asdict().items() if value is not None})
    return merged


def _idle(words: list[records.LineRecord]) -> Printed | None:
    for summary in _of(records.Summary, words):
        if summary.available:
            return summary.available
    captures = [word for word in _of(records.Capture, words) if word.ended]
    return captures[-1].available if captures else None
