"""One registry: every input carries what draws, reads and writes it and when it counts, and all of that is used."""

import re
from pathlib import Path
from typing import Any, get_args

import pytest
from annotated_types import Le
from streamlit.testing.v1 import AppTest

from pages.parts.inputs import LIVE, OWN_WIDGETS, SIDE_BY_SIDE, STOPS, WIDGETS
from pages.parts.state import HELD
from sizing import Scenario, solve
from sizing.answers.recommended import recommended
from sizing.bootlog.arguments import WANTED, read_arguments
from sizing.bootlog.settings import settings_of
from sizing.command import read_command
from sizing.command.flags import RULES
from sizing.explain.launch_flags import OWN_RULE, environment, launch_flags
from sizing.releases.flags import engine_flags
from sizing.scenario.inputs import DEFAULTS, FIELDS, INPUTS, flag_text, read_scenario
from sizing.scenario.registry import CONDITIONS, Condition, Group
from sizing.sheet.inputs import counts
from tests.test_pages import unfold

ROOT = Path(__file__).parents[1]
every = pytest.mark.parametrize("name", FIELDS)
flagged = pytest.mark.parametrize("name", [name for name, own in INPUTS.items() if own.flag])
logged = pytest.mark.parametrize("name", [name for name, own in INPUTS.items() if own.log_keys])

# Values that type and upper bound alone do not give: whole pages, widths that divide.
OTHER: dict[str, Any] = {
    "D": 4, "tp_size": 4, "attn_dp_size": 2, "pp_size": 2, "dcp_size": 2, "page_size": 32, "mamba_track_interval": 512,
    "mem_fraction_static": 0.75, "swa_full_tokens_ratio": 0.5, "mamba_full_memory_ratio": 1.5,
    "disaggregation_mode": "decode", "kv_cache_dtype": "bfloat16", "max_total_tokens": 200_000,
}  # fmt: skip
# What else has to be set for a flag to be written.
WITH: dict[str, dict[str, Any]] = {
    "max_mamba_cache_size": {"split": "pin"},
    "speculative_algorithm": {"D": 4},
    "speculative_eagle_topk": {"D": 4},
    "speculative_num_steps": {"D": 8, "speculative_eagle_topk": 2},
    "linear_replayssm_cache_len": {"D": 4, "replayssm": "spec"},
    "linear_attn_backend": {"disable_radix_cache": True},
}


def other(name: str) -> Any:
    """A value that is not the default."""
    own, default = INPUTS[name], DEFAULTS[name]
    if name in OTHER:
        return OTHER[name]
    if own.kind == "switch":
        return not default
    if own.options:
        return next(option for option in own.options if option != default)
    most: Any = next((bound.le for bound in FIELDS[name].metadata if isinstance(bound, Le)), (default or 16) * 2)
    return min((default or 16) * 2, most)


@every
def test_an_input_carries_all_it_must(name: str) -> None:
    """A group, a widget that the sidebar can draw, a flag or the reason why there is none, and when it counts."""
    own, field = INPUTS[name], FIELDS[name]
    assert field.title
    assert str(field.description).endswith(".")
    assert own.group in get_args(Group)
    assert own.widget == "none" or (name in OWN_WIDGETS if own.widget == "own" else own.widget in WIDGETS)
    assert own.widget != "slider" or (name in STOPS and name in LIVE)
    assert bool(own.flag) != bool(own.no_flag)
    assert own.counts in get_args(Condition)
    assert not own.hidden or own.counts in CONDITIONS
    assert not own.source or own.source in FIELDS
    assert bool(own.options) == (own.widget == "choice" or own.options != ())


def test_nothing_is_kept_beside_the_registry() -> None:
    """What the sidebar and the writer say of single inputs is of inputs, and every condition is used."""
    assert {*OWN_WIDGETS, *STOPS, *LIVE, *(name for row in SIDE_BY_SIDE for name in row)} <= set(FIELDS)
    assert all(INPUTS[name].names for name in OWN_RULE)
    assert {own.counts for own in INPUTS.values()} == set(get_args(Condition))
    assert set(get_args(Condition)) - {"with the radix cache on"} == set(CONDITIONS)
    for name in FIELDS:
        assert counts(Scenario(), name) in (True, False)


@flagged
def test_a_flag_is_the_engines(name: str) -> None:
    """Each of its names is a flag of some release, and the first is one of the newest."""
    own = INPUTS[name]
    assert set(own.names) <= set(engine_flags())
    if own.names:
        assert engine_flags()[own.flag].until is None
        assert [rule for rule in RULES if rule.field == name] == [(own.kind, name, own.names)]
    else:
        assert own.flag.startswith("SGLANG_")


@flagged
def test_a_command_fills_it_in(name: str) -> None:
    """By each of its names, flag or variable, as the registry writes it."""
    own, value = INPUTS[name], other(name)
    first = flag_text(name, value)
    typed = first.removeprefix(own.flag).lstrip("= ")
    more = " --speculative-algorithm EAGLE3 --speculative-num-draft-tokens 9" if own.group == "Speculation" else ""
    more = " --speculative-algorithm NGRAM" if name == "D" else more
    for spelled in (*own.names, *own.variables):
        text = f"sglang serve --port 1{more} {spelled} {typed}"
        if not spelled.startswith("--"):
            text = f"{spelled}={typed} sglang serve --port 1"
        read = read_command(text)
        assert (read.values.get(name), read.problems) == (value, ()), text
        assert read.sources[name] in (spelled, "--speculative-num-draft-tokens")


