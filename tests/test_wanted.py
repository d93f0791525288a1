"""What is wanted, from text and to a link and back."""

import pytest

from sizing.answers.carrying_settings import Want
from sizing.exchange.link import MAX_WANT_LENGTH, WANT, wants_from_query, wants_to_query
from sizing.exchange.target_text import MAX_LINES, read_wants
from sizing.scenario.inputs import MAX_L, MAX_REQUESTS


@pytest.mark.parametrize(
    ("requests", "further", "wants"),
    [
        ("", [], []),
        (" ", ["", " "], []),
        ("1,000", [], [(9216, 1000)]),
        ("64", ["32K 16", "", "64K:8", "1M\t1"], [(9216, 64), (32_768, 16), (65_536, 8), (1_048_576, 1)]),
        ("", ["32K 16"], [(32_768, 16)]),
    ],
)
def test_text_is_read(requests: str, further: list[str], wants: list[tuple[int, int]]) -> None:
    """Requests at the scenario's L first; blank parts want nothing."""
    assert read_wants(9216, requests, further) == ([Want(L=L, requests=many) for L, many in wants], [])


def test_problem_each_part_that_cannot_be_read_has_its_sentence() -> None:
    """All of them at once, by the names that the reader knows."""
    labels = {"requests": "REQUESTS"}
    _, problems = read_wants(9216, "none", ["4", "0:4", "32K many"], line="--also {}", labels=labels)
    assert [problem.sentence for problem in problems] == [
        "--also 1 must hold two numbers, L and requests, such as 32K 16.",
        "REQUESTS must be a whole number, not “none”.",
        "--also 2: L must be 1 or more, not “0”.",
        "--also 3: Wanted requests must be a whole number, not “many”.",
    ]
    assert "give at most 12" in read_wants(9216, "", ["1 1"] * 13)[1][0].sentence


@pytest.mark.parametrize(
    "wants",
    [
        [],
        [Want(L=9216, requests=96)],
        [Want(L=32_768, requests=16)],
        [Want(L=9216, requests=96), Want(L=9216, requests=4)],
        [Want(L=MAX_L, requests=MAX_REQUESTS)] * MAX_LINES,
    ],
    ids=len,
)
def test_a_link_brings_it_back(wants: list[Want]) -> None:
    """Also where nothing is wanted at the scenario's own L, and never cut by the bound on a stranger's text."""
    text = wants_to_query(9216, wants).get(WANT, "")
    assert len(text) <= MAX_WANT_LENGTH
    requests, further = wants_from_query(text)
    assert read_wants(9216, requests, further.splitlines()) == (wants, [])
