"""`log`: read a boot log and put what it prints beside what the rules predict."""

import argparse
import sys
from pathlib import Path
from typing import Any

from sizing.bootlog import Boot, Log, read_chunks, read_file
from sizing.bootlog.diagnosis import Diagnosis, as_printed, diagnose, likely_model, models_that_fit, no_cure, readings
from sizing.cli.shared import REFUSED, USAGE_ERROR, aligned, stop, stop_with
from sizing.exchange.answer import SizingAnswer
from sizing.explain.launch_flags import flags
from sizing.scenario.from_model import servable
from sizing.scenario.inputs import DEFAULTS, Scenario, read_scenario

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
    log.add_argument("--length", metavar="L", type=int, default=DEFAULTS["L"], help="context per request [tokens]")
    log.add_argument("--json", action="store_true", help="print the answer as JSON instead of tables")
    log.set_defaults(run=run, answer=SizingAnswer)


def run(options: argparse.Namespace) -> int:
    """Read and print; gives the exit status."""
    if not isinstance(stated := read_scenario({"L": options.length}), Scenario):
        stop(stated)
    log = _read_log(options.file)
    for problem in log.problems:
        print(problem.sentence, file=sys.stderr)
    if log.last is None:
        return USAGE_ERROR
    boot, facts = log.last, log.last.facts
    model = options.model if options.model is not None else likely_model(facts, models_that_fit(facts))
    if model and model not in servable():
        stop_with(f"{model} is no model of the catalogue that has both pools.", where="--model")
    found = diagnose(facts, model=model, stated={"L": options.length})
    print("\n".join(_log_lines(boot, found, options.length)))
    return REFUSED if boot.refused else 0


def _log_lines(boot: Boot, found: Diagnosis, length: int) -> list[str]:
    """What was read, beside what is predicted, and what is missing or was assumed."""
    if boot.refused:
        lines = [boot.refused.refusal.sentence]
    else:
        lines = [" ".join(as_printed(boot.facts, length)) or "This log does not say what runs."]
    table = [
        (name, value, f"{between}  {source}".strip()) for name, value, between, source in readings(boot.facts, found)
    ]
    lines += ["", *aligned(table)]
    if found.beside and not boot.refused:
        beside = [(row.quantity, f"{row.predicted} / {row.printed}", row.why) for row in found.beside]
        lines += ["", "predicted / printed:", *aligned(beside)]
    sentences = [*boot.facts.conflicts, *(problem.sentence for problem in found.problems), found.refused]
    lines += ["", *sentences, *found.inputs.missing, *found.inputs.assumed]
    if boot.refused:
        return lines
    if why_not := no_cure(found, None):
        return [*lines, "", why_not]
    words = flags(found.sizing) if found.sizing else None
    return [*lines, "", f"set: {words.ratio or words.pin}", words.why] if words else lines


def _read_log(file: str) -> Log:
    try:
        return read_chunks(iter(lambda: sys.stdin.buffer.read(CHUNK), b"")) if file == "-" else read_file(Path(file))
    except OSError as error:
        stop_with(f"{file} cannot be read ({error.__class__.__name__}). Name a boot log, or - for standard input.")
