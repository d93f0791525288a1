"""Command line: the same inputs as the dashboard, as JSON, and the same numbers."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from sizing.flags import flags
from sizing.problems import Problem, RefusedError, listed
from sizing.scenario import DEFAULTS, FIELDS, Scenario, extra, read_scenario
from sizing.solve import Sizing, solve
from sizing.verdict import advice, verdict
from sizing.working import comparisons, working

MAX_INPUT_BYTES = 1_000_000  # a scenario has some thirty short values; anything near this is not one
USAGE_ERROR = 2  # argparse's own exit status for wrong input
REFUSED = 1


def main(arguments: list[str] | None = None) -> int:
    """Run a command; gives the exit status: 0 solved, 1 the engine would refuse, 2 wrong input."""
    options = _parser().parse_args(arguments)
    return int(options.run(options))


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
    print(_as_json(sizing) if options.json else _as_table(sizing))
    return 0 if hasattr(sizing.now, "runs") else REFUSED


def _stop(problems: list[Problem]) -> NoReturn:
    print(listed(problems), file=sys.stderr)
    raise SystemExit(USAGE_ERROR)


def _stop_with(sentence: str) -> NoReturn:
    _stop([Problem(where="FILE", sentence=sentence)])


def _read_json(name: str) -> dict[str, Any]:
    try:
        text = sys.stdin.read(MAX_INPUT_BYTES + 1) if name == "-" else _head(Path(name))
    except (OSError, UnicodeDecodeError) as error:
        _stop_with(
            f"{name} cannot be read as text ({error.__class__.__name__}). Name a JSON file, or - for standard input."
        )
    if len(text) > MAX_INPUT_BYTES:
        _stop_with(f"{name} is larger than {MAX_INPUT_BYTES:,} characters: that is not a scenario.")
    try:
        values = json.loads(text)
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        _stop_with(f'{name} is not JSON: {error}. Write an object such as {{"L": 16384}}.')
    if not isinstance(values, dict):
        _stop_with(
            f'{name} holds a JSON {type(values).__name__}, not an object of named inputs such as {{"L": 16384}}.'
        )
    return values


def _head(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.read(MAX_INPUT_BYTES + 1)


def _as_json(sizing: Sizing) -> str:
    words = flags(sizing)
    return json.dumps(
        {
            "verdict": verdict(sizing).text,
            "flags": words.model_dump() if words else None,
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
    parts = [verdict(sizing).text, "", *_aligned(steps)]
    parts += ["", "specification / engine, where they differ:", *_aligned(beside)] if beside else []
    if words:
        parts += [
            "",
            f"set: {words.ratio or words.pin}",
            *([f" or: {words.pin}"] if words.ratio else []),
            words.why,
        ]
    parts += ["", *[f"{item.topic}. {item.text}" for item in advice(sizing)]]
    return "\n".join(parts)


def _aligned(rows: list[tuple[str, str, str]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    return [f"  {row[0]:<{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]}".rstrip() for row in rows]


if __name__ == "__main__":
    sys.exit(main())
