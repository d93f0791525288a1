"""Where a Chromium is, and how the tests start it."""

import os
import shutil
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

from playwright.sync_api import sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
DOWNLOAD_SECONDS = 120

FLAGS = [
    *(["--no-sandbox"] if os.geteuid() == 0 else []),  # Chromium refuses its sandbox to root
    "--disable-gpu",
    # The rest keeps the browser itself from calling out while we watch what the page requests.
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@cache  # so that a download that failed is not tried again
def find_chromium() -> str | None:
    """Path of a Chromium: installed, downloaded by Playwright before, or downloaded now; else None."""
    on_path = next(filter(None, map(shutil.which, NAMES)), None)
    return on_path or _playwrights_own() or (_playwrights_own() if _download() else None)


def _playwrights_own() -> str | None:
    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() and _starts(path) else None


def _starts(path: str) -> bool:
    """A downloaded browser can lack libraries that only the system's package manager brings."""
    return subprocess.run([path, "--version"], check=False, capture_output=True).returncode == 0


def _download() -> bool:
    """Let Playwright fetch its browser, in bounded time; say whether that worked."""
    process = subprocess.Popen(
        [sys.executable, "-m", "playwright", "install", "chromium"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the installer starts helpers; the time limit has to stop them too
    )
    try:
        return process.wait(DOWNLOAD_SECONDS) == 0
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
