"""Limits, what lifts the first, what flips the verdict, and what is allocated: each against a solve of its own."""

from typing import Any

import pytest

from sizing import Refusal, Scenario, Sizing, Split, solve
from sizing.answers.flip_points import flips
from sizing.answers.limit_panel import lifts
from sizing.specification import binding_pool

GIB = 2**30
GQA = {
    "family": "GDN",
    "attention": "GQA",
    "kv_heads": 2,
    "state_bytes_per_slot": 19_316_736,
    "conv_bytes_per_slot": 442_368,
    "kv_bytes_per_token": 12_288,
    "kv_bytes_dtype": "bfloat16",
    "kv_cache_dtype": "bfloat16",
    "tp_size": 4,
    "rest_gib": 50,
}
EAGLE = {"D": 4, "draft_kv_bytes_per_token": 576}
SCENARIOS: list[dict[str, Any]] = [
    {},
    {"split": "balanced"},
    {"L": 200_000},
    {"split": "pin", "max_mamba_cache_size": 500},
    {"max_running_requests": 20},
    {"model": "", "rest_gib": 28.529, "attn_dp_size": 2, "max_running_requests": 20},
    EAGLE,
    {**EAGLE, "replayssm": "spec"},
    {**EAGLE, "replayssm": "spec", "rest_gib": 50, "max_running_requests": 128},
    {**GQA, **EAGLE, "draft_kv_bytes_per_token": 1024},
    {**GQA, **EAGLE, "draft_kv_bytes_per_token": 1024, "replayssm": "spec", "ring_bytes_per_position": 222_336},
    {"dcp_size": 8, **EAGLE},
    {"release": "0.5.10", "model": "", "rest_gib": 28.529, "page_size": 1},
    {"release": "0.5.8", "D": 4, "model": "", "rest_gib": 28.529},
    # A prefill server charges no draft states, so that every D makes the same pools: the draft's KV alone turns them.
    {
        "disaggregation_mode": "prefill",
        "model": "",
        "rest_gib": 28.529,
        "L": 9534,
        "draft_kv_bytes_per_token": 20_000,
    },
]


def split(values: dict[str, Any]) -> tuple[Sizing, Split]:
    """A scenario solved, which must start."""
    sizing = solve(Scenario(**values))
    assert isinstance(sizing.now, Split)
    return sizing, sizing.now


@pytest.mark.parametrize("values", SCENARIOS, ids=str)
def test_the_first_limit_binds_and_the_second_is_next(values: dict[str, Any]) -> None:
    """Every limit is in the panel once, smallest first, and the first is what runs."""
    sizing, now = split(values)
    rows = lifts(sizing)
    assert [row.limit for row in rows] == list(now.limits)
    assert [row.place for row in rows] == ["binds", "next", *[""] * (len(rows) - 2)]
    assert rows[0].limit.requests == now.runs


def test_the_value_that_lifts_a_limit_runs_what_it_says() -> None:
    """Each kind of limit, with the value named: solved with it, so many run."""
    for values, named, with_it, runs in (
        ({}, "--max-mamba-cache-size 371 to 376: 74 requests", {"split": "pin", "max_mamba_cache_size": 371}, 74),
        (
            {"max_running_requests": 20},
            "--max-running-requests 74 --mamba-full-memory-ratio 2.2: 20 → 74 run",
            {"max_running_requests": 74, "mamba_full_memory_ratio": 2.2},
            74,
        ),
        (
            {"model": "", "rest_gib": 28.529, "attn_dp_size": 2, "max_running_requests": 20},
            "--max-running-requests 148 --mamba-full-memory-ratio 2.2: 10 → 74 run",
            {
                "model": "",
                "rest_gib": 28.529,
                "attn_dp_size": 2,
                "max_running_requests": 148,
                "mamba_full_memory_ratio": 2.2,
            },
            74,
        ),
        (
            {"model": "", "rest_gib": 28.529, "attn_dp_size": 2},
            "--max-mamba-cache-size 742 to 752: 74 requests",
            {"model": "", "rest_gib": 28.529, "attn_dp_size": 2, "split": "pin", "max_mamba_cache_size": 742},
            74,
        ),
    ):
        assert named in lifts(split(values)[0])[0].lifted_by.split("; ")[0]
        assert split(with_it)[1].runs == runs


def test_nothing_lifts_the_best_split() -> None:
    """Where no split runs more the panel says so instead of naming a flag."""
    assert lifts(split({"split": "balanced"})[0])[0].lifted_by == "no split of this rest runs more: raise rest"


def test_a_release_that_ignores_a_pin_is_not_told_to_pin() -> None:
    """Up to 0.5.6 the ratio overwrites a pin: only the ratio is named."""
    (first, *_) = lifts(split({"release": "0.5.6", "model": "", "rest_gib": 28.529})[0])
    assert "--max-mamba-cache-size" not in first.lifted_by
    assert first.lifted_by.startswith("--mamba-full-memory-ratio")


def test_a_refused_split_has_no_limits_and_no_flips() -> None:
    """Nothing is said of pools that are not there."""
    sizing = solve(Scenario(rest_gib=0.1))
    assert isinstance(sizing.now, Refusal)
    assert (lifts(sizing), flips(sizing)) == ((), ())


FIELD_OF = {"L": "L", "rest": "rest_gib", "D": "D", "SSM dtype": "mamba_ssm_dtype", "KV dtype": "kv_cache_dtype"}
FIELD_OF["dcp_size"] = "dcp_size"


def short(values: dict[str, Any]) -> str:
    """The pool that is short first."""
    now = split(values)[1]
    return binding_pool(now.clamp, now.kv_cap)


