"""Each line of engine-versions.md that changes a number, on both sides of the release that changes it.

The expected numbers are worked out here, from that document's words and in state slots: a slot is 1 MiB, rest is
4,096 slots, the ratio is 3, so the state budget is 3,072 slots. A token is 1 KiB, so a slot is worth 1,024 tokens.
"""

from fractions import Fraction
from math import floor
from typing import Any

import pytest

from sizing import Problem, Refusal, RefusedError, Scenario, Split, read_scenario, solve
from sizing.answers.solve import Sizing
from sizing.engine.charges import minimum_rest_gib
from sizing.engine.rank import rank_of
from sizing.engine.resolve import resolution, resolve
from sizing.releases.rules import CHANGES, FIRST, LATEST, RELEASES, Change, Rules, rules_of

# engine-versions.md, first line: the releases that were read.
ORDER = [
    "0.5.4", "0.5.5", "0.5.6", "0.5.7", "0.5.8", "0.5.9", "0.5.10", "0.5.11", "0.5.12", "0.5.13", "0.5.14", "0.5.15",
    "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23",
]  # fmt: skip

SLOT, TOKEN = 2**20, 2**10  # bytes
REST, BUDGET = 4096, 3072  # slots
TOKENS_OF_A_SLOT = SLOT // TOKEN

# Overlap off and pages of one token: with them `auto` means S = 3 in every release.
S = 3
SMALL: dict[str, Any] = {
    "rest_gib": REST * SLOT / 2**30,
    "mamba_full_memory_ratio": 3,
    "state_bytes_per_slot": SLOT,
    "conv_bytes_per_slot": SLOT // 4,
    "kv_bytes_per_token": TOKEN,
    "kv_bytes_dtype": "bfloat16",
    "kv_cache_dtype": "bfloat16",
    "page_size": 1,
    "disable_overlap_schedule": True,
    "context_length": 2**20,
    "L": 1024,
}
RADIX_OFF: dict[str, Any] = {"disable_radix_cache": True}


def since(release: str, first: str) -> bool:
    """Whether this release is `first` or newer."""
    return ORDER.index(release) >= ORDER.index(first)


def stretch(first: str, last: str) -> list[str]:
    """The releases from `first` to `last`. 0.5.7, where S is 5 with no_buffer too, has rows of its own."""
    return [
        release for release in ORDER[ORDER.index(first) : ORDER.index(last) + 1] if release != "0.5.7" or first == last
    ]


NEWEST = ORDER[-1]  # as the last release of a row: still so


def by_release(first: str = "0.5.4") -> pytest.MarkDecorator:
    """One run of the test for each release from `first` on."""
    return pytest.mark.parametrize("release", stretch(first, NEWEST))


def scenario_of(release: str, **inputs: Any) -> Scenario:
    """The small deployment under a release, with some inputs changed.

    From 0.5.9 to 0.5.13 most models do not speculate with no_buffer; one outside the engine's list does, with S = 3.
    """
    drafts = bool(inputs.get("D")) and "mamba_radix_cache_strategy" not in inputs
    unlisted = {"architecture": "NemotronH_Nano_VL_V2"} if drafts and release in stretch("0.5.9", "0.5.13") else {}
    return Scenario.model_validate({**SMALL, "release": release, **unlisted, **inputs})


def sizing_of(release: str, **inputs: Any) -> Sizing:
    """The same, solved."""
    return solve(scenario_of(release, **inputs))


def split_of(release: str, **inputs: Any) -> Split:
    """The same, where it starts."""
    now = sizing_of(release, **inputs).now
    assert isinstance(now, Split), now
    return now


def refusal_of(release: str, **inputs: Any) -> Refusal:
    """The same, where it does not start for want of memory."""
    now = sizing_of(release, **inputs).now
    assert isinstance(now, Refusal), now
    return now


def words_of(release: str, **inputs: Any) -> str | None:
    """The words with which the release refuses the flags; None where it takes them."""
    try:
        resolve(scenario_of(release, **inputs))
    except RefusedError as refused:
        return refused.refusal.engine_words
    return None


def pools(release: str, **inputs: Any) -> tuple[int, int]:
    """K, and the rows of the KV pool on one rank."""
    now = split_of(release, **inputs)
    return now.slots, now.kv_rows


def expected(slots: Fraction | int, kv_slots: Fraction | int) -> tuple[int, int]:
    """K, and the rows that a KV budget of so many slots holds."""
    return floor(slots), floor(kv_slots * TOKENS_OF_A_SLOT)


# The list of releases and of changes.


def test_releases_are_those_that_were_read() -> None:
    """Every release that was read, oldest first, and the newest is the default."""
    assert list(RELEASES) == ORDER
    assert LATEST == ORDER[-1] == Scenario().release


@by_release()
def test_release_has_rules(release: str) -> None:
    """Each release has a whole set of rules, every one a value that its type allows."""
    rules = rules_of(scenario_of(release, D=0).release)
    assert Rules.model_validate(rules.model_dump()) == rules


def test_first_release_has_the_first_rules() -> None:
    """No change reaches the first release."""
    assert rules_of(RELEASES[0]) == FIRST


