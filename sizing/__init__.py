"""Hybrid Pool Sizing: how to split GPU memory between the state pool and the KV pool in SGLang.

>>> from sizing import Scenario, solve
>>> sizing = solve(Scenario())
>>> sizing.now.runs, sizing.now.kv_cap, sizing.balanced.runs
(51, 126, 74)
"""

from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import Problem, Refusal, RefusedError
from sizing.engine.split import Split
from sizing.scenario.inputs import Scenario, read_scenario

__all__ = ["Problem", "Refusal", "RefusedError", "Scenario", "Sizing", "Split", "read_scenario", "solve"]
