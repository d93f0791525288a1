"""What a catalogued model fills in: the byte constants of a scenario, at its own widths and dtypes.

Source: model-geometry.md through `sizing.models`. Nothing here is rounded: every number is the engine's integer.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from sizing.basics.dtypes import STATE_ITEMSIZE, KvDtype, StateDtype
from sizing.basics.units import count, number
from sizing.basics.working_step import Step
from sizing.memory.weights.table import ROWS
from sizing.models.catalogue import Entry, catalogue, entry
from sizing.models.geometry import (
    Geometry,
    draft_kv_bytes_per_token,
    kv_bytes_per_token,
    ring_bytes_per_request,
    state_bytes,
)
from sizing.models.kv import SWA_FULL_TOKENS_RATIO, Dsa, SlidingGqa
from sizing.models.pipeline import charged_bytes, most_kv_layers, stages
from sizing.models.reading import read_config
from sizing.models.refusal import ModelRefusedError
from sizing.models.summary import layers_in_words
from sizing.releases.architectures import INDEX_PAGE_KEYS
from sizing.releases.rules import LATEST, Release, Rules, rules_of
from sizing.specification import token_equiv

# The fields of a scenario that follow from its model; they are typed in only where no model is named.
FILLED = (
    "family",
    "attention",
    "kv_heads",
    "architecture",
    "index_page_tokens",
    "state_bytes_per_slot",
    "conv_bytes_per_slot",
    "conv_kernel",
    "state_bytes_dtype",
    "conv_bytes_dtype",
    "state_bytes_all_stages",
    "state_bytes_source",
    "kv_bytes_per_token",
    "kv_bytes_dtype",
    "kv_bytes_dcp_size",
    "kv_bytes_source",
    "window_bytes_per_token",
    "sliding_window",
    "ring_bytes_per_position",
    "side_bytes_per_slot",
)
DEFAULT_KERNEL = 4  # the width of nearly every short convolution; counts only where there is one


INKLING_RATIO = 0.1  # engine-sizing.md section 11: --mamba-full-memory-ratio unset, in every release that has Inkling


class Widths(NamedTuple):
    """How a model is spread over ranks, the dtypes that run, and the release whose rules count."""

    tp_size: int
    attn_dp_size: int
    dcp_size: int
    pp_size: int
    ssm: StateDtype
    conv: StateDtype
    kv: KvDtype
    release: Release = LATEST
    draft_layers: int | None = None
    """Layers of the draft model whose rows are like the target's; None: not stated."""
    own_draft: bool = False
    """Whether the draft is the checkpoint's own MTP layer where its layers are not stated."""

    @property
    def attn_tp_size(self) -> int:
        """Ranks that share the heads of one attention layer."""
        return self.tp_size // self.attn_dp_size


@cache
def geometry_of(model: str) -> Geometry:
    """The geometry of a catalogued model, by its name, that of one of the same shapes, or the name without its owner.

    Raises KeyError, or ModelRefusedError for one that cannot be sized.
    """
    found = entry_of(model)
    return read_config(found.config, found.quantisation)


def entry_of(model: str) -> Entry:
    """The catalogue's entry for such a name. Raises KeyError."""
    return entry(_ids()[model.lower()])


@cache
def _ids() -> dict[str, str]:
    """Every name in lower case to the entry's id; a short name that two owners share is left out."""
    whole = {name.lower(): item.id for item in catalogue() for name in (*_twins(item), item.id)}
    short: dict[str, set[str]] = {}
    for name, id in whole.items():
        short.setdefault(name.partition("/")[2], set()).add(id)
    return {name: ids.pop() for name, ids in short.items() if len(ids) == 1} | whole


def _twins(item: Entry) -> tuple[str, ...]:
    """Checkpoints of the same shapes that are named in full, without the remark that may follow the name."""
    named = (name.partition(" (")[0] for name in item.same_shapes)
    return tuple(name for name in named if re.fullmatch(r"[\w.-]+/[\w.-]+", name))


