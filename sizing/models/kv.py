"""The KV cache of a model's attention layers: bytes of one row on one rank.

Source: model-geometry.md section 2 and engine-sizing.md section 3 (`create_memory_pool_configurator`, SGLang 0.5.23).
"""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from sizing.models.refusal import ModelRefusedError

KvCacheDtype = Literal["bfloat16", "float16", "fp8_e4m3", "fp8_e5m2", "mxfp8"]

# Bytes of one element. MXFP8 adds a scale of one byte to each block of elements.
KV_ITEMSIZE: dict[KvCacheDtype, int] = {"bfloat16": 2, "float16": 2, "fp8_e4m3": 1, "fp8_e5m2": 1, "mxfp8": 1}
MXFP8_BLOCK = 32  # model-geometry.md section 2: “fp8 plus 1/32”
# The same section, DSA: blocks of 128 elements, each with a scale of 4 bytes; rope stays bfloat16 in the fp8 layout.
DSA_BLOCK, DSA_SCALE_BYTES, DSA_ROPE_BYTES = 128, 4, 2
SWA_FULL_TOKENS_RATIO = 0.8  # section 6: `--swa-full-tokens-ratio` unset


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Gqa(_Frozen):
    """Grouped (or multi-) head attention: keys and values of each KV head."""

    kind: Literal["GQA"] = "GQA"
    kv_heads: int
    head_dim: int
    v_head_dim: int

    def heads_here(self, tp: int, dcp: int) -> int:
        """KV heads on one rank: floor division, at least one; DCP ranks hold the same heads."""
        return max(1, self.kv_heads // (tp // dcp))

    def row_bytes(self, layers: tuple[int, ...], tp: int, dcp: int, dtype: KvCacheDtype) -> int:
        """Bytes of one token over these layers on one rank."""
        elements = self.heads_here(tp, dcp) * (self.head_dim + self.v_head_dim) * len(layers)
        return elements * KV_ITEMSIZE[dtype] + (elements // MXFP8_BLOCK if dtype == "mxfp8" else 0)


class Mla(_Frozen):
    """Latent attention: one compressed row for all heads, whole on every rank whatever the TP and DCP."""

    kind: Literal["MLA"] = "MLA"
    kv_lora_rank: int
    rope_dim: int

    def row_bytes(self, layers: tuple[int, ...], tp: int, dcp: int, dtype: KvCacheDtype) -> int:
        """Bytes of one token over these layers on one rank. Raises ModelRefusedError for mxfp8."""
        _no_mxfp8(dtype)
        return (self.kv_lora_rank + self.rope_dim) * len(layers) * KV_ITEMSIZE[dtype]


class Dsa(_Frozen):
    """Sparse latent attention: the latent row, and in each indexer layer a pooled index key.

    fp8_e4m3 is the scaled layout of the default kernels; TRT-LLM and TileLang kernels keep raw rows instead.
    """

    kind: Literal["DSA"] = "DSA"
    kv_lora_rank: int
    rope_dim: int
    index_head_dim: int
    index_kpool: int
    indexer_layers: tuple[int, ...]

    def latent_bytes(self, dtype: KvCacheDtype) -> int:
        """Bytes of the latent row of one layer. Raises ModelRefusedError where fp8 blocks do not fit."""
        if dtype == "fp8_e4m3":
            if self.kv_lora_rank % DSA_BLOCK:
                raise ModelRefusedError(
                    "layout",
                    "kv_lora_rank",
                    f"kv_lora_rank {self.kv_lora_rank} is not a multiple of {DSA_BLOCK}, which fp8 rows of DSA need.",
                )
            scales = self.kv_lora_rank // DSA_BLOCK * DSA_SCALE_BYTES
            return self.kv_lora_rank + scales + self.rope_dim * DSA_ROPE_BYTES
        return (self.kv_lora_rank + self.rope_dim) * KV_ITEMSIZE[dtype]

    @property
    def index_bytes(self) -> int:
        """Bytes of the index key of one indexer layer and one token: one key is kept for index_kpool tokens."""
        key = self.index_head_dim + self.index_head_dim // DSA_BLOCK * DSA_SCALE_BYTES
        return -(-key // self.index_kpool)

    def row_bytes(self, layers: tuple[int, ...], tp: int, dcp: int, dtype: KvCacheDtype) -> int:
        """Bytes of one row over these layers on one rank. Raises ModelRefusedError for mxfp8.

        DCP shards the latent rows but not the index keys, so that a rank's row carries dcp of those.
        """
        _no_mxfp8(dtype)
        indexers = len(set(layers) & set(self.indexer_layers))
        return self.latent_bytes(dtype) * len(layers) + self.index_bytes * indexers * dcp


class SlidingGqa(_Frozen):
    """Full and sliding-window attention in two pools; the window pool has SWA_FULL_TOKENS_RATIO of the rows.

    This is what one token of the full pool costs with its share of the window pool. The engine splits such a
    model's memory by another rule than the ratio of the two pools (model-geometry.md section 3, sconv).
    """

    kind: Literal["GQA and sliding window"] = "GQA and sliding window"
    full: Gqa
    sliding: Gqa
    sliding_layers: tuple[int, ...]

    def window_share(self, layers: int, windows: int) -> float:
        """Rows of the window pool for each row of the full one; 1 where there is no full pool to relate to."""
        return SWA_FULL_TOKENS_RATIO if windows < layers else 1

    def row_bytes(self, layers: tuple[int, ...], tp: int, dcp: int, dtype: KvCacheDtype) -> int:
        """Bytes of one token over these layers on one rank. Both pools ignore DCP."""
        windows = len(set(layers) & set(self.sliding_layers))
        ratio = self.window_share(len(layers), windows)
        # The engine rounds the MXFP8 scales per layer here, and multiplies by a float last.
        full = self.full.row_bytes((0,), tp, 1, dtype) * (len(layers) - windows)
        return int(full + ratio * (self.sliding.row_bytes((0,), tp, 1, dtype) * windows))


Kv = Gqa | Mla | Dsa | SlidingGqa


def _no_mxfp8(dtype: KvCacheDtype) -> None:
    if dtype == "mxfp8":
        raise ModelRefusedError(
            "layout", "kv_cache_dtype", "mxfp8 is a KV layout of GQA models; this one has latent attention (MLA)."
        )
