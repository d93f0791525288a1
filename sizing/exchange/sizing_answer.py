"""The answer to one solved scenario, in the vocabulary of answer.py."""

from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal
from sizing.engine.split import Split
from sizing.exchange.answer import Best, Notice, Refused, SizingAnswer
from sizing.explain.launch_flags import Flags, flags
from sizing.explain.verdict import verdict

BINDS = {"state pool": "state", "KV pool": "kv"}  # every other limit is a cap on requests


def sizing_answer(sizing: Sizing) -> SizingAnswer:
    """Every number of a sizing that the vocabulary names. Per attention-DP rank."""
    split = sizing.now if isinstance(sizing.now, Split) else None
    refused = sizing.now if isinstance(sizing.now, Refusal) else None
    found = flags(sizing)
    return SizingAnswer(
        refused=Refused(kind=refused.answer_kind, words=refused.sentence) if refused else None,
        words=verdict(sizing).text,
        notices=_notices(sizing),
        S=sizing.S,
        D=sizing.drafts_charged,
        slots=split.slots if split else None,
        clamp=split.clamp if split else None,
        kv_rows=split.kv_rows if split else None,
        kv_tokens=split.kv_tokens if split else None,
        kv_cap=split.kv_cap if split else None,
        runs=split.runs if split else 0,
        binds=BINDS.get(split.binding.name, "cap") if split else None,  # type: ignore[arg-type]
        L=sizing.scenario.L,
        rest_gib=sizing.scenario.rest_gib,
        state_bytes_per_slot=sizing.slot_bytes,
        kv_bytes_per_token=sizing.target_token_bytes,
        draft_kv_bytes_per_token=sizing.draft_row_bytes,
        token_equiv=sizing.token_equiv,
        r_star=sizing.r_star,
        best=_best(sizing, found),
        flags=tuple(flag for flag in (_taken(found),) if flag) if found else None,
    )


def _taken(found: Flags | None) -> str | None:
    """The flag that is recommended, with its value."""
    if found is None:
        return None
    return found.pin if found.take == "pin" else found.ratio


def _best(sizing: Sizing, found: Flags | None) -> Best | None:
    if sizing.optimum is None or found is None:
        return None
    return Best(
        ratio=sizing.balanced.ratio if isinstance(sizing.balanced, Split) else None,
        ratio_low=sizing.optimum.ratio_low,
        ratio_high=sizing.optimum.ratio_high,
        pin=sizing.pin_flag,
        runs=sizing.optimum.runs,
    )


def _notices(sizing: Sizing) -> tuple[Notice, ...]:
    if sizing.resolved.radix_off_why:
        words = f"The radix cache is off ({sizing.resolved.radix_off_why}): one slot a request, nothing is kept."
        return (Notice(about="radix_cache_off", words=words),)
    return ()
