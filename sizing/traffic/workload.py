"""What a user states about traffic: a shape where no trace is given, the risk, and the sessions that wait."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from sizing.basics.problems import Problem, from_link, from_validation
from sizing.scenario.inputs import MAX_L, MAX_REQUESTS, Tokens, Whole
from sizing.traffic.admission import Declared
from sizing.traffic.mix import Mix
from sizing.traffic.shapes import LogNormal, mix_of_shape
from sizing.traffic.times import Times

Shape = Literal["chat", "RAG", "agent", "log-normal"]

PARAMETER = "traffic"  # of a link
MAX_LENGTH = 1_000  # characters of it; all inputs take about 300
LABELS = {
    "shape": "Shape",
    "median_input": "Input, median [tokens]",
    "p95_input": "Input, p95 [tokens]",
    "median_output": "Output, median [tokens]",
    "p95_output": "Output, p95 [tokens]",
    "risk_percent": "Risk that KV overflows [%]",
    "max_new_tokens": "Declared max_new_tokens [tokens]",
    "max_new_margin": "or its margin above the output [tokens]",
    "idle_sessions": "Sessions between turns, all ranks",
    "checkpoints": "States that each keeps [slots]",
    "session_tokens": "KV that each keeps [tokens]",
}


class Workload(LogNormal):
    """Inputs of the page Traffic besides those of the deployment."""

    shape: Shape = "chat"
    """The four numbers above count for “log-normal” alone."""
    risk_percent: Annotated[float, Field(ge=0.01, le=50, allow_inf_nan=False)] = 1.0
    """The share of time in which KV may overflow [%]."""
    max_new_tokens: Annotated[Tokens, Field(ge=1, le=MAX_L)] | None = None
    """What every request declares it may generate [tokens]; None: not said, so nothing is kept free for it."""
    max_new_margin: Annotated[Tokens, Field(ge=0, le=MAX_L)] | None = None
    """The same as a margin above what each really generates [tokens]; counts where max_new_tokens is not stated."""
    idle_sessions: Annotated[Whole, Field(ge=0, le=MAX_REQUESTS)] | None = None
    """Sessions between turns [of the deployment]; None is what the times of a file show, else none."""
    checkpoints: Annotated[Whole, Field(ge=1, le=1024)] = 1
    """States that each keeps [slots]."""
    session_tokens: Annotated[Tokens, Field(ge=1, le=MAX_L)] | None = None
    """KV that each keeps [tokens]; None is what the sessions of a file that wait have, else the mean length of the
    traffic."""

    @property
    def declared(self) -> Declared | None:
        """What requests declare; None where neither number is stated."""
        if self.max_new_tokens is None and self.max_new_margin is None:
            return None
        return Declared(self.max_new_tokens, self.max_new_margin)

    @property
    def risk(self) -> float:
        """The same as a share [-]."""
        return self.risk_percent / 100

    def differences(self) -> dict[str, Any]:
        """Only what differs from the defaults: what a link carries."""
        return self.model_dump(exclude_defaults=True)


def with_waiting(workload: Workload, times: Times | None) -> Workload:
    """The workload with the sessions that the times of a file show, where it states none: the p95 over time of how
    many wait, and the mean over time of the context that one has.
    """
    if workload.idle_sessions is not None or times is None or times.waiting is None:
        return workload
    waiting = times.waiting
    found = {"idle_sessions": min(waiting.p95, MAX_REQUESTS)}
    if workload.session_tokens is None and waiting.tokens:
        found["session_tokens"] = waiting.tokens
    return workload.model_copy(update=found)


@lru_cache(maxsize=16)
def mix_of_workload(workload: Workload) -> Mix:
    """The mix that the shape makes."""
    return mix_of_shape(workload.shape, workload)


WHERE_EMPTY = {"idle_sessions": "what the file's times show", "session_tokens": "what waits, or the mean length"}


def read_workload(values: Mapping[str, Any]) -> Workload | list[Problem]:
    """Check values from anywhere; gives the workload, or a sentence for every fault at once."""
    try:
        return Workload.model_validate(dict(values))
    except ValidationError as error:
        return from_validation(error, LABELS)


def workload_to_query(workload: Workload) -> dict[str, str]:
    """Query parameters for it; empty where all is as it opens."""
    stated = workload.model_dump_json(exclude_defaults=True)
    return {} if stated == "{}" else {PARAMETER: stated}


def workload_from_query(text: str) -> Workload | list[Problem]:
    """The workload of that parameter, or a sentence for every fault."""
    try:
        return Workload.model_validate_json(text[:MAX_LENGTH])
    except ValidationError as error:
        return from_link(error, LABELS, PARAMETER, "traffic")
