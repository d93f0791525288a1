"""The bytes of a model as formulas with its own numbers in them."""

from sizing.basics.dtypes import STATE_ITEMSIZE, StateDtype
from sizing.basics.units import count
from sizing.basics.working_step import Step
from sizing.models.geometry import Geometry, conv_dtype, kv_bytes_per_token, shapes, ssm_dtype, state_bytes
from sizing.models.kv import (
    DSA_BLOCK,
    DSA_SCALE_BYTES,
    KV_ITEMSIZE,
    MXFP8_BLOCK,
    SWA_FULL_TOKENS_RATIO,
    Dsa,
    Gqa,
    KvCacheDtype,
    Mla,
    SlidingGqa,
)
from sizing.models.state import Shapes


def byte_steps(
    geometry: Geometry,
    tp: int,
    kv_dtype: KvCacheDtype,
    dcp: int = 1,
    ssm_flag: StateDtype | None = None,
    conv_setting: StateDtype | None = None,
) -> tuple[Step, ...]:
    """Conv part, SSM part and their sum [bytes per slot], then KV [bytes per token], of one rank.

    Raises ModelRefusedError like `state_bytes` and `kv_bytes_per_token`.

    >>> from sizing.models import entry, read_config
    >>> steps = byte_steps(read_config(entry("moonshotai/Kimi-K3").config), tp=8, kv_dtype="fp8_e4m3")
    >>> [f"{step.numbers} = {step.result}" for step in steps][1]
    '69 x (12 x 128 x 128) x 4 = 54,263,808'
    """
    one, found = shapes(geometry, tp), state_bytes(geometry, tp, ssm_flag, conv_setting)
    layers = count(len(geometry.state_layers))
    conv_item = STATE_ITEMSIZE[conv_dtype(geometry, conv_setting)]
    ssm_item = STATE_ITEMSIZE[ssm_dtype(geometry, ssm_flag)]
    state = (
        Step(
            quantity="Conv part of a slot",
            formula="state layers x conv shape x bytes of an element",
            numbers=f"{layers} x ({_conv(one)}) x {conv_item}",
            result=count(found.conv),
        ),
        Step(
            quantity="SSM part of a slot",
            formula="state layers x temporal shape x bytes of an element",
            numbers=f"{layers} x ({_product(one.temporal)}) x {ssm_item}",
            result=count(found.ssm),
        ),
        Step(
            quantity="State bytes per slot",
            formula="conv part + SSM part",
            numbers=f"{count(found.conv)} + {count(found.ssm)}",
            result=count(found.total),
        ),
    )
    return (*state, _kv_step(geometry, tp, kv_dtype, dcp))


def _product(shape: tuple[int, ...]) -> str:
    return " x ".join(count(size) for size in shape)


def _conv(one: Shapes) -> str:
    return " + ".join(_product(shape) for shape in one.conv)


def _kv_step(geometry: Geometry, tp: int, dtype: KvCacheDtype, dcp: int) -> Step:
    formula, numbers = _kv_formula(geometry, tp, dtype, dcp)
    return Step(
        quantity="KV bytes per token",
        formula=formula,
        numbers=numbers,
        result=count(kv_bytes_per_token(geometry, tp, dtype, dcp)),
    )


def _kv_formula(geometry: Geometry, tp: int, dtype: KvCacheDtype, dcp: int) -> tuple[str, str]:
    kv, layers, item = geometry.kv, count(len(geometry.kv_layers)), KV_ITEMSIZE[dtype]
    if kv is None:
        return "no attention", "0"
    if isinstance(kv, Mla):
        return (
            "attention layers x (latent + rope) x bytes of an element",
            f"{layers} x ({count(kv.kv_lora_rank)} + {count(kv.rope_dim)}) x {item}",
        )
    if isinstance(kv, Dsa):
        return _dsa_formula(geometry, kv, dtype, dcp)
    if isinstance(kv, SlidingGqa):
        return _sliding_formula(geometry, kv, tp, dtype)
    index = f" + {layers} x {count(kv.index_bytes)}" if kv.index_bytes else ""
    return (
        f"attention layers x KV heads here x (key + value width) x {_element(dtype)}"
        + (" + attention layers x index key" if index else ""),
        f"{layers} x {_heads(kv, tp, dcp)} x {_bytes_of_element(dtype)}{index}",
    )


def _element(dtype: KvCacheDtype) -> str:
    return "(element + its share of a scale)" if dtype == "mxfp8" else "bytes of an element"


def _bytes_of_element(dtype: KvCacheDtype) -> str:
    return f"(1 + 1/{MXFP8_BLOCK})" if dtype == "mxfp8" else str(KV_ITEMSIZE[dtype])


def _heads(kv: Gqa, tp: int, dcp: int) -> str:
    return f"{count(kv.heads_here(tp, dcp))} x ({count(kv.head_dim)} + {count(kv.v_head_dim)})"


def _dsa_formula(geometry: Geometry, kv: Dsa, dtype: KvCacheDtype, dcp: int) -> tuple[str, str]:
    scales = kv.index_head_dim // DSA_BLOCK * DSA_SCALE_BYTES
    return (
        "attention layers x latent bytes + indexer layers x ceil(index key / pooled tokens) x dcp_size",
        f"{count(len(geometry.kv_layers))} x {count(kv.latent_bytes(dtype))} + {count(len(kv.indexer_layers))} "
        f"x ceil(({count(kv.index_head_dim)} + {count(scales)}) / {count(kv.index_kpool)}) x {dcp}",
    )


def _sliding_formula(geometry: Geometry, kv: SlidingGqa, tp: int, dtype: KvCacheDtype) -> tuple[str, str]:
    windows = len(kv.sliding_layers)
    full = len(geometry.kv_layers) - windows
    ratio = SWA_FULL_TOKENS_RATIO if full else 1
    return (
        f"full layers x KV heads x widths x {_element(dtype)} + share of the window pool x the same of its layers",
        f"{count(full)} x {_heads(kv.full, tp, 1)} x {_bytes_of_element(dtype)} + {ratio:g} "
        f"x {count(windows)} x {_heads(kv.sliding, tp, 1)} x {_bytes_of_element(dtype)}",
    )
