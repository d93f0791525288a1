"""How long a frame takes while a figure's line is dragged, and the page after it was let go?

A real Chromium drags L across figure 1 and r across figure 2. Each pointer move is timed from the browser's own time
stamp of the event until the frame that shows its number has been painted; each release until verdict and all figures
show what was let go. The same pointer moves over the floor page (`floor_app.py`), which answers none of them, are
what a frame costs at least; a move of its slider is the floor of a release, as in `slider.py`.

    python tests/bench/drag.py [--drags 6] [--moves 40] [--app FILE]
"""

import argparse
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Error, Page, sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.serving import ROOT, CannotMeasureError, measuring, percentile, serve
from tests.bench.slider import ALL, IDLE_MS, MOVE_LIMIT_S, open_subject
from tests.browser.chromium import FLAGS, find_chromium

AIM_FRAME_MS, AIM_RELEASE = 16, 2.5
FRAMES = """() => {
  window.frames_ms = [];
  addEventListener('pointermove', (event) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => window.frames_ms.push(performance.now() - event.timeStamp);
    channel.port2.postMessage(null);
  }), true);
}"""
LABEL = """(name) => document.querySelector(`[data-figure="${name}"] .hand-label`).innerText"""
RELEASED = """(limit) => Promise.race([
  window.bench.painted, new Promise((done) => setTimeout(() => done(null), limit))])"""


def drag(page: Page, figure: str, moves: int, start: float, end: float) -> float | None:
    """Drag from one share of the axes to another; milliseconds from the release of L until all shows it."""
    page.locator(f'[data-figure="{figure}"]').scroll_into_view_if_needed()
    area = page.locator(f'[data-figure="{figure}"] .nsewdrag').first.bounding_box()
    grip = page.locator(f'[data-figure="{figure}"] .hand-grip').bounding_box()
    if area is None or grip is None:
        raise CannotMeasureError(f"there is nothing to take hold of on figure {figure}")
    page.mouse.move(grip["x"] + grip["width"] / 2, area["y"] + 60)
    page.mouse.down()
    for move in range(moves + 1):
        page.mouse.move(area["x"] + area["width"] * (start + (end - start) * move / moves), area["y"] + 60)
        page.wait_for_timeout(20)
    label = page.evaluate(LABEL, figure).partition("\n")[0].partition(" = ")[2]
    if figure == "crossing":
        page.evaluate("(label) => window.bench.arm(label, 'pointerup')", label)
    page.mouse.up()
    elapsed = page.evaluate(RELEASED, MOVE_LIMIT_S * 1000) if figure == "crossing" else None
    page.wait_for_timeout(1000)
    return elapsed[1] if elapsed else None


def row(name: str, values: list[float]) -> str:
    return f"{name:44}{statistics.median(values):>10.1f}{percentile(values, 95):>10.1f}{len(values):>8}"


def measure(app: Path, drags: int, moves: int) -> list[str]:
    chromium = find_chromium()
    if chromium is None:
        raise CannotMeasureError("there is no Chromium to drive")
    with (
        serve(Path(__file__).with_name("floor_app.py")) as floor_server,
        serve(app) as server,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=FLAGS) as browser,
    ):
        floor = open_subject(browser, "floor", floor_server.port, figures=0)
        real = open_subject(browser, "app", server.port, figures=3)
        frames: dict[str, list[float]] = {"floor": [], "crossing": [], "ratio": []}
        releases: list[float] = []
        floor.warm_up()
        for subject in (floor, real):
            subject.page.evaluate(FRAMES)
        for number in range(drags + 1):  # the first is a warm-up
            floor.page.bring_to_front()
            for move in range(moves):
                floor.page.mouse.move(400 + 10 * move, 400)
                floor.page.wait_for_timeout(20)
            frames["floor"] += floor.page.evaluate("window.frames_ms.splice(0)") if number else []
            floor.play_round(4, step=+1 if number % 2 == 0 else -1)
            real.page.bring_to_front()
            real.page.wait_for_timeout(IDLE_MS)
            for figure in ("crossing", "ratio"):
                real.page.evaluate("window.frames_ms.splice(0)")
                ends = (0.1, 0.71 + 0.01 * number) if number % 2 == 0 else (0.9, 0.25 + 0.01 * number)
                elapsed = drag(real.page, figure, moves, *ends)
                if number:
                    frames[figure] += real.page.evaluate("window.frames_ms.splice(0)")
                    releases += [elapsed] if elapsed is not None else []
    lines = [f"{'':44}{'median':>10}{'p95':>10}{'':>8}"]
    lines += [row(f"a frame of a drag, {name} [ms]", values) for name, values in frames.items()]
    lines.append(f"{'  aim, at most, over the floor of a frame':44}{AIM_FRAME_MS:>10}")
    lines.append(row("a slider move on the floor [ms]", floor.times_ms[ALL]))
    lines.append(row("from release of L to all painted [ms]", releases))
    ratio = statistics.median(releases) / statistics.median(floor.times_ms[ALL])
    lines.append(f"{'  over the floor, aim ' + str(AIM_RELEASE):44}{ratio:>10.2f}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description="Frames of a drag, and the page after its release.")
    parser.add_argument("--drags", type=int, default=6, help="drags across each figure (default 6)")
    parser.add_argument("--moves", type=int, default=40, help="pointer moves in each (default 40)")
    parser.add_argument("--app", type=Path, default=ROOT / "app.py", help="the page to measure")
    options = parser.parse_args()
    with measuring(Error):
        print("\n".join(measure(options.app, options.drags, options.moves)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
