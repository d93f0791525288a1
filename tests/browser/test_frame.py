"""The frame of every page: for a keyboard, a screen reader, a narrow window, a slide; and nothing lost on the way."""

from contextlib import suppress
from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, TimeoutError, expect

from tests.browser.actions import go_to
from tests.browser.labels import FILLED
from tests.browser.test_balance import SECONDS, open_balance

PAGES = ("", "target", "traffic", "log", "compare", "model", "reference")
DRAWN = tuple(name for name in PAGES if name not in ("log", "reference"))  # what has figures as it opens
WIDTHS = (390, 720, 1024, 1440, 1920)  # [px]
KEPT = 'kept={"scenarios":[{},{"dcp_size":4}]}'
# What is wider than the window, and code that is cut: a flag that lacks its end may still look valid.
WIDER = """() => [document.documentElement, document.querySelector('[data-testid="stMain"]')]
  .filter((element) => element.scrollWidth > element.clientWidth + 1).length"""
CUT = """() => [...document.querySelectorAll('[data-testid="stMain"] pre, [data-testid="stMain"] code')]
  .filter((element) => element.offsetParent && element.scrollWidth > element.clientWidth + 1
    && getComputedStyle(element).overflowX !== 'visible').map((element) => element.textContent)"""


# Words smaller than 20 px on a slide; figures are drawn larger by the zoom.
SMALL = """() => [...document.querySelectorAll('[data-testid="stMain"] *')]
  .filter((one) => one.checkVisibility() && !one.closest('.st-key-leave, [aria-hidden="true"]'))
  .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()))
  .map((one) => [one.textContent.trim().slice(0, 40),
    parseFloat(getComputedStyle(one).fontSize) * (one.closest('.figures') ? 1.7 : 1)])
  .filter(([, size]) => size < 20)"""


# Words that lie on a figure that they are no part of.
ON_FIGURES = """() => {
  const boxes = [...document.querySelectorAll('[data-figure]')].map((one) => one.getBoundingClientRect());
  return [...document.querySelectorAll('[data-testid="stMain"] :is(h1, h2, p, code)')]
    .filter((one) => one.checkVisibility() && !one.closest('.figures, .st-key-leave'))
    .filter((one) => { const box = one.getBoundingClientRect();
      return boxes.some((other) => box.top < other.bottom - 1 && box.bottom > other.top + 1
        && box.left < other.right && box.right > other.left); })
    .map((one) => one.textContent.slice(0, 40));
}"""


