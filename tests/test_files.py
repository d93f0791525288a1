"""A file of scenarios brings back what went in, and says in sentences what it cannot read."""

import json
from typing import Any

import pytest

from sizing import Problem, Scenario
from sizing.exchange.link import from_query, to_query
from sizing.exchange.scenario_file import EXAMPLE, MAX_LENGTH, MOST, MOST_PROBLEMS, from_file, to_file
from sizing.scenario.from_model import servable

QUERIES: list[dict[str, str]] = [
    {},
    {"L": "32K", "D": "4", "name": "a, b (c) = d"},
    {"model": "", "state_bytes_per_slot": "1000000", "conv_bytes_per_slot": "", "kv_bytes_source": "boot log"},
    {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp_size": "4", "kv_cache_dtype": "bfloat16", "rest_gib": "50"},
    {"split": "pin", "max_mamba_cache_size": "300", "release": "0.5.13"},
    {"rest_gib": "0.1", "mamba_full_memory_ratio": "1e-05"},
]


def problems(text: str) -> list[str]:
    """The sentences for a text that is not taken."""
    found = from_file(text)
    assert found
    return [one.sentence for one in found if isinstance(one, Problem)]


@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_a_link_becomes_a_file_and_comes_back_unchanged(query: dict[str, str]) -> None:
    """Page link, scenario, file, scenario, link: nothing is lost on the way."""
    scenario, wrong = from_query(query)
    assert not wrong
    (back,) = from_file(to_file([scenario]))
    assert back == scenario
    assert isinstance(back, Scenario)
    assert to_query(back) == to_query(scenario)


def test_every_model_of_the_catalogue_comes_back() -> None:
    """Bytes that follow from a model are not written down, and follow again."""
    for model in servable():
        scenario = Scenario(model=model, tp_size=1, D=2)
        assert from_file(to_file([scenario])) == [scenario]


def test_six_scenarios_keep_names_and_order() -> None:
    """As many as are compared side by side; a mapping gives the names."""
    scenarios = {f"plan {number}": Scenario(L=1024 * number) for number in range(1, MOST + 1)}
    text = to_file(scenarios)
    back = from_file(text)
    assert [(one.name, one.L) for one in back if isinstance(one, Scenario)] == [
        (f"plan {number}", 1024 * number) for number in range(1, MOST + 1)
    ]
    assert to_file([one for one in back if isinstance(one, Scenario)]) == text
    assert len(text) < MAX_LENGTH / 3


def test_a_file_holds_every_stated_input() -> None:
    """Other defaults in a later version must not change what a file means."""
    (written,) = json.loads(to_file([Scenario()]))["scenarios"]
    assert written == Scenario().stated()


def test_what_the_command_line_takes_is_one_scenario() -> None:
    """An object of inputs alone, with or without the mark that some editors put first."""
    assert from_file('{"L": 16384, "D": 4}') == from_file('\ufeff{"L": 16384, "D": 4}') == [Scenario(L=16_384, D=4)]


def test_the_example_in_the_sentences_is_a_file() -> None:
    """What a reader is told to write is read."""
    assert from_file(EXAMPLE) == [Scenario(name="first", L=16_384)]


@pytest.mark.parametrize(
    ("scenarios", "sentence"),
    [
        ([], "A file holds 1 to 6 scenarios, not 0."),
        ([Scenario()] * 7, "A file holds 1 to 6 scenarios, not 7."),
        (
            {"<b>": Scenario()},
            "Name may hold letters, digits, spaces and . , : ; + - / ( ) _ = only, not “?b?”.",
        ),
    ],
)
def test_problem_what_no_file_can_hold(scenarios: Any, sentence: str) -> None:
    """Refused where it is written, not where it is read."""
    with pytest.raises(ValueError) as error:  # noqa: PT011, the sentence is compared whole
        to_file(scenarios)
    assert str(error.value) == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", f"it is not JSON: Expecting value in line 1. Write an object such as {EXAMPLE}."),
        ('{"L": 1,\n}', None),
        ("[" * 50_000, "it is nested too deeply to be a file of scenarios."),
        (" " * (MAX_LENGTH + 1), "it is longer than 100,000 characters: no file of 6 scenarios is."),
        ('{"L": ' + "9" * 5000 + "}", "it holds a number of thousands of digits: that is no input."),
        ('{"L": 1, "L": 2}', "“L” stands twice in one object: keep one of them."),
        ("[]", f"it holds no named values. Write an object such as {EXAMPLE}."),
        ('{"scenarios": []}', "“scenarios” must be a list of 1 to 6 scenarios, not 0."),
        ('{"scenarios": {}}', "“scenarios” must be a list of 1 to 6 scenarios."),
        (json.dumps({"scenarios": [{}] * 7}), "“scenarios” must be a list of 1 to 6 scenarios, not 7."),
        ('{"scenarios": [{}], "<i>": 1}', "“?i?” is no part of such a file. Remove it, or move it into a scenario."),
        (
            '{"hybrid-pool-sizing": 2, "scenarios": [{}]}',
            "it is of format “2”, and this version of the tool reads format 1. Open it with the version that wrote it, "
            "or with a newer one.",
        ),
        ('{"rest_gib": NaN}', "rest must be a finite number, not “nan”."),
        ('{"L": true}', "L must be a number, not “true”."),
        ('{"name": "<script>"}', None),
        ('{"name": "\\ud800"}', None),
        ('{"model": "nobody/nothing"}', None),
    ],
)
def test_problem_in_a_file(text: str, sentence: str | None) -> None:
    """One sentence each; text of a stranger in it is inert."""
    (said,) = problems(text)
    assert said.startswith("In the file: ")
    assert "<" not in said
    if sentence is not None:
        assert said == f"In the file: {sentence}"


def test_problem_every_scenario_says_which_it_is() -> None:
    """All faults of all scenarios at once; one that is right does not hide them."""
    text = json.dumps({"scenarios": [{"L": 1}, {"L": 0, "D": -1}, 3, {"name": "b", "y": 2}]})
    assert problems(text) == [
        "In the file: scenario 2: L must be 1 or more, not “0”.",
        "In the file: scenario 2: --speculative-num-draft-tokens must be 0 or more, not “-1”.",
        "In the file: scenario 3: It must be an object of named inputs, not “3”.",
        "In the file: scenario 4 “b”: “y” is not an input of this tool. Remove it or correct its name.",
    ]


def test_problem_a_text_of_another_kind_is_not_answered_at_length() -> None:
    """Thousands of unknown names are a few sentences and a count."""
    said = problems(json.dumps({f"x{number}": 1 for number in range(3000)}))
    assert len(said) == MOST_PROBLEMS + 1
    assert said[-1] == "In the file: and 2,980 more faults."
