"""The working: each formula with the user's own numbers in it, and the specification beside the engine."""

from pydantic import BaseModel, ConfigDict

from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal
from sizing.basics.units import (
    GIB,
    count,
    gib,
    number,
    ratio_range_text,
    ratio_text,
    requests_text,
)
from sizing.basics.working_step import Step
from sizing.engine.draft_rules import drafts_of, shared_words
from sizing.engine.kv import HEADROOM_FORMULA, headroom_numbers, headroom_of_request
from sizing.engine.padding import slots_charged, slots_charged_words
from sizing.engine.rank import rings_fixed_bytes
from sizing.engine.request_slots import CLAMP_FORMULA
from sizing.engine.requests import requests_charged
from sizing.engine.slots import is_pinned, pin_divisor
from sizing.engine.split import Split


class Comparison(BaseModel):
    """One quantity as the specification and as the engine have it, and why they differ (empty when they agree)."""

    model_config = ConfigDict(frozen=True)

    quantity: str
    specification: str
    engine: str
    why: str


def working(sizing: Sizing) -> tuple[Step, ...]:
    """The engine's solve of the split that is set, step by step; as far as it gets when the engine refuses."""
    return (
        *_balance_steps(sizing),
        *(_split_steps(sizing, sizing.now) if isinstance(sizing.now, Split) else ()),
    )


def _balance_steps(sizing: Sizing) -> tuple[Step, ...]:
    scenario = sizing.scenario
    uses = " + ".join(str(use.count) for use in sizing.resolved.uses).replace("+ -", "- ")
    rings = sizing.ring_bytes_per_slot
    return (
        Step(
            quantity="S, slots per request",
            formula="base + track buffer",
            numbers=uses,
            result=f"{sizing.S}",
        ),
        Step(
            quantity="token_equiv",
            formula="state bytes per slot / KV bytes per token",
            numbers=f"{count(sizing.charged_slot_bytes - rings)} / {count(sizing.token_bytes)}",
            result=f"{number(sizing.token_equiv)} tokens",
        ),
        Step(
            quantity="r*, the balance ratio",
            formula="(S + D) x token_equiv x dcp_size / L" + (" x (1 + ring / slot)" if rings else ""),
            numbers=f"({sizing.S} + {sizing.drafts_charged}) x {number(sizing.token_equiv)} x {scenario.dcp_size} "
            f"/ {count(scenario.L)}" + (f" x (1 + {count(rings)} / {count(sizing.slot_bytes)})" if rings else ""),
            result=ratio_text(sizing.r_star),
        ),
    )


def _split_steps(sizing: Sizing, now: Split) -> tuple[Step, ...]:
    scenario = sizing.scenario
    return (
        _slots_step(sizing, now),
        Step(
            quantity="mamba clamp",
            formula=CLAMP_FORMULA,
            numbers=sizing.resolved.request_slots.division(count(now.slots)),
            result=requests_text(now.clamp),
        ),
        _kv_bytes_step(sizing, now),
        _tokens_step(sizing, now),
        *_window_steps(sizing, now),
        Step(
            quantity="KV cap at L",
            formula="KV tokens x dcp_size // L",
            numbers=f"{count(now.kv_rows)} x {scenario.dcp_size} // {count(scenario.L)}",
            result=requests_text(now.kv_cap),
        ),
        Step(
            quantity="what runs",
            formula="the smallest limit",
            numbers="; ".join(f"{limit.name}: {count(limit.requests)}" for limit in now.limits),
            result=requests_text(now.runs),
        ),
        Step(
            quantity="balance point",
            formula="KV tokens x dcp_size // clamp",
            numbers=f"{count(now.kv_rows)} x {scenario.dcp_size} // {count(now.clamp)}",
            result=f"L = {count(now.crossing)}",
        ),
    )


def _tokens_step(sizing: Sizing, now: Split) -> Step:
    scenario, page = sizing.scenario, sizing.resolved.page_size
    rows, formula = f"{count(now.kv_rest_bytes)} // {count(sizing.token_bytes)}", "KV bytes // KV bytes per token"
    if of_request := headroom_of_request(sizing.resolved):
        rows += f" + {headroom_numbers(count(now.admitted), count(of_request))}"
        formula += f" + {HEADROOM_FORMULA}"
    if scenario.max_total_tokens is not None:
        rows = f"min({rows}, {count(scenario.max_total_tokens)})"
        formula = f"min({formula}, max_total_tokens)"
    return Step(
        quantity="KV tokens on one rank",
        formula=f"{formula}, whole pages",
        numbers=f"{rows} // {page} x {page}",
        result=count(now.kv_rows),
    )


