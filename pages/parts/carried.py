"""What pages hold beside the inputs, in the address: what is kept, what is wanted, the traffic, the fleet.

It stands in the address on every page, so that a reload, a restarted server and a link bring it back.
"""

import streamlit as st

from pages.parts import state
from pages.parts.fleet import BOX, fleet_stood
from pages.parts.kept import KEPT, forget_rows
from pages.parts.state import fill, stood
from pages.parts.wanted import FURTHER_BOX, REQUESTS_BOX
from sizing import Problem, Scenario
from sizing.answers.fleet import FleetWanted
from sizing.exchange.fleet_text import PARAMETER as FLEET
from sizing.exchange.fleet_text import fleet_from_query, fleet_to_query
from sizing.exchange.link import KEPT as KEPT_QUERY
from sizing.exchange.link import MAX_WANT_LENGTH, WANT, kept_from_query, kept_to_query, wants_from_query
from sizing.traffic.workload import PARAMETER as TRAFFIC
from sizing.traffic.workload import Workload, workload_from_query

OWN_TRAFFIC = "own_traffic"  # in the session: the requests of a file that the page Traffic read
TRAFFIC_LINK = "traffic_link"  # in the session: what the page Traffic states, as a link carries it
# How the page Compare shows what is kept: the box, its two ways, and the parameter for the second.
COMPARE_AT, AS_SET, AT_BEST, BEST_QUERY = "compare_at", "as set", "each at its best split", "best"
CARRIED = (KEPT_QUERY, WANT, TRAFFIC, FLEET, BEST_QUERY)  # the parameters that are no inputs


def carried() -> dict[str, str]:
    """What pages hold, as parameters; what is kept is left out where it does not fit."""
    kept = state.noted(KEPT, [])
    wants = "\n".join(str(stood(box, "")).strip() for box in (REQUESTS_BOX, FURTHER_BOX)).rstrip()[:MAX_WANT_LENGTH]
    found = ((kept_to_query(kept) or {}) if kept else {}) | ({WANT: wants} if wants.strip() else {})
    found |= {BEST_QUERY: ""} if stood(COMPARE_AT, AS_SET) == AT_BEST else {}
    traffic: dict[str, str] = state.noted(TRAFFIC_LINK, {})
    return found | traffic | fleet_link()


def left_out() -> str:
    """What no address carries now, in a sentence; empty where it carries all."""
    kept = state.noted(KEPT, [])
    words = []
    if kept and kept_to_query(kept) is None:
        words.append(f"The {len(kept)} scenarios kept are too long for a link: hand on the file of the page Compare.")
    if any(map(state.noted, ("log_text", f"{state.KEPT_BOX}log_text", "log_read"))):
        words.append("A log that was read is not in a link.")
    if state.noted(OWN_TRAFFIC) is not None:
        words.append("The requests of your file on the page Traffic are not in a link.")
    return " ".join(words)


def read_carried() -> list[Problem]:
    """Take what an address holds into the boxes of all pages; a sentence for what cannot be taken."""
    return [*_read_kept(), *_read_wants(), *_read_traffic(), *_read_fleet()]


def _read_kept() -> list[Problem]:
    text = st.query_params.get(KEPT_QUERY)
    found = kept_from_query(text) if text else []
    if state.noted(KEPT) is not None:
        forget_rows()
    state.note(KEPT, [one for one in found if isinstance(one, Scenario)])
    fill(COMPARE_AT, AT_BEST if BEST_QUERY in st.query_params else AS_SET)
    return [one for one in found if isinstance(one, Problem)]


def _read_wants() -> list[Problem]:
    """Without wants in the address the page Target opens with what it suggests."""
    if WANT not in st.query_params:
        return []
    requests, further = wants_from_query(st.query_params[WANT])
    fill(REQUESTS_BOX, requests)
    fill(FURTHER_BOX, further)
    return []


def _read_traffic() -> list[Problem]:
    text = st.query_params.get(TRAFFIC)
    state.note(TRAFFIC_LINK, {TRAFFIC: text} if text else {})
    found = workload_from_query(text) if text else Workload()
    if not isinstance(found, Workload):
        return found
    for name, value in found.differences().items():
        fill(f"traffic_{name}", value if name == "shape" else f"{value:g}" if isinstance(value, float) else str(value))
    return []


def _read_fleet() -> list[Problem]:
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
