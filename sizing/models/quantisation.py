"""What `--kv-cache-dtype auto` gives: the model's dtype, or fp8 where the checkpoint's quantisation says so.

Source: model-geometry.md section 2, last paragraph (`configure_kv_cache_dtype`, SGLang 0.5.23, CUDA).
"""

from sizing.models.fields import Fields
from sizing.models.kv import KvCacheDtype

# A checkpoint without a dtype counts as float32, and float32 is run as float16.
MODEL_DTYPES: dict[str, KvCacheDtype] = {
    "bfloat16": "bfloat16",
    "torch.bfloat16": "bfloat16",
    "float16": "float16",
    "half": "float16",
    "float32": "float16",
    "float": "float16",
}


def kv_dtype_auto(outer: Fields, inner: Fields, quantisation: Fields | None) -> KvCacheDtype:
    """The KV dtype of `auto`; `quantisation` is hf_quant_config.json, which counts only without a
    quantization_config in config.json.

    Raises ModelRefusedError for fields of a wrong type and for a dtype that no model runs in.
    """
    for place in (outer, inner):
        if place.has("quantization_config"):
            return _of(place.inner("quantization_config")) or _model_dtype(outer, inner)
    return (_of(quantisation) if quantisation else None) or _model_dtype(outer, inner)


def _of(config: Fields) -> KvCacheDtype | None:
    """fp8 if this quantisation says that KV is stored so; ModelOpt writes it in three ways."""
    section = config.inner("quantization") if config.has("quantization") else config
    if section.is_object("kv_cache_scheme"):
        scheme = section.inner("kv_cache_scheme")
        eight = scheme.says("type", "float") and scheme.says("num_bits", 8)
        return "fp8_e4m3" if eight and _scales_are_loaded(section, scheme) else None
    name = section.text("kv_cache_scheme") or section.text("kv_cache_quant_algo") or ""
    return "fp8_e4m3" if name.upper() in ("FP8", "FLOAT8") else None


def _scales_are_loaded(section: Fields, scheme: Fields) -> bool:
    """compressed-tensors counts only with one static symmetric scale for the whole tensor; ModelOpt always."""
    if not section.says("quant_method", "compressed-tensors"):
        return True
    symmetric = scheme.true("symmetric") if scheme.has("symmetric") else True
    return scheme.says("strategy", "tensor") and symmetric and not scheme.true("dynamic")


def _model_dtype(outer: Fields, inner: Fields) -> KvCacheDtype:
    for place in (inner, outer):
        for field in ("dtype", "torch_dtype"):
            if name := place.text(field):
                if name not in MODEL_DTYPES:
                    raise place.wrong(field, "be bfloat16, float16 or float32")
                return MODEL_DTYPES[name]
    return MODEL_DTYPES["float32"]
