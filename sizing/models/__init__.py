"""Models: from a checkpoint's config.json to the exact bytes that SGLang 0.5.23 gives a state slot and a KV token.

>>> from sizing.models import entry, kv_bytes_per_token, read_config, state_bytes
>>> kimi = read_config(entry("moonshotai/Kimi-K3").config)
>>> state_bytes(kimi, tp=8).total, kv_bytes_per_token(kimi, tp=8, dtype="fp8_e4m3")
(56171520, 13824)
"""

from sizing.models.catalogue import VERIFICATION_MEANS, Entry, catalogue, entry, find
from sizing.models.drafts import Draft, is_draft, read_draft
from sizing.models.geometry import (
    Geometry,
    StateBytes,
    attention_heads_divide,
    conv_dtype,
    draft_kv_bytes_per_token,
    kv_bytes_per_token,
    kv_heads_per_rank,
    ring_bytes_per_request,
    shapes,
    ssm_dtype,
    state_bytes,
)
from sizing.models.kv import KvCacheDtype
from sizing.models.pipeline import Stage, charged_bytes, most_kv_bytes, stages
from sizing.models.reading import read_config
from sizing.models.refusal import ModelRefusedError
from sizing.models.steps import byte_steps

__all__ = [
    "VERIFICATION_MEANS",
    "Draft",
    "Entry",
    "Geometry",
    "KvCacheDtype",
    "ModelRefusedError",
    "Stage",
    "StateBytes",
    "attention_heads_divide",
    "byte_steps",
    "catalogue",
    "charged_bytes",
    "conv_dtype",
    "draft_kv_bytes_per_token",
    "entry",
    "find",
    "is_draft",
    "kv_bytes_per_token",
    "kv_heads_per_rank",
    "most_kv_bytes",
    "read_config",
    "read_draft",
    "ring_bytes_per_request",
    "shapes",
    "ssm_dtype",
    "stages",
    "state_bytes",
]
