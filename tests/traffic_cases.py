"""Traffic on deployments for tests of figures: each name an edge that a figure has to hold."""

from functools import cache
from typing import Any

import numpy as np

from sizing import Scenario
from sizing.traffic.mix import Mix, mix_of, mix_of_lengths
from sizing.traffic.running import Traffic, traffic_of

# Inputs of the deployment, and the risk where it is not 1 %.
DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "usual": {},
    "one length": {},
    "lengths only": {},
    "two lengths": {},
    "long": {},
    "too long for any pool": {},
    "one giant": {},
    "attention DP": {"rest_gib": 28.529, "attn_dp_size": 2},
    "an old release": {"rest_gib": 28.529, "release": "0.5.5", "model": ""},
    "a cap that binds": {"max_running_requests": 40, "disable_radix_cache": True},
    "thousands of short ones": {"rest_gib": 1, "state_bytes_per_slot": 20_000, "conv_bytes_per_slot": None},
    "as set is the best": {"split": "pin", "max_mamba_cache_size": 341},
    "as set is refused": {"mamba_full_memory_ratio": 0.001},
    "no split starts": {"rest_gib": -5},
    "speculation": {"D": 4},
    "nothing is generated": {"rest_gib": 1.5},
}


@cache
def traffic_case(name: str) -> Traffic:
    """One case by its name, at a risk of 1 %."""
    return traffic_of(Scenario.model_validate(DEPLOYMENTS[name]), _mix(name), 0.01)


def _mix(name: str) -> Mix:
    if name == "one length":
        return mix_of(name, np.full(100, 8000), np.full(100, 1216))
    if name == "two lengths":
        return mix_of_lengths(name, np.array([2000, 30_000]), np.array([900, 100]))
    if name == "too long for any pool":
        return mix_of(name, np.array([5_000_000, 6_000_000]), np.array([1000, 90_000]))
    if name == "nothing is generated":
        return mix_of(name, np.array([100, 500, 900]), np.array([0, 0, 3]))
    if name == "long":
        return mix_of(name, *_log_normal(900_000, 20_000, 0.3))
    if name == "thousands of short ones":
        return mix_of(name, *_log_normal(35, 15, 0.6))
    inputs, outputs = _log_normal(6000, 800, 0.8)
    if name == "lengths only":
        return mix_of_lengths(name, inputs + outputs)
    if name == "one giant":
        inputs[7] = 2**20
    return mix_of(name, inputs, outputs, synthetic=name == "usual")


def _log_normal(median_input: float, median_output: float, sigma: float) -> tuple[Any, Any]:
    made = np.random.default_rng(1)
    inputs, outputs = (np.exp(made.normal(np.log(median), sigma, 2000)) for median in (median_input, median_output))
    return inputs.astype(int) + 1, outputs.astype(int) + 1
