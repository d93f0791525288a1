"""Target: wanted requests at a length, solved for what to set; or what does not fit, and what would, with its price."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain, table_text, unbroken
from pages.parts.fleet import show_fleet
from pages.parts.frame import address_of, fleet_link, show_page
from pages.parts.kept import kept_box
from pages.parts.presented import presented
from pages.parts.rest import asked_for_rest
from pages.parts.sheet import show_sheet
from pages.parts.wanted import FURTHER_BOX, REQUESTS_BOX, wanted
from sizing import RefusedError, Scenario, solve
from sizing.answers.carrying_settings import Want
from sizing.answers.fleet import carriers
from sizing.answers.target import Answer, aim
from sizing.basics.units import count
from sizing.exchange.link import to_query, wants_to_query
from sizing.explain.target_words import NEAR_COLUMNS, WAY_COLUMNS, gates, headline, near_rows, reasons, way_rows

MAX_LINKS = 3  # to the balance page, of the ways that fit: those that change least come first


def show_target(scenario: Scenario) -> None:
    """The page, from the wanted requests down to the sheet."""
    first = st.container()
    left, right = st.columns(2)
    title = f"Wanted requests at L = {count(scenario.L)}, all ranks"
    kept_box(REQUESTS_BOX, "", partial(left.text_input, title, placeholder="64"))
    further = "Further lengths, L and requests in each line"
    kept_box(FURTHER_BOX, "", partial(right.text_area, further, height=100, placeholder="32K 16"))
    wants, faults = wanted(scenario)
    for fault in faults:
        st.error(plain(fault.sentence))
    if not wants and not faults:
        first.markdown("### How many requests do you want to run?\n\nEnter a number; L is that of the sidebar.")
    if wants and not faults:
        _answer(scenario, wants, first)
    _fleet(scenario)
    if not presented():
        st.markdown("#### Take it away: a review sheet")
        show_sheet(scenario)


def _fleet(scenario: Scenario) -> None:
    """How many such servers carry what is wanted of all of them; nothing where flags are refused."""
    try:
        sizing = solve(scenario)
    except RefusedError:
        return
    show_fleet(sizing, carriers(sizing), risk=None, key="target_fleet")


def _answer(scenario: Scenario, wants: list[Want], first: DeltaGenerator) -> None:
    """The headline to where it comes first, then the setting or what else could be set, and links."""
    try:
        if asked_for_rest(scenario, first):
            return
        answer = aim(scenario, wants)
    except RefusedError as refused:
        first.error(plain(str(refused)))
        return
    first.markdown(f"### {plain(headline(answer))}\n\n{plain(reasons(answer))}")
    if answer.setting is not None:
        st.code(" \\\n  ".join(answer.setting.flags), language=None)
    else:
        _instead(answer)
    if not presented():
        _links(scenario, wants, answer)


def _instead(answer: Answer) -> None:
    """Every way with the most it runs, then the nearest points of the deployment as it stands and of each way."""
    near = near_rows(answer)
    st.markdown(
        "\n\n".join(
            (
                "#### What else could be set, on this rest",
                table_text(WAY_COLUMNS, map(unbroken, way_rows(answer))),
                *(plain(f"Accuracy gate {at}. {gate}") for at, gate in enumerate(gates(answer), start=1)),
                "#### The nearest points that fit",
                table_text(NEAR_COLUMNS, map(unbroken, near)) if near else "No point fits on any axis.",
            )
        )
    )


def _links(scenario: Scenario, wants: list[Want], answer: Answer) -> None:
    """To the balance page with what was found put in, and to this page as it stands."""
    if answer.setting is not None:
        found = {"See it on the balance page": answer.setting}
    else:
        ways = [(row.way.words, row.setting) for row in answer.fitting[:MAX_LINKS]]
        found = {f"See “{words}” on the balance page": setting for words, setting in ways if setting is not None}
    for label, setting in found.items():
        st.page_link("app.py", label=plain(label), query_params=address_of(setting.scenario), icon="⚖️")
    query = to_query(scenario) | wants_to_query(scenario.L, wants) | fleet_link()
    st.page_link("pages/target.py", label="Link to this target", query_params=query)


show_page("Target", show_target)
