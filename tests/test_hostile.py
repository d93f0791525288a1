"""Files and logs that are made to waste time: bounded, ended when the reader leaves, and said in one sentence."""

import os
from pathlib import Path

import pytest

from sizing.bootlog import read_chunks
from sizing.bootlog.find import MAX_CAREFUL, MAX_JOINED, MAX_MESSAGES
from sizing.bootlog.forms import ANCHORS
from sizing.cli.main import main

LESS = 400  # as many times less than a real log may cost, so that a small one shows it
CHUNK = 2**18  # [bytes] of which it has two
LEFT = "the reader left"
FILLERS = ("", "1 2\n3 4\n5 6", "1 " * 4000, ", " * 4000)


class Counted:
    """Stands in for the forms: how many readings, and characters of them, a log costs."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.readings = self.characters = 0
        monkeypatch.setattr("sizing.bootlog.find.matches", self._matches)

    def _matches(self, text: str) -> list[object]:
        self.readings += 1
        self.characters += len(text)
        return []


@pytest.mark.parametrize("anchor", ANCHORS)
@pytest.mark.parametrize("filler", FILLERS, ids=("short", "lines", "digits", "commas"))
def test_a_crafted_log_costs_bounded_work(anchor: str, filler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However a log is made, no more of it is read with care than any boot needs; of a hundred megabytes too."""
    monkeypatch.setattr("sizing.bootlog.find.MAX_MESSAGES", MAX_MESSAGES // LESS)
    monkeypatch.setattr("sizing.bootlog.find.MAX_CAREFUL", MAX_CAREFUL // LESS)
    monkeypatch.setattr("sizing.bootlog.find.MAX_JOINED", MAX_JOINED // LESS)
    counted = Counted(monkeypatch)
    line = f"{anchor}{filler}\n".encode()
    read_chunks([line * (CHUNK // len(line) + 1)] * 2)
    assert counted.readings <= (MAX_MESSAGES + MAX_JOINED) // LESS + 10
    assert counted.characters <= (MAX_CAREFUL * 1.1 + MAX_JOINED * 500) / LESS + 30_000


@pytest.mark.parametrize("anchor", ["Load weight begin. avail mem=1 ", "server_args={'a': 1}", "no_buffer "])
def test_the_reading_ends_where_the_reader_leaves(anchor: str) -> None:
    """Progress is called at short intervals of work, so what it raises, as Streamlit does, ends the reading there."""
    beats = 0

    def leave(_: int) -> None:
        nonlocal beats
        beats += 1
        if beats == 5:
            raise KeyboardInterrupt(LEFT)

    line = f"{anchor}\n".encode()
    with pytest.raises(KeyboardInterrupt, match=LEFT):
        read_chunks([line * (4 * 2**20 // len(line))], leave)
    assert beats == 5


@pytest.mark.parametrize("command", [["log"], ["plan"], ["model"], ["target", "64"], ["traffic"]], ids=lambda it: it[0])
def test_a_pipe_that_nobody_writes_to_is_refused(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It would be waited for without end."""
    pipe, scenario = tmp_path / "pipe", tmp_path / "scenario.json"
    os.mkfifo(pipe)
    scenario.write_text("{}")
    name, *others = command
    files = [str(scenario), str(pipe)] if name == "traffic" else [str(pipe), *others]
    assert main([name, *files]) == 2
    assert capsys.readouterr().err.count("\n") == 1
