"""From a configuration, or a model's folder, to its Geometry.

Source: model-geometry.md sections 2 and 3.
"""

from collections.abc import Mapping
from typing import get_args

from sizing.basics.dtypes import StateDtype
from sizing.basics.problems import shown
from sizing.models.drafts import is_draft
from sizing.models.families import NOT_SERVED, ROWS, WRAPPERS, Row
from sizing.models.families.common import Layout
from sizing.models.fields import MAX_WIDTH, Fields, object_of
from sizing.models.geometry import Geometry
from sizing.models.kv import Gqa, SlidingGqa
from sizing.models.quantisation import kv_dtype_auto
from sizing.models.refusal import ModelRefusedError
from sizing.releases.architectures import MULTIMODAL_OFF, takes_extra_buffer

Source = str | bytes | Mapping[str, object]

CONFIG, QUANTISATION = "config.json", "hf_quant_config.json"
# `get_context_length`: the first of these counts, and a model without any gets 2048. Only pure Mamba has none.
CONTEXT_FIELDS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
CONTEXT_OF_PURE_MAMBA = 2048
# What the names of a recurrent part's fields have in them in the configurations of model-geometry.md: an unknown type
# without any is called dense, which helps more than “unknown”.
STATE_WORDS = ("mamba", "ssm", "linear_", "lightning", "conv", "cca", "state_size", "lru_", "attn_type", "hybrid")


def read_config(config: Source, quantisation: Source | None = None) -> Geometry:
    """The geometry of a config.json, given as text, bytes or a parsed object; `quantisation` is hf_quant_config.json.

    Raises ModelRefusedError, and nothing else, for whatever cannot be sized.
    """
    values = object_of(config, CONFIG)
    if is_draft(values):
        raise ModelRefusedError("draft", "architectures", "It is a draft model: it has KV and keeps no state.")
    outer = Fields(values)
    row, inner = _row(outer)
    layout = row.read(inner)
    if not layout.state_layers:
        raise ModelRefusedError("no_state_pool", "", "Every layer has attention only: there is no state pool to size.")
    return _geometry(outer, inner, row, layout, quantisation)


def _row(outer: Fields) -> tuple[Row, Fields]:
    """The table's row of a model, and where its fields are."""
    model_type = outer.text("model_type")
    if not model_type:
        raise outer.missing("model_type", "It says which family a model is of.")
    if model_type in ROWS:
        return ROWS[model_type], outer
    if wrapper := WRAPPERS.get(model_type):
        if wrapper.flat:
            inside = outer.inner(wrapper.field) if outer.has(wrapper.field) else outer
            return ROWS[wrapper.inner], inside.over(outer)
        return ROWS[wrapper.inner], outer.inner(wrapper.field)
    raise _no_row(outer, model_type)


def _no_row(outer: Fields, model_type: str) -> ModelRefusedError:
    if model_type in NOT_SERVED:
        return ModelRefusedError(
            "not_served", "model_type", f"SGLang 0.5.23 has no {NOT_SERVED[model_type]} model, so it sizes no pools."
        )
    inner = [outer.inner(field) for field in ("text_config", "llm_config") if outer.is_object(field)]
    names = [name for place in (outer, *inner) for name in place.names()]
    recurrent = any(word in name for name in names for word in STATE_WORDS)
    if recurrent or not any("attention_heads" in name for name in names):
        return ModelRefusedError(
            "unknown", "model_type", f"model_type {shown(model_type)} is none that this tool has a rule for."
        )
    return ModelRefusedError(
        "dense",
        "model_type",
        f"model_type {shown(model_type)} is a model with attention layers only: there is no state pool to size.",
    )


def _geometry(outer: Fields, inner: Fields, row: Row, layout: Layout, quantisation: Source | None) -> Geometry:
    architecture = _architecture(outer)
    quantised = None if quantisation is None else Fields(object_of(quantisation, QUANTISATION))
    heads = layout.query_heads or (_stated(inner, "num_attention_heads") if layout.kv else 0)
    return Geometry(
        model_type=outer.text("model_type") or "",
        architecture=architecture,
        family=layout.family,
        layers=layout.layers,
        state_layers=layout.state_layers,
        kv_layers=layout.kv_layers,
        state=layout.state,
        kv=layout.kv,
        ssm_dtype_checkpoint=_checkpoint_dtype(inner) if row.reads_ssm_dtype else None,
        bfloat16_only=row.bfloat16_only,
        replayssm=row.replayssm and layout.family in ("GDN", "KDA"),
        attention_heads=heads,
        kv_heads=_kv_heads(inner, layout, heads),
        context_length=_context_length(inner, layout),
        extra_buffer=None if architecture is None else takes_extra_buffer(architecture),
        kv_dtype_auto=kv_dtype_auto(outer, inner, quantised),
        draft_layers=_stated(inner, "num_nextn_predict_layers") or _stated(inner, "mtp_num_hidden_layers"),
        multimodal=_multimodal(outer, architecture),
        side_elements=layout.side_elements,
        notes=_notes(inner, row),
    )


def _multimodal(outer: Fields, architecture: str | None) -> bool:
    """A language model inside a wrapper counts as multimodal (`is_multimodal`), unless the file says otherwise."""
    wrapped = (outer.text("model_type") or "") in WRAPPERS
    return wrapped and architecture not in MULTIMODAL_OFF and not outer.true("language_model_only")


def _architecture(outer: Fields) -> str | None:
    names = outer.items("architectures") if outer.has("architectures") else ()
    if not names:
        return None
    if not isinstance(names[0], str):
        raise outer.wrong("architectures", "be a list of names")
    return names[0]


def _stated(inner: Fields, field: str) -> int:
    """A count that may be absent, null or 0."""
    return inner.whole(field, low=0) if inner.has(field) else 0


def _kv_heads(inner: Fields, layout: Layout, heads: int) -> int:
    if isinstance(layout.kv, Gqa):
        return layout.kv.kv_heads
    if isinstance(layout.kv, SlidingGqa):
        return layout.kv.full.kv_heads
    return (_stated(inner, "num_key_value_heads") or heads) if layout.kv else 0


def _checkpoint_dtype(inner: Fields) -> StateDtype | None:
    """mamba_ssm_dtype, if it is one the engine knows; of any other name it warns and takes float32."""
    name = inner.text("mamba_ssm_dtype")
    known: tuple[StateDtype, ...] = get_args(StateDtype)
    return next((dtype for dtype in known if dtype == name), None)


def _context_length(inner: Fields, layout: Layout) -> int | None:
    for field in CONTEXT_FIELDS:
        if inner.has(field):
            return min(int(_rope_factor(inner) * inner.whole(field)), MAX_WIDTH)
    return None if layout.kv else CONTEXT_OF_PURE_MAMBA


def _rope_factor(inner: Fields) -> float:
    """By how much rope scaling stretches the context: not where the file states the original length, nor for llama3."""
    for field in ("rope_scaling", "rope_parameters"):
        if inner.is_object(field):
            rope = inner.inner(field)
            stretched = rope.has("original_max_position_embeddings") or rope.says("rope_type", "llama3")
            return 1 if stretched or not rope.has("factor") else rope.number("factor")
    return 1


def _notes(inner: Fields, row: Row) -> tuple[str, ...]:
    """Dtypes that a reader of the file would expect to count (trap 4 of model-geometry.md)."""
    unread = ["mamba_ssm_cache_dtype"] + ([] if row.reads_ssm_dtype else ["mamba_ssm_dtype"])
    return tuple(
        f"{inner.name(field)} is in the file, and SGLang does not read it for this model type."
        for field in unread
        if inner.has(field)
    )
