"""Why am I clamped?: a boot log and the launch command behind it, solved again and put beside what was printed."""

from functools import partial
from typing import Any

import streamlit as st

from pages.parts.blocks import plain, table_text
from pages.parts.frame import show_page
from pages.parts.kept import kept_box
from sizing import Refusal, Scenario, read_scenario
from sizing.answers import limit_panel as lifts
from sizing.basics.units import count, number
from sizing.bootlog import Boot, Log, read_chunks, read_text
from sizing.bootlog.diagnosis import (
    UNKNOWN,
    Diagnosis,
    agrees,
    as_printed,
    cured,
    diagnose,
    likely_model,
    models_that_fit,
    named_model,
    no_cure,
    readings,
)
from sizing.bootlog.text import MAX_BYTES
from sizing.command import Command, read_command
from sizing.exchange.link import to_query
from sizing.explain.launch_flags import flags, launch_flags
from sizing.explain.verdict import advice, idle_words, verdict
from sizing.scenario.from_model import FILLED, servable

MAX_UPLOAD_MB = MAX_BYTES // 2**20
BOX_HEIGHT = 160  # [px] of a box to paste into
CHUNK = 2**20
MEGABYTE = 10**6
WHAT_TO_GIVE = (
    "Give a boot log: the lines from “Load weight begin” to “max_total_num_tokens=” are enough. The launch command is "
    "optional: it fills in what a log does not hold, and is given back with other sizing flags. L is the sidebar's."
)


def show_clamped(scenario: Scenario) -> None:
    """The page, from the two boxes down."""
    first = st.container()
    log, command = _given()
    if log is None:
        first.markdown(f"### Why am I clamped?\n\n{plain(WHAT_TO_GIVE)}")
        if command is not None:
            _command_alone(scenario, command)
        return
    for problem in (*log.problems, *(command.problems if command else ())):
        st.warning(plain(problem.sentence))
    if log.last is None:
        first.markdown("### Nothing to read in this log")
        return
    _boots(log, log.last)
    found = diagnose(
        log.last.facts, model=_model(log.last), command=command, stated={"L": scenario.L, "name": scenario.name}
    )
    first.markdown(_headline(log.last, found, scenario.L))
    _troubles(log.last, found)
    if log.last.refused is None:
        _cure(found, command)
    st.markdown("\n\n".join(_tables(log.last, found)))


def _given() -> tuple[Log | None, Command | None]:
    """Both boxes, kept over page changes; an uploaded file comes before pasted text."""
    left, right = st.columns([2, 1])
    file = left.file_uploader("Boot log, plain or gzip", max_upload_size=MAX_UPLOAD_MB, key="log_file")
    example = "[... TP0] Load weight begin. avail mem=178.00 GB"
    paste = partial(left.text_area, "or paste the log", height=BOX_HEIGHT, placeholder=example)
    example = "sglang serve --model-path ..."
    launch = partial(right.text_area, "Launch command, if you have it", height=BOX_HEIGHT, placeholder=example)
    pasted, typed = str(kept_box("log_text", "", paste)), str(kept_box("command_text", "", launch))
    log = _read_file(file) if file is not None else read_text(pasted) if pasted.strip() else None
    return log, read_command(typed) if typed.strip() else None


def _read_file(file: Any) -> Log:
    """An uploaded log, in chunks, with the share that is read; the same file is not read again."""
    if st.session_state.get("log_read_of") == file.file_id:
        log: Log = st.session_state["log_read"]
        return log
    bar = st.progress(0.0, "Reading the log")

    def show(done: int) -> None:
        bar.progress(min(done / max(file.size, 1), 1.0), f"Read {done // MEGABYTE} of {file.size // MEGABYTE} MB")

    file.seek(0)
    log = read_chunks(iter(lambda: file.read(CHUNK), b""), show)
    bar.empty()
    st.session_state["log_read_of"], st.session_state["log_read"] = file.file_id, log
    return log


def _boots(log: Log, boot: Boot) -> None:
    """Which boot is meant where the log holds several; the last that got anywhere counts."""
    if len(log.boots) < 2:
        return
    refused = f", {len(log.failed)} of them refused" if log.failed else ""
    st.info(plain(f"{len(log.boots)} boots{refused}. The one from line {count(boot.first_line)} on is shown."))
    for other in log.failed:
        if other is not boot and other.refused:
            st.caption(plain(f"Line {count(other.first_line)}: {other.refused.refusal.sentence}"))


def _model(boot: Boot) -> str:
    """The model whose exact bytes are taken, first of all one that the printed sizes allow."""
    fits = models_that_fit(boot.facts)
    options = ["", *fits, *(model for model in servable() if model not in fits)]

    def named(model: str) -> str:
        return f"{model} (fits the printed sizes)" if model in fits else model or "none: the printed sizes"

    return st.selectbox(
        "Model, for exact bytes",
        options,
        index=options.index(likely_model(boot.facts, fits)),
        format_func=named,
        key=f"log_model_{boot.first_line}_{boot.facts.slots}",
        help="Two decimals of GiB leave an interval; a model whose bytes lie in it makes the numbers exact.",
    )


