"""What every page begins with: page settings, links to the pages, the link's values, the inputs.

Only this file touches the query.
The older page discovery of Streamlit is used on purpose: beside a folder named pages/, st.navigation runs a deep
link without app.py after a fresh start and loses the first slider move.
"""

import gc
from collections.abc import Callable, Collection
from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import state
from pages.parts.blocks import plain
from pages.parts.inputs import Places, draw_inputs, draw_live
from pages.parts.presented import PRESENT, presented, style_presented
from pages.parts.wanted import FURTHER_BOX, REQUESTS_BOX
from sizing import Problem, Scenario, read_scenario
from sizing.exchange.link import KEPT as KEPT_QUERY
from sizing.exchange.link import WANT, from_query, kept_from_query, kept_to_query, to_query, wants_from_query
from sizing.exchange.scenario_file import MOST
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import INPUTS
from sizing.scenario.rest import rest_of
from sizing.traffic.workload import PARAMETER as TRAFFIC
from sizing.traffic.workload import Workload, workload_from_query

SIDEBAR = 340  # [px] wide: two boxes in a row still hold what is chosen in them
# The inputs one moves most stand on a laptop's screen without scrolling.
TIGHT = '<style>[data-testid="stSidebarHeader"] { height: 2.25rem; padding-block: 0.25rem; margin: 0; }</style>'
PAGES = {
    "app.py": "Balance",
    "pages/target.py": "Target",
    "pages/traffic.py": "Traffic",
    "pages/compare.py": "Compare",
    "pages/model.py": "Model",
    "pages/log.py": "Log",
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
    state.settle_rest()
    with st.sidebar:
        st.html(TIGHT)
        with st.container(gap="xsmall"):
            links, tools = st.container(horizontal=True, gap="xsmall"), st.container(horizontal=True)
            tools.button("Present this page", key="present", on_click=_present, type="tertiary", help=PRESENT_HELP)
            places = draw_inputs(counting)
    _live(links, tools, places, body)


@st.fragment
def _live(links: DeltaGenerator, tools: DeltaGenerator, places: Places, body: Callable[[Scenario], None]) -> None:
    """The sliders and all that follows from them: a move reruns this alone and leaves the other inputs standing."""
    draw_live(places)
    found = read_scenario(state.hold())
    if isinstance(found, Scenario):
        _write_link(found)
        state.note("filled", {name: getattr(found, name) for name in FILLED})
        state.note("filled_of", found.model)
    _page_links(links)
    if not isinstance(found, Scenario):
        _stop(found)
    with tools:
        _keep_button(found)
    if places.rest is not None:
        _say_rest(places.rest, found)
    _report(found)
    body(found)


def _say_rest(place: DeltaGenerator, scenario: Scenario) -> None:
    """Where rest comes from, below its box; and what became of one that was typed for another deployment."""
    rest = rest_of(scenario)
    gone = state.noted("rest_gone")
    left = f" The {gone} GiB stated before were another deployment's." if gone is not None else ""
    place.caption(plain(f"rest {rest.words}.{left}"))
    if scenario.rest_is_stated and state.noted("rest_drafts", False) != bool(scenario.D):
        drafts = "without draft tokens" if scenario.D else "with draft tokens"
        st.warning(
            plain(
                f"rest was stated {drafts}: since 0.5.14 a draft's weights come off it. State the one that holds now."
            )
        )


TRAFFIC_LINK = "traffic_link"  # in the session: what the page Traffic states, as a link carries it
PRESENT_HELP = "Headline, figures and tables alone, for a slide at 16:9. The browser's back button leads back."


def _present() -> None:
    """The same address with `present`, and with what other pages hold, so that the link opens elsewhere too."""
    kept = state.noted(KEPT, [])
    wants = "\n".join(str(state.stood(box, "")).strip() for box in (REQUESTS_BOX, FURTHER_BOX)).rstrip()
    own = ((kept_to_query(kept) or {}) if kept else {}) | ({WANT: wants} if wants else {})
    own |= state.noted(TRAFFIC_LINK, {})
    st.query_params.from_dict({**state.noted("link", {}), **own, PRESENT: ""})


KEPT, MOST_KEPT = "kept_scenarios", MOST  # what the page Compare shows side by side


def _keep_button(scenario: Scenario) -> None:
    """Keeps the scenario as it stands for the page Compare, from any page."""
    kept = state.noted_first(KEPT, [])
    full = len(kept) >= MOST_KEPT
    words = f"{MOST_KEPT} are kept" if full else f"Keep for Compare ({len(kept)})"
    st.button(words, key="keep", disabled=full, on_click=_keep, args=(scenario,), type="tertiary")


def _keep(scenario: Scenario) -> None:
    state.noted(KEPT).append(scenario)


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
        place.page_link(file, label=name, query_params=state.noted("link", {}))


def _query() -> dict[str, str]:
    """The link's parameters that are inputs."""
    return {
        name: value
        for name, value in st.query_params.to_dict().items()
        if name not in (PRESENT, KEPT_QUERY, WANT, TRAFFIC)
    }


def _read_link(page: str) -> None:
    """Take the link's values at the first run, and when the reader went back or forward.

    A rerun that a widget caused may still carry the query of the run before, so only a rerun in which no input
    moved counts as going back.
    """
    query, link = _query(), state.noted("link")
    first = link is None
    moved = not first and state.standing() != state.noted("seen")
    same_page = state.noted("page") == page
    if not same_page:
        state.note("page", page)
        state.restore()
    if first or (query != link and not moved and (same_page or query)):
        scenario, problems = from_query(query)
        problems += _read_kept() + _read_traffic() if first else []
        if first:
            _read_wants()
        state.take(scenario.model_dump() | scenario.stated())
        state.note("problems", problems)
        state.note("problems_of", scenario)


def _read_kept() -> list[Problem]:
    """Take what a link keeps side by side, once: later the reader's own list stands."""
    text = st.query_params.get(KEPT_QUERY)
    found = kept_from_query(text) if text else []
    state.note(KEPT, [one for one in found if isinstance(one, Scenario)])
    return [one for one in found if isinstance(one, Problem)]


def _read_wants() -> None:
    """Fill the boxes of the page Target with what a link wants."""
    requests, further = wants_from_query(st.query_params.get(WANT, ""))
    state.fill(REQUESTS_BOX, requests)
    state.fill(FURTHER_BOX, further)


def _read_traffic() -> list[Problem]:
    """Fill the boxes of the page Traffic from a link, once."""
    text = st.query_params.get(TRAFFIC)
    found = workload_from_query(text) if text else Workload()
    if not isinstance(found, Workload):
        return found
    for name, value in found.differences().items():
        state.fill(
            f"traffic_{name}", value if name == "shape" else f"{value:g}" if isinstance(value, float) else str(value)
        )
    return []


def _write_link(scenario: Scenario) -> None:
    """Only what differs from the defaults stands in the link; an unchanged link is left alone."""
    query = to_query(scenario)
    if _query() != query:
        shown = {PRESENT: ""} if presented() else {}
        st.query_params.from_dict(query | shown)
    state.note("link", query)
    state.note("seen", state.standing())


def _report(scenario: Scenario) -> None:
    """What the link got wrong stays on the page until an input is changed."""
    problems = state.noted("problems")
    if problems and scenario == state.noted("problems_of"):
        st.warning(plain("\n".join(problem.sentence for problem in problems)))


def _stop(problems: list[Problem]) -> NoReturn:
    st.error(plain("\n".join(problem.sentence for problem in problems)))
    st.caption("Nothing that was entered is lost: correct it in the sidebar.")
    st.stop()
