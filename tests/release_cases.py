"""The releases' own sizing of whole deployments: one adapter for one file, one pytest parameter a case.

A case holds flags, a model's configuration and free memory; its scenario is made from these alone, as a user's is.
SIZING_RELEASE_CASES and SIZING_RELEASE_CONFIGS name other files of the same form, the cases and the configurations.
"""

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from sizing import Problem, Scenario, read_scenario
from sizing.engine.rest import rest_gib
from sizing.models import Geometry, read_config
from sizing.releases.rules import Release
from sizing.scenario.from_model import suggested

GOLDEN = Path(__file__).parent / "golden"
OTHER_FILE = os.environ.get("SIZING_RELEASE_CASES")
CASES = Path(OTHER_FILE or GOLDEN / "engine2.json")
CONFIGS = Path(os.environ.get("SIZING_RELEASE_CONFIGS") or GOLDEN / "engine2_configs.json")

# Flags by the name of the scenario's field; the strategy flag had another name up to 0.5.13.
SAME = (
    "tp_size", "pp_size", "dcp_size", "attn_dp_size", "page_size", "mamba_full_memory_ratio", "max_mamba_cache_size",
    "max_running_requests", "max_total_tokens", "disable_radix_cache", "disable_overlap_schedule",
    "mamba_radix_cache_strategy", "mamba_track_interval", "mamba_ssm_dtype", "disaggregation_mode",
    "disaggregation_decode_extra_slots", "speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk",
    "linear_replayssm_cache_len", "swa_full_tokens_ratio", "context_length", "disaggregation_decode_enable_radix_cache",
    "enable_unified_memory", "linear_attn_backend",
)  # fmt: skip
RENAMED = {"mamba_scheduler_strategy": "mamba_radix_cache_strategy", "speculative_num_draft_tokens": "D"}
READ = {"mem_fraction_static", "enable_linear_replayssm", "enable_linear_replayssm_spec", "enable_gdn_replayssm_spec"}


class ReleaseCase(NamedTuple):
    """One deployment under one release: what went in, and what came out."""

    id: str
    inputs: dict[str, Any]
    config: dict[str, Any]
    expect: dict[str, Any]

    @property
    def release(self) -> Release:
        """The release that sized it."""
        release: Release = self.inputs["release"]
        return release

    @property
    def geometry(self) -> Geometry:
        """The model, from its configuration."""
        return read_config(self.config)

    @property
    def scenario(self) -> Scenario | list[Problem]:
        """What a user would have stated."""
        flags, memory = self.inputs["flags"], self.inputs["hardware"]
        rest = rest_gib(
            self.release,
            memory["pre_model_load_gib"],
            memory["available_gib"],
            flags["mem_fraction_static"],
            multimodal=self.geometry.multimodal,
        )
        values = {
            **suggested(self.geometry, self.release),
            "release": self.release,
            "kv_cache_dtype": self.inputs["kv_cache_dtype"],
            "rest_gib": rest,
            "page_size": 1,
            "draft_kv_layers": self.inputs.get("draft_kv_layers"),
            **stated(flags, self.inputs["env"]),
        }
        return read_scenario(values, self.geometry)


def stated(flags: dict[str, Any], env: dict[str, str]) -> dict[str, Any]:
    """Flags and environment variables as fields of a scenario; one that is not known here is an error of the test."""
    assert not flags.keys() - {*SAME, *RENAMED, *READ}, flags
    assert not env.keys() - {"SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK"}, env
    spec = flags.get("enable_linear_replayssm_spec") or flags.get("enable_gdn_replayssm_spec")
    return {
        **{name: flags[name] for name in SAME if name in flags},
        **{field: flags[name] for name, field in RENAMED.items() if name in flags},
        "split": "pin" if "max_mamba_cache_size" in flags else "ratio",
        "skip_decode_lock": env.get("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK") == "1",
        "replayssm": "spec" if spec else "decode" if flags.get("enable_linear_replayssm") else "off",
    }


def read_cases() -> list[ReleaseCase]:
    """Every case of the file; a case names its configuration after the colon and may override fields of it."""
    configs = json.loads(CONFIGS.read_text(encoding="utf-8"))
    return [
        ReleaseCase(
            id=case["id"],
            inputs=case["inputs"],
            config=configs[case["inputs"]["config"].partition(": ")[2]] | case["inputs"].get("config_overrides", {}),
            expect=case["expect"],
        )
        for case in json.loads(CASES.read_text(encoding="utf-8"))["cases"]
    ]


def release_cases() -> list[Any]:
    """One parameter for each case, under the case's own id."""
    return [pytest.param(case, id=case.id) for case in read_cases()]
