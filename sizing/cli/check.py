"""`check`: whether a launch file in review carries what is wanted."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from sizing.answers.carrying_settings import Want, carries, need_of
from sizing.answers.solve import solve
from sizing.answers.target import aim
from sizing.basics.problems import Problem, RefusedError, shown
from sizing.basics.units import count
from sizing.bootlog import read_file
from sizing.bootlog.diagnosis import named_model
from sizing.cli.shared import head, stop, stop_with
from sizing.command import Command, read_command
from sizing.engine.rank import rank_of
from sizing.engine.split import Split
from sizing.exchange.answer import SizingAnswer
from sizing.exchange.log_answer import log_answer
from sizing.exchange.target_text import read_wants
from sizing.explain.target_words import each_alone, fit_words, most_words, wants_words
from sizing.explain.unified_memory import unified_in_force
from sizing.scenario.inputs import Scenario, read_scenario

if TYPE_CHECKING:
    from sizing.command.launch_files import Launch

CARRIES, CLAMPS, UNKNOWN = 0, 1, 2


class Verdict(NamedTuple):
    """What is said of one launch command."""

    status: int
    line: int
    words: str


def add(commands: Any) -> None:
    """Declare the command."""
    check = commands.add_parser(
        "check",
        help="check a launch file against wanted requests",
        description="Whether the SGLang launch commands in FILE carry what is wanted: a shell script, the YAML of "
        "Kubernetes, compose or a workflow, a Dockerfile, a Makefile, a unit of systemd, or a page in Markdown. "
        "Exit status: 0 each does, 1 one does not, 2 it cannot be known. A command does not say what is "
        "left for the pools: give --rest-gib, or a boot log of the same deployment.",
    )
    check.add_argument("file", metavar="FILE", help="launch file")
    check.add_argument(
        "--wants",
        metavar="L:REQUESTS",
        action="append",
        required=True,
        help="requests of a length that must run at once in the whole deployment, such as 32K:64; again for each",
    )
    check.add_argument("--rest-gib", metavar="GIB", help="what both pools share on one rank [GiB]")
    check.add_argument("--log", metavar="LOG", help="boot log that says rest and the release")
    check.add_argument("--release", metavar="VERSION", help="release of SGLang (that of the log, else the latest)")
    check.add_argument("--model", metavar="NAME", help="name of the catalogue, where --model-path does not end in one")
    check.add_argument("--annotate", action="store_true", help="write ::error and ::notice lines, as GitHub reads them")
    check.set_defaults(run=run, answer=SizingAnswer, json=False)


def run(options: argparse.Namespace) -> int:
    """Check and print; gives the exit status, the worst of all commands of the file."""
    from sizing.command.launch_files import LaunchFileError, launches_in  # YAML, which no other command reads

    wants, problems = read_wants(1, "", options.wants, line="--wants {}")
    if problems or not wants:
        stop(problems or [Problem(where="--wants", sentence="--wants is empty: give L and requests, such as 32K:64.")])
    try:
        text = head(options.file)
        launches = launches_in(text, options.file, lambda name: _beside(Path(options.file), name))
    except LaunchFileError as fault:
        stop_with(f"{shown(options.file)} {fault}")
    except (OSError, ValueError) as error:
        stop_with(f"{shown(options.file)} cannot be read ({error.__class__.__name__}). Name a launch file.")
    if not launches:
        stop_with(f"{shown(options.file)} holds no launch command of SGLang: name the file that starts the server.")
    given = _given(options)
    found = [verdict(launch, wants, given, options.model) for launch in launches]
    for one in found:
        print(_annotation(options.file, one) if options.annotate else f"{options.file}:{one.line}: {one.words}")
    return CLAMPS if any(one.status == CLAMPS for one in found) else max(one.status for one in found)


def _beside(file: Path, name: str) -> str | None:
    """The text of a file that a launch file names: as it stands there, or beside the launch file by its own name."""
    for path in (file.parent / name, file.parent / Path(name).name):
        try:
            return head(str(path))
        except (OSError, ValueError):
            continue
    return None


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """rest and the release, from the options or a boot log."""
    found: dict[str, Any] = {}
    if options.log:
        try:
            told = log_answer(read_file(Path(options.log)))
        except OSError as error:
            stop_with(f"{shown(options.log)} cannot be read ({error.__class__.__name__}).", where="--log")
        scenario = told.found.scenario if told.found else None
        if scenario is None:
            stop_with(f"{shown(options.log)} does not say what rest is: {told.answer.words}", where="--log")
        found = {"rest_gib": scenario.rest_gib, "release": scenario.release}
    stated = {"rest_gib": options.rest_gib, "release": options.release}
    return found | {name: value for name, value in stated.items() if value is not None}


def verdict(launch: "Launch", wants: Sequence[Want], given: dict[str, Any], model: str | None = None) -> Verdict:
    """What is said of one launch command; a number that would rest on a guess is unknown."""
    command = read_command(launch.text)
    unclear = _unclear(command, given, model)
    if unclear:
        return Verdict(UNKNOWN, launch.line, unclear)
    stated = {"model": model or named_model(command.model_path), "L": max(want.L for want in wants)}
    scenario = read_scenario(stated | command.values | given)
    if not isinstance(scenario, Scenario):
        return Verdict(UNKNOWN, launch.line, scenario[0].sentence)
    try:
        now = solve(scenario).now
        if not isinstance(now, Split):
            return Verdict(CLAMPS, launch.line, f"SGLang {scenario.release} does not start with this: {now.sentence}")
        if scenario.enable_unified_memory:
            return _in_one_buffer(scenario, wants, launch.line)
        carried = bool(carries(rank_of(scenario), need_of(scenario, wants), now.slots))
        spare = not rank_of(scenario).request_slots.is_tight(now.slots, now.admitted)
        words = fit_words(wants, spare=spare) if carried else _clamped(scenario, wants)
    except RefusedError as refused:
        return Verdict(CLAMPS, launch.line, str(refused))
    return Verdict(CARRIES if carried else CLAMPS, launch.line, words)


def _in_one_buffer(scenario: Scenario, wants: Sequence[Want], line: int) -> Verdict:
    """The same under unified memory, of one length: what several hold together there is not known."""
    one = unified_in_force(solve(scenario))
    if len(wants) > 1 or one is None:
        why = "Several lengths in one check" if len(wants) > 1 else "What runs of this model"
        cure = ": give one --wants at a time" if len(wants) > 1 else ""
        return Verdict(UNKNOWN, line, f"{why} under --enable-unified-memory: not known{cure}.")
    ranks, wanted = scenario.attn_dp_size, wants[0].requests
    if one.runs * ranks >= wanted:
        return Verdict(CARRIES, line, f"{wants_words(wants)} fit.")
    cure = (
        f"set {one.flag}" if one.most * ranks >= wanted else f"no ratio carries it; at most {count(one.most * ranks)}"
    )
    runs = f"{count(one.runs * ranks)} run at L = {count(wants[0].L)} under unified memory"
    return Verdict(CLAMPS, line, f"{wants_words(wants)} do not fit: {runs}; {cure}.")


def _unclear(command: Command, given: dict[str, Any], model: str | None) -> str:
    """Why nothing can be said; empty where it can."""
    if command.problems:
        return command.problems[-1].sentence
    if command.unread:
        return f"No release of SGLang has {', '.join(command.unread)}: correct it."
    if command.elsewhere:
        return command.elsewhere[0]
    if not (model or named_model(command.model_path)):
        return "Its --model-path does not end in a name of the catalogue: say which model it is with --model."
    if "rest_gib" not in given:
        return "A command does not say what is left for the pools: give --rest-gib or --log."
    return ""


def _clamped(scenario: Scenario, wants: Sequence[Want]) -> str:
    """What runs instead, and what to set."""
    runs = []
    for want in wants:
        split = solve(scenario.model_copy(update={"L": want.L})).now
        if isinstance(split, Split):
            each = f"{count(split.runs * scenario.attn_dp_size)} run at L = {count(want.L)}"
            runs.append(f"{each} ({split.binding.name} binds)")
    answer = aim(scenario, wants)
    if answer.setting is not None:
        cure = f"set {' '.join(answer.setting.flags)}"
    else:
        cure = f"no split carries it; {most_words(answer.here, wants)}"
    return f"{each_alone(wants)}{wants_words(wants)} do not fit: {', '.join(runs)}; {cure}."


def _annotation(file: str, found: Verdict) -> str:
    """One line as GitHub reads it from a workflow's output; nothing in it can end it or begin another."""
    kind = "notice" if found.status == CARRIES else "error"
    name = _escaped(file).replace(":", "%3A").replace(",", "%2C")
    return f"::{kind} file={name},line={found.line}::{_escaped(found.words)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
