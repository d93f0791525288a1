"""Tables as pandas frames: one row an observation, one column a quantity, with its unit in brackets in the name.

pandas is imported when a frame is asked for and not before: it takes longer to import than all of this package.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

REQUESTS = "requests per rank"
DEPLOYMENT_REQUESTS = "requests of the deployment"


def frame_of(columns: Mapping[str, Any]) -> "DataFrame":
    """A frame of columns by name: arrays or lists of one length, or one value for every row."""
    from pandas import DataFrame

    return DataFrame({name: _whole(values) for name, values in columns.items()})


def _whole(values: Any) -> Any:
    """Whole numbers of which some are unknown stay whole numbers: left alone, pandas makes floats of them."""
    from pandas import array

    if not isinstance(values, list) or None not in values:
        return values
    known = [value for value in values if value is not None]
    return array(values, dtype="Int64") if all(type(value) is int for value in known) else values
