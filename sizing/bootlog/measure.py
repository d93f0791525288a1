"""What a printed figure says and what its rounding leaves open. `GB` in a line is GiB (boot-log-formats.md)."""

from collections.abc import Iterable
from typing import NamedTuple

from sizing.basics.units import GIB


class Printed(NamedTuple):
    """A figure as a line prints it, and half of its last digit: the value lies within `value` ± `half`."""

    value: float
    half: float

    @property
    def measured(self) -> "Measured":
        """The figure with both ends."""
        return Measured(self.value, self.value - self.half, self.value + self.half)


class Measured(NamedTuple):
    """A number computed from printed figures, and the two ends that their rounding leaves open."""

    value: float
    low: float
    high: float

    def holds(self, number: float) -> bool:
        """Whether the printed figures allow this number."""
        return self.low <= number <= self.high

    def meets(self, other: "Measured") -> bool:
        """Whether one number can be both."""
        return self.low <= other.high and other.low <= self.high

    def times(self, factor: float) -> "Measured":
        """So many times as much; `factor` is exact and not negative."""
        return Measured(self.value * factor, self.low * factor, self.high * factor)


def printed(text: str) -> Printed:
    """A figure from its digits: two decimals are known to half a hundredth.

    >>> printed("13.04")
    Printed(value=13.04, half=0.005)
    """
    return Printed(float(text), 0.5 / 10 ** len(text.partition(".")[2]))


def total(figures: Iterable[Printed]) -> Measured:
    """The sum of figures, in their unit; each may be off by half of its last digit.

    >>> total([printed("0.46"), printed("13.04")]) == Measured(13.5, 13.49, 13.51)
    True
    """
    given = list(figures)
    value, half = sum(figure.value for figure in given), sum(figure.half for figure in given)
    return Measured(value, value - half, value + half)


def span(*parts: Measured) -> Measured:
    """The sum of measured numbers."""
    return Measured(*(sum(ends) for ends in zip(*parts, strict=True)))


def common(measured: Iterable[Measured]) -> Measured | None:
    """What all of these allow, in the middle of it; None where no number can be all of them, or there is none."""
    given = list(measured)
    if not given:
        return None
    low, high = max(each.low for each in given), min(each.high for each in given)
    if low > high:
        return None
    inside = [each.value for each in given if low <= each.value <= high]
    return Measured(min(inside) if inside else (low + high) / 2, low, high)


def share(gib: Measured, parts: int) -> Measured:
    """One of so many equal parts [bytes] of a size [GiB]."""
    return Measured(*(end * GIB / parts for end in gib))


def least(measured: Iterable[Measured]) -> Measured:
    """The smallest of these, end by end: the engine takes the minimum over ranks (engine-sizing.md section 1)."""
    given = list(measured)
    return Measured(*(min(ends) for ends in zip(*given, strict=True)))


def bytes_per_slot_between(first: Measured, first_slots: int, second: Measured, second_slots: int) -> Measured | None:
    """Bytes of a slot from two pools [GiB] of different, known size [slots]: the padding slot cancels out.

    For lines that do not print max_mamba_cache_size. None for pools of the same size.
    """
    apart = second_slots - first_slots
    if not apart:
        return None
    if apart < 0:
        return bytes_per_slot_between(second, second_slots, first, first_slots)
    difference = (second.value - first.value, second.low - first.high, second.high - first.low)
    return Measured(*(end * GIB / apart for end in difference))
