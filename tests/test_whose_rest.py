"""No way through the product carries a rest into another deployment; no headline on an estimate hides that it is one.

The pages are walked with a sample of the inputs; `SIZING_EVERY_PATH=1 python -m pytest tests/test_whose_rest.py` walks
all of them.
"""

import json
import os
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from pages.parts.state import TYPED
from sizing import RefusedError, Scenario, read_scenario, solve
from sizing.answers.compare import headline_of, solved, story_of
from sizing.exchange.link import from_query, to_query
from sizing.exchange.scenario_file import from_file, to_file
from sizing.exchange.sizing_answer import sizing_answer
from sizing.explain.verdict import verdict
from sizing.models.gpus import ALL_GPUS
from sizing.scenario.from_model import names
from sizing.scenario.inputs import changed
from sizing.scenario.rest import EXACT, EXAMPLE_REST_GIB, OWN_DEPLOYMENT, for_bytes_alone, is_example
from tests.conftest import Run
from tests.test_pages import component_data, unfold
from tests.test_properties import examples

TIMEOUT = 30  # seconds
TYPED_GIB = 31.4159  # a rest that nothing computes
HEADLINE = re.compile(r"\d[\d,]* .*\b(?:runs?|fit|at once)\b")
# Another value of each input that a rest belongs to, with what it needs beside it.
MOVES: dict[str, dict[str, Any]] = {
    "model": {"model": "Qwen/Qwen3.5-397B-A17B", "context_length": 262_144},
    "tp_size": {"tp_size": 16},
    "attn_dp_size": {"attn_dp_size": 2},
    "pp_size": {"pp_size": 2},
    "gpu": {"gpu": "NVIDIA B300 SXM6 288 GB"},
    "gpu_memory_mib": {"gpu": "other", "gpu_memory_mib": 300_000},
    "free_gib": {"gpu": "NVIDIA B300 SXM6 288 GB", "free_gib": 250.5},
    "mem_fraction_static": {"mem_fraction_static": 0.91},
    "checkpoint": {"checkpoint": "nvfp4"},
    "weights_bytes": {"weights_bytes": 1_500_000_000_000},
    "draft_weights_bytes": {"draft_weights_bytes": 0},
    "language_only": {"language_only": True},
    "chunked_prefill_size": {"chunked_prefill_size": 4096},
    "cuda_graph_max_bs": {"cuda_graph_max_bs": 64},
    "moe_a2a_backend": {"moe_a2a_backend": "deepep"},
}
EVERY = os.environ.get("SIZING_EVERY_PATH") == "1"
WALKED = tuple(MOVES) if EVERY else ("model", "tp_size", "gpu", "checkpoint")
PAGES = ("target", "traffic", "compare", "model", "log")


def test_every_input_that_a_rest_belongs_to_is_moved() -> None:
    """The table above misses none."""
    assert set(MOVES) == set(OWN_DEPLOYMENT)


@pytest.mark.parametrize("name", MOVES)
def test_a_stated_rest_stays_with_its_deployment(name: str) -> None:
    """Moved in any way, it is estimated anew or unknown; there and back it is not remembered."""
    stated = Scenario(rest_gib=TYPED_GIB)
    for base in (stated, Scenario()):
        moved = changed(base, **MOVES[name])
        assert isinstance(moved, Scenario)
        assert moved.rest_source in ("estimated", "unknown")
        assert moved.rest_gib not in (TYPED_GIB, EXAMPLE_REST_GIB)
        back = changed(moved, **{field: getattr(base, field) for field in MOVES[name]})
        assert isinstance(back, Scenario)
        assert back.rest_source == "worked example"


SOME_NAMES = names()
deployments = st.fixed_dictionaries(
    {"model": st.sampled_from(SOME_NAMES), "tp_size": st.sampled_from([1, 2, 4, 8, 16])},
    optional={
        "gpu": st.sampled_from(["", *(gpu.name for gpu in ALL_GPUS)]),
        "pp_size": st.sampled_from([1, 2]),
        "attn_dp_size": st.sampled_from([1, 2]),
        "checkpoint": st.sampled_from(["auto", "bf16", "fp8", "mxfp4"]),
        "weights_bytes": st.sampled_from([10**10, 10**12]),
        "free_gib": st.sampled_from([20.0, 110.0]),
        "mem_fraction_static": st.sampled_from([0.7, 0.9]),
        "D": st.sampled_from([0, 4]),
        "kv_cache_dtype": st.just("bfloat16"),
    },
)


