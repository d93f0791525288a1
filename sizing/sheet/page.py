"""A sheet as one HTML file: no request, no script, and the same on screen and on paper."""

from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from sizing.answers.band import at_low_end
from sizing.answers.carrying_settings import Want
from sizing.answers.compare import title_of
from sizing.answers.fleet import FleetWanted, carriers, fleet_of
from sizing.answers.solve import Sizing, solve
from sizing.answers.target import Answer, aim
from sizing.basics.problems import Refusal, RefusedError
from sizing.explain.fleet_words import fleet_headline
from sizing.explain.verdict import verdict
from sizing.figures.fleet import fleet_figure
from sizing.figures.theme import PRODUCT
from sizing.scenario.inputs import Scenario
from sizing.sheet import sections
from sizing.sheet.compare import LEAST, compared_section, comparison_section
from sizing.sheet.figures import fitted, inert, sheet_figures
from sizing.sheet.parts import Section, escaped, figure, paragraph
from sizing.sheet.reopen import reopen_section
from sizing.sheet.target import fleet_section, nearest_section, target_section, unsolved_section, ways_section
from sizing.version import tool_version

HERE = Path(__file__).parent

# No script runs, nothing is loaded or sent.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MAX_REASON = 300  # characters


def sheet_of(
    scenario: Scenario,
    *,
    on: date,
    link_base: str | None = None,
    kept: Sequence[Scenario] = (),
    wants: Sequence[Want] = (),
    fleet: FleetWanted | None = None,
    reason: str = "",
    brief: bool = False,
) -> str:
    """The sheet of any scenario, also of one whose flags are refused, dated `on`; one page of it where it is `brief`.

    `reason` is a line of the reader's own, put under the title.

    `link_base` is the dashboard's address, to which the query is put. Two or more scenarios that are `kept` are put
    side by side; what `wants` ask for is solved, and what is wanted of a `fleet`. Each is a part of the sheet only
    where it is given.
    """
    reopen = reopen_section(scenario, link_base, () if brief else kept, wants, fleet)
    header = _header(scenario, on, reason[:MAX_REASON])
    try:
        sizing = solve(scenario)
    except RefusedError as refused:
        return _document(scenario, header, _refused(scenario, refused.refusal, reopen, kept, wants))
    answer = aim(scenario, wants) if wants else None
    if brief:
        return _document(scenario, header, _brief(sizing, reopen, kept, answer), brief=True)
    return _document(scenario, header, _whole(sizing, reopen, kept, answer, fleet))


def _brief(sizing: Sizing, reopen: Section, kept: Sequence[Scenario], answer: Answer | None) -> list[str]:
    """One page: what runs, what to set, one figure, what is wanted, what to copy, and the inputs that were set."""
    alt, own = verdict(sizing).text, dict(list(sheet_figures(sizing).items())[:1])
    return [
        _section(sections.verdict_section(sizing, brief=True)),
        _section(target_section(answer, alone=True)) if answer else "",
        _section(sections.change_section(sizing, brief=True)),
        *([_section(compared_section(kept))] if len(kept) >= LEAST else [figure(*one, alt) for one in own.items()]),
        _section(sections.stated_section(sizing.scenario)),
        _section(reopen),
    ]


def _whole(
    sizing: Sizing,
    reopen: Section,
    kept: Sequence[Scenario],
    answer: Answer | None,
    wanted: FleetWanted | None,
) -> list[str]:
    scenario, figures, safe = sizing.scenario, sheet_figures(sizing), at_low_end(sizing)
    alt = verdict(sizing).text
    fleet = fleet_of(wanted, carriers(sizing), scenario) if wanted and wanted.wanted else None
    named = sizing.model_copy(update={"scenario": scenario.model_copy(update={"name": inert(scenario.title)})})
    drawn = {"fleet": fitted(fleet_figure(named, fleet), names=(scenario.title,))} if fleet else {}
    return [
        _section(sections.verdict_section(sizing)),
        _section(target_section(answer)) if answer else "",
        _section(sections.change_section(sizing)),
        *(figure(name, one, alt) for name, one in figures.items()),
        _section(sections.launch_section(sizing)),
        _section(ways_section(answer)) if answer else "",
        _section(nearest_section(answer)) if answer else "",
        _section(fleet_section(fleet, wanted, scenario)) if fleet and wanted else "",
        *(figure(name, one, fleet_headline(fleet)) for name, one in drawn.items() if fleet),
        _section(comparison_section(scenario, kept)),
        _section(reopen),
        _section(sections.limits_section(safe)),
        _section(sections.flips_section(safe)),
        _section(sections.advice_section(safe)),
        _section(sections.inputs_section(scenario)),
        _section(sections.model_section(scenario)),
        _section(sections.working_section(safe)),
        _section(sections.comparisons_section(safe)),
        _section(sections.allocations_section(safe)),
    ]


def _refused(
    scenario: Scenario,
    refusal: Refusal,
    reopen: Section,
    kept: Sequence[Scenario],
    wants: Sequence[Want],
) -> list[str]:
    """The sheet of flags that are refused before any memory is counted: the refusal, its cure and the inputs."""
    return [
        _section(sections.refusal_section(refusal)),
        _section(unsolved_section(wants)),
        _section(comparison_section(scenario, kept)),
        _section(reopen),
        _section(sections.inputs_section(scenario)),
        _section(sections.model_section(scenario)),
    ]


def _document(scenario: Scenario, header: str, parts: Iterable[str], *, brief: bool = False) -> str:
    ends = () if brief else (sections.not_modelled_section(), sections.sources_section(scenario))
    body = "".join((header, *parts, *map(_section, ends)))
    kind = ' class="brief"' if brief else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title_of(scenario))} · {PRODUCT}</title>\n<style>\n{_text('sheet.css')}</style>\n</head>\n"
        f"<body{kind}>\n<main>{body}</main>\n</body>\n</html>\n"
    )


def _header(scenario: Scenario, on: date, reason: str) -> str:
    unnamed = scenario.model_copy(update={"name": ""}).title
    facts = " · ".join(
        (
            on.isoformat(),
            *([unnamed] if scenario.name else []),
            f"SGLang {scenario.release}",
            f"{PRODUCT} {tool_version()}",
        )
    )
    what = "Sizing of the state pool and the KV pool"
    said = paragraph(f"Reason: {reason}") if reason.strip() else ""
    title = f"<h1>{escaped(title_of(scenario))}</h1>"
    return f"<header>{paragraph(what, 'kind')}{title}{said}{paragraph(facts, 'note')}</header>"


def _section(found: Section) -> str:
    """A section, or nothing where it has nothing to say."""
    return f"<section><h2>{escaped(found.title)}</h2>{found.body}</section>" if found.body else ""


@cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
