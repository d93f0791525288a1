"""The answer to one solved scenario, in the vocabulary of answer.py."""

from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal
from sizing.basics.units import count, requests_text, typed_range
from sizing.engine.pools import is_pinned, ratio_is_ignored, requests_asked
from sizing.engine.split import Split
from sizing.exchange.answer import About, Best, Notice, Refused, SizingAnswer
from sizing.explain.launch_flags import Flags, flags
from sizing.explain.verdict import BINDING_WORDS, NOT_CHARGED, advice, no_spare_slot, verdict

BINDS = {"state pool": "state", "KV pool": "kv"}  # every other limit is a cap on requests


def sizing_answer(sizing: Sizing) -> SizingAnswer:
    """Every number of a sizing that the vocabulary names. Per attention-DP rank."""
    split = sizing.now if isinstance(sizing.now, Split) else None
    refused = sizing.now if isinstance(sizing.now, Refusal) else None
    found = flags(sizing)
    return SizingAnswer(
        refused=Refused(kind=refused.kind, words=refused.sentence) if refused else None,
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
        flags=_proposed(sizing, found),
    )


def _proposed(sizing: Sizing, found: Flags | None) -> tuple[str, ...] | None:
    """The flag to set; None where what is set runs as many, with a slot to spare."""
    if found is None:
        return None
    now = sizing.now
    if isinstance(now, Split) and now.runs >= found.runs and not no_spare_slot(sizing):
        return None
    return (found.chosen,)


def _best(sizing: Sizing, found: Flags | None) -> Best | None:
    best = sizing.optimum
    if best is None or found is None:
        return None
    low, high = (None, None) if best.ratio_low is None else typed_range(best.ratio_low, best.ratio_high)
    return Best(
        ratio=best.ratio if found.ratio else None,
        ratio_low=float(low) if low else None,
        ratio_high=float(high) if high else None,
        pin=sizing.pin_flag,
        runs=found.runs,
    )


def _notices(sizing: Sizing) -> tuple[Notice, ...]:
    words: dict[About, str] = {
        "radix_cache_off": _radix_cache_off(sizing),
        "ratio_not_used": _ratio_not_used(sizing),
        "no_spare_slot": no_spare_slot(sizing),
        "asked_more": _asked_more(sizing),
        "not_charged": _not_charged(sizing),
    }
    return tuple(Notice(about=about, words=said) for about, said in words.items() if said)


def _radix_cache_off(sizing: Sizing) -> str:
    off = sizing.resolved.strategy == "disabled"
    return "The radix cache is off: one slot a request, no prefix is kept." if off else ""


def _ratio_not_used(sizing: Sizing) -> str:
    if not ratio_is_ignored(sizing.scenario) or is_pinned(sizing.scenario) or isinstance(sizing.now, Refusal):
        return ""
    return (
        f"With the radix cache off the request count decides the slots, {count(sizing.now.slots)} on a rank: "
        "--mamba-full-memory-ratio counts for nothing."
    )


def _asked_more(sizing: Sizing) -> str:
    """That --max-running-requests is more than the pools run."""
    now, asked = sizing.now, requests_asked(sizing.scenario)
    if isinstance(now, Refusal) or sizing.scenario.max_running_requests is None or not asked or asked <= now.runs:
        return ""
    return (
        f"{requests_text(asked)} are asked for on a rank and {count(now.runs)} run: {BINDING_WORDS[now.binding.name]}."
    )


def _not_charged(sizing: Sizing) -> str:
    """What is allocated and not charged, where it is worth saying."""
    return next((item.text for item in advice(sizing) if item.topic == NOT_CHARGED), "")
