"""From `/server_info` to a scenario's inputs: as good as a boot log, but for rest and the bytes of the state pool.

Source: running-server.md 4.2. With a model of the catalogue both follow: its bytes from its geometry, and rest from
what the engine made of it, K and the tokens.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from pydantic import ValidationError

from sizing.basics.dtypes import KV_ITEMSIZE
from sizing.basics.problems import RefusedError
from sizing.basics.units import count
from sizing.bootlog.inputs import LOG, MODEL, Inputs, inputs_of, whole_elements
from sizing.bootlog.log import read_text
from sizing.bootlog.measure import Measured, share
from sizing.engine.pools import Pools, pools_from_slots
from sizing.engine.rank import rank_of
from sizing.engine.slots import slots_set
from sizing.releases.rules import Release, at_least
from sizing.scenario.from_model import FILLED, names
from sizing.scenario.inputs import MAX_REST_GIB, Scenario, read_scenario
from sizing.scenario.rest import for_bytes_alone
from sizing.server.said import ServerInfo

ANSWER = "server_info"
LOGICAL_SINCE: Release = "0.5.21"  # max_total_num_tokens and token_capacity count logical tokens, before rows of a rank
LEAST_GIB, STEPS = -64.0, 80  # where rest is looked for, and how often the range is halved


class ServerInputs(NamedTuple):
    """What a server says of itself as a scenario."""

    inputs: Inputs
    rest: Measured | None
    """GiB per rank: all of it that gives the K and the tokens that run."""
    scenario: Scenario | None
    """None where bytes or rest are not known."""
    why_not: str
    """Why there is no scenario, in a sentence."""


def boot_lines(info: ServerInfo) -> str:
    """The same in the words of a boot log, for whoever reads one: arguments, K, tokens and requests.

    The pin and the cap among the arguments are the user's, K and the requests are those that run.
    """
    values = ", ".join(f"{name!r}: {value!r}" for name, value in info.arguments.values.items())
    if info.arguments.form == "ServerArgs":
        values = ", ".join(f"{name}={value!r}" for name, value in info.arguments.values.items())
    lines = [f"server_args={{{values}}}" if info.arguments.form == "dict" else f"server_args=ServerArgs({values})"]
    first = info.ranks[0] if info.ranks else None
    if first and first.slots is not None:
        lines.append(f"Mamba Cache is allocated. max_mamba_cache_size: {first.slots},")
    tokens = info.tokens or (first.tokens if first else None)
    if tokens is not None:
        limit = f", max_running_requests={first.limit}" if first and first.limit is not None else ""
        context = info.settings.context_length
        lines.append(f"max_total_num_tokens={tokens}{limit}{f', context_len={context}' if context else ''},")
    return "\n".join(lines) + "\n"


def model_of(info: ServerInfo) -> str:
    """The model of the catalogue that the server's path ends in; empty where none does."""
    last = (info.settings.model_path or "").rstrip("/").rpartition("/")[2].lower()
    return next((name for name in names() if last and name.rpartition("/")[2].lower() == last), "")


def inputs_of_server(info: ServerInfo, model: str | None = None, **stated: Any) -> ServerInputs:
    """A scenario from a server's own words; `model` is that of the catalogue (the one that the path names), `stated`
    what the user adds, such as L [tokens]. Raises nothing.
    """
    model = model_of(info) if model is None else model
    boot = read_text(boot_lines(info)).last
    found = inputs_of(boot.facts) if boot else Inputs({}, {}, (), ())
    values, sources = (
        dict(found.values),
        {name: ANSWER if said == LOG else said for name, said in found.sources.items()},
    )
    more = _release(info) | _kv(info)
    values |= more
    sources |= dict.fromkeys(more, ANSWER)
    if info.skip_decode_lock is not None:
        values["skip_decode_lock"] = info.skip_decode_lock
    if model:
        values = {name: value for name, value in values.items() if name not in FILLED} | {"model": model}
        sources["model"] = MODEL
    inputs = found._replace(values=values, sources=sources)
    if not model and "state_bytes_per_slot" not in {**values, **stated}:
        why = "State bytes per slot are in no field of /server_info: choose the model, or give a boot log."
        return ServerInputs(inputs, None, None, why)
    return _with_rest(info, inputs, stated)


