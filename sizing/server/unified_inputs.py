"""From the boot of a server with one buffer to a scenario: its entries give the bytes, its total gives rest.

Source: running-server.md 2.2 and 2.6. What it prints must come out again to the byte, or nothing is known.
"""

from collections.abc import Iterator
from typing import Any

from sizing.basics.problems import RefusedError
from sizing.basics.search import turning_point
from sizing.bootlog.diagnosis import Diagnosis, diagnose, named_model
from sizing.bootlog.inputs import LOG
from sizing.bootlog.log import Boot
from sizing.bootlog.log_and_command import joined
from sizing.bootlog.measure import Measured
from sizing.command import Command
from sizing.engine.rank import rank_of
from sizing.engine.slots import slots_set
from sizing.engine.unified import ENTRY_STEP, HOST_STEP, Unified, unified
from sizing.scenario.inputs import MAX_REST_GIB, Scenario
from sizing.server.inputs import rest_that_gives
from sizing.server.unified_lines import UnifiedPool

LEAST_GIB = 0.0


def inputs_of_buffer(
    boot: Boot,
    pools: tuple[UnifiedPool, ...],
    command: Command | None = None,
    model: str | None = None,
    **stated: Any,
) -> Diagnosis | None:
    """A boot with one buffer, solved; None where ranks have buffers that differ, or nothing gives what is printed.

    `model` is a name of the catalogue ("" for none; left out, the one that the path names), `stated` what the user
    adds, such as L [tokens]. Raises nothing.
    """
    if len(pools) != 1:
        return None
    both = joined(boot, command)
    if model is None:
        paths = (both.facts.settings.model_path, command.model_path if command else None)
        model = next((name for path in paths if (name := named_model(path))), "")
    for name, values in _tried(pools[0], model, both.facts.settings.mamba_ssm_dtype, both.facts.kv_cache_dtype):
        found = _solved(boot, pools[0], command, name, values | stated)
        if found is not None:
            return found
    return None


def _tried(
    pool: UnifiedPool, model: str, ssm_dtype: str | None, kv_dtype: str | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the bytes may be: those of the model, then those of the entries, where the row of a token is its entry or
    half a step less. A model counts only where its bytes are those that are printed.
    """
    page = {} if pool.page_size is None else {"page_size": pool.page_size}
    if model:
        yield model, page
    entry, state = pool.kv_entry_bytes, pool.state_entry_bytes
    if entry is None or state is None:
        return
    kind = next((part.kind.lower() for part in pool.parts if not part.is_state), "")
    values: dict[str, Any] = {
        "state_bytes_per_slot": state,
        "conv_bytes_per_slot": None,
        "state_bytes_source": LOG,
        "kv_bytes_source": LOG,
        "kv_cache_dtype": kv_dtype or "bfloat16",
        "kv_bytes_dtype": kv_dtype or "bfloat16",
        **({"state_bytes_dtype": ssm_dtype} if ssm_dtype else {}),
        **({"attention": "GQA"} if "mha" in kind else {}),
    }
    for row in (entry, entry - ENTRY_STEP + HOST_STEP):
        yield "", page | values | {"kv_bytes_per_token": row}


def _solved(
    boot: Boot, pool: UnifiedPool, command: Command | None, model: str, values: dict[str, Any]
) -> Diagnosis | None:
    def at(rest: float) -> Diagnosis:
        whole = {**values, "rest_gib": rest, "rest_source": LOG}
        return diagnose(boot, model=model, command=command, stated=whole, trusted=True)

    first = at(1.0).scenario  # a rest that stands until the one that runs is found
    if first is None:
        return None
    try:
        rest = _rest(first, pool)
    except RefusedError:
        return None
    found = at(rest.value) if rest is not None else None
    if found is None or found.sizing is None or (model and not found.model):
        return None
    asks = tuple(ask for ask in found.inputs.missing if "sub-pool" not in ask)
    return found._replace(
        facts=found.facts.model_copy(update={"rest_from_pools": rest, "missing": (), **_bytes(found)}),
        inputs=found.inputs._replace(missing=asks),
    )


def _bytes(found: Diagnosis) -> dict[str, Measured]:
    """What a slot and a token take, to the byte, as the facts of a boot have it."""
    scenario = found.scenario
    if scenario is None or found.model:
        return {}
    state, row = scenario.state_bytes_per_slot, scenario.kv_bytes_per_token
    return {"slot_bytes": Measured(state, state, state), "token_bytes": Measured(row, row, row)}


def _rest(scenario: Scenario, pool: UnifiedPool) -> Measured | None:
    """The rest [GiB] of which the engine makes what is printed; None where it makes something else of any."""
    if pool.slots is None or pool.label is None or pool.total_bytes is None:
        return None
    slots, total = pool.slots, pool.total_bytes

    def made(rest: float) -> Unified:
        return unified(scenario.model_copy(update={"rest_gib": rest}), slots)

    if made(MAX_REST_GIB).config_total_bytes is None:  # made of whole tokens: any rest between two of them
        found = rest_that_gives(scenario, slots, pool.label // scenario.dcp_size)
    else:
        first = turning_point(LEAST_GIB, MAX_REST_GIB, lambda rest: made(rest).total_bytes >= total)
        beyond = turning_point(LEAST_GIB, MAX_REST_GIB, lambda rest: made(rest).total_bytes > total)
        if first is None or beyond is None or first[1] >= beyond[1]:
            return None
        found = Measured((first[1] + beyond[1]) / 2, first[1], beyond[1])
    return found if found is not None and _is_it(scenario, pool, made(found.value), found.value) else None


def _is_it(scenario: Scenario, pool: UnifiedPool, made: Unified, rest: float) -> bool:
    """Whether all that is printed comes out again: K by the flags, the label, the total and both entries."""
    there = scenario.model_copy(update={"rest_gib": rest})
    slots = int(slots_set(rank_of(there), scenario.mamba_full_memory_ratio))
    entries = (pool.state_entry_bytes or made.state_entry_bytes, pool.kv_entry_bytes or made.kv_entry_bytes)
    printed = (pool.slots, pool.label, pool.total_bytes, *entries)
    return printed == (slots, made.label, made.total_bytes, made.state_entry_bytes, made.kv_entry_bytes)
