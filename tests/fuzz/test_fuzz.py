"""Everything that strangers give, mutated: it is read or refused in words, and nothing else happens.

In the suite each harness has a fixed number of examples; a long run, on several cores if there are:

    python tests/fuzz/long.py [--examples 200000]

The corpus is a line or a file of each kind; what a long run finds goes there as a file.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sizing import Problem, Scenario
from sizing.answers.carrying_settings import Want
from sizing.bootlog import read_chunks
from sizing.cli.check import verdict
from sizing.command import read_command
from sizing.command.launch_files import LaunchFileError, launches_in
from sizing.exchange.link import from_query, kept_from_query, wants_from_query
from sizing.exchange.log_answer import log_answer
from sizing.exchange.scenario_file import from_file
from sizing.exchange.server_answer import told
from sizing.figures import occupancy_figure
from sizing.models import ModelRefusedError, read_config
from sizing.server.texts import read_texts
from sizing.traffic.reading import TraceError, read_trace
from sizing.traffic.workload import workload_from_query

CORPUS = Path(__file__).parent / "corpus"
BOOT_LOGS = Path(__file__).parents[1] / "golden" / "boot_logs"
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))  # of each harness
SIGNS = (
    "",
    "\n",
    "\0",
    "…",
    "{",
    "}",
    "[",
    '"',
    "'",
    "\\",
    "-",
    "--",
    "=",
    ",",
    "9" * 40,
    "-1",
    "1e999",
    "NaN",
    "null",
    "$X",
    "é",
)


def log(data: bytes, _: Path) -> None:
    """A boot log, to its answer with a command that is the same text."""
    found = read_chunks([data[:100], data[100:]])
    text = data.decode("utf-8", "replace")
    assert log_answer(found, read_command(text), 4096).answer.words


def command(data: bytes, _: Path) -> None:
    """A launch command."""
    found = read_command(data.decode("utf-8", "replace"))
    assert all(isinstance(problem.sentence, str) for problem in found.problems)


def config(data: bytes, _: Path) -> None:
    """A config.json."""
    try:
        assert read_config(data).kv_layers is not None
    except ModelRefusedError as refused:
        if not str(refused):
            raise


def link(data: bytes, _: Path) -> None:
    """A link's query."""
    pairs = [pair.partition("=") for pair in data.decode("utf-8", "replace").split("&")]
    query = {name: value for name, _, value in pairs}
    scenario, problems = from_query(query)
    assert isinstance(scenario, Scenario)
    for value in query.values():
        kept_from_query(value)
        wants_from_query(value)
        workload_from_query(value)
    assert all(isinstance(problem, Problem) for problem in problems)


def scenario_file(data: bytes, _: Path) -> None:
    """A file that the page Compare loads."""
    found = from_file(data.decode("utf-8", "replace"))
    assert found
    assert all(isinstance(one, Scenario | Problem) for one in found)


def trace(data: bytes, folder: Path) -> None:
    """A trace, or a running server's metrics."""
    file = folder / "trace"
    file.write_bytes(data)
    try:
        assert read_trace(file).name
    except TraceError as fault:
        if not str(fault):
            raise


def server(data: bytes, _: Path) -> None:
    """What a running server says, to its answer and figure, with a command that is the same text."""
    read = read_texts([[data[:100], data[100:]]])
    told(read, read_command(data.decode("utf-8", "replace")), 4096).answer.model_dump_json()
    if read.facts is not None:
        json.dumps(occupancy_figure(read.facts), allow_nan=False)


def launch(data: bytes, _: Path) -> None:
    """A launch file of each kind, which may name itself as its file of flags."""
    text, wants = data.decode("utf-8", "replace"), [Want(L=4096, requests=8)]
    for name in ("run.sh", "deploy.yaml"):
        try:
            found = launches_in(text, name, lambda _: text)
        except LaunchFileError as fault:
            if not str(fault):
                raise
            continue
        assert all(verdict(one, wants, {"rest_gib": "28.529"}).words for one in found)


HARNESSES: dict[str, Callable[[bytes, Path], None]] = {
    "log": log,
    "command": command,
    "config": config,
    "link": link,
    "scenario": scenario_file,
    "trace": trace,
    "server": server,
    "launch": launch,
}


def seeds(kind: str) -> list[bytes]:
    """The corpus of a kind."""
    found = [file.read_bytes() for file in sorted(CORPUS.glob(f"{kind}.*"))]
    return found + ([file.read_bytes() for file in sorted(BOOT_LOGS.glob("*.log"))] if kind == "log" else [])


@st.composite
def mutated(draw: st.DrawFn, kind: str) -> bytes:
    """A seed, cropped, with pieces taken out, doubled, moved or replaced by signs."""
    data = draw(st.sampled_from(seeds(kind)))
    for _ in range(draw(st.integers(0, 6))):
        begin = draw(st.integers(0, len(data)))
        end = min(begin + draw(st.integers(0, 60)), len(data))
        what = draw(st.sampled_from(("sign", "cut", "double", "crop", "bytes")))
        piece = {
            "sign": draw(st.sampled_from(SIGNS)).encode(),
            "cut": b"",
            "double": data[begin:end] * 2,
            "crop": None,
            "bytes": draw(st.binary(max_size=8)),
        }[what]
        data = data[begin:] if piece is None else data[:begin] + piece + data[end:]
    return data


@pytest.mark.parametrize("kind", HARNESSES)
def test_mutated(kind: str, tmp_path: Path) -> None:
    """No exception but a refusal in words."""

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize="FUZZ_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
    )
    @given(mutated(kind))
    def run(data: bytes) -> None:
        HARNESSES[kind](data, tmp_path)

    run()


@pytest.mark.parametrize("kind", HARNESSES)
def test_corpus(kind: str, tmp_path: Path) -> None:
    """Each seed as it is; there is one of each kind."""
    assert seeds(kind)
    for data in seeds(kind):
        HARNESSES[kind](data, tmp_path)


def test_deeply_nested(tmp_path: Path) -> None:
    """Recursion has an end in every reader of JSON."""
    for data in (b"[" * 100_000, b'{"a":' * 100_000, b'{"L": ' + b"9" * 5000 + b"}"):
        for harness in HARNESSES.values():
            harness(data, tmp_path)
