"""The engine's executed flag combinations as scenarios: what each release does with a state model, and what it refuses.

The adapters read what was asked and never what came out of it. SIZING_SUPPORT_CASES and SIZING_REFUSAL_CASES name
other files of the same form.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sizing import Scenario
from sizing.engine.resolve import resolution
from sizing.engine.resolved import Resolved
from sizing.releases.rules import RELEASES, Release, rules_of

GOLDEN = Path(__file__).parent / "golden"
SUPPORT = Path(os.environ.get("SIZING_SUPPORT_CASES") or GOLDEN / "support.json")
REFUSALS = Path(os.environ.get("SIZING_REFUSAL_CASES") or GOLDEN / "refusals.json")

OWN_FILES = SUPPORT.parent == REFUSALS.parent == GOLDEN

Row = dict[str, Any]

FP4 = "fp4_e2m1"  # no KV dtype of this tool; 0.5.15 refuses it in words of its own, all others ignore it here
EAGLE: Row = {"speculative_algorithm": "EAGLE", "D": 4}
# The words of `asked` in support.json: EAGLE with 3 steps, topk 1 and 4 draft tokens.
ASKED: dict[str, Row] = {
    "auto": {},
    "no_buffer": {"mamba_radix_cache_strategy": "no_buffer"},
    "extra_buffer": {"mamba_radix_cache_strategy": "extra_buffer"},
    "extra_buffer_lazy": {"mamba_radix_cache_strategy": "extra_buffer_lazy"},
    "EAGLE": EAGLE,
    "NGRAM": EAGLE | {"speculative_algorithm": "NGRAM"},
    "radix off": {"disable_radix_cache": True},
    "overlap off": {"disable_overlap_schedule": True},
    "PD decode": {"disaggregation_mode": "decode"},
    "PD prefill": {"disaggregation_mode": "prefill"},
}
# What a case does not say: bytes are typed in, and the page is the engine's default.
BASE: Row = {"model": "", "page_size": 1, "state_bytes_all_stages": Scenario().state_bytes_per_slot}
# Flags as the files write them, where a scenario's field has another name.
FIELDS = {"strategy": "mamba_radix_cache_strategy", "speculative_num_draft_tokens": "D"}
RINGS = {
    "enable_linear_replayssm": "decode",
    "enable_linear_replayssm_spec": "spec",
    "enable_gdn_replayssm_spec": "spec",
}
# Linear and attention layers, of which a few rules depend; all others are GDN or Mamba2 with GQA.
LATENT = ("KimiLinear", "KimiK3", "BailingMoe", "Glm5Next", "GigaChat")


def rows(file: Path) -> list[Any]:
    """One parameter for each row, named by what is asked of which model in which releases."""
    return [
        pytest.param(row, id=f"{row['architecture']}-{row['asked']}-{row['from']}-{row['to']}".replace(" ", "_"))
        for row in json.loads(file.read_text(encoding="utf-8"))["rows"]
    ]


def releases(row: Row) -> tuple[Release, ...]:
    """Every release of the row."""
    return RELEASES[RELEASES.index(row["from"]) : RELEASES.index(row["to"]) + 1]


def asked_in_words(row: Row, release: Release) -> Scenario:
    """A row of support.json as a scenario."""
    fields: Row = {}
    for words in row["asked"].split(", "):
        name, _, number = words.partition(" ")
        if name in ("page", "pp") and number.isdigit():
            fields[f"{name}_size"] = int(number)
        else:
            fields |= ASKED[words]
    return Scenario(**{**BASE, "release": release, "architecture": row["architecture"], **fields})


def asked_in_flags(row: Row, release: Release) -> Scenario:
    """A row of refusals.json as a scenario. Widths that do not divide are not the flags' business: left unchecked."""
    given = {FIELDS.get(name, name): value for name, value in row["flags"].items()}
    if given.get("kv_cache_dtype") == FP4:
        del given["kv_cache_dtype"]
    rings = [RINGS[name] for name in RINGS if given.pop(name, False)]
    if rings:
        given["replayssm"] = rings[0] if len(rings) == 1 else "both"
    family, attention = ("KDA", "MLA") if row["architecture"].startswith(LATENT) else ("GDN", "GQA")
    widths = {name: given.pop(name) for name in ("tp_size", "dcp_size") if name in given}
    known = {name: value for name, value in given.items() if name in Scenario.model_fields}
    fields = {"family": family, "attention": attention, "kv_heads": 2 if attention == "GQA" else None, **known}
    checked = Scenario(**{**BASE, "release": release, "architecture": row["architecture"], **fields})
    return Scenario.model_construct(**{**checked.model_dump(), **widths})


def flags_of(row: Row, release: Release) -> tuple[str, ...]:
    """The flags that a row of refusals.json names, as they are typed."""
    names = (rules_of(release).strategy_flag if name == "strategy" else _typed(name) for name in row["flags"])
    return tuple(name for name in names if name)


def _typed(name: str) -> str:
    return "--" + name.replace("_", "-")


def compare(row: Row, resolved: Resolved) -> dict[str, Any]:
    """What differs from the row: name to (ours, the engine's)."""
    outcome = outcome_of(resolved)
    if outcome != row["outcome"]:
        return {"outcome": (outcome, row["outcome"], resolved.refusal)}
    if outcome == "refused":
        return _compare_words(row, resolved)
    if outcome != "runs":
        return {}
    ours = {
        "strategy": resolved.strategy,
        "radix": resolved.radix_cache,
        "overlap": resolved.overlap,
        "page_size": resolved.page_size,
        "S": resolved.S,
        "max_running_requests": resolved.max_running_requests,
    }
    theirs = {"max_running_requests": None, **row}
    return {name: (value, theirs[name]) for name, value in ours.items() if value != theirs[name]}


def outcome_of(resolved: Resolved) -> str:
    """`runs`, `refused`, `not_served` or `no_such_flag`."""
    if resolved.refusal is None:
        return "runs"
    kind = resolved.refusal.kind
    return kind if kind in ("not_served", "no_such_flag") else "refused"


def _compare_words(row: Row, resolved: Resolved) -> dict[str, Any]:
    """A crash is told from a refusal; in our own files the words are the engine's, or their beginning."""
    refusal = resolved.refusal
    assert refusal is not None
    ours = row["flags"].get("kv_cache_dtype") != FP4 if "flags" in row else True
    crash = row["type"] in ("AttributeError", "TypeError")
    theirs = f"{row['type']}: {row['message']}" if crash else row["message"]
    same = refusal.engine_words and theirs.startswith(refusal.engine_words)
    if (same or not (OWN_FILES and ours)) and refusal.cure and (refusal.kind == "engine_crash") == crash:
        return {}
    return {"words": (refusal, theirs)}


def resolved_in_words(row: Row, release: Release) -> Resolved:
    """What the release makes of a row of support.json."""
    return resolution(asked_in_words(row, release))
