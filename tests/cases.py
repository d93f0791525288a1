"""The engine's own cases as scenarios: one adapter for one file, one pytest parameter per case.

The adapter reads what a case was made from (`inputs`, `derived`, `numeric`) and never what came out of it.
SIZING_ENGINE_CASES names another file of the same form.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sizing import Scenario

OTHER_FILE = os.environ.get("SIZING_ENGINE_CASES")
FILE = Path(OTHER_FILE) if OTHER_FILE else Path(__file__).parent / "golden" / "engine.json"

ENGINE_DEFAULT_STRATEGY = "auto"  # engine-sizing.md section 4
NO_LIMIT = 2**63 - 1  # how a case writes the tokens of a stage without attention layers

# Why a case is left to a later issue. Each reason is decided from what went in, case by case.
PD = "PD disaggregation"
ATTENTION_DP = "attention DP"
REPLAYSSM = "ReplaySSM rings"
AUTO = "refused while `auto` resolves, which needs the architecture"

# Every case of golden/engine.json is in one of these two tables; test_engine_cases.py counts them.
COVERED = {
    "caps": 8,
    "dcp": 9,
    "dtype": 7,
    "no_radix": 8,
    "pinned": 12,
    "pp": 8,
    "ratio": 26,
    "replayssm": 2,  # the family or the flags leave ReplaySSM off
    "rest": 6,
    "s_table": 22,
    "spec_doc": 5,
    "spec_ratio": 17,
}
LEFT = {
    ("attn_dp", ATTENTION_DP): 4,
    ("caps", ATTENTION_DP): 4,
    ("pd", PD): 2,
    ("pinned", ATTENTION_DP): 2,
    ("replayssm", ATTENTION_DP): 1,
    ("replayssm", REPLAYSSM): 11,
    ("s_table", AUTO): 1,
}


class Case(NamedTuple):
    """One run of the engine's sizing functions: what went in, and what came out."""

    id: str
    group: str
    inputs: dict[str, Any]
    derived: dict[str, Any] | None
    numeric: dict[str, Any] | None
    """None where the engine refused the flags before it counted anything."""
    expect: dict[str, Any]
    rounding_sensitive: bool

    @property
    def scenario(self) -> Scenario:
        """What a user would have stated, from everything but `expect`."""
        if self.numeric is None or self.derived is None:
            return Scenario(**_flags(self.inputs))
        return _scenario(self.inputs, self.derived, self.numeric)

    @property
    def why_left(self) -> str | None:
        """Why this case waits for a later issue; None when it is covered."""
        flags, numeric = self.inputs["flags"], self.numeric
        if "disaggregation_mode" in flags:
            return PD
        if numeric is None:
            resolves = flags.get("mamba_radix_cache_strategy", ENGINE_DEFAULT_STRATEGY) == ENGINE_DEFAULT_STRATEGY
            return AUTO if resolves else None
        if numeric["attn_dp_size"] > 1:
            return ATTENTION_DP
        return REPLAYSSM if numeric["replayssm"] != "off" else None


def read_cases() -> list[Case]:
    """Every case of the file, covered or not."""
    return [
        Case(
            id=case["id"],
            group=case["group"],
            inputs=case["inputs"],
            derived=case.get("derived"),
            numeric=case.get("numeric"),
            expect=case["expect"],
            rounding_sensitive=case["rounding_sensitive"],
        )
        for case in json.loads(FILE.read_text(encoding="utf-8"))["cases"]
    ]


def engine_cases() -> list[Any]:
    """One parameter for each case that is covered, under the case's own id."""
    return [pytest.param(case, id=case.id) for case in read_cases() if case.why_left is None]


def covered_by_group() -> Counter[str]:
    """How many cases of each group are compared."""
    return Counter(case.group for case in read_cases() if case.why_left is None)


def left_by_reason() -> Counter[tuple[str, str]]:
    """How many cases of each group are not compared, and why."""
    return Counter((case.group, case.why_left) for case in read_cases() if case.why_left is not None)


