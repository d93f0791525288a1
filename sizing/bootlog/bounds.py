"""What follows from a boot, its figures taken at both ends: the best that runs, the least fraction that boots."""

import math
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from sizing.answers.optimum import best_split
from sizing.basics.problems import RefusedError
from sizing.basics.search import turning_point
from sizing.basics.units import GIB
from sizing.bootlog.diagnosis import Diagnosis, byte_ends
from sizing.bootlog.facts import Facts
from sizing.bootlog.measure import Measured
from sizing.engine.pools import pools_from_slots, starts
from sizing.engine.rank import rank_of
from sizing.engine.resolved import Rank
from sizing.engine.slots import slots_taken
from sizing.scenario.inputs import MAX_REST_GIB, Scenario, read_scenario


def best_runs(found: Diagnosis) -> Measured:
    """The most that any split runs at L [requests], and what the log's rounding leaves of it."""
    sizing = found.sizing
    if sizing is None or sizing.optimum is None:
        return Measured(0, 0, 0)
    runs = [sizing.optimum.runs]
    for rank in _ranks(found, sizing.scenario):
        best = best_split(rank)
        runs.append(best.runs if best else 0)
    return Measured(sizing.optimum.runs, min(runs), max(runs))


def _ranks(found: Diagnosis, scenario: Scenario) -> Iterator[Rank]:
    """The rank with its bytes at each end; its rest by the weights, else what the printed pools then take."""
    facts = found.facts
    for rank in byte_ends(found, scenario):
        yield from (rank._replace(rest_gib=rest) for rest in _rests(facts, rank))


def _rests(facts: Facts, rank: Rank) -> tuple[float, ...]:
    by_pools = rest_of_pools(facts, rank)
    if facts.rest_from_weights is not None:
        return (facts.rest_from_weights.low, facts.rest_from_weights.high)
    if by_pools is not None:
        return by_pools
    return (facts.rest.low, facts.rest.high) if facts.rest else (float(rank.rest_gib),)


def rest_of_pools(facts: Facts, rank: Rank) -> tuple[float, float] | None:
    """The least and the most rest [GiB] that gives the printed slots and rows with these bytes; None without them.

    A token cap leaves more of it out: it is then the least alone that is known.
    """
    if facts.slots is None or facts.kv_rows is None:
        return None
    pools = pools_from_slots(rank, facts.slots)
    charged = int(pools.charged_bytes)
    token = float(rank.token_bytes)
    kv = facts.kv_rows * token
    return (charged + kv) / GIB, (charged + kv + rank.page_size * token) / GIB


class StartNeed(NamedTuple):
    """What a refused boot lacks for one request, by the flags in force."""

    missing_gib: float
    """How much more of rest [GiB]."""
    fraction: float | None
    """The least --mem-fraction-static that gives it, in thousandths; None where it is not known or none is enough."""
    drafts: int | None
    """The most draft tokens with which it starts as it is; None where it makes no difference."""


def start_need(found: Diagnosis) -> StartNeed | None:
    """What would make a refused boot start; None where rest or the flags behind it are not known."""
    facts, scenario = found.facts, _to_start(found)
    if scenario is None or facts.rest is None or facts.S is None or not found.known:
        return None
    try:
        least = _least_rest(rank_of(scenario))
    except RefusedError:
        return None
    if least is None or least <= facts.rest.value:
        return None
    fraction = fraction_least(found)
    typed = None if fraction is None else math.ceil(fraction.high * 1000) / 1000
    return StartNeed(least - facts.rest.value, typed if typed is not None and typed < 1 else None, _drafts(scenario))


def _to_start(found: Diagnosis) -> Scenario | None:
    """The scenario, or for a refused boot that never sized its KV pool one with the least KV that there can be.

    At a ratio one request's slots leave KV thousands of times the row that it needs, so its bytes decide nothing.
    """
    facts, values = found.facts, found.values
    if found.scenario is not None or facts.slot_bytes is None or facts.rest is None:
        return found.scenario
    if facts.rest_from_refusal is None or facts.settings.max_mamba_cache_size is not None:
        return None
    typed = {
        "model": "",
        "state_bytes_per_slot": round(facts.slot_bytes.value),
        "conv_bytes_per_slot": None,
        "state_bytes_dtype": values.get("mamba_ssm_dtype", Scenario().mamba_ssm_dtype),
        "kv_bytes_per_token": LEAST_KV_BYTES,
        "rest_gib": facts.rest.value,
    }
    made = read_scenario({**values, **typed})
    return made if isinstance(made, Scenario) else None


LEAST_KV_BYTES = 2


def _drafts(scenario: Scenario) -> int | None:
    """The most draft tokens, fewer than asked for, with which the boot starts."""
    for drafts in range(scenario.D - 1, 0, -1):
        fewer = scenario.model_copy(update={"D": drafts})
        try:
            found = _least_rest(rank_of(fewer))
        except RefusedError:
            continue
        if found is not None and found <= scenario.rest_gib:
            return drafts
    return None


def fraction_least(found: Diagnosis) -> Measured | None:
    """The least --mem-fraction-static that boots with one request at the ratio in force; None where it is not known."""
    facts, scenario = found.facts, _to_start(found)
    begin, end = facts.begin_gib, _free(facts)
    if scenario is None or begin is None or end is None or facts.S is None or not found.known:
        return None
    try:
        ranks = [rank_of(scenario), *byte_ends(found, scenario)]
    except RefusedError:
        return None
    needed = [least for rank in ranks if (least := _least_rest(rank)) is not None]
    if len(needed) < len(ranks):
        return None
    # rest = end - begin x (1 - fraction) (engine-sizing.md section 1)
    values = [1 - (free - rest) / total for rest, free, total in product(needed, _three(end), _three(begin))]
    value = 1 - (end.value - needed[0]) / begin.value
    return Measured(value, min(values), max(values)) if min(values) > 0 and max(values) < 1 else None


def _free(facts: Facts) -> Measured | None:
    """Free memory when the pools were sized [GiB]: as printed, else by the rest that a refusal names."""
    fraction, rest, begin = facts.settings.mem_fraction_static, facts.rest_from_refusal, facts.begin_gib
    if rest is None or fraction is None or begin is None:
        return facts.end_gib
    kept = 1 - fraction
    return Measured(rest.value + begin.value * kept, rest.low + begin.low * kept, rest.high + begin.high * kept)


def _three(measured: Measured) -> tuple[float, float, float]:
    return measured.value, measured.low, measured.high


def _least_rest(rank: Rank) -> float | None:
    """The least rest [GiB] with which the engine starts with these flags; None where none does."""

    def boots(rest: float) -> bool:
        tried = rank._replace(rest_gib=rest)
        return bool(starts(pools_from_slots(tried, slots_taken(tried, rank.scenario.mamba_full_memory_ratio))))

    found = turning_point(0.0, float(MAX_REST_GIB), boots)
    return found and found[1]
