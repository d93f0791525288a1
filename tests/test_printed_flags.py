"""Every flag that is printed, fed back, gives the number that is printed beside it; every flip turns one step away."""

import contextlib
import re
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
from hypothesis import given

from sizing import RefusedError, Scenario, Sizing, Split, solve
from sizing.answers.flip_points import flips, short_pool_now
from sizing.answers.limit_panel import lifts
from sizing.answers.nearest_rest import is_other, nearest_rest
from sizing.answers.target import aim
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import rank_as_set, rank_of
from sizing.engine.resolve import resolution
from sizing.engine.slots import pin_is_ignored, slots_taken
from sizing.exchange.sizing_answer import sizing_answer
from sizing.explain.launch_flags import flags
from sizing.explain.verdict import advice, no_spare_slot, verdict
from sizing.scenario.inputs import FIELDS, changed
from tests.test_properties import examples, scenarios
from tests.test_target import targets

FLAG = r"--(?:mamba-full-memory-ratio|max-mamba-cache-size|max-running-requests) [\d.]+"
COUNT = r"([\d,]+)"
FORMS = (
    rf"(?P<flags>{FLAG}(?: {FLAG})*) (?:has one to spare and )?runs {COUNT}",
    rf"(?P<flags>{FLAG}(?: {FLAG})*)(?:, as set)?: (?:[\d,]+ → |refused → )?{COUNT} runs?",
)
FIELD = {
    "--mamba-full-memory-ratio": "mamba_full_memory_ratio",
    "--max-mamba-cache-size": "max_mamba_cache_size",
    "--max-running-requests": "max_running_requests",
}


def with_flags(scenario: Scenario, *words: str) -> Scenario:
    """The scenario with flags as they are typed; every input check applies."""
    values: dict[str, Any] = {}
    for word in words:
        flag, _, value = word.partition(" ")
        values[FIELD[flag]] = value
        if flag != "--max-running-requests":
            values["split"] = "pin" if flag == "--max-mamba-cache-size" else "ratio"
    found = changed(scenario, **values)
    assert isinstance(found, Scenario), (words, found)
    return found


def held(sizing: Sizing) -> Scenario:
    """The scenario with its ratio held where it is."""
    if sizing.scenario.split != "balanced":
        return sizing.scenario
    return sizing.scenario.model_copy(update={"split": "ratio", "mamba_full_memory_ratio": sizing.ratio_now})


def runs(scenario: Scenario) -> int:
    """What runs; 0 where it does not start."""
    now = solve(scenario).now
    return now.runs if isinstance(now, Split) else 0


def said(text: str) -> Iterator[tuple[list[str], int]]:
    """Every flag of a text, or two of one kind of line, with the number beside it."""
    for form in FORMS:
        for found in re.finditer(form, text):
            yield re.findall(FLAG, found["flags"]), int(found[2].replace(",", ""))


def ranges(text: str) -> Iterator[tuple[str, int]]:
    """Every ratio and pin of a range of the panel, with what runs then."""
    for line in text.split("; "):
        found = re.fullmatch(rf"(--mamba.*|--max-mamba.*): {COUNT} requests?(?: \(.*\))?", line)
        for flag, first, last in re.findall(r"(--[a-z-]+) ([\d.]+)(?: to ([\d.]+))?", found[1] if found else ""):
            for value in filter(None, (first, last)):
                assert found
                yield f"{flag} {value}", int(found[2].replace(",", ""))


@given(scenarios())
@examples(250)
def test_every_printed_flag_gives_the_number_beside_it(scenario: Scenario) -> None:
    """The recommended flag and the other, the panel of limits, the verdict, the advice and the answer."""
    sizing = solve(scenario)
    found, base = flags(sizing), held(sizing)
    if found is not None:
        for flag, beside in ((found.ratio, found.ratio_runs), (found.pin, found.pin_runs)):
            assert (flag is None) == (beside is None)
            if flag is not None:
                assert runs(with_flags(base, flag)) == beside == found.runs
    texts = [verdict(sizing).text, *(item.text for item in advice(sizing)), *(row.lifted_by for row in lifts(sizing))]
    for text in texts:
        for words, beside in said(text):
            assert runs(with_flags(base, *words)) == beside, (words, text)
        for flag, beside in ranges(text):
            assert runs(with_flags(base, flag)) == beside, (flag, text)
    best = sizing_answer(sizing).best
    assert (best is None) == (found is None)
    if best is not None:
        ratios = [ratio for ratio in (best.ratio, best.ratio_low, best.ratio_high) if ratio is not None]
        typed = [f"--mamba-full-memory-ratio {ratio:.17f}".rstrip("0").rstrip(".") for ratio in ratios]
        typed += [f"--max-mamba-cache-size {best.pin}"] if best.pin is not None else []
        assert {runs(with_flags(base, flag)) for flag in typed} == {best.runs}


@given(scenarios())
@examples(120)
def test_what_is_recommended_keeps_a_slot_to_spare_where_one_fits(scenario: Scenario) -> None:
    """With it set nothing is warned of; where a slot costs a request, both numbers are said."""
    sizing = solve(scenario)
    found, best = flags(sizing), sizing.optimum
    if found is None or best is None:
        return
    for flag in filter(None, (found.ratio, found.pin)):
        there = solve(with_flags(held(sizing), flag))
        assert isinstance(there.now, Split)
        spared = sizing.S == 1 or there.now.slots > there.now.admitted * sizing.S
        assert spared == (best.spare == 1 or sizing.S == 1)
        assert bool(no_spare_slot(there)) == (not spared)
    assert (f"{best.unspared:,} run with just" in found.why) == (best.unspared > best.runs)


