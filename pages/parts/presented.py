"""The presentation view: a page for a slide at 16:9, with its headline, figures and tables, and nothing to press."""

import streamlit as st

from sizing.figures.theme import Figure

PRESENT = "present"  # a link with it shows the page so

ROOM = 535  # [px] of a figure before the zoom
ZOOM = 1.7  # the smallest letters of a figure are 12 px, and a slide's are 20
# A smaller or larger window shows the same frame at another size; below a third of it letters are too small to read.
FITS = "max(0.33, min(tan(atan2(100vw, 1920px)), tan(atan2(100vh, 1080px))))"
# No sidebar and no chrome, and nothing to press that a page draws all the same; one frame of 16:9 at 1920 x 1080, in
# which no letter is smaller than 20 px. What leads back is faint and in a corner.
STYLE = f"""<style>
[data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stSidebarCollapsedControl"], .st-key-bar,
[data-testid="stToolbar"], [data-testid="stHeaderActionElements"] {{ display: none; }}
[data-testid="stMain"] :is(
  [data-testid="stFileUploader"], [data-testid="stTextInput"], [data-testid="stTextArea"],
  [data-testid="stNumberInput"], [data-testid="stSelectbox"],
  [data-testid="stDownloadButton"], [data-testid="stPageLink"], [data-testid="stExpander"]
), [data-testid="stMain"] [data-testid="stButton"]:not(.st-key-leave *),
[data-testid="stMain"] [data-testid="stLayoutWrapper"]:not(:has([data-testid="stElementContainer"])) {{
  display: none;
}}
.st-key-leave {{ position: fixed; right: 0.5rem; top: 0; width: auto; opacity: 0.35; z-index: 10; }}
.st-key-leave:is(:hover, :focus-within) {{ opacity: 1; }}
[data-testid="stMainBlockContainer"] {{ padding: 0.75rem 2rem 0; max-width: none; zoom: {FITS}; }}
[data-testid="stMainBlockContainer"] > [data-testid="stVerticalBlock"] {{ gap: 0.5rem; }}
[data-testid="stMain"] :is(h1, .words h1) {{ font-size: 2.5rem; padding: 0; }}
[data-testid="stMain"] :is(p, li, td, th) {{ font-size: 1.3rem; }}
[data-testid="stMain"] [data-testid="stCaptionContainer"] * {{ font-size: 1.25rem; }}
.words .change {{
  margin-top: 0; display: flex; flex-wrap: wrap; align-items: center; gap: 0 2rem; padding: 0.25rem 1rem;
}}
.words .change > * {{ margin: 0; }}
.words .change h2 {{ font-size: 2rem; }}
.words .change pre {{ padding-right: 0.75rem; }}
[data-testid="stMain"] .words .change p {{ font-size: 1.25rem; }}
.words .change code {{ font-size: 1.6rem; }}
.words .change button {{ display: none; }}
.figures .data-of {{ display: none; }}
.figures {{ zoom: {ZOOM}; }}
.figures-place, .figures-place :is([data-testid="stBidiComponentRegular"], .stBidiComponent) {{
  flex: 0 0 auto !important; height: auto !important;
}}
:is([data-testid="stMarkdownContainer"], .words) :is(th, td) {{ padding: 0.15rem 0.75rem; }}
</style>"""


def presented() -> bool:
    """Whether the page is shown so: what is only there to be pressed or filled in need not be drawn."""
    return PRESENT in st.query_params


def style_presented() -> None:
    """Take away what is not the page's own."""
    if presented():
        st.html(STYLE)


def slide(figure: Figure, height: int = ROOM) -> Figure:
    """A figure as high as a frame has room for below headline and flag [px before the zoom]."""
    return figure | {"layout": figure["layout"] | {"height": height}}