def open_page(page: Page, url: str) -> None:
    """Load a page and wait until its first heading stands and nothing is still on its way."""
    page.goto(url)
    expect(page.get_by_role("heading", level=1).first).to_be_visible(timeout=SECONDS)
    expect(page.locator('[data-testid="stSkeleton"]')).to_have_count(0, timeout=SECONDS)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_for_every_reader_and_window(page: Page, base_url: str, name: str) -> None:
    """Opened on a phone, widened to a large screen; with axe-core, with the keyboard, and with figures as tables."""
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    open_page(page, f"{base_url}/{name}?max_running_requests=30&{KEPT}")
    if name in DRAWN:
        expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=SECONDS)
    fits_every_width(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    nothing_keeps_a_reader_out(page)
    expect(page.locator('nav [aria-current="page"]')).to_have_text(name.capitalize() or "Balance")
    the_answer_is_near(page)
    if name in DRAWN:
        figures_are_tables(page)


def fits_every_width(page: Page) -> None:
    """No width scrolls sideways or cuts a flag; one of 720 px is a window of 1440 at 200 %."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_function(FILLED)
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        with suppress(TimeoutError):  # a table follows the window a moment later
            page.wait_for_function(f"({WIDER})() === 0")
        assert page.evaluate(WIDER) == 0, f"at {width} px"
        assert page.evaluate(CUT) == [], f"at {width} px"


def nothing_keeps_a_reader_out(page: Page) -> None:
    """No serious finding of axe-core, and headings from the first level on."""
    found = Axe().run(page)
    serious = [item for item in found.response["violations"] if item["impact"] in ("serious", "critical")]
    assert [(item["id"], [node["html"][:200] for node in item["nodes"][:3]]) for item in serious] == []
    levels = page.locator('[data-testid="stMain"] :is(h1, h2, h3, h4)').evaluate_all(
        "all => all.filter((one) => one.offsetParent).map((one) => Number(one.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels


def the_answer_is_near(page: Page) -> None:
    """The first stop of Tab leads to it."""
    page.locator("body").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the answer"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.keyboard.press("Tab")
    assert page.evaluate("Boolean(document.activeElement.closest('[data-testid=stMain]'))")


def figures_are_tables(page: Page) -> None:
    """Each figure has a name of its own and its numbers as a table, made when asked for."""
    figures = page.locator("[data-figure]:visible")
    names = figures.evaluate_all("all => all.map((one) => one.ariaLabel)")
    assert len(names) == len(set(names)) > 0
    for at, name in enumerate(names):
        button = figures.nth(at).get_by_role("button", name="Data of: ")
        button.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Data of: ")
        expect(dialog.get_by_role("row").nth(1), name).to_be_attached()
        page.keyboard.press("Escape")
        expect(dialog, name).to_have_count(0)
        expect(button, name).to_be_focused()


@pytest.mark.parametrize("name", DRAWN)
def test_a_presented_page_is_one_frame(page: Page, base_url: str, name: str) -> None:
    """At 1920 x 1080 nothing scrolls, nothing lies on a figure, and no letter is smaller than 20 px; a smaller window
    shows the same frame; Escape leads back to the same scenario.
    """
    page.set_viewport_size({"width": 1920, "height": 1080})
    open_page(page, f"{base_url}/{name}?D=4&{KEPT}&present=")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=SECONDS)
    for width, height in ((1920, 1080), (1440, 900)):
        page.set_viewport_size({"width": width, "height": height})
        main = "document.querySelector('[data-testid=\"stMain\"]').scrollHeight"
        page.wait_for_function(f"{main} <= {height}")
        assert page.evaluate(ON_FIGURES) == []
    page.set_viewport_size({"width": 1920, "height": 1080})
    assert page.evaluate(SMALL) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Balance", exact=True)).to_be_visible()
    page.wait_for_url(lambda url: "present" not in url and "D=4" in url)


def test_a_wrong_field_is_marked_and_the_last_answer_stays(page: Page, base_url: str) -> None:
    """All wrong fields at once; the answer before stays, greyed, until the next right one."""
    open_balance(page, f"{base_url}/?rest_gib=28.529")
    for label, typed, sentence in (
        ("L, exact", "0", "L must be 1 or more, not “0”."),
        ("rest [GiB per rank]", "much", "rest must be a number, not “much”."),
    ):
        box = page.get_by_role("textbox", name=label)
        box.fill(typed)
        box.press("Enter")
        expect(page.get_by_text(sentence)).to_be_visible()
    expect(page.get_by_text("L must be 1 or more, not “0”.")).to_be_visible()
    for name in ("L", "rest_gib"):
        below = f"getComputedStyle(document.querySelector('.st-key-{name}'), '::after').content"
        page.wait_for_function(f"{below}.includes('must be')")
    expect(page.locator("h1")).to_have_text("51 requests run at L = 9,216: the state pool binds.")
    expect(page.locator(".st-key-answers")).to_have_css("opacity", "0.4")
    for label, typed in (("L, exact", "9216"), ("rest [GiB per rank]", "")):
        box = page.get_by_role("textbox", name=label)
        box.fill(typed)
        box.press("Enter")
    expect(page.locator(".st-key-answers")).to_have_css("opacity", "1")
    expect(page.get_by_test_id("stAlert")).to_have_count(0)
    page.wait_for_function("getComputedStyle(document.querySelector('.st-key-L'), '::after').content === 'none'")


def test_what_is_kept_and_wanted_is_never_lost(page: Page, base_url: str, fresh_server: str) -> None:
    """Over page changes, a reload, back and forward; and by the address alone on another server, whose very first
    request is a link to a page that is not its first.
    """
    open_page(page, f"{base_url}/?L=16384&D=4&want=96")
    page.get_by_role("button", name="Keep (0)").click()
    expect(page.get_by_role("button", name="Keep (1)")).to_be_visible()
    page.wait_for_url("**kept=**")
    go_to(page, "Compare")
    expect(page.get_by_role("heading", name="1 is kept")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="1 is kept")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("at L = 16,384").first).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="1 is kept")).to_be_visible()
    open_page(page, f"{fresh_server}/target{page.url.partition('/compare')[2]}")
    expect(page.get_by_role("textbox", name="Wanted requests at L = 16,384")).to_have_value("96")
    expect(page.get_by_role("textbox", name="L, exact")).to_have_value("16384")
    expect(page.get_by_role("button", name="Keep (1)")).to_be_visible()
    go_to(page, "Balance")
    expect(page.get_by_text("at L = 16,384").first).to_be_visible()
    page.wait_for_url("**D=4*")
