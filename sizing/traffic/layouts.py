"""Which columns of a trace hold lengths: the names that published traces, loggers and benchmarks give them.

Read where it is written: TIMESTAMP,ContextTokens,GeneratedTokens in data/AzureLLMInferenceTrace_conv.csv of
Azure/AzurePublicDataset; timestamp, input_length, output_length, hash_ids in FAST25-release/README.md of
kvcache-ai/Mooncake; "Request tokens" and "Response tokens" in BurstGPT_1.csv of HPMLL/BurstGPT; prompt_tokens and
completion_tokens in the usage object of the OpenAI API, input_tokens and output_tokens in that of newer ones;
num_prefill_tokens and num_decode_tokens in the traces of project-etalon/etalon and the simulators that read them;
number_input_tokens and number_output_tokens in src/llmperf/common_metrics.py of ray-project/llmperf; input_num_tokens
and output_num_tokens in benchmarks/multi_turn/benchmark_serving_multi_turn.py of vllm-project/vllm; isl and osl in the
reports of ai-dynamo/dynamo; gen_ai.usage.input_tokens and gen_ai.usage.output_tokens in the semantic conventions of
OpenTelemetry for generative AI; input_toks and output_toks in the data set
noddu/swe_multiturn-claude-trace-tokenized-qwen3.5 of huggingface.co; num_prompt_tokens and num_generation_tokens in
FinishedRequestStats of vllm/v1/metrics/stats.py of vllm-project/vllm.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

T = TypeVar("T")

PAIRS = (
    ("input_len", "output_len"),
    ("input_length", "output_length"),
    ("contexttokens", "generatedtokens"),
    ("prompt_tokens", "completion_tokens"),
    ("input_tokens", "output_tokens"),
    ("prompt_len", "output_len"),
    ("prompt_length", "output_length"),
    ("request_tokens", "response_tokens"),
    ("num_prefill_tokens", "num_decode_tokens"),
    ("number_input_tokens", "number_output_tokens"),
    ("num_input_tokens", "num_output_tokens"),
    ("input_num_tokens", "output_num_tokens"),
    ("input_sequence_length", "output_sequence_length"),
    ("gen_ai_usage_input_tokens", "gen_ai_usage_output_tokens"),
    ("input_toks", "output_toks"),
    ("num_prompt_tokens", "num_generation_tokens"),
    ("prompt_tokens", "generation_tokens"),
    ("prompt_tokens", "output_tokens"),
    ("isl", "osl"),
    ("input", "output"),
)
LENGTHS = ("length", "len", "total_tokens", "tokens")
COUNTS = ("count", "cnt", "requests", "num", "n")
PAIR_COUNTS = COUNTS[:3]  # beside two lengths a lone "n" may be anything, such as the choices asked for

# One object a run with a list for each of these: benchmark() in python/sglang/benchmark/serving.py of
# sgl-project/sglang (--output-details, one line a run) and in vllm/benchmarks/serve.py of vllm-project/vllm
# (--save-detailed). In both calculate_metrics() writes 0 as the output of a failed request, and errors its reason.
# Wrappers keep the lists and drop errors, or add successes; the totals are those of the requests that completed.
INPUTS, OUTPUTS, ERRORS, SUCCESSES = "input_lens", "output_lens", "errors", "successes"
COMPLETED, TOTAL_INPUT = "completed", "total_input_tokens"
# vLLM's --save-detailed: when each came [s of one process], its time to first token, and the gaps between what came
# after it, which add up to how long it took; wrappers write that by itself. SGLang says no times of arrival.
CAME, WAITED, GAPS, LASTED = "start_times", "ttfts", "itls", "latencies"
TOTALS = (COMPLETED, TOTAL_INPUT, "request_throughput")  # what both write without the lists, too
ONLY_SGLANG = "sharegpt_output_len"  # an argument that only SGLang writes among its results

# What a failed request is marked with, by the column's name, and how a value is read. LLMPerf writes error_code and
# error_msg, AIPerf error and was_cancelled, BurstGPT nothing.
Sign = Literal["filled", "true", "false", "status", "code", "span", "zero"]
FAILURES: dict[str, Sign] = {
    "error": "filled",
    "errors": "filled",
    "error_code": "filled",
    "error_msg": "filled",
    "error_message": "filled",
    "error_type": "filled",
    "exception": "filled",
    "failed": "true",
    "is_error": "true",
    "cancelled": "true",
    "was_cancelled": "true",
    "aborted": "true",
    "success": "false",
    "successful": "false",
    "succeeded": "false",
    "is_success": "false",
    "ok": "false",
    "status": "status",
    "state": "status",
    "outcome": "status",
    "request_status": "status",
    "finish_reason": "status",
    "status_code": "code",
    "http_status": "code",
    "http_code": "code",
    "http_status_code": "code",
    "response_code": "code",
}

# What links the turns of a conversation, and what orders them.
SESSIONS = (
    "session_id",
    "conversation_id",
    "conv_id",
    "dialog_id",
    "dialogue_id",
    "thread_id",
    "gen_ai_conversation_id",
)
TURNS = ("turn", "turn_index", "turn_idx", "turn_id", "turn_number", "round", "round_index", "round_idx")
HASHES = ("hash_ids",)

# When a request came, when it ended, and how long it took, without the unit that may stand behind.
STARTS = (
    "start_time",
    "started_at",
    "start",
    "start_timestamp",
    "request_start",
    "request_start_time",
    "arrival_time",
    "arrived_at",
    "arrival",
    "arrival_timestamp",
    "submit_time",
    "request_time",
    "timestamp",
    "created_at",
    "time",
    "ts",
)
ENDS = (
    "end_time",
    "ended_at",
    "end",
    "end_timestamp",
    "request_end",
    "request_end_time",
    "finish_time",
    "finished_at",
    "completed_at",
    "completion_time",
)
TOOK = (
    "e2e_latency",
    "e2e",
    "end_to_end_latency",
    "request_latency",
    "latency",
    "duration",
    "elapsed_time",
    "elapsed",
    "response_time",
    "total_time",
)
_UNIT = re.compile(
    r"_(?:(unix_nano|nanos?|nanoseconds|ns)|(micros|microseconds|us)|(millis|milliseconds|ms)|(seconds|secs?|s))$"
)
_SECONDS = (1e-9, 1e-6, 1e-3, 1.0)


class Columns(NamedTuple):
    """Names of columns, each as the file writes it; None where there is none."""

    input: str | None = None
    output: str | None = None
    length: str | None = None
    """Input + output, where no column holds them apart."""
    times: str | None = None
    """How many requests a row stands for."""

    @property
    def found(self) -> bool:
        """Whether they are enough to read lengths from."""
        return self.length is not None or (self.input is not None and self.output is not None)


def guess(columns: Iterable[str]) -> Columns:
    """The columns that hold lengths, by the names known here, upper and lower case alike; none of them where unsure."""
    names = plain_names(columns)
    for one, other in PAIRS:
        if one in names and other in names:
            return Columns(names[one], names[other], None, first(names, PAIR_COUNTS))
    length = first(names, LENGTHS)
    return Columns() if length is None else Columns(length=length, times=first(names, COUNTS))


def plain_names(columns: Iterable[str]) -> dict[str, str]:
    """Each column by its name in small letters with _ between words; the first of those alike."""
    names: dict[str, str] = {}
    for column in columns:
        names.setdefault(plain_name(column), column)
    return names


def plain_name(column: str) -> str:
    """A name in small letters with _ between words, whatever its writer put there."""
    return re.sub(r"[ .\-]", "_", column.strip().lower())


def is_benchmark(columns: Sequence[str]) -> bool:
    """Whether these are the names in a benchmark's result with its details."""
    return INPUTS in columns and OUTPUTS in columns


def missing_details(columns: Sequence[str]) -> str | None:
    """The flag that a benchmark was run without, where these are the names in a result of totals alone."""
    if INPUTS in columns or not all(name in columns for name in TOTALS):
        return None
    return "--output-details" if ONLY_SGLANG in columns else "--save-detailed"


def first(names: Mapping[str, T], wanted: Iterable[str]) -> T | None:
    """What stands under the first name that there is, such as a column."""
    return next((names[name] for name in wanted if name in names), None)


def timed(name: str) -> tuple[str, float | None]:
    """A name of a time without its unit, and that unit [s]; None where it has none.

    >>> timed("latency_ms"), timed("startTimeUnixNano"), timed("Timestamp")
    (('latency', 0.001), ('start_time', 1e-09), ('timestamp', None))
    """
    plain = plain_name(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    found = _UNIT.search(plain)
    if found is None:
        return plain, None
    unit = next(second for second, text in zip(_SECONDS, found.groups(), strict=True) if text)
    return plain[: found.start()], unit
