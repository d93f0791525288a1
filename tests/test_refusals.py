"""Flag combinations that releases accept or refuse by their flags alone."""

from typing import Any

import pytest

from sizing.engine.refused_flags import lacking_flag
from sizing.engine.slots_per_request import resolution
from sizing.releases.rules import Release
from tests.flag_cases import REFUSALS, Row, asked_in_flags, compare, flags_of, releases, rows


@pytest.mark.parametrize("row", rows(REFUSALS))
def test_refusal_case(row: Row) -> None:
    """The release's own answer, in every release of the row: its parser first, then the rules."""
    wrong = {release: answer(row, release) for release in releases(row)}
    assert not {release: found for release, found in wrong.items() if found}


def answer(row: Row, release: Release) -> dict[str, Any]:
    """What differs from the row in one release."""
    lacking = lacking_flag(release, flags_of(row, release))
    if lacking:
        return {} if row["outcome"] == lacking.kind else {"outcome": (lacking, row["outcome"])}
    # These rows do not say --max-running-requests.
    resolved = resolution(asked_in_flags(row, release)).model_copy(update={"max_running_requests": None})
    return compare(row, resolved)
