"""The flags and environment variables that sizing reads, each with its older names.

Shorter ones are resolved by sizing/releases/flags.py.

Source: boot-log-formats.md section 1, engine-versions.md ("Flags and environment"), engine-sizing.md sections 2 to 5.
"""

from typing import Literal, NamedTuple

from sizing.releases.flags import PIN, RATIO, REQUESTS, whole_name

Kind = Literal["whole", "tokens", "number", "word", "switch"]


class FlagRule(NamedTuple):
    """One flag: what its value is, and the Scenario input it gives (empty where none takes it as it is)."""

    kind: Kind
    field: str
    names: tuple[str, ...]


FRACTION = "--mem-fraction-static"
SIZING_FLAGS = (RATIO, PIN, REQUESTS, FRACTION)
"""The flags that the writer may set, replace or remove."""

RULES: tuple[FlagRule, ...] = (
    FlagRule("number", "mamba_full_memory_ratio", (RATIO,)),
    FlagRule("whole", "max_mamba_cache_size", (PIN,)),
    FlagRule("whole", "max_running_requests", (REQUESTS,)),
    FlagRule("whole", "max_total_tokens", ("--max-total-tokens",)),
    FlagRule("whole", "context_length", ("--context-length",)),
    FlagRule("whole", "page_size", ("--page-size",)),
    FlagRule("whole", "tp_size", ("--tp-size", "--tensor-parallel-size")),
    FlagRule("whole", "pp_size", ("--pp-size", "--pipeline-parallel-size")),
    FlagRule("whole", "dcp_size", ("--dcp-size",)),
    FlagRule("whole", "attn_dp_size", ("--attn-dp-size",)),
    FlagRule("whole", "", ("--dp-size", "--data-parallel-size")),
    FlagRule("switch", "", ("--enable-dp-attention",)),
    FlagRule("word", "mamba_ssm_dtype", ("--mamba-ssm-dtype",)),
    FlagRule("word", "kv_cache_dtype", ("--kv-cache-dtype",)),
    FlagRule("word", "mamba_radix_cache_strategy", ("--mamba-radix-cache-strategy", "--mamba-scheduler-strategy")),
    FlagRule("whole", "mamba_track_interval", ("--mamba-track-interval",)),
    FlagRule("switch", "disable_radix_cache", ("--disable-radix-cache",)),
    FlagRule("switch", "disable_overlap_schedule", ("--disable-overlap-schedule",)),
    FlagRule("word", "disaggregation_mode", ("--disaggregation-mode",)),
    FlagRule("word", "speculative_algorithm", ("--speculative-algorithm",)),
    FlagRule("whole", "D", ("--speculative-num-draft-tokens",)),
    FlagRule("switch", "", ("--enable-linear-replayssm",)),
    FlagRule("switch", "", ("--enable-linear-replayssm-spec", "--enable-gdn-replayssm-spec")),
    FlagRule("whole", "linear_replayssm_cache_len", ("--linear-replayssm-cache-len",)),
    FlagRule("word", "linear_attn_backend", ("--linear-attn-backend",)),
    FlagRule("word", "attention_backend", ("--attention-backend",)),
    FlagRule("whole", "speculative_eagle_topk", ("--speculative-eagle-topk",)),
    FlagRule("switch", "disaggregation_decode_enable_radix_cache", ("--disaggregation-decode-enable-radix-cache",)),
    FlagRule("word", "disaggregation_transfer_backend", ("--disaggregation-transfer-backend",)),
    FlagRule("switch", "enable_unified_memory", ("--enable-unified-memory",)),
    FlagRule("switch", "enable_hierarchical_cache", ("--enable-hierarchical-cache",)),
    FlagRule("switch", "enable_int8_mamba_checkpoint", ("--enable-int8-mamba-checkpoint",)),
    FlagRule("number", "", ("--mem-fraction-static",)),
    FlagRule("whole", "", ("--speculative-num-steps",)),
    FlagRule("word", "", ("--config",)),
    FlagRule("word", "", ("--model-path", "--model")),
)
RULE_OF: dict[str, FlagRule] = {name: rule for rule in RULES for name in rule.names}


def chief_name(name: str) -> str:
    """The one name of a flag for all its spellings, abbreviated or older; the name itself where no release has it.

    >>> chief_name("--tp"), chief_name("--tensor-parallel-size"), chief_name("--mamba-scheduler-strategy")
    ('--tp-size', '--tp-size', '--mamba-radix-cache-strategy')
    """
    whole = whole_name(name) or name
    rule = RULE_OF.get(whole)
    return rule.names[0] if rule else whole


SKIP_DECODE_LOCK, CONV_DTYPE, SSM_DTYPE = (
    "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK",
    "SGLANG_MAMBA_CONV_DTYPE",
    "SGLANG_MAMBA_SSM_DTYPE",
)
