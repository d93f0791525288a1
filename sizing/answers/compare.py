"""Scenarios side by side: every number beside the first one's, and only the inputs in which they differ.

Where `rest` is an estimate every number is that of its low end, as on the page Balance.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from sizing.answers.band import at_low_end, band_of, for_flags
from sizing.answers.recommended import applied, recommended, recommended_split
from sizing.answers.solve import Sizing, solve
from sizing.basics.frames import DEPLOYMENT_REQUESTS, frame_of
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import (
    GIB,
    NOTHING,
    count,
    gib,
    ratio_text,
    requests_text,
    rest_text,
    stated_ratio_text,
    tokens_text,
)
from sizing.engine.resolve import resolve
from sizing.engine.split import Split
from sizing.scenario.inputs import FIELDS, LABELS, Scenario, named_with_unit, rest_is_given, value_text
from sizing.scenario.rest import ENDS, EXACT, condition, rest_of

if TYPE_CHECKING:
    from pandas import DataFrame


class Row(NamedTuple):
    """One quantity of every scenario, as text."""

    quantity: str
    cells: tuple[str, ...]


def with_this(kept: tuple[Scenario, ...], scenario: Scenario, most: int) -> tuple[Scenario, ...]:
    """What is kept, and behind it this scenario, unless it is one of them but for its name or `most` are kept."""
    own = scenario.model_copy(update={"name": ""})
    alike = any(one.model_copy(update={"name": ""}) == own for one in kept)
    return kept if alike or len(kept) >= most else (*kept, scenario)


def names_of(scenarios: tuple[Scenario, ...]) -> tuple[str, ...]:
    """A name for each that no other has: as it was typed, else the title and at most two inputs that set it apart."""
    wanted = [scenario.name or _told_apart(scenario, scenarios) for scenario in scenarios]
    found: dict[int, str] = {}
    # What was typed is given out first: only a name that was typed twice gets a number.
    for at in sorted(range(len(wanted)), key=lambda at: not scenarios[at].name):
        name, times = wanted[at], 2
        while name in found.values():
            name, times = f"{wanted[at]} ({times})", times + 1
        found[at] = name
    return tuple(found[at] for at in range(len(wanted)))


MOST_TOLD = 4  # inputs in a name: more do not fit beside a line


def _told_apart(scenario: Scenario, scenarios: tuple[Scenario, ...]) -> str:
    """The title and what sets it apart from others with that title, the rarest first. A default is named only where at
    most half of them have it.
    """
    rows = [_told(other) for other in scenarios if not other.name and other.title == scenario.title]
    own, changed = _told(scenario), scenario.differences().keys()
    rare = []
    for key, words in own.items():
        # What decides S is told where S does not tell it.
        among = [row for row in rows if key not in DECIDE_S or not own[S] or row[S] == own[S]]
        alike = sum(row[key] == words for row in among)
        is_changed = key in changed or (key == "split" and not changed.isdisjoint(SPLIT))
        if words and alike < len(among) and (is_changed or alike * 2 <= len(among)):
            rare.append((alike, words))
    rare.sort(key=lambda each: each[0])
    return ", ".join((scenario.title, *(words for _, words in rare[:MOST_TOLD])))


def title_of(scenario: Scenario) -> str:
    """A title for one scenario alone: as it was typed, else the model and at most four inputs that differ from the
    worked example.
    """
    if scenario.name:
        return scenario.name
    differ, told = scenario.differences(), _told(scenario)
    split = [told["split"]] if differ.keys() & set(SPLIT) else []
    names = [name for name in told if name in differ and name not in TITLED and told[name]]
    words = [told["L"], *split, *(told[name] for name in names if name != "L")]
    return ", ".join((scenario.title, *words[: MOST_TOLD + 1]))


S = "S"
DECIDE_S = ("mamba_radix_cache_strategy", "disable_overlap_schedule", "skip_decode_lock", "disable_radix_cache")
SPLIT = ("split", "mamba_full_memory_ratio", "max_mamba_cache_size")  # told as one
LATER = ("L", "context_length")  # a figure over L shows L itself
TITLED = ("model", "gpu", "kv_bytes_per_token", "state_bytes_per_slot")  # in the title of a scenario, or its bytes
UNTOLD = ("name", "tp_size", "state_bytes_source", "kv_bytes_source", "rest_source")  # in the title, or no setting


def _told(scenario: Scenario) -> dict[str, str]:
    """Every input in a word or two, those that tell most first; empty for what needs no word."""
    split = {
        "ratio": f"r = {stated_ratio_text(scenario.mamba_full_memory_ratio)}",
        "balanced": "balanced",
        "pin": f"pin {count(scenario.max_mamba_cache_size or 0)}",
    }[scenario.split]
    stated = scenario.stated() | {"rest_gib": None if scenario.rest_source == "estimated" else scenario.rest_gib}
    first = dict.fromkeys((*DECIDE_S, "mamba_ssm_dtype", "kv_cache_dtype", "D", "dcp_size", "rest_gib"))
    names = [name for name in (first | stated) if name not in (*SPLIT, *LATER, *UNTOLD)]
    return {S: _slots(scenario), "split": split} | {name: _word(name, stated[name]) for name in (*names, *LATER)}


def _slots(scenario: Scenario) -> str:
    try:
        return f"S = {resolve(scenario).S}"
    except RefusedError:
        return ""


def _word(name: str, value: Any) -> str:
    """One input as short as a name needs it."""
    if name in WORDS:
        return WORDS[name](value)
    title = str(FIELDS[name].title)
    if isinstance(value, bool):
        return title if value else f"no {title}"
    return f"{title} {'unset' if value is None else count(value) if isinstance(value, int) else value}"


WORDS: dict[str, Callable[[Any], str]] = {
    "model": str,
    "release": lambda value: f"SGLang {value}",
    "L": lambda value: f"L = {tokens_text(value)}",
    "D": lambda value: f"D = {value}" if value else "no drafts",
    "dcp_size": lambda value: f"dcp_size = {value}",
    "pp_size": lambda value: f"pp_size = {value}",
    "attn_dp_size": lambda value: f"attn_dp_size = {value}",
    "mamba_ssm_dtype": lambda value: f"{value} state",
    "mamba_conv_dtype": lambda value: f"{value} conv",
    "kv_cache_dtype": lambda value: f"{value} KV",
    "rest_gib": lambda value: "rest estimated" if value is None else f"rest {rest_text(value)}",
    "mamba_radix_cache_strategy": lambda value: "auto strategy" if value == "auto" else value,
    "skip_decode_lock": lambda value: "decode lock skipped" if value else "decode lock kept",
    "disable_radix_cache": lambda value: "radix cache off" if value else "radix cache on",
    "disable_overlap_schedule": lambda value: "overlap off" if value else "overlap on",
    "state_bytes_per_slot": lambda value: f"slot {count(value)} B",
    "kv_bytes_per_token": lambda value: f"token {count(value)} B",
}


def solved(scenarios: tuple[Scenario, ...]) -> tuple[Sizing | Refusal, ...]:
    """Each solved, or the refusal of its flags."""
    return tuple(_solved(scenario) for scenario in scenarios)


def _solved(scenario: Scenario) -> Sizing | Refusal:
    try:
        return solve(scenario)
    except RefusedError as refused:
        return refused.refusal


def at_best(scenarios: tuple[Scenario, ...]) -> tuple[Scenario, ...]:
    """Each scenario with its recommended change, under its own name; unchanged where nothing runs.

    An estimated `rest` is held at the low end, for which the change is chosen.
    """
    names = names_of(scenarios)
    found = [None if isinstance(one, Refusal) else recommended(one) for one in solved(scenarios)]
    best = [
        applied(for_flags(own), one.flags) if one is not None and one.change else own
        for one, own in zip(found, scenarios, strict=True)
    ]
    return tuple(one.model_copy(update={"name": name}) for one, name in zip(best, names, strict=True))


def story_of(names: tuple[str, ...], found: tuple[Sizing | Refusal, ...]) -> str:
    """Which runs most and which least, and how many times as many [requests of the deployment]."""
    runs = {
        name: of_deployment(item, item.now.runs)
        for name, item in zip(names, map(_safe, found), strict=True)
        if isinstance(item, Sizing) and isinstance(item.now, Split)
    }
    if len(runs) < 2:
        return headline_of(found)
    most, least = max(runs, key=lambda name: runs[name]), min(runs, key=lambda name: runs[name])
    named = runs if runs[most] == runs[least] else (most, least)
    told = [item for name, item in zip(names, found, strict=True) if name in named]
    lengths = {item.scenario.L for item in told if isinstance(item, Sizing)}
    at = f" at L = {count(lengths.pop())}" if len(lengths) == 1 else ", each at its own L"
    if any(isinstance(item, Sizing) and item.scenario.rest_source in ("estimated", *ENDS) for item in found):
        at += f" (low end of an estimate; {EXACT})"
    if runs[most] == runs[least]:
        return f"{requests_text(runs[most])} run with each of {len(runs)}{at}"
    times = f": {runs[most] / runs[least]:.3g} times as many" if runs[least] else ""
    return f"{count(runs[most])} run ({most}) beside {count(runs[least])} ({least}){at}{times}"


def _safe(found: Sizing | Refusal) -> Sizing | Refusal:
    """What the numbers are of: the low end of an estimate."""
    return at_low_end(found) if isinstance(found, Sizing) else found


UNKNOWN_REST = "rest is not known; choose a GPU or enter it"


def headline_of(found: tuple[Sizing | Refusal, ...]) -> str:
    """How many there are and what they run [requests of the deployment]."""
    splits = [(item, item.now) for item in found if isinstance(item, Sizing)]
    runs = [of_deployment(item, now.runs) for item, now in splits if isinstance(now, Split)]
    estimated = [item for item, _ in splits if item.scenario.rest_source == "estimated"]
    many = "none starts" if all(rest_is_given(item.scenario) for item, _ in splits) else UNKNOWN_REST
    runs += [of_deployment(item, end) for item in estimated if (band := band_of(item)) for end in band.runs]
    if runs:
        least = f"{count(min(runs))} to " if min(runs) < max(runs) else ""
        many = f"{least}{requests_text(max(runs))} at once"
        if estimated:
            many += condition(estimated[0].scenario)
    if len(found) == 1:
        return f"1 is kept: {many}"
    lengths = {item.scenario.L for item, _ in splits}
    at = f"at L = {count(lengths.pop())}" if len(lengths) == 1 else "each at its own L"
    return f"{len(found)} side by side, {at}: {many}"


def results(found: tuple[Sizing | Refusal, ...]) -> tuple[Row, ...]:
    """What each gives, the difference from the first in brackets. Requests are the deployment's."""
    columns = [_numbers(item) for item in found]
    rows = []
    for quantity in _QUANTITIES:
        values = [column.get(quantity) for column in columns]
        cells = tuple(_cell(quantity, value, values[0], at) for at, value in enumerate(values))
        rows.append(Row(quantity, cells if quantity != RUNS else tuple(map(_with_band, cells, found))))
    if any(isinstance(item, Sizing) and item.scenario.rest_source in ("estimated", *ENDS) for item in found):
        rows.append(Row("rest", tuple(_rest_words(item) for item in found)))
    binds = Row("binds", tuple(_binding(item) for item in found))
    change = Row("what to set", tuple(_to_set(item) for item in found))
    return (rows[0], binds, change, *rows[1:])


