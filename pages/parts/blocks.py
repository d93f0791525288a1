"""Pieces that pages share: words that cannot become markup, tables, boxes to copy from."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import streamlit as st

NUMBER = re.compile(r"^[+-]?[\d,.]+( \([+-][\d,]+\))?$")
MARKUP = {ord(sign): f"\\{sign}" for sign in r"\`*_{}[]()#+-.!|<>~$:@&="} | {ord("\n"): "  \n"}
# What Streamlit's Markdown finds in a text once its escapes are gone: addresses (GFM's autolinks), names in colons
# (emoji, icons, the logo), and signs that stand alone and become another (--, ->, >=). Broken by a sign of no width.
# Each begins with the sign that it looks for: in most words there is none, and the search is over at once.
FOUND_LATER = re.compile(
    r"[wWpP:<>~-](?:(?i:(?<=www)(?=\.)|(?<=http)(?=s?://)|(?<=:)(?!\d\d?:)(?=[\w+-]+:|material[/_]))"
    r"|(?<=(?<!\S)[-<>~])(?=[->=]+(?!\S)))"
)
ADDRESS = re.compile(r"@(?<=[\w.+-]@)")
BAR, BAR_END = "\N{DOUBLE VERTICAL LINE}", 16
NO_WIDTH = "\N{WORD JOINER}"

NUMBERED = re.compile(r" (?==)|(?<==) |(?<=\d) (?=and \d)|(?<=\d and) |(?<=^pin) (?=\d)")  # S = 4, 74 and 0, pin 96


def sentence(words: str) -> str:
    """Words as a sentence of their own."""
    return f"{words[:1].upper()}{words[1:]}."


def plain(words: str) -> str:
    """Words for a Markdown element that are shown as they are, whatever they hold; a line stays a line."""
    broken = FOUND_LATER.sub(lambda found: found[0] + NO_WIDTH, ADDRESS.sub(f"{NO_WIDTH}@", words))
    return broken.translate(MARKUP)


def table_text(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A small table as Markdown; columns of mostly numbers are set to the right."""
    cells = [list(row) for row in rows]
    marks = ["---:" if _numeric(column) else "---" for column in zip(*cells, strict=True)]
    lines = [[plain(name) for name in columns], marks, *([plain(cell) for cell in row] for row in cells)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def bar(factor: float | None) -> str:
    """A cell that words.js draws as a bar: how many times as much, on a logarithmic scale from 1 to 16 in a half."""
    if factor is None:
        return ""
    share = min(abs(math.log(factor, BAR_END)), 1)
    return f"{BAR}{'R' if factor >= 1 else 'L'}{share:.0%}".rstrip("%")


def unbroken(row: Sequence[str]) -> list[str]:
    """The cells of a row, where a number stays on one line with what it belongs to."""
    return [NUMBERED.sub("\N{NO-BREAK SPACE}", cell) for cell in row]


def _numeric(column: Sequence[str]) -> bool:
    """Whether most cells are numbers; they are compared by eye, so they stand to the right."""
    return sum(bool(NUMBER.match(cell)) for cell in column) * 2 > len(column)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, note: str = "") -> None:
    """A small table of text with a note below."""
    st.markdown(table_text(columns, rows))
    if note:
        st.caption(plain(note))


SHORT = 20  # rows up to which a frame is shown whole


def data_table(frame: Any, *, key: str) -> None:
    """A frame to sort, search and download as CSV; thousands are set apart, real numbers have five digits."""
    formats = dict.fromkeys(frame.select_dtypes("integer"), "localized")
    formats |= dict.fromkeys(frame.select_dtypes("floating"), "%.5g")
    columns = {name: st.column_config.NumberColumn(format=form) for name, form in formats.items()}
    height: Literal["content", "auto"] = "content" if len(frame) <= SHORT else "auto"
    st.dataframe(frame, hide_index=True, column_config=columns, height=height, key=key)
