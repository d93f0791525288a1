"""Which hardware carries a deployment: what would where weights leave nothing, and what each GPU runs at each TP width.

Everything is counted at the low end of the estimate. Source: rest-before-boot.md sections 2 to 4.
"""

from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, NamedTuple, get_args

from sizing.answers.fleet import AS_SET, BEST, carriers
from sizing.answers.solve import solve
from sizing.basics.frames import DEPLOYMENT_REQUESTS, frame_of
from sizing.basics.problems import RefusedError
from sizing.memory.before_load import NotEstimatedError
from sizing.memory.fit import Fit, least_gpus, widths
from sizing.memory.loaded import Loaded
from sizing.memory.rest import RestEstimate, estimate
from sizing.memory.weights.variants import Variant
from sizing.models.geometry import Geometry
from sizing.models.gpus import ALL_GPUS, Gpu
from sizing.models.refusal import ModelRefusedError
from sizing.scenario.from_model import geometry_of
from sizing.scenario.inputs import Scenario, changed
from sizing.scenario.rest import Rest, deployment_of, rest_of, variant_named

if TYPE_CHECKING:
    from pandas import DataFrame

THOUSAND = 1000
MOST_WIDTH = 16  # TP widths of the table: two nodes of eight
SIGNIFICANT = 1000  # a fraction is typed with three digits


class NoFit(NamedTuple):
    """A deployment whose weights leave nothing at the low end of the estimate, and what would leave something."""

    estimate: RestEstimate
    least_fraction: float | None
    """The least --mem-fraction-static that leaves something, rounded up to three digits; None where none does."""
    least: Fit | None
    """The fewest GPUs of this kind, at this number of stages; None where 64 ranks are too few, or not known."""
    variants: tuple[tuple[Variant, RestEstimate], ...]
    """Smaller ways to store the weights that fit here."""


def no_fit(scenario: Scenario) -> NoFit | None:
    """What would fit where an estimate does not; None where it fits, or rest is no estimate."""
    found = rest_of(scenario).estimate
    if found is None or found.low_gib > 0:
        return None
    return NoFit(found, _least_fraction(found), _least(scenario), tuple(_smaller(scenario)))


def _least_fraction(found: RestEstimate) -> float | None:
    """The low end is what must be above 0, so the band is needed too."""
    needed = found.pre_load_gib * found.mem_fraction_static - found.low_gib
    least = (int(needed / found.pre_load_gib * SIGNIFICANT) + 1) / SIGNIFICANT
    return least if least < 1 else None


def _geometry(scenario: Scenario) -> Geometry | None:
    return geometry_of(scenario.model) if scenario.model else None


def _least(scenario: Scenario) -> Fit | None:
    def load(tp_size: int) -> Loaded:
        return deployed.load(tp_size)

    try:
        deployed = deployment_of(scenario)
        return least_gpus(deployed.stated, deployed.hardware, load, _geometry(scenario))
    except (NotEstimatedError, ModelRefusedError):
        return None


def _smaller(scenario: Scenario) -> list[tuple[Variant, RestEstimate]]:
    """Ways to store the weights in fewer bytes that leave something at the low end."""
    if scenario.weights_bytes is not None or not scenario.model:
        return []
    stored = variant_named(scenario.model) if scenario.checkpoint == "auto" else scenario.checkpoint
    deployed, found = deployment_of(scenario), []
    now = deployed.load(scenario.tp_size).weights_bytes
    for variant in get_args(Variant):
        try:
            loaded = deployed.load(scenario.tp_size, variant)
            left = estimate(deployed.stated, deployed.hardware, loaded)
        except (NotEstimatedError, ModelRefusedError):
            continue
        if variant != stored and loaded.weights_bytes < now and left.low_gib > 0:
            found.append((variant, left))
    return found


