"""The presentation view: a page for a slide at 16:9, with its headline, figures and tables, and nothing to press."""

import streamlit as st

PRESENT = "present"  # a link with it shows the page so

# No sidebar and no chrome, and nothing to press that a page draws all the same; tables close enough that a figure and
# one of them stand on one screen.
STYLE = """<style>
[data-testid="stSidebar"], [data-testid="stHeader"], [data-testid="stSidebarCollapsedControl"] { display: none; }
[data-testid="stMain"] :is(
  [data-testid="stFileUploader"], [data-testid="stTextInput"], [data-testid="stTextArea"],
  [data-testid="stNumberInput"], [data-testid="stSelectbox"], [data-testid="stButton"],
  [data-testid="stDownloadButton"], [data-testid="stPageLink"], [data-testid="stExpander"]
), [data-testid="stMain"] [data-testid="stLayoutWrapper"]:not(:has([data-testid="stElementContainer"])) {
  display: none;
}
[data-testid="stMainBlockContainer"] { padding: 1rem 3rem; max-width: none; }
:is([data-testid="stMarkdownContainer"], .words) table { font-size: 0.875rem; }
:is([data-testid="stMarkdownContainer"], .words) :is(th, td) { padding: 0.15rem 0.75rem; }
</style>"""


def presented() -> bool:
    """Whether the page is shown so: what is only there to be pressed or filled in need not be drawn."""
    return PRESENT in st.query_params


def style_presented() -> None:
    """Take away what is not the page's own."""
    if presented():
        st.html(STYLE)
