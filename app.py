"""Balance: how many requests run now, which pool binds, where the two curves cross, and the flag to set."""

import streamlit as st
from streamlit.starlette import App

from pages.parts.blocks import bar, plain, show_change, table_text
from pages.parts.frame import show_page
from pages.parts.guard import guarded
from pages.parts.hardware import show_automatic
from pages.parts.plot import show_figures
from pages.parts.presented import presented, slide
from pages.parts.rest import asked_for_rest
from pages.parts.words import show_words
from sizing import RefusedError, Scenario, Sizing, solve
from sizing.answers import flip_points as flips
from sizing.answers import limit_panel as lifts
from sizing.answers.band import at_low_end
from sizing.answers.recommended import Recommended, recommended
from sizing.explain.launch_flags import environment, launch_flags, why_words
from sizing.explain.unified_memory import COLUMNS as UNIFIED_COLUMNS
from sizing.explain.unified_memory import UnifiedView, unified_view
from sizing.explain.verdict import advice, idle_words, verdict
from sizing.explain.working import comparisons, working
from sizing.figures import (
    crossing_figure,
    hand_over_context,
    hand_over_ratio,
    memory_figure,
    ratio_figure,
    ratios_drawn,
)

# What may differ while the page still shows the worked example's deployment.
EXPLORED = {"name", "L", "split", "mamba_full_memory_ratio", "max_mamba_cache_size"}
ORIGIN = (
    "This is the worked example of the specification, Kimi-K3 at TP8 with fp8 KV: its bytes are the model's, its rest "
    "that of the boot log printed there. Put your own numbers in the sidebar."
)
SCOPE = (
    "Slots, tokens and GiB are those of one rank. Requests are the deployment's, under attention DP those of one rank. "
    "For requests of many lengths and for idle sessions see Traffic; what is not modelled, such as prefix checkpoints, "
    "stands in Reference."
)


def balance(scenario: Scenario) -> None:
    """The page, from the verdict down."""
    try:
        if asked_for_rest(scenario):
            return
        sizing = solve(scenario)
    except RefusedError as refused:
        st.error(plain(str(refused)))
        return
    safe = at_low_end(sizing)  # of an estimate; the headline and the change hold both ends
    words, idle, found = verdict(sizing), idle_words(safe), recommended(sizing)
    where = " on each rank" if scenario.attn_dp_size > 1 else ""
    one = unified_view(sizing) if scenario.enable_unified_memory else None
    headline = one.headline if one else words.headline
    if presented():
        st.markdown(f"# {plain(headline)}")
        _change(one or found, where)
        show_figures({"crossing": (slide(crossing_figure(sizing)), words.text)}, key="figures")
        return
    static = (f"The static split: {words.headline}",) if one else ()
    st.markdown(f"# {plain(headline)}\n\n{plain(' '.join((*static, *words.sentences, idle)))}")
    _change(one or found, where)
    show_figures(
        {
            "crossing": (crossing_figure(sizing), words.text),
            "ratio": (ratio_figure(safe), words.text),
            "memory": (memory_figure(sizing), idle),
        },
        key="figures",
        hands={
            "crossing": hand_over_context(sizing),
            "ratio": hand_over_ratio(sizing, ratios_drawn(safe).tolist()),
        },
        headline="" if one else headline,  # what follows a hand is the static split
    )
    show_automatic(scenario)
    show_words("\n\n".join((*(unified_words(one) if one else ()), below(safe))), key="below")
    with st.expander("The working, with your numbers, and the specification beside the engine"):
        show_words(folded(safe), key="folded")
    if found is not None:
        with st.expander("The whole launch command, and why this flag"):
            show_words(plain(why_words(sizing, found)), key="why")
            for line in filter(None, (environment(scenario), launch_flags(sizing, found))):
                st.code(line, language=None, wrap_lines=True)
    st.page_link("pages/reference.py", label="What the words mean, and the measurements behind the rules")


def unified_words(one: UnifiedView) -> tuple[str, ...]:
    """Static beside unified memory."""
    told = "\n".join(f"- {plain(sentence)}" for sentence in one.sentences)
    return "## Static beside unified memory", told, table_text(UNIFIED_COLUMNS, one.rows)


def _change(found: Recommended | UnifiedView | None, where: str) -> None:
    """The recommended change with its reason, and the other way, small."""
    if found is not None:
        other = f" Or, to run as many: {' '.join(found.alternative)}" if found.alternative else ""
        show_change(found.numbers + where, found.flag, f"{found.reason}{other}")


def below(sizing: Sizing) -> str:
    """What applies now, the limits and what turns the verdict, as one piece: each piece costs time at every move."""
    told = "\n".join(f"- **{plain(item.topic)}.** {plain(item.text)}" for item in advice(sizing))
    return "\n\n".join(
        (
            *(("## What applies now", told) if told else ()),
            *limits_and_flips(sizing),
            plain(f"{ORIGIN} {SCOPE}" if sizing.scenario.differences().keys() <= EXPLORED else SCOPE),
        )
    )


def folded(sizing: Sizing) -> str:
    """Each formula with its numbers, and the published closed forms beside the engine's rules."""
    return "\n\n".join(
        (
            table_text(
                ("quantity", "formula", "numbers", "result"),
                ((step.quantity, step.formula, step.numbers, step.result) for step in working(sizing)),
            ),
            table_text(
                ("quantity", "specification", f"SGLang {sizing.scenario.release}", "why they differ"),
                ((row.quantity, row.specification, row.engine, row.why) for row in comparisons(sizing)),
            ),
        )
    )


def limits_and_flips(sizing: Sizing) -> tuple[str, ...]:
    """Each limit with the flag value that lifts the first, and what turns the verdict; nothing where it refuses."""
    rows = lifts.lift_rows(sizing)
    if not rows:
        return ()
    found = flips.flips(sizing)
    bars = {turn.quantity: bar(turn.factor) for turn in found}
    turning = [(*row, bars[row[0]]) for row in flips.flip_rows(found)]
    return (
        "## Every limit, the smallest first",
        table_text(lifts.COLUMNS, rows),
        "## What turns the verdict",
        plain(flips.flips_words(sizing, found)),
        *([table_text((*flips.COLUMNS, "less or more, to x 16"), turning)] if turning else []),
    )


# `streamlit run` imports this file, finds `app` and serves it; the page is the same file, run for each reader.
if __name__ == "__main__":
    show_page("Balance", balance)
else:
    app = App(__file__, middleware=guarded())
