"""An answer of Target in words and rows: every page and the command line say the same."""

from collections.abc import Sequence

from sizing.answers.alternatives import Way
from sizing.answers.band import for_flags
from sizing.answers.carrying_settings import Setting, Want
from sizing.answers.carrying_ways import CarryingWay
from sizing.answers.solve import solve
from sizing.answers.target import Answer, Row, most_spared
from sizing.basics.units import count, ratio_range_text, requests_text
from sizing.engine.resolve import resolution
from sizing.engine.split import Split
from sizing.explain.unified_memory import static_alone
from sizing.scenario.inputs import Scenario
from sizing.scenario.rest import condition

WAY_COLUMNS = ("way", "the most", "split to set", "price")
NEAR_COLUMNS = ("way", "instead", "price", "flags")
NOTHING = "-"


def wants_words(wants: Sequence[Want]) -> str:
    """What is wanted."""
    return " and ".join(f"{requests_text(want.requests)} of L = {count(want.L)}" for want in wants)


def headline(answer: Answer) -> str:
    """Whether the wants fit, and the most that does."""
    wants, where = wants_words(answer.wants), condition(answer.here.way.scenario)
    static = static_alone(answer.here.way.scenario)
    if answer.setting is not None:
        return f"{wants} fit{where}.{static}"
    most, spared = (
        " and ".join(map(count, each)) for each in (answer.here.most, most_spared(answer.here, answer.wants))
    )
    spare = f" ({spared} with a slot to spare)" if spared != most else ""
    return f"{wants} do not fit: at most {most}{spare}{where}.{static}"


def reasons(answer: Answer) -> str:
    """Every setting that carries the wants and what remains; else how many other ways do."""
    if answer.setting is not None:
        return _carried(answer.setting)
    others = len(answer.fitting)
    if not others:
        return "No other way of setting this deployment carries it on this rest."
    return f"{others} other {'way' if others == 1 else 'ways'} of setting this deployment carry it."


def _carried(setting: Setting) -> str:
    ratio = (
        f" or any --mamba-full-memory-ratio of {ratio_range_text(setting.ratio_low, setting.ratio_high)}"
        if setting.ratio_low is not None
        else ""
    )
    ranks = setting.scenario.attn_dp_size
    share = f", {count(setting.requests)} on each of {ranks} ranks" if ranks > 1 else ""
    slots = f"{count(setting.slots_low)} to {count(setting.slots_high)} slots on a rank{share}"
    left = f"{count(setting.kv_left)} of {count(setting.kv_tokens)} KV tokens remain."
    spare = (
        ""
        if setting.spare or not resolution(setting.scenario).radix_cache
        else " No slot is spare for the chunk boundary."
    )
    return f"{slots}{ratio} carry them; {left}{spare}"


def gates(answer: Answer) -> tuple[str, ...]:
    """Each accuracy gate of the ways once, numbered from 1 in the rows."""
    return tuple(dict.fromkeys(row.way.gate for row in answer.rows if row.way.gate))


def way_rows(answer: Answer) -> list[tuple[str, ...]]:
    """Every way with the most it runs, and what to set where it carries the wants, under WAY_COLUMNS."""
    return [
        (
            row.way.words,
            " and ".join(count(most) for most in row.most),
            row.setting.words if row.setting else NOTHING,
            _price(row, gates(answer)),
        )
        for row in answer.rows
    ]


def _price(row: Row, numbered: tuple[str, ...]) -> str:
    gate = f"accuracy gate {numbered.index(row.way.gate) + 1}" if row.way.gate else ""
    return "; ".join(filter(None, (row.way.price, gate))) or NOTHING


def price_words(way: Way) -> str:
    """What a way costs, in short."""
    gate = "validate outputs first" if way.gate else ""
    return "; ".join(filter(None, (way.price, gate))) or "nothing else changes"


CARRYING_COLUMNS = ("way", "runs", "the most", "with these flags", "price")


def carrying_rows(found: Sequence[CarryingWay]) -> list[tuple[str, ...]]:
    """Ways that carry what is wanted, with what their flags run and what else would, under CARRYING_COLUMNS."""
    return [
        (
            " ".join(one.flags),
            count(one.runs),
            count(one.most),
            NOTHING if one.widest_flags == one.flags else " ".join(one.widest.flags),
            price_words(one.way),
        )
        for one in found
    ]


def carrying_numbers(scenario: Scenario, one: CarryingWay) -> str:
    """What runs as set, at the low end of an estimate, and with the flags of a way [requests of the deployment]."""
    now = solve(for_flags(scenario)).now
    before = f"{count(now.runs * scenario.attn_dp_size)}" if isinstance(now, Split) else "refused"
    return f"{before} → {count(one.runs)} {'runs' if one.runs == 1 else 'run'} at L = {count(scenario.L)}"


def carrying_headline(found: Sequence[CarryingWay], wants: Sequence[Want]) -> str:
    """How many ways carry it and which is the cheapest; an empty text where none does."""
    if not found:
        return ""
    first = found[0]
    ways = "one way carries" if len(found) == 1 else f"{count(len(found))} ways carry"
    return f"{ways} {wants_words(wants)}; the cheapest: {' '.join(first.flags)} ({price_words(first.way)})."


def near_rows(answer: Answer) -> list[tuple[str, ...]]:
    """The nearest points that fit, with all flags that they take, under NEAR_COLUMNS; empty where there is none."""
    return [
        (row.way.words, near.words, near.price, " ".join((*row.way.flags, *near.setting.flags)))
        for row in answer.rows
        for near in row.near
    ]
