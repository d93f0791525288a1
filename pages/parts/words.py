"""Words and tables that follow a slider: a component that changes only what changed.

Streamlit's own Markdown is parsed and laid out anew at every move, which took a third of the time of one.
"""

from pathlib import Path
from typing import NamedTuple

import streamlit as st
from pydantic_core import to_json

from pages.parts.blocks import plain

HERE = Path(__file__).parent
FENCE = "```"  # begins a block of text to copy

_component = st.components.v2.component(
    "words",
    html='<div class="words"></div>',
    css=(HERE / "words.css").read_text(encoding="utf-8"),
    js=(HERE / "words.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


class Change(NamedTuple):
    """Words that stand out: the one change."""

    markdown: str


class Fold(NamedTuple):
    """Words that are folded away below a title."""

    title: str
    markdown: str


def code(text: str, language: str = "") -> str:
    """Text to copy, as a block of the words; of a `diff` each line that comes or goes is marked."""
    return f"{FENCE}{language}\n{text}"


def the_change(numbers: str, flag: str, reason: str = "", *, language: str = "") -> Change:
    """The one change of a page: what runs before and after, what to set, ready to copy, and why; every page has it in
    the same form.
    """
    why = f"\n\n{plain(reason)}" if reason else ""
    return Change(f"## {plain(numbers)}\n\n{code(flag, language)}{why}")


def show_words(*parts: str | Change | Fold, key: str) -> None:
    """Show headings, paragraphs, lists and tables as `blocks` writes them, and `code`; blank lines set them apart.

    All that is shown together goes to the browser as one piece: each piece costs time at every move.
    """
    # As bytes: in a list Streamlit would look for data frames, and load pandas for that.
    _component(key=key, data=to_json({"parts": [_part(part) for part in parts]}))


def _part(part: str | Change | Fold) -> dict[str, str]:
    return {"markdown": part} if isinstance(part, str) else {"kind": type(part).__name__.lower(), **part._asdict()}
