"""The inputs of a sheet: what was set for this deployment, and everything else that its numbers rest on."""

from collections.abc import Callable
from typing import NamedTuple

from sizing.engine.resolve import resolution
from sizing.scenario.from_model import FILLED
from sizing.scenario.inputs import DEFAULTS, FIELDS, Scenario, extra, value_text

STATE_BYTES = ("state_bytes_per_slot", "conv_bytes_per_slot", "state_bytes_all_stages", "ring_bytes_per_position")
KV_BYTES = ("kv_bytes_per_token",)


def _radix_cache_is_on(scenario: Scenario) -> bool:
    return resolution(scenario).radix_cache


# Inputs that change no number unless something else is set; all others always count.
COUNTS_IF: dict[str, Callable[[Scenario], bool]] = {
    "name": lambda scenario: False,  # it is the sheet's title
    "speculative_algorithm": lambda scenario: scenario.D > 0,
    "conv_kernel": lambda scenario: scenario.D > 0,
    "linear_replayssm_cache_len": lambda scenario: scenario.replayssm != "off",
    "ring_bytes_per_position": lambda scenario: scenario.replayssm != "off",
    "kv_heads": lambda scenario: scenario.attention == "GQA",
    "state_bytes_all_stages": lambda scenario: scenario.pp_size > 1,
    "mamba_full_memory_ratio": lambda scenario: scenario.split == "ratio",
    "max_mamba_cache_size": lambda scenario: scenario.split == "pin",
    "mamba_radix_cache_strategy": _radix_cache_is_on,
    "mamba_track_interval": _radix_cache_is_on,
    "linear_attn_backend": _radix_cache_is_on,
    "attention_backend": lambda scenario: scenario.enable_unified_memory,
    "index_page_tokens": lambda scenario: scenario.index_page_tokens is not None,
    "disaggregation_decode_enable_radix_cache": lambda scenario: scenario.disaggregation_mode == "decode",
    "disaggregation_transfer_backend": lambda scenario: scenario.disaggregation_mode != "null",
    "enable_hierarchical_cache": lambda scenario: False,  # they change no pool, and are told where they are set
    "enable_int8_mamba_checkpoint": lambda scenario: False,
    "speculative_eagle_topk": lambda scenario: scenario.D > 0,
    "state_bytes_source": lambda scenario: not scenario.model,
    "kv_bytes_source": lambda scenario: not scenario.model,
}


class Input(NamedTuple):
    """One input as a row of text."""

    name: str
    """The field of Scenario."""
    title: str
    flag: str
    value: str
    """With its unit."""
    origin: str
    """Where the value comes from; for a stated one, what it is in the worked example."""


def stated_inputs(scenario: Scenario) -> list[Input]:
    """What differs from the worked example, each with its value there."""
    return [_row(scenario, name, value_text(name, DEFAULTS[name])) for name in scenario.differences()]


def other_inputs(scenario: Scenario) -> list[Input]:
    """Everything else that counts here: what the model fills in, and what is as in the worked example."""
    stated = scenario.differences()
    counts = [name for name in FIELDS if name not in stated and _counts(scenario, name)]
    return [_row(scenario, name, _origin(scenario, name)) for name in counts]


def _counts(scenario: Scenario, name: str) -> bool:
    return COUNTS_IF[name](scenario) if name in COUNTS_IF else True


def _row(scenario: Scenario, name: str, origin: str) -> Input:
    return Input(
        name=name,
        title=str(FIELDS[name].title),
        flag=extra(name, "flag"),
        value=value_text(name, getattr(scenario, name)),
        origin=origin,
    )


def _origin(scenario: Scenario, name: str) -> str:
    if scenario.model and name in FILLED:
        return "from the model"
    if name in STATE_BYTES:
        return scenario.state_bytes_source
    if name in KV_BYTES:
        return scenario.kv_bytes_source
    return "worked example"