# How checkpoints name their weights' quantisation, which changes no shape.
_QUANTISED = re.compile(
    r"[-_.](?:fp8|nvfp4|mxfp4|fp4|bf16|awq|gptq|autoround|w\d+a\d+|int[48]|[48]bit|dynamic|block|mtp|channelwise)$"
)


def named_in(path: str, *, quantised: bool = False) -> str | None:
    """The catalogue's id for a model path as servers are started with: a name, a folder, a cache's snapshot.

    With `quantised` also that of the checkpoint whose weights it quantises: for where measured bytes confirm it.

    >>> named_in("/data/hub/models--moonshotai--Kimi-K3/snapshots/9f62e4e9"), named_in("/models/Qwen3.8-27B")
    ('moonshotai/Kimi-K3', 'Qwen/Qwen3.5-27B')
    """
    cached = re.search(r"models--([\w.-]+?)--([\w.-]+)", path)
    whole = "/".join(cached.groups()) if cached else path.rstrip("/")
    found = _ids().get(whole.lower())
    last = whole.rpartition("/")[2].lower()
    while found is None and last:
        found = _ids().get(last)
        shorter = _QUANTISED.sub("", last) if quantised else ""
        last = shorter if shorter != last else ""
    return found


@cache
def servable() -> tuple[str, ...]:
    """The catalogued models that have both pools, in the catalogue's order."""
    return tuple(item.id for item in catalogue() if _is_servable(item.id))


@cache
def names() -> tuple[str, ...]:
    """The same, and every checkpoint of the same shapes, in order of the alphabet."""
    found = {name for item in catalogue() if _is_servable(item.id) for name in (item.id, *_twins(item))}
    return tuple(sorted(found, key=str.lower))


def _is_servable(model: str) -> bool:
    try:
        return geometry_of(model).attention != "none"
    except ModelRefusedError:
        return False


@cache
def filled(model: str | Geometry, widths: Widths) -> Mapping[str, Any]:
    """The FILLED fields of a scenario with this model [bytes per rank], and the draft's where its layers are stated.

    A name is one of the catalogue. Raises KeyError for any other, and ModelRefusedError.
    """
    geometry = geometry_of(model) if isinstance(model, str) else model
    tp, rules = widths.attn_tp_size, rules_of(widths.release)
    across = stages(geometry, widths.pp_size)
    whole = state_bytes(geometry, tp, widths.ssm, widths.conv)
    folded = rules.spec_ring == "on every slot"
    ring = ring_bytes_per_request(geometry, tp, 1, widths.conv, folded=folded)
    row, window = _row_bytes(geometry, widths, rules)
    found = {
        "family": _family(geometry),
        "attention": geometry.attention,
        "kv_heads": geometry.gqa_heads,
        "architecture": geometry.architecture or "",
        "index_page_tokens": _index_page(geometry),
        "state_bytes_per_slot": charged_bytes(geometry, whole.total, across),
        "conv_bytes_per_slot": charged_bytes(geometry, whole.conv, across),
        "conv_kernel": getattr(geometry.state, "kernel", DEFAULT_KERNEL),
        "state_bytes_dtype": widths.ssm,
        "conv_bytes_dtype": widths.conv,
        "state_bytes_all_stages": whole.total if widths.pp_size > 1 else None,
        "state_bytes_source": "model geometry",
        "kv_bytes_per_token": row,
        "kv_bytes_dtype": widths.kv,
        "kv_bytes_dcp_size": widths.dcp_size,
        "kv_bytes_source": "model geometry",
        "window_bytes_per_token": window,
        "sliding_window": geometry.kv.window if isinstance(geometry.kv, SlidingGqa) else None,
        "ring_bytes_per_position": charged_bytes(geometry, ring, across) or None,
        "side_bytes_per_slot": geometry.side_elements * STATE_ITEMSIZE[widths.conv],
    }
    if widths.draft_layers is not None:
        found["draft_kv_bytes_per_token"] = draft_bytes(geometry, widths)
    elif widths.own_draft and (layers := own_draft_layers(geometry)):
        found["draft_kv_bytes_per_token"] = draft_bytes(geometry, widths._replace(draft_layers=layers))
    return MappingProxyType(found)


