"""The answer to one solved scenario, in the vocabulary of answer.py."""

from typing import Any

from sizing.answers.hardware import no_fit
from sizing.answers.optimum import Optimum, pin_flag
from sizing.answers.recommended import recommended
from sizing.answers.solve import Sizing, solve
from sizing.basics.problems import Refusal
from sizing.basics.units import GIB, count, gib, requests_text, typed_range
from sizing.engine.allocation import SLOTS
from sizing.engine.rank import rank_of
from sizing.engine.requests import requests_asked
from sizing.engine.resolve import resolution
from sizing.engine.resolved import Resolved
from sizing.engine.slots import by_ratio, is_pinned, ratio_is_ignored, slots_taken
from sizing.engine.split import Split
from sizing.exchange.answer import About, Best, Measured, Notice, Refused, SizingAnswer, radix_off_words
from sizing.explain.hardware_words import no_fit_headline
from sizing.explain.launch_flags import flags
from sizing.explain.unified_memory import UnifiedView, unified_in_force
from sizing.explain.verdict import (
    BEYOND_WORTH_SAYING,
    BINDING_WORDS,
    answer_text,
    ask_for_rest,
    no_spare_slot,
    verdict,
    without_rest_words,
)
from sizing.scenario.inputs import Scenario, rest_is_given
from sizing.scenario.rest import ends_of as ends_of_rest

ON_REST = ("rest_gib", "slots", "clamp", "kv_rows", "kv_tokens", "kv_cap", "runs", "binds", "best")
PAGES = GIB // 200  # [bytes] a page or two are not listed
BINDS = {"state pool": "state", "KV pool": "kv"}  # every other limit is a cap on requests


def sizing_answer(sizing: Sizing, *, rest_given: bool = True) -> SizingAnswer:
    """Every number of a sizing that the vocabulary names; without `rest` only what does not rest on it. Per
    attention-DP rank.
    """
    answer = _known_without_rest(sizing.resolved).model_copy(
        update={"D": sizing.drafts_charged, "token_equiv": sizing.token_equiv, "r_star": sizing.r_star}
    )
    if not rest_given:
        return _without_rest(sizing, answer)
    split = sizing.now if isinstance(sizing.now, Split) else None
    found = flags(sizing)
    refused = refused_of(sizing.now) if isinstance(sizing.now, Refusal) else None
    lacking, one = no_fit(sizing.scenario), unified_in_force(sizing)
    if no_fit_headline(sizing.scenario):
        refused = Refused(kind="does_not_fit", words=verdict(sizing).text)
    return answer.model_copy(
        update={
            "refused": refused,
            "words": answer_text(sizing),
            "notices": _notices(sizing),
            "rest_gib": sizing.scenario.rest_gib,
            "best": _best(sizing, one) if found else None,
            "flags": _proposed(sizing, one),
            "runs": 0,
            **(_of_split(split, one) if split else {}),
            **_banded(sizing),
            **({"mem_fraction_least": lacking.least_fraction} if lacking else {}),
        }
    )


def _banded(sizing: Sizing) -> dict[str, Any]:
    """What rests on an estimate, with the numbers at both ends; empty where rest is no estimate."""
    ends = ends_of_rest(sizing.scenario)
    if ends is None:
        return {}
    safe, most = solve(ends[0]), solve(ends[1])
    low, now, high = (
        {**_of_split(one.now, unified_in_force(one)), "rest_gib": one.scenario.rest_gib}
        if isinstance(one.now, Split)
        else {"runs": 0, "rest_gib": one.scenario.rest_gib}
        for one in (safe, sizing, most)
    )
    found: dict[str, Any] = {}
    for name in ("rest_gib", "runs", *(("slots", "clamp", "kv_rows", "kv_tokens", "kv_cap") if "slots" in now else ())):
        values = sorted(float(end.get(name) or 0) for end in (low, now, high))
        found[name] = Measured(value=float(now[name]), low=values[0], high=values[-1])
    binds = {end.get("binds") for end in (low, now, high)}
    if len(binds) > 1:
        found |= {"binds": None, "unknown": ("binds",)}
    bests = [_best(one, unified_in_force(one)) for one in (safe, sizing, most)]
    if bests[0] is not None:
        runs = [float(best.runs) if best and isinstance(best.runs, int) else 0.0 for best in bests]
        band = Measured(value=runs[1], low=min(runs), high=max(runs))
        found["best"] = bests[0].model_copy(update={"runs": band})
    return found


def _of_split(split: Split, one: UnifiedView | None) -> dict[str, Any]:
    """The counts of a split; what runs under unified memory is what its buffer lets run."""
    return {
        "slots": split.slots,
        "clamp": split.clamp,
        "kv_rows": split.kv_rows,
        "kv_tokens": split.kv_tokens,
        "kv_cap": split.kv_cap,
        "runs": one.runs if one else split.runs,
        "binds": one.binds if one else BINDS.get(split.binding.name, "cap"),
    }