@pytest.mark.parametrize("change", CHANGES, ids=[f"{change.since} {change.words[:40]}" for change in CHANGES])
def test_change_changes_what_it_names(change: Change) -> None:
    """Each change sets rules that exist, to values that the release before did not have, and they hold since then."""
    assert change.sets
    assert set(change.sets) <= set(Rules.model_fields)
    at = RELEASES.index(change.since)
    before, after = rules_of(RELEASES[at - 1]).model_dump(), rules_of(change.since).model_dump()
    assert at > 0
    assert [name for name, value in change.sets.items() if before[name] == value] == []
    assert {name: after[name] for name in change.sets} == change.sets


def test_changes_are_in_order() -> None:
    """Oldest first, so that a later change overrides an earlier one; no rule is set twice in one release."""
    assert [change.since for change in CHANGES] == sorted((c.since for c in CHANGES), key=RELEASES.index)
    named = [(change.since, name) for change in CHANGES for name in change.sets]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("release", ["0.5.3", f"{NEWEST}0", "0.6.0", ""])
def test_problem_release_that_was_not_read(release: str) -> None:
    """A release that was not read is refused in one sentence that names those that were."""
    found = read_scenario({"release": release})
    assert isinstance(found, list)
    assert found == [Problem(where="release", sentence=found[0].sentence)]
    assert found[0].sentence.startswith("SGLang release must be one of ")
    assert found[0].sentence.endswith(f"not “{release}”." if release else "not empty.")
    assert [name for name in ORDER if f"'{name}'" not in found[0].sentence] == []


# S and strategies.

