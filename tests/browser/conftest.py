"""What the browser tests share: a Chromium, servers on free ports, pages that must not call out."""

import http.client
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, expect, sync_playwright

from tests.browser.chromium import FLAGS, find_chromium

# How long to wait for what a page must show; a busy machine may need far more than Playwright's five seconds.
expect.set_options(timeout=30_000)

ROOT = Path(__file__).parents[2]
WINDOW = ViewportSize(width=1440, height=900)  # [px]
LONG = {"test_balance", "test_frame", "test_hand", "test_labels", "test_log", "test_model", "test_six_jobs"}
ONE_PROCESS = "--process-per-site"  # draws all pages of a profile
START_SECONDS = 60  # a slow machine's first start compiles every module


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Browser tests come last: the quick ones speak first, and Playwright leaves its event loop running.

    Of them the files that take long begin first, so that both workers end together.
    """
    items.sort(key=lambda item: (_needs_chromium(item), _needs_chromium(item) and item.path.stem not in LONG))


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
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=[*FLAGS, ONE_PROCESS])
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
def fresh_server() -> Iterator[str]:
    """Base URL of a server that has not answered any browser yet."""
    with _running_server() as url:
        yield url


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """Base URL of the server that ordinary browser tests share."""
    with _running_server() as url:
        yield url


@contextmanager
def _watched(context: BrowserContext) -> Iterator[Page]:
    """A new page; no request may leave the machine, no script may fail, on it and on those that it opens."""
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

    others = list(context.pages)
    context.on("page", watch)
    yield context.new_page()
    for page in context.pages:
        if page not in others:
            page.close()
    context.remove_listener("page", watch)
    assert not outside, f"requests left the machine: {outside}"
    assert not errors, f"scripts failed in the page: {errors}"


@pytest.fixture(scope="session")
def _profile(chromium: Browser, base_url: str) -> Iterator[BrowserContext]:
    """A browser profile whose first page is never closed: the process that draws its pages, and with it the scripts
    that it has compiled, outlives each of them.
    """
    with chromium.new_context(viewport=WINDOW) as context:
        context.new_page().goto(f"{base_url}/_stcore/health")
        yield context


@pytest.fixture
def page(_profile: BrowserContext) -> Iterator[Page]:
    """A new page, watched; what a page can leave behind for the next is gone, the scripts of the dashboard stay."""
    with ExitStack() as end:
        end.callback(_forget, _profile)
        yield end.enter_context(_watched(_profile))


def _forget(context: BrowserContext) -> None:
    context.clear_permissions()
    session = context.new_cdp_session(context.pages[0])
    kinds = "cookies,local_storage,indexeddb,service_workers,cache_storage"
    session.send("Storage.clearDataForOrigin", {"origin": "*", "storageTypes": kinds})
    session.detach()
