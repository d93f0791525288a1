"""The working: each formula with the user's own numbers in it, and the specification beside the engine."""

from pydantic import BaseModel, ConfigDict

from sizing.problems import Refusal
from sizing.scenario import Scenario
from sizing.solve import Sizing
from sizing.split import Split
from sizing.units import GIB, count, gib, number, ratio_range_text, ratio_text, requests_text


class Step(BaseModel):
    """One formula, filled in."""

    model_config = ConfigDict(frozen=True)

    quantity: str
    formula: str
    numbers: str
    result: str


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
    uses = " + ".join(str(use.count) for use in sizing.slot_uses).replace("+ -", "- ")
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
            numbers=f"{count(sizing.slot_bytes)} / {count(sizing.token_bytes)}",
            result=f"{number(sizing.token_equiv)} tokens",
        ),
        Step(
            quantity="r*, the balance ratio",
            formula="(S + D) x token_equiv x dcp_size / L",
            numbers=f"({sizing.S} + {scenario.D}) x {number(sizing.token_equiv)} x {scenario.dcp_size} "
            f"/ {count(scenario.L)}",
            result=ratio_text(sizing.r_star),
        ),
    )


def _split_steps(sizing: Sizing, now: Split) -> tuple[Step, ...]:
    scenario = sizing.scenario
    taken = count((now.slots + 1) * sizing.slot_bytes)
    reserve = f" - {count(now.memory.draft_reserve)}" if now.memory.draft_reserve else ""
    capped = scenario.max_total_tokens
    return (
        _slots_step(sizing, now),
        Step(
            quantity="mamba clamp",
            formula="K // S",
            numbers=f"{count(now.slots)} // {sizing.S}",
            result=requests_text(now.clamp),
        ),
        Step(
            quantity="KV bytes",
            formula="rest - (K + 1) x slot bytes - draft states" if reserve else "rest - (K + 1) x slot bytes",
            numbers=f"{count(int(scenario.rest_gib * GIB))} - {taken}{reserve}",
            result=f"{count(now.kv_rest_bytes)} ({gib(now.kv_rest_bytes)})",
        ),
        Step(
            quantity="KV tokens on one rank",
            formula="KV bytes // KV bytes per token, whole pages" + (", at most max_total_tokens" if capped else ""),
            numbers=f"{count(now.kv_rest_bytes)} // {count(sizing.token_bytes)} "
            f"// {scenario.page_size} x {scenario.page_size}" + (f", at most {count(capped)}" if capped else ""),
            result=count(now.kv_rows),
        ),
        Step(
            quantity="KV cap at L",
            formula="KV tokens x dcp_size // L",
            numbers=f"{count(now.kv_rows)} x {scenario.dcp_size} // {count(scenario.L)}",
            result=requests_text(now.kv_cap),
        ),
        Step(
            quantity="what runs",
            formula="the smallest limit",
            numbers=", ".join(f"{limit.name} {count(limit.requests)}" for limit in now.limits),
            result=requests_text(now.runs),
        ),
        Step(
            quantity="balance point",
            formula="KV tokens x dcp_size // clamp",
            numbers=f"{count(now.kv_rows)} x {scenario.dcp_size} // {count(now.clamp)}",
            result=f"L = {count(now.crossing)}",
        ),
    )


def _slots_step(sizing: Sizing, now: Split) -> Step:
    scenario, slot = sizing.scenario, count(sizing.slot_bytes)
    if now.ratio is None:
        pinned = scenario.split == "pin"
        return Step(
            quantity="K, state slots",
            formula="the pin" if pinned else "radix cache off: one slot for each request asked",
            numbers="--max-mamba-cache-size" if pinned else "--max-running-requests",
            result=count(now.slots),
        )
    budget = f"{scenario.rest_gib:g} GiB x {ratio_text(now.ratio)} / (1 + {ratio_text(now.ratio)})"
    if scenario.D:
        return Step(
            quantity="K, state slots",
            formula="(budget - (1 + D) x slot) // (slot x (1 + D / S)), budget = rest x r / (1 + r)",
            numbers=f"({budget} - {1 + scenario.D} x {slot}) // ({slot} x (1 + {scenario.D} / {sizing.S}))",
            result=count(now.slots),
        )
    return Step(
        quantity="K, state slots",
        formula="(budget - slot) // slot, budget = rest x r / (1 + r)",
        numbers=f"({budget} - {slot}) // {slot}",
        result=count(now.slots),
    )


def comparisons(sizing: Sizing) -> tuple[Comparison, ...]:
    """The specification's closed forms beside the engine for the split that is set and for r*."""
    scenario, now, said = sizing.scenario, sizing.now, sizing.predicted
    rows = [
        Comparison(
            quantity="r*",
            specification=ratio_text(sizing.r_star_specification),
            engine=_best_range(sizing),
            why=_r_star_why(sizing),
        )
    ]
    if isinstance(now, Refusal):
        return (
            *rows,
            Comparison(quantity="clamp", specification=count(said.clamp), engine="refused", why=now.engine_words),
        )
    if scenario.split == "pin" or now.ratio is None:
        return tuple(rows)  # the closed forms know ratios only
    return (
        *rows,
        _compared("K, state slots", said.slots, now.slots, _slots_why(scenario)),
        _compared("mamba clamp", said.clamp, now.clamp, _slots_why(scenario)),
        _compared("KV tokens on one rank", said.kv_tokens, now.kv_rows, _tokens_why(scenario)),
        _compared("KV cap at L", said.kv_cap, now.kv_cap, "follows from the tokens"),
        *_whole_pages(scenario, said.kv_cap, now),
    )


def _whole_pages(scenario: Scenario, said: int, now: Split) -> tuple[Comparison, ...]:
    """Said only where whole pages hold fewer requests than tokens // L."""
    if now.kv_cap_whole_pages == now.kv_cap:
        return ()
    page = count(scenario.page_size * scenario.dcp_size)
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


def _r_star_why(sizing: Sizing) -> str:
    best = sizing.optimum
    if best is None or best.ratio_low is None:
        return ""
    if sizing.r_star != sizing.r_star_specification:
        return f"the engine divides by the draft KV too: r* = {ratio_text(sizing.r_star)} with it"
    inside = best.ratio_low <= sizing.r_star <= (best.ratio_high or sizing.r_star)
    if inside:
        return "whole slots, the padding slot and whole requests make a range of ratios equally good"
    runs = f" and runs {count(sizing.balanced.runs)}" if isinstance(sizing.balanced, Split) else ""
    return f"whole slots, the padding slot and whole requests: r* lies beside the best range{runs}"


def _slots_why(scenario: Scenario) -> str:
    if scenario.D:
        return (
            "the engine solves for draft states too (D / S of a slot each, 1 + D padding); the printed code ignores D"
        )
    return "the engine takes one padding slot off the budget"


def _tokens_why(scenario: Scenario) -> str:
    if scenario.max_total_tokens is not None:
        return "--max-total-tokens caps the pool"
    pages = f"whole pages of {scenario.page_size}" if scenario.page_size > 1 else "whole slots"
    if scenario.D:
        return f"KV gets rest minus whole slots and draft states, divided by target and draft KV bytes, in {pages}"
    return f"KV gets rest minus K + 1 whole slots, in {pages}"
