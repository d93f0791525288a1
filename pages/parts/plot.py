"""Figures on a page: Plotly, kept mounted between reruns so that a slider move updates instead of redrawing.

plotly.js comes from the plotly package; it is copied once into static/, which Streamlit serves, and so nothing
is fetched from the network.
"""

import os
from importlib.metadata import version
from pathlib import Path
from typing import Any

import streamlit as st
from plotly.offline import get_plotlyjs

from sizing.figures import DARK, LIGHT
from sizing.figures.theme import Figure

HERE = Path(__file__).parent
STATIC = HERE.parent.parent / "static"

_component = st.components.v2.component(
    "figures",
    html='<div class="figures"></div>',
    css=(HERE / "plot.css").read_text(encoding="utf-8"),
    js=(HERE / "plot.js").read_text(encoding="utf-8"),
    isolate_styles=False,  # Plotly puts its own styles into the document's head
)


def show_figures(figures: dict[str, tuple[Figure, str]], key: str) -> None:
    """Draw figures by name, each with the sentence that a screen reader says instead of it."""
    _component(
        key=key,
        data={
            "plotly_url": _plotly_url(),
            "palettes": {"light": LIGHT, "dark": DARK},
            "figures": {
                name: figure | {"alt": alt, "config": _config(name)} for name, (figure, alt) in figures.items()
            },
        },
    )


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
        "responsive": True,
        "showSendToCloud": False,  # Plotly's own button would upload the figure; nothing leaves the machine
        "modeBarButtonsToRemove": ["lasso2d", "select2d", "autoScale2d"],
        "toImageButtonOptions": image,
    }


@st.cache_resource
def _plotly_url() -> str:
    """The address of plotly.js below the page's own; the release in its name keeps browsers from using an old copy."""
    name = f"plotly-{version('plotly')}.min.js"
    if not (STATIC / name).exists():
        STATIC.mkdir(exist_ok=True)
        draft = STATIC / f"{name}.{os.getpid()}"  # another process may be writing the same file
        draft.write_text(get_plotlyjs(), encoding="utf-8")
        draft.replace(STATIC / name)
    return f"app/static/{name}"
