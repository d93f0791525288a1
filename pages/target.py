"""Target: wanted requests at a length, solved for what to set; or what does not fit, and what would, with its price."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain, sentence, table_text, unbroken
from pages.parts.fleet import show_fleet
from pages.parts.frame import show_page
from pages.parts.hardware import show_hardware
from pages.parts.kept import kept_box
from pages.parts.plot import show_figures
from pages.parts.presented import presented
from pages.parts.rest import asked_for_rest
from pages.parts.wanted import FURTHER_BOX, REQUESTS_BOX, wanted
from pages.parts.words import show_words, the_change
from sizing import RefusedError, Scenario, solve
from sizing.answers.carrying_settings import Want
from sizing.answers.carrying_ways import CarryingWay, carrying_ways
from sizing.answers.fleet import carriers
from sizing.answers.target import BEST, Answer, aim
from sizing.basics.units import count
from sizing.exchange.link import to_query
from sizing.explain.target_words import (
    CARRYING_COLUMNS,
    NEAR_COLUMNS,
    WAY_COLUMNS,
    all_points,
    carrying_headline,
    carrying_numbers,
    carrying_price,
    carrying_rows,
    gates,
    headline,
    near_rows,
    reasons,
    way_rows,
)
from sizing.figures.carrying_ways import ways_figure

FILLED_IN = "64"  # requests wanted when the page opens


def show_target(scenario: Scenario) -> None:
    """The page, from the wanted requests down to the sheet."""
    first = st.container()
    left, right = st.columns(2)
    title = f"Wanted requests at L = {count(scenario.L)}, all ranks"
    kept_box(REQUESTS_BOX, FILLED_IN, partial(left.text_input, title))
    further = "Further lengths, L and requests in each line"
    kept_box(FURTHER_BOX, "", partial(right.text_area, further, height=100, placeholder="32K 16"))
    wants, faults = wanted(scenario)
    for fault in faults:
        st.error(plain(fault.sentence))
    if not wants and not faults:
        first.markdown("# How many requests do you want to run?\n\nEnter a number; L is that of the sidebar.")
    if wants and not faults:
        _answer(scenario, wants, first)
    if presented():
        return
    _fleet(scenario)
    if scenario.model:
        alone = wants[0] if len(wants) == 1 and wants[0].L == scenario.L else None
        show_hardware(scenario, alone.requests if alone else None)


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
        answer, found = aim(scenario, wants), carrying_ways(scenario, wants)
    except RefusedError as refused:
        first.error(plain(str(refused)))
        return
    with first:
        change = [
            the_change(carrying_numbers(scenario, way, wants), " ".join(way.flags), sentence(carrying_price(way)))
            for way in found[:1]
        ]
        show_words(f"# {plain(headline(answer))}\n\n{plain(reasons(answer))}", *change, key="answer")
    if found:
        _ways(found, wants)
    if answer.setting is None and (not found or not presented()):
        with st.expander("What does not carry them, and the nearest points that fit", expanded=not found):
            _instead(answer)
    if not presented():
        _links(found)


def _ways(found: tuple[CarryingWay, ...], wants: list[Want]) -> None:
    """A bar for each way that carries the wants: the cheapest, and folded the dearer ones."""
    said = carrying_headline(found, wants)
    show_figures({"ways": (ways_figure(found[:BEST], wants), said)}, key="target_ways")
    dearer = found[BEST:]
    if presented() or len(found) == 1:
        return
    # Its title tells no number: with another title Streamlit would fold it again.
    with st.expander("The dearer ways, and all as a table" if dearer else "The same as a table"):
        if dearer:
            figure = ways_figure(dearer, wants, dearer=True)
            show_figures({"ways_dearer": (figure, said)}, key="target_ways_dearer")
        show_words(table_text(CARRYING_COLUMNS, map(unbroken, carrying_rows(found))), key="target_rows")


def _instead(answer: Answer) -> None:
    """Every way with the most it runs, then the nearest points of the deployment as it stands and of each way."""
    near = near_rows(all_points(answer))
    told = range(len(WAY_COLUMNS)) if answer.fitting else (0, 1, 3)  # without one that fits no split is to be set
    columns, *rows = (tuple(row[at] for at in told) for row in (WAY_COLUMNS, *way_rows(answer, answer.rows)))
    show_words(
        "\n\n".join(
            (
                "## What else could be set, on this rest",
                table_text(columns, map(unbroken, rows)),
                *map(plain, gates(answer.rows)),
                "## The nearest points that fit",
                table_text(NEAR_COLUMNS, map(unbroken, near)) if near else "No point fits on any axis.",
            )
        ),
        key="target_instead",
    )


def _links(found: tuple[CarryingWay, ...]) -> None:
    """To the balance page with each of the best ways put in."""
    for one in found[:BEST]:
        label = f"See “{' '.join(one.flags)}” on the balance page"
        st.page_link("app.py", label=plain(label), query_params=to_query(one.setting.scenario), icon="⚖️")


show_page("Target", show_target)
