"""A fixed sample of mutated texts; tests/server_mutations.py runs as many as asked."""

import pytest

from tests.server_mutations import numbers_in, run


@pytest.mark.parametrize("seed", range(0, 600, 100))
def test_mutated_texts(seed: int) -> None:
    """Nothing is raised, whatever is made of them, and every number that is read stands in the text."""
    assert run(100, seed * 1_000_003) == []


def test_the_check_itself() -> None:
    """A number is one from its first digit to its last."""
    assert numbers_in("#full token: 1234, full token usage: 0.41") == {1234, 0.41}
