"""Why am I clamped: a boot's facts against what the rules predict for the same flags, line by line.

The log wins: what it prints is what runs. A prediction that differs is explained by what its rounding leaves open, or
called unexplained.
"""

import math
from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import Problem, Refusal, RefusedError
from sizing.basics.units import count, number
from sizing.bootlog import Boot, Exact, Facts, Inputs, Measured, exact_bytes, inputs_of
from sizing.bootlog.inputs import ASSUMED
from sizing.bootlog.log_and_command import joined
from sizing.bootlog.release import releases_text
from sizing.bootlog.settings import latest
from sizing.command import Command
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import rank_of
from sizing.engine.request_slots import CLAMP_FORMULA
from sizing.engine.resolved import Rank
from sizing.engine.slots import slots_set
from sizing.explain.unified_memory import unified_in_force
from sizing.releases.architectures import support_of
from sizing.scenario.from_model import FILLED, geometry_of, named_in, servable
from sizing.scenario.inputs import Scenario, read_scenario

NAMES = {"slots": "K, state slots", "kv_rows": "KV tokens on one rank", "admitted": "max_running_requests"}


class Beside(NamedTuple):
    """One number of the log beside the predicted one."""

    quantity: str
    predicted: str
    printed: str
    why: str
    """Empty where they agree; else the explanation, or that there is none."""


class Diagnosis(NamedTuple):
    """One boot, read with its launch command and solved."""

    facts: Facts
    """With what the command fills in."""
    model: str
    """The catalogued model whose exact bytes the log allows; empty where none was chosen or none fits."""
    inputs: Inputs
    differ: tuple[str, ...]
    """Why log and command are not of one run; the log alone counts then."""
    known: bool
    """Whether all flags behind the boot are known."""
    values: Mapping[str, Any] = {}
    """The inputs of a Scenario that are known, by log, command, user or model."""
    problems: tuple[Problem, ...] = ()
    """What keeps the scenario from being made."""
    scenario: Scenario | None = None
    sizing: Sizing | None = None
    refused: str = ""
    """The refusal of the flags themselves; empty where they start."""
    beside: tuple[Beside, ...] = ()


def models_that_fit(facts: Facts) -> tuple[str, ...]:
    """The catalogued models whose bytes lie within what the log prints, both of them, at its widths and dtypes."""
    if facts.slot_bytes is None or facts.token_bytes is None:
        return ()
    return tuple(model for model in servable() if _fits(exact_bytes(facts, geometry_of(model))))


def _fits(exact: Exact) -> bool:
    return exact.state is not None and exact.kv is not None


def _served(facts: Facts, exact: Exact) -> bool:
    """Whether the release of the log has the model; where not, another one of the same shapes ran."""
    return support_of(exact.architecture or "", latest(facts.releases)).served


def diagnose(
    boot: Boot,
    *,
    model: str | None = None,
    command: Command | None = None,
    stated: dict[str, Any] | None = None,
    trusted: bool = False,
) -> Diagnosis:
    """Read a boot as a scenario and solve it.

    `model` gives exact bytes where the log allows them (the likely one, or "" for none); `trusted` takes them where no
    size is printed that could allow or refuse them. `command` fills in what the log does not say; `stated` holds what
    the user adds, such as L [tokens]. Raises nothing.
    """
    stated = stated or {}
    both = joined(boot, command)
    facts, asked = both.facts, None if both.differ else command
    if model is None:
        model = likely_model(facts, models_that_fit(facts))
    exact = exact_bytes(facts, geometry_of(model)) if model else Exact()
    silent = trusted and facts.slot_bytes is None and facts.token_bytes is None
    fits = model if model and (_fits(exact) or silent) and _served(facts, exact) else ""
    inputs = _without_stated(inputs_of(facts, exact if model else None), stated)
    found = Diagnosis(facts, fits, inputs, both.differ, both.known)
    values = _with_command(inputs, asked)
    values.setdefault("page_size", facts.page_size)  # by which the bytes of a token were read
    values |= stated
    if fits:
        values = {name: value for name, value in values.items() if name not in FILLED} | {"model": fits}
    found = found._replace(values=values)
    scenario = read_scenario(values)
    if not isinstance(scenario, Scenario) and fits:  # widths that the model cannot have: its bytes stand for themselves
        scenario = read_scenario({"page_size": facts.page_size, **inputs.values, **stated})
        found = found._replace(model="")
    if not isinstance(scenario, Scenario):
        return found._replace(problems=tuple(scenario))
    stands = bool(found.model) or (trusted and {"state_bytes_per_slot", "kv_bytes_per_token"} <= values.keys())
    if (facts.unified and not trusted) or not _measured(facts, values, model=stands):
        return found
    return _solved(found._replace(scenario=scenario), scenario)


