"""The catalogue that users get: in step with the golden one, sourced, and searchable."""

import json
from pathlib import Path
from typing import Any

import pytest

from sizing.models import (
    VERIFICATION_MEANS,
    catalogue,
    entry,
    find,
    read_config,
)
from tests.model_configs import (
    KIMI,
    QWEN,
)


def test_catalogue_holds_the_golden_one() -> None:
    """What users get is what the tests hold against the engine, and beside it only fields that count weights."""
    golden = json.loads((Path(__file__).parent / "golden" / "model_catalogue.json").read_text(encoding="utf-8"))
    assert [item.id for item in catalogue()] == [item["id"] for item in golden["models"]]
    for item, there in zip(catalogue(), golden["models"], strict=True):
        assert item.verification == there["verification"]
        assert list(item.sources[: len(there["sources"])]) == there["sources"]
        assert _common(item.config, there["config"]) == there["config"]


def _common(ours: dict[str, Any], golden: dict[str, Any]) -> dict[str, Any]:
    """Our fields, without those that the golden file has not."""
    return {
        key: _common(value, golden[key]) if isinstance(golden[key], dict) else value
        for key, value in ours.items()
        if key in golden
    }


def test_catalogue_says_how_sure_it_is() -> None:
    """Every entry has a source and a word for its certainty; ids are unique."""
    assert all(item.sources and item.verification in VERIFICATION_MEANS for item in catalogue())
    assert len({item.id for item in catalogue()}) == len(catalogue())


def test_catalogue_declares_fp8_kv() -> None:
    """Checkpoints whose hf_quant_config.json stores KV in fp8 carry it as data."""
    quantised = [item for item in catalogue() if item.quantisation]
    assert len(quantised) == 2
    for item in quantised:
        assert read_config(item.config, item.quantisation).kv_dtype_auto == "fp8_e4m3"


def test_find_looks_in_ids_and_in_models_of_the_same_shapes() -> None:
    """Part of a name, whatever its case."""
    assert [item.id for item in find("kimi-K3")] == [KIMI]
    assert [item.id for item in find("qwen3-coder")] == [QWEN]
    assert find("no such model") == ()
    assert len(find("")) == len(catalogue())


def test_unknown_entry() -> None:
    """An id that is not there."""
    with pytest.raises(KeyError):
        entry("nobody/nothing")
