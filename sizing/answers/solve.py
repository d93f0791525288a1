"""solve(scenario) -> Sizing: the only road from inputs to numbers. Pages, charts, exports and words read a Sizing."""

from functools import cache, lru_cache, partial

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from sizing import specification
from sizing.answers.optimum import Optimum, Pair, best_pair, best_split, most_runs, pin_flag, r_star
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import GIB, flag_ratio
from sizing.engine.allocation import Allocation, DecodePool, allocations, beyond, decode_pool
from sizing.engine.pools import pools_from_slots, running
from sizing.engine.rank import as_set, asking, rank_of
from sizing.engine.requests import asked_divisor
from sizing.engine.resolved import Rank, Resolved
from sizing.engine.slots import is_pinned, ratio_is_ignored, slots_set, slots_taken, slots_unpinned
from sizing.engine.split import Split, solve_split
from sizing.scenario.inputs import MAX_REQUESTS, Scenario
from sizing.specification import Prediction

KEPT = 64  # splits, 10 KB each: the parts of a page ask for the same ones


class Sizing(BaseModel):
    """Every number the product shows for one scenario. Per attention-DP rank unless the name says otherwise."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    scenario: SkipValidation[Scenario]
    resolved: SkipValidation[Resolved]
    rank: SkipValidation[Rank] = Field(exclude=True, repr=False)
    """The numbers that the splits are made of, by ratio."""
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
    """The best split with a request count asked anew; None where nothing runs, or the engine's own count is enough."""
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

    def __hash__(self) -> int:
        """All else follows from the scenario."""
        return hash(self.scenario)


def solve(scenario: Scenario) -> Sizing:
    """Solve a scenario. Raises RefusedError when the flags themselves are refused (engine-sizing.md section 4), and for
    a model without attention layers, which has nothing to balance (`solve_now` sizes it).
    """
    refuse_without_attention(scenario)
    rank = rank_of(scenario)
    resolved, costs = rank.resolved, rank.resolved.costs
    set_rank = as_set(rank)
    exact, slot = float(r_star(rank, scenario.L)), int(rank.slot_bytes)
    r_flag = flag_ratio(exact)
    ratio = r_flag if scenario.split == "balanced" else scenario.mamba_full_memory_ratio
    by_ratio = cache(partial(_by_ratio, rank))  # the ratio that is set is often one of the others
    now = _split_set(rank, ratio) if is_pinned(resolved) else by_ratio(ratio)
    optimum = best_split(rank, liked=r_flag)
    pin = pin_flag(resolved, optimum) if optimum else None
    raised_flag, raised = _raised(set_rank, ratio, now)
    found = allocations(rank, now) if isinstance(now, Split) else ()
    return Sizing(
        scenario=scenario,
        resolved=resolved,
        rank=rank,
        slot_bytes=costs.slot,
        ring_bytes=costs.ring,
        ring_bytes_per_slot=costs.ring_on_slot,
        charged_slot_bytes=slot,
        drafts_charged=int(set_rank.D),
        target_token_bytes=costs.target_token,
        draft_row_bytes=costs.draft_row,
        token_bytes=costs.token,
        token_equiv=specification.token_equiv(costs.charged_slot, costs.cell),
        ring_factor=slot / costs.charged_slot,
        r_star=exact,
        r_star_specification=_r_star_specification(rank),
        r_star_direct=_r_star_direct(rank),
        ratio_now=ratio,
        now=now,
        balanced=by_ratio(r_flag),
        default=by_ratio(scenario.default_ratio),
        optimum=optimum,
        by_ratio=by_ratio(optimum.ratio) if optimum and optimum.ratio else None,
        pinned=solve_split(rank, r_flag, optimum.pin, pinned=True) if optimum and pin else None,
        pin_flag=pin,
        raised=raised,
        raised_flag=raised_flag,
        pair=best_pair(rank, optimum),
        predicted=_predict(rank, ratio),
        reasons_to_pin=specification.reasons_to_pin(
            scenario.rest_gib * GIB, r_flag, slot, resolved.S, scenario.dcp_size
        ),
        gib_more=_gib_more(rank, optimum),
        allocations=found,
        decode_pool=decode_pool(rank, now) if isinstance(now, Split) else None,
        beyond=beyond(found),
    )


def refuse_without_attention(scenario: Scenario) -> None:
    """Raises RefusedError for a model without attention layers: nothing is there to balance."""
    if scenario.attention == "none":
        cure = "It has no attention layers: there is no KV pool to balance."
        raise RefusedError(Refusal(kind="not_served", engine_words="", cure=cure))


def _by_ratio(rank: Rank, ratio: float) -> Split | Refusal:
    return solve_split(rank, ratio, slots_unpinned(rank, ratio))


@lru_cache(maxsize=KEPT)
def solve_now(scenario: Scenario, ratio: float | None = None) -> Split | Refusal:
    """The split that the settings give, alone: also of a model without attention layers. `ratio` [-] stands in for the
    one that is set. Raises RefusedError.
    """
    return _split_set(rank_of(scenario), scenario.mamba_full_memory_ratio if ratio is None else ratio)


def _split_set(rank: Rank, ratio: float) -> Split | Refusal:
    return solve_split(rank, ratio, slots_set(rank, ratio), pinned=is_pinned(rank.resolved))


def _raised(rank: Rank, ratio: float, now: Split | Refusal) -> tuple[int | None, Split | None]:
    """The least --max-running-requests above the one asked, or what the engine admits by itself, that runs most at the
    split that is set, and that split.

    More requests asked charge more drafts or rings, so the most is not always at the clamp.
    """
    if isinstance(now, Refusal) or ratio_is_ignored(rank.resolved):
        return None, None
    width = asked_divisor(rank.resolved)
    asked = now.admitted if rank.requests_asked is None else int(rank.requests_asked)
    tried = np.arange(asked + 1, min(now.clamp, MAX_REQUESTS // width) + 1)
    if not tried.size:
        return None, None
    rising = asking(rank, tried)
    runs = np.asarray(running(pools_from_slots(rising, slots_taken(rising, ratio)), rank.scenario.L))
    if runs.max() <= now.runs:
        return None, None
    flag = int(tried[int(np.argmax(runs))]) * width
    more = rank.scenario.model_copy(update={"max_running_requests": flag})
    found = solve_now(more, ratio)
    return (flag, found) if isinstance(found, Split) else (None, None)


def _r_star_specification(rank: Rank) -> float:
    scenario, costs, S = rank.scenario, rank.resolved.costs, rank.resolved.S
    drafts = 0 if costs.replays_drafts else scenario.D
    return specification.optimal_ratio(scenario.L, costs.slot, costs.target_token, S, drafts, rank.dcp_size)


def _r_star_direct(rank: Rank) -> float | None:
    costs, S = rank.resolved.costs, rank.resolved.S
    if rank.dcp_size == 1 or costs.draft_row == 0:
        return None
    return specification.direct_ratio(
        rank.scenario.L, int(rank.slot_bytes), costs.target_token, costs.draft_row, S, int(rank.D), rank.dcp_size
    )


def _predict(rank: Rank, ratio: float) -> Prediction:
    scenario, costs = rank.scenario, rank.resolved.costs
    return specification.predict(
        scenario.rest_gib * GIB,
        ratio,
        costs.slot,
        costs.target_token,
        rank.resolved.S,
        scenario.D,
        scenario.dcp_size,
        scenario.L,
    )


def _gib_more(rank: Rank, optimum: Optimum | None) -> int | None:
    if optimum is None:
        return None
    more = most_runs(rank._replace(rest_gib=rank.rest_gib + 1))
    return more - optimum.runs if more else None
