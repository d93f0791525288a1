"""`python -m sizing`: the parser of all commands, and the exit status."""

import argparse
import os
import sys
from io import TextIOWrapper

from sizing.cli import check, dashboard, log, mcp, model, plan, target, traffic
from sizing.cli.shared import StopError, print_json

COMMANDS = (plan, model, target, traffic, log, check, mcp, dashboard)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sizing",
        description="How to split GPU memory between the state pool and the KV pool of a hybrid model in SGLang.",
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    for command in COMMANDS:
        command.add(commands)
    return parser


def _options(arguments: list[str] | None) -> argparse.Namespace:
    """What is typed; only `dashboard` takes options that are not declared here, which are Streamlit's."""
    parser = _parser()
    options, others = parser.parse_known_args(arguments)
    if "streamlit" in options:
        options.streamlit = others
    elif others:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    return options


def main(arguments: list[str] | None = None) -> int:
    """Run a command; gives the exit status: 0 solved, 1 the engine would refuse, 2 wrong input."""
    options = _options(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a quotation mark still gets the numbers
    try:
        return int(options.run(options))
    except StopError as stopped:
        answer = options.answer(refused=stopped.refused, words=stopped.refused.words)
        if options.json:
            return print_json(answer)
        print(stopped, file=sys.stderr)
        return int(answer.status)
    except BrokenPipeError:  # whoever reads, head for instance, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
