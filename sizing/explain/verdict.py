"""A Sizing in words: the verdict, and the advice that applies now and only that."""

from pydantic import BaseModel, ConfigDict

from sizing.answers.accuracy_gates import accuracy_gates, validate_words
from sizing.answers.band import Band, at_low_end, band_of
from sizing.answers.recommended import SPARE_WHY, Recommended, recommended, spared
from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal
from sizing.basics.units import GIB, count, gib, number, ratio_text, requests_text, rest_text
from sizing.engine.draft_rules import drafts_of
from sizing.engine.limits import LimitName
from sizing.engine.requests import asked_divisor, requests_asked, requests_charged
from sizing.engine.slots import is_pinned, pin_divisor, pin_is_ignored, ratio_is_ignored
from sizing.engine.split import Split
from sizing.explain.hardware_words import NOT_CHECKED, lever_words, no_fit_headline, no_fit_words
from sizing.explain.launch_flags import flags
from sizing.explain.unified_memory import unified_in_force
from sizing.releases.flags import PIN, REQUESTS
from sizing.releases.rules import BLOCK_KIND, rules_of
from sizing.scenario.from_model import draft_bytes, geometry_of
from sizing.scenario.inputs import Scenario, widths_of
from sizing.scenario.rest import ENDS, asked_for, condition, rest_of
from sizing.specification import FRAGILE_RATIO

# A choice of ours: "L is uncertain" (compute-mamba-ratio.md, Caveats, "Asymmetry") is said within a tenth of balance.
NEAR_BALANCE = 0.1
BEYOND_WORTH_SAYING = GIB // 10  # a choice of ours: less is lost in the slack of any --mem-fraction-static

REFUSED = "SGLang would refuse to start."
BINDING_WORDS: dict[LimitName, str] = {
    "state pool": "the state pool binds",
    "KV pool": "the KV pool binds",
    "requests asked": "--max-running-requests binds",
    "estimate": "the engine's own estimate binds",
    "tokens // 2": "the engine's tokens // 2 binds",
}


class Verdict(BaseModel):
    """The answer in one line, and the sentences that explain it with the user's numbers."""

    model_config = ConfigDict(frozen=True)

    headline: str
    sentences: tuple[str, ...]
    change: str = ""
    """The recommended change and its reason, for where it is not shown beside the words."""

    @property
    def text(self) -> str:
        """All of it, for a terminal."""
        return " ".join(filter(None, (self.headline, *self.sentences, self.change)))


class Advice(BaseModel):
    """Something to know or to do that applies to this scenario."""

    model_config = ConfigDict(frozen=True)

    topic: str
    text: str


def answer_text(sizing: Sizing) -> str:
    """The answer in a paragraph: under unified memory that of the one buffer, else the verdict."""
    one = unified_in_force(sizing)
    return " ".join(one.told) if one else verdict(sizing).text


def verdict(sizing: Sizing) -> Verdict:
    """How many run, which pool binds, how far the other would go, and the change to make."""
    found, band = recommended(sizing), band_of(sizing)
    told = _estimated(sizing, band) if band is not None else _verdict(sizing)
    if found is None:
        return told.model_copy(update={"sentences": (*told.sentences, nothing_runs(sizing))})
    return told.model_copy(update={"change": change_words(found)})


def change_words(found: Recommended) -> str:
    """The recommended change in one line with its reason."""
    return f"{found.words}. {found.reason}"


def _verdict(sizing: Sizing) -> Verdict:
    now = sizing.now
    if isinstance(now, Refusal):
        return Verdict(
            headline=REFUSED,
            sentences=(*([now.words] if now.engine_words else []), now.cure),
        )
    headline = headline_form(now.runs, now.binding.name, sizing.scenario).format(
        runs=count(now.runs),
        total=count(sizing.scenario.attn_dp_size * now.runs),
        L=count(sizing.scenario.L),
        tokens=count(now.kv_tokens),
    )
    return Verdict(headline=headline, sentences=_why(sizing, now))


