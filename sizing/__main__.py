"""Command line: the same inputs as the dashboard, as JSON, and the same numbers."""

import argparse
import json
import os
import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from sizing.flags import flags
from sizing.flips import flips
from sizing.lifts import lifts
from sizing.problems import Problem, RefusedError, listed
from sizing.scenario import DEFAULTS, FIELDS, Scenario, extra, read_scenario
from sizing.solve import Sizing, solve
from sizing.units import count
from sizing.verdict import advice, verdict
from sizing.working import comparisons, working

MAX_INPUT_LENGTH = 1_000_000  # characters; a scenario has some fifty short values; anything near this is not one
USAGE_ERROR = 2  # argparse's own exit status for wrong input
REFUSED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run a command; gives the exit status: 0 solved, 1 the engine would refuse, 2 wrong input."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a quotation mark still gets the numbers
    try:
        return int(options.run(options))
    except BrokenPipeError:  # whoever reads, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sizing",
        description="How to split GPU memory between the state pool and the full-KV pool of a hybrid model in SGLang.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
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
    plan.set_defaults(run=_plan)
    return parser


def _fields_help() -> str:
    lines = ["inputs (name, default, what):"]
    for name, field in FIELDS.items():
        unit = f" [{extra(name, 'unit')}]" if extra(name, "unit") else ""
        flag = f" ({extra(name, 'flag')})" if extra(name, "flag") else ""
        lines.append(f"  {name} = {json.dumps(DEFAULTS[name])}{unit}{flag}\n      {field.description}")
    return "\n".join(lines)


def _plan(options: argparse.Namespace) -> int:
    scenario = read_scenario(_read_json(options.file))
    if not isinstance(scenario, Scenario):
        _stop(scenario)
    try:
        sizing = solve(scenario)
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    print(_as_json(sizing) if options.json else _as_table(sizing), flush=True)
    return 0 if hasattr(sizing.now, "runs") else REFUSED


def _stop(problems: list[Problem]) -> NoReturn:
    print(listed(problems), file=sys.stderr)
    raise SystemExit(USAGE_ERROR)


def _stop_with(sentence: str) -> NoReturn:
    _stop([Problem(where="FILE", sentence=sentence)])


def _read_json(file: str) -> dict[str, Any]:
    name = "Standard input" if file == "-" else file
    try:
        text = _head(file)
    except (OSError, ValueError) as error:
        _stop_with(
            f"{name} cannot be read as text ({error.__class__.__name__}). Name a JSON file, or - for standard input."
        )
    if len(text) > MAX_INPUT_LENGTH:
        _stop_with(f"{name} is larger than {MAX_INPUT_LENGTH:,} characters: that is not a scenario.")
    try:
        values = json.loads(text)
    except json.JSONDecodeError as error:
        _stop_with(f'{name} is not JSON: {error}. Write an object such as {{"L": 16384}}.')
    except RecursionError:
        _stop_with(f"{name} is nested too deeply: that is not a scenario.")
    except ValueError:  # Python refuses to read a whole number of more than 4,300 digits
        _stop_with(f"{name} holds a number of thousands of digits: that is not a scenario.")
    if not isinstance(values, dict):
        _stop_with(f'{name} holds {_kind(values)}, not an object of named inputs such as {{"L": 16384}}.')
    return values


def _kind(value: object) -> str:
    words = {list: "a list", str: "text", bool: "true or false", int: "a number", float: "a number"}
    return words.get(type(value), "null")


def _head(file: str) -> str:
    """As much of a file, or of standard input, as is worth reading; UTF-8 whatever the locale."""
    if file == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")
        return sys.stdin.read(MAX_INPUT_LENGTH + 1)
    with Path(file).open(encoding="utf-8") as text:
        return text.read(MAX_INPUT_LENGTH + 1)


def _as_json(sizing: Sizing) -> str:
    words = flags(sizing)
    return json.dumps(
        {
            "verdict": verdict(sizing).text,
            "flags": words.model_dump() if words else None,
            "limits": [row.model_dump() for row in lifts(sizing)],
            "flips": [turn.model_dump() for turn in flips(sizing)],
            "advice": [item.model_dump() for item in advice(sizing)],
            "sizing": sizing.model_dump(mode="json"),
        },
        indent=2,
        ensure_ascii=False,
    )


def _as_table(sizing: Sizing) -> str:
    words = flags(sizing)
    steps = [(step.quantity, step.result, f"{step.formula}: {step.numbers}") for step in working(sizing)]
    beside = [(row.quantity, f"{row.specification} / {row.engine}", row.why) for row in comparisons(sizing) if row.why]
    limits = [
        (row.place or "-", f"{row.limit.name} {count(row.limit.requests)}", row.lifted_by) for row in lifts(sizing)
    ]
    turns = [(turn.quantity, turn.now, f"{turn.flips_at} {turn.then}".strip()) for turn in flips(sizing)]
    parts = [verdict(sizing).text, "", *_aligned(steps)]
    parts += ["", "limits, the smallest first, and what lifts them:", *_aligned(limits)] if limits else []
    parts += ["", "input, now, and where the other pool is short first:", *_aligned(turns)] if turns else []
    parts += ["", "specification / engine, where they differ:", *_aligned(beside)] if beside else []
    if words:
        parts += [
            "",
            f"set: {words.ratio or words.pin}",
            *([f" or: {words.pin}"] if words.ratio and words.pin else []),
            words.why,
        ]
    parts += ["", *[f"{item.topic}. {item.text}" for item in advice(sizing)]]
    return "\n".join(parts)


def _aligned(rows: list[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]}".rstrip() for row in rows]


if __name__ == "__main__":
    sys.exit(main())
