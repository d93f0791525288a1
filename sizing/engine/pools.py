"""The engine's integer solve of both pools, for one rank. Every rule takes numbers or numpy arrays alike.

Source: engine-sizing.md sections 3 and 5 to 7 (`_handle_max_mamba_cache`, `resolve_max_num_reqs`, SGLang 0.5.23);
where older releases differ, releases.py. The engine computes in GiB floats and floors; the order of operations
below is its order.
"""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from sizing.basics.dtypes import KV_ITEMSIZE, STATE_ITEMSIZE
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import GIB
from sizing.engine.refused_flags import check_at_sizing
from sizing.engine.slots_per_request import SPECULATION_REQUESTS as SPECULATION_REQUESTS
from sizing.engine.slots_per_request import radix_cache_is_on, resolve
from sizing.models.kv import SWA_FULL_TOKENS_RATIO, heads_here
from sizing.releases.rules import BLOCK_KIND, EAGLE_KIND, Rules, rules_of
from sizing.scenario.inputs import Scenario
from sizing.scenario.rest import asked_for

# A number or a numpy array of numbers: numpy's own types cannot say "the same shape in and out".
Numeric = Any

# engine-sizing.md section 7: estimate = clamp(int(tokens / context_len * 512), 2048, 4096).
ESTIMATE_FACTOR, ESTIMATE_LOW, ESTIMATE_HIGH = 512, 2048, 4096
TOKENS_PER_REQUEST = 2  # section 7: never more requests than tokens // 2


NO_CAP = 2**62  # where there is no window pool: more requests than any other limit
HEADROOM_BUFFER = 100  # `init_memory_pool` up to 0.5.6: requests x (steps x topk + D) + 100 rows


class Window(NamedTuple):
    """The sliding-window pool beside the full one (engine-sizing.md section 11)."""

    tokens: int
    """How far back a window layer looks."""
    share: float
    """Its rows for each row of the full pool."""
    bytes: int
    """One of its rows [bytes]."""


class Rank(NamedTuple):
    """What one rank brings to the solve. Any number may be a numpy array; arrays broadcast."""

    rules: Rules
    rest_gib: Numeric
    slot_bytes: Numeric
    """What a slot is charged: its state and, for KDA under ReplaySSM, its ring."""
    ring_fixed_bytes: Numeric
    """The ring of GDN under ReplaySSM: taken once, from the state budget."""
    token_bytes: Numeric
    """KV bytes the engine divides by: target plus draft, with a share of the window pool. 0 without attention."""
    S: Numeric
    D: Numeric
    """Draft states that are charged for each running request; 0 where none are."""
    page_size: Numeric
    dcp_size: Numeric
    context_length: Numeric
    requests_asked: Numeric | None
    """The share of --max-running-requests that admission takes, 48 under speculation, or None for the estimate."""
    requests_charged: Numeric
    """The share whose draft states are charged."""
    slots_divisor: Numeric
    """The attention-DP width where a release divides every K by it, else 1."""
    max_total_tokens: Numeric | None
    headroom: int = 0
    """Rows that EAGLE adds for each request beyond what was sized, with HEADROOM_BUFFER more; 0 where none are."""
    window: Window | None = None


class Pools(NamedTuple):
    """Both pools of one rank for given slots. Integers, or integer arrays."""

    slots: Numeric
    """K, what the engine prints as max_mamba_cache_size; one padding slot more is allocated."""
    state_bytes: Numeric
    """What the slots are charged, rings included."""
    draft_reserve_bytes: Numeric
    """Draft states of plain speculation, taken out of rest."""
    kv_rest_bytes: Numeric
    kv_rows: Numeric
    """Tokens on one rank, whole pages."""
    kv_tokens: Numeric
    """Logical tokens: rows x dcp_size."""
    clamp: Numeric
    """K // S: the mamba clamp."""
    admitted: Numeric
    """The engine's max_running_requests; 0 where it refuses to start."""
    window_rows: Numeric = 0
    """Tokens of the sliding-window pool; 0 without one."""
    window_cap: Numeric = NO_CAP
    """How many requests' windows that pool holds."""


def slot_bytes(scenario: Scenario) -> int:
    """State bytes of one slot [bytes per rank] at the dtypes that run."""
    return conv_bytes(scenario) + ssm_bytes(scenario)


