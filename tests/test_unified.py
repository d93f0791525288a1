"""Unified memory: the released engine's own totals, what follows from them by reading, and what always holds."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing import RefusedError, Scenario, Split, solve
from sizing.answers.recommended import recommended
from sizing.answers.solve import solve_now
from sizing.answers.unified_curves import unified_over_context, unified_over_ratio
from sizing.cli.main import main
from sizing.command import read_command
from sizing.engine.resolve import resolution
from sizing.engine.unified import (
    BYTES_SINCE,
    FUSED_SINCE,
    TOTAL_STEP,
    Unified,
    best_unified,
    held_slots,
    in_words,
    runs_over_slots,
    unified,
)
from sizing.exchange.server_answer import told
from sizing.exchange.sizing_answer import sizing_answer
from sizing.explain.unified_memory import change_under, unified_view
from sizing.figures import crossing_figure, ratio_figure
from sizing.releases.flags import has_flag
from sizing.releases.rules import RELEASES, at_least
from sizing.server.texts import read_texts
from tests.release_cases import OTHER_FILE, ReleaseCase, read_cases
from tests.server_texts import ARGUMENTS, UNIFIED, Moment, Server
from tests.server_texts import UNIFIED_BOOT as BOOT


def unified_cases() -> list[Any]:
    """The release cases that start with one buffer."""
    return [pytest.param(case, id=case.id) for case in read_cases() if "unified" in case.expect]


def split_of(scenario: Scenario) -> Split:
    """The static split of a scenario that boots."""
    now = solve_now(scenario)
    assert isinstance(now, Split), now
    return now


@pytest.mark.parametrize("case", unified_cases())
def test_unified_case(case: ReleaseCase) -> None:
    """The configured total, the buffer and a state's entry, to the byte."""
    scenario = case.scenario
    assert isinstance(scenario, Scenario), scenario
    found = unified(scenario, split_of(scenario).slots)
    numbers = {
        "config_total_bytes": found.config_total_bytes,
        "buffer_total_bytes": found.total_bytes,
        "state_entry_bytes": found.state_entry_bytes,
    }
    expected = {name: value for name, value in case.expect["unified"].items() if name != "buffer_by"}
    assert {name: numbers[name] for name in expected} == expected
    assert (found.label, found.admitted) == (case.expect["kv_tokens_logical"], case.expect["max_running_requests"])


@pytest.mark.skipif(OTHER_FILE is not None, reason="the count is that of our file")
def test_there_are_cases() -> None:
    """Six cases of our file start with one buffer."""
    assert len(unified_cases()) == 6


@st.composite
def scenarios(draw: Any) -> Scenario:
    """Deployments of every shape that matters here, with or without what makes an entry differ from the KV cell."""
    return Scenario.model_validate(
        {
            "model": "",
            "release": draw(
                st.sampled_from([release for release in RELEASES if has_flag(release, "--enable-unified-memory")])
            ),
            "rest_gib": draw(st.floats(0.5, 120)),
            "mamba_full_memory_ratio": draw(st.floats(0.01, 50)),
            "L": draw(st.integers(1, 300_000)),
            "state_bytes_per_slot": draw(st.integers(1, 2**16)) * 2048,
            "conv_bytes_per_slot": 2048,
            "kv_bytes_per_token": draw(st.integers(1, 2048)) * draw(st.sampled_from([8, 32])),
            "page_size": draw(st.sampled_from([1, 16, 64])),
            "disable_radix_cache": draw(st.booleans()),
            "skip_decode_lock": draw(st.booleans()),
            "mamba_radix_cache_strategy": draw(st.sampled_from(["auto", "extra_buffer"])),
            "D": draw(st.sampled_from([0, 0, 4])),
            "draft_kv_bytes_per_token": draw(st.sampled_from([0, 512, 1000])),
            "max_running_requests": draw(st.sampled_from([None, 3, 40, 400])),
            "max_total_tokens": draw(st.sampled_from([None, None, 100_000])),
            "dcp_size": draw(st.sampled_from([1, 2, 8])),
        }
    )


