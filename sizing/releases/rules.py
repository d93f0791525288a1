"""What each SGLang release does in its own way: the rules of the first release, then every change, oldest first.

Source: engine-versions.md, read from the wheels named in RELEASES; a release that is not in the list was not read.
The formulas stand once, in sizing/engine/; they ask these rules where releases differ.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict

Release = Literal[
    "0.5.4", "0.5.5", "0.5.6", "0.5.7", "0.5.8", "0.5.9", "0.5.10", "0.5.11", "0.5.12", "0.5.13", "0.5.14", "0.5.15",
    "0.5.16", "0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23",
]  # fmt: skip
RELEASES: tuple[Release, ...] = get_args(Release)
LATEST: Release = RELEASES[-1]
COVERED = f"{RELEASES[0]} to {LATEST}"
"""The releases whose rules are known, in words."""

DraftRule = Literal["in every slot", "before the split", "joint"]
SpecRing = Literal["none", "GDN, not charged", "on every slot", "GDN fixed"]
DecodeSlots = Literal["rows", "K and extra", "least of K and rows", "most of K and what rows need"]


class Estimate(NamedTuple):
    """Requests that the engine aims for by itself: tokens / context length x factor, from low to high."""

    factor: int
    low: int
    high: int


class Rules(BaseModel):
    """How one release sizes its pools: where releases differ, and the engine's own numbers."""

    model_config = ConfigDict(frozen=True)

    strategies: tuple[str, ...]
    """What the strategy flag takes besides auto; empty: there is no such flag and S is 3."""
    strategy_flag: str
    auto: Literal["no_buffer", "extra_buffer"]
    """What `auto` gives where the architecture supports it."""
    checks_no_buffer: bool
    """Whether no_buffer with pages or with overlap is refused."""
    no_buffer_turns_overlap_off: bool
    """Whether keeping no buffer turns overlap off; since 0.5.14 only where `auto` gave no_buffer."""
    no_buffer_sets_page_1: bool
    no_buffer_speculates: Literal["with the radix cache", "without the radix cache", "never"]
    """What becomes of no_buffer under speculation."""
    extra_buffer_needs_radix: bool
    """Whether extra_buffer with --disable-radix-cache is refused."""
    refuses_extra_buffer_without_state: bool
    """Whether extra_buffer is refused for state models outside the engine's list; else it is obeyed unchecked."""
    lazy_speculates: bool
    lazy_under_pd: bool
    decode_role_first: bool
    """Whether a PD decode server turns its radix cache off before the strategy is resolved."""
    base_slots: int
    """State slots of a running request with the radix cache on, without a track buffer."""
    slots_unused: int
    """The track buffer [slots] that is reserved for a running request and not used."""
    slots_radix_off: int
    """State slots of a running request with the radix cache off."""
    overlap_with: tuple[str, ...]
    """The speculative algorithms that leave overlap on."""
    overlap_with_trees: bool
    """Whether --speculative-eagle-topk above 1 leaves it on too."""
    pp_speculates: bool
    """Whether --pp-size above 1 takes speculation, on a PD prefill server."""
    dcp_speculates: bool
    one_track_slot_if: Literal["speculation", "overlap off"]
    """When extra_buffer keeps one track slot a request instead of two."""
    reads_skip_decode_lock: bool
    ssm_dtypes: tuple[str, ...]
    reads_checkpoint_dtype: bool
    """Whether the checkpoint's mamba_ssm_dtype counts where --mamba-ssm-dtype is not given."""
    reads_conv_dtype: bool
    multimodal_cache_mib: int
    """A multimodal model's embedding cache, which comes off rest [MiB]: SGLANG_VLM_CACHE_SIZE_MB."""
    multimodal_feature_mib: int
    """What comes off with it where features are sent by cuda_ipc or cuda_vmm [MiB]: SGLANG_MM_FEATURE_CACHE_MB."""
    drafts: DraftRule
    """How the draft states of plain speculation are charged."""
    draft_windows: Literal["whole", "not known", "overlapping once"]
    """How the conv windows of a request's drafts are allocated, for other families than KDA, where they are whole."""
    drafts_by_ratio_only: bool
    """Whether a pin and a request count leave the draft states uncharged."""
    drafts_over_dp: bool
    """Whether the requests whose draft states are charged are those of one attention-DP rank."""
    eagle_headroom: bool
    """Whether EAGLE adds rows for drafts in flight on top of what was sized."""
    pin_wins: bool
    """Whether --max-mamba-cache-size beats the ratio; else only where the radix cache is off."""
    slots_without_radix: int | None
    """K where the radix cache is off and no request count is set; None: by the ratio."""
    gdn_slots_over_dp: bool
    """K is divided by the attention-DP width for GDN alone, by whatever rule it came about."""
    charges_padding: bool
    """Whether the padding slot and its draft states are charged; they are allocated in every release."""
    refuses_without_slots: bool
    refuses_without_kv: bool
    charges_largest_stage: bool
    """Under PP: the largest stage, or all layers on every stage."""
    decode_ring: bool
    spec_ring: SpecRing
    spec_ring_flag: str
    prefill_reserves_drafts: bool
    """Whether a PD prefill server charges draft states."""
    asked_over_dp: Literal["never", "under speculation", "always"]
    """Whether --max-running-requests is divided by the attention-DP width when requests are admitted."""
    asked_capped_by: Literal["nothing", "estimate", "tokens // 2"]
    estimate: Estimate
    estimate_capped_by_tokens: bool
    tokens_per_request: int
    """The fewest KV tokens [tokens per rank] that a request is admitted for, where tokens cap requests."""
    speculation_requests: int
    """--max-running-requests [requests of the deployment] where it is not set under speculation."""
    one_request_at_least: bool
    """Whether --max-running-requests below the attention-DP width still gives each rank one request."""
    dp_flags: str
    dcp: bool
    kv_heads_follow_dcp: bool
    pools_index_keys: bool
    """Whether GLM-5-next's index keys are pooled, and counted dcp_size times (with its draft's KV)."""
    draft_pool_spans_dcp: bool
    prints_logical_tokens: bool
    """Whether `max_total_num_tokens=` is in logical tokens, rows x dcp_size."""
    charged_draft_kv: tuple[str, ...]
    """The algorithms whose draft KV is in the bytes that the engine divides by."""
    rounds_draft_with_target: bool
    """int(cell x (1 + draft / full)), else cell + int(cell x draft / full): a byte apart at times."""
    decode_slots: DecodeSlots
    """How many slots a PD decode server allocates for its rows."""
    decode_extra_flag: bool
    """Whether the extra rows of a PD decode server have a flag and a default from --max-running-requests alone."""

    @property
    def least_requests(self) -> int:
        """What a share of --max-running-requests comes to at least [requests per attention-DP rank]."""
        return int(self.one_request_at_least)

    @property
    def rings_replace_drafts(self) -> bool:
        """Whether ReplaySSM for speculation is charged in place of draft states, not beside them."""
        return self.spec_ring in ("on every slot", "GDN fixed")

    def heads_dcp(self, dcp_size: int) -> int:
        """The dcp_size [ranks] that the KV heads of a rank follow: 1 in releases where they follow tp alone."""
        return dcp_size if self.kv_heads_follow_dcp else 1


