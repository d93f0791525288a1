"""Who is answered: by Host, Origin and path; and nothing leaves the machine whatever is asked."""

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WATCHED = ROOT / "tests" / "watched.py"
START_SECONDS = 60
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    "Sec-WebSocket-Protocol": "streamlit",
}
STREAM, HEALTH, FRAME = "/_stcore/stream", "/_stcore/health", "/"
HOSTED = ("--server.address", "0.0.0.0", "--server.allowedHosts", "sizing.example", "--server.corsAllowedOrigins")


class Server:
    """A running dashboard, what it wanted outside, and requests to it with any header."""

    def __init__(self, port: int, pid: int, notes: Path) -> None:
        self.port, self.pid, self._notes = port, pid, notes

    @property
    def wanted(self) -> list[str]:
        """Every connection and name that was not this machine's."""
        return self._notes.read_text(encoding="utf-8").splitlines() if self._notes.exists() else []

    def reply(self, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and the beginning of the body; `Host` is this machine's unless it is given."""
        sent = {"Host": f"localhost:{self.port}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        if path.endswith(STREAM):
            sent |= UPGRADE
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders()
            reply = connection.getresponse()
            body = b"" if reply.status == 101 else reply.read(2**20)
            return reply.status, {name.lower(): value for name, value in reply.getheaders()}, body
        finally:
            connection.close()

    def status(self, path: str, **headers: str) -> int:
        """What a request is answered with."""
        return self.reply(path, **headers)[0]


@contextmanager
def running(folder: Path, *options: str, app: Path = ROOT / "app.py") -> Iterator[Server]:
    """A server whose every way out of the machine is watched."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = int(probe.getsockname()[1])
    notes = folder / "wanted.txt"
    command = [sys.executable, str(WATCHED), str(notes), "run", str(app), "--server.port", str(port), *options]
    process = subprocess.Popen(command, cwd=app.parent, stdin=subprocess.DEVNULL)
    server = Server(port, process.pid, notes)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(server):
            assert process.poll() is None, "the server ended while starting; its output is below"
            assert time.monotonic() < deadline, f"the server was not ready within {START_SECONDS} s"
            time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait(30)


def _answers(server: Server) -> bool:
    try:
        return server.status(HEALTH) == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """As it is started on one's own machine."""
    with running(tmp_path_factory.mktemp("own")) as found:
        yield found


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """As it is started behind a proxy, with a name of its own and one more origin."""
    with running(tmp_path_factory.mktemp("hosted"), *HOSTED, "https://wiki.example") as found:
        yield found


ASKING = {  # what a loop can be asked for, of a stranger
    "connection": "loop.create_connection(asyncio.Protocol, 'stranger.example', 80)",
    "address": "loop.getaddrinfo('stranger.example', 80)",
    "datagrams": "loop.create_datagram_endpoint(asyncio.DatagramProtocol, remote_addr=('192.0.2.7', 53))",
    "socket": "loop.sock_connect(socket.create_server(('127.0.0.1', 0)), ('192.0.2.7', 80))",
    "datagram": "loop.sock_sendto(socket.socket(type=socket.SOCK_DGRAM), b'', ('192.0.2.7', 53))",
}


@pytest.mark.parametrize("asked", ASKING.values(), ids=ASKING)
def test_a_loop_is_watched(tmp_path: Path, asked: str) -> None:
    """The server's loop asks the system itself, past Python's own hooks."""
    notes = tmp_path / "wanted.txt"
    script = f"""
import asyncio, pathlib, socket, uvloop
from tests.watched import watch
watch(pathlib.Path({str(notes)!r}))
async def ask():
    loop = asyncio.get_running_loop()
    await {asked}
uvloop.run(ask())
"""
    ended = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "nothing leaves this machine" in ended.stderr
    assert "stranger.example" in notes.read_text() or "192.0.2.7" in notes.read_text()


def test_answers_leave_at_once(server: Server) -> None:
    """The server runs on uvloop: asyncio holds a small message back until the one before it is acknowledged."""
    maps = Path(f"/proc/{server.pid}/maps").read_text(encoding="utf-8")
    assert "/uvloop/" in maps


OWN_HOSTS = ("localhost", "127.0.0.1", "[::1]", "LOCALHOST", "localhost.")
OTHER_HOSTS = (
    "evil.example",
    "localhost.evil.example",
    "evil.example@localhost",
    "localhost:1:2",
    "localhost/",
    "127.0.0.1.nip.example",
    "0.0.0.0",
    "",
)
FOREIGN = (
    "null",
    "http://evil.example",
    "https://localhost.evil.example",
    "http://localhost",
    "http://localhost:1",
    "http://127.0.0.1:1",
    "http://192.0.2.7",
    "file://",
    "chrome-extension://abcdefgh",
    "not an origin",
    "",
)
PATHS = (
    FRAME,
    "/target",
    "/static/",
    HEALTH,
    STREAM,
    "/component/pages.parts.plot.plotly/plotly.min.js",
    "/media/x.png",
)


def test_a_page_brings_its_looks(server: Server) -> None:
    """The styles stand in what is served, whole, also for a browser that had the page before; a slide has its own."""
    for path in ("/", "/target?L=1024"):
        status, headers, body = server.reply(
            path, Accept="text/html", Accept_Encoding="gzip", If_Modified_Since="Tue, 01 Jan 2030 00:00:00 GMT"
        )
        assert (status, headers["content-length"], body.count(b"<style>")) == (200, str(len(body)), 2)
        assert body.index(b'id="root"') < body.index(b".st-key-chrome {") < body.index(b"</body>")
        assert "etag" not in headers
    assert server.reply("/?present", Accept="text/html")[2].count(b"<style>") == 1
    assert server.reply(HEALTH, Accept="text/html")[2] == b"ok"


def test_own_names_are_answered(server: Server) -> None:
    """Each form of this machine's name, with the port it has and the origin that belongs to it."""
    for host in OWN_HOSTS:
        at = f"{host}:{server.port}"
        assert server.status(HEALTH, Host=at) == 200, host
        assert server.status(HEALTH, Host=at, Origin=f"http://{at}") == 200, host
        assert server.status(STREAM, Host=at, Origin=f"http://{at}") == 101, host
    assert server.status(STREAM) == 101  # what is no browser sends no origin
    assert server.status(STREAM, Host="localhost:9000", Origin="http://localhost:9000") == 101  # ssh -L 9000


def test_a_former_address_leads_to_the_page(server: Server) -> None:
    """With its query as it came, on this host whatever the path, for a reader's own requests alone."""
    query = "L=16384&kv_cache_dtype=bfloat16&name=a%20b"
    for path, place in (("/clamped", "log"), ("/clamped/", "../log"), ("//evil.example/clamped", "log")):
        status, headers, _ = server.reply(f"{path}?{query}")
        assert (status, headers["location"]) == (308, f"{place}?{query}"), path
    assert server.reply("/clamped")[1]["location"] == "log"
    assert server.status("/clamped", Host="evil.example") == 403
    assert server.status("/clamped/target") == server.status("/unclamped") == 200  # no page's former address


@pytest.mark.parametrize("path", PATHS)
def test_other_names_are_refused(server: Server, path: str) -> None:
    """DNS rebinding: a name of the page's own choice, with the origin that belongs to it."""
    for host in OTHER_HOSTS:
        assert server.status(path, Host=host) in (400, 403), host
        assert server.status(path, Host=host, Origin=f"http://{host}") in (400, 403), host


@pytest.mark.parametrize("path", PATHS)
def test_foreign_origins_are_refused(server: Server, path: str) -> None:
    """Any other page of any other port, without a word of the answer open to it."""
    for origin in FOREIGN:
        status, headers, _ = server.reply(path, Origin=origin)
        assert status == 403, origin
        assert "access-control-allow-origin" not in headers, origin


@pytest.mark.parametrize("path", PATHS)
def test_parts_for_other_sites_are_refused(server: Server, path: str) -> None:
    """A script, an image or a frame brings no Origin, but says that another site's page wants it; a link opens."""
    for site in ("cross-site", "same-site"):
        for mode, kind in (("no-cors", "script"), ("no-cors", "image"), ("navigate", "iframe"), ("cors", "empty")):
            assert server.status(path, Sec_Fetch_Site=site, Sec_Fetch_Mode=mode, Sec_Fetch_Dest=kind) == 403
    opened = server.status(FRAME, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate", Sec_Fetch_Dest="document")
    assert opened == 200


def test_answers_are_open_to_nobody(server: Server) -> None:
    """No answer lets another origin read, frame or use it."""
    page = server.reply(FRAME)[2].decode()
    script = "/" + page.partition('src="./')[2].partition('"')[0]
    assert script.startswith("/static/")
    for path in (FRAME, HEALTH, script, "/_stcore/host-config"):
        status, headers, _ = server.reply(path)
        assert status == 200, path
        assert headers.get("access-control-allow-origin") != "*", path
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["x-frame-options"] == "SAMEORIGIN"
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path",
    [
        "/_stcore/metrics",
        "/_stcore/metrics/",
        "//_stcore//metrics",
        "/_stcore/%6detrics",
        "/_stcore/agent/mcp",
        "/_stcore/agent/openapi.json",
        "/_stcore/script-health-check",
        "/_stcore/",
    ],
)
def test_what_no_reader_needs_is_closed(server: Server, path: str) -> None:
    """Streamlit's counters and its interface for agents."""
    for method in ("GET", "POST", "OPTIONS"):
        assert server.reply(path, method)[0] in (400, 403, 404), method


def test_a_hosted_name_is_answered(hosted: Server) -> None:
    """The name that was stated, under the proxy's https too; others are not, nor is an origin that is not stated."""
    assert hosted.status(STREAM, Host="sizing.example", Origin="https://sizing.example") == 101
    assert hosted.status(STREAM, Host="sizing.example", Origin="https://wiki.example") == 101
    assert hosted.status(HEALTH) == 200  # the proxy's or the container's own check
    for host, origin in (
        ("sizing.example", "https://other.example"),
        ("sizing.example", f"http://localhost:{hosted.port}"),
        ("sizing.example", "null"),
        ("other.example", "https://other.example"),
        ("a.sizing.example", "https://a.sizing.example"),
    ):
        assert hosted.status(STREAM, Host=host, Origin=origin) == 403, (host, origin)


@pytest.mark.parametrize("which", ["server", "hosted"])
def test_nothing_leaves(which: str, request: pytest.FixtureRequest) -> None:
    """From the start on, with every host, origin and path; the allowed origin is what made Streamlit look outside."""
    server: Server = request.getfixturevalue(which)
    hosts = (f"localhost:{server.port}", "sizing.example", *OTHER_HOSTS)
    for host in hosts:
        for origin in (*FOREIGN, "https://wiki.example", f"http://{host}"):
            for path in (FRAME, STREAM, HEALTH):
                server.status(path, Host=host, Origin=origin)
    assert server.wanted == []


def test_streamlit_alone_would_look_outside(tmp_path: Path) -> None:
    """The same watch sees a page without the guard ask for the machine's address: it can fail."""
    bare = tmp_path / "bare.py"
    bare.write_text("import streamlit as st\n\nst.write(1)\n")
    with running(tmp_path, "--server.headless", "true", "--server.address", "localhost", app=bare) as server:
        assert server.wanted == []
        assert server.status(STREAM, Origin="null") == 403
        assert any("checkip" in line for line in server.wanted), json.dumps(server.wanted)
