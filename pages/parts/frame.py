"""What every page begins with: page settings, links to the pages, the link's values, the inputs.

Only this file and inputs.py touch the session and the query; the session's keys are the field names of Scenario.
The older page discovery of Streamlit is used on purpose: beside a folder named pages/, st.navigation runs a deep
link without app.py after a fresh start and loses the first slider move.
"""

import gc
from collections.abc import Callable
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain
from pages.parts.carried import CARRIED, carried, left_out, read_carried
from pages.parts.chrome import draw_frame, mark_wrong
from pages.parts.inputs import (
    WHOLE,
    draw_inputs,
    draw_sliders,
    draw_split,
    forget_rest,
    hold,
    put,
    restore,
    settle_rest,
    standing,
)
from pages.parts.kept import KEPT
from pages.parts.presented import PRESENT, presented, style_presented
from pages.parts.sheet import show_sheet
from sizing import Problem, Scenario, read_scenario
from sizing.exchange.link import from_query, to_query
from sizing.exchange.scenario_file import MOST
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import DEFAULTS
from sizing.scenario.rest import rest_of

PAGES = {
    "app.py": "Balance",
    "pages/target.py": "Target",
    "pages/traffic.py": "Traffic",
    "pages/log.py": "Log",
    "pages/compare.py": "Compare",
    "pages/model.py": "Model",
    "pages/reference.py": "Reference",
}


def show_page(title: str, body: Callable[[Scenario], None]) -> None:
    """Draw a page: its frame, then `body` with the scenario that is set, or a sentence for every wrong input."""
    st.set_page_config(page_title=f"{title} · Hybrid Pool Sizing", page_icon="⚖️", layout="wide")
    _settle_memory()
    style_presented()
    _read_link(title)
    settle_rest()
    draw_frame()
    if presented():
        st.button("Exit", key="leave", on_click=_leave, type="tertiary")
    bar = st.container(key="bar", horizontal=True, vertical_alignment="center")
    with st.sidebar:
        sliders = st.container()
        rest, split = draw_inputs()
    _live(bar, sliders, (rest, split), body)


@st.fragment
def _live(
    bar: DeltaGenerator,
    sliders: DeltaGenerator,
    places: tuple[DeltaGenerator, DeltaGenerator],
    body: Callable[[Scenario], None],
) -> None:
    """What one explores by moving and all that follows: a move reruns this alone and leaves the other inputs standing.

    A hand on a figure may set other inputs too; then the whole page is drawn.
    """
    rest, split = places
    if st.session_state.pop(WHOLE, False):
        st.rerun()
    with sliders:
        draw_sliders()
    with split:
        draw_split()
    found = read_scenario(hold())
    if isinstance(found, Scenario):
        _write_link(found)
        st.session_state["filled"] = {name: getattr(found, name) for name in FILLED}
        st.session_state["filled_of"] = found.model
    if not presented():
        _page_links(bar)
    if not isinstance(found, Scenario):
        rest.empty()  # a fragment may write only to places that the last full run wrote to
        _marked(found)
        _last(bar, body)
        return
    if not presented():
        _tools(bar, found)
    _say_rest(rest, found)
    _report(found)
    st.session_state[LAST] = found
    body(found)
    _write_link(found)  # again, for what a page holds since it was drawn


def _say_rest(place: DeltaGenerator, scenario: Scenario) -> None:
    """Where rest comes from, below its box; and what became of one that was typed for another deployment."""
    state = st.session_state
    rest = rest_of(scenario)
    gone = state.get("rest_gone")
    left = f" The {gone} GiB stated before were another deployment's." if gone is not None else ""
    place.caption(plain(f"rest {rest.words}.{left}"))
    if scenario.rest_is_stated and state.get("rest_drafts", False) != bool(scenario.D):
        drafts = "without draft tokens" if scenario.D else "with draft tokens"
        st.warning(
            plain(
                f"rest was stated {drafts}: since 0.5.14 a draft's weights come off it. State the one that holds now."
            )
        )


HELP = {
    "keep": "Keep this scenario for the page Compare (at most {most})",
    "present": "One frame of 16:9 for a slide; Escape leads back",
}


