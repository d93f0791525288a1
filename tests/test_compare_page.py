"""The page Compare: scenarios kept from any page, side by side; the sweep; files, sheets and numbers to take away."""

import json
from datetime import date
from itertools import pairwise
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.presented import PRESENT
from pages.parts.sheet import FAULTY, MADE
from sizing import Scenario, solve
from sizing.answers.carrying_settings import Want
from sizing.answers.compare import differing_inputs, headline_of, names_of, results, solved
from sizing.cli.main import main
from sizing.exchange.link import KEPT, WANT, kept_to_query
from sizing.exchange.scenario_file import from_file, to_file
from sizing.figures import DARK, LIGHT, painted
from sizing.figures.compare import compare_figure
from sizing.figures.placement import spread, wrapped
from sizing.sheet import sheet_of
from tests.test_pages import component_data, words

TIMEOUT = 60  # seconds; the harness gives three unless told otherwise
THREE = (Scenario(), Scenario(split="balanced"), Scenario(mamba_radix_cache_strategy="extra_buffer_lazy", L=32_768))


@pytest.fixture
def balance() -> AppTest:
    """The balance page, from which scenarios are kept."""
    return AppTest.from_file("../app.py", default_timeout=TIMEOUT).run()


def test_scenarios_are_kept_and_compared(balance: AppTest) -> None:
    """Kept from the balance page, changed, kept again: two columns, the difference in brackets."""
    balance.button(key="keep").click().run()
    balance.session_state["split"] = "balanced"
    balance.run()
    balance.button(key="keep").click().run()
    page = balance.switch_page("pages/compare.py").run()
    assert not page.exception
    text = words(page)
    assert (
        "# 74 run (Kimi-K3, TP8, balanced) beside 51 (Kimi-K3, TP8, r = 0.9) at L = 9,216: 1.45 times as many" in text
    )
    assert "| runs at L | 51 | 74 (+23) |" in text
    assert "Kimi-K3, TP8, balanced" in text
    assert "| Split by | ratio | balanced |" in text
    page.button(key="remove_0").click().run()
    assert "1 is kept: 74 requests at once" in words(page)


def test_seven_cannot_be_kept(balance: AppTest) -> None:
    """Six are the most that can be told apart; the button says so."""
    for _ in range(6):
        balance.button(key="keep").click().run()
    assert balance.button(key="keep").disabled
    assert balance.button(key="keep").label == "Keep (6, full)"


def test_results_are_those_of_solve() -> None:
    """Each column is a solve of its own."""
    rows = {row.quantity: row.cells for row in results(solved(THREE))}
    assert rows["runs at L"] == ("51", "74 (+23)", "35 (-16)")
    assert {row.quantity for row in differing_inputs(THREE)} == {"L", "Split by", "--mamba-radix-cache-strategy"}
    assert differing_inputs((Scenario(), Scenario())) == ()


@pytest.mark.parametrize(
    ("scenarios", "names"),
    [
        (THREE, ("Kimi-K3, TP8", "Kimi-K3, TP8, balanced", "Kimi-K3, TP8, S = 4, L = 32K")),
        ((Scenario(), Scenario()), ("Kimi-K3, TP8", "Kimi-K3, TP8 (2)")),
        (
            (Scenario(), Scenario(skip_decode_lock=True)),
            ("Kimi-K3, TP8, S = 5", "Kimi-K3, TP8, S = 4"),
        ),
        (
            (Scenario(mamba_ssm_dtype="bfloat16"), Scenario(name="mine", D=4), Scenario(L=32_768)),
            ("Kimi-K3, TP8, bfloat16 state, L = 9K", "mine", "Kimi-K3, TP8, float32 state, L = 32K"),
        ),
        # What is no default is told however many have it.
        (
            (Scenario(), Scenario(D=4), Scenario(D=4, dcp_size=4)),
            ("Kimi-K3, TP8, no drafts", "Kimi-K3, TP8, D = 4", "Kimi-K3, TP8, dcp_size = 4, D = 4"),
        ),
        # One S by two ways is told by the ways; a refused one has no S.
        (
            (Scenario(mamba_radix_cache_strategy="extra_buffer"), Scenario(mamba_radix_cache_strategy="no_buffer")),
            ("Kimi-K3, TP8, S = 5", "Kimi-K3, TP8, no_buffer"),
        ),
        (
            (Scenario(), Scenario(mamba_radix_cache_strategy="extra_buffer")),
            ("Kimi-K3, TP8, auto strategy", "Kimi-K3, TP8, extra_buffer"),
        ),
        # What was typed stays as typed, whatever comes before it.
        ((Scenario(), Scenario(name="Kimi-K3, TP8")), ("Kimi-K3, TP8 (2)", "Kimi-K3, TP8")),
        ((Scenario(name="a"), Scenario(name="a")), ("a", "a (2)")),
        (
            (Scenario(model="", kv_bytes_per_token=1024), Scenario(model="")),
            ("typed bytes, TP8, token 1,024 B", "typed bytes, TP8, token 13,824 B"),
        ),
    ],
)
def test_names_say_what_differs(scenarios: tuple[Scenario, ...], names: tuple[str, ...]) -> None:
    """Unique, at most two inputs, none where nothing sets one apart."""
    assert names_of(scenarios) == names


