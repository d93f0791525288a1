"""The page Log reads a running server: a simulated hour is named for what it was, and the reader can go on from it."""

import json
import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from sizing.basics.units import count
from sizing.command import read_command
from sizing.exchange.server_answer import told
from sizing.server.example import FILE, example
from sizing.server.texts import read_texts
from tests.server_simulation import example_log
from tests.server_texts import UNIFIED_BOOT, Server
from tests.test_pages import codes
from tests.test_pages import words as words_of
from tests.test_server_simulation import SETTINGS, hour, starved

TIMEOUT = 120
STARVED = {
    "state": r"State pool admitted nobody (\d+) % of the time",
    "kv": r"KV short (\d+) % of the time",
    "cap": r"The cap of 20 requests held (\d+) % of the time",
    "none": r"No request waited|(?:full|short|short with neither) (0|0\.\d+|1) % of the time",
}


@pytest.fixture
def page() -> AppTest:
    """The page, opened without a log."""
    return AppTest.from_file("../app.py", default_timeout=TIMEOUT).run().switch_page("pages/log.py").run()


def words(page: AppTest) -> str:
    """All words of the page, which shows no fault of its own."""
    assert not page.exception
    return words_of(page)


def paste(page: AppTest, text: str, command: str = "") -> str:
    """What the page says of a text."""
    page.text_area(key="log_text").set_value(text)
    page.text_area(key="command_text").set_value(command)
    return words(page.run())


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("form", ["lines", "scrapes"])
def test_a_simulated_hour_on_the_page(page: AppTest, name: str, form: str) -> None:
    """The pool that was starved and for how long, the slots held and the retractions made, within rounding."""
    truth, setting, why = hour(name), SETTINGS[name], starved(name)
    said = paste(page, getattr(truth, form))
    found = re.search(STARVED[why], said)
    assert found is not None, said[:400]
    if why != "none":
        share = max(truth.blocked[kind] for kind in ("rows", "kv"))
        assert float(found[1]) == pytest.approx(share * 100, abs=4)
    assert f"held {setting.held}.0 slots a request" in said or why == "none"
    assert f"| state slots held per running request | {setting.held}.0 |" in said
    if truth.retracted:
        assert f"| requests put back, KV being full | {count(truth.retracted)} |" in said
    else:
        assert "put back" not in said
    length = int(re.search(r"\| KV tokens per running request \| ([\d,]+) \|", said)[1].replace(",", ""))  # type: ignore[index]
    assert length == pytest.approx(truth.tokens_per_request, rel=0.03)


def test_the_example_is_what_it_says_it_is() -> None:
    """A golden boot and the lines of a simulation, made anew."""
    assert FILE.read_text(encoding="utf-8") == example_log()


def test_the_example_is_tried_with_one_click(page: AppTest) -> None:
    """Verdict, prediction beside measurement, the command with what changed in front, whose numbers they are."""
    (button,) = [button for button in page.button if button.label == "Try an example"]
    button.click()
    said = words(page.run())
    assert "# State pool admitted nobody 80 % of the time, KV never above 47 %: r = 2.2053 runs 74 at L = 9,216" in said
    assert "Example: a boot of the engine's own sizing code, and an hour of load that is simulated." in said
    assert "From the log: slots, tokens, rest, bytes, occupancy. From the sidebar: L = 9,216." in said
    assert "Requests hold 9,676 tokens each: the L to size for, not 9,216." in said
    read = read_texts([[example().log.encode()]])
    by_command = told(read, read_command(example().command), 9_216)  # as `log` does without --model
    assert f"# {by_command.sentences[0]}" in said
    assert said.count("2.2053") == 3  # in the headline, in what is changed and in the command
    assert "S = 5 counts one more, the peak between prefill and decode" in said
    changed, command = codes(page)
    (recorder,) = [code.value for code in page.code if code.language == "bash"]
    assert changed.splitlines() == ["- --mamba-full-memory-ratio 0.9", "+ --mamba-full-memory-ratio 2.2053"]
    assert command == example().command.replace("ratio 0.9", "ratio 2.2053")
    assert "while [" in recorder
    (take,) = [button for button in page.button if button.label.startswith("Take L = ")]
    take.click()
    said = words(page.run())
    assert "From the sidebar: L = 9,676." in said
    assert not [button for button in page.button if button.label.startswith("Take L = ")]
    back = page.switch_page("app.py").run()
    assert "at L = 9,676" in words(back)
    assert "State pool admitted nobody 80 %" in words(back.switch_page("pages/log.py").run())


def test_what_a_server_says_without_its_model(page: AppTest) -> None:
    """The bytes of a slot are asked for, and with them the deployment is known."""
    text = json.dumps(Server().info(model_path="/models/own"))
    said = paste(page, text)
    assert "What another split would run is not known: the bytes of a state slot are in no field" in said
    page.text_input(key="log_state_bytes").set_value("56171520")
    assert "51 → 74 run" in words(page.run())
    page.text_input(key="log_state_bytes").set_value("many")
    page.run()
    assert "a whole number of bytes is needed" in page.error[0].value


def test_the_sidebar_of_another_deployment_is_told_apart(page: AppTest) -> None:
    """What differs is named."""
    said = paste(page, json.dumps(Server("0.5.22").info()))
    assert "it differs in" in said
    assert "release" in said.partition("it differs in")[2][:60]


def test_the_end_of_a_server_is_explained(page: AppTest) -> None:
    """The pin that prevents it, in numbers."""
    server = Server()
    lines = hour("state").lines[-40_000:].partition("\n")[2]
    said = paste(page, f"{json.dumps(server.info())}\n{lines}AssertionError: Can not alloc mamba cache\n")
    assert "set --max-mamba-cache-size to at least 51 x 5 + 1 = 256." in said


def test_a_server_with_one_buffer_is_read_once(page: AppTest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Static beside unified on the page, and the change of the one buffer alone; what was pasted is read once, however
    often the page runs again.
    """
    read: list[int] = []

    def counted(*given: Any) -> Any:
        read.append(1)
        return read_texts(*given)

    monkeypatch.setattr("sizing.server.texts.read_texts", counted)
    said = paste(page, UNIFIED_BOOT)
    for L in ("16384", "65536", "16384"):
        page.text_input(key="L").set_value(L)
        said = words(page.run())
    assert len(read) == 1
    assert "# 94 requests run under unified memory at L = 16,384, 94 in the static split as set, " in said
    assert "## Static beside unified memory" in said
    assert "| requests that run at L = 16,384 | 94 | 94 |" in said
    assert "--enable-unified-memory\n--mamba-full-memory-ratio 1.1773" in said
    assert "Every limit" not in said
    assert "Predicted beside measured" not in said
