"""A file of scenarios: JSON that one reader saves and another opens, here or in a later version of this tool.

It holds every input that was stated, not only what differs from the worked example, so that other defaults do not
change what a file means.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sizing.basics.problems import Problem, shown
from sizing.scenario.inputs import Scenario, changed, read_scenario
from sizing.version import PROJECT, tool_version

FORMAT = 1
MOST = 6  # scenarios; more cannot be told apart side by side
MAX_LENGTH = 100_000  # characters; six scenarios take about 15,000
MOST_PROBLEMS = 20  # said one by one; a text that is no file of scenarios can hold thousands
EXAMPLE = '{"scenarios": [{"name": "first", "L": 16384}]}'


def to_file(scenarios: Mapping[str, Scenario] | Sequence[Scenario]) -> str:
    """Scenarios as the text of a file, each with its name; a mapping gives the names.

    Raises ValueError for none, for more than six, and for a name that a scenario cannot have.
    """
    found = _named(scenarios) if isinstance(scenarios, Mapping) else list(scenarios)
    if not 1 <= len(found) <= MOST:
        raise ValueError(f"A file holds 1 to {MOST} scenarios, not {len(found)}.")
    values = {PROJECT: FORMAT, "version": tool_version(), "scenarios": [scenario.stated() for scenario in found]}
    return json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _named(scenarios: Mapping[str, Scenario]) -> list[Scenario]:
    found = []
    for name, scenario in scenarios.items():
        named = changed(scenario, name=name)
        if not isinstance(named, Scenario):
            raise ValueError(named[0].sentence)
        found.append(named)
    return found


def from_file(text: str, where: str = "the file") -> list[Scenario] | list[Problem]:
    """The scenarios of a file in its order, or a sentence for every fault at once; never some of each.

    An object of inputs alone is one scenario. The sentences say that they are about `where`.
    """
    items = _read(text)
    items = items if isinstance(items, Problem) else _items(items)
    if isinstance(items, Problem):
        return [_said_of(where, items)]
    found = [_scenario(item, at, len(items)) for at, item in enumerate(items, start=1)]
    problems = [problem for one in found if not isinstance(one, Scenario) for problem in one]
    return [_said_of(where, problem) for problem in _few(problems)] or [
        one for one in found if isinstance(one, Scenario)
    ]


def _said_of(where: str, problem: Problem) -> Problem:
    return Problem(where=problem.where, sentence=f"In {where}: {problem.sentence}")


def _few(problems: list[Problem]) -> list[Problem]:
    more = len(problems) - MOST_PROBLEMS
    return problems if more <= 0 else [*problems[:MOST_PROBLEMS], _problem(f"And {more:,} more faults.")]


def _read(text: str) -> Any:
    """The JSON value of a text, or the problem with it."""
    if len(text) > MAX_LENGTH:
        return _problem(f"It is longer than {MAX_LENGTH:,} characters: no file of {MOST} scenarios is.")
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        return _problem(f"It is not JSON: {error.msg} in line {error.lineno}. Write an object such as {EXAMPLE}.")
    except RecursionError:
        return _problem("It is nested too deeply to be a file of scenarios.")
    except _TwiceError as twice:
        return _problem(f"{shown(str(twice))} stands twice in one object: keep one of them.")
    except ValueError:  # Python refuses to read a whole number of more than 4,300 digits
        return _problem("It holds a number of thousands of digits: that is no input.")


class _TwiceError(Exception):
    """A name that stands twice in one object: JSON readers would each keep another of the two."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _TwiceError(name)
        found[name] = value
    return found


def _items(values: Any) -> list[Any] | Problem:
    """The scenarios as they stand in a file, or why it is none."""
    if not isinstance(values, dict):
        return _problem(f"It holds no named values. Write an object such as {EXAMPLE}.")
    if "scenarios" not in values:
        return [values]
    if values.get(PROJECT, FORMAT) != FORMAT or isinstance(values.get(PROJECT), bool):
        return _problem(
            f"It is of format {shown(values[PROJECT])}, and this version of the tool reads format {FORMAT}. Open it "
            "with the version that wrote it, or with a newer one."
        )
    unknown = [name for name in values if name not in (PROJECT, "version", "scenarios")]
    if unknown:
        return _problem(f"{shown(unknown[0])} is no part of such a file. Remove it, or move it into a scenario.")
    items = values["scenarios"]
    if not isinstance(items, list) or not 1 <= len(items) <= MOST:
        many = f", not {len(items)}" if isinstance(items, list) else ""
        return _problem(f"“scenarios” must be a list of 1 to {MOST} scenarios{many}.")
    return items


def _scenario(item: Any, at: int, of: int) -> Scenario | list[Problem]:
    """One scenario of a file; its problems say which one where there are more."""
    if not isinstance(item, dict):
        return [_problem(f"{_which(at, of, None)}It must be an object of named inputs, not {shown(item)}.")]
    found = read_scenario(item)
    if isinstance(found, Scenario):
        return found
    which = _which(at, of, item.get("name"))
    return [Problem(where=problem.where, sentence=f"{which}{problem.sentence}") for problem in found]


def _which(at: int, of: int, name: object) -> str:
    if of == 1:
        return ""
    return f"scenario {at}{f' {shown(name)}' if isinstance(name, str) and name else ''}: "


def _problem(sentence: str) -> Problem:
    return Problem(where="", sentence=sentence[:1].lower() + sentence[1:])
