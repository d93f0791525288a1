"""Sessions between turns: what they hold of both pools so that the next turn need not compute their context anew.

A session that waits keeps its KV and at least one state, that of its last token: KV without a state is of no use to a
linear layer. Both are held by the radix cache, unlocked, so a request that needs room evicts them, least recently used
first. States enter the cache at the end of a request and at the boundaries of a chunked prefill
(sgl-project/sglang#31230, #38000), so a session may hold more than one. Not modelled: contexts that sessions share
(each is counted whole), a host tier, and streaming sessions, which keep theirs locked (sgl-project/sglang#29099).
"""

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from sizing.answers.optimum import counts_tried
from sizing.answers.what_runs import kv_tokens_for
from sizing.basics.search import last_that_holds
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import asking, rank_of
from sizing.engine.requests import asked_divisor
from sizing.engine.slots import pin_from_slots, pin_is_ignored
from sizing.traffic.kv_in_flight import kv_needed
from sizing.traffic.running import Traffic, Way, around
from sizing.traffic.workload import Workload

Bound = Literal["concurrency", "residency, state pool", "residency, KV pool"]


class Residency(BaseModel):
    """Sessions between turns beside the requests that run, in one split. All numbers are per rank."""

    model_config = ConfigDict(frozen=True)

    sessions: int
    """How many wait."""
    slots_each: int
    tokens_each: int
    """What each holds [slots], [tokens]."""
    slots_left: int
    tokens_left: int
    """What the requests that run at the risk leave of either pool."""
    by_slots: int
    by_tokens: int
    """How many sessions each of the two holds."""
    beside: int
    """The requests that run at the risk while all sessions stay."""

    @property
    def resident(self) -> int:
        """How many sessions stay while as many requests run as can."""
        return min(self.sessions, self.by_slots, self.by_tokens)

    @property
    def bound(self) -> Bound:
        """What gives first: all sessions stay, or one of the pools is short for them."""
        if self.resident == self.sessions:
            return "concurrency"
        return "residency, state pool" if self.by_slots <= self.by_tokens else "residency, KV pool"


class Room(BaseModel):
    """The split that runs most with all sessions resident; both flags are needed, or requests take their slots."""

    model_config = ConfigDict(frozen=True)

    runs: int
    """[requests per rank]"""
    pin: int
    """--max-mamba-cache-size [slots of the deployment]"""
    asked: int
    """--max-running-requests [requests of the deployment]"""


def residency(traffic: Traffic, way: Way, workload: Workload) -> Residency:
    """What waiting sessions find in one split."""
    slots_of, risks, split = traffic.sizing.resolved.request_slots.slots, around(traffic.risk), way.split
    sessions, slots, tokens = _each(traffic, workload)
    runs = way.now.runs
    slots_left = split.slots - slots_of(runs)
    tokens_left = _tokens_left(traffic, runs, split.kv_tokens)

    def together(requests: int) -> bool:
        held_slots, left = slots_of(requests) + sessions * slots, split.kv_tokens - sessions * tokens
        return held_slots <= split.slots and left >= kv_needed(traffic.one, requests, risks)[1]

    return Residency(
        sessions=sessions,
        slots_each=slots,
        tokens_each=tokens,
        slots_left=slots_left,
        tokens_left=tokens_left,
        by_slots=slots_left // slots,
        by_tokens=tokens_left // tokens,
        beside=last_that_holds(0, runs, lambda requests: requests == 0 or together(requests)),
    )


def room(traffic: Traffic, workload: Workload) -> Room | None:
    """The best split with every session resident; None where none runs a request, or the release ignores a pin."""
    scenario = traffic.sizing.scenario
    rank, risks = rank_of(scenario), around(traffic.risk)
    sessions, slots, tokens = _each(traffic, workload)
    if pin_is_ignored(rank.resolved):
        return None
    wanted = counts_tried(rank)
    kept = np.asarray(rank.request_slots.slots(wanted, spare=True)) + sessions * slots
    left = kv_tokens_for(pools_from_slots(asking(rank, wanted), kept), wanted) - sessions * tokens
    runs = last_that_holds(0, len(wanted), lambda C: C == 0 or int(left[C - 1]) >= kv_needed(traffic.one, C, risks)[1])
    if runs == 0:
        return None
    pin = pin_from_slots(rank.resolved, int(kept[runs - 1]))
    return Room(runs=runs, pin=pin, asked=runs * asked_divisor(rank.resolved))


def _each(traffic: Traffic, workload: Workload) -> tuple[int, int, int]:
    """Sessions of one rank, the fullest one; slots and tokens of each."""
    scenario = traffic.sizing.scenario
    tokens = workload.session_tokens or scenario.L
    return -(-(workload.idle_sessions or 0) // scenario.attn_dp_size), workload.checkpoints, tokens


def _tokens_left(traffic: Traffic, runs: int, kv_tokens: int) -> int:
    used = kv_needed(traffic.one, runs, around(traffic.risk))[1] if runs else 0
    return max(kv_tokens - used, 0)
