"""The page Log in a real Chromium: text of a stranger stays text, and an uploaded log is read."""

import gzip
import os
import re
import time
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, FilePayload, Page, expect

from tests.browser.actions import Actions, go_to
from tests.server_texts import Moment, Server

GOLDEN = Path(__file__).parents[1] / "golden"
WORKED = GOLDEN / "boot_logs" / "0.5.23_kda_mla_tp8_default.log"
MOMENTS = [Moment(second, 51, 9, 478_691, 204) for second in range(12)]
SECONDS = 30_000  # [ms] what a slow machine may take to load the page once
HOSTILE = "<img src=x onerror=alert(1)> **bold** [x](javascript:alert(1)) $x$ `code` <script>alert(2)</script>"


def open_log(page: Page, url: str) -> None:
    """Load the page and wait for its boxes."""
    page.goto(f"{url}/log")
    expect(page.get_by_role("textbox", name="or paste the log")).to_be_visible(timeout=SECONDS)


def test_a_link_to_the_former_address_opens(page: Page, base_url: str) -> None:
    """/clamped was this page's address: a link to it still brings its inputs."""
    page.goto(f"{base_url}/clamped?L=16384&tp_size=4")
    expect(page.get_by_role("textbox", name="or paste the log")).to_be_visible(timeout=SECONDS)
    expect(page).to_have_url(f"{base_url}/log?L=16384&tp_size=4")
    expect(page.get_by_role("textbox", name="L, exact")).to_have_value("16384")


def fill(page: Page, name: str, text: str) -> None:
    """Type into a box as a paste does, and leave it."""
    box = page.get_by_role("textbox", name=name)
    box.fill(text)
    box.press("Control+Enter")


def test_hostile_lines_stay_text(page: Page, base_url: str) -> None:
    """Whatever a log or a command holds in its names, words and values, nothing of it becomes markup or runs."""
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    open_log(page, base_url)
    log = WORKED.read_text(encoding="utf-8").replace("type=KimiLinearForCausalLM", f"type={HOSTILE}")
    refusal = f"RuntimeError: Not enough GPU memory for hybrid (mamba/linear-attention) state cache. {HOSTILE}\n"
    flags = f"sglang serve --tp '{HOSTILE}' --page-size '{HOSTILE}' --foo '{HOSTILE}'"
    for text in (HOSTILE, f"{HOSTILE} [x TP0] {log}", f"{log}\n{refusal}", refusal):
        fill(page, "or paste the log", text)
        fill(page, "Launch command", flags)
        Actions(page).settle()
        main = page.locator('[data-testid="stMain"]')
        expect(main.locator("h1").first).to_be_visible(timeout=SECONDS)
        assert main.locator("img, script, .katex").count() == 0
        assert main.locator('a[href^="javascript"]').count() == 0
        assert main.locator('[data-testid="stAlert"] strong, [data-testid="stAlert"] a').count() == 0
    assert dialogs == []


def test_a_packed_log_is_uploaded_and_explored(page: Page, base_url: str) -> None:
    """gzip from the disk: what runs is said, and the balance page opens with all of it filled in."""
    open_log(page, base_url)
    file: FilePayload = {
        "name": "server.log.gz",
        "mimeType": "application/gzip",
        "buffer": gzip.compress(WORKED.read_bytes()),
    }
    page.locator('input[type="file"]').set_input_files([file])
    expect(page.locator("h1").first).to_contain_text("51 requests run at L = 9,216", timeout=SECONDS)
    page.get_by_text("Explore it on the balance page").click()
    expect(page.locator('[data-figure="crossing"]')).to_contain_text("rest 28.53 GiB per rank", timeout=SECONDS)


def test_an_uploaded_log_stays_and_a_paste_is_read_at_once(page: Page, base_url: str) -> None:
    """Files are read as one and shown again after another page; a paste needs no key and no click behind it."""
    open_log(page, base_url)
    lines = FilePayload(name="lines.log", mimeType="text/plain", buffer="".join(map(Server().decode, MOMENTS)).encode())
    boot = FilePayload(name="boot.log", mimeType="text/plain", buffer=WORKED.read_bytes())
    page.locator('input[type="file"]').set_input_files([boot, lines])
    verdict = "State pool admitted nobody 100 % of the time"
    expect(page.locator("h1").first).to_contain_text(verdict, timeout=SECONDS)
    expect(page.locator('[data-figure="occupancy"]')).to_contain_text("requests waiting", timeout=SECONDS)
    go_to(page, "Balance")
    expect(page.locator('[data-figure="crossing"]')).to_be_visible(timeout=SECONDS)
    go_to(page, "Log")
    expect(page.locator("h1").first).to_contain_text(verdict, timeout=SECONDS)
    expect(page.get_by_text("Shown: boot.log, lines.log.")).to_be_visible()
    page.get_by_role("button", name="Forget this log").click()
    expect(page.locator("h1").first).to_contain_text("Why am I clamped?", timeout=SECONDS)
    Actions(page).paste("or paste the log", Server().decode(MOMENTS[0]))
    expect(page.locator("h1").first).to_contain_text(verdict, timeout=SECONDS)


def processor_seconds(url: str) -> float:
    """What the server at an address has used of the processor, all its threads."""
    port = url.rpartition(":")[2].encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end in between
            if (process / "cmdline").read_bytes().rstrip(b"\0").endswith(b"--server.port\0" + port):
                fields = (process / "stat").read_text().rpartition(")")[2].split()
                return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    raise AssertionError(f"no process serves {url}")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="it takes /proc to see what a server uses")
def test_a_closed_tab_ends_the_reading(page: Page, base_url: str, tmp_path: Path) -> None:
    """Of a large log most is never read: what is used after the tab was closed is less than what was used for the part
    that was read before, however fast the machine is.
    """
    lines = "".join(
        (Server().prefill if number % 7 else Server().decode)(Moment(number, 51, 9, 478_691 + number, 204))
        + 'INFO:     127.0.0.1:3000 - "POST /generate HTTP/1.1" 200 OK\n'
        for number in range(1000)
    )
    file = tmp_path / "large.log"
    file.write_text(lines * (150 * 10**6 // len(lines)))
    open_log(page, base_url)
    before = processor_seconds(base_url)
    page.locator('input[type="file"]').set_input_files(file)
    bar = page.get_by_text(re.compile(r"Read \d+ of \d+ MB"))
    expect(bar).to_have_text(re.compile(r"Read [1-9]"), timeout=SECONDS)
    done, of = (int(number) for number in re.findall(r"\d+", bar.inner_text()))
    assert done < of / 2, "too little is left to see whether the reading ends"
    used = processor_seconds(base_url) - before
    page.close()
    left = last = processor_seconds(base_url)
    while True:
        time.sleep(1)
        now = processor_seconds(base_url)
        if now - last < 0.1:
            break
        last = now
    assert now - left < used / 2
