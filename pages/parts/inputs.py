"""The sidebar: every field of Scenario as a widget, grouped, in the words of the flags.

A widget's key is its field's name, so there is nothing to translate. Widgets have no bounds of their own where a
reader can type: the core says in a sentence what is wrong, and what was typed stays.
"""

from collections.abc import Callable
from typing import Any, get_args

import streamlit as st

from sizing.curves import L_HIGH, L_LOW
from sizing.scenario import DEFAULTS, FIELDS, KvDtype, SplitMode, SsmDtype, Strategy, extra, label
from sizing.units import count

OCTAVE = 8  # notches of the L slider in each doubling; 9,216 is one of them
DRAFT_TOKENS = 16  # the slider's end; a link or a file may ask for more
DCP_SIZES = (1, 2, 4, 8, 16, 32, 64)
SPLITS = {"ratio": "ratio", "balanced": "balanced", "pin": "pin"}


def draw_sliders() -> None:
    """The inputs one explores by moving: L, D and dcp_size."""
    _context()
    _slider("D", range(max(DRAFT_TOKENS, _whole("D")) + 1))
    _slider("dcp_size", sorted({*DCP_SIZES, _whole("dcp_size")}))


def draw_inputs() -> None:
    """All other inputs."""
    left, right = st.columns(2)
    _choice("mamba_ssm_dtype", get_args(SsmDtype), left)
    _choice("kv_cache_dtype", get_args(KvDtype), right)
    _number("rest_gib", step=0.5, format="%.3f")
    _split()
    _choice("mamba_radix_cache_strategy", get_args(Strategy))
    _folded("Scheduler and cache", _scheduler, *SCHEDULER)
    _folded("Limits", _limits, *LIMITS)
    _folded("Byte constants", _bytes, *BYTES)


def keep(*names: str) -> None:
    """Hold on to values whose widgets are not drawn in this run, or are new to it; Streamlit would drop them.

    Only then: a value that is set beside a widget that stands already makes the browser draw that widget again.
    """
    for name in names:
        st.session_state[name] = st.session_state.get(name, DEFAULTS[name])


SCHEDULER = ("disable_overlap_schedule", "skip_decode_lock", "disable_radix_cache", "pp_size", "page_size")
LIMITS = ("max_running_requests", "max_total_tokens", "context_length")
BYTES = (
    "name",
    "state_bytes_per_slot",
    "conv_bytes_per_slot",
    "state_bytes_dtype",
    "kv_bytes_per_token",
    "kv_bytes_dtype",
    "draft_kv_bytes_per_token",
)


def context_notches() -> list[int]:
    """The stops of the L slider [tokens]: eight to each doubling from 256 to 1M."""
    octaves = (L_HIGH // L_LOW).bit_length() - 1
    return [L_LOW * 2**octave * (OCTAVE + step) // OCTAVE for octave in range(octaves) for step in range(OCTAVE)] + [
        L_HIGH
    ]


def _context() -> None:
    """L twice: a logarithmic slider to explore and a box to type an exact number."""
    state = st.session_state
    typed = state["L"]
    if isinstance(typed, int) and L_LOW <= typed <= L_HIGH and typed not in context_notches():
        state["L_typed"] = typed  # stays a stop of the slider, or the slider would be a new one at each move
    notches = sorted({*context_notches(), state.get("L_typed", L_LOW)})
    if typed in notches and state.get("L_slider") != typed:
        state["L_slider"] = typed
    st.select_slider(
        str(FIELDS["L"].title),
        notches,
        format_func=count,
        key="L_slider",
        on_change=_take_slider,
        help=FIELDS["L"].description,
    )
    st.number_input("L, exact", value=None, key="L", step=256, label_visibility="collapsed", help="Type an exact L.")


def _take_slider() -> None:
    st.session_state["L"] = st.session_state["L_slider"]


def _split() -> None:
    """The three ways to split, and the one number that belongs to the way that is chosen."""
    st.segmented_control(
        str(FIELDS["split"].title),
        get_args(SplitMode),
        format_func=SPLITS.__getitem__,
        required=True,
        key="split",
        help=FIELDS["split"].description,
    )
    if st.session_state["split"] == "ratio":
        _number("mamba_full_memory_ratio", step=0.1, format="%.5g")
    else:
        keep("mamba_full_memory_ratio")
    if st.session_state["split"] == "pin":
        _number("max_mamba_cache_size", step=1)
    else:
        keep("max_mamba_cache_size")


def _scheduler() -> None:
    for name in ("disable_overlap_schedule", "skip_decode_lock", "disable_radix_cache"):
        st.toggle(label(name), key=name, help=FIELDS[name].description)
    _number("pp_size", step=1)
    _number("page_size", step=16)


def _limits() -> None:
    _number("max_running_requests", step=1, placeholder="unset")
    _number("max_total_tokens", step=1024, placeholder="unset")
    _number("context_length", step=1024)


def _bytes() -> None:
    st.text_input("Name on the figures", key="name", max_chars=60, help=FIELDS["name"].description)
    _number("state_bytes_per_slot", step=1, typed="state_bytes_source")
    _number("conv_bytes_per_slot", step=1, placeholder="unknown", typed="state_bytes_source")
    _choice("state_bytes_dtype", get_args(SsmDtype))
    _number("kv_bytes_per_token", step=1, typed="kv_bytes_source")
    _choice("kv_bytes_dtype", get_args(KvDtype))
    _number("draft_kv_bytes_per_token", step=1)
    sources = st.session_state["state_bytes_source"], st.session_state["kv_bytes_source"]
    st.caption(f"Slot bytes: {sources[0]}. Token bytes: {sources[1]}.")


def _folded(title: str, draw: Callable[[], None], *names: str) -> None:
    """A group that is closed until something in it differs from its default."""
    changed = any(st.session_state[name] != DEFAULTS[name] for name in names)
    with st.expander(title, expanded=changed):
        draw()


def _whole(name: str) -> int:
    value = st.session_state[name]
    return value if isinstance(value, int) else 0


def _slider(name: str, options: "range | list[int]") -> None:
    st.select_slider(_title(name), list(options), key=name, help=_help(name))


def _choice(name: str, options: tuple[str, ...], place: Any = st) -> None:
    place.selectbox(_title(name), options, key=name, help=_help(name))


def _number(name: str, *, typed: str | None = None, **more: Any) -> None:
    """A number to type. `typed` names the field that then says the value was typed in."""
    if typed:
        more |= {"on_change": _mark_typed, "args": (typed,)}
    st.number_input(_title(name), value=None, key=name, help=_help(name), **more)  # None: it may be emptied


def _mark_typed(source: str) -> None:
    st.session_state[source] = "typed in"


def _title(name: str) -> str:
    unit = extra(name, "unit")
    return f"{FIELDS[name].title} [{unit}]" if unit else str(FIELDS[name].title)


def _help(name: str) -> str:
    flag = extra(name, "flag")
    return f"`{flag}`: {FIELDS[name].description}" if flag else str(FIELDS[name].description)
