"""A named model and its own bytes typed in are the same deployment, in every release and at every dcp_size."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from sizing import RefusedError, Scenario, Split, solve
from sizing.answers.solve import solve_now
from sizing.engine.resolve import resolution
from sizing.models import kv_bytes_per_token
from sizing.releases.rules import RELEASES, Release, rules_of
from sizing.scenario.from_model import geometry_of, servable, suggested

DCP_SIZES = (1, 2, 4, 8)
DRAFTS: tuple[dict[str, Any], ...] = ({}, {"D": 4, "draft_kv_layers": 1}, {"D": 4, "draft_kv_bytes_per_token": 6144})


def deployments(release: Release) -> Iterator[dict[str, Any]]:
    """Every servable model at the widest TP up to 8 that it can have, at each dcp_size, with and without drafts."""
    for model, dcp, drafts in product(servable(), DCP_SIZES, DRAFTS):
        geometry = geometry_of(model)
        tp = next((tp for tp in (8, 4, 2) if tp >= dcp and divides(model, tp)), 1)
        if tp % dcp:
            continue
        found = {"model": model, "release": release, "tp_size": tp, "dcp_size": dcp, "rest_gib": 60}
        yield found | suggested(geometry, release) | {"replayssm": "spec" if geometry.replayssm else "off"} | drafts


def divides(model: str, tp: int) -> bool:
    """Whether the model can have this width."""
    try:
        Scenario(model=model, tp_size=tp)
    except ValueError:
        return False
    return True


def outcome(scenario: Scenario) -> Any:
    """The split that is set, or the words of the refusal."""
    try:
        return solve_now(scenario)
    except RefusedError as refused:
        return refused.refusal


@pytest.mark.parametrize("release", RELEASES)
def test_a_named_model_is_its_own_bytes_typed_in(release: Release) -> None:
    """The same bytes and the same split, whichever way they were given; a link that carries either gives it back."""
    tried = 0
    for values in deployments(release):
        named = Scenario.model_validate(values)
        typed = Scenario.model_validate(named.model_dump() | {"model": "", "draft_kv_layers": None})
        assert resolution(typed).costs == resolution(named).costs, values
        assert outcome(typed) == outcome(named), values
        for scenario in (named, typed):
            assert Scenario.model_validate(scenario.differences()) == scenario, values
        tried += 1
    assert tried > 300


@pytest.mark.parametrize("release", [release for release in RELEASES if rules_of(release).dcp])
def test_bytes_typed_without_dcp_are_the_named_model_s_under_dcp(release: Release) -> None:
    """What a boot without DCP measures is rescaled by the one rule of KV heads; DSA and QSA do not rescale."""
    tried = 0
    for values in deployments(release):
        named = Scenario.model_validate(values)
        if named.attention in ("DSA", "QSA") or "draft_kv_bytes_per_token" in values:
            continue
        single = Scenario.model_validate(values | {"dcp_size": 1})
        typed = Scenario.model_validate(
            single.model_dump() | {"model": "", "draft_kv_layers": None, "dcp_size": named.dcp_size}
        )
        there, here = resolution(typed).costs, resolution(named).costs
        assert there.target_token == here.target_token, values
        assert abs(there.draft_row - here.draft_row) <= named.dcp_size, values  # each was rounded
        tried += 1
    assert tried > 200


@pytest.mark.parametrize(
    ("release", "row"), [("0.5.15", 16_384), ("0.5.16", 16_384), ("0.5.17", 16_384), ("0.5.18", 65_536)]
)
def test_kv_heads_of_qwen_under_dcp(release: Release, row: int) -> None:
    """Qwen3.5-27B at TP8 and dcp 8 in bfloat16: 4 heads are 1 a rank up to 0.5.17, then max(1, 4 // (8 // 8)) = 4."""
    flags: dict[str, Any] = {"tp_size": 8, "dcp_size": 8, "kv_cache_dtype": "bfloat16"}
    scenario = Scenario(model="Qwen/Qwen3.5-27B", release=release, **flags)
    # 16 attention layers, keys and values of 256 wide, 2 bytes
    assert resolution(scenario).costs.target_token == row == row // (16 * 512 * 2) * 16 * 512 * 2
    geometry = geometry_of("Qwen/Qwen3.5-27B")
    assert row == kv_bytes_per_token(geometry, 8, "bfloat16", rules_of(release).heads_dcp(8))


def test_inkling_is_served() -> None:
    """State first at ratio 0.1, then full rows and a tenth of them in the window pool; 90,112 bytes at TP1."""
    scenario = Scenario(
        model="thinkingmachines/Inkling", tp_size=1, kv_cache_dtype="bfloat16", page_size=1, rest_gib=60
    )
    sizing = solve(scenario)
    assert isinstance(sizing.now, Split)
    assert scenario.mamba_full_memory_ratio == 0.1
    assert sizing.token_bytes == sizing.target_token_bytes == 11 * 8 * 256 * 2 + 55 * 16 * 256 * 2 // 10 == 90_112
    assert (sizing.now.slots, sizing.now.kv_rows, sizing.now.window_rows) == (801, 649_976, 64_997)
    stated = Scenario.model_validate(scenario.model_dump() | {"mamba_full_memory_ratio": 0.9})
    assert "mamba_full_memory_ratio" in stated.differences()
    assert "mamba_full_memory_ratio" not in scenario.differences()


def test_the_window_pool_binds_at_short_contexts() -> None:
    """Each request keeps a window of 512 rows: at L = 1,024 the window pool runs out before the full one."""
    inputs: dict[str, Any] = {"tp_size": 1, "kv_cache_dtype": "bfloat16", "page_size": 1, "rest_gib": 60, "L": 1024}
    now = solve(Scenario(model="thinkingmachines/Inkling", **inputs)).now
    assert isinstance(now, Split)
    assert (now.window_cap, now.runs, now.binding.name) == (64_997 // 512, 126, "KV pool")
    wider = solve(Scenario(model="thinkingmachines/Inkling", swa_full_tokens_ratio=0.5, **inputs)).now
    assert isinstance(wider, Split)
    assert wider.window_rows == int(wider.kv_rows * 0.5)
    assert wider.runs > now.runs or wider.binding.name != "KV pool"


def test_a_window_pool_for_no_request_is_refused() -> None:
    """A window pool must hold more than a window and a page."""
    inputs: dict[str, Any] = {"tp_size": 1, "kv_cache_dtype": "bfloat16", "page_size": 1, "rest_gib": 0.5}
    refusal = solve(Scenario(model="thinkingmachines/Inkling", swa_full_tokens_ratio=0.05, **inputs)).now
    assert not isinstance(refusal, Split)
    assert refusal.kind == "no_tokens"
    assert refusal.engine_words.startswith("SWA pool (")