def never_fewer(found: Unified, split: Split, S: int) -> bool:
    """Whether unified memory is sure to run as many as the static split of the same K: the slots that are not held
    make up for the reserved low end, to the step that the total is rounded by (2.3).
    """
    spare = (S * found.slots - found.held * found.slots) * found.state_entry_bytes
    return spare >= S * (found.floor_bytes + TOTAL_STEP) and split.slots == found.slots


@settings(deadline=None)
@given(scenarios())
def test_never_fewer_than_static(scenario: Scenario) -> None:
    """Where the slots not held outweigh the reserved low end and an entry is the KV cell, unified memory runs at least
    what the static split runs, by tokens as by whole pages; K // S and the requests asked for always hold.
    """
    try:
        split = solve_now(scenario)
    except RefusedError:
        return
    if not isinstance(split, Split):
        return
    found = unified(scenario, split.slots)
    assert found.runs <= found.admitted <= found.clamp == split.clamp
    if found.kv_entry_bytes != resolution(scenario).costs.token:
        return
    assert found.total_bytes <= scenario.rest_gib * 2**30  # as much where nothing is left over
    if never_fewer(found, split, split.slots // split.clamp):
        assert found.runs >= split.runs
        assert min(found.admitted, found.in_buffer_whole_pages) >= min(split.admitted, split.kv_cap_whole_pages)


@settings(deadline=None)
@given(scenarios())
def test_best_ratio_runs_most(scenario: Scenario) -> None:
    """No other ratio runs more at L, of those that take a request of L, where the buffer is all that KV gets; the best
    one itself runs what it says.
    """
    try:
        best = best_unified(scenario)
    except RefusedError:
        return
    tried = [0.05, 0.2, 0.5, 0.9, 1.5, 3, 8, 30, *([best.ratio] if best else [])]
    found = {ratio: runs_at(scenario, ratio) for ratio in tried}
    if best is not None and not scenario.disable_radix_cache:
        assert found[best.ratio] == best.runs
        if at_least(scenario.release, BYTES_SINCE) and scenario.max_total_tokens is None:
            assert best.runs == max(found.values())


def runs_at(scenario: Scenario, ratio: float) -> int:
    """What runs at a ratio where it boots and takes a request of L, else 0."""
    there = scenario.model_copy(update={"mamba_full_memory_ratio": ratio})
    try:
        split = solve_now(there)
    except RefusedError:
        return 0
    if not isinstance(split, Split):
        return 0
    found = unified(there, split.slots)
    return found.runs if found.refusal is None and found.label >= there.L else 0


def test_two_requests_by_hand() -> None:
    """States of 4,096 bytes, tokens of 64: 10 slots and the rest in one buffer, counted by hand."""
    scenario = Scenario.model_validate(
        {
            "model": "", "state_bytes_per_slot": 4096, "conv_bytes_per_slot": 1024, "kv_bytes_per_token": 64,
            "page_size": 1, "L": 100, "split": "pin", "max_mamba_cache_size": 10, "rest_gib": 128 * 1024 / 2**30,
        }
    )  # fmt: skip
    found = unified(scenario, 10)
    # KV gets 131,072 - 11 x 4,096 = 86,016 bytes, 21 x 4,096; the buffer has the ten slots as well, not the padding.
    assert (found.config_total_bytes, found.total_bytes, found.floor_bytes) == (86_016, 126_976, 4_096)
    # Of 122,880 bytes above the reserved end a request holds 4 slots and 100 tokens, 22,784 bytes: five; K // S is two.
    assert (found.held, found.in_buffer, found.clamp, found.runs, found.label) == (4, 5, 2, 2, 1_344)
    assert found.fits(0, 1920)
    assert not found.fits(0, 1921)
    assert found.fits(10, 1280)
    assert not found.fits(10, 1281)


@pytest.mark.parametrize(
    ("values", "held"),
    [
        ({}, 4),
        ({"skip_decode_lock": True}, 3),
        ({"mamba_radix_cache_strategy": "extra_buffer_lazy"}, 3),
        ({"disable_overlap_schedule": True}, 3),
        ({"mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True, "page_size": 1}, 2),
        ({"disable_radix_cache": True}, 1),
        ({"disaggregation_mode": "decode"}, 1),
    ],
    ids=str,
)
def test_slots_held(values: dict[str, object], held: int) -> None:
    """One active, those that track, and a locked one."""
    assert held_slots(Scenario.model_validate({"split": "ratio", **values})) == held


def test_releases_differ() -> None:
    """Before 0.5.19 the buffer is made of whole tokens, and a fused draft is part of an entry since 0.5.22."""
    old, new = Scenario(release="0.5.18"), Scenario(release="0.5.19")
    split = split_of(old)
    found = unified(old, split.slots)
    assert found.config_total_bytes is None
    assert found.total_bytes == split.kv_rows * 13_824 + split.slots * 56_171_520
    assert unified(new, split.slots).total_bytes > found.total_bytes
    drafted = {"rest_gib": 28.529, "D": 4, "model": "", "draft_kv_bytes_per_token": 1000, "max_running_requests": 20}
    before = Scenario.model_validate({**drafted, "release": "0.5.21"})
    after = Scenario.model_validate({**drafted, "release": FUSED_SINCE})
    assert unified(before, 100).kv_entry_bytes == 13_824
    assert unified(after, 100).kv_entry_bytes == 14_848  # 13,824 + 1,000 = 14,824, to the next 32


def test_words() -> None:
    """It helps where KV binds, not where K // S does, and what that rests on is said."""
    static = Scenario()
    assert "does not help here: K // S = 51" in in_words(static, split_of(static))[0]
    long = Scenario(L=65_536)
    assert "runs 26 requests at L = 65,536; the static split 17 as set." in in_words(long, split_of(long))[0]
    assert all("rests on reading" in in_words(one, split_of(one))[-1] for one in (static, long))
    ring = Scenario(L=65_536, D=4, replayssm="spec", max_running_requests=20)
    assert any("builds no ring" in words for words in in_words(ring, split_of(ring)))


@settings(deadline=None)
@given(scenarios(), st.lists(st.integers(1, 3000), min_size=1, max_size=6))
def test_many_slots_at_once(scenario: Scenario, slots: list[int]) -> None:
    """The array over K is the same as each K by itself, where it starts and takes a request of L."""
    try:
        found = runs_over_slots(scenario, np.array(slots))
    except RefusedError:
        return
    for one, runs in zip(slots, found.tolist(), strict=True):
        single = unified(scenario, one)
        starts = single.refusal is None and single.label >= scenario.L and single.admitted > 0
        assert runs == (single.runs if starts else 0)


def test_curves() -> None:
    """Third curve of figure 1 and of figure 2: at the L and the ratio that are set they are the number in words."""
    scenario = Scenario(L=65_536, enable_unified_memory=True)
    sizing = solve(scenario)
    view = unified_view(sizing)
    assert view is not None
    assert (view.runs, split_of(scenario).runs) == (26, 17)
    assert view.flags[0] == "--enable-unified-memory"
    over_L = unified_over_context(scenario, split_of(scenario), np.array([65_536, 2**20]))
    assert over_L is not None
    assert over_L.tolist()[0] == 26
    over_r = unified_over_ratio(scenario, np.array([0.9]))
    assert over_r is not None
    assert over_r.tolist() == [26]
    assert unified_over_ratio(Scenario(), np.array([0.9])) is None
    for figure in (crossing_figure(sizing), ratio_figure(sizing)):
        names = [trace.get("name") for trace in figure["data"]]
        assert "unified memory" in names
        assert any("unified memory" in note["text"] for note in figure["layout"]["annotations"])
        json.dumps(figure, allow_nan=False)
    rows = {row[0]: row[1:] for row in view.rows}
    assert rows["request rows, K // S"][:2] == ("51", "51")
    assert rows["requests that run at L = 65,536"][:2] == ("17", "26")


def test_the_best_ratio_is_what_it_says() -> None:
    """Fed back, the flag gives the number."""
    scenario = Scenario(L=4_096, enable_unified_memory=True)
    view = unified_view(solve(scenario))
    assert view is not None
    assert view.best is not None
    (ratio,) = [flag.split(" ")[1] for flag in view.flags if "ratio" in flag]
    again = unified_view(solve(scenario.model_copy(update={"mamba_full_memory_ratio": float(ratio)})))
    assert again is not None
    assert again.runs == view.best.runs > view.runs
    assert view.numbers == f"{view.runs:,} → {view.best.runs:,} run"


COMMAND = (
    "sglang serve --model-path org/unknown-hybrid --tp 8 --page-size 1 --mamba-radix-cache-strategy extra_buffer "
    "--mamba-full-memory-ratio 0.9"
)
KIMI = "sglang serve --model-path moonshotai/Kimi-K3 --tp 8 --page-size 64 --kv-cache-dtype fp8_e4m3"
INFO = json.dumps(Server().info(enable_unified_memory=True)) + "\n"
SCRAPES = "".join(Server().scrape(Moment(second, 51, 9, 478_691, 204, 3)) for second in range(0, 600, 60))
LINES = "".join(
    Server(slots=999, tokens=3_142_583, limit=94).decode(Moment(second, 94, 9, 94 * 16_384, 94 * 4))
    for second in range(0, 600, 20)
)
OWN_INFO = {**ARGUMENTS, "kv_cache_dtype": "auto"}
INFO_OF_BOOT = json.dumps(Server(slots=472, tokens=1_658_616, limit=94).info(**OWN_INFO)) + "\n"
AT_16K = (94, "state", ("--enable-unified-memory", "--mamba-full-memory-ratio 1.1773"))
AT_64K = (26, "kv", None)


@pytest.mark.parametrize(
    ("text", "command", "L", "runs", "binds", "flags"),
    [
        pytest.param(BOOT, "", 16_384, *AT_16K, id="boot log"),
        pytest.param(UNIFIED, f"{COMMAND} --enable-unified-memory", 16_384, *AT_16K, id="its lines and the command"),
        pytest.param(BOOT, f"{COMMAND} --enable-unified-memory", 16_384, *AT_16K, id="both"),
        pytest.param(BOOT + LINES, "", 16_384, *AT_16K, id="and its batch lines"),
        pytest.param(UNIFIED + INFO_OF_BOOT, "", 16_384, *AT_16K, id="its lines and server_info"),
        pytest.param(BOOT + UNIFIED.replace("TP0", "TP1"), "", 16_384, *AT_16K, id="two ranks"),
        pytest.param(LINES, f"{COMMAND} --enable-unified-memory", 16_384, None, None, None, id="batch lines alone"),
        pytest.param(BOOT[:-60], "", 16_384, None, None, None, id="half a boot"),
        pytest.param(BOOT, "", 65_536, 40, "kv", None, id="boot log, KV binds"),
        pytest.param(BOOT, "", None, 94, "state", None, id="without L"),
        pytest.param(INFO, "", 65_536, *AT_64K, id="server_info"),
        pytest.param(INFO + SCRAPES, "", 65_536, *AT_64K, id="server_info and scrapes"),
        pytest.param(SCRAPES, f"{KIMI} --enable-unified-memory", 65_536, None, None, None, id="scrapes alone"),
        pytest.param(INFO, "", 1_000_000, 2, "kv", None, id="two long requests"),
        pytest.param(UNIFIED, "", 16_384, None, None, None, id="flags not known"),
        pytest.param(UNIFIED, COMMAND, 16_384, None, None, None, id="not its command"),
        pytest.param(BOOT.replace("=12288,", "=12352,"), "", 16_384, None, None, None, id="other entry"),
        pytest.param(BOOT.replace("38616072192", "38616072292"), "", 16_384, None, None, None, id="other total"),
    ],
)  # fmt: skip
def test_log_under_unified_memory(
    text: str, command: str, L: int | None, runs: int | None, binds: str | None, flags: tuple[str, ...] | None
) -> None:
    """A log answers with what the view of its deployment says: what runs, what sets it, the ratio, the command; where
    the buffer does not come out again to the byte, nothing is said of it. The static split is proposed nowhere.
    """
    read = read_command(command) if command else None
    found = told(read_texts([[text.encode()]]), read, L)
    answer = found.answer
    assert (answer.runs, answer.binds, answer.flags) == (runs, binds, flags)
    assert ("runs" in answer.unknown) == (runs is None)
    assert answer.slots in (None, 472, 257)  # the whole buffer's 999 are no K
    if L is None or runs is None:
        assert found.unified is None
        return
    view = unified_view(found.sizing) if found.sizing else None
    assert view is not None
    assert found.unified == view
    assert (answer.runs, answer.binds, answer.flags) == (view.runs, view.binds, view.flags if view.change else None)
    assert answer.best is not None
    assert answer.best.runs == view.most
    assert view.headline in answer.words
    assert view.reason in answer.words
    assert "rests on reading" in answer.words
    assert "the KV pool binds" not in answer.words
    static = recommended(found.sizing) if found.sizing else None
    assert static is None or not static.change or static.flag not in answer.words
    if command and flags:
        assert answer.command == f"{COMMAND.replace('0.9', '1.1773')} --enable-unified-memory"


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        (Path("tests/golden/boot_logs/0.5.23_kda_mla_tp8_default.log").read_text(), "--enable-unified-memory"),
        (json.dumps(Server().info(enable_unified_memory=False)), "--enable-unified-memory"),
        (INFO, ""),
        (BOOT, ""),
    ],
    ids=["two pools", "another server's flag", "one buffer of a server", "one buffer of a boot"],
)
def test_the_flag_and_the_log_are_not_of_one_run(text: str, flag: str) -> None:
    """A log that prints two pools was not started with the flag, and one that prints a buffer not without."""
    answer = told(read_texts([[text.encode()]]), read_command(f"{KIMI} {flag}"), 65_536).answer
    assert "log_and_command_differ" in [notice.about for notice in answer.notices]
    assert "--enable-unified-memory" in answer.words
    assert answer.flags is None


@pytest.mark.parametrize("L", [4_096, 65_536, 400_000])
def test_plan_under_unified_memory(L: int) -> None:
    """The answer of a scenario with the flag is the view's too."""
    sizing = solve(Scenario(L=L, enable_unified_memory=True))
    answer, view = sizing_answer(sizing), unified_view(sizing)
    assert view is not None
    assert (answer.runs, answer.binds, answer.flags) == (view.runs, view.binds, view.flags if view.change else None)
    assert answer.words == " ".join(view.told)
    found = change_under(sizing, view)
    there = unified_view(solve(found.scenario))
    assert there is not None
    assert there.runs == view.most


def test_where_the_static_split_alone_is_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wants and traffic are solved for two pools, and say so under the flag."""
    file = tmp_path / "scenario.json"
    for stated, said in (({}, False), ({"enable_unified_memory": True}, True)):
        file.write_text(json.dumps(stated))
        for command in (["target", str(file), "40"], ["traffic", str(file), "chat"]):
            assert main(command) == 0
            assert ("This is the static split" in capsys.readouterr().out) == said
