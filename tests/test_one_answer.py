"""One answer everywhere: each best, flag and number that any place names is what `solve` gives for that flag.

A fixed sample runs in the suite; ONE_ANSWER=1000 takes that many random scenarios.
"""

import html
import json
import os
import re
from datetime import date
from pathlib import Path

from hypothesis import given

from sizing import Scenario, Sizing, Split, solve
from sizing.answers.band import at_low_end
from sizing.answers.carrying_settings import Want
from sizing.answers.compare import BEST, IDLE, at_best, results, solved
from sizing.answers.limit_panel import lifts
from sizing.answers.recommended import Recommended, recommended, recommended_split, spared
from sizing.answers.solve import solve_now
from sizing.answers.target import aim
from sizing.bootlog import read_text
from sizing.exchange.exports import result_json
from sizing.exchange.log_answer import log_answer
from sizing.exchange.sizing_answer import sizing_answer
from sizing.explain.launch_flags import launch_flags
from sizing.explain.verdict import advice, idle_words, verdict
from sizing.figures import crossing_figure, memory_figure, ratio_figure
from sizing.scenario.inputs import MAX_REQUESTS
from sizing.scenario.rest import ends_of
from sizing.sheet import sheet_of
from tests.test_printed_flags import held, runs, with_flags
from tests.test_properties import estimated, examples, scenarios

SAMPLE = int(os.environ.get("ONE_ANSWER", "60"))
LOGS = sorted((Path(__file__).parent / "golden" / "boot_logs").glob("*.log"))
FLAG = r"--(?:mamba-full-memory-ratio|max-mamba-cache-size|max-running-requests) [\d.]+"
FLAGS = re.compile(
    rf"(?P<flags>{FLAG}(?: {FLAG})*)(?:, as set)?: (?:[\d,]+(?: to [\d,]+)? → |refused → )?(?P<after>[\d,]+) runs?"
)


def named(text: str) -> list[tuple[list[str], int]]:
    """Every flag, or two together, that a text names with what runs then."""
    return [(re.findall(FLAG, found["flags"]), int(found["after"].replace(",", ""))) for found in FLAGS.finditer(text)]


@given(scenarios())
@examples(SAMPLE)
def test_every_place_names_the_one_change_and_it_solves(scenario: Scenario) -> None:
    """Verdict, limits, advice, answer, command line, comparison, copied command and sheet."""
    sizing = solve(scenario)
    found = recommended(sizing)
    texts = [verdict(sizing).text, *(item.text for item in advice(sizing)), *(row.lifted_by for row in lifts(sizing))]
    printed = json.loads(result_json(sizing))
    texts += [printed["verdict"]]
    for text in texts:
        for flags, after in named(text):
            assert runs(with_flags(held(sizing), *flags)) == after, text
    if found is None:
        assert printed["recommended"] is None
        assert printed["answer"]["flags"] is None
        assert sizing.optimum is None or sizing.by_ratio is None
        return
    check_change(sizing, found)
    assert found.flag in verdict(sizing).text
    assert found.numbers in verdict(sizing).text
    assert printed["recommended"]["flags"] == list(found.flags)
    assert sizing_answer(sizing).flags == (found.flags if found.change else None)
    check_comparison(scenario, found)
    check_target(scenario, found)
    copied = launch_flags(sizing, found)
    assert all(flag in copied for flag in found.flags)
    check_sheet(scenario, found)


def check_change(sizing: Sizing, found: Recommended) -> None:
    """Both flags give the number that is printed, nothing that is offered runs more, and a slot is spare where one
    fits.
    """
    base = held(sizing)
    now = sizing.now.runs if isinstance(sizing.now, Split) else None
    assert (found.before and found.before[0]) == now
    assert {runs(with_flags(base, *found.flags))} == set(found.after)
    if found.alternative:
        assert {runs(with_flags(base, *found.alternative))} == set(found.after)
    there = solve_now(with_flags(base, *found.flags))
    assert isinstance(there, Split)
    assert recommended_split(sizing) == there or sizing.scenario.split == "balanced"
    best = sizing.optimum
    if best is not None and best.spare and found.change:
        assert spared(sizing, there)
    offered = [row for row in (best, sizing.pair) if row is not None]
    assert found.after[0] >= max((row.runs for row in offered), default=0)
    if not found.change:
        assert now == found.after[0]


