"""Every page in Streamlit's own harness, with real numbers: what a page says is what `solve` says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.inputs import FOLD, SPLITS
from pages.parts.state import HELD, TYPED
from pages.parts.words import FENCE
from sizing import RefusedError, Scenario, solve
from sizing.answers.recommended import recommended
from sizing.explain.verdict import verdict
from sizing.figures import crossing_figure, memory_figure, ratio_figure
from sizing.scenario.inputs import INPUTS
from sizing.scenario.registry import OPEN

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT = 30  # seconds; the harness gives three unless told otherwise, and slow machines need more


@pytest.fixture
def balance() -> AppTest:
    """The balance page, opened without a link."""
    return AppTest.from_file("../app.py", default_timeout=TIMEOUT).run()


def words(page: AppTest) -> str:
    """All words of the main column, with the escapes of Markdown taken out."""
    shown = [element.value for element in page.main if hasattr(element, "value") and isinstance(element.value, str)]
    return (
        "\n".join(shown + [text for part in parts(page) for text in part.values()])
        .replace("\\", "")
        .replace("\N{NO-BREAK SPACE}", " ")
    )


def components(page: AppTest) -> list[dict[str, Any]]:
    """What each of the page's own components is given."""
    found = [json.loads(component_data(component) or "{}") for component in page.get("bidi_component")]
    return [data for data in found if data and "pages" not in data]  # the others are the frame's own


def parts(page: AppTest) -> list[dict[str, str]]:
    """The words that follow a slider, part by part."""
    return [part for data in components(page) for part in data.get("parts", [])]


def codes(page: AppTest) -> list[str]:
    """What there is to copy in the words that follow a slider."""
    blocks = [block for part in parts(page) for block in part["markdown"].split("\n\n")]
    return [block.partition("\n")[2] for block in blocks if block.startswith(FENCE)]


def component_data(component: Any) -> str:
    """What a component of Streamlit's harness is given, as JSON."""
    return str(component.proto.bytes.decode() or component.proto.json)


def figures(page: AppTest) -> dict[str, Any]:
    """The figures that the page hands to the browser."""
    found = [data["figures"] for data in components(page) if "figures" in data]
    return dict(found[0]) if found else {}


def sources(page: AppTest) -> str:
    """What the sidebar says of rest."""
    return "\n".join(caption.value for caption in page.sidebar.caption).replace("\\", "")


def held(name: str, value: object) -> object:
    """A value in the form that its widget holds: whole numbers are typed as text."""
    if name not in TYPED:
        return value
    return "" if value is None else str(value)


def unfold(page: AppTest, *names: str) -> None:
    """Open the groups of these inputs, as a click on their titles does."""
    closed = {INPUTS[name].group for name in names}.difference(OPEN)
    for group in closed:
        page.session_state[FOLD.format(group)] = True
    if closed:
        page.run()


def set_to(page: AppTest, **values: object) -> AppTest:
    """The page after its inputs were set, as moving widgets does, in groups that are unfolded for it."""
    unfold(page, *values)
    if "split" in values:  # whose number gets its box with it
        page.session_state["split"] = values["split"]
        page.run()
    for name, value in values.items():
        page.session_state[name] = held(name, value)
    return page.run()


def test_the_page_opens_on_the_worked_example(balance: AppTest) -> None:
    """Nothing set, the page shows the worked example and no fault."""
    assert not balance.exception
    assert not balance.error
    assert not balance.warning
    assert "51 requests run at L = 9,216: the state pool binds." in words(balance)
    assert "51 → 74 run" in words(balance)
    assert codes(balance)[0] == "--mamba-full-memory-ratio 2.2045"
    assert "Or, to run as many: --max-mamba-cache-size 371" in words(balance)


@pytest.mark.parametrize(
    "values",
    [
        {"L": 65_536},
        {"D": 4},
        {"dcp_size": 8, "mamba_radix_cache_strategy": "extra_buffer_lazy"},
        {"split": "balanced", "mamba_ssm_dtype": "bfloat16"},
        {"split": "pin", "max_mamba_cache_size": 371},
        {"rest_gib": 0.3},
        {"disable_radix_cache": True, "max_running_requests": 40},
        {"L": 4_000_000},
        {"pp_size": 2, "rest_gib": 30.0},
    ],
    ids=str,
)
def test_a_page_shows_the_numbers_of_solve(balance: AppTest, values: dict[str, Any]) -> None:
    """Verdict, flags and figures are those of the same scenario solved outside the page."""
    page = set_to(balance, **values)
    sizing = solve(Scenario.model_validate(values))
    assert not page.exception
    assert verdict(sizing).headline in words(page)
    found = recommended(sizing)
    if found is not None:
        assert found.flag == codes(page)[0]
        assert found.numbers in words(page)
    shown = figures(page)
    expected = {"crossing": crossing_figure, "ratio": ratio_figure, "memory": memory_figure}
    assert list(shown) == list(expected)
    for name, figure in expected.items():
        assert shown[name]["data"] == json.loads(json.dumps(figure(sizing)["data"]))


