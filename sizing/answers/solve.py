"""solve(scenario) -> Sizing: the only road from inputs to numbers. Pages, charts, exports and words read a Sizing."""

import numpy as np
from pydantic import BaseModel, ConfigDict

from sizing import specification
from sizing.answers.optimum import Optimum, Pair, best_pair, best_split, pin_flag
from sizing.answers.what_runs import running, slots_taken
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import GIB, flag_ratio
from sizing.engine.allocation import Allocation, DecodePool, allocations, beyond, decode_pool
from sizing.engine.pools import (
    Rank,
    asked_divisor,
    asking,
    draft_row_bytes,
    is_pinned,
    pools_from_slots,
    rank_as_set,
    rank_of,
    ratio_is_ignored,
    replays_drafts,
    ring_bytes,
    ring_bytes_per_slot,
    slot_bytes,
    target_token_bytes,
    token_bytes,
)
from sizing.engine.resolved import Resolved
from sizing.engine.slots_per_request import resolve
from sizing.engine.split import Split, slots_set, slots_unpinned, solve_split
from sizing.scenario.inputs import MAX_REQUESTS, Scenario
from sizing.specification import Prediction


class Sizing(BaseModel):
    """Every number the product shows for one scenario. Per attention-DP rank unless the name says otherwise."""

    model_config = ConfigDict(frozen=True)

    scenario: Scenario
    resolved: Resolved
    slot_bytes: int
    """State bytes of one slot at the dtypes that run."""
    ring_bytes: int
    """One ReplaySSM ring; 0 without."""
    ring_bytes_per_slot: int
    """The ring that each slot is charged besides its state: KDA under ReplaySSM."""
    charged_slot_bytes: int
    """What the engine charges for a slot, its ring included."""
    drafts_charged: int
    """The D that counts: draft states charged for each running request; 0 under ReplaySSM or for PD prefill."""
    target_token_bytes: int
    draft_row_bytes: int
    token_bytes: int
    """KV bytes of one token, target plus draft: what the engine divides by."""
    token_equiv: float
    """State bytes over the bytes the engine divides by [tokens per slot]."""
    ring_factor: float
    """1 + ring / state of a slot [-]: what KDA's ring adds to r*."""
    r_star: float
    """The balance ratio with what the engine charges: exact bytes, draft KV, rings, the D that counts [-]."""
    r_star_specification: float
    """The balance ratio as the specification writes it: target KV only, no rings, D = 0 under ReplaySSM [-]."""
    r_star_direct: float | None
    """The specification's direct solve under DCP with a replicated draft KV [-]; None where that does not apply."""
    ratio_now: float
    """The ratio that is set, or r*; meaningless when the split is pinned."""
    now: Split | Refusal
    balanced: Split | Refusal
    """The split at r* as it is typed after the flag."""
    default: Split | Refusal
    """The split at the engine's default ratio."""
    optimum: Optimum | None
    by_ratio: Split | Refusal | None
    """The split at the optimum's ratio as it is typed (r* where that is one of the best); None where there is none."""
    pinned: Split | Refusal | None
    """The pin of the optimum, solved; None where there is no optimum or the release ignores a pin."""
    pin_flag: int | None
    """What to write after --max-mamba-cache-size for it [slots of the deployment]."""
    raised: Split | None
    """The split that is set with --max-running-requests raised to what runs most; None where raising gains nothing."""
    raised_flag: int | None
    """That number, for the whole deployment [requests]."""
    pair: Pair | None
    """The best split with a request count asked anew; None where the engine's own count holds."""
    predicted: Prediction
    """The specification's closed forms for the ratio of `now`."""
    reasons_to_pin: tuple[str, ...]
    gib_more: int | None
    """What one GiB more of `rest` adds to the optimum [requests]."""
    allocations: tuple[Allocation, ...]
    """What `now` allocates beside what it is charged."""
    decode_pool: DecodePool | None
    """Rows and slots of a PD decode server; None on any other, and where the engine refuses."""
    beyond: int | None
    """How much more `now` allocates than it is charged [bytes]; None where that is not known."""

    @property
    def S(self) -> int:  # noqa: N802, the specification's letter
        """State slots [slots per running request]."""
        return self.resolved.S


