"""Where the memory of one GPU goes, from the driver's total down; and what --mem-fraction-static leaves free of it.

Estimated before the boot. What is set aside for graphs and activations is the engine's own rule for an automatic
fraction (rest-before-boot.md section 1.3), whatever the fraction is; the rule's floor is set aside for nothing.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from sizing.answers.band import at_low_end
from sizing.answers.fleet import AS_SET, BEST, carriers
from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import RefusedError
from sizing.basics.units import GIB
from sizing.engine.split import Split
from sizing.memory.automatic import automatic
from sizing.memory.rest import PartName, RestEstimate
from sizing.memory.stated import Stated
from sizing.scenario.inputs import Scenario, changed
from sizing.scenario.rest import ENDS, deployment_of, estimate_of, rest_of

CONTEXT, WEIGHTS, DRAFT, IMAGES = "context and communicators", "weights", "draft weights", "image cache"
STATE, STATE_IDLE, PADDING, RINGS, DRAFT_STATES = "state in use", "state idle", "padding slot", "rings", "draft states"
KV, KV_IDLE, DRAFT_KV, OUTSIDE = "KV in use", "KV idle", "draft KV", "outside both pools"
UNCHARGED, GRAPHS, ENCODER, FREE = "allocated uncharged", "graphs and activations", "kept for images", "free"
BAND = "between the estimate and its low end"
BACKEND = "kept for aiter"  # AMD's attention backend takes 15 % off the fraction for its workspace
STATE_POOL, KV_POOL = "state pool", "KV pool"  # in use or idle: a boot log does not tell
POOLED = {
    STATE: STATE_POOL, STATE_IDLE: STATE_POOL, PADDING: STATE_POOL, RINGS: STATE_POOL, DRAFT_STATES: STATE_POOL,
    KV: KV_POOL, KV_IDLE: KV_POOL,
}  # fmt: skip
# In the order of the bar, from the driver's total down.
ORDER = (
    CONTEXT, WEIGHTS, DRAFT, IMAGES, STATE, STATE_IDLE, PADDING, RINGS, DRAFT_STATES, KV, KV_IDLE, DRAFT_KV, OUTSIDE,
    BAND, UNCHARGED, GRAPHS, ENCODER, BACKEND, FREE,
)  # fmt: skip
FLOOR = "up to the floor"  # of the reserve: kept for nothing in particular
LEAST_FREE_GIB = 0.05  # less is not offered
STEPS = 1000  # a fraction is typed with three digits
PARTS: dict[PartName, str] = {
    "driver, context and communicators": CONTEXT,
    "weights": WEIGHTS,
    "draft": DRAFT,
    "multimodal reservation": IMAGES,
}


class GpuMemory(NamedTuple):
    """One GPU: every piece [GiB], in the order of the bar. They add up to the total, unless too much is asked of it."""

    total_gib: float
    pieces: tuple[tuple[str, float], ...]

    @property
    def pooled(self) -> "GpuMemory":
        """The same with each pool as one piece."""
        sums: dict[str, float] = {}
        for name, gib in self.pieces:
            pool = POOLED.get(name, name)
            sums[pool] = sums.get(pool, 0.0) + gib
        return GpuMemory(self.total_gib, tuple(sums.items()))

    def of(self, name: str) -> float:
        """GiB of one piece; 0 where it is not there."""
        return dict(self.pieces).get(name, 0.0)


def gpu_memory(sizing: Sizing, split: Split | None) -> GpuMemory | None:
    """The estimate with a split in it, or with rest undivided where none starts; None where nothing is estimated.

    At the low end of the estimate what rest may be more is a piece of its own.
    """
    scenario = sizing.scenario
    found = (estimate_of(scenario) if scenario.rest_source in ENDS else rest_of(scenario)).estimate
    if found is None or found.total_gib is None:
        return None
    pools = _pools(sizing, split) if split else {OUTSIDE: max(found.rest_gib, 0.0)}
    if split and scenario.rest_source == "low end":
        pools[BAND] = max(found.rest_gib - scenario.rest_gib, 0.0)
    kept = _kept(deployment_of(scenario).stated, found.pre_load_gib)
    uncharged = (sizing.beyond or 0) / GIB if split is sizing.now else 0.0
    fixed = {PARTS[part.name]: part.gib for part in found.parts if part.name in PARTS}
    slack = found.part_gib("kept free") + min(found.rest_gib, 0.0)
    left = max(slack, 0.0)
    shares = {}
    for name, gib in {UNCHARGED: uncharged, **kept}.items():
        shares[name] = min(gib, left)
        left -= shares[name]
    pieces = {**fixed, **pools, **shares, FREE: left}
    return GpuMemory(found.total_gib, tuple((name, pieces[name]) for name in ORDER if pieces.get(name, 0.0) > 0))


def _pools(sizing: Sizing, split: Split) -> dict[str, float]:
    """What rest is divided into [GiB]; the draft's share of each token apart."""
    memory, costs = split.memory, sizing.resolved.costs
    draft = costs.draft_charged / costs.cell if costs.cell else 0.0
    sizes = {
        STATE: memory.state_used,
        STATE_IDLE: memory.state_idle,
        PADDING: memory.state_padding,
        RINGS: memory.rings,
        DRAFT_STATES: memory.draft_reserve,
        KV: memory.kv_used * (1 - draft),
        KV_IDLE: memory.kv_idle * (1 - draft),
        DRAFT_KV: (memory.kv_used + memory.kv_idle) * draft,
        OUTSIDE: memory.unsplit,
    }
    return {name: size / GIB for name, size in sizes.items()}


