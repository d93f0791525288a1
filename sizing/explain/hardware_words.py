"""Hardware in words and rows: what does not fit and what would, the free lever, which GPUs carry a model."""

from sizing.answers.gpu_memory import ENCODER, free_lever, gpu_memory
from sizing.answers.hardware import Carried, Hardware, NoFit, no_fit
from sizing.answers.solve import Sizing
from sizing.basics.units import NOTHING, count, number, requests_text
from sizing.engine.split import Split
from sizing.memory.automatic import Rule
from sizing.memory.weights.variants import VARIANTS
from sizing.scenario.inputs import Scenario
from sizing.scenario.rest import EXACT, OTHER, missing_words, rest_of

CARRIED_COLUMNS = ("GPU", "TP", "GPUs", "rest, low end", "runs as set", "best split runs", "GPUs per 1,000", "set")
AUTOMATIC_COLUMNS = ("value", "is", "by")


def gpus_words(scenario: Scenario) -> str:
    """How many of which: 8 x NVIDIA H200 141 GB."""
    gpus = scenario.tp_size * scenario.pp_size
    if scenario.gpu != OTHER:
        return f"{gpus} x {scenario.gpu}"
    return f"{gpus} GPUs of {count(scenario.gpu_memory_mib or 0)} MiB"


# Of the public boots in sizing/memory/boots.py.
NOT_CHECKED = "no hybrid on NVIDIA at TP 4 or 8 is among them, none with attention DP, stages or speculation"


def no_fit_headline(scenario: Scenario) -> str:
    """By how much weights do not fit; empty where they do, by the estimate itself."""
    missing = missing_words(rest_of(scenario))
    if not missing:
        return ""
    return f"{scenario.title} does not fit on {gpus_words(scenario)}: {missing} (estimated; {EXACT})."


def no_fit_words(scenario: Scenario) -> tuple[str, ...]:
    """What would fit where an estimate leaves nothing at its low end: fewest GPUs, least fraction, smaller variants."""
    found = no_fit(scenario)
    if found is None:
        return ()
    taken = found.estimate.pre_load_gib * found.estimate.mem_fraction_static - found.estimate.rest_gib
    first = (
        f"Weights and what loads with them take {number(taken, 1)} GiB of the "
        f"{number(found.estimate.pre_load_gib * found.estimate.mem_fraction_static, 1)} GiB that mem_fraction_static "
        f"{found.estimate.mem_fraction_static:.4g} leaves."
    )
    return (first, _least_gpus(scenario, found), _least_fraction(found), _variants(found))


def _least_gpus(scenario: Scenario, found: NoFit) -> str:
    if found.least is None:
        return "No number of these GPUs up to 64 ranks of TP is known to hold it."
    stages = f" at pp_size {scenario.pp_size}" if scenario.pp_size > 1 else ""
    left = found.least.estimate.in_words
    return f"Fewest of these GPUs: {count(found.least.gpus)} (tp_size {found.least.tp_size}{stages}), rest {left}."


def _least_fraction(found: NoFit) -> str:
    if found.least_fraction is None:
        return "No --mem-fraction-static is enough here."
    return f"Least --mem-fraction-static here: {found.least_fraction:.3f}; check that graph capture still fits."


def _variants(found: NoFit) -> str:
    if not found.variants:
        return "No smaller way to store these weights that this tool can count fits here."
    names = ", ".join(f"{VARIANTS[variant].short}: rest {left.in_words}" for variant, left in found.variants)
    return f"Smaller checkpoints that fit here: {names}."


def no_room_words(sizing: Sizing) -> str:
    """Over a bar without pools."""
    missing = missing_words(rest_of(sizing.scenario))
    return missing or "no split starts"


def lever_words(sizing: Sizing) -> str:
    """The free lever, in GiB and in requests; what the engine's rule keeps where nothing is free."""
    memory = gpu_memory(sizing, sizing.now if isinstance(sizing.now, Split) else None)
    if memory is None or no_fit_headline(sizing.scenario):
        return ""
    lever = free_lever(sizing)
    if lever is not None:
        more = f"{lever.more:+,} as set, {lever.best_more:+,} at the best split"
        return (
            f"free lever: {number(lever.free_gib, 1)} GiB, --mem-fraction-static {lever.fraction:.3f} runs "
            f"{count(lever.runs)} ({more})"
        )
    more = f", each GiB of rest is {requests_text(sizing.gib_more)}" if sizing.gib_more else ""
    images = f", {number(memory.of(ENCODER), 1)} GiB kept for images" if memory.of(ENCODER) else ""
    return f"free lever: nothing beside what the engine's rule keeps{images}{more}"


def carried_rows(hardware: Hardware, requests: int | None = None) -> list[tuple[str, ...]]:
    """GPUs and widths under CARRIED_COLUMNS; with `requests` those of which one server runs so many."""
    rows = hardware.carried if requests is None else hardware.carrying(requests)
    return [_carried(row) for row in rows]


def _carried(row: Carried) -> tuple[str, ...]:
    per = row.gpus_per_thousand
    return (
        row.gpu.name,
        str(row.tp_size),
        str(row.gpus),
        f"{number(row.rest.low or 0, 1)} GiB",
        count(row.runs),
        count(row.best_runs),
        NOTHING if per is None else count(per),
        row.flag,
    )


def hardware_headline(hardware: Hardware, requests: int | None = None) -> str:
    """Which GPUs carry it: how many rows, and the fewest GPUs."""
    L = count(hardware.scenario.L)
    if not hardware.carried:
        return f"No GPU of the table at up to TP16 runs a request of L = {L}."
    if requests is None:
        first = hardware.carried[0]
        return (
            f"Fewest GPUs for 1,000 requests of L = {L}: {count(first.gpus_per_thousand or 0)}, "
            f"{first.gpu.name} at TP{first.tp_size} (low end of an estimate; {EXACT})."
        )
    found = hardware.carrying(requests)
    if not found:
        most = max(row.best_runs for row in hardware.carried)
        return f"No server of the table carries {requests_text(requests)} of L = {L}: at most {count(most)} run."
    first = found[0]
    return (
        f"{requests_text(requests)} of L = {L}: {len(found)} of the {len(hardware.carried)} GPU and TP combinations "
        f"that run anything carry them, the fewest GPUs are {first.gpus} x {first.gpu.name} "
        f"(low end of an estimate; {EXACT})."
    )


def hardware_notes(hardware: Hardware) -> str:
    """What is left out, and what the numbers are of."""
    said = [
        "Requests are those of one server at the low end of the estimate; GPUs per 1,000 are those of whole servers. "
        "The best split is by the flags of the last column; DCP, dtypes and the scheduler stay as set."
    ]
    if hardware.nothing:
        said.append(f"Not one request runs on {', '.join(hardware.nothing)} at up to TP16.")
    said += [f"{name}: {missing}" for name, missing in hardware.unknown]
    return " ".join(said)


def automatic_rows(scenario: Scenario) -> list[tuple[str, ...]]:
    """What SGLang sets by itself under AUTOMATIC_COLUMNS; empty where the GPU is not known."""
    found = rest_of(scenario).automatic
    return [_rule(rule) for rule in found.rules] if found else []


def _rule(rule: Rule) -> tuple[str, ...]:
    return (rule.name, rule.value, "the flag that is set" if rule.given else rule.rule)
