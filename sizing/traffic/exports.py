"""What traffic gives, as JSON: every number of the page with its inputs."""

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from sizing.basics.frames import frame_of
from sizing.traffic.held import Held
from sizing.traffic.mix import Counts, Mix
from sizing.traffic.running import MODEL_ERROR, Traffic
from sizing.traffic.words import QUANTILES
from sizing.version import tool_version

if TYPE_CHECKING:
    from pandas import DataFrame


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


def lengths_frame(traffic: Traffic) -> "DataFrame":
    """One row for input, output and their sum, where they are known, and one for what a request in flight holds."""
    parts: dict[str, Counts | Held] = {**traffic.mix.parts, "held in flight": traffic.one}
    figures = [_figures(part) for part in parts.values()]
    columns = {f"{name} [tokens]": [each[name] for each in figures] for name in figures[0]}
    return frame_of({"part": list(parts), **columns})


def histogram_frame(mix: Mix) -> "DataFrame":
    """One row for each part of the lengths and each length that occurs in it, with how many requests have it."""
    parts = mix.parts.items()
    return frame_of(
        {
            "part": np.repeat([name for name, _ in parts], [len(counts.values) for _, counts in parts]),
            "length [tokens]": np.concatenate([counts.values for _, counts in parts]),
            "count [requests]": np.concatenate([counts.counts for _, counts in parts]),
        }
    )


def _figures(lengths: Counts | Held) -> dict[str, Any]:
    quantiles = {f"p{round(share * 100)}": lengths.quantile(share) for share in QUANTILES}
    longest = lengths.most if isinstance(lengths, Held) else int(lengths.values[-1])
    return {"mean": lengths.mean, **quantiles, "longest": longest}
