"""What runs of real traffic: each split with what its requests hold, at a chosen risk that KV overflows.

The state pool is whole slots that are reserved: a request beyond the clamp waits. KV is handed out as requests grow:
the engine admits up to its max_running_requests, and when KV overflows it retracts a request, whose tokens are then
computed anew. So one is a number and the other a probability.
"""

from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from sizing.answers.band import for_flags
from sizing.answers.fleet import AS_SET, BALANCED, BEST, Carrier, flag_now, with_best
from sizing.answers.optimum import Optimum, best_split
from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import Refusal
from sizing.basics.units import flag_ratio, ratio_text, stated_ratio_text
from sizing.engine.rank import rank_of
from sizing.engine.slots import pin_from_slots, pin_is_ignored, slots_unpinned
from sizing.engine.split import Split, solve_split
from sizing.releases.flags import PIN, RATIO
from sizing.scenario.inputs import Scenario
from sizing.traffic.admission import Admitting, Declared, admitting
from sizing.traffic.kv_in_flight import KvInFlight, demand, kv_in_flight, kv_needed, most_in_flight, reach
from sizing.traffic.mix import Mix

# The model leaves out that a retracted request stands still while others go on. tests/test_traffic_replay.py replays
# five mixes token by token and asserts that the share of time lies within this factor, either way. No request there is
# longer than a third of KV; with one longer than half of it replays overflowed up to twice as often.
MODEL_ERROR = 1.5  # [-]
LONG = 0.5  # of KV: beyond it the factor is no longer kept

# How far the most that KV carries is sought: beyond it other limits bind long before.
SOUGHT, BEYOND = 2_000, 4  # requests; times what is admitted

WayName = Literal["as set", "best for this traffic", "r* of the mean length"]


class Served(BaseModel):
    """One split with one kind of traffic. Requests and tokens are per rank."""

    model_config = ConfigDict(frozen=True)

    admitted: int
    """The engine's max_running_requests."""
    by_kv: int
    """The most in flight whose KV overflows at most as often as the risk."""
    or_more: bool
    """Whether by_kv is where the search ended: KV carries at least so many."""
    by_kv_least: int
    by_kv_most: int
    """The same where the model is wrong by MODEL_ERROR, to either side."""
    overflow: float
    """The share of time [-] in which KV does not hold all that are admitted; 0 below 1 in a million."""
    missing: float
    """KV that is missing in the mean while it overflows [requests of mean size]; 0 where it never does."""

    @property
    def runs(self) -> int:
        """What runs at the risk [requests per rank]."""
        return min(self.admitted, self.by_kv)


class Way(BaseModel):
    """One way to split `rest` with this traffic and what becomes of it when the traffic shifts."""

    model_config = ConfigDict(frozen=True)

    name: WayName
    flag: str
    """What to set, as it is typed."""
    split: Split
    now: Served
    """What KV holds."""
    admitting: Served | None
    """The same with what the engine keeps free at admission; None where no max_new_tokens is declared."""
    tail_doubled: Served
    outputs_doubled: Served | None
    """None where input and output are not known apart."""

    @property
    def served(self) -> Served:
        """What runs: as the engine admits, where it is declared what requests may generate."""
        return self.admitting or self.now


class Traffic(NamedTuple):
    """What real traffic does to one deployment."""

    sizing: Sizing
    """The deployment solved at the mean length of the traffic."""
    mix: Mix
    one: KvInFlight
    """What one request in flight holds."""
    risk: float
    """The share of time [-] in which KV may overflow."""
    optimum: Optimum | None
    """The best split for this traffic at this risk; None where none runs one request."""
    ways: tuple[Way, ...]
    """The split that is set, the best for this traffic, and r* of the mean; what the engine refuses is left out."""
    whole: int | None
    """What the split that is set would run with every request counted at its whole length [requests per rank]."""
    never: int
    """Requests of the traffic that are longer than the KV pool of the split that is set: none of them ever ends."""
    declared: Declared | None = None
    """What requests declare as max_new_tokens; None: nothing is kept free for it here."""

    def way(self, name: WayName) -> Way | None:
        """The way of that name; None where the engine refuses it."""
        return next((way for way in self.ways if way.name == name), None)


def traffic_of(scenario: Scenario, mix: Mix, risk: float, declared: Declared | None = None) -> Traffic:
    """Traffic on a deployment, whose L becomes the mean length; `declared` is what requests may generate. Raises
    RefusedError where its flags are refused.
    """
    if mix.outputs is None:
        declared = None
    scenario, one, risks = _at_mean(for_flags(scenario), mix), kv_in_flight(mix.spans), around(risk)
    sizing = solve(scenario)
    room = admitting(one, mix, declared, page_of(sizing))
    optimum = best_split(
        rank_of(scenario),
        lambda requests: kv_needed(room.one, requests, risks)[1] + room.extra,
        flag_ratio(sizing.r_star),
    )
    now = sizing.now if isinstance(sizing.now, Split) else None
    return Traffic(
        sizing=sizing,
        mix=mix,
        one=one,
        risk=risk,
        optimum=optimum,
        ways=_ways(sizing, optimum, mix, risk, declared),
        whole=_whole(now, mix, risk) if now else None,
        declared=declared,
        never=int(mix.lengths.counts[mix.lengths.values > now.kv_tokens].sum()) if now else 0,
    )