def _solved(found: Diagnosis, scenario: Scenario) -> Diagnosis:
    """The same with the scenario solved, where S is known: it would be a guess, and all that rests on it."""
    facts = found.facts
    if facts.S is None:
        return found
    try:
        fitted = _with_fitted_rest(facts, scenario)
        sizing = solve(fitted)
    except RefusedError as refused:
        return found._replace(refused=str(refused))
    if sizing.S != facts.S:
        other = f"S: {facts.S} slots a request by the log, {sizing.S} by the flags: a variable or a patch is not known."
        return found._replace(problems=(Problem(where="S", sentence=other),))
    beside = _beside(facts, sizing, exact=bool(found.model))
    return found._replace(scenario=fitted, sizing=sizing, beside=beside)


def settled(boot: Boot, command: Command | None) -> Facts:
    """The facts of a boot with what its command fills in; of the log alone where the two contradict each other."""
    return joined(boot, command).facts


def _with_command(inputs: Inputs, command: Command | None) -> dict[str, Any]:
    """The inputs of the log, and what only a command knows: variables of the environment, and flags without a line."""
    if command is None:
        return _as_they_ran(inputs.values)
    assumed = {name for name, source in inputs.sources.items() if source == ASSUMED}
    more = {name: value for name, value in command.values.items() if name not in inputs.values or name in assumed}
    return _as_they_ran({**inputs.values, **more})


# Bytes that were measured are those of the dtypes and the width that ran, whatever a command names.
_STATED_AT = {
    "state_bytes_dtype": "mamba_ssm_dtype",
    "conv_bytes_dtype": "mamba_conv_dtype",
    "kv_bytes_dtype": "kv_cache_dtype",
    "kv_bytes_dcp_size": "dcp_size",
}


def _as_they_ran(values: dict[str, Any]) -> dict[str, Any]:
    return values | {name: values[runs] for name, runs in _STATED_AT.items() if name in values and runs in values}


def _measured(facts: Facts, values: dict[str, Any], *, model: bool) -> bool:
    """Whether rest and the bytes of both pools are known: without them the worked example's would stand in."""
    if "rest_gib" not in values:
        return False
    if model:
        return True
    measured = facts.slot_bytes is not None and facts.slot_bytes.low > 0  # a size printed as 0.00 measures nothing
    return measured and {"state_bytes_per_slot", "kv_bytes_per_token"} <= values.keys()


NOTHING = "Nothing is predicted or proposed"


def _lacking(facts: Facts) -> str:
    """What to paste before anything can be predicted: the lines that hold what is not known."""
    asks = []
    one_buffer = facts.unified is not None or facts.settings.enable_unified_memory is True
    if one_buffer and facts.S is None:
        return f"{NOTHING} without a guess: paste the launch command or the line of server_args."
    if one_buffer:
        return f"{NOTHING}: no rest and no bytes that are known give this buffer. Paste all its lines of one rank."
    if facts.slot_bytes is None or facts.slot_bytes.low <= 0:
        asks.append("“Mamba Cache is allocated” with both sizes")
    if facts.token_bytes is None:
        asks.append("“KV Cache is allocated” with its sizes")
    flags = facts.S is None or facts.draft_tokens is None or facts.dcp_size is None
    if flags and not facts.settings.stated:
        asks.append("the launch command or the line of server_args")
    elif facts.S is None:
        asks.append("“Load weight end”, which names the model's class")
    if facts.rest is None and facts.slot_bytes is not None and facts.token_bytes is not None:
        asks.append("“Load weight begin” and “Load weight end”, with --mem-fraction-static")
    if not asks:
        return f"{NOTHING}: what the log does not say would have to be guessed."
    return f"{NOTHING} without a guess: paste {'; '.join(asks)}."


def no_cure(found: Diagnosis) -> str:
    """Why no flags are proposed from this log; empty where they can be."""
    if found.differ:
        return "No flags are proposed: log and command are not of one run, so the flags behind this boot are not known."
    if found.problems or found.refused:
        return "No flags are proposed: what was read does not fit together."
    if found.sizing is None:
        return _lacking(found.facts)
    if not found.known:
        return (
            "No flags are proposed: neither a whole arguments line nor a whole launch command is given, so the flags "
            "behind this boot are not known. Paste either."
        )
    if not agrees(found):
        return "No flags are proposed: the prediction and the log disagree, so they would rest on what did not happen."
    return ""


