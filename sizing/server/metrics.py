"""`/metrics`: Prometheus text of one or many scrapes, and `/v1/loads?format=prometheus`.

Source: running-server.md 4.1, 4.3 and 4.4. A scrape ends where the same series comes again, or where the recorder
writes its mark, or any loop its date on a line of its own. A value counts only where its line is there to its end.
"""

import math
import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from sizing.bootlog.prefix import Rank
from sizing.server.columns import Key, Row, row

MARK = "# scrape "  # the recorder's, with the seconds since 1970

# What is read, by name without its prefix. Since 0.5.10 token_usage is the fullest pool's and full_token_usage KV's.
GAUGES = {
    "num_running_reqs": "running", "num_queue_reqs": "queued", "num_waiting_reqs": "queued",
    "num_used_tokens": "tokens", "full_token_usage": "kv", "token_usage": "any", "mamba_usage": "state",
    "mamba_used_tokens": "slots", "mamba_evictable_tokens": "cached", "mamba_available_tokens": "free",
    "max_total_num_tokens": "capacity", "page_size": "page", "context_len": "context",
    "max_running_requests": "limit", "num_retracted_requests_total": "retracted",
    "kv_cache_memory_usage_gb": "kv_gib", "weight_memory_usage_gb": "weights_gib",
    "graph_memory_usage_gb": "graphs_gib", "startup_available_gpu_memory_gb": "begin_gib",
}  # fmt: skip

NOT_WHOLE = {"kv", "any", "state", "kv_gib", "weights_gib", "graphs_gib", "begin_gib"}
WHOLE = frozenset(GAUGES.values()) - NOT_WHOLE  # counts: one with a fraction is no count

# What `date`, `date +%s`, `date -Is` and `date -R` print, alone on a line or between signs.
_SIGNS = r"[#=*> \t-]{0,20}+"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DATE = (
    r"1\d{9}(?:\.\d{1,9})?+|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?+(?:Z| ?[+-]\d\d:?\d\d)?+"
    r"|[A-Z][a-z]{2},? {1,2}(?:[A-Z][a-z]{2} {1,2}\d{1,2}|\d{1,2} [A-Z][a-z]{2}) [\w :+-]{12,30}?"
)
_LINE = re.compile(
    rf"\n(?:{re.escape(MARK)}(?P<mark>\d{{9,11}}(?:\.\d{{1,9}})?)(?=\s)"
    rf"|{_SIGNS}(?P<date>{_DATE}){_SIGNS}(?=\r?\n)"
    r"|sglang[:_](?P<name>\w{1,60}+)(?:\{(?P<labels>[^}\n]{0,2000}+)\})? (?P<value>[-+.\w]{1,32}+)"
    r"(?: (?P<milliseconds>\d{10,16}))?(?=[ \t]*\r?\n))"
)
_WORD, _YEAR, _DAY = re.compile(r"[A-Z][a-z]{2}"), re.compile(r"\b\d{4}\b"), re.compile(r"\b\d{1,2}\b")
_CLOCK = re.compile(r"(\d\d):(\d\d):(\d\d)(?: ([AP]M))?")
_LABEL = re.compile(r'(\w{1,40})="([^"\n]{0,200})"')
_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?(?:[eE][+-]?\d{1,2})?")
SOURCES = ("instance", "pod", "server", "node")  # labels that a collector adds


class Scrape(NamedTuple):
    """What one rank said at one time, by the names in GAUGES."""

    key: Key
    values: dict[str, float]

    @property
    def row(self) -> Row:
        """As a row of the table."""
        return row(self.values)


class Metrics:
    """Takes texts in order and gives scrapes as they are complete."""

    def __init__(self) -> None:
        self._time = math.nan
        self._open: dict[tuple[str, str], dict[str, float]] = {}
        self._seen: set[tuple[str, str]] = set()

    def scrapes(self, text: str) -> list[Scrape]:
        """The scrapes that a text completes. It begins with a newline, and its lines are whole."""
        found: list[Scrape] = []
        for match in _LINE.finditer(text):
            if match["mark"]:
                found += self.close()
                self._time = float(match["mark"])
            elif match["date"]:
                found += self.close()
                self._time = time_of(match["date"].strip())
            elif name := GAUGES.get(match["name"]):
                value = number_of(match["value"])
                if value is not None and name in WHOLE and not value.is_integer():
                    continue
                series = (match["name"], match["labels"] or "")
                if value is None:
                    continue
                if series in self._seen:
                    found += self.close()
                self._seen.add(series)
                values = self._open.setdefault(_whose(series[1]), {})
                values.setdefault(name, value)
                if match["milliseconds"]:
                    values.setdefault("time", float(match["milliseconds"]) / 1000)
        return found

    def close(self) -> list[Scrape]:
        """The scrape that is open; to be called at the end."""
        found = []
        for (source, rank), values in self._open.items():
            # Without full_token_usage it is a release before 0.5.10, or a scrape that lost it: then the fullest pool's
            # share is KV's unless it is the state pool's.
            if "kv" not in values and "any" in values and values["any"] != values.get("state"):
                values["kv"] = values["any"]
            values.setdefault("time", self._time)
            if values.keys() - {"time"}:
                found.append(Scrape(Key("metrics", source, rank), values))
        self._open, self._seen = {}, set()
        return found


def time_of(text: str) -> float:
    """What a line of `date` says [s since 1970], its zone taken as UTC: only the time between scrapes counts.

    >>> time_of("Thu Jan 15 10:00:00 UTC 2026") == time_of("2026-01-15T10:00:00+02:00") == time_of("1768471200")
    True
    """
    if text[0].isdigit() and "-" not in text:
        return float(text)
    names, clock, years = _WORD.findall(text), _CLOCK.search(text), _YEAR.search(text)
    days = _DAY.search(text)
    if text[0].isdigit():
        year, month, day = (int(part) for part in text[:10].split("-"))
    else:
        months = [_MONTHS.index(name) + 1 for name in names if name in _MONTHS]
        if not months or years is None or days is None:
            return math.nan
        year, month, day = int(years[0]), months[0], int(days[0])
    if clock is None:
        return math.nan
    hour = int(clock[1]) % 12 + 12 * (clock[4] == "PM") if clock[4] else int(clock[1])
    try:
        return datetime(year, month, day, hour, int(clock[2]), int(clock[3]), tzinfo=UTC).timestamp()
    except ValueError:
        return math.nan


def number_of(text: str) -> float | None:
    """A value that a gauge of ours may have: a finite number, not below 0."""
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if math.isfinite(value) else None


@lru_cache(maxsize=4096)
def _whose(labels: str) -> tuple[str, str]:
    """Instance and rank of a series' labels."""
    found = dict(_LABEL.findall(labels))
    numbers = {name: found.get(f"{name}_rank", "") for name in ("dp", "pp", "tp")}
    rank = Rank(**{name: int(text) for name, text in numbers.items() if text.isdecimal() and len(text) < 6})
    return next((found[name] for name in SOURCES if name in found), ""), rank.name