def binds_words(binding: LimitName, scenario: Scenario) -> str:
    """Which limit binds, as the end of the headline; of --max-running-requests whose number it is."""
    if binding != "requests asked":
        return f": {BINDING_WORDS[binding]}"
    if scenario.max_running_requests is None:
        return f": --max-running-requests ({count(rules_of(scenario.release).speculation_requests)}) binds"
    shared = f", {count(scenario.max_running_requests)} over all ranks" if scenario.attn_dp_size > 1 else ""
    return f", the limit you set{shared}"


def _estimated(sizing: Sizing, band: Band) -> Verdict:
    """The headline holds the band; the reasons are those of the low end, for which flags are chosen."""
    low, high = band.runs
    safe = _verdict(at_low_end(sizing))
    L = count(sizing.scenario.L)
    if headline := no_fit_headline(sizing.scenario):
        return Verdict(headline=headline, sentences=no_fit_words(sizing.scenario))
    binding = {end.binding.name for end in (band.low, band.high) if isinstance(end, Split)}
    headline = estimated_form(low, high, binding, sizing.scenario).format(
        low=count(low), high=count(high), total=count(sizing.scenario.attn_dp_size * low), L=L
    )
    if high == 0:
        return Verdict(headline=headline, sentences=(*safe.sentences, *no_fit_words(sizing.scenario)))
    low_end = rest_text(band.low_scenario.rest_gib)
    at = f"rest is {rest_of(sizing.scenario).words}; everything below is at its low end, {low_end}."
    return Verdict(headline=headline, sentences=(at, *safe.sentences, *no_fit_words(sizing.scenario)))


def ask_for_rest(scenario: Scenario) -> str:
    """That `rest` is needed, and where it stands."""
    return (
        f"The rest of {scenario.title} is not known, and that of another deployment does not hold for it. "
        f"{asked_for(scenario)} In a boot log rest is avail mem of the last “Load weight end” before the pools, minus "
        "(1 - mem_fraction_static) times that of the first “Load weight begin”."
    )


def without_rest_words(sizing: Sizing) -> str:
    """What is known of a deployment without its `rest`."""
    return (
        f"What runs at L = {count(sizing.scenario.L)} needs rest, the memory that both pools share on a rank. Known: "
        f"{count(sizing.slot_bytes)} bytes a slot, {count(sizing.target_token_bytes)} bytes a token, S = {sizing.S}, "
        f"token_equiv {number(sizing.token_equiv)}, r* = {ratio_text(sizing.r_star)}."
    )


def headline_form(runs: int, binding: LimitName, scenario: Scenario) -> str:
    """The first line for so many requests a rank, with {runs}, {L}, {tokens} and {total} left to fill in.

    Under attention DP every number of requests is one rank's; the deployment's, {total}, is said once.
    """
    if runs == 0:
        return "Not one request of L = {L} fits: the KV pool holds {tokens} tokens."
    ranks = scenario.attn_dp_size
    each = f" on each of {ranks} attention-DP ranks, {{total}} in the deployment" if ranks > 1 else ""
    run = "request runs" if runs == 1 else "requests run"
    return f"{{runs}} {run} at L = {{L}}{each}{binds_words(binding, scenario)}."


def estimated_form(low: int, high: int, binding: set[LimitName], scenario: Scenario) -> str:
    """The same where rest is an estimate, for what runs at both its ends; {low}, {high}, {L} and {total} are left."""
    ranks, where = scenario.attn_dp_size, condition(scenario)
    if high == 0:
        return f"Not one request of L = {{L}} runs{where}."
    runs = "{low}" if low == high else "{low} to {high}"
    each = f" on each of {ranks} attention-DP ranks, at least {{total}} in the deployment" if ranks > 1 else ""
    binds = binds_words(next(iter(binding)), scenario) if len(binding) == 1 else ""
    return f"{runs} {'request runs' if high == 1 else 'requests run'} at L = {{L}}{each}{binds}{where}."


def _why(sizing: Sizing, now: Split) -> tuple[str, ...]:
    others = {limit.name: count(limit.requests) for limit in now.limits}
    state, kv = f"The state pool admits {others['state pool']}.", f"The KV pool holds {others['KV pool']}."
    name = now.binding.name
    if name == "state pool":
        return f"{now.binding.why}.", kv
    if name == "KV pool":
        return f"{now.binding.why}.", state
    if name == "requests asked":
        unset = sizing.scenario.max_running_requests is None
        return (
            *([now.binding.why.replace("not set", "--max-running-requests is not set", 1) + "."] if unset else []),
            state,
            kv,
        )
    return f"{_capital(now.binding.why)}.", state, kv


