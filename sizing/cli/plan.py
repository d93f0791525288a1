"""`plan`: solve a scenario given as JSON."""

import argparse
import json
from pathlib import Path
from typing import Any

from sizing.answers.band import at_low_end
from sizing.answers.flip_points import flips
from sizing.answers.limit_panel import lifts
from sizing.answers.recommended import recommended
from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import RefusedError
from sizing.basics.units import count
from sizing.cli.shared import (
    add_choice,
    add_sheet,
    aligned,
    chosen,
    print_answer,
    read_scenarios,
    stop_with,
    write,
    write_sheet,
)
from sizing.exchange.answer import SizingAnswer
from sizing.exchange.exports import result_json
from sizing.exchange.scenario_file import to_file
from sizing.exchange.sizing_answer import refused_answer, sizing_answer
from sizing.explain.hardware_words import automatic_rows
from sizing.explain.launch_flags import why_words
from sizing.explain.unified_memory import COLUMNS as UNIFIED_COLUMNS
from sizing.explain.unified_memory import unified_in_force
from sizing.explain.verdict import advice, answer_text, ask_for_rest
from sizing.explain.working import comparisons, working
from sizing.scenario.inputs import DEFAULTS, FIELDS, INPUTS, rest_is_given
from sizing.scenario.rest import for_bytes_alone


def add(commands: Any) -> None:
    """Declare the command."""
    plan = commands.add_parser(
        "plan",
        help="solve a scenario given as JSON",
        description="Solve a scenario. FILE holds a JSON object with the inputs that differ from the worked example "
        '(Kimi-K3 at TP8), for instance {"L": 16384, "D": 4}; - reads standard input.',
        epilog=_fields_help(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    plan.add_argument("file", metavar="FILE", help="JSON file, or - for standard input")
    plan.add_argument("--json", action="store_true", help="print every number as JSON instead of a short table")
    add_sheet(plan)
    plan.add_argument("--save", metavar="OUT", help="write the scenario as a file that the page Compare loads")
    add_choice(plan)
    plan.set_defaults(run=run, answer=SizingAnswer)


def _fields_help() -> str:
    lines = ["inputs (name, default, what):"]
    for name, field in FIELDS.items():
        own = INPUTS[name]
        unit = f" [{own.unit}]" if own.unit else ""
        flag = f" ({own.flag})" if own.flag else ""
        when = "" if own.counts in ("always", "never") else f" Counts {own.counts}."
        lines.append(f"  {name} = {json.dumps(DEFAULTS[name])}{unit}{flag}\n      {field.description}{when}")
    return "\n".join(lines)


def run(options: argparse.Namespace) -> int:
    """Solve and print; gives the exit status."""
    kept = read_scenarios(options.file)
    scenario = chosen(kept, options.scenario)
    try:
        sizing = solve(for_bytes_alone(scenario))
    except RefusedError as refused:
        return print_answer(options, refused_answer(scenario, refused.refusal))
    if not rest_is_given(scenario):
        if options.sheet:
            stop_with(ask_for_rest(scenario), where="rest_gib")
        return print_answer(options, sizing_answer(sizing, rest_given=False))
    if options.sheet:
        write_sheet(scenario, Path(options.sheet), kept, brief=options.one_page)
    if options.save:
        write(Path(options.save), to_file([scenario]).encode("utf-8"), where="--save")
    print(result_json(sizing) if options.json else _as_table(sizing), flush=True)
    return sizing_answer(sizing).status


def _as_table(sizing: Sizing) -> str:
    found, one, safe = recommended(sizing), unified_in_force(sizing), at_low_end(sizing)
    steps = [(step.quantity, step.result, f"{step.formula}: {step.numbers}") for step in working(safe)]
    beside = [(row.quantity, f"{row.specification} / {row.engine}", row.why) for row in comparisons(safe) if row.why]
    limits = [(row.place or "-", f"{row.limit.name} {count(row.limit.requests)}", row.lifted_by) for row in lifts(safe)]
    turns = [(turn.quantity, turn.now, f"{turn.flips_at} {turn.then}".strip()) for turn in flips(safe)]
    parts = [answer_text(sizing), "", *aligned(steps)]
    parts += ["", "limits, the smallest first, and what lifts them:", *aligned(limits)] if limits else []
    parts += ["", "input, now, and where the other pool is short first:", *aligned(turns)] if turns else []
    parts += ["", "specification / engine, where they differ:", *aligned(beside)] if beside else []
    by_itself = automatic_rows(sizing.scenario)
    parts += ["", "what SGLang sets by itself, and by which rule:", *aligned(by_itself)] if by_itself else []
    if found and not one:
        parts += ["", f"set: {found.flag}", *([f" or: {' '.join(found.alternative)}"] if found.alternative else [])]
        parts += filter(None, [why_words(sizing, found)])  # its reason stands in the first line
    parts += ["", *aligned((UNIFIED_COLUMNS, *one.rows)), f"set: {one.flag}"] if one else []
    parts += ["", *[f"{item.topic}. {item.text}" for item in advice(safe)]]
    return "\n".join(parts)
