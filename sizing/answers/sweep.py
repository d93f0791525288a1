"""What runs over a grid of two inputs: at every cell the integer that `solve` gives, and where the engine refuses.

L, r, rest and the pin are numbers that the rules take as arrays, so a grid of two of them is one numpy call. Every
other input decides more than one number (S, the bytes, which rules apply): each of its values is a scenario of its
own, solved over the whole other axis at once.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict

from sizing.answers.band import for_flags
from sizing.answers.curves import DOUBLINGS, stepped_end, stepped_lengths
from sizing.answers.optimum import r_star
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.frames import REQUESTS, frame_of
from sizing.basics.numeric import divisors
from sizing.basics.problems import RefusedError
from sizing.basics.units import flag_ratio
from sizing.engine.pools import pools_from_slots, running, starts
from sizing.engine.rank import rank_as_set, rank_of
from sizing.engine.resolved import Rank
from sizing.engine.slots import pin_divisor, ratio_is_ignored, slots_taken, slots_unpinned
from sizing.scenario.inputs import MAX_DCP, MAX_REQUESTS, Scenario, changed, label, named_with_unit

if TYPE_CHECKING:
    from pandas import DataFrame

SweepInput = Literal[
    "L",
    "mamba_full_memory_ratio",
    "rest_gib",
    "max_mamba_cache_size",
    "max_running_requests",
    "D",
    "dcp_size",
    "attn_dp_size",
    "page_size",
    "mamba_ssm_dtype",
    "kv_cache_dtype",
]
RATIO: Final = "mamba_full_memory_ratio"
PIN: Final = "max_mamba_cache_size"
ARRAYS = ("L", RATIO, "rest_gib", PIN)  # what the rules take as arrays
CATEGORIES: dict[str, tuple[str, ...]] = {
    "mamba_ssm_dtype": get_args(StateDtype),
    "kv_cache_dtype": get_args(KvDtype),
}
# Neither a check of the scenario nor a byte of it depends on these: a copy stands for a whole new reading.
COPIED = ("D", "max_running_requests", "page_size")

POINTS = 200  # values on an axis where none are given, about
REACH = 40  # an axis of ratios goes this many times below and above what is set and r*
REST_REACH = 4  # an axis of rest or of a pin goes this many times below and above what is set
DRAFTS = range(17)
PAGES = tuple(2**power for power in range(9))


class Axis(BaseModel):
    """One input and the values it takes, rising where they are numbers."""

    model_config = ConfigDict(frozen=True)

    name: SweepInput
    values: tuple[int | float | str, ...]

    @property
    def label(self) -> str:
        """What a user calls the input."""
        return label(self.name)

    @property
    def is_category(self) -> bool:
        """Whether its values are names."""
        return self.name in CATEGORIES


class Sweep(BaseModel):
    """A grid solved. Arrays are [values of y, values of x]; requests are per rank, as `Split.runs` is."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    scenario: Scenario
    """The deployment, split as the axes ask: by ratio or by pin where one of them is swept."""
    x: Axis
    y: Axis
    runs: Any
    """What runs at once, 0 where nothing does."""
    refused: Any
    """Where the engine refuses to start, or the two values do not go together."""
    ridge: tuple[float | None, ...] | None
    """r* [-] for each value of the other axis where one axis is the ratio, None where the engine ignores the ratio or
    refuses the flags; None for all where there is no such value."""

    def frame(self) -> "DataFrame":
        """One row a cell, x quickest: both values, what runs, whether it is refused, and r* where a ratio is swept."""
        down, across = len(self.y.values), len(self.x.values)
        columns: dict[str, Any] = {
            named_with_unit(self.x.name): [*self.x.values] * down,
            named_with_unit(self.y.name): [value for value in self.y.values for _ in range(across)],
            f"runs [{REQUESTS}]": self.runs.ravel(),
            "refused": self.refused.ravel(),
        }
        if self.ridge is not None:
            ridge = np.array([np.nan if ratio is None else ratio for ratio in self.ridge])
            columns["r_star [-]"] = np.repeat(ridge, across) if self.x.name == RATIO else np.tile(ridge, down)
        return frame_of(columns)


