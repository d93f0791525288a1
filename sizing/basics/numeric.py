"""Numbers and numpy arrays of them, which broadcast with each other: what the rules take and give."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numeric = int | float | NDArray[Any]
Truth = bool | NDArray[np.bool_]


def lesser(one: Numeric, other: Numeric) -> Numeric:
    """The smaller of two, number by number: what numpy does takes ten times as long for two numbers.

    >>> lesser(3, 2), lesser(np.array([1, 5]), 4).tolist()
    (2, [1, 4])
    """
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.minimum(one, other)
    return one if one <= other else other


def greater(one: Numeric, other: Numeric) -> Numeric:
    """The larger of two in the same way."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.maximum(one, other)
    return one if one >= other else other


def divisors(whole: int, most: int) -> list[int]:
    """The whole numbers up to `most` by which it can be shared without a rest.

    >>> divisors(12, 6)
    [1, 2, 3, 4, 6]
    """
    return [share for share in range(1, min(whole, most) + 1) if whole % share == 0]
