"""What is put into memory beside what is charged: rows of a PD decode server, side states, a window pool."""

from typing import Any

import pytest

from sizing import RefusedError, Scenario, Split, read_scenario, solve
from sizing.answers.solve import Sizing
from sizing.engine.allocation import Allocation, DecodePool
from sizing.models import read_config

NEXT = "Qwen/Qwen3-Next-80B-A3B-Instruct"
SLOT = 38_633_472  # one slot of it at TP2, bytes: 36 layers x (32,768 / 2 conv elements x 2 + 16 x 128 x 128 x 4)
DECODE: dict[str, Any] = {
    "model": NEXT,
    "tp_size": 2,
    "kv_cache_dtype": "bfloat16",
    "page_size": 1,
    "rest_gib": 36,
    "disaggregation_mode": "decode",
}
QWEN4: dict[str, Any] = {
    "model_type": "qwen4_exp",
    "architectures": ["Qwen4ExpForConditionalGeneration"],
    "text_config": {
        "hidden_size": 2048,
        "num_hidden_layers": 48,
        "num_attention_heads": 16,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "full_attention_interval": 4,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_key_head_dim": 128,
        "linear_value_head_dim": 128,
        "linear_conv_kernel_dim": 4,
        "dtype": "bfloat16",
        "max_position_embeddings": 262_144,
        "ple_layer_ids": [1, 13, 13],
        "ngram_size": 3,
        "ple_conv_kernel_size": 4,
        "hc_count": 4,
    },
}


def solved(**inputs: Any) -> Sizing:
    """A deployment that starts."""
    sizing = solve(Scenario.model_validate(inputs))
    assert isinstance(sizing.now, Split), sizing.now
    return sizing


def row(sizing: Sizing, what: str) -> Allocation:
    """One thing that is allocated."""
    return next(row for row in sizing.allocations if row.what.startswith(what))


def test_a_decode_server_pays_for_24_and_allocates_72() -> None:
    """24 requests and twice as many in transfer have 72 slots; 48 of them come out of the slack."""
    sizing = solved(**DECODE, max_running_requests=24)
    assert sizing.decode_pool == DecodePool(extra_rows=48, rows=72, slots=72, slots_charged=24, draft_rows=0)
    assert sizing.S == 1
    slots = row(sizing, "state slots")
    assert (slots.charged, slots.allocated) == (25 * SLOT, 73 * SLOT)
    assert sizing.beyond == 48 * SLOT + 12_288  # and the padding page


@pytest.mark.parametrize(
    ("release", "slots"), [("0.5.8", 48), ("0.5.9", 200), ("0.5.10", 48), ("0.5.11", 200), ("0.5.23", 200)]
)
def test_what_becomes_of_a_pin_on_a_decode_server(release: str, slots: int) -> None:
    """A pin of 200 for 48 requests is charged in every release, and allocated in some."""
    pinned = DECODE | {"release": release, "split": "pin", "max_mamba_cache_size": 200, "max_running_requests": 48}
    pool = solved(**pinned).decode_pool
    assert pool is not None
    assert (pool.rows, pool.slots, pool.slots_charged) == (48, slots, 200)


@pytest.mark.parametrize(
    ("inputs", "extra"),
    [
        ({"max_running_requests": 32}, 64),
        ({"max_running_requests": 33}, 0),
        ({"max_running_requests": 64, "attn_dp_size": 2}, 64),  # 32 on each rank
        ({}, 0),
        ({"D": 4, "draft_kv_layers": 1}, 0),  # the 48 of speculation come later
        ({"max_running_requests": 32, "disaggregation_decode_extra_slots": 0}, 0),
        ({"max_running_requests": 64, "disaggregation_decode_extra_slots": 30}, 30),
    ],
    ids=str,
)
def test_extra_rows(inputs: dict[str, Any], extra: int) -> None:
    """Twice the requests of one rank where they are at most 32 and given by flag, unless a flag says how many."""
    pool = solved(**DECODE, **inputs).decode_pool
    assert pool is not None
    assert pool.extra_rows == extra


