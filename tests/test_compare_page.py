"""The page Compare: scenarios kept from any page, side by side; the sweep; files, sheets and numbers to take away."""

import json
from datetime import date
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.sheet import FAULTY, MADE
from sizing import Scenario, solve
from sizing.__main__ import main
from sizing.carried import Want
from sizing.compare import differing_inputs, names_of, results, solved
from sizing.figures import DARK, LIGHT, painted
from sizing.figures.compare import compare_figure
from sizing.files import from_file, to_file
from sizing.link import KEPT, WANT, kept_to_query
from sizing.sheet import sheet_of

TIMEOUT = 60  # seconds; the harness gives three unless told otherwise
THREE = (Scenario(), Scenario(split="balanced"), Scenario(mamba_radix_cache_strategy="extra_buffer_lazy", L=32_768))


@pytest.fixture
def balance() -> AppTest:
    """The balance page, from which scenarios are kept."""
    return AppTest.from_file("../app.py", default_timeout=TIMEOUT).run()


def words(page: AppTest) -> str:
    """All words of the page, with the escapes of Markdown taken out."""
    shown = [element.value for element in page.main if hasattr(element, "value") and isinstance(element.value, str)]
    return "\n".join(shown).replace("\\", "")


def test_scenarios_are_kept_and_compared(balance: AppTest) -> None:
    """Kept from the balance page, changed, kept again: two columns, the difference in brackets."""
    balance.button(key="keep").click().run()
    balance.session_state["split"] = "balanced"
    balance.run()
    balance.button(key="keep").click().run()
    page = balance.switch_page("pages/compare.py").run()
    assert not page.exception
    text = words(page)
    assert "2 side by side" in text
    assert "| runs at L | 51 | 74 (+23) |" in text
    assert "| Split by | ratio | balanced |" in text
    page.button(key="remove_0").click().run()
    assert "1 side by side" in words(page)


def test_seven_cannot_be_kept(balance: AppTest) -> None:
    """Six are the most that can be told apart; the button says so."""
    for _ in range(6):
        balance.button(key="keep").click().run()
    assert balance.button(key="keep").disabled
    assert balance.button(key="keep").label == "6 are kept"


def test_names_are_unique_and_results_are_those_of_solve() -> None:
    """Each column is a solve of its own."""
    assert names_of(THREE) == ("Kimi-K3, TP8", "Kimi-K3, TP8 (2)", "Kimi-K3, TP8 (3)")
    rows = {row.quantity: row.cells for row in results(solved(THREE))}
    assert rows["runs at L"] == ("51", "74 (+23)", "35 (-16)")
    assert {row.quantity for row in differing_inputs(THREE)} == {"L", "Split by", "--mamba-radix-cache-strategy"}
    assert differing_inputs((Scenario(), Scenario())) == ()


def test_compare_figure_is_strict_json_in_both_palettes() -> None:
    """A refused scenario has no line and is said to be refused; nothing is NaN."""
    named = {"one": solve(THREE[0]), "two": solve(THREE[2]), "none": solve(Scenario(rest_gib=0.1))}
    for palette in (LIGHT, DARK):
        text = json.dumps(painted(compare_figure(named), palette), allow_nan=False)
        assert '"@' not in text
        assert "none: refused" in text
    assert len(compare_figure(named)["data"]) == 3  # two lines and their names


