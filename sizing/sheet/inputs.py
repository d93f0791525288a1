"""The inputs of a sheet: what was set for this deployment, and everything else that its numbers rest on."""

from typing import NamedTuple

from sizing.engine.resolve import resolution
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import DEFAULTS, FIELDS, INPUTS, Scenario, value_text
from sizing.scenario.registry import CONDITIONS


def counts(scenario: Scenario, name: str) -> bool:
    """Whether an input changes a number here, as the registry says."""
    when = INPUTS[name].counts
    return resolution(scenario).radix_cache if when == "with the radix cache on" else CONDITIONS[when](scenario)


class InputRow(NamedTuple):
    """One input as a row of text."""

    name: str
    """The field of Scenario."""
    title: str
    flag: str
    value: str
    """With its unit."""
    origin: str
    """Where the value comes from; for a stated one, what it is in the worked example."""


def stated_inputs(scenario: Scenario) -> list[InputRow]:
    """What differs from the worked example, each with its value there."""
    return [_row(scenario, name, value_text(name, DEFAULTS[name])) for name in scenario.differences()]


def other_inputs(scenario: Scenario) -> list[InputRow]:
    """Everything else that counts here: what the model fills in, and what is as in the worked example."""
    stated = scenario.differences()
    others = [name for name in FIELDS if name not in stated and counts(scenario, name)]
    return [_row(scenario, name, _origin(scenario, name)) for name in others]


def _row(scenario: Scenario, name: str, origin: str) -> InputRow:
    return InputRow(
        name=name,
        title=str(FIELDS[name].title),
        flag=INPUTS[name].flag,
        value=value_text(name, getattr(scenario, name)),
        origin=origin,
    )


def _origin(scenario: Scenario, name: str) -> str:
    if scenario.model and name in FILLED:
        return "from the model"
    source = INPUTS[name].source
    return str(getattr(scenario, source)) if source else "default here"
