"""The automatic values, case by case, against each release's own functions."""

from collections import Counter
from typing import Any

import pytest

from sizing.memory.automatic import automatic
from tests.memory_cases import FILE, OTHER_FILE, Case, memory_cases, read_cases

default_file = pytest.mark.skipif(OTHER_FILE is not None, reason=f"counts are those of our file, not {FILE.name}")


@pytest.mark.parametrize("case", memory_cases())
def test_memfraction_case(case: Case) -> None:
    """Every value that the case expects, fractions to 1e-9."""
    found = automatic(case.inputs)
    wrong = {
        name: (getattr(found, name), value) for name, value in case.expect.items() if not _same(found, name, value)
    }
    assert not wrong, wrong


def _same(found: Any, name: str, value: Any) -> bool:
    ours = getattr(found, name)
    if isinstance(value, float) and ours is not None:
        return bool(abs(ours - value) <= 1e-9)
    return bool(ours == value)


@default_file
def test_no_case_is_dropped() -> None:
    """All 796 cases of all twenty releases are compared, each under an id of its own."""
    cases = read_cases()
    assert len(cases) == 796
    assert len({case.id for case in cases}) == len(cases)
    assert Counter(case.inputs.release for case in cases).keys() == {f"0.5.{minor}" for minor in range(4, 24)}


@pytest.mark.parametrize("case", memory_cases())
def test_reserve_is_the_sum_of_its_parts(case: Case) -> None:
    """The panel's parts add up to what the engine set aside, and a given fraction sets nothing aside."""
    found = automatic(case.inputs)
    assert sum(part.mib for part in found.reserve) == case.expect.get("reserved_mib", 0)
    assert all(rule.rule for rule in found.rules)