@given(targets())
@examples(120)
def test_flags_of_a_target_carry_it(case: tuple[Scenario, tuple[Any, ...]]) -> None:
    """The flags of the setting, as text, run what was wanted at each length, and at the nearest points too."""
    scenario, wants = case
    answer = aim(scenario, wants)
    settings = [(answer.setting, scenario, wants)] if answer.setting else []
    settings += [
        (near.setting, row.way.scenario, near.wants)
        for row in answer.rows
        for near in row.near
        if near.axis in ("requests", "L")
    ]
    for setting, base, carried in settings:
        for want in carried:
            at = base.model_copy(update={"L": want.L})
            assert runs(with_flags(at, *setting.flags)) * scenario.attn_dp_size >= want.requests
        assert (setting.pin is None) == pin_is_ignored(resolution(base))


@given(scenarios())
@examples(100)
def test_every_flip_turns_and_no_nearer_value_does(scenario: Scenario) -> None:
    """Whole numbers one step before do not turn; of rest no thousandth that lies nearer does, either side."""
    sizing = solve(scenario)
    if not isinstance(sizing.now, Split):
        return
    here, base = short_pool_now(sizing), held(sizing)
    found = {flip.quantity: flip for flip in flips(sizing)}

    def turns(**values: Any) -> bool | None:
        other = changed(base, **values)
        there = solve(other) if isinstance(other, Scenario) else None
        return short_pool_now(there) != here if there and isinstance(there.now, Split) else None

    L = found["L"]
    if L.then:
        value = int(L.flips_at.replace(",", ""))
        assert turns(L=value)
        assert not turns(L=value - 1 if value > scenario.L else value + 1)
    D = found["D"]
    between = range(257)
    if D.then:
        assert turns(D=int(D.flips_at))
        reach = abs(int(D.flips_at) - scenario.D)
        between = range(max(scenario.D - reach + 1, 0), min(scenario.D + reach, 257))
    drafts = [base.model_copy(update={"D": value}) for value in [*between][:: max(len(between) // 12, 1)]]
    for other in drafts:
        assert not _turns(other, here)
    check_rest(base, sizing, here)
    check_choices(base, found, here)


def check_choices(base: Scenario, found: dict[str, Any], here: str) -> None:
    """Of dtypes and of dcp_size the first that turns is the one named: each before it, solved whole, does not."""
    choices: dict[str, tuple[Any, ...]] = {
        "mamba_ssm_dtype": get_args(StateDtype),
        "kv_cache_dtype": get_args(KvDtype),
        "dcp_size": tuple(size for size in range(1, 65) if base.attn_tp_size % size == 0),
    }
    for name, values in choices.items():
        flip, stands = found[str(FIELDS[name].title).split(",")[0]], getattr(base, name)
        nearest = sorted(values, key=lambda value: abs(value - stands)) if name == "dcp_size" else values
        for value in nearest:
            other = changed(base, **{name: value})
            turned = value != stands and isinstance(other, Scenario) and _turns(other, here)
            named = bool(flip.then) and str(value) == flip.flips_at
            assert turned == named, (name, value)
            if named:
                break


def _turns(other: Scenario, here: str) -> bool:
    with contextlib.suppress(RefusedError):
        there = solve(other)
        return isinstance(there.now, Split) and short_pool_now(there) != here
    return False


def check_rest(base: Scenario, sizing: Sizing, here: Any) -> None:
    """Against every thousandth within 4 GiB."""
    found = nearest_rest(rank_as_set(base), sizing.ratio_now, here, 1024)
    at = base.rest_gib * 1000
    steps = np.arange(max(int(at) - 4000, 1), int(at) + 4001)
    steps = steps[steps != at]
    rank = rank_of(base)._replace(rest_gib=steps / 1000)
    slots = np.broadcast_to(slots_taken(rank, sizing.ratio_now), steps.shape)
    turned = steps[is_other(pools_from_slots(rank, slots), base.L, here)]
    near = np.min(np.abs(turned - at)) if turned.size else np.inf
    if found is None or abs(found * 1000 - at) > 4000:
        assert near > 4000 or near == np.inf
    else:
        assert abs(abs(round(found * 1000) - at) - near) < 1e-6


def test_the_nearest_rest_of_a_narrow_stretch() -> None:
    """Where the state pool is short in stretches of a few hundredths alone, the nearest is found, exactly."""
    sizing = solve(Scenario(L=32_768, rest_gib=16))
    (rest,) = [flip for flip in flips(sizing) if flip.quantity == "rest"]
    assert rest.flips_at == "2.319 GiB"


def test_a_pin_without_a_slot_to_spare_is_warned_of() -> None:
    """370 = 74 x 5; with the radix cache off, or fewer asked, nothing is missing."""
    pin = {"split": "pin", "max_mamba_cache_size": 370}
    sizing = solve(Scenario.model_validate(pin))
    assert [notice.about for notice in sizing_answer(sizing).notices] == ["no_spare_slot"]
    assert "--mamba-full-memory-ratio 2.2045 has one to spare and runs 74" in no_spare_slot(sizing)
    for other in ({"max_running_requests": 73}, {"disable_radix_cache": True}, {"max_mamba_cache_size": 371}):
        assert not no_spare_slot(solve(Scenario.model_validate({**pin, **other})))


def test_no_ratio_is_offered_that_an_input_refuses() -> None:
    """0.5.4 to 0.5.6 divide K by the attention-DP width: no ratio gives more than half of the slots that fit."""
    values = {"rest_gib": 28.529, "model": "", "family": "GDN", "attn_dp_size": 2, "release": "0.5.5", "L": 256}
    sizing = solve(Scenario.model_validate(values))
    found = flags(sizing)
    assert found is not None
    assert found.ratio is not None
    assert runs(with_flags(sizing.scenario, found.ratio)) == found.ratio_runs == found.runs
