"""An answer of Target in words and rows: every page and the command line say the same."""

from collections.abc import Sequence

from sizing.answers.alternatives import Way
from sizing.answers.band import for_flags
from sizing.answers.carrying_settings import Setting, Want
from sizing.answers.carrying_ways import CarryingWay
from sizing.answers.recommended import SPARE_WHY
from sizing.answers.solve import solve, solve_now
from sizing.answers.target import Answer, Near, Row, best_rows
from sizing.basics.units import NOTHING, count, ratio_range_text, requests_text
from sizing.engine.resolve import resolution
from sizing.engine.split import Split
from sizing.explain.unified_memory import static_alone
from sizing.scenario.inputs import Scenario
from sizing.scenario.rest import condition

WAY_COLUMNS = ("way", "the most", "split to set", "price")
NEAR_COLUMNS = ("way", "instead", "price", "flags")


def wants_words(wants: Sequence[Want]) -> str:
    """What is wanted; several lengths are each carried alone, by one setting."""
    return " or ".join(f"{requests_text(want.requests)} of L = {count(want.L)}" for want in wants)


def each_alone(wants: Sequence[Want]) -> str:
    """What stands before wants of several lengths; empty for one."""
    return "Each length alone: " if len(wants) > 1 else ""


def fit_words(wants: Sequence[Want], *, spare: bool, where: str = "") -> str:
    """That the wants fit, each length alone, and whether a slot stays free; `where` is what that holds for."""
    tight = "" if spare else f", without a slot to spare: {SPARE_WHY}"
    return f"{each_alone(wants)}{wants_words(wants)} fit{where}{tight}.{_at_once(wants)}"


def _at_once(wants: Sequence[Want]) -> str:
    if len(wants) == 1:
        return ""
    return f" For {'both' if len(wants) == 2 else 'all'} at once use Traffic."


def most_words(row: Row, wants: Sequence[Want]) -> str:
    """The most of each want that fits while the others are held, and with a slot to spare where that is fewer."""
    most, spared = (
        [_most_of(want, each, len(wants)) for want, each in zip(wants, found, strict=True)]
        for found in (row.most, row.spared)
    )
    held = ", each with the others as wanted" if len(wants) > 1 else ""
    spare = f" ({' and '.join(spared).replace('at most ', '')} with a slot to spare)" if spared != most else ""
    return f"{' and '.join(most)}{spare}{held}"


def _most_of(want: Want, most: int, wants: int) -> str:
    said = f"at most {count(most)}" if most or wants == 1 else "none"
    return said if wants == 1 else f"{said} of L = {count(want.L)}"


def headline(answer: Answer) -> str:
    """Whether the wants fit, and the most that does."""
    where, static = condition(answer.here.way.scenario), static_alone(answer.here.way.scenario)
    if answer.setting is not None:
        return f"{fit_words(answer.wants, spare=has_spare(answer.setting), where=where)}{static}"
    each = "Each length alone: " if len(answer.wants) > 1 else ""
    most = most_words(answer.here, answer.wants)
    return f"{each}{wants_words(answer.wants)} do not fit: {most}{where}.{static}"


def has_spare(setting: Setting) -> bool:
    """Whether a slot stays free for the chunk border, or none is needed."""
    return bool(setting.spare) or not resolution(setting.scenario).radix_cache


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
    return f"{slots}{ratio} carry them; {left}"


def gates(rows: Sequence[Row]) -> tuple[str, ...]:
    """Each accuracy gate of these ways once."""
    return tuple(dict.fromkeys(row.way.gate for row in rows if row.way.gate))


def way_rows(answer: Answer, rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """These ways with the most that each runs, and what to set where it carries the wants, under WAY_COLUMNS."""
    return [
        (
            row.way.words,
            " and ".join(count(most) for most in row.spared),
            row.setting.words if row.setting else NOTHING,
            price_words(row.way) if row.way.flags else NOTHING,
        )
        for row in rows
    ]


def other_ways(answer: Answer) -> str:
    """How many ways are left out where the best stand alone; empty where none are."""
    left = len(answer.rows) - len(best_rows(answer))
    return f"{count(left)} more {'way' if left == 1 else 'ways'}: the page Target lists all." if left else ""


def price_words(way: Way) -> str:
    """What a way costs, in short."""
    gate = "validate outputs first" if way.gate else ""
    return "; ".join(filter(None, (way.price, gate))) or "no other flag changes"


def carrying_price(one: CarryingWay) -> str:
    """What a way that carries the wants costs, and whether no slot is spare."""
    return price_words(one.way) + ("" if has_spare(one.setting) else f"; no slot to spare: {SPARE_WHY}")


CARRYING_COLUMNS = ("way", "runs", "the most", "with these flags", "price")


def carrying_rows(found: Sequence[CarryingWay]) -> list[tuple[str, ...]]:
    """Ways that carry what is wanted, with what their flags run and what else would, under CARRYING_COLUMNS."""
    return [
        (
            " ".join(one.flags),
            count(one.runs),
            count(one.most),
            NOTHING if one.widest_flags == one.flags else " ".join(one.widest.flags),
            carrying_price(one),
        )
        for one in found
    ]


def carrying_numbers(scenario: Scenario, one: CarryingWay, wants: Sequence[Want]) -> str:
    """For each length what runs as set, at the low end of an estimate, and with the flags of a way [requests of the
    deployment]; where more than is wanted run as set, that too.
    """
    return "; ".join(_change_of(for_flags(scenario), one, want) for want in wants)


def _change_of(scenario: Scenario, one: CarryingWay, want: Want) -> str:
    now, then = _runs_at(scenario, want.L), _runs_at(one.setting.scenario, want.L) or 0
    before, runs = "refused" if now is None else count(now), "runs" if then == 1 else "run"
    if now is not None and now > then:
        return f"{count(want.requests)} wanted at L = {count(want.L)}: {before} run as set, {count(then)} with this"
    return f"{before} → {count(then)} {runs} at L = {count(want.L)}"


def _runs_at(scenario: Scenario, L: int) -> int | None:
    """What runs at L [requests of the deployment]; None where the engine refuses."""
    ratio = solve(scenario).ratio_now if scenario.split == "balanced" else None  # r* of the scenario's own L
    now = solve_now(scenario.model_copy(update={"L": L}), ratio)
    return now.runs * scenario.attn_dp_size if isinstance(now, Split) else None


def carrying_headline(found: Sequence[CarryingWay], wants: Sequence[Want]) -> str:
    """How many ways carry it and which is the cheapest; an empty text where none does."""
    if not found:
        return ""
    first = found[0]
    ways = "one way carries" if len(found) == 1 else f"{count(len(found))} ways carry"
    return f"{ways} {wants_words(wants)}; the cheapest: {' '.join(first.flags)} ({carrying_price(first)})."


def _near_price(near: Near) -> str:
    return near.price + ("" if has_spare(near.setting) else "; no slot to spare")


def all_points(answer: Answer) -> tuple[tuple[Row, Near], ...]:
    """The nearest points of every way."""
    return tuple((row, near) for row in answer.rows for near in row.near)


def near_rows(points: Sequence[tuple[Row, Near]]) -> list[tuple[str, ...]]:
    """Points that fit, with all flags that they take, under NEAR_COLUMNS."""
    return [
        (row.way.words, near.words, _near_price(near), " ".join((*row.way.flags, *near.setting.flags)))
        for row, near in points
    ]
