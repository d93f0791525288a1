"""The hardware on a page: what SGLang sets by itself on it, and which GPUs carry the model."""

from functools import partial

import streamlit as st

from pages.parts.blocks import data_table, plain, table_text
from pages.parts.kept import kept_box
from pages.parts.plot import show_figures
from pages.parts.words import show_words
from sizing import RefusedError, Scenario
from sizing.answers.hardware import hardware_of
from sizing.bootlog import Boot
from sizing.bootlog.diagnosis import Diagnosis
from sizing.bootlog.gpu_memory import beside, boot_memory_words
from sizing.explain.hardware_words import (
    AUTOMATIC_COLUMNS,
    CARRIED_COLUMNS,
    automatic_rows,
    carried_rows,
    hardware_headline,
    hardware_notes,
)
from sizing.figures.gpu_memory import Bar, gpu_memory_figure
from sizing.figures.theme import inputs, solved_as

FEWEST = 8  # rows shown before the whole table is asked for


def automatic_words(scenario: Scenario) -> str:
    """What the release sets where no flag does, each value with the rule that gave it; empty without such."""
    rows = automatic_rows(scenario)
    note = "A flag typed in replaces one: Memory before the boot, in the sidebar."
    return f"{table_text(AUTOMATIC_COLUMNS, rows)}\n\n{plain(note)}" if rows else ""


def show_boot_memory(boot: Boot, found: Diagnosis, gpu: str) -> None:
    """Where this boot's memory went by its log, with the estimate beside it; `gpu` is the sidebar's."""
    seen = beside(boot.facts, found.scenario, gpu)
    if seen is None or found.sizing is None:
        return
    bars = [Bar("estimated", seen.estimated, "before the boot")] if seen.estimated else []
    bars.append(Bar("measured", seen.measured, "by the log"))
    title = "Where the GPU's memory went"
    figure = gpu_memory_figure(bars, inputs(found.sizing), solved_as(found.sizing), title)
    show_figures({"boot": (figure, title)}, key="boot_figures")
    st.caption(plain(boot_memory_words(seen, boot.facts, found.sizing)))


def show_hardware(scenario: Scenario, requests: int | None) -> None:
    """Which GPUs carry the model; `requests` of its L where so many are wanted. Raises nothing."""
    title = "## Which GPUs carry it"
    try:
        found = hardware_of(scenario)
    except RefusedError as refused:
        st.markdown(title)
        st.error(plain(str(refused)))
        return
    rows = carried_rows(found, requests)
    table = (table_text(CARRIED_COLUMNS, rows[:FEWEST]),) if rows else ()
    shown = f"Shown: {FEWEST} of {len(rows)}. " if len(rows) > FEWEST else ""
    words = (title, plain(hardware_headline(found, requests)), *table, plain(f"{shown}{hardware_notes(found)}"))
    show_words("\n\n".join(words), key="hardware")
    if found.carried and kept_box("hardware_rows", False, partial(st.toggle, "All GPUs and widths, to sort")):
        data_table(found.frame(), key="hardware_frame")
