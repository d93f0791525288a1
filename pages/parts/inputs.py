"""The sidebar: the inputs of a scenario as the registry tells them, in its groups and its order.

Widgets have no bounds of their own: the core says in a sentence what is wrong, and what was typed stays. Whole numbers
are typed as text. (Streamlit's number box reads 1e18 as 1 and 32K as 32.)

Every widget is given what stands in it as its default too. Streamlit says what the session holds only once, with the
run that set it, and a browser that draws the widget after a later run (its code loads late, a reader was quick) would
draw it empty, a slider at its first stop, and send that back as the reader's own. The key alone is a widget's
identity, so another default makes no new widget and takes nothing away.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import state
from pages.parts.blocks import plain
from sizing.answers.curves import L_HIGH, L_LOW, stepped_lengths
from sizing.basics.numeric import divisors
from sizing.basics.units import count, tokens_from_text
from sizing.bootlog.pasted import EXAMPLE, settle
from sizing.models import Geometry
from sizing.models.gpus import ALL_GPUS
from sizing.releases.rules import RELEASES
from sizing.scenario.from_model import FILLED, INKLING_RATIO, geometry_of, names, suggested
from sizing.scenario.inputs import DEFAULT_RATIO, FIELDS, INPUTS, MAX_DCP, Scenario, label, read_scenario
from sizing.scenario.registry import CONDITIONS, OPEN, WINDOWED, Group
from sizing.scenario.rest import OTHER

OCTAVE = 8  # notches of the L slider in each doubling; 9,216 is one of them
DRAFT_TOKENS = 16  # the slider's end; a link or a file may ask for more
TYPED_BYTES = ""  # no model: how a scenario writes it
FOLD = "fold: {}"  # in the session: whether a group is open
OWN = "config.json: "  # how a scenario is named that came from a file
# What one explores by moving, here or on a figure: a move redraws these and the page, and nothing else.
LIVE = ("L", "D", "dcp_size", "split", "mamba_full_memory_ratio", "max_mamba_cache_size")
# The number that belongs to a way to split; its box is drawn for that way alone.
SPLIT_NUMBERS = {"ratio": "mamba_full_memory_ratio", "pin": "max_mamba_cache_size"}
# Inputs that share a row where both are drawn, and how wide each is beside the other.
SIDE_BY_SIDE: dict[tuple[str, ...], tuple[int, int]] = {
    ("gpu", "tp_size"): (5, 2),
    ("mamba_ssm_dtype", "kv_cache_dtype"): (1, 1),
    ("D", "max_running_requests"): (3, 4),
    ("mamba_radix_cache_strategy", "release"): (1, 1),
}
SPLITS = {"ratio": "ratio", "balanced": "balanced", "pin": "pin"}
# What the options of a choice are called, where their own names do not say it, and their order where it is another.
WORDS: dict[str, dict[str, str]] = {
    "checkpoint": {
        "auto": "as named", "bf16": "bf16", "fp8": "FP8 block", "mxfp4": "MXFP4 experts", "nvfp4": "NVFP4 experts",
    },
}  # fmt: skip
OPTIONS: dict[str, tuple[str, ...]] = {"release": RELEASES[::-1]}
NUMBERS: dict[str, dict[str, Any]] = {"mamba_full_memory_ratio": {"step": 0.1, "format": "%.5g"}}


class Places(NamedTuple):
    """Where in the sidebar something is drawn later in the run."""

    live: Mapping[str, DeltaGenerator]
    """Of each of LIVE that this page may have."""
    drawn: Mapping[str, Any]
    """The inputs that stand already, and what was drawn in them."""
    rest: DeltaGenerator | None
    """Where it is said whose rest it is."""


def draw_inputs(counting: Collection[str]) -> Places:
    """Every input of `counting` but those of LIVE, for which a place is left; what does not count here is held."""
    stated = state.stated()
    closed = {group for group in get_args(Group) if group not in OPEN and not _is_open(group, counting)}
    drawn = [
        name
        for name, own in INPUTS.items()
        if name in counting and (name in LIVE or (own.group not in closed and _is_drawn(name, stated)))
    ]
    stands = tuple(name for name in drawn if name not in LIVE)
    state.draw_these((*stands, *(name for name in drawn if name in LIVE and _is_drawn(name, stated))))
    places: dict[str, DeltaGenerator] = {}
    for group in get_args(Group):
        inside = [name for name in drawn if INPUTS[name].group == group and name not in SPLIT_NUMBERS.values()]
        if group in OPEN:
            _rows(inside, places)
        elif any(INPUTS[name].group == group and _is_drawn(name, stated) for name in counting):
            _folded(group, inside)
    rest = places.pop("rest_gib", None)
    if "split" in places:  # in one place with the way to split: a fragment may write to no place that stood empty
        places |= {name: places["split"] for name in SPLIT_NUMBERS.values() if name in drawn}
    return Places(places, {name: state.boxed(name) for name in stands}, rest)


def draw_live(places: Places) -> None:
    """The inputs of LIVE, each in its place.

    A change of any other input draws the whole page. One that differs here comes from a browser that had not yet
    received what the last run set in that box, as a model sets dtypes. The box shows what was set, so that holds.
    """
    for name, value in places.drawn.items():
        if state.boxed(name) != value:
            state.put(name, value)
    stated = state.stated()
    live = [name for name in places.live if _is_drawn(name, stated)]
    state.draw_these((*places.drawn, *live))
    for name in live:
        with places.live[name]:
            _draw(name)


def take_inputs(values: dict[str, Any]) -> None:
    """Set inputs from a hand on a figure, as if they were typed; what is no scenario changes nothing."""
    if not values.keys() <= INPUTS.keys():
        return
    way = next((way for way, name in SPLIT_NUMBERS.items() if name in values), None)
    ways = {"split": way} if way else {}
    found = read_scenario({**state.hold(), **values, **ways})
    if not isinstance(found, Scenario):
        return
    for name in (*values, *ways):
        state.put(name, getattr(found, name))
    if "rest_gib" in values:
        _mark_typed("rest_source")
    state.note(state.WHOLE, not values.keys() <= set(LIVE))


def _is_drawn(name: str, stated: SimpleNamespace) -> bool:
    own = INPUTS[name]
    filled_in = stated.model and name in FILLED
    return own.widget != "none" and not filled_in and (not own.hidden or CONDITIONS[own.counts](stated))


def _rows(inside: list[str], places: dict[str, DeltaGenerator]) -> None:
    """Inputs in order, two in a row where they belong together; what is drawn later leaves its place."""
    while inside:
        widths = SIDE_BY_SIDE.get(tuple(inside[:2]), (1,))
        row, inside = inside[: len(widths)], inside[len(widths) :]
        for name, column in zip(row, st.columns(widths) if len(row) > 1 else [st.container()], strict=True):
            if name in LIVE:
                places[name] = column
            elif name == "rest_gib":
                box, said = column.columns((5, 4), vertical_alignment="bottom")
                places[name] = said.empty()
                with box:
                    _draw(name)
                with column:
                    _paste()
            else:
                with column:
                    _draw(name)


def _is_open(title: Group, counting: Collection[str]) -> bool:
    """Whether a folded group is open: from when something in it differs from its default, then as the reader has it."""
    opened = f"{title} opened"
    if not state.noted(opened) and any(state.is_set(name) for name in counting if INPUTS[name].group == title):
        state.note(opened, True)
        state.note(FOLD.format(title), True)
    return bool(state.noted(FOLD.format(title), False))


def _folded(title: Group, inside: Iterable[str]) -> None:
    """A group that is folded; what is in it is drawn while it is open, which keeps page and moves light."""
    with st.expander(title, key=FOLD.format(title), on_change="rerun"):
        for name in inside:
            _draw(name)
        if inside and title == "Byte constants":
            sources = state.boxed("state_bytes_source"), state.boxed("kv_bytes_source")
            st.caption(plain(f"Slot bytes: {sources[0]}. Token bytes: {sources[1]}."))


def _draw(name: str) -> None:
    own = INPUTS[name]
    (OWN_WIDGETS[name] if own.widget == "own" else WIDGETS[own.widget])(name)


def _toggle(name: str) -> None:
    st.toggle(label(name), state.boxed(name), key=name, help=FIELDS[name].description)


def _choice(name: str) -> None:
    options, words = OPTIONS.get(name, INPUTS[name].options), WORDS.get(name, {})
    at = options.index(state.boxed(name))
    st.selectbox(_title(name), options, at, format_func=lambda one: words.get(one, one), key=name, help=_help(name))


def _number(name: str) -> None:
    """A real number to type; emptied it goes back to what it was."""
    more = {"placeholder": INPUTS[name].hint or None, **NUMBERS.get(name, {})}
    st.number_input(_title(name), value=state.boxed(name), key=name, help=_help(name), **more)


def _typed(name: str) -> None:
    """A number to type, which Streamlit can empty again; once typed its source says so."""
    own = INPUTS[name]
    more: dict[str, Any] = {"on_change": _mark_typed, "args": (own.source,)} if own.source else {}
    st.text_input(_title(name), state.boxed(name), key=name, help=_help(name), placeholder=own.hint or None, **more)


def _paste() -> None:
    """A line of a boot log, or nvidia-smi, in place of an estimate; what came of it is said until the next paste."""
    with st.popover("Paste a line that settles it", width="stretch"):
        st.text_area("A line of the boot log, or nvidia-smi", key="paste_rest", placeholder=EXAMPLE, on_change=_settle)
    if words := state.noted("rest_said"):
        st.caption(plain(words))


def _settle() -> None:
    text = str(state.noted("paste_rest") or "")
    state.note("paste_rest", "")
    if not text.strip():
        return
    found = read_scenario(state.hold())
    if not isinstance(found, Scenario):
        state.note("rest_said", "Correct the inputs first.")
        return
    pasted = settle(text, found)
    for name, value in pasted.values.items():
        state.put(name, value)
    state.note("rest_said", pasted.words)


def _mark_typed(source: str) -> None:
    state.put(source, "typed in")


def _text(name: str) -> None:
    longest = next((rule.max_length for rule in FIELDS[name].metadata if hasattr(rule, "max_length")), None)
    hint = INPUTS[name].hint or None
    st.text_input(_title(name), state.boxed(name), key=name, max_chars=longest, help=_help(name), placeholder=hint)


def _slider(name: str) -> None:
    st.select_slider(_title(name), STOPS[name](), state.boxed(name), key=name, help=_help(name))


def _draft_tokens() -> list[int]:
    return list(range(max(DRAFT_TOKENS, _whole("D")) + 1))


def _dcp_sizes() -> list[int]:
    """Widths that the attention TP can be shared by; whatever is set stays."""
    try:
        width = int(state.boxed("tp_size")) // int(state.boxed("attn_dp_size"))
    except (ValueError, ZeroDivisionError):
        width = 0
    return sorted({1, *divisors(max(width, 0), MAX_DCP), _whole("dcp_size")})


STOPS: dict[str, Callable[[], list[int]]] = {"D": _draft_tokens, "dcp_size": _dcp_sizes}


def _whole(name: str) -> int:
    value = state.boxed(name)
    return value if isinstance(value, int) else 0


def _context(name: str) -> None:
    """L twice: a logarithmic slider to explore and a box to type an exact number."""
    stands = state.boxed(name)
    typed = _typed_length(stands)
    if typed is not None and typed not in stepped_lengths(OCTAVE):
        state.note("L_typed", typed)  # stays a stop of the slider, or the slider would be a new one at each move
    notches = sorted({*stepped_lengths(OCTAVE), state.noted("L_typed", L_LOW)})
    if typed is not None and state.noted(_slider_key()) != typed:
        state.new_slider()
    st.select_slider(
        _title(name),
        notches,
        value=state.noted(_slider_key(), typed or L_LOW),
        format_func=count,
        key=_slider_key(),
        on_change=_take_slider,
        help=FIELDS[name].description,
    )
    hint = "tokens, such as 9216 or 32K"
    st.text_input("L, exact", stands, key=name, label_visibility="collapsed", placeholder=hint)


def _typed_length(text: object) -> int | None:
    """Where the slider stands for the L in the box [tokens]: at its end where L lies beyond."""
    try:
        tokens = int(str(tokens_from_text(text)))
    except ValueError:
        return None
    return min(max(tokens, L_LOW), L_HIGH) if tokens > 0 else None


def _slider_key() -> str:
    """The key of the slider that stands: a new one wherever L was set by anything else.

    A browser may still send where the one before it stood; nobody listens to that any more.
    """
    return f"L_slider_{state.noted(state.SLIDERS, 0)}"


def _take_slider() -> None:
    state.put("L", state.noted(_slider_key()))


def _model(name: str) -> None:
    """A catalogued model, or bytes that are typed in."""
    stands = state.boxed(name)
    state.note("model_drawn", stands)
    models = list(dict.fromkeys((TYPED_BYTES, *names(), stands)))
    st.selectbox(
        _title(name),
        models,
        index=models.index(stands),
        format_func=lambda model: model.partition("/")[2] or "none: bytes typed in",
        key=name,
        on_change=_take_model,
        help=_help(name),
    )


def take_suggested(geometry: Geometry) -> None:
    """What a checkpoint asks for, where no flag says otherwise: its dtypes and its context."""
    for name, value in suggested(geometry).items():
        state.put(name, value)
    if state.boxed("mamba_full_memory_ratio") in (DEFAULT_RATIO, INKLING_RATIO):
        own = INKLING_RATIO if geometry.attention == WINDOWED else DEFAULT_RATIO
        state.put("mamba_full_memory_ratio", own)


def _take_model() -> None:
    """A model brings its own dtypes and context; leaving it brings its bytes into the boxes."""
    model = state.boxed("model")
    if model:
        if str(state.boxed("name")).startswith(OWN):
            state.put("name", "")  # of the file before
        take_suggested(geometry_of(model))
    elif state.noted("filled_of") == state.noted("model_drawn"):
        for name, value in state.noted("filled", {}).items():
            state.put(name, value)


def _gpu(name: str) -> None:
    """The hardware, by a name of the table."""
    options = ("", *(gpu.name for gpu in ALL_GPUS), OTHER)
    words = {"": "not stated", OTHER: "other: state its memory"}
    at = options.index(state.boxed(name))
    st.selectbox(_title(name), options, at, format_func=lambda one: words.get(one, one), key=name, help=_help(name))


def _split(name: str) -> None:
    """The three ways to split; the number that belongs to one is drawn below it for that way alone."""
    st.segmented_control(
        _title(name),
        INPUTS[name].options,
        format_func=SPLITS.__getitem__,
        default=state.boxed(name),
        required=True,
        key=name,
        help=_help(name),
    )


def _title(name: str) -> str:
    """With its unit, where it does not say it itself."""
    title, unit = str(FIELDS[name].title), INPUTS[name].unit
    return f"{title} [{unit}]" if unit and unit not in title else title


def _help(name: str) -> str:
    flag = INPUTS[name].flag
    return f"`{flag}`: {FIELDS[name].description}" if flag else str(FIELDS[name].description)


Draw = Callable[[str], None]
WIDGETS: dict[str, Draw] = {
    "toggle": _toggle, "choice": _choice, "number": _number, "typed": _typed, "text": _text, "slider": _slider,
}  # fmt: skip
OWN_WIDGETS: dict[str, Draw] = {"L": _context, "model": _model, "gpu": _gpu, "split": _split, "rest_gib": _typed}
