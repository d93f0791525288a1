"""What a boot's arguments line says of its flags, in the names of a Scenario's inputs. None is not said."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar, get_args

from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.bootlog.line_records import Arguments, Value
from sizing.releases.rules import RELEASES, Release
from sizing.scenario.inputs import INPUTS, Algorithm, ReplaySsm, Role, Strategy
from sizing.scenario.registry import Input

T = TypeVar("T")

# Names that the engine prints for the dtype of KV, in the arguments line and in the KV line.
KV_DTYPES: dict[str, KvDtype] = {
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "fp8_e4m3": "fp8_e4m3",
    "fp8_e5m2": "fp8_e5m2",
    "float8_e4m3fn": "fp8_e4m3",
    "float8_e4m3fnuz": "fp8_e4m3",
    "float8_e5m2": "fp8_e5m2",
    "float8_e5m2fnuz": "fp8_e5m2",
}


class Settings(NamedTuple):
    """The flags that sizing reads."""

    stated: bool = False
    """Whether there was an arguments line at all."""
    complete: bool = False
    """Whether it was there to its end, so that what it leaves out was not set."""
    model_path: str | None = None
    tp_size: int | None = None
    pp_size: int | None = None
    attn_dp_size: int | None = None
    attn_cp_size: int | None = None
    dcp_size: int | None = None
    page_size: int | None = None
    mem_fraction_static: float | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    max_mamba_cache_size: int | None = None
    mamba_full_memory_ratio: float | None = None
    mamba_ssm_dtype: StateDtype | None = None
    kv_cache_dtype: KvDtype | None = None
    mamba_radix_cache_strategy: Strategy | None = None
    disable_radix_cache: bool | None = None
    disable_overlap_schedule: bool | None = None
    mamba_track_interval: int | None = None
    speculative_algorithm: Algorithm | None = None
    D: int | None = None
    """0 where the line says that there is no speculation; None under speculation without a number."""
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    replayssm: ReplaySsm | None = None
    linear_replayssm_cache_len: int | None = None
    context_length: int | None = None
    disaggregation_mode: Role | None = None
    enable_unified_memory: bool | None = None
    disaggregation_decode_enable_radix_cache: bool | None = None
    skip_decode_lock: bool | None = None
    """A variable of the environment: never in a log."""
    others: Mapping[str, Any] = MappingProxyType({})
    """Further inputs by their names, which reading a log asks nothing of."""

    def input(self, name: str) -> Any:
        """An input by its name; None where it is not said."""
        return getattr(self, name) if name in self._fields else self.others.get(name)


LOG_INPUTS = tuple(name for name, own in INPUTS.items() if own.log_keys)
"""The inputs that an arguments line fills in."""


def with_inputs(values: Mapping[str, Any], **more: Any) -> Settings:
    """Settings that say these inputs, and what is no input."""
    own = {name: value for name, value in values.items() if name in Settings._fields}
    others = {name: value for name, value in values.items() if name not in own and value is not None}
    return Settings(**own, **more, others=MappingProxyType(others))


def with_given(settings: Settings, given: Settings | None) -> Settings:
    """The flags of a log, filled up with those that are known from elsewhere."""
    if given is None:
        return settings
    filled: dict[str, Any] = {name: value for name, value in given._asdict().items() if getattr(settings, name) is None}
    filled["others"] = MappingProxyType({**given.others, **settings.others})
    filled |= {"stated": settings.stated or given.stated, "complete": settings.complete or given.complete}
    return settings._replace(**filled)


def settings_of(arguments: Arguments | None) -> Settings:
    """The flags of an arguments line; all None without one."""
    if arguments is None:
        return Settings()
    values = arguments.values
    found = {name: _read(values, name) for name in LOG_INPUTS}
    found |= {"attn_dp_size": _attn_dp(values), "D": _drafts(values), "replayssm": _replayssm(values)}
    return with_inputs(
        found,
        stated=True,
        complete=arguments.complete,
        model_path=_text(values, "model_path"),
        attn_cp_size=_whole(values, "attn_cp_size"),
        mem_fraction_static=_fraction(values, "mem_fraction_static"),
    )


def _read(values: dict[str, Value], name: str) -> Any:
    """An input from the first of its keys that holds one; None without."""
    own = INPUTS[name]
    return next((found for key in own.log_keys if (found := _value(values, key, own)) is not None), None)


def _value(values: dict[str, Value], key: str, own: Input) -> Any:
    if own.options == get_args(KvDtype):
        return kv_dtype(_text(values, key))
    if own.options:
        return _one_of(values, key, own.options)
    return {"switch": _flag, "whole": _whole, "number": _number, "word": _text}[own.kind](values, key)


def kv_dtype(name: str | None) -> KvDtype | None:
    """The KV dtype that a name stands for, with or without `torch.`; None for auto and for what is not sized here."""
    return KV_DTYPES.get((name or "").removeprefix("torch."))


def _attn_dp(values: dict[str, Value]) -> int | None:
    """The attention-DP width: a key of its own since 0.5.22, before --dp-size with --enable-dp-attention."""
    width = _whole(values, "attn_dp_size")
    if width is not None:
        return width
    attention, width = _flag(values, "enable_dp_attention"), _whole(values, "dp_size")
    return width if attention else None if attention is None and width != 1 else 1


def _drafts(values: dict[str, Value]) -> int | None:
    if "speculative_algorithm" in values and values["speculative_algorithm"] is None:
        return 0
    return _whole(values, "speculative_num_draft_tokens")


def _replayssm(values: dict[str, Value]) -> ReplaySsm | None:
    if values.get("enable_linear_replayssm_spec") is True or values.get("enable_gdn_replayssm_spec") is True:
        return "spec"
    if values.get("enable_linear_replayssm") is True:
        return "decode"
    return "off" if "enable_linear_replayssm" in values else None


def _whole(values: dict[str, Value], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _number(values: dict[str, Value], name: str) -> float | None:
    value = values.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _fraction(values: dict[str, Value], name: str) -> float | None:
    value = _number(values, name)
    return value if value is not None and value <= 1 else None


def _text(values: dict[str, Value], name: str) -> str | None:
    value = values.get(name)
    return value if isinstance(value, str) else None


def _flag(values: dict[str, Value], name: str) -> bool | None:
    value = values.get(name)
    return value if isinstance(value, bool) else None


def _one_of(values: dict[str, Value], name: str, allowed: tuple[T, ...]) -> T | None:
    value = values.get(name)
    return next((word for word in allowed if isinstance(value, str) and value == word), None)


def latest(releases: tuple[Release, ...]) -> Release:
    """The newest release of a set, or of all that are known where the set is empty."""
    return (releases or RELEASES)[-1]