def _window_steps(sizing: Sizing, now: Split) -> tuple[Step, ...]:
    if now.window_cap is None:
        return ()
    share, page = f"{sizing.resolved.costs.window_share:g}", sizing.resolved.page_size
    return (
        Step(
            quantity="tokens of the window pool",
            formula="KV tokens x --swa-full-tokens-ratio, whole pages",
            numbers=f"{count(now.kv_rows)} x {share} // {page} x {page}",
            result=count(now.window_rows),
        ),
        Step(
            quantity="windows that it holds",
            formula="tokens of the window pool // sliding window",
            numbers=f"{count(now.window_rows)} // {count(sizing.scenario.sliding_window or 0)}",
            result=requests_text(now.window_cap),
        ),
    )


def _slots_step(sizing: Sizing, now: Split) -> Step:
    if now.ratio is None:
        formula, numbers = _slots_by_count(sizing)
    else:
        formula, numbers = drafts_of(sizing.resolved.rules).formula(sizing.rank, now.ratio)
    return Step(quantity="K, state slots", formula=formula, numbers=numbers, result=count(now.slots))


def _slots_by_count(sizing: Sizing) -> tuple[str, str]:
    """K by a pin or by the request count, with what it is divided by."""
    scenario, rules = sizing.scenario, sizing.resolved.rules
    if is_pinned(sizing.resolved):
        width, words, stated = pin_divisor(sizing.resolved), "the pin", scenario.max_mamba_cache_size
    else:
        width = pin_divisor(sizing.resolved)
        asked = sizing.resolved.max_running_requests
        stated = asked or rules.slots_without_radix
        words = "radix cache off: one slot for each request asked" if asked else "radix cache off, no count asked"
    shared = shared_words(width)
    return words + shared[0], f"{count(stated or 0)}{shared[1]}"


def _fixed_rings(sizing: Sizing) -> int:
    """Rings that come off the state budget once [bytes]."""
    return int(rings_fixed_bytes(sizing.resolved, requests_charged(sizing.resolved)))


def _kv_bytes_step(sizing: Sizing, now: Split) -> Step:
    """rest less everything that is charged for state."""
    rules = sizing.resolved.rules
    slots = slots_charged_words(rules, factor=True)
    fixed, reserve = _fixed_rings(sizing), now.memory.draft_reserve
    pieces = [
        (f"{slots} x slot", slots_charged(rules, now.slots) * sizing.charged_slot_bytes),
        ("rings", fixed),
        ("draft states", reserve),
    ]
    charged = [(words, taken) for words, taken in pieces if taken]
    return Step(
        quantity="KV bytes",
        formula=" - ".join(["rest", *(words for words, _ in charged)]),
        numbers=" - ".join([count(int(sizing.scenario.rest_gib * GIB)), *(count(taken) for _, taken in charged)]),
        result=f"{count(now.kv_rest_bytes)} ({gib(now.kv_rest_bytes)})",
    )


def comparisons(sizing: Sizing) -> tuple[Comparison, ...]:
    """The specification's closed forms beside the engine for the split that is set and for r*."""
    now, said = sizing.now, sizing.predicted
    rows = [
        Comparison(
            quantity="r*",
            specification=ratio_text(sizing.r_star_specification),
            engine=_best_range(sizing),
            why=_r_star_why(sizing),
        ),
        *_direct(sizing),
    ]
    if isinstance(now, Refusal):
        return (
            *rows,
            Comparison(quantity="clamp", specification=count(said.clamp), engine="refused", why=now.words),
        )
    if now.ratio is None:
        return tuple(rows)  # the closed forms know ratios only
    return (
        *rows,
        _compared("K, state slots", said.slots, now.slots, _slots_why(sizing)),
        _compared("mamba clamp", said.clamp, now.clamp, _slots_why(sizing)),
        _compared("KV tokens on one rank", said.kv_tokens, now.kv_rows, _tokens_why(sizing)),
        _compared("KV cap at L", said.kv_cap, now.kv_cap, "follows from the tokens"),
        *_whole_pages(sizing, said.kv_cap, now),
    )


