"""Which releases print a log's lines as they stand: a set that may hold several, never a guess.

Source: the "since" of each form (forms.py) and the keys of the arguments line (boot-log-formats.md section 1).
"""

from collections.abc import Iterable

from sizing.bootlog.find import Line
from sizing.bootlog.line_records import Arguments, StatePool, WeightsEnd
from sizing.releases.rules import LATEST, RELEASES, Release

# A line with so many keys holds all of them: the shortest of the releases read has 266, a shortened one some twenty.
ALL_KEYS = 200


def releases_of(lines: list[Line]) -> tuple[Release, ...]:
    """The releases that print all of these lines, oldest first; empty where no one release does."""
    allowed = set(RELEASES)
    for line in lines:
        if line.releases is not None:
            allowed &= set(line.releases) & set(RELEASES)
        if isinstance(line.record, Arguments):
            allowed &= set(_of_arguments(line.record))
    if _draft_before_pools(lines):
        allowed &= set(_range("0.5.14", LATEST))
    return tuple(release for release in RELEASES if release in allowed)


def releases_text(releases: tuple[Release, ...]) -> str:
    """A set of releases in words: 0.5.23, or 0.5.13 to 0.5.16."""
    if not releases:
        return "no one release"
    return releases[0] if len(releases) == 1 else f"{releases[0]} to {releases[-1]}"


def _range(since: Release, until: Release) -> tuple[Release, ...]:
    return RELEASES[RELEASES.index(since) : RELEASES.index(until) + 1]


def _of_arguments(arguments: Arguments) -> Iterable[Release]:
    allowed = set(RELEASES)
    if arguments.form == "dict":
        allowed &= set(_range("0.5.19", LATEST))
    if arguments.form == "ServerArgs":
        allowed &= set(_range(RELEASES[0], "0.5.18"))
    for key, since, until in _KEYS:
        if key in arguments.names and not (key == OLD_STRATEGY and NEW_STRATEGY in arguments.names):
            allowed &= set(_range(since, until))
        elif key not in arguments.names and arguments.complete and arguments.keys >= ALL_KEYS:
            allowed -= set(_range(since, until))
    return allowed


OLD_STRATEGY, NEW_STRATEGY = "mamba_scheduler_strategy", "mamba_radix_cache_strategy"
# Keys that the line holds in some releases only. The older name of the strategy says nothing beside the newer: a line
# that someone put together may hold both.
_KEYS: tuple[tuple[str, Release, Release], ...] = (
    (OLD_STRATEGY, "0.5.7", "0.5.13"),
    (NEW_STRATEGY, "0.5.14", LATEST),
    ("dcp_size", "0.5.15", LATEST),
    ("enable_linear_replayssm", "0.5.15", LATEST),
    ("enable_gdn_replayssm_spec", "0.5.16", "0.5.16"),
    ("enable_linear_replayssm_spec", "0.5.17", LATEST),
    ("attn_dp_size", "0.5.22", LATEST),
)


def _draft_before_pools(lines: list[Line]) -> bool:
    """A draft's weights before the pools of the same rank: since 0.5.14 (section 2)."""
    ends: dict[object, int] = {}
    for line in lines:
        if isinstance(line.record, WeightsEnd):
            ends[line.rank] = ends.get(line.rank, 0) + 1
        elif isinstance(line.record, StatePool) and line.rank.name and ends.get(line.rank, 0) > 1:
            return True
    return False
