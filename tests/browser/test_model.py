"""The page Model in a real Chromium: labels, uploads, and text of a stranger."""

import json

import pytest
from playwright.sync_api import Dialog, FilePayload, Page, expect

from sizing.models import entry
from tests.browser.labels import CLIPPED, FILLED, OVERLAPPING

SECONDS = 30_000  # [ms] what a slow machine may take to load the page once
FIGURES = ("layers", "slots", "widths")


def open_model(page: Page, address: str) -> None:
    """Load the page and wait until its figures stand."""
    page.goto(address)
    for name in FIGURES:
        expect(page.locator(f'[data-figure="{name}"] .main-svg').first).to_be_visible(timeout=SECONDS)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?model=LiquidAI/LFM2-8B-A1B&tp_size=1",  # a slot of a few KB
        "?model=tiiuae/Falcon-H1-34B-Instruct&tp_size=2",  # every layer holds both
        "?model=jet-ai/Jet-Nemotron-2B&tp_size=1",  # widths that its heads do not divide
    ],
)
def test_no_label_is_cut_off_or_covered(page: Page, base_url: str, query: str) -> None:
    """All text of all figures stands inside its frame and apart, at both widths."""
    open_model(page, f"{base_url}/model{query}")
    for width in (1440, 1920):
        page.set_viewport_size({"width": width, "height": 1000})
        page.wait_for_function(FILLED)
        found = {asked: page.evaluate(script) for asked, script in (("cut", CLIPPED), ("covered", OVERLAPPING))}
        assert found == {"cut": [], "covered": []}, f"at {width} px"


def test_a_config_is_uploaded(page: Page, base_url: str) -> None:
    """A config.json from the disk is sized in place of the sidebar's model, and leads to the balance page,
    which knows its bytes and asks for its rest.
    """
    open_model(page, f"{base_url}/model?tp_size=1")
    page.get_by_text("A model of your own: config.json").click()
    buffer = json.dumps(entry("Qwen/Qwen3.5-0.8B").config).encode()
    file: FilePayload = {"name": "config.json", "mimeType": "application/json", "buffer": buffer}
    page.locator('input[type="file"]').set_input_files([file])
    expect(page.locator("h1").first).to_contain_text("a token 12,288 bytes on one rank at TP1", timeout=SECONDS)
    expect(page.get_by_test_id("stSidebar").get_by_role("combobox", name="KV dtype")).to_have_value("bfloat16")
    page.get_by_text("Use its bytes on the balance page").click()
    expect(page.locator("h1").first).to_contain_text("enter rest in the sidebar", timeout=SECONDS)
    expect(page.get_by_text("12,288 bytes a token")).to_be_visible()


def test_text_of_a_stranger_stays_text(page: Page, base_url: str) -> None:
    """A pasted config.json cannot put markup on the page, through whatever field it tries."""
    open_model(page, f"{base_url}/model")
    page.get_by_text("A model of your own: config.json").click()
    hostile = "<img src=x onerror=alert(1)>**bold**[x](javascript:alert(1))$x$"
    dialogs: list[str] = []

    def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", note)
    box = page.get_by_role("textbox", name="or paste config.json")
    for text in (hostile, json.dumps({"model_type": hostile}), json.dumps({"model_type": "llama", hostile: 1})):
        box.fill(text)
        box.press("Control+Enter")
        expect(page.get_by_role("alert")).to_be_visible(timeout=SECONDS)
        assert page.locator('[data-testid="stMain"] img').count() == 0
        assert page.get_by_role("alert").locator("a, strong, img, .katex").count() == 0
    config = entry("Qwen/Qwen3.5-0.8B").config | {"architectures": [hostile]}
    box.fill(json.dumps(config))
    box.press("Control+Enter")
    expect(page.locator("h1").first).to_contain_text("imgsrcxonerroralert1", timeout=SECONDS)
    assert page.locator('[data-testid="stMain"] img').count() == 0
    assert dialogs == []
