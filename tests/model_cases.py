"""The engine's numbers for real checkpoints, one case a model: its configuration goes in, the numbers come out.

SIZING_MODEL_CASES and SIZING_MODEL_CATALOGUE name other files of the same form, the numbers and the configurations.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sizing.basics.dtypes import StateDtype
from sizing.models import KvCacheDtype

GOLDEN = Path(__file__).parent / "golden"
OTHER = {name: os.environ.get(name) for name in ("SIZING_MODEL_CASES", "SIZING_MODEL_CATALOGUE")}
CASES = Path(OTHER["SIZING_MODEL_CASES"] or GOLDEN / "models.json")
CATALOGUE = Path(OTHER["SIZING_MODEL_CATALOGUE"] or GOLDEN / "model_catalogue.json")

SSM_FLAGS: dict[str, StateDtype | None] = {
    "from_config": None,
    "float32": "float32",
    "bfloat16": "bfloat16",
    "float16": "float16",
}
KV_DTYPES: dict[str, KvCacheDtype] = {
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "mxfp8": "mxfp8",
}


class ModelCase(NamedTuple):
    """One checkpoint."""

    id: str
    entry: dict[str, Any]
    """Its entry in the catalogue: the configuration, and what the engine's lists say of its architecture."""
    engine: dict[str, Any] | None
    """The engine's numbers; None for a model that it does not serve."""

    @property
    def served(self) -> bool:
        """Whether the engine has this model."""
        return bool(self.entry["engine_supported"])

    def states(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Each TP width, and the numbers of a slot by SSM dtype, or the engine's error."""
        assert self.engine
        for width, found in self.engine["state"].items():
            yield int(width.removeprefix("tp")), found

    def rows(self) -> Iterator[tuple[int, int, dict[str, int]]]:
        """Each TP and DCP width, and the bytes of a KV row by dtype."""
        assert self.engine
        for widths, found in self.engine["kv_bytes_per_token"].items():
            tp, dcp = widths.removeprefix("tp").split("_dcp")
            yield int(tp), int(dcp), found


def read_cases() -> list[ModelCase]:
    """Every model of either file. A model without a configuration is an error of the files."""
    entries = {entry["id"]: entry for entry in json.loads(CATALOGUE.read_text(encoding="utf-8"))["models"]}
    numbers = json.loads(CASES.read_text(encoding="utf-8"))["models"]
    assert numbers.keys() <= entries.keys(), f"no configuration in {CATALOGUE.name} for one of {CASES.name}"
    return [ModelCase(id, entry, numbers.get(id)) for id, entry in entries.items()]


def model_cases() -> list[Any]:
    """One parameter for each model, under its id."""
    return [pytest.param(case, id=case.id) for case in read_cases()]
