"""What every page begins with: page settings, links to the pages, the link's values, the inputs.

Only this file and inputs.py touch the session and the query; the session's keys are the field names of Scenario.
The older page discovery of Streamlit is used on purpose: beside a folder named pages/, st.navigation runs a deep
link without app.py after a fresh start and loses the first slider move.
"""

import gc
from collections.abc import Callable
from typing import NoReturn

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain
from pages.parts.fleet import BOX, fleet_stood
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
from pages.parts.kept import fill, stood
from pages.parts.presented import PRESENT, presented, style_presented
from pages.parts.wanted import FURTHER_BOX, REQUESTS_BOX
from sizing import Problem, Scenario, read_scenario
from sizing.answers.fleet import FleetWanted
from sizing.exchange.fleet_text import PARAMETER as FLEET
from sizing.exchange.fleet_text import fleet_from_query, fleet_to_query
from sizing.exchange.link import KEPT as KEPT_QUERY
from sizing.exchange.link import (
    MAX_WANT_LENGTH,
    WANT,
    from_query,
    kept_from_query,
    kept_to_query,
    to_query,
    wants_from_query,
)
from sizing.exchange.scenario_file import MOST
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import DEFAULTS
from sizing.scenario.rest import rest_of
from sizing.traffic.workload import PARAMETER as TRAFFIC
from sizing.traffic.workload import Workload, workload_from_query, workload_to_query

PAGES = {
    "app.py": "Balance",
    "pages/target.py": "Target",
    "pages/traffic.py": "Traffic",
    "pages/compare.py": "Compare",
    "pages/model.py": "Model",
    "pages/log.py": "Log",
    "pages/reference.py": "Reference",
}


def show_page(title: str, body: Callable[[Scenario], None]) -> None:
    """Draw a page: its frame, then `body` with the scenario that is set, or a sentence for every wrong input."""
    st.set_page_config(page_title=f"{title} · Hybrid Pool Sizing", page_icon="⚖️", layout="wide")
    _settle_memory()
    style_presented()
    _read_link(title)
    settle_rest()
    with st.sidebar:
        links, sliders = st.container(horizontal=True), st.container()
        st.button("Present this page", key="present", on_click=_present, type="tertiary", help=PRESENT_HELP)
        rest, split = draw_inputs()
    _live(links, sliders, (rest, split), body)


