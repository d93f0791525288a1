"""Types of what the rules take and give: numbers, or numpy arrays of them that broadcast with each other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numeric = int | float | NDArray[Any]
Truth = bool | NDArray[np.bool_]
