"""The tables of the Reference page: what is fixed, recomputed from the rules whenever it is shown.

Rows are text, ready to print; every number in them comes from the core or from `examples`. Sources of the
words: compute-mamba-ratio.md (the specification) and engine-sizing.md (SGLang 0.5.23).
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from sizing.answers.solve import Sizing, solve
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.frames import frame_of
from sizing.basics.problems import Refusal, RefusedError
from sizing.basics.units import NOTHING, count, number, ratio_text, tokens_text
from sizing.engine.request_slots import CLAMP_FORMULA
from sizing.engine.resolve import resolution, resolve, slots_per_request
from sizing.engine.resolved import SlotUse
from sizing.explain import published_examples as examples
from sizing.explain.launch_flags import flags
from sizing.explain.published_examples import ByteConstants, Measured
from sizing.releases.rules import CHANGES, COVERED, FIRST, LATEST, RELEASES, Release, rules_of
from sizing.scenario.inputs import DEFAULT_RATIO, DEFAULTS, FIELDS, INPUTS, Scenario, changed, value_text
from sizing.specification import FRAGILE_RATIO, optimal_ratio, token_equiv

if TYPE_CHECKING:
    from pandas import DataFrame

UNKNOWN = "unknown"  # a value we lack an input for
CONTEXTS = tuple(2**power for power in range(11, 21))  # [tokens] 2K to 1M


class Table(BaseModel):
    """A table to print: cells are plain text, and every row has as many as there are columns."""

    model_config = ConfigDict(frozen=True)

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str
    """Where it comes from and how to read it."""

    def frame(self) -> "DataFrame":
        """The same cells, to be sorted and searched: a column of numbers as numbers, any other as it is."""
        columns = zip(self.columns, zip(*self.rows, strict=True), strict=True)
        return frame_of({name: _numbers(cells) for name, cells in columns})


def _numbers(cells: tuple[str, ...]) -> list[Any]:
    """The cells as whole numbers, else as real ones, else as they are; NOTHING is a number that is missing."""
    for read in (int, float):
        try:
            return [None if cell == NOTHING else read(cell.replace(",", "")) for cell in cells]
        except ValueError:
            continue
    return [*cells]


# --- S -----------------------------------------------------------------------------------------------

# The rows of the specification's S table, then what it says in prose or leaves out. `no_buffer` needs page
# size 1 and overlap off by flag (engine-sizing.md section 4).
LFM2 = "Lfm2ForCausalLM"  # a model that takes no extra_buffer
STRATEGIES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("--disable-radix-cache", {"disable_radix_cache": True}),
    (
        "no_buffer",
        {"mamba_radix_cache_strategy": "no_buffer", "page_size": 1, "disable_overlap_schedule": True},
    ),
    ("extra_buffer, overlap on", {"mamba_radix_cache_strategy": "extra_buffer"}),
    (
        "extra_buffer, overlap off",
        {"mamba_radix_cache_strategy": "extra_buffer", "disable_overlap_schedule": True},
    ),
    ("extra_buffer_lazy", {"mamba_radix_cache_strategy": "extra_buffer_lazy"}),
    ("extra_buffer, pp_size above 1", {"mamba_radix_cache_strategy": "extra_buffer", "pp_size": 2}),
    ("auto, the default", {}),
    ("auto, overlap off, page size 1", {"disable_overlap_schedule": True, "page_size": 1}),
    ("auto, extra_buffer not supported", {"architecture": LFM2, "page_size": 1}),
    (
        "extra_buffer_lazy, overlap off or pp_size above 1",
        {"mamba_radix_cache_strategy": "extra_buffer_lazy", "disable_overlap_schedule": True},
    ),
    (
        "extra_buffer_lazy, PD prefill",
        {"mamba_radix_cache_strategy": "extra_buffer_lazy", "disaggregation_mode": "prefill"},
    ),
    (
        "extra_buffer, not supported",
        {"mamba_radix_cache_strategy": "extra_buffer", "architecture": LFM2},
    ),
    ("no_buffer, overlap on", {"mamba_radix_cache_strategy": "no_buffer", "page_size": 1}),
    (
        "no_buffer, page size above 1",
        {"mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True},
    ),
    (
        "PD decode, whatever the strategy",
        {"mamba_radix_cache_strategy": "extra_buffer_lazy", "disaggregation_mode": "decode"},
    ),
)


def slots_table() -> Table:
    """S [slots per running request] of every strategy, without and with the decode-lock skip, and why."""
    return Table(
        title="S, state slots per running request",
        columns=("strategy", "S", "S with decode-lock skip", "why"),
        rows=tuple((name, *_slots_cells(fields)) for name, fields in STRATEGIES),
        note="Source: the S table of compute-mamba-ratio.md and _calculate_mamba_ratio in SGLang 0.5.23. "
        "The skip is SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1. Pipeline parallelism turns overlap off.",
    )


def releases_table() -> Table:
    """What changed when, and the default S of each release that changed something."""
    return Table(
        title="What changed when",
        columns=("since", "what", "default S"),
        rows=tuple((change.since, change.words, _default_slots(change.since)) for change in CHANGES),
        note=f"{FIRST_WORDS} Read from the wheels of {', '.join(RELEASES)}; the S is that of Qwen3-Next; other "
        "models differ (support-by-release.md). Source: engine-versions.md.",
    )


FIRST_WORDS = (
    f"{RELEASES[0]}: S = {FIRST.base_slots}, or {FIRST.slots_radix_off} with the radix cache off. K = budget // slot "
    "// (1 + D): every slot carries D draft states. Radix cache off: K is the pin, else --max-running-requests, else "
    f"{FIRST.slots_without_radix}; otherwise the ratio overwrites a pin. GDN alone divides K by the attention-DP "
    "width. The padding slot is not charged."
)


def _default_slots(release: Release) -> str:
    return count(slots_per_request(Scenario(model="", release=release, page_size=1)))


def _slots_cells(fields: dict[str, Any]) -> tuple[str, str, str]:
    try:
        plain = resolve(Scenario(**fields)).uses
        skipping = resolve(Scenario(**fields, skip_decode_lock=True)).uses
    except RefusedError as refused:
        return NOTHING, NOTHING, f"refused: “{refused.refusal.engine_words}”"
    return _sum(plain), _sum(skipping), _reasons(plain, skipping)


def _signed(uses: Iterable[SlotUse]) -> str:
    """Counts with their reasons; a count stays with the first word of its reason."""
    return "; ".join(f"{use.count:+d}\u00a0{use.why}" for use in uses)


def _sum(uses: Iterable[SlotUse]) -> str:
    return count(sum(use.count for use in uses))


def _reasons(plain: tuple[SlotUse, ...], skipping: tuple[SlotUse, ...]) -> str:
    reasons = _signed(plain).lstrip("+")
    changes = _signed(use for use in skipping if use not in plain)
    return f"{reasons}. With the skip: {changes}." if changes else f"{reasons}."


# --- r* by context length ----------------------------------------------------------------------------


def printed_ratios_table() -> Table:
    """The specification's printed r by L beside its own constants and beside the exact bytes, at S = 5."""
    exact = examples.from_geometry().token_equiv
    return Table(
        title="r* by L, worked example",
        columns=(
            "L",
            "printed",
            f"token_equiv {count(examples.PRINTED_TOKEN_EQUIV)}, as printed",
            f"token_equiv {number(exact)}, exact bytes",
        ),
        rows=tuple(_printed_row(L, exact) for L in CONTEXTS),
        note=f"S = {examples.PRINTED_S}, D = 0, dcp_size 1. Printed: “Reference r” of "
        f"compute-mamba-ratio.md. Its {count(examples.PRINTED_TOKEN_EQUIV)} divides the logged bytes by N "
        "instead of N + 1 slots, 0.4 % more than the exact bytes; that shows in the last printed digit at "
        "2K only (9.9, not 10.0).",
    )


