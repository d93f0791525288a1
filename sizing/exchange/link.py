"""A scenario as the query of a link, and back. Only what differs from the worked example is carried.

Everything in a link is a stranger's text: each value is parsed by its field's own rules, a wrong one is
reported in a sentence and the default is used instead. The field names are the parameter names.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from sizing.answers.carrying_settings import Want
from sizing.basics.problems import Problem, from_validation
from sizing.exchange.scenario_file import from_file
from sizing.exchange.target_text import wants_text
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import DEFAULTS, FIELDS, LABELS, Scenario
from sizing.scenario.rest import ENDS

MAX_VALUE_LENGTH = 200
EMPTY = ""  # how a link writes an input that is deliberately empty
TEXTS = ("name", "model")  # empty is a value of these, not a missing number
KEPT = "kept"  # the parameter that holds the scenarios kept side by side
# nginx reads a request line of at most 8 KiB unless told otherwise (large_client_header_buffers); the rest of it is
# for the address and for the inputs of the sidebar.
MAX_KEPT_LENGTH = 6_000  # characters, as they are escaped in an address
WANT = "want"  # the parameter that holds what is wanted: requests at L, then a line for each further length
MAX_WANT_LENGTH = 500  # characters; twelve further lengths take at most 210


def to_query(scenario: Scenario) -> dict[str, str]:
    """Query parameters for a scenario; empty for the worked example."""
    left = ("rest_gib", "rest_source") if scenario.rest_source in ENDS else ()  # the reader's page estimates it anew
    return {name: _written(value) for name, value in scenario.differences().items() if name not in left}


def _written(value: Any) -> str:
    if value is None:
        return EMPTY
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)


def from_query(query: Mapping[str, str]) -> tuple[Scenario, list[Problem]]:
    """The scenario a link asks for, and a sentence for each parameter that could not be taken."""
    problems: list[Problem] = []
    values: dict[str, Any] = {}
    unknown = [name for name in query if name not in FIELDS]
    for name, text in query.items():
        if name not in FIELDS:
            continue
        if found := _fault(name, text):
            problems.append(found)
        else:
            values[name] = _parsed(name, text)
    problems += [_ignored(unknown)] if unknown else []
    scenario, clashes = _fitted(values)
    return scenario, problems + clashes


def _fitted(values: dict[str, Any]) -> tuple[Scenario, list[Problem]]:
    """The scenario of values that are right one by one; what does not fit together is dropped and reported."""
    try:
        return Scenario.model_validate(values), []
    except ValidationError as error:
        sentence = from_validation(error, LABELS)[0].sentence
    # Beside a model that is named, the bytes that contradict it go first.
    for name in sorted(values, key=lambda name: "model" in values and name not in FILLED):
        others = {key: value for key, value in values.items() if key != name}
        try:
            scenario = Scenario.model_validate(others)
        except ValidationError:
            continue
        return scenario, [Problem(where=name, sentence=f"In the link: {sentence} {_kept(name)}")]
    return Scenario(), [Problem(where="", sentence=f"In the link: {sentence} All settings stay at their defaults.")]


def _kept(name: str) -> str:
    default = DEFAULTS[name]
    return f"{name} stays at {'empty' if default in (None, EMPTY) else _written(default)}."


def _parsed(name: str, text: str) -> str | None:
    return None if text == EMPTY and name not in TEXTS else text


def _fault(name: str, text: str) -> Problem | None:
    """What is wrong with one parameter, checked alone against an otherwise default scenario."""
    try:
        Scenario.__pydantic_validator__.validate_assignment(
            Scenario.model_construct(**DEFAULTS), name, _parsed(name, text[:MAX_VALUE_LENGTH])
        )
    except ValidationError as error:
        own = [item for item in from_validation(error, LABELS) if item.where == name]
        if own:
            return Problem(where=name, sentence=f"In the link: {own[0].sentence} {_kept(name)}")
    return None


def _ignored(names: list[str]) -> Problem:
    """One sentence for all names that are no inputs, however many a link holds."""
    safe = ["".join(char for char in name[:40] if char.isalnum() or char in "_-") for name in names[:3]]
    shown = ", ".join(f"“{name}”" for name in safe)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    verb = "is not an input of this tool and was" if len(names) == 1 else "are not inputs of this tool and were"
    return Problem(where="", sentence=f"In the link: {shown}{more} {verb} ignored.")


def kept_to_query(scenarios: Sequence[Scenario]) -> dict[str, str] | None:
    """The parameter for scenarios kept side by side, names and order with them; None where it is too long a link."""
    values = {"scenarios": [scenario.differences() for scenario in scenarios]}
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return {KEPT: text} if len(quote(text)) <= MAX_KEPT_LENGTH else None


def kept_from_query(text: str) -> list[Scenario] | list[Problem]:
    """The scenarios of that parameter, or a sentence for every fault; never some of each."""
    return from_file(text, "the link, among what is kept")


def wants_to_query(L: int, wants: Sequence[Want]) -> dict[str, str]:
    """The parameter for what is wanted beside a scenario of that L; empty where nothing is."""
    return {WANT: "\n".join(wants_text(L, wants)).rstrip("\n")} if wants else {}


def wants_from_query(text: str) -> tuple[str, str]:
    """The requests at L and the further lines of that parameter, cut to a bound and not yet read."""
    requests, _, further = text[:MAX_WANT_LENGTH].partition("\n")
    return requests, further
