"""Target mode: what is proposed carries the wants when solved forward, and nothing cheaper does."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ValidationError

from sizing import RefusedError, Scenario, Split, read_scenario, solve
from sizing.answers.carrying_settings import Setting, Want, setting_on
from sizing.answers.target import Answer, Near, Row, aim
from sizing.basics.units import GIB
from sizing.engine.charges import slots_from_ratio
from sizing.engine.pools import pools_from_slots, running
from sizing.engine.rank import beside_pin, rank_of
from sizing.engine.requests import asked_divisor
from sizing.engine.resolve import resolution
from sizing.engine.slots import pin_divisor, pin_is_ignored, ratio_is_ignored, slots_set
from sizing.engine.split import solve_split
from sizing.explain.target_words import headline
from sizing.models.catalogue import catalogue
from sizing.scenario.inputs import MAX_RATIO
from tests.test_properties import examples, scenarios

L = 9216
NINETY_SIX = (Want(L=L, requests=96),)
SMALL_SLOTS = 300  # so many slots at most where every K is tried


def runs(scenario: Scenario, want: Want) -> int:
    """What the settings of a scenario run at an L [requests of the deployment]; 0 where the engine refuses."""
    at = scenario.model_copy(update={"L": want.L})
    rank, ratio = rank_of(at), at.mamba_full_memory_ratio
    now = solve_split(rank, ratio, slots_set(rank, ratio), pinned=at.split == "pin")
    return now.runs * at.attn_dp_size if isinstance(now, Split) else 0


def carried(scenario: Scenario, wants: Sequence[Want]) -> bool:
    """Whether the settings of a scenario run every want."""
    return all(runs(scenario, want) >= want.requests for want in wants)


def carried_somehow(scenario: Scenario, wants: Sequence[Want], spare: int = 0) -> bool:
    """Whether any K at all carries the wants and leaves so many slots to spare, with several request counts asked:
    every one is tried.
    """
    least = max(-(-want.requests // scenario.attn_dp_size) for want in wants)
    counts = [
        {},
        *(
            {"max_running_requests": each * asked_divisor(resolution(scenario))}
            for each in (least, least + 1, 2 * least)
        ),
    ]
    return any(_any_slots(scenario.model_copy(update=values), wants, least, spare) for values in counts)


def _any_slots(scenario: Scenario, wants: Sequence[Want], least: int, spare: int) -> bool:
    ignored = pin_is_ignored(resolution(scenario))
    rank = rank_of(scenario) if ignored else beside_pin(rank_of(scenario))  # 0.5.7 charges no drafts beside a pin
    most = int(max(scenario.rest_gib, 0) * GIB / rank.slot_bytes) + 1
    if ignored:
        most = min(most, max(int(slots_from_ratio(rank, MAX_RATIO)), 0))
    slots = np.arange(1, most + 1)
    pools = pools_from_slots(rank, slots)
    enough = [np.asarray(running(pools, want.L)) * scenario.attn_dp_size >= want.requests for want in wants]
    return bool(np.any(np.all([slots >= rank.S * least + spare, *enough], axis=0)))


@st.composite
def targets(draw: st.DrawFn, most_slots: int = 100_000) -> tuple[Scenario, tuple[Want, ...]]:
    """A deployment and one to three wants, about as many requests as fit: some do, some do not."""
    scenario = draw(scenarios(most_slots))
    random = draw(st.randoms(use_true_random=True))
    best = solve(scenario).optimum
    most = (best.runs if best else 1) * scenario.attn_dp_size
    lengths = [
        scenario.L,
        *(max(1, round(scenario.L * random.uniform(0.1, 4))) for _ in range(random.choice([0, 0, 2]))),
    ]
    return scenario, tuple(
        Want(L=min(length, 2**24), requests=max(1, round(most * random.uniform(0.2, 1.3)))) for length in lengths
    )


@given(targets())
@examples(600)
def test_what_is_proposed_runs_the_wants_and_no_cheaper_pin_does(found: tuple[Scenario, tuple[Want, ...]]) -> None:
    """Solved forward at every L it runs at least what is wanted; one slot fewer than requests x S does not."""
    scenario, wants = found
    setting = setting_on(rank_of(scenario), wants)
    if setting is None:
        assert (best := solve(scenario).optimum) is None or any(
            want.requests > best.runs * scenario.attn_dp_size or want.L != scenario.L for want in wants
        )
        return
    for want in wants:
        now = solve(setting.scenario.model_copy(update={"L": want.L})).now
        assert isinstance(now, Split)
        assert now.runs * scenario.attn_dp_size >= want.requests
        assert (now.slots, now.kv_tokens) == (setting.slots, setting.kv_tokens)
        assert setting.kv_left >= 0
    if setting.pin is not None:
        cheaper = setting.pin - setting.spare * pin_divisor(resolution(scenario)) - 1
        assert cheaper == 0 or not carried(
            setting.scenario.model_copy(update={"split": "pin", "max_mamba_cache_size": cheaper}), wants
        )


@given(targets(), st.floats(0.01, 0.99))
@examples(120)
def test_every_slot_count_and_ratio_of_the_ranges_carries_the_wants(
    found: tuple[Scenario, tuple[Want, ...]], part: float
) -> None:
    """Both ends and what lies between; just outside either end it does not."""
    scenario, wants = found
    setting = setting_on(rank_of(scenario), wants)
    assume(setting is not None)
    assert setting is not None
    if setting.ratio_low is not None and setting.ratio is not None:
        high = setting.ratio_high or MAX_RATIO
        assert setting.ratio_low <= setting.ratio <= high
        for ratio in (setting.ratio_low, setting.ratio, setting.ratio_low * (high / setting.ratio_low) ** part):
            by_ratio = {"split": "ratio", "mamba_full_memory_ratio": min(max(ratio, setting.ratio_low), high)}
            assert carried(setting.scenario.model_copy(update=by_ratio), wants)
    if setting.pin is not None:
        span = setting.slots_high - setting.slots_low
        for slots in (setting.slots_low, setting.slots_low + round(span * part), setting.slots_high):
            assert carried(_pinned(setting, slots), wants)
        for slots in (setting.slots_low - setting.spare - 1, setting.slots_high + 1):
            assert slots == 0 or not carried(_pinned(setting, slots), wants)


def _pinned(setting: Setting, slots: int) -> Scenario:
    pin = slots * pin_divisor(resolution(setting.scenario))
    return setting.scenario.model_copy(update={"split": "pin", "max_mamba_cache_size": pin})


def rows_outgrow_slots(scenario: Scenario) -> bool:
    """Whether a request more could add more KV than its slots cost: up to 0.5.6 EAGLE adds rows for each, uncharged."""
    rank = rank_of(scenario)
    return bool(rank.headroom * rank.token_bytes >= rank.slot_bytes * (1 + rank.D))


@pytest.mark.parametrize("release", ["0.5.4", "0.5.6"])
def test_no_checkpoint_gains_kv_by_asking_for_more(release: str) -> None:
    """Of every catalogued model that those releases serve, at the widest flags of a draft tree."""
    drafts = {"D": 16, "speculative_num_steps": 8, "speculative_eagle_topk": 8, "max_running_requests": 64}
    found = 0
    for entry in catalogue():
        for tp_size in (1, 8):
            values = {"model": entry.id, "tp_size": tp_size, "release": release, "rest_gib": 40, "page_size": 1}
            scenario = read_scenario(values | drafts | {"kv_cache_dtype": "bfloat16", "speculative_algorithm": "EAGLE"})
            with contextlib.suppress(RefusedError):
                if isinstance(scenario, Scenario):
                    found += rank_of(scenario).headroom > 0
                    assert not rows_outgrow_slots(scenario)
    assert found > 5


@given(targets(SMALL_SLOTS))
@examples(100)
def test_what_is_offered_runs_and_one_step_worse_does_not(found: tuple[Scenario, tuple[Want, ...]]) -> None:
    """Every way and every near point, put in, carries its wants; the next value carries them with no K at all."""
    scenario, wants = found
    assume(not rows_outgrow_slots(scenario))
    answer = aim(scenario, wants)
    assert (answer.setting is not None) == carried_somehow(scenario, wants)
    for row in answer.rows:
        if rows_outgrow_slots(row.way.scenario):
            continue
        assert (row.setting is None) == (not carried_somehow(row.way.scenario, wants))
        if row.setting:
            assert carried(row.setting.scenario, wants)
            assert row.near == ()
        for near in row.near:
            assert carried(near.setting.scenario, near.wants)
            assert not carried_somehow(*worse(row, near, wants))
        for at, most in enumerate(row.most):
            held = [*wants[:at], *wants[at + 1 :]]
            if most:
                assert carried_somehow(row.way.scenario, [*held, Want(L=wants[at].L, requests=most)])
            if most < 1_000_000:
                assert not carried_somehow(row.way.scenario, [*held, Want(L=wants[at].L, requests=most + 1)])


def worse(row: Row, near: Near, wants: tuple[Want, ...]) -> tuple[Scenario, list[Want], int]:
    """A near point one step less far, and the slots that it leaves to spare."""
    value = near.value + near.step
    if near.axis == "rest":
        return row.way.scenario.model_copy(update={"rest_gib": round(value, 2)}), [*near.wants], near.setting.spare
    if near.axis == "max_total_tokens":
        return row.way.scenario.model_copy(update={"max_total_tokens": int(value)}), [*near.wants], near.setting.spare
    limit = {"requests": "requests", "L": "L"}[near.axis]
    lowered = [
        want.model_copy(update={limit: min(getattr(want, limit), int(value))}) if at in near.varied else want
        for at, want in enumerate(wants)
    ]
    return row.way.scenario, lowered, near.setting.spare


def row(answer: Answer, S: int, *axes: str) -> Row:
    """The first row with so many slots per request that differs in such axes."""
    return next(found for found in answer.rows if found.way.S == S and found.way.axes == axes)


def near(found: Row, axis: str) -> Any:
    """The value of the near point on an axis."""
    return next(point.value for point in found.near if point.axis == axis)


def test_ninety_six_of_the_worked_example() -> None:
    """Kimi-K3 TP8, 96 at 9,216: not with a float32 state at S = 5 or 4; what is offered instead."""
    answer = aim(Scenario(), NINETY_SIX)
    slots, state = "slots per request", "SSM dtype"
    assert answer.setting is None
    assert answer.here.most == (74,)
    assert row(answer, 4, slots).most == (86,)
    assert row(answer, 3, slots).most == (103,)
    assert "lazy" in row(answer, 3, slots).way.words
    assert row(answer, 5, state).most == (112,)
    assert row(answer, 4, slots, state).most == (125,)
    assert "triton" in row(answer, 5, state).way.gate
    assert (near(row(answer, 4, slots), "L"), near(row(answer, 4, slots), "rest")) == (6720, 31.59)
    assert {found.way.S for found in answer.fitting} == {1, 3, 4, 5}


def test_the_safe_pin_keeps_a_slot_for_the_chunk_boundary() -> None:
    """Requests x S + 1; where that slot no longer fits the pin is requests x S, and says so."""
    setting = setting_on(rank_of(Scenario()), [Want(L=L, requests=74)])
    assert setting
    assert (setting.pin, setting.spare, setting.slots_low, setting.slots_high) == (371, 1, 371, 376)
    edge = near(row(aim(Scenario(), NINETY_SIX), 5), "rest")
    spared = setting_on(rank_of(Scenario(rest_gib=edge)), NINETY_SIX)
    assert spared
    assert (spared.pin, spared.spare) == (481, 1)
    answer = aim(Scenario(rest_gib=edge - 0.01), NINETY_SIX)
    assert answer.setting
    assert (answer.setting.pin, answer.setting.spare) == (480, 0)
    assert "without a slot to spare" in headline(answer)


def test_speculation_asks_for_more_than_the_48_it_assumes() -> None:
    """50 requests need --max-running-requests 50, 40 do not."""
    scenario = Scenario(D=4, draft_kv_bytes_per_token=576, rest_gib=60)
    for wanted, asked in ((40, None), (50, 50)):
        setting = setting_on(rank_of(scenario), [Want(L=L, requests=wanted)])
        assert setting
        assert setting.asked == asked == setting.scenario.max_running_requests
        assert setting.flags[1:] == ((f"--max-running-requests {asked}",) if asked else ())


def test_a_release_that_ignores_pins_is_given_a_short_ratio() -> None:
    """Up to 0.5.6 one ratio of the range is written out; solved, it carries the wants."""
    setting = setting_on(rank_of(Scenario(release="0.5.6", model="", rest_gib=28.529)), [Want(L=L, requests=80)])
    assert setting
    assert setting.ratio_low is not None
    assert setting.ratio_high is not None
    assert setting.flags == (f"--mamba-full-memory-ratio {setting.ratio}",)
    assert len(str(setting.ratio)) <= 5


@pytest.mark.parametrize(
    ("values", "wanted", "pin", "asked"),
    [
        ({"attn_dp_size": 4, "tp_size": 32, "model": "", "rest_gib": 28.529}, 210, 53 * 5 * 4 + 4, None),
        (
            {"attn_dp_size": 4, "tp_size": 32, "model": "", "rest_gib": 28.529, "max_running_requests": 100},
            210,
            53 * 5 * 4 + 4,
            53 * 4,
        ),
        ({"dcp_size": 8}, 90, 451, None),
        ({"pp_size": 4, "rest_gib": 28.529}, 50, 50 * 4 + 1, None),
        ({"disable_radix_cache": True}, 150, 150, None),
        ({"disable_radix_cache": True, "max_running_requests": 10}, 150, 150, 150),
        ({"release": "0.5.6", "model": "", "rest_gib": 28.529}, 80, None, None),
        ({"D": 4, "replayssm": "spec"}, 50, 251, 50),
        ({"max_total_tokens": 700_000}, 70, 351, None),
    ],
    ids=str,
)
def test_other_deployments(values: dict[str, Any], wanted: int, pin: int | None, asked: int | None) -> None:
    """Attention DP multiplies per rank; a release that ignores pins gets a ratio; S is 4 under PP."""
    scenario = Scenario(**values)
    setting = setting_on(rank_of(scenario), [Want(L=L, requests=wanted)])
    assert setting
    assert (setting.pin, setting.asked) == (pin, asked)
    assert carried(setting.scenario, [Want(L=L, requests=wanted)])
    assert setting.scenario.split == ("ratio" if pin is None else "pin")
    assert (setting.ratio is None) == ratio_is_ignored(resolution(setting.scenario))


def test_a_cap_on_tokens_is_an_axis_of_its_own() -> None:
    """70 requests of 9,216 take 645,120 tokens: the cap that keeps them out is named with the least that does not."""
    answer = aim(Scenario(max_total_tokens=600_000), [Want(L=L, requests=70)])
    assert near(answer.here, "max_total_tokens") == 70 * L
    assert near(answer.here, "requests") == 65
    assert [point.axis for point in answer.here.near] == ["requests", "L", "max_total_tokens"]


def test_several_lengths_are_carried_by_one_setting() -> None:
    """Each want is lowered alone where that is enough; where it is not, all are capped together."""
    wants = [Want(L=L, requests=60), Want(L=131_072, requests=4)]
    setting = setting_on(rank_of(Scenario()), wants)
    assert setting
    assert setting.requests == 60
    assert setting.kv_left == setting.kv_tokens - 60 * L
    answer = aim(Scenario(), [Want(L=L, requests=60), Want(L=131_072, requests=8)])
    assert [(point.axis, point.varied) for point in answer.here.near] == [
        ("requests", (0,)),
        ("requests", (1,)),
        ("L", (1,)),
        ("rest", ()),
    ]
    both = aim(Scenario(), [Want(L=L, requests=96), Want(L=2 * L, requests=90)])
    assert [point.varied for point in both.here.near if point.axis == "requests"] == [(0, 1)]


def test_a_want_is_a_number_of_requests_of_a_length() -> None:
    """L as people write it; nothing wanted, or nothing that can be wanted, is refused."""
    assert Want.model_validate({"L": "32K", "requests": "1,000"}) == Want(L=32_768, requests=1000)
    for values in ({"L": 0, "requests": 1}, {"L": 1, "requests": 0}, {"L": True, "requests": 1}):
        with pytest.raises(ValidationError):
            Want.model_validate(values)
    with pytest.raises(ValueError, match="nothing wanted"):
        aim(Scenario(), [])


def test_refused_flags_are_refused_here_too() -> None:
    """What `solve` refuses before it counts memory is refused in the same way."""
    refused = Scenario(mamba_radix_cache_strategy="no_buffer")
    with pytest.raises(RefusedError):
        aim(refused, NINETY_SIX)


def test_no_way_is_offered_that_the_engine_refuses_or_that_changes_nothing() -> None:
    """No lazy buffer under PP, no skip in a release that does not read it, no fewer slots than one."""
    under_pp = aim(Scenario(pp_size=4, rest_gib=28.529), [Want(L=L, requests=10_000)])
    assert all("lazy" not in found.way.words for found in under_pp.rows)
    old = aim(Scenario(release="0.5.14", model="", rest_gib=28.529), [Want(L=L, requests=10_000)])
    assert all("SKIP" not in found.way.words for found in old.rows)
    without = aim(Scenario(disable_radix_cache=True, kv_cache_dtype="bfloat16"), [Want(L=L, requests=10_000)])
    sharded = [found for found in without.rows if "DCP" in found.way.axes]
    assert [found.way.scenario.dcp_size for found in sharded if found.way.axes == ("DCP",)] == [2, 4, 8]
    assert len(sharded) == 3 * 4  # each also with either dtype and with both
    assert [found.way.axes for found in without.rows if found not in sharded] == [
        (),
        ("SSM dtype",),
        ("KV dtype",),
        ("SSM dtype", "KV dtype"),
    ]
