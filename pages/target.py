"""Target: wanted requests at a length, solved for what to set; or what does not fit, and what would, with its price."""

from functools import partial

import streamlit as st
from pydantic import ValidationError

from pages.parts.blocks import plain, table_text
from pages.parts.frame import WANT, show_page
from pages.parts.kept import kept_box
from sizing import RefusedError, Scenario
from sizing.carried import Setting, Want
from sizing.link import to_query
from sizing.problems import from_validation
from sizing.target import Answer, aim
from sizing.target_words import NEAR_COLUMNS, WAY_COLUMNS, gates, headline, near_rows, reasons, way_rows
from sizing.units import count

MAX_LINKS = 3  # to the balance page, of the ways that fit: those that change least come first
MAX_LINES = 12  # of further lengths; a page for a review has no room for more
LABELS = {"L": "L", "requests": "Wanted requests"}


def show_target(scenario: Scenario) -> None:
    """The page, from the wanted requests down."""
    first = st.container()
    wanted, more = st.columns(2)
    title = f"Wanted requests at L = {count(scenario.L)}, all ranks"
    requests = str(kept_box("target_requests", "", partial(wanted.text_input, title, placeholder="64")))
    further = partial(more.text_area, "Further lengths, L and requests in each line", height=100, placeholder="32K 16")
    lines = str(kept_box("target_more", "", further))
    wants, faults = _wants(scenario, requests, lines)
    for fault in faults:
        st.error(plain(fault))
    if faults:
        return
    if not wants:
        first.markdown("### How many requests do you want to run?\n\nEnter a number; L is that of the sidebar.")
        return
    try:
        answer = aim(scenario, wants)
    except RefusedError as refused:
        first.error(plain(str(refused)))
        return
    first.markdown(f"### {plain(headline(answer))}\n\n{plain(reasons(answer))}")
    if answer.setting is not None:
        _setting(answer.setting)
    else:
        _instead(answer)
    query = to_query(scenario) | {WANT: f"{requests.strip()}\n{lines.strip()}".strip("\n")}
    if requests.strip():
        st.page_link("pages/target.py", label="Link to this target", query_params=query)


def _wants(scenario: Scenario, requests: str, lines: str) -> tuple[list[Want], list[str]]:
    """What is wanted, and a sentence for every line that cannot be read."""
    rows = [("", str(scenario.L), requests)] if requests.strip() else []
    further = [line for line in lines.splitlines() if line.strip()]
    wants, faults = [], []
    for number, line in enumerate(further[:MAX_LINES], start=1):
        words = line.replace("\t", " ").split()
        if len(words) == 2:
            rows.append((f"Line {number}: ", words[0], words[1]))
        else:
            faults.append(f"Line {number} must hold two numbers, L and requests, such as 32K 16.")
    if len(further) > MAX_LINES:
        faults.append(f"There are {len(further)} further lengths: give at most {MAX_LINES}.")
    for where, L, number_of in rows:
        try:
            wants.append(Want.model_validate({"L": L, "requests": number_of}))
        except ValidationError as error:
            faults += [f"{where}{problem.sentence}" for problem in from_validation(error, LABELS)]
    return wants, faults


def _setting(setting: Setting) -> None:
    """The flags, and the way to the balance page with them put in."""
    st.code(" \\\n  ".join(setting.flags), language=None)
    label = "See it on the balance page"
    st.page_link("app.py", label=label, query_params=to_query(setting.scenario), icon="⚖️")


def _instead(answer: Answer) -> None:
    """Every way with the most it runs, then the nearest points of the deployment as it stands and of each way."""
    near = near_rows(answer)
    st.markdown(
        "\n\n".join(
            (
                "#### What else could be set, on this rest",
                table_text(WAY_COLUMNS, way_rows(answer)),
                *(plain(f"Accuracy gate {at}. {gate}") for at, gate in enumerate(gates(answer), start=1)),
                "#### The nearest points that fit",
                table_text(NEAR_COLUMNS, near) if near else "No point fits on any axis.",
            )
        )
    )
    for row in answer.fitting[:MAX_LINKS]:
        if row.setting is not None:
            label = f"See “{row.way.words}” on the balance page"
            st.page_link("app.py", label=plain(label), query_params=to_query(row.setting.scenario), icon="⚖️")


show_page("Target", show_target)
