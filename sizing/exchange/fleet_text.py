"""What is wanted of a fleet, as text: in boxes, as options, and in a link."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from sizing.answers.fleet import FleetWanted
from sizing.basics.problems import Problem, from_link, from_validation
from sizing.explain.fleet_words import LABELS

PARAMETER = "fleet"  # of a link
MAX_LENGTH = 300  # characters of it; four numbers take about 120


def read_fleet(values: Mapping[str, Any]) -> FleetWanted | list[Problem]:
    """What is wanted, of values of which blank ones say nothing, or a sentence for every fault."""
    try:
        return FleetWanted.model_validate({name: value for name, value in values.items() if value not in (None, "")})
    except ValidationError as error:
        return from_validation(error, LABELS)


def fleet_to_query(wanted: FleetWanted | None) -> dict[str, str]:
    """Query parameters for it; empty where nothing is wanted."""
    stated = wanted.model_dump_json(exclude_defaults=True) if wanted else "{}"
    return {} if stated == "{}" else {PARAMETER: stated}


def fleet_from_query(text: str) -> FleetWanted | list[Problem]:
    """What that parameter wants, or a sentence for every fault."""
    try:
        return FleetWanted.model_validate_json(text[:MAX_LENGTH])
    except ValidationError as error:
        return from_link(error, LABELS, PARAMETER, "fleet")
