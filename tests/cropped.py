"""A log cut off at a column, and what may not change by it: every number is absent or that of the whole log."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sizing.bootlog import Facts, Log, Measured, read_text

GOLDEN = Path(__file__).parent / "golden"
# What pages print, and ends of lines: a pager and an editor mark a line that goes on, a terminal does not.
MARKS = ("", ">", "$", "…", " ", "\x1b[0m")
# Of a boot's facts: what is no number, or says of itself that it depends on what else is there.
NO_NUMBERS = {
    "ranks", "by_rank", "ranks_differ", "releases", "settings", "conflicts", "missing", "S_possible", "S_from",
    "rest_from_pools_is_least", "radix_off", "idle_gib",
}  # fmt: skip


def logs(folders: list[Path]) -> dict[str, str]:
    """Every log below these folders, by its name."""
    paths = sorted(path for folder in folders for path in folder.rglob("*.log"))
    return {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in paths}


def columns(text: str, most: int = 400) -> range:
    """The widths at which a log can be cut: up to its longest line, or `most`."""
    return range(1, min(max(map(len, text.splitlines()), default=0) + 2, most))


def at_width(text: str, width: int, mark: str = "") -> str:
    """Every line cut at a width, as by `cut -c`; `mark` behind those that were longer."""
    return "".join((line[:width] + mark if len(line) > width else line) + "\n" for line in text.splitlines())


def prefixes(text: str) -> Iterator[str]:
    """The text broken off at every character, but for most of a very long line."""
    at = 0
    for line in text.splitlines(keepends=True):
        for end in range(len(line)):
            if end < 400 or end > len(line) - 40 or end % 97 == 0:
                yield text[: at + end]
        at += len(line)


def wrong_at_width(cropped: str, whole: Log) -> list[str]:
    """The numbers of a log cut at a width that are not those of the whole one, of the boots that count."""
    last = read_text(cropped).last
    return differences(last.facts, whole.last.facts) if last and whole.last else []


def wrong_in_part(prefix: str, whole: Log) -> list[str]:
    """The numbers of a log that breaks off that are not those of the whole one, boot by boot."""
    true = {boot.first_line: boot.facts for boot in whole.boots}
    boots = [boot for boot in read_text(prefix).boots if boot.first_line in true]
    return [sentence for boot in boots for sentence in differences(boot.facts, true[boot.first_line])]


def differences(cropped: Facts, whole: Facts) -> list[str]:
    """Each number that is there and not as in the whole log; a measured one must hold what the whole log measures."""
    found = [
        f"{name}: {value}, not {true}"
        for name, value in cropped
        if name not in NO_NUMBERS and not _right(value, true := _true(name, value, whole))
    ]
    settings = cropped.settings._asdict()
    return found + [
        f"settings.{name}: {value}, not {true}"
        for name, value in settings.items()
        if name not in ("stated", "complete") and not _right(value, true := getattr(whole.settings, name))
    ]


def _true(name: str, value: Any, whole: Facts) -> Any:
    if name != "token_bytes_of_either":
        return getattr(whole, name)
    either = (whole.token_bytes, whole.draft_token_bytes)
    return next((true for true in either if true and _right(value, true)), None)


def _right(value: Any, true: Any) -> bool:
    if value is None:
        return True
    if isinstance(value, Measured) and isinstance(true, Measured):
        return value.holds(true.value)
    return bool(value == true)
