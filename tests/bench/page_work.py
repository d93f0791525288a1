"""What a page asks of the browser: at loading, and for one move of the L slider.

Opens the page twice in one browser, so that the second time shows what the browser kept, opens every other page once,
and then presses an arrow key on the L slider again and again. The numbers are Chromium's own: layout shift and paint
from its performance entries, layouts and style recalculations from its metrics, frames of the main thread from its
trace, messages and bytes from the websocket. Milliseconds depend on the machine; counts and bytes hardly do.

    python tests/bench/page_work.py [--moves 12] [--app FILE ...] [--width 1440]
"""

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Error, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.serving import HOST, ROOT, CannotMeasureError, measuring, serve
from tests.browser.chromium import FLAGS, find_chromium

LOAD_LIMIT_MS = 60_000
SETTLE_MS = 2500  # after loading, and between moves, so that late work is counted where it belongs
AIM_SHIFT, AIM_PAINT_MS = 0.1, 2000
OTHERS = ("target", "traffic", "log", "compare", "model", "reference")  # pages whose shift is measured alone

# Before the page's own scripts: every shift, and when the first figure has been painted.
WATCH = """
window.shift = 0;
window.shifts = [];
new PerformanceObserver((list) => { for (const entry of list.getEntries()) {
  window.shift += entry.value;
  window.shifts.push([entry.value, entry.sources.map((source) => source.node?.className ?? '').slice(0, 3)]);
} }).observe({ type: 'layout-shift', buffered: true });
const drawn = '[data-figure] :is(.still text, .main-svg .xtick), .js-plotly-plot .main-svg .xtick';
const look = () => document.querySelector(drawn)
  ? requestAnimationFrame(() => setTimeout(() => { window.figureAt = performance.now(); }))
  : requestAnimationFrame(look);
look();
"""


def load(page: Page, port: int) -> dict[str, Any]:
    """Open the page and say what that took."""
    page.goto(f"http://{HOST}:{port}/")
    page.wait_for_function("window.figureAt", timeout=LOAD_LIMIT_MS)
    page.wait_for_timeout(SETTLE_MS)
    return dict(
        page.evaluate(
            """() => ({
              shift: window.shift,
              painted: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN,
              figure: window.figureAt,
              plotly: performance.getEntriesByType('resource').filter((entry) => entry.name.includes('plotly.min'))
                .reduce((sum, entry) => sum + entry.transferSize, 0),
              largest: window.shifts.sort((one, other) => other[0] - one[0]).slice(0, 3),
            })"""
        )
    )


def shift_of(browser: Browser, port: int, name: str, width: int) -> float:
    """Layout shift while another page is loaded."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    context.add_init_script(WATCH)
    page = context.new_page()
    page.goto(f"http://{HOST}:{port}/{name}")
    page.locator('[data-testid="stMain"] :is(h1, h2)').first.wait_for(timeout=LOAD_LIMIT_MS)
    page.wait_for_timeout(2 * SETTLE_MS)
    found = float(page.evaluate("window.shift"))
    context.close()
    return found


def moves(browser: Browser, page: Page, session: CDPSession, times: int) -> dict[str, float]:
    """What one move takes of the browser, on average."""
    received: list[int] = []

    def note(event: dict[str, Any]) -> None:
        received.append(len(event["response"]["payloadData"]) * 3 // 4)  # it is given in base64

    session.on("Network.webSocketFrameReceived", note)
    session.send("Network.enable")
    session.send("Performance.enable")
    page.get_by_test_id("stSidebar").get_by_role("slider", name=re.compile("^L")).first.focus()
    for key in ("ArrowRight", "ArrowLeft") * 2:
        page.keyboard.press(key)
        page.wait_for_timeout(SETTLE_MS / 3)
    before, count = metrics(session), len(received)
    browser.start_tracing(page=page, categories=["devtools.timeline", "devtools.timeline.frame"])
    for _ in range(times):
        page.keyboard.press("ArrowRight")
        page.wait_for_timeout(SETTLE_MS / 3)
    trace = json.loads(browser.stop_tracing())
    after = metrics(session)
    names = Counter(event["name"] for event in trace["traceEvents"])
    frames = names["PrePaint"]
    layouts = after["LayoutCount"] - before["LayoutCount"]
    found = {
        "messages": len(received) - count,
        "KiB": sum(received[count:]) / 1024,
        "frames": frames,
        "layouts": layouts,
        "forced layouts": max(layouts - frames, 0),
        "style recalculations": after["RecalcStyleCount"] - before["RecalcStyleCount"],
        "scripts [ms]": (after["ScriptDuration"] - before["ScriptDuration"]) * 1000,
        "style and layout [ms]": sum(
            (after[name] - before[name]) * 1000 for name in ("LayoutDuration", "RecalcStyleDuration")
        ),
    }
    return {name: value / times for name, value in found.items()} | {"nodes of the page": after["Nodes"]}


def metrics(session: CDPSession) -> dict[str, float]:
    return {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}


def measure(app: Path, times: int, width: int) -> list[tuple[str, str]]:
    chromium = find_chromium()
    if chromium is None:
        raise CannotMeasureError("there is no Chromium to drive")
    with (
        serve(app) as server,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=FLAGS) as browser,
    ):
        context = browser.new_context(viewport={"width": width, "height": 900})
        context.add_init_script(WATCH)
        load(context.new_page(), server.port)  # the server's own first run
        rows = []
        for name in ("first visit", "second visit"):
            if name == "first visit":
                context = browser.new_context(viewport={"width": width, "height": 900})
                context.add_init_script(WATCH)
            page = context.new_page()
            found = load(page, server.port)
            rows += [
                (f"{name}: first paint [ms]", f"{found['painted']:.0f}"),
                (f"{name}: first figure painted [ms], aim {AIM_PAINT_MS}", f"{found['figure']:.0f}"),
                (f"{name}: layout shift, aim below {AIM_SHIFT}", f"{found['shift']:.3f}"),
                (f"{name}: plotly.js over the network [KiB]", f"{found['plotly'] / 1024:.0f}"),
            ]
            if found["shift"] >= AIM_SHIFT:
                rows.append((f"{name}: what shifted most", str(found["largest"])))
        found = moves(browser, page, context.new_cdp_session(page), times)
        others = {name: shift_of(browser, server.port, name, width) for name in OTHERS}
        rows += [(f"{name}: layout shift, aim below {AIM_SHIFT}", f"{shift:.3f}") for name, shift in others.items()]
        rows += [(f"one move: {name}", f"{value:.1f}") for name, value in found.items()]
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description="What a page asks of the browser.")
    parser.add_argument("--moves", type=int, default=12, help="moves of the L slider (default 12)")
    parser.add_argument("--width", type=int, default=1440, help="of the window [px] (default 1440)")
    parser.add_argument("--app", type=Path, action="append", help="the page to measure (default this one's app.py)")
    options = parser.parse_args()
    with measuring(Error):
        for app in options.app or [ROOT / "app.py"]:
            print(app)
            for name, value in measure(app, options.moves, options.width):
                print(f"  {name:52}{value:>12}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
