"""rest before the first boot: what it is made of, its band, where it does not fit, and what is asked for."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from sizing.basics.units import GIB
from sizing.memory.automatic import automatic
from sizing.memory.before_load import Hardware, NotEstimatedError, before_load
from sizing.memory.boots import facts_of
from sizing.memory.fit import least_gpus, widths
from sizing.memory.loaded import Loaded, counted, typed
from sizing.memory.rest import RestEstimate, band_gib, estimate
from sizing.memory.stated import ModelFacts, Stated, model_facts
from sizing.memory.weights.per_rank import Ranks
from sizing.memory.weights.table import count
from sizing.memory.weights.variants import Variant
from sizing.models import ModelRefusedError, entry
from sizing.models.gpus import ALL_GPUS
from sizing.releases.rules import RELEASES, Release

QWEN, KIMI = "Qwen/Qwen3.5-397B-A17B", "moonshotai/Kimi-K3"
H200 = 143_771
TEXT = ModelFacts(architecture="Qwen3NextForCausalLM", mla=False)


def of(
    id: str, variant: Variant, mib: int, release: str = "0.5.23", vendor: str = "NVIDIA", **flags: Any
) -> RestEstimate:
    """The estimate for a model of the catalogue."""
    stated = Stated.model_validate(
        {"release": release, "model": facts_of(id), "gpu_memory_mib": mib, "vendor": vendor, **flags}
    )
    hardware = Hardware.model_validate({"vendor": vendor, "memory_mib": mib})
    loaded = counted(
        count(entry(id).config), variant, Ranks(tp_size=stated.tp_size, pp_size=stated.pp_size), release,
        stated.speculative_algorithm,
    )  # fmt: skip
    return estimate(stated, hardware, loaded)


def test_qwen_on_eight_h200() -> None:
    """Qwen3.5-397B-A17B FP8, TP 8, 4 draft tokens: by hand from the document's rules.

    f = 0.893 x 0.924765625 = 0.8258 (section 1.8); pre_load = 140.40 - 2.4.
    """
    found = of(QWEN, "fp8", H200, tp_size=8, speculative_algorithm="NEXTN", speculative_num_draft_tokens=4)
    assert found.mem_fraction_static == pytest.approx(0.8258, abs=5e-5)
    assert found.pre_load_gib == pytest.approx(138.0, abs=0.01)
    by_name = {part.name: part.gib for part in found.parts}
    assert by_name["multimodal reservation"] == 100 / 1024
    expected = 138.0 * 0.8258 - by_name["weights"] - by_name["draft"] - 100 / 1024
    assert found.rest_gib == pytest.approx(expected, abs=0.01)
    assert by_name["weights"] == pytest.approx(399.5 / 8 / 1.0737, rel=0.02)
    assert found.notes


def test_kimi_at_tp4_does_not_fit() -> None:
    """Weights alone are far more than four B300 hold: by how much, and how many GPUs it takes."""
    found = of(KIMI, "mxfp4", 275_040, tp_size=4)
    assert not found.fits
    assert found.missing_gib > 100
    assert found.least_fraction is None
    stated = Stated(release="0.5.23", model=facts_of(KIMI), gpu_memory_mib=275_040)
    model = count(entry(KIMI).config)
    best = least_gpus(
        stated,
        Hardware(memory_mib=275_040),
        lambda width: counted(model, "mxfp4", Ranks(tp_size=width), "0.5.23"),
        model.geometry,
    )
    assert best is not None
    assert best.gpus == 8
    assert best.estimate.low_gib > 0


def test_a_larger_fraction_may_let_it_fit() -> None:
    """The least fraction leaves exactly nothing, and a little more leaves something."""
    stated = Stated(release="0.5.23", model=TEXT, gpu_memory_mib=81_559, mem_fraction_static=0.7)
    loaded, hardware = typed(60 * GIB, Ranks(), "0.5.23"), Hardware(memory_mib=81_559)
    found = estimate(stated, hardware, loaded)
    least = found.least_fraction
    assert not found.fits
    assert least is not None
    again = estimate(stated.model_copy(update={"mem_fraction_static": least}), hardware, loaded)
    assert again.rest_gib == pytest.approx(0, abs=1e-9)


def test_no_width_holds_it() -> None:
    """More weights than 64 GPUs hold."""
    stated = Stated(release="0.5.23", model=TEXT, gpu_memory_mib=23_034)
    found = least_gpus(stated, Hardware(memory_mib=23_034), lambda width: typed(2**42, Ranks(tp_size=width), "0.5.23"))
    assert found is None


def test_widths_divide_the_model() -> None:
    """Kimi-K3's 96 heads take TP 32 and not 64; attention DP divides the width first."""
    geometry = count(entry(KIMI).config).geometry
    assert widths(geometry) == (1, 2, 4, 8, 16, 32)
    assert 64 in widths(geometry, attn_dp_size=2)


