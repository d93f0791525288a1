"""The page Traffic and the command that says the same: a synthetic example until a trace is given, and what runs."""

import json
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from sizing import Scenario
from sizing.traffic import words
from sizing.traffic.mix import mix_of_lengths
from sizing.traffic.running import Traffic, traffic_of
from sizing.traffic.workload import Workload, mix_of_workload, workload_to_query
from tests.conftest import Run
from tests.test_pages import codes, parts

TIMEOUT = 60  # seconds; the harness gives three unless told otherwise


def page(query: dict[str, str] | None = None) -> AppTest:
    """The page, opened by a link with so many parameters."""
    app = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    app.query_params.update(query or {})
    return app.run().switch_page("pages/traffic.py").run()


@pytest.fixture(scope="module")
def opened() -> AppTest:
    """The page as it opens; for tests that change nothing."""
    return page()


def said(page: AppTest) -> str:
    """All words of the page, with the escapes of Markdown taken out."""
    shown = [element.value for element in page.main if hasattr(element, "value") and isinstance(element.value, str)]
    return "\n".join(shown + [text for part in parts(page) for text in part.values()]).replace("\\", "")


def expected(workload: Workload, scenario: Scenario | None = None) -> Traffic:
    """What the core says."""
    return traffic_of(scenario or Scenario(), mix_of_workload(workload), workload.risk)


def test_it_opens_on_traffic_that_is_called_synthetic(opened: AppTest) -> None:
    """A worked example from a shape, labelled, with the core's own headline and flag."""
    assert not opened.exception
    traffic = expected(Workload())
    assert "Synthetic traffic, made from the shape “chat”, not from requests of yours." in said(opened)
    assert f"# {words.headline(traffic)}" in said(opened)
    best = traffic.way("best for this traffic")
    assert best is not None
    assert codes(opened)[0] == best.flag


def test_every_table_is_the_cores(opened: AppTest) -> None:
    """Each cell of the ways, the shifts and the lengths."""
    traffic, text = expected(Workload()), said(opened)
    rows = (*words.way_rows(traffic), *words.shift_rows(traffic), *words.length_rows(traffic))
    for row in rows:
        assert f"| {' | '.join(row)} |" in text


def test_another_shape_and_risk(opened: AppTest) -> None:
    """Boxes are read: what is shown follows."""
    app = page()
    app.selectbox(key="traffic_shape").set_value("agent")
    app.text_input(key="traffic_risk_percent").set_value("5").run()
    traffic = expected(Workload(shape="agent", risk_percent=5))
    assert f"# {words.headline(traffic)}" in said(app)
    assert "at most 5 % of the time" in words.headline(traffic)


def test_own_numbers_of_a_log_normal() -> None:
    """Four boxes more; what does not fit together is one sentence, and nothing typed is lost."""
    app = page()
    app.selectbox(key="traffic_shape").set_value("log-normal").run()
    app.text_input(key="traffic_median_input").set_value("6000")
    app.text_input(key="traffic_p95_input").set_value("22K").run()
    workload = Workload(shape="log-normal", median_input=6000, p95_input=22 * 1024)
    assert f"# {words.headline(expected(workload))}" in said(app)
    app.text_input(key="traffic_p95_input").set_value("100").run()
    assert not app.exception
    assert [error.value.replace("\\", "") for error in app.error] == [
        "The p95 of the input (100) is below its median (6,000). Correct one."
    ]
    assert app.text_input(key="traffic_median_input").value == "6000"


@pytest.mark.parametrize(
    ("key", "typed", "sentence"),
    [
        ("risk_percent", "0", "Risk that KV overflows [%] must be 0.01 or more, not “0”."),
        ("risk_percent", "nan", "Risk that KV overflows [%] must be a finite number, not “nan”."),
        ("idle_sessions", "-1", "Sessions between turns, all ranks must be 0 or more, not “-1”."),
        ("checkpoints", "1.5", "States that each keeps [slots] must be a whole number, not “1.5”."),
        ("session_tokens", "<b>", "KV that each keeps [tokens] must be a whole number, not “?b?”."),
    ],
)
def test_a_wrong_box_is_one_sentence(key: str, typed: str, sentence: str) -> None:
    """What is wrong, where, and what would be right; no number is shown."""
    app = page()
    app.text_input(key=f"traffic_{key}").set_value(typed).run()
    assert not app.exception
    assert [error.value.replace("\\", "") for error in app.error] == [sentence]
    assert not codes(app)


def test_sessions_between_turns_bind_residency() -> None:
    """Thirty sessions find two slots as set; the pin that keeps all of them is named."""
    app = page()
    app.text_input(key="traffic_idle_sessions").set_value("30").run()
    assert "2 of 30 | residency, state pool" in said(app)
    assert "--max-mamba-cache-size 506 --max-running-requests 95" in said(app)


def test_without_a_radix_cache_no_session_is_kept(sizing_command: Run) -> None:
    """No pin is proposed for what the engine does not do; the command says the same."""
    app = page({"disable_radix_cache": "true"} | workload_to_query(Workload(idle_sessions=30)))
    assert words.NOT_KEPT in said(app)
    assert "of 30" not in said(app)
    _, printed, _ = sizing_command(
        "traffic", "-", "chat", "--idle-sessions", "30", stdin='{"disable_radix_cache": true}'
    )
    assert words.NOT_KEPT in printed
    assert "--max-running-requests" not in printed


