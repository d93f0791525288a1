"""Published measurements and the scenario that predicts each: one table, for a test and for the page.

Source of every measured number: compute-mamba-ratio.md (sgl-project/sglang#32763). It names no model; its
two log lines are what Kimi-K3 at TP8 prints, character for character (model-geometry.md section 5).
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict

from sizing.answers.solve import solve
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import GIB, count, number
from sizing.engine.charges import slots_from_ratio
from sizing.engine.kv import kv_cap
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import rank_of
from sizing.engine.resolve import resolution
from sizing.engine.split import Split
from sizing.scenario.inputs import Scenario
from sizing.specification import token_equiv

# The names are those of Split, so a measured number finds the predicted one by itself.
Quantity = Literal["slots", "kv_rows", "admitted", "clamp", "kv_cap"]

# No `rest` is published. 28.529 is the only value, to three decimals, that gives the slots and the
# tokens of the TP8 log; 27.64 gives the slots of both DCP8 logs (model-geometry.md section 5); 28.29 gives
# both pairs that the specification names for DCP8 with extra_buffer_lazy.
TP8_REST_GIB = Scenario().rest_gib
DCP8_REST_GIB = 27.64
LAZY_DCP8_REST_GIB = 28.29

# compute-mamba-ratio.md, "Reference r": L [tokens] to r [-] as printed, with these two constants.
PRINTED_RATIOS = {2048: "10.0", 4096: "5.0", 8192: "2.5", 32_768: "0.62", 65_536: "0.31", 131_072: "0.16"}
PRINTED_TOKEN_EQUIV = 4080
PRINTED_S = 5


class Reading(NamedTuple):
    """One number that somebody measured [slots, tokens per rank or requests]."""

    quantity: Quantity
    measured: int


class Measured(BaseModel):
    """One measured run: what predicts it, what was read, where that is written and what may be off."""

    model_config = ConfigDict(frozen=True)

    name: str
    scenario: Scenario
    readings: tuple[Reading, ...]
    source: str
    may_be_off: str


class Beside(NamedTuple):
    """One quantity of one run as we predict it now and as it was measured."""

    quantity: Quantity
    predicted: int
    measured: int


_LOG_TABLE = "table of three boot logs"
_FITTED_TP8 = (
    "rest is fitted to the tokens of this log; its slots and its 51 requests are predictions. "
    "The ratio is not printed either: 0.9 is the engine's default."
)
_FITTED_DCP8 = (
    "rest is fitted to the slots, but one value serves both DCP8 logs. It is "
    f"{number(TP8_REST_GIB - DCP8_REST_GIB)} GiB below the TP8 log's; what takes that memory is not "
    "published."
)
_BORROWED = (
    f"No rest is published for this run: the {TP8_REST_GIB} GiB of the TP8 boot log stand in. "
    "Another memory fraction or build could explain the difference."
)

MEASURED = (
    Measured(
        name="TP8, default ratio",
        scenario=Scenario(name="TP8, default ratio", rest_gib=TP8_REST_GIB),
        readings=(Reading("slots", 257), Reading("kv_rows", 1_167_552), Reading("admitted", 51)),
        source=f"{_LOG_TABLE}; tokens: log lines of the worked example",
        may_be_off=_FITTED_TP8,
    ),
    Measured(
        name="DCP8, r = 5.97",
        scenario=Scenario(name="DCP8, r = 5.97", rest_gib=DCP8_REST_GIB, dcp_size=8, mamba_full_memory_ratio=5.97),
        readings=(Reading("slots", 451), Reading("admitted", 90)),
        source=_LOG_TABLE,
        may_be_off=_FITTED_DCP8,
    ),
    Measured(
        name="DCP8, r = 9",
        scenario=Scenario(name="DCP8, r = 9", rest_gib=DCP8_REST_GIB, dcp_size=8, mamba_full_memory_ratio=9),
        readings=(Reading("slots", 474), Reading("admitted", 94)),
        source=_LOG_TABLE,
        may_be_off=_FITTED_DCP8,
    ),
    Measured(
        name="TP8 lazy, r = 1.8",
        scenario=Scenario(
            name="TP8 lazy, r = 1.8",
            rest_gib=TP8_REST_GIB,
            mamba_full_memory_ratio=1.8,
            mamba_radix_cache_strategy="extra_buffer_lazy",
        ),
        readings=(Reading("clamp", 88), Reading("kv_cap", 87)),
        source="balanced example at L = 9,216",
        may_be_off=_BORROWED,
    ),
    Measured(
        name="DCP8 lazy, r = 14",
        scenario=Scenario(
            name="DCP8 lazy, r = 14",
            rest_gib=TP8_REST_GIB,
            dcp_size=8,
            mamba_full_memory_ratio=14,
            mamba_radix_cache_strategy="extra_buffer_lazy",
        ),
        readings=(Reading("clamp", 125), Reading("kv_cap", 129)),
        source="balanced example at L = 9,216",
        may_be_off=f"{_BORROWED} A rest of {LAZY_DCP8_REST_GIB} GiB gives this pair exactly, and also the "
        "clamp 86 and cap 683 that the specification names for r = 1.8 under DCP8.",
    ),
)


def beside(run: Measured) -> tuple[Beside, ...]:
    """Predicted beside measured for one run, solved now. Raises RefusedError where the engine refuses."""
    now = solve(run.scenario).now
    if isinstance(now, Refusal):
        raise RefusedError(now)
    return tuple(Beside(name, _of(now, name), measured) for name, measured in run.readings)


def _of(split: Split, quantity: Quantity) -> int:
    return int(getattr(split, quantity))


def rest_that_fits(run: Measured) -> tuple[float, float] | None:
    """The least and the most `rest` [GiB per rank] that give every measured number of a run exactly.

    Searched within 5 % of the scenario's, in steps of 0.001 GiB. Between the two ends a few values do not
    fit: where one more slot does, KV loses its bytes. None when no single rest gives them all: then the
    rules, not the memory, would be wrong.
    """
    scenario = run.scenario
    steps = round(scenario.rest_gib * 50)  # 5 % in steps of 0.001
    grid = np.round(scenario.rest_gib + np.arange(-steps, steps + 1) / 1000, 3)
    rank = rank_of(scenario)._replace(rest_gib=grid)
    pools = pools_from_slots(rank, slots_from_ratio(rank, scenario.mamba_full_memory_ratio))
    found: dict[str, Any] = {**pools._asdict(), "kv_cap": kv_cap(pools.kv_tokens, scenario.L)}
    fits = grid[np.all([found[name] == measured for name, measured in run.readings], axis=0)]
    return (float(fits[0]), float(fits[-1])) if fits.size else None


class BootLog(NamedTuple):
    """The sizes two log lines print; the engine writes GB and means GiB."""

    slots: int
    conv_gib: float
    ssm_gib: float
    tokens: int
    kv_gib: float
    page_size: int
    """Not in the two lines; 64 divides the tokens and is what the worked example assumes."""


class ByteConstants(NamedTuple):
    """The two constants [bytes per slot, bytes per token, per rank] that one reading of a log gives."""

    state_bytes_per_slot: float
    kv_bytes_per_token: float

    @property
    def token_equiv(self) -> float:
        """KV tokens that one slot costs [tokens per slot]."""
        return token_equiv(self.state_bytes_per_slot, self.kv_bytes_per_token)


# compute-mamba-ratio.md, "Worked example", both lines.
WORKED_LOG = BootLog(slots=257, conv_gib=0.46, ssm_gib=13.04, tokens=1_167_552, kv_gib=15.03, page_size=64)


def read_as_specified(log: BootLog) -> ByteConstants:
    """X / N and Y / M, as compute-mamba-ratio.md reads a log; both printed sizes include padding."""
    return ByteConstants((log.conv_gib + log.ssm_gib) * GIB / log.slots, log.kv_gib * GIB / log.tokens)


def read_as_allocated(log: BootLog) -> ByteConstants:
    """X / (N + 1) and Y / (M + page), as the engine allocates (engine-sizing.md sections 2 and 3)."""
    state, kv = (log.conv_gib + log.ssm_gib) * GIB, log.kv_gib * GIB
    return ByteConstants(state / (log.slots + 1), kv / (log.tokens + log.page_size))


def printed_between(gib: float, lines: int, rows: int) -> tuple[float, float]:
    """The bytes of one row [bytes] that a size of so many printed numbers can stand for: two decimals are ±0.005."""
    slack = 0.005 * lines
    return (gib - slack) * GIB / rows, (gib + slack) * GIB / rows


def within_printed(scenario: Scenario) -> str | None:
    """That the boot log of the worked example agrees with this scenario's bytes; None for another deployment."""
    example, log = Scenario(), WORKED_LOG
    same = ("model", "tp_size", "attn_dp_size", "pp_size", "mamba_ssm_dtype", "mamba_conv_dtype", "kv_cache_dtype")
    if any(getattr(scenario, name) != getattr(example, name) for name in same):
        return None
    slot = printed_between(log.conv_gib + log.ssm_gib, 2, log.slots + 1)
    token = printed_between(log.kv_gib, 1, log.tokens + log.page_size)
    agree = slot[0] <= scenario.state_bytes_per_slot <= slot[1] and token[0] <= scenario.kv_bytes_per_token <= token[1]
    return (
        f"The boot log of the specification's worked example {'agrees' if agree else 'does not agree'}: "
        f"{log.conv_gib:.2f} + {log.ssm_gib:.2f} GiB over {count(log.slots)} + 1 slots is {count(round(slot[0]))} to "
        f"{count(round(slot[1]))} bytes, {log.kv_gib:.2f} GiB over {count(log.tokens)} + {log.page_size} tokens is "
        f"{number(token[0])} to {number(token[1])} bytes."
    )


def from_geometry() -> ByteConstants:
    """The same constants from the model's shape, exact to the byte (model-geometry.md section 5)."""
    example = Scenario()
    costs = resolution(example).costs
    return ByteConstants(costs.slot, costs.token)
