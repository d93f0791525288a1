"""The floor that `slider.py` compares the real page with: one slider, one line of text.

Whatever this costs is Streamlit, the websocket and the browser; no page made of Streamlit widgets
can be faster. Run by `slider.py`, not by hand.
"""

import gc

import streamlit as st

L_GRID = [int(256 * 2 ** (k // 8) * (1 + (k % 8) / 8)) for k in range(97)]


@st.cache_resource
def freeze_imports() -> bool:
    """Take the imported modules out of the garbage collection that ends every Streamlit run.

    The real page does the same. Without it that collection is the largest cost on both sides and
    would hide the difference between them.
    """
    gc.collect()
    gc.freeze()
    return True


freeze_imports()
L = st.sidebar.select_slider("L", L_GRID, value=9216, format_func=lambda tokens: f"{tokens:,}")
st.text(f"L = {L:,}")