def test_a_link_fills_the_boxes() -> None:
    """What is stated travels; the deployment beside it."""
    workload = Workload(shape="agent", risk_percent=2.5, idle_sessions=7, session_tokens=4096)
    app = page(workload_to_query(workload) | {"tp_size": "16"})
    assert app.selectbox(key="traffic_shape").value == "agent"
    values = {key: app.text_input(key=f"traffic_{key}").value for key in ("risk_percent", "idle_sessions")}
    assert values == {"risk_percent": "2.5", "idle_sessions": "7"}
    assert app.text_input(key="traffic_session_tokens").value == "4096"


@pytest.mark.parametrize("text", ['{"risk_percent": 99}', "[]", "{", '{"shape": "<script>"}', '{"no": 1}', "x" * 5000])
def test_a_hostile_link_is_one_sentence(text: str) -> None:
    """It is said, and the page opens as it always does."""
    app = page({"traffic": text})
    assert not app.exception
    assert len(app.warning) == 1
    assert "In the link, of the traffic" in app.warning[0].value.replace("\\", "")
    assert app.text_input(key="traffic_risk_percent").value == "1"


def test_flags_that_are_refused_are_the_engines_sentence() -> None:
    """No number where the engine would not start."""
    app = page({"mamba_radix_cache_strategy": "no_buffer"})
    assert not app.exception
    assert "SGLang would refuse to start" in app.error[0].value.replace("\\", "")
    assert not codes(app)


def test_boxes_stay_over_a_page_change() -> None:
    """Streamlit drops a page's widgets; what stood in them is kept."""
    app = page()
    app.text_input(key="traffic_risk_percent").set_value("3").run()
    app.switch_page("pages/target.py").run()
    app.switch_page("pages/traffic.py").run()
    assert app.text_input(key="traffic_risk_percent").value == "3"


def test_the_command_says_the_same(sizing_command: Run) -> None:
    """Headline, ways and flag of the page; status 0."""
    status, printed, complained = sizing_command("traffic", "-", "chat", stdin="{}")
    assert (status, complained) == (0, "")
    traffic = expected(Workload())
    assert printed.splitlines()[0] == words.headline(traffic)
    for way in traffic.ways:
        assert way.flag in printed


@pytest.mark.parametrize(
    ("stated", "sentence"),
    [
        (
            {},
            "51 requests of this traffic run with KV overflowing at most 1 % of the time; "
            "the best split runs 77, 78 with no slot to spare.",
        ),
        (
            {"max_mamba_cache_size": 386},
            "77 requests of this traffic run with KV overflowing at most 1 % of the time; "
            "no split with a slot to spare runs more.",
        ),
        (
            {"max_mamba_cache_size": 390},
            "78 requests of this traffic run with KV overflowing at most 1 % of the time; no split runs more.",
        ),
    ],
)
def test_the_headline_says_what_the_spare_slot_costs(stated: dict[str, int], sentence: str) -> None:
    """The safe pin runs 77 requests of 8,005 tokens and a ratio, without a slot to spare, 78: both are said."""
    mix = mix_of_lengths("one", np.array([8005]))
    scenario = Scenario.model_validate(stated | ({"split": "pin"} if stated else {}))
    assert words.headline(traffic_of(scenario, mix, 0.01)) == sentence


def test_the_command_reads_a_trace(sizing_command: Run, tmp_path: Path) -> None:
    """A file in place of a shape, every number as JSON."""
    trace = tmp_path / "trace.csv"
    trace.write_text("input_len,output_len\n8192,1024\n8192,1024\n", encoding="utf-8")
    status, printed, _ = sizing_command("traffic", "-", str(trace), "--json", stdin="{}")
    found = json.loads(printed)
    assert status == 0
    assert found["traffic"]["requests"] == 2
    assert found["optimum"]["runs"] == 74  # the worked example at 9,216: test_worked_example.py
    assert found["ways"][0]["now"]["by_kv"] == 126


@pytest.mark.parametrize(
    ("trace", "arguments", "sentence"),
    [
        ("input_len,output_len\n100,-3\n", (), "output"),
        (None, (), "cannot be opened"),
        ("a,b\n1,2\n", (), "has no columns known to hold lengths"),
        ("a,b\n1,2\n", ("--input-column", "a", "--output-column", "c"), "has no column “c”"),
        ("input_len,output_len\n1,2\n", ("--risk-percent", "x"), "Risk that KV overflows [%] must be a number"),
    ],
)
def test_the_command_refuses_in_a_sentence(
    sizing_command: Run, tmp_path: Path, trace: str | None, arguments: tuple[str, ...], sentence: str
) -> None:
    """Status 2, one line, no number."""
    path = tmp_path / "trace.csv"
    if trace is not None:
        path.write_text(trace, encoding="utf-8")
    status, printed, complained = sizing_command("traffic", "-", str(path), *arguments, stdin="{}")
    assert (status, printed) == (2, "")
    assert sentence in complained
    assert len(complained.splitlines()) == 1
