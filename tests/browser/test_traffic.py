"""The page Traffic in a real Chromium: an uploaded trace replaces the shape, and a wrong one is a sentence."""

import numpy as np
from playwright.sync_api import FilePayload, Page, TimeoutError, expect

from sizing import Scenario
from sizing.traffic import words
from sizing.traffic.mix import mix_of
from sizing.traffic.running import traffic_of
from sizing.traffic.workload import Workload, mix_of_workload
from tests.browser.actions import STANDS, go_to
from tests.browser.labels import CLIPPED, FILLED, OVERLAPPING

SECONDS = 60_000  # [ms] what a slow machine may take to load the page once
PAIRS = [(8192, 1024)] * 3 + [(2048, 256), (500, 100), (16384, 2048)]
TRIES = 10  # to open a menu
HOSTILE = "<img src=x onerror=alert(1)>.csv"


def trace(header: str, name: str = "trace.csv", rows: list[tuple[int, int]] = PAIRS) -> FilePayload:
    """An uploaded CSV file."""
    text = "\n".join([header, *(f"{one},{other}" for one, other in rows)])
    return {"name": name, "mimeType": "text/csv", "buffer": text.encode()}


def headline(page: Page, text: str) -> None:
    """Wait for the first line of the page."""
    expect(page.locator("h1").first).to_have_text(text, timeout=SECONDS)


def open_traffic(page: Page, url: str) -> None:
    """Load the page and wait for its worked example."""
    page.goto(f"{url}/traffic")
    headline(page, words.headline(traffic_of(Scenario(), mix_of_workload(Workload()), 0.01)))
    expect(page.locator(STANDS)).to_be_visible(timeout=SECONDS)


def choose(page: Page, box: str, name: str) -> None:
    """Choose in a box as a reader does: a menu that a shifting page closed at once is opened again."""
    option = page.get_by_role("option", name=name, exact=True)
    expect(page.get_by_role("combobox", name=box)).to_be_visible(timeout=SECONDS)
    expect(page.locator(STANDS)).to_be_visible(timeout=SECONDS)
    for _ in range(TRIES):
        page.get_by_role("combobox", name=box).click(timeout=SECONDS)
        try:
            option.click(timeout=3_000)
        except TimeoutError:
            continue
        expect(page.get_by_role("combobox", name=box)).to_have_value(name)
        expect(page.locator(STANDS)).to_be_visible(timeout=SECONDS)
        return
    raise AssertionError(f"the menu of {box} never opened")


def own_headline() -> str:
    """What the core says of PAIRS."""
    inputs, outputs = zip(*PAIRS, strict=True)
    return words.headline(traffic_of(Scenario(), mix_of("trace.csv", np.array(inputs), np.array(outputs)), 0.01))


def test_an_uploaded_trace_is_solved_and_kept(page: Page, base_url: str) -> None:
    """The synthetic example goes, the core's headline for the requests comes, and another page does not lose it."""
    open_traffic(page, base_url)
    expect(page.get_by_text("Synthetic traffic")).to_be_visible()
    page.locator('input[type="file"]').set_input_files(trace("input_len,output_len"))
    headline(page, own_headline())
    expect(page.get_by_text("Synthetic traffic")).to_have_count(0)
    go_to(page, "Target")
    expect(page.get_by_role("heading", name="64 requests of L = 9,216 fit.")).to_be_visible(timeout=SECONDS)
    go_to(page, "Traffic")
    headline(page, own_headline())
    page.get_by_role("button", name="Forget this traffic").click()
    expect(page.get_by_text("Synthetic traffic")).to_be_visible(timeout=SECONDS)


def test_columns_are_asked_for(page: Page, base_url: str) -> None:
    """Names that are not known: the page asks, and reads once they are chosen."""
    open_traffic(page, base_url)
    page.locator('input[type="file"]').set_input_files(trace("prompt,answer"))
    for box, name in (("Input tokens", "prompt"), ("Output tokens", "answer")):
        choose(page, box, name)
    headline(page, own_headline())


def no_label_is_cut_or_covered(page: Page) -> None:
    """The three figures, at both widths."""
    for width in (1440, 1920):
        page.set_viewport_size({"width": width, "height": 1080})
        page.wait_for_function(FILLED)
        assert page.evaluate(CLIPPED) == [], f"at {width} px"
        assert page.evaluate(OVERLAPPING) == [], f"at {width} px"


def test_a_wrong_trace_is_a_sentence(page: Page, base_url: str) -> None:
    """As the page opens no label is cut or covered. A negative length, with a name that wants to be markup: said as
    text, and the example stands.
    """
    open_traffic(page, base_url)
    expect(page.locator("[data-figure].js-plotly-plot")).to_have_count(3, timeout=SECONDS)
    no_label_is_cut_or_covered(page)
    page.locator('input[type="file"]').set_input_files(trace("input_len,output_len", HOSTILE, [(1, 2), (3, -4)]))
    alert = page.locator('[data-testid="stAlert"]').filter(has_text="-4")
    expect(alert).to_be_visible(timeout=SECONDS)
    assert page.locator('[data-testid="stMain"] img').count() == 0
    expect(page.get_by_text("Synthetic traffic")).to_be_visible()
