"""The figures of traffic in a real Chromium: no label is cut or covered, at page widths and on a slide."""

import json
from collections.abc import Callable

from playwright.sync_api import Page
from plotly.offline import get_plotlyjs

from sizing.figures import LIGHT, painted
from sizing.figures.theme import Figure
from sizing.figures.traffic import lengths_figure, needs_figure, overflow_figure
from sizing.traffic.running import Traffic
from tests.browser.labels import CLIPPED, OVERLAPPING, STRUCK
from tests.traffic_cases import DEPLOYMENTS, traffic_case

# [px] About what a page of 1440 leaves, where labels have least room. The font here is wider than the page's own, so
# half a column is taken as 560 instead of 482.
WIDTHS = {"lengths": 560, "overflow": 560, "needs": 980}
MAKE: dict[str, Callable[[Traffic], Figure]] = {
    "lengths": lambda traffic: lengths_figure(traffic.mix),
    "needs": needs_figure,
    "overflow": overflow_figure,
}
SLIDE = (1280, 720)  # [px]
DRAW = """async ([figure, width, height]) => {
  const place = document.querySelector('[data-figure]');
  place.style.width = width + 'px';
  await Plotly.newPlot(place, figure.data, {...figure.layout, width, height: height ?? figure.layout.height});
}"""


def test_no_label_is_cut_or_covered(page: Page) -> None:
    """Every word lies inside its figure and over no other, in every case; on a slide in the usual one."""
    page.set_content("<body style='margin:0'><div data-figure='traffic'></div>")
    page.add_script_tag(content=get_plotlyjs())
    wrong: list[str] = []
    for which, make in MAKE.items():
        sizes = dict.fromkeys(DEPLOYMENTS, (WIDTHS[which], None))
        for name, (width, height) in [*sizes.items(), ("usual", SLIDE)]:
            figure = painted(make(traffic_case(name)), LIGHT)
            page.evaluate(DRAW, [json.loads(json.dumps(figure)), width, height])
            found = [each for asked in (CLIPPED, OVERLAPPING, STRUCK) for each in page.evaluate(asked)]
            wrong += [f"{which} of {name} at {width} px: {each}" for each in found]
    assert wrong == []
