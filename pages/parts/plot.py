"""Figures on a page: Plotly, kept mounted between reruns so that a slider move updates instead of redrawing.

plotly.js is served from the plotly package itself: nothing is fetched from the network, and nothing is written.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Any

import plotly
import streamlit as st
from streamlit.components.v1 import declare_component

from sizing.figures import DARK, LIGHT
from sizing.figures.theme import Figure

HERE = Path(__file__).parent
PLOTLY = Path(plotly.__file__).parent / "package_data"  # of the plotly package; it holds plotly.min.js

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
    """The address of plotly.js below the page's own; the release in it keeps browsers from using an old copy.

    A component is Streamlit's way to serve a folder that is not beside the app.
    """
    return f"component/{declare_component('plotly', PLOTLY).name}/plotly.min.js?{version('plotly')}"
