"""Reports from the field: what was pasted gives what is right, no more, and asks for the rest."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from sizing import specification
from sizing.basics.units import GIB
from sizing.bootlog import Boot, Facts, Log, Measured, Printed, bytes_per_slot_between, read_file
from sizing.bootlog.line_records import KvPool, StatePool
from sizing.bootlog.measure import total
from sizing.bootlog.rest import Charging
from tests.log_cases import OTHER_FIELD, FieldCase, field_cases, read_field_cases

default_folder = pytest.mark.skipif(OTHER_FIELD is not None, reason="the count is that of our folder")

# A case's middle is rounded to a byte or to a tenth, and divides by the tokens without a page.
ROUNDED = 3e-4
# Two pools of F38 whose sizes its comment lines tell, in the words of the report "with 16 and 64 given".
SLOTS_STATED = {"F38": (16, 64)}


class Read(NamedTuple):
    """A report that was read. `S` and `L` are the log's, else what the report states."""

    case: FieldCase
    log: Log
    boot: Boot
    S: int | None
    L: int | None

    @property
    def facts(self) -> Facts:
        """The facts of the boot that counts."""
        return self.boot.facts

    @property
    def clamp(self) -> int | None:
        """K // S, with the S that is stated where the log has none."""
        return None if self.S is None else self.facts.clamp_at(self.S)

    @property
    def runs(self) -> int | None:
        """As printed; else the clamp, or what was asked if that is less."""
        if self.facts.running is not None:
            return self.facts.running
        asked = self.case.settings.get("max_running_requests")
        return self.clamp if asked is None or self.clamp is None else min(self.clamp, asked)


@pytest.mark.parametrize("case", field_cases())
def test_field_case(case: FieldCase) -> None:
    """Everything that a report expects, as far as it is a matter of reading a log."""
    if case.log is None:
        assert clamp_tables(case) == []
        return
    log = read_file(case.log)
    assert all(problem.sentence.endswith(".") for problem in log.problems)
    if "vLLM" in str(case.expected.get("must", "")):
        assert (log.other_engine, log.boots) == ("vLLM", ())
        assert "vLLM" in log.problems[0].sentence
        return
    assert log.last
    stated = case.expected.get("S")
    read = Read(case, log, log.last, log.last.facts.S or stated, case.expected.get("L"))
    wrong = [key for key, value in case.expected.items() if key in CHECKS and not CHECKS[key](read, value)]
    assert wrong == []


@default_folder
def test_no_report_is_dropped() -> None:
    """Our folder holds 25 reports, 23 of them with a log, and names no key that nothing looks at."""
    cases = read_field_cases()
    assert (len(cases), sum(case.log is not None for case in cases)) == (25, 23)
    keys = {key for case in cases if case.log for key in case.expected}
    assert sorted(keys - CHECKS.keys()) == sorted(NOT_OF_THE_LOG)


def clamp_tables(case: FieldCase) -> list[dict[str, Any]]:
    """Rows of slots, S and requests asked whose clamp is not slots // S; there is no log to read."""
    expected = case.expected
    rows = expected.get("rows", [{"S": expected.get("S"), **row} for row in expected.values() if isinstance(row, dict)])
    return [
        row
        for row in rows
        if row["clamp"] != row["slots"] // row["S"]
        or row["effective"] != min(row["clamp"], row.get("asked", case.settings["max_running_requests"]))
    ]


def close(number: float, expected: float, digit: float) -> bool:
    """Whether two numbers agree to what the report rounds to, `digit` or its own page convention."""
    return abs(number - expected) <= max(digit, abs(expected) * ROUNDED)


def measured_bytes(measured: Measured | None, expected: dict[str, Any] | None, middle: str) -> bool:
    """The middle, both ends, and the exact bytes within them."""
    if expected is None or measured is None:
        return measured is None and expected is None
    if middle in expected and expected[middle] != pytest.approx(measured.value, rel=ROUNDED):
        return False
    ends = next((value for key, value in expected.items() if key.endswith("range_from_2_decimals")), None)
    if ends and ends != pytest.approx([measured.low, measured.high], rel=ROUNDED):
        return False
    exact = expected.get("architecture_exact")
    return exact is None or measured.holds(exact)


def slot_bytes(read: Read, expected: dict[str, Any] | None) -> bool:
    """Of the pool line, or of the refusal that names them."""
    if expected and "from_error_line" in expected:
        return bool(read.boot.refused and read.boot.refused.slot_bytes == expected["from_error_line"])
    return measured_bytes(read.facts.slot_bytes, expected, "physical_div_N_plus_1")


