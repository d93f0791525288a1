"""A hand on a figure: dragged, clicked, moved by keys; what it shows is solved, and the last of it is in the address.

In the suite two deployments at some places of each axis; all ten at many with
`SIZING_ALL_STOPS=1 python -m pytest tests/browser/test_hand.py`.
"""

import os
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from sizing import Scenario, solve
from sizing.exchange.link import from_query, to_query
from sizing.explain.verdict import verdict as headline_of
from sizing.scenario.inputs import changed
from tests.browser.test_balance import open_balance, verdict
from tests.test_hand import DEPLOYMENTS, expected

EVERY = "SIZING_ALL_STOPS" in os.environ
PLACES = 60 if EVERY else 12  # of an axis, from its left end to its right one
DRAGGED = list(DEPLOYMENTS) if EVERY else ["worked example", "attention DP"]
# What is shown when the frame after the last move has been painted.
SHOWN = """async (name) => {
  for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
  return [
    document.querySelector(`[data-figure="${name}"] .hand-label`).innerText,
    document.querySelector('[data-testid="stMain"] h1').innerText,
  ];
}"""


def grip(page: Page, figure: str) -> Locator:
    """What can be taken hold of on a figure."""
    return page.locator(f'[data-figure="{figure}"] .hand-grip')


def axes(page: Page, figure: str) -> dict[str, float]:
    """Where the axes of a figure lie on the screen [px]."""
    page.locator(f'[data-figure="{figure}"]').scroll_into_view_if_needed()
    box = page.locator(f'[data-figure="{figure}"] .nsewdrag').first.bounding_box()
    assert box is not None
    return {name: float(box[name]) for name in ("x", "y", "width", "height")}


def take_hold(page: Page, figure: str) -> None:
    """Press on the line of a figure, or on its point."""
    axes(page, figure)
    box = grip(page, figure).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()


def page_of(scenario: Scenario) -> str:
    """The scenario's part of an address."""
    return "?" + "&".join(f"{name}={value}" for name, value in to_query(scenario).items())


@pytest.mark.parametrize("name", DRAGGED)
def test_every_number_under_a_drag_is_solved(page: Page, base_url: str, name: str) -> None:
    """Across the whole of both axes headline and label say what `solve` gives there."""
    scenario = Scenario.model_validate(DEPLOYMENTS[name])
    open_balance(page, f"{base_url}/{page_of(scenario)}")
    for figure, field in (("crossing", "L"), ("ratio", "mamba_full_memory_ratio")):
        area = axes(page, figure)
        if grip(page, figure).is_visible():
            scenario = dragged(page, scenario, figure, field, area)
        else:
            assert (figure, scenario.split) == ("ratio", "pin"), "only a pin has no ratio to take hold of"


def dragged(page: Page, scenario: Scenario, figure: str, field: str, area: dict[str, float]) -> Scenario:
    """Every place of an axis is looked at; where it was let go is in the address, and is the scenario of the page."""
    take_hold(page, figure)
    seen: dict[str, dict[str, str]] = {}
    for place in range(PLACES + 1):
        page.mouse.move(area["x"] + area["width"] * place / PLACES, area["y"] + area["height"] / 2)
        label, headline = page.evaluate(SHOWN, figure)
        stop, _, numbers = label.partition("\n")
        seen[stop.partition(" = ")[2].replace(",", "")] = {"headline": headline, "numbers": numbers}
    page.mouse.move(area["x"] + area["width"] * 0.36, area["y"] + 20)
    label, headline = page.evaluate(SHOWN, figure)
    for change in page.locator(".words .change").all():
        expect(change).to_have_css("opacity", "0.35")  # it is of what was set before
    page.mouse.up()
    assert len(seen) > PLACES * 0.8
    for value, shown in seen.items():
        wanted = expected(moved(scenario, field, value))
        assert shown == wanted | {"numbers": re.sub("</?b>", "", wanted["numbers"])}, f"{field} = {value}"
    last = label.partition("\n")[0].partition(" = ")[2].replace(",", "")
    page.wait_for_url(re.compile(rf"[?&]{field}={re.escape(last)}(&|$)"))
    expect(page.locator('[data-testid="stMain"] h1').first).to_have_text(headline)
    expect(page.locator(f'[data-figure="{figure}"] .hand-label')).to_be_hidden()
    there = moved(scenario, field, last)
    assert expected(there)["headline"] == headline
    return there