def test_extra_rows_follow_the_real_limit_until_0_5_13() -> None:
    """Without a flag the limit that runs decides: here a pin of 20."""
    pinned = DECODE | {"split": "pin", "max_mamba_cache_size": 20}
    for release, extra in (("0.5.13", 40), ("0.5.14", 0)):
        pool = solved(**pinned, release=release).decode_pool
        assert pool is not None
        assert (pool.extra_rows, pool.rows) == (extra, 20 + extra)


def test_other_servers_have_no_decode_pool() -> None:
    """Neither a server of both kinds nor a prefill server makes such rows."""
    for role in ("null", "prefill"):
        assert solved(**DECODE | {"disaggregation_mode": role}).decode_pool is None


def test_side_states_of_qwen4_are_allocated_and_not_charged() -> None:
    """Two distinct layers x 2,048 x 4 streams x (4 - 1) x 3 elements of 2 bytes, for every slot and every draft."""
    flags: dict[str, Any] = {"tp_size": 2, "kv_cache_dtype": "bfloat16", "rest_gib": 60, "max_running_requests": 8}
    for drafts in ({}, {"D": 4, "draft_kv_layers": 1}):
        scenario = read_scenario(flags | drafts, read_config(QWEN4))
        assert isinstance(scenario, Scenario), scenario
        sizing = solve(scenario)
        assert isinstance(sizing.now, Split)
        holders = sizing.now.slots + 1 + (sizing.now.admitted + 1) * scenario.D
        side = row(sizing, "side states")
        assert (side.charged, side.allocated) == (0, holders * 2 * 2048 * 4 * 3 * 3 * 2)
        assert scenario.state_bytes_per_slot == SLOT  # nothing of it is in the slot


def test_an_index_adds_a_key_of_its_own_to_every_token() -> None:
    """256 elements of 2 bytes for each 4 tokens, in 12 layers, whatever the KV dtype; pages are 64 tokens."""
    index = {
        "indexer_n_heads": 4,
        "indexer_kv_heads": 1,
        "indexer_head_dim": 256,
        "indexer_budget": 2048,
        "indexer_compress_ratio": 4,
    }
    config = QWEN4 | {"text_config": QWEN4["text_config"] | index}
    for dtype, row_bytes in (("bfloat16", 12_288), ("fp8_e4m3", 6144)):
        values = {"tp_size": 1, "kv_cache_dtype": dtype, "page_size": 1, "rest_gib": 28.529}
        scenario = read_scenario(values, read_config(config))
        assert isinstance(scenario, Scenario), scenario
        assert (scenario.attention, scenario.kv_bytes_per_token) == ("QSA", row_bytes + 12 * (256 * 2 // 4))
        assert solve(scenario).resolved.page_size == 64


def test_both_pools_of_inkling_are_allocated_with_a_page_each() -> None:
    """What is charged is a share of a row; what is allocated is whole rows of either pool."""
    sizing = solved(model="thinkingmachines/Inkling", tp_size=1, kv_cache_dtype="bfloat16", page_size=64, rest_gib=60)
    assert isinstance(sizing.now, Split)
    pools = row(sizing, "KV pool")
    assert pools.charged == int(sizing.now.kv_rows * 90_112)
    full, window = 11 * 8 * 256 * 2, 55 * 16 * 256 * 2
    assert pools.allocated == (sizing.now.kv_rows + 64) * full + (sizing.now.window_rows + 64) * window


def test_a_window_pool_by_requests_is_not_guessed() -> None:
    """With the radix cache off and a request count it depends on --chunked-prefill-size, which is no input."""
    flags: dict[str, Any] = {"tp_size": 1, "kv_cache_dtype": "bfloat16", "disable_radix_cache": True, "rest_gib": 60}
    with pytest.raises(RefusedError, match="--chunked-prefill-size"):
        solve(Scenario(model="thinkingmachines/Inkling", max_running_requests=8, **flags))
    assert isinstance(solve(Scenario(model="thinkingmachines/Inkling", page_size=1, **flags)).now, Split)
