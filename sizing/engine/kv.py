"""What KV gets: rows of the full pool, of the window pool beside it, and how many requests they hold.

Source: engine-sizing.md sections 3, 6 and 11 (`DefaultPoolConfigurator`, SGLang 0.5.23).
"""

import numpy as np

from sizing.basics.numeric import Numeric, Truth
from sizing.engine.resolved import Rank, Resolved
from sizing.releases.rules import EAGLE_KIND, Rules

HEADROOM_BUFFER = 100  # `init_memory_pool` up to 0.5.6: requests x (steps x topk + D) + 100 rows


def adds_headroom(rules: Rules, D: int | None, algorithm: str | None) -> bool:
    """Whether a release adds rows for drafts in flight beyond what was sized."""
    return rules.eagle_headroom and bool(D) and algorithm in EAGLE_KIND


def headroom_rows(resolved: Resolved) -> int:
    """Rows that EAGLE adds for each request up to 0.5.6, HEADROOM_BUFFER more besides; 0 where none are."""
    scenario = resolved.scenario
    if not adds_headroom(resolved.rules, scenario.D, scenario.speculative_algorithm):
        return 0
    steps = scenario.speculative_num_steps or max(scenario.D - 1, 1)
    return steps * scenario.speculative_eagle_topk + scenario.D


def kv_rows(rank: Rank, kv_rest_bytes: Numeric, clamp: Numeric) -> Numeric:
    """Tokens on one rank [tokens]: whole pages of what is left, capped by --max-total-tokens (section 6)."""
    rows = _with_headroom(rank, _rows(rank, kv_rest_bytes), kv_rest_bytes, clamp) // rank.page_size * rank.page_size
    if rank.max_total_tokens is not None:
        rows = np.minimum(rows, rank.max_total_tokens) // rank.page_size * rank.page_size
    return np.maximum(rows, 0)


def _rows(rank: Rank, kv_rest_bytes: Numeric) -> Numeric:
    """Without attention layers a token costs nothing, and the engine takes the cap or one context
    (`DefaultPoolConfigurator._zero_kv_max_tokens`).
    """
    if np.ndim(rank.token_bytes) == 0 and rank.token_bytes == 0:
        return np.full(np.shape(kv_rest_bytes), rank.max_total_tokens or rank.context_length, dtype=np.int64)
    return np.asarray(kv_rest_bytes // rank.token_bytes).astype(np.int64)


def _with_headroom(rank: Rank, rows: Numeric, kv_rest_bytes: Numeric, clamp: Numeric) -> Numeric:
    """With nothing left for KV the engine would start on these rows alone, out of the slack: that is no server."""
    if not rank.headroom or rank.requests_asked is None:
        return rows
    added = np.minimum(clamp, rank.requests_asked) * rank.headroom + HEADROOM_BUFFER
    return np.where(kv_rest_bytes > 0, rows + added, rows)


def window_rows(rank: Rank, rows: Numeric) -> Numeric:
    """Tokens of the window pool on one rank: its share of the full pool's, in whole pages; 0 without one."""
    if rank.window is None:
        return 0 * rows
    return np.asarray(rows * rank.window.share).astype(np.int64) // rank.page_size * rank.page_size


def window_is_narrow(rank: Rank, windows: Numeric) -> Truth:
    """Whether a window pool of so many tokens fits no request (`validate_swa_pool_size`): window and a page."""
    if rank.window is None:
        return windows < 0
    return windows <= rank.window.tokens + rank.page_size


def kv_cap(kv_tokens: Numeric, L: Numeric) -> Numeric:
    """How many requests of L tokens the KV pool holds [requests]: logical tokens // L.

    This is the specification's cap; the engine does not enforce it, it over-admits and retracts (section 7).
    """
    return kv_tokens // L


def tokens_occupied(rank: Rank, L: Numeric) -> Numeric:
    """Logical tokens [tokens] that a request of L occupies: whole pages of page_size x dcp_size (section 6)."""
    page = rank.page_size * rank.dcp_size
    return -(-L // page) * page