def _without_stated(inputs: Inputs, stated: dict[str, Any]) -> Inputs:
    """What the user states is not missing."""
    asks = tuple(ask for ask in inputs.missing if ask.partition(":")[0] not in stated)
    return inputs._replace(missing=asks)


FIT_STEP_GIB = 0.001  # rest is stated to a thousandth


def _with_fitted_rest(facts: Facts, scenario: Scenario) -> Scenario:
    """The rest within its printed interval that gives the printed slots and tokens; the scenario as it is without one.

    Raises RefusedError for flags that the engine refuses.
    """
    if facts.rest is None or facts.slots is None or facts.kv_rows is None:
        return scenario
    tried = np.round(np.arange(facts.rest.low, facts.rest.high + FIT_STEP_GIB, FIT_STEP_GIB), 3)
    fits = [float(rest) for rest in tried if _gives(facts, scenario, float(rest))]
    if not fits:
        return scenario
    nearest = min(fits, key=lambda rest: abs(rest - scenario.rest_gib))
    return scenario.model_copy(update={"rest_gib": nearest, "rest_source": scenario.rest_source})


def _gives(facts: Facts, scenario: Scenario, rest_gib: float) -> bool:
    rank = rank_of(scenario)._replace(rest_gib=rest_gib)
    ratio = scenario.mamba_full_memory_ratio
    pools = pools_from_slots(rank, slots_set(rank, ratio))
    return (int(pools.slots), int(pools.kv_rows)) == (facts.slots, facts.kv_rows)


def _beside(facts: Facts, sizing: Sizing, *, exact: bool) -> tuple[Beside, ...]:
    """K, tokens and running requests: predicted, printed, and why they differ."""
    if isinstance(sizing.now, Refusal):
        return (Beside("boot", "refused", "started" if facts.slots else "-", sizing.now.sentence),)
    printed = {"slots": facts.slots, "kv_rows": facts.kv_rows, "admitted": facts.running}
    ends = _open(facts, sizing, exact=exact)
    numbers = {name: getattr(sizing.now, name) for name in NAMES}
    if one := unified_in_force(sizing):  # where a draft is fused into its entries, fewer tokens than in two pools
        numbers["kv_rows"] = one.found.label // sizing.scenario.dcp_size
    return tuple(_row(facts, name, numbers[name], printed[name], ends[name]) for name in NAMES)


def _row(facts: Facts, name: str, predicted: int, printed: int | None, ends: tuple[int, int]) -> Beside:
    if printed is None:
        return Beside(NAMES[name], count(predicted), "not in the log", "")
    if predicted == printed:
        return Beside(NAMES[name], count(predicted), count(printed), "")
    if ends[0] <= printed <= ends[1]:
        why = f"the log's rounding leaves {count(ends[0])} to {count(ends[1])} open"
    else:
        why = _unexplained(facts, name)
    return Beside(NAMES[name], count(predicted), count(printed), why)


def _unexplained(facts: Facts, name: str) -> str:
    """The likely cause where the log shows what it lacks; else that there is none."""
    if not facts.settings.stated:
        return "the arguments line is not in the log, so the flags behind it are not known"
    if name != "slots" and facts.draft_tokens and facts.draft_token_bytes is None:
        return "the draft model's KV line is not in the log, so its bytes are not counted"
    return "unexplained: a variable, a patch or a release that the log does not show"


def _open(facts: Facts, sizing: Sizing, *, exact: bool) -> dict[str, tuple[int, int]]:
    """The least and the most of each number, over the ends of what rest and bytes may be by the printed decimals."""
    rank = rank_of(sizing.scenario)
    rests = (facts.rest.low, facts.rest.high) if facts.rest else (rank.rest_gib,)
    ranks = _byte_ends(facts, sizing.scenario, rank, exact=exact)
    found = [_numbers(sizing, one._replace(rest_gib=rest)) for one, rest in product(ranks, rests)]
    ends = {name: [numbers[name] for numbers in found] for name in NAMES}
    return {name: (min(values), max(values)) for name, values in ends.items()}


def byte_ends(found: Diagnosis, scenario: Scenario) -> list[Rank]:
    """The rank of a scenario with the bytes of slot and token at each end that the printed decimals leave."""
    return _byte_ends(found.facts, scenario, rank_of(scenario), exact=bool(found.model))


