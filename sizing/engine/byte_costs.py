"""What a slot, a ring, a token and a draft's row cost on one rank, at the dtypes and widths that run.

Source: engine-sizing.md sections 2, 3, 5 and 6; where releases differ, sizing/releases/rules.py.
"""

from pydantic import BaseModel, ConfigDict

from sizing.basics.dtypes import KV_ITEMSIZE, STATE_ITEMSIZE
from sizing.models.kv import SWA_FULL_TOKENS_RATIO, heads_here
from sizing.releases.rules import BLOCK_KIND, Rules
from sizing.scenario.inputs import Scenario, Source


class ByteCosts(BaseModel):
    """Every price of one scenario [bytes per rank], and where those that all others follow from came from."""

    model_config = ConfigDict(frozen=True)

    conv: int
    """The conv part of a slot; 0 where it is not known (and then nothing is rescaled)."""
    ssm: int
    slot: int
    """One slot: conv and SSM part."""
    charged_slot: int
    """What a slot is charged without its ring: before 0.5.17 all pipeline stages together."""
    slot_from: Source
    replays_drafts: bool
    """Whether rings stand in for draft states: ReplaySSM for speculation, in a family that has it. They are charged
    without speculation too (section 5): the flag alone decides."""
    ring: int
    """One ReplaySSM ring, of a request or of a slot; 0 without ReplaySSM."""
    ring_on_slot: int
    """The ring that every slot is charged: KDA, and before 0.5.20 GDN too."""
    rings_are_fixed: bool
    """Whether rings come off the state budget once: GDN since 0.5.20."""
    cell: int | float
    """What the engine divides KV by: target plus draft, and the share of the window pool, a float as in the engine."""
    draft_row: int
    """One row of the draft model's KV pool, with the heads that the target keeps; 0 without one."""
    draft_charged: int
    """What the draft adds to `cell` (section 6, last trap)."""
    window: int
    """One row of the sliding-window pool; 0 without one."""
    window_share: float
    """Rows of the window pool for each row of the full one [-]."""
    token_from: Source
    side: int
    """States of a slot beside the pool, charged to nobody."""

    @property
    def token(self) -> int:
        """`cell` in whole bytes."""
        return int(self.cell)

    @property
    def target_token(self) -> int:
        """The same without the draft."""
        return self.token - self.draft_charged


def byte_costs(scenario: Scenario, rules: Rules) -> ByteCosts:
    """The prices that release, dtypes and widths make of the stated bytes."""
    conv, ssm = _conv(scenario, rules), _ssm(scenario)
    replays = _replays_drafts(scenario, rules)
    ring = _ring(scenario, rules, replays=replays)
    draft = _draft_row(scenario, rules)
    draft_charged = draft * draft_rows_charged(
        rules, scenario.speculative_algorithm, scenario.dcp_size, index=scenario.attention == "DSA"
    )
    window, share = _at_kv_dtype(scenario, scenario.window_bytes_per_token), _window_share(scenario)
    whole = _at_dcp_size(scenario, rules, _at_kv_dtype(scenario, scenario.kv_bytes_per_token)) + draft_charged
    return ByteCosts(
        conv=conv,
        ssm=ssm,
        slot=conv + ssm,
        charged_slot=_charged_slot(scenario, rules, conv + ssm),
        slot_from=scenario.state_bytes_source,
        replays_drafts=replays,
        ring=ring,
        ring_on_slot=ring if replays and _ring_on_slot(scenario, rules) else 0,
        rings_are_fixed=replays and scenario.family == "GDN" and rules.spec_ring == "GDN fixed",
        cell=whole + share * window if window else whole,
        draft_row=draft,
        draft_charged=draft_charged,
        window=window,
        window_share=share,
        token_from=scenario.kv_bytes_source,
        side=scenario.side_bytes_per_slot,
    )


def _conv(scenario: Scenario, rules: Rules) -> int:
    runs = scenario.mamba_conv_dtype if rules.reads_conv_dtype else "bfloat16"
    return (scenario.conv_bytes_per_slot or 0) * STATE_ITEMSIZE[runs] // STATE_ITEMSIZE[scenario.conv_bytes_dtype]


def _ssm(scenario: Scenario) -> int:
    ssm = scenario.state_bytes_per_slot - (scenario.conv_bytes_per_slot or 0)
    return ssm * STATE_ITEMSIZE[scenario.mamba_ssm_dtype] // STATE_ITEMSIZE[scenario.state_bytes_dtype]


def _charged_slot(scenario: Scenario, rules: Rules, slot: int) -> int:
    if scenario.pp_size == 1 or scenario.state_bytes_all_stages is None or rules.charges_largest_stage:
        return slot
    return scenario.state_bytes_all_stages * slot // scenario.state_bytes_per_slot


def _replays_drafts(scenario: Scenario, rules: Rules) -> bool:
    families = {"none": (), "GDN, not charged": ("GDN",)}.get(rules.spec_ring, ("GDN", "KDA"))
    return scenario.replayssm == "spec" and scenario.family in families


def _ring(scenario: Scenario, rules: Rules, *, replays: bool) -> int:
    off = scenario.replayssm == "off" or (scenario.replayssm == "spec" and not replays)
    if off or scenario.ring_bytes_per_position is None:
        return 0
    length = scenario.linear_replayssm_cache_len
    if replays and scenario.family == "GDN" and rules.spec_ring == "on every slot" and scenario.D:
        length = scenario.D  # 0.5.17 to 0.5.19
    return length * scenario.ring_bytes_per_position


def _ring_on_slot(scenario: Scenario, rules: Rules) -> bool:
    return rules.spec_ring == "on every slot" or (rules.spec_ring == "GDN fixed" and scenario.family != "GDN")


def draft_rows_charged(rules: Rules, algorithm: str | None, dcp_size: int, *, index: bool) -> int:
    """How many rows of the draft's KV the bytes of a token hold [rows]: none, one, or one for each DCP rank.

    `index`: whether the attention layers are DSA, whose draft keeps index keys too.
    """
    if algorithm not in rules.charged_draft_kv:
        return 0
    return dcp_size if algorithm in BLOCK_KIND or (index and rules.pools_index_keys) else 1


def _draft_row(scenario: Scenario, rules: Rules) -> int:
    if scenario.D == 0 or scenario.speculative_algorithm == "NGRAM":
        return 0
    stated = _at_kv_dtype(scenario, scenario.draft_kv_bytes_per_token)
    return stated if scenario.speculative_algorithm in BLOCK_KIND else _at_dcp_size(scenario, rules, stated)


def _window_share(scenario: Scenario) -> float:
    return SWA_FULL_TOKENS_RATIO if scenario.swa_full_tokens_ratio is None else scenario.swa_full_tokens_ratio


def _at_kv_dtype(scenario: Scenario, stated: int) -> int:
    return stated * KV_ITEMSIZE[scenario.kv_cache_dtype] // KV_ITEMSIZE[scenario.kv_bytes_dtype]


def _at_dcp_size(scenario: Scenario, rules: Rules, stated: int) -> int:
    """The same row at the dcp_size that runs; before 0.5.18 the KV heads of a rank follow tp alone (section 3)."""
    if scenario.attention != "GQA" or scenario.kv_heads is None:
        return stated
    runs, was = (
        heads_here(scenario.kv_heads, scenario.attn_tp_size, rules.heads_dcp(dcp))
        for dcp in (scenario.dcp_size, scenario.kv_bytes_dcp_size)
    )
    return stated * runs // was
