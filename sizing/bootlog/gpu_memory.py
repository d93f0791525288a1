"""Where the memory of one GPU went by its boot log, and the estimate beside it.

Source: engine-sizing.md sections 1 and 7; boot-log-formats.md section 2. What is allocated after the pools (graphs,
workspaces, activations of the capture) is the difference between what was free then and at the end.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from sizing.answers import gpu_memory as parts
from sizing.answers.gpu_memory import GpuMemory, gpu_memory
from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import RefusedError
from sizing.basics.units import GIB, number, requests_text
from sizing.bootlog.facts import Facts
from sizing.engine.split import Split
from sizing.models.gpus import GPUS, Gpu
from sizing.scenario.inputs import Scenario, changed
from sizing.scenario.rest import OTHER, gpu_of, rest_of

# What the driver, the context and communicators take on NVIDIA [GiB]: 0.7 to 3.1 was seen (rest-before-boot.md 3.1).
TAKEN_GIB = (0.3, 3.5)


class Beside(NamedTuple):
    """One boot's memory."""

    measured: GpuMemory
    estimated: GpuMemory | None
    """None where the model or the GPU is not known."""
    gpu: Gpu | None
    guessed: bool
    """Whether the GPU is told by what was free alone."""


def beside(facts: Facts, scenario: Scenario | None, gpu: str = "") -> Beside | None:
    """The log's bar, and the estimate for the deployment found in it; None where the log has no weight lines.

    `gpu` is a name of the table, or empty.
    """
    if facts.begin_gib is None or facts.end_gib is None or facts.pools_gib is None:
        return None
    known = gpu_of(gpu) if gpu not in ("", OTHER) else None
    found = known or by_free(facts.begin_gib.value)
    total = found.memory_mib / 1024 if found else facts.begin_gib.value
    measured = _measured(facts, total)
    if measured is None:
        return None
    estimated = _estimated(facts, scenario, found) if scenario is not None and found is not None else None
    return Beside(measured, estimated, found, known is None)


def by_free(begin_gib: float) -> Gpu | None:
    """The one GPU of which so much is free before weights; None where several are, or none.

    >>> by_free(178.0).name
    'NVIDIA B200 180 GB'
    """
    low, high = TAKEN_GIB
    found = [gpu for gpu in GPUS if gpu.vendor == "NVIDIA" and low <= gpu.memory_mib / 1024 - begin_gib <= high]
    return found[0] if len({gpu.memory_mib for gpu in found}) == 1 else None


def _measured(facts: Facts, total: float) -> GpuMemory | None:
    """None where the printed sizes are more than there was."""
    begin, end, pools = facts.begin_gib, facts.end_gib, facts.pools_gib
    kv = max((rank.kv_gib.value for rank in facts.by_rank if rank.kv_gib), default=None)
    if begin is None or end is None or pools is None or kv is None:
        return None
    drafts = 0.0
    if facts.draft_token_bytes is not None and facts.kv_rows is not None:
        drafts = facts.draft_token_bytes.value * (facts.kv_rows + facts.page_size) / GIB
    left = end.value - pools.value - drafts
    idle = min(facts.idle_gib, left) if facts.idle_gib is not None else left
    pieces = {
        parts.CONTEXT: total - begin.value,
        parts.WEIGHTS: begin.value - end.value,
        parts.STATE_POOL: pools.value - kv,
        parts.KV_POOL: kv,
        parts.DRAFT_KV: drafts,
        parts.GRAPHS: left - idle,
        parts.FREE: idle,
    }
    if min(pieces.values()) < -0.01:  # two decimals
        return None
    return GpuMemory(total, tuple((name, gib) for name, gib in pieces.items() if gib > 0))


def _estimated(facts: Facts, scenario: Scenario, gpu: Gpu) -> GpuMemory | None:
    """What would have been said before this boot, at the fraction that its log prints."""
    values: dict[str, Any] = {"gpu": gpu.name, "rest_gib": None, "rest_source": "typed in"}
    printed = facts.settings.mem_fraction_static
    if printed is not None and 0 < printed < 1 and gpu.vendor == "NVIDIA":
        values["mem_fraction_static"] = printed
    other = changed(scenario, **values)
    if not isinstance(other, Scenario):
        return None
    estimate = rest_of(other).estimate
    if estimate is None or not estimate.fits:  # a server that ran: its checkpoint is another than the one counted
        return None
    try:
        sizing: Sizing = solve(other)
    except RefusedError:
        return None
    found = gpu_memory(sizing, sizing.now if isinstance(sizing.now, Split) else None)
    return found.pooled if found else None


# From here on an estimate of weights is said to be off: of what was loaded, and in GiB. Chosen, no rule of the engine.
WEIGHTS_WITHIN, WEIGHTS_WITHIN_GIB = 0.1, 1.0


def _other_weights(seen: Beside, title: str) -> Iterator[str]:
    """That the estimate counts other weights than this boot loaded."""
    if seen.estimated is None:
        return
    loaded = seen.measured.of(parts.WEIGHTS)  # all that came between the first line of weights and the last
    counted = sum(seen.estimated.of(part) for part in (parts.WEIGHTS, parts.DRAFT, parts.IMAGES))
    off = abs(loaded - counted)
    if off > max(loaded * WEIGHTS_WITHIN, WEIGHTS_WITHIN_GIB):
        yield (
            f"The estimate is {number(off, 1)} GiB off in weights: {number(counted, 1)} GiB on a rank by the "
            f"config.json, {number(loaded, 1)} GiB loaded. This log's weights are not those of {title}: go by the log."
        )


def boot_memory_words(seen: Beside, facts: Facts, sizing: Sizing) -> str:
    """The free lever by the log, in GiB and in requests, and which GPU it was taken for."""
    said = [*_other_weights(seen, sizing.scenario.title)]
    free, begin = seen.measured.of(parts.FREE), facts.begin_gib
    if facts.idle_gib is None:
        said.append("The log does not hold what was free at the end: graphs and what is free are one piece.")
    elif begin is not None:
        more = f", about {requests_text(round(free * sizing.gib_more))} at the best split" if sizing.gib_more else ""
        said.append(
            f"Free lever: {number(free, 1)} GiB are free at the end{more}; each GiB is {1 / begin.value:.4f} of "
            "--mem-fraction-static. Leave some for activations, and check that graph capture still fits."
        )
    if seen.gpu is None:
        said.append(
            "The GPU is not known: the bar begins at what was free before weights. Choose it on the page Balance."
        )
    elif seen.guessed:
        said.append(
            f"Taken for {seen.gpu.name} by what was free before weights: choose another GPU on the page Balance."
        )
    return " ".join(said)
