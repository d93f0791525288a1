"""What the browser tests share: a Chromium, servers on free ports, pages that must not call out."""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browser.chromium import FLAGS, find_chromium

# How long to wait for what a page must show; a busy machine may need far more than Playwright's five seconds.
expect.set_options(timeout=30_000)

ROOT = Path(__file__).parents[2]
START_SECONDS = 60  # a slow machine's first start compiles every module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: the quick ones speak first, and Playwright leaves its event loop running."""
    items.sort(key=_needs_chromium)


def _needs_chromium(item: pytest.Item) -> bool:
    return "chromium" in getattr(item, "fixturenames", ())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Without a Chromium the browser tests are skipped, in CI failed.

    Here and not in the fixture, because the summary then folds all of them into one line.
    """
    if _needs_chromium(item) and find_chromium() is None:
        waiting = sum(map(_needs_chromium, item.session.items))
        why = f"Chromium was not found and could not be downloaded: {waiting} browser tests did not run"
        if os.environ.get("CI") == "true":
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """One Chromium for all browser tests."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def _running_server() -> Iterator[str]:
    """Base URL of a dashboard just started. Its output goes where pytest shows a failed test's own."""
    with socket.create_server(("localhost", 0)) as probe:
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _healthy(port):
            assert process.poll() is None, "the server ended while starting; its output is below"
            assert time.monotonic() < deadline, f"the server was not ready within {START_SECONDS} s"
            time.sleep(0.1)
        yield f"http://localhost:{port}"
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("localhost", port, timeout=5)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.fixture
def server() -> Iterator[Callable[[], str]]:
    """Call it for the base URL of one more fresh server; all of them end with the test."""
    with ExitStack() as servers:
        yield lambda: servers.enter_context(_running_server())


@pytest.fixture
def fresh_server(server: Callable[[], str]) -> str:
    """Base URL of a server that has not answered any browser yet."""
    return server()


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """Base URL of the server that ordinary browser tests share."""
    with _running_server() as url:
        yield url


@pytest.fixture
def page(chromium: Browser) -> Iterator[Page]:
    """A page in a browser profile of its own; no request may leave the machine, no script may fail."""
    outside: list[str] = []
    errors: list[str] = []

    def note(url: str) -> None:
        address = urlsplit(url)
        if address.scheme not in ("data", "blob", "about") and address.hostname != "localhost":
            outside.append(url)

    def watch(page: Page) -> None:
        page.on("request", lambda request: note(request.url))
        page.on("websocket", lambda socket: note(socket.url))
        page.on("pageerror", lambda error: errors.append(str(error)))

    context = chromium.new_context(viewport={"width": 1440, "height": 900})
    context.on("page", watch)  # pages that a link opens are watched too
    yield context.new_page()
    context.close()
    assert not outside, f"requests left the machine: {outside}"
    assert not errors, f"scripts failed in the page: {errors}"