def conv_bytes(scenario: Scenario) -> int:
    """The conv part of a slot [bytes per rank]; 0 where it is not known (and then nothing is rescaled)."""
    runs = scenario.mamba_conv_dtype if rules_of(scenario.release).reads_conv_dtype else "bfloat16"
    itemsize = STATE_ITEMSIZE[runs]
    return (scenario.conv_bytes_per_slot or 0) * itemsize // STATE_ITEMSIZE[scenario.conv_bytes_dtype]


def ssm_bytes(scenario: Scenario) -> int:
    """The SSM part of a slot [bytes per rank]."""
    ssm = scenario.state_bytes_per_slot - (scenario.conv_bytes_per_slot or 0)
    return ssm * STATE_ITEMSIZE[scenario.mamba_ssm_dtype] // STATE_ITEMSIZE[scenario.state_bytes_dtype]


def charged_slot_bytes(scenario: Scenario) -> int:
    """What a slot is charged without its ring [bytes per rank]: before 0.5.17 all pipeline stages together."""
    one = slot_bytes(scenario)
    if scenario.pp_size == 1 or scenario.state_bytes_all_stages is None:
        return one
    if rules_of(scenario.release).charges_largest_stage:
        return one
    return scenario.state_bytes_all_stages * one // scenario.state_bytes_per_slot


def ring_bytes(scenario: Scenario) -> int:
    """One ReplaySSM ring [bytes per request or per slot, per rank]; 0 without ReplaySSM (section 5)."""
    if scenario.replayssm == "off" or scenario.ring_bytes_per_position is None:
        return 0
    length = scenario.linear_replayssm_cache_len
    if scenario.replayssm == "spec":
        if not replays_drafts(scenario):
            return 0
        if scenario.family == "GDN" and rules_of(scenario.release).spec_ring == "on every slot" and scenario.D:
            length = scenario.D  # 0.5.17 to 0.5.19
    return length * scenario.ring_bytes_per_position


def replays_drafts(scenario: Scenario) -> bool:
    """Whether rings stand in for draft states: ReplaySSM for speculation, in a family that has it.

    They are charged without speculation too (section 5): the flag alone decides.
    """
    rule = rules_of(scenario.release).spec_ring
    families = {"none": (), "GDN, not charged": ("GDN",)}.get(rule, ("GDN", "KDA"))
    return scenario.replayssm == "spec" and scenario.family in families


def ring_bytes_per_slot(scenario: Scenario) -> int:
    """The ring that every slot is charged [bytes per rank]: KDA, and before 0.5.20 GDN too."""
    rule = rules_of(scenario.release).spec_ring
    if not replays_drafts(scenario) or rule == "GDN, not charged" or (rule, scenario.family) == ("GDN fixed", "GDN"):
        return 0
    return ring_bytes(scenario)


def rings_are_fixed(scenario: Scenario) -> bool:
    """Whether rings come off the state budget once: GDN since 0.5.20."""
    return rules_of(scenario.release).spec_ring == "GDN fixed" and scenario.family == "GDN" and replays_drafts(scenario)


def ring_bytes_fixed(scenario: Scenario) -> int:
    """Those rings [bytes per rank]: one for each request that may run, and one more."""
    return ring_bytes(scenario) * (requests_charged(scenario) + 1) if rings_are_fixed(scenario) else 0


def drafts_charged(scenario: Scenario) -> int:
    """How many draft states a running request is charged [states]: D, or 0 where none are reserved."""
    rules = rules_of(scenario.release)
    if scenario.disaggregation_mode == "prefill" and not rules.prefill_reserves_drafts:
        return 0
    if rules.drafts_by_ratio_only and ratio_is_ignored(scenario):
        return 0
    return 0 if replays_drafts(scenario) and rules.spec_ring != "GDN, not charged" else scenario.D


def target_token_bytes(scenario: Scenario) -> int:
    """KV bytes of one token of the target model [bytes per rank] at the KV dtype and dcp_size that run."""
    return token_bytes(scenario) - draft_charged_bytes(scenario)