def _printed_row(L: int, exact: float) -> tuple[str, ...]:
    equivalents = (examples.PRINTED_TOKEN_EQUIV, exact)
    ours = (number(optimal_ratio(L, equivalent, 1, examples.PRINTED_S), 4) for equivalent in equivalents)
    return tokens_text(L), examples.PRINTED_RATIOS.get(L, NOTHING), *ours


def ratio_table(scenario: Scenario) -> Table:
    """r* of a scenario at many L [tokens], what runs there and the flag to set; its own L is one of them."""
    title = "r* by L, this scenario"
    columns = ("L", "r*", "requests at r*", "requests at the best split", "flag to set")
    lengths = sorted({*CONTEXTS, scenario.L})
    try:
        rows = tuple(_ratio_row(solve(scenario.model_copy(update={"L": L}))) for L in lengths)
    except RefusedError as refused:
        refusal = ("any L", "refused", "refused", "refused", NOTHING)
        return Table(title=title, columns=columns, rows=(refusal,), note=refused.refusal.sentence)
    return Table(
        title=title,
        columns=columns,
        rows=rows,
        note=f"The inputs of the sidebar, L apart; its L is {count(scenario.L)}. A pin is named where r* is "
        f"below {FRAGILE_RATIO}, under DCP, or where the ratio leaves less than one request's slots. "
        f"{_assumed_words(scenario)}Source: the formula of compute-mamba-ratio.md, solved by the engine's "
        "rules.",
    )


