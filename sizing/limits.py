"""What runs at L is the smallest of a few limits; each row says its value, its reason and the flag that lifts it.

The first three are the engine's (engine-sizing.md section 7). The KV cap at L is ours: the engine admits
more and then retracts requests when KV runs out.
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sizing.pools import (
    ESTIMATE_FACTOR,
    ESTIMATE_HIGH,
    ESTIMATE_LOW,
    SPECULATION_REQUESTS,
    TOKENS_PER_REQUEST,
    Pools,
    Rank,
    caps_by_estimate,
    caps_by_tokens,
    estimate,
    kv_cap,
    ratio_is_ignored,
)
from sizing.scenario import Scenario
from sizing.units import count

LimitName = Literal["state pool", "KV pool", "requests asked", "estimate", "tokens // 2"]


class Limit(BaseModel):
    """One limit on running requests [requests per rank]."""

    model_config = ConfigDict(frozen=True)

    name: LimitName
    requests: int
    why: str
    lifted_by: str


def limits(scenario: Scenario, rank: Rank, pools: Pools) -> tuple[Limit, ...]:
    """Every limit of a solved split at the scenario's L, the binding one first; a tie goes to the harder limit."""
    rows = [_state_limit(scenario, rank, pools), _kv_limit(rank, pools, scenario.L)]
    if rank.requests_asked is not None:
        rows.append(_asked_limit(scenario, rank.requests_asked))
    if caps_by_estimate(rank):
        rows.append(_estimate_limit(rank, pools))
    if caps_by_tokens(rank):
        rows.append(_token_limit(pools))
    return tuple(sorted(rows, key=lambda limit: limit.requests))  # sorted() keeps the order of ties


def _state_limit(scenario: Scenario, rank: Rank, pools: Pools) -> Limit:
    by_ratio = "a larger --mamba-full-memory-ratio or --max-mamba-cache-size"
    return Limit(
        name="state pool",
        requests=int(pools.clamp),
        why=f"{count(int(pools.slots))} slots // {rank.S} {'slot' if rank.S == 1 else 'slots'} per request",
        lifted_by="a larger --max-running-requests" if ratio_is_ignored(scenario) else by_ratio,
    )


def _kv_limit(rank: Rank, pools: Pools, L: int) -> Limit:
    spread = f" x dcp_size {rank.dcp_size}" if rank.dcp_size > 1 else ""
    return Limit(
        name="KV pool",
        requests=int(kv_cap(pools.kv_tokens, L)),
        why=f"{count(int(pools.kv_rows))} tokens{spread} // L {count(L)}",
        lifted_by="a smaller --mamba-full-memory-ratio or --max-mamba-cache-size",
    )


def _asked_limit(scenario: Scenario, asked: int) -> Limit:
    if scenario.max_running_requests is None:
        why = f"unset, the engine assumes {SPECULATION_REQUESTS} under speculation"
    else:
        why = "as asked"
    stated = scenario.max_running_requests or SPECULATION_REQUESTS
    if asked != stated:
        why += f": {count(stated)} // attn_dp_size {scenario.attn_dp_size}"
    return Limit(name="requests asked", requests=asked, why=why, lifted_by="a larger --max-running-requests")


def _estimate_limit(rank: Rank, pools: Pools) -> Limit:
    share = f"{count(int(pools.kv_rows))} tokens / {count(rank.context_length)} context x {ESTIMATE_FACTOR}"
    asked = rank.requests_asked is None
    return Limit(
        name="estimate",
        requests=int(estimate(rank, pools.kv_rows)),
        why=f"{share}, at least {count(ESTIMATE_LOW)} and at most {count(ESTIMATE_HIGH)}",
        lifted_by="--max-running-requests" if asked else "a shorter --context-length",
    )


def _token_limit(pools: Pools) -> Limit:
    return Limit(
        name="tokens // 2",
        requests=int(pools.kv_rows) // TOKENS_PER_REQUEST,
        why=f"{count(int(pools.kv_rows))} tokens // 2",
        lifted_by="a smaller --mamba-full-memory-ratio",
    )