def nothing_runs(sizing: Sizing) -> str:
    """Why no split runs a single request."""
    scenario = sizing.scenario
    if requests_asked(sizing.resolved) == 0:
        return f"--max-running-requests leaves no request for each of {scenario.attn_dp_size} attention-DP ranks."
    if scenario.max_total_tokens is not None and scenario.max_total_tokens * scenario.dcp_size < scenario.L:
        return "--max-total-tokens holds no request of this L."
    return "No split of this rest runs a single request at this L."


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def advice(sizing: Sizing) -> tuple[Advice, ...]:
    """What applies now, the free lever first (compute-mamba-ratio.md, Procedure and Caveats; engine-sizing.md)."""
    rules = (
        _free_lever,
        _estimate,
        _context,
        _fragile,
        _no_spare,
        _dcp,
        _whole_pages,
        _uncertain,
        _speculation,
        _draft_kv,
        _rescaled,
        _rings,
        _beyond,
        _role,
        _precision,
        _ranks,
        _stages,
        _release,
    )
    return tuple(found for rule in rules if (found := rule(sizing)))


def _free_lever(sizing: Sizing) -> Advice | None:
    """What to look for in the boot log; an estimate says itself what is free, over the memory figure."""
    if not sizing.gib_more or lever_words(sizing):
        return None
    return Advice(
        topic="Free lever first: --mem-fraction-static",
        text="Look at “Memory pool end. avail mem” in the boot log. If tens of GiB are idle there, raise "
        "--mem-fraction-static and size the split anew with the rest of that boot: each GiB of rest adds about "
        f"{requests_text(sizing.gib_more)} at the best split. Check once that graph capture still fits.",
    )


def _estimate(sizing: Sizing) -> Advice | None:
    """What the band of an estimate rests on; said of the low end too, for which flags are chosen."""
    if sizing.scenario.rest_source not in ("estimated", *ENDS):
        return None
    text = f"Its band comes from public boots: {NOT_CHECKED}. A boot log of the same flags makes rest exact."
    return Advice(topic="rest is an estimate", text=text)


def _fragile(sizing: Sizing) -> Advice | None:
    ratio = sizing.ratio_now
    pinned = is_pinned(sizing.resolved) or ratio_is_ignored(sizing.resolved)
    if pinned or pin_is_ignored(sizing.resolved) or ratio >= FRAGILE_RATIO:
        return None
    return Advice(
        topic="Fragile ratio",
        text=f"r = {ratio_text(ratio)} is below {FRAGILE_RATIO}: a small change moves a large share of the "
        f"slots.{_pin_instead(sizing)}",
    )


def _pin_instead(sizing: Sizing) -> str:
    """The pin of the best split with what it runs; empty where there is none."""
    found = flags(sizing)
    if found is None or found.pin is None or found.pin_runs is None:
        return ""
    return f" A pin says what you mean: {found.pin} runs {count(found.pin_runs)}."


def _no_spare(sizing: Sizing) -> Advice | None:
    words = no_spare_slot(sizing)
    return Advice(topic="No slot to spare", text=words) if words else None


def no_spare_slot(sizing: Sizing) -> str:
    """That K is just what the admitted requests take, and what to set instead; empty where a slot is spare, or nothing
    is tracked.
    """
    now = sizing.now
    if isinstance(now, Refusal) or spared(sizing, now):
        return ""
    just = sizing.resolved.request_slots.product(requests_text(now.admitted))
    said = f"{count(now.slots)} slots are just {just}: {SPARE_WHY}."
    found = recommended(sizing)
    if found is None or not found.change:
        return f"{said} Ask for one request fewer."
    return f"{said} {found.flag} has one to spare and runs {_low(found)}."


def _low(found: Recommended) -> str:
    low, high = found.after
    return count(low) if low == high else f"{count(low)} to {count(high)}"


