"""Made-up configurations of every model type, against what the engine's own classes make of them.

The checkpoints of the catalogue leave out some model types, most aliases and every odd width.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sizing.models import ModelRefusedError, read_config, shapes, ssm_dtype, state_bytes
from sizing.models.families import ROWS, WRAPPERS

FILE = Path(__file__).parent / "golden" / "model_probes.json"
PROBES: list[dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))["probes"]
# The same classes as a row that has probes: GLM's text type is not a type of its own, the others differ in name.
# InternS2-Mobius and Qwen4-Exp are held by the release cases, which ran the engine on their configurations.
NOT_PROBED = {
    "glm5_next_text",
    "nemotron_h_puzzle",
    "NemotronH_Nano_Omni_Reasoning_V3",
    "nemotron_h_omni",
    "bailing_moe_v3_vl",
    "minicpmv4_6",
    "minicpmv4_7",
    "interns2_mobius",
    "interns2_mobius_text",
    "qwen4_exp",
    "qwen4_exp_text",
}


@pytest.mark.parametrize("probe", [pytest.param(probe, id=probe["id"]) for probe in PROBES])
def test_model_probe(probe: dict[str, Any]) -> None:
    """Layers, shapes, dtype and bytes of a slot are the engine's; where it stops with an assertion, we refuse."""
    geometry, tp, theirs = read_config(probe["config"]), probe["tp"], probe["expect"]
    if "error" in theirs:
        with pytest.raises(ModelRefusedError) as refused:
            state_bytes(geometry, tp)
        assert refused.value.kind == "layout"
        return
    one = shapes(geometry, tp)
    assert theirs == {
        "state_layers": list(geometry.state_layers),
        "kv_layers": list(geometry.kv_layers),
        "conv_shapes": [list(shape) for shape in one.conv],
        "temporal_shape": list(one.temporal),
        "ssm_dtype": ssm_dtype(geometry),
        "state_bytes_per_slot": state_bytes(geometry, tp).total,
    }


def test_every_model_type_is_probed() -> None:
    """Four probes that the engine accepts for each model type that has a class of its own there."""
    accepted = Counter(probe["config"]["model_type"] for probe in PROBES if "error" not in probe["expect"])
    assert accepted.keys() == (ROWS.keys() | WRAPPERS.keys()) - NOT_PROBED
    assert set(accepted.values()) == {4}
