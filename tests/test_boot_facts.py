"""Sixteen boot logs, 0.5.4 to 0.5.23: from `rest` and the bytes to what each of them prints.

golden/boot_logs/facts.json holds the numbers of each log; the table below holds what else its lines say, by its name.
`rest` was not printed by any release: it is what the log was made with (`Load weight end` less the slack).
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sizing import Scenario, Split, solve
from sizing.answers.solve import Sizing
from sizing.basics.units import GIB

FACTS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "golden" / "boot_logs" / "facts.json").read_text())

MEM_FRACTION = 0.85  # `mem_fraction_static` in all sixteen
# Conv part of a slot: linear layers x columns x width x 2 bytes (model-geometry.md, sections 2 and 5).
KDA_TP8 = 69 * 3 * (3 * 96 * 128 // 8) * 2
GDN_TP4 = 36 * 3 * ((32 + 2 * 16) * 128 // 4) * 2
GDN_TP8 = 36 * 3 * ((32 + 2 * 16) * 128 // 8) * 2
MAMBA2_TP2 = 27 * 3 * ((128 * 80 + 2 * 8 * 128) // 2) * 2
# One ring position of KDA: two values and two keys a head at 2 bytes, a beta a head and a gate for each key element
# at 4 (engine-sizing.md section 5).
KDA_RING_TP8 = 69 * (2 * 12 * 128 * 2 + 2 * 12 * 128 * 2 + 4 * 12 + 4 * 12 * 128)

STATES = "state slots and the padding slot"
DRAFTS = "draft states"
WINDOWS = "conv windows of drafts"
RINGS = "ReplaySSM rings"
KV = "KV pool and its padding page"
DRAFT_KV = "draft KV pool and its padding page"


class Boot(NamedTuple):
    """What a log's lines say beside the numbers in the facts."""

    family: str
    tp: int
    conv: int
    S: int
    begin: float
    """The first `Load weight begin. avail mem=` [GiB]."""
    end: float
    """The last `Load weight end. avail mem=` before the pools [GiB]."""
    printed: dict[str, tuple[float, ...]]
    """Every size that is printed [GiB], by what it is a part of."""
    left: tuple[float, ...]
    """Each `Memory pool end. avail mem=` [GiB]: after the target's pools, and after the draft's."""
    flags: dict[str, Any]
    """What the arguments line says, where it is not the default here."""


EXTRA: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer"}
KIMI: dict[str, Any] = {"architecture": "KimiLinearForCausalLM"}
BF16: dict[str, Any] = {"kv_cache_dtype": "bfloat16"}
# `speculative_algorithm` EAGLE, `speculative_num_draft_tokens` 4, `max_running_requests` 128.
EAGLE4: dict[str, Any] = {"speculative_algorithm": "EAGLE", "D": 4, "max_running_requests": 128}

