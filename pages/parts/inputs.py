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
from typing import Any, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from sizing.answers.curves import L_HIGH, L_LOW
from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.units import count, tokens_from_text
from sizing.models import Geometry
from sizing.releases.rules import RELEASES
from sizing.scenario.from_model import FILLED, geometry_of, names, suggested
from sizing.scenario.inputs import (
    DEFAULTS,
    FIELDS,
    Algorithm,
    Attention,
    Family,
    ReplaySsm,
    Role,
    Scenario,
    SplitMode,
    Strategy,
    extra,
    label,
    read_scenario,
)

OCTAVE = 8  # notches of the L slider in each doubling; 9,216 is one of them
DRAFT_TOKENS = 16  # the slider's end; a link or a file may ask for more
DCP_SIZES = (1, 2, 4, 8, 16, 32, 64)
TYPED_BYTES = ""  # no model: how a scenario writes it
SPLITS = {"ratio": "ratio", "balanced": "balanced", "pin": "pin"}


def draw_sliders() -> None:
    """The inputs one explores by moving: L, D and dcp_size; how to split, which a figure sets too, is draw_split."""
    _context()
    _slider("D", range(max(DRAFT_TOKENS, _whole("D")) + 1))
    _slider("dcp_size", _dcp_sizes())


def draw_inputs() -> DeltaGenerator:
    """All other inputs; gives the place among them for how to split."""
    _model()
    left, right = st.columns(2)
    _choice("mamba_ssm_dtype", get_args(StateDtype), left)
    _choice("kv_cache_dtype", get_args(KvDtype), right)
    _number("rest_gib", step=0.5, format="%.3f")
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
    return split


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
    return {name: state[name] if name in state and name not in undrawn else held[name] for name in DEFAULTS}


def hold() -> dict[str, Any]:
    """Remember what stands in the inputs, and give it unchecked, with empty boxes as None.

    What a model fills in is left out where one is chosen.
    """
    st.session_state["held"] = standing()
    filled = FILLED if st.session_state["held"]["model"] else ()
    return {name: _unboxed(name, value) for name, value in st.session_state["held"].items() if name not in filled}


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
    st.session_state[WHOLE] = not values.keys() <= set(LIVE)


# The number that belongs to a way to split; its box is drawn for that way alone.
SPLIT_NUMBERS = {"ratio": "mamba_full_memory_ratio", "pin": "max_mamba_cache_size"}
SCHEDULER = (
    "disable_overlap_schedule",
    "skip_decode_lock",
    "disable_radix_cache",
    "extra_buffer_supported",
    "page_size",
    "mamba_track_interval",
)
SPECULATION = (
    "speculative_algorithm",
    "draft_kv_bytes_per_token",
    "replayssm",
    "linear_replayssm_cache_len",
    "ring_bytes_per_position",
)
RANKS = ("tp_size", "attn_dp_size", "pp_size", "state_bytes_all_stages", "disaggregation_mode")
LIMITS = ("max_running_requests", "max_total_tokens", "context_length")
# Whole numbers without a slider: typed as text.
TYPED = (
    "L",
    "max_mamba_cache_size",
    "page_size",
    "mamba_track_interval",
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
)
NAMES = ("name", "mamba_conv_dtype")
BYTES = (
    "name",
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
)


def context_notches() -> list[int]:
    """The stops of the L slider [tokens]: eight to each doubling from 256 to 1M."""
    starts = [L_LOW * 2**octave for octave in range((L_HIGH // L_LOW).bit_length() - 1)]
    return [start * (OCTAVE + step) // OCTAVE for start in starts for step in range(OCTAVE)] + [L_HIGH]


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
    toggles = ["disable_overlap_schedule", "skip_decode_lock", "disable_radix_cache"]
    for name in toggles if st.session_state["model"] else [*toggles, "extra_buffer_supported"]:
        st.toggle(label(name), st.session_state[name], key=name, help=FIELDS[name].description)
    _typed("page_size")
    _typed("mamba_track_interval")


def _speculation() -> None:
    _choice("speculative_algorithm", get_args(Algorithm))
    _typed("draft_kv_bytes_per_token")
    _choice("replayssm", get_args(ReplaySsm))
    _typed("linear_replayssm_cache_len")
    if not st.session_state["model"]:
        _typed("ring_bytes_per_position", placeholder="unknown")


def _ranks() -> None:
    for name in ("tp_size", "attn_dp_size", "pp_size"):
        _typed(name)
    if not st.session_state["model"]:
        _typed("state_bytes_all_stages", placeholder="unknown")
    _choice("disaggregation_mode", get_args(Role))


def _limits() -> None:
    _typed("max_running_requests", placeholder="unset")
    _typed("max_total_tokens", placeholder="unset")
    _typed("context_length")


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
    sources = st.session_state["state_bytes_source"], st.session_state["kv_bytes_source"]
    st.caption(f"Slot bytes: {sources[0]}. Token bytes: {sources[1]}.")


def _folded(title: str, draw: Callable[[], None], *names: str) -> None:
    """A group that is closed until something in it differs from its default, and then stays as the reader has it."""
    opened = f"{title} opened"
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
