"""`traffic`: solve for real traffic in place of one L."""

import argparse
from pathlib import Path
from typing import Any, get_args

from sizing.answers.fleet import fleet_of
from sizing.basics.problems import Problem, RefusedError, shown
from sizing.cli.shared import (
    add_choice,
    add_fleet,
    aligned,
    chosen,
    fleet_lines,
    fleet_wanted,
    print_answer,
    read_scenarios,
    stop,
    stop_with,
)
from sizing.exchange.answer import TrafficAnswer
from sizing.exchange.sizing_answer import sizing_answer
from sizing.exchange.traffic_answer import traffic_answer, traffic_json
from sizing.scenario.inputs import rest_is_given
from sizing.scenario.rest import for_bytes_alone
from sizing.traffic import words as traffic_words
from sizing.traffic.layouts import Columns
from sizing.traffic.mix import Mix
from sizing.traffic.reading import TraceError, read_trace
from sizing.traffic.running import Traffic, carriers_of, traffic_of
from sizing.traffic.sessions import residency, room
from sizing.traffic.shapes import LogNormal
from sizing.traffic.tables import DUCKDB, count_table
from sizing.traffic.turns import Asked
from sizing.traffic.workload import LABELS, WHERE_EMPTY, Shape, Workload, mix_of_workload, read_workload, with_waiting

COLUMNS = ("input", "output", "length", "count")  # of a trace, as options name them


def add(commands: Any) -> None:
    """Declare the command."""
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
            default = WHERE_EMPTY.get(name, Workload.model_fields[name].default)
            shape = ", of the shape log-normal" if name in LogNormal.model_fields else ""
            words = f"{what}{shape} ({default})".replace("%", "%%")
            traffic.add_argument(f"--{name.replace('_', '-')}", metavar="N", help=words)
    for name in COLUMNS:
        traffic.add_argument(
            f"--{name}-column",
            metavar="NAME",
            help="of TRACE, where it is not found by its name; a dotted path in nested JSON or Parquet",
        )
    traffic.add_argument(
        "--table",
        metavar="ENGINE",
        nargs="?",
        const=DUCKDB,
        help="count TRACE where it is, with one query: a table, or Parquet in a file, a folder or a pattern; in duckdb "
        "(where nothing is named), spark, spark:MASTER, or at an address of Ibis such as bigquery://project/dataset, "
        "snowflake://, trino://, clickhouse:// or postgres://",
    )
    traffic.add_argument(
        "--histogram",
        metavar="OUT",
        help="with --table, write the histogram too, which the dashboard and this command take: .parquet or .csv",
    )
    traffic.add_argument(
        "--turns",
        choices=get_args(Asked),
        help="what rows that are turns of a conversation hold: the whole context, or what the turn added to it (as the "
        "file shows)",
    )
    traffic.add_argument("--json", action="store_true", help="print every number as JSON instead of tables")
    traffic.add_argument(
        "--busiest-hour",
        action="store_true",
        help="solve for the requests of the busiest hour of TRACE in place of all",
    )
    add_fleet(traffic)
    add_choice(traffic)
    traffic.set_defaults(run=run, answer=TrafficAnswer)


def run(options: argparse.Namespace) -> int:
    """Read, solve and print; gives the exit status."""
    scenario = chosen(read_scenarios(options.file), options.scenario)
    is_shape = options.trace in get_args(Shape)
    typed = {name: getattr(options, name) for name in LABELS if name != "shape"}
    stated = {name: value for name, value in typed.items() if value is not None}
    workload = read_workload(stated | ({"shape": options.trace} if is_shape else {}))
    if not isinstance(workload, Workload):
        stop(workload)
    columns = {f"{name}_column": getattr(options, f"{name}_column") for name in COLUMNS}
    fleet = fleet_wanted(options)
    if options.histogram and not options.table:
        stop_with("It is what --table counts: give both.", where="--histogram")
    try:
        if options.table:
            mix = _counted(options)
        elif is_shape:
            mix = mix_of_workload(workload)
        else:
            mix = read_trace(options.trace, turns=options.turns, **columns)
        workload = with_waiting(workload, mix.times)
        mix = _busiest(mix) if options.busiest_hour else mix
        traffic = traffic_of(for_bytes_alone(scenario), mix, workload.risk, workload.declared)
    except TraceError as fault:
        stop_with(str(fault), where="TRACE", kind=fault.kind)
    except RefusedError as refused:
        stop([Problem(where="", sentence=str(refused))], refused.refusal.answer_kind)
    given = rest_is_given(scenario)
    if not given and not options.json:
        return print_answer(options, traffic_answer(traffic, rest_given=False))
    ways = carriers_of(traffic) if fleet and given else ()
    if options.json:
        many = fleet_of(fleet, ways, traffic.sizing.scenario) if fleet and fleet.wanted and given else None
        print(traffic_json(traffic, many, rest_given=given), flush=True)
    else:
        lines = _traffic_lines(traffic, workload)
        lines += fleet_lines(fleet, ways, traffic.sizing.scenario, traffic.risk) if fleet else []
        print("\n".join(lines), flush=True)
    return sizing_answer(traffic.sizing, rest_given=given).status


def _counted(options: argparse.Namespace) -> Mix:
    """The mix of a table that an engine counts; its histogram is written where one is asked for."""
    columns = Columns(options.input_column, options.output_column, options.length_column, options.count_column)
    found = count_table(options.trace, options.table, columns)
    if options.histogram:
        out = Path(options.histogram)
        if out.suffix.lower() not in (".parquet", ".csv"):
            stop_with(f"{shown(out)} ends in neither .parquet nor .csv: name one of them.", where="--histogram")
        try:
            found.write(out)
        except OSError as error:
            stop_with(f"{shown(out)} cannot be written ({error.__class__.__name__}).", where="--histogram")
    return found.mix


def _busiest(mix: Mix) -> Mix:
    return mix.at_busiest or stop_with(
        "TRACE has no times that span more than an hour: leave it out.", where="--busiest-hour"
    )


def _traffic_lines(traffic: Traffic, workload: Workload) -> list[str]:
    tables = [
        (traffic_words.way_columns(traffic), traffic_words.way_rows(traffic)),
        (traffic_words.shift_columns(traffic), traffic_words.shift_rows(traffic)),
        (traffic_words.LENGTH_COLUMNS, traffic_words.length_rows(traffic)),
    ]
    lines = [traffic_words.headline(traffic), *traffic_words.reasons(traffic).splitlines()]
    lines.append(traffic_words.synthetic(traffic.mix) if traffic.mix.synthetic else traffic.mix.note)
    lines += [traffic_words.admission_words(traffic), traffic_words.whose(traffic), traffic_words.best_words(traffic)]
    lines += traffic_words.times_words(traffic).splitlines()
    waiting = workload.idle_sessions and traffic_words.keeps_sessions(traffic)
    if waiting:
        found = {way.name: residency(traffic, way, workload) for way in traffic.ways}
        tables.append((traffic_words.RESIDENCY_COLUMNS, traffic_words.residency_rows(found, traffic)))
    for columns, rows in tables:
        lines += ["", *aligned([columns, *rows])]
    if workload.idle_sessions:
        kept = traffic_words.room_words(room(traffic, workload), traffic) if waiting else traffic_words.NOT_KEPT
        lines += ["", kept]
    return [*lines, "", traffic_words.model_words(traffic), traffic_words.NOT_MODELLED]
