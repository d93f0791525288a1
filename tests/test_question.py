"""Public reports, asked through the command line; SIZING_QUESTIONS names another folder of the same form."""

from pathlib import Path

import pytest

from tests.conftest import Run
from tests.questions import Case, arguments, faults_of, question_cases


@pytest.mark.parametrize(("folder", "case"), question_cases())
def test_question(folder: Path, case: Case, sizing_command: Run) -> None:
    """Every ask of a report gets a right answer, in the contract's form."""
    found = {}
    for number, ask in enumerate(case["asks"], start=1):
        status, printed, _ = sizing_command(*arguments(ask, folder))
        if faults := faults_of(ask, status, printed):
            found[number, " ".join(ask["run"])] = faults
    assert not found, "\n".join(f"{ask}: {fault}" for ask, faults in found.items() for fault in faults)
