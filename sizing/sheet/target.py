"""The target of a sheet: whether what is wanted fits and what to set; else what could be set instead, and its price."""

from collections.abc import Sequence

from sizing.answers.carrying_settings import Want
from sizing.answers.fleet import Fleet, FleetWanted
from sizing.answers.target import Answer, best_rows, nearest
from sizing.explain.fleet_words import PRICED_COLUMNS, fleet_columns, fleet_headline, fleet_notes, fleet_rows
from sizing.explain.target_words import (
    NEAR_COLUMNS,
    WAY_COLUMNS,
    gates,
    headline,
    near_rows,
    other_ways,
    reasons,
    wants_words,
    way_rows,
)
from sizing.scenario.inputs import Scenario
from sizing.sheet.parts import Section, copyable, paragraph, table

WAYS, NEAREST = "What else could be set, on this rest", "The nearest points that fit"


def target_section(answer: Answer, *, alone: bool = False) -> Section:
    """The target in words, with the flags that carry it or where the alternatives stand."""
    if answer.setting is not None:
        body = copyable(" ".join(answer.setting.flags))
    elif alone:
        body = ""
    else:
        body = paragraph(f"See “{WAYS}” and “{NEAREST}” below.")
    return Section(f"Target: {headline(answer)}", paragraph(reasons(answer)) + body)


def fleet_section(fleet: Fleet, wanted: FleetWanted, scenario: Scenario) -> Section:
    """What carries a fleet's requests, every one at L."""
    columns = fleet_columns(fleet)
    priced = columns == PRICED_COLUMNS
    widths = (17, 14, 10, 10, 14, 35) if priced else (20, 16, 12, 12, 40)
    kinds = dict.fromkeys(range(1, 5 if priced else 4), "number") | {len(columns) - 1: "code"}
    rows = table(columns, fleet_rows(fleet), widths, kinds)
    notes = paragraph(fleet_notes(fleet, wanted, scenario, None), "note")
    return Section("A fleet of such servers", paragraph(fleet_headline(fleet)) + rows + notes)


def ways_section(answer: Answer) -> Section:
    """The best other ways with the most that each runs; empty where the target fits."""
    if answer.setting is not None:
        return Section(WAYS, "")
    rows = best_rows(answer)
    below = "".join(map(paragraph, filter(None, (other_ways(answer), *gates(rows)))))
    return Section(WAYS, table(WAY_COLUMNS, way_rows(answer, rows), (42, 14, 15, 29), {1: "number"}) + below)


def nearest_section(answer: Answer) -> Section:
    """The nearest points; empty where the target fits."""
    if answer.setting is not None:
        return Section(NEAREST, "")
    rows = table(NEAR_COLUMNS, near_rows(nearest(answer)), (22, 17, 27, 34), {3: "code"})
    return Section(NEAREST, rows or paragraph("No point fits on any axis."))


def unsolved_section(wants: Sequence[Want]) -> Section:
    """What is wanted of flags that are refused; empty where nothing is."""
    words = f"Wanted: {wants_words(wants)}. No setting follows from flags that are refused." if wants else ""
    return Section("Target", paragraph(words))