def test_without_plotly_js_words_and_tables_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that was installed without it, and where nobody can write: a sentence says why there are no figures."""
    whole = AppTest.from_file("../app.py", default_timeout=TIMEOUT).run()
    monkeypatch.setattr("pages.parts.plot.PLOTLY", tmp_path)
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT).run()
    assert not page.exception
    (said,) = [warning.value.replace("\\", "") for warning in page.warning]
    assert said.startswith("No figures: plotly.min.js is missing")
    assert codes(page) == codes(whole)
    assert words(page).replace(said, "").split() == words(whole).split()


@pytest.mark.parametrize("values", [{"tp_size": 4}, {"pp_size": 2}], ids=str)
def test_rest_of_another_deployment_is_asked_for(balance: AppTest, values: dict[str, Any]) -> None:
    """With another width and the worked example's rest no number of requests is shown; with rest entered it is."""
    page = set_to(balance, **values)
    assert "Choose the GPU or enter rest in the sidebar" in words(page)
    assert not components(page)
    assert "requests run" not in words(page)
    page = set_to(page, rest_gib=30.0)
    assert verdict(solve(Scenario.model_validate({**values, "rest_gib": 30.0}))).headline in words(page)


def test_the_harness_keeps_the_sidebar_on_a_second_run(balance: AppTest) -> None:
    """Streamlit forgets the entry page under some layouts; then every widget would be gone."""
    before = {widget.key for widget in balance.text_input}
    again = balance.run()
    assert {widget.key for widget in again.text_input} == before
    assert "rest_gib" in before


def test_moving_the_slider_moves_the_number_and_the_verdict(balance: AppTest) -> None:
    """The L slider and the box beside it are one input."""
    slider = next(widget for widget in balance.select_slider if str(widget.key).startswith("L_slider"))
    page = slider.set_value(16_384).run()
    assert page.text_input(key="L").value == "16384"
    assert "at L = 16,384" in words(page)


@pytest.mark.parametrize(("typed", "length"), [("32K", "32,768"), ("1M", "1,048,576"), ("9,216", "9,216")])
def test_a_length_is_typed_as_people_write_it(balance: AppTest, typed: str, length: str) -> None:
    """The short forms of the axis are understood in the box."""
    page = balance.text_input(key="L").set_value(typed).run()
    assert f"at L = {length}" in words(page)


def test_an_exact_number_can_be_typed(balance: AppTest) -> None:
    """A length between the slider's stops is taken as it is, and the slider follows."""
    page = balance.text_input(key="L").set_value("10001").run()
    assert "at L = 10,001" in words(page)
    assert next(widget for widget in page.select_slider if str(widget.key).startswith("L_slider")).value == 10_001


def test_rest_that_is_emptied_is_the_deployments_own(balance: AppTest) -> None:
    """On the worked example that is the one of its log."""
    page = balance.text_input(key="rest_gib").set_value("40").run()
    assert "Typed in: 40 GiB." in sources(page)
    page = page.text_input(key="rest_gib").set_value("").run()
    assert "Fitted to the published log: 28.529 GiB." in sources(page)
    assert not page.error


def test_a_browser_that_draws_late_draws_what_is_set(balance: AppTest) -> None:
    """After a run in which nothing was set, as after the first, every widget still carries its value by itself.

    A browser that lost the first run's widgets would else show them empty and send that back: L = 256, no model.
    """
    page = balance.run()
    drawn = (*page.sidebar.text_input, *page.sidebar.number_input, *page.sidebar.toggle)
    assert {widget.key: widget.proto.default for widget in drawn} == {widget.key: widget.value for widget in drawn}
    for widget in page.sidebar.selectbox:
        assert widget.proto.options[widget.proto.default] == widget.format_func(widget.value)
    for slider in page.sidebar.select_slider:
        assert slider.proto.options[int(slider.proto.default[0])] == slider.format_func(slider.value)
    (split,) = page.sidebar.button_group
    assert list(split.proto.default) == [split.options.index(SPLITS["ratio"])]


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"L": 0}, "L must be 1 or more, not “0”."),
        ({"L": -5}, "L must be 1 or more, not “-5”."),
        ({"L": ""}, "L must be a whole number, not empty."),
        ({"split": "pin"}, "The split is pinned but --max-mamba-cache-size is empty. Enter slots."),
        (
            {"mamba_radix_cache_strategy": "no_buffer"},
            "no_buffer only supports page_size=1.",
        ),
        (
            {"mamba_radix_cache_strategy": "extra_buffer_lazy", "pp_size": 2},
            "Lazy extra buffer requires overlap schedule",
        ),
    ],
    ids=str,
)
def test_problem_on_the_page_is_a_sentence_and_loses_nothing(
    balance: AppTest, values: dict[str, Any], sentence: str
) -> None:
    """Wrong input gives the sentence and no traceback; what was entered stays. Refused flags have no figure."""
    page = set_to(balance, D=3, **values)
    assert not page.exception
    assert [sentence in error.value.replace("\\", "") for error in page.error] == [True]
    assert len(figures(page)) == (0 if "buffer" in sentence else 3)  # beside a wrong input the last answer stays
    assert {name: page.session_state[name] for name in values} == {
        name: held(name, value) for name, value in values.items()
    }
    assert page.session_state["D"] == 3