def _with_band(cell: str, found: Sizing | Refusal) -> str:
    """What runs, from the low to the high end where rest is an estimate; that rest is not known where it is not."""
    if isinstance(found, Sizing) and not rest_is_given(found.scenario):
        return "rest not known"
    band = band_of(found) if isinstance(found, Sizing) else None
    if band is None or not isinstance(found, Sizing):
        return cell
    low, high = (count(of_deployment(found, runs)) for runs in band.runs)
    return cell if low == high else f"{low} to {high}"


def _rest_words(found: Sizing | Refusal) -> str:
    return rest_of(found.scenario).words if isinstance(found, Sizing) else NOTHING


def _to_set(found: Sizing | Refusal) -> str:
    best = None if isinstance(found, Refusal) else recommended(found)
    return NOTHING if best is None else best.flag if best.change else f"as set: {best.flag}"


RUNS = "runs at L"
BEST = "runs with that"
IDLE = ("state idle, per rank", "KV idle, per rank")
_QUANTITIES = (
    RUNS,
    BEST,
    "r*",
    "K, state slots",
    "mamba clamp",
    "KV cap at L",
    *IDLE,
)


def of_deployment(sizing: Sizing, requests: int) -> int:
    """Requests of one rank [requests] as those of the whole deployment, which attention DP multiplies."""
    return requests * sizing.scenario.attn_dp_size


