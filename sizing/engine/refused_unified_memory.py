"""What `--enable-unified-memory` refuses, release by release.

Source: running-server.md 2.5 (`arg_groups/kv_cache_hook.py::handle_unified_memory_pool`,
`_validate_unified_memory_dcp`, `handle_page_major_kv_layout`) and the executed flag combinations. The default
attention backend of SM90 (fa3) is what `auto` stands for.
"""

from collections.abc import Iterator

from sizing.basics.problems import Refusal
from sizing.engine.resolved import Resolved
from sizing.releases.rules import at_least

DEFAULT_BACKEND, TREE_BACKEND = "fa3", "flashinfer"  # of SM90; the latter where top-k is above 1
MHA_BACKENDS = ("triton", "fa3", "fa4", "flashinfer", "trtllm_mha")
MLA_BACKENDS = ("triton", "fa3", "trtllm_mla", "flashinfer", "cutedsl_mla", "flashmla")
DCP_BACKENDS = ("cutedsl_mla", "flashinfer", "trtllm_mla")


def unified_refusals(resolved: Resolved) -> Iterator[Refusal]:
    """Every refusal of unified memory, in the engine's order."""
    if not resolved.scenario.enable_unified_memory:
        return
    yield from _model(resolved)
    yield from _backend(resolved)
    yield from _roles(resolved)
    yield from _speculation(resolved)
    yield from _host(resolved)
    yield from _dcp(resolved)


def _flags(engine_words: str, cure: str) -> Refusal:
    return Refusal(kind="flags", engine_words=engine_words, cure=cure)


def _model(resolved: Resolved) -> Iterator[Refusal]:
    scenario, support = resolved.scenario, resolved.support
    if support.unified:
        return
    if scenario.architecture == "Qwen4ExpForConditionalGeneration":
        yield _flags("Qwen4-Exp does not support --enable-unified-memory yet", "Drop --enable-unified-memory.")
    else:
        yield _flags("", f"SGLang {scenario.release} has no unified memory for {scenario.architecture}: drop the flag.")


