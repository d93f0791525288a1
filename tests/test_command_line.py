"""The command line: the dashboard's numbers from a file or from standard input, and what it says of wrong input."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sizing import Scenario, solve
from sizing.cli.main import main
from sizing.exchange.scenario_file import EXAMPLE, MAX_LENGTH
from sizing.explain.verdict import verdict
from sizing.scenario.inputs import FIELDS
from tests.conftest import Ran, Run

ROOT = Path(__file__).parents[1]
NO_OBJECT = f"In standard input: it holds no named values. Write an object such as {EXAMPLE}."


def run(*arguments: str, stdin: str | bytes = "") -> Ran:
    """The command as a user starts it, in a process of its own."""
    data = stdin if isinstance(stdin, bytes) else stdin.encode()
    done = subprocess.run(
        [sys.executable, "-m", "sizing", *arguments], check=False, input=data, capture_output=True, cwd=ROOT
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.fixture
def plan(sizing_command: Run) -> Run:
    """`plan - OPTIONS` on a text."""
    return lambda text, *options: sizing_command("plan", "-", *options, stdin=text)


def test_plan_of_nothing_is_the_worked_example(plan: Run) -> None:
    """An empty object solves the worked example: the verdict first, every step, both flags to set, status 0."""
    status, printed, said = plan("{}")
    lines = printed.splitlines()
    assert (status, said) == (0, "")
    assert lines[0] == verdict(solve(Scenario())).text
    assert "  S, slots per request                            5  base + track buffer: 3 + 2" in lines
    assert "  mamba clamp                           51 requests  K // S: 257 // 5" in lines
    assert "set: --mamba-full-memory-ratio 2.2045" in lines
    assert " or: --max-mamba-cache-size 371" in lines


def test_json_holds_every_number(plan: Run) -> None:
    """--json prints the whole sizing of the scenario that went in."""
    status, printed, said = plan('{"L": 16384, "D": 4}', "--json")
    assert (status, said) == (0, "")
    sizing = solve(Scenario(L=16_384, D=4))
    answer = json.loads(printed)
    assert answer["sizing"] == json.loads(sizing.model_dump_json())
    assert answer["verdict"] == verdict(sizing).text


def test_file_and_standard_input_give_the_same(tmp_path: Path) -> None:
    """The same text from a file and from standard input gives the same answer, whatever the letters."""
    text = '{"L": 16384, "name": "é, ü"}'
    file = tmp_path / "scenario.json"
    file.write_text(text, encoding="utf-8")
    from_file, from_stdin = run("plan", str(file), "--json"), run("plan", "-", "--json", stdin=text)
    assert from_file == from_stdin
    assert from_file[0] == 0
    assert '"name": "é, ü"' in from_file[1]


def test_help_names_every_input(capsys: pytest.CaptureFixture[str]) -> None:
    """`plan --help` lists each input with its default, its flag and its description."""
    with pytest.raises(SystemExit) as stopped:
        main(["plan", "--help"])
    printed = capsys.readouterr().out
    assert stopped.value.code == 0
    for name, field in FIELDS.items():
        assert f"\n  {name} = {json.dumps(field.default)}" in printed
        assert str(field.description) in printed
    assert "\n  D = 0 [tokens] (--speculative-num-draft-tokens)\n" in printed


@pytest.mark.parametrize("command", ["plan", "model", "target", "traffic", "log"])
def test_help_of_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each prints its usage: argparse fails on a percent sign in a help text that is not doubled."""
    with pytest.raises(SystemExit) as stopped:
        main([command, "--help"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m sizing {command} ")


@pytest.mark.parametrize("arguments", [[], ["plan"], ["draw"], ["plan", "-", "--yaml"]])
def test_problem_wrong_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A command that does not exist or is not complete shows the usage and ends with status 2."""
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m sizing")


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        pytest.param('{"L": 0}', ["In standard input: L must be 1 or more, not “0”."], id="one fault"),
        pytest.param(
            '{"rest_gib": NaN, "L": Infinity, "mamba_full_memory_ratio": -Infinity}',
            [
                "In standard input: L must be a finite number, not “inf”.",
                "In standard input: rest must be a finite number, not “nan”.",
                "In standard input: --mamba-full-memory-ratio must be a finite number, not “-inf”.",
            ],
            id="NaN and infinity",
        ),
        pytest.param(
            '{"L": true, "l": 1}',
            [
                "In standard input: L must be a number, not “true”.",
                "In standard input: “l” is not an input of this tool. Remove it or correct its name.",
            ],
            id="true and unknown",
        ),
        pytest.param(
            "L = 1",
            [f"In standard input: it is not JSON: Expecting value in line 1. Write an object such as {EXAMPLE}."],
            id="not JSON",
        ),
        pytest.param(
            "",
            [f"In standard input: it is not JSON: Expecting value in line 1. Write an object such as {EXAMPLE}."],
            id="nothing",
        ),
        pytest.param("[9216]", [NO_OBJECT], id="list"),
        pytest.param('"L"', [NO_OBJECT], id="text"),
        pytest.param("9216", [NO_OBJECT], id="number"),
        pytest.param("NaN", [NO_OBJECT], id="bare NaN"),
        pytest.param("true", [NO_OBJECT], id="bare true"),
        pytest.param("null", [NO_OBJECT], id="null"),
        pytest.param(
            '{"L": ' + "9" * 5000 + "}",
            ["In standard input: it holds a number of thousands of digits: that is no input."],
            id="endless number",
        ),
        pytest.param(
            '{"L": ' + "[" * 50_000,
            ["In standard input: it is nested too deeply to be a file of scenarios."],
            id="nested",
        ),
        pytest.param(
            " " * (MAX_LENGTH + 1),
            ["In standard input: it is longer than 100,000 characters: no file of 6 scenarios is."],
            id="long",
        ),
    ],
)
def test_problem_on_standard_input(plan: Run, text: str, sentences: list[str]) -> None:
    """Wrong input prints nothing, says every fault in a line of its own, and ends with status 2."""
    assert plan(text) == (2, "", "\n".join(sentences) + "\n")


def test_problem_unreadable_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is missing, a folder or not text is named, and the command ends with status 2."""
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe{}")
    for file, error in [
        (tmp_path / "missing", "FileNotFoundError"),
        (tmp_path, "IsADirectoryError"),
        (binary, "UnicodeDecodeError"),
    ]:
        assert main(["plan", str(file)]) == 2
        assert capsys.readouterr().err == (
            f"{file} cannot be read as text ({error}). Name a JSON file, or - for standard input.\n"
        )


def test_problem_file_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is wrong in a file is said of that file."""
    file = tmp_path / "scenario.json"
    file.write_text("[]", encoding="utf-8")
    assert main(["plan", str(file)]) == 2
    assert capsys.readouterr().err == f"In {file}: it holds no named values. Write an object such as {EXAMPLE}.\n"


def test_problem_binary_on_standard_input() -> None:
    """Bytes that are not UTF-8 are refused on standard input as in a file."""
    assert run("plan", "-", stdin=b"\xff\xfe{}") == (
        2,
        "",
        "standard input cannot be read as text (UnicodeDecodeError). Name a JSON file, or - for standard input.\n",
    )


def test_problem_in_a_process_of_its_own() -> None:
    """As a user starts it: NaN and infinity come back as sentences with status 2, without a trace."""
    assert run("plan", "-", stdin='{"rest_gib": NaN, "L": Infinity}') == (
        2,
        "",
        "In standard input: L must be a finite number, not “inf”.\n"
        "In standard input: rest must be a finite number, not “nan”.\n",
    )


def test_problem_refused_flags(plan: Run) -> None:
    """Flags that SGLang refuses end with status 1 and its words."""
    assert plan('{"mamba_radix_cache_strategy": "no_buffer"}') == (
        1,
        "",
        "SGLang would refuse to start: “no_buffer only supports page_size=1.” "
        "Set --page-size 1 (now 64) or choose another strategy.\n",
    )


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_problem_refused_deployment(plan: Run, options: list[str]) -> None:
    """A deployment that SGLang refuses is printed as far as it gets, with its words, and ends with status 1."""
    status, printed, said = plan('{"split": "pin", "max_mamba_cache_size": 700}', *options)
    assert (status, said) == (1, "")
    assert "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static" in printed


def test_problem_reader_has_seen_enough() -> None:
    """A reader that closes the pipe early, as head does, gets no trace."""
    process = subprocess.Popen(
        [sys.executable, "-m", "sizing", "plan", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, said = process.communicate(b"{}")
    assert (process.returncode, said) == (0, b"")
