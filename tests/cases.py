"""The engine's own cases as scenarios: one adapter for one file, one pytest parameter per case.

The adapter reads what a case was made from (`inputs`, `derived`, `numeric`) and never what came out of it.
SIZING_ENGINE_CASES names another file of the same form.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sizing import Scenario

OTHER_FILE = os.environ.get("SIZING_ENGINE_CASES")
FILE = Path(OTHER_FILE) if OTHER_FILE else Path(__file__).parent / "golden" / "engine.json"

NO_LIMIT = 2**63 - 1  # how a case writes the tokens of a stage without attention layers
# engine-sizing.md section 4: the engine's list for extra_buffer does not hold these.
WITHOUT_EXTRA_BUFFER = {"lfm2": "Lfm2ForCausalLM", "jet": "JetNemotronForCausalLM", "zaya": "ZayaForCausalLM"}
FAMILIES = {"kda": "KDA", "gdn": "GDN", "mamba2": "Mamba2"}
ITEMSIZE = {"float32": 4, "bfloat16": 2, "float16": 2}

# How many cases of each group golden/engine.json holds; test_engine_cases.py counts them.
GROUPS = {
    "attn_dp": 4,
    "caps": 12,
    "dcp": 9,
    "dtype": 7,
    "no_radix": 8,
    "pd": 2,
    "pinned": 14,
    "pp": 8,
    "ratio": 26,
    "replayssm": 14,
    "rest": 6,
    "s_table": 23,
    "spec_doc": 5,
    "spec_ratio": 17,
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
            return Scenario(**stated(self.inputs))
        return Scenario(
            **stated(self.inputs),
            **_state_bytes(self.derived, self.numeric),
            **_kv_bytes(self.inputs, self.derived, self.numeric),
            rest_gib=self.numeric["rest_gib"],
            mamba_ssm_dtype=self.derived["ssm_dtype"],
            mamba_conv_dtype=self.derived["conv_dtype"],
            context_length=self.numeric["context_len"],
        )


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
    """One parameter for each case, under the case's own id."""
    return [pytest.param(case, id=case.id) for case in read_cases()]


def stated(inputs: dict[str, Any]) -> dict[str, Any]:
    """What a user states in flags and environment variables, as fields of a scenario; the rest keeps its default."""
    flags, env = inputs["flags"], inputs["env"]
    same = (
        "attn_dp_size", "dcp_size", "disable_overlap_schedule", "disable_radix_cache", "disaggregation_mode",
        "linear_replayssm_cache_len", "mamba_full_memory_ratio", "mamba_radix_cache_strategy", "max_running_requests",
        "max_mamba_cache_size", "page_size", "pp_size", "speculative_algorithm", "tp_size",
    )  # fmt: skip
    arch = inputs["arch"]
    return {
        **{name: flags[name] for name in same if name in flags},
        "split": "pin" if "max_mamba_cache_size" in flags else "ratio",
        "D": flags.get("speculative_num_draft_tokens", 0),
        "skip_decode_lock": env.get("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK") == "1",
        "replayssm": _replayssm(flags),
        "family": next((name for start, name in FAMILIES.items() if arch.startswith(start)), "other"),
        "architecture": next((name for start, name in WITHOUT_EXTRA_BUFFER.items() if arch.startswith(start)), ""),
        "kv_cache_dtype": inputs["kv_cache_dtype"],
    }


def _replayssm(flags: dict[str, Any]) -> str:
    if flags.get("enable_linear_replayssm_spec"):
        return "spec"
    return "decode" if flags.get("enable_linear_replayssm") else "off"


def _state_bytes(derived: dict[str, Any], numeric: dict[str, Any]) -> dict[str, Any]:
    """The slot as it would be at float32 and a bfloat16 conv, so that the core rescales every other dtype."""
    conv = derived["linear_layers_on_largest_pp_stage"] * derived["conv_bytes_per_layer"]
    ssm = numeric["state_bytes_per_slot"] - conv
    conv_stated = conv * 2 // ITEMSIZE[derived["conv_dtype"]]
    ring = derived["replayssm_ring_bytes_per_req_all_layers"]
    return {
        "state_bytes_per_slot": conv_stated + ssm * 4 // ITEMSIZE[derived["ssm_dtype"]],
        "conv_bytes_per_slot": conv_stated,
        "state_bytes_dtype": "float32",
        "ring_bytes_per_position": ring // derived["replayssm_ring_len"] if ring else None,
    }


def _kv_bytes(inputs: dict[str, Any], derived: dict[str, Any], numeric: dict[str, Any]) -> dict[str, Any]:
    """The token of the stage with most attention layers, as it would be at bfloat16 where fp8 runs.

    The draft's row is the same on every stage: the engine scales it by the draft's layers alone.
    """
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
        "attention": "MLA" if derived["kv_heads_on_this_rank"] is None else "GQA",
        "kv_bytes_per_token": target * most // here * wider,
        "kv_bytes_dcp_size": numeric["dcp_size"],
        "draft_kv_bytes_per_token": (both - target) * wider,
        "kv_bytes_dtype": "bfloat16",
        "max_total_tokens": cap,
    }


def _layers_of(tokens: list[int], layers: int) -> list[int]:
    """How many of these attention layers each other stage has: tokens are in inverse proportion."""
    shares = [0.0 if count == NO_LIMIT else 1 / count for count in tokens]
    found = [round(layers * share / sum(shares)) for share in shares]
    assert sum(found) == layers, f"{tokens} tokens do not tell how {layers} layers are spread"
    return found