EXTRA: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer", "disable_overlap_schedule": False}
LAZY: dict[str, Any] = {"mamba_radix_cache_strategy": "extra_buffer_lazy", "disable_overlap_schedule": False}
AUTO: dict[str, Any] = {"mamba_radix_cache_strategy": "auto", "disable_overlap_schedule": False}
NO_BUFFER: dict[str, Any] = {"mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True}
OVERLAP_OFF: dict[str, Any] = {"disable_overlap_schedule": True}
SKIP: dict[str, Any] = {"skip_decode_lock": True}
DRAFTS: dict[str, Any] = {"D": 4}
PP: dict[str, Any] = {"pp_size": 2, "state_bytes_all_stages": 2 * SLOT}

# First and last release, flags, S. The rows of the table in engine-versions.md; section 4 of engine-sizing.md for
# what `auto`, PP and the skip do.
S_ROWS = [
    ("0.5.4", "0.5.6", AUTO, 3),
    ("0.5.4", "0.5.6", AUTO | DRAFTS, 3),
    ("0.5.7", "0.5.7", AUTO, 5),
    ("0.5.7", "0.5.7", AUTO | DRAFTS, 5),
    ("0.5.7", "0.5.7", NO_BUFFER, 5),
    ("0.5.7", "0.5.7", EXTRA, 5),
    ("0.5.7", "0.5.7", EXTRA | DRAFTS, 4),
    ("0.5.7", "0.5.7", RADIX_OFF, 1),
    ("0.5.8", "0.5.13", AUTO, 3),
    ("0.5.8", "0.5.8", AUTO | DRAFTS, 3),
    ("0.5.9", "0.5.9", AUTO | DRAFTS, 1),
    ("0.5.14", NEWEST, AUTO, 5),
    ("0.5.14", NEWEST, AUTO | OVERLAP_OFF, 3),
    ("0.5.14", NEWEST, AUTO | OVERLAP_OFF | {"page_size": 64}, 4),
    ("0.5.14", NEWEST, AUTO | PP, 4),
    ("0.5.14", NEWEST, AUTO | {"architecture": "Lfm2ForCausalLM"}, 3),
    ("0.5.4", NEWEST, RADIX_OFF, 1),
    ("0.5.4", NEWEST, RADIX_OFF | DRAFTS, 1),
    ("0.5.8", NEWEST, NO_BUFFER, 3),
    ("0.5.8", NEWEST, NO_BUFFER | SKIP, 3),
    ("0.5.8", "0.5.9", EXTRA, 5),
    ("0.5.8", "0.5.9", EXTRA | OVERLAP_OFF, 5),
    ("0.5.8", "0.5.9", EXTRA | PP, 5),
    ("0.5.8", "0.5.9", EXTRA | DRAFTS, 4),
    ("0.5.8", "0.5.9", EXTRA | DRAFTS | OVERLAP_OFF, 4),
    ("0.5.10", NEWEST, EXTRA, 5),
    ("0.5.10", NEWEST, EXTRA | OVERLAP_OFF, 4),
    ("0.5.10", NEWEST, EXTRA | PP, 4),
    ("0.5.10", "0.5.10", EXTRA | DRAFTS, 4),
    ("0.5.11", NEWEST, EXTRA | DRAFTS, 5),
    ("0.5.4", NEWEST, AUTO | {"disaggregation_mode": "decode"}, 1),
    ("0.5.13", NEWEST, LAZY | {"disaggregation_mode": "decode"}, 1),
    ("0.5.5", "0.5.13", AUTO | {"architecture": "KimiLinearForCausalLM"}, 1),
    ("0.5.16", NEWEST, AUTO | {"architecture": "KimiLinearForCausalLM"}, 5),
    ("0.5.19", NEWEST, AUTO | {"architecture": "KimiK3LinearForCausalLM"}, 3),
    ("0.5.10", NEWEST, EXTRA | DRAFTS | OVERLAP_OFF, 4),
    ("0.5.13", NEWEST, LAZY, 4),
    ("0.5.4", "0.5.6", AUTO | SKIP, 3),
    ("0.5.8", "0.5.16", EXTRA | SKIP, 5),
    ("0.5.13", "0.5.16", LAZY | SKIP, 4),
    ("0.5.17", NEWEST, EXTRA | SKIP, 4),
    ("0.5.17", NEWEST, EXTRA | SKIP | OVERLAP_OFF, 3),
    ("0.5.17", NEWEST, LAZY | SKIP, 3),
]


@pytest.mark.parametrize(
    ("release", "flags", "slots"),
    [(release, flags, slots) for first, last, flags, slots in S_ROWS for release in stretch(first, last)],
)
def test_s(release: str, flags: dict[str, Any], slots: int) -> None:
    """S of every strategy in every release that has it, with the reasons adding up to it."""
    resolved = resolve(scenario_of(release, **flags))
    assert slots == resolved.S
    assert sum(use.count for use in resolved.uses) == slots


# Slots and what is left for KV.


@by_release()
def test_padding_slot_is_charged_since_0_5_17(release: str) -> None:
    """By ratio the padding slot comes off the budget, and K slots and it off rest."""
    padding = 1 if since(release, "0.5.17") else 0
    slots = BUDGET - padding
    assert pools(release) == expected(slots, REST - slots - padding)


@by_release("0.5.8")
def test_padding_slot_is_charged_beside_a_pin_since_0_5_17(release: str) -> None:
    """A pin of 100 leaves rest less 100 slots, and less one more since then."""
    padding = 1 if since(release, "0.5.17") else 0
    assert pools(release, split="pin", max_mamba_cache_size=100) == expected(100, REST - 100 - padding)


@pytest.mark.parametrize("dp", [1, 2])
@pytest.mark.parametrize("asked", [None, 100, 500])  # 48 by default, and 500 is more than K // S
@by_release()
def test_draft_states(release: str, asked: int | None, dp: int) -> None:
    """Each release charges the draft states of plain speculation in its own way; here D is 4."""
    D, requests = 4, (asked or 48) // dp
    padding = 1 if since(release, "0.5.17") else 0
    extra = 0
    if not since(release, "0.5.7"):  # every slot carries D draft states, and EAGLE adds rows
        slots: Fraction | int = BUDGET // (1 + D)
        kv = Fraction(REST - slots * (1 + D))
        extra = headroom(min(asked or 48, slots // S), D)
    elif not since(release, "0.5.13"):  # those of the requests come off rest before the split
        split = Fraction(REST - requests * D)
        slots, kv = split * 3 / 4, split - floor(split * 3 / 4)
    else:  # one solve for K and for the drafts of K // S requests, then those of min(requests, K // S)
        slots = (BUDGET - padding * (1 + D)) / (1 + Fraction(D, S))
        kv = Fraction(REST - (floor(slots) + padding) - (min(requests, floor(slots) // S) + padding) * D)
    inputs = {"D": D, "max_running_requests": asked, "attn_dp_size": dp}
    K, rows = expected(slots, kv)
    assert pools(release, **inputs) == (K, rows + extra)


def headroom(requests: int, D: int) -> int:
    """What EAGLE adds up to 0.5.6: for each request D - 1 steps of one branch and D drafts, and 100 [rows]."""
    return requests * (D - 1 + D) + 100


def test_draft_states_of_0_5_7() -> None:
    """By ratio the drafts of all requests come off rest, undivided; a pin and a request count leave them out."""
    D, spec = 4, {"D": 4, "max_running_requests": 100}
    for dp in (1, 2):
        split = Fraction(REST - 100 * D)
        by_ratio = expected(split * 3 / 4, split - floor(split * 3 / 4))
        assert pools("0.5.7", **spec, attn_dp_size=dp) == by_ratio
        pinned = pools("0.5.7", **spec, attn_dp_size=dp, split="pin", max_mamba_cache_size=900)
        assert pinned == expected(900 // dp, REST - 900 // dp)
        assert pools("0.5.7", **spec, attn_dp_size=dp, **RADIX_OFF) == expected(100 // dp, REST - 100 // dp)


@pytest.mark.parametrize(
    ("algorithm", "inputs", "rows"),
    [
        ("EAGLE", {}, 40 * (3 + 4) + 100),
        ("EAGLE3", {"speculative_num_steps": 5, "speculative_eagle_topk": 8, "D": 16}, 40 * (5 * 8 + 16) + 100),
        ("STANDALONE", {"speculative_num_steps": 3}, 40 * (3 + 4) + 100),
        ("NGRAM", {}, 0),
    ],
)
def test_rows_that_eagle_adds_until_0_5_6(algorithm: str, inputs: dict[str, Any], rows: int) -> None:
    """requests x (steps x topk + D) + 100 rows on top of what was sized; gone in 0.5.7."""
    asked = RADIX_OFF | {"D": 4, "max_running_requests": 40, "speculative_algorithm": algorithm} | inputs
    kv = (REST - 40 * (1 + asked["D"])) * TOKENS_OF_A_SLOT
    for release in ("0.5.4", "0.5.6"):
        assert pools(release, **asked) == (40, kv + rows)
    assert pools("0.5.7", **asked) == (40, (REST - 40) * TOKENS_OF_A_SLOT)


@by_release("0.5.8")
def test_draft_states_beside_a_pin(release: str) -> None:
    """A pin of 900 pays for the draft states of 100 requests, and of one more since 0.5.17; 900 // 3 is more."""
    padding = 1 if since(release, "0.5.17") else 0
    found = pools(release, D=4, max_running_requests=100, split="pin", max_mamba_cache_size=900)
    assert found == expected(900, REST - 900 - padding - (100 + padding) * 4)


@by_release()
def test_draft_states_without_radix_cache(release: str) -> None:
    """40 requests are 40 slots and 40 x 4 draft states, and since 0.5.17 one slot more with its four."""
    padding = 1 if since(release, "0.5.17") else 0
    slots, rows = expected(40, REST - (40 + padding) * (1 + 4))
    extra = 0 if since(release, "0.5.7") else headroom(40, 4)
    assert pools(release, **RADIX_OFF, D=4, max_running_requests=40) == (slots, rows + extra)


@by_release()
def test_admitted_are_48_under_speculation(release: str) -> None:
    """Unset, --max-running-requests is 48 under speculation, of which K // S would allow more."""
    now = split_of(release, D=4)
    assert now.clamp > 48
    assert now.admitted == 48


@by_release()
def test_pin_wins_since_0_5_7(release: str) -> None:
    """While the radix cache is on, the ratio overwrites a pin up to 0.5.6."""
    pinned = split_of(release, split="pin", max_mamba_cache_size=90)
    assert pinned.slots == (90 if since(release, "0.5.8") else BUDGET)
    assert pinned.clamp == pinned.slots // S


@by_release()
def test_pin_without_radix_cache(release: str) -> None:
    """With the radix cache off a pin wins in every release, over the request count too."""
    inputs = RADIX_OFF | {"split": "pin", "max_mamba_cache_size": 90, "max_running_requests": 40}
    assert split_of(release, **inputs).slots == 90


@by_release()
def test_no_radix_cache_takes_the_requests(release: str) -> None:
    """With the radix cache off and no pin, K is the request count, and the ratio plays no part."""
    for ratio in (0.1, 3, 50):
        now = split_of(release, **RADIX_OFF, max_running_requests=40, mamba_full_memory_ratio=ratio)
        assert (now.slots, now.clamp, now.ratio) == (40, 40, None)


@by_release()
def test_no_radix_cache_and_no_requests(release: str) -> None:
    """Then K is 512 up to 0.5.8, and by ratio since 0.5.9."""
    by_ratio = BUDGET - (1 if since(release, "0.5.17") else 0)
    assert split_of(release, **RADIX_OFF).slots == (by_ratio if since(release, "0.5.9") else 512)


@by_release()
@pytest.mark.parametrize("family", ["GDN", "KDA", "Mamba2"])
def test_ratio_slots_under_attention_dp(release: str, family: str) -> None:
    """Up to 0.5.6 GDN divides K by the attention-DP width; nothing else divides what the ratio gives."""
    padding = 1 if since(release, "0.5.17") else 0
    halved = family == "GDN" and not since(release, "0.5.8")
    assert split_of(release, family=family, attn_dp_size=2).slots == (BUDGET - padding) // (2 if halved else 1)


@by_release()
@pytest.mark.parametrize("family", ["GDN", "KDA"])
def test_stated_slots_under_attention_dp(release: str, family: str) -> None:
    """A pin of 101 or 101 requests is 50 slots on each of two ranks; up to 0.5.6 for GDN alone."""
    slots = 50 if family == "GDN" or since(release, "0.5.8") else 101
    two = RADIX_OFF | {"family": family, "attn_dp_size": 2}
    assert split_of(release, **two, split="pin", max_mamba_cache_size=101).slots == slots
    assert split_of(release, **two, max_running_requests=101).slots == slots


@by_release("0.5.8")
def test_draft_states_under_attention_dp(release: str) -> None:
    """Each of two ranks pays for the draft states of half the requests: 100 // 2 x 4, and of one more since 0.5.17."""
    padding = 1 if since(release, "0.5.17") else 0
    two = {"D": 4, "attn_dp_size": 2, "max_running_requests": 100, "split": "pin", "max_mamba_cache_size": 1800}
    assert pools(release, **two) == expected(900, REST - 900 - padding - (50 + padding) * 4)


@by_release("0.5.8")
def test_every_rank_gets_one_request_since_0_5_23(release: str) -> None:
    """One request over two ranks: max(1, 1 // 2) since 0.5.23, before nothing is left to start with."""
    one = RADIX_OFF | {"attn_dp_size": 2, "max_running_requests": 1}
    if since(release, "0.5.23"):
        now = split_of(release, **one)
        assert (now.slots, now.admitted) == (1, 1)
    else:
        assert refusal_of(release, **one).kind == "no_state_memory"


@by_release()
def test_pipeline_stages(release: str) -> None:
    """Up to 0.5.16 every stage is charged all layers, here twice its own; since 0.5.17 the largest stage."""
    if since(release, "0.5.17"):
        assert pools(release, **PP) == expected(BUDGET - 1, REST - BUDGET)
    else:
        assert pools(release, **PP) == expected(BUDGET // 2, REST - BUDGET)


def test_problem_all_stages_are_needed_up_to_0_5_16() -> None:
    """A release that charges all stages asks for their bytes; one that does not needs none."""
    found = read_scenario(SMALL | {"release": "0.5.16", "pp_size": 2})
    assert isinstance(found, list)
    assert [problem.sentence for problem in found] == [
        "SGLang 0.5.16 charges all pipeline stages on every rank: fill in “State bytes, all stages”."
    ]
    assert isinstance(read_scenario(SMALL | {"release": "0.5.17", "pp_size": 2}), Scenario)


# ReplaySSM: a ring is 16 positions of 1/64 slot, so a quarter of a slot; 8 draft tokens are an eighth.
RING: dict[str, Any] = {
    "replayssm": "spec",
    "D": 8,
    "max_running_requests": 100,
    "linear_replayssm_cache_len": 16,
    "ring_bytes_per_position": SLOT // 64,
}


def ring_on_every_slot(ring: Fraction) -> tuple[int, int]:
    """K and rows where each of K + 1 slots carries a ring of so many slots and no draft state is charged."""
    slots = (BUDGET - (1 + ring)) / (1 + ring)
    return expected(slots, REST - (floor(slots) + 1) * (1 + ring))


@by_release("0.5.16")
@pytest.mark.parametrize("family", ["GDN", "KDA", "Mamba2"])
def test_spec_rings(release: str, family: str) -> None:
    """Rings stand in for draft states since 0.5.17; GDN's is as long as the drafts up to 0.5.19, then fixed."""
    plain = {name: value for name, value in RING.items() if name != "replayssm"}
    found = pools(release, family=family, **RING)
    if family == "Mamba2" or not since(release, "0.5.17"):  # no ring, or one that is not charged: drafts as ever
        assert found == pools(release, family=family, **plain)
    elif family == "KDA":
        assert found == ring_on_every_slot(Fraction(16, 64))
    elif not since(release, "0.5.20"):
        assert found == ring_on_every_slot(Fraction(8, 64))
    else:  # ring x (requests + 1), taken from the state budget
        fixed = (100 + 1) * Fraction(16, 64)
        slots = floor(BUDGET - fixed - 1)
        assert found == expected(slots, REST - (slots + 1) - fixed)


@by_release("0.5.16")
def test_ring_of_kda_is_as_long_as_the_flag_says(release: str) -> None:
    """A KDA ring has --linear-replayssm-cache-len positions, GDN's only since 0.5.20."""
    longer = RING | {"linear_replayssm_cache_len": 32}
    charged = since(release, "0.5.17")
    assert (pools(release, family="KDA", **longer) != pools(release, family="KDA", **RING)) == charged
    assert (pools(release, family="GDN", **longer) != pools(release, family="GDN", **RING)) == since(release, "0.5.20")
    if charged:
        assert pools(release, family="KDA", **longer) == ring_on_every_slot(Fraction(32, 64))


@by_release("0.5.15")
def test_decode_rings_are_not_charged(release: str) -> None:
    """--enable-linear-replayssm puts a ring, a quarter of a slot, beside each of K + 1 slots and charges nothing."""
    rings = NO_BUFFER | {"replayssm": "decode", "ring_bytes_per_position": SLOT // 64}
    found = sizing_of(release, **rings)
    assert isinstance(found.now, Split)
    assert (found.now.slots, found.now.kv_rows) == pools(release, **NO_BUFFER)
    ring = next(row for row in found.allocations if row.what == "ReplaySSM rings")
    assert (ring.charged, ring.allocated) == (0, (found.now.slots + 1) * SLOT // 4)


@by_release()
@pytest.mark.parametrize("role", ["null", "prefill", "decode"])
def test_prefill_server_reserves_no_drafts_since_0_5_22(release: str, role: str) -> None:
    """Since then a PD prefill server sizes its pools as without speculation; every other server pays for drafts."""
    inputs = {"disaggregation_mode": role, "max_running_requests": 100}
    if role == "decode":  # runs without radix cache, S = 1
        assert pools(release, D=4, **inputs) == pools(release, D=4, max_running_requests=100, **RADIX_OFF)
    elif role == "prefill" and since(release, "0.5.22"):
        assert pools(release, D=4, **inputs) == expected(BUDGET - 1, REST - BUDGET)
    else:
        assert pools(release, D=4, **inputs) == pools(release, D=4, max_running_requests=100)


# How many requests are admitted. K is pinned or asked for with the radix cache off, so K // S is K.
MANY = RADIX_OFF | {"split": "pin", "max_mamba_cache_size": 3000}


@by_release()
def test_asked_requests_and_the_estimate(release: str) -> None:
    """Of 3,000 asked for, the estimate of 2,048 takes the rest in 0.5.10 to 0.5.13 only."""
    capped = since(release, "0.5.10") and not since(release, "0.5.14")
    assert split_of(release, **MANY, max_running_requests=3000).admitted == (2048 if capped else 3000)


@by_release()
def test_asked_requests_and_the_tokens(release: str) -> None:
    """With 4,000 tokens, tokens // 2 caps what is asked for since 0.5.14."""
    few = MANY | {"max_running_requests": 3000, "max_total_tokens": 4000}
    allowed = 2000 if since(release, "0.5.14") else 2048 if since(release, "0.5.10") else 3000
    assert split_of(release, **few).admitted == allowed


@by_release()
def test_unset_requests(release: str) -> None:
    """Unset, the estimate is admitted; with 4,000 tokens, tokens // 2 is less since 0.5.10."""
    assert split_of(release, **MANY).admitted == 2048
    assert split_of(release, **MANY, max_total_tokens=4000).admitted == (2000 if since(release, "0.5.10") else 2048)


@by_release()
def test_estimate_lies_between_its_ends(release: str) -> None:
    """int(tokens / context_len x 512) from 2,048 to 4,096; rows of 1,095 or 1,096 slots over a context of 2**18."""
    rows = (REST - 3000 - (1 if since(release, "0.5.17") else 0)) * TOKENS_OF_A_SLOT
    guess = rows * 512 // 2**18
    assert 2048 < guess < 3000
    assert split_of(release, **MANY, context_length=2**18).admitted == guess


@by_release()
def test_clamp_caps_what_is_admitted(release: str) -> None:
    """K // S caps in every release: 90 slots at S = 3 run 30 of 48."""
    if since(release, "0.5.8"):
        assert split_of(release, split="pin", max_mamba_cache_size=90, max_running_requests=48).admitted == 30
    else:  # a pin counts with the radix cache off only, and S is 1 there
        assert split_of(release, **RADIX_OFF, split="pin", max_mamba_cache_size=30).admitted == 30


@by_release()
@pytest.mark.parametrize("D", [0, 4])
def test_asked_requests_under_attention_dp(release: str, D: int) -> None:
    """100 asked for over two ranks: 100 up to 0.5.6, 50 under speculation in 0.5.8 and 0.5.9, 50 since 0.5.10."""
    two = RADIX_OFF | {"attn_dp_size": 2, "split": "pin", "max_mamba_cache_size": 400, "family": "KDA"}
    divided = since(release, "0.5.10") or (D > 0 and since(release, "0.5.8"))
    assert split_of(release, **two, D=D, max_running_requests=100).admitted == (50 if divided else 100)


# Dtypes.


@by_release()
def test_ssm_dtypes(release: str) -> None:
    """float32 and bfloat16 everywhere, at half the bytes; float16 since 0.5.9."""
    assert resolution(scenario_of(release)).costs.slot == SLOT
    assert (
        resolution(scenario_of(release, mamba_ssm_dtype="bfloat16")).costs.slot == SLOT // 4 + (SLOT - SLOT // 4) // 2
    )
    assert words_of(release, mamba_ssm_dtype="bfloat16") is None
    refused = None if since(release, "0.5.9") else "argument --mamba-ssm-dtype: invalid choice: 'float16'"
    assert words_of(release, mamba_ssm_dtype="float16") == refused


@by_release()
def test_conv_dtype_is_read_since_0_5_9(release: str) -> None:
    """Until then the conv part is bfloat16 whatever SGLANG_MAMBA_CONV_DTYPE says; since then float32 doubles it."""
    conv = SLOT // 4 * (2 if since(release, "0.5.9") else 1)
    assert sizing_of(release, mamba_conv_dtype="float32").slot_bytes == conv + (SLOT - SLOT // 4)


# DCP and the KV of drafts.


@by_release("0.5.15")
def test_kv_heads_follow_dcp_since_0_5_18(release: str) -> None:
    """2 heads on 8 ranks are 1 a rank; under dcp 8 it is max(1, 2 // (8 // 8)) = 2 since 0.5.18: twice the bytes."""
    padding = 1 if since(release, "0.5.17") else 0
    heads = 2 if since(release, "0.5.18") else 1
    now = split_of(release, attention="GQA", kv_heads=2, tp_size=8, dcp_size=8, split="pin", max_mamba_cache_size=1024)
    assert now.kv_rows == (REST - 1024 - padding) * TOKENS_OF_A_SLOT // heads
    assert now.kv_tokens == now.kv_rows * 8


@by_release("0.5.15")
def test_kv_heads_that_divide_do_not_depend_on_dcp(release: str) -> None:
    """2 heads on 8 ranks under dcp 4: max(1, 2 // (8 // 4)) = 1 in every release, as without DCP."""
    gqa = {"attention": "GQA", "kv_heads": 2, "tp_size": 8}
    assert pools(release, **gqa, dcp_size=4) == pools(release, **gqa)


DRAFT_ROW = 256  # bytes
# Since when the draft's row is in the bytes that the engine divides by; None is never.
CHARGED_SINCE = {
    "DFLASH": "0.5.12",
    "EAGLE": "0.5.14",
    "EAGLE3": "0.5.14",
    "NEXTN": "0.5.14",
    "STANDALONE": "0.5.14",
    "NGRAM": None,
}


def drafted(algorithm: str, **inputs: Any) -> dict[str, Any]:
    """A pin of 100 and two requests under this algorithm, with a draft model that has a KV row of its own."""
    return {
        "speculative_algorithm": algorithm,
        "D": 4,
        "max_running_requests": 2,
        "draft_kv_bytes_per_token": DRAFT_ROW,
        "split": "pin",
        "max_mamba_cache_size": 100,
        **inputs,
    }


def kv_bytes(release: str, slots: int = 100) -> int:
    """What this pin and the draft states of two requests leave for KV [bytes]."""
    padding = 1 if since(release, "0.5.17") else 0
    return (REST - slots - padding - (2 + padding) * 4) * SLOT


@by_release("0.5.8")
@pytest.mark.parametrize("algorithm", CHARGED_SINCE)
def test_draft_kv_in_the_bytes_of_a_token(release: str, algorithm: str) -> None:
    """The KV budget is divided by target plus draft since 0.5.12 (DFLASH) or 0.5.14, before by the target alone."""
    first = CHARGED_SINCE[algorithm]
    divisor = TOKEN + (DRAFT_ROW if first and since(release, first) else 0)
    assert split_of(release, **drafted(algorithm)).kv_rows == kv_bytes(release) // divisor


@by_release("0.5.17")  # until then DCP takes no speculation
@pytest.mark.parametrize(
    ("algorithm", "attention", "first"),
    [("EAGLE", "MLA", None), ("DFLASH", "MLA", "0.5.17"), ("EAGLE", "DSA", "0.5.22")],
)
def test_draft_kv_in_the_bytes_of_a_token_under_dcp(
    release: str, algorithm: str, attention: str, first: str | None
) -> None:
    """EAGLE on MLA charges the draft's row once, DFLASH, and since 0.5.22 a DSA target, once for each dcp rank."""
    times = 4 if first and since(release, first) else 1
    inputs = drafted(algorithm, attention=attention, dcp_size=4, kv_bytes_dcp_size=4)
    assert split_of(release, **inputs).kv_rows == kv_bytes(release) // (TOKEN + times * DRAFT_ROW)


@by_release("0.5.8")
@pytest.mark.parametrize("algorithm", ["EAGLE", "DFLASH"])
@pytest.mark.parametrize("dcp", [1, 4])
def test_draft_kv_pool(release: str, algorithm: str, dcp: int) -> None:
    """The draft's pool has a row for each of the target's, for each of the dcp ranks since 0.5.17, and a page more."""
    if dcp > 1 and not since(release, "0.5.15"):
        assert words_of(release, dcp_size=dcp) == f"unrecognized arguments: --dcp-size {dcp}"
        return
    if dcp > 1 and not since(release, "0.5.17"):
        words = words_of(release, **drafted(algorithm, dcp_size=dcp))
        assert words is not None
        assert words.startswith("Decode context parallel (--dcp-size")
        return
    found = sizing_of(release, **drafted(algorithm, dcp_size=dcp))
    assert isinstance(found.now, Split)
    rows = found.now.kv_rows
    first = CHARGED_SINCE[algorithm]
    charged = rows * DRAFT_ROW * (dcp if algorithm == "DFLASH" else 1) if first and since(release, first) else 0
    spans = dcp if since(release, "0.5.17") else 1
    pool = next(row for row in found.allocations if row.what.startswith("draft KV pool"))
    assert (pool.charged, pool.allocated) == (charged, (rows * spans + 1) * DRAFT_ROW)


def test_draft_kv_pool_out_of_the_slack() -> None:
    """Up to 0.5.13 all of rest goes to the target, and what the draft's pool takes is beyond what is charged."""
    before, after = sizing_of("0.5.13", **drafted("EAGLE")), sizing_of("0.5.14", **drafted("EAGLE"))
    assert isinstance(before.now, Split)
    assert isinstance(after.now, Split)
    assert (before.token_bytes, after.token_bytes) == (TOKEN, TOKEN + DRAFT_ROW)
    assert before.now.kv_rows * TOKEN == kv_bytes("0.5.13")
    assert before.now.kv_rows > after.now.kv_rows


# Refusals.


@by_release()
def test_no_slots_is_refused_in_words_since_0_5_13(release: str) -> None:
    """A negative rest gives no slots; the engine says so since 0.5.13."""
    refusal = refusal_of(release, rest_gib=-1)
    assert refusal.kind == "no_state_memory"
    said = refusal.engine_words.startswith(
        "Not enough GPU memory for hybrid (mamba/linear-attention) state cache. Computed max_mamba_cache_size=-"
    )
    assert said == since(release, "0.5.13")
    assert bool(refusal.engine_words) == said


@by_release()
def test_too_few_slots_are_refused_in_words_since_0_5_13(release: str) -> None:
    """Two slots at S = 3 serve nothing; the engine says so since 0.5.13."""
    padding = 1 if since(release, "0.5.17") else 0
    rest = Fraction(4, 3) * (2 + padding)  # of which the state budget is three quarters
    refusal = refusal_of(release, rest_gib=float((rest + Fraction(1, 100)) * SLOT / 2**30))
    assert refusal.kind == "no_requests"
    words = (
        "Hybrid (mamba/linear-attention) state cache is too small to serve any requests. "
        "max_mamba_cache_size=2, mamba_ratio=3"
    )
    assert refusal.engine_words.startswith(words) == since(release, "0.5.13")
    assert bool(refusal.engine_words) == since(release, "0.5.13")


@by_release("0.5.8")
def test_no_kv_memory_is_refused_under_its_own_words_since_0_5_14(release: str) -> None:
    """A pin larger than rest leaves KV nothing: until 0.5.13 that is no tokens, since 0.5.14 no memory."""
    refusal = refusal_of(release, split="pin", max_mamba_cache_size=REST + 1)
    if since(release, "0.5.14"):
        assert refusal.kind == "no_kv_memory"
        words = "Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static"
    else:
        assert refusal.kind == "no_tokens"
        words = "Not enough memory. Please try to increase --mem-fraction-static."
    assert refusal.engine_words.startswith(words)


@by_release()
@pytest.mark.parametrize("D", [0, 4])
def test_least_rest_for_one_request(release: str, D: int) -> None:
    """A hundredth of a slot below the least rest no request runs, a hundredth above it one does; two are asked for."""
    share = Fraction(3, 4)
    if not since(release, "0.5.8"):  # S slots, each with D draft states
        least = S * (1 + D) / share
    elif not since(release, "0.5.13"):  # the drafts of both requests, and S slots out of what is left
        least = 2 * D + S / share
    elif not since(release, "0.5.17"):
        least = (S + D) / share
    else:  # one padding slot and its D draft states more
        least = (S + 1 + 2 * D) / share
    inputs = {"D": D, "max_running_requests": 2}
    assert minimum_rest_gib(rank_of(scenario_of(release, **inputs)), 3) == pytest.approx(float(least * SLOT / 2**30))
    below, above = (float((least + step) * SLOT / 2**30) for step in (Fraction(-1, 100), Fraction(1, 100)))
    assert refusal_of(release, **inputs, rest_gib=below).kind == "no_requests"
    assert split_of(release, **inputs, rest_gib=above).admitted == 1


# Flags that a release does not know, and the first that does; the words are those of its argument parser.
UNKNOWN = [
    (EXTRA, "0.5.7", "0.5.6", "unrecognized arguments: --mamba-radix-cache-strategy extra_buffer"),
    (NO_BUFFER, "0.5.7", "0.5.6", "unrecognized arguments: --mamba-radix-cache-strategy no_buffer"),
    (LAZY, "0.5.13", "0.5.6", "unrecognized arguments: --mamba-radix-cache-strategy extra_buffer_lazy"),
    (LAZY, "0.5.13", "0.5.12", "argument --mamba-scheduler-strategy: invalid choice: 'extra_buffer_lazy'"),
    ({"mamba_ssm_dtype": "float16"}, "0.5.9", "0.5.8", "argument --mamba-ssm-dtype: invalid choice: 'float16'"),
    ({"dcp_size": 2}, "0.5.15", "0.5.14", "unrecognized arguments: --dcp-size 2"),
    (
        NO_BUFFER | {"replayssm": "decode"},
        "0.5.15",
        "0.5.14",
        "unrecognized arguments: --enable-linear-replayssm",
    ),
    (RING, "0.5.16", "0.5.15", "unrecognized arguments: --enable-linear-replayssm-spec"),
    ({"linear_replayssm_cache_len": 8}, "0.5.15", "0.5.14", "unrecognized arguments: --linear-replayssm-cache-len 8"),
    ({"language_only": True}, "0.5.7", "0.5.6", "unrecognized arguments: --language-only"),
    (
        {"disaggregation_decode_extra_slots": 4},
        "0.5.14",
        "0.5.13",
        "unrecognized arguments: --disaggregation-decode-extra-slots 4",
    ),
]


@pytest.mark.parametrize(("flags", "first", "last_without", "words"), UNKNOWN, ids=[row[3] for row in UNKNOWN])
def test_unknown_flag_is_refused(flags: dict[str, Any], first: str, last_without: str, words: str) -> None:
    """Refused up to the release before the first that has it, which the cure names; taken from there on."""
    assert words_of(last_without, **flags) == words
    with pytest.raises(RefusedError) as caught:
        resolve(scenario_of(last_without, **flags))
    assert caught.value.refusal.kind == "no_such_flag"
    assert f"SGLang {first}" in caught.value.refusal.cure
    assert [release for release in ORDER if not since(release, first) and words_of(release, **flags) is None] == []
    assert [release for release in ORDER if since(release, first) and words_of(release, **flags) is not None] == []


# Rules that change how something is written and not a number.


@by_release()
def test_names_of_flags(release: str) -> None:
    """What the flags are called in each release (the tables of engine-versions.md)."""
    rules = rules_of(scenario_of(release).release)
    strategy = "--mamba-radix-cache-strategy" if since(release, "0.5.14") else "--mamba-scheduler-strategy"
    ring = "--enable-linear-replayssm-spec" if since(release, "0.5.17") else "--enable-gdn-replayssm-spec"
    dp = "--attn-dp-size 2" if since(release, "0.5.22") else "--dp-size 2 --enable-dp-attention"
    assert rules.strategy_flag == (strategy if since(release, "0.5.7") else "")
    assert rules.spec_ring_flag == (ring if since(release, "0.5.16") else "")
    assert rules.dp_flags.format(n=2) == dp


@by_release()
def test_printed_tokens_are_logical_since_0_5_21(release: str) -> None:
    """The scheduler line counts rows of one rank up to 0.5.20."""
    assert rules_of(scenario_of(release).release).prints_logical_tokens == since(release, "0.5.21")