def moved(scenario: Scenario, field: str, value: str) -> Scenario:
    """The scenario with what a hand took."""
    ways: dict[str, Any] = {} if field == "L" else {"split": "ratio"}
    found = changed(scenario, **{field: int(value) if field == "L" else float(value)}, **ways)
    assert isinstance(found, Scenario)
    return found


def test_escape_takes_a_drag_back_and_a_double_click_still_resets_the_zoom(page: Page, base_url: str) -> None:
    """Headline and address are as before, and nothing is solved; neither takes an L."""
    open_balance(page, base_url)
    take_hold(page, "crossing")
    area = axes(page, "crossing")
    page.mouse.move(area["x"] + 40, 500, steps=3)
    expect(page.locator('[data-testid="stMain"] h1').first).not_to_contain_text("L = 9,216")
    page.keyboard.press("Escape")
    assert verdict(page) == "51 requests run at L = 9,216: the state pool binds."
    page.mouse.up()
    page.mouse.dblclick(area["x"] + 500, area["y"] + 40)
    page.wait_for_timeout(800)
    assert verdict(page) == "51 requests run at L = 9,216: the state pool binds."
    assert "L=" not in page.url


# What Streamlit does with the slider of L when it draws it with what stood there a moment ago: nobody moves it.
SLIDER_SET = """async (words) => {
  const slider = document.querySelector('[class*="st-key-L_slider"] input');
  slider.setAttribute('aria-valuetext', words);
  await new Promise(requestAnimationFrame);
}"""


def test_a_click_and_keys_set_l_and_back_undoes_them(page: Page, base_url: str) -> None:
    """A click takes what is under it, an arrow key the next stop; the browser's back button takes each back."""
    open_balance(page, base_url)
    area = axes(page, "crossing")
    page.mouse.click(area["x"] + area["width"] * 0.75, area["y"] + 40)
    page.wait_for_url("**/?L=*")
    clicked, label = page.url, page.locator('[data-figure="crossing"] .hand-label')
    expect(label).to_be_hidden()  # the page is solved for it
    headline = verdict(page)
    page.evaluate(SLIDER_SET, "3,072")
    assert not label.is_visible()
    assert verdict(page) == headline
    grip(page, "crossing").focus()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url(lambda url: url != clicked)
    expect(label).to_be_hidden()
    assert verdict(page) != headline
    page.go_back()
    page.wait_for_url(clicked)
    expect(page.locator('[data-testid="stMain"] h1').first).to_have_text(headline)
    page.go_back()
    expect(page.get_by_text("51 requests run at L = 9,216")).to_be_visible()
    page.go_forward()
    page.wait_for_url(clicked)


@pytest.mark.parametrize("figure", ["crossing", "ratio"])
def test_a_page_presented_before_a_hand_is_answered_says_its_own_headline(
    page: Page, base_url: str, figure: str
) -> None:
    """One figure goes, the other has no hand any more: neither leaves in the headline what it found there."""
    open_balance(page, f"{base_url}/?L=278528&D=4")
    area, before = axes(page, figure), verdict(page)
    take_hold(page, figure)
    page.mouse.move(area["x"] + area["width"] * 0.25, area["y"] + 40, steps=5)
    page.mouse.up()
    page.evaluate("document.querySelector('.st-key-present button').click()")
    expect(page.locator('[data-figure="memory"]')).to_have_count(0)
    page.wait_for_timeout(4500)  # as long as a hand waits for its page
    found = from_query(dict(parse_qsl(urlsplit(page.url).query)))[0]
    assert (verdict(page), before) == (
        headline_of(solve(found)).headline,
        "4 requests run at L = 278,528: the KV pool binds.",
    )


