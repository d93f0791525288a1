"""The command `log` and the tool of the same name read what a running server says, in one file or in several."""

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from sizing.cli.main import main
from sizing.cli.mcp import TOOLS
from tests.server_texts import Moment, Server

MOMENTS = [Moment(second, 51, 9, 478_691, 204, 20) for second in range(12)]
SERVER = Server()
INFO = json.dumps(SERVER.info()) + "\n"
LINES = "".join(map(SERVER.decode, MOMENTS))
SCRAPES = "".join(map(SERVER.scrape, MOMENTS))
LOADS = "".join(json.dumps(SERVER.loads(at)) + "\n" for at in MOMENTS)
LAUNCH = "sglang serve --model-path moonshotai/Kimi-K3 --tp-size 8 --page-size 64 --kv-cache-dtype fp8_e4m3\n"


def answered(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What the command prints with --json, and that it ends well."""
    assert main(["log", *words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)["answer"]
    return answer


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with every format."""
    texts = {"info.json": INFO, "lines.log": LINES, "scrapes.prom": SCRAPES, "loads.json": LOADS, "launch.sh": LAUNCH}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "lines.log.gz").write_bytes(gzip.compress(LINES.encode()))
    return tmp_path


def test_each_format_alone(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Known by its content: what a format gives is answered, what it does not is unknown and no number."""
    told: dict[str, dict[str, Any]] = {
        "info.json": {"slots": 257, "S": 5, "runs": 51},
        "lines.log": {"runs": 51, "S": 5, "binds": "state"},
        "lines.log.gz": {"runs": 51, "S": 5, "binds": "state"},
        "scrapes.prom": {"slots": 257, "kv_tokens": 1_167_552},
        "loads.json": {"runs": 51, "kv_tokens": 1_167_552},
    }
    for name, known in told.items():
        answer = answered(capsys, str(files / name))
        assert {key: answer[key] for key in known} == known, name
        assert (answer["L"], answer["refused"]) == (None, None)
        empty = {key for key in ("S", "D", "slots", "clamp", "kv_rows", "kv_tokens", "runs") if answer[key] is None}
        assert empty <= set(answer["unknown"])
        assert answer["serving"]["formats"]


def test_several_files_are_one(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What one lacks another has; the flags stand in the command that is given back."""
    both = [str(files / name) for name in ("info.json", "lines.log.gz", "scrapes.prom")]
    answer = answered(capsys, *both, "--command", str(files / "launch.sh"), "--L", "9216")
    assert answer["unknown"] == []
    assert answer["serving"]["formats"] == ["server_info", "batch lines", "metrics"]
    assert answer["serving"]["limit_held"]["state"] == 1
    assert answer["flags"] == ["--mamba-full-memory-ratio 2.2045"]
    assert answer["command"].rstrip().endswith("--mamba-full-memory-ratio 2.2045")
    main(["log", *both, "--L", "9216"])
    printed = capsys.readouterr().out
    assert printed.startswith(
        "State pool admitted nobody 100 % of the time, KV never above 41 %: r = 2.2045 runs 74 at L = 9,216;"
    )
    assert "state slots held per running request" in printed
    assert "predicted / measured:" in printed


def test_the_tool_answers_as_the_command(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Several texts, by the tool for agents."""
    by_command = answered(capsys, str(files / "info.json"), str(files / "lines.log"), "--L", "9216")
    by_tool = TOOLS["log"](log=INFO, log_name="info.json", more=[LINES], L="9216").model_dump(mode="json")
    assert by_tool == by_command


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Both readers see it."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO((INFO + LINES).encode())))
    assert answered(capsys, "-")["serving"]["formats"] == ["server_info", "batch lines"]


def test_a_file_that_is_not_there(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is named, whichever it is."""
    assert main(["log", str(files / "info.json"), str(files / "nothing.log"), "--json"]) == 2
    assert "nothing.log cannot be read" in capsys.readouterr().out
