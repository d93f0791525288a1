"""What an estimated `rest` leaves open: the split that is set at both ends of the estimate."""

from functools import lru_cache
from typing import NamedTuple

from sizing.answers.solve import KEPT, Sizing, solve, solve_now
from sizing.basics.problems import Refusal
from sizing.engine.split import Split
from sizing.scenario.inputs import Scenario
from sizing.scenario.rest import ends_of


class Band(NamedTuple):
    """The split that is set, at the low and the high end of `rest`."""

    low: Split | Refusal
    high: Split | Refusal
    low_scenario: Scenario

    @property
    def runs(self) -> tuple[int, int]:
        """What runs at both ends [requests per rank]; 0 where the engine refuses."""
        found = sorted(end.runs if isinstance(end, Split) else 0 for end in (self.low, self.high))
        return found[0], found[1]


def band_of(sizing: Sizing) -> Band | None:
    """Both ends; None where `rest` is no estimate."""
    ends = ends_of(sizing.scenario)
    if ends is None:
        return None
    low, high = (solve_now(end, sizing.ratio_now) for end in ends)
    return Band(low, high, ends[0])


def for_flags(scenario: Scenario) -> Scenario:
    """The scenario that flags and settings are chosen for: at the low end of an estimate, else as it is."""
    ends = ends_of(scenario)
    return scenario if ends is None else ends[0]


def at_low_end(sizing: Sizing) -> Sizing:
    """The sizing for which flags are chosen: at the low end of an estimate, else as it is."""
    return _at_low_end(sizing.scenario) if sizing.scenario.rest_source == "estimated" else sizing


@lru_cache(maxsize=KEPT)  # the parts of a page ask for the same one
def _at_low_end(scenario: Scenario) -> Sizing:
    return solve(for_flags(scenario))
