"""Links: what a scenario writes, what it reads back, and what a stranger's link is told."""

from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest

from sizing import Problem, Scenario
from sizing.exchange.link import KEPT, from_query, kept_from_query, kept_to_query, to_query

CASES = [
    pytest.param({}, {}, id="worked example"),
    pytest.param({"L": 16_384}, {"L": "16384"}, id="whole number"),
    pytest.param({"rest_gib": 27.64}, {"rest_gib": "27.64"}, id="real number"),
    pytest.param({"mamba_full_memory_ratio": 1e-05}, {"mamba_full_memory_ratio": "1e-05"}, id="small ratio"),
    pytest.param({"skip_decode_lock": True}, {"skip_decode_lock": "true"}, id="switch"),
    pytest.param({"mamba_radix_cache_strategy": "no_buffer"}, {"mamba_radix_cache_strategy": "no_buffer"}, id="choice"),
    pytest.param({"conv_bytes_per_slot": None}, {"model": "", "conv_bytes_per_slot": ""}, id="emptied"),
    pytest.param({"name": "A"}, {"name": "A"}, id="name"),
    pytest.param({"name": "a + b = c/d, é"}, {"name": "a + b = c/d, é"}, id="name"),
    pytest.param(
        {"split": "pin", "max_mamba_cache_size": 371}, {"split": "pin", "max_mamba_cache_size": "371"}, id="pin"
    ),
]


@pytest.mark.parametrize(("inputs", "query"), CASES)
def test_link_carries_what_differs(inputs: dict[str, Any], query: dict[str, str]) -> None:
    """A link holds the inputs that differ from the worked example, under their own names, and nothing else."""
    assert to_query(Scenario(**inputs)) == query
    assert from_query(query) == (Scenario(**inputs), [])


@pytest.mark.parametrize(("inputs", "query"), CASES)
def test_link_survives_a_url(inputs: dict[str, Any], query: dict[str, str]) -> None:
    """Written into a URL and parsed again a link still gives the scenario."""
    read = parse_qs(urlencode(query), keep_blank_values=True)
    assert from_query({name: values[-1] for name, values in read.items()}) == (Scenario(**inputs), [])


PIN_IS_EMPTY = "The split is pinned but --max-mamba-cache-size is empty. Enter slots."
CONV_IS_LARGE = (
    "The conv part (99,999,999 bytes) is larger than the whole slot (56,171,520 bytes). Correct one of the two."
)
CONV_IS_UNKNOWN = (
    "To rescale the SSM part of a slot from float32 to bfloat16 its conv part must be known: fill in “of which conv”, "
    "or state the bytes at the dtype you run."
)


