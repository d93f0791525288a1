"""From a model and a GPU to an answer in a real Chromium: six actions, one page, and the figure says from what."""

import re

from playwright.sync_api import Page, expect

SECONDS = 60_000  # [ms] what a slow machine may take to load the page once


class Actions:
    """What a person does on a page, counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def choose(self, box: str, what: str) -> None:
        """One entry of a box to choose in."""
        self.count += 1
        self.page.get_by_role("combobox", name=box).click(timeout=SECONDS)
        self.page.keyboard.type(what)
        self.page.get_by_role("option", name=what).first.click()
        self.settle()

    def type(self, box: str, what: str) -> None:
        """A text typed into a box."""
        self.count += 1
        field = self.page.get_by_role("textbox", name=box, exact=True)
        field.fill(what)
        field.press("Enter")
        self.settle()

    def unfold(self, group: str) -> None:
        """A group of inputs opened."""
        self.count += 1
        self.page.get_by_test_id("stSidebar").get_by_text(group, exact=True).click(timeout=SECONDS)

    def slide(self, slider: str, steps: int) -> None:
        """A slider moved so many stops in one go."""
        self.count += 1
        handle = self.page.get_by_role("slider", name=slider).first
        handle.focus()
        for _ in range(steps):
            handle.press("ArrowRight")
        self.settle()

    def settle(self) -> None:
        """Wait for the answer to the last action."""
        self.page.wait_for_timeout(300)
        expect(self.page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=SECONDS)


def test_six_actions_to_a_defended_answer(page: Page, base_url: str) -> None:
    """Qwen3.5-397B-A17B in FP8 on 8 H200 with 4 draft tokens at 32K, from the page as it opens."""
    page.goto(base_url)
    crossing = page.locator('[data-figure="crossing"]')
    expect(crossing).to_contain_text("Requests that run", timeout=SECONDS)
    person = Actions(page)
    person.choose("Model", "Qwen3.5-397B-A17B")
    person.choose("GPU", "H200 141")
    person.unfold("Memory before the boot")
    person.choose("Checkpoint", "FP8")
    person.type("L, exact", "32K")
    person.slide("D, draft tokens", 4)
    assert person.count <= 6
    headline = page.get_by_test_id("stMain").locator("h1, h2, h3").first
    expect(headline).to_contain_text("requests run at L = 32,768", timeout=SECONDS)
    expect(headline).to_contain_text("(rest estimated: 65.8 ± 2.2 GiB; a boot log makes it exact)")
    for words in (
        "Qwen3.5-397B-A17B, TP8", "8 x NVIDIA H200 141 GB", "D = 4", "rest estimated: 65.8 ± 2.2 GiB per rank",
        "mem_fraction_static 0.8258 (automatic)", "weights fp8", "(bfloat16)", "page 64",
    ):  # fmt: skip
        expect(crossing).to_contain_text(words, timeout=SECONDS)
    memory = page.locator('[data-figure="memory"]')
    for words in ("the GPU: 140.4 GiB", "weights 46.75", "draft weights 1.31", "draft KV", "graphs, activations"):
        expect(memory).to_contain_text(words, timeout=SECONDS)
    assert re.fullmatch(r"/?", page.url.split("?")[0].removeprefix(base_url))
    expect(page.get_by_text("What SGLang sets by itself")).to_be_visible()


def test_labels_of_the_gpu_s_bars_lie_in_their_figure(page: Page, base_url: str) -> None:
    """At 1440 and 1920 pixels none of the words leaves the figure or lies on another's."""
    for width in (1440, 1920):
        page.set_viewport_size({"width": width, "height": 1000})
        page.goto(
            f"{base_url}/?model=Qwen/Qwen3.5-397B-A17B&gpu=H200&checkpoint=fp8&D=4&L=32768&kv_cache_dtype=bfloat16"
        )
        figure = page.locator('[data-figure="memory"]')
        expect(figure).to_contain_text("the GPU: 140.4 GiB", timeout=SECONDS)
        expect(figure.locator(".annotation-text")).to_have_count(5, timeout=SECONDS)  # drawn by Plotly, not a still
        frame = figure.bounding_box()
        assert frame is not None
        boxes = figure.locator(".annotation-text").evaluate_all(
            "found => found.map((one) => { const box = one.getBoundingClientRect();"
            " return [box.left, box.top, box.right, box.bottom]; })"
        )
        origin = figure.evaluate("one => { const box = one.getBoundingClientRect(); return [box.left, box.top]; }")
        for left, top, right, bottom in boxes:
            assert left >= origin[0]
            assert right <= origin[0] + frame["width"]
            assert top >= origin[1]
            assert bottom <= origin[1] + frame["height"]
        for at, one in enumerate(boxes):
            for other in boxes[at + 1 :]:
                apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] + 1 or other[3] <= one[1] + 1
                assert apart, (one, other)
