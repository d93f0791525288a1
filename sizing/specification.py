"""The specification's closed forms, as compute-mamba-ratio.md writes them.

They are simpler than the engine (no padding slot, no pages, no joint solve); the page shows both.
"""

from typing import Any, Literal, overload

from pydantic import BaseModel, ConfigDict

from sizing.basics.numeric import Numeric
from sizing.basics.units import GIB

PoolName = Literal["state pool", "KV pool"]

FRAGILE_RATIO = 0.15  # compute-mamba-ratio.md, Procedure 3: "a sub-0.15 r is fragile"


@overload
def token_equiv(state_bytes_per_slot: float, kv_bytes_per_token: float) -> float: ...


@overload
def token_equiv(state_bytes_per_slot: Numeric, kv_bytes_per_token: Numeric) -> Numeric: ...


def token_equiv(state_bytes_per_slot: Numeric, kv_bytes_per_token: Numeric) -> Numeric:
    """How many KV tokens one state slot costs [tokens per slot], from bytes per slot and per token [bytes per rank]."""
    return state_bytes_per_slot / kv_bytes_per_token


@overload
def optimal_ratio(
    L: float, state_bytes_per_slot: float, kv_bytes_per_token: float, S: int, D: int = 0, dcp_size: int = 1
) -> float: ...


@overload
def optimal_ratio(
    L: Numeric, state_bytes_per_slot: Numeric, kv_bytes_per_token: Numeric, S: Numeric, D: Numeric, dcp_size: int
) -> Numeric: ...


def optimal_ratio(
    L: Numeric,
    state_bytes_per_slot: Numeric,
    kv_bytes_per_token: Numeric,
    S: Numeric,
    D: Numeric = 0,
    dcp_size: int = 1,
) -> Numeric:
    """r* = (S + D) x token_equiv x dcp_size / L [-], the ratio at which neither pool is short first.

    L [tokens per request], S [slots per request], D [draft tokens]. Above 1 is legal.

    >>> round(optimal_ratio(9216, 56_171_520, 13_824, S=5), 4)
    2.2045
    """
    return (S + D) * token_equiv(state_bytes_per_slot, kv_bytes_per_token) * dcp_size / L


def direct_ratio(
    L: float, state_bytes_per_slot: float, target_bytes: float, draft_bytes: float, S: int, D: int, dcp_size: int
) -> float:
    """r* under DCP with a replicated draft KV [-]: a token costs target / dcp_size + draft on every rank (Caveats).

    Bytes per slot and per row [bytes per rank]. It says what should be charged; the engine charges the draft of
    EAGLE and MTP once, not dcp_size times (engine-sizing.md section 6).

    >>> round(direct_ratio(9216, 56_171_520, 13_824, 576, S=5, D=4, dcp_size=8), 2)
    23.81
    """
    return (S + D) * state_bytes_per_slot / (L * (target_bytes / dcp_size + draft_bytes))


def predict_slots(rest_bytes: float, ratio: float, state_bytes_per_slot: float) -> int:
    """Slots of the state budget rest x r / (1 + r) [slots]."""
    return max(int(rest_bytes * ratio / (1 + ratio) / state_bytes_per_slot), 0)


def predict_clamp(rest_bytes: float, ratio: float, state_bytes_per_slot: float, S: int, D: int = 0) -> int:
    """The mamba clamp [requests] as the specification's code has it: slots // S. It takes D and does not use it."""
    return predict_slots(rest_bytes, ratio, state_bytes_per_slot) // S


def kv_tokens(rest_bytes: float, ratio: float, kv_bytes_per_token: float) -> int:
    """KV tokens on one rank [tokens] of the KV budget rest / (1 + r)."""
    return max(int(rest_bytes / (1 + ratio) / kv_bytes_per_token), 0)


def kv_cap(tokens: int, dcp_size: int, L: int) -> int:
    """KV_cap = kv_tokens x dcp_size / L [requests], whole requests."""
    return tokens * dcp_size // L


def state_is_short(clamp: Numeric, cap: Numeric) -> Any:
    """Whether the state pool is short first, of numbers or arrays: a tie is the state pool's, which fails hard."""
    return clamp <= cap


def binding_pool(clamp: int, cap: int) -> PoolName:
    """Which pool is short first: min(mamba clamp, KV cap)."""
    return "state pool" if state_is_short(clamp, cap) else "KV pool"


def reasons_to_pin(
    rest_bytes: float, ratio: float, state_bytes_per_slot: float, S: int, dcp_size: int
) -> tuple[str, ...]:
    """Why to pin --max-mamba-cache-size instead of a ratio; empty when the ratio is fine (Procedure 3, Caveats)."""
    budget = rest_bytes * ratio / (1 + ratio)
    one_request = S * state_bytes_per_slot
    reasons = []
    if budget < one_request:
        reasons.append(
            f"the state budget of {budget / GIB:.2f} GiB is under one request's worth ({one_request / GIB:.2f} GiB)"
        )
    if ratio < FRAGILE_RATIO:
        reasons.append(f"a ratio below {FRAGILE_RATIO} is fragile: a small change moves a large share of the slots")
    if dcp_size > 1:
        reasons.append(
            "under DCP the balance moves far out in L and the ratio gets large: a slot count says what you mean"
        )
    return tuple(reasons)


class Prediction(BaseModel):
    """What the specification's closed forms say of one split."""

    model_config = ConfigDict(frozen=True)

    ratio: float
    slots: int
    clamp: int
    kv_tokens: int
    kv_cap: int
    binding: PoolName


def predict(
    rest_bytes: float,
    ratio: float,
    state_bytes_per_slot: int,
    kv_bytes_per_token: int,
    S: int,
    D: int,
    dcp_size: int,
    L: int,
) -> Prediction:
    """All closed forms for one split, per rank. `rest_bytes` [bytes], L [tokens]; gives slots, tokens, requests."""
    clamp = predict_clamp(rest_bytes, ratio, state_bytes_per_slot, S, D)
    tokens = kv_tokens(rest_bytes, ratio, kv_bytes_per_token)
    cap = kv_cap(tokens, dcp_size, L)
    return Prediction(
        ratio=ratio,
        slots=predict_slots(rest_bytes, ratio, state_bytes_per_slot),
        clamp=clamp,
        kv_tokens=tokens,
        kv_cap=cap,
        binding=binding_pool(clamp, cap),
    )