@flagged
def test_the_flags_of_a_scenario_say_it(name: str) -> None:
    """What is set stands behind the launch command, and read back it is what was set."""
    stated = {"rest_gib": 28.529, "rest_source": "typed in", **WITH.get(name, {}), name: other(name)}
    if name == "swa_full_tokens_ratio":
        stated |= {"model": "", "attention": "GQA and sliding window", "sliding_window": 4096}
    scenario = read_scenario(stated)
    assert isinstance(scenario, Scenario), scenario
    sizing = solve(scenario)
    found = recommended(sizing)
    assert found is not None
    text = launch_flags(sizing, found)
    if name in ("mamba_full_memory_ratio", "max_mamba_cache_size"):
        assert text.startswith(tuple(found.flags))  # the split to set, not the one that is
        return
    variables = (environment(scenario) or "").replace("export ", "").replace("\n", " ")
    read = read_command(f"{variables} sglang serve --model-path m {text}")
    # The count that is set to run more is named, and no other.
    said = getattr(found.scenario, name) if name == "max_running_requests" else other(name)
    assert read.values.get(name, DEFAULTS[name]) == said, text


@logged
def test_a_log_fills_it_in(name: str) -> None:
    """From the arguments line, under its own key or an older one."""
    own, value = INPUTS[name], other(name)
    assert set(own.log_keys) <= WANTED
    for key in own.log_keys:
        read = read_arguments(f"ServerArgs(model_path='m', {key}={value!r}, port=1)")
        assert settings_of(read).input(name) == value


def test_the_session_is_touched_in_one_place() -> None:
    """Every other file of the pages asks pages/parts/state.py."""
    files = [ROOT / "app.py", *(ROOT / "pages").rglob("*.py")]
    assert [file.name for file in files if re.search(r"session_state", file.read_text())] == ["state.py"]


def drawn(page: AppTest) -> set[str]:
    """The inputs that have a widget in the sidebar."""
    side = page.sidebar
    kinds = (side.text_input, side.number_input, side.selectbox, side.select_slider, side.toggle, side.button_group)
    return {str(widget.key) for widgets in kinds for widget in widgets} & set(FIELDS)


def opened(file: str, **query: str) -> AppTest:
    """A page by a link."""
    page = AppTest.from_file("../app.py", default_timeout=120)
    for name, value in query.items():
        page.query_params[name] = value
    page.run()
    unfold(page, *INPUTS)
    return page if file == "app.py" else page.switch_page(file).run()


def body(page: AppTest) -> list[str]:
    """Everything that is written beside the sidebar."""
    kinds = (page.main.markdown, page.main.caption, page.main.warning, page.main.error)
    return [str(element.value) for elements in kinds for element in elements]


# What differs and does not count on a page, all at once.
ELSEWHERE = {
    "pages/model.py": {"L": "20480", "D": "4", "split": "balanced", "page_size": "32", "max_running_requests": "40",
                       "gpu": "NVIDIA H200 141 GB", "disaggregation_mode": "prefill", "context_length": "8192"},
    "pages/reference.py": {"split": "pin", "max_mamba_cache_size": "300", "name": "another"},
    "pages/log.py": {"tp_size": "4", "D": "4", "kv_cache_dtype": "bfloat16", "rest_gib": "40.0", "dcp_size": "2",
                     "split": "balanced", "release": "0.5.20"},
}  # fmt: skip


@pytest.mark.parametrize("file", ELSEWHERE)
def test_a_page_shows_what_counts_on_it(file: str) -> None:
    """An input that is not shown changes no word; it is held, and back on the balance page it stands as it did."""
    plain, other_page = opened(file), opened(file, **ELSEWHERE[file])
    assert not plain.exception
    assert not other_page.exception
    assert not drawn(plain) & ELSEWHERE[file].keys()
    assert body(plain) == body(other_page)
    back = other_page.switch_page("app.py").run()
    assert {name: str(back.session_state[HELD][name]) for name in ELSEWHERE[file]} == ELSEWHERE[file]
    assert drawn(back) >= {"L", "D", "dcp_size", "model", "rest_gib"}


def test_the_balance_page_draws_every_input() -> None:
    """With a model all but its bytes; without one all but what only a model has. Nothing twice, nothing forgotten."""
    hidden = {name for name, own in INPUTS.items() if own.hidden or own.widget == "none"}
    without = drawn(opened("app.py", model=""))
    assert without - hidden == set(FIELDS) - hidden
    pinned = drawn(opened("app.py", split="pin", max_mamba_cache_size="300", gpu="other", gpu_memory_mib="81559"))
    assert pinned & hidden == {"max_mamba_cache_size", "gpu_memory_mib", "draft_kv_layers"}
