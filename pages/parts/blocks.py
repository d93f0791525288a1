"""Pieces that pages share: words that cannot become markup, tables, boxes to copy from."""

import re
from collections.abc import Iterable, Sequence

import streamlit as st

MARKUP = re.compile(r"([\\`*_{}\[\]()#+\-.!|<>~$:@])")


def plain(words: str) -> str:
    """Words for a Markdown element that are shown as they are, whatever they hold; a line stays a line."""
    return MARKUP.sub(r"\\\1", words).replace("\n", "  \n")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "", note: str = "") -> None:
    """A small table of text, with a title above and a note below."""
    if title:
        st.markdown(f"##### {plain(title)}")
    lines = [columns, ["---"] * len(columns), *([plain(cell) for cell in row] for row in rows)]
    st.markdown("\n".join("| " + " | ".join(line) + " |" for line in lines))
    if note:
        st.caption(plain(note))