# S is printed by the warning "is capped to .. (.., 5 state slots per request)" alone, which exists since 0.5.17 and
# only where the clamp binds. Elsewhere it is stated from the flags, as each comment says.
BOOTS = {
    "0.5.4_gdn_gqa_tp8.log": Boot(
        # S stated: the release has no strategies. 2,106 slots for 702 requests are 3 each.
        "GDN", 8, GDN_TP8, 3, 138.00, 60.70, {STATES: (0.43, 18.52), KV: (10.53, 10.53)}, (20.69,), BF16,
    ),
    "0.5.6_kda_mla_tp8.log": Boot(
        # S stated: the release turns the radix cache of Kimi-Linear off. 512 slots for 512 requests.
        "KDA", 8, KDA_TP8, 1, 178.00, 55.23, {STATES: (0.91, 25.93), KV: (1.74,)}, (26.65,), KIMI,
    ),
    "0.5.8_gdn_gqa_tp8_eagle4.log": Boot(
        # S stated: extra_buffer under speculation is 4 in this release; nothing printed depends on it.
        "GDN", 8, GDN_TP8, 4, 138.00, 60.70,
        {STATES: (0.38, 16.38), DRAFTS: (4.54, 0.11), KV: (9.32, 9.32)}, (20.65,), EXTRA | EAGLE4 | BF16,
    ),
    "0.5.10_kda_mla_tp8.log": Boot(
        # S stated: the radix cache of Kimi-Linear is off here too. 258 slots for 258 requests.
        "KDA", 8, KDA_TP8, 1, 178.00, 55.23, {STATES: (0.46, 13.09), KV: (15.03,)}, (26.65,), EXTRA | KIMI,
    ),
    "0.5.13_gdn_gqa_tp8.log": Boot(
        # S stated: extra_buffer, overlap on. 2,106 slots for 421 requests are 5 each.
        "GDN", 8, GDN_TP8, 5, 138.00, 60.70, {STATES: (0.43, 18.52), KV: (10.53, 10.53)}, (20.69,), EXTRA | BF16,
    ),
    "0.5.15_gdn_gqa_tp8_eagle4.log": Boot(
        # S stated: extra_buffer, overlap on; K = 1,170 comes out with it.
        "GDN", 8, GDN_TP8, 5, 138.00, 60.70,
        {STATES: (0.24, 10.29), DRAFTS: (4.54, 0.05), KV: (11.48, 11.48)}, (22.62,), EXTRA | EAGLE4 | BF16,
    ),
    "0.5.17_kda_mla_tp8.log": Boot(
        # S stated: extra_buffer, overlap on. 257 slots for 51 requests are 5 each.
        "KDA", 8, KDA_TP8, 5, 178.00, 55.23, {STATES: (0.46, 13.04), KV: (15.03,)}, (26.70,), EXTRA,
    ),
    "0.5.19_gdn_gqa_tp8.log": Boot(
        # S stated: extra_buffer, overlap on. 2,105 slots for 421 requests are 5 each.
        "GDN", 8, GDN_TP8, 5, 138.00, 60.70, {STATES: (0.43, 18.51), KV: (10.53, 10.53)}, (20.70,), EXTRA | BF16,
    ),
    "0.5.21_kda_mla_tp8.log": Boot(
        # S stated: extra_buffer, overlap on. The arguments line is short; dp, dcp and pp are not in it and taken as 1.
        "KDA", 8, KDA_TP8, 5, 178.00, 55.23, {STATES: (0.46, 13.04), KV: (15.03,)}, (26.70,), EXTRA,
    ),
    "0.5.23_kda_mla_tp8_default.log": Boot(
        "KDA", 8, KDA_TP8, 5, 178.00, 55.23, {STATES: (0.46, 13.04), KV: (15.03,)}, (26.70,), EXTRA,
    ),
    "0.5.23_kda_mla_tp8_dcp8.log": Boot(
        "KDA", 8, KDA_TP8, 5, 178.00, 54.34, {STATES: (0.80, 22.84), KV: (3.99,)}, (26.70,),
        EXTRA | {"dcp_size": 8, "mamba_full_memory_ratio": 5.97},
    ),
    "0.5.23_gdn_gqa_tp4_nospec.log": Boot(
        "GDN", 4, GDN_TP4, 5, 178.00, 76.70, {STATES: (0.54, 23.13), KV: (13.16, 13.16)}, (26.70,), EXTRA | BF16,
    ),
    "0.5.23_gdn_gqa_tp4_eagle4.log": Boot(
        # S stated: extra_buffer, overlap on; K = 728 comes out with it.
        "GDN", 4, GDN_TP4, 5, 178.00, 76.70,
        {STATES: (0.30, 12.81), DRAFTS: (9.07, 0.11), KV: (12.74, 12.74), DRAFT_KV: (1.06, 1.06)},
        (28.93, 26.81), EXTRA | EAGLE4 | BF16,
    ),
    "0.5.23_kda_mla_tp8_eagle4_replayssm.log": Boot(
        "KDA", 8, KDA_TP8, 5, 178.00, 76.70,
        {
            STATES: (0.59, 16.78), WINDOWS: (0.00, 0.48), RINGS: (1.049, 1.049, 2.097, 1.049, 1.049, 0.016),
            KV: (25.27,), DRAFT_KV: (1.05,),
        },
        (27.28, 26.22), EXTRA | EAGLE4 | {"replayssm": "spec", "linear_replayssm_cache_len": 16},
    ),
    "0.5.23_mamba2_tp2_no_radix.log": Boot(
        # S stated: the radix cache is off.
        "Mamba2", 2, MAMBA2_TP2, 1, 178.00, 66.70, {STATES: (0.19, 13.25), KV: (13.28, 13.28)}, (26.70,),
        BF16 | {"disable_radix_cache": True, "max_running_requests": 200, "context_length": 131_072},
    ),
    "0.5.23_gdn_gqa_tp8_dp2.log": Boot(
        # Two attention-DP ranks of TP 4 each, so the conv part is that of TP 4.
        "GDN", 8, GDN_TP4, 5, 178.00, 66.70, {STATES: (0.43, 18.51), KV: (10.53, 10.53)}, (26.70,),
        EXTRA | {"attn_dp_size": 2},
    ),
}  # fmt: skip

by_log = pytest.mark.parametrize("fact", [pytest.param(fact, id=fact["file"]) for fact in FACTS])