@settings(max_examples=80, deadline=None)
@given(
    gpu=st.sampled_from(ALL_GPUS),
    release=st.sampled_from(RELEASES),
    tp=st.sampled_from([1, 2, 4, 8, 16]),
    gib=st.integers(1, 2000),
    fraction=st.one_of(st.none(), st.floats(0.3, 0.98)),
    post=st.booleans(),
)
def test_parts_add_up(gpu: Any, release: Release, tp: int, gib: int, fraction: float | None, post: bool) -> None:
    """From the driver's total down every part is named with its source, and together with rest they are the total."""
    stated = Stated(
        release=release, model=TEXT, vendor=gpu.vendor, gpu_memory_mib=gpu.memory_mib, tp_size=tp,
        mem_fraction_static=fraction, post_capture_kv_sizing=post,
    )  # fmt: skip
    free = 100.0 if gpu.unified else None
    hardware = Hardware(vendor=gpu.vendor, memory_mib=gpu.memory_mib, unified=gpu.unified, free_gib=free)
    found = estimate(stated, hardware, typed(gib * GIB, Ranks(tp_size=tp), stated.release))
    assert found.total_gib is not None
    assert found.rest_gib + sum(part.gib for part in found.parts) == pytest.approx(found.total_gib)
    assert all(part.source for part in found.parts)
    assert found.low_gib < found.rest_gib < found.high_gib
    assert (found.missing_gib > 0) is not found.fits or found.rest_gib == 0


def test_band_by_width_bits_and_vendor() -> None:
    """Section 4.4."""
    assert band_gib(4, 100) == pytest.approx(0.4 + 1.5)
    assert band_gib(8, 100) == pytest.approx(0.8 + 3)
    assert band_gib(8, 100, four_bit=True) == pytest.approx(0.8 + 9)
    assert band_gib(2, 100, unsettled=True) == pytest.approx(0.4 + 1.5 + 5)


def test_draft_counts_since_0_5_14() -> None:
    """Before, it loads after the pools; a draft without known bytes is asked for, an n-gram table has none."""
    early, late = (
        of("Qwen/Qwen3.5-27B", "bf16", H200, release=release, speculative_algorithm="NEXTN")
        for release in ("0.5.13", "0.5.14")
    )
    drafts = [next(part for part in found.parts if part.name == "draft").gib for found in (early, late)]
    assert drafts[0] == 0
    assert drafts[1] == pytest.approx(5.53, abs=0.005)
    with pytest.raises(NotEstimatedError, match="bytes"):
        of("Qwen/Qwen3.5-27B", "bf16", H200, speculative_algorithm="EAGLE3")
    ngram = of("Qwen/Qwen3.5-27B", "bf16", H200, speculative_algorithm="NGRAM")
    assert next(part for part in ngram.parts if part.name == "draft").gib == 0
    given_bytes: Loaded = typed(GIB, Ranks(), "0.5.23", speculative_algorithm="EAGLE3", draft_bytes=GIB)
    assert given_bytes.draft_bytes == GIB


def test_multimodal_reservation_by_transport_and_release() -> None:
    """100 MiB since 0.5.18, and a GiB more when features travel on the GPU."""
    loaded, hardware = typed(GIB, Ranks(), "0.5.23"), Hardware(memory_mib=H200)
    for release, transport, mib in (("0.5.17", "cpu", 0), ("0.5.18", "cpu", 100), ("0.5.23", "cuda_vmm", 1124)):
        stated = Stated(release=release, model=facts_of(QWEN), gpu_memory_mib=H200)
        assert estimate(stated, hardware, loaded, transport).parts[-1].gib == mib / 1024


