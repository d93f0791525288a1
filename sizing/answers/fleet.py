"""A fleet: how many equal servers carry what is wanted of all of them together, and what another split saves.

Requests in flight follow from an arrival rate and the time that each stays by Little's law (J. D. C. Little, A Proof
for the Queuing Formula L = lambda W, 1961). Where they come at random and none waits they are Poisson, however long
each stays (the M/G/infinity queue; L. Kleinrock, Queueing Systems 1, 1975).
"""

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from sizing.answers.band import at_low_end, for_flags
from sizing.answers.recommended import recommended
from sizing.answers.solve import Sizing
from sizing.basics.units import flag_ratio, ratio_text, stated_ratio_text
from sizing.engine.slots import is_pinned, ratio_is_ignored
from sizing.engine.split import Split
from sizing.releases.flags import PIN, RATIO
from sizing.releases.flags import REQUESTS as ASKED
from sizing.scenario.inputs import Real, Scenario, Whole
from sizing.scenario.rest import condition

MAX_USERS = 100_000_000  # requests at once
PEAK = 0.99  # [-] of the time
HOURS = 730  # of a month: 365 x 24 / 12
AS_SET, BALANCED, BEST = "as set", "balanced split", "best split found"

Amount = Annotated[Real, Field(gt=0, le=1e9, allow_inf_nan=False)]


class FleetWanted(BaseModel):
    """What is wanted of all servers together: requests in flight, or how often they come and how long they stay."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    users: Annotated[Whole, Field(ge=1, le=MAX_USERS)] | None = None
    """In flight at once [requests]."""
    arrival_rate: Amount | None = None
    """[requests/s]; alone it says how long each may stay on one server."""
    time_in_system: Amount | None = None
    """From the arrival of a request to its last token [s]."""
    gpu_hour: Amount | None = None
    """The price of a GPU hour, in a currency of the user's."""

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.time_in_system is not None and self.arrival_rate is None:
            raise ValueError("A time in system needs the arrival rate beside it: give both, or the requests at once.")
        if self.users is not None and self.arrival_rate is not None:
            raise ValueError("Requests at once follow from arrival rate and time in system: give one or the other.")
        if self.wanted > MAX_USERS:
            raise ValueError(f"Arrival rate x time in system is above {MAX_USERS:,} requests at once: correct one.")
        return self

    @property
    def wanted(self) -> int:
        """In flight at once [requests], rounded up; 0 where nothing is wanted."""
        if self.users is not None:
            return self.users
        if self.arrival_rate is None or self.time_in_system is None:
            return 0
        in_flight = Decimal(repr(self.arrival_rate)) * Decimal(repr(self.time_in_system))
        return int(in_flight.to_integral_value(ROUND_CEILING))


class Carrier(NamedTuple):
    """One way to set every server of a fleet."""

    name: str
    flag: str
    """What to set, as it is typed."""
    runs: int
    """What one server runs at once [requests of the deployment]."""


class Replicas(BaseModel):
    """How many servers of one setting carry what is wanted."""

    model_config = ConfigDict(frozen=True)

    name: str
    flag: str
    runs: int
    """What one server runs at once [requests]."""
    replicas: int | None
    """The fewest that carry what is wanted; None where one runs nothing."""
    gpus: int | None
    """Of all of them."""
    month: float | None
    """What they cost in a month of 730 hours; None without a price."""


class Fleet(BaseModel):
    """What is wanted of a fleet, and what each way of setting its servers takes."""

    model_config = ConfigDict(frozen=True)

    wanted: int
    """In flight at once [requests]."""
    gpus_each: int
    """Of one server: tp_size x pp_size; attention DP and DCP are within them."""
    rows: tuple[Replicas, ...]
    """As set, balanced and best, as far as the engine accepts them."""
    condition: str = ""
    """What they hold for, in brackets with a space before, where rest is an estimate."""

    def row(self, name: str) -> Replicas | None:
        """The row of that name."""
        return next((row for row in self.rows if row.name == name), None)

    @property
    def saved(self) -> int | None:
        """GPUs that the best split found takes fewer than what is set; None where one of them carries nothing."""
        now, best = self.row(AS_SET), self.row(BEST)
        return None if now is None or best is None or now.gpus is None or best.gpus is None else now.gpus - best.gpus

    @property
    def saved_a_month(self) -> float | None:
        """The same in money, for a month of 730 hours; None without a price."""
        now, best = self.row(AS_SET), self.row(BEST)
        if now is None or best is None or now.month is None or best.month is None:
            return None
        return now.month - best.month