def own_draft_layers(geometry: Geometry) -> int:
    """Attention layers of the checkpoint's own MTP layer as a draft; 0 where it has none.

    Qwen3-Next's config.json does not say it: the engine sets num_nextn_predict_layers to 1 for its draft
    (configs/model_config.py, _config_draft_model).
    """
    row = ROWS.get(geometry.model_type)
    return geometry.draft_layers or int(row is not None and row.draft_unsaid)


def _row_bytes(geometry: Geometry, widths: Widths, rules: Rules) -> tuple[int, int]:
    """A row of the full KV pool on the stage with most of it, and of the window pool [bytes per rank]."""
    tp, layers = widths.attn_tp_size, most_kv_layers(stages(geometry, widths.pp_size))
    if isinstance(geometry.kv, SlidingGqa):
        return geometry.kv.parts(layers, tp, widths.kv)
    known, dcp = _released(geometry, widths, rules)
    return kv_bytes_per_token(known, tp, widths.kv, dcp, layers), 0


def _released(geometry: Geometry, widths: Widths, rules: Rules) -> tuple[Geometry, int]:
    """The geometry as the release counts its KV, and the dcp_size that a row follows."""
    if not isinstance(geometry.kv, Dsa):
        return geometry, rules.heads_dcp(widths.dcp_size)
    if rules.pools_index_keys:
        return geometry, widths.dcp_size
    return geometry.model_copy(update={"kv": geometry.kv.model_copy(update={"index_kpool": 1})}), 1


def suggested(geometry: Geometry, release: Release = LATEST) -> dict[str, Any]:
    """What a checkpoint itself asks for, as fields of a scenario: what runs unless flags say otherwise."""
    auto = geometry.kv_dtype_auto
    asked = geometry.ssm_dtype_checkpoint if rules_of(release).reads_checkpoint_dtype else None
    return {
        "mamba_ssm_dtype": "bfloat16" if geometry.bfloat16_only else asked or "float32",
        "kv_cache_dtype": "fp8_e4m3" if auto.startswith("fp8") else "bfloat16",
        **({"context_length": geometry.context_length} if geometry.context_length else {}),
    }


def draft_bytes(geometry: Geometry, widths: Widths) -> int:
    """One KV row of a draft whose layers are like the target's [bytes per rank], by default the model's own head.

    0 where it has none. Source: engine-sizing.md section 3; rounded as the release rounds it.
    """
    rules, layers = rules_of(widths.release), most_kv_layers(stages(geometry, widths.pp_size))
    known, dcp = _released(geometry, widths, rules)
    return draft_kv_bytes_per_token(
        known,
        widths.attn_tp_size,
        widths.kv,
        1 if isinstance(known.kv, Dsa) else dcp,
        widths.draft_layers,
        layers=layers,
        with_target=rules.rounds_draft_with_target,
    )


def draft_steps(geometry: Geometry, widths: Widths) -> tuple[Step, ...]:
    """The KV row of the draft head that comes with a model, as a formula; empty without one."""
    size = draft_bytes(geometry, widths)
    if not size or isinstance(geometry.kv, Dsa | SlidingGqa):
        return ()
    row = kv_bytes_per_token(geometry, widths.attn_tp_size, widths.kv, widths.dcp_size)
    return (
        Step(
            quantity="Draft KV bytes per token, its own head",
            formula="int(KV bytes x draft layers / attention layers)",
            numbers=f"int({count(row)} x {geometry.draft_layers} / {len(geometry.kv_layers)})",
            result=count(size),
        ),
    )


