"""What KV gets: rows of the full pool, of the window pool beside it, and how many requests they hold.

Source: engine-sizing.md sections 3, 6 and 11 (`DefaultPoolConfigurator`, SGLang 0.5.23).
"""

import numpy as np

from sizing.basics.numeric import Numeric, Truth, lesser
from sizing.engine.resolved import Rank, Resolved, Window
from sizing.releases.rules import EAGLE_KIND, Rules

HEADROOM_BUFFER = 100  # rows that `init_memory_pool` adds besides, up to 0.5.6
HEADROOM_FORMULA = f"max_running_requests x (draft steps x top-k + D) + {HEADROOM_BUFFER}"
"""The rows that EAGLE adds, as they are written."""


def adds_headroom(rules: Rules, D: int | None, algorithm: str | None) -> bool:
    """Whether a release adds rows for drafts in flight beyond what was sized."""
    return rules.eagle_headroom and bool(D) and algorithm in EAGLE_KIND


def headroom_of_request(resolved: Resolved) -> int:
    """Rows that EAGLE adds for each request up to 0.5.6; 0 where none are."""
    scenario = resolved.scenario
    if not adds_headroom(resolved.rules, scenario.D, scenario.speculative_algorithm):
        return 0
    steps = scenario.speculative_num_steps or max(scenario.D - 1, 1)
    return rows_in_flight(steps, scenario.speculative_eagle_topk, scenario.D)


def rows_in_flight(steps: int, topk: int, D: int) -> int:
    """Rows of one request's drafts in flight [tokens]."""
    return steps * topk + D


def headroom_rows(requests: Numeric, of_request: int) -> Numeric:
    """Rows that EAGLE adds for all requests that run [tokens]."""
    return requests * of_request + HEADROOM_BUFFER


def headroom_numbers(requests: str, of_request: str) -> str:
    """The same with its numbers filled in, as texts."""
    return f"{requests} x {of_request} + {HEADROOM_BUFFER}"


def kv_rows(rank: Rank, kv_rest_bytes: Numeric, clamp: Numeric) -> Numeric:
    """Tokens on one rank [tokens]: whole pages of what is left, capped by --max-total-tokens (section 6)."""
    rows = _whole_pages(rank, _with_headroom(rank, _rows(rank, kv_rest_bytes), kv_rest_bytes, clamp))
    if rank.max_total_tokens is not None:
        rows = _whole_pages(rank, lesser(rows, rank.max_total_tokens))
    return np.maximum(rows, 0)


def _whole_pages(rank: Rank, rows: Numeric) -> Numeric:
    page = rank.page_size
    return rows // page * page if isinstance(page, np.ndarray) or page > 1 else rows


def _rows(rank: Rank, kv_rest_bytes: Numeric) -> Numeric:
    """Without attention layers a token costs nothing, and the engine takes the cap or one context
    (`DefaultPoolConfigurator._zero_kv_max_tokens`).
    """
    if not isinstance(rank.token_bytes, np.ndarray) and rank.token_bytes == 0:
        return np.full(np.shape(kv_rest_bytes), rank.max_total_tokens or rank.context_length, dtype=np.int64)
    return np.asarray(kv_rest_bytes // rank.token_bytes).astype(np.int64)


def _with_headroom(rank: Rank, rows: Numeric, kv_rest_bytes: Numeric, clamp: Numeric) -> Numeric:
    """With nothing left for KV the engine would start on these rows alone, out of the slack: that is no server."""
    if not rank.headroom or rank.requests_asked is None:
        return rows
    added = headroom_rows(np.minimum(clamp, rank.requests_asked), rank.headroom)
    return np.where(kv_rest_bytes > 0, rows + added, rows)


def window_rows(rank: Rank, window: Window, rows: Numeric) -> Numeric:
    """Tokens of the window pool on one rank: its share of the full pool's, in whole pages."""
    return np.asarray(rows * window.share).astype(np.int64) // rank.page_size * rank.page_size


def window_is_narrow(rank: Rank, window: Window, windows: Numeric) -> Truth:
    """Whether a window pool of so many tokens fits no request (`validate_swa_pool_size`): window and a page."""
    return windows <= window.tokens + rank.page_size


def kv_cap(kv_tokens: Numeric, L: Numeric) -> Numeric:
    """How many requests of L tokens the KV pool holds [requests]: logical tokens // L.

    This is the specification's cap; the engine does not enforce it, it over-admits and retracts (section 7).
    """
    return kv_tokens // L


def tokens_occupied(rank: Rank, L: Numeric) -> Numeric:
    """Logical tokens [tokens] that a request of L occupies: whole pages of page_size x dcp_size (section 6)."""
    page = rank.logical_page
    return -(-L // page) * page