def test_compare_figure_is_strict_json_in_both_palettes() -> None:
    """A refused scenario has no line and is said to be refused; nothing is NaN."""
    named = {"one": solve(THREE[0]), "two": solve(THREE[2]), "none": solve(Scenario(rest_gib=0.1))}
    for palette in (LIGHT, DARK):
        text = json.dumps(painted(compare_figure(named), palette), allow_nan=False)
        assert '"@' not in text
        assert "none: refused" in text
    assert [trace["name"] for trace in compare_figure(named)["data"]] == ["one", "two", "threads", "marks", "names"]


def test_compare_figure_marks_each_at_its_own_length() -> None:
    """The mark lies on its line at what runs there, and says it; one that lies beyond the axes has none."""
    named = {"one": solve(THREE[0]), "two": solve(THREE[2]), "far": solve(Scenario(L=2**24))}
    traces = {trace["name"]: trace for trace in compare_figure(named)["data"]}
    marks = traces["marks"]
    assert (marks["x"], marks["y"], marks["text"]) == ([9216, 32_768], [51, 35], ["<b>51</b>", "<b>35</b>"])
    for name, L, runs in (("one", 9216, 51), ("two", 32_768, 35)):
        assert traces[name]["y"][traces[name]["x"].index(L)] == runs
    assert set(traces["names"]["text"]) == {"<b>51 at 9K:</b> one", "<b>35 at 32K:</b> two", "far"}


def test_six_lines_differ_in_colour_dash_and_mark() -> None:
    """No two scenarios share a colour or a mark, nor dash and width; none has a colour of a pool."""
    traces = {
        trace["name"]: trace for trace in compare_figure({f"s{at}": solve(Scenario()) for at in range(6)})["data"]
    }
    lines = [traces[f"s{at}"]["line"] for at in range(6)]
    for palette in (LIGHT, DARK):
        colours = {painted(line["color"], palette) for line in lines}
        assert len(colours) == 6
        assert not colours & {palette["@state"], palette["@kv"]}
    assert len({(line["dash"], line["width"]) for line in lines}) == 6
    assert len(set(traces["names"]["marker"]["symbol"])) == 6
    assert traces["marks"]["text"].count("<b>51</b>") == 1  # what all have in common is written once


def test_names_beside_lines_stand_apart_in_the_margin() -> None:
    """Six at one height move apart and stay below the top; a long name is wrapped, then cut."""
    heights = [17.0, 32.0, 17.0, 47.0, 17.0, 17.0]
    for wanted in ([0.0] * 6, [250.0] * 6, [0, 10, 20, 200, 201, 202]):
        found = spread(wanted, heights, 260)
        edges = [(at - height / 2, at + height / 2) for at, height in zip(found, heights, strict=True)]
        assert all(above[0] >= below[1] - 1e-9 for below, above in pairwise(edges))
        assert edges[-1][1] <= 260
        assert edges[0][0] >= 0
    assert wrapped("Kimi-K3, TP8") == "Kimi-K3, TP8"
    assert wrapped("Qwen3-Next-80B-A3B-Instruct, TP4, S = 4").count("<br>") == 1
    assert wrapped("Kimi-K3, TP8, S = 4", 18) == "Kimi-K3, TP8,<br>S = 4"
    assert wrapped("W" * 60).endswith("…") or wrapped("W" * 60).count("<br>") == 2


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
        assert main(["plan", str(saved), *wrong]) == 2
        assert "It holds 3" in capsys.readouterr().err


