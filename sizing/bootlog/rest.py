"""`rest` two ways: from the weight lines and --mem-fraction-static, and from the printed pools by release.

Source: engine-sizing.md sections 1 and 14. What is printed is not what is charged: the padding slot up to 0.5.16, the
padding page, what a decode server allocates after sizing, draft windows, rings for decode and those of 0.5.16.
"""

from typing import NamedTuple

from sizing.basics.units import GIB
from sizing.bootlog.measure import Measured, least, span
from sizing.bootlog.rank_facts import RankFacts
from sizing.engine.byte_costs import draft_rows_charged
from sizing.engine.charges import charges_drafts
from sizing.engine.draft_rules import drafts_of
from sizing.engine.kv import adds_headroom, headroom_rows, rows_in_flight
from sizing.engine.padding import slots_charged, with_padding
from sizing.engine.request_slots import RequestSlots
from sizing.releases.rules import Release, rules_of
from sizing.scenario.inputs import Algorithm, Family, ReplaySsm, Role


class Charging(NamedTuple):
    """What decides how much of the printed pools was charged, by a Scenario's names."""

    release: Release
    page_size: int = 1
    dcp_size: int = 1
    S: int | None = None
    D: int | None = 0
    """Draft tokens, 0 without speculation; None is not known."""
    requests: int | None = None
    """--max-running-requests that drafts are charged for: of one attention-DP rank, in 0.5.7 of all; None is unset."""
    algorithm: Algorithm | None = None
    steps: int | None = None
    topk: int | None = None
    replayssm: ReplaySsm = "off"
    family: Family | None = None
    role: Role | None = None
    index_keys: bool = False
    """Whether the attention layers are DSA, whose draft keeps index keys too."""
    by_ratio: bool = True
    """Whether the ratio decided the slots: no pin, and no request count with the radix cache off."""


def rest_from_weights(
    begin: Measured | None, end: Measured | None, mem_fraction_static: float | None
) -> Measured | None:
    """rest = end - begin x (1 - mem_fraction_static) [GiB], of the least of all ranks; None where one is not known.

    What a multimodal model or post-capture sizing keeps back besides is not printed, and not taken off.
    """
    if begin is None or end is None or mem_fraction_static is None:
        return None
    kept = 1 - mem_fraction_static
    return Measured(end.value - begin.value * kept, end.low - begin.high * kept, end.high - begin.low * kept)


def rest_from_pools(ranks: tuple[RankFacts, ...], charging: Charging) -> Measured | None:
    """What the printed pools were charged [GiB], the least of all ranks: `rest`, or less of it under a token cap or PP.

    `high` holds what flooring to whole pages leaves. None where a size, S, D or the release's rule is not known.
    """
    found = [rest for rank in ranks if (rest := _of_rank(rank, charging)) is not None]
    return least(found) if found else None


def _of_rank(rank: RankFacts, charging: Charging) -> Measured | None:
    state, kv, drafts = _state(rank, charging), _kv(rank, charging), _drafts(rank, charging)
    if state is None or kv is None or drafts is None:
        return None
    return span(state, drafts, kv)


NOTHING = Measured(0.0, 0.0, 0.0)


def _state(rank: RankFacts, charging: Charging) -> Measured | None:
    """The slots that were charged; a decode server up to 0.5.10 allocates a count of its own and never prints K."""
    if rank.state_gib is None or rank.slots is None or rank.slots_allocated is None:
        return None
    rules = rules_of(charging.release)
    if charging.role == "decode" and rules.decode_slots != "most of K and what rows need":
        return None
    return rank.state_gib.times(slots_charged(rules, rank.slots) / with_padding(rank.slots_allocated))


def _kv(rank: RankFacts, charging: Charging) -> Measured | None:
    """Tokens x the bytes that the engine divides by; up to one page of it is floored away."""
    if rank.kv_gib is None or not rank.kv_rows:
        return None
    rows: float = rank.kv_rows
    if adds_headroom(rules_of(charging.release), charging.D, charging.algorithm or "EAGLE"):
        if not (charging.steps and charging.topk and rank.running):
            return None
        rows -= int(headroom_rows(rank.running, rows_in_flight(charging.steps, charging.topk, charging.D or 0)))
    token = rank.kv_gib.times(1 / (rank.kv_rows + charging.page_size))
    draft = _draft_token(rank, charging)
    if draft is None:
        return None
    charged = span(token.times(rows), draft.times(rows))
    return charged._replace(high=charged.high + (token.high + draft.high) * charging.page_size)


def _draft_token(rank: RankFacts, charging: Charging) -> Measured | None:
    """One row of the draft's KV as it is charged [GiB]; None where it is charged and not printed."""
    charged = draft_rows_charged(
        rules_of(charging.release), charging.algorithm, charging.dcp_size, index=charging.index_keys
    )
    if not charging.D or not charged:
        return NOTHING
    return None if rank.draft_token_bytes is None else rank.draft_token_bytes.times(charged / GIB)


def _drafts(rank: RankFacts, charging: Charging) -> Measured | None:
    """Draft states of plain speculation, or ReplaySSM rings, as they are charged."""
    rules = rules_of(charging.release)
    if charging.D is None:
        return None
    if charging.D == 0 or not charges_drafts(rules, charging.role, by_ratio=charging.by_ratio):
        return NOTHING
    if charging.replayssm == "spec" and rules.rings_replace_drafts:
        return _rings(rank, charging)
    reserved = _states_reserved(rank, charging)
    if reserved is None or rank.state_gib is None or rank.slots_allocated is None:
        return None
    return rank.state_gib.times(reserved * charging.D / with_padding(rank.slots_allocated))


def _asked(charging: Charging) -> int:
    """The requests that are charged for: as asked, else as many as the release takes under speculation."""
    return charging.requests or rules_of(charging.release).speculation_requests


def _states_reserved(rank: RankFacts, charging: Charging) -> int | None:
    """How many requests' drafts are charged (section 14, the row of draft states)."""
    rules = rules_of(charging.release)
    if rank.slots is None or (charging.S is None and drafts_of(rules).asks_clamp):
        return None
    clamp = RequestSlots(charging.S or 1).requests(rank.slots)
    return int(drafts_of(rules).holders(rules, rank.slots, clamp, _asked(charging)))


def _rings(rank: RankFacts, charging: Charging) -> Measured | None:
    """Rings of speculation: all that is printed, on N + 1 slots or on the running requests and one more.

    Those of GDN since 0.5.20 are charged for the requests asked for, of which fewer may run.
    """
    if rank.ring_gib is None or charging.family is None:
        return None
    if charging.family == "GDN" and rules_of(charging.release).spec_ring == "GDN fixed":
        if rank.running is None:
            return None
        return rank.ring_gib.times(with_padding(_asked(charging)) / with_padding(rank.running))
    return rank.ring_gib


def gap_gib(weights: Measured, pools: Measured, *, pools_are_least: bool = False) -> float:
    """How far apart the two are, beyond what rounding leaves [GiB]: above 0 the weights leave more than the pools took.

    `pools_are_least`: a token cap or a stage leaves memory unused, so the pools may be less than rest, never more.
    """
    if pools.low > weights.high:
        return weights.high - pools.low
    if weights.low > pools.high and not pools_are_least:
        return weights.low - pools.high
    return 0.0
