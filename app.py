"""Balance: how many requests run now, which pool binds, where the two curves cross, and the flag to set."""

from collections.abc import Iterator

import streamlit as st
from streamlit.starlette import App

from pages.parts.blocks import bar, plain, table_text
from pages.parts.frame import show_page
from pages.parts.guard import guarded
from pages.parts.hardware import automatic_words
from pages.parts.plot import show_figures
from pages.parts.presented import presented, slide
from pages.parts.rest import asked_for_rest
from pages.parts.words import Change, Fold, code, show_words, the_change
from sizing import RefusedError, Scenario, Sizing, solve
from sizing.answers import flip_points as flips
from sizing.answers import limit_panel as lifts
from sizing.answers.band import at_low_end
from sizing.answers.recommended import Recommended, recommended
from sizing.explain.launch_flags import environment, launch_flags, why_words
from sizing.explain.unified_memory import COLUMNS as UNIFIED_COLUMNS
from sizing.explain.unified_memory import UnifiedView, change_under, unified_in_force
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
    "is fitted to the boot log printed there, which names no model; Kimi-K3's bytes reproduce its lines. Put your own "
    "numbers in the sidebar."
)
ONE_RANK = "Slots, tokens and GiB are those of one rank. "
EACH_RANK = "Slots, tokens, GiB and requests are those of one attention-DP rank, unless the deployment is named. "
SCOPE = (
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
    one = unified_in_force(sizing)
    headline = one.headline if one else words.headline
    change = change_words(one or found, where)
    if presented():
        show_words(f"# {plain(headline)}", *change, key="answer")
        show_figures({"crossing": (slide(crossing_figure(sizing)), words.text)}, key="figures")
        return
    static = (f"The static split: {words.headline}",) if one else ()
    show_words(f"# {plain(headline)}\n\n{plain(' '.join((*static, *words.sentences, idle)))}", *change, key="answer")
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
    show_words(*under(sizing, safe, one, change_under(sizing, one) if one else found), key="under")


def change_words(found: Recommended | UnifiedView | None, where: str) -> tuple[Change, ...]:
    """The recommended change with its reason, and the other way, small."""
    if found is None:
        return ()
    other = f" Or, to run as many: {' '.join(found.alternative)}" if found.alternative else ""
    return (the_change(found.numbers + where, found.flag, f"{found.reason}{other}"),)


def under(sizing: Sizing, safe: Sizing, one: UnifiedView | None, found: Recommended | None) -> Iterator[str | Fold]:
    """What stands under the figures, and what is folded; `safe` is the sizing, at the low end of an estimate."""
    scenario = sizing.scenario
    yield "\n\n".join((*(unified_words(one) if one else ()), below(safe)))
    if automatic := automatic_words(scenario):
        yield Fold("What SGLang sets by itself", automatic)
    yield Fold("The working, with your numbers, and the specification beside the engine", folded(safe))
    if found is not None:
        lines = filter(None, (environment(scenario), launch_flags(sizing, found)))
        whole = (plain(why_words(sizing, found) or found.reason), *map(code, lines))
        yield Fold("Launch flags, besides the model and the network, and why", "\n\n".join(whole))


def unified_words(one: UnifiedView) -> tuple[str, ...]:
    """Static beside unified memory."""
    told = "\n".join(f"- {plain(sentence)}" for sentence in one.sentences)
    return "## Static beside unified memory", told, table_text(UNIFIED_COLUMNS, one.rows)


def below(sizing: Sizing) -> str:
    """What applies now, the limits and what turns the verdict, as one piece: each piece costs time at every move."""
    told = "\n".join(f"- **{plain(item.topic)}.** {plain(item.text)}" for item in advice(sizing))
    scope = f"{EACH_RANK if sizing.scenario.attn_dp_size > 1 else ONE_RANK}{SCOPE}"
    return "\n\n".join(
        (
            *(("## What applies now", told) if told else ()),
            *limits_and_flips(sizing),
            plain(f"{ORIGIN} {scope}" if sizing.scenario.differences().keys() <= EXPLORED else scope),
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
    whose = " of the static split" if sizing.scenario.enable_unified_memory else ""
    return (
        f"## Every limit{whose}, the smallest first",
        table_text(lifts.COLUMNS, rows),
        f"## What turns the verdict{whose}",
        plain(flips.flips_words(sizing, found)),
        *([table_text((*flips.COLUMNS, "less or more, to x 16"), turning)] if turning else []),
    )


# `streamlit run` imports this file, finds `app` and serves it; the page is the same file, run for each reader.
if __name__ == "__main__":
    show_page("Balance", balance)
else:
    app = App(__file__, middleware=guarded())
