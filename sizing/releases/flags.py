"""Which release has which flag, where not all of them do.

Source: engine-versions.md ("S and strategies", "Flags and environment") and the executed flag combinations.
"""

from collections.abc import Iterable

from sizing.releases.rules import LATEST, RELEASES, Release

# The flags that decide the slots of a split.
RATIO, PIN, REQUESTS = "--mamba-full-memory-ratio", "--max-mamba-cache-size", "--max-running-requests"

# First and last release; a flag that is not here is in every release or is not read.
STRETCHES: dict[str, tuple[Release, Release]] = {
    "--mamba-scheduler-strategy": ("0.5.7", "0.5.19"),
    "--mamba-radix-cache-strategy": ("0.5.14", LATEST),
    "--mamba-track-interval": ("0.5.7", LATEST),
    "--linear-attn-backend": ("0.5.10", LATEST),
    "--disaggregation-decode-enable-radix-cache": ("0.5.11", LATEST),
    "--disaggregation-decode-extra-slots": ("0.5.14", LATEST),
    "--enable-int8-mamba-checkpoint": ("0.5.14", LATEST),
    "--dcp-size": ("0.5.15", LATEST),
    "--enable-unified-memory": ("0.5.15", LATEST),
    "--enable-linear-replayssm": ("0.5.15", LATEST),
    "--linear-replayssm-cache-len": ("0.5.15", LATEST),
    "--enable-gdn-replayssm-spec": ("0.5.16", "0.5.19"),
    "--enable-linear-replayssm-spec": ("0.5.17", LATEST),
    "--attn-dp-size": ("0.5.22", LATEST),
}


def has_flag(release: Release, flag: str) -> bool:
    """Whether the release's argument parser knows the flag.

    >>> has_flag("0.5.14", "--dcp-size"), has_flag("0.5.20", "--mamba-scheduler-strategy")
    (False, False)
    """
    if flag not in STRETCHES:
        return True
    first, last = STRETCHES[flag]
    return RELEASES.index(first) <= RELEASES.index(release) <= RELEASES.index(last)


def lacking(release: Release, flags: Iterable[str]) -> str | None:
    """The first of these flags that the release does not have; None where it has them all."""
    return next((flag for flag in flags if not has_flag(release, flag)), None)


def where(flag: str) -> str:
    """The releases that have the flag, in words."""
    first, last = STRETCHES[flag]
    return f"SGLang {first} or newer" if last == LATEST else f"SGLang {first} to {last}"
