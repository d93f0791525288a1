"""A boot that the engine refused: the kind, its words and numbers, and what cures it.

Source: engine-sizing.md section 8. The engine's own hints are general; the cure here goes by the numbers.
"""

import re
from typing import NamedTuple

from sizing.basics.problems import Refusal
from sizing.basics.units import MIB, number
from sizing.bootlog.find import Line
from sizing.bootlog.line_records import Refused
from sizing.releases.flags import engine_flags, whole_name
from sizing.releases.rules import COVERED, LATEST

MAX_WORDS = 400  # characters of the engine's words that are repeated


class RefusedBoot(NamedTuple):
    """One refusal of a log."""

    refusal: Refusal
    slots: int | None
    """The K that the engine computed; it may be negative, and is then no number of slots."""
    rest_gib: float | None
    slot_bytes: int | None
    """From `mamba_cache_per_req`, whose MB is MiB with two decimals; with its ends it is in the facts."""


def refused_of(lines: list[Line]) -> RefusedBoot | None:
    """The refusal that ended a boot; None where there was none."""
    line = next((line for line in lines if isinstance(line.record, Refused)), None)
    if line is None or not isinstance(line.record, Refused):
        return None
    numbers = line.record.numbers
    slots, per_request = numbers.get("max_mamba_cache_size"), numbers.get("mamba_cache_per_req")
    rest = numbers.get("total_rest_memory")
    refusal = Refusal(kind=line.record.kind, engine_words=_inert(line.text), cure=_cure(line.record, line.text))
    return RefusedBoot(
        refusal,
        None if slots is None else int(slots.value),
        None if rest is None else rest.value,
        None if per_request is None else round(per_request.value * MIB),
    )


def _inert(text: str) -> str:
    shown = "".join(char if char.isprintable() and char not in "`<>\\" else " " for char in text[:MAX_WORDS])
    return shown.strip()


def _cure(said: Refused, text: str) -> str:
    if said.kind == "no_state_memory":
        return _no_state_memory(said)
    if said.kind == "flags":
        return _of_flags(text)
    return {
        "no_kv_memory": "The state pool takes all of rest: lower --mamba-full-memory-ratio or --max-mamba-cache-size, "
        "or raise --mem-fraction-static.",
        "no_tokens": "KV gets less than one page: lower --mamba-full-memory-ratio or --max-mamba-cache-size, or raise "
        "--mem-fraction-static.",
        "no_requests": "The state pool holds less than one request: raise --mamba-full-memory-ratio or "
        "--max-mamba-cache-size, or --mem-fraction-static.",
    }[said.kind]


def _of_flags(text: str) -> str:
    if "unrecognized arguments" in text:
        return " ".join(map(_no_such_flag, dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][\w-]*", text)))) or _NAMED
    if "only supported on CUDA" in text:
        return "This device has no extra_buffer: choose no_buffer, under speculation with --disable-radix-cache."
    return _NAMED


_NAMED = "Change the flag that the engine names."


def _no_such_flag(name: str) -> str:
    whole = whole_name(name)
    flag = engine_flags().get(whole) if whole else None
    if flag is None:
        return f"No release of SGLang from {COVERED} has {name}: remove it."
    return f"{name} is a flag of {flag.since} to {flag.until or LATEST}: remove it, or run one of these releases."


def _no_state_memory(said: Refused) -> str:
    rest = said.numbers.get("total_rest_memory")
    if rest is not None and rest.value <= 0:
        return (
            f"rest is {number(rest.value)} GiB: weights and the share that --mem-fraction-static keeps back take more "
            "than the GPU has. No ratio helps; raise --mem-fraction-static, or use more or larger GPUs."
        )
    return "The state budget holds no slot: raise --mem-fraction-static, or --mamba-full-memory-ratio."
