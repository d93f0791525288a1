"""Logs of other engines, told by words that SGLang does not print."""

import re
from typing import NamedTuple


class OtherEngine(NamedTuple):
    """An engine that this tool does not size, and what to say of its log."""

    name: str
    pattern: re.Pattern[bytes]
    why: str


ENGINES = (
    OtherEngine(
        "vLLM",
        re.compile(
            rb"GPU KV cache size: [\d,]+ tokens|\bvllm[ ./_]|EngineCore|\[kv_cache_utils\.py:"
            rb"|\(Worker(?:_[A-Z]+\d+)* pid=|\(APIServer pid="
            rb"|available Mamba cache blocks|\bmax_num_seqs\b|No available memory for the cache blocks"
        ),
        "vLLM keeps state and KV in one shared pool of blocks, so it has no ratio to set and its token count means "
        "something else",
    ),
    OtherEngine(
        "TensorRT-LLM",
        re.compile(rb"\[TensorRT-LLM\]|\[TRT-LLM\]|tensorrt_llm"),
        "TensorRT-LLM sizes its caches by its own rules",
    ),
    OtherEngine(
        "llama.cpp",
        re.compile(
            rb"llama_(?:kv_cache|context|model_loader|memory_recurrent)|\bn_ctx_slot\b|ggml_(?:cuda|metal)_init"
        ),
        "llama.cpp sizes its caches by its own rules",
    ),
    OtherEngine(
        "Text Generation Inference",
        re.compile(rb"text_generation_(?:launcher|router|server)"),
        "Text Generation Inference sizes its caches by its own rules",
    ),
)
LOOKED_AT = 4 * 2**20  # bytes at the start of a log in which an engine introduces itself


def other_engine(head: bytes) -> OtherEngine | None:
    """The engine whose words stand in the first bytes of a log; None where there are none."""
    return next((engine for engine in ENGINES if engine.pattern.search(head[:LOOKED_AT])), None)
