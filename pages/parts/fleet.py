"""The fleet on a page: what is wanted of all servers, and what each way of setting them takes."""

from collections.abc import Sequence
from functools import partial

import streamlit as st

from pages.parts.blocks import plain, table_text, unbroken
from pages.parts.kept import kept_box
from pages.parts.plot import show_figures
from pages.parts.presented import presented
from pages.parts.state import noted_first, stood
from pages.parts.words import show_words
from sizing import Problem
from sizing.answers.fleet import Carrier, FleetWanted, fleet_of
from sizing.answers.solve import Sizing
from sizing.exchange.fleet_text import read_fleet
from sizing.explain.fleet_words import LABELS, fleet_columns, fleet_headline, fleet_notes, fleet_rows, rate_words
from sizing.figures.fleet import fleet_figure

BOX = "fleet_{}"  # the key of a box
FOLD = "fleet_fold"  # in the session: whether it is unfolded


def fleet_stood() -> FleetWanted | list[Problem]:
    """What stands in the boxes, on whichever page they were filled in, or a sentence for every fault."""
    return read_fleet({name: str(stood(BOX.format(name), "")).strip() for name in LABELS})


def show_fleet(sizing: Sizing, carriers: Sequence[Carrier], *, risk: float | None, key: str, hint: str = "") -> None:
    """Boxes, headline, table and figure. `risk` is that of one server [-], None where each request is counted at L;
    `hint` says what else is known of the requests in flight.
    """
    if presented():
        _fleet(sizing, carriers, risk, key, hint)
        return
    noted_first(FOLD, bool(hint) or any(stood(BOX.format(name), "") for name in LABELS))
    fold = st.expander("A fleet of such servers", key=FOLD, on_change="rerun")
    if fold.open:  # while it is closed a move draws none of it
        with fold:
            for (name, title), place in zip(LABELS.items(), st.columns(4), strict=True):
                kept_box(BOX.format(name), "", partial(place.text_input, title, max_chars=20))
            _fleet(sizing, carriers, risk, key, hint)


def _fleet(sizing: Sizing, carriers: Sequence[Carrier], risk: float | None, key: str, hint: str) -> None:
    """What stands in the boxes, answered."""
    wanted = fleet_stood()
    if not isinstance(wanted, FleetWanted):
        st.error(plain("\n".join(problem.sentence for problem in wanted)))
        return
    if not wanted.wanted:
        if not presented():
            words = "Enter the requests at once, or how often they come and how long they stay, to see how many GPUs."
            st.markdown(plain(rate_words(wanted, carriers) or f"{words} {hint}".rstrip()))
        return
    fleet = fleet_of(wanted, carriers, sizing.scenario)
    show_words(
        f"**{plain(fleet_headline(fleet))}**",
        table_text(fleet_columns(fleet), map(unbroken, fleet_rows(fleet))),
        plain(fleet_notes(fleet, wanted, sizing.scenario, risk)),
        key=f"{key}_words",
    )
    show_figures({"fleet": (fleet_figure(sizing, fleet), fleet_headline(fleet))}, key=key)
