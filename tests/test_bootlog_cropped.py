"""A cropped log says no other number than the whole one: it is absent or right, at every width and with every mark.

`python tests/bench/cropped.py` tries every column of every log; here is a fixed sample of them.
"""

import random

import pytest

from sizing.bootlog import read_text
from tests.cropped import GOLDEN, MARKS, at_width, columns, differences, logs, prefixes, wrong_at_width, wrong_in_part

LOGS = logs([GOLDEN])
SAMPLE = 24  # widths, and as many places to break off, of each log


@pytest.mark.parametrize("name", LOGS)
def test_cropped_log_is_absent_or_right(name: str) -> None:
    """Every line cut at a width, with and without a mark, and the text broken off somewhere."""
    text, draw = LOGS[name], random.Random(name)
    whole = read_text(text)
    widths = columns(text)
    for width in draw.sample(widths, min(SAMPLE, len(widths))):
        mark = draw.choice(MARKS)
        assert (width, mark, wrong_at_width(at_width(text, width, mark), whole)) == (width, mark, [])
    places = list(prefixes(text))
    for prefix in draw.sample(places, min(SAMPLE, len(places))):
        assert (len(prefix), wrong_in_part(prefix, whole)) == (len(prefix), [])


KV = "[2026-01-15 10:00:05 TP0] KV Cache is allocated. #tokens: 330323, K size: 10.08 GB, V size: "
SUMMARY = "[2026-01-15 10:00:07 TP0] max_total_num_tokens=330323, chunked_prefill_size=8192, max_running_requests="


@pytest.mark.parametrize("end", ["2", "2>", "2$", "2…", "2 ", "2\x1b[0m", "2\r"])
def test_last_number_of_a_cropped_line_is_not_read(end: str) -> None:
    """210 requests cut to 2, with whatever a screen puts behind it; a line end alone says nothing here."""
    log = read_text(f"{KV}10.08 GB\n{SUMMARY}{end}\n{'-' * 300}\n")
    assert log.last
    assert (log.last.facts.running, log.last.facts.kv_rows, log.last.facts.printed_tokens) == (None, 330323, 330323)


@pytest.mark.parametrize("size", ["1", "10.", "10.0", "10.08", "10.08 G"])
def test_size_without_its_unit_is_not_read(size: str) -> None:
    """Only what stands before GB is whole."""
    log = read_text(f"{KV}{size}\n{'-' * 300}\n")
    assert log.last
    assert (log.last.facts.kv_rows, log.last.facts.token_bytes) == (330323, None)


def test_count_at_a_lines_end() -> None:
    """320 slots with nothing behind them count where 256 requests leave one S, and where no width has cut the line."""
    state = "[2026-10-08 TP0 EP0] Mamba Cache is allocated. max_mamba_cache_size: 320"
    for summary, slots in (
        ("max_total_num_tokens=1000, max_running_requests=256, available_gpu_mem=1.5", 320),
        ("max_total_num_tokens=1000, max_running_requests=32, available_gpu_mem=1.5", None),
        ("max_total_num_tokens=1000, max_running_requests=2560, available_gpu_mem=1.5", None),
    ):
        text = f"{state}\n[2026-10-08 TP0 EP0] {summary}\n"
        log = read_text(text)
        assert log.last
        assert log.last.facts.slots == slots
        cut = read_text(at_width(text, len(state) - 1))
        assert cut.last is None or cut.last.facts.slots is None


def test_draft_states_are_not_denied_by_a_cut_line() -> None:
    """No draft states only where the line ends behind its sizes; the engine's own line goes on under speculation."""
    state = "[2026-01-15 10:00:04 TP0] Mamba Cache is allocated. max_mamba_cache_size: 64, conv_state size: 0.07GB, "
    longer = "-" * 300
    for rest, drafts in (
        ("ssm_state size: 3.05GB ", 0),
        ("ssm_state size: 3.05GB", 0),
        ("ssm_state size: 3.05GB …", None),
        ("ssm_state size: 3.05GB inter", None),
        ("ssm_state size: 3.05GB intermediate_ssm_state_cache size: 48.7", None),
        ("ssm_state size: 3.05GB intermediate_ssm_state_cache size: 48.75GB", None),
    ):
        log = read_text(f"{state}{rest}\n{longer}\n")
        assert log.last
        assert (rest, log.last.facts.draft_tokens, log.last.facts.slots) == (rest, drafts, 64)
    alone = read_text(f"{state}ssm_state size: 3.05GB \n")
    assert alone.last
    assert alone.last.facts.draft_tokens is None  # nothing tells that no width has cut it


def test_differences_are_seen() -> None:
    """The comparison finds a number that is another one."""
    name, text = next(iter(LOGS.items()))
    before = read_text(text).last
    after = read_text(text.replace("max_running_requests=", "max_running_requests=1")).last
    assert before
    assert after
    assert differences(before.facts, before.facts) == [], name
    assert any(sentence.startswith("running: ") for sentence in differences(after.facts, before.facts))
