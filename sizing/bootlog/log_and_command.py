"""A boot log and the launch command behind it as one: what each fills in, and where they cannot be of one run.

The log wins. A command says what was asked, so what it leaves out was not set, unless flags stand elsewhere.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args

from sizing.basics.dtypes import StateDtype
from sizing.basics.problems import shown
from sizing.basics.units import GIB, count, number
from sizing.bootlog.facts import Facts
from sizing.bootlog.gather import facts_of
from sizing.bootlog.log import Boot
from sizing.bootlog.measure import Measured
from sizing.bootlog.settings import LOG_INPUTS, Settings, with_inputs
from sizing.command import Command
from sizing.command.flags import RULES
from sizing.models import Geometry, ModelRefusedError, state_bytes
from sizing.releases.rules import LATEST, RELEASES, Release, rules_of
from sizing.scenario.from_model import geometry_of
from sizing.scenario.inputs import LABELS

# Where a command that is there whole does not have the flag: the engine's own value.
UNSET: dict[str, Any] = {
    "tp_size": 1, "pp_size": 1, "dcp_size": 1, "attn_dp_size": 1, "disable_radix_cache": False,
    "disable_overlap_schedule": False, "D": 0, "replayssm": "off", "skip_decode_lock": False,
    "enable_unified_memory": False,
}  # fmt: skip


WIDTHS = ("tp_size", "pp_size", "attn_dp_size", "dcp_size")
"""What is still taken of a command that is of another run: how the model is spread seldom changes between runs."""


class Joined(NamedTuple):
    """One boot with its command."""

    facts: Facts
    """With what the command fills in; the log's alone where the two contradict each other."""
    differ: tuple[str, ...]
    """Why they cannot be of one run, a sentence each, with both numbers."""
    known: bool
    """Whether all flags behind the boot are known: nothing may be proposed otherwise."""


def joined(boot: Boot, command: Command | None) -> Joined:
    """Fill the facts of a boot up with its launch command. Raises nothing."""
    alone = boot.facts
    if command is None or not command.given:
        return Joined(_one_rest(alone), (), alone.settings.complete)
    asked = settings_of_command(command)
    both = facts_of(list(boot.lines), asked, command.releases)
    differ = tuple(dict.fromkeys(_differ(alone, both, command)))
    if differ:
        widths = Settings(**{name: getattr(asked, name) for name in WIDTHS})
        return Joined(facts_of(list(boot.lines), widths), differ, False)
    return Joined(_one_rest(both), (), alone.settings.complete or is_whole(command))


def _one_rest(facts: Facts) -> Facts:
    """Where the weights leave more than the pools were given, what sizing kept back for images is not in rest."""
    kept_back = facts.rests_apart > 0 and not facts.rest_from_pools_is_least
    return facts.model_copy(update={"rest_from_weights": None}) if kept_back else facts


def is_whole(command: Command) -> bool:
    """Whether every flag of a command is in sight, so that what it leaves out was not set."""
    return command.given and not command.elsewhere and not command.problems


def settings_of_command(command: Command) -> Settings:
    """The flags of a launch command, as an arguments line would say them."""
    values = command.values
    unset = _unset(command)
    given = {name: values.get(name) for name in (*LOG_INPUTS, "replayssm", "skip_decode_lock", "mem_fraction_static")}
    given |= {"model_path": command.model_path, "speculative_num_steps": command.draft_steps}
    if given["speculative_algorithm"] is not None and given["D"] is None:
        unset = {name: value for name, value in unset.items() if name != "D"}
    filled = unset | {name: value for name, value in given.items() if value is not None}
    return with_inputs(filled, stated=command.given, complete=is_whole(command))


def _unset(command: Command) -> dict[str, Any]:
    """The engine's own values of what a command does not have, where no flag of it is out of sight."""
    if not command.given or command.problems or command.without_value is None:
        return {}
    later = {field for chief in command.without_value for field in _SET_BY.get(chief, ())}
    return {name: value for name, value in UNSET.items() if name not in later}


# What a flag sets, its own input or another.
_SET_BY: dict[str, tuple[str, ...]] = {
    **{rule.names[0]: (rule.field,) for rule in RULES},
    "--dp-size": ("attn_dp_size",), "--enable-dp-attention": ("attn_dp_size",), "--speculative-algorithm": ("D",),
    "--enable-linear-replayssm": ("replayssm",), "--enable-linear-replayssm-spec": ("replayssm",),
}  # fmt: skip


def _differ(alone: Facts, both: Facts, command: Command) -> Iterator[str]:
    """Everything that the log prints and that cannot come from the command, both numbers named."""
    asked = settings_of_command(command)
    yield from _flags(alone.settings, asked, command)
    yield from _printed(alone, asked, command)
    yield from _one_buffer(alone, asked, command)
    yield from _slots(alone, asked, command)
    yield from _requests(both, asked)
    yield from _fraction(both, asked, command)
    if alone.settings.mamba_full_memory_ratio is None:
        yield from _ratio(both, asked)
    yield from _width(alone, asked, command)


