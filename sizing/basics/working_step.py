"""One formula with numbers in it: how the working of a model and of a split is told."""

from pydantic import BaseModel, ConfigDict


class Step(BaseModel):
    """One formula, filled in."""

    model_config = ConfigDict(frozen=True)

    quantity: str
    formula: str
    numbers: str
    result: str
