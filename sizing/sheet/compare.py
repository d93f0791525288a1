"""The comparison of a sheet: scenarios kept side by side, in the figure and the tables of the page Compare."""

from collections.abc import Sequence

from sizing.answers.compare import Row, differing_inputs, names_of, results, solved, story_of
from sizing.answers.solve import Sizing
from sizing.explain.unified_memory import static_among
from sizing.figures.compare import compare_figure
from sizing.figures.theme import Figure
from sizing.scenario.inputs import Scenario
from sizing.sheet.figures import fitted, inert
from sizing.sheet.parts import Section, figure, paragraph, table

LEAST = 2  # scenarios that make a comparison
WIDEST = 24  # [%] of the page for a column, so that two of them do not stand far apart
FIGURE = "compare"


def compared_figure(kept: Sequence[Scenario]) -> dict[str, Figure]:
    """What each runs over L, by the figure's name; none where there is nothing to compare or to draw."""
    names, found = names_of(tuple(kept)), solved(tuple(kept))
    sizings = {inert(name): one for name, one in zip(names, found, strict=True) if isinstance(one, Sizing)}
    if len(kept) < LEAST or not sizings:
        return {}
    return {FIGURE: fitted(compare_figure(sizings), names=names)}


def compared_section(kept: Sequence[Scenario]) -> Section:
    """The story and the figure alone; empty for fewer than two."""
    names, found = names_of(tuple(kept)), solved(tuple(kept))
    story = story_of(names, found)
    drawn = "".join(figure(name, one, story) for name, one in compared_figure(kept).items())
    return Section(f"{len(kept)} side by side: {story}", paragraph(static_among(names, kept)) + drawn)


def comparison_section(scenario: Scenario, kept: Sequence[Scenario]) -> Section:
    """In what they differ, what runs over L, and the results with their differences from the first; empty for fewer
    than two.
    """
    title = f"{len(kept)} side by side"
    if len(kept) < LEAST:
        return Section(title, "")
    names, found = names_of(tuple(kept)), solved(tuple(kept))
    own = names[list(kept).index(scenario)] if scenario in kept else "none of these"
    words = (
        f"The scenario of this sheet is {own}. Requests are those of the whole deployment, slots and GiB those of one "
        f"rank; in brackets stands the difference from the first. {static_among(names, kept)}"
    ).strip()
    story = story_of(names, found)
    drawn = "".join(figure(name, one, story) for name, one in compared_figure(kept).items())
    differ = differing_inputs(tuple(kept))
    inputs = paragraph("Where they differ:", "label") + _table(names, differ, "") if differ else ""
    return Section(f"{title}: {story}", paragraph(words) + inputs + drawn + _table(names, results(found), "number"))


def _table(names: tuple[str, ...], rows: tuple[Row, ...], kind: str) -> str:
    width = min(WIDEST, 84 // len(names))
    widths = (100 - width * len(names), *(width for _ in names))
    cells = [(row.quantity, *row.cells) for row in rows]
    return table(("", *names), cells, widths, dict.fromkeys(range(1, len(names) + 1), kind))
