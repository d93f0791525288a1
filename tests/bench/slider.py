"""How long from moving the L slider until every figure shows the new value?

A real Chromium presses the arrow keys on the L slider of two pages in turn: the floor
(`floor_app.py`, a slider and a line of text: all that Streamlit itself costs) and the real page
(`app.py`). The clock runs from the browser's time stamp of the key press until the browser has painted
that the verdict and the first figure say "L = <new value>" (for a hand on a figure, or on its slider, that is what
the browser looked up), and until all figures as they are drawn and the verdict do, and one more frame has passed.

How to read it: milliseconds depend on the machine, which is why the floor is measured in the same
minutes on the same machine. The ratios app / floor are the result; the aims beside them are aims,
nothing here fails when one is missed. The exit code is 1 only if something could not be measured.

    python tests/bench/slider.py [--moves 40] [--rounds 4] [--app FILE ...]
"""

import argparse
import re
import statistics
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.serving import HOST, ROOT, CannotMeasureError, measuring, percentile, serve
from tests.browser.chromium import FLAGS, find_chromium

L_GRID = [int(256 * 2 ** (k // 8) * (1 + (k % 8) / 8)) for k in range(97)]
START = L_GRID.index(9216)
MOVE_LIMIT_S = 10
LOAD_LIMIT_S = 60
IDLE_MS = 120  # between moves, so that one move's late work is not charged to the next
WARM_UP_MOVES = 4  # even, because they go up and down; the browser compiles JavaScript in these
FIRST, ALL = "verdict and figure 1", "everything"
AIMS = {FIRST: (2.0, 2.5), ALL: (3.0, 3.5)}  # median and 95th percentile, times the floor's

# Runs inside the page. `shows` asks whether everything shows a value: each of the expected figures,
# and the text around the figures (the verdict). `arm` must be called before the key press, because
# a watcher that is installed after it could miss a fast paint.
WATCHER = """
(figures) => {
  const plain = (text) => text.replaceAll('\\u00a0', ' ');
  const textOutsideFigures = (root) => {
    const pruned = (node) =>
      node.nodeType === Node.TEXT_NODE ? NodeFilter.FILTER_ACCEPT
        : node.matches('.js-plotly-plot, [data-figure]') ? NodeFilter.FILTER_REJECT
        : NodeFilter.FILTER_SKIP;
    const walk = document.createTreeWalker(
      root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, pruned);
    let text = '';
    while (walk.nextNode()) text += walk.currentNode.data;
    return plain(text);
  };
  const shows = (label, first = false) => {
    const wanted = new RegExp('L = ' + label + '(?!,?\\\\d)');
    const main = document.querySelector('[data-testid="stMain"]');
    const plots = [...document.querySelectorAll('[data-figure]')];
    if (main === null || plots.length !== figures || !wanted.test(textOutsideFigures(main))) return false;
    if (first) return plots.slice(0, 1).every((plot) => wanted.test(plain(plot.textContent)));
    // A still covers what Plotly drew before.
    const seen = (plot) => plot.querySelectorAll(plot.querySelector('.still') ? '.still' : '.main-svg');
    const drawn = (plot) => [...seen(plot)].some((svg) => wanted.test(plain(svg.textContent)));
    return plots.every(drawn);
  };
  const afterNextFrame = (action) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = action;
    channel.port2.postMessage(null);
  });
  const arm = (label, type = 'keydown') => {
    window.bench.painted = new Promise((resolve) => {
      addEventListener(type, (event) => {
        const times = [];
        const look = () => {
          if (times.length === 0 && shows(label, true)) {
            times.push(null);
            afterNextFrame(() => { times[0] = performance.now() - event.timeStamp; });
          }
          if (shows(label)) afterNextFrame(() => resolve([times[0], performance.now() - event.timeStamp]));
          else requestAnimationFrame(look);
        };
        look();
      }, { capture: true, once: true });
    });
  };
  window.bench = { shows, arm };
}
"""


@dataclass
class Subject:
    """One page under measurement and what was measured on it."""

    name: str
    page: Page
    position: int = START
    times_ms: dict[str, list[float]] = field(default_factory=lambda: {FIRST: [], ALL: []})

    def focus(self) -> None:
        self.page.bring_to_front()
        sidebar = self.page.get_by_test_id("stSidebar")
        sidebar.get_by_role("slider", name=re.compile("^L")).first.focus()
        self.page.wait_for_timeout(500)

    def move(self, step: int) -> tuple[float, float]:
        """Press one arrow key and return the milliseconds until the first of it and all of it was painted."""
        self.position += step
        label = f"{L_GRID[self.position]:,}"
        self.page.evaluate("(label) => window.bench.arm(label)", label)
        self.page.keyboard.press("ArrowRight" if step > 0 else "ArrowLeft")
        elapsed = self.page.evaluate(
            "(limit) => Promise.race([window.bench.painted,"
            " new Promise((resolve) => setTimeout(() => resolve(null), limit))])",
            MOVE_LIMIT_S * 1000,
        )
        if elapsed is None:
            raise CannotMeasureError(f"{self.name}: no sign of 'L = {label}' everywhere within {MOVE_LIMIT_S} s")
        self.page.wait_for_timeout(IDLE_MS)
        return float(elapsed[0]), float(elapsed[1])

    def warm_up(self) -> None:
        self.focus()
        for count in range(WARM_UP_MOVES):
            self.move(+1 if count % 2 == 0 else -1)

    def play_round(self, moves: int, step: int) -> None:
        self.focus()
        for _ in range(moves):
            for times, elapsed in zip(self.times_ms.values(), self.move(step), strict=True):
                times.append(elapsed)


def open_subject(browser: Browser, name: str, port: int, figures: int) -> Subject:
    """Open the page and wait until it shows the starting value everywhere."""
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(f"http://{HOST}:{port}/")
    page.evaluate(WATCHER, figures)
    label = f"{L_GRID[START]:,}"
    try:
        page.wait_for_function("(label) => window.bench.shows(label)", arg=label, timeout=LOAD_LIMIT_S * 1000)
    except Error as error:
        found = page.locator("[data-figure]").count()
        raise CannotMeasureError(
            f"{name}: the page never showed 'L = {label}' in {figures} figures and in the text"
            f" around them ({found} figures found)"
        ) from error
    page.wait_for_timeout(1000)
    return Subject(name, page)


def measure(apps: list[Path], moves: int, rounds: int, figures: int) -> tuple[Subject, list[Subject]]:
    """Interleave rounds on the floor and the apps, so that all meet the same noise."""
    chromium = find_chromium()  # before Playwright starts here, as the search may start its own
    if chromium is None:
        raise CannotMeasureError("there is no Chromium to drive")
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(app)) for app in (Path(__file__).with_name("floor_app.py"), *apps)]
        playwright = stack.enter_context(sync_playwright())
        browser = stack.enter_context(playwright.chromium.launch(executable_path=chromium, args=FLAGS))
        floor = open_subject(browser, "floor", servers[0].port, figures=0)
        real = [
            open_subject(browser, str(app), server.port, figures) for app, server in zip(apps, servers[1:], strict=True)
        ]
        for subject in (floor, *real):
            subject.warm_up()
        for number in range(rounds):
            for subject in (floor, *real):
                subject.play_round(moves // rounds, step=+1 if number % 2 == 0 else -1)
    return floor, real


def report(floor: Subject, real: Subject) -> str:
    lines = [f"{'':32}{'median':>10}{'p95':>10}{'moves':>8}"]
    floor_ms = floor.times_ms[ALL]
    floors = statistics.median(floor_ms), percentile(floor_ms, 95)
    lines.append(f"{'floor [ms]':32}{floors[0]:>10.0f}{floors[1]:>10.0f}{len(floor_ms):>8}")
    for name, times in real.times_ms.items():
        found = statistics.median(times), percentile(times, 95)
        lines.append(f"{name + ' [ms]':32}{found[0]:>10.0f}{found[1]:>10.0f}{len(times):>8}")
        ratios = [f"{value / least:>10.2f}" for value, least in zip(found, floors, strict=True)]
        lines.append(f"{'  over the floor':32}{''.join(ratios)}")
        lines.append(f"{'  aim, at most':32}{''.join(f'{aim:>10.2f}' for aim in AIMS[name])}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="From slider move to figures painted.")
    parser.add_argument("--moves", type=int, default=40, help="moves on each page (default 40)")
    parser.add_argument("--rounds", type=int, default=4, help="turns they come in (default 4)")
    parser.add_argument("--app", type=Path, action="append", help="the page to measure (default this one's app.py)")
    parser.add_argument("--figures", type=int, default=3, help="figures on it (default 3)")
    options = parser.parse_args()
    longest_round = len(L_GRID) - 1 - START
    if not 1 <= options.moves // max(options.rounds, 1) <= longest_round:
        parser.error(f"a round must have between 1 and {longest_round} moves")
    with measuring(Error):
        floor, real = measure(options.app or [ROOT / "app.py"], options.moves, options.rounds, options.figures)
    for subject in real:
        print(f"{subject.name}\n{report(floor, subject)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
