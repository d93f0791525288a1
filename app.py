"""Balance: how many requests run now, which pool binds, where the two curves cross, and the flag to set."""

import streamlit as st

from pages.parts.blocks import plain, table_text
from pages.parts.frame import show_page
from pages.parts.plot import show_figures
from sizing import RefusedError, Scenario, Sizing, solve
from sizing.figures import crossing_figure, memory_figure, ratio_figure
from sizing.flags import Flags, flags, launch_flags
from sizing.verdict import advice, idle_words, verdict
from sizing.working import comparisons, working

SCOPE = (
    "Requests are those of the whole deployment; slots, tokens and GiB those of one rank. Not modelled here: "
    "ReplaySSM, attention DP, prefill and decode roles, releases other than 0.5.23, and what the engine allocates "
    "without charging it."
)


def balance(scenario: Scenario) -> None:
    """The page, from the verdict down."""
    try:
        sizing = solve(scenario)
    except RefusedError as refused:
        st.error(plain(str(refused)))
        return
    words, idle = verdict(sizing), idle_words(sizing)
    st.markdown(f"### {plain(words.headline)}\n\n{plain(' '.join((*words.sentences, idle)))}")
    show_figures(
        {
            "crossing": (crossing_figure(sizing), words.text),
            "ratio": (ratio_figure(sizing), words.text),
            "memory": (memory_figure(sizing), idle),
        },
        key="figures",
    )
    show_flags(flags(sizing), scenario)
    st.markdown(below(sizing))


def show_flags(found: Flags | None, scenario: Scenario) -> None:
    """Both ways to set the best split, ready to copy, and the command line they belong to."""
    st.markdown("#### The flags to set")
    if found is None:
        st.markdown("No split of this rest runs a request at this L.")
        return
    ratio, pin = st.columns(2)
    ratio.caption(f"Ratio: {found.ratio_runs} run" if found.ratio else "Ratio: the engine ignores it here")
    ratio.code(found.ratio or "-", language=None)
    pin.caption(f"Safe pin, per rank: {found.pin_runs} run")
    pin.code(found.pin, language=None)
    st.markdown(f"{plain(found.why)} The rest of the launch command, as this page assumes it:")
    st.code(launch_flags(scenario), language=None)


def below(sizing: Sizing) -> str:
    """Advice, working and comparison as one piece of Markdown: each piece costs time at every slider move."""
    return "\n\n".join(
        (
            "#### What applies now",
            "\n".join(f"- **{plain(item.topic)}.** {plain(item.text)}" for item in advice(sizing)),
            "#### The working, with your numbers",
            table_text(
                ("quantity", "formula", "numbers", "result"),
                ((step.quantity, step.formula, step.numbers, step.result) for step in working(sizing)),
            ),
            "#### The specification beside the engine",
            table_text(
                ("quantity", "specification", "engine (SGLang 0.5.23)", "why they differ"),
                ((row.quantity, row.specification, row.engine, row.why) for row in comparisons(sizing)),
            ),
            plain(SCOPE),
        )
    )


show_page("Balance", balance)
