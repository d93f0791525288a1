"""What runs at L is the smallest of a few limits; each row says its value, its reason and the flag that lifts it.

The first three are the engine's (engine-sizing.md section 7). The KV cap at L is ours: the engine admits
more and then retracts requests when KV runs out.
"""

from collections.abc import Callable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sizing.basics.numeric import Numeric
from sizing.basics.units import count
from sizing.engine.kv import kv_cap
from sizing.engine.pools import Pools, held_by_kv
from sizing.engine.requests import (
    cap_by_tokens,
    caps_by_estimate,
    caps_by_tokens,
    estimate,
)
from sizing.engine.resolved import Rank, Resolved
from sizing.engine.slots import lever, pin_is_ignored
from sizing.releases.flags import PIN, RATIO, REQUESTS

MORE_TOKENS = "a larger --max-total-tokens"
LimitName = Literal["state pool", "KV pool", "requests asked", "estimate", "tokens // 2"]


class Limit(BaseModel):
    """One limit on running requests [requests per rank]."""

    model_config = ConfigDict(frozen=True)

    name: LimitName
    requests: int
    why: str
    lifted_by: str


def limits(rank: Rank, pools: Pools, *, pinned: bool) -> tuple[Limit, ...]:
    """Every limit of a solved split at the scenario's L, the binding one first; a tie goes to the harder limit."""
    levers = _levers(rank, pinned=pinned)
    rows: dict[LimitName, Callable[[int], Limit]] = {
        "state pool": lambda requests: _state_limit(rank, pools, levers, requests),
        "KV pool": lambda requests: _kv_limit(rank, pools, levers, requests),
        "requests asked": lambda requests: _asked_limit(rank.resolved, requests),
        "estimate": lambda requests: _estimate_limit(rank, pools, requests),
        "tokens // 2": lambda requests: _token_limit(rank, pools, levers, requests),
    }
    found = [rows[name](int(requests)) for name, requests in requests_by_limit(rank, pools, rank.scenario.L).items()]
    return tuple(sorted(found, key=lambda limit: limit.requests))  # sorted() keeps the order of ties


def requests_by_limit(rank: Rank, pools: Pools, L: Numeric) -> dict[LimitName, Numeric]:
    """Every limit that applies [requests per rank], the hardest first: of equal ones the first binds. Pools and L may
    be arrays.
    """
    found: dict[LimitName, Numeric] = {"state pool": pools.clamp, "KV pool": held_by_kv(pools, L)}
    if rank.requests_asked is not None:
        found["requests asked"] = rank.requests_asked
    if caps_by_estimate(rank):
        found["estimate"] = estimate(rank, pools.kv_rows)
    if caps_by_tokens(rank):
        found["tokens // 2"] = cap_by_tokens(rank, pools.kv_rows)
    return found


def _levers(rank: Rank, *, pinned: bool) -> str:
    """The flags that decide the slots of this split."""
    found = lever(rank.resolved, pinned=pinned)
    return f"{found} or {PIN}" if found == RATIO and not pin_is_ignored(rank.resolved) else found


def _state_limit(rank: Rank, pools: Pools, levers: str, requests: int) -> Limit:
    return Limit(
        name="state pool",
        requests=requests,
        why=f"{count(int(pools.slots))} {'slot' if pools.slots == 1 else 'slots'}, {rank.S} per request: "
        f"{_fit(requests)}",
        lifted_by=f"a larger {levers}",
    )


def _kv_limit(rank: Rank, pools: Pools, levers: str, requests: int) -> Limit:
    spread = f" x dcp_size {rank.dcp_size}" if rank.dcp_size > 1 else ""
    L = rank.scenario.L
    windows = pools.window_cap
    if rank.window is not None and windows is not None and windows < kv_cap(pools.kv_tokens, L):
        return Limit(
            name="KV pool",
            requests=requests,
            why=f"{count(int(pools.window_rows))} tokens of the window pool, {count(rank.window.tokens)} per request: "
            f"{_fit(requests)}",
            lifted_by="a larger --swa-full-tokens-ratio",
        )
    return Limit(
        name="KV pool",
        requests=requests,
        why=f"{count(int(pools.kv_rows))} tokens{spread}, {count(L)} per request: {_fit(requests)}",
        lifted_by=_more_tokens(rank, pools, levers),
    )


def _fit(requests: int) -> str:
    return f"{count(requests)} {'fits' if requests == 1 else 'fit'}"


def _more_tokens(rank: Rank, pools: Pools, levers: str) -> str:
    capped, page = rank.max_total_tokens, rank.page_size
    if capped is not None and pools.kv_rows == capped // page * page:
        return MORE_TOKENS
    return f"a smaller {levers}"


def _asked_limit(resolved: Resolved, asked: int) -> Limit:
    scenario, stated = resolved.scenario, resolved.max_running_requests or 0
    unset = scenario.max_running_requests is None
    why = f"not set: speculation takes {count(stated)}" if unset else "the limit you set"
    if asked != stated:
        why += f", {count(stated)} over {scenario.attn_dp_size} ranks"
    return Limit(name="requests asked", requests=asked, why=why, lifted_by="a larger --max-running-requests")


def _estimate_limit(rank: Rank, pools: Pools, requests: int) -> Limit:
    share = f"{count(int(pools.kv_rows))} tokens / {count(rank.context_length)} context x {rank.rules.estimate.factor}"
    asked = rank.requests_asked is None
    return Limit(
        name="estimate",
        requests=requests,
        why=f"the engine's own: {share}, from {count(rank.rules.estimate.low)} to {count(rank.rules.estimate.high)}",
        lifted_by=REQUESTS if asked else "a shorter --context-length",
    )


def _token_limit(rank: Rank, pools: Pools, levers: str, requests: int) -> Limit:
    return Limit(
        name="tokens // 2",
        requests=requests,
        why=f"half of {count(int(pools.kv_rows))} tokens",
        lifted_by=_more_tokens(rank, pools, levers),
    )
