"""What a release refuses by its flags alone: in the engine's words, and what to set instead.

Source: engine-sizing.md sections 4, 8, 10 and 12, running-server.md 2.5 and the executed flag combinations of every
release. The first refusal counts, in the engine's order as far as it was executed.
"""

from collections.abc import Iterator
from functools import cache

from sizing.basics.problems import Refusal, RefusalKind
from sizing.engine.refused_unified_memory import unified_refusals
from sizing.engine.resolved import BUFFERED, Resolved
from sizing.engine.slots_per_request import role_comes_first, takes_extra_buffer
from sizing.releases.flags import flag_releases, has_flag
from sizing.releases.rules import RELEASES, Release, at_least, first_with
from sizing.scenario.inputs import DEFAULTS, INPUTS, Scenario, flag_text


def refusal_of(resolved: Resolved) -> Refusal | None:
    """The first refusal; None where the flags are taken."""
    return next(_refusals(resolved), None)


def missing_flag(release: str, flag: str) -> Refusal:
    """The refusal of an argument parser that does not know a flag."""
    cure = f"SGLang {release} has no such flag: drop it, or choose {flag_releases(flag.split(maxsplit=1)[0])}."
    return Refusal(kind="no_such_flag", engine_words=f"unrecognized arguments: {flag}", cure=cure)


def _refusals(resolved: Resolved) -> Iterator[Refusal]:
    scenario, rules, support = resolved.scenario, resolved.rules, resolved.support
    yield from _not_served(resolved)
    yield from _missing(resolved)
    if scenario.pp_size > 1 and not support.pipeline:
        yield _flags(
            "Intern-S2-Mobius does not support: pipeline parallelism (--pp-size must be 1).", "Set --pp-size 1."
        )
    yield from _decode_radix(resolved)
    if support.listed and not support.radix_off:
        if rules.checks_no_buffer:
            yield from _checked_strategy(resolved)
        elif rules.strategies:
            yield from _strategy_until_0_5_13(resolved)
    elif rules.refuses_extra_buffer_without_state and resolved.radix_cache and not support.listed:
        yield from _without_state(resolved)
    yield from _lazy_overlap(resolved)
    yield from _ngram_pages(resolved)
    yield from _chunk_pages(resolved)
    yield from _replayssm(resolved)
    yield from _widths(resolved)
    yield from unified_refusals(resolved)
    yield from _host_cache(resolved)


def _flags(engine_words: str, cure: str, kind: RefusalKind = "flags") -> Refusal:
    return Refusal(kind=kind, engine_words=engine_words, cure=cure)


def _not_served(resolved: Resolved) -> Iterator[Refusal]:
    scenario, support = resolved.scenario, resolved.support
    if not support.served:
        cure = f"SGLang {scenario.release} has no {scenario.architecture}: it is served since {support.served_since}."
        yield _flags("", cure, "not_served")


def _missing(resolved: Resolved) -> Iterator[Refusal]:
    """A flag or a value that the release does not know is refused by its argument parser."""
    scenario, rules = resolved.scenario, resolved.rules
    strategy, ssm, release = scenario.mamba_radix_cache_strategy, scenario.mamba_ssm_dtype, scenario.release
    if strategy != "auto" and not rules.strategies:
        newer = first_with(lambda r: strategy in r.strategies)
        yield _flags(
            f"unrecognized arguments: --mamba-radix-cache-strategy {strategy}",
            f"SGLang {release} has no such flag: drop it, or choose SGLang {newer} or newer.",
            "no_such_flag",
        )
    elif strategy != "auto" and strategy not in rules.strategies:
        yield _no_value(release, rules.strategy_flag, strategy, first_with(lambda r: strategy in r.strategies))
    if ssm not in rules.ssm_dtypes:
        yield _no_value(release, "--mamba-ssm-dtype", ssm, first_with(lambda r: ssm in r.ssm_dtypes))
    for flag in _lacking(scenario):
        yield missing_flag(release, flag)
    if scenario.replayssm in ("spec", "both") and rules.spec_ring == "none":
        yield _flags(
            "unrecognized arguments: --enable-linear-replayssm-spec",
            f"SGLang {release} has no such flag: drop it, or choose SGLang 0.5.16 or newer (0.5.16 calls it "
            "--enable-gdn-replayssm-spec, for GDN alone).",
            "no_such_flag",
        )


# Inputs that a release without their flag refuses by their value, above, or takes by other flags: --dp-size with
# --enable-dp-attention.
TAKEN_ANYWAY = ("mamba_radix_cache_strategy", "attn_dp_size")


@cache
def _gated() -> tuple[str, ...]:
    """The inputs whose flag some release lacks."""
    lacking = (name for name, own in INPUTS.items() if own.names and len(_having(name)) < len(RELEASES))
    return tuple(name for name in lacking if name not in TAKEN_ANYWAY)


