"""What tests of the command line share."""

import io
import sys
from collections.abc import Callable

import pytest

from sizing.cli.main import main

Ran = tuple[object, str, str]  # exit status, what was printed, what was said on the error stream
Run = Callable[..., Ran]


@pytest.fixture
def sizing_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`python -m sizing ARGUMENTS` with a text or bytes on standard input, in this process."""

    def run(*arguments: str, stdin: str | bytes = "") -> Ran:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        try:
            status: object = main([*arguments])
        except SystemExit as stopped:
            status = stopped.code
        return (status, *capsys.readouterr())

    return run
