"""What `/server_info` says of a server, and what `/v1/loads` says of a moment: JSON of all releases.

Source: running-server.md 4.2 and 4.3. `GB` is GiB.
"""

import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

from sizing.basics.dtypes import KvDtype
from sizing.bootlog.arguments import WANTED
from sizing.bootlog.line_records import Arguments, ArgumentsForm
from sizing.bootlog.measure import Measured
from sizing.bootlog.settings import Settings, kv_dtype, settings_of
from sizing.releases.rules import RELEASES, Release, at_least
from sizing.server.columns import Key
from sizing.server.metrics import WHOLE, Scrape

MAX_JSON = 4 * 2**20  # characters; an answer of 64 ranks with all arguments has a tenth of it
MAX_DEPTH, MAX_ITEMS = 3, 4096  # how deep, and among how many members, an answer is looked for
WORDS = ('"internal_states"', '"mem_fraction_static"', '_waiting_reqs"')  # one of them is in each of the answers
MOST = 10**15  # no number of a server is as large
FINE_SINCE: Release = "0.5.17"  # three decimals of memory instead of two


class InfoRank(NamedTuple):
    """One attention-DP rank, after its pools were sized."""

    slots: int | None
    """K, solved."""
    limit: int | None
    """The requests that it admits, since 0.5.8."""
    tokens: int | None
    """token_capacity: rows up to 0.5.20, logical since 0.5.21."""
    kv_gib: Measured | None
    """The KV pool alone; no field has the state pool."""
    weights_gib: Measured | None
    graphs_gib: Measured | None
    begin_gib: Measured | None


class ServerInfo(NamedTuple):
    """One answer of `/server_info` or `/get_server_info`."""

    version: str
    """As printed; empty without one."""
    release: Release | None
    """The release whose rules are known; a post-release counts as its release."""
    arguments: Arguments
    """As a boot log's arguments line has them: the user's values of the pin and of the requests."""
    tokens: int | None
    """max_total_num_tokens: rows of a rank in 0.5.15 to 0.5.20, logical since 0.5.21."""
    launch_command: str
    skip_decode_lock: bool | None
    """SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK, where the server shows its variables."""
    ranks: tuple[InfoRank, ...]

    @property
    def settings(self) -> Settings:
        """The arguments in the names of a scenario's inputs."""
        return settings_of(self.arguments)

    @property
    def kv_dtype(self) -> KvDtype | None:
        """The dtype of KV by flag; None for auto."""
        return kv_dtype(str(self.arguments.values.get("kv_cache_dtype")))


def read_json(text: str) -> list[ServerInfo | Scrape]:
    """The answers in a JSON text, which may go on behind its end, or break off; empty for any other text.

    >>> read_json('{"loads": [{"dp_rank": 0, "num_running_reqs": 3, "num_waiting_reqs": 1}]}')[0].values
    {'running': 3.0, 'queued': 1.0}
    """
    if not any(word in text for word in WORDS):
        return []
    value = _parsed(text[:MAX_JSON])
    if value is None:
        value = _parsed(_closed(text[:MAX_JSON]))
    found: list[ServerInfo | Scrape] = []
    for item in _objects(value, MAX_DEPTH):
        if _is_info(item):
            found.append(_info(item))
        elif "num_waiting_reqs" in item:
            load = _load(item)
            found += [load] if load else []
    return found


def _parsed(text: str) -> Any:
    try:
        return _DECODER.raw_decode(text.lstrip())[0]
    except (ValueError, RecursionError):
        return None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_constant)


def _closed(text: str) -> str:
    """A JSON text that breaks off, cut behind its last whole member and closed; no number at a cut is kept."""
    open_brackets: list[str] = []
    cut, kept, string, escaped = 0, "", False, False
    for at, char in enumerate(text):
        if string:
            string, escaped = escaped or char != '"', char == "\\" and not escaped
        elif char == '"':
            string = True
        elif char in "{[":
            open_brackets.append("}" if char == "{" else "]")
        elif char in "}]" and open_brackets:
            open_brackets.pop()
        elif char == ",":
            cut, kept = at, "".join(reversed(open_brackets))
    return text[:cut] + kept


