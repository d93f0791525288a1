"""Scenarios side by side: every number beside the first one's, and only the inputs in which they differ."""

from typing import NamedTuple

from sizing.problems import Refusal, RefusedError
from sizing.scenario import LABELS, Scenario, value_text
from sizing.solve import Sizing, solve
from sizing.units import GIB, count, number, ratio_text

NOTHING = "-"


class Row(NamedTuple):
    """One quantity of every scenario, as text."""

    quantity: str
    cells: tuple[str, ...]


def names_of(scenarios: tuple[Scenario, ...]) -> tuple[str, ...]:
    """A name for each that no other has."""
    found: list[str] = []
    for scenario in scenarios:
        name, times = scenario.title, 2
        while name in found:
            name, times = f"{scenario.title} ({times})", times + 1
        found.append(name)
    return tuple(found)


def solved(scenarios: tuple[Scenario, ...]) -> tuple[Sizing | Refusal, ...]:
    """Each solved, or the refusal of its flags."""
    return tuple(_solved(scenario) for scenario in scenarios)


def _solved(scenario: Scenario) -> Sizing | Refusal:
    try:
        return solve(scenario)
    except RefusedError as refused:
        return refused.refusal


def results(found: tuple[Sizing | Refusal, ...]) -> tuple[Row, ...]:
    """What each gives, the difference from the first in brackets. Requests are the deployment's."""
    columns = [_numbers(item) for item in found]
    rows = []
    for quantity in _QUANTITIES:
        values = [column.get(quantity) for column in columns]
        rows.append(Row(quantity, tuple(_cell(quantity, value, values[0], at) for at, value in enumerate(values))))
    binds = Row("binds", tuple(_binding(item) for item in found))
    return (rows[0], binds, *rows[1:])


_QUANTITIES = (
    "runs at L",
    "runs at r*",
    "best split",
    "r*",
    "K, state slots",
    "mamba clamp",
    "KV cap at L",
    "idle [GiB]",
)


def of_deployment(sizing: Sizing, requests: int) -> int:
    """Requests of one rank [requests] as those of the whole deployment, which attention DP multiplies."""
    return requests * sizing.scenario.attn_dp_size


def _numbers(found: Sizing | Refusal) -> dict[str, float]:
    if isinstance(found, Refusal):
        return {}
    numbers: dict[str, float] = {"r*": found.r_star}
    if found.optimum is not None:
        numbers["best split"] = of_deployment(found, found.optimum.runs)
    if not isinstance(found.balanced, Refusal):
        numbers["runs at r*"] = of_deployment(found, found.balanced.runs)
    now = found.now
    if not isinstance(now, Refusal):
        numbers |= {
            "runs at L": of_deployment(found, now.runs),
            "K, state slots": now.slots,
            "mamba clamp": of_deployment(found, now.clamp),
            "KV cap at L": of_deployment(found, now.kv_cap),
            "idle [GiB]": (now.memory.state_idle + now.memory.kv_idle) / GIB,
        }
    return numbers


def _cell(quantity: str, value: float | None, first: float | None, at: int) -> str:
    if value is None:
        return "refused" if quantity == "runs at L" else NOTHING
    if quantity == "r*":
        return ratio_text(value)
    if quantity == "idle [GiB]":
        return number(value)
    difference = int(value) - int(first) if at and first is not None else 0
    return count(int(value)) + (f" ({difference:+,})" if difference else "")


def _binding(found: Sizing | Refusal) -> str:
    if isinstance(found, Refusal) or isinstance(found.now, Refusal):
        return NOTHING
    return found.now.binding.name


def differing_inputs(scenarios: tuple[Scenario, ...]) -> tuple[Row, ...]:
    """Only the inputs that are not the same everywhere."""
    dumps = [scenario.stated() for scenario in scenarios]
    names = dict.fromkeys(name for dump in dumps for name in dump if name != "name")
    rows = []
    for name in names:
        values = [getattr(scenario, name) for scenario in scenarios]
        if any(value != values[0] for value in values):
            rows.append(Row(LABELS[name], tuple(value_text(name, value) for value in values)))
    return tuple(rows)
