"""Figures on a page: Plotly, kept mounted between reruns so that a slider move updates instead of redrawing.

plotly.js is served from the plotly package itself: nothing is fetched from the network, and nothing is written.
"""

import re
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import plotly
import streamlit as st
from pydantic_core import to_json
from streamlit.components.v1 import declare_component

from pages.parts import state
from pages.parts.blocks import plain
from pages.parts.inputs import take_inputs
from sizing.figures import DARK, LIGHT, Hand
from sizing.figures.theme import Figure

HERE = Path(__file__).parent
WIDE = (
    "crossing",
    "layers",
    "compare",
    "sweep",
    "needs",
    "occupancy",
    "fleet",
    "boot",
    "times",
    "ways",
    "ways_dearer",
)  # over the whole width; the others stand in two columns
STILL = ("crossing", "ratio", "memory")  # drawn by still.js first: they follow a slider
MARKUP = re.compile(r"<[^>]*>")
GAP = 16  # [px] between figures, as in plot.css
PLOTLY = Path(plotly.__file__).parent / "package_data"  # of the plotly package
SCRIPT = "plotly.min.js"
NO_PLOTLY = (
    f"No figures: {SCRIPT} is missing from the installed package plotly. The words and tables hold; install the "
    "package again, as requirements.lock has it."
)

_component = st.components.v2.component(
    "figures",
    html='<div class="figures"></div>',
    css="\n".join((HERE / name).read_text(encoding="utf-8") for name in ("plot.css", "data.css")),
    js="\n".join(
        (HERE / name).read_text(encoding="utf-8") for name in ("hand.js", "still.js", "data.js", "save.js", "plot.js")
    ),
    isolate_styles=False,  # Plotly puts its own styles into the document's head
)


def show_figures(
    figures: dict[str, tuple[Figure, str]],
    key: str,
    *,
    hands: Mapping[str, Hand | None] | None = None,
    headline: str = "",
) -> None:
    """Draw figures by name, each with the sentence that a screen reader says instead of it.

    A figure with a hand lets its input be dragged on it (sizing/figures/hand.py); `headline` is the line of the page
    that follows it.
    """
    if not (PLOTLY / SCRIPT).is_file():
        st.warning(plain(NO_PLOTLY))
        return
    hands = hands or {}
    # As bytes, which Streamlit passes on as they are: a dictionary it would write twice.
    data = to_json(
        {
            "plotly_url": _plotly_url(),
            "palettes": {"light": LIGHT, "dark": DARK},
            "headline": headline,
            "figures": {
                name: figure
                | {"alt": _name(figure, alt), "config": _config(name), "hand": hands.get(name)}
                | {"wide": name in WIDE, "still": name in STILL}
                for name, (figure, alt) in figures.items()
            },
        }
    )
    _component(
        key=key,
        data=data,
        height=_height({name: figure["layout"]["height"] for name, (figure, _) in figures.items()}),
        on_take_change=partial(_take, key),
    )


def _name(figure: Figure, alt: str) -> str:
    """The figure's name for a screen reader: its title first, so that no two on a page have the same."""
    title = MARKUP.sub("", figure["layout"].get("title", {}).get("text", ""))
    return alt if not title or alt.startswith(title) else f"{title}. {alt}"


def _height(heights: dict[str, int]) -> int:
    """What all figures take together [px], so that the page has its final height before a script is loaded."""
    rows: list[list[str]] = []
    for name in heights:
        beside = rows and len(rows[-1]) == 1 and not {name, *rows[-1]} & set(WIDE)
        if beside:
            rows[-1].append(name)
        else:
            rows.append([name])
    return sum(max(heights[name] for name in row) for row in rows) + GAP * (len(rows) - 1)


def _take(key: str) -> None:
    """What a hand let go of becomes the input; the browser is not trusted with it, so it is read like any input."""
    values = state.noted(key).get("take")
    if isinstance(values, dict):
        take_inputs(values)


def _config(name: str) -> dict[str, Any]:
    """The camera button saves a slide: 16:9 at twice the size, whatever the window's width."""
    image = {
        "format": "png",
        "filename": f"hybrid-pool-sizing-{name}",
        "width": 1280,
        "height": 720,
        "scale": 2,
    }
    return {
        "displaylogo": False,
        "showSendToCloud": False,  # Plotly's own button would upload the figure; nothing leaves the machine
        "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
        "toImageButtonOptions": image,
    }


@st.cache_resource
def _plotly_url() -> str:
    """The address of plotly.js below the page's own; the release in it keeps browsers from using an old copy.

    A component is Streamlit's way to serve a folder that is not beside the app.
    """
    return f"component/{declare_component('plotly', PLOTLY).name}/{SCRIPT}?{version('plotly')}"
