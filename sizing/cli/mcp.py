"""`mcp`: the commands as tools for agents, over the Model Context Protocol on standard input and output.

A tool takes the text of a file and its name, never a path, and gives the answer that the command gives with --json: it
runs that very command on a copy in a folder of its own, which is gone before the answer is. Nothing else is read or
written, and nothing is kept.
"""

import argparse
import io
import json
import tempfile
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sizing.cli import log as log_command
from sizing.cli import model, plan, target, traffic
from sizing.cli.shared import StopError, print_json, stop_with
from sizing.exchange.answer import Answer, ModelAnswer, SizingAnswer, TrafficAnswer
from sizing.exchange.server_answer import LogFileAnswer
from sizing.scenario.from_model import servable
from sizing.traffic.workload import Shape

if TYPE_CHECKING:
    from mcp.server import MCPServer

MAX_TEXT = 32 * 2**20  # characters of all texts of a call
MAX_NAME = 100
INSTRUCTIONS = (
    "Follows SGLang's sizing code to the integer: how it splits GPU memory of hybrid models (attention with Mamba, GDN "
    "or KDA layers) between state pool and KV pool. Have a boot log, or what a running server says: use log. Have "
    "inputs: plan. Have requests to carry: target. Have a trace: traffic. Have a config.json: model. Read `words` "
    "first; `refused` says why nothing runs, `unknown` what the texts do not say, `flags` what to set. Numbers are per "
    "rank unless a name says otherwise."
)
Found = TypeVar("Found", bound=Answer)
COMMANDS = {"plan": plan, "log": log_command, "model": model, "target": target, "traffic": traffic}
_one_at_a_time = threading.Lock()  # a command prints to the process's own standard output


def add(commands: Any) -> None:
    """Declare the command."""
    mcp = commands.add_parser(
        "mcp",
        help="serve the commands as tools to agents",
        description="Serve plan, log, model, target and traffic as tools over the Model Context Protocol, on standard "
        "input and output. It needs the extra: pip install 'hybrid-pool-sizing[mcp]'.",
    )
    mcp.set_defaults(run=run, answer=SizingAnswer, json=False)


