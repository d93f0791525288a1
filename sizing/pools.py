"""The engine's integer solve of both pools, for one rank. Every rule takes numbers or numpy arrays alike.

Source: engine-sizing.md sections 5 to 7 (`_handle_max_mamba_cache`, `resolve_max_num_reqs`, SGLang 0.5.23).
The engine computes in GiB floats and floors; the order of operations below is its order.
"""

from typing import Any, NamedTuple

import numpy as np

from sizing.scenario import KV_ITEMSIZE, SSM_ITEMSIZE, Scenario
from sizing.slots import slots_per_request
from sizing.units import GIB

# A number or a numpy array of numbers: numpy's own types cannot say "the same shape in and out".
Numeric = Any

# engine-sizing.md section 5: under any speculative algorithm an unset --max-running-requests becomes 48.
SPECULATION_REQUESTS = 48
# engine-sizing.md section 7: estimate = clamp(int(tokens / context_len * 512), 2048, 4096).
ESTIMATE_FACTOR, ESTIMATE_LOW, ESTIMATE_HIGH = 512, 2048, 4096
TOKENS_PER_REQUEST = 2  # section 7: never more requests than tokens // 2


class Rank(NamedTuple):
    """What one rank brings to the solve. Any member may be a numpy array; arrays broadcast."""

    rest_gib: Numeric
    slot_bytes: Numeric
    token_bytes: Numeric
    """KV bytes the engine divides by: target plus draft."""
    S: Numeric
    D: Numeric
    page_size: Numeric
    dcp_size: Numeric
    context_length: Numeric
    requests_wanted: Numeric | None
    """`--max-running-requests`, or 48 under speculation, or None for the engine's estimate."""
    max_total_tokens: Numeric | None


class Pools(NamedTuple):
    """Both pools of one rank for given slots. Integers, or integer arrays."""

    slots: Numeric
    """K, what the engine prints as max_mamba_cache_size; one padding slot more is allocated."""
    state_bytes: Numeric
    """(K + 1) slots."""
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


def slot_bytes(scenario: Scenario) -> int:
    """State bytes of one slot [bytes per rank] at the SSM dtype that runs; the conv part does not change."""
    conv = scenario.conv_bytes_per_slot or 0
    ssm = scenario.state_bytes_per_slot - conv
    return conv + ssm * SSM_ITEMSIZE[scenario.mamba_ssm_dtype] // SSM_ITEMSIZE[scenario.state_bytes_dtype]


def target_token_bytes(scenario: Scenario) -> int:
    """KV bytes of one token of the target model [bytes per rank] at the KV dtype that runs."""
    return _at_kv_dtype(scenario, scenario.kv_bytes_per_token)


def token_bytes(scenario: Scenario) -> int:
    """KV bytes the engine divides by [bytes per rank]: the target's plus what a draft model adds (section 3)."""
    return target_token_bytes(scenario) + _at_kv_dtype(scenario, scenario.draft_kv_bytes_per_token)


def _at_kv_dtype(scenario: Scenario, stated: int) -> int:
    return stated * KV_ITEMSIZE[scenario.kv_cache_dtype] // KV_ITEMSIZE[scenario.kv_bytes_dtype]


def rank_of(scenario: Scenario) -> Rank:
    """The numbers of one rank. Raises RefusedError when the flags themselves are refused."""
    wanted = scenario.max_running_requests
    if wanted is None and scenario.D:
        wanted = SPECULATION_REQUESTS
    return Rank(
        rest_gib=scenario.rest_gib,
        slot_bytes=slot_bytes(scenario),
        token_bytes=token_bytes(scenario),
        S=slots_per_request(scenario),
        D=scenario.D,
        page_size=scenario.page_size,
        dcp_size=scenario.dcp_size,
        context_length=scenario.context_length,
        requests_wanted=wanted,
        max_total_tokens=scenario.max_total_tokens,
    )


def state_budget_bytes(rest_gib: Numeric, ratio: Numeric) -> Numeric:
    """State budget [bytes, float] of a ratio [-]: rest x r / (1 + r)."""
    return rest_gib * ratio / (1 + ratio) * GIB


