"""A sheet as PDF, printed by a Chromium on this machine; without one the HTML prints from any browser."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal

Paper = Literal["A4", "Letter"]

VARIABLE = "CHROMIUM"  # names the browser where it is not on PATH, or where another is wanted
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
SECONDS = 60  # a slow machine starts Chromium in ten and draws in two

FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-pdf-header-footer",
    # The sheet asks for nothing; this keeps the browser itself from calling out.
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class PdfError(Exception):
    """A Chromium is there but gave no PDF; its text is a sentence for the user."""


def find_chromium() -> str | None:
    """Path of the browser that prints: what CHROMIUM names, else the first common name on PATH, else None."""
    named = os.environ.get(VARIABLE)
    if named:
        return shutil.which(named)
    return next(filter(None, map(shutil.which, NAMES)), None)


def sheet_pdf(html: str, paper: Paper = "A4", seconds: float = SECONDS) -> bytes | None:
    """The sheet as PDF on `paper`, portrait; None where no Chromium is found. Raises PdfError where it fails."""
    browser = find_chromium()
    if browser is None:
        return None
    with tempfile.TemporaryDirectory(prefix="sheet-", ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "sheet.html"), Path(folder, "sheet.pdf")
        page.write_text(_on_paper(html, paper), encoding="utf-8")
        said = _run([browser, *_flags(folder), f"--print-to-pdf={printed}", page.as_uri()], seconds)
        if not printed.exists() or not printed.stat().st_size:
            raise PdfError(
                f"{Path(browser).name} printed no PDF{said}. Open the HTML in a browser and print it from there."
            )
        return printed.read_bytes()


def _on_paper(html: str, paper: Paper) -> str:
    """The sheet leaves its size to whoever prints it; here it is set."""
    return html.replace("</head>", f"<style>@page {{ size: {paper} portrait; }}</style></head>", 1)


def _flags(folder: str) -> list[str]:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    own = [f"--user-data-dir={Path(folder, 'profile')}"]
    return [*FLAGS, *own, *(["--no-sandbox"] if root else [])]  # Chromium refuses its sandbox to root


def _run(command: list[str], seconds: float) -> str:
    """Run the browser to its end; gives how it ended, as the end of a sentence. Raises PdfError."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # it starts helpers; the time limit has to stop them too
        )
    except OSError as error:
        raise PdfError(
            f"{Path(command[0]).name} could not be started ({error.strerror}). Set {VARIABLE} to a Chromium."
        ) from None
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        _stop(process)
        raise PdfError(
            f"{Path(command[0]).name} printed no PDF within {seconds:g} seconds. Try again, or open the HTML in a "
            "browser and print it from there."
        ) from None
    return f" (it ended with status {status})" if status else ""


def _stop(process: "subprocess.Popen[bytes]") -> None:
    """End the browser with everything that it started."""
    if sys.platform == "win32":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
