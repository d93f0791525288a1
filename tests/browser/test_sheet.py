"""The review sheet in a real Chromium: drawn from the disk without a network, and whole on paper."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect

from sizing import Scenario
from sizing.answers.carrying_settings import Want
from sizing.sheet import Paper, sheet_of, sheet_pdf
from tests.browser.chromium import find_chromium
from tests.browser.labels import CLIPPED, OVERLAPPING

ON = date(2026, 3, 1)
FIGURES = ("crossing", "ratio", "memory")
KEPT = (
    Scenario(),
    Scenario(split="balanced", name="At the balance"),
    Scenario(mamba_radix_cache_strategy="extra_buffer_lazy", L=32_768),
    Scenario(rest_gib=0.1, name="Too little"),
    Scenario(mamba_radix_cache_strategy="no_buffer", name="Refused flags"),
    Scenario(attn_dp_size=2, name="Two attention-DP ranks"),
)
WANTED = (Want(L=9216, requests=96), Want(L=65_536, requests=16))
SECONDS = 30_000  # [ms] what a slow machine may take to draw
PX_PER_MM = 96 / 25.4
MARGINS = (26, 26)  # [mm] left and right, top and bottom: @page in sheet.css
PAPERS: dict[Paper, tuple[float, float]] = {"A4": (210, 297), "Letter": (215.9, 279.4)}  # [mm]
SCENARIOS: list[dict[str, Any]] = [
    {},
    {"L": 200_000},
    {"D": 4, "dcp_size": 8, "skip_decode_lock": True, "max_running_requests": 64, "name": "W" * 60},
    {
        "model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp_size": 4, "D": 4, "draft_kv_bytes_per_token": 1024,
        "kv_cache_dtype": "bfloat16", "rest_gib": 50, "max_running_requests": 128,
    },
    {"mamba_full_memory_ratio": 0.001, "name": "大規模言語モデル推論" * 6},
]  # fmt: skip
# Every box that reaches over an edge of the body, by more than half a pixel of rounding.
WIDER = """() => [...document.querySelectorAll('main *')].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width && !element.closest('svg') && (box.right > document.documentElement.clientWidth + 0.5
    || box.left < -0.5
    || element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== 'inline');
}).map((element) => element.tagName + ' ' + element.textContent.slice(0, 60))"""
TALLEST = """() => Math.max(...[...document.querySelectorAll('figure, tr, pre, table.whole, div.whole')]
  .map((element) => element.getBoundingClientRect().height))"""
BREAKABLE = """() => [...document.querySelectorAll('figure, tr, pre, table.whole, div.whole')]
  .filter((element) => getComputedStyle(element).breakInside !== 'avoid').map((element) => element.tagName)"""
# Headings, and words that lead to a table, a figure or a block, that may stand last on a page.
ALONE = """() => [...document.querySelectorAll('h2, p.label'), ...[...document.querySelectorAll('p')]
  .filter((element) => element.nextElementSibling?.matches('table, figure, pre, .label, .link'))]
  .filter((element) => getComputedStyle(element).breakAfter !== 'avoid').map((element) => element.textContent)"""

Open = Callable[..., Page]


@pytest.fixture
def open_sheet(chromium: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open a sheet from the disk: nothing but the file itself may be asked for, no script may fail or be refused."""
    asked: list[str] = []
    said: list[str] = []

    def note(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    file = tmp_path / "sheet.html"
    context = chromium.new_context(viewport={"width": 1440, "height": 900}, offline=True)
    context.on("request", lambda request: asked.append(request.url))
    context.on("console", lambda message: said.append(message.text))
    context.on("weberror", lambda error: said.append(str(error.error)))
    context.on("dialog", note)

    def show(html: str, *, figures: tuple[str, ...] = FIGURES) -> Page:
        file.write_text(html, encoding="utf-8")
        page = context.new_page()
        page.goto(file.as_uri())
        for name in figures:
            expect(page.locator(f'figure[data-figure="{name}"] svg')).to_be_visible()
        return page

    yield show
    context.close()
    assert set(asked) == {file.as_uri()}
    assert said == []


@pytest.mark.parametrize("values", SCENARIOS, ids=str)
def test_figures_are_drawn_whole_from_the_disk(open_sheet: Open, values: dict[str, Any]) -> None:
    """Each figure stands with its inputs in it, no label is cut or covered, and nothing is wider than the window."""
    scenario = Scenario.model_validate(values)
    page = open_sheet(sheet_of(scenario, on=ON, link_base="https://pools.example/"))
    for name in FIGURES:
        expect(page.locator(f'figure[data-figure="{name}"]')).to_contain_text(scenario.title)
    for width in (1440, 1000):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(CLIPPED) == []
        assert page.evaluate(OVERLAPPING) == []
        assert page.evaluate(WIDER) == []


@pytest.mark.parametrize("values", SCENARIOS, ids=str)
def test_on_paper_nothing_is_cut(open_sheet: Open, values: dict[str, Any]) -> None:
    """No box is wider than the page; what must not be split is never higher than one and is told not to be."""
    _whole_on_paper(open_sheet(sheet_of(Scenario.model_validate(values), on=ON, link_base="https://pools.example/")))


@pytest.mark.parametrize("kept", [KEPT, KEPT[:2]], ids=len)
def test_a_comparison_and_a_target_are_whole(open_sheet: Open, kept: tuple[Scenario, ...]) -> None:
    """From the disk without a network, on screen and on paper, with the figure of the comparison."""
    html = sheet_of(Scenario(), on=ON, link_base="https://pools.example/", kept=kept, wants=WANTED)
    page = open_sheet(html, figures=(*FIGURES, "compare"))
    expect(page.get_by_role("heading", name=f"{len(kept)} side by side:")).to_be_visible()
    expect(page.locator('figure[data-figure="compare"]')).to_contain_text("At the balance")
    expect(page.get_by_role("heading", name="Target: Each length alone: 96 requests of L = 9,216 or")).to_be_visible()
    for found in (CLIPPED, OVERLAPPING, WIDER):
        assert page.evaluate(found) == []
    _whole_on_paper(page)


def _whole_on_paper(page: Page) -> None:
    page.emulate_media(media="print")
    assert page.evaluate(BREAKABLE) == []
    assert page.evaluate(ALONE) == []
    for paper in PAPERS.values():
        width, height = (int((size - margin) * PX_PER_MM) for size, margin in zip(paper, MARGINS, strict=True))
        page.set_viewport_size({"width": width, "height": height})
        assert page.evaluate(WIDER) == []
        assert page.evaluate(CLIPPED) == []
        assert page.evaluate(TALLEST) < height


@pytest.mark.parametrize("paper", PAPERS)
def test_pdf_has_the_paper_that_was_asked_for(chromium: Browser, monkeypatch: pytest.MonkeyPatch, paper: Paper) -> None:
    """A few pages, portrait, each of the same paper."""
    monkeypatch.setenv("CHROMIUM", find_chromium() or "")
    pdf = sheet_pdf(sheet_of(Scenario(), on=ON), paper)
    assert pdf is not None
    assert pdf.startswith(b"%PDF-")
    boxes = {tuple(map(float, box.split())) for box in re.findall(rb"/MediaBox \[([^\]]*)\]", pdf)}
    ((left, bottom, right, top),) = boxes
    assert (left, bottom) == (0, 0)
    for points, size in zip((right, top), PAPERS[paper], strict=True):
        assert points == pytest.approx(size / 25.4 * 72, abs=1)
    assert 4 <= len(re.findall(rb"/Type /Page\b", pdf)) <= 8


def test_without_scripts_the_words_are_there(chromium: Browser, tmp_path: Path) -> None:
    """A mail program that runs no script shows all of it."""
    file = tmp_path / "sheet.html"
    file.write_text(sheet_of(Scenario(), on=ON), encoding="utf-8")
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(page.get_by_text("51 requests run at L = 9,216: the state pool binds.")).to_be_visible()
    expect(page.locator("figure svg").first).to_be_visible()
    context.close()


def test_text_of_a_stranger_stays_text(open_sheet: Open) -> None:
    """A name that passed no check is shown as it is, in the title and in every figure, and runs nothing."""
    name = '</script><script>alert(1)</script><img src=x onerror=alert(2)><a href="javascript:alert(3)">x</a>'
    scenario = Scenario().model_copy(update={"name": name})
    page = open_sheet(sheet_of(scenario, on=ON, link_base="javascript:alert(4)//"))
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    as_it_is = re.compile(r"<img src=x\s*onerror=alert\(2\)>")  # a long name is broken between its words
    for figure in FIGURES:
        expect(page.locator(f'figure[data-figure="{figure}"]')).to_contain_text(as_it_is)
    assert page.locator("img, a").count() == 0


def test_a_refused_launch_gives_a_sheet_of_words(open_sheet: Open) -> None:
    """The refusal, its cure and the inputs; no place of a figure stays empty."""
    page = open_sheet(sheet_of(Scenario(mamba_radix_cache_strategy="no_buffer"), on=ON), figures=())
    expect(page.get_by_text("SGLang would refuse to start.")).to_be_visible()
    expect(page.get_by_text("Set --page-size 1 (now 64) or choose another strategy.")).to_be_visible()
    assert page.locator("figure").count() == 0
    assert page.evaluate(WIDER) == []


@pytest.mark.parametrize("kept", [(), KEPT], ids=len)
def test_the_short_form_is_one_page(
    chromium: Browser, monkeypatch: pytest.MonkeyPatch, kept: tuple[Scenario, ...]
) -> None:
    """Answer, flags, figure and what was set, on one page of paper, also with six scenarios in the figure."""
    monkeypatch.setenv("CHROMIUM", find_chromium() or "")
    scenario = Scenario(D=4, dcp_size=8, L=32_768, mamba_ssm_dtype="bfloat16", max_running_requests=100)
    pdf = sheet_pdf(sheet_of(scenario, on=ON, kept=kept, reason="So that 64 users fit.", brief=True))
    assert pdf is not None
    assert len(re.findall(rb"/Type /Page\b", pdf)) == 1