def _assumed_words(scenario: Scenario) -> str:
    if not scenario.D or scenario.max_running_requests is not None:
        return ""
    return (
        f"Under speculation the engine assumes {rules_of(scenario.release).speculation_requests} requests until "
        "--max-running-requests is set, so no row has more. "
    )


def _ratio_row(sizing: Sizing) -> tuple[str, ...]:
    words = flags(sizing)
    flag = (words.ratio if words.take == "ratio" else words.pin) if words else None
    return (
        count(sizing.scenario.L),
        ratio_text(sizing.r_star),
        "refused" if isinstance(sizing.balanced, Refusal) else count(sizing.balanced.runs),
        count(sizing.optimum.runs) if sizing.optimum else "none",
        flag or NOTHING,
    )


# --- token_equiv -------------------------------------------------------------------------------------


def token_equiv_at(scenario: Scenario, ssm: StateDtype, kv: KvDtype) -> float | None:
    """token_equiv [tokens per slot] of a scenario at two dtypes; None where its bytes cannot be rescaled.

    A slot cannot without its conv part, which --mamba-ssm-dtype leaves alone.
    """
    other = changed(scenario, mamba_ssm_dtype=ssm, kv_cache_dtype=kv)
    if not isinstance(other, Scenario):
        return None
    costs = resolution(other).costs
    return token_equiv(costs.slot, costs.token)


def token_equiv_table(scenario: Scenario) -> Table:
    """token_equiv [tokens per slot] for float32 and bfloat16 SSM by bfloat16 and fp8 KV."""
    ssm_dtypes: tuple[StateDtype, ...] = ("float32", "bfloat16")
    kv_dtypes: tuple[KvDtype, ...] = ("bfloat16", "fp8_e4m3")
    found = {(ssm, kv): token_equiv_at(scenario, ssm, kv) for ssm in ssm_dtypes for kv in kv_dtypes}
    return Table(
        title="token_equiv by dtype, this scenario",
        columns=("SSM dtype", *(f"KV {kv}" for kv in kv_dtypes)),
        rows=tuple((ssm, *(_real(found[ssm, kv]) for kv in kv_dtypes)) for ssm in ssm_dtypes),
        note=f"In tokens per slot, from {count(scenario.state_bytes_per_slot)} state bytes per slot at "
        f"{scenario.state_bytes_dtype} and {count(scenario.kv_bytes_per_token)} KV bytes per token at "
        f"{scenario.kv_bytes_dtype}{_draft_words(scenario)}. {_factor_words(scenario)} Source: the 2×2 of "
        "compute-mamba-ratio.md. Both dtypes change outputs: validate accuracy first.",
    )


def _real(value: float | None) -> str:
    return UNKNOWN if value is None else number(value)


def _draft_words(scenario: Scenario) -> str:
    draft = scenario.draft_kv_bytes_per_token
    return f" plus {count(draft)} of the draft" if draft else ""


def _factor_words(scenario: Scenario) -> str:
    """How much float32 costs over bfloat16 here: just under 2, because the conv part does not double."""
    wide, narrow = (token_equiv_at(scenario, ssm, scenario.kv_cache_dtype) for ssm in ("float32", "bfloat16"))
    if wide is None or narrow is None:
        conv_known = scenario.conv_bytes_per_slot is not None
        why = "SSM part is not a whole number of elements at" if conv_known else "conv part is unknown, and so is"
        return f"The {why} the other SSM dtype."
    return f"float32 SSM is {number(wide / narrow, 3)} times bfloat16 (the conv part stays)."


# --- Measured runs -----------------------------------------------------------------------------------