def _numbers(found: Sizing | Refusal) -> dict[str, float]:
    if isinstance(found, Refusal):
        return {}
    found = at_low_end(found)
    numbers: dict[str, float] = {"r*": found.r_star}
    best = recommended_split(found)
    if best is not None:
        numbers[BEST] = of_deployment(found, best.runs)
    now = found.now
    if not isinstance(now, Refusal):
        numbers |= {
            "runs at L": of_deployment(found, now.runs),
            "K, state slots": now.slots,
            "mamba clamp": of_deployment(found, now.clamp),
            "KV cap at L": of_deployment(found, now.kv_cap),
            **{name: idle / GIB for name, idle in zip(IDLE, (now.memory.state_idle, now.memory.kv_idle), strict=True)},
        }
    return numbers


def _cell(quantity: str, value: float | None, first: float | None, at: int) -> str:
    if value is None:
        return "refused" if quantity == RUNS else NOTHING
    if quantity == "r*":
        return ratio_text(value)
    if quantity in IDLE:
        return gib(value * GIB)
    difference = int(value) - int(first) if at and first is not None else 0
    return count(int(value)) + (f" ({difference:+,})" if difference else "")


def _binding(found: Sizing | Refusal) -> str:
    found = _safe(found)
    if isinstance(found, Refusal) or isinstance(found.now, Refusal):
        return NOTHING
    return found.now.binding.name


