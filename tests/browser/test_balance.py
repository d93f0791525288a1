"""The pages in a real Chromium: what only a browser shows."""

import re

from playwright.sync_api import Locator, Page, WebSocketRoute, expect

from sizing import Scenario, Split, solve
from sizing.answers.recommended import recommended
from tests.browser.actions import go_to

FIGURES = ("crossing", "ratio", "memory")
SECONDS = 30_000  # [ms] what a slow machine may take to load the page once
PAPER = """() => getComputedStyle(document.querySelector('[data-figure="crossing"] .main-svg')).backgroundColor"""
# How many observers of the page's own scripts are at work: a component's script has its name.
WATCHERS = """
const working = new Set();
window.watchers = () => working.size;
for (const kind of ["MutationObserver", "ResizeObserver"]) {
    window[kind] = class extends window[kind] {
        observe(...what) {
            super.observe(...what);
            if (new Error().stack.includes("st-bidi")) working.add(this);
        }
        disconnect() {
            super.disconnect();
            working.delete(this);
        }
    };
}
"""


def open_balance(page: Page, url: str) -> None:
    """Load a page and wait until all three figures stand."""
    page.goto(url)
    for name in FIGURES:
        expect(page.locator(f'[data-figure="{name}"] .main-svg').first).to_be_visible(timeout=SECONDS)


def exact(page: Page) -> Locator:
    """The box in which an exact L is typed."""
    return page.get_by_role("textbox", name="L, exact")


def verdict(page: Page) -> str:
    """The first line of the page."""
    return page.locator('[data-testid="stMain"] h1').first.inner_text()


def press(page: Page, label: str, key: str) -> None:
    """One key on a slider, as a person would."""
    handle = page.get_by_role("slider", name=label).first
    handle.focus()
    page.keyboard.press(key)


def test_a_slider_move_changes_verdict_figures_and_link(page: Page, base_url: str) -> None:
    """Moving L changes the words, all three figures and the address, and the address restores all of it; figures are
    light on a light page and dark on a dark one.
    """
    page.emulate_media(color_scheme="light")
    open_balance(page, base_url)
    assert verdict(page) == "51 requests run at L = 9,216: the state pool binds."
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("51 requests run at L = 10,240: the state pool binds.")).to_be_visible()
    for name in FIGURES:
        expect(page.locator(f'[data-figure="{name}"]')).to_contain_text("L = 10,240")
    page.wait_for_url("**/?L=10240")

    again = page.context.new_page()
    again.emulate_media(color_scheme="dark")
    open_balance(again, page.url)
    expect(again.get_by_text("51 requests run at L = 10,240: the state pool binds.")).to_be_visible()
    expect(exact(again)).to_have_value("10240")
    assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
    assert again.evaluate(PAPER) == "rgb(14, 17, 23)"


def test_figures_follow_theme_and_window_however_often_the_page_moved(page: Page, base_url: str) -> None:
    """A theme or a width changed after moves and other pages shows the figures of the last move; and what watches for
    it is there once, not once for each move.
    """
    page.add_init_script(WATCHERS)
    page.emulate_media(color_scheme="light")
    open_balance(page, base_url)
    watchers = page.evaluate("watchers()")
    assert watchers > 0
    for moved in (10_240, 11_264, 12_288):
        press(page, "L, context per request", "ArrowRight")
        expect(page.locator('[data-figure="memory"]')).to_contain_text(f"L = {moved:,}")
        page.wait_for_url(f"**/?L={moved}")
    assert page.evaluate("watchers()") == watchers
    go_to(page, "Model")
    go_to(page, "Balance")
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 1100, "height": 900})
    for name in FIGURES:
        figure = page.locator(f'[data-figure="{name}"]')
        expect(figure.locator(".main-svg").first).to_be_visible()
        expect(figure.locator(".main-svg").first).to_have_css("background-color", "rgb(14, 17, 23)")
        expect(figure).to_contain_text("L = 12,288")
        place = page.evaluate("name => document.querySelector(`[data-figure=${name}]`).clientWidth", name)
        expect(figure.locator(".main-svg").first).to_have_attribute("width", str(place))
    assert page.evaluate("watchers()") == watchers


def test_d_and_dcp_size_move_too(page: Page, base_url: str) -> None:
    """The other two sliders drive the same numbers."""
    open_balance(page, f"{base_url}/?L=65536")
    press(page, "D, draft tokens", "ArrowRight")
    page.wait_for_url("**D=1*")
    press(page, "dcp_size", "ArrowRight")
    page.wait_for_url("**dcp_size=2*")
    expect(page.locator('[data-figure="crossing"]')).to_contain_text("dcp_size = 2")


