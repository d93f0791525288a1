"""Mixes that a shape makes instead of requests that were served: input and output each log-normal, and independent.

A log-normal is the shape that published lengths come closest to with two numbers, but real traffic is lumpier and its
inputs and outputs are not quite independent: read a trace of your own where there is one.
"""

from math import log
from statistics import NormalDist
from typing import Annotated, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sizing.scenario.inputs import Tokens
from sizing.traffic.mix import MAX_LENGTH, Array, Mix, mix_of

# Quantiles of each: 510 puts one of them at exactly 95%, and 510 x 510 requests are counted in no time.
_GRID = 510
_LONGEST = MAX_LENGTH // 2  # tokens; a tail drawn beyond it is cut, so that input and output together stay in bounds
_Z95 = NormalDist().inv_cdf(0.95)

Length = Annotated[Tokens, Field(ge=1, le=2**20)]


class LogNormal(BaseModel):
    """Median and 95th percentile of input and of output [tokens].

    It opens on the GPT-4 conversations of BurstGPT (HPMLL/BurstGPT), in the table of length distributions of the
    Llumnix paper (OSDI 2024, arXiv:2406.03243): input P50 582 and P95 2,345, output P50 243 and P95 669.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    median_input: Length = 582
    p95_input: Length = 2345
    median_output: Length = 243
    p95_output: Length = 669

    @model_validator(mode="after")
    def _tails_are_longer(self) -> Self:
        for what, median, p95 in (
            ("input", self.median_input, self.p95_input),
            ("output", self.median_output, self.p95_output),
        ):
            if p95 < median:
                raise ValueError(f"The p95 of the {what} ({p95:,}) is below its median ({median:,}). Correct one.")
        return self


class Named(NamedTuple):
    """A shape with a name."""

    title: str
    """What it is called where it is shown; an assumption says so."""
    lengths: LogNormal
    source: str
    """A sentence."""


SHAPES = {
    "chat": Named(
        "chat",
        LogNormal(),
        "Medians and p95 of BurstGPT's GPT-4 conversations, as the Llumnix paper (arXiv:2406.03243) gives them.",
    ),
    # Only its ends are published: input 1,050 to 7,710 and output 7 to 2,180 tokens over the 7,106 requests of RAGPulse
    # (data/0_trace.jsonl of flashserve/RAGPulse, arXiv:2511.12979). What lies between is assumed, near its first rows.
    "RAG": Named(
        "RAG (assumed)",
        LogNormal(median_input=3200, p95_input=5000, median_output=200, p95_output=600),
        "An assumption: of RAGPulse (arXiv:2511.12979) only the shortest and the longest requests are published.",
    ),
    # One model call of a coding agent: Codex in the table of token lengths of TraceLab (arXiv:2606.30560,
    # uw-syfi/TraceLab). Its cached prefix is the input here (P50 115,584, P90 201,600, P99 231,040), without what is
    # appended to it, a median of 886; output P50 184, P90 939, P99 3,508. There is no p95: these are interpolated
    # between P90 and P99, on the scales on which a log-normal is a line.
    "agent": Named(
        "agent",
        LogNormal(median_input=115_584, p95_input=211_385, median_output=184, p95_output=1485),
        "Codex in TraceLab (arXiv:2606.30560): medians as published, p95 interpolated between its p90 and p99.",
    ),
}


def mix_of_shape(shape: str, lengths: LogNormal) -> Mix:
    """The mix of a shape, with its source as the note; "log-normal" takes the `lengths` that are stated.

    Raises KeyError for a name that is none.
    """
    if shape == "log-normal":
        return log_normal(lengths)
    title, published, source = SHAPES[shape]
    return log_normal(published, title)._replace(note=source)


def log_normal(lengths: LogNormal, name: str = "log-normal") -> Mix:
    """A mix over a grid of quantiles: the same every time. Each length is rounded to 1 token or more."""
    inputs = _quantiles(lengths.median_input, lengths.p95_input)
    outputs = _quantiles(lengths.median_output, lengths.p95_output)
    return mix_of(name, np.repeat(inputs, _GRID), np.tile(outputs, _GRID), synthetic=True)


def _quantiles(median: int, p95: int) -> Array:
    sigma = log(p95 / median) / _Z95
    normal = np.array([NormalDist().inv_cdf((at + 0.5) / _GRID) for at in range(_GRID)])
    return np.clip(np.rint(median * np.exp(np.minimum(sigma * normal, 60))), 1, _LONGEST).astype(np.int64)