@st.fragment
def _live(
    links: DeltaGenerator,
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
    _page_links(links)
    if not isinstance(found, Scenario):
        rest.empty()  # a fragment may write only to places that the last full run wrote to
        _stop(found)
    with sliders:
        _keep_button(found)
    _say_rest(rest, found)
    _report(found)
    body(found)
    _write_link(found)  # with what stands in the page's own boxes


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


TRAFFIC_LINK = "traffic_link"  # in the session: what the page Traffic states, as a link carries it
PRESENT_HELP = "Headline, figures and tables alone, for a slide at 16:9. The browser's back button leads back."


def _present() -> None:
    """The same address with `present`."""
    st.query_params.from_dict({**st.session_state.get("link", {}), **beside_inputs(), PRESENT: ""})


def beside_inputs() -> dict[str, str]:
    """What the pages hold beside the inputs, as the address carries it: what is kept, what is wanted, traffic, fleet.

    With it an address opens elsewhere as it stands here, on another server too. What is too long is left out.
    """
    kept = st.session_state.get(KEPT, [])
    wants = "\n".join(str(stood(box, "")).strip() for box in (REQUESTS_BOX, FURTHER_BOX)).rstrip()
    found = ((kept_to_query(kept) or {}) if kept else {}) | ({WANT: wants} if wants else {})
    found |= st.session_state.get(TRAFFIC_LINK, {}) | fleet_link()
    return {name: text for name, text in found.items() if name != WANT or len(text) <= MAX_WANT_LENGTH}


def address_of(scenario: Scenario) -> dict[str, str]:
    """The query of another scenario, for a link to a page of this session."""
    return to_query(scenario) | beside_inputs()


KEPT, MOST_KEPT = "kept_scenarios", MOST  # what the page Compare shows side by side


def _keep_button(scenario: Scenario) -> None:
    """Keeps the scenario as it stands for the page Compare, from any page."""
    kept = st.session_state.setdefault(KEPT, [])
    full = len(kept) >= MOST_KEPT
    words = f"{MOST_KEPT} are kept" if full else f"Keep for Compare ({len(kept)})"
    st.button(words, key="keep", disabled=full, on_click=_keep, args=(scenario,), type="tertiary")


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
    query = {**st.session_state.get("link", {}), **beside_inputs()}
    for file, name in PAGES.items():
        place.page_link(file, label=name, query_params=query)


def _query() -> dict[str, str]:
    """The link's parameters that are inputs."""
    return {
        name: value
        for name, value in st.query_params.to_dict().items()
        if name not in (PRESENT, KEPT_QUERY, WANT, TRAFFIC, FLEET)
    }


def _read_link(page: str) -> None:
    """Take the link's values at the first run, and when the reader went back or forward.

    A rerun that a widget caused may still carry the query of the run before, so only a rerun in which no input
    moved counts as going back.
    """
    state, query = st.session_state, _query()
    first = "link" not in state
    moved = not first and standing() != state["seen"]
    same_page = state.get("page") == page
    if not same_page:
        state["page"] = page
        for widget in ("split_drawn", "model_drawn", "L_slider"):  # on another page these are new and know nothing
            state.pop(widget, None)
        restore()
    if first or (query != state["link"] and not moved and (same_page or query)):
        scenario, state["problems"] = from_query(query)
        state["problems"] += _read_kept() + _read_traffic() + _read_fleet() if first else []
        if first:
            _read_wants()
        for name, value in (scenario.model_dump() | scenario.stated()).items():
            put(name, value)
        forget_rest()
        state["held"] = {name: state[name] for name in DEFAULTS}
        state["problems_of"] = scenario


def _read_kept() -> list[Problem]:
    """Take what a link keeps side by side, once: later the reader's own list stands."""
    text = st.query_params.get(KEPT_QUERY)
    found = kept_from_query(text) if text else []
    st.session_state[KEPT] = [one for one in found if isinstance(one, Scenario)]
    return [one for one in found if isinstance(one, Problem)]


def _read_wants() -> None:
    """Fill the boxes of the page Target with what a link wants."""
    requests, further = wants_from_query(st.query_params.get(WANT, ""))
    fill(REQUESTS_BOX, requests)
    fill(FURTHER_BOX, further)


def _read_traffic() -> list[Problem]:
    """Fill the boxes of the page Traffic from a link, once."""
    text = st.query_params.get(TRAFFIC)
    found = workload_from_query(text) if text else Workload()
    if not isinstance(found, Workload):
        return found
    st.session_state[TRAFFIC_LINK] = workload_to_query(found)
    for name, value in found.differences().items():
        fill(f"traffic_{name}", value if name == "shape" else f"{value:g}" if isinstance(value, float) else str(value))
    return []


def _read_fleet() -> list[Problem]:
    """Fill the boxes of the fleet from a link, once."""
    text = st.query_params.get(FLEET)
    found = fleet_from_query(text) if text else FleetWanted()
    if not isinstance(found, FleetWanted):
        return found
    for name, value in found.model_dump(exclude_none=True).items():
        fill(BOX.format(name), f"{value:.12g}")
    return []


def fleet_link() -> dict[str, str]:
    """What the boxes of the fleet hold, as a link carries it; empty where they hold nothing, or what cannot be read."""
    wanted = fleet_stood()
    return fleet_to_query(wanted) if isinstance(wanted, FleetWanted) else {}


def _write_link(scenario: Scenario) -> None:
    """Only what differs from the defaults stands in the link; an unchanged link is left alone.

    What stands beside the inputs is compared with what was written last, not with the address: the reader may have gone
    back to an older one, and writing would lead forward again.
    """
    state, query, beside = st.session_state, to_query(scenario), beside_inputs()
    if _query() != query or beside != state.setdefault("beside_inputs", beside):
        shown = {PRESENT: ""} if presented() else {}
        st.query_params.from_dict(query | beside | shown)
    state["link"], state["beside_inputs"] = query, beside
    state["seen"] = dict(state["held"])


def _report(scenario: Scenario) -> None:
    """What the link got wrong stays on the page until an input is changed."""
    problems = st.session_state["problems"]
    if problems and scenario == st.session_state["problems_of"]:
        st.warning(plain("\n".join(problem.sentence for problem in problems)))


def _stop(problems: list[Problem]) -> NoReturn:
    st.error(plain("\n".join(problem.sentence for problem in problems)))
    st.caption("Nothing that was entered is lost: correct it in the sidebar.")
    st.stop()