class Change(BaseModel):
    """What is different since a release, in words and as the rules it sets."""

    model_config = ConfigDict(frozen=True)

    since: Release
    words: str
    sets: dict[str, Any]


FIRST = Rules(
    strategies=(),
    strategy_flag="",
    auto="no_buffer",
    checks_no_buffer=False,
    no_buffer_turns_overlap_off=False,
    no_buffer_sets_page_1=False,
    no_buffer_speculates="with the radix cache",
    extra_buffer_needs_radix=False,
    refuses_extra_buffer_without_state=False,
    lazy_speculates=False,
    lazy_under_pd=True,
    decode_role_first=False,
    base_slots=3,
    slots_unused=0,
    slots_radix_off=1,  # engine-sizing.md section 4
    overlap_with=(),
    overlap_with_trees=False,
    pp_speculates=False,
    dcp_speculates=False,
    one_track_slot_if="speculation",
    reads_skip_decode_lock=False,
    ssm_dtypes=("float32", "bfloat16"),
    reads_checkpoint_dtype=False,
    reads_conv_dtype=False,
    multimodal_cache_mib=0,
    multimodal_feature_mib=1024,  # rest-before-boot.md section 3.4
    drafts="in every slot",
    draft_windows="whole",
    drafts_by_ratio_only=False,
    drafts_over_dp=True,
    eagle_headroom=True,
    pin_wins=False,
    slots_without_radix=512,
    gdn_slots_over_dp=True,
    charges_padding=False,
    refuses_without_slots=False,
    refuses_without_kv=False,
    charges_largest_stage=False,
    decode_ring=False,
    spec_ring="none",
    spec_ring_flag="",
    prefill_reserves_drafts=True,
    asked_over_dp="never",
    asked_capped_by="nothing",
    # engine-sizing.md sections 5 and 7
    estimate=Estimate(factor=512, low=2048, high=4096),
    tokens_per_request=2,
    speculation_requests=48,
    estimate_capped_by_tokens=False,
    one_request_at_least=False,
    dp_flags="--dp-size {n} --enable-dp-attention",
    dcp=False,
    kv_heads_follow_dcp=False,
    pools_index_keys=False,
    draft_pool_spans_dcp=False,
    prints_logical_tokens=False,
    charged_draft_kv=(),
    rounds_draft_with_target=True,
    decode_slots="rows",
    decode_extra_flag=False,
)