@examples(150)
@given(deployments)
def test_what_is_not_stated_is_nobody_else_s(values: dict[str, Any]) -> None:
    """As a link, a file or an object: the example's rest only in the example, an estimate only with its condition."""
    scenario = read_scenario(values)
    if not isinstance(scenario, Scenario):
        return
    (filed,) = from_file(to_file([scenario]))
    assert isinstance(filed, Scenario)
    linked, problems = from_query(to_query(scenario))
    assert (filed, linked, problems) == (scenario, scenario, [])
    assert filed.rest_source == linked.rest_source == scenario.rest_source
    assert (scenario.rest_source == "worked example") == is_example(scenario) == (scenario.rest_gib == EXAMPLE_REST_GIB)
    try:
        sizing = solve(scenario)
    except RefusedError:
        if scenario.rest_source == "unknown":
            assert _asks(scenario)
        return
    assert scenario.rest_source in ("estimated", "worked example")
    if scenario.rest_source == "estimated":
        assert EXACT in verdict(sizing).headline
        answer = sizing_answer(sizing)
        assert EXACT in answer.words
        if answer.refused is None:
            assert EXACT in headline_of(solved((scenario,)))
            assert EXACT in story_of(("one", "two"), solved((scenario, Scenario())))
            assert not isinstance(answer.runs, int | float)  # a band, or nothing


def _asks(scenario: Scenario) -> bool:
    """Whether the answer without rest asks for it, and holds no number that rests on one."""
    try:
        answer = sizing_answer(solve(for_bytes_alone(scenario)), rest_given=False)
    except RefusedError:
        return True
    asked = [notice for notice in answer.notices if notice.about == "rest_of_other_deployment"]
    return bool(asked) and answer.runs is None and answer.rest_gib is None and "runs" in answer.unknown


@pytest.mark.parametrize("command", ["plan", "target", "traffic"])
@pytest.mark.parametrize("values", [{"tp_size": 4}, {"model": "Qwen/Qwen3.5-9B", "tp_size": 1}], ids=str)
def test_a_command_without_rest_asks(sizing_command: Run, command: str, values: dict[str, Any]) -> None:
    """Not one of them answers with another deployment's memory; with a GPU each says that it is an estimate."""
    more = {"plan": [], "target": ["16"], "traffic": ["log-normal"]}[command]
    _, printed, _ = sizing_command(command, "-", *more, "--json", stdin=json.dumps(values))
    answer = json.loads(printed)["answer"]
    assert (answer["runs"], answer["rest_gib"]) == (None, None)
    assert "runs" in answer["unknown"]
    assert str(EXAMPLE_REST_GIB) not in printed
    small = {"model": "Qwen/Qwen3.5-9B", "tp_size": 1, "gpu": "H100", "kv_cache_dtype": "bfloat16"}
    _, printed, _ = sizing_command(command, "-", *more, "--json", stdin=json.dumps(small))
    assert EXACT in json.loads(printed)["answer"]["words"]


def held(name: str, value: object) -> object:
    """A value in the form that its widget holds."""
    return str(value) if name in TYPED else value


def said(page: AppTest) -> str:
    """All words of a page's main column and of its figures."""
    shown = [element.value for element in page.main if hasattr(element, "value") and isinstance(element.value, str)]
    return "\n".join((*shown, *(component_data(component) for component in page.get("bidi_component")))).replace(
        "\\", ""
    )


def check(page: AppTest, *forbidden: float) -> None:
    """No headline without a condition, and no trace of a rest that belongs elsewhere."""
    assert not page.exception
    text = said(page)
    for gib in forbidden:
        assert str(gib) not in text
    for heading in re.findall(r"^# (.*)$", text, re.MULTILINE):
        if HEADLINE.search(heading):
            assert EXACT in heading, heading


@pytest.mark.parametrize("name", WALKED)
def test_no_page_keeps_a_rest_of_other_inputs(name: str) -> None:
    """Typed for one deployment, it is gone from every page once a widget moves; the sidebar says so."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    page.query_params["rest_gib"] = str(TYPED_GIB)
    page.run()
    assert f"rest {TYPED_GIB}" in said(page)
    unfold(page, *MOVES[name])
    for field, value in MOVES[name].items():
        page.session_state[field] = held(field, value)
    page.run()
    check(page, TYPED_GIB, EXAMPLE_REST_GIB)
    assert f"The {TYPED_GIB} GiB stated before were another deployment's" in page.sidebar.caption[0].value.replace(
        "\\", ""
    )
    for other in PAGES:
        page = page.switch_page(f"pages/{other}.py").run()
        if other == "target":
            page = page.text_input(key="target_requests").set_value("16").run()
        check(page, TYPED_GIB, EXAMPLE_REST_GIB)
    page = page.switch_page("app.py").run()
    check(page, TYPED_GIB, EXAMPLE_REST_GIB)


@pytest.mark.parametrize("page_file", ["app.py", *(f"pages/{page}.py" for page in PAGES)] if EVERY else ["app.py"])
@pytest.mark.parametrize("name", WALKED)
def test_an_old_link_with_other_inputs_has_no_rest_of_the_example(page_file: str, name: str) -> None:
    """A link that names another model or width and no rest shows the estimate or asks."""
    page = AppTest.from_file("../app.py", default_timeout=TIMEOUT)
    for field, value in MOVES[name].items():
        page.query_params[field] = str(value)
    page = (page if page_file == "app.py" else page.switch_page(page_file)).run()
    check(page, EXAMPLE_REST_GIB)
