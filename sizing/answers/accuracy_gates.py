"""Accuracy gates: the dtypes that shift outputs, and what to do before they go to production.

Source: compute-mamba-ratio.md, Caveats ("Precision changes are behind accuracy gates").
"""

from collections.abc import Sequence

from sizing.scenario.inputs import Scenario


def accuracy_gates(scenario: Scenario) -> tuple[str, ...]:
    """Each flag of a scenario that stands behind a gate, with what it does; empty where none does."""
    return (*kv_gate(scenario), *ssm_gate(scenario))


def kv_gate(scenario: Scenario) -> tuple[str, ...]:
    """fp8 KV."""
    if not scenario.kv_cache_dtype.startswith("fp8"):
        return ()
    return (f"--kv-cache-dtype {scenario.kv_cache_dtype} (halves KV, doubles r*)",)


def ssm_gate(scenario: Scenario) -> tuple[str, ...]:
    """A state below float32."""
    if scenario.mamba_ssm_dtype == "float32":
        return ()
    return (
        f"--mamba-ssm-dtype {scenario.mamba_ssm_dtype} (about halves a slot; on SM100+ it also switches the "
        "linear-attention decode backend: pin --linear-attn-decode-backend triton)",
    )


def validate_words(gates: Sequence[str]) -> str:
    """What to do about gates."""
    return f"Validate the outputs of your workload before production with {' and '.join(gates)}."
