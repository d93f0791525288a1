"""Words and tables that follow a slider: a component that changes only what changed.

Streamlit's own Markdown is parsed and laid out anew at every move, which took a third of the time of one.
"""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

_component = st.components.v2.component(
    "words",
    html='<div class="words"></div>',
    css=(HERE / "words.css").read_text(encoding="utf-8"),
    js=(HERE / "words.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def show_words(markdown: str, key: str) -> None:
    """Show headings, paragraphs, lists and tables as `blocks` writes them; blank lines set them apart."""
    _component(key=key, data={"markdown": markdown})
