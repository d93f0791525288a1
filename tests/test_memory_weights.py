"""Weights: parameters counted from config.json, and how ranks share them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sizing.basics.units import GIB
from sizing.memory.weights.index import MAX_INDEX_BYTES, total_size
from sizing.memory.weights.per_rank import Ranks, draft_per_rank, weights_per_rank
from sizing.memory.weights.table import Counted, count, fields_of
from sizing.memory.weights.variants import Variant, variant_of
from sizing.models import ModelRefusedError, catalogue, entry

# Checkpoint weight bytes, target without MTP [10**9 bytes]. Source: rest-before-boot.md section 3.2, table.
CHECKPOINTS: list[tuple[str, Variant, float]] = [
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "bf16", 159.3),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "fp8", 80.4),
    ("Qwen/Qwen3.5-4B", "bf16", 9.1),
    ("Qwen/Qwen3.5-4B", "fp8", 5.5),
    ("Qwen/Qwen3.5-9B", "bf16", 18.8),
    ("Qwen/Qwen3.5-9B", "fp8", 11.9),
    ("Qwen/Qwen3.5-27B", "bf16", 54.7),
    ("Qwen/Qwen3.5-27B", "fp8", 30.4),
    ("Qwen/Qwen3.5-35B-A3B", "bf16", 70.2),
    ("Qwen/Qwen3.5-35B-A3B", "fp8", 36.6),
    ("Qwen/Qwen3.5-397B-A17B", "bf16", 793.6),
    ("Qwen/Qwen3.5-397B-A17B", "fp8", 399.5),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "bf16", 63.2),
    ("moonshotai/Kimi-Linear-48B-A3B-Instruct", "bf16", 98.2),  # "about 98", 49.1 B parameters
    ("ibm-granite/granite-4.0-h-micro", "bf16", 6.4),
    ("ibm-granite/granite-4.0-h-small", "bf16", 64.4),
]
# `mem usage` of one rank [GiB] and the document's own error. Source: the same, section 4.2.
SEEN: list[tuple[str, Variant, int, float, float]] = [
    ("Qwen/Qwen3.5-4B", "bf16", 1, 8.62, 0.019),
    ("Qwen/Qwen3.5-9B", "bf16", 2, 8.85, 0.010),
    ("Qwen/Qwen3.5-27B", "bf16", 1, 51.05, 0.002),
    ("Qwen/Qwen3.5-27B", "bf16", 1, 51.86, 0.017),
    ("Qwen/Qwen3.5-27B", "fp8", 1, 28.47, 0.006),
    ("Qwen/Qwen3.5-27B", "fp8", 2, 14.49, 0.023),
    ("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "bf16", 4, 14.76, 0.004),
    ("ibm-granite/granite-4.0-h-micro", "bf16", 1, 5.98, 0.006),
]
QWEN, KIMI, NEMOTRON = "Qwen/Qwen3.5-397B-A17B", "moonshotai/Kimi-K3", "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8"
NEXT, LINEAR = "Qwen/Qwen3-Next-80B-A3B-Instruct", "moonshotai/Kimi-Linear-48B-A3B-Instruct"


def model(id: str) -> Counted:
    """A model of the catalogue."""
    return count(entry(id).config)


def countable() -> list[str]:
    """The models of the catalogue whose weights are counted."""
    found = []
    for item in catalogue():
        try:
            count(item.config)
        except ModelRefusedError:
            continue
        found.append(item.id)
    return found


@pytest.mark.parametrize(("id", "variant", "gigabytes"), CHECKPOINTS)
def test_checkpoint_bytes(id: str, variant: Variant, gigabytes: float) -> None:
    """The document's computed totals, to the decimal it prints."""
    assert weights_per_rank(model(id), variant, Ranks()).bytes / 1e9 == pytest.approx(gigabytes, abs=0.06)


@pytest.mark.parametrize(("id", "variant", "tp", "gib", "error"), SEEN)
def test_mem_usage(id: str, variant: Variant, tp: int, gib: float, error: float) -> None:
    """What boots loaded, never predicted worse than the document does, and always a little low."""
    ours = weights_per_rank(model(id), variant, Ranks(tp_size=tp)).bytes / GIB
    assert -error - 0.0005 <= ours / gib - 1 < 0