@pytest.mark.parametrize("values", SCENARIOS, ids=str)
def test_a_flip_flips_when_solved_and_the_value_before_it_does_not(values: dict[str, Any]) -> None:
    """Each value named, put in with the ratio held, turns the pools; for L the neighbour does not."""
    sizing, _ = split(values)
    held = values
    if values.get("split") == "balanced":
        held = {**values, "split": "ratio", "mamba_full_memory_ratio": sizing.ratio_now}
    here = short(held)
    found = {flip.quantity: flip for flip in flips(sizing)}
    assert list(found) == ["L", "rest", "S", "D", "SSM dtype", "KV dtype", "dcp_size"]
    for name, field in FIELD_OF.items():
        if not found[name].then:
            continue
        text = found[name].flips_at.removesuffix(" GiB").replace(",", "")
        assert short({**held, field: text}) == found[name].then != here
        if name == "L":
            neighbour = int(text) - 1 if here == "state pool" else int(text) + 1
            assert short({**held, field: neighbour}) == here


def test_flips_of_a_balanced_split_are_near() -> None:
    """At the balance a smaller S, a bfloat16 state or a bfloat16 KV turns the verdict."""
    found = {flip.quantity: flip.flips_at for flip in flips(split({"split": "balanced"})[0])}
    assert found["L"] == "9,354"
    assert found["S"] == "4 (SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1)"
    assert (found["SSM dtype"], found["KV dtype"]) == ("bfloat16", "bfloat16")


def test_a_pin_flips_with_rest() -> None:
    """500 pinned slots leave KV short until rest holds 100 requests of L beside them; a thousandth less does not."""
    values = {"split": "pin", "max_mamba_cache_size": 500}
    (rest,) = [flip for flip in flips(split(values)[0]) if flip.quantity == "rest"]
    edge = float(rest.flips_at.removesuffix(" GiB"))
    assert short({**values, "rest_gib": edge}) == "state pool"
    assert short({**values, "rest_gib": edge - 0.001}) == "KV pool"


def test_draft_kv_under_dcp_is_allocated_dcp_times() -> None:
    """EAGLE on MLA: charged once a row, allocated for rows x dcp_size (engine-sizing.md section 6)."""
    sizing, now = split({"dcp_size": 8, **EAGLE})
    (draft,) = [row for row in sizing.allocations if row.what.startswith("draft KV")]
    assert draft.charged == now.kv_rows * 576
    assert draft.allocated == (now.kv_rows * 8 + 64) * 576
    assert sizing.beyond == sum((row.allocated or 0) - row.charged for row in sizing.allocations) > 0


def test_dflash_is_charged_for_every_rank() -> None:
    """DFLASH is priced dcp_size times, so nothing is missing but a page."""
    sizing, now = split({"dcp_size": 8, **EAGLE, "speculative_algorithm": "DFLASH"})
    (draft,) = [row for row in sizing.allocations if row.what.startswith("draft KV")]
    assert draft.charged == now.kv_rows * 576 * 8
    assert draft.allocated == draft.charged + 64 * 576


def test_rings_are_pieces_of_their_own() -> None:
    """KDA: a ring on all K + 1 slots. GDN: one for each request that may run, and one more."""
    _, kda = split({**EAGLE, "replayssm": "spec"})
    assert kda.memory.rings == (kda.slots + 1) * 16 * 1_275_120
    assert kda.memory.draft_reserve == 0
    _, gdn = split({**GQA, "D": 4, "replayssm": "spec", "ring_bytes_per_position": 222_336})
    assert gdn.memory.rings == 49 * 16 * 222_336


def test_r_star_grows_by_kda_s_ring_and_not_by_gdn_s() -> None:
    """r* x (1 + ring / slot) for KDA (engine-sizing.md section 9); GDN keeps the plain value with D = 0."""
    plain, _ = split({"draft_kv_bytes_per_token": 576})
    kda, _ = split({**EAGLE, "replayssm": "spec"})
    assert kda.r_star == pytest.approx(5 * 56_171_520 / 14_400 / 9216 * (1 + 20_401_920 / 56_171_520))
    assert plain.r_star == pytest.approx(5 * 56_171_520 / 13_824 / 9216)
    gdn, _ = split({**GQA, "D": 4, "replayssm": "spec", "ring_bytes_per_position": 222_336})
    assert gdn.r_star == pytest.approx(5 * 19_316_736 / 12_288 / 9216)


def test_direct_solve_under_dcp_with_a_replicated_draft() -> None:
    """(S + D) x slot / (L x (target / dcp + draft)) beside what the engine charges (specification, Caveats)."""
    sizing, _ = split({"dcp_size": 8, **EAGLE})
    assert sizing.r_star_direct == pytest.approx(9 * 56_171_520 / (9216 * (13_824 / 8 + 576)))
    assert sizing.r_star == pytest.approx(9 * 56_171_520 / 14_400 * 8 / 9216)
    assert split({"dcp_size": 8})[0].r_star_direct is None


def test_kv_heads_of_gqa_follow_dcp() -> None:
    """2 heads at TP8: dcp_size 8 doubles a row; 8 heads multiply it by 8 (engine-sizing.md section 6)."""
    at = {**GQA, "tp_size": 8, "dcp_size": 8}
    assert split(at)[0].target_token_bytes == 2 * 12_288
    assert split({**at, "kv_heads": 8})[0].target_token_bytes == 8 * 12_288
    assert split({**at, "dcp_size": 4})[0].target_token_bytes == 12_288
    assert split({**at, "release": "0.5.17"})[0].target_token_bytes == 12_288