# A flag as the arguments line shows it since 0.5.19 is what the engine made of it: it may turn the radix cache or
# overlap off, take another page, or choose a strategy, and none of that contradicts the command.
_COMPARED = (
    "tp_size", "pp_size", "attn_dp_size", "dcp_size", "mem_fraction_static", "max_running_requests",
    "max_total_tokens", "max_mamba_cache_size", "mamba_full_memory_ratio", "mamba_ssm_dtype", "D",
    "context_length", "disaggregation_mode", "enable_unified_memory",
)  # fmt: skip
_NONE_IN_A_WHOLE_LINE = ("max_running_requests", "max_total_tokens", "max_mamba_cache_size")


def _flags(log: Settings, asked: Settings, command: Command) -> Iterator[str]:
    for name in _COMPARED:
        there, here = getattr(log, name), getattr(asked, name)
        stated = name in command.values
        if stated and here is not None and there is not None and here != there:
            yield f"{LABELS[name]}: the log says {there}, the command {here}."
        elif stated and there is None and log.complete and name in _NONE_IN_A_WHOLE_LINE:
            yield f"{LABELS[name]}: the log's arguments line has none, the command {here}."
        elif here is None and there is not None and is_whole(command) and name == "max_mamba_cache_size":
            yield f"{LABELS[name]}: the log says {there}, the command has none."


def _printed(alone: Facts, asked: Settings, command: Command) -> Iterator[str]:
    """What the pool lines and the ranks' names say against the command."""
    printed = alone.kv_cache_dtype if alone.settings.kv_cache_dtype is None else None
    if printed and asked.kv_cache_dtype and printed != asked.kv_cache_dtype:
        yield f"--kv-cache-dtype: the KV line says {printed}, the command {asked.kv_cache_dtype}."
    page, rows = asked.page_size, alone.kv_rows
    if page and rows and rows % page and not _forces_pages(alone.releases):
        yield f"--page-size: {count(rows)} tokens are no whole pages of the {page} that the command asks for."
    most = asked.max_total_tokens
    if most and rows and rows > most:
        yield f"--max-total-tokens: the log has {count(rows)} KV tokens, the command caps them at {count(most)}."
    if asked.tp_size and alone.settings.tp_size is None and "tp_size" in command.values:
        highest = max((rank for name in alone.ranks if (rank := _tp_rank(name)) is not None), default=0)
        if highest >= asked.tp_size:
            yield f"--tp-size: the log has a rank TP{highest}, the command {asked.tp_size} ranks."
    if alone.draft_tokens and asked.D == 0 and alone.settings.D is None:
        yield (
            f"Speculation: the log's state pool holds the states of {alone.draft_tokens} draft tokens, the command "
            "asks for none."
        )
    if asked.context_length and alone.context_length and alone.context_length != asked.context_length:
        yield (
            f"--context-length: the log says {count(alone.context_length)}, the command {count(asked.context_length)}."
        )


def _one_buffer(alone: Facts, asked: Settings, command: Command) -> Iterator[str]:
    """The lines of one buffer, or those of two pools, against the flag."""
    flag, asks = "--enable-unified-memory", asked.enable_unified_memory
    has = alone.unified is not None or alone.settings.enable_unified_memory is True
    if has and asks is False and is_whole(command):
        yield f"{flag}: the log has one buffer for both pools, the command does not ask for it."
    if asks and alone.unified is None and alone.slot_bytes is not None and alone.kv_rows is not None:
        yield f"{flag}: the log has two pools, the command asks for one buffer."


def _forces_pages(releases: tuple[Release, ...]) -> bool:
    """Whether rows need be no whole pages as asked, in a release that the log may be of."""
    possible = map(rules_of, releases or RELEASES)
    return any(rules.no_buffer_sets_page_1 or rules.eagle_headroom for rules in possible)


def _tp_rank(name: str) -> int | None:
    found = [part[2:] for part in name.split() if part.startswith("TP")]
    return int(found[0]) if found and found[0].isdigit() else None


