"""What each release does with each state model: strategy, radix cache, overlap, page, S, or that it refuses."""

import pytest

from tests.flag_cases import SUPPORT, Row, compare, releases, resolved_in_words, rows


@pytest.mark.parametrize("row", rows(SUPPORT))
def test_support_case(row: Row) -> None:
    """The release's own flag resolution, in every release of the row."""
    wrong = {release: compare(row, resolved_in_words(row, release)) for release in releases(row)}
    assert not {release: found for release, found in wrong.items() if found}
