"""Compare: up to six scenarios on the same axes and in one table; a sweep of this one; files and sheets to hand on."""

from functools import partial
from textwrap import wrap
from typing import get_args

import streamlit as st

from pages.parts import state
from pages.parts.blocks import data_table, plain, table_text, unbroken
from pages.parts.carried import AS_SET, AT_BEST, COMPARE_AT
from pages.parts.frame import show_page
from pages.parts.kept import KEPT, KEPT_DRAWN, forget_rows, kept_box
from pages.parts.plot import show_figures
from pages.parts.presented import presented, slide
from pages.parts.words import show_words
from sizing import RefusedError, Scenario, Sizing, solve
from sizing.answers.compare import at_best, differing_inputs, names_of, results, solved, story_of, with_this
from sizing.answers.recommended import recommended
from sizing.answers.sweep import SweepInput, axis_of, sweep
from sizing.exchange.exports import context_csv, curves_json, ratio_csv, result_csv, result_json
from sizing.exchange.link import to_query
from sizing.exchange.scenario_file import MAX_LENGTH, MOST, from_file, to_file
from sizing.explain.unified_memory import static_alone, static_among
from sizing.figures import sweep_figure, sweep_hand
from sizing.figures.compare import compare_figure
from sizing.scenario.inputs import changed, label

SWEPT: tuple[SweepInput, ...] = get_args(SweepInput)
ABOVE_FLAGS, FLAG_LINE = 560, 18  # [px] of the figure on a slide, above the flags, and how much each line of them takes
FLAGS_WIDE = 150  # characters in such a line
FILE, FAULTS = "kept_file", "kept_file_faults"  # the box for a file, and what was wrong with the last one in it


def show_compare(scenario: Scenario) -> None:
    """The page: what was kept, the sweep, and what can be taken away."""
    kept: list[Scenario] = state.noted_first(KEPT, [])
    with st.container():
        if kept:
            _side_by_side(tuple(kept), scenario)
        elif not presented():
            _invite(scenario)
    if presented() and kept:
        return
    if presented():
        _sweep(scenario)
        return
    _keep_and_load(kept, scenario)
    _sweep(scenario)
    _take_away(scenario)


def _invite(scenario: Scenario) -> None:
    """What to do where nothing is kept, with two comparisons that are ready."""
    st.markdown("# Which would you take?\n\n" + plain(INVITATION))
    left, right = st.columns(2)
    left.button(READY_CHANGE, key="ready_change", on_click=_ready, args=(_with_change(scenario),), width="stretch")
    right.button(READY_DCP, key="ready_dcp", on_click=_ready, args=(DCP_PAIR,), width="stretch")


INVITATION = (
    "Nothing is kept yet. Press “Keep” at the top right, then change an input: both stand here on the same axes and in "
    "one table, up to six. Or begin with one of these:"
)
READY_CHANGE = "This scenario, as set and with the recommended change"
READY_DCP = "Kimi-K3 at L = 32K, on dcp_size 1 and on dcp_size 4"
DCP_PAIR = (Scenario(L=2**15), Scenario(L=2**15, dcp_size=4))


def _with_change(scenario: Scenario) -> tuple[Scenario, ...]:
    try:
        found = recommended(solve(scenario))
    except RefusedError:
        return (scenario,)
    return (scenario, found.scenario) if found is not None and found.change else (scenario,)


def _ready(scenarios: tuple[Scenario, ...]) -> None:
    state.note(KEPT, list(scenarios))
    _changed()


def _side_by_side(kept: tuple[Scenario, ...], scenario: Scenario) -> None:
    """What is kept and the scenario of the sidebar: what one sets last need not be kept to be compared."""
    every = with_this(kept, scenario, MOST)
    place = st.container()
    ways = (AS_SET, AT_BEST)
    draw = partial(st.radio, "Compare them", ways, horizontal=True, label_visibility="collapsed")
    at = kept_box(COMPARE_AT, AS_SET, draw, ways)
    scenarios = at_best(every) if at == AT_BEST else every
    names, found = names_of(scenarios), solved(scenarios)
    story = story_of(names, found)
    place.markdown(f"# {plain(story)}\n\n{plain(static_among(names, scenarios))}")
    sizings = {name: item for name, item in zip(names, found, strict=True) if isinstance(item, Sizing)}
    if presented():
        set_to = [(name, recommended(item)) for name, item in sizings.items()]
        flags = " · ".join(f"{name}: {one.flag}" for name, one in set_to if one is not None)
        height = ABOVE_FLAGS - FLAG_LINE * len(wrap(flags, FLAGS_WIDE))
        show_figures({"compare": (slide(compare_figure(sizings), height), story)}, key="compare_figures")
        st.caption(plain(flags))
        return
    if sizings:
        show_figures({"compare": (compare_figure(sizings, story), story)}, key="compare_figures")
    columns = ("", *unbroken(names))
    parts = [table_text(columns, ((row.quantity, *row.cells) for row in results(found)))]
    if differ := differing_inputs(scenarios):
        parts += ["## Where they differ", table_text(columns, ((row.quantity, *row.cells) for row in differ))]
    of_this = f" {names[-1]}: the sidebar's, not kept yet." if every != kept else ""
    parts.append(plain(f"Requests are those of the whole deployment, slots and GiB those of one rank.{of_this}"))
    show_words("\n\n".join(parts), key="compare_tables")


