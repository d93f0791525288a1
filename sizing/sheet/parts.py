"""Pieces of HTML. Every word goes through `escaped`: names, links and checkpoints are strangers' text."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

from sizing.figures.theme import Figure
from sizing.sheet.svg import svg

SHORT = 9  # rows; a table up to this long stays on one page


class Section(NamedTuple):
    """One heading and the HTML below it."""

    title: str
    body: str


def escaped(words: str) -> str:
    """Words as HTML that shows them as they are, also inside an attribute."""
    return escape(words, quote=True)


def paragraph(words: str, kind: str = "") -> str:
    """One paragraph; `kind` is a class of the style sheet."""
    return f"<p{_class(kind)}>{escaped(words)}</p>" if words else ""


def copyable(words: str) -> str:
    """Text to copy as it stands: one click selects all of it."""
    return f"<pre>{escaped(words)}</pre>"


def bullets(rows: Iterable[tuple[str, str]]) -> str:
    """A list of topics, each with its text."""
    items = "".join(f"<li><strong>{escaped(topic)}.</strong> {escaped(text)}</li>" for topic, text in rows)
    return f"<ul>{items}</ul>" if items else ""


def figure(name: str, drawn: Figure, alt: str) -> str:
    """A figure, drawn into the page; `alt` is what a screen reader says instead."""
    return f'<figure data-figure="{escaped(name)}">{svg(drawn, alt)}</figure>'


def table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    widths: Sequence[int],
    kinds: Mapping[int, str] = {},
) -> str:
    """A table whose columns take `widths` [%] of the page, so that none is ever wider than it; empty without rows.

    `kinds` gives columns, by their place, a class of the style sheet: `number` stands to the right, one click selects
    all of `code`.
    """
    cells = [tuple(row) for row in rows]
    if not cells:
        return ""
    each = [kinds.get(at, "") for at in range(len(columns))]
    sizes = "".join(f'<col style="width:{width}%">' for width in widths)
    head = "".join(
        f'<th scope="col"{_class(kind)}>{escaped(name)}</th>' for name, kind in zip(columns, each, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, each)}</tr>" for row in cells)
    return (
        f"<table{_class('whole' if len(cells) <= SHORT else '')}><colgroup>{sizes}</colgroup>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def _cells(row: Sequence[str], kinds: Sequence[str]) -> str:
    """Cells in which a long variable breaks behind an underscore, as a long flag does behind a hyphen."""
    return "".join(
        f"<td{_class(kind)}>{escaped(cell).replace('_', '_<wbr>')}</td>" for cell, kind in zip(row, kinds, strict=True)
    )


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
