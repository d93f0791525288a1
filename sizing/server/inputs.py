"""From what a running server says to a scenario: as good as a boot log, but for rest and the bytes of the state pool.

Source: running-server.md 4.2. With a model of the catalogue both follow: its bytes from its geometry, and rest from
what the engine made of it, K and the tokens.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from sizing.basics.dtypes import KV_ITEMSIZE, KvDtype
from sizing.basics.problems import RefusedError
from sizing.basics.search import turning_point
from sizing.basics.units import count
from sizing.bootlog.diagnosis import Diagnosis, diagnose, named_model
from sizing.bootlog.facts import Facts
from sizing.bootlog.gather import facts_of
from sizing.bootlog.inputs import LOG, whole_elements
from sizing.bootlog.log import Boot, read_text
from sizing.bootlog.log_and_command import joined
from sizing.bootlog.measure import Measured, share
from sizing.command import Command
from sizing.engine.pools import Pools, pools_from_slots
from sizing.engine.rank import rank_of
from sizing.engine.resolve import resolution
from sizing.engine.slots import slots_set
from sizing.releases.rules import rules_of
from sizing.scenario.inputs import MAX_REST_GIB, Scenario
from sizing.scenario.rest import for_bytes_alone
from sizing.server.facts import ServerFacts
from sizing.server.server_info import ServerInfo

TOLD = "running server"
LEAST_GIB = -64.0  # from where on rest is looked for
KV_DTYPES: tuple[KvDtype, ...] = ("bfloat16", "fp8_e4m3")  # what --kv-cache-dtype auto may come to
# Why nothing follows for another split; each ends a sentence.
NO_BYTES = (
    "the bytes of a state slot are in no field of a running server; add the launch command, choose the model, or give "
    "the boot log"
)
NO_COUNTS = "it takes K and max_total_num_tokens; add /server_info, or /metrics of 0.5.12 or newer, or the boot log"
NO_FLAGS = "S is in none of these texts; add the launch command, or /server_info, which has all flags"
NO_DRAFT = "the KV bytes of the draft model are in no field of a running server; give the boot log"


class ServerInputs(NamedTuple):
    """What a server says of itself, read as a boot log is."""

    boot: Boot
    """Its words as lines of a boot log."""
    diagnosis: Diagnosis
    """With a scenario where bytes and rest are known."""
    rest: Measured | None
    """GiB per rank: all of it that gives the K and the tokens that run."""
    why_not: str
    """Why there is no scenario: the end of a sentence."""


def inputs_of_server(
    facts: ServerFacts, command: Command | None = None, model: str | None = None, **stated: Any
) -> ServerInputs | None:
    """A scenario from a server's own words, and from the command that started it; None where it says no count.

    `model` is a name of the catalogue (the one that the path names), `stated` what the user adds, such as L [tokens].
    Raises nothing.
    """
    boot = _boot(facts)
    if boot is None:
        return None
    if model is None:
        paths = (joined(boot, command).facts.settings.model_path, command.model_path if command else None)
        model = next((name for path in paths if (name := named_model(path))), "")
    whole = _own(facts, model) | stated
    ran = joined(boot, command).facts.settings.mamba_ssm_dtype
    if ran is not None and "state_bytes_per_slot" in whole:  # what a user adds are the bytes that run
        whole["state_bytes_dtype"] = ran
    found = diagnose(boot, model=model, command=command, stated=whole, trusted=True)
    if not model and "state_bytes_per_slot" not in whole:
        return ServerInputs(boot, _named(found), None, NO_BYTES)
    return _with_rest(boot, facts, command, model, whole)


def _boot(facts: ServerFacts) -> Boot | None:
    """Its words as a boot: whole lines, of the release that it says it is."""
    text = boot_lines(facts)
    boot = read_text(text).last if text else None
    if boot is None:
        return None
    release = facts.info.release if facts.info else None
    only = frozenset((release,)) if release else None
    lines = [line._replace(cut=False, releases=only or line.releases) for line in boot.lines]
    return boot._replace(lines=tuple(lines), facts=facts_of(lines))


def _with_rest(
    boot: Boot, facts: ServerFacts, command: Command | None, model: str, stated: dict[str, Any]
) -> ServerInputs:
    def at(more: dict[str, Any]) -> Diagnosis:
        every = {"rest_gib": 1.0, **stated, **more}  # a rest that stands until the one that runs is found
        return _named(diagnose(boot, model=model, command=command, stated=every, trusted=True))

    tried = [at({"kv_cache_dtype": dtype}) for dtype in _dtypes(at({}), model)] or [at({})]
    found = next((one for one in tried if _is_the_model(facts, one)), None)
    if found is None:
        return _without(boot, tried[0], f"{model} has other KV bytes than what runs; choose another model")
    slots, rows, scenario = facts.slots, _rows(facts, found.facts), found.scenario
    if (why := _lacking(found, slots, rows, rest_is_stated="rest_gib" in stated)) or scenario is None:
        return _without(boot, found, why)
    if "rest_gib" in stated or slots is None or rows is None:
        return ServerInputs(boot, found, None, "")
    try:
        rest = _rest(scenario, slots, rows, () if found.model else _kv_ends(facts))
    except RefusedError as refused:
        return _without(boot, found, str(refused).rstrip("."))
    if rest is None:
        why = (
            f"no rest gives the {count(slots)} slots and {count(rows)} tokens of a rank that run, so the model is "
            "another one, or a flag or a variable is, or --max-total-tokens hides it; give the boot log"
        )
        return _without(boot, found, why)
    found = at({"kv_cache_dtype": scenario.kv_cache_dtype, "rest_gib": rest.value})
    known = found.facts.model_copy(update={"rest_from_pools": rest, "kv_rows": rows})
    return ServerInputs(boot, found._replace(facts=known), rest, "")


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


def _lacking(found: Diagnosis, slots: int | None, rows: int | None, *, rest_is_stated: bool) -> str:
    """Why no deployment follows: the end of a sentence; empty where one does."""
    scenario = found.scenario
    if found.facts.S is None:
        return NO_FLAGS
    if scenario is None or found.problems:
        return "; ".join(problem.sentence.rstrip(".") for problem in found.problems) or NO_BYTES
    if scenario.D and not scenario.draft_kv_bytes_per_token:
        return NO_DRAFT
    return NO_COUNTS if not rest_is_stated and (slots is None or rows is None) else ""


def _without(boot: Boot, found: Diagnosis, why: str) -> ServerInputs:
    """What is known all the same, and no scenario: it would hold a rest that is none."""
    return ServerInputs(boot, found._replace(scenario=None, sizing=None, beside=()), None, why)


def boot_lines(facts: ServerFacts) -> str:
    """What a server says in the words of a boot log: arguments, K, tokens and requests; empty where it says none.

    The pin and the cap among the arguments are the user's, K and the requests are those that run.
    """
    return "".join(f"{line}\n" for line in _lines(facts))


def _lines(facts: ServerFacts) -> Iterator[str]:
    info, limit = facts.info, _limit(facts)
    if info:
        values = info.arguments.values.items()
        as_dict = info.arguments.form == "dict"
        inside = ", ".join(f"{name!r}: {value!r}" if as_dict else f"{name}={value!r}" for name, value in values)
        yield f"server_args={{{inside}}}" if as_dict else f"server_args=ServerArgs({inside})"
    if facts.slots is not None:
        yield f"Mamba Cache is allocated. max_mamba_cache_size: {facts.slots},"
    if (tokens := _tokens(facts)) is not None:
        context = info.settings.context_length if info else None
        requests = f", max_running_requests={limit}" if limit is not None else ""
        yield f"max_total_num_tokens={tokens}{requests}{f', context_len={context}' if context else ''},"


def _tokens(facts: ServerFacts) -> int | None:
    """max_total_num_tokens as the server says it."""
    info, main = facts.info, facts.main
    first = info.ranks[0].tokens if info and info.ranks else None
    return (info.tokens if info else None) or first or (main.kv_tokens if main else None)


def _limit(facts: ServerFacts) -> int | None:
    """The requests that it admits, where it says so itself."""
    said = [rank.limit for rank in (facts.info.ranks if facts.info else ()) if rank.limit is not None]
    observed = [rank.limit for rank in facts.ranks if rank.limit is not None and rank.limit_from == "loads"]
    return min(said or observed, default=None)


def rows_of(info: ServerInfo) -> int | None:
    """KV rows of one rank [tokens]; None where the answer does not say what it counts."""
    tokens, dcp = info.tokens, info.settings.dcp_size or 1
    if tokens is None or dcp == 1:
        return tokens
    if info.release is None:
        return None
    return tokens // dcp if rules_of(info.release).prints_logical_tokens else tokens


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
    found = turning_point(LEAST_GIB, float(MAX_REST_GIB), holds)
    return found and found[1]


def _rows(facts: ServerFacts, boot: Facts) -> int | None:
    """The same of what any format says, with the width and the release that flags and lines tell."""
    info = facts.info
    if info is not None:
        return rows_of(info)
    if boot.dcp_size in (None, 1):
        return None if boot.dcp_size is None else _tokens(facts)
    return boot.kv_rows


def _own(facts: ServerFacts, model: str) -> dict[str, Any]:
    """What the server says in words that no boot log has."""
    info = facts.info
    if info is None:
        return {}
    found: dict[str, Any] = {"release": info.release} if info.release else {}
    if info.skip_decode_lock is not None:
        found["skip_decode_lock"] = info.skip_decode_lock
    return found if model else found | _kv(facts)


def _named(found: Diagnosis) -> Diagnosis:
    """With where each value is from, and without asking for lines that only a boot has."""
    sources = {name: TOLD if said == LOG else said for name, said in found.inputs.sources.items()}
    asks = tuple(ask for ask in found.inputs.missing if not ask.startswith(("State bytes", "KV bytes", "rest")))
    inputs = found.inputs._replace(sources=sources, missing=asks)
    return found._replace(inputs=inputs)


def _dtypes(found: Diagnosis, model: str) -> tuple[KvDtype, ...]:
    """The dtypes that KV may have where no flag says one; with its printed size the one that fits it is taken."""
    return () if found.facts.settings.kv_cache_dtype or not model else KV_DTYPES


def _is_the_model(facts: ServerFacts, found: Diagnosis) -> bool:
    """Whether the printed size of the KV pool allows the bytes of the model; true where none is printed."""
    each = _each(facts)
    if each is None or not found.model or found.scenario is None:
        return True
    try:
        return each.holds(resolution(found.scenario).costs.target_token)
    except RefusedError:
        return True


def _each(facts: ServerFacts) -> Measured | None:
    """Bytes of a token, from the size of the pool, which covers a padding page."""
    info = facts.info
    rows, first = (rows_of(info), info.ranks[0] if info.ranks else None) if info else (None, None)
    if info is None or rows is None or first is None or first.kv_gib is None or not first.kv_gib.low > 0:
        return None
    return share(first.kv_gib, rows + (info.settings.page_size or 1))


def _kv_ends(facts: ServerFacts) -> tuple[int, ...]:
    """The least and the most whole bytes of a token that the printed size allows."""
    each = _each(facts)
    return () if each is None else (max(-int(-each.low // 1), 1), max(int(each.high), 1))


def _kv(facts: ServerFacts) -> dict[str, Any]:
    """Bytes of a token in whole elements, and their dtype."""
    each, info = _each(facts), facts.info
    if each is None or info is None:
        return {}
    dtype = info.kv_dtype or "bfloat16"
    return {
        "kv_bytes_per_token": max(whole_elements(each, KV_ITEMSIZE[dtype]), 1),
        "kv_bytes_source": LOG,
        "kv_bytes_dcp_size": info.settings.dcp_size or 1,
        "kv_cache_dtype": dtype,
        "kv_bytes_dtype": dtype,
    }
