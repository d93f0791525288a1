"""What several commands share: reading scenarios, writing files, tables, and how a command stops."""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import date
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

from sizing.answers.carrying_settings import Want
from sizing.answers.compare import names_of
from sizing.answers.fleet import Carrier, FleetWanted, fleet_of
from sizing.basics.files import opened
from sizing.basics.problems import Problem, listed, shown
from sizing.exchange.answer import Answer, EngineKind, InputKind, refusal
from sizing.exchange.fleet_text import read_fleet
from sizing.exchange.scenario_file import MAX_LENGTH, from_file
from sizing.explain.fleet_words import fleet_columns, fleet_headline, fleet_notes, fleet_rows, rate_words
from sizing.scenario.inputs import Scenario
from sizing.sheet import PdfError, sheet_of, sheet_pdf

USAGE_ERROR = 2  # argparse's own exit status for wrong input


class StopError(Exception):
    """The command cannot go on: what is wrong in sentences, and its kind in the vocabulary of answers."""

    def __init__(self, problems: list[Problem], kind: EngineKind | InputKind = "unreadable") -> None:
        super().__init__(listed(problems))
        self.refused = refusal(kind, listed(problems))


def stop(problems: list[Problem], kind: EngineKind | InputKind = "unreadable") -> NoReturn:
    """End the command with sentences; `main` prints them, as an answer where JSON was asked for."""
    raise StopError(problems, kind)


def stop_with(sentence: str, where: str = "FILE", kind: EngineKind | InputKind = "unreadable") -> NoReturn:
    """End the command with one sentence."""
    stop([Problem(where=where, sentence=sentence)], kind)


def print_json(answer: Answer, **others: Any) -> int:
    """One JSON object with everything under its key, and the answer; gives the exit status."""
    print(json.dumps({**others, "answer": answer.model_dump(mode="json")}, ensure_ascii=False), flush=True)
    return answer.status


def print_answer(options: argparse.Namespace, answer: Answer) -> int:
    """An answer in words, or as JSON where that was asked for; gives the exit status."""
    if options.json:
        return print_json(answer)
    print(answer.words, *(notice.words for notice in answer.notices), file=sys.stderr if answer.refused else sys.stdout)
    return answer.status


def read_scenarios(file: str) -> list[Scenario]:
    """The scenarios of a file, of which there is at least one."""
    name = "standard input" if file == "-" else file
    try:
        found = from_file(head(file), name)
    except (OSError, ValueError) as error:
        stop_with(
            f"{name} cannot be read as text ({error.__class__.__name__}). Name a JSON file, or - for standard input."
        )
    kept = [one for one in found if isinstance(one, Scenario)]
    if not kept:
        stop([one for one in found if isinstance(one, Problem)])
    return kept


def chosen(kept: list[Scenario], at: int | None) -> Scenario:
    """The one that is asked for of several."""
    if at is None and len(kept) > 1:
        names = ", ".join(f"{number} {shown(name)}" for number, name in enumerate(names_of(tuple(kept)), start=1))
        stop_with(f"It holds {len(kept)} scenarios: {names}. Say which.", where="--scenario")
    chosen = 1 if at is None else at
    if not 1 <= chosen <= len(kept):
        stop_with(f"It holds {len(kept)}, numbered from 1.", where="--scenario")
    return kept[chosen - 1]


def head(file: str) -> str:
    """As much of a file, or of standard input, as is worth reading; UTF-8 whatever the locale."""
    if file == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")
        return sys.stdin.read(MAX_LENGTH + 1)
    with TextIOWrapper(opened(Path(file)), encoding="utf-8") as text:
        return text.read(MAX_LENGTH + 1)


def standard_input(most: int) -> bytes:
    """At most so many bytes and one more, so that too much can be told."""
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer.read(most + 1) if buffer else sys.stdin.read(most + 1).encode("utf-8", "replace")


def write_sheet(
    scenario: Scenario,
    out: Path,
    kept: Sequence[Scenario],
    wants: Sequence[Want] = (),
    fleet: FleetWanted | None = None,
    *,
    brief: bool = False,
) -> None:
    """The review sheet as HTML, or as PDF by the ending of its name."""
    if out.suffix.lower() not in (".html", ".htm", ".pdf"):
        stop_with(f"{shown(out)} ends in neither .html nor .pdf: name one of them.", where="--sheet")
    page = sheet_of(scenario, on=date.today(), kept=kept, wants=wants, fleet=fleet, brief=brief)
    try:
        data = sheet_pdf(page) if out.suffix.lower() == ".pdf" else page.encode("utf-8")
        if data is None:
            stop_with("A PDF needs Chromium, and none was found: name an .html file.", where="--sheet")
    except PdfError as failed:
        stop_with(str(failed), where="--sheet")
    write(out, data, where="--sheet")


def write(out: Path, data: bytes, where: str) -> None:
    """Write a file, or stop and say why not."""
    try:
        out.write_bytes(data)
    except OSError as error:
        stop_with(f"{shown(out)} cannot be written ({error.__class__.__name__}).", where=where)


def add_choice(command: argparse.ArgumentParser) -> None:
    """Declare which scenario of a file is meant."""
    command.add_argument("--scenario", metavar="N", type=int, help="which one of a file that the page Compare saved")


FLEET = {  # options by the inputs of FleetWanted
    "users": ("--fleet", "requests at once of a whole fleet: print how many servers and GPUs carry them"),
    "arrival_rate": ("--arrival-rate", "in place of --fleet: requests per second that come to the fleet"),
    "time_in_system": ("--time-in-system", "seconds that each stays, beside --arrival-rate"),
    "gpu_hour": ("--gpu-hour", "price of a GPU hour: prints the cost of a month of 730 hours"),
}


def add_fleet(command: argparse.ArgumentParser) -> None:
    """Declare what may be wanted of a fleet."""
    for name, (option, words) in FLEET.items():
        command.add_argument(option, metavar="N", dest=f"fleet_{name}", help=words)


def fleet_wanted(options: argparse.Namespace) -> FleetWanted | None:
    """What is wanted of a fleet; None where nothing is."""
    found = read_fleet({name: getattr(options, f"fleet_{name}") for name in FLEET})
    if not isinstance(found, FleetWanted):
        stop(found)
    if not found.wanted and found.gpu_hour is not None:
        stop_with("It counts beside --fleet, or --arrival-rate and --time-in-system: give them.", where="--gpu-hour")
    return found if found.wanted or found.arrival_rate is not None else None


def fleet_lines(wanted: FleetWanted, carriers: Sequence[Carrier], scenario: Scenario, risk: float | None) -> list[str]:
    """What carries it, in words and a table."""
    if not wanted.wanted:
        return ["", rate_words(wanted, carriers)]
    fleet = fleet_of(wanted, carriers, scenario)
    table = aligned([fleet_columns(fleet), *fleet_rows(fleet)])
    return ["", fleet_headline(fleet), "", *table, "", fleet_notes(fleet, wanted, scenario, risk)]


def add_sheet(command: argparse.ArgumentParser) -> None:
    """Declare the review sheet."""
    command.add_argument(
        "--sheet",
        metavar="OUT",
        help="write a review sheet too, with every scenario of FILE side by side: .html, or .pdf where Chromium is "
        "present",
    )
    command.add_argument("--one-page", action="store_true", help="of the sheet one page alone: answer, flags, figure")


def aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows in columns: the second, mostly numbers, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    marks = ["<", ">", *["<"] * len(widths)]
    return [
        "  "
        + "  ".join(f"{cell:{mark}{width}}" for cell, mark, width in zip(row, marks, widths, strict=False)).rstrip()
        for row in rows
    ]