def run(_: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    try:
        server().run("stdio")
    except ImportError:
        stop_with("The SDK is not installed: pip install 'hybrid-pool-sizing[mcp]'.", where="mcp")
    return 0


def answered(kind: type[Found], command: str, files: dict[str, tuple[str, str]], *arguments: str | None) -> Found:
    """What a command says of files by their text.

    `files` holds name and text under a mark that stands in `arguments` for the file; None among them is left out.
    """
    if sum(len(text) for _, text in files.values()) > MAX_TEXT:
        return _refused(kind, f"The texts are longer than {MAX_TEXT // 2**20} Mi characters: cut them.")
    with tempfile.TemporaryDirectory(prefix="sizing-") as folder:
        places = {}
        for at, (mark, (name, text)) in enumerate(files.items()):
            place = Path(folder) / str(at) / _name(name)
            place.parent.mkdir()
            place.write_text(text, encoding="utf-8", errors="replace", newline="")
            places[mark] = str(place)
        typed = [_placed(argument, places) for argument in arguments if argument is not None]
        printed = _printed(command, typed)
        for copy in places.values():
            printed = printed.replace(f"{Path(copy).parent}/", "")
    try:
        return kind.model_validate(json.loads(printed)["answer"])
    except (ValueError, KeyError):
        return _refused(kind, printed.strip() or "The arguments cannot be read.")


def _printed(command: str, typed: list[str]) -> str:
    """What the command prints with --json, or what is wrong with its arguments."""
    out, err = io.StringIO(), io.StringIO()
    with _one_at_a_time, redirect_stdout(out), redirect_stderr(err):
        try:
            options = _parser().parse_args([command, "--json", *typed])
            options.run(options)
        except StopError as stopped:
            print_json(options.answer(refused=stopped.refused, words=stopped.refused.words))
        except SystemExit:
            return err.getvalue().strip().rpartition("\n")[2]
    return out.getvalue()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sizing", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    for command in COMMANDS.values():
        command.add(commands)
    return parser


def _placed(argument: str, places: dict[str, str]) -> str:
    """An argument, a mark in it replaced by the place of its file; an option's mark stands behind its =."""
    option, equals, value = argument.partition("=")
    if argument in places:
        return places[argument]
    return f"{option}={places[value]}" if equals and value in places else argument


def _name(stated: str) -> str:
    """The last part of a stated name; what is no name of a file becomes one."""
    name = stated.replace("\\", "/").rpartition("/")[2].replace("\0", "")[-MAX_NAME:].strip()
    return name if name.strip(".") and len(name.encode("utf-8", "replace")) <= 2 * MAX_NAME else "file"


def _refused(kind: type[Found], words: str) -> Found:
    try:
        stop_with(words, where="")
    except StopError as stopped:
        return kind(refused=stopped.refused, words=stopped.refused.words)


def _option(name: str, value: object) -> str | None:
    """An option with its value in one word, so that no value is read as another option."""
    return None if value is None else f"--{name}={value}"


SCENARIO, LOG, COMMAND, CONFIG, TRACE = (f"\0{name}" for name in ("scenario", "log", "command", "config", "trace"))


def plan_tool(scenario: str, scenario_name: str = "scenario.json", scenario_number: int | None = None) -> SizingAnswer:
    """Solve a scenario: what runs, which pool binds, the best split and the flag to set.

    `scenario` is the text of a JSON object with the inputs that differ from the worked example, such as
    {"model": "moonshotai/Kimi-K3", "L": 16384, "tp_size": 8, "rest_gib": 28.5}, or of a file that Compare saved.
    """
    number = _option("scenario", scenario_number)
    return answered(SizingAnswer, "plan", {SCENARIO: (scenario_name, scenario)}, number, "--", SCENARIO)


def log_tool(
    log: str,
    log_name: str = "boot.log",
    command: str | None = None,
    command_name: str = "command.sh",
    L: str | None = None,
    model: str | None = None,
    more: list[str] | None = None,
) -> LogFileAnswer:
    """Read what SGLang says, with the launch command behind it if there is one: what was sized, why, the cure.

    `log` is the text of a boot log, of /server_info, /v1/loads or /metrics, or lines of prefill and decode batches;
    `more` are texts that belong to it. Of a running server `serving` says what its pools held, what kept requests
    waiting and the length in use. L is the context per request [tokens], such as 32768 or 32K; `model` is a name of the
    catalogue, for exact bytes.
    """
    others = {f"{LOG}{number}": (f"{number}.log", text) for number, text in enumerate(more or (), start=1)}
    files = {LOG: (log_name, log)} | others | ({COMMAND: (command_name, command)} if command is not None else {})
    behind = None if command is None else f"--command={COMMAND}"
    options = (behind, _option("L", L), _option("model", model))
    return answered(LogFileAnswer, "log", files, *options, "--", LOG, *others)


def model_tool(
    config: str,
    config_name: str = "config.json",
    tp: int = 1,
    dcp: int = 1,
    pp: int = 1,
    kv_dtype: str | None = None,
    ssm_dtype: str | None = None,
    conv_dtype: str = "bfloat16",
) -> ModelAnswer:
    """Derive what one rank keeps for a model: bytes of a state slot and of a KV token.

    `config` is the text of a config.json, or a name of the catalogue such as moonshotai/Kimi-K3.
    """
    known = config in servable()
    options = {"tp": tp, "dcp": dcp, "pp": pp, "kv-dtype": kv_dtype, "ssm-dtype": ssm_dtype, "conv-dtype": conv_dtype}
    typed = [_option(name, value) for name, value in options.items()]
    files = {} if known else {CONFIG: (config_name, config)}
    return answered(ModelAnswer, "model", files, *typed, "--", config if known else CONFIG)


def target_tool(
    scenario: str,
    requests: str,
    L: str | None = None,
    also: list[str] | None = None,
    scenario_name: str = "scenario.json",
) -> SizingAnswer:
    """Solve backwards: what to set so that so many requests of L run at once in the whole deployment.

    `also` holds further lengths with their requests, such as 32K:16. `words` says whether they fit and what to set.
    """
    further = [_option("also", one) for one in also or []]
    files = {SCENARIO: (scenario_name, scenario)}
    return answered(SizingAnswer, "target", files, _option("length", L), *further, "--", SCENARIO, requests)


def traffic_tool(
    scenario: str,
    trace: str | None = None,
    trace_name: str = "trace.jsonl",
    shape: Shape | None = None,
    risk_percent: float | None = None,
    input_column: str | None = None,
    output_column: str | None = None,
    length_column: str | None = None,
    count_column: str | None = None,
    scenario_name: str = "scenario.json",
) -> TrafficAnswer:
    """Solve for real traffic in place of one L: the text of a trace or of a benchmark's result, or a named shape."""
    if (trace is None) == (shape is None):
        return _refused(TrafficAnswer, "Give the text of a trace, or a shape.")
    columns = {"input": input_column, "output": output_column, "length": length_column, "count": count_column}
    typed = [_option(f"{name}-column", value) for name, value in columns.items()]
    files = {SCENARIO: (scenario_name, scenario)} | ({TRACE: (trace_name, trace)} if trace is not None else {})
    risk = _option("risk-percent", risk_percent)
    return answered(TrafficAnswer, "traffic", files, risk, *typed, "--", SCENARIO, shape or TRACE)


TOOLS: dict[str, Callable[..., Answer]] = {
    "plan": plan_tool,
    "log": log_tool,
    "model": model_tool,
    "target": target_tool,
    "traffic": traffic_tool,
}


def server() -> "MCPServer[Any]":
    """The server with its tools. Raises ImportError without the extra."""
    from mcp.server import MCPServer
    from mcp.types import ToolAnnotations

    found: MCPServer[Any] = MCPServer("hybrid-pool-sizing", instructions=INSTRUCTIONS, log_level="ERROR")
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    for name, tool in TOOLS.items():
        found.tool(name=name, annotations=reads)(tool)
    return found
