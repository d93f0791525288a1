"""Asks one other tool what cache memory a request needs: `peers.py` runs this in the interpreter that has the tool.

It imports the tool and the standard library, nothing of ours. Standard input holds {model id: config.json}, standard
output gets {"version": text or null, "answers": {model id: answer}}. An answer is either {"bytes": [at L tokens, at
2 L tokens], "slots": state slots that the tool says are in it} or {"why": sentence}. Nothing is fetched: a tool that
looks for a host finds none.

    python tests/bench/peer_answers.py TOOL L < configs.json
"""

import contextlib
import functools
import importlib
import json
import re
import socket
import struct
import sys
import tempfile
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any
from unittest import mock

Config = dict[str, Any]
Lengths = tuple[int, int]
BFLOAT16_BYTES = 2.0
OFFLINE = "it needs the hub, and this run is offline"


class NoAnswerError(Exception):
    """The tool ran and gave no number."""


def hf_mem(model: str, config: Config, lengths: Lengths) -> dict[str, Any]:
    """`hf_mem.run(..., experimental=True)`, its documented call. Its result has the KV cache and no state.

    The tool reads from the hub only, so a stand-in in its HTTP client answers for the hub: with this config.json and
    a weights file of one tensor. The KV cache does not depend on the weights once its dtype is given.
    """
    httpx2, tool = importlib.import_module("httpx2"), importlib.import_module("hf_mem")
    tensors = json.dumps({"weight": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}).encode()
    files = {"config.json": json.dumps(config).encode(), "model.safetensors": struct.pack("<Q", len(tensors)) + tensors}

    def hub(request: Any) -> Any:
        if "/tree/" in request.url.path:
            return httpx2.Response(200, json=[{"type": "file", "path": name} for name in files])
        return httpx2.Response(200, content=files[request.url.path.rsplit("/", 1)[1]])

    client = functools.partial(httpx2.AsyncClient, transport=httpx2.MockTransport(hub))
    found = []
    with mock.patch.object(httpx2, "AsyncClient", client), warnings.catch_warnings(record=True) as said:
        for length in lengths:
            # An empty token keeps it from looking for a stored one.
            result = tool.run(model, hf_token="", experimental=True, max_model_len=length, kv_cache_dtype="bfloat16")
            found.append(result.kv_cache)
    if None in found:
        raise NoAnswerError(said[-1].message if said else "no KV cache in its result")
    return {"bytes": found, "slots": 0}


def aiconfigurator(model: str, config: Config, lengths: Lengths) -> dict[str, Any]:
    """What its memory breakdown charges one sequence on SGLang, from its native model of the architecture.

    The field `kv_size_per_token_bytes` of its capacity call is the same function at one token, a whole state included.
    Where the tool ships the checkpoint's config.json and that agrees with ours, it reads its own: ours has only the
    fields that sizing reads, and the tool's native models also read fields for speed.
    """
    sdk = "aiconfigurator_core.sdk."
    models, builders = importlib.import_module(sdk + "models"), importlib.import_module(sdk + "config_builders")
    common, utils = importlib.import_module(sdk + "common"), importlib.import_module(sdk + "utils")
    setting = builders.build_model_config(
        tp_size=1, pp_size=1, attention_dp_size=1, moe_tp_size=1, moe_ep_size=1, kvcache_quant_mode="bfloat16"
    )
    with tempfile.TemporaryDirectory() as folder:
        shipped = utils.get_model_config_from_model_path(model) if model in common.DefaultHFModels else None
        own = shipped is not None and agrees(config, shipped["raw_config"])
        native = models.get_model(model if own else write_config(folder, config), setting, "sglang")
    slots = getattr(native, "KDA_STATE_SLOTS_PER_REQUEST", 1)  # set for Kimi-K3, which it charges several
    return {"bytes": [native.get_kvcache_bytes_per_sequence(length) for length in lengths], "slots": slots}


def aiconfigurator_fallback(model: str, config: Config, lengths: Lengths) -> dict[str, Any]:
    """Its `allow_naive_fallback`, off by default, for what has no native model. It has no state."""
    memory = importlib.import_module("aiconfigurator_core.sdk.memory")
    with tempfile.TemporaryDirectory() as folder:
        naive = memory.NaiveKVCacheEstimator.from_model_path(
            write_config(folder, config), tp_size=1, pp_size=1, allow_hf_config_download=False
        )
    row = naive.kv_bytes_per_token()
    if row is None:
        raise NoAnswerError("not enough in the config for its KV size")
    return {"bytes": [row * length for length in lengths], "slots": 0}


def kvfit(model: str, config: Config, lengths: Lengths) -> dict[str, Any]:
    """`kvfit.estimate_cache`, the function that the package exports and its command calls."""
    tool = importlib.import_module("kvfit")
    found = [tool.estimate_cache(config, context_tokens=length, kv_bytes=BFLOAT16_BYTES) for length in lengths]
    return {"bytes": [estimate.total_bytes for estimate in found], "slots": 1}


TOOLS: dict[str, tuple[str, Callable[[str, Config, Lengths], dict[str, Any]]]] = {
    "hf-mem": ("hf-mem", hf_mem),
    "aiconfigurator": ("aiconfigurator", aiconfigurator),
    "aiconfigurator fallback": ("aiconfigurator", aiconfigurator_fallback),
    "kvfit": ("kvfit", kvfit),
}


def write_config(folder: str, config: Config) -> str:
    """Make the folder a model folder."""
    (Path(folder) / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def agrees(excerpt: Config, whole: Config) -> bool:
    """Whether the whole has every field of the excerpt with the same value."""
    for key, value in excerpt.items():
        other = whole.get(key)
        same = agrees(value, other) if isinstance(value, dict) and isinstance(other, dict) else value == other
        if not same:
            return False
    return True


def first_sentence(error: Exception) -> str:
    text = str(error)
    if " " not in text:  # a KeyError is only its key
        text = f"{type(error).__name__} {text}"
    return re.split(r"[;\n]|\. ", text)[0].rstrip(".")


def answer(tool: str, model: str, config: Config, lengths: Lengths) -> dict[str, Any]:
    try:
        return TOOLS[tool][1](model, config, lengths)
    except Exception as error:  # whatever stops a tool is a result of this comparison
        return {"why": first_sentence(error)}


def main() -> int:
    tool, length = sys.argv[1], int(sys.argv[2])
    configs = json.load(sys.stdin)
    try:
        version = metadata.version(TOOLS[tool][0])
    except metadata.PackageNotFoundError:
        print(json.dumps({"version": None, "answers": {}}))
        return 0
    lengths = (length, 2 * length)
    with contextlib.redirect_stdout(sys.stderr), mock.patch.object(socket, "getaddrinfo", side_effect=OSError(OFFLINE)):
        answers = {model: answer(tool, model, config, lengths) for model, config in configs.items()}
    print(json.dumps({"version": version, "answers": answers}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