def check_comparison(scenario: Scenario, found: Recommended) -> None:
    rows = {row.quantity: row.cells[0] for row in results(solved((scenario,)))}
    assert rows["what to set"] == (found.flag if found.change else f"as set: {found.flag}")
    assert rows[BEST] == f"{found.after[0] * scenario.attn_dp_size:,}"
    sizing = solve(scenario)
    if isinstance(sizing.now, Split):
        assert f"{rows[IDLE[0]]} of state, {rows[IDLE[1]]} of KV" in idle_words(sizing)


def check_target(scenario: Scenario, found: Recommended) -> None:
    """The most that fits with a slot to spare is what the change runs."""
    answer = aim(scenario, [Want(L=scenario.L, requests=MAX_REQUESTS)])
    assert answer.here.spared == (found.after[0] * scenario.attn_dp_size,)


def check_sheet(scenario: Scenario, found: Recommended) -> None:
    """The block to copy, and every flag of the sheet with a number beside it."""
    sheet = sheet_of(scenario, on=date(2026, 1, 1))
    words = html.unescape(re.sub(r"<[^>]*>", "\n", sheet.replace("<wbr>", "")))
    assert f"\n{found.flag}\n" in words
    assert found.numbers in words
    base = held(solve(scenario))
    for flags, after in named(words):
        assert runs(with_flags(base, *flags)) == after


@given(estimated())
@examples(SAMPLE)
def test_a_change_on_an_estimate_is_what_its_flags_give(scenario: Scenario) -> None:
    """Fed back at both ends of the estimate that holds with the flags: another request count changes it. Figures and
    tables, which are drawn for the low end, name the same.
    """
    sizing = solve(scenario)
    found, low = recommended(sizing), recommended(at_low_end(sizing))
    assert (found and found.flags) == (low and low.flags)
    if found is None or low is None:
        return
    assert found.before is None or found.before == ends(held(sizing))
    if not found.change:
        return
    there = ends(with_flags(scenario, *found.flags))
    assert found.after == there
    assert low.after == (there[0], there[0])
    assert not found.alternative or ends(with_flags(scenario, *found.alternative))[0] == there[0]
    best = recommended_split(at_low_end(sizing))
    assert best is not None
    assert best.runs == there[0]
    assert f"{found.flag}: {found.numbers}" in verdict(sizing).text
    now = solve_now(at_best((scenario,))[0])
    assert isinstance(now, Split)
    assert now.runs == there[0]


def ends(scenario: Scenario) -> tuple[int, ...]:
    """What runs at both ends of its estimate [requests per rank]."""
    return tuple(sorted(runs(end) for end in ends_of(scenario) or ()))


def test_both_ends_of_an_estimate_are_those_of_solve() -> None:
    """Flags are chosen for the low end; both numbers are what they run at both ends."""
    scenario = Scenario.model_validate({"gpu": "H200", "model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp_size": 4})
    found, both = recommended(solve(scenario)), ends_of(scenario)
    assert found is not None
    assert both is not None
    assert found.before == ends(scenario)
    assert found.after == ends(found.scenario)
    assert f"{found.flag}: 456 to 466 → " in verdict(solve(scenario)).text
    low, kept = both[0], (scenario, Scenario())
    rows = {row.quantity: row.cells[0] for row in results(solved(kept))}
    split = solve(low).now
    assert isinstance(split, Split)
    assert (rows["K, state slots"], rows["KV cap at L"]) == (f"{split.slots:,}", f"{split.kv_cap:,}")
    assert rows[BEST] == f"{found.after[0]:,}"
    assert [row.cells[0] for row in results(solved(at_best(kept)))][:3:2] == [
        f"{found.after[0]:,}",
        f"as set: {found.flag}",
    ]
    for draw in (crossing_figure, ratio_figure, memory_figure):
        assert f"<b>{found.before[0]}" in json.dumps(draw(solve(scenario)))


def test_a_log_gets_the_same_change() -> None:
    """The cure of a log is the change of the sizing behind it."""
    cured = 0
    for path in LOGS:
        told = log_answer(read_text(path.read_text(encoding="utf-8", errors="replace")), L=9216)
        if told.answer.flags is None or told.found is None or told.found.sizing is None or told.answer.refused:
            continue
        found = recommended(told.found.sizing)
        assert found is not None
        assert told.answer.flags == found.flags
        assert f"{found.after[0]:,} request" in told.answer.words
        cured += 1
    assert cured > 5