def _with_rest(info: ServerInfo, inputs: Inputs, stated: dict[str, Any]) -> ServerInputs:
    scenario = read_scenario({"page_size": 1, **inputs.values, **stated})
    if not isinstance(scenario, Scenario):
        return ServerInputs(inputs, None, None, scenario[0].sentence)
    if "rest_gib" in stated:
        return ServerInputs(inputs, None, scenario, "")
    slots, rows = info.ranks[0].slots if info.ranks else None, rows_of(info)
    if slots is None or rows is None:
        why = "rest does not follow: the answer lacks K or max_total_num_tokens."
        return ServerInputs(inputs, None, None, why)
    try:
        rest = _rest(scenario, slots, rows, _kv_ends(info) if "model" not in inputs.values else ())
    except RefusedError as refused:
        return ServerInputs(inputs, None, None, str(refused))
    if rest is None:
        why = (
            f"No rest gives the {count(slots)} slots and {count(rows)} tokens that run: the model, a flag or a "
            "variable is another one, or --max-total-tokens hides it. Give a boot log."
        )
        return ServerInputs(inputs, None, None, why)
    values = inputs.values | {"rest_gib": rest.value}
    sources = inputs.sources | {"rest_gib": "K and tokens that run"}
    try:
        scenario = Scenario.model_validate({"page_size": 1, **values, **stated})
    except ValidationError as error:
        return ServerInputs(inputs, rest, None, str(error.errors()[0]["msg"]))
    missing = tuple(ask for ask in inputs.missing if ask.partition(":")[0] not in ("rest", "rest_gib", *stated))
    return ServerInputs(inputs._replace(values=values, sources=sources, missing=missing), rest, scenario, "")


def _rest(scenario: Scenario, slots: int, rows: int, ends: tuple[int, ...]) -> Measured | None:
    """The rest that gives what runs, over the bytes of a token that the printed size leaves open."""
    found = [rest_that_gives(scenario, slots, rows)]
    for size in ends:
        other = scenario.model_copy(update={"kv_bytes_per_token": size})
        found.append(rest_that_gives(other, slots, rows))
    known = [rest for rest in found if rest is not None]
    if found[0] is None:
        return None
    return Measured(found[0].value, min(rest.low for rest in known), max(rest.high for rest in known))


def rows_of(info: ServerInfo) -> int | None:
    """KV rows of one rank [tokens]; None where the answer does not say what it counts."""
    tokens, dcp = info.tokens, info.settings.dcp_size or 1
    if tokens is None or dcp == 1:
        return tokens
    if info.release is None:
        return None
    return tokens // dcp if at_least(info.release, LOGICAL_SINCE) else tokens


def rest_that_gives(scenario: Scenario, slots: int, rows: int) -> Measured | None:
    """The rest [GiB] with which the engine makes K = `slots` [slots] and so many `rows` [tokens], end to end.

    None where no rest does, or where it has no upper end. Raises RefusedError for flags that are refused.
    """
    rank = rank_of(for_bytes_alone(scenario))

    def pools(rest: float) -> Pools:
        return pools_from_slots(rank._replace(rest_gib=rest), slots)

    def made(rest: float) -> int:
        return int(slots_set(rank._replace(rest_gib=rest), scenario.mamba_full_memory_ratio))

    ends = (
        _first(lambda rest: int(pools(rest).kv_rows) >= rows),
        _first(lambda rest: int(pools(rest).kv_rows) > rows),
        _first(lambda rest: made(rest) >= slots),
        _first(lambda rest: made(rest) > slots),
    )
    if ends[0] is None or ends[2] is None:
        return None
    low = max(ends[0], ends[2])
    high = min((end for end in (ends[1], ends[3]) if end is not None), default=None)
    if high is None or low >= high:
        return None
    value = (low + high) / 2
    right = made(value) == slots and int(pools(value).kv_rows) == rows
    return Measured(value, low, high) if right else None


def _first(holds: Callable[[float], bool]) -> float | None:
    """The least rest [GiB] from which on something holds; None where it never does."""
    low, high = LEAST_GIB, float(MAX_REST_GIB)
    if not holds(high):
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _release(info: ServerInfo) -> dict[str, Any]:
    return {"release": info.release} if info.release else {}


def _each(info: ServerInfo) -> Measured | None:
    """Bytes of a token, from the size of the pool, which covers a padding page."""
    rows, first = rows_of(info), info.ranks[0] if info.ranks else None
    if rows is None or first is None or first.kv_gib is None or not first.kv_gib.low > 0:
        return None
    return share(first.kv_gib, rows + (info.settings.page_size or 1))


def _kv_ends(info: ServerInfo) -> tuple[int, ...]:
    """The least and the most whole bytes of a token that the printed size allows."""
    each = _each(info)
    return () if each is None else (max(-int(-each.low // 1), 1), max(int(each.high), 1))


def _kv(info: ServerInfo) -> dict[str, Any]:
    """Bytes of a token in whole elements, and their dtype."""
    each, dtype = _each(info), info.kv_dtype or "bfloat16"
    if each is None:
        return {}
    return {
        "kv_bytes_per_token": max(whole_elements(each, KV_ITEMSIZE[dtype]), 1),
        "kv_bytes_source": LOG,
        "kv_bytes_dcp_size": info.settings.dcp_size or 1,
        "kv_cache_dtype": dtype,
        "kv_bytes_dtype": dtype,
    }
