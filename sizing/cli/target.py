"""`target`: solve for what carries wanted requests."""

import argparse
from pathlib import Path
from typing import Any

from sizing.answers.fleet import carriers, fleet_of
from sizing.answers.solve import solve
from sizing.answers.target import Answer, aim, best_rows, nearest
from sizing.basics.problems import Problem, RefusedError
from sizing.cli.shared import (
    add_choice,
    add_fleet,
    add_sheet,
    aligned,
    chosen,
    fleet_lines,
    fleet_wanted,
    print_answer,
    print_json,
    read_scenarios,
    stop,
    write_sheet,
)
from sizing.exchange.answer import SizingAnswer
from sizing.exchange.sizing_answer import refused_answer, sizing_answer
from sizing.exchange.target_answer import target_answer
from sizing.exchange.target_text import read_wants
from sizing.explain.target_words import (
    NEAR_COLUMNS,
    WAY_COLUMNS,
    gates,
    headline,
    near_rows,
    other_ways,
    reasons,
    way_rows,
)
from sizing.scenario.inputs import Scenario, changed, rest_is_given
from sizing.scenario.rest import for_bytes_alone


def add(commands: Any) -> None:
    """Declare the command."""
    target = commands.add_parser(
        "target",
        help="solve for what carries wanted requests",
        description="What to set so that so many requests of L run at once, or what does not fit and what would. FILE "
        "holds a scenario as for plan; - reads standard input.",
    )
    target.add_argument("file", metavar="FILE", help="JSON file, or - for standard input")
    target.add_argument("requests", metavar="REQUESTS", help="wanted requests of the whole deployment")
    target.add_argument("--length", metavar="L", help="context per request [tokens] (the scenario's)")
    target.add_argument(
        "--also",
        metavar="L:REQUESTS",
        action="append",
        default=[],
        help="a further length and the requests wanted of it, such as 32K:16; give it again for each",
    )
    add_fleet(target)
    add_choice(target)
    add_sheet(target)
    target.add_argument("--json", action="store_true", help="print the answer as JSON instead of tables")
    target.set_defaults(run=run, answer=SizingAnswer)


def run(options: argparse.Namespace) -> int:
    """Solve and print; gives the exit status."""
    kept = read_scenarios(options.file)
    scenario = chosen(kept, options.scenario)
    if options.length is not None:
        at_length = changed(scenario, L=options.length)
        scenario = at_length if isinstance(at_length, Scenario) else stop(at_length)
    labels = {"requests": "REQUESTS"}
    wants, problems = read_wants(scenario.L, options.requests, options.also, line="--also {}", labels=labels)
    if problems or not wants:
        stop(problems or [Problem(where="REQUESTS", sentence="REQUESTS is empty: give a number.")])
    fleet = fleet_wanted(options)
    try:
        if not rest_is_given(scenario):
            return print_answer(options, sizing_answer(solve(for_bytes_alone(scenario)), rest_given=False))
        answer = aim(scenario, wants)
    except RefusedError as refused:
        return print_answer(options, refused_answer(scenario, refused.refusal))
    if options.sheet:
        write_sheet(scenario, Path(options.sheet), kept, wants, fleet, brief=options.one_page)
    said, ways = target_answer(answer, scenario), carriers(solve(scenario)) if fleet else ()
    if options.json:
        many = fleet_of(fleet, ways, scenario).model_dump(mode="json") if fleet and fleet.wanted else None
        return print_json(said, target=answer.model_dump(mode="json"), fleet=many)
    many_lines = fleet_lines(fleet, ways, scenario, None) if fleet else []
    print("\n".join([*_target_lines(answer), *many_lines]), flush=True)
    return said.status


def _target_lines(answer: Answer) -> list[str]:
    lines = [headline(answer)]
    if answer.setting is not None:
        return [*lines, *answer.setting.flags]
    rows = best_rows(answer)
    lines += [reasons(answer), "", f"{', '.join(WAY_COLUMNS)}:", *aligned(way_rows(answer, rows))]
    lines += [*filter(None, (other_ways(answer), *gates(rows)))]
    near = near_rows(nearest(answer))
    return [*lines, "", f"nearest points that fit: {', '.join(NEAR_COLUMNS)}", *aligned(near)] if near else lines