def token_equiv(read: Read, expected: dict[str, Any] | None) -> bool:
    """State bytes over KV bytes; the best value is within what the decimals leave."""
    state, kv = read.facts.slot_bytes, read.facts.token_bytes
    if expected is None or state is None or kv is None:
        return expected is None and (state is None or kv is None)
    middle = specification.token_equiv(state.value, kv.value)
    in_range = state.low / kv.high <= expected["best"] <= state.high / kv.low
    return in_range and close(middle, expected["physical_div_N_plus_1"], 0.05)


def balance(read: Read, expected: dict[str, Any] | None) -> bool:
    """r* of the specification with the L, S and D that the report states."""
    state, kv = read.facts.slot_bytes, read.facts.token_bytes
    if expected is None:
        return state is None or kv is None
    assert state
    assert kv
    assert read.L
    assert read.S
    D, dcp = read.case.settings["spec_draft_tokens"], read.case.settings["dcp"]
    ends = [
        float(specification.optimal_ratio(read.L, state_end, kv_end, read.S, D, dcp))
        for state_end, kv_end in ((state.low, kv.high), (state.high, kv.low))
    ]
    return ends[0] * (1 - ROUNDED) <= float(expected["using_best"]) <= ends[1] * (1 + ROUNDED)


def kv_cap(read: Read, L: int | None, expected: int) -> bool:
    """KV tokens // L."""
    rows = read.facts.kv_rows
    assert rows
    assert L
    return specification.kv_cap(rows, read.case.settings["dcp"], L) == expected


def binding(read: Read, expected: str) -> bool:
    """Which pool is short first at the L that the report states."""
    assert read.clamp is not None
    assert read.L
    assert read.facts.kv_rows
    cap = specification.kv_cap(read.facts.kv_rows, read.case.settings["dcp"], read.L)
    return specification.binding_pool(read.clamp, cap).lower().startswith(expected)


def split(read: Read, expected: float) -> bool:
    """State pool : KV pool; a report with a draft model counts its states and its KV on either side."""
    rank = next(line.rank for line in read.boot.lines if isinstance(line.record, StatePool))
    one_rank = [line.record for line in read.boot.lines if line.rank == rank]
    state = next(said for said in one_rank if isinstance(said, StatePool))
    pools = [said for said in one_rank if isinstance(said, KvPool)]
    in_state = [size.value for size in state if isinstance(size, Printed)]
    in_kv = [size.value for pool in pools for size in pool.sizes]
    return close(sum(in_state) / sum(in_kv), expected, 0.5e-4)


def pool_sum(read: Read, expected: dict[str, Any]) -> bool:
    """`rest` that the report solves r* with: the sum of the printed pools, of which less was charged."""
    rank = next(rank for rank in read.facts.by_rank if rank.state_gib and rank.kv_gib)
    charged = read.facts.rest_by_pools_at(Charging(read.facts.releases[-1]))
    assert rank.state_gib
    assert rank.kv_gib
    printed = rank.state_gib.value + rank.kv_gib.value
    return bool(charged and printed == pytest.approx(expected["rest_gib"]) and charged.value < printed)


def missing(read: Read, expected: list[str]) -> bool:
    """Each is asked for in a sentence that names the line, or its sizes."""
    asks = " ".join(read.facts.missing)
    words = {"Mamba": "Mamba Cache", "KV": "KV", "conv": "conv_state and ssm_state sizes"}
    return all(words[item.split("/")[0].split()[0]] in asks for item in expected)


def must(read: Read, expected: str) -> bool:
    """Where it is the slot count that must be asked for, it is, and none is made up."""
    if "max_mamba_cache_size" not in expected:
        return True
    return "max_mamba_cache_size" in " ".join(read.facts.missing) and read.facts.slots is None


def slope(read: Read, expected: int) -> bool:
    """Bytes of a slot from two pools whose slots are given."""
    first, second = (state_size(boot) for boot in read.log.boots)
    slots = SLOTS_STATED[read.case.id]
    found = bytes_per_slot_between(first, slots[0], second, slots[1])
    return bool(found and round(found.value) == expected and found.holds(read.case.expected["architecture_exact"]))


def with_64(read: Read, expected: int) -> bool:
    """The same from the second pool alone."""
    return round(state_size(read.log.boots[1]).value * GIB / 65) == expected


def state_size(boot: Boot) -> Measured:
    """Conv and SSM sizes of a boot's state pool [GiB], whose slots may be unknown."""
    state = next(line.record for line in boot.lines if isinstance(line.record, StatePool))
    assert state.conv
    assert state.ssm
    return total((state.conv, state.ssm))


