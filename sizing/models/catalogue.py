"""Real checkpoints: their configurations as data, each with its source and how sure it is.

Source: catalogue.json beside this file; tests hold it against the engine's own numbers.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).parent / "catalogue.json"

Verification = Literal["verbatim", "quoted", "class-default", "partial", "unverified"]
VERIFICATION_MEANS: dict[Verification, str] = {
    "verbatim": "read from a copy of the checkpoint's own config.json",
    "quoted": "published values quoted by third-party files, agreeing where there is more than one",
    "class-default": "defaults of the configuration class that is documented for the checkpoint",
    "partial": "at least one sizing field is inferred",
    "unverified": "recalled, not checked",
}


class Entry(BaseModel):
    """One checkpoint, and those of the same shapes."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    verification: Verification
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    same_shapes: tuple[str, ...]
    config: dict[str, Any]
    """The fields of config.json that sizing reads."""
    quantisation: dict[str, Any] | None = None
    """The same of hf_quant_config.json, where the checkpoint has one that decides its KV dtype."""


@cache
def catalogue() -> tuple[Entry, ...]:
    """All entries, also of models that are refused because SGLang does not serve them or they keep no state."""
    return tuple(Entry.model_validate(item) for item in json.loads(FILE.read_text(encoding="utf-8"))["models"])


def find(text: str) -> tuple[Entry, ...]:
    """The entries whose id, or the id of a model of the same shapes, holds `text`, whatever its case."""
    wanted = text.strip().lower()
    return tuple(item for item in catalogue() if any(wanted in name.lower() for name in (item.id, *item.same_shapes)))


def entry(id: str) -> Entry:
    """The entry with this id. Raises KeyError.

    >>> entry("moonshotai/Kimi-K3").verification
    'verbatim'
    """
    return {item.id: item for item in catalogue()}[id]