def _objects(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    """The objects of a value, outermost first; those within an answer of `/server_info` belong to it."""
    if isinstance(value, dict):
        yield value
        members = () if _is_info(value) else list(value.values())[:MAX_ITEMS]
    elif isinstance(value, list):
        members = value[:MAX_ITEMS]
    else:
        return
    for member in members if depth else ():
        yield from _objects(member, depth - 1)


def _is_info(item: dict[str, Any]) -> bool:
    return isinstance(item.get("internal_states"), list) or (
        "mem_fraction_static" in item and "max_total_num_tokens" in item
    )


def _info(item: dict[str, Any]) -> ServerInfo:
    states = item.get("internal_states")
    inner = [state for state in states if isinstance(state, dict)] if isinstance(states, list) else []
    version = item.get("version") or next((state.get("version") for state in inner if state.get("version")), "")
    version = version[:40] if isinstance(version, str) else ""
    release = release_of(version)
    arguments = _arguments(item if "mem_fraction_static" in item or not inner else {**inner[0], **_user(item)}, release)
    command = item.get("launch_command")
    fine = release is not None and at_least(release, FINE_SINCE)
    return ServerInfo(
        version=version,
        release=release,
        arguments=arguments,
        tokens=_whole(item, "max_total_num_tokens"),
        launch_command=command[:20_000] if isinstance(command, str) else "",
        skip_decode_lock=_skips(item, inner),
        ranks=tuple(_rank(state, fine) for state in inner[:MAX_ITEMS]),
    )


def _user(item: dict[str, Any]) -> dict[str, Any]:
    """The two flags that an inner state holds as solved, not as set, which are not known then."""
    return {name: item.get(name) for name in ("max_mamba_cache_size", "max_running_requests")}


def release_of(version: str) -> Release | None:
    """The release of a version: 0.5.15.post1 is of 0.5.15; None where it is none that was read.

    >>> release_of("0.5.15.post1"), release_of("0.5.99"), release_of("")
    ('0.5.15', None, None)
    """
    base = version.partition(".post")[0]
    return next((release for release in RELEASES if release == base), None)


def _arguments(item: dict[str, Any], release: Release | None) -> Arguments:
    values = {name: item[name] for name in WANTED if name in item and _is_plain(item[name])}
    form: ArgumentsForm = "dict" if release is None or at_least(release, "0.5.19") else "ServerArgs"
    return Arguments(values, frozenset(values), form, len(item), complete="mem_fraction_static" in values)


def _is_plain(value: Any) -> bool:
    """Whether a value is one that a flag may have."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return abs(value) < MOST
    return value is None or isinstance(value, bool | str)


def _rank(state: dict[str, Any], fine: bool) -> InfoRank:
    memory = state.get("memory_usage")
    memory = memory if isinstance(memory, dict) else {}
    graph = memory.get("graph")
    if isinstance(graph, dict):  # since 0.5.17 one number a phase
        parts = [_gib(graph, name, fine) for name in list(graph)[:16]]
        graphs = None if None in parts else _sum([part for part in parts if part])
    else:
        graphs = _gib(memory, "graph", fine)
    return InfoRank(
        slots=_whole(state, "max_mamba_cache_size"),
        limit=_whole(state, "effective_max_running_requests_per_dp"),
        tokens=_whole(memory, "token_capacity"),
        kv_gib=_gib(memory, "kvcache", fine),
        weights_gib=_gib(memory, "weight", fine),
        graphs_gib=graphs,
        begin_gib=_gib(memory, "startup_available", fine),
    )


def _sum(parts: list[Measured]) -> Measured:
    return Measured(*(sum(ends) for ends in zip(*parts, strict=True))) if parts else Measured(0, 0, 0)


def _skips(item: dict[str, Any], inner: list[dict[str, Any]]) -> bool | None:
    for holder in (item, *inner):
        variables = holder.get("env_vars")
        if isinstance(variables, dict):
            return str(variables.get("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK", "")).lower() in ("1", "true")
    return None


def _load(item: dict[str, Any]) -> Scrape | None:
    """One entry of `/v1/loads`; of `/get_load` the queue alone, as its other counts hold those that wait."""
    names = {
        "num_running_reqs": "running", "num_waiting_reqs": "queued", "num_used_tokens": "tokens", "token_usage": "kv",
        "max_total_num_tokens": "capacity", "max_running_requests": "limit",
    }  # fmt: skip
    values = {
        column: value
        for name, column in names.items()
        if (value := _number(item, name)) is not None and (column not in WHOLE or value.is_integer())
    }
    queues = item.get("queues")
    if isinstance(queues, dict) and (waiting := _number(queues, "retracted")) is not None:
        values["retracted_now"] = waiting
    time = _time(item.get("timestamp"))
    rank = _whole(item, "dp_rank", least=0)
    if not values:
        return None
    return Scrape(Key("loads", "", "" if rank is None else f"DP{rank}"), values | ({"time": time} if time else {}))


def _time(value: Any) -> float | None:
    """Seconds since 1970, from a number or from text of ISO 8601."""
    if isinstance(value, str) and len(value) < 40:
        try:
            stated = datetime.fromisoformat(value)
            return (stated if stated.tzinfo else stated.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    known = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if known and 1e9 < value < 1e11 else None


def _number(item: dict[str, Any], name: str) -> float | None:
    value = item.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < MOST and math.isfinite(value) else None


def _whole(item: dict[str, Any], name: str, least: int = 1) -> int | None:
    value = item.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and least <= value < MOST else None


def _gib(item: dict[str, Any], name: str, fine: bool) -> Measured | None:
    value = _number(item, name)
    half = 0.0005 if fine else 0.005
    return None if value is None else Measured(value, value - half, value + half)