def test_the_sheet_that_cannot_be_written_is_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    """No traceback: what is wrong and where."""
    empty: Path = tmp_path_factory.mktemp("files") / "empty.json"
    empty.write_text("{}", encoding="utf-8")
    assert main(["plan", str(empty), "--sheet", str(empty.parent / "no" / "such" / "out.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert main(["plan", str(empty), "--sheet", str(empty.parent / "out.txt")]) == 2
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


@pytest.mark.parametrize("page", ["compare", "target"])
def test_a_presented_page_has_nothing_to_press(page: str) -> None:
    """Headline, figures and tables, with what was wanted and swept; no box, no button and no link."""
    shown = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    shown.query_params[PRESENT] = ""
    shown.query_params[KEPT] = (kept_to_query(THREE) or {})[KEPT]
    shown.query_params[WANT] = "96"
    shown.run().switch_page(f"pages/{page}.py").run()
    assert not shown.exception
    said = {
        "compare": "74 run (Kimi-K3, TP8, balanced) beside 35",
        "target": "96 requests of L = 9,216 do not fit: at most 74.",
    }
    assert said[page] in words(shown)
    drawn = {element.type for element in shown.main if element.key != "leave"}
    boxes = {"text_input", "text_area", "selectbox", "button", "download_button", "file_uploader", "page_link"}
    assert not drawn & boxes


def test_the_button_presents_with_what_is_kept_and_wanted() -> None:
    """The address it makes opens the same page elsewhere; the axes that were chosen stay."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params["D"] = "4"
    page.query_params[WANT] = "96\n32K 16"
    page.run().button(key="keep").click().run()
    page.switch_page("pages/compare.py").run().selectbox(key="sweep_y").select("dcp_size").run()
    page.button(key="remove_0").click().run()
    page.button(key="present").click().run()
    assert set(page.query_params) == {"D", WANT, PRESENT}
    assert page.query_params[WANT] == "96\n32K 16"
    assert "Requests that run over L and --dcp-size." in component_data(page.get("bidi_component")[-1])


def test_boxes_are_kept_for_the_next_page_and_nothing_else_is() -> None:
    """What pages note stands beside what the boxes held, under keys that no box has: a browser goes back over it."""

    def noting() -> None:
        from pages.parts import state
        from pages.parts.kept import KEPT_DRAWN, forget_rows

        for key in (state.HELD, state.DRAWN, state.SLIDERS, state.WHOLE):
            state.note(key, "another")
        state.note(KEPT_DRAWN, 1)
        state.fill("box", "before")
        state.note("box", "now")
        state.keep_boxes()
        forget_rows()

    page = AppTest.from_function(noting).run()
    assert not page.exception
    assert page.session_state["kept_drawn"] == 2
    assert page.session_state["stood in box"] == "now"


def test_a_row_that_is_gone_changes_nothing(balance: AppTest) -> None:
    """A name that a browser still sends for a row that was removed meanwhile is too late."""
    balance.button(key="keep").click().run()
    page = balance.switch_page("pages/compare.py").run()
    box = page.text_input(key="kept_name_0_0")
    page.session_state["kept_scenarios"] = []
    page.session_state["kept_drawn"] = 1
    box.set_value("late").run()
    assert not page.exception
    assert page.session_state["kept_scenarios"] == []


def test_a_name_is_taken_or_refused_in_a_sentence(balance: AppTest) -> None:
    """What no scenario can be called stays in its box with the reason, and nothing else changes."""
    balance.button(key="keep").click().run()
    page = balance.switch_page("pages/compare.py").run()
    page.text_input(key="kept_name_0_0").set_value("tonight").run()
    assert page.session_state["kept_scenarios"] == [Scenario(name="tonight")]
    page.text_input(key="kept_name_0_0").set_value("<b>").run()
    assert page.session_state["kept_scenarios"] == [Scenario(name="tonight")]
    assert ["Name may hold letters" in error.value for error in page.error] == [True]


@pytest.fixture
def _no_pdf(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Chromium, which would take seconds to print each sheet."""
    monkeypatch.setenv("CHROMIUM", "none")


def downloads(page: AppTest) -> list[str]:
    """What can be taken from the page."""
    return [button.proto.label for button in page.get("download_button")]


def with_sheet(page: AppTest) -> AppTest:
    """The page with what the bar holds under Sheet unfolded."""
    page.run().session_state["sheet_of_this"] = True
    return page.run()


@pytest.mark.usefixtures("_no_pdf")
def test_a_sheet_is_made_on_request(balance: AppTest) -> None:
    """The button makes it; a change of the scenario takes it away again."""
    page = with_sheet(balance.switch_page("pages/compare.py"))
    assert downloads(page)[0] == "Result, JSON"
    page.button(key="make_sheet").click().run()
    assert not page.exception
    page.run()
    assert downloads(page)[:2] == ["Sheet, HTML", "Result, JSON"]
    page.session_state["L"] = "16384"
    assert downloads(page.run().run())[0] == "Result, JSON"


@pytest.mark.usefixtures("_no_pdf")
def test_the_sheet_carries_what_is_kept_and_what_is_wanted() -> None:
    """Both are said before, are on it, and take it away again where they change; it is the same on Target."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params[KEPT] = (kept_to_query(THREE) or {})[KEPT]
    page.query_params[WANT] = "96\n32K 16"
    page = with_sheet(page.run().switch_page("pages/compare.py"))
    target = "the target of 96 requests of L = 9,216 or 16 requests of L = 32,768"
    assert f"On the sheet: the scenario of the sidebar, {target}, 3 scenarios side by side." in words(page)
    page.button(key="make_sheet").click().run()
    html = page.session_state[MADE][1]
    wants = (Want(L=9216, requests=96), Want(L=32_768, requests=16))
    assert html == sheet_of(Scenario(), on=date.today(), kept=THREE, wants=wants)
    with_sheet(page.switch_page("pages/target.py"))
    assert downloads(page) == ["Sheet, HTML"]
    page.text_input(key="target_requests").set_value("64").run().run()
    assert downloads(page) == []


@pytest.mark.usefixtures("_no_pdf")
def test_a_target_that_cannot_be_read_is_left_off_the_sheet() -> None:
    """A sentence says so on both pages, and the sheet is made."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params[WANT] = "many"
    page.run()
    for name in ("pages/compare.py", "pages/target.py"):
        with_sheet(page.switch_page(name))
        assert [warning.value for warning in page.warning] == [FAULTY]
        page.button(key="make_sheet").click().run()
        assert not page.exception
        assert page.session_state[MADE][1] == sheet_of(Scenario(), on=date.today())


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ((kept_to_query(THREE) or {})[KEPT], "74 run (Kimi-K3, TP8, balanced) beside 35"),
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


@pytest.mark.parametrize(
    ("L", "said"),
    [
        (9216, "2 side by side, at L = 9,216: 51 to 74 requests at once"),
        (32_768, "2 side by side, each at its own L: 41 to 51 requests at once"),
    ],
)
def test_the_headline_says_at_which_length(L: int, said: str) -> None:
    """One L where all have it."""
    assert headline_of(solved((Scenario(), Scenario(split="balanced", L=L)))) == said


def test_the_static_split_of_unified_memory_is_said() -> None:
    """The page and the sheet name the scenario whose flag is set; of others nothing is said."""
    one = Scenario(name="one buffer", page_size=1, enable_unified_memory=True)
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params[KEPT] = (kept_to_query((Scenario(), one)) or {})[KEPT]
    page.run()
    text = words(page.switch_page("pages/compare.py").run())
    said = "--enable-unified-memory is set in one buffer, compared is the static split"
    assert not page.exception
    assert text.count(said) == 1
    assert said in sheet_of(Scenario(), on=date(2026, 1, 1), kept=[Scenario(), one])
    assert "compared is the static split" not in sheet_of(
        Scenario(), on=date(2026, 1, 1), kept=[Scenario(), Scenario(D=4)]
    )