def busiest_of(traffic: Traffic) -> Traffic | None:
    """The same deployment solved for the requests of the busiest hour; None where the file has no such hour."""
    busiest = traffic.mix.busiest
    return None if busiest is None else traffic_of(traffic.sizing.scenario, busiest, traffic.risk, traffic.declared)


def _whole(split: Split, mix: Mix, risk: float) -> int:
    carried = most_in_flight(kv_in_flight(mix.spans, whole=True), split.kv_tokens, (risk,), sought=split.admitted)
    return min(split.admitted, carried)


def _at_mean(scenario: Scenario, mix: Mix) -> Scenario:
    """The scenario with the mean length as L; a split that is balanced stays as it was balanced at its own L."""
    found: dict[str, Any] = {"L": max(1, round(mix.lengths.mean))}
    if scenario.split == "balanced":
        found |= {"split": "ratio", "mamba_full_memory_ratio": solve(scenario).ratio_now}
    return scenario.model_copy(update=found)


def around(risk: float) -> tuple[float, float, float]:
    """The risk [-] and what it may be where the model is wrong, either way."""
    return risk / MODEL_ERROR, risk, risk * MODEL_ERROR


def page_of(sizing: Sizing) -> int:
    """Tokens of one page, logical."""
    return int(rank_of(sizing.scenario).page_size) * sizing.scenario.dcp_size


def serve(split: Split, one: KvInFlight, risk: float, extra: int = 0) -> Served:
    """What runs of requests that hold what `one` says; `risk` is the share of time [-] in which KV may overflow, and
    `extra` tokens of it are kept free.
    """
    tokens, sought = max(split.kv_tokens - extra, 0), max(SOUGHT, BEYOND * split.admitted)
    overflow, missing = _short(one, split.admitted, tokens)
    least, by_kv, most = (most_in_flight(one, tokens, around(risk), at, sought) for at in range(3))
    return Served(
        admitted=split.admitted,
        by_kv=by_kv,
        or_more=one.deviation > 0 and by_kv == sought,
        by_kv_least=least,
        by_kv_most=most,
        overflow=overflow,
        missing=missing / one.mean,
    )


def _short(one: KvInFlight, requests: int, tokens: int) -> tuple[float, float]:
    """The share of time [-] in which so many want more than `tokens`, and how much more in the mean then [tokens]."""
    if one.deviation == 0:  # no chance in it, and so small a deviation would ask for the longest transforms
        more = max(requests * one.most - tokens, 0)
        return float(more > 0), float(more)
    found = demand(one, requests, max(tokens, reach(one, requests)))
    overflow = found.overflow(tokens)
    return overflow, found.missing(tokens) / overflow if overflow else 0.0


def _ways(sizing: Sizing, optimum: Optimum | None, mix: Mix, risk: float, declared: Declared | None) -> tuple[Way, ...]:
    """Every way that the engine accepts, also where two of them are the same."""
    found: tuple[tuple[WayName, str | None, object], ...] = (
        ("as set", flag_now(sizing), sizing.now),
        ("best for this traffic", *_best(sizing, optimum)),
        ("r* of the mean length", f"{RATIO} {ratio_text(flag_ratio(sizing.r_star))}", sizing.balanced),
    )
    room = admitting(kv_in_flight(mix.spans), mix, declared, page_of(sizing)) if declared else None
    return tuple(
        _way(name, flag, split, mix, risk, room) for name, flag, split in found if flag and isinstance(split, Split)
    )


def _best(sizing: Sizing, optimum: Optimum | None) -> tuple[str | None, Split | Refusal | None]:
    """The safe pin of the optimum; in a release that ignores pins a ratio of the range that runs as many."""
    if optimum is None:
        return None, None
    rank = rank_of(sizing.scenario)
    if not pin_is_ignored(sizing.resolved):
        flag = f"{PIN} {pin_from_slots(sizing.resolved, optimum.pin)}"
        return flag, solve_split(rank, flag_ratio(sizing.r_star), optimum.pin, pinned=True)
    ratio = optimum.ratio
    if ratio is None:
        return None, None
    return f"{RATIO} {stated_ratio_text(ratio)}", solve_split(rank, ratio, slots_unpinned(rank, ratio))


def _way(name: WayName, flag: str, split: Split, mix: Mix, risk: float, room: Admitting | None) -> Way:
    longer, outputs = kv_in_flight(mix.tail_doubled), mix.outputs_doubled
    return Way(
        name=name,
        flag=flag,
        split=split,
        now=serve(split, kv_in_flight(mix.spans), risk),
        admitting=serve(split, room.one, risk, room.extra) if room else None,
        tail_doubled=serve(split, longer, risk),
        outputs_doubled=serve(split, kv_in_flight(outputs), risk) if outputs else None,
    )


_IN_A_FLEET: dict[WayName, str] = {"as set": AS_SET, "r* of the mean length": BALANCED, "best for this traffic": BEST}


def carriers_of(traffic: Traffic) -> tuple[Carrier, ...]:
    """The ways to set a server for this traffic, with what each runs at the risk; the best of them is the last."""
    ranks = traffic.sizing.scenario.attn_dp_size
    found = [
        Carrier(name, way.flag, way.served.runs * ranks)
        for of, name in _IN_A_FLEET.items()
        for way in traffic.ways
        if way.name == of
    ]
    stated = [carrier for carrier in found if carrier.name != BEST]
    return with_best(stated, [carrier for carrier in found if carrier.name == BEST])
