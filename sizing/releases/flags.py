"""Every flag that SGLang's launcher takes, by release: which has it, and what an abbreviated one stands for.

Source: flags.json, read from the `add_argument` calls and the annotated fields of server_args.py and arg_groups in the
wheels of RELEASES: first release, last release where a later one dropped the flag, and what follows it.
"""

import json
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from sizing.releases.rules import LATEST, RELEASES, Release

# The flags that decide the slots of a split.
RATIO, PIN, REQUESTS = "--mamba-full-memory-ratio", "--max-mamba-cache-size", "--max-running-requests"

FILE = Path(__file__).parent / "flags.json"

Follows = Literal["switch", "one", "maybe", "many"]
MOST = {"switch": 0, "one": 1, "maybe": 1}
"""How many words a flag takes at most; `many` takes all up to the next flag."""


class EngineFlag(NamedTuple):
    """One flag: the releases that have it, and what follows it."""

    since: Release
    until: Release | None
    """The last release that has it; None where the newest has it too."""
    follows: Follows

    @property
    def releases(self) -> tuple[Release, ...]:
        """The releases that have it, oldest first."""
        return RELEASES[RELEASES.index(self.since) : RELEASES.index(self.until or LATEST) + 1]


@cache
def engine_flags() -> dict[str, EngineFlag]:
    """Every flag of any release by its whole name."""
    return {name: _flag(words.split()) for name, words in json.loads(FILE.read_text(encoding="utf-8")).items()}


def _flag(words: list[str]) -> EngineFlag:
    releases: dict[str, Release] = {release: release for release in RELEASES}
    kinds: dict[str, Follows] = {kind: kind for kind in get_args(Follows)}
    since, *until, follows = words
    return EngineFlag(releases[since], releases[until[0]] if until else None, kinds[follows])


@cache
def whole_name(name: str) -> str | None:
    """The flag that a name stands for; None for one that no release has, or that could be several.

    argparse takes any beginning that only one flag has; flags differ by release, so the newest one that can tell does.

    >>> whole_name("--tp"), whole_name("--mem-frac"), whole_name("--max"), whole_name("--gdn-mtp-cache-mode")
    ('--tp-size', '--mem-fraction-static', None, None)
    """
    if name in engine_flags():
        return name
    for release in reversed(RELEASES):
        found = [whole for whole, flag in engine_flags().items() if whole.startswith(name) and release in flag.releases]
        if len(found) == 1:
            return found[0]
    return None


def words_taken(name: str) -> int | None:
    """How many words a flag takes at most; None where there is no bound, or the flag is not known."""
    flag = engine_flags().get(whole_name(name) or "")
    return None if flag is None else MOST.get(flag.follows)


def releases_with(names: list[str]) -> tuple[Release, ...]:
    """The releases that have all of these flags, oldest first; flags that none has do not count.

    >>> releases_with(["--mamba-scheduler-strategy", "--dcp-size"])
    ('0.5.15', '0.5.16', '0.5.17', '0.5.18', '0.5.19')
    """
    known = [flag for name in names if (flag := engine_flags().get(whole_name(name) or ""))]
    return tuple(release for release in RELEASES if all(release in flag.releases for flag in known))


def has_flag(release: Release, flag: str) -> bool:
    """Whether the release's argument parser knows the flag; one that is not in the table was not read, and counts.

    >>> has_flag("0.5.14", "--dcp-size"), has_flag("0.5.20", "--mamba-scheduler-strategy")
    (False, False)
    """
    known = engine_flags().get(flag)
    return known is None or release in known.releases


def flag_releases(flag: str) -> str:
    """The releases that have the flag, in words."""
    known = engine_flags()[flag]
    return f"SGLang {known.since} to {known.until}" if known.until else f"SGLang {known.since} or newer"
