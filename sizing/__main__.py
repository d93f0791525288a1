"""Command line: the same inputs as the dashboard, as JSON, and the same numbers."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import date
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn, get_args

from sizing.answers.carrying_settings import Want
from sizing.answers.compare import names_of
from sizing.answers.flip_points import flips
from sizing.answers.limit_panel import lifts
from sizing.answers.solve import Sizing, solve
from sizing.answers.target import Answer, aim
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.problems import Problem, RefusedError, listed, shown
from sizing.basics.units import count, number
from sizing.bootlog import Boot, Log, read_chunks, read_file
from sizing.bootlog.diagnosis import Diagnosis, as_printed, diagnose, likely_model, models_that_fit, no_cure, readings
from sizing.exchange.exports import result_json
from sizing.exchange.scenario_file import MAX_LENGTH, from_file, to_file
from sizing.exchange.wanted_text import read_wants
from sizing.explain.launch_flags import flags
from sizing.explain.target_words import NEAR_COLUMNS, WAY_COLUMNS, gates, headline, near_rows, way_rows
from sizing.explain.verdict import advice, verdict
from sizing.explain.working import comparisons, working
from sizing.models import (
    Geometry,
    ModelRefusedError,
    byte_steps,
    charged_bytes,
    kv_bytes_per_token,
    most_kv_bytes,
    read_config,
    read_folder,
    stages,
    state_bytes,
)
from sizing.models.fields import MAX_FILE_BYTES
from sizing.models.summary import layers_in_words
from sizing.scenario.from_model import geometry_of, servable, suggested
from sizing.scenario.inputs import DEFAULTS, FIELDS, Scenario, changed, extra, read_scenario
from sizing.sheet import PdfError, sheet_of, sheet_pdf
from sizing.specification import token_equiv
from sizing.traffic import words as traffic_words
from sizing.traffic.exports import traffic_json
from sizing.traffic.reading import TraceError, read_trace
from sizing.traffic.running import Traffic, traffic_of
from sizing.traffic.sessions import residency, room
from sizing.traffic.shapes import LogNormal
from sizing.traffic.workload import LABELS, Shape, Workload, mix_of_workload, read_workload

CHUNK = 2**20  # bytes of a log that are read at a time
USAGE_ERROR = 2  # argparse's own exit status for wrong input
REFUSED = 1
COLUMNS = ("input", "output", "length", "count")  # of a trace, as options name them


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
    _add_sheet(plan)
    plan.add_argument("--save", metavar="OUT", help="write the scenario as a file that the page Compare loads")
    _add_choice(plan)
    plan.set_defaults(run=_plan)
    model = commands.add_parser(
        "model",
        help="derive the bytes of a slot and of a token from a config.json",
        description="What one rank keeps for a model: bytes of a state slot and of a KV token, from its config.json. "
        "CONFIG is such a file, a folder that holds one, - for standard input, or a name of the catalogue.",
    )
    model.add_argument("config", metavar="CONFIG", help="file, folder, - or a name such as moonshotai/Kimi-K3")
    model.add_argument("--tp", type=int, default=1, help="attention TP width: tp_size / attn_dp_size (1)")
    model.add_argument("--dcp", type=int, default=1, help="dcp_size (1)")
    model.add_argument("--pp", type=int, default=1, help="pipeline stages (1)")
    model.add_argument("--kv-dtype", choices=get_args(KvDtype), help="KV dtype (what the checkpoint implies)")
    model.add_argument("--ssm-dtype", choices=get_args(StateDtype), help="SSM dtype (what the checkpoint implies)")
    model.add_argument("--conv-dtype", choices=get_args(StateDtype), default="bfloat16", help="conv dtype (bfloat16)")
    model.set_defaults(run=_model)
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
    _add_choice(target)
    _add_sheet(target)
    target.set_defaults(run=_target)
    _add_traffic(commands)
    log = commands.add_parser(
        "log",
        help="read a boot log and put what it prints beside what the rules predict",
        description="Read a boot log of SGLang 0.5.4 to 0.5.23, plain or gzip: the bytes of a slot and of a token, "
        "rest, S, what was printed, and what the same flags give by the rules. FILE is - for standard input.",
    )
    log.add_argument("file", metavar="FILE", help="boot log, or - for standard input")
    log.add_argument("--model", metavar="NAME", help="a name of the catalogue, for exact bytes (the one that fits)")
    log.add_argument("--length", metavar="L", type=int, default=DEFAULTS["L"], help="context per request [tokens]")
    log.set_defaults(run=_log)
    return parser


def _add_traffic(commands: Any) -> None:
    traffic = commands.add_parser(
        "traffic",
        help="solve for real traffic in place of one L",
        description="What really runs of real traffic, at a risk that KV overflows, and the best split for it. FILE "
        "holds a scenario as for plan; - reads standard input. TRACE is a file of requests (a trace, a benchmark's "
        f"result or a histogram, as CSV, JSON or Parquet) or one of the shapes {', '.join(get_args(Shape))}.",
    )
    traffic.add_argument("file", metavar="FILE", help="JSON file, or - for standard input")
    traffic.add_argument("trace", metavar="TRACE", help="file of requests, or a shape")
    for name, what in LABELS.items():
        if name != "shape":
            default = "the mean length" if (first := Workload.model_fields[name].default) is None else first
            shape = ", of the shape log-normal" if name in LogNormal.model_fields else ""
            words = f"{what}{shape} ({default})".replace("%", "%%")
            traffic.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=words)
    for name in COLUMNS:
        traffic.add_argument(f"--{name}-column", metavar="NAME", help="of TRACE, where it is not found by its name")
    traffic.add_argument("--json", action="store_true", help="print every number as JSON instead of tables")
    _add_choice(traffic)
    traffic.set_defaults(run=_traffic)


def _add_choice(command: argparse.ArgumentParser) -> None:
    command.add_argument("--scenario", metavar="N", type=int, help="which one of a file that the page Compare saved")


def _add_sheet(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--sheet",
        metavar="OUT",
        help="write a review sheet too, with every scenario of FILE side by side: .html, or .pdf where Chromium is "
        "present",
    )


def _fields_help() -> str:
    lines = ["inputs (name, default, what):"]
    for name, field in FIELDS.items():
        unit = f" [{extra(name, 'unit')}]" if extra(name, "unit") else ""
        flag = f" ({extra(name, 'flag')})" if extra(name, "flag") else ""
        lines.append(f"  {name} = {json.dumps(DEFAULTS[name])}{unit}{flag}\n      {field.description}")
    return "\n".join(lines)


def _plan(options: argparse.Namespace) -> int:
    kept = _read_scenarios(options.file)
    scenario = _chosen(kept, options.scenario)
    try:
        sizing = solve(scenario)
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    print(result_json(sizing) if options.json else _as_table(sizing), flush=True)
    if options.sheet:
        _write_sheet(scenario, Path(options.sheet), kept)
    if options.save:
        _write(Path(options.save), to_file([scenario]).encode("utf-8"), where="--save")
    return 0 if hasattr(sizing.now, "runs") else REFUSED


def _write_sheet(scenario: Scenario, out: Path, kept: Sequence[Scenario], wants: Sequence[Want] = ()) -> None:
    """The review sheet as HTML, or as PDF by the ending of its name."""
    if out.suffix.lower() not in (".html", ".htm", ".pdf"):
        _stop_with(f"{shown(out)} ends in neither .html nor .pdf: name one of them.", where="--sheet")
    page = sheet_of(scenario, on=date.today(), kept=kept, wants=wants)
    try:
        data = sheet_pdf(page) if out.suffix.lower() == ".pdf" else page.encode("utf-8")
        if data is None:
            _stop_with("A PDF needs Chromium, and none was found: name an .html file.", where="--sheet")
    except PdfError as failed:
        _stop_with(str(failed), where="--sheet")
    _write(out, data, where="--sheet")


def _write(out: Path, data: bytes, where: str) -> None:
    try:
        out.write_bytes(data)
    except OSError as error:
        _stop_with(f"{shown(out)} cannot be written ({error.__class__.__name__}).", where=where)


def _target(options: argparse.Namespace) -> int:
    kept = _read_scenarios(options.file)
    scenario = _chosen(kept, options.scenario)
    if options.length is not None:
        at_length = changed(scenario, L=options.length)
        scenario = at_length if isinstance(at_length, Scenario) else _stop(at_length)
    labels = {"requests": "REQUESTS"}
    wants, problems = read_wants(scenario.L, options.requests, options.also, line="--also {}", labels=labels)
    if problems or not wants:
        _stop(problems or [Problem(where="REQUESTS", sentence="REQUESTS is empty: give a number.")])
    try:
        answer = aim(scenario, wants)
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    print("\n".join(_target_lines(answer)), flush=True)
    if options.sheet:
        _write_sheet(scenario, Path(options.sheet), kept, wants)
    return 0 if answer.setting else REFUSED


def _target_lines(answer: Answer) -> list[str]:
    lines = [headline(answer)]
    if answer.setting is not None:
        return [*lines, *answer.setting.flags]
    lines += ["", f"{', '.join(WAY_COLUMNS)}:", *_aligned(way_rows(answer))]
    lines += [f"Accuracy gate {at}. {gate}" for at, gate in enumerate(gates(answer), start=1)]
    near = near_rows(answer)
    return [*lines, "", f"nearest points that fit: {', '.join(NEAR_COLUMNS)}", *_aligned(near)] if near else lines


def _traffic(options: argparse.Namespace) -> int:
    scenario = _chosen(_read_scenarios(options.file), options.scenario)
    is_shape = options.trace in get_args(Shape)
    typed = {name: getattr(options, name) for name in LABELS if name != "shape"}
    stated = {name: value for name, value in typed.items() if value is not None}
    workload = read_workload(stated | ({"shape": options.trace} if is_shape else {}))
    if not isinstance(workload, Workload):
        _stop(workload)
    columns = {f"{name}_column": getattr(options, f"{name}_column") for name in COLUMNS}
    try:
        mix = mix_of_workload(workload) if is_shape else read_trace(options.trace, **columns)
        traffic = traffic_of(scenario, mix, workload.risk)
    except TraceError as fault:
        _stop_with(str(fault), where="TRACE")
    except RefusedError as refused:
        print(refused, file=sys.stderr)
        return REFUSED
    print(traffic_json(traffic) if options.json else "\n".join(_traffic_lines(traffic, workload)), flush=True)
    return 0 if traffic.ways else REFUSED


def _traffic_lines(traffic: Traffic, workload: Workload) -> list[str]:
    tables = [
        (traffic_words.WAY_COLUMNS, traffic_words.way_rows(traffic)),
        (traffic_words.shift_columns(traffic), traffic_words.shift_rows(traffic)),
        (traffic_words.LENGTH_COLUMNS, traffic_words.length_rows(traffic)),
    ]
    lines = [traffic_words.headline(traffic), *traffic_words.reasons(traffic).splitlines()]
    lines.append(traffic_words.synthetic(traffic.mix) if traffic.mix.synthetic else traffic.mix.note)
    lines += [traffic_words.whose(traffic), traffic_words.best_words(traffic)]
    waiting = workload.idle_sessions and traffic_words.keeps_sessions(traffic)
    if waiting:
        found = {way.name: residency(traffic, way, workload) for way in traffic.ways}
        tables.append((traffic_words.RESIDENCY_COLUMNS, traffic_words.residency_rows(found, traffic)))
    for columns, rows in tables:
        lines += ["", *_aligned([columns, *rows])]
    if workload.idle_sessions:
        kept = traffic_words.room_words(room(traffic, workload), traffic) if waiting else traffic_words.NOT_KEPT
        lines += ["", kept]
    return [*lines, "", traffic_words.model_words(traffic), traffic_words.NOT_MODELLED]


def _model(options: argparse.Namespace) -> int:
    try:
        geometry = _geometry(options.config)
        asks = suggested(geometry)
        ssm, kv = options.ssm_dtype or asks["mamba_ssm_dtype"], options.kv_dtype or asks["kv_cache_dtype"]
        steps = byte_steps(geometry, options.tp, kv, options.dcp, ssm, options.conv_dtype)
        across = stages(geometry, options.pp)
    except ModelRefusedError as refused:
        _stop([refused.problem])
    print(layers_in_words(geometry))
    print("\n".join(_aligned([(step.quantity, step.result, f"{step.formula}: {step.numbers}") for step in steps])))
    slot = state_bytes(geometry, options.tp, ssm, options.conv_dtype).total
    token = kv_bytes_per_token(geometry, options.tp, kv, options.dcp)
    if token:
        print(f"  token_equiv {number(token_equiv(slot, token))} tokens per slot ({ssm} SSM, {kv} KV, TP{options.tp})")
    if options.pp > 1:
        most = most_kv_bytes(geometry, across, options.tp, kv, options.dcp)
        charged = count(charged_bytes(geometry, slot, across))
        print(f"  {options.pp} stages: every rank is charged {charged} bytes a slot, at most {count(most)} a token")
    for note in geometry.notes:
        print(note)
    return 0


def _geometry(config: str) -> Geometry:
    """A catalogued name, a folder, a file or standard input. Raises ModelRefusedError."""
    try:
        return geometry_of(config)
    except KeyError:
        pass
    try:
        if config == "-":
            return read_config(_standard_input(MAX_FILE_BYTES))
        if Path(config).is_dir():
            return read_folder(Path(config))
        with Path(config).open("rb") as file:
            return read_config(file.read(MAX_FILE_BYTES + 1))
    except (OSError, ValueError):
        _stop_with(f"{shown(config)} is no name of the catalogue, and no file or folder to read.", where="CONFIG")


def _standard_input(most: int) -> bytes:
    """At most so many bytes and one more, so that too much can be told."""
    buffer = getattr(sys.stdin, "buffer", None)
    return buffer.read(most + 1) if buffer else sys.stdin.read(most + 1).encode("utf-8", "replace")


def _log(options: argparse.Namespace) -> int:
    if not isinstance(stated := read_scenario({"L": options.length}), Scenario):
        _stop(stated)
    log = _read_log(options.file)
    for problem in log.problems:
        print(problem.sentence, file=sys.stderr)
    if log.last is None:
        return USAGE_ERROR
    boot, facts = log.last, log.last.facts
    model = options.model if options.model is not None else likely_model(facts, models_that_fit(facts))
    if model and model not in servable():
        _stop_with(f"{model} is no model of the catalogue that has both pools.", where="--model")
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
    lines += ["", *_aligned(table)]
    if found.beside and not boot.refused:
        beside = [(row.quantity, f"{row.predicted} / {row.printed}", row.why) for row in found.beside]
        lines += ["", "predicted / printed:", *_aligned(beside)]
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
        _stop_with(f"{file} cannot be read ({error.__class__.__name__}). Name a boot log, or - for standard input.")


def _stop(problems: list[Problem]) -> NoReturn:
    print(listed(problems), file=sys.stderr)
    raise SystemExit(USAGE_ERROR)


def _stop_with(sentence: str, where: str = "FILE") -> NoReturn:
    _stop([Problem(where=where, sentence=sentence)])


def _read_scenarios(file: str) -> list[Scenario]:
    """The scenarios of a file, of which there is at least one."""
    name = "standard input" if file == "-" else file
    try:
        found = from_file(_head(file), name)
    except (OSError, ValueError) as error:
        _stop_with(
            f"{name} cannot be read as text ({error.__class__.__name__}). Name a JSON file, or - for standard input."
        )
    kept = [one for one in found if isinstance(one, Scenario)]
    if not kept:
        _stop([one for one in found if isinstance(one, Problem)])
    return kept


def _chosen(kept: list[Scenario], at: int | None) -> Scenario:
    """The one that is asked for of several."""
    if at is None and len(kept) > 1:
        names = ", ".join(f"{number} {shown(name)}" for number, name in enumerate(names_of(tuple(kept)), start=1))
        _stop_with(f"It holds {len(kept)} scenarios: {names}. Say which.", where="--scenario")
    chosen = 1 if at is None else at
    if not 1 <= chosen <= len(kept):
        _stop_with(f"It holds {len(kept)}, numbered from 1.", where="--scenario")
    return kept[chosen - 1]


def _head(file: str) -> str:
    """As much of a file, or of standard input, as is worth reading; UTF-8 whatever the locale."""
    if file == "-":
        if isinstance(sys.stdin, TextIOWrapper):
            sys.stdin.reconfigure(encoding="utf-8", errors="strict")
        return sys.stdin.read(MAX_LENGTH + 1)
    with Path(file).open(encoding="utf-8") as text:
        return text.read(MAX_LENGTH + 1)


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


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows in columns: the second, mostly numbers, to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    marks = ["<", ">", *["<"] * len(widths)]
    return [
        "  "
        + "  ".join(f"{cell:{mark}{width}}" for cell, mark, width in zip(row, marks, widths, strict=False)).rstrip()
        for row in rows
    ]


if __name__ == "__main__":
    sys.exit(main())
