"""One rank of a scenario: the numbers that its pools are made of."""

from sizing.basics.numeric import Numeric
from sizing.basics.problems import Refusal, RefusedError
from sizing.engine.charges import drafts_charged
from sizing.engine.kv import headroom_of_request
from sizing.engine.padding import with_padding
from sizing.engine.refused_at_sizing import refusal_at_sizing
from sizing.engine.requests import requests_asked, requests_charged
from sizing.engine.resolve import resolve
from sizing.engine.resolved import Rank, Resolved, Window
from sizing.engine.slots import is_pinned, pin_is_ignored, ratio_is_ignored, slots_divisor
from sizing.scenario.inputs import Scenario, rest_is_given
from sizing.scenario.rest import asked_for


def rank_of(scenario: Scenario) -> Rank:
    """The numbers of one rank where the ratio, or the request count, decides the slots.

    Raises RefusedError for flags that the engine refuses.
    """
    return rank_from(resolve(scenario))


def rank_from(resolved: Resolved) -> Rank:
    """The same, from a scenario that is resolved already."""
    if refusal := refusal_at_sizing(resolved):
        raise RefusedError(refusal)
    scenario, costs = resolved.scenario, resolved.costs
    if not rest_is_given(scenario):  # no number rests on a rest that nobody stated
        cure = f"rest is not known. {asked_for(scenario)}"
        raise RefusedError(Refusal(kind="rest_unknown", engine_words="", cure=cure))
    charged = requests_charged(resolved)
    return Rank(
        resolved=resolved,
        rest_gib=scenario.rest_gib,
        slot_bytes=costs.charged_slot + costs.ring_on_slot,
        ring_fixed_bytes=rings_fixed_bytes(resolved, charged),
        token_bytes=costs.cell,
        S=resolved.S,
        D=drafts_charged(resolved, by_ratio=not ratio_is_ignored(resolved)),
        page_size=resolved.page_size,
        dcp_size=scenario.dcp_size,
        context_length=scenario.context_length,
        requests_asked=requests_asked(resolved),
        requests_charged=charged,
        slots_divisor=slots_divisor(resolved),
        max_total_tokens=scenario.max_total_tokens,
        headroom=headroom_of_request(resolved),
        window=Window(scenario.sliding_window or 1, costs.window_share, costs.window) if costs.window else None,
    )


def rings_fixed_bytes(resolved: Resolved, requests: Numeric) -> Numeric:
    """Rings that come off the state budget once [bytes per rank]: one for each request charged, and one more."""
    return resolved.costs.ring * with_padding(requests) if resolved.costs.rings_are_fixed else 0


def rank_as_set(scenario: Scenario) -> Rank:
    """The numbers of one rank for the split that the scenario sets, by pin or by ratio. Raises RefusedError."""
    return as_set(rank_of(scenario))


def as_set(rank: Rank) -> Rank:
    """The rank by ratio as the rank for the split that its scenario sets."""
    return beside_pin(rank) if is_pinned(rank.resolved) else rank


def beside_pin(rank: Rank) -> Rank:
    """The same rank with its slots pinned: 0.5.7 then charges no draft states."""
    return rank._replace(D=drafts_charged(rank.resolved, by_ratio=False)) if rank.rules.drafts_by_ratio_only else rank


def pin_rank(rank: Rank) -> Rank:
    """The rank with its slots pinned, or as it is where the release ignores a pin; `rank` is the one by ratio."""
    return rank if pin_is_ignored(rank.resolved) else beside_pin(rank)


def asking(rank: Rank, requests: Numeric) -> Rank:
    """The rank with this many requests asked [requests per rank] instead of the flag; an array gives arrays."""
    return rank._replace(
        requests_asked=requests,
        requests_charged=requests,
        ring_fixed_bytes=rings_fixed_bytes(rank.resolved, requests),
    )
