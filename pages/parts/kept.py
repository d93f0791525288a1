"""Boxes of a page that another page does not empty: Streamlit drops a widget's value with its page."""

from collections.abc import Callable
from typing import Any

import streamlit as st

from pages.parts.presented import presented

PREFIX = "kept_"


def kept_box(key: str, first: Any, draw: Callable[..., Any]) -> Any:
    """Draw a box under `key` with what stood in it when its page was left, `first` at first; give what stands in it.

    On a presented page nothing is drawn, and what stood in it holds.
    """
    value = stood(key, first)
    if not presented():
        st.session_state.setdefault(key, value)
        value = draw(key=key)
    fill(key, value)
    return value


def stood(key: str, first: Any) -> Any:
    """What stands in the box under `key`, or stood there when its page was left; `first` where it was never drawn."""
    return st.session_state.get(key, st.session_state.get(PREFIX + key, first))


def fill(key: str, value: Any) -> None:
    """What the box under `key` will hold when its page is drawn."""
    st.session_state[PREFIX + key] = value
