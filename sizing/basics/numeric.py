"""Numbers and numpy arrays of them, which broadcast with each other: what the rules take and give."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numeric = int | float | NDArray[Any]
Truth = bool | NDArray[np.bool_]


def divisors(whole: int, most: int) -> list[int]:
    """The whole numbers up to `most` by which it can be shared without a rest.

    >>> divisors(12, 6)
    [1, 2, 3, 4, 6]
    """
    return [share for share in range(1, min(whole, most) + 1) if whole % share == 0]
