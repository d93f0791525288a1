"""What runs under unified memory, against L at one split and against r at one L; beside sizing/answers/curves.py.

Source: running-server.md 2.3.
"""

import numpy as np

from sizing.answers.curves import Integers, Reals
from sizing.basics.problems import RefusedError
from sizing.engine.rank import rank_of
from sizing.engine.slots import slots_taken
from sizing.engine.split import Split
from sizing.engine.unified import runs_of, runs_over_slots, unified
from sizing.scenario.inputs import Scenario


def unified_over_context(scenario: Scenario, split: Split, L: Integers) -> Integers | None:
    """Requests that run at many L [tokens] at the K of a split; None where unified memory is off, or does not start."""
    if not scenario.enable_unified_memory:
        return None
    try:
        found = unified(scenario, split.slots)
    except RefusedError:
        return None
    return None if found.refusal else np.asarray(runs_of(found, scenario.dcp_size, L), dtype=np.int64)


def unified_over_ratio(scenario: Scenario, ratio: Reals) -> Integers | None:
    """The same at many ratios [-] and the scenario's L; None where unified memory is off, 0 where it does not start."""
    if not scenario.enable_unified_memory:
        return None
    at_ratio = scenario.model_copy(update={"split": "ratio"})
    try:
        slots = np.broadcast_to(slots_taken(rank_of(at_ratio), ratio), ratio.shape)
        return runs_over_slots(at_ratio, np.asarray(slots, dtype=np.int64))
    except RefusedError:
        return None
