"""What stands around every page: the bar on top, a way past it for the keyboard, marks at fields that are wrong."""

from collections.abc import Mapping
from pathlib import Path

import streamlit as st
from pydantic_core import to_json

from pages.parts.state import noted

HERE = Path(__file__).parent

_component = st.components.v2.component(
    "chrome",
    html="<div></div>",
    js=(HERE / "chrome.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)
_pages = st.components.v2.component(
    "pages",
    html='<nav aria-label="Pages"></nav>',
    js=(HERE / "pages.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)
LINKS = "pages"  # in the session: the component of the links, and what was clicked in it
EDGE = "outline: 2px solid #c0392b;"
BELOW = "display: block; color: #c0392b; font-size: 0.875rem; margin-top: 0.25rem;"


def draw_frame() -> None:
    """A link past the frame, menus that stay open, and Escape, which leaves a presented page; head.py has the looks."""
    with st.container(key="chrome"):
        _component(key="chrome_script")


def page_links(pages: Mapping[str, str], current: str) -> None:
    """Links to the pages, by the last piece of their address and their name.

    Streamlit's own links would be sent again at every move, for each carries the address that stands.
    """
    # As bytes: in a list Streamlit would look for data frames, and load pandas for that.
    data = to_json({"pages": [*pages.items()], "current": current})
    _pages(key=LINKS, data=data, width="content", on_page_change=_nothing)


def page_clicked() -> str | None:
    """The name of the page whose link was clicked just now."""
    clicked: str | None = (noted(LINKS) or {}).get("page")
    return clicked


def _nothing() -> None:
    """The answer of a component is given only to one that listens."""


def mark_wrong(sentences: Mapping[str, str], answer: str) -> None:
    """Each field that is wrong in another colour, with its sentence below it; the container `answer` is greyed."""
    fields = {f".st-key-{name}": words for name, words in sentences.items() if name.isidentifier()}
    rules = [
        f'{field} [data-baseweb] {{ {EDGE} }} {field}::after {{ {BELOW} content: "{_css(words)}"; }}'
        for field, words in fields.items()
    ]
    # Beside an element: styles alone Streamlit puts elsewhere, where they would outlast what is wrong.
    st.html(f"<i></i><style>.st-key-{answer} {{ opacity: 0.4; }} {' '.join(rules)}</style>")


def _css(words: str) -> str:
    """Words as a string of CSS in which nothing else can begin: every sign but letters and digits is escaped."""
    return "".join(sign if sign.isascii() and sign.isalnum() else f"\\{ord(sign):06x}" for sign in words)
