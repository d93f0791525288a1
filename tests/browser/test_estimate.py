"""What the figures say of a GPU and its estimate, in a real Chromium."""

from playwright.sync_api import Page, expect

from tests.browser.actions import SECONDS
from tests.browser.labels import CLIPPED, FILLED, OVERLAPPING


def test_labels_of_the_gpu_s_bars_lie_in_their_figure(page: Page, base_url: str) -> None:
    """At 1440 and 1920 pixels none of the words leaves the figure or lies on another's; nor do those of the others."""
    page.goto(f"{base_url}/?model=Qwen/Qwen3.5-397B-A17B&gpu=H200&checkpoint=fp8&D=4&L=32768&kv_cache_dtype=bfloat16")
    figure = page.locator('[data-figure="memory"]')
    expect(figure).to_contain_text("the GPU: 140.4 GiB", timeout=SECONDS)
    expect(page.locator("[data-figure].js-plotly-plot")).to_have_count(3, timeout=SECONDS)
    for width in (1440, 1920):
        page.set_viewport_size({"width": width, "height": 1000})
        page.wait_for_function(FILLED)
        assert page.evaluate(CLIPPED) == [], width
        assert page.evaluate(OVERLAPPING) == [], width
        expect(figure.locator(".annotation-text")).to_have_count(5)  # drawn by Plotly, not a still
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
                assert apart, (width, one, other)
