"""Flag combinations that releases accept or refuse by their flags alone."""

from typing import Any

import pytest

from sizing import Refusal, RefusedError, Scenario, Split, solve
from sizing.engine.resolve import resolution
from sizing.releases.flags import has_flag
from sizing.releases.rules import RELEASES, Release
from tests.flag_cases import REFUSALS, Row, asked_in_flags, compare, flags_of, releases, rows


@pytest.mark.parametrize("row", rows(REFUSALS))
def test_refusal_case(row: Row) -> None:
    """The release's own answer, in every release of the row: its parser first, then the rules."""
    wrong = {release: answer(row, release) for release in releases(row)}
    assert not {release: found for release, found in wrong.items() if found}


def answer(row: Row, release: Release) -> dict[str, Any]:
    """What differs from the row in one release."""
    lacking = [flag for flag in flags_of(row, release) if not has_flag(release, flag)]
    if lacking:
        return {} if row["outcome"] == "no_such_flag" else {"outcome": (lacking, row["outcome"])}
    # These rows do not say --max-running-requests.
    resolved = resolution(asked_in_flags(row, release)).model_copy(update={"max_running_requests": None})
    return compare(row, resolved)


def refused(**inputs: Any) -> Refusal:
    """The refusal that these inputs meet, before any memory is counted."""
    with pytest.raises(RefusedError) as caught:
        solve(Scenario(**inputs))
    return caught.value.refusal


def test_a_model_that_the_release_lacks_is_not_served() -> None:
    """The sentence says since when it is."""
    refusal = refused(release="0.5.10")
    assert refusal.kind == "not_served"
    assert refusal.sentence == "SGLang 0.5.10 has no KimiK3ForConditionalGeneration: it is served since 0.5.17."


@pytest.mark.parametrize("release", RELEASES[RELEASES.index("0.5.17") :])
def test_rings_without_speculation_crash_since_0_5_20(release: Release) -> None:
    """GDN rings for requests that nobody set: a TypeError while sizing, which --max-running-requests cures."""
    inputs: dict[str, Any] = {
        "rest_gib": 28.529,
        "model": "",
        "family": "GDN",
        "replayssm": "spec",
        "release": release,
        "page_size": 1,
    }
    if release in ("0.5.17", "0.5.18", "0.5.19"):
        assert isinstance(solve(Scenario(**inputs)).now, Split)
        return
    refusal = refused(**inputs)
    assert refusal.kind == "engine_crash"
    assert refusal.sentence.startswith("SGLang would crash at the start: “TypeError: ")
    assert "--max-running-requests" in refusal.cure
    assert isinstance(solve(Scenario(**inputs, max_running_requests=100)).now, Split)


def test_unified_memory_changes_no_number() -> None:
    """Where it runs, slots, S, tokens and requests are those of the static split."""
    assert solve(Scenario(enable_unified_memory=True)).now == solve(Scenario()).now


def test_a_page_that_the_model_forces_is_the_one_that_counts() -> None:
    """GLM-5-next: 64 up to 0.5.21, 64 x index_kpool since, which the track interval must then hold."""
    glm: dict[str, Any] = {"model": "", "architecture": "Glm5NextForConditionalGeneration", "index_page_tokens": 1024}
    assert resolution(Scenario(**glm, release="0.5.21", page_size=1)).page_size == 64
    assert refused(**glm, release="0.5.22").cure.endswith("set it to 1024 or a multiple of that.")
    taken = resolution(Scenario(**glm, release="0.5.22", mamba_track_interval=1024))
    assert (taken.refusal, taken.page_size) == (None, 1024)
