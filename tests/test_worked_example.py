"""The worked example, number by number: Kimi-K3 at TP8, L = 9216, rest 28.529 GiB.

The first row's slots, tokens and clamp are those of the specification's boot log and of the engine
(`spec_doc-449` in golden/engine.json). Every other number was asked of this project beforehand, and
`test_exact_arithmetic_agrees` derives each row again from engine-sizing.md sections 5 to 7, in fractions.
"""

from fractions import Fraction
from math import floor
from typing import Any, NamedTuple

import pytest

from sizing import Problem, Refusal, Scenario, Split, read_scenario, solve
from sizing.engine.rank import rank_of
from sizing.engine.requests import estimate

LAZY: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer_lazy"}
BALANCED: dict[str, Any] = {"split": "balanced"}


class Row(NamedTuple):
    """One split of the worked example: inputs, and what comes out."""

    inputs: dict[str, Any]
    ratio: float
    """Stated, or r* as it is typed."""
    S: int
    slots: int | None
    """None where only the requests were asked for."""
    clamp: int
    kv_cap: int


ROWS = {
    "default": Row({}, 0.9, S=5, slots=257, clamp=51, kv_cap=126),
    "balanced": Row(BALANCED, 2.2045, S=5, slots=374, clamp=74, kv_cap=75),
    "lazy balanced": Row({**LAZY, **BALANCED}, 1.7636, S=4, slots=None, clamp=86, kv_cap=87),
    "DCP8 lazy at 14": Row(
        {**LAZY, "dcp_size": 8, "mamba_full_memory_ratio": 14}, 14, S=4, slots=None, clamp=126, kv_cap=131
    ),
    "four drafts": Row({"D": 4}, 0.9, S=5, slots=140, clamp=28, kv_cap=127),
    "four drafts balanced": Row({"D": 4, **BALANCED}, 3.9681, S=5, slots=239, clamp=47, kv_cap=49),
}

by_row = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())


def split_now(**inputs: Any) -> Split:
    """The worked example with some inputs changed, solved."""
    now = solve(Scenario(**inputs)).now
    assert isinstance(now, Split)
    return now


@by_row
def test_row(row: Row) -> None:
    """Each split gives its ratio, S, slots, clamp and KV cap."""
    now = split_now(**row.inputs)
    assert (now.ratio, solve(Scenario(**row.inputs)).S) == (row.ratio, row.S)
    assert (now.clamp, now.kv_cap) == (row.clamp, row.kv_cap)
    assert row.slots in (None, now.slots)
    assert now.runs == min(row.clamp, row.kv_cap)