def _at_dcp_size(scenario: Scenario, stated: int) -> int:
    """The same row at the dcp_size that runs; before 0.5.18 the KV heads of a rank follow tp alone (section 3)."""
    if scenario.attention != "GQA" or scenario.kv_heads is None:
        return stated
    rules, tp = rules_of(scenario.release), scenario.attn_tp_size
    runs, was = (
        heads_here(scenario.kv_heads, tp, rules.heads_dcp(dcp))
        for dcp in (scenario.dcp_size, scenario.kv_bytes_dcp_size)
    )
    return stated * runs // was


def window_bytes(scenario: Scenario) -> int:
    """One row of the sliding-window pool [bytes per rank] at the KV dtype that runs; 0 without one."""
    return _at_kv_dtype(scenario, scenario.window_bytes_per_token)


def window_share(scenario: Scenario) -> float:
    """Rows of the window pool for each row of the full one [-]."""
    return SWA_FULL_TOKENS_RATIO if scenario.swa_full_tokens_ratio is None else scenario.swa_full_tokens_ratio


def draft_row_bytes(scenario: Scenario) -> int:
    """One row of the draft model's KV pool [bytes per rank], with the heads that the target keeps; 0 without one."""
    if scenario.D == 0 or scenario.speculative_algorithm == "NGRAM":
        return 0
    stated = _at_kv_dtype(scenario, scenario.draft_kv_bytes_per_token)
    return stated if scenario.speculative_algorithm in BLOCK_KIND else _at_dcp_size(scenario, stated)


def draft_charged_bytes(scenario: Scenario) -> int:
    """What the draft adds to the bytes that the engine divides by [bytes per rank] (section 6, last trap)."""
    rules = rules_of(scenario.release)
    if scenario.speculative_algorithm not in rules.charged_draft_kv:
        return 0
    block = scenario.speculative_algorithm in BLOCK_KIND
    every_rank = block or (scenario.attention == "DSA" and rules.pools_index_keys)
    return draft_row_bytes(scenario) * (scenario.dcp_size if every_rank else 1)


def cell_bytes(scenario: Scenario) -> float:
    """KV bytes the engine divides by [bytes per rank]: target plus draft (section 3), and under a sliding window the
    share of the window pool, a float as in the engine."""
    whole = _at_dcp_size(scenario, _at_kv_dtype(scenario, scenario.kv_bytes_per_token)) + draft_charged_bytes(scenario)
    window = window_bytes(scenario)
    return whole + window_share(scenario) * window if window else whole


def token_bytes(scenario: Scenario) -> int:
    """The same in whole bytes."""
    return int(cell_bytes(scenario))


def _at_kv_dtype(scenario: Scenario, stated: int) -> int:
    return stated * KV_ITEMSIZE[scenario.kv_cache_dtype] // KV_ITEMSIZE[scenario.kv_bytes_dtype]