def _slots(alone: Facts, asked: Settings, command: Command) -> Iterator[str]:
    """K against the pin of the command. A decode server allocates more than its pin."""
    pin, width = asked.max_mamba_cache_size, asked.attn_dp_size or 1
    if pin is None or alone.slots is None or asked.disaggregation_mode == "decode":
        return
    wins = all(rules_of(release).pin_wins for release in alone.releases or RELEASES)
    if not wins and not asked.disable_radix_cache and "--mamba" in " ".join(flag.name for flag in command.flags):
        return  # up to 0.5.6 the ratio overwrites a pin
    if alone.slots not in (pin // width, pin):
        over = f", {count(pin // width)} on each of {width} ranks" if width > 1 else ""
        yield f"--max-mamba-cache-size: the log has {count(alone.slots)} slots, the command pins {count(pin)}{over}."


def _requests(both: Facts, asked: Settings) -> Iterator[str]:
    """What runs is never more than what is asked, and S as the log says it is the one of the flags."""
    cap, width = asked.max_running_requests, asked.attn_dp_size or 1
    if cap is not None and both.running is not None and both.running > max(cap // width, 1) and both.running != cap:
        yield f"--max-running-requests: {count(both.running)} run by the log, the command asks for {count(cap)}."
    elif cap is not None and both.running is not None and _too_few(both, max(cap // width, 1)):
        yield (
            f"--max-running-requests: {count(both.running)} run by the log, where the command's {count(cap)} would fit "
            f"both pools."
        )
    if asked.disable_radix_cache and both.radix_cache:
        off = " or ".join(sorted({str(rules_of(release).slots_radix_off) for release in both.releases or RELEASES}))
        yield (
            f"--disable-radix-cache: the log says {both.S} state slots per request, the command's flags make it {off}."
        )


def _too_few(both: Facts, asked: int) -> bool:
    """Whether fewer run than were asked though neither pool stops them."""
    rules = [rules_of(release) for release in both.releases or RELEASES]
    by_estimate = asked > min(one.estimate.low for one in rules)  # no estimate is lower
    if both.clamp is None or both.kv_rows is None or both.running is None or by_estimate:
        return False
    return both.running < min(asked, both.clamp, both.kv_rows // max(one.tokens_per_request for one in rules))


# What sizing may keep back of rest for images, and for their features besides [GiB] (rest-before-boot.md 3.4).
_CACHE_MIB, _FEATURE_MIB = rules_of(LATEST).multimodal_cache_mib, rules_of(LATEST).multimodal_feature_mib
RESERVED_GIB = (0.0, _CACHE_MIB / 1024, (_CACHE_MIB + _FEATURE_MIB) / 1024)
NOT_ROUNDING, NOT_ROUNDING_SPECULATION = 0.01, 0.03
"""The share of rest by which what is charged and not printed may move the sum of the pools."""
LEAST_GIB = 0.2
"""Less than this is never called a contradiction [GiB]."""


def _fraction(both: Facts, asked: Settings, command: Command) -> Iterator[str]:
    """rest by the command's fraction against what the printed pools were charged."""
    weights, pools = both.rest_from_weights, both.rest_from_pools
    if asked.mem_fraction_static is None or weights is None or pools is None or both.unified or command.unread:
        return  # a server with flags of its own keeps memory back by rules of its own
    share = NOT_ROUNDING if both.draft_tokens == 0 else NOT_ROUNDING_SPECULATION
    spare = max(share * max(pools.value, 0), LEAST_GIB)
    if all(abs(both.rests_apart - reserved) > spare for reserved in RESERVED_GIB):
        yield (
            f"--mem-fraction-static {asked.mem_fraction_static:g} leaves rest of {number(weights.value)} GiB by the "
            f"weight lines, the pools take {number(pools.value)} GiB."
        )


def _ratio(both: Facts, asked: Settings) -> Iterator[str]:
    """K by the ratio that the command states against the printed one, without speculation (engine-sizing.md 5)."""
    ratio, rest, slot = asked.mamba_full_memory_ratio, both.rest_from_pools, both.slot_bytes
    radix = not asked.disable_radix_cache and asked.disaggregation_mode != "decode"
    by_ratio = asked.max_mamba_cache_size is None and radix and both.radix_cache is not False
    if ratio is None or rest is None or slot is None or both.slots is None or both.S is None or not by_ratio:
        return
    if both.draft_tokens != 0 or both.rest_from_pools_is_least or asked.attn_dp_size not in (None, 1):
        return
    slots = int(rest.value * ratio / (1 + ratio) * GIB / slot.value)
    if abs(slots - both.slots) > NOT_ROUNDING_SPECULATION * both.slots + 2:
        yield (
            f"--mamba-full-memory-ratio: {ratio:g} gives about {count(slots)} slots of this rest, the log has "
            f"{count(both.slots)}."
        )


WIDTHS_TRIED = (1, 2, 4, 8, 16, 32)


def _width(alone: Facts, asked: Settings, command: Command) -> Iterator[str]:
    """The slot of the model that the command names, at its width, against the printed one."""
    measured, width = alone.slot_bytes, asked.tp_size
    if measured is None or width is None or (asked.pp_size or 1) > 1 or alone.settings.tp_size is not None:
        return
    try:
        geometry = geometry_of((command.model_path or "").rstrip("/"))
        here = width // (asked.attn_dp_size or 1)
        fits = [tried for tried in WIDTHS_TRIED if _allows(measured, geometry, tried)]
    except (KeyError, ModelRefusedError):
        return
    if fits and here not in fits:
        size = state_bytes(geometry, here, get_args(StateDtype)[0]).total
        yield (
            f"--tp-size: a slot of {shown(command.model_path)} takes {count(size)} bytes on {here} ranks, the log has "
            f"{number(measured.value, 0)}: that of {fits[0]}."
        )


def _allows(measured: Measured, geometry: Geometry, width: int) -> bool:
    """Whether the printed size allows the slot of a model at some dtype on so many ranks."""
    try:
        return any(measured.holds(state_bytes(geometry, width, dtype).total) for dtype in get_args(StateDtype))
    except ModelRefusedError:
        return False
