"""S, the state slots of a running request, as a log lets one know it, and from what.

A line may state it; else the flags decide it by the rules of the release (`slots_per_request.py` of the core); else
the counts that ran leave a few possible values.
"""

from typing import NamedTuple

from sizing.bootlog.ranks import RankReport
from sizing.bootlog.settings import Settings
from sizing.engine.request_slots import RequestSlots
from sizing.engine.resolve import slots_by_flags
from sizing.engine.slots_per_request import possible_slots
from sizing.releases.architectures import ARCHITECTURES, support_of
from sizing.releases.rules import RELEASES, Release


class SlotsPerRequest(NamedTuple):
    """S and what it was read from; `possible` holds what the counts in the log leave."""

    S: int | None
    source: str | None
    """The form of the line that states it, or what it follows from; None without S."""
    possible: tuple[int, ...]
    radix_cache: bool | None = None
    """Whether finished requests are kept for reuse; None where neither S, nor a line, nor a flag tells."""


def slots_per_request_of(
    reports: tuple[RankReport, ...],
    settings: Settings,
    releases: tuple[Release, ...],
    slots: int | None,
    refused: int | None = None,
    *,
    radix_off: bool = False,
    model: str = "",
    architecture: str = "",
) -> SlotsPerRequest:
    """S of a boot [slots per running request].

    `refused` is the S that a refusal names, `model` the class as the log or the catalogue names it, `architecture` the
    same where a release that the log may be of serves it.
    """
    off = settings.disable_radix_cache or radix_off or _never_has_radix(model, releases)
    without_radix = possible_slots(releases or RELEASES, radix_cache=False) if off else ()
    running = min((report.running for report in reports if report.running is not None), default=0)
    possible = _possible(slots, running, any(report.kv for report in reports))
    stated = {report.S: report.S_from for report in reversed(reports) if report.S}
    S: int | None = None
    source: str | None = None
    if len(stated) == 1:
        S, source = next(iter(stated.items()))
    elif refused:
        S, source = refused, "refusal"
    elif len(without_radix) == 1:
        S, source = without_radix[0], "radix cache off"
    elif len(by_flags := _by_flags(settings, releases, architecture)) == 1 and by_flags <= set(possible):
        S, source = min(by_flags), "flags"
    elif len(possible) == 1:
        S, source = possible[0], "slots and requests"
    return SlotsPerRequest(S, source, possible, _radix_cache(S, releases, off=bool(off)))


def _radix_cache(S: int | None, releases: tuple[Release, ...], *, off: bool) -> bool | None:
    """By S, where there is one with the radix cache on or off alone; else by line, flag or model."""
    on_and_off = [S in possible_slots(releases or RELEASES, radix_cache=radix_cache) for radix_cache in (True, False)]
    return on_and_off[0] if any(on_and_off) and not all(on_and_off) else False if off else None


def _possible(slots: int | None, running: int, started: bool) -> tuple[int, ...]:
    """The values with which K // S is at least what runs, or 1 in a server that got as far as its KV pool."""
    every = possible_slots()
    if slots is None or not (running or started):
        return every
    return tuple(S for S in every if RequestSlots(S).requests(slots) >= max(running, 1))


def _never_has_radix(model: str, releases: tuple[Release, ...]) -> bool:
    """Whether every release that the log may be of turns the radix cache off for this model.

    Lines of releases that do not serve the model are a patch's: all releases that do serve it count then.
    """
    serving = [release for release in RELEASES if support_of(model, release).served]
    possible = [release for release in releases if release in serving] or serving
    return bool(model) and bool(possible) and all(support_of(model, release).radix_off for release in possible)


# What S follows from, beside the release, the model, and inputs that are no setting of their own.
DECIDE_S = (
    "D", "speculative_algorithm", "mamba_radix_cache_strategy", "disable_radix_cache", "disable_overlap_schedule",
    "disaggregation_mode", "disaggregation_decode_enable_radix_cache", "page_size", "pp_size", "skip_decode_lock",
    "mamba_track_interval",
)  # fmt: skip


def _by_flags(settings: Settings, releases: tuple[Release, ...], architecture: str) -> set[int]:
    """S by the flags under every release that the log may be of; empty where not all of them are known.

    What `auto` gives depends on the model: where no line names it, every model that there is counts.
    """
    if not settings.complete or settings.disable_radix_cache is None or settings.D is None:
        return set()
    own = {name: value for name in DECIDE_S if (value := getattr(settings, name)) is not None}
    by_model = not architecture and settings.mamba_radix_cache_strategy in (None, "auto")
    models = tuple(ARCHITECTURES) if by_model else (architecture,)
    return slots_by_flags({"page_size": 1, **own, **settings.others}, releases or RELEASES, models)