QUANTITY_WORDS = {
    "slots": "K, state slots",
    "kv_rows": "KV tokens on one rank",
    "admitted": "max_running_requests",
    "clamp": "mamba clamp",
    "kv_cap": "KV cap",
}


def measured_table() -> Table:
    """Every published number beside what the rules give for it now [slots, tokens or requests]."""
    return Table(
        title="Measured and predicted",
        columns=("run", "quantity", "predicted", "measured", "difference"),
        rows=tuple(row for run in examples.MEASURED for row in _measured_rows(run)),
        note="Measured: compute-mamba-ratio.md (sgl-project/sglang#32763), which names no model; the "
        "geometry of Kimi-K3 at TP8, float32 SSM and fp8 KV, gives its log lines character for character. "
        "Predicted: solved now with those bytes.",
    )


def _measured_rows(run: Measured) -> Iterable[tuple[str, ...]]:
    for quantity, predicted, measured in examples.beside(run):
        difference = f"{predicted - measured:+d}" if predicted != measured else "exact"
        yield run.name, QUANTITY_WORDS[quantity], count(predicted), count(measured), difference


def measured_doubts_table() -> Table:
    """For each run the `rest` used and the `rest` that fits it [GiB per rank], and its doubts."""
    return Table(
        title="What each prediction rests on",
        columns=("run", "rest used", "rest that would fit", "read from", "what may be off, and why"),
        rows=tuple(_doubts_row(run) for run in examples.MEASURED),
        note="rest in GiB per rank. Each run has two or three measured numbers and one unknown, its rest: "
        "one value of rest that gives all numbers of a run at once is what confirms the rules. Inside a range a few "
        "values do not fit: where one more slot does, KV loses its bytes.",
    )


def _doubts_row(run: Measured) -> tuple[str, ...]:
    fits = examples.rest_that_fits(run)
    low, high = (number(edge, 3) for edge in fits) if fits else (NOTHING, NOTHING)
    between = low if low == high else f"{low} to {high}"
    return (
        _unbroken(run.name),
        number(run.scenario.rest_gib, 3),
        _unbroken(between),
        run.source,
        run.may_be_off,
    )


def _unbroken(text: str) -> str:
    """Text that a narrow column keeps on one line."""
    return text.replace(" ", "\u00a0")


def log_constants_table() -> Table:
    """The two byte constants of the worked log, read three ways [bytes per slot, bytes per token, tokens]."""
    log = examples.WORKED_LOG
    size = f"{number(log.conv_gib + log.ssm_gib)} GiB"
    return Table(
        title="One boot log, three readings",
        columns=("reading", "state bytes per slot", "KV bytes per token", "token_equiv"),
        rows=(
            ("specification: X / N, Y / M", *_constants(examples.read_as_specified(log))),
            ("engine: X / (N + 1), Y / (M + page)", *_constants(examples.read_as_allocated(log))),
            ("model geometry, exact", *_constants(examples.from_geometry())),
        ),
        note=f"X = conv {number(log.conv_gib)} + ssm {number(log.ssm_gib)} = {size} at N = "
        f"{count(log.slots)} slots; Y = {number(log.kv_gib)} GiB at M = {count(log.tokens)} tokens, pages of "
        f"{log.page_size}. The pools hold one padding slot and one padding page more than the log counts. "
        "The log rounds to 0.01 GiB, so the second reading is within 0.03 % of the exact bytes. Source: the "
        "worked example of compute-mamba-ratio.md.",
    )


def _constants(constants: ByteConstants) -> tuple[str, str, str]:
    slot, token = constants
    return count(round(slot)), number(token), number(constants.token_equiv)


# --- Inputs ------------------------------------------------------------------------------------------


def inputs_table() -> Table:
    """Every input, its flag or why it has none, its unit and default, and when it changes a number."""
    return Table(
        title="Inputs",
        columns=("input", "flag or variable", "unit", "default", "counts", "what"),
        rows=tuple(
            (
                name,
                ", ".join((own.flag, *own.aliases)) if own.flag else f"none. {own.no_flag}",
                own.unit or NOTHING,
                value_text(name, DEFAULTS[name]).removesuffix(f" {own.unit}"),
                own.counts,
                str(FIELDS[name].description),
            )
            for name, own in INPUTS.items()
        ),
        note="Names are those of links, scenario files and exports. Defaults are the worked example's.",
    )


# --- Words -------------------------------------------------------------------------------------------


