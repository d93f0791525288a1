"""Which columns of a trace hold lengths: the names that published traces, loggers and benchmarks give them.

Read where it is written: TIMESTAMP,ContextTokens,GeneratedTokens in data/AzureLLMInferenceTrace_conv.csv of
Azure/AzurePublicDataset; timestamp, input_length, output_length, hash_ids in FAST25-release/README.md of
kvcache-ai/Mooncake; "Request tokens" and "Response tokens" in BurstGPT_1.csv of HPMLL/BurstGPT; prompt_tokens and
completion_tokens in the usage object of the OpenAI API, input_tokens and output_tokens in that of newer ones;
num_prefill_tokens and num_decode_tokens in the traces of project-etalon/etalon and the simulators that read them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

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
    ("input", "output"),
)
LENGTHS = ("length", "len", "total_tokens", "tokens")
COUNTS = ("count", "cnt", "requests", "num", "n")
PAIR_COUNTS = COUNTS[:3]  # beside two lengths a lone "n" may be anything, such as the choices asked for

# One object a run with a list for each of these: benchmark() in python/sglang/benchmark/serving.py of
# sgl-project/sglang (--output-details, one line a run) and in vllm/benchmarks/serve.py of vllm-project/vllm
# (--save-detailed). In both calculate_metrics() writes 0 as the output of a failed request, and errors its reason.
INPUTS, OUTPUTS, ERRORS = "input_lens", "output_lens", "errors"
TOTALS = ("completed", "total_input_tokens", "request_throughput")  # what both write without the lists, too
ONLY_SGLANG = "sharegpt_output_len"  # an argument that only SGLang writes among its results


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
    names: dict[str, str] = {}
    for column in columns:
        names.setdefault(column.strip().lower().replace(" ", "_").replace("-", "_"), column)
    for one, other in PAIRS:
        if one in names and other in names:
            return Columns(names[one], names[other], None, _first(names, PAIR_COUNTS))
    length = _first(names, LENGTHS)
    return Columns() if length is None else Columns(length=length, times=_first(names, COUNTS))


def is_benchmark(columns: Sequence[str]) -> bool:
    """Whether these are the names in a benchmark's result with its details."""
    return INPUTS in columns and OUTPUTS in columns


def missing_details(columns: Sequence[str]) -> str | None:
    """The flag that a benchmark was run without, where these are the names in a result of totals alone."""
    if INPUTS in columns or not all(name in columns for name in TOTALS):
        return None
    return "--output-details" if ONLY_SGLANG in columns else "--save-detailed"


def _first(names: dict[str, str], wanted: Iterable[str]) -> str | None:
    return next((names[name] for name in wanted if name in names), None)
