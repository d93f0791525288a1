"""The figures of traffic in a real Chromium: no label is cut or covered, at page widths and on a slide."""

import json

import pytest
from playwright.sync_api import Page
from plotly.offline import get_plotlyjs

from sizing.figures import LIGHT, painted
from sizing.figures.traffic import lengths_figure, needs_figure, overflow_figure
from tests.browser.labels import CLIPPED, OVERLAPPING
from tests.traffic_cases import DEPLOYMENTS, traffic_case

# [px] About what a page of 1440 and of 1920 leaves, and a slide. The font here is wider than the page's own, so half a
# column is taken as 560 instead of 482.
WIDTHS = {"lengths": (560, 722, 1280), "overflow": (560, 722, 1280), "needs": (980, 1460, 1280)}
SLIDE = (1280, 720)  # [px]
DRAW = """async ([figure, width, height]) => {
  const place = document.querySelector('[data-figure]');
  place.style.width = width + 'px';
  await Plotly.newPlot(place, figure.data, {...figure.layout, width, height: height ?? figure.layout.height});
}"""


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_no_label_is_cut_or_covered(page: Page, name: str) -> None:
    """Every word of every figure lies inside its figure and over no other."""
    traffic = traffic_case(name)
    figures = {
        "lengths": lengths_figure(traffic.mix),
        "needs": needs_figure(traffic),
        "overflow": overflow_figure(traffic),
    }
    page.set_content("<body style='margin:0'><div data-figure='traffic'></div>")
    page.add_script_tag(content=get_plotlyjs())
    for which, figure in figures.items():
        for width in WIDTHS[which]:
            height = SLIDE[1] if width == SLIDE[0] else None
            page.evaluate(DRAW, [json.loads(json.dumps(painted(figure, LIGHT))), width, height])
            assert (which, width, page.evaluate(CLIPPED)) == (which, width, [])
            assert (which, width, page.evaluate(OVERLAPPING)) == (which, width, [])