def test_post_capture_keeps_more_free() -> None:
    """The fraction is large, yet 10 GiB stay free on a large GPU."""
    stated = Stated(release="0.5.23", model=TEXT, gpu_memory_mib=H200, post_capture_kv_sizing=True)
    found = estimate(stated, Hardware(memory_mib=H200), typed(GIB, Ranks(), "0.5.23"))
    assert automatic(stated).post_capture
    assert next(part for part in found.parts if part.name == "kept free").gib == pytest.approx(
        (512 + 8192 * 1.5 + 128) / 1024
    )


def test_aiter_takes_fifteen_percent() -> None:
    """AMD's default for GQA; under latent attention by the KV heads per rank, and unknown heads are asked for."""
    for heads, tp, factor in ((128, 8, 0.85), (64, 8, 1.0), (128, 1, 0.85)):
        facts = ModelFacts(architecture="DeepseekV3ForCausalLM", mla=True, kv_heads=heads)
        stated = Stated(release="0.5.23", model=facts, vendor="AMD", gpu_memory_mib=294_896, tp_size=tp)
        found = automatic(stated)
        assert found.mem_fraction_static_used == pytest.approx(found.mem_fraction_static * factor)
    unknown = Stated(
        release="0.5.23", model=ModelFacts(architecture="X", mla=True), vendor="AMD", gpu_memory_mib=294_896
    )
    assert automatic(unknown).mem_fraction_static_used is None
    with pytest.raises(NotEstimatedError, match="aiter"):
        estimate(unknown, Hardware(vendor="AMD", memory_mib=294_896), typed(GIB, Ranks(), "0.5.23"))


def test_aiter_spares_a_given_fraction_only_when_told() -> None:
    """The environment variable exists since 0.5.19, and says nothing of an automatic fraction."""
    base = {"model": TEXT, "vendor": "AMD", "gpu_memory_mib": 294_896, "aiter_honors_fraction": True}
    for release, fraction, spared in (("0.5.18", 0.8, False), ("0.5.19", 0.8, True), ("0.5.19", None, False)):
        found = automatic(Stated.model_validate({**base, "release": release, "mem_fraction_static": fraction}))
        assert (found.mem_fraction_static_used == found.mem_fraction_static) is spared


@pytest.mark.parametrize(
    "hardware",
    [
        Hardware(),
        Hardware(memory_mib=124_610, unified=True),
        Hardware(memory_mib=1024.0, free_gib=2.0),
        Hardware(memory_mib=512.0),
    ],
)
def test_hardware_that_gives_no_estimate(hardware: Hardware) -> None:
    """Unknown memory, unified memory, more free than there is, and a GPU that its own driver fills."""
    with pytest.raises(NotEstimatedError):
        before_load(hardware, 1)


def test_bad_flags_are_refused_with_their_name() -> None:
    """A release whose wheel was not read, an empty list of sizes, a fraction of 1."""
    for wrong in ({"release": "0.5.3"}, {"cuda_graph_bs": ()}, {"mem_fraction_static": 1.0}, {"tp_size": 0}):
        with pytest.raises(ValidationError) as found:
            Stated.model_validate({"release": "0.5.23", "model": TEXT, **wrong})
        assert next(iter(wrong)) in str(found.value)


@pytest.mark.parametrize(
    "config",
    [
        {"vision_config": {"num_hidden_layers": "many"}},
        {"architectures": "no list"},
        {"language_model_only": 1},
        {"linear_attn_config": {"kda_layers": list(range(5000))}},
    ],
)
def test_hostile_config(config: dict[str, Any]) -> None:
    """Fields of a wrong type are a sentence."""
    with pytest.raises(ModelRefusedError):
        model_facts(config, mla=False)


def test_facts_of_the_catalogue() -> None:
    """What the engine reads of real files: Qwen calls its layers depth, Kimi-K3 has names of its own."""
    qwen, kimi = facts_of(QWEN), facts_of(KIMI)
    assert (qwen.vision_layers, qwen.vision_hidden, qwen.kda) == (None, 1152, False)
    assert (kimi.vision, kimi.vision_hidden, kimi.kda, kimi.mla) == (True, None, True, True)
