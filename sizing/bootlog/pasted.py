"""One line that settles `rest`: a weight line of the boot log, a whole log, or nvidia-smi, pasted beside the inputs.

Source: boot-log-formats.md section 2; engine-sizing.md section 1; rest-before-boot.md sections 1.1 and 3.
"""

import re
from typing import Any, NamedTuple

from sizing.basics.units import GIB, number, rest_text
from sizing.bootlog.facts import Facts
from sizing.bootlog.forms import SIZE
from sizing.bootlog.log import read_text
from sizing.memory.before_load import Hardware, NotEstimatedError, before_load
from sizing.memory.loaded import DRAFT_COUNTED_SINCE, WITHOUT_WEIGHTS
from sizing.memory.release import minor
from sizing.models.gpus import ALL_GPUS, Gpu
from sizing.scenario.inputs import Scenario
from sizing.scenario.rest import OTHER, estimate_of, gpu_named

MAX_LENGTH = 1_000_000  # characters of a paste; the page Log reads longer logs
EXAMPLE = "Load weight end. ... avail mem=55.23 GB, mem usage=122.77 GB."
NOTHING = (
    "Nothing in it settles rest. Paste the boot log's line “Load weight end”, which ends with avail mem and mem usage, "
    "or what nvidia-smi prints."
)
_END = re.compile(rf"Load weight end\b[^\n]{{0,600}}?avail mem=({SIZE}) ?GB, mem usage=({SIZE}) ?GB")
_BEGIN = re.compile(rf"Load weight begin\. avail mem=({SIZE}) ?GB")
# Of the table of nvidia-smi: used and total; of its --query-gpu=memory.total: total alone.
_USED = re.compile(r"(\d{1,9}) ?MiB ?/ ?(\d{1,9}) ?MiB")
_TOTAL = re.compile(r"(?<![\d/])(\d{4,9}) MiB\b")
_NAME = re.compile(r"\|\s+\d{1,3}\s+((?:NVIDIA|Tesla|Quadro|GeForce)[\w .-]{1,40}?)\s{2,}")
OTHERS_MIB = 1024  # less in use is what the driver keeps on an idle GPU


class Pasted(NamedTuple):
    """What a paste settles: inputs to set, empty where it settles nothing, and the words for it."""

    values: dict[str, Any]
    words: str


def settle(text: str, scenario: Scenario) -> Pasted:
    """The inputs that a pasted text settles for this deployment. Raises nothing."""
    if len(text) > MAX_LENGTH:
        return Pasted({}, f"It is longer than {MAX_LENGTH:,} characters: read it on the page Log.")
    if "Load weight" not in text and "max_total_num_tokens" not in text and "KV Cache" not in text:
        return _of_smi(text, scenario)
    log = read_text(text)
    facts = log.last.facts if log.last else None
    if facts is not None and facts.rest is not None:
        return _exact(facts.rest.value, "boot log: as the page Log reads these lines")
    fraction = facts.settings.mem_fraction_static if facts else None
    ends = [(float(free), float(used)) for free, used in _END.findall(text)]
    if ends:
        return _of_end(ends, scenario, fraction)
    begun = _begun(text, facts)
    if begun is None:
        return Pasted({}, NOTHING)
    return Pasted(
        {"free_gib": begun},
        f"Free before load is now {number(begun)} GiB, as printed; weights are still estimated: the line “Load weight "
        "end” makes rest exact.",
    )


def _begun(text: str, facts: Facts | None) -> float | None:
    if facts is not None and facts.begin_gib is not None:
        return facts.begin_gib.value
    found = [float(free) for free in _BEGIN.findall(text)]
    return min(found) if found else None


def _of_end(ends: list[tuple[float, float]], scenario: Scenario, printed: float | None) -> Pasted:
    """avail mem and mem usage of one line are what was free before: rest = avail - (avail + usage) x (1 - f)."""
    free, used = min(ends, key=sum)
    before = free + used
    lost = _draft_of(scenario)
    found = estimate_of(scenario).estimate
    fraction = printed or (found.mem_fraction_static if found else scenario.mem_fraction_static)
    if fraction is None:
        return Pasted({}, "Choose the GPU, or give --mem-fraction-static: rest follows from the line and it.")
    if lost and len(ends) == 1:
        ranks = scenario.tp_size * scenario.pp_size
        return Pasted(
            {"free_gib": round(before, 2), "weights_bytes": round(used * GIB) * ranks},
            f"{number(before)} GiB were free before load and weights take {number(used)} GiB, as printed; the draft is "
            "still estimated: paste its own “Load weight end” too and rest is exact.",
        )
    least = min(left for left, _ in ends)
    before = max(left + taken for left, taken in ends)
    images = found.part_gib("multimodal reservation") if found else 0.0
    rest = least - before * (1 - fraction) - images
    return _exact(rest, f"{number(least)} - {number(before)} x (1 - {fraction:.6g}), of the line “Load weight end”")


def _draft_of(scenario: Scenario) -> bool:
    """Whether a draft's weights come off rest besides."""
    weighs = scenario.speculative_algorithm not in WITHOUT_WEIGHTS
    return bool(scenario.D) and weighs and minor(scenario.release) >= DRAFT_COUNTED_SINCE


def _exact(rest_gib: float, how: str) -> Pasted:
    return Pasted(
        {"rest_gib": round(rest_gib, 3), "rest_source": "boot log"},
        f"rest is {rest_text(round(rest_gib, 3))}, from your log: {how}.",
    )


def _of_smi(text: str, scenario: Scenario) -> Pasted:
    """The smallest GPU that nvidia-smi lists, as the engine takes it; what other processes hold comes off."""
    pairs = [(int(used), int(total)) for used, total in _USED.findall(text)]
    totals = [total for _, total in pairs] or [int(total) for total in _TOTAL.findall(text)]
    totals = [total for total in totals if 1024 <= total <= 2**30]
    if not totals:
        return Pasted({}, NOTHING)
    least = min(totals)
    gpu, names = _listed(least, _NAME.findall(text)), ""
    values: dict[str, Any] = {"gpu": gpu.name} if gpu else {"gpu": OTHER, "gpu_memory_mib": least}
    names = gpu.name if gpu else "a GPU that is not in the table"
    said = f"memory.total {least:,} MiB: {names}."
    used = max((used for used, _ in pairs), default=0)
    if used > OTHERS_MIB:
        hardware = Hardware(memory_mib=least, vendor=gpu.vendor if gpu else "NVIDIA")
        try:
            free = before_load(hardware, scenario.tp_size * scenario.pp_size).free - used / 1024
        except NotEstimatedError:
            free = 0.0
        if free > 0:
            values["free_gib"] = round(free, 2)
            said += (
                f" {number(used / 1024)} GiB are in use and come off what is free before load; if that is this very "
                "server, empty “Free before load”."
            )
    return Pasted(values, f"{said} rest is estimated from it; a line of the boot log makes it exact.")


def _listed(total_mib: int, names: list[str]) -> Gpu | None:
    """The entry of this memory; of several the one that the text names, else the first."""
    same = [gpu for gpu in ALL_GPUS if gpu.memory_mib == total_mib and not gpu.unified]
    named = {_named(name) for name in names}
    return next((gpu for gpu in same if gpu.name in named), same[0] if same else None)


def _named(name: str) -> object:
    try:
        return gpu_named(name)
    except ValueError:
        return None