@pytest.mark.parametrize(
    ("query", "taken", "where", "sentence"),
    [
        pytest.param({"L": "0"}, {}, "L", "L must be 1 or more, not “0”. L stays at 9216.", id="zero"),
        pytest.param({"L": "-5"}, {}, "L", "L must be 1 or more, not “-5”. L stays at 9216.", id="negative"),
        pytest.param({"L": "long"}, {}, "L", "L must be a whole number, not “long”. L stays at 9216.", id="no number"),
        pytest.param({"L": ""}, {}, "L", "L must be a whole number, not empty. L stays at 9216.", id="empty"),
        pytest.param({"L": "1.5"}, {}, "L", "L must be a whole number, not “1.5”. L stays at 9216.", id="fraction"),
        pytest.param(
            {"L": "9" * 5000},
            {},
            "L",
            f"L must be 16777216 or less, not “{'9' * 40}…”. L stays at 9216.",
            id="huge",
        ),
        pytest.param(
            {"rest_gib": "nan"},
            {},
            "rest_gib",
            "rest must be a finite number, not “nan”. rest_gib stays at empty.",
            id="NaN",
        ),
        pytest.param(
            {"rest_gib": "1e999"},
            {},
            "rest_gib",
            "rest must be a finite number, not “1e999”. rest_gib stays at empty.",
            id="infinity",
        ),
        pytest.param(
            {"disable_radix_cache": "perhaps"},
            {},
            "disable_radix_cache",
            "--disable-radix-cache must be true or false, not “perhaps”. disable_radix_cache stays at false.",
            id="no switch",
        ),
        pytest.param(
            {"max_running_requests": "all"},
            {},
            "max_running_requests",
            "--max-running-requests must be a whole number, not “all”. max_running_requests stays at empty.",
            id="default is empty",
        ),
        pytest.param(
            {"split": "even"},
            {},
            "split",
            "Split by must be one of 'ratio', 'balanced' or 'pin', not “even”. split stays at ratio.",
            id="no choice",
        ),
        pytest.param(
            {"name": "<b>`bold`"},
            {},
            "name",
            "Name may hold letters, digits, spaces and . , : ; + - / ( ) _ = only, not “?b??bold?”. "
            "name stays at empty.",
            id="markup",
        ),
        pytest.param(
            {"l": "1", "L": "64"}, {"L": 64}, "", "“l” is not an input of this tool and was ignored.", id="unknown"
        ),
        pytest.param(
            {"<script>alert(1)</script>": "1"},
            {},
            "",
            "“scriptalert1script” is not an input of this tool and was ignored.",
            id="unknown markup",
        ),
        pytest.param(
            {"split": "pin", "D": "4"}, {"D": 4}, "split", f"{PIN_IS_EMPTY} split stays at ratio.", id="pin is empty"
        ),
        pytest.param(
            {"conv_bytes_per_slot": "99999999", "D": "4"},
            {"D": 4},
            "conv_bytes_per_slot",
            f"{CONV_IS_LARGE} conv_bytes_per_slot stays at 1907712.",
            id="conv is larger",
        ),
        pytest.param(
            {"mamba_ssm_dtype": "bfloat16", "conv_bytes_per_slot": ""},
            {"conv_bytes_per_slot": None},
            "mamba_ssm_dtype",
            f"{CONV_IS_UNKNOWN} mamba_ssm_dtype stays at float32.",
            id="conv is unknown",
        ),
        pytest.param(
            {"split": "pin", "conv_bytes_per_slot": "99999999", "D": "4"},
            {},
            "",
            f"{CONV_IS_LARGE} All settings stay at their defaults.",
            id="two clashes",
        ),
    ],
)
def test_problem_in_a_link(query: dict[str, str], taken: dict[str, Any], where: str, sentence: str) -> None:
    """What cannot be taken is said in one sentence, with what stays instead; the rest of the link is taken."""
    assert from_query(query) == (Scenario(**taken), [Problem(where=where, sentence=f"In the link: {sentence}")])


def test_problem_every_parameter_of_a_link() -> None:
    """Each wrong parameter gets its own sentence, in the order of the link."""
    scenario, problems = from_query({"L": "0", "D": "16", "dcp_size": "none", "page": "1"})
    assert scenario == Scenario(D=16)
    assert [problem.sentence for problem in problems] == [
        "In the link: L must be 1 or more, not “0”. L stays at 9216.",
        "In the link: --dcp-size must be a whole number, not “none”. dcp_size stays at 1.",
        "In the link: “page” is not an input of this tool and was ignored.",
    ]


def test_problem_endless_link() -> None:
    """However many unknown names a link holds, they are one sentence, and the inputs among them are taken."""
    scenario, problems = from_query({f"x{number}": "1" for number in range(10_000)} | {"L": "1024"})
    assert scenario == Scenario(L=1024)
    assert problems == [
        Problem(
            where="",
            sentence="In the link: “x0”, “x1”, “x2” and 9997 more are not inputs of this tool and were ignored.",
        )
    ]


def test_kept_scenarios_survive_a_link() -> None:
    """Names, order and every input of what is kept come back from an address as they went in."""
    kept = [Scenario(name="a + b = c, é", L=16_384), Scenario(), Scenario(split="pin", max_mamba_cache_size=371)]
    query = kept_to_query(kept)
    assert query is not None
    assert kept_from_query(parse_qs(urlencode(query))[KEPT][0]) == kept


def test_kept_scenarios_too_long_for_a_link() -> None:
    """Names that are long once they are escaped make the link too long, and it says so instead of cutting."""
    assert kept_to_query([Scenario(name="é" * 60)]) is not None
    assert kept_to_query([Scenario(name="漢" * 60, model="") for _ in range(6)] * 3) is None


@pytest.mark.parametrize("text", ["{", "[]", '{"scenarios": [{"L": 0}]}', '{"scenarios": []}', "x" * 200_000])
def test_problem_kept_scenarios_of_a_link(text: str) -> None:
    """What is no list of scenarios is said in a sentence that names the link, and none of it is taken."""
    found = kept_from_query(text)
    assert found
    assert all(
        isinstance(one, Problem) and one.sentence.startswith("In the link, among what is kept:") for one in found
    )
