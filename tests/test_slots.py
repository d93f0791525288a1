"""S: the specification's whole table, the reasons behind each number, and the combinations the engine refuses."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sizing import RefusedError, Scenario
from sizing.bootlog import inputs_of, read_text
from sizing.engine.resolve import resolve, slots_per_request
from sizing.engine.slots_per_request import possible_slots
from sizing.releases import rules

OVERLAP_OFF: dict[str, Any] = {"disable_overlap_schedule": True}
EXTRA: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer"}
LAZY: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer_lazy"}
NO_BUFFER: dict[str, Any] = {"mamba_radix_cache_strategy": "no_buffer"}

# compute-mamba-ratio.md, the table of "S (state slots per running request)" and the paragraph below it on PP:
# flags, S, S with the decode-lock skip.
S_TABLE = [
    pytest.param({"disable_radix_cache": True}, 1, 1, id="radix cache off"),
    pytest.param({**NO_BUFFER, **OVERLAP_OFF, "page_size": 1}, 3, 3, id="no_buffer"),
    pytest.param(EXTRA, 5, 4, id="extra_buffer, overlap on"),
    pytest.param({**EXTRA, **OVERLAP_OFF}, 4, 3, id="extra_buffer, overlap off"),
    pytest.param(LAZY, 4, 3, id="extra_buffer_lazy"),
    pytest.param({**EXTRA, "pp_size": 2}, 4, 3, id="extra_buffer under PP"),
]


@pytest.mark.parametrize(("flags", "S", "S_with_skip"), S_TABLE)
def test_s_table(flags: dict[str, Any], S: int, S_with_skip: int) -> None:
    """Each row of the specification's table, without and with the decode-lock skip."""
    assert slots_per_request(Scenario(**flags)) == S
    assert slots_per_request(Scenario(**flags, skip_decode_lock=True)) == S_with_skip


# Flags, S, the requests that 257 slots admit, and the fewest slots of 51 requests without and with the one to spare:
# engine-sizing.md section 7; the spare slot is for sgl-project/sglang#37066, #37074.
REQUEST_SLOTS = [
    pytest.param({"disable_radix_cache": True}, 1, 257, 51, 51, id="radix cache off"),
    pytest.param({**NO_BUFFER, **OVERLAP_OFF, "page_size": 1}, 3, 85, 153, 154, id="no_buffer"),
    pytest.param(LAZY, 4, 64, 204, 205, id="extra_buffer_lazy"),
    pytest.param(EXTRA, 5, 51, 255, 256, id="extra_buffer"),
]


@pytest.mark.parametrize(("flags", "S", "requests", "slots", "spared"), REQUEST_SLOTS)
def test_slots_to_requests_and_back(flags: dict[str, Any], S: int, requests: int, slots: int, spared: int) -> None:
    """Both ways, over numbers as over arrays; the fewest slots admit so many requests and one slot less does not."""
    each = resolve(Scenario(**flags)).request_slots
    assert (each.S, each.requests(257), each.slots(51), each.slots(51, spare=True)) == (S, requests, slots, spared)
    assert list(np.asarray(each.requests(np.array([slots - 1, slots])))) == [50, 51]
    assert list(np.asarray(each.slots(np.array([51, 52])))) == [slots, each.slots(52)]
    assert [each.is_tight(slots, 51), each.is_tight(spared, 51)] == [spared > slots, False]


@pytest.mark.parametrize("flags", [EXTRA, LAZY, NO_BUFFER, {**LAZY, **OVERLAP_OFF}, {**LAZY, "pp_size": 2}])
def test_radix_cache_off_is_one_slot_whatever_the_strategy(flags: dict[str, Any]) -> None:
    """Without a radix cache the strategy is neither counted nor refused."""
    assert slots_per_request(Scenario(**flags, disable_radix_cache=True)) == 1


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(("flags", "S", "S_with_skip"), S_TABLE)
def test_reasons_add_up(flags: dict[str, Any], S: int, S_with_skip: int, skip: bool) -> None:
    """The counts of the reasons add up to S, and each reason is said once, in words."""
    uses = resolve(Scenario(**flags, skip_decode_lock=skip)).uses
    assert sum(use.count for use in uses) == (S_with_skip if skip else S)
    assert len({use.why for use in uses}) == len(uses)
    assert all(use.why and use.count for use in uses)


