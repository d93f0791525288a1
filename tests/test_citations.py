"""Every rule that the code cites stands in docs/engine/: the document, the section, the trap, the quoted words."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs" / "engine"
SOURCES = [
    path
    for place in ("app.py", "sizing", "pages", "tests", "README.md", "CONTRIBUTING.md", "docs/architecture.md")
    for path in ([ROOT / place] if (ROOT / place).is_file() else sorted((ROOT / place).rglob("*.*")))
    if path.suffix in {".py", ".md"} and path != Path(__file__)
]

# A name by itself: one with a folder before it belongs to another repository, or to a link.
NAME = re.compile(r"(?<![\w/.-])([a-z]+(?:-[a-z]+)+)\.md\b")
NUMBER = r"\d+(?:\.\d+)*"
NUMBERS = rf"{NUMBER}(?:(?:,?[ ](?:and|to)[ ]|,[ ]?){NUMBER})*"
BEFORE = re.compile(rf"\b(section|trap|rule)s? ({NUMBERS}) of $")
WORDS = ("Caveats", "Procedure", "ReplaySSM")
# What may follow a name, piece by piece, until something else does.
PIECE = re.compile(
    rf"""[ ,;:(]*(?:and\ )?(?:
        (?P<kind>section|trap|rule)s?\ (?P<numbers>{NUMBERS})(?!\d|\ of\ )
      | (?P<bare>{NUMBER})(?=[\s,;:)(]|\.\s|\.$|$)
      | ["“](?P<quoted>[^"“”]{{3,80}})["”]
      | (?P<word>{"|".join(WORDS)})\b(?:\ (?P<step>\d+))?
    )""",
    re.VERBOSE,
)


class Citation(NamedTuple):
    """One document, and one place in it."""

    where: str
    document: str
    kind: str
    """section, trap, rule, or words; empty for the document as a whole."""
    place: str


def unwrapped(text: str) -> str:
    """The text in one line: a citation may go on in the next one, behind a comment sign or a quotation mark."""
    return re.sub(r'(?:" *)?\n\s*(?:#+ |f?"(?!""))?\s*', " ", text)


def citations(text: str, where: str = "") -> Iterator[Citation]:
    """Every citation in a text."""
    text = unwrapped(text)
    for found in NAME.finditer(text):
        name = found[1]
        yield Citation(where, name, "", "")
        if ahead := BEFORE.search(text, 0, found.start()):
            yield from (Citation(where, name, ahead[1], number) for number in counted(ahead[2]))
        at = found.end()
        while piece := PIECE.match(text, at):
            yield from _places(where, name, piece)
            at = piece.end()


def _places(where: str, name: str, piece: re.Match[str]) -> Iterator[Citation]:
    if piece["numbers"]:
        yield from (Citation(where, name, piece["kind"], number) for number in counted(piece["numbers"]))
    elif piece["bare"]:
        yield Citation(where, name, "section", piece["bare"])
    else:
        yield Citation(where, name, "words", piece["quoted"] or piece["word"])
        if piece["step"]:
            yield Citation(where, name, "rule", piece["step"])


def counted(numbers: str) -> list[str]:
    """The numbers of "1, 3 and 5 to 7".

    >>> counted("1, 3 and 5 to 7")
    ['1', '3', '5', '6', '7']
    """
    found: list[str] = []
    for joined, number in re.findall(rf"(to )?({NUMBER})", numbers):
        if joined and found and found[-1].isdecimal() and number.isdecimal():
            found += [str(n) for n in range(int(found[-1]) + 1, int(number))]
        found.append(number)
    return found


@cache
def document(name: str) -> str:
    """The text of a document, its emphasis and line ends taken out; empty where there is none."""
    path = DOCS / f"{name}.md"
    return re.sub(r"[`*]", "", path.read_text()) if path.is_file() else ""


def stands(cited: Citation) -> bool:
    """Whether the cited place is there."""
    text = document(cited.document)
    if cited.kind == "section":
        return re.search(rf"^#+ {re.escape(cited.place)}(?:\.)? ", text, re.MULTILINE) is not None
    if cited.kind in ("trap", "rule"):
        return re.search(rf"^{cited.place}\. ", text, re.MULTILINE) is not None
    return " ".join(cited.place.split()) in " ".join(text.split())


CITED = {name for path in SOURCES for name in NAME.findall(unwrapped(path.read_text()))}


def test_documents_are_cited_and_listed() -> None:
    """Every document that is cited stands in docs/engine/, and its README lists all that stand there."""
    standing = {path.stem for path in DOCS.glob("*.md")} - {"README"}
    assert CITED
    assert sorted(CITED - standing) == []
    assert [name for name in sorted(standing) if f"({name}.md)" not in (DOCS / "README.md").read_text()] == []


def test_every_citation_leads_somewhere() -> None:
    """Sections, traps, rules and quoted words are in the document that is named."""
    found = [
        cited for path in SOURCES for cited in citations(path.read_text(), f"{path.relative_to(ROOT)}") if cited.kind
    ]
    assert len(found) > 100
    assert [cited for cited in found if not stands(cited)] == []


def test_documents_cite_each_other_well() -> None:
    """A document's pointers to the others, and to its own sections, lead somewhere too."""
    texts = {path.stem: path.read_text() for path in DOCS.glob("*.md")}
    found = [cited for name, text in texts.items() for cited in citations(text, name) if cited.kind]
    own = [
        Citation(name, name, "section", number)
        for name, text in texts.items()
        for numbers in re.findall(
            rf"(?<!its )\bsections? ({NUMBERS})(?! of )", re.sub(r"\w\.md\W+sections? [\d. ]+", "", unwrapped(text))
        )
        for number in counted(numbers)
    ]
    assert found
    assert [cited for cited in (*found, *own) if not stands(cited)] == []


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("engine-sizing.md sections 1 to 3, 5 and 7.", ["1", "2", "3", "5", "7"]),
        ("(trap 6 of model-geometry.md)", ["6"]),
        ("rest-before-boot.md section 3.2, rules 30 to 32", ["3.2", "30", "31", "32"]),
        ('boot-log-formats.md, "Prefix", sections 2 and 5', ["Prefix", "2", "5"]),
        ("running-server.md 2.5 (`handle`)", ["2.5"]),
        ("rest-before-boot.md section 1, and the functions\n# of 0.5.4", ["1"]),
        ("section 4 of\n# engine-sizing.md", ["4"]),
        ("compute-mamba-ratio.md, Procedure 3: ", ["Procedure", "3"]),
        ("model-geometry.md section 2 and engine-sizing.md section 3", ["2", "3"]),
        ("docs/benchmark-modes/trace-replay.md section 9", []),
        ("compute-mamba-ratio.md. Both dtypes", []),
    ],
)
def test_citations_are_found(text: str, places: list[str]) -> None:
    """The forms in which the code cites."""
    assert [cited.place for cited in citations(text) if cited.kind] == places


@pytest.mark.parametrize(
    "cited",
    [
        Citation("", "engine-sizing", "section", "15"),
        Citation("", "model-geometry", "trap", "22"),
        Citation("", "rest-before-boot", "rule", "43"),
        Citation("", "compute-mamba-ratio", "words", "Cavets"),
        Citation("", "engine-rules", "section", "1"),
    ],
)
def test_what_is_not_there_is_told(cited: Citation) -> None:
    """A wrong number, wrong words and a wrong name do not stand."""
    assert not stands(cited)


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "README.md", "docs/architecture.md", "docs/engine/README.md"])
def test_files_that_documents_name_are_there(name: str) -> None:
    """Recipes and maps name files and folders of this repository; no link leads to nothing."""
    text = (ROOT / name).read_text()
    named = re.findall(r"`((?:sizing|pages|tests|docs)/[\w/.-]+)`", text)
    linked = [(ROOT / name).parent / link for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text)]
    assert named
    assert [path for path in (*(ROOT / path for path in named), *linked) if not path.exists()] == []
