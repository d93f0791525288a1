"""The tools for agents: over the protocol itself, and the same answers as the command line, byte for byte."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from sizing.cli.main import main
from sizing.cli.mcp import TOOLS, _name
from tests.conftest import finished

ROOT = Path(__file__).parents[1]
GOLDEN = Path(__file__).parent / "golden"
LOGS = sorted((GOLDEN / "boot_logs").glob("*.log"))[::3]
QUESTIONS = sorted((GOLDEN / "questions").glob("*/case.json"))
OPTIONS = {
    "--command": "command",
    "--L": "L",
    "--tp": "tp",
    "--input-column": "input_column",
    "--output-column": "output_column",
}


def by_command_line(folder: Path, run: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The answer of a command in a folder."""
    placed = [str(folder / word) if (folder / word).is_file() else word for word in run]
    main([*placed, "--json"])
    printed = capsys.readouterr().out.replace(f"{folder}/", "")
    answer: dict[str, Any] = json.loads(printed)["answer"]
    return answer


def as_a_call(folder: Path, run: list[str]) -> dict[str, Any]:
    """The same as arguments of the tool: every file by its text and its name."""
    command, *words = run
    given: dict[str, Any] = {}
    texts = ["log"] if command == "log" else ["config"] if command == "model" else ["scenario", "trace"]
    while words:
        word = words.pop(0)
        name = OPTIONS[word] if word in OPTIONS else texts.pop(0)
        value = words.pop(0) if word in OPTIONS else word
        if (folder / value).is_file():
            given |= {name: (folder / value).read_bytes().decode(), f"{name}_name": value}
        else:
            given["shape" if name == "trace" else name] = int(value) if name == "tp" else value
    return given


def same(folder: Path, run: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Holds one call beside the command."""
    answer = TOOLS[run[0]](**as_a_call(folder, run)).model_dump(mode="json")
    assert answer == by_command_line(folder, run, capsys)


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case.parent.name)
def test_questions_are_answered_as_by_the_command_line(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every question that was asked, through its tool."""
    for ask in json.loads(case.read_text(encoding="utf-8"))["asks"]:
        same(case.parent, ask["run"], capsys)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_logs_are_answered_as_by_the_command_line(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Real boot logs, with and without a length."""
    same(log.parent, ["log", log.name], capsys)
    same(log.parent, ["log", log.name, "--L", "32K"], capsys)


def test_scenarios_traces_and_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of each other tool, right and wrong."""
    (tmp_path / "s.json").write_text('{"L": 16384, "D": 4}')
    (tmp_path / "bad.json").write_text('{"L": "x"}')
    (tmp_path / "t.jsonl").write_text('{"input_tokens": 900, "output_tokens": 100}\n' * 5)
    for run in (
        ["plan", "s.json"],
        ["plan", "bad.json"],
        ["traffic", "s.json", "t.jsonl"],
        ["traffic", "s.json", "chat"],
        ["model", "moonshotai/Kimi-K3", "--tp", "8"],
    ):
        same(tmp_path, run, capsys)


def test_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What fits, what does not, further lengths, and what is no number of requests."""
    (tmp_path / "s.json").write_text('{"L": 16384}')
    for requests, length, also in (("20", None, []), ("96", "32K", ["8K:4"]), ("many", None, []), ("5", "x", ["1"])):
        options = [*(["--length", length] if length else []), *(word for one in also for word in ("--also", one))]
        found = TOOLS["target"](scenario='{"L": 16384}', scenario_name="s.json", requests=requests, L=length, also=also)
        assert found.model_dump(mode="json") == by_command_line(
            tmp_path, ["target", "s.json", requests, *options], capsys
        )


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../../x", "..", "", "a\0b", "C:\\x\\y.log", "n" * 5000, "é" * 300, "-"]
)
def test_a_name_is_no_path(name: str, tmp_path: Path) -> None:
    """Whatever it is, the text that was given is what is read."""
    assert "/" not in _name(name)
    answer = TOOLS["plan"](scenario="{}", scenario_name=name)
    assert answer.model_dump()["runs"] == 51


@pytest.mark.parametrize("text", ["/etc/hostname", str(ROOT / "pyproject.toml"), "-", "--save=x", "--help"])
def test_a_text_is_no_path_and_no_option(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing on the machine is read or written through an argument."""
    monkeypatch.chdir(tmp_path)
    calls: dict[str, dict[str, Any]] = {
        "plan": {"scenario": text},
        "log": {"log": text, "command": text, "L": text, "model": text},
        "model": {"config": text, "kv_dtype": text},
        "traffic": {"scenario": "{}", "trace": text, "input_column": text},
    }
    for name, arguments in calls.items():
        assert TOOLS[name](**arguments).refused is not None
    target = TOOLS["target"](scenario="{}", requests=text, L=text, also=[text])
    assert target.refused is not None
    assert list(tmp_path.iterdir()) == []


def test_over_the_protocol() -> None:
    """A client of the SDK finds five tools that only read, with schemas, and gets a whole answer."""

    async def talk() -> tuple[Any, Any]:
        server = StdioServerParameters(command=sys.executable, args=["-m", "sizing", "mcp"], cwd=str(ROOT))
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            return await session.list_tools(), await session.call_tool("plan", {"scenario": '{"L": 16384, "D": 4}'})

    listed, answer = finished(asyncio.wait_for(talk(), 60))
    assert [tool.name for tool in listed.tools] == ["plan", "log", "model", "target", "traffic"]
    assert all(tool.annotations.read_only_hint and tool.output_schema for tool in listed.tools)
    assert answer.structured_content["runs"] == 28
    assert answer.structured_content["binds"] == "state"
