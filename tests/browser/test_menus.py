"""A menu stays open until its reader closes it, whatever a rerun brings meanwhile."""

import re
from collections.abc import Callable

from playwright.sync_api import Page, WebSocketRoute, expect

SECONDS = 60_000  # [ms] what a slow machine may take to load the page once
AT_ONCE = 200  # [ms] within which a menu answers its reader


def hold_answers(page: Page) -> Callable[[bool], None]:
    """Lets a test hold back what the server says, as a slow one does, and let go of it."""
    waiting: list[str | bytes] = []
    holding, sides = [False], list[WebSocketRoute]()

    def connect(route: WebSocketRoute) -> None:
        sides.append(route)
        server = route.connect_to_server()
        server.on_message(lambda message: waiting.append(message) if holding[0] else route.send(message))

    def hold(held: bool) -> None:
        holding[0] = held
        while waiting and not held:
            sides[-1].send(waiting.pop(0))

    page.route_web_socket(re.compile("_stcore/stream"), connect)
    return hold


def open_menu(page: Page, key: str) -> None:
    """As a hand does: with the pointer, where the field is when the sidebar has been scrolled to it."""
    field = page.locator(f".st-key-{key} input[role=combobox]")
    field.evaluate("(field) => field.scrollIntoView({ block: 'nearest' })")
    page.wait_for_timeout(100)
    box = field.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 20, box["y"] + box["height"] / 2)
    expect(page.get_by_role("option").first).to_be_visible()


def is_at(page: Page, key: str) -> bool:
    """The open menu hangs at its field, at most a few pixels away."""
    field = page.locator(f".st-key-{key} input[role=combobox]").bounding_box()
    menu = page.get_by_test_id("stSelectboxVirtualDropdown").bounding_box()
    assert field is not None
    assert menu is not None
    above, below = abs(menu["y"] + menu["height"] - field["y"]), abs(menu["y"] - field["y"] - field["height"])
    return min(above, below) < 20


# The menu chosen in, how many entries further down, the one opened then, what is typed there.
PAIRS = [
    ("gpu", 3, "release", ""),  # a rest that was typed is gone: words about it come above what is seen of the sidebar
    ("model", 3, "kv_cache_dtype", ""),  # the model brings another dtype into the box
    ("model", 1, "gpu", "H200"),
    ("kv_cache_dtype", 1, "mamba_ssm_dtype", ""),
    ("release", 2, "mamba_radix_cache_strategy", ""),
]


def test_a_menu_opened_after_a_choice_stays_open(page: Page, base_url: str) -> None:
    """The answer to the choice comes while the next menu is open, and changes nothing about that."""
    hold = hold_answers(page)
    page.set_viewport_size({"width": 1440, "height": 500})
    page.goto(f"{base_url}/?rest_gib=40")
    expect(page.locator("[data-figure].js-plotly-plot")).to_have_count(3, timeout=SECONDS)
    for first, steps, then, typed in PAIRS:
        before = page.url
        open_menu(page, first)
        for _ in range(steps):
            page.keyboard.press("ArrowDown")
        hold(True)
        page.keyboard.press("Enter")
        expect(page.get_by_role("option")).to_have_count(0)
        open_menu(page, then)
        page.keyboard.type(typed)
        hold(False)
        page.wait_for_function("(before) => location.href !== before", arg=before)
        page.wait_for_timeout(AT_ONCE)
        assert page.get_by_role("option").first.is_visible(), f"{then} closed by itself after {first}"
        assert is_at(page, then), f"{then} hangs elsewhere after {first}"
        if typed:
            expect(page.locator(f".st-key-{then} input[role=combobox]")).to_have_value(typed)
        page.keyboard.press("Escape")
        page.wait_for_timeout(AT_ONCE)
        expect(page.get_by_role("option")).to_have_count(0)
    for close in (click_beside, scroll_sidebar, leave_field):
        open_menu(page, "release")
        close(page)
        page.wait_for_timeout(3 * AT_ONCE)
        expect(page.get_by_role("option")).to_have_count(0)


def click_beside(page: Page) -> None:
    """On the page's bar, where nothing is."""
    page.mouse.click(900, 30)


def leave_field(page: Page) -> None:
    """With the keyboard."""
    page.keyboard.press("Tab")


def scroll_sidebar(page: Page) -> None:
    """With the wheel, a menu being open."""
    page.mouse.move(150, 5)
    page.mouse.wheel(0, -50)
