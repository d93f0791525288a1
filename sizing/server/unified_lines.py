"""`[unified-memory-pool]` lines of a boot: the entries of the buffer, to the byte.

Source: running-server.md 2.6. A number counts only where the text goes on behind it.
"""

import re
from typing import NamedTuple

from sizing.bootlog.prefix import rank_before, source_of

POOL_WORDS = "[unified-memory-pool]"
MAX_POOLS, MAX_PARTS = 1024, 8
_TOTAL = re.compile(r"UnifiedKVPool allocated: total_bytes=[\d.]{1,20} GB \(=(\d{1,18}) B\)")
_SUB = re.compile(
    r"sub-pool '?([\w.\-]{1,40})'?: kind=([\w.]{1,40}), layer_num=(\d{1,6}), grow=\w{1,10}, entry_bytes=(\d{1,15}), "
    r"max_slots=(\d{1,15}), min_slot_index=(\d{1,15})(?=\D)"
)
_SIZES = re.compile(
    r"total_bytes=(\d{1,18}), max_total_num_tokens=(\d{1,15}), max_mamba_cache_size=(\d{1,15}), "
    r"max_num_reqs=(\d{1,15})(?=\D)"
)
_PAGE = re.compile(r"full_layers=(\d{1,6}), mamba_layers=(\d{1,6}), head_num=\S{1,20}, page_size=(\d{1,9})(?=\D)")


class SubPool(NamedTuple):
    """One part of the buffer."""

    name: str
    kind: str
    layers: int
    entry_bytes: int
    """Of one state slot, or of one token."""
    max_slots: int
    reserved: int
    """Slots below the first that is given out."""

    @property
    def is_state(self) -> bool:
        """Whether its entries are state slots."""
        return "mamba" in f"{self.name} {self.kind}".lower() or "state" in self.kind.lower()


class UnifiedPool(NamedTuple):
    """One rank's buffer, as far as its lines were there."""

    total_bytes: int | None = None
    parts: tuple[SubPool, ...] = ()
    label: int | None = None
    """max_total_num_tokens."""
    slots: int | None = None
    """K of the static solve."""
    requests: int | None = None
    page_size: int | None = None
    begins: bool | None = None
    """Whether this line is the first of a buffer."""

    @property
    def state_entry_bytes(self) -> int | None:
        """E_s; None without its line."""
        return next((part.entry_bytes for part in self.parts if part.is_state), None)

    @property
    def kv_entry_bytes(self) -> int | None:
        """E_kv; None without its line, or where there are two KV parts."""
        found = [part.entry_bytes for part in self.parts if not part.is_state]
        return found[0] if len(found) == 1 else None


class UnifiedReader:
    """Takes texts in order. Ranks interleave, so each has a buffer of its own."""

    def __init__(self) -> None:
        self._pools: dict[tuple[str, str], UnifiedPool] = {}

    @property
    def pools(self) -> tuple[UnifiedPool, ...]:
        """Those that differ, in order of appearance."""
        return tuple(dict.fromkeys(self._pools.values()))

    def take(self, text: str) -> None:
        """The next text."""
        for line in whole_lines(text):
            before, words, said = line.partition(POOL_WORDS)
            if words and (change := _change(said)):
                self._add((source_of(before), rank_before(before).name), change)

    def _add(self, whose: tuple[str, str], change: UnifiedPool) -> None:
        last = self._pools.get(whose)
        if last is None and len(self._pools) >= MAX_POOLS:
            return
        if last is None or change.begins:
            self._pools[whose] = change
            return
        values = {name: value for name, value in change._asdict().items() if value is not None and name != "parts"}
        new = tuple(part for part in change.parts if part not in last.parts)
        self._pools[whose] = last._replace(parts=(*last.parts, *new)[:MAX_PARTS], **values)


def _change(said: str) -> UnifiedPool | None:
    """What one line says, as a buffer of which the rest is not known."""
    if found := _TOTAL.search(said):
        return UnifiedPool(total_bytes=int(found[1]), begins=True)
    if found := _SUB.search(said):
        return UnifiedPool(parts=(SubPool(found[1], found[2], *(int(found[at]) for at in (3, 4, 5, 6))),))
    if found := _SIZES.search(said):
        total, label, slots, requests = map(int, found.groups())
        return UnifiedPool(total_bytes=total, label=label, slots=slots, requests=requests)
    if found := _PAGE.search(said):
        return UnifiedPool(page_size=int(found[3]))
    return None


def whole_lines(text: str) -> list[str]:
    """The lines of a text, each with its newline; the last may have none."""
    lines = [f"{line}\n" for line in text.split("\n")]
    lines[-1] = lines[-1][:-1]
    return lines
