"""A sheet as one HTML file: no request, no script but its own two, and the same on screen and on paper."""

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import date
from functools import cache
from pathlib import Path

from sizing.answers.carrying_settings import Want
from sizing.answers.fleet import FleetWanted, carriers, fleet_of
from sizing.answers.solve import Sizing, solve
from sizing.answers.target import Answer, aim
from sizing.basics.problems import Refusal, RefusedError
from sizing.explain.fleet_words import fleet_headline
from sizing.explain.verdict import verdict
from sizing.figures.fleet import fleet_figure
from sizing.figures.theme import PRODUCT, Figure
from sizing.scenario.inputs import Scenario
from sizing.sheet import sections
from sizing.sheet.compare import compared_figure, comparison_section
from sizing.sheet.figures import fitted, inert, sheet_figures
from sizing.sheet.parts import Section, escaped, figure_place, paragraph
from sizing.sheet.reopen import reopen_section
from sizing.sheet.target import fleet_section, nearest_section, target_section, unsolved_section, ways_section
from sizing.version import tool_version

HERE = Path(__file__).parent

# Only the scripts with these hashes run; styles are inline because Plotly sets them; nothing is loaded or sent.
POLICY = "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def sheet_of(
    scenario: Scenario,
    *,
    on: date,
    link_base: str | None = None,
    kept: Sequence[Scenario] = (),
    wants: Sequence[Want] = (),
    fleet: FleetWanted | None = None,
) -> str:
    """The sheet of any scenario, also of one whose flags are refused, dated `on`.

    `link_base` is the dashboard's address, to which the query is put. Two or more scenarios that are `kept` are put
    side by side; what `wants` ask for is solved, and what is wanted of a `fleet`. Each is a part of the sheet only
    where it is given.
    """
    reopen = reopen_section(scenario, link_base, kept, wants, fleet)
    try:
        sizing = solve(scenario)
    except RefusedError as refused:
        return _refused_sheet(scenario, refused.refusal, on, reopen, kept, wants)
    return _sheet(sizing, on, reopen, kept, aim(scenario, wants) if wants else None, fleet)


def _sheet(
    sizing: Sizing,
    on: date,
    reopen: Section,
    kept: Sequence[Scenario],
    answer: Answer | None,
    wanted: FleetWanted | None,
) -> str:
    scenario, figures = sizing.scenario, sheet_figures(sizing)
    alt = verdict(sizing).text
    fleet = fleet_of(wanted, carriers(sizing), scenario) if wanted and wanted.wanted else None
    named = sizing.model_copy(update={"scenario": scenario.model_copy(update={"name": inert(scenario.title)})})
    drawn = {"fleet": fitted(fleet_figure(named, fleet), names=(scenario.title,))} if fleet else {}
    parts = [
        _section(sections.verdict_section(sizing)),
        _section(target_section(answer)) if answer else "",
        _section(sections.change_section(sizing)),
        *(figure_place(name, alt) for name in figures),
        _section(sections.launch_section(sizing)),
        _section(ways_section(answer)) if answer else "",
        _section(nearest_section(answer)) if answer else "",
        _section(fleet_section(fleet, wanted, scenario)) if fleet and wanted else "",
        *(figure_place(name, fleet_headline(fleet)) for name in drawn if fleet),
        _section(comparison_section(scenario, kept)),
        _section(reopen),
        _section(sections.limits_section(sizing)),
        _section(sections.flips_section(sizing)),
        _section(sections.advice_section(sizing)),
        _section(sections.inputs_section(scenario)),
        _section(sections.model_section(scenario)),
        _section(sections.working_section(sizing)),
        _section(sections.comparisons_section(sizing)),
        _section(sections.allocations_section(sizing)),
    ]
    return _document(scenario, parts, figures | drawn | compared_figure(kept), on)


def _refused_sheet(
    scenario: Scenario,
    refusal: Refusal,
    on: date,
    reopen: Section,
    kept: Sequence[Scenario],
    wants: Sequence[Want],
) -> str:
    """The sheet of flags that are refused before any memory is counted: the refusal, its cure and the inputs."""
    parts = [
        _section(sections.refusal_section(refusal)),
        _section(unsolved_section(wants)),
        _section(comparison_section(scenario, kept)),
        _section(reopen),
        _section(sections.inputs_section(scenario)),
        _section(sections.model_section(scenario)),
    ]
    return _document(scenario, parts, compared_figure(kept), on)


def _document(scenario: Scenario, parts: Iterable[str], figures: dict[str, Figure], on: date) -> str:
    scripts = [_plotly(), _text("draw.js")] if figures else []
    ends = (sections.not_modelled_section(), sections.sources_section(scenario))
    body = "".join((_header(scenario, on), *parts, *map(_section, ends)))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(scripts)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(scenario.title)} · {PRODUCT}</title>\n<style>\n{_text('sheet.css')}</style>\n</head>\n"
        f"<body>\n<main>{body}</main>\n{_data(figures)}{''.join(f'<script>{script}</script>' for script in scripts)}\n"
        "</body>\n</html>\n"
    )


def _header(scenario: Scenario, on: date) -> str:
    unnamed = scenario.model_copy(update={"name": ""}).title
    facts = " · ".join(
        (
            on.isoformat(),
            *([unnamed] if scenario.name else []),
            f"SGLang {scenario.release}",
            f"{PRODUCT} {tool_version()}",
        )
    )
    what = "Sizing of the state pool and the full-KV pool"
    return f"<header>{paragraph(what, 'kind')}<h1>{escaped(scenario.title)}</h1>{paragraph(facts, 'note')}</header>"


def _section(found: Section) -> str:
    """A section, or nothing where it has nothing to say."""
    return f"<section><h2>{escaped(found.title)}</h2>{found.body}</section>" if found.body else ""


def _data(figures: dict[str, Figure]) -> str:
    """The figures as a block of data, in which no character can end the block."""
    if not figures:
        return ""
    text = json.dumps(figures, allow_nan=False, separators=(",", ":"))
    inert = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" id="figures">{inert}</script>\n'


def _policy(scripts: list[str]) -> str:
    return POLICY.format(scripts=" ".join(map(_hash, scripts)) or "'none'")


@cache
def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _plotly() -> str:
    """plotly.js from the installed package; imported here because the rest of the core does without it."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())


@cache
def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")
