"""A page whose `rest` is not known asks for it instead of showing a headline."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain
from sizing import Scenario, solve
from sizing.explain.verdict import ask_for_rest, without_rest_words
from sizing.scenario.inputs import rest_is_given
from sizing.scenario.rest import for_bytes_alone


def asked_for_rest(scenario: Scenario, place: DeltaGenerator | None = None) -> bool:
    """Whether rest has to be asked for; then that is shown, with what is known without it. Raises RefusedError."""
    if rest_is_given(scenario):
        return False
    where = place or st
    known = without_rest_words(solve(for_bytes_alone(scenario)))
    where.markdown(f"# Choose the GPU or enter rest in the sidebar\n\n{plain(known)}")
    where.info(plain(ask_for_rest(scenario)))
    return True