@cache
def _having(name: str) -> frozenset[Release]:
    """The releases that have one of the input's flags."""
    return frozenset(release for release in RELEASES if any(has_flag(release, one) for one in INPUTS[name].names))


def _lacking(scenario: Scenario) -> Iterator[str]:
    """The flags that the scenario needs and its release lacks."""
    for name in _gated():
        value = getattr(scenario, name)
        if value != DEFAULTS[name] and scenario.release not in _having(name):
            yield flag_text(name, value, scenario.release)
    if scenario.replayssm in ("decode", "both") and not has_flag(scenario.release, "--enable-linear-replayssm"):
        yield "--enable-linear-replayssm"


def _no_value(release: str, flag: str, value: str, newer: str | None) -> Refusal:
    cure = f"SGLang {release} does not take {value}: choose another, or SGLang {newer} or newer."
    return _flags(f"argument {flag}: invalid choice: '{value}'", cure, "no_such_flag")


def _decode_radix(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    asked = scenario.disaggregation_mode == "decode" and scenario.disaggregation_decode_enable_radix_cache
    if asked and scenario.release == "0.5.11" and scenario.disaggregation_transfer_backend != "nixl":
        yield _flags(
            "--disaggregation-decode-enable-radix-cache currently requires --disaggregation-transfer-backend nixl",
            "Set --disaggregation-transfer-backend nixl, or drop the flag: a decode server then keeps no radix cache.",
        )


# --- the strategy ------------------------------------------------------------------------------------


def _strategy_until_0_5_13(resolved: Resolved) -> Iterator[Refusal]:
    """`_handle_mamba_radix_cache` of server_args.py, 0.5.7 to 0.5.13; `seen`: the radix cache as that step sees it."""
    scenario, rules, support = resolved.scenario, resolved.rules, resolved.support
    who = scenario.architecture or "this"
    seen = not scenario.disable_radix_cache and not role_comes_first(scenario, rules)
    if resolved.strategy in BUFFERED:
        if not support.extra_buffer:
            yield _flags(
                f"mamba extra_buffer is not supported for {who} model", f"Set {rules.strategy_flag} no_buffer."
            )
        if not seen and rules.extra_buffer_needs_radix:
            stop = "." if at_least(scenario.release, "0.5.13") else ""
            yield _flags(
                f"mamba extra_buffer is not compatible with --disable-radix-cache{stop} Overlap scheduling is already "
                "supported with no_buffer + disable_radix_cache. Please use --mamba-scheduler-strategy no_buffer "
                "instead.",
                f"Set {rules.strategy_flag} no_buffer: without radix cache S is {rules.slots_radix_off} either way.",
            )
        if resolved.strategy == "extra_buffer_lazy" and scenario.D and not rules.lazy_speculates:
            yield _flags(
                "extra_buffer_lazy is not yet supported with speculative decoding. Use --mamba-scheduler-strategy "
                "extra_buffer instead.",
                f"Set {rules.strategy_flag} extra_buffer.",
            )
        if seen:
            yield from _interval(
                resolved,
                f"mamba_track_interval {scenario.mamba_track_interval} must be greater than or equal to "
                f"speculative_num_draft_tokens {scenario.D}",
                f"mamba_track_interval {scenario.mamba_track_interval} must be divisible by page_size "
                f"{resolved.page_size}",
            )
    elif seen and scenario.D and rules.no_buffer_speculates == "never":
        yield _flags(
            f"Speculative decoding for {who} is not compatible with radix cache when using --mamba-scheduler-strategy "
            "no_buffer.To use radix cache with speculative decoding, please use --mamba-scheduler-strategy "
            "extra_buffer and set SGLANG_ENABLE_SPEC_V2=1.",
            f"Set {rules.strategy_flag} extra_buffer, or --disable-radix-cache."
            if support.extra_buffer
            else "Set --disable-radix-cache.",
        )


def _checked_strategy(resolved: Resolved) -> Iterator[Refusal]:
    """`validate_mamba_extra_buffer` and `validate_mamba_no_buffer` of arg_groups/mamba_hook.py, since 0.5.14."""
    scenario, support = resolved.scenario, resolved.support
    if not resolved.radix_cache:
        return
    if resolved.strategy == "no_buffer":
        yield from _no_buffer(resolved)
    elif resolved.strategy in BUFFERED:
        if not takes_extra_buffer(scenario, support):
            by_backend = support.extra_buffer
            yield _flags(
                f"extra_buffer is not supported for {scenario.architecture or '…'}; use no_buffer.",
                "It needs --linear-attn-backend triton: set that, or choose no_buffer with --page-size 1, or auto."
                if by_backend
                else "Choose no_buffer with --page-size 1, or auto.",
            )
        yield from _lazy(resolved)
        view = "self" if scenario.release == "0.5.14" else "view"
        yield from _interval(
            resolved,
            f"assert {view}.mamba_track_interval >= {view}.speculative_num_draft_tokens",
            f"assert {view}.mamba_track_interval % {view}.page_size == 0",
        )


def _no_buffer(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    by_auto = scenario.mamba_radix_cache_strategy == "auto"
    if resolved.page_size != 1:
        came = " It is what auto gives here." if by_auto else ""
        forced = resolved.page_size != scenario.page_size
        cure = (
            f"The model forces pages of {resolved.page_size}: choose another strategy."
            if forced
            else f"Set --page-size 1 (now {resolved.page_size}) or choose another strategy.{came}"
        )
        yield _flags("no_buffer only supports page_size=1.", cure)
    if not by_auto and not scenario.disable_overlap_schedule:
        by_pp = " Pipeline parallelism turns overlap off too late to count." if scenario.pp_size > 1 else ""
        yield _flags(
            "no_buffer do not support overlap schedule. Try to set disable_overlap_schedule=True.",
            f"Pass --disable-overlap-schedule or choose another strategy.{by_pp}",
        )
    if scenario.attention_backend == "trtllm_mha":
        yield _flags("no_buffer do not support trtllm_mha attention backend.", "Choose another --attention-backend.")


def _lazy(resolved: Resolved) -> Iterator[Refusal]:
    scenario, rules = resolved.scenario, resolved.rules
    if resolved.strategy != "extra_buffer_lazy":
        return
    if scenario.D and not rules.lazy_speculates:
        yield _flags("extra_buffer_lazy unsupported with spec.", f"Set {rules.strategy_flag} extra_buffer.")
    if scenario.disaggregation_mode != "null" and not rules.lazy_under_pd:
        yield _flags(
            "extra_buffer_lazy unsupported under PD disaggregation; use --mamba-radix-cache-strategy extra_buffer.",
            f"Choose extra_buffer, or --disaggregation-mode null (now {scenario.disaggregation_mode}).",
        )


def _interval(resolved: Resolved, few: str, uneven: str) -> Iterator[Refusal]:
    """The track interval holds the drafts and whole pages; `few` and `uneven` are the engine's words."""
    scenario = resolved.scenario
    interval, page = scenario.mamba_track_interval, resolved.page_size
    least = -(-max(scenario.D, page) // page) * page
    cure = (
        f"--mamba-track-interval {interval} must be a multiple of page_size ({page}) and at least D ({scenario.D}): "
        f"set it to {least} or a multiple of that."
    )
    if interval < scenario.D:
        yield _flags(few, cure)
    if interval % page:
        yield _flags(uneven, cure)


def _without_state(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if scenario.mamba_radix_cache_strategy in BUFFERED:
        yield _flags(
            f"--mamba-radix-cache-strategy {resolved.strategy} needs mamba state, got {scenario.architecture}.",
            "Set --mamba-radix-cache-strategy auto: this model keeps no buffer.",
        )


def _lazy_overlap(resolved: Resolved) -> Iterator[Refusal]:
    """Asserted when S is counted, after all flags."""
    scenario = resolved.scenario
    if resolved.strategy == "extra_buffer_lazy" and resolved.radix_cache and not resolved.overlap:
        cause = "--disable-overlap-schedule" if scenario.disable_overlap_schedule else f"--pp-size {scenario.pp_size}"
        yield _flags(
            "Lazy extra buffer requires overlap schedule (--disable-overlap-schedule is incompatible)",
            f"Overlap is off by {cause}: drop it, or choose extra_buffer.",
        )


# --- the rest ----------------------------------------------------------------------------------------

# `speculative_ngram_max_bfs_breadth`, which NGRAM takes for its top-k.
NGRAM_BREADTH = 10


def _ngram_pages(resolved: Resolved) -> Iterator[Refusal]:
    """NGRAM drafts a tree, and the pages of GLM-5-next hold none; other models were run with NGRAM and pages."""
    scenario = resolved.scenario
    if not scenario.D or scenario.speculative_algorithm != "NGRAM" or not resolved.support.forces_page:
        return
    if resolved.page_size > 1 and scenario.attention_backend != "flashinfer":
        yield _flags(
            f"speculative_eagle_topk({NGRAM_BREADTH}) > 1 with page_size({resolved.page_size}) > 1 is unstable and "
            "produces incorrect results for paged attention backends. This combination is only supported for the "
            "'flashinfer' backend.",
            "The model forces its pages: choose another speculative algorithm.",
        )


def _chunk_pages(resolved: Resolved) -> Iterator[Refusal]:
    """The default --chunked-prefill-size is a power of two, 2,048 to 16,384 by GPU (`check_server_args`)."""
    page = resolved.page_size
    if page & (page - 1):
        yield _flags(
            "chunked_prefill_size must be divisible by page_size",
            f"--page-size {page} does not divide the default --chunked-prefill-size: set a power of two.",
        )


def _replayssm(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if scenario.replayssm == "both":
        yield _flags(
            "--enable-linear-replayssm-spec and --enable-linear-replayssm are mutually exclusive: they share the ring "
            "storage but drive it with incompatible cursor protocols (per-decode-forward vs per-verify-commit "
            "advance).",
            "Keep one of the two.",
        )
    elif scenario.replayssm == "decode":
        yield from _decode_ring(resolved)
    elif scenario.replayssm == "spec":
        yield from _spec_ring(resolved)


def _decode_ring(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if scenario.disaggregation_mode != "null":
        yield _flags(
            "--enable-linear-replayssm is not supported under PD disaggregation yet (follow-up). Got "
            f"--disaggregation-mode='{scenario.disaggregation_mode}'.",
            "Turn ReplaySSM off on this server.",
        )
    if resolved.strategy not in BUFFERED or not resolved.radix_cache:
        return
    cure = (
        "Set --mamba-radix-cache-strategy no_buffer with --disable-overlap-schedule and --page-size 1, or turn "
        "ReplaySSM off."
    )
    if scenario.release == "0.5.15":
        words = "AttributeError: 'ServerArgs' object has no attribute 'mamba_scheduler_strategy'"
        yield _flags(words, f"The release means to refuse extra_buffer here. {cure}", "engine_crash")
        return
    got = resolved.strategy if at_least(scenario.release, "0.5.19") else scenario.mamba_radix_cache_strategy
    yield _flags(
        "--enable-linear-replayssm requires --mamba-radix-cache-strategy no_buffer (the default); the extra_buffer "
        f"ping-pong donation path is not yet supported (follow-up). Got --mamba-radix-cache-strategy='{got}'.",
        cure,
    )


def _spec_ring(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if not has_flag(scenario.release, "--enable-linear-replayssm-spec"):
        return  # 0.5.16 has another flag, and its checks were not read
    if scenario.speculative_eagle_topk > 1 and scenario.D:
        yield _flags(
            "--enable-linear-replayssm-spec requires a linear draft chain (--speculative-eagle-topk in {None, 1}); the "
            "chunked verify kernel uses a strictly-lower causal mask and is invalid for EAGLE tree verify. Got "
            f"--speculative-eagle-topk={scenario.speculative_eagle_topk}",
            "Set --speculative-eagle-topk 1.",
        )
    if scenario.disaggregation_mode == "prefill":
        yield _flags(
            "--enable-linear-replayssm-spec is not supported on a PD prefill server: the ring is spec-verify-only "
            "scratch and the prefill server never runs spec verify.",
            "Drop the flag on the prefill server; the decode server takes it.",
        )


def _widths(resolved: Resolved) -> Iterator[Refusal]:
    scenario, rules = resolved.scenario, resolved.rules
    if scenario.dcp_size > 1 and scenario.D and not rules.dcp_speculates:
        yield _flags(
            "Decode context parallel (--dcp-size / --decode-context-parallel-size > 1) on CUDA platform does not "
            f"support any speculative algorithm, but got dcp_size={scenario.dcp_size} on a CUDA platform with "
            "speculative decoding enabled.",
            "Set --dcp-size 1, turn speculation off, or take SGLang 0.5.17 or newer.",
        )
    if scenario.pp_size == 1 or not scenario.D:
        return
    if rules.pp_speculates and scenario.disaggregation_mode != "prefill":
        yield _flags(
            "PP + speculative decoding (MTP) is only supported on prefill nodes (disaggregation-mode=prefill)",
            "Set --pp-size 1, or turn speculation off.",
        )
    if not rules.pp_speculates:
        mixed = "" if at_least(scenario.release, "0.5.14") else ", mixed chunked prefill."
        yield _flags(
            f"Pipeline parallelism is not compatible with overlap schedule, speculative decoding{mixed}",
            "Set --pp-size 1, or turn speculation off.",
        )


def _host_cache(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if not scenario.enable_hierarchical_cache:
        return
    if scenario.enable_int8_mamba_checkpoint:
        path = "path" if at_least(scenario.release, "0.5.18") else "path (HiMambaRadixCache)"
        yield _flags(
            "--enable-int8-mamba-checkpoint is not supported together with --enable-hierarchical-cache: the "
            f"host-offload {path} is not int8-aware. Disable one of them.",
            "Drop one of the two.",
        )
    if scenario.disable_radix_cache:
        yield _flags(
            "The arguments enable-hierarchical-cache and disable-radix-cache are mutually exclusive and cannot be used "
            "at the same time. Please use only one of them.",
            "Drop one of the two.",
        )
