"""Text that is pasted into a box is read at once: Streamlit waits until the box is left, or for Ctrl+Enter."""

from pathlib import Path

import streamlit as st

HERE = Path(__file__).parent

# Several lines: one alone is taken for the name of a file.
CSS = """
[data-testid="stTextArea"] [data-testid="InputInstructions"] {
  display: none;
}
"""

_component = st.components.v2.component(
    "paste",
    html="<span></span>",
    css=CSS,
    js=(HERE / "paste.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def read_on_paste() -> None:
    """Let the boxes of this page be read when something is pasted into them."""
    _component(key="paste", height=1)
