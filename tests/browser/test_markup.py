"""In a browser: what strangers wrote is read as it was written, and nothing of it can be followed or loads."""

from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

NAME = ":streamlit: www.evil.example a -- b http://evil.example"
CONFIG = '{"model_type": "www.evil.example a@evil.example :smile: $x^2$ **b** :material/home: <img src=x>"}'
LINKS = "a[href^='http://evil'], a[href^='http://www'], a[href^='mailto']"
ALIVE = f"{LINKS}, img[src='x'], img[alt='Streamlit logo'], .katex, [data-testid='stMarkdownContainer'] em"


@pytest.mark.parametrize("path", ["?", "?present&", "compare?", "compare?present&", "target?want=www.evil.example&"])
def test_a_name_in_a_link(page: Page, base_url: str, path: str) -> None:
    """The name of a scenario, and what is wanted."""
    page.goto(f"{base_url}/{path}name={quote(NAME)}")
    expect(page.locator("h1, h2, [data-testid='stAlert']").first).to_be_visible()
    expect(page.locator(ALIVE)).to_have_count(0)


def test_an_error_says_what_stands_there(page: Page, base_url: str) -> None:
    """A value of a link that is wrong, letter by letter."""
    page.goto(f"{base_url}/?release={quote('www.evil.example:smile:')}")
    expect(page.get_by_test_id("stAlert").first).to_be_visible()
    said = page.get_by_test_id("stAlert").first.inner_text().replace("\N{WORD JOINER}", "")
    assert "www.evil.example:smile:" in said
    expect(page.locator(ALIVE)).to_have_count(0)


def test_a_model_type(page: Page, base_url: str) -> None:
    """A config.json of a stranger's."""
    page.goto(f"{base_url}/model")
    page.get_by_text("A model of your own: config.json").click()
    box = page.get_by_role("textbox", name="or paste config.json")
    box.fill(CONFIG)
    box.press("Control+Enter")
    alert = page.get_by_test_id("stAlert").first
    expect(alert).to_contain_text("evil")
    said = alert.inner_text().replace("\N{WORD JOINER}", "")
    assert "“www.evil.example a@evil.example :smile: …”" in said
    expect(page.locator(ALIVE)).to_have_count(0)
