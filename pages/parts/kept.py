"""Boxes of a page that another page does not empty: Streamlit drops a widget's value with its page."""

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from pages.parts.presented import presented

PREFIX = "kept_"


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