def _dcp(sizing: Sizing) -> Advice | None:
    if sizing.scenario.dcp_size == 1:
        return None
    where = f" (here at L = {count(sizing.now.crossing)})" if isinstance(sizing.now, Split) else ""
    draft = (
        " A draft KV pool is replicated, not sharded: with speculation the x dcp_size in r* overstates DCP's advantage."
        if sizing.scenario.D
        else ""
    )
    return Advice(
        topic="DCP: pin the slots",
        text=f"DCP moves the balance point far out{where} and makes the ratio large."
        f"{_pin_instead(sizing)}{_heads_under_dcp(sizing)}{draft}",
    )


def _heads_under_dcp(sizing: Sizing) -> str:
    """GQA keeps more heads once tp / dcp_size is below the head count (engine-sizing.md section 6, first trap)."""
    scenario = sizing.scenario
    if scenario.attention != "GQA":
        return ""
    return (
        f" GQA keeps more KV heads on a rank once tp / dcp_size is below the head count: at dcp_size "
        f"{scenario.dcp_size} a token costs {count(sizing.target_token_bytes)} bytes here, so KV does not get dcp_size "
        "times cheaper."
    )


def _whole_pages(sizing: Sizing) -> Advice | None:
    """A request occupies whole pages (engine-sizing.md section 6); the published cap divides by L alone."""
    now = sizing.now
    if isinstance(now, Refusal) or now.kv_cap_whole_pages >= now.runs:
        return None
    page = sizing.resolved.logical_page
    return Advice(
        topic="Short requests occupy whole pages",
        text=f"A request of {count(sizing.scenario.L)} tokens occupies whole pages of page_size x dcp_size = "
        f"{count(page)} tokens, so KV holds {count(now.kv_cap_whole_pages)} such requests rather than "
        f"{count(now.kv_cap)}: the rest is admitted and retracted.",
    )


def _uncertain(sizing: Sizing) -> Advice | None:
    now = sizing.now
    if isinstance(now, Refusal) or not now.clamp or abs(now.kv_cap / now.clamp - 1) > NEAR_BALANCE:
        return None
    return Advice(
        topic="If L is uncertain, bias r up",
        text=f"Clamp {count(now.clamp)} and cap {count(now.kv_cap)} are close. Too few slots make "
        "requests wait all the time; too little KV makes the engine retract one now and then. When L varies, err "
        "towards more state.",
    )


def _speculation(sizing: Sizing) -> Advice | None:
    """The reserve is charged for fewer requests than the joint solve assumed (engine-sizing.md section 5)."""
    now = sizing.now
    if not sizing.drafts_charged or isinstance(now, Refusal) or now.ratio is None:
        return None
    asked = requests_charged(sizing.resolved)
    if not drafts_of(sizing.resolved.rules).asks_clamp or asked >= now.clamp:
        return None
    return Advice(
        topic="Speculation",
        text=f"With speculation the pools do not divide exactly as r says: draft memory is reserved for "
        f"{requests_text(now.clamp)}, {count(asked)} are used, KV gets the rest.",
    )


def _draft_kv(sizing: Sizing) -> Advice | None:
    scenario = sizing.scenario
    if not scenario.D or scenario.speculative_algorithm == "NGRAM":
        return None
    if sizing.draft_row_bytes and sizing.token_bytes == sizing.target_token_bytes:
        return Advice(
            topic="Draft KV is not charged",
            text=f"SGLang {scenario.release} leaves the draft KV of {scenario.speculative_algorithm} out of the bytes "
            "of a token: the draft pool comes out of the slack.",
        )
    algorithm = scenario.speculative_algorithm
    if sizing.draft_row_bytes or algorithm not in sizing.resolved.rules.charged_draft_kv:
        return None
    if algorithm in BLOCK_KIND:
        text = f"{algorithm} adds the bytes of its own draft's row, times dcp_size, to every token. Enter them."
    else:
        text = (
            f"{algorithm} adds int(KV bytes x draft layers / full-attention layers) to every token (+4 % with one "
            f"draft layer and 24 full layers){_own_head(scenario)}. Type it in as draft KV bytes. "
            "NGRAM has no draft model: if that is what runs, choose it as the algorithm."
        )
    return Advice(topic="Draft KV is not counted", text=text)