class Carried(NamedTuple):
    """What one kind of GPU runs at one TP width. Requests are of the deployment."""

    gpu: Gpu
    tp_size: int
    gpus: int
    """Of one server: tp_size x pp_size."""
    rest: Rest
    runs: int
    """With the split that is set; 0 where the engine refuses it."""
    best_runs: int
    """With the best split found: split, and requests asked for."""
    flag: str = ""
    """That way, as it is typed."""

    @property
    def gpus_per_thousand(self) -> int | None:
        """GPUs of the whole servers that carry 1,000 requests at the best split; None where one carries nothing."""
        return ceil(THOUSAND / self.best_runs) * self.gpus if self.best_runs else None


class Hardware(NamedTuple):
    """Every GPU and width on which something runs, the fewest GPUs for 1,000 requests first; and the others."""

    scenario: Scenario
    carried: tuple[Carried, ...]
    nothing: tuple[str, ...]
    """GPUs on which no width runs a request."""
    unknown: tuple[tuple[str, str], ...]
    """GPUs whose memory cannot be estimated, each with what to give."""

    def carrying(self, requests: int) -> tuple[Carried, ...]:
        """Those of which one server runs so many requests at the best split, the fewest GPUs first."""
        return tuple(sorted((row for row in self.carried if row.best_runs >= requests), key=lambda row: row.gpus))

    def frame(self) -> "DataFrame":
        """One row a GPU and width; rest is the low end of the estimate, or as it was stated."""
        return frame_of(
            {
                "gpu": [row.gpu.name for row in self.carried],
                "tp_size": [row.tp_size for row in self.carried],
                "gpus [GPUs]": [row.gpus for row in self.carried],
                "rest [GiB per rank]": [row.rest.low for row in self.carried],
                f"runs [{DEPLOYMENT_REQUESTS}]": [row.runs for row in self.carried],
                f"best_runs [{DEPLOYMENT_REQUESTS}]": [row.best_runs for row in self.carried],
                "gpus_per_1000_requests [GPUs]": [row.gpus_per_thousand for row in self.carried],
                "set": [row.flag for row in self.carried],
            }
        )


@lru_cache(maxsize=64)
def hardware_of(scenario: Scenario) -> Hardware:
    """Every GPU of the table at every TP width that loads the model, everything else as the scenario has it.

    A rest that is stated holds for its own GPU and width; everywhere else it is estimated. Bytes on one rank and free
    memory are not carried to another width.
    """
    carried, nothing, unknown = [], [], []
    for gpu in ALL_GPUS:
        rows = [row for width in _widths(scenario) if (row := _row(scenario, gpu, width)) is not None]
        running = [row for row in rows if row.best_runs]
        carried += running
        missing = {row.rest.missing for row in rows if row.rest.value is None}
        if missing:
            unknown.append((gpu.name, missing.pop()))
        elif not running:
            nothing.append(gpu.name)
    carried.sort(key=lambda row: (row.gpus_per_thousand or 0, row.gpus, row.gpu.memory_mib))
    return Hardware(scenario, tuple(carried), tuple(nothing), tuple(unknown))


def _widths(scenario: Scenario) -> tuple[int, ...]:
    found = [width for width in widths(_geometry(scenario), scenario.attn_dp_size) if width <= MOST_WIDTH]
    return tuple(sorted({*found, scenario.tp_size}))


def _row(scenario: Scenario, gpu: Gpu, width: int) -> Carried | None:
    """None where the inputs or the flags do not go with this width."""
    values = {"gpu": gpu.name, "gpu_memory_mib": None, "tp_size": width}
    if (gpu.name, width) != (scenario.gpu, scenario.tp_size):
        values |= {"free_gib": None, "draft_weights_bytes": None}
    other = changed(scenario, **values)
    if not isinstance(other, Scenario):
        return None
    rest, gpus = rest_of(other), width * scenario.pp_size
    nothing = Carried(gpu, width, gpus, rest, 0, 0)
    if rest.low is None or rest.low <= 0:
        return nothing
    try:
        found = {way.name: way for way in carriers(solve(other))}
    except RefusedError:
        return None
    now, best = found.get(AS_SET), found.get(BEST)
    return nothing._replace(
        runs=now.runs if now else 0, best_runs=best.runs if best else 0, flag=best.flag if best else ""
    )