def solve(scenario: Scenario) -> Sizing:
    """Solve a scenario. Raises RefusedError when the flags themselves are refused (engine-sizing.md section 4), and for
    a model without attention layers, which has nothing to balance (`solve_now` sizes it)."""
    if scenario.attention == "none":
        cure = "It has no attention layers: there is no KV pool to balance."
        raise RefusedError(Refusal(kind="not_served", engine_words="", cure=cure))
    rank, as_set = rank_of(scenario), rank_as_set(scenario)
    r_star = specification.optimal_ratio(
        scenario.L, rank.slot_bytes, rank.token_bytes, rank.S, rank.D, scenario.dcp_size
    )
    r_flag = flag_ratio(r_star)
    ratio = r_flag if scenario.split == "balanced" else scenario.mamba_full_memory_ratio
    now = solve_now(scenario, ratio, rank)
    optimum = best_split(scenario, rank, liked=r_flag)
    pin = pin_flag(scenario, optimum) if optimum else None
    raised_flag, raised = _raised(scenario, ratio, as_set, now)
    found = allocations(scenario, rank, now) if isinstance(now, Split) else ()
    state, ring = slot_bytes(scenario), ring_bytes_per_slot(scenario)
    return Sizing(
        scenario=scenario,
        resolved=resolve(scenario),
        slot_bytes=state,
        ring_bytes=ring_bytes(scenario),
        ring_bytes_per_slot=ring,
        charged_slot_bytes=rank.slot_bytes,
        drafts_charged=as_set.D,
        target_token_bytes=target_token_bytes(scenario),
        draft_row_bytes=draft_row_bytes(scenario),
        token_bytes=token_bytes(scenario),
        token_equiv=specification.token_equiv(rank.slot_bytes - ring, rank.token_bytes),
        ring_factor=rank.slot_bytes / (rank.slot_bytes - ring),
        r_star=r_star,
        r_star_specification=_r_star_specification(scenario, rank),
        r_star_direct=_r_star_direct(scenario, rank),
        ratio_now=ratio,
        now=now,
        balanced=_by_ratio(scenario, rank, r_flag),
        default=_by_ratio(scenario, rank, scenario.default_ratio),
        optimum=optimum,
        by_ratio=_by_ratio(scenario, rank, optimum.ratio) if optimum and optimum.ratio else None,
        pinned=solve_split(scenario, rank, r_flag, optimum.pin, pinned=True) if optimum and pin else None,
        pin_flag=pin,
        raised=raised,
        raised_flag=raised_flag,
        pair=best_pair(scenario, rank),
        predicted=_predict(scenario, rank, ratio),
        reasons_to_pin=specification.reasons_to_pin(
            scenario.rest_gib * GIB, r_flag, rank.slot_bytes, rank.S, scenario.dcp_size
        ),
        gib_more=_gib_more(scenario, rank, optimum),
        allocations=found,
        decode_pool=decode_pool(scenario, rank, now) if isinstance(now, Split) else None,
        beyond=beyond(found),
    )


def _by_ratio(scenario: Scenario, rank: Rank, ratio: float) -> Split | Refusal:
    return solve_split(scenario, rank, ratio, slots_unpinned(scenario, rank, ratio))


def solve_now(scenario: Scenario, ratio: float | None = None, rank: Rank | None = None) -> Split | Refusal:
    """The split that the settings give, alone: also of a model without attention layers. `ratio` [-] stands in for the
    one that is set. Raises RefusedError."""
    ratio = scenario.mamba_full_memory_ratio if ratio is None else ratio
    rank = rank or rank_of(scenario)
    return solve_split(scenario, rank, ratio, slots_set(scenario, rank, ratio), pinned=is_pinned(scenario))


def _raised(scenario: Scenario, ratio: float, rank: Rank, now: Split | Refusal) -> tuple[int | None, Split | None]:
    """The least --max-running-requests above the one asked that runs most at the split that is set, and that split.

    More requests asked charge more drafts or rings, so the most is not always at the clamp.
    """
    if isinstance(now, Refusal) or rank.requests_asked is None or ratio_is_ignored(scenario):
        return None, None
    tried = np.arange(rank.requests_asked + 1, min(now.clamp, MAX_REQUESTS // asked_divisor(scenario)) + 1)
    if not tried.size:
        return None, None
    rising = asking(scenario, rank, tried)
    runs = running(pools_from_slots(rising, slots_taken(scenario, rising, ratio)), scenario.L)
    if runs.max() <= now.runs:
        return None, None
    flag = int(tried[int(np.argmax(runs))]) * asked_divisor(scenario)
    more = scenario.model_copy(update={"max_running_requests": flag})
    found = solve_now(more, ratio)
    return (flag, found) if isinstance(found, Split) else (None, None)


def _r_star_specification(scenario: Scenario, rank: Rank) -> float:
    drafts = 0 if replays_drafts(scenario) else scenario.D
    return specification.optimal_ratio(
        scenario.L, slot_bytes(scenario), target_token_bytes(scenario), rank.S, drafts, scenario.dcp_size
    )


def _r_star_direct(scenario: Scenario, rank: Rank) -> float | None:
    draft = draft_row_bytes(scenario)
    if scenario.dcp_size == 1 or draft == 0:
        return None
    return specification.direct_ratio(
        scenario.L, rank.slot_bytes, target_token_bytes(scenario), draft, rank.S, rank.D, scenario.dcp_size
    )


def _predict(scenario: Scenario, rank: Rank, ratio: float) -> Prediction:
    return specification.predict(
        scenario.rest_gib * GIB,
        ratio,
        slot_bytes(scenario),
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