def test_the_very_first_slider_move_counts(page: Page, fresh_server: str) -> None:
    """On a server that nobody has visited, the first move is not lost."""
    open_balance(page, fresh_server)
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("at L = 10,240")).to_be_visible()


def test_keys_back_and_an_exact_length(page: Page, base_url: str) -> None:
    """The browser's back button undoes a move, forward does it again. Keys faster than the page answers still end
    where they should. A number between the slider's stops is taken, and the slider stays usable from there.
    """
    open_balance(page, base_url)
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("at L = 10,240")).to_be_visible()
    page.wait_for_url("**/?L=10240")
    page.go_back()
    expect(page.get_by_text("at L = 9,216")).to_be_visible()
    page.go_forward()
    expect(page.get_by_text("at L = 10,240")).to_be_visible()
    page.wait_for_url("**/?L=10240")
    slider = page.get_by_role("slider", name="L, context per request").first
    expect(slider).to_have_attribute("aria-valuetext", "10,240")
    slider.focus()
    for _ in range(8):
        page.keyboard.press("ArrowRight")
    expect(page.get_by_text("at L = 20,480")).to_be_visible()
    page.wait_for_url("**/?L=20480")
    box = exact(page)
    box.fill("10001")
    box.press("Enter")
    expect(page.get_by_text("at L = 10,001")).to_be_visible()
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("at L = 10,240")).to_be_visible()
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("at L = 11,264")).to_be_visible()


WRONG = {
    "0": "L must be 1 or more, not “0”.",
    "-3": "L must be 1 or more, not “-3”.",
    "": "L must be a whole number",
    "1e18": "L must be 16777216 or less, not “1000000000000000000”.",
    "3.7": "L must be a whole number, not “3.7”.",
    "32 thousand": "L must be a whole number, not “32 thousand”.",
}


def test_problem_typed_into_the_page(page: Page, base_url: str) -> None:
    """A wrong number gets a sentence and is never read as another one, nothing else is lost, and the next right one
    brings the page back.
    """
    open_balance(page, f"{base_url}/?D=4")
    box, said = exact(page), page.get_by_test_id("stAlert")
    for right, (typed, sentence) in enumerate(WRONG.items(), start=8192):
        box.fill(typed)
        box.press("Enter")
        expect(said.get_by_text(sentence), typed).to_be_visible()
        expect(box, typed).to_have_value(typed)
        box.fill(str(right))
        box.press("Enter")
        expect(page.get_by_text(f"at L = {right:,}"), f"after {typed}").to_be_visible()
        expect(said.get_by_text(sentence), f"after {typed}").to_have_count(0)
        page.wait_for_url(re.compile(rf"\?(?=.*\bL={right}\b)(?=.*\bD=4\b)"))


def test_a_wrong_link_is_reported_as_text(page: Page, base_url: str) -> None:
    """What a link got wrong is said in a sentence; its text never becomes markup."""
    open_balance(page, f"{base_url}/?L=abc&D=4&name=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E&%3Cb%3E=1")
    expect(page.get_by_text("L must be a whole number, not “abc”. L stays at 9216.")).to_be_visible()
    expect(page.get_by_text("28 requests run at L = 9,216")).to_be_visible()
    assert page.locator('[data-testid="stMain"] img').count() == 0


def test_what_one_moves_stands_in_sight(page: Page, base_url: str) -> None:
    """In the order of the task, whole on a laptop's screen, without scrolling the sidebar; a slider has one name."""
    open_balance(page, base_url)
    for slider in ("L, context per request [tokens]", "D, draft tokens", "dcp_size"):
        expect(page.get_by_role("slider", name=slider, exact=True)).to_have_count(1)
    order = ("model", "gpu", "mamba_ssm_dtype", "rest_gib", "L", "D", "split", "mamba_full_memory_ratio", "dcp_size")
    tops = [box["y"] for name in order if (box := page.locator(f".st-key-{name}").bounding_box())]
    assert len(tops) == len(order)
    assert tops == sorted(tops)
    for name in (*order, "kv_cache_dtype", "max_running_requests"):
        box = page.locator(f".st-key-{name}").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 900, name