def stage_steps(geometry: Geometry, widths: Widths, fields: Mapping[str, Any]) -> tuple[Step, ...]:
    """What pipeline stages leave of the bytes, as formulas; empty without stages."""
    if widths.pp_size == 1:
        return ()
    across = stages(geometry, widths.pp_size)
    whole = state_bytes(geometry, widths.attn_tp_size, widths.ssm, widths.conv).total
    state, kv = (max(len(layers) for layers in kind) for kind in zip(*(stage[1:] for stage in across), strict=True))
    return (
        Step(
            quantity="State bytes per slot, largest stage",
            formula="int(bytes per slot x state layers of the stage / all state layers)",
            numbers=f"int({count(whole)} x {state} / {len(geometry.state_layers)})",
            result=count(fields["state_bytes_per_slot"]),
        ),
        Step(
            quantity="KV bytes per token, stage with most attention",
            formula="the row of its attention layers",
            numbers=f"{kv} of {len(geometry.kv_layers)} attention layers",
            result=count(_token_bytes(geometry, widths, fields)),
        ),
    )


def _index_page(geometry: Geometry) -> int | None:
    """The page [tokens] of a sparse index: 64 keys, each of index_kpool tokens (engine-sizing.md section 11)."""
    if isinstance(geometry.kv, Dsa):
        return INDEX_PAGE_KEYS * geometry.kv.index_kpool
    return INDEX_PAGE_KEYS if geometry.attention == "QSA" else None


def _family(geometry: Geometry) -> str:
    """ReplaySSM is asked for by family, so a GDN that the engine gives no rings (GigaChat) counts as other."""
    if geometry.family in ("GDN", "KDA"):
        return geometry.family if geometry.replayssm else "other"
    return "Mamba2" if geometry.family == "Mamba2" else "other"


def _token_bytes(geometry: Geometry, widths: Widths, fields: Mapping[str, Any]) -> int:
    """What a token costs on the stage with most of it, its default share of a window pool too [bytes per rank]."""
    if isinstance(geometry.kv, SlidingGqa):
        layers = most_kv_layers(stages(geometry, widths.pp_size))
        return geometry.kv.row_bytes(layers, widths.attn_tp_size, widths.dcp_size, widths.kv)
    return int(fields["kv_bytes_per_token"])


def costs_in_words(name: str, geometry: Geometry, widths: Widths) -> tuple[str, str]:
    """What a slot and a token cost on one rank: a headline, and the price of the one in the other.

    Raises ModelRefusedError for widths that the model cannot have.
    """
    bytes_here, dcp = filled(geometry, widths), widths.dcp_size
    slot, row = bytes_here["state_bytes_per_slot"], _token_bytes(geometry, widths, bytes_here)
    windows = ""
    if isinstance(geometry.kv, SlidingGqa):
        windows = f" A token counts with its share of the window pool, {SWA_FULL_TOKENS_RATIO:g} of a row by default."
    ssm = state_bytes(geometry, widths.attn_tp_size, widths.ssm, widths.conv).ssm
    dtypes = f"{widths.ssm} SSM and {widths.kv} KV" if ssm else f"{widths.kv} KV"
    token, equiv = "a token", "token_equiv"
    if dcp > 1:
        token, equiv = f"a KV row of dcp_size {dcp} tokens", "token_equiv x dcp_size"
    spread = f"TP{widths.attn_tp_size}" + (f", {widths.pp_size} stages" if widths.pp_size > 1 else "")
    price = f"One slot costs as much as {number(token_equiv(slot, row) * dcp)} KV tokens ({equiv})"
    return (
        f"{name}: a slot costs {count(slot)} bytes, {token} {count(row)} bytes on one rank at {spread}",
        f"{layers_in_words(geometry)} {price}, at {dtypes}.{windows}",
    )