def sweep(scenario: Scenario, x: Axis, y: Axis) -> Sweep:
    """What runs for every pair of values. Raises ValueError where the two axes cannot be swept together."""
    base = _split_by(scenario, x, y)
    shape = (len(y.values), len(x.values))
    runs, refused = np.zeros(shape, np.int32), np.ones(shape, np.bool_)
    arrays: dict[str, Any] = {axis.name: _array(axis, along) for axis, along in ((x, 1), (y, 0)) if axis.name in ARRAYS}
    for where, cell in _scenarios(base, x, y):
        solved = _solved(cell, arrays)
        if solved is not None:
            found, starts = solved
            runs[where], refused[where] = found, ~starts
    return Sweep(scenario=base, x=x, y=y, runs=runs, refused=refused, ridge=_ridge(base, x, y))


def axis_of(scenario: Scenario, name: SweepInput, points: int = POINTS) -> Axis:
    """Values for an input around what is set: even on a logarithmic axis for numbers that may be anything, else all
    that are usual. What is set is one of them.
    """
    own = getattr(scenario, name)
    usual: dict[str, Callable[[], Sequence[Any]]] = {
        "L": lambda: stepped_lengths(max(points // DOUBLINGS, 1)),
        RATIO: lambda: _ratios(scenario, points),
        "rest_gib": lambda: [round(value, 3) for value in _around(max(own, 1), points)],
        PIN: lambda: _whole(*_edges(own or _slots(scenario)), points),
        "max_running_requests": lambda: _whole(*_edges(own or _requests(scenario)), points),
        "D": lambda: DRAFTS,
        "dcp_size": lambda: divisors(scenario.attn_tp_size, MAX_DCP),
        "attn_dp_size": lambda: divisors(scenario.tp_size, scenario.tp_size),
        "page_size": lambda: PAGES,
    }
    if name in CATEGORIES:
        return Axis(name=name, values=CATEGORIES[name])
    values = {*usual[name](), *([] if own is None else [own])}
    return Axis(name=name, values=tuple(sorted(values)))


def _whole(low: float, high: float, points: int) -> list[int]:
    return [int(value) for value in np.rint(np.geomspace(max(low, 1), high, points))]


def _around(value: float, points: int) -> list[float]:
    low, high = _edges(value)
    return [float(step) for step in np.geomspace(low, high, points)]


def _edges(value: float) -> tuple[float, float]:
    return value / REST_REACH, min(value * REST_REACH, MAX_REQUESTS)


def _ratios(scenario: Scenario, points: int) -> list[float]:
    """Numbers that can be typed (five digits) around the ratio that is set and r* at the scenario's L."""
    around = [scenario.mamba_full_memory_ratio, flag_ratio(float(r_star(rank_of(scenario), scenario.L)))]
    low, high = stepped_end(min(around) / REACH, math.floor), stepped_end(max(around) * REACH, math.ceil)
    return [flag_ratio(ratio) for ratio in np.geomspace(low, high, points)]


def _slots(scenario: Scenario) -> int:
    """K of the deployment as it is set now, at least one request's."""
    rank = rank_of(scenario)
    slots = max(int(slots_unpinned(rank, scenario.mamba_full_memory_ratio)), rank.request_slots.slots(1))
    return slots * pin_divisor(rank.resolved)


def _requests(scenario: Scenario) -> int:
    """What the state pool admits now."""
    return max(rank_of(scenario).request_slots.requests(_slots(scenario)), 1)


def _split_by(scenario: Scenario, x: Axis, y: Axis) -> Scenario:
    """The scenario with its split decided by the axis that decides one."""
    names = {x.name, y.name}
    if len(names) == 1:
        raise ValueError(f"Both axes are {x.label}: choose two inputs.")
    if names == {RATIO, PIN}:
        raise ValueError("A pin overrides the ratio: sweep one of the two.")
    if RATIO in names:
        return scenario.model_copy(update={"split": "ratio"})
    if PIN in names:
        return scenario.model_copy(update={"split": "pin", "max_mamba_cache_size": scenario.max_mamba_cache_size or 1})
    return scenario


def _array(axis: Axis, along: int) -> Any:
    """The values as a row (x) or as a column (y), which broadcast against each other."""
    values = np.array(axis.values)
    return values.reshape(1, -1) if along else values.reshape(-1, 1)


def _scenarios(base: Scenario, x: Axis, y: Axis) -> Iterator[tuple[Any, Scenario]]:
    """Every scenario that differs in more than an array, with the part of the grid that it fills."""
    rows: list[tuple[Any, Any]] = [(slice(None), None)] if y.name in ARRAYS else list(enumerate(y.values))
    columns: list[tuple[Any, Any]] = [(slice(None), None)] if x.name in ARRAYS else list(enumerate(x.values))
    for (row, down), (column, across) in product(rows, columns):
        values: dict[str, Any] = {axis.name: value for axis, value in ((y, down), (x, across)) if value is not None}
        found = _with(base, values)
        if isinstance(found, Scenario):
            # A whole row or column keeps its second dimension, so that arrays of either axis fit into it.
            yield (_kept(row), _kept(column)), found


def _kept(at: Any) -> Any:
    return at if isinstance(at, slice) else slice(at, at + 1)


def _with(base: Scenario, values: dict[str, Any]) -> Any:
    if all(name in COPIED for name in values):
        return base.model_copy(update=values)
    if base.rest_source == "estimated":  # anew at each value: a width moves the weights
        return changed(base, **values)
    # One input moves, rest among those that stand: the sweep says so, whatever a width would do to the weights.
    return changed(base, **({"rest_gib": base.rest_gib, "rest_source": base.rest_source} | values))


def _solved(scenario: Scenario, arrays: dict[str, Any]) -> tuple[Any, Any] | None:
    """What runs, and where the engine starts, over the arrays, at the low end of an estimated `rest`; None where it
    refuses the flags.
    """
    try:
        rank = rank_as_set(for_flags(scenario))
    except RefusedError:
        return None
    rank = rank._replace(rest_gib=arrays.get("rest_gib", rank.rest_gib))
    L = arrays.get("L", scenario.L)
    ratio = ratios_over(scenario, rank, L, arrays)
    pools = pools_from_slots(rank, slots_taken(rank, ratio, arrays.get(PIN)))
    return running(pools, L), starts(pools)


def ratios_over(scenario: Scenario, rank: Rank, L: Any, arrays: dict[str, Any]) -> Any:
    """The ratio [-] that is set, or r* as it is typed, over arrays."""
    if scenario.split != "balanced":
        return arrays.get(RATIO, scenario.mamba_full_memory_ratio)
    exact = np.asarray(r_star(rank, L))
    return np.array([flag_ratio(value) for value in exact.flat]).reshape(exact.shape)


def _ridge(base: Scenario, x: Axis, y: Axis) -> tuple[float | None, ...] | None:
    """r* [-] along the axis that is not the ratio."""
    if RATIO not in (x.name, y.name):
        return None
    other = y if x.name == RATIO else x
    found = tuple(_ridge_at(base, other.name, value) for value in other.values)
    return found if any(ratio is not None for ratio in found) else None


def _ridge_at(base: Scenario, name: str, value: Any) -> float | None:
    found = base if name in ARRAYS else _with(base, {name: value})
    if not isinstance(found, Scenario):
        return None
    try:
        rank = rank_of(found)
    except RefusedError:
        return None
    if ratio_is_ignored(rank.resolved):
        return None
    return float(r_star(rank, value if name == "L" else found.L))