def slots_from_ratio(rank: Rank, ratio: Numeric) -> Numeric:
    """K [slots, float holding a whole number] from a ratio; may be 0 or less, which the engine refuses.

    Without drafts one padding slot comes off the budget. Under plain speculation the joint solve charges
    D draft states for each S slots, and 1 + D padding states.
    """
    padding = rank.slot_bytes * (1 + rank.D)
    per_slot = rank.slot_bytes * (1 + rank.D / rank.S)
    return (state_budget_bytes(rank.rest_gib, ratio) - padding) // per_slot


def ratio_is_ignored(scenario: Scenario) -> bool:
    """Radix cache off with a known request count takes exactly that many slots, whatever the ratio (section 5, 2)."""
    return scenario.disable_radix_cache and (scenario.max_running_requests is not None or scenario.D > 0)


def pools_from_slots(rank: Rank, slots: Numeric) -> Pools:
    """Everything that follows from K [slots]: what KV gets, the page floor, the three-way cap.

    Values are meaningful where `slots`, `kv_rest_bytes` and `kv_rows` are positive; elsewhere `admitted` is 0.
    """
    slots = np.asarray(slots).astype(np.int64)
    clamp = slots // rank.S
    reserve = _draft_reserve_bytes(rank, clamp)
    state = (slots + 1) * rank.slot_bytes
    kv_rest_gib = rank.rest_gib - reserve / GIB - state / GIB
    kv_rest = np.trunc(kv_rest_gib * GIB).astype(np.int64)
    rows = _kv_rows(rank, kv_rest)
    return Pools(
        slots=slots,
        state_bytes=state,
        draft_reserve_bytes=reserve,
        kv_rest_bytes=kv_rest,
        kv_rows=rows,
        kv_tokens=rows * rank.dcp_size,
        clamp=clamp,
        admitted=_admitted(rank, rows, clamp),
    )


def _draft_reserve_bytes(rank: Rank, clamp: Numeric) -> Numeric:
    """Draft states of min(requests, K // S) requests and one padding request, at the whole slot each."""
    if rank.requests_wanted is None:
        return np.zeros_like(clamp)
    return (np.minimum(rank.requests_wanted, clamp) + 1) * rank.D * rank.slot_bytes


def _kv_rows(rank: Rank, kv_rest_bytes: Numeric) -> Numeric:
    """Tokens on one rank [tokens]: whole pages of what is left, capped by --max-total-tokens (section 6)."""
    rows = kv_rest_bytes // rank.token_bytes // rank.page_size * rank.page_size
    if rank.max_total_tokens is not None:
        rows = np.minimum(rows, rank.max_total_tokens) // rank.page_size * rank.page_size
    return np.maximum(rows, 0)


def requests_wanted(rank: Rank, rows: Numeric) -> Numeric:
    """What the engine aims for before memory caps it [requests]: the asked number, or its estimate."""
    if rank.requests_wanted is not None:
        return rank.requests_wanted
    estimate = np.trunc(rows / rank.context_length * ESTIMATE_FACTOR).astype(np.int64)
    return np.clip(estimate, ESTIMATE_LOW, ESTIMATE_HIGH)


def _admitted(rank: Rank, rows: Numeric, clamp: Numeric) -> Numeric:
    admitted = np.minimum(np.minimum(requests_wanted(rank, rows), rows // TOKENS_PER_REQUEST), clamp)
    return np.maximum(admitted, 0)


def kv_cap(kv_tokens: Numeric, L: Numeric) -> Numeric:
    """How many requests of L tokens the KV pool holds [requests]: logical tokens // L.

    This is the specification's cap; the engine does not enforce it, it over-admits and retracts (section 7).
    """
    return kv_tokens // L


def tokens_occupied(rank: Rank, L: Numeric) -> Numeric:
    """Logical tokens [tokens] that a request of L occupies: whole pages of page_size x dcp_size (section 6)."""
    page = rank.page_size * rank.dcp_size
    return -(-L // page) * page