# A made-up change since 0.5.22, a boot log of 0.5.22 or 0.5.23, its flags, and S under that change.
MADE_UP = [
    pytest.param({"slots_radix_off": 2}, "mamba2_tp2_no_radix", {"disable_radix_cache": True}, 2, id="radix cache off"),
    pytest.param({"base_slots": 4}, "gdn_gqa_tp4_nospec", EXTRA, 6, id="base"),
]


@pytest.fixture
def made_up(sets: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The releases since 0.5.22 with a rule of their own."""
    change = rules.Change(since="0.5.22", words="Made up.", sets=sets)
    with monkeypatch.context() as patched:
        patched.setattr(rules, "CHANGES", (*rules.CHANGES, change))
        rules.rules_of.cache_clear()
        yield
    rules.rules_of.cache_clear()


@pytest.mark.usefixtures("made_up")
@pytest.mark.parametrize(("sets", "log", "flags", "S"), MADE_UP)
def test_a_changed_rule_changes_solve_and_log(log: str, flags: dict[str, Any], S: int) -> None:
    """S is asked in one place: by solve, by the reading of a log that does not print it, and by what follows."""
    text = (Path(__file__).parent / "golden" / "boot_logs" / f"0.5.23_{log}.log").read_text(encoding="utf-8")
    text = re.sub(r".*is capped to.*\n", "", re.sub(r"max_running_requests=\d+", "max_running_requests=1", text))
    last, solved = read_text(text).last, resolve(Scenario(**flags))
    assert last is not None
    facts = last.facts
    assert facts.slots is not None
    assert (solved.S, facts.S, facts.radix_cache) == (S, S, solved.radix_cache)
    assert slots_per_request(Scenario.model_validate(inputs_of(facts).values)) == S
    assert facts.clamp == solved.request_slots.requests(facts.slots) == facts.slots // S
    assert solved.request_slots.spare == int(solved.radix_cache)
    assert S in possible_slots(radix_cache=solved.radix_cache)


def test_reasons_of_the_default_strategy_with_the_skip() -> None:
    """The default strategy holds a base, less the skipped slot, and two slots of track buffer."""
    assert [(use.count, use.why) for use in resolve(Scenario(skip_decode_lock=True)).uses] == [
        (3, "base: live state, radix retention and copy-on-write headroom"),
        (-1, "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK frees one resident slot"),
        (2, "ping-pong track buffer, overlap on"),
    ]


# The engine's words: engine-sizing.md section 4.
NO_BUFFER_WORDS = "“no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.”"
LAZY_WORDS = "“Lazy extra buffer requires overlap schedule (--disable-overlap-schedule is incompatible)”"


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        pytest.param(
            {**NO_BUFFER, **OVERLAP_OFF, "page_size": 64},
            "SGLang would refuse to start: “no_buffer only supports page_size=1.” "
            "Set --page-size 1 (now 64) or choose another strategy.",
            id="no_buffer with pages",
        ),
        pytest.param(
            {**NO_BUFFER, "page_size": 1},
            f"SGLang would refuse to start: {NO_BUFFER_WORDS} "
            "Pass --disable-overlap-schedule or choose another strategy.",
            id="no_buffer with overlap",
        ),
        pytest.param(
            {**NO_BUFFER, "page_size": 1, "pp_size": 2},
            f"SGLang would refuse to start: {NO_BUFFER_WORDS} "
            "Pass --disable-overlap-schedule or choose another strategy. "
            "Pipeline parallelism turns overlap off too late to count.",
            id="no_buffer under PP",
        ),
        pytest.param(
            {**LAZY, **OVERLAP_OFF},
            f"SGLang would refuse to start: {LAZY_WORDS} "
            "Overlap is off by --disable-overlap-schedule: drop it, or choose extra_buffer.",
            id="lazy without overlap",
        ),
        pytest.param(
            {**LAZY, "pp_size": 4},
            f"SGLang would refuse to start: {LAZY_WORDS} "
            "Overlap is off by --pp-size 4: drop it, or choose extra_buffer.",
            id="lazy under PP",
        ),
    ],
)
def test_problem_refused_flags(flags: dict[str, Any], sentence: str) -> None:
    """A combination the engine refuses is refused in its words, with what to change."""
    with pytest.raises(RefusedError) as caught:
        slots_per_request(Scenario(**flags))
    assert str(caught.value) == sentence
    assert caught.value.refusal.kind == "flags"