def test_a_scenario_survives_every_way_round(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """Page to file to command line to file to page: unchanged, and which one of several is asked for."""
    folder = tmp_path_factory.mktemp("files")
    saved, out = folder / "scenarios.json", folder / "out.json"
    saved.write_text(to_file(THREE), encoding="utf-8")
    for at, scenario in enumerate(THREE, start=1):
        assert main(["plan", str(saved), "--scenario", str(at), "--save", str(out)]) == 0
        assert from_file(out.read_text(encoding="utf-8")) == [scenario]
        assert main(["plan", str(out), "--sheet", str(folder / "out.html")]) == 0
    assert "35 requests run at L = 32,768" in (folder / "out.html").read_text(encoding="utf-8")
    assert main(["plan", str(saved), "--scenario", "2", "--sheet", str(folder / "all.html")]) == 0
    assert (folder / "all.html").read_text(encoding="utf-8") == sheet_of(THREE[1], on=date.today(), kept=THREE)
    capsys.readouterr()
    for wrong in ([], ["--scenario", "4"], ["--scenario", "0"]):
        with pytest.raises(SystemExit):
            main(["plan", str(saved), *wrong])
        assert "It holds 3" in capsys.readouterr().err


def test_the_sheet_that_cannot_be_written_is_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback: what is wrong and where."""
    empty: Path = tmp_path_factory.mktemp("files") / "empty.json"
    empty.write_text("{}", encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["plan", str(empty), "--sheet", str(empty.parent / "no" / "such" / "out.html")])
    assert "cannot be written" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["plan", str(empty), "--sheet", str(empty.parent / "out.txt")])
    assert "ends in neither .html nor .pdf" in capsys.readouterr().err


def test_the_sweep_follows_the_two_inputs(balance: AppTest) -> None:
    """Any two inputs; the same one twice is said to be no sweep."""
    page = balance.switch_page("pages/compare.py").run()
    assert not page.exception
    page.selectbox(key="sweep_y").set_value("rest_gib").run()
    assert not page.exception
    page.selectbox(key="sweep_y").set_value("L").run()
    assert not page.exception
    assert page.info


def test_the_inputs_of_the_sweep_stay_over_page_changes(balance: AppTest) -> None:
    """What was chosen on Compare is still chosen after a look at another page."""
    page = balance.switch_page("pages/compare.py").run()
    page.selectbox(key="sweep_y").select("dcp_size").run()
    page.switch_page("app.py").run()
    page.switch_page("pages/compare.py").run()
    assert page.selectbox(key="sweep_y").value == "dcp_size"


@pytest.fixture
def _no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Chromium, which would take seconds to print each sheet."""
    monkeypatch.setenv("CHROMIUM", "none")


def downloads(page: AppTest) -> list[str]:
    """What can be taken from the page."""
    return [button.proto.label for button in page.get("download_button")]


@pytest.mark.usefixtures("_no_pdf")
def test_a_sheet_is_made_on_request(balance: AppTest) -> None:
    """The button makes it; a change of the scenario takes it away again."""
    page = balance.switch_page("pages/compare.py").run()
    assert downloads(page)[0] == "Result, JSON"
    page.button(key="make_sheet").click().run()
    assert not page.exception
    assert downloads(page)[:2] == ["Sheet, HTML", "Result, JSON"]
    page.session_state["L"] = "16384"
    assert downloads(page.run())[0] == "Result, JSON"


@pytest.mark.usefixtures("_no_pdf")
def test_the_sheet_carries_what_is_kept_and_what_is_wanted() -> None:
    """Both are said before, are on it, and take it away again where they change; it is the same on Target."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params[KEPT] = (kept_to_query(THREE) or {})[KEPT]
    page.query_params[WANT] = "96\n32K 16"
    page = page.run().switch_page("pages/compare.py").run()
    target = "the target of 96 requests of L = 9,216 and 16 requests of L = 32,768"
    assert f"On the sheet: the scenario of the sidebar, {target}, 3 scenarios side by side." in words(page)
    page.button(key="make_sheet").click().run()
    html = page.session_state[MADE][1]
    wants = (Want(L=9216, requests=96), Want(L=32_768, requests=16))
    assert html == sheet_of(Scenario(), on=date.today(), kept=THREE, wants=wants)
    page.switch_page("pages/target.py").run()
    assert downloads(page) == ["Sheet, HTML"]
    page.text_input(key="target_requests").set_value("64").run()
    assert downloads(page) == []


@pytest.mark.usefixtures("_no_pdf")
def test_a_target_that_cannot_be_read_is_left_off_the_sheet() -> None:
    """A sentence says so on both pages, and the sheet is made."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params[WANT] = "many"
    page.run()
    for name in ("pages/compare.py", "pages/target.py"):
        page.switch_page(name).run()
        assert [warning.value for warning in page.warning] == [FAULTY]
        page.button(key="make_sheet").click().run()
        assert not page.exception
        assert page.session_state[MADE][1] == sheet_of(Scenario(), on=date.today())


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ((kept_to_query(THREE) or {})[KEPT], "3 side by side"),
        ('{"scenarios": [{"L": 0}]}', "Nothing is kept yet"),
    ],
)
def test_a_link_brings_what_is_kept(query: str, columns: str) -> None:
    """A link to all of them opened afresh: the same columns; a broken one is said and the page stands."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params[KEPT] = query
    said = "In the link, among what is kept:" in words(page.run())
    page.switch_page("pages/compare.py").run()
    assert not page.exception
    assert columns in words(page)
    assert said == (columns == "Nothing is kept yet")
