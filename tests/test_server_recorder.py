"""The recorder writes a file that the readers read; it runs here against a server of ours on this machine."""

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from sizing.server import read_server_file
from sizing.server.recorder import EVERY, SECONDS, recorder
from tests.server_texts import Moment, Server

SERVER = Server()
SECRETS = {
    "api_key": "sk-secret-1",
    "launch_command": "python -m sglang.launch_server --api-key sk-secret-2 --tp-size 8",
}


class Answers(BaseHTTPRequestHandler):
    """/server_info, /metrics and /v1/loads, as SGLang answers them; load rises with every request."""

    asked = 0

    def do_GET(self) -> None:
        """Answer."""
        Answers.asked += 1
        at = Moment(0, 20 + Answers.asked % 30, 3, 200_000 + Answers.asked, 4 * (20 + Answers.asked % 30))
        path = self.path.partition("?")[0]
        if path == "/server_info":
            body = json.dumps(SERVER.info() | SECRETS)
        elif path == "/metrics":
            body = SERVER.scrape(at, mark=False) + 'sglang:e2e_request_latency_seconds_bucket{le="1.0"} 4.0\n'
        elif path == "/v1/loads":
            load = SERVER.loads(at)
            del load["loads"][0]["timestamp"]
            body = json.dumps(load)
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Where it listens."""
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl on this machine")
def test_recorded_file_is_read(address: str, tmp_path: Path) -> None:
    """Arguments once, scrapes and loads every second, and no key in the file."""
    file = tmp_path / "it's recorded.txt"
    loop = recorder(address, str(file), seconds=3, every=1)
    environment = {"PATH": os.environ["PATH"], "no_proxy": "127.0.0.1"}
    done = subprocess.run(["sh", "-c", loop], check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "sk-secret" not in file.read_text()
    facts = read_server_file(file)
    assert facts is not None
    assert (facts.slots, facts.limit) == (257, 51)
    samples = {rank.format: rank.samples for rank in facts.ranks}
    assert set(samples) == {"metrics", "loads"}
    assert 2 <= samples["metrics"] == samples["loads"] <= 4
    main = facts.main
    assert main is not None
    assert (main.format, main.held) == ("metrics", 4.0)
    assert main.seconds is not None
    assert main.seconds >= 1


def test_recorder_takes_ten_minutes() -> None:
    """As it is printed: ten minutes, a scrape every five seconds."""
    assert (SECONDS, EVERY) == (600, 5)
    assert "+ 600)" in recorder()
    assert subprocess.run(["sh", "-n", "-c", recorder()], check=False).returncode == 0
