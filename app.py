"""Balance: how many requests run now, which pool binds, where the two curves cross, and the flag to set."""

import streamlit as st

from pages.parts.blocks import plain, table
from pages.parts.frame import open_page
from pages.parts.plot import show_figures
from sizing import RefusedError, solve
from sizing.figures import crossing_figure, memory_figure, ratio_figure
from sizing.flags import flags, launch_flags
from sizing.verdict import advice, idle_words, verdict
from sizing.working import comparisons, working

scenario = open_page("Balance")

try:
    sizing = solve(scenario)
except RefusedError as refused:
    st.error(plain(str(refused)))
    st.caption("Nothing that was entered is lost: correct it in the sidebar.")
    st.stop()

words = verdict(sizing)
st.markdown(f"### {plain(words.headline)}")
st.markdown(plain(" ".join((*words.sentences, idle_words(sizing)))))

show_figures(
    {
        "crossing": (crossing_figure(sizing), words.text),
        "ratio": (ratio_figure(sizing), words.text),
        "memory": (memory_figure(sizing), idle_words(sizing)),
    },
    key="figures",
)

st.markdown("#### The flags to set")
found = flags(sizing)
if found is None:
    st.markdown("No split of this rest runs a request at this L.")
else:
    left, right = st.columns(2)
    if found.ratio:
        left.caption(f"Ratio: {found.ratio_runs} run")
        left.code(found.ratio, language=None)
    right.caption(f"Safe pin, per rank: {found.pin_runs} run")
    right.code(found.pin, language=None)
    st.markdown(plain(found.why))
    st.caption("The rest of the launch command, as this page assumes it:")
    st.code(launch_flags(scenario), language=None)

st.markdown("#### What applies now")
for item in advice(sizing):
    st.markdown(f"- **{plain(item.topic)}.** {plain(item.text)}")

st.markdown("#### The working, with your numbers")
table(
    ("quantity", "formula", "numbers", "result"),
    ((step.quantity, step.formula, step.numbers, step.result) for step in working(sizing)),
)
st.markdown("#### The specification beside the engine")
table(
    ("quantity", "specification", "engine (SGLang 0.5.23)", "why they differ"),
    ((row.quantity, row.specification, row.engine, row.why) for row in comparisons(sizing)),
)
st.caption(
    "Requests are those of the whole deployment; slots, tokens and GiB those of one rank. Not modelled here: "
    "ReplaySSM, attention DP, prefill and decode roles, releases other than 0.5.23, and what the engine allocates "
    "without charging it."
)
