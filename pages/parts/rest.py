"""A page with the worked example's `rest` and another deployment asks for rest instead of showing a headline."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain
from sizing import Sizing
from sizing.explain.verdict import ask_for_rest, without_rest_words
from sizing.scenario.inputs import rest_is_the_example_s


def asked_for_rest(sizing: Sizing, place: DeltaGenerator | None = None) -> bool:
    """Whether rest has to be asked for; then that is shown, with what is known without it."""
    if not rest_is_the_example_s(sizing.scenario):
        return False
    where = place or st
    where.markdown(f"### Enter rest in the sidebar\n\n{plain(without_rest_words(sizing))}")
    where.info(plain(ask_for_rest(sizing.scenario)))
    return True
