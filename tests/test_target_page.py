"""The page Target and the command that says the same: what fits, what does not, and what would."""

from datetime import date
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sizing import Scenario, solve
from sizing.answers.carrying_settings import Want
from sizing.answers.target import aim
from sizing.exchange.link import WANT
from sizing.exchange.scenario_file import to_file
from sizing.explain.target_words import way_rows
from sizing.sheet import sheet_of
from tests.conftest import Run
from tests.test_pages import codes, words

TIMEOUT = 30  # seconds; the harness gives three unless told otherwise


@pytest.fixture
def page() -> AppTest:
    """The page, opened without a link."""
    return AppTest.from_file("../app.py", default_timeout=TIMEOUT).run().switch_page("pages/target.py").run()


def ask(page: AppTest, requests: str, more: str = "") -> AppTest:
    """Type what is wanted."""
    page.text_input(key="target_requests").set_value(requests)
    page.text_area(key="target_more").set_value(more)
    return page.run()


def test_the_page_opens_filled_in(page: AppTest) -> None:
    """It shows an answer at once; emptied, it asks, and solves nothing."""
    assert not page.exception
    assert page.text_input(key="target_requests").value == "64"
    assert "64 requests of L = 9,216 fit." in words(page)
    emptied = ask(page, "")
    assert not emptied.exception
    assert "How many requests do you want to run?" in words(emptied)


def test_a_target_that_fits_names_the_flags(page: AppTest) -> None:
    """64 requests at 9,216: the flags of the page, solved forward, run them."""
    text = words(ask(page, "64"))
    assert "64 requests of L = 9,216 fit." in text
    setting = aim(Scenario(), [Want(L=9216, requests=64)]).setting
    assert setting is not None
    assert codes(page)[0] == " \\\n  ".join(setting.flags)
    now = solve(setting.scenario).now
    assert getattr(now, "runs", 0) >= 64


def test_a_target_that_does_not_fit_names_what_would(page: AppTest) -> None:
    """96 requests: at most 74 as it stands, and the ways and points of the specification's deployment."""
    text = words(ask(page, "96"))
    assert "96 requests of L = 9,216 do not fit: at most 74." in text
    for said in ("| 86 |", "| 103 |", "| 112 |", "| 125 |", "L 6,720 instead of 9,216", "rest 31.59 GiB per rank"):
        assert said in text


def test_several_lengths_are_carried_by_one_setting(page: AppTest) -> None:
    """Each line is one more length."""
    assert (
        "Each length alone: 10 requests of L = 9,216 or 4 requests of L = 65,536 fit. For both at once use Traffic."
        in words(ask(page, "10", "64K 4"))
    )


@pytest.mark.parametrize(
    ("requests", "more", "sentence"),
    [
        ("0", "", "Wanted requests must be 1 or more, not “0”."),
        ("many", "", "Wanted requests must be a whole number, not “many”."),
        ("4", "32K", "Line 1 must hold two numbers, L and requests, such as 32K 16."),
        ("4", "32K 1\n0 4", "Line 2: L must be 1 or more, not “0”."),
        ("4", "1 1\n" * 13, "There are 13 further lengths: give at most 12."),
    ],
)
def test_what_cannot_be_wanted_is_a_sentence(page: AppTest, requests: str, more: str, sentence: str) -> None:
    """No exception, no answer, and the text stays."""
    asked = ask(page, requests, more)
    assert not asked.exception
    assert sentence in [error.value.replace("\\", "") for error in asked.error]
    assert asked.text_input(key="target_requests").value == requests


@pytest.fixture
def target(sizing_command: Run) -> Run:
    """`target - ARGUMENTS` on a scenario."""
    return lambda text, *arguments: sizing_command("target", "-", *arguments, stdin=text)


def test_the_command_says_what_fits_and_what_would(target: Run) -> None:
    """Status 0 with the flags, 1 with the ways, 2 for what cannot be wanted."""
    assert target("{}", "74") == (0, "74 requests of L = 9,216 fit.\n--max-mamba-cache-size 371\n", "")
    status, printed, said = target("{}", "96")
    assert (status, said) == (1, "")
    assert printed.startswith("96 requests of L = 9,216 do not fit: at most 74.\n")
    assert "rest 36.61 GiB per rank instead of 28.529 GiB" in printed
    assert target("{}", "4", "--length", "32K")[0] == 0
    assert target("{}", "none") == (2, "", "REQUESTS must be a whole number, not “none”.\n")
    assert target("{}", "") == (2, "", "REQUESTS is empty: give a number.\n")
    assert target("{}", "4", "--length", "0") == (2, "", "L must be 1 or more, not “0”.\n")


def test_the_command_takes_further_lengths(target: Run) -> None:
    """As the page's lines do: one setting for all, and a sentence for each that cannot be read."""
    status, printed, said = target("{}", "10", "--also", "64K:4", "--also", "128K 1")
    assert (status, said) == (0, "")
    assert printed.startswith(
        "Each length alone: 10 requests of L = 9,216 or 4 requests of L = 65,536 or 1 request of L = 131,072 fit. "
        "For all at once use Traffic.\n"
    )
    assert target("{}", "10", "--also", "64K", "--also", "64K:none") == (
        2,
        "",
        "--also 1 must hold two numbers, L and requests, such as 32K 16.\n"
        "--also 2: Wanted requests must be a whole number, not “none”.\n",
    )


def test_the_command_writes_the_sheet_with_the_target(target: Run, tmp_path: Path) -> None:
    """The target and all that the file holds, of the scenario at the length that is asked for."""
    kept = [Scenario(), Scenario(split="balanced")]
    out = tmp_path / "out.html"
    arguments = ("96", "--also", "32K:16", "--scenario", "2", "--length", "8K", "--sheet", str(out))
    assert target(to_file(kept), *arguments)[0] == 1
    wants = [Want(L=8192, requests=96), Want(L=32_768, requests=16)]
    sheet = sheet_of(Scenario(split="balanced", L=8192), on=date.today(), kept=kept, wants=wants)
    assert out.read_text(encoding="utf-8") == sheet


def test_a_link_brings_what_is_wanted() -> None:
    """The boxes of a fresh page hold what the link asks for, however long a stranger made it."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params[WANT] = "96\n32K 16"
    page.run()
    page.switch_page("pages/target.py").run()
    assert not page.exception
    assert page.text_input(key="target_requests").value == "96"
    assert page.text_area(key="target_more").value == "32K 16"
    endless = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    endless.query_params[WANT] = "9" * 10_000
    endless.run()
    endless.switch_page("pages/target.py").run()
    assert not endless.exception
    assert len(endless.error) == 1


def test_what_a_way_sets_is_the_pin_of_the_whole_deployment() -> None:
    """Under attention DP a pin is that of all ranks, not the slots of one: put in, it carries what is wanted."""
    scenario = Scenario(attn_dp_size=2, rest_gib=20.0)
    answer = aim(scenario, [Want(L=9216, requests=140)])
    fitting = [
        (row, cells) for row, cells in zip(answer.rows, way_rows(answer, answer.rows), strict=True) if row.setting
    ]
    assert fitting
    for row, (_, _, split, _) in fitting:
        assert row.setting is not None
        assert row.setting.pin == 2 * row.setting.slots
        assert split.partition(",")[0] == f"pin {row.setting.pin:,}"
