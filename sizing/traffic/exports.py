"""What traffic gives, as JSON: every number of the page with its inputs."""

import json
from typing import Any

from sizing.traffic.mix import Counts
from sizing.traffic.running import MODEL_ERROR, Traffic
from sizing.traffic.words import QUANTILES
from sizing.version import tool_version


def traffic_json(traffic: Traffic) -> str:
    """Inputs and numbers of one outcome. Requests, slots and tokens are per rank; risk and overflow are shares."""
    mix, scenario = traffic.mix, traffic.sizing.scenario
    found = {
        "version": tool_version(),
        "scenario": scenario.differences(),
        "traffic": {
            "name": mix.name,
            "synthetic": mix.synthetic,
            "requests": mix.requests,
            "lengths": {name: _figures(counts) for name, counts in mix.parts.items()},
        },
        "risk": traffic.risk,
        "model_error": MODEL_ERROR,
        "held_in_flight": {"mean": traffic.one.mean, "deviation": traffic.one.deviation},
        "r_star_of_mean_length": traffic.sizing.r_star,
        "optimum": traffic.optimum.model_dump() if traffic.optimum else None,
        "ways": [way.model_dump() for way in traffic.ways],
        "runs_at_whole_lengths": traffic.whole,
        "longer_than_the_pool": traffic.never,
    }
    return json.dumps(found, indent=2, allow_nan=False)


def _figures(counts: Counts) -> dict[str, Any]:
    quantiles = {f"p{round(share * 100)}": counts.quantile(share) for share in QUANTILES}
    return {"mean": counts.mean, **quantiles, "longest": int(counts.values[-1])}
