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
# engine-sizing.md section 11: `--swa-full-tokens-ratio` unset, for Inkling in every release that has it.
SWA_FULL_TOKENS_RATIO = 0.1


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


def heads_here(kv_heads: int, tp: int, dcp: int) -> int:
    """KV heads on one rank: floor division, at least one; DCP ranks hold the same heads (engine-sizing.md section 3).

    `tp` is the attention TP width, `dcp` what the release lets the heads follow (`Rules.heads_dcp`).

    >>> heads_here(2, 8, 1), heads_here(2, 8, 8), heads_here(8, 8, 4)
    (1, 2, 4)
    """
    return max(1, kv_heads // (tp // dcp))


class Gqa(_Frozen):
    """Grouped (or multi-) head attention: keys and values of each KV head."""

    kind: Literal["GQA", "QSA"] = "GQA"
    """QSA has a compressed index key of each token beside the heads."""
    kv_heads: int
    head_dim: int
    v_head_dim: int
    index_bytes: int = 0
    """Bytes of that key in one layer, whatever the KV dtype."""

    def heads_here(self, tp: int, dcp: int) -> int:
        """KV heads on one rank."""
        return heads_here(self.kv_heads, tp, dcp)

    def row_bytes(self, layers: tuple[int, ...], tp: int, dcp: int, dtype: KvCacheDtype) -> int:
        """Bytes of one token over these layers on one rank."""
        elements = self.heads_here(tp, dcp) * (self.head_dim + self.v_head_dim) * len(layers)
        scales = elements // MXFP8_BLOCK if dtype == "mxfp8" else 0
        return elements * KV_ITEMSIZE[dtype] + scales + self.index_bytes * len(layers)


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
    """Full and sliding-window attention in two pools; the window pool has a share of the rows of the full one.

    Source: engine-sizing.md section 11 (`HybridSWAPoolConfigurator`).
    """

    kind: Literal["GQA and sliding window"] = "GQA and sliding window"
    full: Gqa
    sliding: Gqa
    sliding_layers: tuple[int, ...]
    window: int
    """Tokens that a window layer looks back."""
    draft_window_layers: tuple[int, ...] = ()
    """Layers of the draft head, counted from 0, whose rows are as wide as a window layer's."""

    def parts(self, layers: tuple[int, ...], tp: int, dtype: KvCacheDtype) -> tuple[int, int]:
        """Bytes of a row of the full pool and of one of the window pool, over these layers on one rank.

        Both ignore DCP, and round the MXFP8 scales per layer.
        """
        windows = len(set(layers) & set(self.sliding_layers))
        full = self.full.row_bytes((0,), tp, 1, dtype) * (len(layers) - windows)
        return full, self.sliding.row_bytes((0,), tp, 1, dtype) * windows

    def row_bytes(self, layers: tuple[int, ...], tp: int, dcp: int, dtype: KvCacheDtype) -> int:
        """Bytes of one token with its share of the window pool; all of it where there is no full pool to relate to."""
        full, window = self.parts(layers, tp, dtype)
        return int(full + (SWA_FULL_TOKENS_RATIO if full else 1) * window)

    def draft_bytes(self, layers: int, tp: int, dtype: KvCacheDtype) -> int:
        """Bytes of a row of a draft head of so many layers, all at the full pool's capacity."""
        windows = sum(layer in self.draft_window_layers for layer in range(layers))
        sliding = self.sliding.row_bytes((0,), tp, 1, dtype) * windows
        return self.full.row_bytes((0,), tp, 1, dtype) * (layers - windows) + sliding


Kv = Gqa | Mla | Dsa | SlidingGqa


def _no_mxfp8(dtype: KvCacheDtype) -> None:
    if dtype == "mxfp8":
        raise ModelRefusedError(
            "layout", "kv_cache_dtype", "mxfp8 is a KV layout of GQA models; this one has latent attention (MLA)."
        )
