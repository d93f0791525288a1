"""Both pools of one rank for given slots, and what they run. Every rule takes numbers or numpy arrays alike.

Source: engine-sizing.md sections 3 and 5 to 7 (SGLang 0.5.23); where older releases differ, sizing/releases/rules.py.
"""

from typing import Any, NamedTuple

import numpy as np

from sizing.basics.numeric import Numeric, Truth, lesser
from sizing.basics.units import GIB
from sizing.engine.charges import draft_reserve_bytes, state_bytes
from sizing.engine.kv import kv_cap, kv_rows, window_is_narrow, window_rows
from sizing.engine.requests import admitted
from sizing.engine.resolved import Rank, Window


class Pools(NamedTuple):
    """Both pools of one rank for given slots. Integers, or integer arrays."""

    slots: Numeric
    """K, what the engine prints as max_mamba_cache_size; one padding slot more is allocated."""
    state_bytes: Numeric
    """What the slots are charged, rings included."""
    draft_reserve_bytes: Numeric
    """Draft states of plain speculation, taken out of rest."""
    kv_rest_bytes: Numeric
    kv_rows: Numeric
    """Tokens on one rank, whole pages."""
    kv_tokens: Numeric
    """Logical tokens: rows x dcp_size."""
    clamp: Numeric
    """K // S: the mamba clamp."""
    admitted: Numeric
    """The engine's max_running_requests; 0 where it refuses to start."""
    window_rows: Numeric = 0
    """Tokens of the sliding-window pool; 0 without one."""
    window_cap: Numeric | None = None
    """How many requests' windows that pool holds; None without one."""

    @property
    def charged_bytes(self) -> Numeric:
        """What comes off rest before KV: the slots with rings, and draft states."""
        return self.state_bytes + self.draft_reserve_bytes


def pools_from_slots(rank: Rank, slots: Numeric) -> Pools:
    """Everything that follows from K [slots]: what KV gets, the page floor, the caps on requests.

    Values are meaningful where `slots`, `kv_rest_bytes` and `kv_rows` are positive; elsewhere `admitted` is 0.
    """
    slots = np.asarray(slots).astype(np.int64)[()]  # one number is no array: numpy is quicker with it
    clamp = rank.request_slots.requests(slots)
    reserve, state = draft_reserve_bytes(rank, slots, clamp), state_bytes(rank, slots)
    kv_rest_gib: Any = rank.rest_gib - reserve / GIB - state / GIB
    kv_rest = (kv_rest_gib * GIB).astype(np.int64)  # cut off, as the engine's int()
    rows = kv_rows(rank, kv_rest, clamp)
    pools = Pools(
        slots=slots,
        state_bytes=state,
        draft_reserve_bytes=reserve,
        kv_rest_bytes=kv_rest,
        kv_rows=rows,
        kv_tokens=rows * rank.dcp_size,
        clamp=clamp,
        admitted=admitted(rank, rows, clamp),
    )
    return pools if rank.window is None else _with_window(rank, rank.window, pools)


def _with_window(rank: Rank, window: Window, pools: Pools) -> Pools:
    rows = window_rows(rank, window, pools.kv_rows)
    admitted = pools.admitted * ~window_is_narrow(rank, window, rows)
    return pools._replace(admitted=admitted, window_rows=rows, window_cap=rows // window.tokens)


def starts(pools: Pools) -> Truth:
    """Whether the engine starts: it admits a request, which takes slots for it, a row of KV and a window."""
    return pools.admitted > 0


def held_by_kv(pools: Pools, L: Numeric) -> Numeric:
    """How many requests of L tokens KV holds [requests per rank]: its full rows, and its window rows if there are."""
    cap = kv_cap(pools.kv_tokens, L)
    return cap if pools.window_cap is None else lesser(cap, pools.window_cap)


def running(pools: Pools, L: Numeric) -> Numeric:
    """What really runs at L [requests per rank], 0 where the engine refuses: min(admitted, KV cap)."""
    return lesser(pools.admitted, held_by_kv(pools, L))


def carries(pools: Pools, requests: Numeric, tokens: Numeric) -> Truth:
    """Whether pools run so many requests that need so many full KV tokens together."""
    found = starts(pools) & (pools.admitted >= requests) & (pools.kv_tokens >= tokens)
    return found if pools.window_cap is None else found & (pools.window_cap >= requests)
