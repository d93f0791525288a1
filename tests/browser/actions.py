"""A person at a page: what is done with it, each thing in one word, and counted."""

from contextlib import suppress

from playwright.sync_api import FilePayload, Locator, Page, TimeoutError, expect

SECONDS = 60_000  # [ms] what a slow machine may take to load the page once
BEGINS = 500  # [ms] after which an action's run is over, or is said to run (pages/parts/whole_moves.py)
STANDS = '[data-test-script-state="notRunning"]'


def go_to(page: Page, name: str) -> None:
    """A page of the bar, until it stands: the boxes of the page before are alike, and what is typed there is of it."""
    page.get_by_role("link", name=name, exact=True).click()
    expect(page.locator('nav [aria-current="page"]')).to_have_text(name)
    expect(page.locator(STANDS)).to_be_visible()


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

    def paste(self, box: str, what: str) -> None:
        """A text pasted into a box, with no key and no click behind it."""
        self.count += 1
        self.page.get_by_role("textbox", name=box).focus()
        self.page.evaluate(
            """text => {
                const data = new DataTransfer();
                data.setData("text/plain", text);
                document.activeElement.dispatchEvent(new ClipboardEvent("paste", {clipboardData: data, bubbles: true}));
                document.execCommand("insertText", false, text);
            }""",
            what,
        )
        self.settle()

    def upload(self, file: FilePayload) -> None:
        """A file dropped on the page."""
        self.count += 1
        self.page.locator('[data-testid="stMain"] input[type="file"]').first.set_input_files([file])
        self.settle()

    def press(self, what: Locator) -> None:
        """A link or a button pressed."""
        self.count += 1
        what.click(timeout=SECONDS)
        self.settle()

    def open(self, page: str) -> None:
        """A page of the bar."""
        self.press(self.page.get_by_role("link", name=page, exact=True))

    def unfold(self, group: str) -> None:
        """A group of inputs opened."""
        self.count += 1
        self.page.get_by_test_id("stSidebar").get_by_text(group, exact=True).click(timeout=SECONDS)
        self.settle()

    def slide(self, slider: str, steps: int) -> None:
        """A slider moved so many stops in one go."""
        self.count += 1
        handle = self.page.get_by_role("slider", name=slider, exact=True)
        handle.focus()
        for _ in range(steps):
            handle.press("ArrowRight")
        self.settle()

    def settle(self) -> None:
        """Wait for the answer to the last action: until the run that it began, if it began one, is over.

        A page does not say of a quick one that it runs.
        """
        with suppress(TimeoutError):
            self.page.locator('[data-test-script-state="running"]').wait_for(timeout=BEGINS)
        expect(self.page.locator(STANDS)).to_be_visible(timeout=SECONDS)
