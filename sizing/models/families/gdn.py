"""Gated delta net: Qwen3-Next, Qwen3.5, Jet-Nemotron, GigaChat 3.5.

Source: model-geometry.md section 3, rows GDN and GDN + MLA.
"""

from sizing.models.families.common import Layout, gqa, head_dim, mla, others, typed_layers, where
from sizing.models.fields import Fields
from sizing.models.state import Mamba2State


def qwen(fields: Fields) -> Layout:
    """Every full_attention_interval-th layer has attention; layer_types is in the file and the engine ignores it."""
    layers = fields.layers()
    if not fields.has("full_attention_interval"):
        raise fields.missing("full_attention_interval", "The engine reads no other field for the layer split.")
    interval = fields.whole("full_attention_interval")
    attention = tuple(range(interval - 1, layers, interval))
    return Layout(
        family="GDN",
        layers=layers,
        state_layers=others(layers, attention),
        kv_layers=attention,
        state=_linear_state(fields),
        kv=gqa(fields, fields.whole("head_dim")),  # hidden_size // heads would be wrong for every Qwen3.5
    )


QWEN4_TYPES = {
    "linear_attention": "state",
    **dict.fromkeys(("full_attention", "qwen_sparse_attention", "indexed_attention"), "kv"),
}
# `QSAProfile`: all five must be there once one of them is, with one index head, and blocks that its kernel can sort.
INDEXER = ("indexer_n_heads", "indexer_kv_heads", "indexer_head_dim", "indexer_budget", "indexer_compress_ratio")
INDEXER_BLOCKS = (512, 2048)
INDEX_ITEMSIZE = 2  # bfloat16, unless --qsa-indexer-dtype says otherwise


def qwen4_exp(fields: Fields) -> Layout:
    """Qwen3-Next's state; layer_types, where it is there, decides the layers; an indexer adds a compressed key.

    Source: running-server.md section 3.2 (`Qwen4ExpTextConfig`, `qsa/config.py`, SGLang 0.5.23).
    """
    if fields.has("layer_types"):
        kinds = typed_layers(fields, "layer_types", QWEN4_TYPES)
        attention, layers = where(kinds, "kv"), len(kinds)
        state, kv = _linear_state(fields), gqa(fields, fields.whole("head_dim"))
        found = Layout("GDN", layers, others(layers, attention), attention, state, kv)
    else:
        found = qwen(fields)
    if fields.has("indexer_n_heads"):
        kv = gqa(fields, fields.whole("head_dim"))
        found = found._replace(kv=kv.model_copy(update={"kind": "QSA", "index_bytes": _index_bytes(fields)}))
    return found._replace(side_elements=_ple_elements(fields))


def _index_bytes(fields: Fields) -> int:
    """The compressed index key of one token in one layer [bytes]; refused where the engine refuses the indexer."""
    for field in INDEXER:
        fields.whole(field)
    if fields.whole("indexer_kv_heads") != 1:
        raise fields.wrong("indexer_kv_heads", "be 1")
    ratio, budget = fields.whole("indexer_compress_ratio", low=2), fields.whole("indexer_budget")
    if budget % ratio or budget // ratio not in INDEXER_BLOCKS:
        blocks = " or ".join(str(blocks * ratio) for blocks in INDEXER_BLOCKS)
        raise fields.wrong("indexer_budget", f"be {blocks} (512 or 2048 times indexer_compress_ratio)")
    return fields.whole("indexer_head_dim") * INDEX_ITEMSIZE // ratio


def _ple_elements(fields: Fields) -> int:
    """The short-conv states of per-layer embeddings, one for each distinct layer in ple_layer_ids; 0 without."""
    layers = set(fields.wholes("ple_layer_ids")) if fields.has("ple_layer_ids") else ()
    if not layers:
        return 0
    kernel, ngram, streams = (
        fields.whole(field) if fields.has(field) else default for field, default in PLE_DEFAULTS.items()
    )
    return len(layers) * fields.whole("hidden_size") * streams * (kernel - 1) * ngram


PLE_DEFAULTS = {"ple_conv_kernel_size": 4, "ngram_size": 3, "hc_count": 4}  # `Qwen4ExpTextConfig.__init__`


def jet(fields: Fields) -> Layout:
    """Layers by type; sliding-window layers keep every token, like full ones."""
    kinds = typed_layers(fields, "layer_types", {"jet": "state", "attn": "kv", "swa": "kv"})
    block = fields.inner("efficient_attention_config").inner("jet")
    heads, keys = block.whole("num_heads"), block.whole("head_dim")
    values = int(keys * block.number("expand_v"))  # 96 x 2.6666666667 is 256: the engine truncates
    return Layout(
        family="GDN",
        layers=len(kinds),
        state_layers=where(kinds, "state"),
        kv_layers=where(kinds, "kv"),
        state=Mamba2State(
            inner=heads * values,
            groups=heads,
            heads=heads,
            head_dim=values,
            state_size=keys,
            kernel=block.whole("conv_size"),
        ),
        kv=gqa(fields, head_dim(fields)),
    )


GIGACHAT_TYPES = {"linear_attention": "state", "attention": "kv", "full_attention": "kv"}


def gigachat(fields: Fields) -> Layout:
    """Layers by type, else all but full_attention_layers [0-indexed]; attention is latent."""
    layers = fields.layers()
    if fields.has("layer_types"):
        attention = where(typed_layers(fields, "layer_types", GIGACHAT_TYPES), "kv")
    else:
        attention = tuple(sorted(set(fields.wholes("full_attention_layers"))))
        if attention and attention[-1] >= layers:
            raise fields.wrong("full_attention_layers", f"hold layers below {layers:,} (num_hidden_layers)")
    return Layout(
        family="GDN",
        layers=layers,
        state_layers=others(layers, attention),
        kv_layers=attention,
        state=_linear_state(fields),
        kv=mla(fields),
    )


def _linear_state(fields: Fields) -> Mamba2State:
    value_heads, value_dim = fields.whole("linear_num_value_heads"), fields.whole("linear_value_head_dim")
    return Mamba2State(
        inner=value_heads * value_dim,
        groups=fields.whole("linear_num_key_heads"),
        heads=value_heads,
        head_dim=value_dim,
        state_size=fields.whole("linear_key_head_dim"),
        kernel=fields.whole("linear_conv_kernel_dim"),
    )
