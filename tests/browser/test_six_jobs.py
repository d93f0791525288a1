"""Six jobs as a new user would do them, at most six actions each; each ends at what `solve` says.

SIX_JOBS_SHOTS=folder saves what stands at the end of each, at 1440 and 1920 pixels, light and dark.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import FilePayload, Page, expect

from sizing import Scenario, Split, solve
from sizing.answers.carrying_settings import Want
from sizing.answers.carrying_ways import carrying_ways
from sizing.answers.compare import names_of, solved, story_of
from sizing.answers.recommended import Recommended, recommended
from sizing.answers.solve import solve_now
from sizing.bootlog import read_text
from sizing.command import read_command
from sizing.exchange.log_answer import log_answer
from sizing.scenario.from_model import entry_of
from sizing.traffic import words
from sizing.traffic.mix import mix_of
from sizing.traffic.running import traffic_of
from tests.browser.actions import SECONDS, Actions
from tests.test_printed_flags import with_flags

MOST = 6
SHOTS = os.environ.get("SIX_JOBS_SHOTS")
LOG = Path(__file__).parents[1] / "golden" / "boot_logs" / "0.5.23_kda_mla_tp8_default.log"
COMMAND = "sglang serve --model-path moonshotai/Kimi-K3 --tp-size 8 --kv-cache-dtype fp8_e4m3 --page-size 64"
LENGTHS = [(3000, 700), (12_000, 500), (800, 300), (26_000, 900)] * 30
OWN: dict[str, Any] = {
    "model": "Qwen/Qwen3.5-397B-A17B", "gpu": "H200", "checkpoint": "fp8", "kv_cache_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def person(page: Page, base_url: str) -> Actions:
    """Somebody who has just opened the page."""
    page.goto(base_url)
    expect(page.locator('[data-figure="crossing"]')).to_contain_text("Requests that run", timeout=SECONDS)
    return Actions(page)


def change(values: dict[str, Any]) -> Recommended:
    """The recommended change of a scenario."""
    found = recommended(solve(Scenario.model_validate(values)))
    assert found is not None
    return found


def shows_change(page: Page, values: dict[str, Any]) -> None:
    """Flag and numbers on the page are those of `solve`."""
    found = change(values)
    block = page.locator(".words .change")
    expect(block.locator("code")).to_have_text(found.flag, timeout=SECONDS)
    expect(block.get_by_role("heading")).to_have_text(found.numbers)


def ends(person: Actions, job: str) -> None:
    """No job takes more; and what it ends at, as pictures where they are asked for."""
    assert person.count <= MOST, f"{job}: {person.count} actions"
    if SHOTS is None:
        return
    page = person.page
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme="light" if theme == "light" else "dark")
        for width, height in ((1440, 900), (1920, 1080)):
            page.set_viewport_size({"width": width, "height": height})
            page.wait_for_timeout(2500)  # figures follow the window and are drawn by Plotly
            page.screenshot(path=f"{SHOTS}/{job}_{width}_{theme}.png")


def test_own_model_on_own_gpu_to_a_flag(person: Actions) -> None:
    """Qwen3.5-397B-A17B in FP8 on 8 H200 with 4 draft tokens at 32K; headline and figures say from what."""
    page = person.page
    person.choose("Model", "Qwen3.5-397B-A17B")
    person.choose("GPU", "H200 141")
    person.unfold("Memory before the boot")
    person.choose("Checkpoint", "FP8")
    person.type("L, exact", "32K")
    person.slide("D, draft tokens", 4)
    shows_change(page, OWN | {"D": 4, "L": 32_768})
    headline = page.get_by_role("heading", level=1)
    expect(headline).to_contain_text("requests run at L = 32,768", timeout=SECONDS)
    expect(headline).to_contain_text("(estimate; a boot log makes it exact)")
    for told in (
        "Qwen3.5-397B-A17B, TP8", "8 x NVIDIA H200 141 GB", "D = 4", "rest estimated: 65.8 ± 2.2 GiB per rank",
        "mem_fraction_static 0.8258 (automatic)", "weights fp8", "(bfloat16)", "page 64",
    ):  # fmt: skip
        expect(page.locator('[data-figure="crossing"]')).to_contain_text(told, timeout=SECONDS)
    for told in ("the GPU: 140.4 GiB", "weights 46.75", "draft weights 1.31", "draft KV", "graphs, activations"):
        expect(page.locator('[data-figure="memory"]')).to_contain_text(told, timeout=SECONDS)
    expect(page.get_by_text("What SGLang sets by itself")).to_be_visible()
    ends(person, "own_model")


def test_a_config_json_on_own_gpu_to_a_flag(person: Actions) -> None:
    """A model that no catalogue has: its bytes and its checkpoint's are counted from the file."""
    config = json.dumps(dict(entry_of("Qwen/Qwen3-Next-80B-A3B-Instruct").config) | {"num_hidden_layers": 40})
    person.open("Model")
    person.upload(FilePayload(name="config.json", mimeType="application/json", buffer=config.encode()))
    person.press(person.page.get_by_role("link", name="Use its bytes on the balance page"))
    person.choose("GPU", "H200 141")
    person.type("mem_fraction_static", "0.85")
    expect(person.page.get_by_role("heading", level=1)).to_contain_text("(estimate; ", timeout=SECONDS)
    query = dict(part.split("=", 1) for part in person.page.url.partition("?")[2].replace("+", " ").split("&"))
    shows_change(person.page, {name: value for name, value in query.items() if name != "name"})
    assert int(query["weights_bytes"]) > 100 * 10**9  # 80 billion parameters in bfloat16, ten layers in 48 less
    ends(person, "own_config")