def _keep_and_load(kept: list[Scenario], scenario: Scenario) -> None:
    """Names, order and removal of what is kept; to a file and from one.

    The rows stand in one container, so that the box for a file keeps its place whatever is kept: a browser draws a
    box that moved anew, and a file on its way to the old one is lost. Every change is made before the page is drawn.
    """
    with st.container():
        _rows(kept, scenario)
    save, load = st.columns(2, vertical_alignment="bottom")
    if kept:
        save.download_button("Save to a file", to_file(kept), "scenarios.json", "application/json", on_click="ignore")
    title = "Load from a file (it replaces what is kept)"
    file = load.file_uploader(title, type="json", max_upload_size=1, key=FILE, on_change=_load)
    if file is not None and state.noted(FAULTS):
        st.error(plain(state.noted(FAULTS)))


def _rows(kept: list[Scenario], scenario: Scenario) -> None:
    """A line for each: its name as in the table, its place, its removal, and the way to the balance page."""
    drawn, last = state.noted_first(KEPT_DRAWN, 0), len(kept) - 1
    shown_names = names_of(with_this(tuple(kept), scenario, MOST))[: len(kept)] if kept else ()
    for at, (one, shown) in enumerate(zip(kept, shown_names, strict=True)):
        name, up, down, remove, open_ = st.columns([8, 1, 1, 1, 1], vertical_alignment="center")
        key = f"kept_name_{drawn}_{at}"
        typed = name.text_input(
            f"Name {at + 1}",
            value=one.name,
            key=key,
            max_chars=60,
            placeholder=shown,
            label_visibility="collapsed",
            on_change=_rename,
            args=(drawn, at, key),
        )
        up.button("↑", key=f"up_{at}", help="One place up", disabled=at == 0, on_click=_move, args=(drawn, at, -1))
        down.button(
            "↓", key=f"down_{at}", help="One place down", disabled=at == last, on_click=_move, args=(drawn, at, 1)
        )
        remove.button("✕", key=f"remove_{at}", help="Remove", on_click=_remove, args=(drawn, at))
        open_.page_link("app.py", label="Open", query_params=to_query(one))
        named = changed(one, name=typed)
        if not isinstance(named, Scenario):
            st.error(plain("\n".join(problem.sentence for problem in named)))


def _still(drawn: int) -> bool:
    """Whether the list still stands as it did when a row was drawn: what a browser says of an older row is too late."""
    return drawn == int(state.noted(KEPT_DRAWN))


def _rename(drawn: int, at: int, key: str) -> None:
    """A name that a scenario can have is taken; of any other the page says why it is none."""
    if not _still(drawn):
        return
    kept = state.noted(KEPT)
    named = changed(kept[at], name=state.noted(key))
    if isinstance(named, Scenario):
        kept[at] = named


def _move(drawn: int, at: int, by: int) -> None:
    if _still(drawn):
        kept = state.noted(KEPT)
        kept[at], kept[at + by] = kept[at + by], kept[at]
        _changed()


def _changed() -> None:
    """The rows are drawn anew, and the bar, which says how many there are."""
    forget_rows()
    state.note(state.WHOLE, True)


def _remove(drawn: int, at: int) -> None:
    if _still(drawn):
        del state.noted(KEPT)[at]
        _changed()


def _load() -> None:
    """What is in the file takes the place of what is kept, or what is wrong with it is remembered."""
    file = state.noted(FILE)
    if file is None:
        return
    found = from_file(file.getvalue()[: MAX_LENGTH + 1].decode("utf-8", "replace"))
    state.note(FAULTS, "\n".join(problem.sentence for problem in found if not isinstance(problem, Scenario)))
    if not state.noted(FAULTS):
        state.note(KEPT, found)
        _changed()


def _sweep(scenario: Scenario) -> None:
    """What runs over any two inputs, at every cell the integer of a solve of its own."""
    st.markdown("## Sweep: what runs over two inputs, all else as in the sidebar")
    left, right = st.columns(2)
    x = kept_box("sweep_x", SWEPT[0], partial(left.selectbox, "Across", SWEPT, format_func=label), SWEPT)
    y = kept_box("sweep_y", SWEPT[1], partial(right.selectbox, "Up", SWEPT, format_func=label), SWEPT)
    try:
        sizing = solve(scenario)
        across, up = axis_of(scenario, x), axis_of(scenario, y)
        figure = sweep_figure(sizing, across, up)
    except RefusedError as refused:
        st.error(plain(str(refused)))
    except ValueError as wrong:
        st.info(plain(str(wrong)))
    else:
        static = static_alone(scenario)
        alt = f"Requests that run over {label(x)} and {label(y)}.{static}"
        if static:
            st.markdown(plain(static))
        show_figures({"sweep": (figure, alt)}, key="sweep_figures", hands={"sweep": sweep_hand(sizing, across, up)})
        if kept_box("sweep_rows", False, partial(st.toggle, "As rows, to sort, search and download")):
            data_table(sweep(scenario, across, up).frame(), key="sweep_frame")


def _take_away(scenario: Scenario) -> None:
    """The numbers of the scenario of the sidebar as files, each made when it is asked for."""
    st.markdown("## The numbers of this scenario, as files")
    try:
        sizing = solve(scenario)
    except RefusedError:
        return
    files = (
        ("Result, JSON", result_json, "result.json", "application/json"),
        ("Result, CSV", result_csv, "result.csv", "text/csv"),
        ("Curves, JSON", curves_json, "curves.json", "application/json"),
        ("Curve over L, CSV", context_csv, "over-context.csv", "text/csv"),
        ("Curve over r, CSV", ratio_csv, "over-ratio.csv", "text/csv"),
    )
    row = st.container(horizontal=True)
    for title, of, name, kind in files:
        row.download_button(title, partial(of, sizing), name, kind, on_click="ignore")


show_page("Compare", show_compare)
