"""What pages hold beside the inputs, in the address: what is kept, what is wanted, the traffic, the fleet.

It stands in the address on every page, so that a reload, a restarted server and a link bring it back.
"""

import streamlit as st

from pages.parts.fleet import BOX, fleet_stood
from pages.parts.kept import KEPT, fill, forget_rows, stood
from pages.parts.wanted import FURTHER_BOX, REQUESTS_BOX
from sizing import Problem, Scenario
from sizing.answers.fleet import FleetWanted
from sizing.exchange.fleet_text import PARAMETER as FLEET
from sizing.exchange.fleet_text import fleet_from_query, fleet_to_query
from sizing.exchange.link import KEPT as KEPT_QUERY
from sizing.exchange.link import MAX_WANT_LENGTH, WANT, kept_from_query, kept_to_query, wants_from_query
from sizing.traffic.workload import PARAMETER as TRAFFIC
from sizing.traffic.workload import Workload, workload_from_query

TRAFFIC_LINK = "traffic_link"  # in the session: what the page Traffic states, as a link carries it
CARRIED = (KEPT_QUERY, WANT, TRAFFIC, FLEET)  # the parameters that are no inputs


def carried() -> dict[str, str]:
    """What pages hold, as parameters; what is kept is left out where it does not fit."""
    kept = st.session_state.get(KEPT, [])
    wants = "\n".join(str(stood(box, "")).strip() for box in (REQUESTS_BOX, FURTHER_BOX)).rstrip()[:MAX_WANT_LENGTH]
    found = ((kept_to_query(kept) or {}) if kept else {}) | ({WANT: wants} if wants.strip() else {})
    traffic: dict[str, str] = st.session_state.get(TRAFFIC_LINK, {})
    return found | traffic | fleet_link()


def left_out() -> str:
    """What no address carries now, in a sentence; empty where it carries all."""
    kept = st.session_state.get(KEPT, [])
    words = []
    if kept and kept_to_query(kept) is None:
        words.append(f"The {len(kept)} scenarios kept are too long for a link: hand on the file of the page Compare.")
    if st.session_state.get("log_text") or st.session_state.get("kept_log_text") or st.session_state.get("log_read"):
        words.append("A log that was read is not in a link.")
    return " ".join(words)


def read_carried() -> list[Problem]:
    """Take what an address holds into the boxes of all pages; a sentence for what cannot be taken."""
    return [*_read_kept(), *_read_wants(), *_read_traffic(), *_read_fleet()]


def _read_kept() -> list[Problem]:
    text = st.query_params.get(KEPT_QUERY)
    found = kept_from_query(text) if text else []
    st.session_state[KEPT] = [one for one in found if isinstance(one, Scenario)]
    forget_rows()
    return [one for one in found if isinstance(one, Problem)]


def _read_wants() -> list[Problem]:
    """Without wants in the address the page Target opens with what it suggests."""
    if WANT not in st.query_params:
        return []
    requests, further = wants_from_query(st.query_params.get(WANT, ""))
    fill(REQUESTS_BOX, requests)
    fill(FURTHER_BOX, further)
    return []


def _read_traffic() -> list[Problem]:
    text = st.query_params.get(TRAFFIC)
    st.session_state[TRAFFIC_LINK] = {TRAFFIC: text} if text else {}
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
