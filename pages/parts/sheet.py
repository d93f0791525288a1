"""The review sheet on a page: of the scenario, what is kept beside it and what is wanted, made when it is asked for."""

from datetime import date
from functools import partial

import streamlit as st

from pages.parts import state
from pages.parts.blocks import plain
from pages.parts.fleet import fleet_stood
from pages.parts.kept import KEPT, kept_box
from pages.parts.wanted import wanted
from sizing import Scenario
from sizing.answers.carrying_settings import Want
from sizing.answers.compare import with_this
from sizing.answers.fleet import FleetWanted
from sizing.basics.units import count
from sizing.exchange.scenario_file import MOST
from sizing.explain.target_words import wants_words
from sizing.sheet import PdfError, find_chromium, sheet_of, sheet_pdf
from sizing.sheet.compare import LEAST
from sizing.sheet.page import MAX_REASON

FAULTY = "What is wanted on the page Target cannot be read, so the sheet is made without it: correct it there."
REASON, BRIEF = "sheet_reason", "sheet_brief"
MADE = "sheet"  # in the session: what the last sheet was made of, its HTML and its PDF


def show_sheet(scenario: Scenario) -> None:
    """The button that makes the sheet, and the files of the one that is made, until anything on it changes."""
    every = with_this(tuple(state.noted(KEPT, [])), scenario, MOST)
    kept = every if len(every) >= LEAST else ()
    found, faults = wanted(scenario)
    wants = () if faults else tuple(found)
    stated = fleet_stood()
    fleet = stated if isinstance(stated, FleetWanted) and stated.wanted else None
    st.caption(plain(_on_it(kept, wants, fleet)))
    if faults:
        st.warning(FAULTY)
    hint = "one line under the title, if you like"
    reason = str(kept_box(REASON, "", partial(st.text_input, "Reason", placeholder=hint, max_chars=MAX_REASON)))
    brief = bool(kept_box(BRIEF, False, partial(st.toggle, "One page")))
    of = (scenario, kept, wants, fleet, reason, brief)
    row = st.container(horizontal=True)
    if row.button("Make the review sheet", key="make_sheet"):
        html = sheet_of(scenario, on=date.today(), kept=kept, wants=wants, fleet=fleet, reason=reason, brief=brief)
        state.note(MADE, (of, html, _pdf(html)))
    made = state.noted(MADE)
    if made is None or made[0] != of:
        return
    row.download_button("Sheet, HTML", made[1], "review-sheet.html", "text/html", on_click="ignore")
    if made[2] is not None:
        row.download_button("Sheet, PDF", made[2], "review-sheet.pdf", "application/pdf", on_click="ignore")


def _on_it(kept: tuple[Scenario, ...], wants: tuple[Want, ...], fleet: FleetWanted | None) -> str:
    """What the sheet holds, and what it could hold besides."""
    target = f"the target of {wants_words(wants)}" if wants else "no target (set one on the page Target)"
    beside = f"{len(kept)} scenarios side by side" if kept else "no comparison (press Keep, then change an input)"
    many = f", a fleet of {count(fleet.wanted)} requests at once" if fleet else ""
    return f"On the sheet: the scenario of the sidebar, {target}{many}, {beside}."


def _pdf(html: str) -> bytes | None:
    """The same on paper, where a browser engine is present; None where none is, or where it fails."""
    if find_chromium() is None:
        return None
    try:
        return sheet_pdf(html)
    except PdfError as failed:
        st.warning(plain(str(failed)))
        return None
