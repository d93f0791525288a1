"""The page Compare in a real Chromium: names beside lines, a slide, and a file loaded while a row goes."""

from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from sizing import Scenario
from sizing.exchange.link import kept_to_query
from sizing.exchange.scenario_file import to_file
from tests.browser.labels import CLIPPED, FILLED, OVERLAPPING

SIX = (
    Scenario(),
    Scenario(split="balanced"),
    Scenario(mamba_radix_cache_strategy="extra_buffer_lazy", L=32_768),
    Scenario(name="W" * 60),
    Scenario(D=4, L=65_536, model="Qwen/Qwen3-Next-80B-A3B-Instruct", tp_size=4),
    Scenario(name="大規模言語モデル推論" * 6, rest_gib=40.0, dcp_size=8),
)
SECONDS = 60_000  # [ms] what a slow machine may take to load the page once


def open_compare(page: Page, url: str, scenarios: tuple[Scenario, ...]) -> None:
    """Load the page with such scenarios kept, and wait until both figures stand."""
    page.goto(f"{url}/compare?{urlencode(kept_to_query(scenarios) or {})}")
    for name in ("compare", "sweep"):
        expect(page.locator(f'[data-figure="{name}"] .main-svg').first).to_be_visible(timeout=SECONDS)


def test_names_are_whole_on_the_page_and_on_a_slide(page: Page, base_url: str) -> None:
    """No label is cut or covered; presented, no box is left and figures fill the width; back leads back."""
    open_compare(page, base_url, SIX)
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(OVERLAPPING) == []
    before = page.locator('[data-figure="compare"]').bounding_box()
    page.get_by_role("button", name="Present").click()
    page.wait_for_url("**present=*")
    expect(page.get_by_role("textbox")).to_have_count(0)
    page.wait_for_function(FILLED)
    after = page.locator('[data-figure="compare"]').bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > before["width"]
    assert page.evaluate(CLIPPED) == []
    assert page.evaluate(OVERLAPPING) == []
    page.go_back()
    expect(page.get_by_role("textbox", name="L, exact")).to_be_visible()


def test_a_file_is_loaded_while_a_row_goes(page: Page, base_url: str, tmp_path: Path) -> None:
    """Removed and loaded at once: the file arrives, and its name can be changed."""
    file = tmp_path / "scenarios.json"
    file.write_text(to_file(SIX[:2]), encoding="utf-8")
    open_compare(page, base_url, SIX[:1])
    page.get_by_role("button", name="✕").click()
    page.set_input_files('[data-testid="stMain"] input[type=file]', file)
    expect(page.get_by_role("heading", level=1)).to_contain_text("74 run (")
    box = page.get_by_role("textbox", name="Name 1")
    box.fill("tonight")
    box.press("Enter")
    expect(page.locator('[data-figure="compare"]')).to_contain_text("tonight: 51 run at L = 9,216")