def requests_charged(scenario: Scenario) -> int:
    """Requests of one attention-DP rank whose drafts or rings are charged [requests] (section 5, `reqs`)."""
    asked = scenario.max_running_requests or SPECULATION_REQUESTS
    width = scenario.attn_dp_size if rules_of(scenario.release).drafts_over_dp else 1
    return max(_least(scenario), asked // width)


def requests_asked(scenario: Scenario) -> int | None:
    """What admission aims for on one rank [requests]: the share of the flag, 48 under speculation, or None."""
    asked = scenario.max_running_requests or (SPECULATION_REQUESTS if scenario.D else None)
    if asked is None:
        return None
    width = asked_divisor(scenario)
    return max(_least(scenario), asked // width) if width > 1 else asked


def asked_divisor(scenario: Scenario) -> int:
    """What admission divides --max-running-requests by: the attention-DP width, in releases that do, else 1."""
    rule = rules_of(scenario.release).asked_over_dp
    divided = rule == "always" or (rule == "under speculation" and scenario.D > 0)
    return scenario.attn_dp_size if divided else 1


def _least(scenario: Scenario) -> int:
    return 1 if rules_of(scenario.release).one_request_at_least else 0


def rank_of(scenario: Scenario) -> Rank:
    """One rank of a scenario. Raises RefusedError for flags that the engine refuses."""
    rules, resolved = rules_of(scenario.release), resolve(scenario)
    check_at_sizing(scenario)
    _check_ring(scenario)
    _check_window(scenario)
    _check_rest(scenario)
    return Rank(
        rules=rules,
        rest_gib=scenario.rest_gib,
        slot_bytes=charged_slot_bytes(scenario) + ring_bytes_per_slot(scenario),
        ring_fixed_bytes=ring_bytes_fixed(scenario),
        token_bytes=cell_bytes(scenario),
        S=resolved.S,
        D=drafts_charged(scenario),
        page_size=resolved.page_size,
        dcp_size=scenario.dcp_size,
        context_length=scenario.context_length,
        requests_asked=requests_asked(scenario),
        requests_charged=requests_charged(scenario),
        slots_divisor=_slots_divisor(scenario, rules),
        max_total_tokens=scenario.max_total_tokens,
        headroom=headroom_rows(scenario),
        window=_window(scenario),
    )


def _check_rest(scenario: Scenario) -> None:
    """No number rests on a rest that nobody stated: the one door to the pools asks for it."""
    if scenario.rest_source == "unknown":
        raise RefusedError(
            Refusal(kind="rest_unknown", engine_words="", cure=f"rest is not known. {asked_for(scenario)}")
        )


def headroom_rows(scenario: Scenario) -> int:
    """Rows that EAGLE adds for each request up to 0.5.6, HEADROOM_BUFFER more besides; 0 where none are."""
    if (
        not rules_of(scenario.release).eagle_headroom
        or not scenario.D
        or scenario.speculative_algorithm not in EAGLE_KIND
    ):
        return 0
    steps = scenario.speculative_num_steps or max(scenario.D - 1, 1)
    return steps * scenario.speculative_eagle_topk + scenario.D


def _window(scenario: Scenario) -> Window | None:
    size = window_bytes(scenario)
    return Window(scenario.sliding_window or 1, window_share(scenario), size) if size else None


def beside_pin(rank: Rank) -> Rank:
    """The rank as a pin is charged on it: in 0.5.7 without draft states."""
    return rank._replace(D=0) if rank.rules.drafts_by_ratio_only else rank


def rank_as_set(scenario: Scenario) -> Rank:
    """The rank as the scenario's own split, by pin or by ratio, is charged on it. Raises RefusedError."""
    return beside_pin(rank_of(scenario)) if is_pinned(scenario) else rank_of(scenario)


def _check_window(scenario: Scenario) -> None:
    """With the radix cache off and a request count the window pool is sized by requests and by the prefill chunk
    (`SWARequestCapPoolConfigurator`), which is no input here: no number rests on a guess."""
    if not scenario.window_bytes_per_token or scenario.max_running_requests is None or radix_cache_is_on(scenario):
        return
    cure = (
        "With the radix cache off and --max-running-requests the engine sizes the window pool by requests and "
        "--chunked-prefill-size, which this tool does not do: leave one of them out."
    )
    raise RefusedError(Refusal(kind="not_served", engine_words="", cure=cure))


def _check_ring(scenario: Scenario) -> None:
    """KDA's rings hold a power of two of positions, at least 2 x D (section 8), which is checked at allocation."""
    length, least = scenario.linear_replayssm_cache_len, 2 * scenario.D
    if scenario.family != "KDA" or not ring_bytes_per_slot(scenario) or (length >= least and length.bit_count() == 1):
        return
    enough = 1 << max(least - 1, 1).bit_length()
    cure = f"--linear-replayssm-cache-len {length} must be a power of two and at least 2 x D = {least}: set {enough}."
    raise RefusedError(Refusal(kind="flags", engine_words="", cure=cure))


def _slots_divisor(scenario: Scenario, rules: Rules) -> int:
    return scenario.attn_dp_size if rules.gdn_slots_over_dp and scenario.family == "GDN" else 1


def ratio_is_ignored(scenario: Scenario) -> bool:
    """Radix cache off with a known request count takes exactly that many slots, whatever the ratio (section 5, 2)."""
    known = scenario.max_running_requests is not None or scenario.D > 0
    unset = rules_of(scenario.release).slots_without_radix is not None
    return (known or unset) and not radix_cache_is_on(scenario)


def pin_is_ignored(scenario: Scenario) -> bool:
    """Up to 0.5.6 the ratio overwrites a pin while the radix cache is on."""
    return not rules_of(scenario.release).pin_wins and radix_cache_is_on(scenario)


def is_pinned(scenario: Scenario) -> bool:
    """Whether a pin decides the slots of this scenario."""
    return scenario.split == "pin" and not pin_is_ignored(scenario)


def pin_divisor(scenario: Scenario) -> int:
    """What --max-mamba-cache-size is divided by: the attention-DP width; up to 0.5.6 for GDN alone."""
    rules = rules_of(scenario.release)
    return _slots_divisor(scenario, rules) if rules.gdn_slots_over_dp else scenario.attn_dp_size


def slots_from_pin(scenario: Scenario, pin: int) -> int:
    """K [slots per rank] from --max-mamba-cache-size [slots]."""
    return pin // pin_divisor(scenario)


def pin_from_slots(scenario: Scenario, slots: int) -> int:
    """The least --max-mamba-cache-size [slots] that gives K [slots per rank]."""
    return slots * pin_divisor(scenario)


def slots_without_radix(scenario: Scenario) -> int:
    """K [slots per rank] with the radix cache off, where the ratio is ignored."""
    rules = rules_of(scenario.release)
    asked = scenario.max_running_requests or (SPECULATION_REQUESTS if scenario.D else rules.slots_without_radix) or 0
    if rules.gdn_slots_over_dp:
        return asked // _slots_divisor(scenario, rules)
    return max(_least(scenario), asked // scenario.attn_dp_size)


def asking(scenario: Scenario, rank: Rank, requests: Numeric) -> Rank:
    """The rank with so many requests asked [requests per rank] in place of the flag; an array makes arrays of all."""
    rings = ring_bytes(scenario) * (requests + 1) if rings_are_fixed(scenario) else rank.ring_fixed_bytes
    return rank._replace(requests_asked=requests, requests_charged=requests, ring_fixed_bytes=rings)


def state_budget_bytes(rest_gib: Numeric, ratio: Numeric) -> Numeric:
    """State budget [bytes, float] of a ratio [-]: rest x r / (1 + r)."""
    return rest_gib * ratio / (1 + ratio) * GIB


def slots_from_ratio(rank: Rank, ratio: Numeric) -> Numeric:
    """K [slots, float holding a whole number] from a ratio; may be 0 or less, which the engine refuses.

    Without drafts one padding slot comes off the budget. Under plain speculation the joint solve charges
    D draft states for each S slots, and 1 + D padding states.
    """
    if rank.rules.drafts == "in every slot":
        return state_budget_bytes(rank.rest_gib, ratio) // rank.slot_bytes // (1 + rank.D) // rank.slots_divisor
    if rank.rules.drafts == "before the split":
        ahead = rank.slot_bytes * rank.requests_charged * rank.D / GIB
        return state_budget_bytes(rank.rest_gib - ahead, ratio) // rank.slot_bytes
    budget = state_budget_bytes(rank.rest_gib, ratio) - rank.ring_fixed_bytes
    padding = rank.slot_bytes * (1 + rank.D) if rank.rules.charges_padding else 0
    return (budget - padding) // (rank.slot_bytes * (1 + rank.D / rank.S))


def pools_from_slots(rank: Rank, slots: Numeric) -> Pools:
    """Everything that follows from K [slots]: what KV gets, the page floor, the caps on requests.

    Values are meaningful where `slots`, `kv_rest_bytes` and `kv_rows` are positive; elsewhere `admitted` is 0.
    """
    slots = np.asarray(slots).astype(np.int64)
    clamp = slots // rank.S
    reserve = _draft_reserve_bytes(rank, slots, clamp)
    state = (slots + (1 if rank.rules.charges_padding else 0)) * rank.slot_bytes + rank.ring_fixed_bytes
    kv_rest_gib = rank.rest_gib - reserve / GIB - state / GIB
    kv_rest = np.trunc(kv_rest_gib * GIB).astype(np.int64)
    rows = _kv_rows(rank, kv_rest, clamp)
    windows = _window_rows(rank, rows)
    return Pools(
        slots=slots,
        state_bytes=state,
        draft_reserve_bytes=reserve,
        kv_rest_bytes=kv_rest,
        kv_rows=rows,
        kv_tokens=rows * rank.dcp_size,
        clamp=clamp,
        admitted=_admitted(rank, rows, clamp),
        window_rows=windows,
        window_cap=windows // rank.window.tokens if rank.window else NO_CAP + 0 * rows,
    )


def _draft_reserve_bytes(rank: Rank, slots: Numeric, clamp: Numeric) -> Numeric:
    """Draft states at the whole slot each, of the slots or requests that the release charges them for."""
    if rank.rules.drafts == "in every slot":
        holders = slots
    elif rank.rules.drafts == "before the split":
        holders = rank.requests_charged + 0 * clamp
    else:
        holders = np.minimum(rank.requests_charged, clamp) + (1 if rank.rules.charges_padding else 0)
    return holders * rank.D * rank.slot_bytes


def _kv_rows(rank: Rank, kv_rest_bytes: Numeric, clamp: Numeric) -> Numeric:
    """Tokens on one rank [tokens]: whole pages of what is left, capped by --max-total-tokens (section 6).

    Without attention layers a token costs nothing, and the engine takes the cap or one context
    (`DefaultPoolConfigurator._zero_kv_max_tokens`).
    """
    if np.ndim(rank.token_bytes) == 0 and rank.token_bytes == 0:
        rows = np.full(np.shape(kv_rest_bytes), rank.max_total_tokens or rank.context_length, dtype=np.int64)
    else:
        rows = (kv_rest_bytes // rank.token_bytes).astype(np.int64)
    if rank.headroom and rank.requests_asked is not None:
        added = np.minimum(clamp, rank.requests_asked) * rank.headroom + HEADROOM_BUFFER
        # With nothing left for KV the engine would start on these rows alone, out of the slack: that is no server.
        rows = np.where(kv_rest_bytes > 0, rows + added, rows)
    rows = rows // rank.page_size * rank.page_size
    if rank.max_total_tokens is not None:
        rows = np.minimum(rows, rank.max_total_tokens) // rank.page_size * rank.page_size
    return np.maximum(rows, 0)


def _window_rows(rank: Rank, rows: Numeric) -> Numeric:
    """Tokens of the window pool on one rank: its share of the full pool's, in whole pages."""
    if rank.window is None:
        return 0 * rows
    return (rows * rank.window.share).astype(np.int64) // rank.page_size * rank.page_size


def estimate(rank: Rank, rows: Numeric) -> Numeric:
    """The engine's own guess at running requests [requests] from rows of one rank and the context length."""
    guess = np.trunc(rows / rank.context_length * ESTIMATE_FACTOR).astype(np.int64)
    return np.clip(guess, ESTIMATE_LOW, ESTIMATE_HIGH)


def _admitted(rank: Rank, rows: Numeric, clamp: Numeric) -> Numeric:
    """max_running_requests of one rank [requests] (section 7; releases.py where it differs)."""
    caps = [clamp]
    if rank.requests_asked is not None:
        caps.append(rank.requests_asked)
    if caps_by_estimate(rank):
        caps.append(estimate(rank, rows))
    if caps_by_tokens(rank):
        caps.append(rows // TOKENS_PER_REQUEST)
    return np.where(rows > 0, np.maximum(reduce(np.minimum, caps), 0), 0)


def caps_by_estimate(rank: Rank) -> bool:
    """Whether the engine's estimate is one of the caps."""
    return rank.requests_asked is None or rank.rules.asked_capped_by == "estimate"


def caps_by_tokens(rank: Rank) -> bool:
    """Whether tokens // 2 is one of the caps."""
    if rank.requests_asked is None:
        return rank.rules.estimate_capped_by_tokens
    return rank.rules.asked_capped_by == "tokens // 2"


def kv_cap(kv_tokens: Numeric, L: Numeric) -> Numeric:
    """How many requests of L tokens the KV pool holds [requests]: logical tokens // L.

    This is the specification's cap; the engine does not enforce it, it over-admits and retracts (section 7).
    """
    return kv_tokens // L


def tokens_occupied(rank: Rank, L: Numeric) -> Numeric:
    """Logical tokens [tokens] that a request of L occupies: whole pages of page_size x dcp_size (section 6)."""
    page = rank.page_size * rank.dcp_size
    return -(-L // page) * page