def _headline(boot: Boot, found: Diagnosis, L: int) -> str:
    """What happened, in one line with its reasons."""
    if boot.refused is not None:
        return f"### SGLang refused to start\n\n{plain(boot.refused.refusal.sentence)}"
    printed = as_printed(boot.facts, L)
    if found.sizing is None or isinstance(found.sizing.now, Refusal) or not agrees(found):
        more = ("What the rules predict from this log is something else: see below.",) if found.beside else ()
        headline, *rest = (*printed, *more) if printed else ("This log does not say what runs", *more)
        return f"### {plain(headline)}\n\n{plain(' '.join(rest))}"
    words, asked = verdict(found.sizing), boot.facts.settings.max_running_requests
    ask = f"You asked for {count(asked)}. " if asked else ""
    sentences = f"{ask}{' '.join(words.sentences)} {idle_words(found.sizing)} {_free(boot)}"
    return f"### {plain(words.headline)}\n\n{plain(sentences)}"


def _free(boot: Boot) -> str:
    """The free lever first: memory that no pool has."""
    idle = boot.facts.idle_gib
    if idle is None:
        return ""
    return (
        f"After the boot {number(idle)} GiB of the GPU stay free: if that is much more than graph capture needs, raise "
        "--mem-fraction-static first, it grows both pools."
    )


def _troubles(boot: Boot, found: Diagnosis) -> None:
    for sentence in (*boot.facts.conflicts, *found.conflicts):
        st.warning(plain(sentence))
    for sentence in (*(problem.sentence for problem in found.problems), *filter(None, (found.refused,))):
        st.error(plain(sentence))


def _tables(boot: Boot, found: Diagnosis) -> list[str]:
    """What was printed, predicted beside printed, what is missing and assumed, every limit, and the advice."""
    parts = []
    if found.beside and boot.refused is None:
        parts += [
            "#### Predicted beside printed",
            table_text(("quantity", "predicted", "printed", "why they differ"), found.beside),
        ]
    parts += [
        "#### What the log says, per rank",
        table_text(("quantity", "value", "between", "from"), readings(boot.facts, found)),
    ]
    for title, sentences in (
        ("What the log does not say", found.inputs.missing),
        ("What was assumed", found.inputs.assumed),
    ):
        parts += [f"#### {title}", _list(sentences)] if sentences else []
    rows = lifts.lift_rows(found.sizing) if found.sizing is not None and boot.refused is None else []
    parts += ["#### Every limit, the smallest first", table_text(lifts.COLUMNS, rows)] if rows else []
    if found.sizing is not None and boot.refused is None:
        found_advice = tuple(f"{item.topic}. {item.text}" for item in advice(found.sizing))
        parts += ["#### What applies now", _list(found_advice)] if found_advice else []
    return parts


def _list(sentences: tuple[str, ...]) -> str:
    return "\n".join(f"- {plain(sentence)}" for sentence in sentences)


def _cure(found: Diagnosis, command: Command | None) -> None:
    """The command with the better split, and the way to the balance page with everything filled in."""
    if why_not := no_cure(found, command):
        st.info(plain(why_not))
    if found.scenario is None:
        return
    words = flags(found.sizing) if found.sizing is not None else None
    if found.sizing is not None and words is not None and not why_not:
        st.markdown(f"#### The cure, as a command\n\n{plain(words.why)}")
        # A command that contradicts the log, or was not read whole, is not rewritten: the flags stand alone then.
        whole = command is not None and not found.conflicts and not command.problems
        text = cured(command, words) if command is not None and whole else None
        st.code(text or launch_flags(found.sizing, words), language=None)
        if text:
            st.caption("Your command with the sizing flags changed, everything else as it was.")
    left = "; choose there what the log does not say" if why_not == UNKNOWN else ""
    label = f"Explore it on the balance page, with what was read filled in{left}"
    st.page_link("app.py", label=label, query_params=to_query(found.scenario), icon="⚖️")


def _command_alone(scenario: Scenario, command: Command) -> None:
    """A command without a log: what it states goes to the balance page."""
    for problem in command.problems:
        st.warning(plain(problem.sentence))
    model = named_model(command.model_path)
    others = {name: value for name, value in scenario.stated().items() if not (model and name in FILLED)}
    found = read_scenario(others | command.values | ({"model": model} if model else {}))
    if not isinstance(found, Scenario):
        st.error(plain("\n".join(problem.sentence for problem in found)))
        return
    rows = [(name, str(value), command.sources.get(name, "")) for name, value in command.values.items()]
    rows += [("model", model, "--model-path")] if model else []
    if rows:
        unknown = "" if model else "Its model is not in the catalogue, so the bytes are the sidebar's too. "
        left = f"A command does not say rest: all that it does not state stays as in the sidebar. {unknown}"
        st.markdown(plain(left))
        st.markdown(table_text(("input", "value", "from"), rows))
        label = "Use these flags on the balance page"
        st.page_link("app.py", label=label, query_params=to_query(found), icon="⚖️")


show_page("Why am I clamped?", show_clamped)
