"""Hybrid Pool Sizing: how to split GPU memory between the state pool and the full-KV pool in SGLang.

>>> from sizing import Scenario, solve
>>> sizing = solve(Scenario())
>>> sizing.now.runs, sizing.now.kv_cap, sizing.balanced.runs
(51, 126, 74)
"""

from sizing.problems import Problem, Refusal, RefusedError
from sizing.scenario import Scenario, read_scenario
from sizing.solve import Sizing, solve
from sizing.split import Split

__all__ = ["Problem", "Refusal", "RefusedError", "Scenario", "Sizing", "Split", "read_scenario", "solve"]
