"""The sidebar: every field of Scenario as a widget, grouped, in the words of the flags.

A widget's key is its field's name, so there is nothing to translate. Whole numbers are typed as text and widgets have
no bounds of their own: the core says in a sentence what is wrong, and what was typed stays. (Streamlit's number box
reads 1e18 as 1 and 32K as 32.)

Every widget is given what stands in it as its default too. Streamlit says what the session holds only once, with the
run that set it, and a browser that draws the widget after a later run (its code loads late, a reader was quick) would
draw it empty, a slider at its first stop, and send that back as the reader's own. The key alone is a widget's
identity, so another default makes no new widget and takes nothing away.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain
from sizing.answers.curves import L_HIGH, L_LOW
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.units import count, tokens_from_text
from sizing.bootlog.pasted import EXAMPLE, settle
from sizing.models import Geometry
from sizing.models.gpus import ALL_GPUS
from sizing.models.kv import SWA_FULL_TOKENS_RATIO
from sizing.releases.rules import RELEASES
from sizing.scenario.from_model import FILLED, INKLING_RATIO, geometry_of, names, suggested
from sizing.scenario.inputs import (
    DEFAULT_RATIO,
    DEFAULTS,
    FIELDS,
    Algorithm,
    Attention,
    AttentionBackend,
    Family,
    LinearBackend,
    MoeBackend,
    ReplaySsm,
    Role,
    Scenario,
    SplitMode,
    Strategy,
    Transfer,
    extra,
    label,
    read_scenario,
)
from sizing.scenario.rest import OTHER, OWN_DEPLOYMENT

OCTAVE = 8  # notches of the L slider in each doubling; 9,216 is one of them
DRAFT_TOKENS = 16  # the slider's end; a link or a file may ask for more
DCP_SIZES = (1, 2, 4, 8, 16, 32, 64)
TYPED_BYTES = ""  # no model: how a scenario writes it
WINDOWED = "GQA and sliding window"  # the attention of a model with a window pool
SPLITS = {"ratio": "ratio", "balanced": "balanced", "pin": "pin"}


def draw_sliders() -> None:
    """The inputs one explores by moving: L, D and dcp_size; how to split, which a figure sets too, is draw_split."""
    _context()
    _slider("D", range(max(DRAFT_TOKENS, _whole("D")) + 1))
    _slider("dcp_size", _dcp_sizes())


def draw_inputs() -> tuple[DeltaGenerator, DeltaGenerator]:
    """All other inputs; gives the places among them where it is said whose rest it is, and for how to split."""
    _model()
    _gpu()
    rest = _rest()
    _folded("Memory before the boot", _memory, *MEMORY)
    left, right = st.columns(2)
    _choice("mamba_ssm_dtype", get_args(StateDtype), left)
    _choice("kv_cache_dtype", get_args(KvDtype), right)
    split = st.container()
    _choice("mamba_radix_cache_strategy", get_args(Strategy))
    _choice("release", RELEASES[::-1])
    _folded("Scheduler and cache", _scheduler, *SCHEDULER)
    _folded("Speculation", _speculation, *SPECULATION)
    _folded("Ranks and roles", _ranks, *RANKS)
    _folded("Limits", _limits, *LIMITS)
    if st.session_state["model"]:
        _folded("Name and conv dtype", _names, *NAMES)
    else:
        _folded("Byte constants", _bytes, *BYTES)
    return rest, split


def keep(*names: str) -> None:
    """Set values again whose widgets were not drawn in the run before; Streamlit drops or empties those.

    Only then: a value that is set beside a widget that stands already makes the browser draw that widget again.
    """
    held = st.session_state.get("held", DEFAULTS)
    for name in names:
        there = st.session_state.get(name)
        put(name, held[name] if there in (None, "") else there)


def restore() -> None:
    """Set every input as it stood when the page before was drawn."""
    for name, value in st.session_state.get("held", {}).items():
        st.session_state[name] = value


def put(name: str, value: object) -> None:
    """Set one input in the form that its widget holds."""
    st.session_state[name] = ("" if value is None else str(value)) if name in TYPED else value


def standing() -> dict[str, Any]:
    """What stands in each input, in the form of its widget; remembered where the widget is not drawn."""
    state = st.session_state
    held = state.get("held", DEFAULTS)
    undrawn = {name for split, name in SPLIT_NUMBERS.items() if split != state.get("split")}
    undrawn |= set(FILLED) if state.get("model") else set()
    there = state.to_dict()  # each look into the session by itself costs as much as a widget
    return {name: there[name] if name in there and name not in undrawn else held[name] for name in DEFAULTS}


def hold() -> dict[str, Any]:
    """Remember what stands in the inputs, and give it unchecked, with empty boxes as None.

    What a model fills in is left out where one is chosen.
    """
    st.session_state["held"] = standing()
    filled = FILLED if st.session_state["held"]["model"] else ()
    return {name: _unboxed(name, value) for name, value in st.session_state["held"].items() if name not in filled}


def settle_rest() -> None:
    """A rest that was typed for one deployment does not stay for another: the box is emptied, and the page says so.

    Called before the boxes are drawn. Both typed at once, the rest is the new deployment's.
    """
    state = st.session_state
    here = tuple(_unboxed(name, value) for name, value in standing().items() if name in OWN_DEPLOYMENT)
    rest, seen = str(state.get("rest_gib") or "").strip(), state.get("rest_seen")
    if seen and rest and rest == seen[0] and here != seen[1]:
        state["rest_gone"] = rest
        rest, state["rest_gib"], state["rest_source"] = "", "", DEFAULTS["rest_source"]
    elif seen and (rest, here) != seen:
        state.pop("rest_gone", None)
    if rest and not (seen and rest == seen[0]):
        state["rest_drafts"] = bool(_whole("D"))  # for which it was typed
    state["rest_seen"] = (rest, here)


def forget_rest() -> None:
    """The next rest that stands belongs to the inputs beside it: those of a link."""
    for name in ("rest_seen", "rest_gone", "rest_drafts"):
        st.session_state.pop(name, None)


def _unboxed(name: str, value: Any) -> Any:
    return (value.strip() or None) if name in TYPED and isinstance(value, str) else value


LIVE = ("L", "D", "dcp_size", "split", "mamba_full_memory_ratio", "max_mamba_cache_size")  # drawn with every move
WHOLE = "whole_page"  # in the session: other inputs were set too, so that the whole page has to be drawn


def take_inputs(values: dict[str, Any]) -> None:
    """Set inputs from a hand on a figure, as if they were typed; what is no scenario changes nothing."""
    if not values.keys() <= DEFAULTS.keys():
        return
    way = next((way for way, name in SPLIT_NUMBERS.items() if name in values), None)
    ways = {"split": way} if way else {}
    found = read_scenario({**hold(), **values, **ways})
    if not isinstance(found, Scenario):
        return
    for name in (*values, *ways):
        put(name, getattr(found, name))
    if "rest_gib" in values:
        _mark_typed("rest_source")
    st.session_state[WHOLE] = not values.keys() <= set(LIVE)


# The number that belongs to a way to split; its box is drawn for that way alone.
SPLIT_NUMBERS = {"ratio": "mamba_full_memory_ratio", "pin": "max_mamba_cache_size"}
SCHEDULER = (
    "disable_overlap_schedule",
    "skip_decode_lock",
    "disable_radix_cache",
    "page_size",
    "mamba_track_interval",
    "linear_attn_backend",
    "attention_backend",
    "enable_unified_memory",
    "enable_hierarchical_cache",
    "enable_int8_mamba_checkpoint",
)
SPECULATION = (
    "speculative_algorithm",
    "speculative_eagle_topk",
    "speculative_num_steps",
    "draft_kv_layers",
    "draft_kv_bytes_per_token",
    "replayssm",
    "linear_replayssm_cache_len",
    "ring_bytes_per_position",
)
MEMORY = (
    "mem_fraction_static",
    "free_gib",
    "weights_bytes",
    "draft_weights_bytes",
    "language_only",
    "chunked_prefill_size",
    "cuda_graph_max_bs",
    "moe_a2a_backend",
)
RANKS = (
    "attn_dp_size",
    "state_bytes_all_stages",
    "disaggregation_mode",
    "disaggregation_decode_enable_radix_cache",
    "disaggregation_decode_extra_slots",
    "disaggregation_transfer_backend",
)
LIMITS = ("max_running_requests", "max_total_tokens", "context_length", "swa_full_tokens_ratio")
# Numbers without a slider that may be empty or must be exact: typed as text.
TYPED = (
    "L",
    "max_mamba_cache_size",
    "page_size",
    "index_page_tokens",
    "mamba_track_interval",
    "speculative_eagle_topk",
    "speculative_num_steps",
    "draft_kv_layers",
    "draft_kv_bytes_per_token",
    "linear_replayssm_cache_len",
    "ring_bytes_per_position",
    "tp_size",
    "attn_dp_size",
    "pp_size",
    "state_bytes_all_stages",
    "max_running_requests",
    "max_total_tokens",
    "context_length",
    "state_bytes_per_slot",
    "conv_bytes_per_slot",
    "conv_kernel",
    "kv_heads",
    "kv_bytes_per_token",
    "kv_bytes_dcp_size",
    "window_bytes_per_token",
    "sliding_window",
    "side_bytes_per_slot",
    "disaggregation_decode_extra_slots",
    "rest_gib",
    "gpu_memory_mib",
    "free_gib",
    "mem_fraction_static",
    "weights_bytes",
    "draft_weights_bytes",
    "chunked_prefill_size",
    "cuda_graph_max_bs",
)
NAMES = ("name", "mamba_conv_dtype")
BYTES = (
    "name",
    "architecture",
    "index_page_tokens",
    "family",
    "state_bytes_per_slot",
    "conv_bytes_per_slot",
    "conv_kernel",
    "state_bytes_dtype",
    "conv_bytes_dtype",
    "mamba_conv_dtype",
    "attention",
    "kv_heads",
    "kv_bytes_per_token",
    "kv_bytes_dtype",
    "kv_bytes_dcp_size",
    "window_bytes_per_token",
    "sliding_window",
    "side_bytes_per_slot",
)


@cache
def context_notches() -> tuple[int, ...]:
    """The stops of the L slider [tokens]: eight to each doubling from 256 to 1M."""
    starts = [L_LOW * 2**octave for octave in range((L_HIGH // L_LOW).bit_length() - 1)]
    return (*(start * (OCTAVE + step) // OCTAVE for start in starts for step in range(OCTAVE)), L_HIGH)


def _context() -> None:
    """L twice: a logarithmic slider to explore and a box to type an exact number."""
    state = st.session_state
    typed = _typed_length(state["L"])
    if typed is not None and typed not in context_notches():
        state["L_typed"] = typed  # stays a stop of the slider, or the slider would be a new one at each move
    notches = sorted({*context_notches(), state.get("L_typed", L_LOW)})
    if typed is not None and state.get("L_slider") != typed:
        state["L_slider"] = typed
    st.select_slider(
        _title("L"),
        notches,
        value=state.get("L_slider", L_LOW),
        format_func=count,
        key="L_slider",
        on_change=_take_slider,
        help=FIELDS["L"].description,
    )
    hint = "tokens, such as 9216 or 32K"
    st.text_input("L, exact", state["L"], key="L", label_visibility="collapsed", placeholder=hint)


def _typed_length(text: object) -> int | None:
    """Where the slider stands for the L in the box [tokens]: at its end where L lies beyond."""
    try:
        return min(max(int(str(tokens_from_text(text))), L_LOW), L_HIGH)
    except ValueError:
        return None


def _take_slider() -> None:
    st.session_state["L"] = str(st.session_state["L_slider"])


def _model() -> None:
    """A catalogued model, or bytes that are typed in."""
    state = st.session_state
    if state["model"] != state.get("model_drawn"):
        if not state["model"]:
            keep(*FILLED)
        state["model_drawn"] = state["model"]
    models = list(dict.fromkeys((TYPED_BYTES, *names(), state["model"])))
    st.selectbox(
        _title("model"),
        models,
        index=models.index(state["model"]),
        format_func=lambda model: model.partition("/")[2] or "none: bytes typed in",
        key="model",
        on_change=_take_model,
        help=_help("model"),
    )


OWN = "config.json: "  # how a scenario is named that came from a file


def take_suggested(geometry: Geometry) -> None:
    """What a checkpoint asks for, where no flag says otherwise: its dtypes and its context."""
    for name, value in suggested(geometry).items():
        put(name, value)
    if st.session_state.get("mamba_full_memory_ratio") in (DEFAULT_RATIO, INKLING_RATIO):
        put("mamba_full_memory_ratio", INKLING_RATIO if geometry.attention == WINDOWED else DEFAULT_RATIO)


def _take_model() -> None:
    """A model brings its own dtypes and context; leaving it brings its bytes into the boxes."""
    state = st.session_state
    if state["model"]:
        if str(state.get("name", "")).startswith(OWN):
            state["name"] = ""  # of the file before
        take_suggested(geometry_of(state["model"]))
    elif state.get("filled_of") == state.get("model_drawn"):
        for name, value in state.get("filled", {}).items():
            put(name, value)
            state["held"][name] = state[name]


def _gpu() -> None:
    """The hardware and what is loaded on it."""
    options = ("", *(gpu.name for gpu in ALL_GPUS), OTHER)
    names = {"": "not stated", OTHER: "other: state its memory"}
    st.selectbox(
        _title("gpu"),
        options,
        options.index(st.session_state["gpu"]),
        format_func=lambda name: names.get(name, name),
        key="gpu",
        help=_help("gpu"),
    )
    if st.session_state["gpu"] == OTHER:
        _typed("gpu_memory_mib", placeholder="memory.total of nvidia-smi")
    width, stages, stored = st.columns([2, 2, 3])
    with width:
        _typed("tp_size")
    with stages:
        _typed("pp_size")
    stored.selectbox(
        _title("checkpoint"),
        tuple(CHECKPOINTS),
        tuple(CHECKPOINTS).index(st.session_state["checkpoint"]),
        format_func=CHECKPOINTS.__getitem__,
        key="checkpoint",
        help=_help("checkpoint"),
    )


CHECKPOINTS = {
    "auto": "as named",
    "bf16": "bf16",
    "fp8": "FP8 block",
    "mxfp4": "MXFP4 experts",
    "nvfp4": "NVFP4 experts",
}


def _rest() -> DeltaGenerator:
    """rest, empty where it is not stated; where the number comes from is said below it once it is known."""
    st.text_input(
        _title("rest_gib"),
        st.session_state["rest_gib"],
        key="rest_gib",
        help=_help("rest_gib"),
        placeholder="not stated",
        on_change=_mark_typed,
        args=("rest_source",),
    )
    said = st.empty()
    with st.popover("Paste a line that settles it", width="stretch"):
        st.text_area("A line of the boot log, or nvidia-smi", key="paste_rest", placeholder=EXAMPLE, on_change=_settle)
    if words := st.session_state.get("rest_said"):
        st.caption(plain(words))
    return said


def _settle() -> None:
    """Take what a pasted text settles; the words for it stay until the next paste."""
    state = st.session_state
    text, state["paste_rest"] = str(state.get("paste_rest") or ""), ""
    if not text.strip():
        return
    filled = FILLED if state["model"] else ()
    found = read_scenario({name: _unboxed(name, value) for name, value in standing().items() if name not in filled})
    if not isinstance(found, Scenario):
        state["rest_said"] = "Correct the inputs first."
        return
    pasted = settle(text, found)
    for name, value in pasted.values.items():
        put(name, value)
    state["rest_said"] = pasted.words


def _memory() -> None:
    for name, hint in (("mem_fraction_static", "automatic"), ("free_gib", "as seen on such GPUs")):
        _real(name, hint)
    _typed("weights_bytes", placeholder="counted")
    _typed("draft_weights_bytes", placeholder="the checkpoint's MTP layer")
    _toggle("language_only")
    _typed("chunked_prefill_size", placeholder="automatic")
    _typed("cuda_graph_max_bs", placeholder="automatic")
    _choice("moe_a2a_backend", get_args(MoeBackend))


def _real(name: str, placeholder: str) -> None:
    """A real number that may be left empty; typed as text, which Streamlit can empty again."""
    st.text_input(_title(name), st.session_state[name], key=name, help=_help(name), placeholder=placeholder)


def _dcp_sizes() -> list[int]:
    """Widths that the attention TP can be shared by; whatever is set stays."""
    try:
        width = int(st.session_state["tp_size"]) // int(st.session_state["attn_dp_size"])
    except (ValueError, ZeroDivisionError):
        width = 0
    fit = [size for size in DCP_SIZES if width and width % size == 0]
    return sorted({1, *fit, _whole("dcp_size")})


def draw_split() -> None:
    """The three ways to split, and the one number that belongs to the way that is chosen."""
    st.segmented_control(
        str(FIELDS["split"].title),
        get_args(SplitMode),
        format_func=SPLITS.__getitem__,
        default=st.session_state["split"],
        required=True,
        key="split",
        help=FIELDS["split"].description,
    )
    split = st.session_state["split"]
    if split != st.session_state.get("split_drawn"):
        keep(*SPLIT_NUMBERS.values())
        st.session_state["split_drawn"] = split
    if split == "ratio":
        _number("mamba_full_memory_ratio", step=0.1, format="%.5g")
    elif split == "pin":
        _typed("max_mamba_cache_size")


def _scheduler() -> None:
    for name in ("disable_overlap_schedule", "skip_decode_lock", "disable_radix_cache"):
        _toggle(name)
    _typed("page_size")
    _typed("mamba_track_interval")
    _choice("linear_attn_backend", get_args(LinearBackend))
    _choice("attention_backend", get_args(AttentionBackend))
    for name in ("enable_unified_memory", "enable_hierarchical_cache", "enable_int8_mamba_checkpoint"):
        _toggle(name)


def _speculation() -> None:
    _choice("speculative_algorithm", get_args(Algorithm))
    _typed("speculative_eagle_topk")
    _typed("speculative_num_steps", placeholder="D - 1")
    if st.session_state["model"]:
        _typed("draft_kv_layers", placeholder="the model's own MTP layer")
    _typed("draft_kv_bytes_per_token", placeholder="from the layers, else 0")
    _choice("replayssm", get_args(ReplaySsm))
    _typed("linear_replayssm_cache_len")
    if not st.session_state["model"]:
        _typed("ring_bytes_per_position", placeholder="unknown")


def _ranks() -> None:
    _typed("attn_dp_size")
    if not st.session_state["model"]:
        _typed("state_bytes_all_stages", placeholder="unknown")
    _choice("disaggregation_mode", get_args(Role))
    _toggle("disaggregation_decode_enable_radix_cache")
    _typed("disaggregation_decode_extra_slots", placeholder="twice the requests, or none")
    _choice("disaggregation_transfer_backend", get_args(Transfer))


def _limits() -> None:
    _typed("max_running_requests", placeholder="unset")
    _typed("max_total_tokens", placeholder="unset")
    _typed("context_length")
    model = st.session_state["model"]
    if not model or geometry_of(model).attention == WINDOWED:
        _number("swa_full_tokens_ratio", placeholder=f"{SWA_FULL_TOKENS_RATIO}")


def _names() -> None:
    _name()
    _choice("mamba_conv_dtype", get_args(StateDtype))


def _name() -> None:
    title = "Name on the figures"
    st.text_input(
        title,
        st.session_state["name"],
        key="name",
        max_chars=60,
        help=FIELDS["name"].description,
        placeholder="model and TP width",
    )


def _bytes() -> None:
    _name()
    st.text_input(
        _title("architecture"), st.session_state["architecture"], key="architecture", help=_help("architecture")
    )
    _typed("index_page_tokens", placeholder="none")
    _choice("family", get_args(Family))
    _typed("state_bytes_per_slot", source="state_bytes_source")
    _typed("conv_bytes_per_slot", source="state_bytes_source", placeholder="unknown")
    _typed("conv_kernel")
    for name in ("state_bytes_dtype", "conv_bytes_dtype", "mamba_conv_dtype"):
        _choice(name, get_args(StateDtype))
    _choice("attention", get_args(Attention))
    _typed("kv_heads", placeholder="GQA only")
    _typed("kv_bytes_per_token", source="kv_bytes_source")
    _choice("kv_bytes_dtype", get_args(KvDtype))
    _typed("kv_bytes_dcp_size")
    _typed("window_bytes_per_token")
    _typed("sliding_window", placeholder="none")
    _typed("side_bytes_per_slot")
    sources = st.session_state["state_bytes_source"], st.session_state["kv_bytes_source"]
    st.caption(plain(f"Slot bytes: {sources[0]}. Token bytes: {sources[1]}."))


def _folded(title: str, draw: Callable[[], None], *names: str) -> None:
    """A group that is closed until something in it differs from its default, and then stays as the reader has it."""
    opened, filled = f"{title} opened", FILLED if st.session_state["model"] else ()
    names = tuple(name for name in names if name not in filled)
    if any(_unboxed(name, st.session_state[name]) != _boxed_default(name) for name in names):
        st.session_state[opened] = True
    with st.expander(title, expanded=st.session_state.get(opened, False)):
        draw()


def _boxed_default(name: str) -> Any:
    default = DEFAULTS[name]
    return str(default) if name in TYPED and default is not None else default


def _whole(name: str) -> int:
    value = st.session_state[name]
    return value if isinstance(value, int) else 0


def _slider(name: str, options: "range | list[int]") -> None:
    st.select_slider(_title(name), list(options), st.session_state[name], key=name, help=_help(name))


def _toggle(name: str) -> None:
    st.toggle(label(name), st.session_state[name], key=name, help=FIELDS[name].description)


def _choice(name: str, options: tuple[str, ...], place: Any = st) -> None:
    place.selectbox(_title(name), options, options.index(st.session_state[name]), key=name, help=_help(name))


def _number(name: str, **more: Any) -> None:
    """A real number to type; emptied it goes back to what it was."""
    st.number_input(_title(name), value=st.session_state[name], key=name, help=_help(name), **more)


def _typed(name: str, *, source: str | None = None, **more: Any) -> None:
    """A whole number to type. `source` names the field that then says the value was typed in."""
    if source:
        more |= {"on_change": _mark_typed, "args": (source,)}
    st.text_input(_title(name), st.session_state[name], key=name, help=_help(name), **more)


def _mark_typed(source: str) -> None:
    st.session_state[source] = "typed in"


def _title(name: str) -> str:
    unit = extra(name, "unit")
    return f"{FIELDS[name].title} [{unit}]" if unit else str(FIELDS[name].title)


def _help(name: str) -> str:
    flag = extra(name, "flag")
    return f"`{flag}`: {FIELDS[name].description}" if flag else str(FIELDS[name].description)