def test_typed_inputs_survive_a_visit_to_the_other_page(page: Page, base_url: str) -> None:
    """What was typed is still there on the other page and back again, and in the address."""
    open_balance(page, base_url)
    exact(page).fill("12345")
    exact(page).press("Enter")
    expect(page.get_by_text("at L = 12,345")).to_be_visible()
    rest = page.locator(".st-key-rest_gib input")
    rest.fill("40")
    rest.press("Enter")
    page.wait_for_url("**rest_gib=40*")
    go_to(page, "Reference")
    expect(page.get_by_role("heading", name="Reference", exact=True)).to_be_visible()
    expect(exact(page)).to_have_value("12345")
    page.go_back()
    expect(page.get_by_text("at L = 12,345")).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Reference", exact=True)).to_be_visible()
    go_to(page, "Balance")
    expect(page.get_by_text("at L = 12,345")).to_be_visible()
    expect(rest).to_have_value("40")
    page.wait_for_url("**rest_gib=40*")


def test_what_was_just_typed_goes_along_and_the_flag_is_copied(page: Page, base_url: str) -> None:
    """A click on another page takes a number that no key has confirmed, and that the server has answered before the
    browser hears of it; flags and folds work as they look.
    """
    held: list[str | bytes] | None = None
    browser: WebSocketRoute | None = None

    def tell(message: str | bytes) -> None:
        assert browser is not None
        browser.send(message) if held is None else held.append(message)

    def connect(route: WebSocketRoute) -> None:
        nonlocal browser
        browser = route
        route.connect_to_server().on_message(tell)

    page.route_web_socket("**/_stcore/stream", connect)
    open_balance(page, base_url)
    exact(page).fill("32768")
    held = []
    exact(page).blur()
    page.wait_for_timeout(500)  # for the answer, which waits in turn
    page.get_by_role("link", name="Reference").click()
    page.wait_for_timeout(100)
    waiting, held = held, None
    for message in waiting:
        tell(message)
    page.wait_for_url("**/reference?L=32768")
    go_to(page, "Balance")
    expect(page.get_by_text("at L = 32,768")).to_be_visible()
    found = recommended(solve(Scenario(L=32_768)))
    assert found is not None
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator(".change").get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == found.flag
    whole = page.locator("details", has_text="Launch flags, besides the model")
    expect(whole.locator("code").last).to_be_hidden()
    whole.locator("summary").click()
    expect(whole.locator("code").last).to_contain_text(found.flag)
    page.get_by_text("Scheduler and cache", exact=True).click()
    page.get_by_text("--disable-radix-cache", exact=True).click()
    page.wait_for_url("**disable_radix_cache=true*")
    expect(whole.locator("code").last).to_contain_text("--disable-radix-cache")


def test_a_pin_can_be_explored_like_a_ratio(page: Page, base_url: str) -> None:
    """With pinned slots every other input still moves, an emptied box is a sentence, and the pin is never lost."""
    open_balance(page, base_url)
    page.get_by_role("radio", name="pin").click()
    pinned = page.get_by_role("textbox", name="Pinned slots")
    pinned.fill("300")
    pinned.press("Enter")
    expect(page.get_by_text("60 requests run at L = 9,216")).to_be_visible()
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("60 requests run at L = 10,240")).to_be_visible()
    pinned.fill("")
    pinned.press("Enter")
    expect(page.get_by_text("--max-mamba-cache-size is empty")).to_be_visible()
    pinned.fill("371")
    pinned.press("Enter")
    expect(page.get_by_text("at L = 10,240")).to_be_visible()
    page.get_by_role("radio", name="ratio").click()
    expect(page.get_by_text("51 requests run at L = 10,240")).to_be_visible()
    press(page, "D, draft tokens", "ArrowRight")
    page.wait_for_url("**D=1*")
    press(page, "L, context per request", "ArrowLeft")
    expect(page.get_by_text("at L = 9,216")).to_be_visible()
    page.get_by_role("radio", name="pin").click()
    expect(pinned).to_have_value("371")
    page.wait_for_url("**max_mamba_cache_size=371*")


def test_the_slider_stands_at_l_on_every_page(page: Page, base_url: str) -> None:
    """After visits to the other page the slider still says what the box says."""
    open_balance(page, base_url)
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("at L = 10,240")).to_be_visible()
    slider = page.get_by_role("slider", name="L, context per request").first
    for link in ("Reference", "Balance", "Reference", "Balance"):
        go_to(page, link)
        page.wait_for_url("**reference?L=10240" if link == "Reference" else "**/?L=10240")
        expect(exact(page)).to_have_value("10240")
        expect(slider).to_have_attribute("aria-valuetext", "10,240")
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("at L = 11,264")).to_be_visible()