def _without_rest(sizing: Sizing, answer: SizingAnswer) -> SizingAnswer:
    """Bytes, S, token_equiv and r*; the slots too where a pin or the request count decides them."""
    scenario = sizing.scenario
    known: dict[str, Any] = {}
    if not by_ratio(sizing.resolved):
        slots = int(slots_taken(rank_of(scenario), sizing.ratio_now))
        known = {"slots": slots, "clamp": sizing.resolved.request_slots.requests(slots)}
    notices = [Notice(about="rest_of_other_deployment", words=ask_for_rest(scenario))]
    if said := _radix_cache_off(sizing):
        notices.append(Notice(about="radix_cache_off", words=said))
    return answer.model_copy(
        update={
            "words": without_rest_words(sizing),
            "notices": tuple(notices),
            "unknown": tuple(name for name in ON_REST if name not in known),
            **known,
        }
    )


def refused_answer(scenario: Scenario, refusal: Refusal) -> SizingAnswer:
    """Flags that the engine refuses before it counts memory: the bytes and `rest` are known all the same."""
    known = _known_without_rest(resolution(scenario)).model_copy(update={"S": None})
    given = rest_is_given(scenario)
    return known.model_copy(
        update={
            "refused": refused_of(refusal),
            "words": refusal.sentence,
            "rest_gib": scenario.rest_gib if given else None,
            "unknown": () if given else ("rest_gib",),
            "runs": None if refusal.answer_kind == "not_served" else 0,
        }
    )


def refused_of(refusal: Refusal) -> Refused:
    """A refusal of the engine in the vocabulary of answers."""
    return Refused(kind=refusal.answer_kind, words=refusal.sentence)


def _known_without_rest(resolved: Resolved) -> SizingAnswer:
    return SizingAnswer(
        words="",
        S=resolved.S,
        L=resolved.scenario.L,
        state_bytes_per_slot=resolved.costs.slot,
        kv_bytes_per_token=resolved.costs.target_token,
        draft_kv_bytes_per_token=resolved.costs.draft_row,
    )


def _best(sizing: Sizing, one: UnifiedView | None) -> Best | None:
    """The best split, or the best ratio under unified memory."""
    if one is not None:
        return best_unified_of(one)
    return best_of(sizing.resolved, sizing.optimum) if sizing.optimum else None


def best_unified_of(one: UnifiedView) -> Best | None:
    """The ratio that runs most under unified memory, without the range that runs as many, and without a pin."""
    best = one.best
    return None if best is None else Best(ratio=best.ratio, ratio_low=best.ratio, ratio_high=best.ratio, runs=best.runs)


def _proposed(sizing: Sizing, one: UnifiedView | None) -> tuple[str, ...] | None:
    """The flags to set; None where what is set runs as many, with a slot to spare."""
    if one is not None:
        return one.flags if one.change else None
    found = recommended(sizing)
    return found.flags if found is not None and found.change else None


def best_of(resolved: Resolved, best: Optimum) -> Best:
    """An optimum as it is typed: every ratio and the pin run as many, `runs` of one rank."""
    low, high = ends_of(best.ratio_low, best.ratio_high)
    return Best(ratio=best.ratio, ratio_low=low, ratio_high=high, pin=pin_flag(resolved, best), runs=best.runs)


def ends_of(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Both ends of a range of ratios [-] as they are typed; no high end where it is open."""
    if low is None:
        return None, None
    first, last = typed_range(low, high)
    return float(first), float(last) if last else None


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
    why = sizing.resolved.radix_off_why
    return radix_off_words(why, sizing.S) if why else ""


def _ratio_not_used(sizing: Sizing) -> str:
    if not ratio_is_ignored(sizing.resolved) or is_pinned(sizing.resolved) or isinstance(sizing.now, Refusal):
        return ""
    return (
        f"With the radix cache off the request count decides the slots, {count(sizing.now.slots)} on a rank: "
        "--mamba-full-memory-ratio counts for nothing."
    )


def _asked_more(sizing: Sizing) -> str:
    """That --max-running-requests is more than the pools run."""
    now, asked = sizing.now, requests_asked(sizing.resolved)
    if isinstance(now, Refusal) or sizing.scenario.max_running_requests is None or not asked or asked <= now.runs:
        return ""
    return (
        f"{requests_text(asked)} are asked for on a rank and {count(now.runs)} run: {BINDING_WORDS[now.binding.name]}."
    )


def _not_charged(sizing: Sizing) -> str:
    """What is allocated and not charged, the largest first, where it is worth saying."""
    more = {row.what: (row.allocated or 0) - row.charged for row in sizing.allocations}
    pool = sizing.decode_pool
    added = (pool.slots - pool.slots_charged) * sizing.slot_bytes if pool else 0
    if pool and added > 0:
        more[SLOTS] -= added
        slots = count(pool.slots - pool.slots_charged)
        more[f"{slots} state slots that a decode server adds for requests in transfer"] = added
    said = [f"{gib(size)} for {what}" for what, size in sorted(more.items(), key=lambda row: -row[1]) if size > PAGES]
    if sum(size for size in more.values() if size > 0) < BEYOND_WORTH_SAYING:
        return ""
    return (
        f"Allocated on each rank and charged to nobody: {', '.join(said)}. It comes out of the reserve that "
        "--mem-fraction-static leaves."
    )