def sizing_of(fact: dict[str, Any]) -> tuple[Sizing, Split]:
    """The log's deployment, solved."""
    boot = BOOTS[fact["file"]]
    full_layers = {"KDA": 24, "GDN": 12, "Mamba2": 4}[boot.family]
    values = {
        "release": fact["version"],
        "family": boot.family,
        "attention": "MLA" if boot.family == "KDA" else "GQA",
        "tp_size": boot.tp,
        "rest_gib": fact["rest_gib"],
        "state_bytes_per_slot": fact["state_bytes_per_slot"],
        "conv_bytes_per_slot": boot.conv,
        "conv_kernel": 4,
        "ring_bytes_per_position": KDA_RING_TP8,
        "kv_bytes_per_token": fact["kv_bytes_per_token_target"],
        # The drafts have one full-attention layer each.
        "draft_kv_bytes_per_token": fact["kv_bytes_per_token_target"] // full_layers,
        "kv_bytes_dtype": boot.flags.get("kv_cache_dtype", "fp8_e4m3"),
        "kv_bytes_dcp_size": boot.flags.get("dcp_size", 1),
        "page_size": fact["page_size"],
        "kv_cache_dtype": "fp8_e4m3",
        "context_length": 262_144,
    }
    sizing = solve(Scenario.model_validate(values | boot.flags))
    assert isinstance(sizing.now, Split)
    return sizing, sizing.now


def left(fact: dict[str, Any], sizing: Sizing, *, with_draft: bool) -> float:
    """Free memory when the pools are sized less everything that is allocated [GiB], the draft's KV pool or not."""
    used = [row.allocated or 0 for row in sizing.allocations if with_draft or row.what != DRAFT_KV]
    return available(fact) - sum(used) / GIB


def available(fact: dict[str, Any]) -> float:
    """`rest` and the slack: pre_load_free x (1 - mem_fraction_static), engine-sizing.md section 1 [GiB]."""
    return float(fact["rest_gib"]) + BOOTS[fact["file"]].begin * (1 - MEM_FRACTION)


def test_every_log_is_compared() -> None:
    """The facts and the table hold the same sixteen logs."""
    assert [fact["file"] for fact in FACTS if fact["file"] not in BOOTS] == []
    assert len(FACTS) == len(BOOTS) == len({fact["file"] for fact in FACTS}) == 16


@by_log
def test_log_prints_what_is_solved(fact: dict[str, Any]) -> None:
    """Slots, tokens of a rank, logical tokens and running requests are those of the log, to the last one."""
    sizing, now = sizing_of(fact)
    found = {
        "max_mamba_cache_size": now.slots,
        "kv_rows_per_rank": now.kv_rows,
        "logical_tokens": now.kv_tokens,
        "max_running_requests": now.admitted,
        "S": sizing.S,
        "kv_bytes_per_token_charged": sizing.token_bytes,
    }
    assert {name: value for name, value in found.items() if fact.get(name, value) != value} == {}
    assert sizing.S == BOOTS[fact["file"]].S


@by_log
def test_rest_agrees_with_the_log(fact: dict[str, Any]) -> None:
    """`rest` and the slack are what `Load weight end` prints, within its rounding."""
    assert available(fact) == pytest.approx(BOOTS[fact["file"]].end, abs=0.005)
    assert available(fact) == pytest.approx(fact.get("available_gib_at_sizing", available(fact)), abs=1e-9)


@by_log
def test_sizes_that_are_printed(fact: dict[str, Any]) -> None:
    """Each pool, buffer and ring is as large as printed, within the rounding of its figures."""
    sizing, _ = sizing_of(fact)
    printed = BOOTS[fact["file"]].printed
    found = {row.what: (row.allocated or 0) / GIB for row in sizing.allocations}
    rounding = 0.0051  # of a figure with two decimals, and what binary floats add
    assert {
        what: (found[what], figures)
        for what, figures in printed.items()
        if abs(found[what] - sum(figures)) > rounding * len(figures)
    } == {}
    # The logs of older releases hold the target's lines only: a draft's pool is not in them.
    assert set(found) - set(printed) <= {DRAFT_KV}


@by_log
def test_memory_left_after_the_pools(fact: dict[str, Any]) -> None:
    """`Memory pool end` is what was free less all that is allocated, after the target's pools and after the draft's."""
    sizing, _ = sizing_of(fact)
    assert all(row.allocated is not None for row in sizing.allocations)
    after = BOOTS[fact["file"]].left
    found = [left(fact, sizing, with_draft=with_draft) for with_draft in (False, True)]
    assert found[: len(after)] == pytest.approx(list(after), abs=0.01)


def test_a_draft_pool_is_looked_at() -> None:
    """Two logs print what is left after the draft's pools, and there the draft's pool takes something."""
    both = [fact for fact in FACTS if len(BOOTS[fact["file"]].left) == 2]
    assert len(both) == 2
    for fact in both:
        sizing, _ = sizing_of(fact)
        assert left(fact, sizing, with_draft=False) - left(fact, sizing, with_draft=True) > 1