def test_a_wrong_input_survives_a_visit_to_the_other_page(page: Page, base_url: str) -> None:
    """A number that was refused is still in its box after a visit, to be corrected."""
    open_balance(page, f"{base_url}/?D=4")
    exact(page).fill("0")
    exact(page).press("Enter")
    expect(page.get_by_text("L must be 1 or more, not “0”.")).to_be_visible()
    go_to(page, "Reference")
    expect(page.get_by_text("L must be 1 or more, not “0”.")).to_be_visible()
    go_to(page, "Balance")
    expect(exact(page)).to_have_value("0")
    exact(page).fill("8K")
    exact(page).press("Enter")
    expect(page.get_by_text("at L = 8,192")).to_be_visible()
    page.wait_for_url("**D=4*")


def test_the_ratio_is_still_there_when_its_box_comes_back(page: Page, base_url: str) -> None:
    """Looking at the balanced split and back loses nothing."""
    open_balance(page, base_url)
    ratio = page.get_by_role("spinbutton", name="Ratio r")
    ratio.fill("2")
    ratio.press("Enter")
    page.wait_for_url("**mamba_full_memory_ratio=2*")
    page.get_by_role("radio", name="balanced").click()
    expect(page.get_by_text("Nothing to change: no split and no request count runs more.")).to_be_visible()
    page.get_by_role("radio", name="ratio").click()
    expect(ratio).to_have_value("2")
    page.wait_for_url("**mamba_full_memory_ratio=2*")


def test_hovering_zooming_and_the_table(page: Page, base_url: str) -> None:
    """The whole range can be explored under the pointer, without a round trip: clamp, cap and what binds. A figure is
    updated in place, so a reader's zoom is not thrown away. Its table ends where its axis does.
    """
    open_balance(page, base_url)
    ask = """() => document.querySelector('[data-figure="crossing"]')._fullLayout.xaxis.range.join()"""
    whole = page.evaluate(ask)
    area = page.locator('[data-figure="crossing"] .nsewdrag').bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + area["width"] * 0.25, area["y"] + area["height"] / 2)
    hover = page.locator('[data-figure="crossing"] .hoverlayer')
    expect(hover).to_contain_text("mamba clamp 51")
    expect(hover).to_contain_text("state pool binds")
    page.mouse.move(area["x"] + area["width"] * 0.9, area["y"] + area["height"] / 2)
    expect(hover).to_contain_text("KV pool binds")
    page.mouse.move(area["x"] + 200, area["y"] + 50)
    page.mouse.down()
    page.mouse.move(area["x"] + 600, area["y"] + 250, steps=5)
    page.mouse.up()
    zoomed = page.evaluate(ask)
    assert zoomed != whole
    press(page, "L, context per request", "ArrowRight")
    expect(page.get_by_text("at L = 10,240")).to_be_visible()
    expect(page.locator('[data-figure="crossing"]')).to_contain_text("L = 10,240")
    assert page.evaluate(ask) == zoomed
    page.locator('[data-figure="crossing"]').get_by_role("button", name="Data of: ").click()
    cells = page.get_by_role("dialog").get_by_role("row").last.get_by_role("cell").all_inner_texts()
    last = solve(Scenario(L=2**20)).now
    assert isinstance(last, Split)
    assert cells == [f"{last.clamp:,}", f"{last.kv_cap:,}", "", f"{last.runs:,}"]


def test_a_figure_is_saved_in_the_page_s_letters(page: Page, base_url: str) -> None:
    """An image shows no font of the page it comes from, and in another the words run out of their grounds."""
    open_balance(page, base_url)
    figure = page.locator('[data-figure="crossing"]')
    figure.hover()
    files = {}
    for kind in ("PNG", "SVG"):
        with page.expect_download() as download:
            figure.locator(f'[data-title$="{kind}"]').click()
        assert download.value.suggested_filename == f"hybrid-pool-sizing-crossing.{kind.lower()}"
        files[kind] = download.value.path().read_bytes()
    assert files["PNG"][12:24] == b"IHDR" + (2560).to_bytes(4) + (1440).to_bytes(4)
    assert (
        b'@font-face { font-family: "Source Sans"; font-weight: 100 900; src: url(data:font/woff2;base64,'
        in files["SVG"]
    )
    assert "51 run" in files["SVG"].decode()