def glossary() -> Table:
    """Every term the pages use, its meaning and its unit."""
    return Table(
        title="Glossary",
        columns=("term", "meaning", "unit"),
        rows=_GLOSSARY,
        note="Engine names and rules: SGLang 0.5.23. “Ours” marks what the engine does not compute.",
    )


_NEWEST = rules_of(LATEST)
_GLOSSARY = (
    (
        "state pool",
        "Memory for the recurrent state of the linear-attention layers, cut into slots at startup. It caps "
        "how many requests run at once: those beyond it wait, however short they are.",
        "GiB per rank",
    ),
    (
        "slot",
        "Room for one recurrent state in all linear layers of one rank: an SSM part and a conv part. The "
        "length of the context does not change it.",
        "bytes per rank",
    ),
    ("K", "Slots of the state pool, printed by the engine as max_mamba_cache_size.", "slots per rank"),
    ("padding slot", "One slot that is allocated and charged beyond K. No request uses it.", "slots"),
    (
        "S",
        "State slots that the engine reserves for each running request: live state, prefix-cache headroom "
        "and track buffer.",
        "slots per request",
    ),
    ("mamba clamp", f"{CLAMP_FORMULA}: the most requests the state pool admits.", "requests"),
    (
        "KV pool",
        "Memory for keys and values of the full-attention layers, handed out in pages. It caps context × "
        "concurrency; when it runs out the engine retracts requests.",
        "GiB per rank",
    ),
    (
        "KV cap",
        "KV tokens × dcp_size // L: how many requests of length L the KV pool holds. Ours: the engine "
        "admits more and then retracts.",
        "requests",
    ),
    ("L", "Average context of one request, input and output together.", "tokens"),
    ("//", "Whole division: what is left over is dropped, so 257 // 5 is 51.", "-"),
    (
        "binds",
        "The smallest limit binds: it decides how many requests run, and memory behind the other limits idles.",
        "-",
    ),
    (
        "requests asked",
        f"--max-running-requests, or the {_NEWEST.speculation_requests} that the engine assumes under speculation when "
        "it is unset.",
        "requests",
    ),
    (
        "estimate",
        "What the engine aims for when no request count is asked: int(tokens / context_length × "
        f"{_NEWEST.estimate.factor}), from {count(_NEWEST.estimate.low)} to {count(_NEWEST.estimate.high)}.",
        "requests",
    ),
    ("tokens // 2", "The engine never admits more requests than half the KV tokens of one rank.", "requests"),
    (
        "SSM part, conv part",
        "The two parts of a slot. --mamba-ssm-dtype rescales the SSM part; the conv part stays in bfloat16 by default.",
        "bytes per rank",
    ),
    (
        "token_equiv",
        "State bytes per slot over KV bytes per token: the KV tokens that one slot costs.",
        "tokens per slot",
    ),
    (
        "r",
        f"--mamba-full-memory-ratio, state budget : KV budget. {DEFAULT_RATIO} unless set; above 1 is legal.",
        NOTHING,
    ),
    ("r*", "(S + D) × token_equiv × dcp_size / L: the ratio at which neither pool is short first.", NOTHING),
    (
        "balance point",
        "The context length at which the KV cap of a given split equals its clamp. Shorter requests are "
        "bound by the state pool, longer ones by the KV pool.",
        "tokens",
    ),
    (
        "D, draft reserve",
        "D is --speculative-num-draft-tokens. Plain speculation keeps D more states for each running "
        "request; the engine takes them out of rest.",
        "tokens; slots per request",
    ),
    (
        "ReplaySSM ring",
        "--enable-linear-replayssm-spec keeps the last positions of each request in a ring and replays them instead of "
        "holding D draft states. GDN: one ring for each request that may run, off the state budget. KDA: one on every "
        "slot.",
        "bytes per rank",
    ),
    (
        "attention DP",
        "--attn-dp-size: so many ranks with pools of their own. The engine divides --max-running-requests and "
        "--max-mamba-cache-size by it.",
        "ranks",
    ),
    (
        "charged, allocated",
        "Charged is what the engine takes out of rest for a pool; allocated is what the pool then occupies. Where more "
        "is allocated, the slack of --mem-fraction-static pays.",
        "bytes per rank",
    ),
    (
        "dcp_size",
        "Decode context parallelism: the KV of one request is spread over this many ranks, so one row on "
        "each makes dcp_size tokens.",
        "ranks",
    ),
    (
        "page",
        "The unit in which KV tokens are handed out. A request occupies whole pages of page_size × dcp_size.",
        "tokens",
    ),
    (
        "rest",
        "What both pools share on one rank: free memory once all weights are loaded, less the slack of "
        "mem_fraction_static.",
        "GiB per rank",
    ),
    (
        "radix cache",
        "The prefix cache. It keeps KV and state snapshots of earlier requests for reuse, which costs state slots.",
        NOTHING,
    ),
    (
        "track buffer, ping-pong",
        "Slots in which a running request saves its state at chunk boundaries for the radix cache. With "
        "overlap on, two are used in turn.",
        "slots per request",
    ),
    (
        "overlap schedule",
        "The CPU prepares the next batch while the GPU runs the current one. Off by "
        "--disable-overlap-schedule or pp_size above 1.",
        NOTHING,
    ),
    (
        "retraction",
        "The engine stops a running request, frees its KV and runs it again later. Slow, but nothing fails.",
        NOTHING,
    ),
    (
        "safe pin",
        "--max-mamba-cache-size = requests × S + 1 on each attention-DP rank. A pin of exactly requests × S can "
        "fail at a chunk boundary (sgl-project/sglang#37066, sgl-project/sglang#37074).",
        "slots per rank",
    ),
    ("GiB, “GB”", "1 GiB = 1,073,741,824 bytes. The engine's logs write GB and mean GiB.", NOTHING),
    (
        "per rank, per deployment",
        "A rank is one GPU; under attention DP it is the tp_size / attn_dp_size GPUs that serve the same requests, and "
        "its bytes are those of each of them. Bytes, slots and KV rows are per rank; under TP, PP and DCP all ranks "
        "serve the same requests, so requests count for the deployment. Under attention DP each rank serves its own: "
        "the deployment runs attn_dp_size times as many, and the flags are divided by it.",
        NOTHING,
    ),
)


