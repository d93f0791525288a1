"""`log`: read a boot log, what a running server tells, or both, and put it beside what the rules predict."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sizing.bootlog.diagnosis import Diagnosis, readings
from sizing.bootlog.text import chunks_of
from sizing.cli.shared import USAGE_ERROR, aligned, head, print_json, stop, stop_with
from sizing.command import Command, read_command
from sizing.exchange.server_answer import LogFileAnswer, Told, told
from sizing.exchange.server_words import measured_rows
from sizing.explain.unified_memory import COLUMNS as UNIFIED_COLUMNS
from sizing.releases.rules import COVERED
from sizing.scenario.from_model import named_in, servable
from sizing.scenario.inputs import Scenario, read_scenario
from sizing.server.texts import Read, read_texts

CHUNK = 2**20  # bytes of a log that are read at a time


def add(commands: Any) -> None:
    """Declare the command."""
    log = commands.add_parser(
        "log",
        help="read a boot log, or what a running server tells, and put it beside what the rules predict",
        description=f"Read what SGLang {COVERED} says, plain or gzip, known by its content: a boot log; of a "
        "running server /server_info and /v1/loads as JSON, /metrics, lines of prefill and decode batches. It gives "
        "the bytes of a slot and of a token, rest, S, what was printed, and what the same flags give by the rules; of "
        "a running server what its pools held, what kept requests waiting, and the length in use. Several files are "
        "read as one. FILE is - for standard input.",
    )
    log.add_argument("files", metavar="FILE", nargs="+", help="log, answer or scrapes; or - for standard input")
    log.add_argument("--model", metavar="NAME", help="a name of the catalogue, for exact bytes (else the one named)")
    log.add_argument("--command", metavar="COMMAND", help="file with the launch command behind the log")
    log.add_argument("--L", "--length", metavar="L", dest="length", help="context per request [tokens]")
    log.add_argument("--json", action="store_true", help="print the answer as JSON instead of tables")
    log.set_defaults(run=run, answer=LogFileAnswer)


def run(options: argparse.Namespace) -> int:
    """Read and print; gives the exit status."""
    L = None if options.length is None else _length(options.length)
    model = named_in(options.model) if options.model else options.model
    if model not in (None, "", *servable()) or (options.model and not model):
        stop_with(f"{options.model} is no model of the catalogue that has both pools.", where="--model")
    command = None if options.command is None else _read_command(options.command)
    read = _read(options.files)
    found = told(read, command, L, model)
    if options.json:
        return print_json(found.answer)
    for sentence in (*read.sentences, *(problem.sentence for problem in (command.problems if command else ()))):
        print(sentence, file=sys.stderr)
    if found.boot is None and read.facts is None:
        return USAGE_ERROR
    print("\n".join(_lines(found)))
    return found.answer.status


def _length(text: str) -> int:
    stated = read_scenario({"L": text})
    return stated.L if isinstance(stated, Scenario) else stop(stated)


def _lines(found: Told) -> list[str]:
    """The answer, what was read beside what is predicted, and what is missing or was assumed."""
    answer, diagnosis = found.answer, found.found
    lines = [*found.sentences, *(notice.words for notice in answer.notices)]
    if answer.serving is not None:
        lines += ["", *aligned(measured_rows(answer.serving))]
        table = [(row.quantity, f"{row.predicted} / {row.measured}", row.why) for row in answer.serving.beside]
        lines += ["", "predicted / measured:", *aligned(table)] if table else []
    if diagnosis is None:
        return lines
    if found.printed and (table := _readings(diagnosis)):
        lines += ["", *aligned(table)]
    if found.printed and diagnosis.beside and found.boot is not None and not found.boot.refused:
        beside = [(row.quantity, f"{row.predicted} / {row.printed}", row.why) for row in diagnosis.beside]
        lines += ["", "predicted / printed:", *aligned(beside)]
    if found.unified is not None:
        lines += ["", *aligned((UNIFIED_COLUMNS, *found.unified.rows))]
    if found.printed:
        lines += ["", *diagnosis.facts.conflicts, *diagnosis.inputs.missing, *diagnosis.inputs.assumed]
    if answer.flags is None:
        return lines
    return [*lines, "", f"set: {' '.join(answer.flags)}", *((answer.command,) if answer.command else ())]


def _readings(found: Diagnosis) -> list[tuple[str, str, str]]:
    return [
        (name, value, f"{between}  {source}".strip()) for name, value, between, source in readings(found.facts, found)
    ]


def _read_command(file: str) -> Command:
    try:
        return read_command(head(file))
    except (OSError, ValueError) as error:
        stop_with(f"{file} cannot be read ({error.__class__.__name__}). Name a launch command.", where="--command")


def _read(files: list[str]) -> Read:
    """All files as one text; standard input where a file is -."""
    name = ""

    def opened() -> Iterable[Iterable[bytes]]:
        nonlocal name
        for name in files:
            yield iter(lambda: sys.stdin.buffer.read(CHUNK), b"") if name == "-" else chunks_of(Path(name))

    try:
        return read_texts(opened())
    except OSError as error:
        stop_with(f"{name} cannot be read ({error.__class__.__name__}). Name a log, or - for standard input.")
