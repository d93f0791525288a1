"""What the benches share: a Streamlit server on a free local port, the one way to fail, and percentiles."""

import math
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"

# A proxy set in the environment must never see requests to our own machine.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class CannotMeasureError(Exception):
    """The thing to measure is missing or does not work: the one reason for a non-zero exit code."""


@contextmanager
def measuring(*failures: type[Exception]) -> Iterator[None]:
    """End the bench with one line where it cannot measure."""
    known: tuple[type[Exception], ...] = (CannotMeasureError, *failures)
    try:
        yield
    except known as error:
        sys.exit(f"could not measure: {error or type(error).__name__}")


@dataclass(frozen=True)
class Server:
    """A running Streamlit server process."""

    port: int
    pid: int

    def resident_mib(self) -> float:
        """Memory in use now; NaN where there is no Linux-style /proc, as for `cpu_s`."""
        pages = self._proc("statm").split()[1:2]
        return int(pages[0]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if pages else math.nan

    def cpu_s(self) -> float:
        """Processor time used so far, by all threads, for the program and in the kernel."""
        # The second field is the program's name in brackets and may hold spaces.
        ticks = self._proc("stat").rpartition(")")[2].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK") if ticks else math.nan

    def _proc(self, name: str) -> str:
        try:
            return Path(f"/proc/{self.pid}/{name}").read_text(encoding="utf-8")
        except OSError:
            return ""


@contextmanager
def serve(script: Path, start_limit_s: float = 30.0) -> Iterator[Server]:
    """Run `script` under Streamlit until the with block ends."""
    if not script.exists():
        raise CannotMeasureError(f"there is no {script.name} to serve")
    port = _free_port()
    options = {
        "server.address": HOST,
        "server.port": str(port),
        "server.headless": "true",
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false",
        "logger.level": "warning",
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", str(script), *flags],
        cwd=_home(script),
        stdout=subprocess.DEVNULL,
    )
    try:
        _wait_until_healthy(process, port, start_limit_s)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _home(script: Path) -> Path:
    """Where the app is started, for its .streamlit/config.toml: its own folder, or the repository's if it has none."""
    folder = script.resolve().parent
    return folder if (folder / ".streamlit").is_dir() else ROOT


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with _DIRECT.open(f"http://{HOST}:{port}/_stcore/health", timeout=1):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise CannotMeasureError("the Streamlit server did not start")


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest measured value that at least `percent` % of the values do not exceed."""
    ranked = sorted(values)
    return ranked[max(math.ceil(len(ranked) * percent / 100), 1) - 1]
