"""Traffic: your own requests, or a shape, in place of one L: what really runs, at a chosen risk, and the best split."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import state
from pages.parts.blocks import plain, table_text, unbroken
from pages.parts.carried import OWN_TRAFFIC, TRAFFIC_LINK
from pages.parts.fleet import show_fleet
from pages.parts.frame import show_page
from pages.parts.kept import kept_box
from pages.parts.plot import show_figures
from pages.parts.presented import presented, slide
from pages.parts.rest import asked_for_rest
from pages.parts.words import Fold, show_words, the_change
from sizing import Problem, RefusedError, Scenario
from sizing.exchange.traffic_answer import traffic_json
from sizing.figures.traffic import lengths_figure, needs_figure, overflow_figure, times_figure
from sizing.traffic import words
from sizing.traffic.duckdb_file import ONE_LINE_MB
from sizing.traffic.mix import Mix
from sizing.traffic.reading import Columns, TraceError, columns_to_name, read_trace
from sizing.traffic.running import Traffic, carriers_of, traffic_of
from sizing.traffic.sessions import residency, room
from sizing.traffic.shapes import LogNormal
from sizing.traffic.trace_file import MAX_BYTES
from sizing.traffic.workload import (
    LABELS,
    Shape,
    Workload,
    mix_of_workload,
    read_workload,
    with_waiting,
    workload_to_query,
)

SHAPES: tuple[Shape, ...] = get_args(Shape)
KINDS = ["csv", "tsv", "json", "jsonl", "ndjson", "parquet", "prom", "txt", "gz"]
READ = "own_traffic_read"  # with which columns
BELOW_NOTE = 430  # [px] of the figure on a slide
UNKNOWN = "own_traffic_unknown"  # its columns, where none is known to hold lengths
FAULT = "own_traffic_fault"  # why it could not be read

Result = TypeVar("Result")


def show_traffic(scenario: Scenario) -> None:
    """The page, from the headline down."""
    first, boxes = st.container(key="traffic_answer"), st.container(key="traffic_boxes")
    figures, sessions = st.container(), st.container()
    with boxes:
        own = _own()
    workload = _workload(boxes, sessions, own=own is not None)
    if not isinstance(workload, Workload):
        first.error(plain("\n".join(problem.sentence for problem in workload)))
        return
    state.note(TRAFFIC_LINK, workload_to_query(workload))
    mix = (_asked_for(own, boxes) if own else None) or mix_of_workload(workload)
    workload = with_waiting(workload, mix.times)
    try:
        if asked_for_rest(scenario, first):
            return
        traffic = traffic_of(scenario, mix, workload.risk, workload.declared)
    except RefusedError as refused:
        first.error(plain(str(refused)))
        return
    with first:
        _answer(traffic)
    if presented():
        show_figures(
            {"needs": (slide(needs_figure(traffic), BELOW_NOTE), words.headline(traffic))}, key="traffic_figures"
        )
        return
    with first:
        _splits(traffic)
    with figures:
        _figures(traffic)
        _times(traffic)
        _shifts(traffic)
    with sessions:
        _sessions(traffic, workload)
    show_fleet(
        traffic.sizing,
        carriers_of(traffic),
        risk=traffic.risk,
        key="traffic_fleet",
        hint=words.in_flight_words(mix.times) if mix.times else "",
    )
    data = traffic_json(traffic)
    st.download_button("Result, JSON", data, "traffic.json", "application/json", on_click="ignore")


def _workload(boxes: DeltaGenerator, sessions: DeltaGenerator, *, own: bool) -> Workload | list[Problem]:
    """What the boxes state, or a sentence for every fault; beside traffic of one's `own` the shape does not count."""
    first, (shape, risk, most, margin) = Workload(), boxes.columns(4)
    sessions.markdown("## Sessions between turns")
    kept = sessions.columns(3)
    typed: dict[str, Any] = {
        "shape": kept_box(
            "traffic_shape", first.shape, partial(shape.selectbox, LABELS["shape"], SHAPES, disabled=own), SHAPES
        ),
        "risk_percent": _typed(risk, "risk_percent", f"{first.risk_percent:g}"),
        "max_new_tokens": _typed(most, "max_new_tokens", "", placeholder="not said"),
        "max_new_margin": _typed(margin, "max_new_margin", "", placeholder="not said"),
        "idle_sessions": _typed(kept[0], "idle_sessions", "", placeholder="what the file's times show"),
        "checkpoints": _typed(kept[1], "checkpoints", str(first.checkpoints)),
        "session_tokens": _typed(kept[2], "session_tokens", "", placeholder="what waits, or the mean length"),
    }
    if typed["shape"] == "log-normal" and not own:
        for name, place in zip(LogNormal.model_fields, boxes.columns(4), strict=True):
            typed[name] = _typed(place, name, str(getattr(first, name)))
    return read_workload({name: value for name, value in typed.items() if value != ""})


def _typed(place: DeltaGenerator, name: str, first: str, placeholder: str | None = None) -> str:
    box = partial(place.text_input, LABELS[name], placeholder=placeholder, max_chars=20)
    return str(kept_box(f"traffic_{name}", first, box)).strip()


def _own() -> Mix | None:
    """The traffic of a file that was given; a fault is said and the shape stands in."""
    if presented():
        own: Mix | None = state.noted(OWN_TRAFFIC)
        return own
    file = st.file_uploader(
        "Your own requests: a trace, a benchmark's result file or a histogram (CSV, JSON lines, JSON, Parquet)",
        type=KINDS,
        max_upload_size=MAX_BYTES // 2**20,
        help=f"Ten million requests are read, one to a line or as Parquet; JSON on one line up to {ONE_LINE_MB} MB.",
        key="traffic_file",
        on_change=_forget,
    )
    if file is not None:
        _take(file)
    if fault := state.noted(FAULT):
        st.error(plain(fault))
    mix: Mix | None = state.noted(OWN_TRAFFIC)
    if mix is not None and file is None:
        st.caption(plain(f"Shown: {mix.name}."))
        st.button("Forget this traffic", on_click=_forget)
    return mix


