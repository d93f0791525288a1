"""Boot logs with known facts, and field reports: one parameter for each log, and for each report.

SIZING_LOG_CASES and SIZING_FIELD_CASES name other folders of the same form.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

GOLDEN = Path(__file__).parent / "golden"
OTHER_LOGS, OTHER_FIELD = (os.environ.get(name) for name in ("SIZING_LOG_CASES", "SIZING_FIELD_CASES"))
LOGS, FIELD = Path(OTHER_LOGS or GOLDEN / "boot_logs"), Path(OTHER_FIELD or GOLDEN / "field")


class LogCase(NamedTuple):
    """One boot log, and what the engine made of the boot."""

    path: Path
    facts: dict[str, Any]


class FieldCase(NamedTuple):
    """One report: what someone pasted, what they run, and what can be said of it."""

    id: str
    report: dict[str, Any]
    log: Path | None

    @property
    def expected(self) -> dict[str, Any]:
        """What is right."""
        return dict(self.report["expected"])

    @property
    def settings(self) -> dict[str, Any]:
        """What they said they run; where the log is silent it is the input that had to be stated."""
        return dict(self.report["settings"])


def read_log_cases() -> list[LogCase]:
    """Every log that facts.json names. A log without facts is an error of the folder, and so is the reverse."""
    facts = json.loads((LOGS / "facts.json").read_text(encoding="utf-8"))
    assert {item["file"] for item in facts} == {path.name for path in LOGS.glob("*.log")}
    return [LogCase(LOGS / item["file"], item) for item in facts]


def read_field_cases() -> list[FieldCase]:
    """Every report of the folder; a log without a report is an error of the folder."""
    paths = sorted(FIELD.glob("*.json"))
    assert {path.stem for path in FIELD.glob("*.log")} <= {path.stem for path in paths}
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [FieldCase(report["id"], report, FIELD / report["log"] if report.get("log") else None) for report in reports]


def log_cases() -> list[Any]:
    """One parameter for each log, under its name."""
    return [pytest.param(case, id=case.path.name) for case in read_log_cases()]


def field_cases() -> list[Any]:
    """One parameter for each report, under its id."""
    return [pytest.param(case, id=case.id) for case in read_field_cases()]