def test_a_boot_log_and_a_command_to_a_better_command(person: Actions) -> None:
    """The command comes back with what changed first and marked; nothing else in it is touched."""
    person.open("Log")
    person.upload(FilePayload(name="server.log", mimeType="text/plain", buffer=LOG.read_bytes()))
    person.paste("Launch command", COMMAND)
    person.type("L, exact", "16K")
    answer = log_answer(read_text(LOG.read_text(encoding="utf-8")), read_command(COMMAND), L=16_384).answer
    assert answer.command is not None
    found = change({"L": 16_384})
    assert answer.flags == found.flags
    main = person.page.get_by_test_id("stMain")
    expect(main.get_by_role("heading", level=1)).to_contain_text("at L = 16,384", timeout=SECONDS)
    expect(main.locator("code").nth(0)).to_have_text(f"+ {found.flag}", timeout=SECONDS)
    expect(main.locator("code").nth(1)).to_have_text(answer.command)
    ends(person, "log")


def test_64_users_at_32k(person: Actions) -> None:
    """Kimi-K3 at TP8: a wider dcp_size carries them, and its flags run as many as the page says."""
    person.open("Target")
    person.type("L, exact", "32K")
    main = person.page.get_by_test_id("stMain")
    found = carrying_ways(Scenario(L=32_768), [Want(L=32_768, requests=64)])
    assert any(one.way.scenario.dcp_size == 4 for one in found)
    first = found[0]
    expect(main.locator("code").first).to_have_text(" ".join(first.flags), timeout=SECONDS)
    now = solve_now(first.setting.scenario)
    assert isinstance(now, Split)
    assert now.runs == first.runs
    assert now.runs >= 64
    expect(main.locator('[data-figure="ways"]')).to_contain_text(f"{first.runs}, up to {first.most}", timeout=SECONDS)
    ends(person, "target")


def test_three_scenarios_to_a_slide(person: Actions) -> None:
    """What stands in the sidebar is compared with what is kept; presented, headline and lines are those of `solve`."""
    page = person.page
    person.press(page.get_by_role("button", name="Keep"))
    person.slide("D, draft tokens", 4)
    person.press(page.get_by_role("button", name="Keep"))
    person.slide("dcp_size", 2)
    person.open("Compare")
    person.press(page.get_by_role("button", name="Present"))
    three = (Scenario(), Scenario(D=4), Scenario(D=4, dcp_size=4))
    names, found = names_of(three), solved(three)
    expect(page.get_by_role("heading", level=1)).to_have_text(story_of(names, found), timeout=SECONDS)
    for name, one in zip(names, three, strict=True):
        expect(page.get_by_text(f"{name}: {change(one.stated()).flag}")).to_be_visible(timeout=SECONDS)
    ends(person, "slide")


def test_a_benchmark_s_file_to_a_split(person: Actions) -> None:
    """A result of SGLang's bench_serving for a model of one's own: the split for just these requests."""
    inputs, outputs = (list(column) for column in zip(*LENGTHS, strict=True))
    result = {"backend": "sglang", "input_lens": inputs, "output_lens": outputs, "errors": [""] * len(inputs)}
    person.choose("Model", "Qwen3-Next-80B-A3B-Instruct")
    person.choose("GPU", "H200 141")
    person.open("Traffic")
    person.upload(
        FilePayload(name="bench.jsonl", mimeType="application/json", buffer=f"{json.dumps(result)}\n".encode())
    )
    own = {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "gpu": "H200", "kv_cache_dtype": "bfloat16"}
    mix = mix_of("bench.jsonl", np.array(inputs), np.array(outputs))
    traffic = traffic_of(Scenario.model_validate(own), mix, 0.01)
    best = traffic.way("best for this traffic")
    assert best is not None
    main = person.page.get_by_test_id("stMain")
    expect(main.get_by_role("heading", level=1)).to_have_text(words.headline(traffic), timeout=SECONDS)
    expect(main.locator("code").first).to_have_text(best.flag)
    now = solve_now(with_flags(traffic.sizing.scenario, best.flag))
    assert isinstance(now, Split)
    assert now.admitted == best.now.admitted
    ends(person, "traffic")


def test_a_colleague_s_link_is_changed_and_sent_back(person: Actions, base_url: str) -> None:
    """Opened, changed, copied: the address that goes back holds all of it."""
    page = person.page
    person.count += 1  # the link opened
    page.goto(f"{base_url}/?L=32768&dcp_size=2&want=96&kept=" + '{"scenarios":[{}]}')
    person.slide("dcp_size", 1)
    shows_change(page, {"L": 32_768, "dcp_size": 4})
    person.press(page.get_by_role("button", name="Link", exact=True))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    box = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode")
    expect(box).to_contain_text("dcp_size=4", timeout=SECONDS)
    box.hover()
    person.press(box.get_by_role("button"))
    ends(person, "link")
    back = page.evaluate("navigator.clipboard.readText()")
    page.goto(back)
    shows_change(page, {"L": 32_768, "dcp_size": 4})
    expect(page.get_by_role("button", name="Keep (1)")).to_be_visible()
    Actions(page).open("Target")
    expect(page.get_by_role("textbox", name="Wanted requests at L = 32,768")).to_have_value("96", timeout=SECONDS)