def _own_head(scenario: Scenario) -> str:
    """What the model's own draft head would add."""
    size = draft_bytes(geometry_of(scenario.model), widths_of(scenario)) if scenario.model else 0
    return f"; with the draft head that comes with this model {count(size)} bytes" if size else ""


def _rescaled(sizing: Sizing) -> Advice | None:
    """Typed bytes hold for the dtypes and the dcp_size they were stated at; say it where others run."""
    scenario = sizing.scenario
    changes = []
    if not scenario.model and sizing.slot_bytes != scenario.state_bytes_per_slot:
        changes.append(
            f"a slot of {count(scenario.state_bytes_per_slot)} bytes stated at {scenario.state_bytes_dtype} is "
            f"{count(sizing.slot_bytes)} as it runs"
        )
    if not scenario.model and sizing.target_token_bytes != scenario.kv_bytes_per_token:
        changes.append(
            f"a token of {count(scenario.kv_bytes_per_token)} bytes stated at {scenario.kv_bytes_dtype} and dcp_size "
            f"{scenario.kv_bytes_dcp_size} is {count(sizing.target_token_bytes)} as it runs"
        )
    if not changes:
        return None
    text = f"{_capital(' and '.join(changes))}. If your bytes come from a log of these dtypes, say so beside the bytes."
    return Advice(topic="Typed bytes are rescaled", text=text)


def _rings(sizing: Sizing) -> Advice | None:
    """The specification's one-time ring holds for GDN, not for KDA (engine-sizing.md section 5, ReplaySSM)."""
    scenario = sizing.scenario
    if scenario.replayssm == "decode":
        return Advice(
            topic="ReplaySSM rings are not charged",
            text=f"--enable-linear-replayssm allocates a ring of {count(sizing.ring_bytes)} bytes on every slot and "
            "charges none of it: it comes out of the slack.",
        )
    if scenario.replayssm == "spec" and not sizing.ring_bytes:
        why = "needs speculation (D above 0)" if not scenario.D else f"does nothing for {scenario.family} here"
        return Advice(
            topic="ReplaySSM is idle", text=f"--enable-linear-replayssm-spec {why}: draft states stay charged."
        )
    if sizing.ring_bytes_per_slot:
        return Advice(
            topic="ReplaySSM rings on every slot",
            text=f"Every slot is charged a ring of {count(sizing.ring_bytes)} bytes "
            f"(+{sizing.ring_factor - 1:.0%}): r* grows by the same factor. The specification calls the ring a "
            "one-time deduction; for this family it is not.",
        )
    if sizing.ring_bytes and not sizing.drafts_charged:
        return Advice(
            topic="ReplaySSM rings are fixed",
            text=f"One ring of {count(sizing.ring_bytes)} bytes for each request that may run and one more come off "
            "the state budget before slots are counted; a lower --max-running-requests frees them.",
        )
    return None


def _beyond(sizing: Sizing) -> Advice | None:
    """Allocated but not charged: said where it is more than a page or two."""
    if sizing.beyond is None or sizing.beyond < BEYOND_WORTH_SAYING:
        return None
    most = max(sizing.allocations, key=lambda row: (row.allocated or 0) - row.charged)
    return Advice(
        topic="More is allocated than charged",
        text=f"{gib(sizing.beyond)} beyond rest come out of the slack of --mem-fraction-static, mostly "
        f"{most.what} (charged {gib(most.charged)}, allocated {gib(most.allocated or 0)}). "
        "Check that graph capture still fits.",
    )


def _role(sizing: Sizing) -> Advice | None:
    scenario = sizing.scenario
    if scenario.disaggregation_mode == "prefill" and scenario.D and not sizing.drafts_charged:
        return Advice(topic="PD prefill", text="A prefill server charges no draft states, so D does not count in r*.")
    if pool := sizing.decode_pool:
        gone = "" if pool.slots >= pool.slots_charged else ", and the others are charged for nothing"
        return Advice(
            topic="PD decode",
            text=f"After sizing the server makes {count(pool.rows)} rows, {count(pool.extra_rows)} of them for "
            f"requests in transfer, and {count(pool.slots)} state slots, which its log prints: "
            f"{count(pool.slots_charged)} are charged{gone}.",
        )
    return None


