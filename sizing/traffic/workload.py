"""What a user states about traffic: a shape where no trace is given, the risk, and the sessions that wait."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sizing.scenario import MAX_L, MAX_REQUESTS, Tokens, Whole

Shape = Literal["chat", "RAG", "agent", "log-normal"]

PARAMETER = "traffic"  # of a link
MAX_LENGTH = 1_000  # characters of it; all inputs take about 250


class Workload(BaseModel):
    """Inputs of the page Traffic besides those of the deployment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    shape: Shape = "chat"
    risk_percent: Annotated[float, Field(ge=0.01, le=50, allow_inf_nan=False)] = 1.0
    """The share of time in which KV may overflow [%]."""
    idle_sessions: Annotated[Whole, Field(ge=0, le=MAX_REQUESTS)] = 0
    """Sessions between turns [of the deployment]."""
    checkpoints: Annotated[Whole, Field(ge=1, le=1024)] = 1
    """States that each keeps [slots]."""
    session_tokens: Annotated[Tokens | None, Field(ge=1, le=MAX_L)] = None
    """KV that each keeps [tokens]; None is the mean length of the traffic."""
