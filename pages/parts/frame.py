"""What every page begins with: page settings, links to the pages, the link's values, the inputs.

Only this file and carried.py touch the query.
The older page discovery of Streamlit is used on purpose: beside a folder named pages/, st.navigation runs a deep
link without app.py after a fresh start and loses the first slider move.
"""

import gc
from collections.abc import Callable, Collection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.parts import state
from pages.parts.blocks import plain, sentence
from pages.parts.carried import CARRIED, carried, left_out, read_carried
from pages.parts.chrome import draw_frame, mark_wrong, page_clicked, page_links
from pages.parts.inputs import Places, draw_inputs, draw_live
from pages.parts.kept import KEPT
from pages.parts.presented import PRESENT, presented, style_presented
from pages.parts.sheet import show_sheet
from sizing import Problem, Scenario, read_scenario
from sizing.exchange.link import from_query, to_query
from sizing.exchange.scenario_file import MOST
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import INPUTS
from sizing.scenario.rest import rest_of

SIDEBAR = 340  # [px] wide: two boxes in a row still hold what is chosen in them
ANSWER = "answers"  # the container of all that answers; greyed while an input is wrong
LAST = "last_good"  # in the session: the last scenario without a wrong input
TOLD = "told"  # in the session: whether something is told above the answer
WRITTEN = 50  # addresses of a session that are remembered: more than moves may be under way
PAGES = {
    "app.py": "Balance",
    "pages/target.py": "Target",
    "pages/traffic.py": "Traffic",
    "pages/log.py": "Log",
    "pages/compare.py": "Compare",
    "pages/model.py": "Model",
    "pages/reference.py": "Reference",
}


def show_page(title: str, body: Callable[[Scenario], None], counting: Collection[str] = INPUTS) -> None:
    """Draw a page: its frame, then `body` with the scenario that is set, or a sentence for every wrong input.

    `counting` are the inputs that change something on it; the sidebar shows no others.
    """
    st.set_page_config(
        page_title=f"{title} · Hybrid Pool Sizing", page_icon="⚖️", layout="wide", initial_sidebar_state=SIDEBAR
    )
    _settle_memory()
    style_presented()
    _read_link(title)
    _follow()
    state.settle_rest()
    draw_frame()
    if presented():
        st.button("Exit", key="leave", on_click=_leave, type="tertiary")
    else:
        bar = st.container(key="bar", horizontal=True, vertical_alignment="center")
        with bar:
            page_links({Path(file).stem if file != "app.py" else "": name for file, name in PAGES.items()}, title)
        _tools(bar)
    with st.sidebar, st.container(gap="xsmall"):
        places = draw_inputs(counting)
    told = st.empty()
    state.note(TOLD, True)  # a fragment may write only to places that it wrote to in the last full run
    with st.container(key=ANSWER):
        _live(told, places, body)


@st.fragment
def _live(told: DeltaGenerator, places: Places, body: Callable[[Scenario], None]) -> None:
    """What one explores by moving and all that follows: a move reruns this alone and leaves the other inputs standing.

    A hand on a figure may set other inputs too; then the whole page is drawn.
    """
    if state.noted(state.WHOLE):
        state.forget(state.WHOLE)
        st.rerun()
    _follow()  # a click that came with a move
    draw_live(places)  # before the answer: a reader who is quick after it finds in the boxes what it is of
    _answer(told, places, body)


def _answer(told: DeltaGenerator, places: Places, body: Callable[[Scenario], None]) -> None:
    """The page for what stands in the inputs; where one is wrong, what is, and the last answer.

    What is told stands in a place of its own, so that an answer comes where the one before it stood.
    """
    found = read_scenario(state.hold())
    if not isinstance(found, Scenario):
        if places.rest is not None:
            places.rest.empty()  # a fragment may write only to places that the last full run wrote to
        last = state.noted(LAST)
        with told.container():
            _marked(found, last is not None)
        state.note(TOLD, True)
        if last is not None:
            body(last)
        return
    state.note("filled", {name: getattr(found, name) for name in FILLED})
    state.note("filled_of", found.model)
    if places.rest is not None:
        _say_rest(places.rest, found)
    state.note(LAST, found)
    body(found)
    _tell(told, found)
    _write_link(found)  # last, with what the page holds since it was drawn


def _say_rest(place: DeltaGenerator, scenario: Scenario) -> None:
    """Where rest comes from, below its box; and what became of one that was typed for another deployment."""
    rest = rest_of(scenario)
    gone = state.noted("rest_gone")
    left = f" The {gone} GiB stated before were another deployment's." if gone is not None else ""
    place.caption(plain(f"{sentence(rest.words)}{left}"))


HELP = {
    "keep": "Keep this scenario for the page Compare (at most {most})",
    "present": "One frame of 16:9 for a slide; Escape leads back",
}