def _tools(bar: DeltaGenerator, scenario: Scenario) -> None:
    """At the right of the bar: keep, link, present, sheet. The containers stand in the frame, so that a move of a
    slider changes them in place.
    """
    kept = st.session_state.setdefault(KEPT, [])
    full, most = len(kept) >= MOST, MOST
    words = f"Keep ({len(kept)}, full)" if full else f"Keep ({len(kept)})"
    help_ = HELP["keep"].format(most=most)
    bar.button(words, key="keep", disabled=full, on_click=_keep, args=(scenario,), type="tertiary", help=help_)
    with bar.popover("Link", type="tertiary", key="link_of_this"):
        st.markdown("The address of this page opens all of it again, here and on a fresh server.")
        st.code(_address(), language=None, wrap_lines=True)
        if words := left_out():
            st.warning(plain(words))
    bar.button("Present", key="present", on_click=_present, type="tertiary", help=HELP["present"])
    with bar.popover("Sheet", type="tertiary", key="sheet_of_this"):
        show_sheet(scenario)


def _address() -> str:
    """The address of this page with all that is set."""
    base = (st.context.url or "").partition("?")[0]
    query = urlencode(st.session_state.get("link", {}), safe="/:,")
    return f"{base}?{query}" if query else base


def _present() -> None:
    st.query_params.from_dict({**st.session_state.get("link", {}), PRESENT: ""})


def _leave() -> None:
    st.query_params.from_dict(st.session_state.get("link", {}))


def _keep(scenario: Scenario) -> None:
    st.session_state[KEPT].append(scenario)


@st.cache_resource
def _settle_memory() -> None:
    """Take what is loaded now out of garbage collection, once a process.

    Python's full collections would walk all loaded modules again and again: with fifty sessions that doubles the
    slowest replies (tests/bench/load.py).
    """
    gc.collect()
    gc.freeze()


def _page_links(place: DeltaGenerator) -> None:
    """Links to the pages, with the inputs in them: a page opened without would leave an empty step in the history."""
    for file, name in PAGES.items():
        place.page_link(file, label=name, query_params=st.session_state.get("link", {}))


def _query() -> dict[str, str]:
    """The address without `present`: the inputs, and what pages hold."""
    return {name: value for name, value in st.query_params.to_dict().items() if name != PRESENT}


def _read_link(page: str) -> None:
    """Take the link's values at the first run, and when the reader went back or forward.

    A rerun that a widget caused may still carry the query of the run before, so only a rerun in which nothing moved
    counts as going back.
    """
    state, query = st.session_state, _query()
    first = "link" not in state
    moved = not first and (standing() != state["seen"] or carried() != state["carried"])
    same_page = state.get("page") == page
    if not same_page:
        state["page"] = page
        for widget in ("split_drawn", "model_drawn", "L_slider"):  # on another page these are new and know nothing
            state.pop(widget, None)
        restore()
    if first or (query != state["link"] and not moved and (same_page or query)):
        scenario, problems = from_query({name: value for name, value in query.items() if name not in CARRIED})
        state["problems"] = problems + read_carried()
        for name, value in (scenario.model_dump() | scenario.stated()).items():
            put(name, value)
        forget_rest()
        state["held"] = {name: state[name] for name in DEFAULTS}
        state["problems_of"] = scenario


def _write_link(scenario: Scenario) -> None:
    """What differs from the defaults and what pages hold stands in the link; an unchanged link is left alone."""
    beside = carried()
    query = to_query(scenario) | beside
    if _query() != query:
        shown = {PRESENT: ""} if presented() else {}
        st.query_params.from_dict(query | shown)
    st.session_state["link"], st.session_state["carried"] = query, beside
    st.session_state["seen"] = dict(st.session_state["held"])


def _report(scenario: Scenario) -> None:
    """What the link got wrong stays on the page until an input is changed."""
    problems = st.session_state["problems"]
    if problems and scenario == st.session_state["problems_of"]:
        st.warning(plain("\n".join(problem.sentence for problem in problems)))


LAST = "last_good"  # in the session: the last scenario without a wrong input


def _marked(problems: list[Problem]) -> None:
    """Every wrong input: said on top, and marked at its field."""
    st.error(plain("\n".join(problem.sentence for problem in problems)))
    mark_wrong({problem.where: problem.sentence for problem in problems})


def _last(bar: DeltaGenerator, body: Callable[[Scenario], None]) -> None:
    """The last answer, greyed, as long as an input is wrong; nothing that was entered is lost."""
    last = st.session_state.get(LAST)
    if last is None:
        return
    if not presented():
        _tools(bar, last)
    st.caption("Below stands the last answer, without what is marked.")
    with st.container(key="stale"):
        body(last)