def _backend(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    got: str = scenario.attention_backend
    if got == "auto":
        got = TREE_BACKEND if scenario.D and scenario.speculative_eagle_topk > 1 else DEFAULT_BACKEND
    latent = scenario.attention != "GQA"
    if not at_least(scenario.release, "0.5.17"):
        if got != "triton":
            yield _flags(
                "--enable-page-major-kv-layout requires the Triton attention backend for the full-attention layers; "
                f"got ['{got}']. Pass --attention-backend triton.",
                "Set --attention-backend triton, or take SGLang 0.5.19 or newer.",
            )
        return
    allowed = MLA_BACKENDS if latent else MHA_BACKENDS if at_least(scenario.release, "0.5.19") else ("triton",)
    if got not in allowed:
        yield _flags(
            "--enable-page-major-kv-layout requires the Triton attention backend for the full-attention layers "
            f"(unified-memory MLA also allows the paged MLA backends); got ['{got}'], allowed {sorted(allowed)}. Pass "
            "a compatible --attention-backend.",
            f"Set --attention-backend to one of {', '.join(allowed)}.",
        )


def _roles(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if scenario.disaggregation_mode == "null":
        return
    release, backend = scenario.release, scenario.disaggregation_transfer_backend
    if not at_least(release, "0.5.18"):
        yield _flags(
            "", f"SGLang {release} has no unified memory under PD disaggregation: drop --enable-unified-memory."
        )
    if backend != "mooncake":
        only = (
            f"these transfer backends: mooncake; got '{backend}'."
            if at_least(release, "0.5.21")
            else f"the mooncake transfer backend; got '{backend}'."
        )
        yield _flags(
            f"--enable-unified-memory with PD disaggregation supports only {only}",
            "Set --disaggregation-transfer-backend mooncake.",
        )
    if scenario.pp_size > 1:
        yield _flags(
            "--enable-unified-memory with PD disaggregation does not support pipeline parallelism (whole-envelope "
            "transfer has no per-layer entries to subset).",
            "Set --pp-size 1, or drop --enable-unified-memory.",
        )
    if scenario.D and at_least(release, "0.5.21"):
        yield _flags(
            "--enable-unified-memory with PD disaggregation does not support speculative decoding with the Mooncake "
            "transfer backend.",
            "Turn speculation off, or drop --enable-unified-memory.",
        )


def _speculation(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    algorithm, release = scenario.speculative_algorithm, scenario.release
    if not scenario.D:
        return
    if algorithm == "NEXTN":
        algorithm = "EAGLE"  # as the engine rewrites it before
    allowed: tuple[str, ...] = ()
    words = ""
    if at_least(release, "0.5.22"):
        allowed = ("DSPARK", "DFLASH", "EAGLE", "EAGLE3")
        words = (
            "--enable-unified-memory only supports --speculative-algorithm DSPARK, DFLASH, EAGLE and EAGLE3; other "
            "speculative algorithms are not yet audited for the unified pool's virtual-to-physical loc translation. "
            f"Got --speculative-algorithm='{algorithm}'."
        )
    elif at_least(release, "0.5.18"):
        allowed = ("DSPARK",)
        words = (
            "--enable-unified-memory only supports --speculative-algorithm DSPARK (chain draft); other speculative "
            "algorithms are not yet audited for the unified pool's virtual/kernel-facing loc translation. Got "
            f"--speculative-algorithm='{algorithm}'."
        )
    if algorithm not in allowed:
        takes = f"takes {', '.join(allowed)} only" if allowed else "takes no speculation"
        yield _flags(words, f"Unified memory of SGLang {release} {takes}: drop one of the two.")
    if scenario.speculative_eagle_topk > 1:
        yield _flags(
            "--enable-unified-memory supports a linear draft chain only (--speculative-eagle-topk in {None, 1}); tree "
            "verify relocates accepted tokens one at a time inside the target pool, which the unified pool's "
            "page-granular move_kv_cache cannot express. Got "
            f"--speculative-eagle-topk={scenario.speculative_eagle_topk}.",
            "Set --speculative-eagle-topk 1.",
        )


def _host(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if not scenario.enable_hierarchical_cache:
        return
    if not at_least(scenario.release, "0.5.21"):
        yield _flags(
            "--enable-unified-memory is not yet compatible with hierarchical / host-tiered KV cache "
            "(--enable-hierarchical-cache / --enable-lmcache)",
            "Drop one of the two, or take SGLang 0.5.21 or newer.",
        )
    elif scenario.D and scenario.speculative_algorithm in ("EAGLE", "NEXTN", "EAGLE3"):
        yield _flags("", "Unified memory takes no hierarchical cache together with EAGLE: drop one of the three.")


def _dcp(resolved: Resolved) -> Iterator[Refusal]:
    scenario = resolved.scenario
    if scenario.dcp_size == 1:
        return
    compatible = "--enable-unified-memory with decode context parallelism (--dcp-size > 1)"
    if not at_least(scenario.release, "0.5.20"):
        yield _flags(
            "--enable-unified-memory is not yet compatible with decode context parallelism (--dcp-size > 1)",
            "Set --dcp-size 1, or drop --enable-unified-memory.",
        )
    elif scenario.attention == "GQA":
        yield _flags(
            f"{compatible} supports MLA models only (e.g. kimi-linear)",
            "Set --dcp-size 1, or drop --enable-unified-memory.",
        )
    elif scenario.disaggregation_mode != "null":
        yield _flags("", "Unified memory takes no --dcp-size above 1 under PD disaggregation: drop one of the two.")
    elif scenario.attention_backend not in DCP_BACKENDS:
        allowed = sorted((*DCP_BACKENDS, *(() if at_least(scenario.release, "0.5.23") else ("tokenspeed_mla",))))
        got = DEFAULT_BACKEND if scenario.attention_backend == "auto" else scenario.attention_backend
        yield _flags(
            f"{compatible} requires {allowed} for the full-attention layers; got ['{got}'].",
            f"Set --attention-backend to one of {', '.join(DCP_BACKENDS)}.",
        )