def _asked_for(own: Mix, boxes: DeltaGenerator) -> Mix:
    """All requests of a file, or those of its busiest hour."""
    at_busiest = own.at_busiest
    if at_busiest is None:
        return own
    label = "Solve for the requests of the busiest hour in place of all"
    return at_busiest if kept_box("traffic_busiest", first=False, draw=partial(boxes.checkbox, label)) else own


def _forget() -> None:
    state.forget(OWN_TRAFFIC, READ, UNKNOWN, FAULT)


def _take(file: Any) -> None:
    """Read an uploaded file once, and once more with other columns."""
    unknown: list[str] | None = state.noted(UNKNOWN)
    if unknown is None:
        unknown = _tried(file, _unknown) or []
        state.note(UNKNOWN, unknown)
    chosen = _chosen(unknown) if unknown else Columns()
    if (unknown and not chosen.found) or state.noted(READ) == chosen:
        return
    state.note(READ, chosen)
    state.note(OWN_TRAFFIC, _tried(file, partial(_mix, chosen)))


def _tried(file: Any, read: Callable[[Path, str], Result]) -> Result | None:
    """What is read of an uploaded file; None for a fault, which is kept to be said."""
    state.forget(FAULT)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        path.write_bytes(file.getbuffer())
        try:
            return read(path, file.name)
        except TraceError as fault:
            state.note(FAULT, str(fault))
            return None


def _unknown(path: Path, name: str) -> list[str]:
    """The names of the columns where none is known to hold lengths; none where they are."""
    return columns_to_name(path, name=name)


def _mix(columns: Columns, path: Path, name: str) -> Mix:
    bar = st.progress(0.0, text=plain(f"Reading {name}"))
    try:
        return read_trace(
            path,
            input_column=columns.input,
            output_column=columns.output,
            length_column=columns.length,
            count_column=columns.times,
            progress=bar.progress,
            name=name,
        )
    finally:
        bar.empty()


def _chosen(names: list[str]) -> Columns:
    """The columns that the reader of the page names, where none is known by its name."""
    st.info("None of the columns is known to hold lengths: say which do. Input and output, or the length alone.")
    boxes = {
        "input": "Input tokens",
        "output": "Output tokens",
        "length": "Input + output",
        "times": "Requests in each row",
    }
    places = zip(boxes.items(), st.columns(4), strict=True)
    found = {
        key: place.selectbox(title, names, index=None, key=f"traffic_column_{key}", placeholder="none")
        for (key, title), place in places
    }
    return Columns(**found)


def _answer(traffic: Traffic) -> None:
    """What runs, and the flag to set."""
    best = traffic.way("best for this traffic")
    change = (the_change(words.change_numbers(traffic), best.flag, words.best_words(traffic)),) if best else ()
    show_words(f"# {plain(words.headline(traffic))}", *change, key="answer")
    if note := words.synthetic(traffic.mix) if traffic.mix.synthetic else traffic.mix.note:
        st.info(plain(note))


def _splits(traffic: Traffic) -> None:
    """Why, and every way to split."""
    said = filter(None, (words.reasons(traffic), words.admission_words(traffic)))
    rows = table_text(words.way_columns(traffic), map(unbroken, words.way_rows(traffic)))
    show_words(
        "\n\n".join((*map(plain, said), rows, plain(words.whose(traffic)))),
        Fold(
            "How these numbers come about, and what is not modelled",
            f"{plain(words.model_words(traffic))}\n\n{plain(words.NOT_MODELLED)}",
        ),
        key="traffic_ways",
    )


def _figures(traffic: Traffic) -> None:
    figures = {
        "needs": (needs_figure(traffic), words.headline(traffic)),
        "lengths": (lengths_figure(traffic.mix), "How long requests are."),
        "overflow": (overflow_figure(traffic), words.reasons(traffic)),
    }
    show_figures(figures, key="traffic_figures")


def _times(traffic: Traffic) -> None:
    """What the times of the file say, where it has some."""
    if traffic.mix.times is None:
        return
    said = words.times_words(traffic)
    st.markdown("\n\n".join(("## Over time", *map(plain, said.splitlines()))))
    show_figures({"times": (times_figure(traffic), said)}, key="traffic_times")


def _shifts(traffic: Traffic) -> None:
    """How long requests are, and what each split runs of longer ones."""
    st.markdown(
        "\n\n".join(
            (
                "## When the traffic shifts",
                table_text(words.shift_columns(traffic), words.shift_rows(traffic)),
                plain(words.SHIFTS),
                plain(words.asymmetry(traffic)),
                "## Lengths",
                table_text(words.LENGTH_COLUMNS, words.length_rows(traffic)),
            )
        )
    )


def _sessions(traffic: Traffic, workload: Workload) -> None:
    """How many waiting sessions keep their state and KV, where some are stated."""
    if not workload.idle_sessions:
        st.markdown("Enter how many sessions wait between turns to see how many of them keep their state and KV.")
        return
    if not words.keeps_sessions(traffic):
        st.markdown(plain(words.NOT_KEPT))
        return
    found = {way.name: residency(traffic, way, workload) for way in traffic.ways}
    st.markdown(
        "\n\n".join(
            (
                table_text(words.RESIDENCY_COLUMNS, words.residency_rows(found, traffic)),
                plain(words.room_words(room(traffic, workload), traffic)),
                plain(words.RESIDENCY_NOTE),
            )
        )
    )


show_page("Traffic", show_traffic)