@by_row
def test_exact_arithmetic_agrees(row: Row) -> None:
    """Fractions instead of floats give the same slots, clamp and cap."""
    scenario = Scenario(**row.inputs)
    slot, D, page = scenario.state_bytes_per_slot, scenario.D, scenario.page_size
    rest, ratio = Fraction("28.529") * 2**30, Fraction(str(row.ratio))
    budget = rest * ratio / (1 + ratio)
    slots = floor((budget - (1 + D) * slot) / (slot * (1 + Fraction(D, row.S))))
    clamp = slots // row.S
    kv_rest = rest - (slots + 1) * slot - (min(48, clamp) + 1) * D * slot
    rows = floor(kv_rest) // scenario.kv_bytes_per_token // page * page
    now = split_now(**row.inputs)
    assert (now.slots, now.clamp, now.kv_rows) == (slots, clamp, rows)
    assert (row.clamp, row.kv_cap) == (clamp, rows * scenario.dcp_size // scenario.L)


def test_default_split_meets_the_boot_log() -> None:
    """At the default ratio: 1,167,552 tokens, 51 requests, the state pool binds, the pools meet at L = 22,893."""
    now = split_now()
    assert now.kv_rows == now.kv_tokens == 1_167_552
    assert (now.runs, now.admitted, now.binding.name) == (51, 51, "state pool")
    assert now.crossing == 22_893


@pytest.mark.parametrize(
    ("inputs", "r_star"),
    [
        pytest.param({}, "2.2045", id="default"),
        pytest.param(LAZY, "1.7636", id="lazy"),
        pytest.param({"D": 4}, "3.968", id="four drafts"),
    ],
)
def test_balance_ratio_from_exact_bytes(inputs: dict[str, Any], r_star: str) -> None:
    """r* comes from exact bytes, not from the rounded sizes of a log."""
    decimals = len(r_star.split(".")[1])
    assert f"{solve(Scenario(**inputs)).r_star:.{decimals}f}" == r_star


@pytest.mark.parametrize(
    ("inputs", "S", "best"),
    [
        pytest.param({}, 5, 74, id="default"),
        pytest.param({"mamba_ssm_dtype": "bfloat16"}, 5, 112, id="bfloat16 states"),
        pytest.param({**LAZY, "skip_decode_lock": True}, 3, 103, id="lazy with the skip"),
        pytest.param(LAZY, 4, 86, id="lazy"),
        pytest.param({"skip_decode_lock": True}, 4, 86, id="default strategy with the skip"),
    ],
)
def test_best_of_each_lever(inputs: dict[str, Any], S: int, best: int) -> None:
    """What no split can beat, lever by lever, and the balanced split reaches it."""
    sizing = solve(Scenario(**inputs))
    assert sizing.S == S
    assert sizing.optimum is not None
    assert sizing.optimum.runs == best
    assert isinstance(sizing.balanced, Split)
    assert sizing.balanced.runs == best


def test_best_slots_and_pin_of_the_worked_example() -> None:
    """74 x 5 slots are the fewest that run 74; from one slot beyond the most on KV holds only 73."""
    best = solve(Scenario()).optimum
    assert best is not None
    assert best.slots_low == 74 * 5
    runs = {
        slots: split_now(split="pin", max_mamba_cache_size=slots).runs
        for slots in (best.slots_low - 1, best.slots_low, best.slots_high, best.slots_high + 1)
    }
    assert list(runs.values()) == [73, 74, 74, 73]
    assert (best.pin, best.runs, best.unspared) == (74 * 5 + 1, 74, 74)
    assert isinstance(best.ratio_low, float)
    assert isinstance(best.ratio_high, float)
    assert split_now(mamba_full_memory_ratio=best.ratio_low).slots == best.slots_low
    assert split_now(mamba_full_memory_ratio=best.ratio_high).slots == best.slots_high


def test_memory_of_the_worked_example() -> None:
    """257 slots hold 51 x 5 in use, 2 idle and one of padding; KV holds 51 requests of 9216 tokens."""
    now = split_now()
    slot, token = 56_171_520, 13_824
    assert now.memory.state_used == 255 * slot
    assert now.memory.state_idle == 2 * slot
    assert now.memory.state_padding == slot
    assert now.memory.draft_reserve == 0
    assert now.memory.kv_used == 51 * 9216 * token
    assert now.memory.kv_idle == (1_167_552 - 51 * 9216) * token


def test_drafts_are_charged_for_what_is_asked() -> None:
    """Unset under speculation the requests are 48; the reserve is for 28 that the state pool admits, plus one."""
    now = split_now(D=4)
    assert now.memory.draft_reserve == (28 + 1) * 4 * 56_171_520
    assert [limit.requests for limit in now.limits if limit.name == "requests asked"] == [48]


def test_limits_of_the_worked_example() -> None:
    """Each limit says its number, how it comes about and the flag that lifts it, the binding one first."""
    assert [tuple(limit.model_dump().values()) for limit in split_now().limits] == [
        (
            "state pool",
            51,
            "257 slots, 5 per request: 51 fit",
            "a larger --mamba-full-memory-ratio or --max-mamba-cache-size",
        ),
        (
            "KV pool",
            126,
            "1,167,552 tokens, 9,216 per request: 126 fit",
            "a smaller --mamba-full-memory-ratio or --max-mamba-cache-size",
        ),
        (
            "estimate",
            2280,
            "the engine's own: 1,167,552 tokens / 262,144 context x 512, from 2,048 to 4,096",
            "--max-running-requests",
        ),
        (
            "tokens // 2",
            583_776,
            "half of 1,167,552 tokens",
            "a smaller --mamba-full-memory-ratio or --max-mamba-cache-size",
        ),
    ]


def test_tie_is_the_state_pool() -> None:
    """Where both pools carry the same number the state pool binds, which fails hard."""
    now = split_now(mamba_ssm_dtype="bfloat16", **BALANCED)
    assert (now.clamp, now.kv_cap, now.binding.name) == (112, 112, "state pool")


@pytest.mark.parametrize(("rows", "wanted"), [(1_048_575, 2048), (1_048_576, 2048), (1_049_088, 2049), (2**22, 4096)])
def test_estimate_of_requests(rows: int, wanted: int) -> None:
    """Unset requests are int(tokens / context x 512), between 2,048 and 4,096 (engine-sizing.md section 7)."""
    assert estimate(rank_of(Scenario()), rows) == wanted


@pytest.mark.parametrize(
    ("inputs", "pages", "requests"),
    [
        pytest.param({"L": 9216}, 144, 1_167_552 // (144 * 64), id="whole pages"),
        pytest.param({"L": 9217}, 145, 1_167_552 // (145 * 64), id="one token more"),
        pytest.param({"L": 9217, "dcp_size": 8}, 19, 8 * 1_167_552 // (19 * 64 * 8), id="pages over eight ranks"),
    ],
)
def test_cap_in_whole_pages(inputs: dict[str, Any], pages: int, requests: int) -> None:
    """A request occupies whole pages of page_size x dcp_size tokens (engine-sizing.md section 6)."""
    L, page = inputs["L"], 64 * inputs.get("dcp_size", 1)
    assert (pages - 1) * page < L <= pages * page
    assert split_now(**inputs).kv_cap_whole_pages == requests


def test_split_without_a_ratio() -> None:
    """A pin, or requests without a radix cache, decide the slots themselves; such a split has no ratio."""
    pin = split_now(split="pin", max_mamba_cache_size=257)
    asked = split_now(disable_radix_cache=True, max_running_requests=64)
    assert (pin.ratio, pin.slots) == (None, 257)
    assert (asked.ratio, asked.slots, asked.clamp) == (None, 64, 64)


def test_splits_beside_the_one_that_is_set() -> None:
    """Whatever is set, the engine's default, the balanced split and the safe pin are solved beside it."""
    sizing = solve(Scenario(split="pin", max_mamba_cache_size=100))
    assert sizing.default == split_now()
    assert sizing.balanced == split_now(**BALANCED)
    assert sizing.pinned == split_now(split="pin", max_mamba_cache_size=371)


def test_one_gib_more() -> None:
    """What one GiB more adds is the difference between the two optima."""
    now, richer = solve(Scenario()), solve(Scenario(rest_gib=29.529))
    assert now.optimum is not None
    assert richer.optimum is not None
    assert now.gib_more == richer.optimum.runs - now.optimum.runs == 3


@pytest.mark.parametrize(
    ("inputs", "slots", "drafts"),
    [
        pytest.param({"split": "pin", "max_mamba_cache_size": 10_000_000}, 10_000_001, 0, id="largest pin"),
        pytest.param(
            {"disable_radix_cache": True, "max_running_requests": 1_000_000, "D": 256},
            1_000_001,
            1_000_001 * 256,
            id="most requests and drafts",
        ),
    ],
)
def test_problem_largest_inputs(inputs: dict[str, Any], slots: int, drafts: int) -> None:
    """At the bounds of every input nothing overflows: the refusal still names the right memory."""
    largest = 2**33  # bytes of a slot at bfloat16; twice that at float32, which runs
    now = solve(
        Scenario(
            rest_gib=28.529, state_bytes_per_slot=largest, conv_bytes_per_slot=0, state_bytes_dtype="bfloat16", **inputs
        )
    ).now
    assert isinstance(now, Refusal)
    assert now.kind == "no_kv_memory"
    assert f" take {(slots + drafts) * 2 * largest / 2**30:.2f} GiB of 28.529 GiB rest" in now.cure


def test_problem_slot_beyond_its_bound() -> None:
    """A slot of more bytes than any solve can hold is turned down at the door."""
    assert read_scenario({"state_bytes_per_slot": 2**33 + 1}) == [
        Problem(
            where="state_bytes_per_slot",
            sentence="State bytes per slot must be 8589934592 or less, not “8589934593”.",
        )
    ]