def not_modelled() -> Table:
    """What this tool leaves out, and what to do about it."""
    return Table(
        title="What this tool does not model",
        columns=("not modelled", "what it changes", "what to do"),
        rows=_NOT_MODELLED,
        note="What the engine does: docs/engine, by release.",
    )


_NOT_MODELLED = (
    (
        f"any other release than SGLang {COVERED}",
        "These releases were not read. S, the padding slot, draft reserves and draft KV changed between releases.",
        "Take the nearest release and compare K and the tokens with your boot log.",
    ),
    (
        "drafts with top-k above 1",
        "ReplaySSM asks for top-k 1, and conv windows of drafts are then whole instead of deduplicated.",
        "What is charged does not change; “allocated” is a little low.",
    ),
    (
        "Inkling",
        "It has a window pool beside the full one, its ratio defaults to 0.1, and a request keeps a window of rows.",
        "Balance computes both pools; the specification's r* formula does not apply.",
    ),
    (
        "how rest comes about",
        "rest = free memory when the pools are sized - free memory before weights × (1 - mem_fraction_static) - "
        "multimodal reservation. Post-capture sizing takes more slack.",
        "State rest as the boot log of the same flags gives it.",
    ),
    (
        "unified memory beside a sliding window",
        "--enable-unified-memory: the window is a third part of the buffer, whose rules are not known.",
        "Nothing is computed of the buffer; without a window Balance and Log do.",
    ),
    (
        "scaled KV layouts: DSA, mxfp8, fp4",
        "fp8 does not halve a token exactly: indexer and scale bytes come on top (mxfp8: +1/32).",
        "State the KV bytes at the dtype that runs, so that nothing is rescaled.",
    ),
    (
        "prefix checkpoints",
        "Each prefix kept for reuse holds a slot of the same pool; a pool sized for running requests evicts them.",
        "Pin that many slots more than the safe pin (see sgl-project/sglang#25993).",
    ),
    (
        "memory beyond what is charged",
        "The padding page, a draft KV pool replicated under DCP, conv windows under ReplaySSM and decode rings come "
        "out of the slack; the page Balance says how much. An int8 checkpoint pool comes on top, uncounted.",
        "Leave room: check “Memory pool end. avail mem” in the log, and graph capture once.",
    ),
    (
        "speed",
        "The pages say what fits, not how fast it runs.",
        "Measure throughput and latency at the concurrency you choose.",
    ),
)
