"""Behind nginx with the configuration of deploy/: two servers under /sizing/, one of which is killed."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.actions import STANDS

ROOT = Path(__file__).parents[2]
NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
START_SECONDS = 60
RECOVERS_MS = 60_000  # Streamlit's browser side looks for a server again at growing intervals
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
LOG = ROOT / "tests" / "golden" / "boot_logs" / "0.5.23_kda_mla_tp8_default.log"
NAME = "sizing.localhost"  # a browser takes every name below localhost for this machine


class Hosted(NamedTuple):
    """The address behind the proxy, and the servers by their own addresses."""

    url: str
    servers: dict[str, subprocess.Popen[bytes]]


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def proxy_configuration(folder: Path, port: int, servers: list[str]) -> str:
    """deploy/nginx.conf for this machine: without TLS, at other ports, and with a header that names the server."""
    text = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    for at, server in enumerate(servers, start=1):
        text = text.replace(f"sizing-{at}:8501", server)
    text = re.sub(r"ssl_certificate.*\n", "", text)
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{port};").replace("sizing.example", f"{NAME} localhost")
    text = text.replace("proxy_pass ", "add_header X-Server $upstream_addr;\n        proxy_pass ")
    places = "".join(
        f"{kind}_temp_path {folder}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;\n"
        f"events {{ worker_connections 256; }}\nhttp {{\n{places}{text}\n}}\n"
    )


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    """Two servers and the proxy, until the test ends."""
    if NGINX is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("nginx is not installed")
    with ExitStack() as stack:
        servers = {f"127.0.0.1:{(port := free_port())}": _started(stack, _streamlit(port)) for _ in range(2)}
        port = free_port()
        configuration = tmp_path / "nginx.conf"
        configuration.write_text(proxy_configuration(tmp_path, port, list(servers)))
        _started(stack, [str(NGINX), "-c", str(configuration), "-p", str(tmp_path), "-e", "stderr"])
        for address in (*servers, f"127.0.0.1:{port}"):
            _wait_for(f"http://{address}/sizing/_stcore/health")
        yield Hosted(f"http://{NAME}:{port}/sizing/", servers)


def _streamlit(port: int) -> list[str]:
    options = {"port": port, "address": "127.0.0.1", "allowedHosts": NAME, "baseUrlPath": "/sizing"}
    typed = [word for name, value in options.items() for word in (f"--server.{name}", str(value))]
    return [sys.executable, "-m", "streamlit", "run", "app.py", *typed]


def _started(stack: ExitStack, command: list[str]) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        try:
            with DIRECT.open(urllib.request.Request(url, headers={"Host": "localhost"}), timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{url} did not answer within {START_SECONDS} s")


def serving(hosted: Hosted) -> str:
    """The server that this machine's browsers stay with."""
    port = hosted.url.split(":")[2].partition("/")[0]
    request = urllib.request.Request(f"http://127.0.0.1:{port}/sizing/_stcore/health", headers={"Host": "localhost"})
    with DIRECT.open(request, timeout=30) as reply:
        return str(reply.headers["X-Server"])


@pytest.fixture
def visitor(chromium: Browser) -> Iterator[Page]:
    """A page whose every request goes to the proxy."""
    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    outside: list[str] = []
    page = context.new_page()
    page.on(
        "request",
        lambda it: None if it.url.startswith((f"http://{NAME}:", "data:", "blob:")) else outside.append(it.url),
    )
    yield page
    context.close()
    assert not outside, f"requests went elsewhere: {outside}"


def test_all_of_it_works_and_a_killed_server_loses_nothing(hosted: Hosted, visitor: Page) -> None:
    """Pages, figures, an upload and a moved slider; then the server dies under an open page, which goes on by itself.

    The other server has every input, what is kept and what is wanted: they are in the address.
    """
    page, links = visitor, visitor.get_by_role("link")
    page.goto(f"{hosted.url}log")
    page.get_by_test_id("stFileUploader").locator("input[type=file]").set_input_files(LOG)
    expect(page.get_by_text("51 requests run at L = 9,216").first).to_be_visible()
    page.goto(f"{hosted.url}?L=16384&tp_size=4&rest_gib=28")
    expect(page.locator(".figures svg").first).to_be_visible(timeout=RECOVERS_MS)
    expect(page.locator(STANDS)).to_be_visible()
    page.get_by_role("button", name="Keep (0)").click()
    page.get_by_role("button", name="Keep (1)").click()
    expect(page.get_by_role("button", name="Keep (2)")).to_be_visible()
    links.get_by_text("Target", exact=True).click()
    wanted = page.get_by_role("textbox", name="Wanted requests")
    wanted.fill("64")
    wanted.press("Enter")
    links.get_by_text("Balance", exact=True).click()
    headline = page.get_by_role("heading", level=1).first
    expect(headline).to_contain_text("run at L = 16,384")
    before = headline.inner_text()
    page.get_by_role("slider").first.press("ArrowRight")
    expect(headline).not_to_have_text(before)
    expect(page).to_have_url(re.compile(r"L=(?!16384)\d+"))
    moved = headline.inner_text()

    slider = page.locator('[class*="st-key-L_slider"]')
    of_killed = re.search(r"st-key-L_slider_\d+", slider.get_attribute("class") or "")
    assert of_killed is not None
    killed = serving(hosted)
    hosted.servers[killed].kill()
    hosted.servers[killed].wait()
    expect(page.get_by_text("Connecting")).to_be_visible(timeout=RECOVERS_MS)
    expect(page.get_by_text("Connecting")).to_have_count(0, timeout=RECOVERS_MS)
    assert serving(hosted) != killed
    expect(page.locator(f".{of_killed[0]}")).to_have_count(0)  # the other server's page stands
    expect(headline).to_have_text(moved)
    expect(page.get_by_role("button", name="Keep (2)")).to_be_visible()
    page.get_by_role("slider").first.press("ArrowRight")
    expect(headline).not_to_have_text(moved, timeout=RECOVERS_MS)
    assert {"tp_size=4", "rest_gib=28.0", "want=64"} <= set(page.url.partition("?")[2].split("&"))
    expect(page.locator(".figures svg").first).to_be_visible()
    links.get_by_text("Target", exact=True).click()
    expect(wanted).to_have_value("64")
