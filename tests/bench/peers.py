"""What do other sizing tools say about the same hybrid models?

Ten models of our catalogue from nine families, on one rank (TP1, for the arithmetic: the largest would not fit there),
with bfloat16 KV and the float32 SSM state that their configurations ask for. Every tool gets the same configuration
and answers for one request of L and of 2 L tokens. The difference, by token, is its KV cache; what is left at L is its
state. The tools are hf-mem, aiconfigurator and kvfit, run offline; `peer_answers.py` has the calls and what each number
is. Where aiconfigurator has no native model, its fallback is shown beside it: it is off unless asked for.

How to read it: `x` is the tool's number divided by ours, so 1.00 means that both say the same; it does not say who is
right. Ours are held against the engine's own numbers by the tests. Only the same quantities are divided: hf-mem and the
fallback report a KV cache and have no state, so only their KV cache is compared; and a tool that charges a request
several state slots is compared with as many of ours, since how many it takes is the scheduler's doing, not the model's.
"no answer" has its reason below the tables; to refuse an unknown model is better than a wrong number. The exit code is
1 only if the other interpreter could not be run.

    python -m venv PEERS && PEERS/bin/pip install hf-mem aiconfigurator kvfit
    python tests/bench/peers.py --python PEERS/bin/python [--length 32768] [--markdown]
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing.models import entry, kv_bytes_per_token, read_config, ssm_dtype, state_bytes

MODELS = (
    "Qwen/Qwen3-Next-80B-A3B-Instruct",
    "Qwen/Qwen3.5-27B",
    "Qwen/Qwen3.5-397B-A17B",
    "moonshotai/Kimi-Linear-48B-A3B-Instruct",
    "moonshotai/Kimi-K3",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "tiiuae/Falcon-H1-34B-Instruct",
    "ibm-granite/granite-4.0-h-tiny",
    "LiquidAI/LFM2-8B-A1B",
    "inclusionAI/Ling-3.0-tiny",
)
NATIVE, FALLBACK = "aiconfigurator", "aiconfigurator fallback"
ALL_TOOLS = ("hf-mem", NATIVE, FALLBACK, "kvfit")
WITH_STATE = (NATIVE, "kvfit")
ASK = Path(__file__).with_name("peer_answers.py")
LIMIT_S = 120
LONGEST = 1_000_000_000


class CannotAskError(Exception):
    """The other interpreter did not run, or did not answer."""


@dataclass(frozen=True)
class Need:
    """What requests of one model need: bytes per token, and bytes per request whatever its length."""

    kv: float
    state: float
    slots: int = 1
    """State slots in `state`; 0 for a tool that has no state."""

    def request(self, length: int) -> float:
        return self.kv * length + self.state


@dataclass(frozen=True)
class Tool:
    name: str
    version: str | None
    """None where it is not installed."""
    answers: dict[str, Need | str]
    """By model; a text is why there is none. Models that it was not asked for are not in it."""


Measure = Callable[[Need], float]


def ours(model: str) -> Need:
    geometry = read_config(entry(model).config)
    assumed = ssm_dtype(geometry)
    if assumed != "float32":
        raise ValueError(f"{model} asks for {assumed} state, and the tools are asked for float32")
    return Need(kv_bytes_per_token(geometry, tp=1, dtype="bfloat16"), state_bytes(geometry, tp=1).total)


def ask(python: str, tool: str, models: Iterable[str], length: int) -> Tool:
    """Let one tool answer for these models in its own process."""
    configs = {model: entry(model).config for model in models}
    command = [python, str(ASK), tool, str(length)]
    try:
        run = subprocess.run(
            command, check=False, input=json.dumps(configs), capture_output=True, text=True, timeout=LIMIT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotAskError(f"{tool}: {error}") from error
    if run.returncode:
        raise CannotAskError(f"{tool}: {(run.stderr.strip().splitlines() or ['no output'])[-1]}")
    reply = json.loads(run.stdout)
    answers = {model: understood(answer, length) for model, answer in reply["answers"].items()}
    return Tool(tool, reply["version"], answers)


def understood(answer: dict[str, Any], length: int) -> Need | str:
    if "why" in answer:
        return str(answer["why"])
    at_length, at_double = answer["bytes"]
    return Need((at_double - at_length) / length, 2 * at_length - at_double, answer["slots"])


def ask_all(python: str, length: int) -> list[Tool]:
    tools: list[Tool] = []
    for name in ALL_TOOLS:
        models: tuple[str, ...] = MODELS
        if name == FALLBACK:
            models = tuple(model for model in MODELS if isinstance(tools[-1].answers.get(model), str))
        tools.append(ask(python, name, models, length))
    return tools


def comparable(theirs: Need, mine: Need) -> Need:
    """Ours with as many state slots as the tool charges a request."""
    slots = max(theirs.slots, 1)
    return Need(mine.kv, mine.state * slots, slots)


def cells(tool: Tool, model: str, mine: Need, measure: Measure) -> tuple[str, str]:
    """What one tool says about one model, and that divided by ours; no quotient where it says nothing."""
    if tool.version is None:
        return "not installed", ""
    theirs = tool.answers.get(model)
    if theirs is None:
        return "not used", ""
    if isinstance(theirs, str):
        return "no answer", ""
    same = comparable(theirs, mine)
    several = f" ({same.slots} slots)" if measure(same) != measure(mine) else ""
    return f"{measure(theirs):,.0f}{several}", f"{measure(theirs) / measure(same):.2f}"


def section(title: str, tools: Iterable[Tool], needs: dict[str, Need], measure: Measure) -> str:
    tools = list(tools)
    rows = [[title, "ours", *(text for tool in tools for text in (tool.name, "x"))]]
    for model, mine in needs.items():
        theirs = [text for tool in tools for text in cells(tool, model, mine, measure)]
        rows.append([short(model), f"{measure(mine):,.0f}", *theirs])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows
    )


def reasons(tools: Iterable[Tool]) -> str:
    """Why a tool has no answer, a line each."""
    return "\n".join(
        f"{tool.name}, {short(model)}: {answer}"
        for tool in tools
        for model, answer in tool.answers.items()
        if isinstance(answer, str)
    )


def markdown(tools: list[Tool], needs: dict[str, Need], length: int) -> str:
    """One table of quotients: a dash where a tool has no answer, the fallback's in brackets."""
    whole = request_of(length)
    fallback = next(tool for tool in tools if tool.name == FALLBACK)
    columns: list[tuple[str, Tool, Measure]] = [("KV", tool, kv_of) for tool in tools if tool != fallback]
    columns += [("request", tool, whole) for tool in tools if tool.name in WITH_STATE]
    rows = [["Model", "KV, bytes per token", "state, bytes per slot"]]
    rows[0] += [f"{what}: {tool.name}" for what, tool, _ in columns]
    rows.append(["---", *["---:"] * (len(rows[0]) - 1)])
    for model, mine in needs.items():
        row = [short(model), f"{mine.kv:,.0f}", f"{mine.state:,.0f}"]
        for what, tool, measure in columns:
            quotient = cells(tool, model, mine, measure)[1] or "-"
            instead = cells(fallback, model, mine, measure)[1] if what == "KV" and tool.name == NATIVE else ""
            row.append(f"{quotient} ({instead})" if instead else quotient)
        rows.append(row)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def kv_of(need: Need) -> float:
    return need.kv