def _whole_pages(sizing: Sizing, said: int, now: Split) -> tuple[Comparison, ...]:
    """Said only where whole pages hold fewer requests than tokens // L."""
    if now.kv_cap_whole_pages == now.kv_cap:
        return ()
    page = count(sizing.resolved.logical_page)
    why = f"a request occupies whole pages of page_size x dcp_size = {page} tokens"
    return (_compared("KV cap in whole pages", said, now.kv_cap_whole_pages, why),)


def _compared(quantity: str, specification: int, engine: int, why: str) -> Comparison:
    return Comparison(
        quantity=quantity,
        specification=count(specification),
        engine=count(engine),
        why="" if specification == engine else why,
    )


def _best_range(sizing: Sizing) -> str:
    best = sizing.optimum
    if best is None:
        return "no split runs"
    if best.ratio_low is None:
        return "ratio ignored"
    return f"{ratio_range_text(best.ratio_low, best.ratio_high)} run {count(best.runs)}"


def _direct(sizing: Sizing) -> tuple[Comparison, ...]:
    """Under DCP a replicated draft KV does not shard; the engine charges EAGLE and MTP once all the same."""
    if sizing.r_star_direct is None:
        return ()
    return (
        Comparison(
            quantity="r*, direct solve for a replicated draft KV",
            specification=ratio_text(sizing.r_star_direct),
            engine=ratio_text(sizing.r_star),
            why="the direct solve says what the draft pool costs on every rank; the engine's is what it charges",
        ),
    )


def _r_star_why(sizing: Sizing) -> str:
    best = sizing.optimum
    if best is None or best.ratio_low is None:
        return ""
    if sizing.r_star != sizing.r_star_specification:
        return f"{' and '.join(_charged_otherwise(sizing))}: r* = {ratio_text(sizing.r_star)} with what it charges"
    inside = best.ratio_low <= sizing.r_star <= (best.ratio_high or sizing.r_star)
    if inside:
        return "whole slots, the padding slot and whole requests make a range of ratios equally good"
    runs = f" and runs {count(sizing.balanced.runs)}" if isinstance(sizing.balanced, Split) else ""
    return f"whole slots, the padding slot and whole requests: r* lies beside the best range{runs}"


def _charged_otherwise(sizing: Sizing) -> list[str]:
    """Why the engine's r* is another than the specification's."""
    found = []
    if sizing.token_bytes != sizing.target_token_bytes:
        found.append("the engine divides by the draft KV too")
    if sizing.ring_bytes_per_slot:
        found.append(f"it charges a ring of {count(sizing.ring_bytes_per_slot)} bytes on every slot")
    if sizing.charged_slot_bytes - sizing.ring_bytes_per_slot != sizing.slot_bytes:
        found.append("it charges all pipeline stages on every rank")
    return found or ["it charges another number of draft states"]


def _slots_why(sizing: Sizing) -> str:
    scenario, rules = sizing.scenario, sizing.resolved.rules
    if sizing.ring_bytes_per_slot:
        return f"ReplaySSM: a ring of {count(sizing.ring_bytes_per_slot)} bytes is charged on every slot"
    if _fixed_rings(sizing):
        return f"ReplaySSM: fixed rings of {count(_fixed_rings(sizing))} bytes and one slot come off the budget"
    if sizing.drafts_charged:
        return f"SGLang {scenario.release} {drafts_of(rules).why}; the specification's code ignores D"
    return "the engine takes one padding slot off the budget" if slots_charged(rules, 0) else "whole numbers"


def _tokens_why(sizing: Sizing) -> str:
    scenario = sizing.scenario
    if scenario.max_total_tokens is not None:
        return "--max-total-tokens caps the pool"
    page = sizing.resolved.page_size
    pages = f"whole pages of {page}" if page > 1 else "whole slots"
    if scenario.D:
        return f"KV gets rest minus whole slots and draft states, divided by target and draft KV bytes, in {pages}"
    slots = slots_charged_words(sizing.resolved.rules)
    return f"KV gets rest minus {slots} whole slots, in {pages}"
