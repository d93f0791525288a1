"""model.safetensors.index.json: the bytes of all weights in a checkpoint, MTP included.

The file comes from a stranger: it is bounded, and nothing but one number is taken from it.
"""

import json

from sizing.models.refusal import ModelRefusedError

INDEX = "model.safetensors.index.json"
MAX_INDEX_BYTES = 64 * 2**20  # a bound for hostile input; a checkpoint of 900 experts a layer has about 20 MB
MAX_TOTAL_BYTES = 2**50  # the same: a pebibyte


def total_size(source: str | bytes) -> int:
    """metadata.total_size [bytes]. Raises ModelRefusedError, and nothing else, for anything that is not such a file.

    >>> total_size('{"metadata": {"total_size": 163000000000}, "weight_map": {}}')
    163000000000
    """
    if len(source) > MAX_INDEX_BYTES:
        raise ModelRefusedError("unreadable", INDEX, f"{INDEX} is larger than {MAX_INDEX_BYTES // 2**20} MiB.")
    try:
        values = json.loads(source.decode("utf-8-sig") if isinstance(source, bytes) else source)
    except (ValueError, RecursionError):
        raise ModelRefusedError("unreadable", INDEX, f"{INDEX} is not JSON. Give the whole file.") from None
    metadata = values.get("metadata") if isinstance(values, dict) else None
    size = metadata.get("total_size") if isinstance(metadata, dict) else None
    if isinstance(size, float) and size.is_integer():
        size = int(size)  # some writers print it as 1.63e11
    if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= MAX_TOTAL_BYTES:
        raise ModelRefusedError(
            "missing", INDEX, f"{INDEX} has no metadata.total_size between 1 byte and {MAX_TOTAL_BYTES:,} bytes."
        )
    return size
