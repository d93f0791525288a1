"""Ways that carry what is wanted: what each prints, fed back, runs what its bar says; the cheapest comes first."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sizing import Scenario, Split, solve
from sizing.answers.alternatives import DEARNESS, PRICES, ways
from sizing.answers.band import for_flags
from sizing.answers.carrying_settings import Want
from sizing.answers.carrying_ways import CarryingWay, carrying_ways
from sizing.answers.target import aim
from sizing.explain.target_words import CARRYING_COLUMNS, carrying_headline, carrying_rows
from sizing.figures import DARK, LIGHT, painted
from sizing.figures.carrying_ways import ROOM, ways_figure
from sizing.scenario.inputs import changed
from tests.test_properties import estimated, examples
from tests.test_target import carried, targets

FIELD = {
    "--mamba-full-memory-ratio": "mamba_full_memory_ratio",
    "--max-mamba-cache-size": "max_mamba_cache_size",
    "--max-running-requests": "max_running_requests",
    "--dcp-size": "dcp_size",
    "--mamba-ssm-dtype": "mamba_ssm_dtype",
    "--kv-cache-dtype": "kv_cache_dtype",
    "--mamba-radix-cache-strategy": "mamba_radix_cache_strategy",
    "--mamba-scheduler-strategy": "mamba_radix_cache_strategy",
    "--page-size": "page_size",
}
SWITCH: dict[str, dict[str, Any]] = {
    "--disable-radix-cache": {"disable_radix_cache": True},
    "--disable-overlap-schedule": {"disable_overlap_schedule": True},
    "without --disable-overlap-schedule": {"disable_overlap_schedule": False},
    "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1": {"skip_decode_lock": True},
}
KIMI_32K = Scenario(L=32768)


def fed_back(scenario: Scenario, flags: tuple[str, ...]) -> Scenario:
    """The scenario with flags as they are typed; every input check applies."""
    values: dict[str, Any] = {}
    for flag in flags:
        name, _, value = flag.partition(" ")
        values |= SWITCH.get(flag) or {FIELD[name]: value}
        if name in ("--max-mamba-cache-size", "--mamba-full-memory-ratio"):
            values["split"] = "pin" if name == "--max-mamba-cache-size" else "ratio"
    found = changed(scenario, **values)
    assert isinstance(found, Scenario), (flags, found)
    return found


def runs(scenario: Scenario, L: int) -> int:
    """What runs at L [requests of the deployment]."""
    now = solve(scenario.model_copy(update={"L": L})).now
    return now.runs * scenario.attn_dp_size if isinstance(now, Split) else 0


@given(targets())
@examples(40)
def test_each_bar_is_what_its_flags_give(found: tuple[Scenario, tuple[Want, ...]]) -> None:
    """Fed back they run what stands there, carry every want, and no further request of the first one does."""
    scenario, wants = found
    bars = carrying_ways(scenario, wants)
    assert {bar.way.words for bar in bars} == {row.way.words for row in aim_all(scenario, wants)}
    for bar in bars:
        for flags, number in ((bar.flags, bar.runs), (bar.widest_flags, bar.most)):
            there = fed_back(scenario, flags)
            assert runs(there, wants[0].L) == number >= wants[0].requests
            assert carried(there, wants)
        assert bar.runs <= bar.most
    assert [bar.way.dearness for bar in bars] == sorted(bar.way.dearness for bar in bars)
    assert not bars or bars[0].way.axes == () or aim(scenario, wants).setting is None


def aim_all(scenario: Scenario, wants: tuple[Want, ...]) -> tuple[Any, ...]:
    """The ways that Target's table says carry the wants; where those that stand do, it does not ask the others."""
    answer = aim(scenario, wants)
    return carrying_ways(scenario, wants) if answer.setting else answer.fitting


@given(estimated(), st.integers(1, 2000))
@examples(12)
def test_an_estimate_counts_at_its_low_end(scenario: Scenario, requests: int) -> None:
    """Headline and bars rest on the low end of the estimate that holds with a way's own flags: fed back, they run what
    is said.
    """
    wants = [Want(L=scenario.L, requests=requests)]
    answer, bars = aim(scenario, wants), carrying_ways(scenario, wants)
    assert (answer.setting is not None) == any(bar.way.axes == () for bar in bars)
    for bar in bars:
        for flags, number in ((bar.flags, bar.runs), (bar.widest_flags, bar.most)):
            assert runs(for_flags(fed_back(scenario, flags)), scenario.L) == number >= requests


def test_sixty_four_at_32k_on_kimi_k3() -> None:
    """Not as it stands, at most 41; dcp_size 4 does, and costs least."""
    wants = [Want(L=32768, requests=64)]
    assert aim(KIMI_32K, wants).here.most == (41,)
    bars = carrying_ways(KIMI_32K, wants)
    assert bars[0].flags == ("--dcp-size 4", "--max-mamba-cache-size 321")
    assert (bars[0].runs, bars[0].most) == (64, 77)
    assert carrying_headline(bars, wants).startswith(
        "5 ways carry 64 requests of L = 32,768; the cheapest: --dcp-size 4"
    )


def test_wider_kv_is_narrowed() -> None:
    """With bfloat16 KV, fp8 with DCP is one of the ways; it says to validate outputs."""
    bars = carrying_ways(Scenario(L=32768, kv_cache_dtype="bfloat16"), [Want(L=32768, requests=60)])
    narrowed = [bar for bar in bars if "--kv-cache-dtype fp8_e4m3" in bar.flags]
    assert narrowed
    assert all("validate outputs" in row[-1] for row in carrying_rows(narrowed))


def test_what_stands_is_the_cheapest() -> None:
    """Where it carries the wants it comes first; every change has a place among what costs."""
    bars = carrying_ways(Scenario(), [Want(L=9216, requests=64)])
    assert (bars[0].flags, bars[0].runs, bars[0].most) == (("--max-mamba-cache-size 321",), 64, 74)
    assert set(PRICES) | {("dcp_size", None)} == set(DEARNESS)
    assert {size for way in ways(Scenario()) if (size := way.scenario.dcp_size) > 1} == {2, 4, 8}


def test_nothing_carries_it() -> None:
    """No bar and no words."""
    wants = [Want(L=1_000_000, requests=5000)]
    assert carrying_ways(Scenario(), wants) == ()
    assert carrying_headline((), wants) == ""


def test_the_figure() -> None:
    """Bars as long as the numbers, a line at what is wanted, in both palettes, on a scale of its own."""
    wants = [Want(L=9216, requests=30), Want(L=65536, requests=8)]
    bars: tuple[CarryingWay, ...] = carrying_ways(Scenario(), wants)
    whole, best = ways_figure(bars, wants), ways_figure(bars[:3], wants)
    most, dark, wanted = whole["data"]
    assert (most["x"], dark["x"]) == ([bar.most for bar in bars], [bar.runs for bar in bars])
    assert set(wanted["x"]) == {30}
    assert best["layout"]["xaxis"]["range"][1] == ROOM * max(bar.most for bar in bars[:3])
    for palette in (LIGHT, DARK):
        assert '"@' not in json.dumps(painted(whole, palette), allow_nan=False)
    assert all(len(row) == len(CARRYING_COLUMNS) for row in carrying_rows(bars))
