"""What else a deployment could be set to so that more fits: fewer slots a request, DCP, narrower dtypes, and both.

Each way is a whole scenario that the engine takes, with the flags that differ, what they cost, and the accuracy gate
where there is one. Source: the S table and the Caveats of compute-mamba-ratio.md, engine-sizing.md section 4.
"""

from collections.abc import Iterator
from functools import lru_cache
from itertools import chain
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from sizing.answers.accuracy_gates import kv_gate, ssm_gate, validate_words
from sizing.answers.band import for_flags
from sizing.basics.dtypes import KV_ITEMSIZE, STATE_ITEMSIZE
from sizing.basics.problems import RefusedError
from sizing.engine.rank import rank_of
from sizing.engine.resolve import resolve
from sizing.engine.resolved import Resolved
from sizing.scenario.inputs import MAX_DCP, Scenario, changed, flag_text

Axis = Literal["slots per request", "DCP", "SSM dtype", "KV dtype"]

SKIP = {"skip_decode_lock": True}
# Rows of the specification's S table, those that change least first; each also with the decode-lock skip.
STRATEGIES: tuple[dict[str, Any], ...] = (
    {},
    {"mamba_radix_cache_strategy": "extra_buffer"},
    {"mamba_radix_cache_strategy": "extra_buffer_lazy"},
    {"mamba_radix_cache_strategy": "extra_buffer_lazy", "disable_overlap_schedule": False},
    {"disable_overlap_schedule": True},
    {"mamba_radix_cache_strategy": "extra_buffer", "disable_overlap_schedule": True},
    {"mamba_radix_cache_strategy": "no_buffer"},
    {"mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True, "page_size": 1},
    {"disable_radix_cache": True},
)
PRICES: dict[tuple[str, Any], str] = {
    ("skip_decode_lock", True): "an environment variable that is off by default",
    ("mamba_radix_cache_strategy", "extra_buffer"): "a track buffer reserved for every running request",
    ("mamba_radix_cache_strategy", "extra_buffer_lazy"): ("needs the overlap scheduler"),
    ("mamba_radix_cache_strategy", "no_buffer"): "no track buffer",
    ("disable_overlap_schedule", True): "no overlap scheduler: lower decode throughput",
    ("disable_overlap_schedule", False): "the overlap scheduler is on again",
    ("page_size", 1): "KV is handed out token by token",
    ("disable_radix_cache", True): "no prefix is reused",
    ("mamba_ssm_dtype", "bfloat16"): "a less precise state",
    ("kv_cache_dtype", "fp8_e4m3"): "a less precise KV cache",
}
DCP_PRICE = "ranks exchange attention in every decode step, for each holds 1/{} of the tokens"
# What is dearer comes later: what nobody notices, what costs speed, what recomputes prefixes, what shifts outputs.
DEARNESS: tuple[tuple[str, Any], ...] = (
    ("disable_overlap_schedule", False),
    ("skip_decode_lock", True),
    ("mamba_radix_cache_strategy", "extra_buffer"),
    ("mamba_radix_cache_strategy", "extra_buffer_lazy"),
    ("mamba_radix_cache_strategy", "no_buffer"),
    ("page_size", 1),
    ("dcp_size", None),  # at any size
    ("disable_overlap_schedule", True),
    ("disable_radix_cache", True),
    ("kv_cache_dtype", "fp8_e4m3"),
    ("mamba_ssm_dtype", "bfloat16"),
)
KEPT = 4  # answers, 180 KB each: the parts of a page ask for the same one
DCP_SIZES = tuple(2**power for power in range(1, 7) if 2**power <= MAX_DCP)


class Way(BaseModel):
    """The deployment that is asked about, or one that differs from it."""

    model_config = ConfigDict(frozen=True)

    scenario: SkipValidation[Scenario]
    resolved: SkipValidation[Resolved] = Field(exclude=True, repr=False)
    axes: tuple[Axis, ...]
    """What differs; empty for the deployment as it stands."""
    S: int
    """State slots [slots per running request]."""
    flags: tuple[str, ...]
    """Flags and environment variables to add or change, as they are typed."""
    price: str
    """What it costs besides accuracy; empty as it stands."""
    gate: str
    """The accuracy gate in one sentence; empty where there is none."""
    dearness: tuple[int, ...]
    """The places in DEARNESS of all that differs, the dearest first: of two ways the lesser is the cheaper one."""

    def cost(self, most: int) -> tuple[tuple[int, ...], int, int]:
        """What to sort ways by: what they cost, a larger dcp_size more, then the `most` they run [requests]."""
        return self.dearness, self.scenario.dcp_size, -most

    @property
    def words(self) -> str:
        """The way in one line."""
        return f"{', '.join(self.flags) or 'as set'} (S = {self.S})"


@lru_cache(maxsize=KEPT)
def ways(scenario: Scenario) -> tuple[Way, ...]:
    """As it stands, then fewer slots per request, DCP, narrower dtypes, and these with either: for each S the way to it
    that changes least; each at the low end of its own estimate, where `rest` is one. Raises RefusedError where the
    flags that stand are refused.
    """
    here = _way(resolve(for_flags(scenario)), {})
    slots = tuple(_fewer_slots(scenario, here.S))
    least = {way.S: way for way in reversed(slots)}  # of two ways to one S the first is kept
    dtypes = tuple(_narrower(here.resolved))
    both = (
        _changed(scenario, _differences(scenario, way.scenario) | values)
        for way in reversed(least.values())
        for values in dtypes
    )
    sizes = tuple({"dcp_size": size} for size in DCP_SIZES if size > scenario.dcp_size)
    alone = (_changed(scenario, values) for values in (*sizes, *dtypes))
    sharded = (_changed(scenario, size | values) for size in sizes for values in dtypes)
    return (here, *slots, *filter(None, alone), *filter(None, both), *filter(None, sharded))


def _fewer_slots(scenario: Scenario, S: int) -> Iterator[Way]:
    """Every strategy and skip that the engine takes here and that holds fewer slots, once each."""
    seen = set()
    for values in chain.from_iterable((strategy, strategy | SKIP) for strategy in STRATEGIES):
        differs = _differing(scenario, values)
        resolved = _resolved(scenario, differs)
        if resolved is None or resolved.S >= S:
            continue
        what = (resolved.strategy, resolved.radix_cache, resolved.overlap, resolved.S)
        if what not in seen:
            seen.add(what)
            yield _way(resolved, differs)


def _narrower(resolved: Resolved) -> Iterator[dict[str, Any]]:
    """bfloat16 for a wider SSM state, fp8 for wider KV, and both."""
    scenario = resolved.scenario
    ssm: dict[str, Any] = {"mamba_ssm_dtype": "bfloat16"}
    kv: dict[str, Any] = {"kv_cache_dtype": "fp8_e4m3"}
    wide_state = STATE_ITEMSIZE[scenario.mamba_ssm_dtype] > STATE_ITEMSIZE["bfloat16"] and resolved.costs.ssm > 0
    wide_kv = KV_ITEMSIZE[scenario.kv_cache_dtype] > KV_ITEMSIZE["fp8_e4m3"]
    if wide_state:
        yield ssm
    if wide_kv:
        yield kv
    if wide_state and wide_kv:
        yield ssm | kv


def _changed(scenario: Scenario, values: dict[str, Any]) -> Way | None:
    """The way that sets such values; None where nothing differs, or an input or the engine does not allow it."""
    differs = _differing(scenario, values)
    resolved = _resolved(scenario, differs)
    return None if resolved is None else _way(resolved, differs)


def _differing(scenario: Scenario, values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if getattr(scenario, name) != value}


def _resolved(scenario: Scenario, differs: dict[str, Any]) -> Resolved | None:
    other = changed(scenario, **differs) if differs else None
    if not isinstance(other, Scenario):
        return None
    try:
        return rank_of(for_flags(other)).resolved
    except RefusedError:
        return None


def _differences(before: Scenario, after: Scenario) -> dict[str, Any]:
    names = {name for name, _ in PRICES}
    return {name: getattr(after, name) for name in sorted(names) if getattr(after, name) != getattr(before, name)}


def _way(resolved: Resolved, differs: dict[str, Any]) -> Way:
    scenario = resolved.scenario
    gates = (
        *(ssm_gate(scenario) if "mamba_ssm_dtype" in differs else ()),
        *(kv_gate(scenario) if "kv_cache_dtype" in differs else ()),
    )
    return Way(
        scenario=scenario,
        resolved=resolved,
        axes=tuple(_axes(differs)),
        S=resolved.S,
        flags=tuple(flag_text(name, value, scenario.release) for name, value in differs.items()),
        price="; ".join(_price(name, value) for name, value in differs.items()),
        gate=validate_words(gates) if gates else "",
        dearness=tuple(sorted((_dear(name, value) for name, value in differs.items()), reverse=True)),
    )


def _price(name: str, value: Any) -> str:
    return DCP_PRICE.format(value) if name == "dcp_size" else PRICES[name, value]


def _dear(name: str, value: Any) -> int:
    return DEARNESS.index((name, None if name == "dcp_size" else value))


def _axes(differs: dict[str, Any]) -> Iterator[Axis]:
    if differs.keys() - {"mamba_ssm_dtype", "kv_cache_dtype", "dcp_size"}:
        yield "slots per request"
    if "dcp_size" in differs:
        yield "DCP"
    if "mamba_ssm_dtype" in differs:
        yield "SSM dtype"
    if "kv_cache_dtype" in differs:
        yield "KV dtype"
