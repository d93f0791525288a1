"""solve(scenario) -> Sizing: the only road from inputs to numbers. Pages, charts, exports and words read a Sizing."""

from pydantic import BaseModel, ConfigDict

from sizing import specification
from sizing.optimum import Optimum, best_split
from sizing.pools import Rank, rank_of, slot_bytes, target_token_bytes, token_bytes
from sizing.problems import Refusal
from sizing.scenario import DEFAULT_RATIO, Scenario
from sizing.slots import SlotUse, slot_uses
from sizing.specification import Prediction
from sizing.split import Split, solve_split
from sizing.units import GIB, flag_ratio


class Sizing(BaseModel):
    """Every number the product shows for one scenario. Per rank unless the name says otherwise."""

    model_config = ConfigDict(frozen=True)

    scenario: Scenario
    slot_uses: tuple[SlotUse, ...]
    S: int
    slot_bytes: int
    """State bytes of one slot at the dtypes that run."""
    target_token_bytes: int
    token_bytes: int
    """KV bytes of one token, target plus draft: what the engine divides by."""
    token_equiv: float
    """Slot bytes over the bytes the engine divides by [tokens per slot]."""
    r_star: float
    """The balance ratio with exact bytes, draft KV included [-]."""
    r_star_specification: float
    """The balance ratio as the specification writes it, target KV only [-]."""
    ratio_now: float
    """The ratio that is set, or r*; meaningless when the split is pinned."""
    now: Split | Refusal
    balanced: Split | Refusal
    """The split at r* as it is typed after the flag."""
    default: Split | Refusal
    """The split at the engine's default ratio."""
    optimum: Optimum | None
    pinned: Split | Refusal | None
    """The safe pin of the optimum, solved."""
    raised: Split | None
    """The split that is set with --max-running-requests raised to its clamp; None where the engine refuses it."""
    predicted: Prediction
    """The specification's closed forms for the ratio of `now`."""
    reasons_to_pin: tuple[str, ...]
    gib_more: int | None
    """What one GiB more of `rest` adds to the optimum [requests]."""


def solve(scenario: Scenario) -> Sizing:
    """Solve a scenario. Raises RefusedError when the flags themselves are refused (engine-sizing.md section 4)."""
    rank = rank_of(scenario)
    r_star = specification.optimal_ratio(
        scenario.L, rank.slot_bytes, rank.token_bytes, rank.S, scenario.D, scenario.dcp_size
    )
    r_flag = flag_ratio(r_star)
    ratio = r_flag if scenario.split == "balanced" else scenario.mamba_full_memory_ratio
    pin = scenario.max_mamba_cache_size if scenario.split == "pin" else None
    now = solve_split(scenario, rank, ratio, pin)
    optimum = best_split(scenario, rank)
    return Sizing(
        scenario=scenario,
        slot_uses=slot_uses(scenario),
        S=rank.S,
        slot_bytes=slot_bytes(scenario),
        target_token_bytes=target_token_bytes(scenario),
        token_bytes=token_bytes(scenario),
        token_equiv=specification.token_equiv(rank.slot_bytes, rank.token_bytes),
        r_star=r_star,
        r_star_specification=_r_star_specification(scenario, rank),
        ratio_now=ratio,
        now=now,
        balanced=solve_split(scenario, rank, r_flag),
        default=solve_split(scenario, rank, DEFAULT_RATIO),
        optimum=optimum,
        pinned=solve_split(scenario, rank, r_flag, optimum.pin) if optimum else None,
        raised=_raised(scenario, rank, ratio, pin, now),
        predicted=_predict(scenario, rank, ratio),
        reasons_to_pin=specification.reasons_to_pin(
            scenario.rest_gib * GIB, r_flag, rank.slot_bytes, rank.S, scenario.dcp_size
        ),
        gib_more=_gib_more(scenario, rank, optimum),
    )


def _raised(scenario: Scenario, rank: Rank, ratio: float, pin: int | None, now: Split | Refusal) -> Split | None:
    if isinstance(now, Refusal) or rank.requests_wanted is None or rank.requests_wanted >= now.clamp:
        return None
    found = solve_split(scenario, rank._replace(requests_wanted=now.clamp), ratio, pin)
    return found if isinstance(found, Split) else None


def _r_star_specification(scenario: Scenario, rank: Rank) -> float:
    return specification.optimal_ratio(
        scenario.L, rank.slot_bytes, target_token_bytes(scenario), rank.S, scenario.D, scenario.dcp_size
    )


def _predict(scenario: Scenario, rank: Rank, ratio: float) -> Prediction:
    return specification.predict(
        scenario.rest_gib * GIB,
        ratio,
        rank.slot_bytes,
        target_token_bytes(scenario),
        rank.S,
        scenario.D,
        scenario.dcp_size,
        scenario.L,
    )


def _gib_more(scenario: Scenario, rank: Rank, optimum: Optimum | None) -> int | None:
    if optimum is None:
        return None
    more = best_split(scenario, rank._replace(rest_gib=rank.rest_gib + 1))
    return more.runs - optimum.runs if more else None
