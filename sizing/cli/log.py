"""`log`: read a boot log and put what it prints beside what the rules predict."""

import argparse
import sys
from pathlib import Path
from typing import Any

from sizing.bootlog import Boot, Log, read_chunks, read_file
from sizing.bootlog.diagnosis import Diagnosis, readings
from sizing.cli.shared import USAGE_ERROR, aligned, head, print_json, stop, stop_with
from sizing.command import Command, read_command
from sizing.exchange.answer import SizingAnswer
from sizing.exchange.log_answer import log_answer
from sizing.scenario.from_model import named_in, servable
from sizing.scenario.inputs import Scenario, read_scenario

CHUNK = 2**20  # bytes of a log that are read at a time


def add(commands: Any) -> None:
    """Declare the command."""
    log = commands.add_parser(
        "log",
        help="read a boot log and put what it prints beside what the rules predict",
        description="Read a boot log of SGLang 0.5.4 to 0.5.23, plain or gzip: the bytes of a slot and of a token, "
        "rest, S, what was printed, and what the same flags give by the rules. FILE is - for standard input.",
    )
    log.add_argument("file", metavar="FILE", help="boot log, or - for standard input")
    log.add_argument("--model", metavar="NAME", help="a name of the catalogue, for exact bytes (the one that fits)")
    log.add_argument("--command", metavar="COMMAND", help="file with the launch command behind the log")
    log.add_argument("--L", "--length", metavar="L", dest="length", help="context per request [tokens]")
    log.add_argument("--json", action="store_true", help="print the answer as JSON instead of tables")
    log.set_defaults(run=run, answer=SizingAnswer)


def run(options: argparse.Namespace) -> int:
    """Read and print; gives the exit status."""
    L = None if options.length is None else _length(options.length)
    model = named_in(options.model) if options.model else options.model
    if model not in (None, "", *servable()) or (options.model and not model):
        stop_with(f"{options.model} is no model of the catalogue that has both pools.", where="--model")
    command = None if options.command is None else _read_command(options.command)
    log = _read_log(options.file)
    found = log_answer(log, command, L, model)
    if options.json:
        return print_json(found.answer)
    for problem in (*log.problems, *(command.problems if command else ())):
        print(problem.sentence, file=sys.stderr)
    if log.last is None or found.found is None:
        return USAGE_ERROR
    print("\n".join(_log_lines(log.last, found.found, found.answer)))
    return found.answer.status


def _length(text: str) -> int:
    stated = read_scenario({"L": text})
    return stated.L if isinstance(stated, Scenario) else stop(stated)


def _log_lines(boot: Boot, found: Diagnosis, answer: SizingAnswer) -> list[str]:
    """The answer, what was read beside what is predicted, and what is missing or was assumed."""
    lines = [answer.words, *(f"{notice.words}" for notice in answer.notices)]
    table = [
        (name, value, f"{between}  {source}".strip()) for name, value, between, source in readings(found.facts, found)
    ]
    lines += ["", *aligned(table)]
    if found.beside and not boot.refused:
        beside = [(row.quantity, f"{row.predicted} / {row.printed}", row.why) for row in found.beside]
        lines += ["", "predicted / printed:", *aligned(beside)]
    lines += ["", *boot.facts.conflicts, *found.inputs.missing, *found.inputs.assumed]
    if answer.flags is None:
        return lines
    return [*lines, "", f"set: {' '.join(answer.flags)}", *((answer.command,) if answer.command else ())]


def _read_command(file: str) -> Command:
    try:
        return read_command(head(file))
    except (OSError, ValueError) as error:
        stop_with(f"{file} cannot be read ({error.__class__.__name__}). Name a launch command.", where="--command")


def _read_log(file: str) -> Log:
    try:
        return read_chunks(iter(lambda: sys.stdin.buffer.read(CHUNK), b"")) if file == "-" else read_file(Path(file))
    except OSError as error:
        stop_with(f"{file} cannot be read ({error.__class__.__name__}). Name a boot log, or - for standard input.")