def test_draft_of_a_public_boot() -> None:
    """Qwen3.8-27B: 5.53 GiB charged for the MTP draft, printed (public boot log 68576807532)."""
    assert draft_per_rank(model("Qwen/Qwen3.5-27B"), "bf16", Ranks()) / GIB == pytest.approx(5.53, abs=0.005)


def test_mtp_makes_the_published_total() -> None:
    """With its MTP layer, embedding and head shared: Qwen3-Next as published, Qwen3.5-27B as on disk."""
    for id, total in ((NEXT, 163e9), ("Qwen/Qwen3.5-27B", 55_586_040_114)):
        one = model(id)
        ends = 2 * 2 * sum(piece.parameters for piece in one.pieces if piece.part == "embedding")
        mtp = draft_per_rank(one, "bf16", Ranks()) - ends
        assert weights_per_rank(one, "bf16", Ranks()).bytes + mtp == pytest.approx(total, rel=0.004)


def test_kimi_k3_is_about_1_4_tib() -> None:
    """MXFP4 experts and bf16 otherwise; the checkpoint's own config.json says so."""
    outer, inner = fields_of(entry(KIMI).config)
    assert variant_of(outer, inner) == "mxfp4"
    assert weights_per_rank(model(KIMI), "mxfp4", Ranks()).bytes / 2**40 == pytest.approx(1.4, abs=0.05)


def test_nvfp4_is_near_what_loads() -> None:
    """Nemotron-3-Super: 81.6 GB loaded (sgl-project/sglang#20580); within the 6 % the band gives 4-bit experts."""
    assert weights_per_rank(model(NEMOTRON), "nvfp4", Ranks()).bytes / 81.6e9 == pytest.approx(1, abs=0.06)


def test_dense_models_have_no_four_bit_rule() -> None:
    """Checkpoints of dense models differ in what is 4-bit: the bytes are asked for."""
    with pytest.raises(ModelRefusedError, match="total_size"):
        weights_per_rank(model("Qwen/Qwen3.5-27B"), "nvfp4", Ranks())


@pytest.mark.parametrize("id", ["inclusionAI/Ling-2.5-1T", "Qwen/Qwen3.5-2B", "tiiuae/Falcon-H1-3B-Instruct"])
def test_what_cannot_be_counted_is_asked_for(id: str) -> None:
    """No rule for the model, or a field that its file does not have: a sentence, no number."""
    with pytest.raises(ModelRefusedError, match="total_size"):
        model(id)


def held(id: str, **ranks: Any) -> dict[str, int]:
    """Bytes on one rank by part, in bf16."""
    return dict(weights_per_rank(model(id), "bf16", Ranks(**ranks)).parts)


def test_attention_dp_repeats_attention_and_not_experts() -> None:
    """GDN and attention once per DP group; experts stay over the whole width."""
    even, dp = held(QWEN, tp_size=8), held(QWEN, tp_size=8, attn_dp_size=8)
    assert dp["experts"] == even["experts"]
    assert dp["GDN"] == pytest.approx(8 * even["GDN"], rel=1e-6)


@pytest.mark.parametrize(("id", "times"), [(QWEN, 8), (NEXT, 4), (NEMOTRON, 4), (KIMI, 4), (LINEAR, 1)])
def test_embedding_under_attention_dp(id: str, times: int) -> None:
    """Whole on every rank, over the attention ranks, or over all, as each model's file has it."""
    even, dp = held(id, tp_size=8), held(id, tp_size=8, attn_dp_size=4)
    assert dp["embedding"] == pytest.approx(times * even["embedding"], rel=1e-6)
    assert dp["head"] == even["head"]


