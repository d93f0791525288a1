"""How long each other input takes, on each page that answers it, beside the floor?

A real Chromium moves, chooses or types each input; the clock runs from the browser's time stamp of the key that does
it until the last change of the page's main column is painted and one more frame has passed, as in `slider.py`; after
it nothing has changed for a while. The floor is a move of the slider of `floor_app.py`, timed in the same way in
between.

    python tests/bench/inputs.py [--times 6] [--app FILE]
"""

import argparse
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.serving import HOST, ROOT, CannotMeasureError, measuring, percentile, serve
from tests.browser.chromium import FLAGS, find_chromium

QUIET_MS = 500
LIMIT_MS = 15_000
AIM = 4.0  # times the floor, medians
WATCH = """() => {
  const main = document.querySelector('[data-testid="stMain"]');
  const attributeFilter = ['d', 'aria-label', 'transform'];
  const painted = () => requestAnimationFrame(() => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => { window.changed = performance.now(); };
    channel.port2.postMessage(null);
  }));
  // Where a still stands, Plotly later draws the same below it: nothing that is seen changes.
  const seen = ({ target, type, oldValue }) => {
    if (type === 'characterData' && oldValue === target.data) return false;
    const element = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement;
    if (!element?.isConnected) return false;  // what Plotly took out below a still
    const figure = element.closest('[data-figure]');
    return !figure?.still || element.closest('.still');
  };
  const texts = { characterData: true, characterDataOldValue: true };
  window.changed = 0;
  new MutationObserver((changes) => changes.some(seen) && painted())
    .observe(main, { childList: true, subtree: true, attributes: true, attributeFilter, ...texts });
  addEventListener('keydown', (event) => { window.pressed = event.timeStamp; window.changed = 0; }, true);
}"""
SETTLED = "(quiet) => window.changed > window.pressed && performance.now() - window.changed > quiet"

Act = Callable[[Page, int], None]


def slide(key: str) -> Act:
    """An arrow key on a slider, to and fro."""

    def act(page: Page, number: int) -> None:
        page.locator(f'[class*="st-key-{key}"] input[type=range]').focus()
        page.keyboard.press("ArrowRight" if number % 2 == 0 else "ArrowLeft")

    return act


def choose(key: str) -> Act:
    """The next entry of a menu, and back."""

    def act(page: Page, number: int) -> None:
        page.locator(f".st-key-{key} input").first.click()
        page.wait_for_timeout(300)
        page.keyboard.press("ArrowDown" if number % 2 == 0 else "ArrowUp")
        page.wait_for_timeout(100)
        page.keyboard.press("Enter")

    return act


def type_in(key: str, values: tuple[str, str]) -> Act:
    """A number into a box."""

    def act(page: Page, number: int) -> None:
        box = page.locator(f".st-key-{key} input").first
        box.fill(values[number % 2])
        box.press("Enter")

    return act


INPUTS: dict[str, tuple[str, Act]] = {
    "D": ("", slide("D")),
    "dcp_size": ("", slide("dcp_size")),
    "L, typed": ("", type_in("L", ("10001", "9216"))),
    "Ratio r, typed": ("", type_in("mamba_full_memory_ratio", ("1.5", "0.9"))),
    "rest": ("", type_in("rest_gib", ("40", "28.529"))),
    "Model": ("", choose("model")),
    "SSM dtype": ("", choose("mamba_ssm_dtype")),
    "KV dtype": ("", choose("kv_cache_dtype")),
    "Strategy": ("", choose("mamba_radix_cache_strategy")),
    "SGLang release": ("", choose("release")),
    "L on Target": ("target?want=64", slide("L_slider")),
    "L on Compare": ("compare", slide("L_slider")),
    "rest on Traffic": ("traffic", type_in("rest_gib", ("40", "28.529"))),
}


def timed(page: Page, act: Act, number: int) -> float:
    act(page, number)
    page.wait_for_function(SETTLED, arg=QUIET_MS, timeout=LIMIT_MS)
    return float(page.evaluate("window.changed - window.pressed"))


def ready(browser: Browser, address: str) -> Page:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    page.locator('[data-testid="stMain"]').wait_for()
    page.wait_for_timeout(5000)
    page.evaluate(WATCH)
    return page


def measure(app: Path, times: int) -> list[str]:
    chromium = find_chromium()
    if chromium is None:
        raise CannotMeasureError("there is no Chromium to drive")
    lines = [f"{'':20}{'median ms':>11}{'p95 ms':>9}{'floor ms':>10}{'over it':>9}   (aim {AIM:g})"]
    with (
        serve(Path(__file__).with_name("floor_app.py")) as floor_server,
        serve(app) as server,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=FLAGS) as browser,
    ):
        floor = ready(browser, f"http://{HOST}:{floor_server.port}/")

        def floor_move(page: Page, number: int) -> None:
            page.get_by_role("slider").focus()
            page.keyboard.press("ArrowRight" if number % 2 == 0 else "ArrowLeft")

        for name, (where, act) in INPUTS.items():
            page = ready(browser, f"http://{HOST}:{server.port}/{where}")
            found, least = [], []
            try:
                for number in range(times + 2):  # the first two warm up
                    floor.bring_to_front()
                    low = timed(floor, floor_move, number)
                    page.bring_to_front()
                    took = timed(page, act, number)
                    if number >= 2:
                        least.append(low)
                        found.append(took)
            except Error as error:
                lines.append(f"{name:20}could not be measured: {error.message.splitlines()[0]}")
                page.close()
                continue
            page.close()
            median, floor_ms = statistics.median(found), statistics.median(least)
            lines.append(
                f"{name:20}{median:>11.0f}{percentile(found, 95):>9.0f}{floor_ms:>10.0f}{median / floor_ms:>9.2f}"
            )
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Each other input beside the floor.")
    parser.add_argument("--times", type=int, default=6, help="of each input (default 6)")
    parser.add_argument("--app", type=Path, default=ROOT / "app.py", help="the page to measure")
    options = parser.parse_args()
    with measuring(Error):
        print("\n".join(measure(options.app, options.times)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