def _precision(sizing: Sizing) -> Advice | None:
    gates = accuracy_gates(sizing.scenario)
    return Advice(topic="Accuracy gate", text=validate_words(gates)) if gates else None


def _ranks(sizing: Sizing) -> Advice | None:
    scenario, ranks = sizing.scenario, sizing.scenario.attn_dp_size
    if ranks == 1:
        return None
    divisors = {
        REQUESTS: asked_divisor(sizing.resolved),
        PIN: pin_divisor(sizing.resolved),
    }
    divided = [flag for flag, width in divisors.items() if width > 1]
    flags = f"The engine divides {' and '.join(divided)} by {ranks}, so here " if divided else "Here "
    bytes_of = "" if scenario.model else " Give the bytes of a rank at its attention TP width, tp_size / attn_dp_size."
    return Advice(
        topic="Attention DP",
        text=f"Each of {ranks} ranks has pools of its own, and these numbers are of one of them. {flags}the flags "
        f"are for the deployment as SGLang {scenario.release} reads them.{bytes_of}",
    )


def _stages(sizing: Sizing) -> Advice | None:
    scenario = sizing.scenario
    if scenario.pp_size == 1:
        return None
    overlap = f" It turns overlap off, so S is {sizing.S}." if sizing.resolved.strategy == "extra_buffer" else ""
    charged = (
        "Every rank is charged the largest stage"
        if sizing.resolved.rules.charges_largest_stage
        else f"SGLang {scenario.release} charges every rank all stages"
    )
    give = (
        "."
        if scenario.model
        else ": give the state bytes of the stage with most linear layers and the KV bytes of the stage with most "
        "attention layers."
    )
    return Advice(
        topic="Pipeline stages",
        text=f"{charged}{give}{overlap} A microbatch holds max(requests // {scenario.pp_size}, 1).",
    )


def _context(sizing: Sizing) -> Advice | None:
    scenario, now = sizing.scenario, sizing.now
    if scenario.context_length < scenario.L:
        return Advice(
            topic="L is above --context-length",
            text=f"The server accepts {count(scenario.context_length)} tokens: no request of L = {count(scenario.L)} "
            "gets in. Set a shorter L, or a longer --context-length.",
        )
    if isinstance(now, Split) and now.kv_tokens < scenario.context_length:
        return Advice(
            topic="KV pool below --context-length",
            text=f"The KV pool holds {count(now.kv_tokens)} tokens, fewer than --context-length "
            f"{count(scenario.context_length)}: the engine warns, and a request that long can never finish.",
        )
    return None


def _release(sizing: Sizing) -> Advice | None:
    """What is set and has no effect in this release: the engine does not say so."""
    scenario, rules = sizing.scenario, sizing.resolved.rules
    idle = []
    if scenario.skip_decode_lock and not rules.reads_skip_decode_lock:
        idle.append("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK")
    if scenario.mamba_conv_dtype != "bfloat16" and not rules.reads_conv_dtype:
        idle.append("SGLANG_MAMBA_CONV_DTYPE")
    if scenario.split == "pin" and pin_is_ignored(sizing.resolved):
        idle.append(PIN)
    if not idle:
        return None
    verb = "has" if len(idle) == 1 else "have"
    return Advice(
        topic=f"Without effect in {scenario.release}",
        text=f"{' and '.join(idle)} {verb} no effect in SGLang {scenario.release}. What changed when is on the page "
        "Reference.",
    )


def idle_words(sizing: Sizing) -> str:
    """Idle memory of one rank in words: what the binding pool leaves unused in the other."""
    now = sizing.now
    if isinstance(now, Refusal):
        return ""
    capped = sizing.scenario.max_total_tokens is not None
    outside = f", {gib(now.memory.unsplit)} outside both pools by --max-total-tokens" if capped else ""
    return f"Idle on each rank: {gib(now.memory.state_idle)} of state, {gib(now.memory.kv_idle)} of KV{outside}."
