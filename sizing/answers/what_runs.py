"""The rule that every answer asks again, over numbers or numpy arrays: the KV of pools that admit so many requests."""

from typing import Any

import numpy as np

from sizing.basics.numeric import Numeric
from sizing.engine.pools import Pools, carries


def kv_tokens_for(pools: Pools, requests: Numeric) -> Any:
    """The KV [tokens] of pools that admit so many requests; below 0 where they do not, or the engine refuses."""
    return np.where(carries(pools, requests, 0), pools.kv_tokens, -1)
