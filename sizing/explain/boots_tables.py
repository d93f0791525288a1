"""The estimate beside public boots, as tables: `rest` and automatic fractions, predicted and seen."""

from statistics import median

from sizing.basics.units import count, number
from sizing.explain.hardware_words import NOT_CHECKED
from sizing.explain.reference_tables import Table
from sizing.memory.boots import BOOTS, PRINTED, Boot, Printed


def boots_table() -> Table:
    """`rest` of 14 public boots without a log beside what their logs show."""
    errors = [abs(boot.error) for boot in BOOTS if boot.free_gib is None]
    return Table(
        title="rest estimated, beside public boots",
        columns=(
            "boot", "release", "mem_fraction_static", "estimated [GiB]", "band ± [GiB]", "seen [GiB]", "error [%]",
            "source",
        ),
        rows=tuple(_boot(boot) for boot in BOOTS),
        note=(
            f"On discrete GPUs the error is {median(errors):.1%} at the median and {max(errors):.1%} at worst. The "
            "overheads were read from partly the same boots, so the errors are somewhat in-sample; "
            f"{NOT_CHECKED}. The repositories of the public "
            "logs are not known. GB10 is unified memory: what was free there is given, not estimated."
        ),
    )  # fmt: skip


def _boot(boot: Boot) -> tuple[str, ...]:
    found = boot.predicted
    given = "" if "mem_fraction_static" in boot.stated else ", automatic"
    return (
        boot.name,
        str(boot.stated["release"]),
        f"{found.mem_fraction_static:.4g}{given}",
        number(found.rest_gib),
        number(found.band_gib),
        number(boot.seen_gib),
        f"{boot.error * 100:+.1f}",
        boot.source,
    )


def fractions_table() -> Table:
    """Automatic fractions by rule beside those that logs print, or that follow from their pools."""
    printed = sum(item.how.startswith("printed") for item in PRINTED)
    return Table(
        title="mem_fraction_static as SGLang sets it, beside public boots",
        columns=("model", "GPU", "TP", "release", "by rule", "seen", "how", "source"),
        rows=tuple(_fraction(item) for item in PRINTED),
        note=(
            f"{printed} were printed and are exact; the others follow from pool sizes of two decimals. A dozen more "
            "runs print the same values and are not listed."
        ),
    )


def _fraction(item: Printed) -> tuple[str, ...]:
    return (
        item.model,
        item.gpu,
        count(item.tp_size),
        item.release,
        f"{item.predicted:.13g}",
        f"{item.seen:.13g}",
        item.how,
        item.source,
    )
