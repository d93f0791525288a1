"""The specification's closed forms, against the numbers that it prints itself."""

import pytest

from sizing import Scenario, solve
from sizing.basics.units import GIB
from sizing.specification import (
    binding_pool,
    kv_cap,
    kv_tokens,
    optimal_ratio,
    predict,
    predict_clamp,
    predict_slots,
    reasons_to_pin,
    token_equiv,
)

# compute-mamba-ratio.md, "Reference r": token_equiv 4080, S = 5.
PRINTED_RATIOS = [
    (2 * 1024, "10.0"),
    (4 * 1024, "5.0"),
    (8 * 1024, "2.5"),
    (32 * 1024, "0.62"),
    (64 * 1024, "0.31"),
    (128 * 1024, "0.16"),
]

# compute-mamba-ratio.md, the boot log of its worked example.
SLOTS, CONV_GIB, SSM_GIB = 257, 0.46, 13.04
TOKENS, KV_GIB = 1_167_552, 15.03
PAGE = 64  # a whole number of pages, and what the worked example assumes


@pytest.mark.parametrize(("L", "printed"), PRINTED_RATIOS)
def test_printed_ratio(L: int, printed: str) -> None:
    """The specification's row of reference ratios comes out to the digits it prints."""
    decimals = len(printed.split(".")[1])
    assert f"{optimal_ratio(L, 4080, 1, S=5):.{decimals}f}" == printed


@pytest.mark.parametrize(("dcp_size", "printed"), [(1, "1.8"), (8, "14")])
def test_worked_ratio(dcp_size: int, printed: str) -> None:
    """The two worked examples at L = 9216 with S = 4 come out to the digits the specification prints."""
    assert f"{optimal_ratio(9216, 4080, 1, S=4, dcp_size=dcp_size):.2g}" == printed


def test_drafts_and_dcp_multiply_the_ratio() -> None:
    """Drafts multiply r* by (S + D) / S, DCP by dcp_size, a longer context divides it."""
    plain = optimal_ratio(8192, 1024, 4, S=4)
    assert plain == 0.125
    assert optimal_ratio(8192, 1024, 4, S=4, D=4) == 2 * plain
    assert optimal_ratio(8192, 1024, 4, S=4, dcp_size=8) == 8 * plain
    assert optimal_ratio(16_384, 1024, 4, S=4) == plain / 2


def test_bytes_as_the_specification_reads_a_log() -> None:
    """X / N and Y / M of the printed log lines give the specification's 56.4 MB, 13.8 KB and about 4080."""
    state = (CONV_GIB + SSM_GIB) * GIB / SLOTS
    token = KV_GIB * GIB / TOKENS
    assert f"{state / 1e6:.1f} MB" == "56.4 MB"
    assert f"{token / 1e3:.1f} KB" == "13.8 KB"
    assert token_equiv(state, token) == pytest.approx(4080, abs=1)


def test_exact_bytes_print_the_same_log() -> None:
    """The worked example's exact bytes, times slots and rows with their padding, print the sizes in that log."""
    example = solve(Scenario())
    conv = example.scenario.conv_bytes_per_slot
    assert conv is not None
    assert f"{conv * (SLOTS + 1) / GIB:.2f}" == f"{CONV_GIB}"
    assert f"{(example.slot_bytes - conv) * (SLOTS + 1) / GIB:.2f}" == f"{SSM_GIB}"
    assert f"{example.token_bytes * (TOKENS + PAGE) / GIB:.2f}" == f"{KV_GIB}"


def test_bytes_by_all_slots_of_a_log() -> None:
    """X / (N + 1) gives 56.2 MB, within what two printed decimals leave open of the exact bytes."""
    state = (CONV_GIB + SSM_GIB) * GIB / (SLOTS + 1)
    open_left = 2 * 0.005 * GIB / (SLOTS + 1)
    assert f"{state / 1e6:.1f} MB" == "56.2 MB"
    assert abs(state - solve(Scenario()).slot_bytes) <= open_left


def test_exact_token_equiv() -> None:
    """From exact bytes one slot costs 4,063 tokens (engine-sizing.md section 2), not about 4080."""
    assert f"{solve(Scenario()).token_equiv:.0f}" == "4063"


def test_predicted_pools() -> None:
    """The budgets are rest x r / (1 + r) and rest / (1 + r), in whole slots, tokens and requests."""
    assert predict_slots(rest_bytes=1000, ratio=3, state_bytes_per_slot=10) == 75
    assert predict_clamp(rest_bytes=1000, ratio=3, state_bytes_per_slot=10, S=4) == 18
    assert kv_tokens(rest_bytes=1000, ratio=3, kv_bytes_per_token=4) == 62
    assert kv_cap(tokens=62, dcp_size=8, L=100) == 4


def test_predicted_clamp_ignores_drafts() -> None:
    """The printed code takes D and does not use it (engine-sizing.md section 5)."""
    assert predict_clamp(1000, 3, 10, S=4, D=8) == predict_clamp(1000, 3, 10, S=4)


@pytest.mark.parametrize(("clamp", "cap", "pool"), [(3, 4, "state pool"), (4, 4, "state pool"), (5, 4, "KV pool")])
def test_smaller_pool_binds(clamp: int, cap: int, pool: str) -> None:
    """The smaller of clamp and cap binds; a tie is the state pool's, which fails hard."""
    assert binding_pool(clamp, cap) == pool


def test_prediction_holds_every_closed_form() -> None:
    """One prediction is the closed forms side by side."""
    said = predict(rest_bytes=1000, ratio=3, state_bytes_per_slot=10, kv_bytes_per_token=4, S=4, D=0, dcp_size=8, L=100)
    assert said.model_dump() == {
        "ratio": 3,
        "slots": 75,
        "clamp": 18,
        "kv_tokens": 62,
        "kv_cap": 4,
        "binding": "KV pool",
    }


def test_two_balance_ratios_with_draft_kv() -> None:
    """With draft KV the specification's r* divides by the target's bytes, the exact one by target plus draft."""
    sizing = solve(Scenario(D=4, draft_kv_bytes_per_token=576))
    assert sizing.r_star_specification == optimal_ratio(9216, 56_171_520, 13_824, S=5, D=4)
    assert sizing.r_star == optimal_ratio(9216, 56_171_520, 13_824 + 576, S=5, D=4)


def test_no_reason_to_pin_the_worked_example() -> None:
    """Where the ratio is sturdy, the budget ample and DCP off, nothing speaks for a pin."""
    assert reasons_to_pin(28 * GIB, ratio=0.9, state_bytes_per_slot=56_171_520, S=5, dcp_size=1) == ()


def test_problem_every_reason_to_pin() -> None:
    """A budget under one request, a ratio below 0.15 and DCP are each a reason, said with the numbers."""
    assert reasons_to_pin(2 * GIB, ratio=0.125, state_bytes_per_slot=GIB // 4, S=5, dcp_size=8) == (
        "the state budget of 0.22 GiB is under one request's worth (1.25 GiB)",
        "a ratio below 0.15 is fragile: a small change moves a large share of the slots",
        "under DCP the balance moves far out in L and the ratio gets large: a slot count says what you mean",
    )