@lru_cache(maxsize=128)
def _kept(stated: Stated, pre_load_gib: float) -> Mapping[str, float]:
    """What the engine's rule sets aside of the slack [GiB]: for a backend, for images, for graphs and activations."""
    here = automatic(stated)
    by_rule = automatic(stated.model_copy(update={"mem_fraction_static": None}))
    plain = automatic(stated.model_copy(update={"mem_fraction_static": None, "language_only": True}))
    graphs = sum(part.mib for part in by_rule.reserve if part.name != FLOOR) / 1024
    encoder = max(plain.mem_fraction_static - by_rule.mem_fraction_static, 0.0) * pre_load_gib
    backend = here.mem_fraction_static - (here.mem_fraction_static_used or here.mem_fraction_static)
    return {BACKEND: backend * pre_load_gib, ENCODER: encoder, GRAPHS: graphs}


class Lever(NamedTuple):
    """Memory that is free beyond what the engine's rule sets aside, and the --mem-fraction-static that gives it to the
    pools.
    """

    free_gib: float
    fraction: float
    """As it is typed, rounded down to three digits."""
    runs: int
    """With it, as the split is set, at the low end [requests of the deployment]."""
    best_runs: int
    """With it, at the best split found."""
    more: int
    """How many more as set than now."""
    best_more: int


def free_lever(sizing: Sizing) -> Lever | None:
    """The free lever; None where nothing is free, or memory is not estimated."""
    split = sizing.now if isinstance(sizing.now, Split) else None
    memory, found = gpu_memory(sizing, split), rest_of(sizing.scenario).estimate
    if memory is None or found is None or memory.of(FREE) < LEAST_FREE_GIB:
        return None
    fraction = _typed(sizing.scenario, found, memory.of(FREE))
    raised = changed(sizing.scenario, mem_fraction_static=fraction)
    if not isinstance(raised, Scenario) or rest_of(raised).estimate is None:
        return None
    try:
        after, before = ({way.name: way.runs for way in carriers(one)} for one in (solve(raised), at_low_end(sizing)))
    except RefusedError:
        return None
    runs, best = after.get(AS_SET, 0), after.get(BEST, 0)
    return Lever(memory.of(FREE), fraction, runs, best, runs - before.get(AS_SET, 0), best - before.get(BEST, 0))


def _typed(scenario: Scenario, found: RestEstimate, free_gib: float) -> float:
    """The fraction to type: the flag is multiplied by what a backend takes off, the multimodal factor not."""
    stated = deployment_of(scenario).stated
    half = automatic(stated.model_copy(update={"mem_fraction_static": 0.5})).mem_fraction_static_used or 0.5
    wanted = (found.mem_fraction_static + free_gib / found.pre_load_gib) * 0.5 / half
    return float(min(int(wanted * STEPS), STEPS - 1) / STEPS)
