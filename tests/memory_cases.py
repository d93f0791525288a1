"""The engine's own automatic values as cases: one adapter for one file, one pytest parameter per case.

SIZING_MEMFRACTION_CASES names another file of the same form.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sizing.memory.stated import Stated, model_facts

OTHER_FILE = os.environ.get("SIZING_MEMFRACTION_CASES")
FILE = Path(OTHER_FILE) if OTHER_FILE else Path(__file__).parent / "golden" / "memfraction.json"

SWITCHES = {
    "SGLANG_ENABLE_POST_CAPTURE_KV_SIZING": "post_capture_kv_sizing",
    "SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION": "aiter_honors_fraction",
}


class Case(NamedTuple):
    """One run of the engine's function: what went in, and what came out."""

    id: str
    gpu: str
    stated: dict[str, Any]
    expect: dict[str, Any]

    @property
    def inputs(self) -> Stated:
        """What a user would have stated."""
        return Stated(**self.stated)


def read_cases() -> list[Case]:
    """Every case of the file."""
    return [
        Case(case["id"], case["gpu"], _stated(case), case["expect"])
        for case in json.loads(FILE.read_text(encoding="utf-8"))["cases"]
    ]


def memory_cases() -> list[Any]:
    """One parameter for each case, under the case's own id."""
    return [pytest.param(case, id=case.id) for case in read_cases()]


def _stated(case: dict[str, Any]) -> dict[str, Any]:
    model = case["model"]
    config = {"architectures": [model["architecture"]], "model_type": model["model_type"], **model.get("config", {})}
    return {
        "release": case["release"],
        "model": model_facts(config, mla=model["mla"], context_length=model.get("context_len")),
        "vendor": "AMD" if case.get("hip") else "NVIDIA",
        "gpu_memory_mib": case["gpu_memory_mib"],
        "attention_backend": case.get("attention_backend"),
        **case["flags"],
        **{SWITCHES[name]: bool(value) for name, value in case.get("env", {}).items()},
    }
