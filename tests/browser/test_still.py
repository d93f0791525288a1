"""The still of a figure is the picture that Plotly draws afterwards: every word where Plotly has it."""

from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from sizing import Scenario
from tests.browser.test_hand import page_of
from tests.test_hand import DEPLOYMENTS

NEAR = 1.5  # [px] Plotly rounds the boxes of its annotations
# Each text of a figure's drawing with its place in the figure.
TEXTS = """(drawing) => [...document.querySelectorAll('[data-figure]')].map((figure) => {
  const edge = figure.getBoundingClientRect();
  return [...figure.querySelectorAll(drawing + ' text')].filter((text) => text.getBoundingClientRect().width)
    .map((text) => [text.textContent, text.getBoundingClientRect()])
    .map(([words, box]) => [words, box.left - edge.left, box.top - edge.top, box.width, box.height]);
})"""


@pytest.mark.parametrize("name", ["worked example", "speculation", "balanced under DCP", "few requests"])
def test_a_still_has_every_word_where_plotly_has_it(page: Page, base_url: str, name: str) -> None:
    """Before plotly.js is there the figures are readable; when it comes, nothing moves."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/plotly.min.js*", hold)
    page.goto(f"{base_url}/{page_of(Scenario.model_validate(DEPLOYMENTS[name]))}")
    expect(page.locator(".still")).to_have_count(3)
    page.evaluate("document.fonts.ready")
    stills = page.evaluate(TEXTS, ".still")
    page.wait_for_timeout(200)
    for route in held:
        route.continue_()
    expect(page.locator(".still")).to_have_count(0)
    expect(page.locator("[data-figure].js-plotly-plot")).to_have_count(3)
    for still, plotly in zip(stills, page.evaluate(TEXTS, ".main-svg"), strict=True):
        found, wanted = by_words(still), by_words(plotly)
        assert found.keys() == wanted.keys()
        far = {
            words: (places, wanted[words])
            for words, places in found.items()
            if any(
                abs(a - b) > NEAR
                for one, other in zip(places, wanted[words], strict=True)
                for a, b in zip(one, other, strict=True)
            )
        }
        assert far == {}


def by_words(texts: list[Any]) -> dict[str, list[list[float]]]:
    """The places of each text, in order; some words stand twice."""
    found: dict[str, list[list[float]]] = {}
    for words, *place in texts:
        found.setdefault(words.replace("\u200b", ""), []).append(place)
    return {words: sorted(places) for words, places in found.items()}
