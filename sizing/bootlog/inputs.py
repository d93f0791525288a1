"""From the facts of a boot to a Scenario's inputs: what is known, where from, what was assumed and what is missing.

Only what the log, or the exact bytes of a model, say is filled in; every other input keeps its own default.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError

from sizing.basics.dtypes import KV_ITEMSIZE, STATE_ITEMSIZE
from sizing.basics.problems import RefusedError
from sizing.basics.units import number
from sizing.bootlog.exact import Exact
from sizing.bootlog.facts import Facts
from sizing.bootlog.gather import architecture_of
from sizing.bootlog.measure import Measured
from sizing.bootlog.release import releases_text
from sizing.bootlog.settings import LOG_INPUTS, latest
from sizing.engine.resolve import slots_per_request
from sizing.releases.architectures import support_of
from sizing.releases.rules import RELEASES, Release
from sizing.scenario.inputs import DEFAULT_RATIO, DEFAULTS, Scenario

LOG, MODEL, ASSUMED = "boot log", "model geometry", "assumed"
NOT_IN_A_LOG = (
    "Environment variables are not in a log: SGLANG_MAMBA_CONV_DTYPE was taken as unset, and so was "
    "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK unless S says otherwise."
)


class Inputs(NamedTuple):
    """Values for `Scenario`, by its field names."""

    values: dict[str, Any]
    sources: dict[str, str]
    """For each value: boot log, model geometry or assumed."""
    assumed: tuple[str, ...]
    missing: tuple[str, ...]


class _Given(NamedTuple):
    name: str
    value: Any
    source: str = LOG


def inputs_of(facts: Facts, exact: Exact | None = None) -> Inputs:
    """A Scenario's inputs from a boot's facts, with a model's exact bytes where they are given.

    `read_scenario(inputs.values)` makes the scenario. L is never in a log: it keeps its default until it is stated.
    """
    exact = exact or Exact()
    given = [item for item in _given(facts, exact) if item.value is not None]
    return Inputs(
        values={item.name: item.value for item in given},
        sources={item.name: item.source for item in given},
        assumed=tuple(_assumed(facts, exact)),
        missing=(*facts.missing, "L: a boot log does not hold the context of a request. Enter it."),
    )


def _given(facts: Facts, exact: Exact) -> Iterator[_Given]:
    yield from _flags(facts)
    yield from (_Given(name, value, ASSUMED) for name, value in _tells_slots(facts, exact).items())
    yield _Given("architecture", _architecture(facts, exact), MODEL if exact.architecture else LOG)
    yield from _state(facts, exact)
    yield from _kv(facts, exact)
    yield from _drafts(facts, exact)
    yield _Given("rest_gib", _rounded(facts.rest))
    yield _Given("rest_source", LOG if facts.rest is not None else None)
    yield _Given("release", release_of(facts, exact), LOG if len(facts.releases) == 1 else ASSUMED)
    yield _Given("context_length", facts.context_length)


# What decides S where flags or environment variables are not in the log: the first of these that gives the S that the
# log states is assumed. All but the first and the second mean the decode-lock skip or a flag that someone set.
_SLOT_INPUTS: tuple[dict[str, Any], ...] = (
    {},
    {"mamba_radix_cache_strategy": "extra_buffer"},
    {"skip_decode_lock": True},
    {"mamba_radix_cache_strategy": "extra_buffer_lazy"},
    {"mamba_radix_cache_strategy": "extra_buffer_lazy", "skip_decode_lock": True},
    {"mamba_radix_cache_strategy": "no_buffer", "page_size": 1, "disable_overlap_schedule": True},
    {"disable_radix_cache": True},
    {"architecture": "KimiLinearForCausalLM"},  # a model whose radix cache the release turns off whatever the flags say
)


def _tells_slots(facts: Facts, exact: Exact) -> dict[str, Any]:
    """The inputs that lead to the S of the log, without those that the flags state otherwise."""
    if facts.S is None:
        return {}
    stated = {item.name: item.value for item in _flags(facts) if item.value is not None}
    bytes_typed = {"model": "", "state_bytes_all_stages": DEFAULTS["state_bytes_per_slot"]}
    if architecture := _architecture(facts, exact):
        stated["architecture"] = architecture
    base = bytes_typed | stated | {"release": release_of(facts, exact), "D": facts.draft_tokens or 0}
    for more in _SLOT_INPUTS:
        if all(stated.get(name, value) == value for name, value in more.items()) and _gives(base | more, facts.S):
            return more
    return {}


def release_of(facts: Facts, exact: Exact) -> Release:
    """The release whose rules are taken: the newest that prints these lines and takes these flags, else the newest."""
    stated = {item.name: item.value for item in _flags(facts) if item.value is not None}
    base = {"model": "", "state_bytes_all_stages": DEFAULTS["state_bytes_per_slot"], "D": facts.draft_tokens or 0}
    base |= stated | {"architecture": _architecture(facts, exact)}
    newest_first = reversed(facts.releases or RELEASES) if len(facts.releases) != 1 else ()
    takes = (release for release in newest_first if _S(base | {"release": release}) is not None)
    return next(takes, latest(facts.releases))


def _architecture(facts: Facts, exact: Exact) -> str:
    """The architecture of the model that the bytes match, or that the log names; empty where no release has it."""
    found = exact.architecture
    if found and support_of(found, latest(facts.releases)).served:
        return found
    return architecture_of(facts.model, facts.settings, facts.releases)


def _gives(values: dict[str, Any], S: int) -> bool:
    return _S(values) == S


def _S(values: dict[str, Any]) -> int | None:  # noqa: N802, the specification's letter
    """Slots per running request by these inputs; None where the release refuses them."""
    try:
        return slots_per_request(Scenario.model_validate(values))
    except (RefusedError, ValidationError):
        return None


def _rounded(rest: Measured | None) -> float | None:
    """`rest` to the thousandth of a GiB: the printed figures do not tell more."""
    return None if rest is None else round(rest.value, 3)


# Inputs that take more than the arguments line, given below, and those that only tell what its numbers mean.
_FROM_FACTS = (
    "dcp_size", "context_length", "D", "speculative_algorithm", "mamba_ssm_dtype", "kv_cache_dtype",
    "speculative_num_steps", "speculative_eagle_topk", "enable_unified_memory",
)  # fmt: skip


def _flags(facts: Facts) -> Iterator[_Given]:
    settings = facts.settings
    for name in LOG_INPUTS:
        if name not in _FROM_FACTS:
            yield _Given(name, settings.input(name))
    yield _Given("replayssm", settings.replayssm)
    yield _Given("skip_decode_lock", settings.skip_decode_lock)
    yield _Given("enable_unified_memory", True if facts.unified else settings.enable_unified_memory)
    yield _Given("dcp_size", facts.dcp_size)
    if settings.max_mamba_cache_size is not None:
        yield _Given("split", "pin")
    elif settings.stated:
        yield _Given("split", "ratio")
        if settings.mamba_full_memory_ratio is None:
            yield _Given("mamba_full_memory_ratio", DEFAULT_RATIO, ASSUMED)


def _state(facts: Facts, exact: Exact) -> Iterator[_Given]:
    """Bytes of a slot: exact, else the middle of the interval, rounded to whole elements of either dtype."""
    dtype = exact.ssm_dtype or facts.settings.mamba_ssm_dtype
    if exact.state is not None:
        yield _Given("state_bytes_per_slot", exact.state, MODEL)
        yield _Given("conv_bytes_per_slot", exact.conv, MODEL)
        yield _Given("state_bytes_all_stages", exact.state_all_stages, MODEL)
    elif facts.slot_bytes and facts.conv_bytes and facts.ssm_bytes:
        conv = whole_elements(facts.conv_bytes, STATE_ITEMSIZE["bfloat16"])
        ssm = whole_elements(facts.ssm_bytes, STATE_ITEMSIZE[dtype or "float32"])
        yield _Given("state_bytes_per_slot", max(conv + ssm, 1))
        yield _Given("conv_bytes_per_slot", conv)
    else:
        yield _Given("mamba_ssm_dtype", facts.settings.mamba_ssm_dtype)
        return
    yield _Given("state_bytes_source", MODEL if exact.state is not None else LOG)
    for name in ("mamba_ssm_dtype", "state_bytes_dtype"):
        yield _Given(name, dtype or "float32", LOG if dtype else ASSUMED)
    for name in ("mamba_conv_dtype", "conv_bytes_dtype"):
        yield _Given(name, "bfloat16", ASSUMED)


def _kv(facts: Facts, exact: Exact) -> Iterator[_Given]:
    """Bytes of a token, as for a slot; stated at the dtype and the dcp_size that ran."""
    dtype = exact.kv_dtype or facts.kv_cache_dtype
    yield _Given("attention", exact.attention or facts.attention, MODEL if exact.attention else LOG)
    yield _Given("kv_heads", exact.kv_heads, MODEL)
    if facts.token_bytes is None:
        yield _Given("kv_cache_dtype", facts.kv_cache_dtype)
        return
    measured = whole_elements(facts.token_bytes, KV_ITEMSIZE[dtype or "bfloat16"])
    yield _Given("kv_bytes_per_token", exact.kv or max(measured, 1), MODEL if exact.kv else LOG)
    yield _Given("kv_bytes_source", MODEL if exact.kv else LOG)
    yield _Given("kv_bytes_dcp_size", facts.dcp_size)
    for name in ("kv_cache_dtype", "kv_bytes_dtype"):
        yield _Given(name, dtype or "bfloat16", LOG if dtype else ASSUMED)


def _drafts(facts: Facts, exact: Exact) -> Iterator[_Given]:
    settings = facts.settings
    yield _Given("D", facts.draft_tokens)
    yield _Given("speculative_algorithm", settings.speculative_algorithm)
    if facts.draft_token_bytes is not None and facts.draft_tokens:
        item = KV_ITEMSIZE[exact.kv_dtype or facts.kv_cache_dtype or "bfloat16"]
        measured = whole_elements(facts.draft_token_bytes, item)
        yield _Given("draft_kv_bytes_per_token", exact.draft_kv or measured, MODEL if exact.draft_kv else LOG)
    elif facts.draft_tokens == 0:
        yield _Given("draft_kv_bytes_per_token", 0)
    yield _Given("family", facts.family or exact.family, LOG if facts.family else MODEL)
    if settings.replayssm in ("spec", "decode"):
        ring = facts.ring_bytes_per_position
        if exact.ring_per_position:
            yield _Given("ring_bytes_per_position", exact.ring_per_position, MODEL)
        elif ring:
            yield _Given("ring_bytes_per_position", max(round(ring.value), 1))


def whole_elements(measured: Measured, itemsize: int) -> int:
    """The middle of an interval [bytes], rounded to a whole number of elements of so many bytes, never negative."""
    return max(round(measured.value / itemsize) * itemsize, 0)


def _assumed(facts: Facts, exact: Exact) -> Iterator[str]:
    """What had to be assumed, a sentence each."""
    yield from exact.sentences
    if len(facts.releases) != 1:
        yield (
            f"The lines are those of {releases_text(facts.releases)}; the rules of {release_of(facts, exact)} are "
            "followed."
        )
    if facts.slot_bytes and exact.state is None:
        low, high = number(facts.slot_bytes.low, 0), number(facts.slot_bytes.high, 0)
        yield (
            f"State bytes per slot are the middle of {low} to {high}, in whole elements: choose the model for the "
            "exact number."
        )
    if facts.token_bytes and exact.kv is None:
        low, high = number(facts.token_bytes.low), number(facts.token_bytes.high)
        yield (
            f"KV bytes per token are the middle of {low} to {high}, in whole elements: choose the model for the exact "
            "number."
        )
    if facts.slot_bytes and not (exact.ssm_dtype or facts.settings.mamba_ssm_dtype):
        yield "The SSM dtype is not in the log: float32 was taken."
    if facts.token_bytes and not (exact.kv_dtype or facts.kv_cache_dtype):
        yield "The KV dtype is not in the log, or none that is sized here: bfloat16 was taken."
    yield NOT_IN_A_LOG
    yield from _assumed_of_rest(facts)
    if facts.draft_tokens and facts.draft_token_bytes is None:
        yield "No second KV line of a draft is in the log: its KV bytes are those of the model's own MTP layer, else 0."


def _assumed_of_rest(facts: Facts) -> Iterator[str]:
    if facts.rest_from_weights is None and facts.rest_from_pools is not None:
        yield (
            "rest is the sum of the printed pools, which may be less than what they share: a pin, a token cap and "
            "rounding down leave some of it out."
        )
    gap = _gap_gib(facts)
    if gap is not None:
        yield (
            f"The pools take {number(gap)} GiB less than rest by the weights: a pin, a token cap or a reservation for "
            "images explains it, or the lines are not of one boot."
        )


# A page, a slot and the over-charge of draft states are expected; this much of rest is not (boot-log-formats.md, last).
NOTABLE_SHARE = 0.02


def _gap_gib(facts: Facts) -> float | None:
    """By how much the pools stay below `rest` by the weights [GiB], where it is more than rounding explains."""
    weights, pools = facts.rest_from_weights, facts.rest_from_pools
    if weights is None or pools is None or facts.draft_tokens:
        return None
    gap = weights.low - pools.high
    return gap if gap > NOTABLE_SHARE * max(weights.value, 0) and gap > 0 else None