def _byte_ends(facts: Facts, scenario: Scenario, rank: Rank, *, exact: bool) -> list[Rank]:
    # What a rank charges holds more than these bytes (rings, a draft's KV): the ends move it, they do not replace it.
    slots = _off(None if exact else facts.slot_bytes, scenario.state_bytes_per_slot)
    targets = _off(None if exact else facts.token_bytes, scenario.kv_bytes_per_token)
    drafts = _off(None if exact else facts.draft_token_bytes, scenario.draft_kv_bytes_per_token)
    return [
        rank._replace(slot_bytes=rank.slot_bytes + slot, token_bytes=rank.token_bytes + target + draft)
        for slot, target, draft in product(slots, targets, drafts)
    ]


def _off(measured: Measured | None, taken: int) -> tuple[int, ...]:
    """How far the ends of an interval [bytes] lie from the bytes that were taken; 0 where nothing is left open."""
    return (0,) if measured is None else (math.ceil(measured.low) - taken, math.floor(measured.high) - taken)


def _numbers(sizing: Sizing, rank: Rank) -> dict[str, int]:
    pools = pools_from_slots(rank, slots_set(rank, sizing.ratio_now))
    return {name: int(getattr(pools, name)) for name in NAMES}


def agrees(found: Diagnosis) -> bool:
    """Whether everything printed is predicted, or left open by the log's rounding."""
    return all(not row.why or row.why.startswith("the log's rounding") for row in found.beside)


def likely_model(facts: Facts, fits: tuple[str, ...]) -> str:
    """The model that is meant: of those that fit the one that the log names, or the only one; else none."""
    return named_model(facts.settings.model_path, fits) or (fits[0] if len(fits) == 1 else "")


def named_model(path: str | None, models: tuple[str, ...] | None = None) -> str:
    """The model that a path names, among `models`, whose bytes were found to fit, or the catalogue; else empty."""
    named = named_in(path or "", quantised=models is not None)
    return named if named in (servable() if models is None else models) and named is not None else ""


def readings(facts: Facts, found: Diagnosis) -> list[tuple[str, str, str, str]]:
    """Every number of the log: value, the interval that its decimals leave, and where it is from."""
    rows = [*_bytes(facts, found), *_rests(facts), *_counts(facts), _release(facts)]
    if facts.unified is None:
        return rows
    return [(name, value, between, OF_THE_BUFFER.get(source, source)) for name, value, between, source in rows]


Reading = tuple[str, str, str, str]
# Where the numbers of one buffer are from, in place of the lines of two pools.
OF_THE_BUFFER = {
    "size / (N + 1)": "entry_bytes", "size / (#tokens + page)": "entry_bytes",
    "sum of the printed pools": "total_bytes", "#tokens": "max_total_num_tokens",
    "#tokens x dcp_size": "max_total_num_tokens",
}  # fmt: skip


def _bytes(facts: Facts, found: Diagnosis) -> list[Reading]:
    exact = found.scenario if found.model else None
    rows = (
        ("state bytes per slot", facts.slot_bytes, exact.state_bytes_per_slot if exact else None, "size / (N + 1)"),
        (
            "KV bytes per token",
            facts.token_bytes,
            exact.kv_bytes_per_token if exact else None,
            "size / (#tokens + page)",
        ),
        ("draft KV bytes per token", facts.draft_token_bytes, None, "the second KV line of a rank"),
    )
    return [
        (
            name,
            number(measured.value, 0) if whole is None else count(whole),
            f"{number(measured.low, 0)} to {number(measured.high, 0)}",
            source if whole is None else f"{found.model}, exact",
        )
        for name, measured, whole, source in rows
        if measured is not None
    ]


def _rests(facts: Facts) -> list[Reading]:
    rows = (
        ("rest [GiB], by the weights", facts.rest_from_weights, "end - begin x (1 - mem_fraction_static)"),
        ("rest [GiB], by the pools", facts.rest_from_pools, "sum of the printed pools"),
    )
    return [
        (name, number(rest.value, 3), f"{number(rest.low, 3)} to {number(rest.high, 3)}", source)
        for name, rest, source in rows
        if rest is not None
    ]


def _counts(facts: Facts) -> list[Reading]:
    rows = (
        ("K, state slots", facts.slots, "max_mamba_cache_size"),
        ("S, slots per request", facts.S, facts.S_from or ""),
        ("mamba clamp", facts.clamp, CLAMP_FORMULA),
        ("KV tokens on one rank", facts.kv_rows, "#tokens"),
        ("KV tokens, logical", facts.kv_tokens, "#tokens x dcp_size"),
        ("max_running_requests", facts.running, "summary or warning"),
    )
    return [(name, count(value), "", source) for name, value, source in rows if value is not None]


def _release(facts: Facts) -> Reading:
    return ("SGLang release", releases_text(facts.releases), "", "forms of the lines, keys of the arguments")
