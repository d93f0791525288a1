"""What is wanted on the page Target, for that page and for the sheet."""

from pages.parts.state import stood
from sizing import Problem, Scenario
from sizing.answers.carrying_settings import Want
from sizing.exchange.target_text import read_wants

REQUESTS_BOX, FURTHER_BOX = "target_requests", "target_more"


def wanted(scenario: Scenario) -> tuple[list[Want], list[Problem]]:
    """What stands in the two boxes, read beside a scenario; a sentence for every part that cannot be read."""
    return read_wants(scenario.L, str(stood(REQUESTS_BOX, "")), str(stood(FURTHER_BOX, "")).splitlines())
