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
from sizing.scenario.inputs import FIELDS

GOLDEN = Path(__file__).parent / "golden"
OTHER_FILE = os.environ.get("SIZING_RELEASE_CASES")
CASES = Path(OTHER_FILE or GOLDEN / "engine2.json")
CONFIGS = Path(os.environ.get("SIZING_RELEASE_CONFIGS") or GOLDEN / "engine2_configs.json")

# Flags stand under the name of the scenario's field, but for these.
RENAMED = {"mamba_scheduler_strategy": "mamba_radix_cache_strategy", "speculative_num_draft_tokens": "D"}
RINGS = {"enable_linear_replayssm", "enable_linear_replayssm_spec", "enable_gdn_replayssm_spec"}
READ = {"mem_fraction_static", "dp_size", "enable_dp_attention", *RINGS}
ENVIRONMENT = {"SGLANG_MAMBA_CONV_DTYPE": "mamba_conv_dtype", "SGLANG_MAMBA_SSM_DTYPE": "mamba_ssm_dtype"}
SKIP = "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK"


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
    assert not flags.keys() - {*FIELDS, *RENAMED, *READ}, flags
    assert not env.keys() - {*ENVIRONMENT, SKIP}, env
    width = {"attn_dp_size": flags["dp_size"]} if flags.get("enable_dp_attention") else {}
    spec = bool(flags.get("enable_linear_replayssm_spec") or flags.get("enable_gdn_replayssm_spec"))
    decode = bool(flags.get("enable_linear_replayssm"))
    return {
        **{field: env[name] for name, field in ENVIRONMENT.items() if name in env},
        **{name: value for name, value in flags.items() if name in FIELDS},
        **width,
        **{field: flags[name] for name, field in RENAMED.items() if name in flags},
        "split": "pin" if "max_mamba_cache_size" in flags else "ratio",
        "skip_decode_lock": env.get(SKIP) == "1",
        "replayssm": {(False, False): "off", (True, False): "spec", (False, True): "decode"}.get(
            (spec, decode), "both"
        ),
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