def differing_inputs(scenarios: tuple[Scenario, ...]) -> tuple[Row, ...]:
    """Only the inputs that are not the same everywhere; an estimated `rest` follows from them and is none."""
    estimated = all(scenario.rest_source == "estimated" for scenario in scenarios)
    found = [(name, values) for name, values in _differing(scenarios).items() if name != "rest_gib" or not estimated]
    return tuple(Row(LABELS[name], tuple(value_text(name, value) for value in values)) for name, values in found)


def _differing(scenarios: tuple[Scenario, ...]) -> dict[str, list[Any]]:
    """The values of each input that is not the same everywhere."""
    names = dict.fromkeys(name for scenario in scenarios for name in scenario.stated() if name != "name")
    values = {name: [getattr(scenario, name) for scenario in scenarios] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}


# How `frame` names the quantities of `results`.
COLUMNS = {
    "runs at L": f"runs [{DEPLOYMENT_REQUESTS}]",
    BEST: f"best_runs [{DEPLOYMENT_REQUESTS}]",
    "r*": "r_star [-]",
    "K, state slots": "slots [slots per rank]",
    "mamba clamp": f"clamp [{DEPLOYMENT_REQUESTS}]",
    "KV cap at L": f"kv_cap [{DEPLOYMENT_REQUESTS}]",
    IDLE[0]: "state_idle [GiB per rank]",
    IDLE[1]: "kv_idle [GiB per rank]",
}


def frame(scenarios: tuple[Scenario, ...]) -> "DataFrame":
    """One row a scenario: its name, the inputs in which they differ, what binds, the numbers of `results`.

    Where the engine refuses, `refusal` says why and the numbers that then do not exist are missing.
    """
    found = solved(scenarios)
    numbers = [_numbers(item) for item in found]
    return frame_of(
        {
            "name": list(names_of(scenarios)),
            **{named_with_unit(name): values for name, values in _differing(tuple(map(for_flags, scenarios))).items()},
            "set": [None if (text := _to_set(item)) == NOTHING else text for item in found],
            "binds": [None if (text := _binding(item)) == NOTHING else text for item in found],
            **{column: [each.get(quantity) for each in numbers] for quantity, column in COLUMNS.items()},
            "refusal": [_refusal(item) for item in found],
        }
    )


def _refusal(found: Sizing | Refusal) -> str | None:
    refused = found if isinstance(found, Refusal) else found.now
    return refused.sentence if isinstance(refused, Refusal) else None
