"""What traffic gives as tables."""

from typing import TYPE_CHECKING, Any

import numpy as np

from sizing.basics.frames import frame_of
from sizing.traffic.kv_in_flight import KvInFlight
from sizing.traffic.mix import Counts, Mix
from sizing.traffic.running import Traffic
from sizing.traffic.words import QUANTILES

if TYPE_CHECKING:
    from pandas import DataFrame


def lengths_frame(traffic: Traffic) -> "DataFrame":
    """One row for input, output and their sum, where they are known, and one for what a request in flight holds."""
    parts: dict[str, Counts | KvInFlight] = {**traffic.mix.parts, "held in flight": traffic.one}
    figures = [figures_of(part) for part in parts.values()]
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


def figures_of(lengths: Counts | KvInFlight) -> dict[str, Any]:
    """Mean, quantiles and longest [tokens] by name."""
    quantiles = {f"p{round(share * 100)}": lengths.quantile(share) for share in QUANTILES}
    longest = lengths.most if isinstance(lengths, KvInFlight) else int(lengths.values[-1])
    return {"mean": lengths.mean, **quantiles, "longest": longest}
