"""Where something turns: the last whole number for which it holds, and the real number from which on it does."""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

PROBES = 512  # values tried in one vectorised call, as quick as few are; a search over 2**34 of them takes four calls
NEAR = 3  # how far off what stands near may be
HALVINGS = 80  # more than any range of floats here takes


def last_that(low: int, high: int, holds: Callable[[Any], Any], near: int | None = None) -> int:
    """The last whole number from low to high for which `holds` (array in, array out), given that it holds up to some
    point only; low - 1 where it never does. `near` is where that should be: it is looked at first.

    >>> last_that(1, 10_000, lambda tried: tried**2 < 1_000_000)
    999
    """
    good, bad = low - 1, high + 1
    while bad - good > 1:
        tried, near = _probes(good, bad, near), None
        hold = int(np.count_nonzero(holds(tried)))
        good, bad = (int(tried[hold - 1]) if hold else good), (int(tried[hold]) if hold < tried.size else bad)
    return good


def _probes(good: int, bad: int, near: int | None) -> NDArray[np.int64]:
    """Numbers to try between two: a few around one that is near, else many all over."""
    if near is not None and good - NEAR < near < bad + NEAR:
        return np.arange(max(near - NEAR, good + 1), min(near + NEAR + 1, bad))
    step = max((bad - good) // (PROBES + 1), 1)
    return np.arange(good + step, bad, step)[:PROBES]


def last_that_holds(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The same where `holds` takes one number: halving.

    >>> last_that_holds(0, 100, lambda value: value * value <= 50)
    7
    """
    return low - 1 + bisect_left(range(low, high + 1), True, key=lambda value: not holds(value))


def turning_point(
    low: float, high: float, holds: Callable[[float], bool], near: tuple[float, float] | None = None
) -> tuple[float, float] | None:
    """The last float at which `holds` does not and the first at which it does, given that it holds from some point on;
    None where it does not even at `high`.

    `near` is where it should turn: if it does, nothing outside is asked, and the answer is the same to the last bit.

    >>> turning_point(0, 2, lambda value: value * value >= 2)
    (1.414213562373095, 1.4142135623730951)
    """
    first, last = low, high
    if near is not None and low < near[0] and near[1] < high and holds(near[1]) and not holds(near[0]):
        first, last = near
    elif not holds(high):
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        it_holds = middle >= last or (middle > first and holds(middle))
        low, high = (low, middle) if it_holds else (middle, high)
    return low, high