def test_dp_lm_head_shards_over_the_attention_ranks() -> None:
    """--enable-dp-lm-head, where the model's head reads it."""
    for id, times in ((QWEN, 4), (LINEAR, 1)):
        even = held(id, tp_size=8)["head"]
        dp = held(id, tp_size=8, attn_dp_size=4, enable_dp_lm_head=True)["head"]
        assert dp == pytest.approx(times * even, rel=1e-6)


def test_kv_heads_below_the_width_are_repeated() -> None:
    """Qwen3.5-397B has 2 KV heads: at TP 8 each rank holds one whole head, not a quarter of it."""
    wide = model(QWEN)
    pair = [piece for piece in wide.pieces if piece.units == 2]
    assert pair
    alone = {**held(QWEN, tp_size=1)}["attention"]
    kv = sum(piece.parameters * 2 for piece in pair)
    assert held(QWEN, tp_size=8)["attention"] == pytest.approx((alone - kv) / 8 + kv / 2, rel=1e-6)


def test_shared_experts_under_an_all_to_all() -> None:
    """DeepEP repeats them on every rank."""
    even, deepep = held(QWEN, tp_size=8), held(QWEN, tp_size=8, moe_a2a_backend="deepep")
    assert deepep["shared experts"] == pytest.approx(8 * even["shared experts"], rel=1e-6)


def test_heaviest_stage() -> None:
    """Stages together hold every piece once but the vision tower, and the heaviest is the answer."""
    whole = weights_per_rank(model(NEXT), "bf16", Ranks()).bytes
    heavy = weights_per_rank(model(NEXT), "bf16", Ranks(pp_size=4))
    assert whole / 4 < heavy.bytes < whole / 3
    last = weights_per_rank(model(NEXT), "bf16", Ranks(pp_size=2), draft=True)
    assert last.stage == 1
    assert "draft" in dict(last.parts)


def test_tied_head_costs_a_copy_on_another_stage() -> None:
    """Granite ties its head: on one stage it is the embedding, with two stages the last has its own."""
    micro = "ibm-granite/granite-4.0-h-micro"
    assert "tied head" not in held(micro)
    stages = weights_per_rank(model(micro), "bf16", Ranks(pp_size=2, pp_partition="10,30"))
    assert stages.stage == 1
    assert dict(stages.parts)["tied head"] == held(micro)["embedding"]


@settings(max_examples=60, deadline=None)
@given(
    id=st.sampled_from(countable()),
    variant=st.sampled_from(["bf16", "fp8"]),
    power=st.integers(0, 4),
    dp_power=st.integers(0, 4),
)
def test_ranks_hold_at_least_their_share(id: str, variant: Variant, power: int, dp_power: int) -> None:
    """All ranks together hold the whole model or more, one rank never more than it, and parts add up."""
    one = model(id)
    ranks = Ranks(tp_size=2**power, attn_dp_size=2 ** min(power, dp_power))
    whole, here = weights_per_rank(one, variant, Ranks()), weights_per_rank(one, variant, ranks)
    assert whole.bytes / ranks.tp_size <= here.bytes + 64
    assert here.bytes <= whole.bytes
    assert sum(size for _, size in here.parts) == here.bytes


def test_index_total() -> None:
    """total_size, as a whole number or as a float that is one."""
    for text in ('{"metadata":{"total_size":5}}', b'{"metadata":{"total_size":5.0},"weight_map":{"a":"b"}}'):
        assert total_size(text) == 5


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{}", '{"metadata":[]}', '{"metadata":{"total_size":-1}}', '{"metadata":{"total_size":"5"}}',
        '{"metadata":{"total_size":true}}', '{"metadata":{"total_size":1e400}}', '{"metadata":{"total_size":NaN}}',
        b"\xff\xfe", "[" * 100_000, json.dumps({"metadata": {"total_size": 2**60}}),
    ],
)  # fmt: skip
def test_hostile_index(text: str | bytes) -> None:
    """One sentence, whatever the file holds."""
    with pytest.raises(ModelRefusedError):
        total_size(text)


def test_index_is_bounded() -> None:
    """A file that is too large is not parsed."""
    with pytest.raises(ModelRefusedError, match="larger"):
        total_size(b" " * (MAX_INDEX_BYTES + 1))
