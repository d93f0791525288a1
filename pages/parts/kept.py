"""Boxes of a page that another page does not empty: Streamlit drops a widget's value with its page."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.parts.presented import presented

PREFIX = "kept_"
KEPT = "kept_scenarios"  # in the session: what the page Compare shows side by side
KEPT_DRAWN = "kept_drawn"  # how many times that list was put in another order


def kept_box(key: str, first: Any, draw: Callable[..., Any], options: Sequence[Any] = ()) -> Any:
    """Draw a box under `key` with what stood in it when its page was left, `first` at first; give what stands in it.

    A box to choose in names its `options`. On a presented page nothing is drawn, and what stood in it holds. What
    stands in a box is its default too, for a browser that draws late (inputs.py); not of a number, which could then
    not be emptied.
    """
    value = stood(key, first)
    if not presented():
        st.session_state.setdefault(key, value)
        default = {"index": options.index(value)} if options else {"value": value} if isinstance(value, str) else {}
        value = draw(key=key, **default)
    fill(key, value)
    return value


def stood(key: str, first: Any) -> Any:
    """What stands in the box under `key`, or stood there when its page was left; `first` where it was never drawn."""
    return st.session_state.get(key, st.session_state.get(PREFIX + key, first))


def fill(key: str, value: Any) -> None:
    """What the box under `key` will hold when its page is drawn."""
    st.session_state[PREFIX + key] = value
    if key in st.session_state and st.session_state[key] != value:
        st.session_state[key] = value


def forget_rows() -> None:
    """The boxes of what is kept stand for places; after a move they are new ones, as the browser keeps the old text."""
    st.session_state[KEPT_DRAWN] = st.session_state.get(KEPT_DRAWN, 0) + 1
