"""How long from moving the L slider until the sweep's heatmap, 200 x 200 cells solved anew, is painted?

A real Chromium presses the arrow keys on the L slider of the page Compare. The clock runs from the browser's time
stamp of the key press until the heatmap marks the new L, the browser has painted that, and one more frame has passed.
The page's other figure and its tables are redrawn in the same time.

How to read it: milliseconds depend on the machine; the aim is half a second. The exit code is 1 only if something
could not be measured.

    python tests/bench/heatmap.py [--moves 20]
"""

import argparse
import re
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing.answers.sweep import POINTS
from tests.bench.serving import HOST, ROOT, CannotMeasureError, measuring, percentile, serve
from tests.bench.slider import IDLE_MS, L_GRID, LOAD_LIMIT_S, MOVE_LIMIT_S, START, WARM_UP_MOVES
from tests.browser.chromium import FLAGS, find_chromium

AIM_MS = 500

# The heatmap's own label ends its name for L with the value; `arm` is called before the key press.
WATCHER = """
() => {
  const marks = (label) => [...document.querySelectorAll('.js-plotly-plot')].some((plot) =>
    plot.data?.some((trace) => trace.type === 'heatmap')
      && plot.textContent.replaceAll('\\u00a0', ' ').includes(`now, L ${label},`));
  const arm = (label) => {
    window.painted = new Promise((resolve) => {
      addEventListener('keydown', (event) => {
        const look = () => marks(label)
          ? requestAnimationFrame(() => resolve(performance.now() - event.timeStamp))
          : requestAnimationFrame(look);
        look();
      }, { capture: true, once: true });
    });
  };
  window.bench = { marks, arm };
}
"""


def move(page: Page, position: int, key: str) -> float:
    """Press a key and return the milliseconds until the heatmap shows L at `position`."""
    label = f"{L_GRID[position]:,}"
    page.evaluate("(label) => window.bench.arm(label)", label)
    page.keyboard.press(key)
    elapsed = page.evaluate(
        "(limit) => Promise.race([window.painted, new Promise((resolve) => setTimeout(() => resolve(null), limit))])",
        MOVE_LIMIT_S * 1000,
    )
    if elapsed is None:
        raise CannotMeasureError(f"the heatmap did not mark L = {label} within {MOVE_LIMIT_S} s")
    page.wait_for_timeout(IDLE_MS)
    return float(elapsed)


def measure(moves: int) -> list[float]:
    """Milliseconds of each move, up and down in turn."""
    chromium = find_chromium()
    if chromium is None:
        raise CannotMeasureError("there is no Chromium to drive")
    with (
        serve(ROOT / "app.py") as server,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=FLAGS) as browser,
    ):
        page = browser.new_page(viewport={"width": 1440, "height": 1600})
        page.goto(f"http://{HOST}:{server.port}/compare")
        page.evaluate(WATCHER)
        page.wait_for_function(
            "(label) => window.bench.marks(label)", arg=f"{L_GRID[START]:,}", timeout=LOAD_LIMIT_S * 1000
        )
        page.wait_for_timeout(1000)
        page.get_by_test_id("stSidebar").get_by_role("slider", name=re.compile("^L")).first.focus()
        steps = [(START + 1, "ArrowRight"), (START, "ArrowLeft")]
        return [move(page, *steps[number % 2]) for number in range(WARM_UP_MOVES + moves)][WARM_UP_MOVES:]


def main() -> int:
    parser = argparse.ArgumentParser(description="From slider move to heatmap painted.")
    parser.add_argument("--moves", type=int, default=20, help="moves (default 20)")
    options = parser.parse_args()
    if options.moves < 1:
        parser.error("there must be at least 1 move")
    with measuring(Error):
        times = measure(options.moves)
    print(
        f"{POINTS} x {POINTS} cells: median {statistics.median(times):.0f} ms, p95 {percentile(times, 95):.0f} ms, "
        f"{len(times)} moves; aim, at most {AIM_MS} ms"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