def fleet_of(wanted: FleetWanted, carriers: Sequence[Carrier], scenario: Scenario) -> Fleet:
    """Servers and GPUs that carry what is wanted, for each way of setting them.

    >>> carriers = [Carrier("as set", "", 51), Carrier("best split found", "", 74)]
    >>> fleet = fleet_of(FleetWanted(users=2000, gpu_hour=2.5), carriers, Scenario(tp_size=8))
    >>> [(row.replicas, row.gpus) for row in fleet.rows], fleet.saved, fleet.saved_a_month
    ([(40, 320), (28, 224)], 96, 175200.0)
    """
    each = scenario.tp_size * scenario.pp_size
    return Fleet(
        wanted=wanted.wanted,
        gpus_each=each,
        rows=tuple(_replicas(wanted, carrier, each) for carrier in carriers),
        condition=condition(for_flags(scenario)),
    )


def _replicas(wanted: FleetWanted, carrier: Carrier, gpus_each: int) -> Replicas:
    replicas = -(-wanted.wanted // carrier.runs) if carrier.runs else None
    gpus = None if replicas is None else replicas * gpus_each
    month = None if gpus is None or wanted.gpu_hour is None else gpus * HOURS * wanted.gpu_hour
    return Replicas(**carrier._asdict(), replicas=replicas, gpus=gpus, month=month)


def carriers(sizing: Sizing) -> tuple[Carrier, ...]:
    """The ways to set a server whose requests are all of length L: as set, balanced, and what runs most, which is the
    recommended change unless another one runs more.

    What the engine refuses is left out. Where rest is an estimate they run at its low end.
    """
    sizing = at_low_end(sizing)
    scenario, found = sizing.scenario, []
    if isinstance(sizing.now, Split):
        found.append(_carrier(scenario, AS_SET, flag_now(sizing), sizing.now.runs))
    if isinstance(sizing.balanced, Split) and not ratio_is_ignored(sizing.resolved):
        flag = f"{RATIO} {ratio_text(flag_ratio(sizing.r_star))}"
        found.append(_carrier(scenario, BALANCED, flag, sizing.balanced.runs))
    best = recommended(sizing)
    return with_best(found, [_carrier(scenario, BEST, best.flag, best.after[0])] if best else [])


def with_best(stated: Sequence[Carrier], better: Sequence[Carrier]) -> tuple[Carrier, ...]:
    """The stated ways, and the best of all as one more row. Of equals the first counts, and `better` comes before
    `stated`.
    """
    every = [*better, *stated]
    if not every:
        return ()
    best = max(every, key=lambda carrier: carrier.runs)
    return (*stated, best._replace(name=BEST))


def flag_now(sizing: Sizing) -> str:
    """The flag that sets the split, as it is typed."""
    scenario = sizing.scenario
    if is_pinned(sizing.resolved):
        return f"{PIN} {scenario.max_mamba_cache_size}"
    if ratio_is_ignored(sizing.resolved):
        return f"{ASKED} {scenario.max_running_requests or 'unset'}"
    return f"{RATIO} {stated_ratio_text(sizing.ratio_now)}"


def _carrier(scenario: Scenario, name: str, flag: str, runs: int) -> Carrier:
    """A server whose attention-DP ranks each run `runs` requests."""
    return Carrier(name, flag, runs * scenario.attn_dp_size)


def overloaded(risk: float, replicas: int) -> float:
    """The share of time [-] in which at least one of the servers is short of KV, where each is for `risk` of the time.

    >>> round(overloaded(0.01, 40), 4)
    0.331
    """
    return 1 - float((1 - risk) ** replicas)


def peak_of(mean: float, share: float = PEAK) -> int:
    """The most in flight [requests] for `share` of the time [-]: the quantile of a Poisson number with this mean > 0.

    >>> peak_of(299.0), peak_of(0.001)
    (340, 0)
    """
    wide = 12 * math.sqrt(mean) + 40  # beyond it nothing counts in a double
    first = max(0, math.floor(mean - wide))
    counts = np.arange(first, math.ceil(mean + wide))
    steps = np.concatenate(([0.0], np.log(mean / counts[1:])))
    logs = np.cumsum(steps)
    chances = np.exp(logs - logs.max())
    reached = np.cumsum(chances) / chances.sum()
    return int(counts[np.searchsorted(reached, share)])


def longest_stay(arrival_rate: float, runs: int) -> float:
    """The longest mean time in system [s] at which a server that runs so many keeps up with so many requests/s.

    >>> longest_stay(3.0, 51)
    17.0
    """
    return runs / arrival_rate


def stated(values: dict[str, Any]) -> dict[str, Any]:
    """What was typed; empty boxes are left out."""
    return {name: value for name, value in values.items() if value not in (None, "")}
