"""Target mode: wanted requests at L, solved for what to set, or for the nearest points that fit and their prices.

Everything is solved by the engine's rules; a want may be given at several L, each carried by one setting.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from sizing.answers.alternatives import Way, ways
from sizing.answers.carrying_settings import Need, Setting, Want, fits, need, need_of, setting_on, settles
from sizing.answers.optimum import most_by_state
from sizing.basics.search import last_that, last_that_holds
from sizing.basics.units import GIB, count, requests_text, rest_text
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import asking, pin_rank, rank_from, rank_of
from sizing.engine.resolved import Rank
from sizing.scenario.inputs import MAX_REQUESTS, MAX_REST_GIB, Scenario

NearAxis = Literal["requests", "L", "rest", "max_total_tokens"]

BEST = 3  # ways that stand first, or alone where there is little room
REST_DIGITS = 2  # [GiB] rest is offered to a hundredth, rounded up
REST_STEPS = 10**REST_DIGITS


class Near(BaseModel):
    """The nearest point that fits on one axis, everything else as the row has it."""

    model_config = ConfigDict(frozen=True)

    axis: NearAxis
    wants: tuple[Want, ...]
    """What is carried there."""
    varied: tuple[int, ...]
    """Which of the wants are smaller; empty where none is."""
    value: int | float
    """Requests of the deployment, tokens of L, GiB per rank, or tokens per rank."""
    step: int | float
    """The next value towards what was wanted, `value` + `step`, no longer fits. Less than 0 for rest and tokens."""
    setting: Setting
    words: str
    price: str

    @property
    def nearness(self) -> float:
        """Larger for what is nearer to the wants; of one axis."""
        return self.value if self.step > 0 else -self.value


class Row(BaseModel):
    """One way to set the deployment: whether it carries the wants, and if not where it does."""

    model_config = ConfigDict(frozen=True)

    way: Way
    most: tuple[int, ...]
    """For each want, the most requests [of the deployment] of its L that fit while the other wants are held; 0 where
    those alone do not fit."""
    spared: tuple[int, ...] = Field(exclude=True)
    """The same with a slot to spare for the chunk border where fewer requests leave one: what `recommended` takes."""
    setting: Setting | None
    """None where the wants do not fit."""
    near: tuple[Near, ...]
    """Where they do not fit: fewer requests, shorter L, more rest and a higher cap on tokens, each where it is enough
    alone."""


class Answer(BaseModel):
    """What to set, or what does not fit and what would."""

    model_config = ConfigDict(frozen=True)

    wants: tuple[Want, ...]
    setting: Setting | None
    """What carries the wants as the deployment stands; None where they do not fit."""
    rows: tuple[Row, ...]
    """The deployment as it stands; where that does not fit, then every other way to set it."""

    @property
    def here(self) -> Row:
        """The deployment as it stands."""
        return self.rows[0]

    @property
    def fitting(self) -> tuple[Row, ...]:
        """The ways that carry the wants as they are."""
        return tuple(row for row in self.rows if row.setting)


def aim(scenario: Scenario, wants: Sequence[Want]) -> Answer:
    """Solve for wants, of which there is at least one; at the low end where rest is an estimate.

    Raises RefusedError where the flags are refused, like `solve`.

    >>> aim(Scenario(), [Want(L=9216, requests=74)]).setting.pin
    371
    """
    if not wants:
        raise ValueError("There is nothing wanted: give at least one L with its requests.")
    wants = tuple(wants)
    first, *others = ways(scenario)
    here = _row(first, wants)
    rest = () if here.setting else tuple(_row(way, wants) for way in others)
    return Answer(wants=wants, setting=here.setting, rows=(here, *rest))


def best_rows(answer: Answer) -> tuple[Row, ...]:
    """The deployment as it stands, then the three cheapest ways that carry the wants; where none does, the three that
    run the most.
    """
    first = [row.spared[0] for row in answer.rows]
    if answer.fitting:
        found = sorted(zip(answer.rows, first, strict=True), key=lambda row: row[0].way.cost(row[1]))
        return (answer.here, *[row for row, _ in found if row.setting and row is not answer.here][:BEST])
    found = sorted(zip(answer.rows[1:], first[1:], strict=True), key=lambda row: -row[1])
    return (answer.here, *[row for row, _ in found[:BEST]])


def nearest(answer: Answer) -> tuple[tuple[Row, Near], ...]:
    """The points to look at: those of the deployment as it stands; where no way carries the wants, then on each axis
    the nearest of all other ways, where it is nearer.
    """
    here = answer.here
    found = {(near.axis, near.varied): (here, near) for near in here.near}
    for row in () if answer.fitting else answer.rows[1:]:
        for near in row.near:
            known = found.get((near.axis, near.varied))
            if known is None or near.nearness > known[1].nearness:
                found[near.axis, near.varied] = (row, near)
    return (*((here, near) for near in here.near), *(point for point in found.values() if point[0] is not here))


def _row(way: Way, wants: tuple[Want, ...]) -> Row:
    of_ratio = rank_from(way.resolved)
    setting, rank = setting_on(of_ratio, wants), pin_rank(of_ratio)
    most = tuple(most_of(rank, wants, at) for at in range(len(wants)))
    return Row(
        way=way,
        most=most,
        spared=tuple(spared_most(rank, wants, at, found) for at, found in enumerate(most)),
        setting=setting,
        near=() if setting else tuple(_near(of_ratio, wants)),
    )


def most_of(rank: Rank, wants: tuple[Want, ...], at: int) -> int:
    """The most requests [of the deployment] of one want, the others held."""
    top = min(most_by_state(rank) * rank.scenario.attn_dp_size, MAX_REQUESTS)
    return _last_that_settles(rank, 1, top, lambda tried: _with(rank.scenario, wants, (at,), requests=tried))


def _last_that_settles(rank: Rank, low: int, high: int, needed: Callable[[Any], Need]) -> int:
    """The last number from low to high whose need fits, and still fits once its requests are asked for."""
    found = last_that(low, high, lambda tried: fits(rank, needed(tried)))
    if found < low or settles(rank, needed(found)):
        return found
    return last_that_holds(low, found, lambda tried: settles(rank, needed(tried)))


def spared_most(rank: Rank, wants: tuple[Want, ...], at: int, most: int) -> int:
    """The most of one want [requests of the deployment] with a slot to spare; `most` where none leaves one."""
    fewer = most - rank.scenario.attn_dp_size
    if fewer < 1 or not rank.request_slots.spare:
        return most
    full, less = (_with(rank.scenario, wants, (at,), requests=tried, spare=True) for tried in (most, fewer))
    leaves_one = (bool(fits(rank, needed)) and settles(rank, needed) for needed in (full, less))
    return fewer if tuple(leaves_one) == (False, True) else most


def _near(of_ratio: Rank, wants: tuple[Want, ...]) -> Iterator[Near]:
    """The nearest point on each axis, where there is one: with a slot to spare, else without."""
    for axis in (_fewer_requests, _shorter, _more_rest, _more_tokens):
        yield from list(axis(of_ratio, wants, True)) or axis(of_ratio, wants, False)


def _fewer_requests(of_ratio: Rank, wants: tuple[Want, ...], spare: bool) -> Iterator[Near]:
    rank, scenario = pin_rank(of_ratio), of_ratio.scenario
    for which, value in _each_or_all(
        wants,
        [want.requests for want in wants],
        rank,
        lambda which, tried: _with(scenario, wants, which, requests=tried, spare=spare),
    ):
        fewer = _lowered(wants, which, requests=value)
        asked = max(wants[at].requests for at in which)
        yield from _point(
            of_ratio,
            "requests",
            fewer,
            which,
            (value, 1),
            f"{_at(wants, which)}{requests_text(value)} instead of {count(asked)}",
            f"{count(asked - value)} fewer at once",
        )


def _shorter(of_ratio: Rank, wants: tuple[Want, ...], spare: bool) -> Iterator[Near]:
    """The longest L in whole pages, which is what a request occupies; in tokens where that is less than a page."""
    rank, scenario = pin_rank(of_ratio), of_ratio.scenario
    page = rank.page_size * rank.dcp_size
    for which, longest in _each_or_all(
        wants,
        [want.L for want in wants],
        rank,
        lambda which, tried: _with(scenario, wants, which, L=tried, spare=spare),
    ):
        value, step = (longest // page * page, page) if longest >= page else (longest, 1)
        shorter = _lowered(wants, which, L=value)
        asked = max(wants[at].L for at in which)
        yield from _point(
            of_ratio,
            "L",
            shorter,
            which,
            (value, step),
            f"L {'up to ' if len(which) > 1 else ''}{count(value)} instead of {count(asked)}",
            f"{count(asked - value)} tokens of context less in each request",
        )


def _more_rest(of_ratio: Rank, wants: tuple[Want, ...], spare: bool) -> Iterator[Near]:
    """The least rest, in hundredths of a GiB."""
    rank, scenario = pin_rank(of_ratio), of_ratio.scenario
    now = int(np.floor(rank.rest_gib * REST_STEPS))
    needed = need_of(scenario, wants)._replace(spare=spare)
    short = last_that(
        now + 1,
        MAX_REST_GIB * REST_STEPS,
        lambda tried: ~fits(rank._replace(rest_gib=tried / REST_STEPS), needed),
        near=int(_rest_taken(rank, needed) / GIB * REST_STEPS),
    )
    least = (short + 1) / REST_STEPS
    if least > MAX_REST_GIB:
        return
    yield from _point(
        rank_of(scenario.model_copy(update={"rest_gib": least})),
        "rest",
        wants,
        (),
        (least, -1 / REST_STEPS),
        f"rest {least:.{REST_DIGITS}f} GiB per rank instead of {rest_text(scenario.rest_gib)}",
        f"{least - scenario.rest_gib:.{REST_DIGITS}f} GiB more on every rank: a larger --mem-fraction-static where the "
        "boot log shows idle memory, else fewer weight bytes on a rank",
    )


def _rest_taken(rank: Rank, needed: Need) -> float:
    """What a need takes of rest if just its requests are asked for [bytes per rank]."""
    slots = rank.request_slots.slots(needed.requests, spare=needed.spare)
    state = pools_from_slots(asking(rank, needed.requests), slots).charged_bytes
    pages = -(-needed.tokens // rank.logical_page)
    return float(state + pages * rank.page_size * rank.token_bytes)


def _more_tokens(of_ratio: Rank, wants: tuple[Want, ...], spare: bool) -> Iterator[Near]:
    """The least --max-total-tokens, where one is set: whole pages."""
    rank, scenario = pin_rank(of_ratio), of_ratio.scenario
    if scenario.max_total_tokens is None:
        return
    page, needed = rank.page_size, need_of(scenario, wants)._replace(spare=spare)
    most = int(max(rank.rest_gib, 0) * GIB / rank.token_bytes) // page
    short = last_that(
        scenario.max_total_tokens // page + 1,
        most,
        lambda tried: ~fits(rank._replace(max_total_tokens=tried * page), needed),
    )
    if short >= most:
        return
    least = (short + 1) * page
    yield from _point(
        rank_of(scenario.model_copy(update={"max_total_tokens": least})),
        "max_total_tokens",
        wants,
        (),
        (least, -page),
        f"--max-total-tokens {least} instead of {scenario.max_total_tokens}",
        f"{count(least - scenario.max_total_tokens)} more KV tokens on every rank, which the cap keeps free now",
    )


def _point(
    of_ratio: Rank,
    axis: NearAxis,
    wants: tuple[Want, ...],
    varied: tuple[int, ...],
    value_and_step: tuple[int | float, int | float],
    words: str,
    price: str,
) -> Iterator[Near]:
    """No point where asking for its requests lowers an estimated rest too far."""
    setting = setting_on(of_ratio, wants)
    if setting is None:
        return
    value, step = value_and_step
    yield Near(
        axis=axis,
        wants=wants,
        varied=varied,
        value=value,
        step=step,
        setting=setting,
        words=words,
        price=price,
    )


def _each_or_all(
    wants: tuple[Want, ...], asked: list[int], rank: Rank, needed: Callable[[tuple[int, ...], Any], Need]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """For each want that can be lowered alone, its largest number that fits; if none can, one cap for all of them."""

    def largest(which: tuple[int, ...]) -> int:
        return _last_that_settles(rank, 1, max(asked[at] for at in which) - 1, partial(needed, which))

    alone = False
    for which in [(at,) for at in range(len(wants))]:
        if value := largest(which):
            alone = True
            yield which, value
    together = tuple(range(len(wants)))
    if not alone and len(wants) > 1 and (value := largest(together)):
        yield together, value


def _with(
    scenario: Scenario,
    wants: tuple[Want, ...],
    which: tuple[int, ...],
    requests: Any = None,
    L: Any = None,
    spare: bool = False,
) -> Need:
    """The need where one want has other requests or another L, or where all are capped; arrays give arrays."""

    def set_to(value: Any, own: int, at: int) -> Any:
        if value is None or at not in which:
            return own
        return value if len(which) == 1 else np.minimum(value, own)

    needed = need(
        scenario,
        [set_to(requests, want.requests, at) for at, want in enumerate(wants)],
        [set_to(L, want.L, at) for at, want in enumerate(wants)],
    )
    return needed._replace(spare=spare)


def _lowered(
    wants: tuple[Want, ...], which: tuple[int, ...], requests: int = MAX_REQUESTS, L: int | None = None
) -> tuple[Want, ...]:
    """The wants with some of them capped."""
    return tuple(
        Want(L=min(want.L, L or want.L), requests=min(want.requests, requests)) if at in which else want
        for at, want in enumerate(wants)
    )


def _at(wants: tuple[Want, ...], which: tuple[int, ...]) -> str:
    """Which of several wants is meant."""
    if len(which) > 1:
        return "at every L at most "
    return f"at L = {count(wants[which[0]].L)}: " if len(wants) > 1 else ""