def clamp_if(read: Read, expected: dict[str, int]) -> bool:
    """K // S for each S, and no S left possible that gives no request."""
    table = all(read.facts.clamp_at(int(S)) == clamp for S, clamp in expected.items())
    return table and all(expected.get(str(S), 1) > 0 for S in read.facts.S_possible)


def slots_per_request(read: Read, expected: int | None) -> bool:
    """S as expected where the log tells it; else it is among what the counts leave, or not asserted at all."""
    if expected is None:
        return read.facts.S is None
    return expected == read.facts.S or (read.facts.S is None and expected in read.facts.S_possible)


def draft_bytes(read: Read, expected: float) -> bool:
    """The second KV line is the draft's, and the first stays the target's."""
    return bool(read.facts.draft_token_bytes and read.facts.draft_token_bytes.holds(expected))


def with_draft(read: Read, expected: float) -> bool:
    """Target and draft together."""
    target, draft = read.facts.token_bytes, read.facts.draft_token_bytes
    return bool(target and draft and target.low + draft.low <= expected <= target.high + draft.high)


def rest(read: Read, expected: float) -> bool:
    """From the refusal; no ratio helps where it is negative."""
    refused = read.boot.refused
    return bool(refused and refused.rest_gib == expected and (expected > 0 or "No ratio helps" in refused.refusal.cure))


def idle_state(read: Read, expected: float) -> bool:
    """State that only serves as prefix checkpoints: slots beyond what the requests asked for need."""
    assert read.facts.slot_bytes
    spare = (read.facts.slots or 0) - read.case.expected["slots_needed_for_flag"]
    return close(spare * read.facts.slot_bytes.value / GIB, expected, 0.05)


CHECKS: dict[str, Callable[[Read, Any], bool]] = {
    "state_bytes_per_slot": slot_bytes,
    "kv_bytes_per_token": lambda read, value: measured_bytes(read.facts.token_bytes, value, "from_log"),
    "token_equiv": token_equiv,
    "S": slots_per_request,
    "D": lambda read, D: read.facts.draft_tokens in (D, None),
    "clamp_from_log": lambda read, clamp: read.clamp == clamp,
    "clamp_per_rank": lambda read, clamp: holds_whole(read.facts.slots_in_use, clamp),
    "slots_per_rank_from_usage": lambda read, slots: holds_whole(read.facts.slots_in_use, slots),
    "clamp_if_S": clamp_if,
    "clamp_line_says": lambda read, requests: read.facts.running == requests,
    "effective_max_running_requests": lambda read, requests: read.runs == requests,
    "max_running_requests": lambda read, requests: read.facts.running == requests,
    "max_mamba_cache_size": lambda read, slots: read.facts.slots == slots,
    "kv_tokens": lambda read, tokens: read.facts.kv_rows == tokens,
    "kv_cap_requests": lambda read, cap: kv_cap(read, read.L, cap),
    "kv_cap_requests_at_L_8192": lambda read, cap: kv_cap(read, 8192, cap),
    "binding_pool": binding,
    "r_star_seed": balance,
    "split_in_log": split,
    "at_r_star": pool_sum,
    "must_report_missing": missing,
    "must": must,
    "slope_bytes_per_slot": slope,
    "with_N64_div_N_plus_1": with_64,
    "draft_kv_bytes_per_token": draft_bytes,
    "kv_bytes_with_draft": with_draft,
    "rest_gib": rest,
    "recomputed_slots_at_r_0_9": lambda read, slots: bool(read.boot.refused and read.boot.refused.slots == slots),
    "boots_found": lambda read, boots: len(read.log.boots) == boots,
    "failed_boots": lambda read, boots: len(read.log.failed) == boots,
    "idle_state_gib": idle_state,
}  # fmt: skip

# What a report says beyond its log: words for a page, another L, the pin for a wish, or what the checks above use.
NOT_OF_THE_LOG = {
    "L", "advice", "also", "architecture_exact", "binding_now", "diagnosis", "intermediate_check", "must_not", "note",
    "pin_for_16", "r_star_without_D", "slots_for_32", "slots_needed_for_flag", "slots_per_rank_from_flags",
    "token_equiv_range_from_rounding", "token_equiv_with_draft", "total",
}  # fmt: skip


def holds_whole(measured: Measured | None, number: int) -> bool:
    """Whether a measured count can only be this whole number."""
    return measured is not None and number - 1 < measured.low <= number <= measured.high < number + 1
