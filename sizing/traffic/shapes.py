"""Mixes that a shape makes instead of requests that were served: input and output each log-normal, and independent.

A log-normal is the shape that published lengths come closest to with two numbers, but real traffic is lumpier and its
inputs and outputs are not quite independent: read a trace of your own where there is one.
"""

from math import log
from statistics import NormalDist
from typing import Annotated, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sizing.traffic.mix import MAX_LENGTH, Array, Mix, mix_of

# Quantiles of each: 510 puts one of them at exactly 95%, and 510 x 510 requests are counted in no time.
_GRID = 510
_LONGEST = MAX_LENGTH // 2  # tokens; a tail drawn beyond it is cut, so that input and output together stay in bounds
_Z95 = NormalDist().inv_cdf(0.95)

Tokens = Annotated[int, Field(ge=1, le=2**20, strict=True)]


class LogNormal(BaseModel):
    """Median and 95th percentile of input and of output [tokens]."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    median_input: Tokens
    p95_input: Tokens
    median_output: Tokens
    p95_output: Tokens

    @model_validator(mode="after")
    def _tails_are_longer(self) -> Self:
        for what, median, p95 in (
            ("input", self.median_input, self.p95_input),
            ("output", self.median_output, self.p95_output),
        ):
            if p95 < median:
                raise ValueError(f"The p95 of the {what} ({p95:,}) is below its median ({median:,}). Correct one.")
        return self


SHAPES = {
    # BurstGPT's GPT-4 conversations (HPMLL/BurstGPT), as the table of length distributions in the Llumnix paper
    # (OSDI 2024, arXiv:2406.03243) states them: input P50 582 and P95 2,345, output P50 243 and P95 669.
    "chat": LogNormal(median_input=582, p95_input=2345, median_output=243, p95_output=669),
    # An assumption. Of its source only the ends are stated: input 1,050 to 7,710 and output 7 to 2,180 tokens over the
    # 7,106 requests of RAGPulse (data/0_trace.jsonl of flashserve/RAGPulse, arXiv:2511.12979); medians and p95 are
    # chosen to lie between them, near the requests it shows.
    "RAG (assumed)": LogNormal(median_input=3200, p95_input=5000, median_output=200, p95_output=600),
    # One model call of a coding agent, cached prefix included and what is appended to it (a median of 886) not: Codex
    # in the token length table of TraceLab (arXiv:2606.30560, uw-syfi/TraceLab): input P50 115,584, P90 201,600 and
    # P99 231,040, output P50 184, P90 939 and P99 3,508. It states no p95: this is between P90 and P99, interpolated on
    # the log-normal's own scales.
    "agent": LogNormal(median_input=115_584, p95_input=211_385, median_output=184, p95_output=1485),
}


def shape(name: str) -> Mix:
    """One of SHAPES as a mix; raises KeyError for another name."""
    return log_normal(SHAPES[name], name)


def log_normal(lengths: LogNormal, name: str = "log-normal") -> Mix:
    """A mix over a grid of quantiles: the same every time. Each length is rounded to 1 token or more."""
    inputs = _quantiles(lengths.median_input, lengths.p95_input)
    outputs = _quantiles(lengths.median_output, lengths.p95_output)
    return mix_of(name, np.repeat(inputs, _GRID), np.tile(outputs, _GRID), synthetic=True)


def _quantiles(median: int, p95: int) -> Array:
    sigma = log(p95 / median) / _Z95
    normal = np.array([NormalDist().inv_cdf((at + 0.5) / _GRID) for at in range(_GRID)])
    return np.clip(np.rint(median * np.exp(np.minimum(sigma * normal, 60))), 1, _LONGEST).astype(np.int64)