EAGLE_KIND = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
BLOCK_KIND = ("DFLASH", "DSPARK")


def _since(release: Release, words: str, **sets: Any) -> Change:
    return Change(since=release, words=words, sets=sets)


CHANGES: tuple[Change, ...] = (
    _since(
        "0.5.6",
        "The radix cache of Qwen3-Next turns overlap off; until then it stays on.",
        no_buffer_turns_overlap_off=True,
    ),
    _since(
        "0.5.7",
        "Draft states come off rest before the split, K = budget // slot; until then every slot carries D of them.",
        drafts="before the split",
        drafts_by_ratio_only=True,
        drafts_over_dp=False,
    ),
    _since(
        "0.5.7",
        "A pin beats the ratio (until then the ratio overwrites it while the radix cache is on) and is divided by the "
        "attention-DP width for every family, not for GDN alone.",
        pin_wins=True,
        gdn_slots_over_dp=False,
    ),
    _since(
        "0.5.7",
        "EAGLE adds no rows of its own; until then requests x (steps x topk + D) + 100 on top of what was sized.",
        eagle_headroom=False,
    ),
    _since(
        "0.5.7",
        "--mamba-scheduler-strategy is new: no_buffer (the default) or extra_buffer. S = 5 with either, or 4 with "
        "extra_buffer under speculation.",
        strategies=("no_buffer", "extra_buffer"),
        strategy_flag="--mamba-scheduler-strategy",
        slots_unused=2,
    ),
    _since("0.5.8", "no_buffer is S = 3 again.", slots_unused=0),
    _since(
        "0.5.8",
        "Draft states come off rest on every path, for the requests of one attention-DP rank; in 0.5.7 on the ratio "
        "path only, for all requests.",
        drafts_by_ratio_only=False,
        drafts_over_dp=True,
    ),
    _since(
        "0.5.8",
        "Under speculation --max-running-requests is divided by the attention-DP width.",
        asked_over_dp="under speculation",
    ),
    _since(
        "0.5.9",
        "Radix cache off without --max-running-requests takes the ratio; until then 512 slots.",
        slots_without_radix=None,
    ),
    _since(
        "0.5.9",
        "--mamba-ssm-dtype takes float16; unset, the checkpoint's mamba_ssm_dtype counts. SGLANG_MAMBA_CONV_DTYPE is "
        "read.",
        ssm_dtypes=("float32", "bfloat16", "float16"),
        reads_checkpoint_dtype=True,
        reads_conv_dtype=True,
    ),
    _since(
        "0.5.9",
        "A PD decode server allocates K slots and its extra rows; until then its rows alone, whatever K.",
        decode_slots="K and extra",
    ),
    _since(
        "0.5.9",
        "Speculation with no_buffer turns the radix cache off (S = 1); until then it runs.",
        no_buffer_speculates="without the radix cache",
    ),
    _since(
        "0.5.9",
        "Conv windows of drafts are whole in a boot log of 0.5.8; how they are allocated from here on was not read.",
        draft_windows="not known",
    ),
    _since(
        "0.5.10",
        "Speculation with no_buffer and the radix cache on is refused, and so is extra_buffer with the radix cache "
        "off.",
        no_buffer_speculates="never",
        extra_buffer_needs_radix=True,
    ),
    _since(
        "0.5.10",
        "extra_buffer is S = 5 with overlap on and 4 with it off; speculation no longer decides.",
        one_track_slot_if="overlap off",
    ),
    _since(
        "0.5.10",
        "--max-running-requests is divided by the attention-DP width and capped by the engine's estimate; unset, the "
        "estimate is capped by tokens // 2.",
        asked_over_dp="always",
        asked_capped_by="estimate",
        estimate_capped_by_tokens=True,
    ),
    _since(
        "0.5.10",
        "A PD decode server allocates K slots, but no more than its rows.",
        decode_slots="least of K and rows",
    ),
    _since(
        "0.5.11",
        "A PD decode server allocates K slots, or what its rows need where that is more.",
        decode_slots="most of K and what rows need",
    ),
    _since(
        "0.5.11",
        "A PD decode server turns its radix cache off before the strategy is resolved, so that overlap stays on.",
        decode_role_first=True,
    ),
    _since("0.5.11", "no_buffer sets pages of 1 token; until then the page stays.", no_buffer_sets_page_1=True),
    _since(
        "0.5.11",
        "EAGLE, EAGLE3 and STANDALONE leave overlap on; until then any speculation turns it off.",
        overlap_with=EAGLE_KIND,
    ),
    _since("0.5.12", "The draft KV of DFLASH is in the bytes of a token.", charged_draft_kv=BLOCK_KIND),
    _since("0.5.13", "Draft trees (top-k above 1) leave overlap on too.", overlap_with_trees=True),
    _since(
        "0.5.13",
        "extra_buffer_lazy is new (S = 4), without speculation.",
        strategies=("no_buffer", "extra_buffer", "extra_buffer_lazy"),
    ),
    _since(
        "0.5.13",
        "K and the draft states of all that the clamp admits are solved together; then min(requests, clamp) x D states "
        "come off rest. No slots, or too few for one request, is refused.",
        drafts="joint",
        refuses_without_slots=True,
    ),
    _since(
        "0.5.14",
        "The flag is --mamba-radix-cache-strategy, and auto gives extra_buffer where it is supported: the default S "
        "goes from 3 to 5.",
        strategy_flag="--mamba-radix-cache-strategy",
        auto="extra_buffer",
        no_buffer_speculates="with the radix cache",
        extra_buffer_needs_radix=False,
    ),
    _since(
        "0.5.14",
        "no_buffer with pages above 1 or with overlap on is refused; until then pages become 1 and overlap is turned "
        "off.",
        checks_no_buffer=True,
        no_buffer_sets_page_1=False,
    ),
    _since("0.5.14", "All speculation leaves overlap on.", overlap_with=(*EAGLE_KIND, *BLOCK_KIND, "NGRAM")),
    _since(
        "0.5.14",
        "The draft KV of EAGLE, MTP and STANDALONE is in the bytes of a token; until then the draft pool came out of "
        "the slack.",
        charged_draft_kv=(*BLOCK_KIND, *EAGLE_KIND),
    ),
    _since("0.5.14", "No memory left for KV is refused under its own words.", refuses_without_kv=True),
    _since("0.5.14", "--max-running-requests is capped by tokens // 2.", asked_capped_by="tokens // 2"),
    _since(
        "0.5.14",
        "--disaggregation-decode-extra-slots is new; its default follows --max-running-requests, not the real limit.",
        decode_extra_flag=True,
    ),
    _since(
        "0.5.15",
        "What the conv windows of a request's drafts share is allocated once, but for KDA; in a boot log of this "
        "release, and not read in those since 0.5.9.",
        draft_windows="overlapping once",
    ),
    _since("0.5.15", "--dcp-size is new; --enable-linear-replayssm (decode) is new.", dcp=True, decode_ring=True),
    _since(
        "0.5.16",
        "--enable-gdn-replayssm-spec is new: GDN only, its ring is not charged, draft states still are.",
        spec_ring="GDN, not charged",
        spec_ring_flag="--enable-gdn-replayssm-spec",
    ),
    _since("0.5.17", "The padding slot and its draft states are charged.", charges_padding=True),
    _since(
        "0.5.17",
        "Under PP every rank is charged the largest stage; until then all layers on every stage.",
        charges_largest_stage=True,
    ),
    _since(
        "0.5.17",
        "--enable-linear-replayssm-spec, for GDN and KDA: a ring on every slot is charged and draft states no longer "
        "are; the GDN ring is as long as the draft tokens.",
        spec_ring="on every slot",
        spec_ring_flag="--enable-linear-replayssm-spec",
    ),
    _since(
        "0.5.17",
        "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK takes one slot off S.",
        reads_skip_decode_lock=True,
    ),
    _since(
        "0.5.17",
        "extra_buffer_lazy takes speculation, and is refused under PD disaggregation.",
        lazy_speculates=True,
        lazy_under_pd=False,
    ),
    _since("0.5.17", "--dcp-size takes speculation.", dcp_speculates=True),
    _since("0.5.17", "The draft KV pool spans dcp_size times the rows.", draft_pool_spans_dcp=True),
    _since("0.5.18", "The KV heads of a rank follow tp // dcp_size; until then tp.", kv_heads_follow_dcp=True),
    _since("0.5.18", "The 100 MiB cache of a multimodal model comes off rest.", multimodal_cache_mib=100),
    _since(
        "0.5.20",
        "The GDN ring is fixed: one for each running request and one more, --linear-replayssm-cache-len long. KDA "
        "keeps its ring on every slot.",
        spec_ring="GDN fixed",
    ),
    _since(
        "0.5.21",
        "max_total_num_tokens= is printed in logical tokens, rows x dcp_size.",
        prints_logical_tokens=True,
    ),
    _since(
        "0.5.21",
        "extra_buffer is refused for state models outside the engine's list; until then it is obeyed.",
        refuses_extra_buffer_without_state=True,
    ),
    _since("0.5.21", "--pp-size above 1 takes speculation on a PD prefill server.", pp_speculates=True),
    _since("0.5.22", "A PD prefill server charges no draft states.", prefill_reserves_drafts=False),
    _since(
        "0.5.22",
        "The index keys of GLM-5-next are pooled (index_kpool), and they and its draft's KV count dcp_size times.",
        pools_index_keys=True,
    ),
    _since("0.5.22", "Attention DP is --attn-dp-size N.", dp_flags="--attn-dp-size {n}"),
    _since(
        "0.5.22",
        "The draft KV of a token is rounded by itself; until then together with the target's, a byte less at times.",
        rounds_draft_with_target=False,
    ),
    _since(
        "0.5.23",
        "Every attention-DP rank gets at least one request of --max-running-requests.",
        one_request_at_least=True,
    ),
)


def at_least(release: Release, first: Release) -> bool:
    """Whether a release is `first` or newer."""
    return RELEASES.index(release) >= RELEASES.index(first)


@cache
def rules_of(release: Release) -> Rules:
    """The rules of one release: those of 0.5.4 and every change up to it."""
    last = RELEASES.index(release)
    sets: dict[str, Any] = {}
    for change in CHANGES:
        if RELEASES.index(change.since) <= last:
            sets |= change.sets
    return FIRST.model_copy(update=sets)


def first_with(holds: Callable[[Rules], bool]) -> Release | None:
    """The first release whose rules satisfy `holds`, a test of Rules; None where none does."""
    return next((release for release in RELEASES if holds(rules_of(release))), None)
