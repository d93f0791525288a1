"""S, the state slots of a running request, as a log lets one know it, and from what.

The warning about the clamp states it; else the flags decide it by the rules of the release (slots.py of the core);
else the counts that ran leave a few possible values.
"""

from typing import Literal, NamedTuple

from pydantic import ValidationError

from sizing.basics.problems import RefusedError
from sizing.bootlog.ranks import RankReport
from sizing.bootlog.settings import Settings
from sizing.engine.slots_per_request import slots_per_request
from sizing.releases.rules import RELEASES, Release
from sizing.scenario.inputs import Scenario

SlotsFrom = Literal["clamp warning", "radix cache off", "flags", "slots and requests"]
# Every S there is: the S table of compute-mamba-ratio.md, all strategies, with and without the decode-lock skip.
POSSIBLE = (1, 3, 4, 5)


class SlotsPerRequest(NamedTuple):
    """S and what it was read from; `possible` holds what the counts in the log leave."""

    S: int | None
    source: SlotsFrom | None
    possible: tuple[int, ...]


def slots_per_request_of(
    reports: tuple[RankReport, ...], settings: Settings, releases: tuple[Release, ...], slots: int | None
) -> SlotsPerRequest:
    """S of a boot [slots per running request]."""
    capped = next((report.capped for report in reports if report.capped), None)
    running = max((report.summary.requests or 0 for report in reports if report.summary), default=0)
    possible = _possible(slots, running, any(report.kv for report in reports))
    if capped:
        return SlotsPerRequest(capped.S, "clamp warning", possible)
    if settings.disable_radix_cache:
        return SlotsPerRequest(1, "radix cache off", possible)
    by_flags = _by_flags(settings, releases)
    if len(by_flags) == 1 and by_flags <= set(possible):
        return SlotsPerRequest(min(by_flags), "flags", possible)
    if len(possible) == 1:
        return SlotsPerRequest(possible[0], "slots and requests", possible)
    return SlotsPerRequest(None, None, possible)


def _possible(slots: int | None, running: int, started: bool) -> tuple[int, ...]:
    """The values with which K // S is at least what runs, or 1 in a server that got as far as its KV pool."""
    if slots is None or not (running or started):
        return POSSIBLE
    return tuple(S for S in POSSIBLE if slots // S >= max(running, 1))


def _by_flags(settings: Settings, releases: tuple[Release, ...]) -> set[int]:
    """S by the flags under every release that the log may be of; empty where the flags are not in the log."""
    if settings.disable_radix_cache is None or settings.draft_tokens is None:
        return set()
    found = set()
    for release in releases or RELEASES:
        inputs = {
            "release": release,
            "D": settings.draft_tokens,
            "mamba_radix_cache_strategy": settings.strategy or "auto",
            "disable_overlap_schedule": settings.disable_overlap_schedule or False,
            "page_size": settings.page_size or 1,
            "pp_size": settings.pp_size or 1,
            "state_bytes_all_stages": Scenario().state_bytes_per_slot,
            "skip_decode_lock": settings.skip_decode_lock or False,
            "mamba_track_interval": settings.mamba_track_interval or Scenario().mamba_track_interval,
        }
        try:
            found.add(slots_per_request(Scenario.model_validate(inputs)))
        except (RefusedError, ValidationError):  # a release that refuses these flags did not print this log
            continue
    return found
