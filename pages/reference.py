"""Reference: what the other pages rest on, recomputed from the same rules each time it is opened."""

import streamlit as st

from pages.parts.blocks import data_table, plain, table
from pages.parts.frame import show_page
from pages.parts.presented import presented
from sizing import Scenario
from sizing.explain import reference_tables as reference
from sizing.explain.boots_tables import boots_table, fractions_table
from sizing.releases.rules import COVERED
from sizing.scenario.inputs import INPUTS

# Tables of short cells, to be sorted, searched and downloaded; in others words wrap.
NUMBERS = ("measured", "boots", "fractions", "inputs", "ratio")
NOT_COUNTING = {"name", "split", "mamba_full_memory_ratio", "max_mamba_cache_size"}  # its tables show the best split


def show_reference(scenario: Scenario) -> None:
    """The page, section by section."""
    # Where a link on this page leads, the table there, and the sentence above it.
    sections = (
        (
            "measured",
            reference.measured_table(),
            "Five runs that the specification reports, beside what this tool gives for the same flags.",
        ),
        (
            "rest",
            reference.measured_doubts_table(),
            "No report gives rest, the memory that both pools share, so each prediction had to assume one.",
        ),
        (
            "boots",
            boots_table(),
            "What rest is estimated at before the first boot, beside boots on which it can be read.",
        ),
        (
            "fractions",
            fractions_table(),
            "The rule for mem_fraction_static follows release, GPU, TP and model; these logs print what it gave.",
        ),
        (
            "slots",
            reference.slots_table(),
            "The engine reserves S slots for each running request; the strategy decides how many. S is the sum "
            "of its reasons.",
        ),
        (
            "releases",
            reference.releases_table(),
            "The rules are those of the release that is chosen on the left. This is what sets them apart.",
        ),
        (
            "ratio-printed",
            reference.printed_ratios_table(),
            "The balance ratio falls as 1 / L. The specification's printed row, recomputed with its constants "
            "and with exact ones.",
        ),
        (
            "ratio",
            reference.ratio_table(scenario),
            "The same for the inputs on the left, with what runs and the flag to set. Change an input and this "
            "table follows.",
        ),
        (
            "token-equiv",
            reference.token_equiv_table(scenario),
            "How many KV tokens one state slot costs. fp8 KV doubles it; a bfloat16 state about halves it.",
        ),
        (
            "log",
            reference.log_constants_table(),
            "The boot log of the worked example gives the two byte constants; which ones depends on how it is read.",
        ),
        ("inputs", reference.inputs_table(), "What can be set, by the name that links and files use."),
        ("glossary", reference.glossary(), "The words and symbols of these pages."),
        (
            "not-modelled",
            reference.not_modelled(),
            "What to know before a number from here goes into a design review.",
        ),
    )

    st.title("Reference", anchor=False)
    st.markdown(
        "Two sources stand behind every number: the specification (compute-mamba-ratio, "
        f"sgl-project/sglang\\#32763) and the sizing rules of SGLang {COVERED}. Where the two differ, both are "
        "shown."
    )
    if not presented():
        st.markdown(" · ".join(f"[{plain(found.title)}](#{anchor})" for anchor, found, _ in sections))

    for anchor, found, sentence in sections[:1] if presented() else sections:
        st.header(plain(found.title), anchor=anchor)
        st.markdown(plain(sentence))
        if anchor in NUMBERS:
            data_table(found.frame(), key=anchor)
            st.caption(plain(found.note))
        else:
            table(found.columns, found.rows, note=found.note)


show_page("Reference", show_reference, INPUTS.keys() - NOT_COUNTING)