def _flags(inputs: dict[str, Any]) -> dict[str, Any]:
    """The flags of a launch command that decide S; `auto` is for the caller to resolve."""
    flags = inputs["flags"]
    strategy = flags.get("mamba_radix_cache_strategy", ENGINE_DEFAULT_STRATEGY)
    return {
        **({} if strategy == ENGINE_DEFAULT_STRATEGY else {"mamba_radix_cache_strategy": strategy}),
        "disable_radix_cache": flags.get("disable_radix_cache", False),
        "disable_overlap_schedule": flags.get("disable_overlap_schedule", False),
        "skip_decode_lock": inputs["env"].get("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK") == "1",
        "page_size": flags["page_size"],
        "pp_size": flags.get("pp_size", 1),
    }


def _scenario(inputs: dict[str, Any], derived: dict[str, Any], numeric: dict[str, Any]) -> Scenario:
    flags = inputs["flags"]
    stated = _flags(inputs)
    if numeric["strategy"] != "disabled":
        # What `auto` became; where it became no_buffer it turned overlap off too, which is a flag here.
        stated["mamba_radix_cache_strategy"] = numeric["strategy"]
        stated["disable_overlap_schedule"] |= numeric["strategy"] == "no_buffer"
    pin = numeric["pinned_max_mamba_cache_size"]
    return Scenario(
        **stated,
        **_state_bytes(derived, numeric),
        **_kv_bytes(inputs, derived, numeric),
        rest_gib=numeric["rest_gib"],
        split="ratio" if pin is None else "pin",
        mamba_full_memory_ratio=numeric["ratio"],
        max_mamba_cache_size=pin,
        D=numeric["D"],
        dcp_size=numeric["dcp_size"],
        mamba_ssm_dtype=derived["ssm_dtype"],
        kv_cache_dtype=inputs["kv_cache_dtype"],
        max_running_requests=flags.get("max_running_requests"),  # unset stays unset: the 48 is ours to find
        context_length=numeric["context_len"],
    )


def _state_bytes(derived: dict[str, Any], numeric: dict[str, Any]) -> dict[str, Any]:
    """The slot as it would be at float32, so that every other dtype has to be rescaled by the core."""
    layers = derived["linear_layers_on_largest_pp_stage"]
    conv = layers * derived["conv_bytes_per_layer"]
    ssm = numeric["state_bytes_per_slot"] - conv
    itemsize = {"float32": 4, "bfloat16": 2, "float16": 2}[derived["ssm_dtype"]]
    return {
        "state_bytes_per_slot": conv + ssm * 4 // itemsize,
        "conv_bytes_per_slot": conv,
        "state_bytes_dtype": "float32",
    }


def _kv_bytes(inputs: dict[str, Any], derived: dict[str, Any], numeric: dict[str, Any]) -> dict[str, Any]:
    """The token of the stage with most attention layers, as it would be at bfloat16 where fp8 runs."""
    target, both = numeric["target_kv_bytes_per_token_per_rank"], numeric["kv_bytes_per_token_per_rank"]
    others, cap = numeric["other_pp_ranks_tokens"], numeric["max_total_tokens"]
    here = derived["full_attention_layers_on_this_rank"]
    if not others:
        most = here
    elif here:
        most = max(here, *_layers_of(others, derived["full_attention_layers"] - here))
    else:
        # A stage without attention layers has no bytes for a token, and the case does not say what another
        # stage's are. Its own bytes are stated as next to nothing and the other stages' tokens as the cap:
        # here, and only here, the row count goes in instead of coming out.
        here = most = target = both = 1
        cap = min([*others, *([cap] if cap else [])])
    wider = 2 if inputs["kv_cache_dtype"].startswith("fp8") else 1
    return {
        "kv_bytes_per_token": target * most // here * wider,
        "draft_kv_bytes_per_token": (both - target) * most // here * wider,
        "kv_bytes_dtype": "bfloat16",
        "max_total_tokens": cap,
    }


def _layers_of(tokens: list[int], layers: int) -> list[int]:
    """How many of these attention layers each other stage has: tokens are in inverse proportion."""
    shares = [0.0 if count == NO_LIMIT else 1 / count for count in tokens]
    found = [round(layers * share / sum(shares)) for share in shares]
    assert sum(found) == layers, f"{tokens} tokens do not tell how {layers} layers are spread"
    return found