def test_a_link_restores_the_page_and_faults_are_reported() -> None:
    """Right values of a link are taken, wrong ones are named, and the address keeps only what differs."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params["L"] = "65536"
    page.query_params["D"] = "many"
    page.run()
    assert "at L = 65,536" in words(page)
    assert "--speculative-num-draft-tokens must be a whole number, not “many”." in page.warning[0].value.replace(
        "\\", ""
    )
    assert dict(page.query_params) == {"L": "65536"}
    assert not set_to(page, L=32_768).warning


def test_values_survive_a_visit_to_the_other_page(balance: AppTest) -> None:
    """The inputs are the same on every page."""
    set_to(balance, L=20_480, rest_gib=31.5, split="pin", max_mamba_cache_size=300)
    reference = balance.switch_page("pages/reference.py").run()
    assert not reference.exception
    assert reference.text_input(key="L").value == "20480"
    back = reference.switch_page("app.py").run()
    assert "at L = 20,480" in words(back)
    assert back.text_input(key="max_mamba_cache_size").value == "300"


def test_a_pin_is_not_forgotten_when_the_split_changes(balance: AppTest) -> None:
    """A number whose box is not shown is still there when the box comes back."""
    set_to(balance, split="pin", max_mamba_cache_size=300)
    set_to(balance, split="ratio")
    set_to(balance, split="balanced")
    page = set_to(balance, split="pin")
    assert page.text_input(key="max_mamba_cache_size").value == "300"


def test_typing_a_byte_constant_says_that_it_was_typed(balance: AppTest) -> None:
    """The source of a byte constant never says more than is true."""
    typed = balance.selectbox(key="model").set_value("").run()
    assert typed.text_input(key="state_bytes_per_slot").value == "56171520"  # what the model gave stays in the boxes
    page = typed.text_input(key="kv_bytes_per_token").set_value("12288").run()
    assert page.session_state[HELD]["kv_bytes_source"] == "typed in"
    assert page.session_state[HELD]["state_bytes_source"] == "model geometry"


def test_hostile_text_stays_text() -> None:
    """A link cannot put markup on the page."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params["name"] = "<img src=x onerror=alert(1)>[x](javascript:alert(1))"
    page.query_params["**bold**"] = "1"
    page.run()
    assert not page.exception
    assert "<img" not in page.warning[0].value
    assert "**" not in page.warning[0].value


def test_refused_flags_raise_outside_the_page() -> None:
    """The page's sentence is the engine's: the same refusal comes from the core."""
    with pytest.raises(RefusedError, match="no_buffer only supports page_size=1"):
        solve(Scenario(mamba_radix_cache_strategy="no_buffer"))


def test_a_refused_split_still_shows_what_would_run(balance: AppTest) -> None:
    """With the ratio set too low the figures show the balanced split and say so."""
    page = set_to(balance, mamba_full_memory_ratio=0.001)
    assert "SGLang would refuse to start." in words(page)
    assert "refused → 74 run" in words(page)
    labels = [label["text"] for label in figures(page)["crossing"]["layout"]["annotations"]]
    assert "The split that is set would be refused; shown is the recommended one." in labels


def test_the_balance_page_loads_no_data_frames() -> None:
    """Pandas takes 65 MiB and half a second of a server's first page; what shows no data frame does not ask for it."""
    script = "from streamlit.testing.v1 import AppTest; AppTest.from_file('app.py').run(timeout=60); import sys; "
    script += "print('streamlit' in sys.modules, 'pandas' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT)
    assert ran.stdout.split() == ["True", "False"]