def state_of(need: Need) -> float:
    return need.state


def request_of(length: int) -> Measure:
    return lambda need: need.request(length)


def short(model: str) -> str:
    return model.rsplit("/", 1)[1]


def main() -> int:
    parser = argparse.ArgumentParser(description="Other tools' numbers beside ours, on the same models.")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has them (default: this one)")
    parser.add_argument("--length", type=int, default=32_768, help="L, tokens of the request (default 32768)")
    parser.add_argument("--markdown", action="store_true", help="print one table of quotients, in Markdown")
    options = parser.parse_args()
    if not 1 <= options.length <= LONGEST:
        parser.error(f"--length must be from 1 to {LONGEST:,}")
    needs = {model: ours(model) for model in MODELS}
    try:
        tools = ask_all(options.python, options.length)
    except CannotAskError as error:
        print(f"could not ask: {error}", file=sys.stderr)
        return 1
    print(", ".join(f"{tool.name} {tool.version or 'not installed'}" for tool in tools if tool.name != FALLBACK))
    print("TP1, bfloat16 KV, float32 SSM state; x = theirs / ours\n")
    if options.markdown:
        print(markdown(tools, needs, options.length))
        return 0
    with_state = [tool for tool in tools if tool.name in WITH_STATE]
    print(section("KV cache, bytes per token", tools, needs, kv_of) + "\n")
    print(section("State, bytes (ours: one slot)", with_state, needs, state_of) + "\n")
    print(section(f"Request of {options.length:,}, bytes", with_state, needs, request_of(options.length)) + "\n")
    print(reasons(tools))
    return 0


if __name__ == "__main__":
    sys.exit(main())
