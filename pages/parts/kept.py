"""Boxes of a page that another page does not empty: Streamlit drops a widget's value with its page."""

from collections.abc import Callable, Sequence
from typing import Any

from pages.parts.presented import presented
from pages.parts.state import fill, note, noted, noted_first, stood

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
        noted_first(key, value)
        default = {"index": options.index(value)} if options else {"value": value} if isinstance(value, str) else {}
        value = draw(key=key, **default)
    fill(key, value)
    return value


def forget_rows() -> None:
    """The boxes of what is kept stand for places; after a move they are new ones, as the browser keeps the old text."""
    note(KEPT_DRAWN, noted(KEPT_DRAWN, 0) + 1)
