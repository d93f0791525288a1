"""What a reader's session remembers: the only file that touches Streamlit's.

Every input is held here, in the form of its widget. Those that are drawn have a key of their own beside it, the name of
their field, in which their widget's value stands; Streamlit drops it with the widget. The others have none: Streamlit
walks all keys several times in every run. Its other keys are the boxes of single pages, and what a page notes for a
later run.
"""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import streamlit as st

from sizing.scenario.from_model import FILLED, geometry_of
from sizing.scenario.inputs import DEFAULTS, INPUTS
from sizing.scenario.rest import OWN_DEPLOYMENT

TYPED = frozenset(name for name, own in INPUTS.items() if own.widget == "typed") | {"L", "rest_gib"}
"""Numbers that are typed as text."""
KEPT_BOX = "stood in "  # before the name of a box; no other key begins with it
WHOLE = "whole_page"  # that more was set than what a move draws again, so that the whole page has to be drawn
HELD, DRAWN = "held", "drawn"
SLIDERS = "sliders"  # how many sliders of L there were


# --- anything that is noted ------------------------------------------------------------------------------


def noted(key: str, otherwise: Any = None) -> Any:
    """What was noted under a key, or stands in the box of that key."""
    return st.session_state.get(key, otherwise)


def note(key: str, value: Any) -> None:
    """Remember a value under a key; into a box it goes before the box is drawn."""
    st.session_state[key] = value


def noted_first(key: str, value: Any) -> Any:
    """What was noted under a key, which is `value` from now on where nothing was."""
    return st.session_state.setdefault(key, value)


def forget(*keys: str) -> None:
    """Drop what was noted."""
    for key in keys:
        st.session_state.pop(key, None)


def stood(key: str, first: Any) -> Any:
    """What stands in the box under `key`, or stood there when its page was left; `first` where it was never drawn."""
    if key in st.session_state:
        return st.session_state[key]
    return st.session_state.get(KEPT_BOX + key, first)


def fill(key: str, value: Any) -> None:
    """What the box under `key` will hold when its page is drawn."""
    st.session_state[KEPT_BOX + key] = value
    if key in st.session_state and st.session_state[key] != value:
        st.session_state[key] = value


def keep_boxes() -> None:
    """What stands in the boxes of a page now is what stood in them when it was left."""
    for key in [key for key in st.session_state if str(key).startswith(KEPT_BOX)]:
        box = str(key).removeprefix(KEPT_BOX)
        if box in st.session_state:
            st.session_state[key] = st.session_state[box]


# --- the inputs of a scenario ----------------------------------------------------------------------------


def put(name: str, value: object) -> None:
    """Set one input in the form that its widget holds, drawn or not."""
    boxed = ("" if value is None else str(value)) if name in TYPED else value
    st.session_state.setdefault(HELD, dict(DEFAULTS))[name] = boxed
    if name in st.session_state.get(DRAWN, ()):
        st.session_state[name] = boxed


def boxed(name: str) -> Any:
    """What stands in an input, in the form of its widget."""
    return standing(name)[name]


def unboxed(name: str) -> Any:
    """What stands in an input, unchecked, with an empty box as None."""
    return _unboxed(name, boxed(name))


def _unboxed(name: str, value: Any) -> Any:
    return (value.strip() or None) if name in TYPED and isinstance(value, str) else value


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def is_set(name: str) -> bool:
    """Whether something else than the default stands in an input."""
    default = DEFAULTS[name]
    return bool(unboxed(name) != (str(default) if name in TYPED and default is not None else default))


def stated() -> SimpleNamespace:
    """The inputs as they stand, unchecked, and the attention layers of the model: for the registry's conditions."""
    values = {name: _unboxed(name, value) for name, value in standing().items()}
    if values["model"]:
        values["attention"] = geometry_of(values["model"]).attention
    return SimpleNamespace(**values)


def draw_these(names: Iterable[str]) -> None:
    """Say which inputs have a widget in this run; those that had none in the run before get their values back.

    Only those: a value that is set beside a widget that stands already makes the browser draw that widget again.
    """
    now, before = frozenset(names), st.session_state.get(DRAWN, frozenset())
    for name in now - before:
        st.session_state[name] = st.session_state[HELD][name]
    if gone := before - now:
        st.session_state[HELD] |= standing(*gone)
        forget(*gone)
    st.session_state[DRAWN] = now


def restore() -> None:
    """Set every input as it stood when the page before was drawn; a new page's widgets know nothing."""
    forget(*st.session_state.get(DRAWN, ()), DRAWN, "model_drawn")
    new_slider()


def new_slider() -> None:
    """The slider of L that is drawn next is a new one."""
    note(SLIDERS, noted(SLIDERS, 0) + 1)


def take(values: dict[str, Any]) -> None:
    """Set every input, as a link does."""
    for name, value in values.items():
        put(name, value)
    forget("rest_seen", "rest_gone", "rest_drafts")  # the next rest that stands belongs to the inputs beside it


def standing(*names: str) -> dict[str, Any]:
    """What stands in these inputs, or in each, in the form of its widget; where none is drawn, what is held."""
    state = st.session_state
    drawn, held = state.get(DRAWN, frozenset()), state.get(HELD, DEFAULTS)
    found = held if not names else {name: held[name] for name in names}
    return found | {name: state.get(name, held[name]) for name in found.keys() & drawn}


def hold() -> dict[str, Any]:
    """Remember what stands in the inputs, and give it unchecked, with empty boxes as None.

    What a model fills in is left out where one is chosen.
    """
    held = st.session_state[HELD] = standing()
    filled = FILLED if held["model"] else ()
    return {name: _unboxed(name, value) for name, value in held.items() if name not in filled}


def settle_rest() -> None:
    """A rest that was typed for one deployment does not stay for another: the box is emptied, and the page says so.

    Called before the boxes are drawn. Both typed at once, the rest is the new deployment's.
    """
    state = st.session_state
    now = standing()
    here = tuple(_unboxed(name, now[name]) for name in OWN_DEPLOYMENT)
    rest, seen = str(now["rest_gib"] or "").strip(), state.get("rest_seen")
    if seen and rest and rest == seen[0] and here != seen[1]:
        state["rest_gone"] = rest
        rest = ""
        put("rest_gib", "")
        put("rest_source", DEFAULTS["rest_source"])
    elif seen and (rest, here) != seen:
        state.pop("rest_gone", None)
    if rest and not (seen and rest == seen[0]):
        state["rest_drafts"] = bool(_whole(now["D"]))  # for which it was typed
    state["rest_seen"] = (rest, here)