def test_the_slider_is_followed_while_it_is_dragged(page: Page, base_url: str) -> None:
    """Streamlit hears of a drag at its end; headline and figure follow before."""
    open_balance(page, base_url)
    track = page.locator('[class*="st-key-L_slider"]').bounding_box()
    assert track is not None
    height = track["y"] + track["height"] * 0.75
    page.mouse.move(track["x"] + track["width"] * 0.5, height)
    page.mouse.down()
    page.mouse.move(track["x"] + track["width"] * 0.8, height, steps=4)
    expect(page.locator('[data-testid="stMain"] h1').first).to_contain_text("the KV pool binds")
    assert "L=" not in page.url
    label, headline = page.evaluate(SHOWN, "crossing")
    page.mouse.up()
    page.wait_for_url("**/?L=*")
    last = label.partition("\n")[0].partition(" = ")[2].replace(",", "")
    assert page.url.endswith(f"L={last}")
    expect(page.locator('[data-testid="stMain"] h1').first).to_have_text(headline)


def test_both_inputs_of_a_sweep_are_dragged(page: Page, base_url: str) -> None:
    """The point of the sweep says what runs in the cell under it; both inputs are set when it is let go."""
    page.goto(f"{base_url}/compare")
    expect(page.locator('[data-figure="sweep"] .main-svg').first).to_be_visible()
    area = axes(page, "sweep")
    take_hold(page, "sweep")
    page.mouse.move(area["x"] + area["width"] * 0.7, area["y"] + area["height"] * 0.4, steps=4)
    (label, _) = page.evaluate(SHOWN, "sweep")
    page.mouse.up()
    found = re.fullmatch(r"L ([\d,]+), r ([\d.]+): ([\d,]+) run", label)
    assert found is not None
    L, ratio, runs = found[1].replace(",", ""), found[2], found[3].replace(",", "")
    page.wait_for_url(re.compile(rf"[?&]L={L}(&|$)"))
    page.wait_for_url(re.compile(rf"[?&]mamba_full_memory_ratio={ratio}"))
    there = Scenario(L=int(L), mamba_full_memory_ratio=float(ratio))
    assert expected(there)["numbers"].startswith(f"<b>{int(runs):,} run</b>")


def test_another_row_of_stops_is_another_place_in_it(page: Page, base_url: str) -> None:
    """An L that was typed is a stop of its own: gone, it leaves the hand on the L that the slider says.

    At no moment is any other L said, and what the grip says is what is set.
    """
    open_balance(page, f"{base_url}/?L=10000")
    page.evaluate(
        """() => {
          const heading = () => document.querySelector('[data-testid="stMain"] h1').innerText.match(/L = ([\\d,]+)/)[1];
          window.said = [heading()];
          new MutationObserver(() => window.said.push(heading())).observe(
            document.querySelector('[data-testid="stMain"]'), { characterData: true, childList: true, subtree: true });
        }"""
    )
    slider = page.get_by_test_id("stSidebar").get_by_role("slider", name="L, context per request [tokens]").first
    slider.focus()
    slider.press("ArrowRight")
    expect(page).to_have_url(re.compile(r"L=10240(&|$)"))
    expect(page.locator('[data-figure="ratio"]')).to_have_attribute("aria-label", re.compile("L = 10,240"))
    expect(page.locator('[data-testid="stMain"] h1').first).to_contain_text("L = 10,240")
    expect(grip(page, "crossing")).to_have_attribute("aria-valuetext", re.compile("L = 10,240"))
    assert set(page.evaluate("window.said")) <= {"10,000", "10,240"}