def _tools(bar: DeltaGenerator) -> None:
    """At the right of the bar: keep, link, present, sheet. A move does not send them again: what they are of is asked
    for when one of them is pressed.
    """
    kept = state.noted_first(KEPT, [])
    full = len(kept) >= MOST
    words = f"Keep ({len(kept)}, full)" if full else f"Keep ({len(kept)})"
    help_ = HELP["keep"].format(most=MOST)
    bar.button(words, key="keep", disabled=full, on_click=_keep, type="tertiary", help=help_)
    link = bar.popover("Link", type="tertiary", key="link_of_this", on_change="rerun")
    if link.open:
        with link:
            st.markdown("The address of this page opens all of it again, here and on a fresh server.")
            st.code(_address(), language=None, wrap_lines=True)
            if words := left_out():
                st.warning(plain(words))
    bar.button("Present", key="present", on_click=_present, type="tertiary", help=HELP["present"])
    sheet = bar.popover("Sheet", type="tertiary", key="sheet_of_this", on_change="rerun")
    scenario = state.noted(LAST)
    if sheet.open and scenario is not None:
        with sheet:
            show_sheet(scenario)


def _address() -> str:
    """The address of this page with all that is set."""
    base = (st.context.url or "").partition("?")[0]
    query = urlencode(state.noted("link", {}), safe="/:,")
    base = base if urlsplit(base).path else f"{base}/"
    return f"{base}?{query}" if query else base


def _present() -> None:
    state.note(state.WHOLE, True)  # the frame goes, and not the page alone
    st.query_params.from_dict({**state.noted("link", {}), PRESENT: ""})


def _leave() -> None:
    st.query_params.from_dict(state.noted("link", {}))


def _keep() -> None:
    scenario = state.noted(LAST)
    if scenario is not None:
        state.noted(KEPT).append(scenario)


@st.cache_resource
def _settle_memory() -> None:
    """Take what is loaded now out of garbage collection, once a process.

    Python's full collections would walk all loaded modules again and again: with fifty sessions that doubles the
    slowest replies (tests/bench/load.py).
    """
    gc.collect()
    gc.freeze()


def _follow() -> None:
    """Go to the page whose link was clicked; it opens with the inputs in its address, or its first run would be a step
    of its own in the history.
    """
    clicked = page_clicked()
    if clicked is None:
        return
    state.keep_boxes()
    found = read_scenario(state.hold())
    if isinstance(found, Scenario):
        state.note("link", to_query(found) | carried())
    st.switch_page(next(file for file, name in PAGES.items() if name == clicked), query_params=state.noted("link", {}))


def _query() -> dict[str, str]:
    """The address without `present`: the inputs, and what pages hold."""
    return {name: value for name, value in st.query_params.to_dict().items() if name != PRESENT}


def _read_link(page: str) -> None:
    """Take the link's values at the first run, when the reader went back or forward, and from a link that was pressed.

    A rerun may still carry an address of this page from before the last one that was written: it says nothing new.
    """
    query, link, context = _query(), state.noted("link"), get_script_run_ctx()
    went = context is not None and context.is_history_navigation
    same_page = state.noted("page") == page
    if not same_page:
        state.note("page", page)
        state.restore()
    pressed = query not in state.noted("written", ()) if same_page else bool(query)
    if link is None or (query != link and (went or pressed)):
        scenario, problems = from_query({name: value for name, value in query.items() if name not in CARRIED})
        problems += read_carried()
        state.take(scenario.model_dump() | scenario.stated())
        state.note("problems", problems)
        state.note("problems_of", scenario)
        _remember(query)


def _write_link(scenario: Scenario) -> None:
    """What differs from the defaults and what pages hold stands in the link; an unchanged link is left alone."""
    query = to_query(scenario) | carried()
    if _query() != query:
        shown = {PRESENT: ""} if presented() else {}
        st.query_params.from_dict(query | shown)
    if state.noted("link") != query:
        _remember(query)
        state.note("link", query)


def _remember(query: dict[str, str]) -> None:
    state.note("written", (*state.noted("written", ()), query)[-WRITTEN:])


def _tell(told: DeltaGenerator, scenario: Scenario) -> None:
    """What the link got wrong, until an input is changed, and a rest that was typed for other drafts."""
    problems = state.noted("problems")
    warnings = []
    if problems and scenario == state.noted("problems_of"):
        warnings.append("\n".join(problem.sentence for problem in problems))
    if scenario.rest_is_stated and state.noted("rest_drafts", False) != bool(scenario.D):
        drafts = "without draft tokens" if scenario.D else "with draft tokens"
        warnings.append(
            f"rest was stated {drafts}: since 0.5.14 a draft's weights come off it. State the one that holds now."
        )
    if warnings:
        with told.container():
            for words in warnings:
                st.warning(plain(words))
    elif state.noted(TOLD):
        told.empty()
    state.note(TOLD, bool(warnings))


def _marked(problems: list[Problem], greyed: bool) -> None:
    """Every wrong input: said on top, and marked at its field; the last answer below is greyed."""
    st.error(plain("\n".join(problem.sentence for problem in problems)))
    if greyed:
        st.caption("Below: the last answer, from before what is marked.")
    mark_wrong({problem.where: problem.sentence for problem in problems}, ANSWER)
