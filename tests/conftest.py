"""What tests share."""

import asyncio
import io
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import hypothesis
import pytest

from sizing.cli.main import main

# The suite runs the same examples each time, however long each takes; tests/fuzz/long.py runs new ones.
hypothesis.settings.register_profile("suite", derandomize=True, deadline=None)
hypothesis.settings.load_profile("suite")

T = TypeVar("T")
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


def finished(work: Coroutine[Any, Any, T]) -> T:
    """What a coroutine gives, in a loop of a thread of its own: Playwright leaves one running in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()
