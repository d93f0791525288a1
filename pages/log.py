"""Why am I clamped?: a boot log and the launch command behind it, solved again and put beside what was printed."""

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from pages.parts import state
from pages.parts.blocks import plain, table_text
from pages.parts.frame import show_page
from pages.parts.kept import kept_box
from sizing import Scenario, read_scenario
from sizing.answers import limit_panel as lifts
from sizing.basics.units import count
from sizing.bootlog import Boot, Log, read_chunks, read_text
from sizing.bootlog.diagnosis import Diagnosis, likely_model, models_that_fit, named_model, readings, settled
from sizing.bootlog.text import MAX_BYTES, Progress
from sizing.command import Command, read_command
from sizing.exchange.answer import SizingAnswer
from sizing.exchange.link import to_query
from sizing.exchange.log_answer import LogAnswer, log_answer
from sizing.explain.verdict import advice, idle_words
from sizing.scenario.from_model import FILLED, servable

MAX_UPLOAD_MB = MAX_BYTES // 2**20
BOX_HEIGHT = 160  # [px] of a box to paste into
CHUNK = 2**20
READ = "log_read"  # in the session: what was read last, and what it gave
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
    for problem in log.problems:
        st.warning(plain(problem.sentence))
    if log.last is None:
        first.markdown("### Nothing to read in this log")
        return
    boot = log.last
    told = log_answer(log, command, scenario.L, _model(boot, command))
    first.markdown(_headline(told))
    for notice in told.answer.notices:
        (st.warning if notice.about in SERIOUS else st.info)(plain(notice.words))
    for other in log.failed:
        if other is not boot and other.refused:
            st.caption(plain(f"Line {count(other.first_line)}: {other.refused.refusal.sentence}"))
    for sentence in boot.facts.conflicts:
        st.warning(plain(sentence))
    if told.found is not None:
        _cure(told.answer, told.found)
        st.markdown("\n\n".join(_tables(boot, told.found, told.answer)))


# What makes the numbers those of another run, of no run, or of a part of it.
SERIOUS = ("log_and_command_differ", "ranks_differ", "cut_short", "died_later", "flags_elsewhere", "unread_flags")


def _given() -> tuple[Log | None, Command | None]:
    """Both boxes, kept over page changes; an uploaded file comes before pasted text."""
    left, right = st.columns([2, 1])
    file = left.file_uploader("Boot log, plain or gzip", max_upload_size=MAX_UPLOAD_MB, key="log_file")
    example = "[... TP0] Load weight begin. avail mem=178.00 GB"
    paste = partial(left.text_area, "or paste the log", height=BOX_HEIGHT, placeholder=example)
    example = "sglang serve --model-path ..."
    launch = partial(right.text_area, "Launch command, if you have it", height=BOX_HEIGHT, placeholder=example)
    pasted, typed = str(kept_box("log_text", "", paste)), str(kept_box("command_text", "", launch))
    log = _read_file(file) if file is not None else _read_paste(pasted) if pasted.strip() else None
    return log, read_command(typed) if typed.strip() else None


def _read_paste(text: str) -> Log:
    """A pasted log; the same text is not read again."""
    return _read_once(text, len(text), lambda show: read_text(text, show))


def _read_file(file: Any) -> Log:
    """An uploaded log, in chunks; the same file is not read again."""
    file.seek(0)
    return _read_once(file.file_id, file.size, partial(read_chunks, iter(lambda: file.read(CHUNK), b"")))


def _read_once(what: str, size: int, read: Callable[[Progress], Log]) -> Log:
    """What `read` gives of it, kept while it stands; with the share that is read, which ends if the reader leaves."""
    kept = state.noted(READ)
    if kept is not None and kept[0] == what:
        log: Log = kept[1]
        return log
    bar = st.progress(0.0, "Reading the log")

    def show(done: int) -> None:
        bar.progress(min(done / max(size, 1), 1.0), f"Read {done // MEGABYTE} of {size // MEGABYTE} MB")

    log = read(show)
    bar.empty()
    state.note(READ, (what, log))
    return log


def _model(boot: Boot, command: Command | None) -> str:
    """The model whose exact bytes are taken, first of all one that the printed sizes allow."""
    facts = settled(boot, command)
    fits = models_that_fit(facts)
    options = ["", *fits, *(model for model in servable() if model not in fits)]

    def named(model: str) -> str:
        return f"{model} (fits the printed sizes)" if model in fits else model or "none: the printed sizes"

    return st.selectbox(
        "Model, for exact bytes",
        options,
        index=options.index(likely_model(facts, fits)),
        format_func=named,
        key=f"log_model_{boot.first_line}_{facts.slots}_{facts.settings.tp_size}",
        help="Two decimals of GiB leave an interval; a model whose bytes lie in it makes the numbers exact.",
    )


def _headline(told: LogAnswer) -> str:
    """What happened, in one line with its reasons."""
    headline, *rest = told.sentences
    sizing = told.found.sizing if told.found is not None else None
    idle = idle_words(sizing) if sizing is not None and told.answer.flags is not None else ""
    return f"### {plain(headline)}\n\n{plain(' '.join((*rest, idle)).strip())}"


def _tables(boot: Boot, found: Diagnosis, answer: SizingAnswer) -> list[str]:
    """What was printed, predicted beside printed, what is missing and assumed, every limit, and the advice."""
    parts = []
    if found.beside and boot.refused is None:
        parts += [
            "#### Predicted beside printed",
            table_text(("quantity", "predicted", "printed", "why they differ"), found.beside),
        ]
    parts += [
        "#### What the log says, per rank",
        table_text(("quantity", "value", "between", "from"), readings(found.facts, found)),
    ]
    for title, sentences in (
        ("What the log does not say", found.inputs.missing),
        ("What was assumed", found.inputs.assumed),
    ):
        parts += [f"#### {title}", _list(sentences)] if sentences else []
    # Both name flags: where none are proposed, nothing below proposes any.
    shown = found.sizing is not None and answer.flags is not None and boot.refused is None
    rows = lifts.lift_rows(found.sizing) if shown and found.sizing is not None else []
    parts += ["#### Every limit, the smallest first", table_text(lifts.COLUMNS, rows)] if rows else []
    if shown and found.sizing is not None:
        found_advice = tuple(f"{item.topic}. {item.text}" for item in advice(found.sizing))
        parts += ["#### What applies now", _list(found_advice)] if found_advice else []
    return parts


def _list(sentences: tuple[str, ...]) -> str:
    return "\n".join(f"- {plain(sentence)}" for sentence in sentences)


def _cure(answer: SizingAnswer, found: Diagnosis) -> None:
    """The command with the better flags, and the way to the balance page with everything filled in."""
    if answer.flags is not None:
        st.markdown("#### The cure, as a command")
        st.code(answer.command or " ".join(answer.flags), language=None)
        if answer.command:
            st.caption("Your command with these flags changed, everything else as it was.")
    if found.scenario is None:
        return
    left = "; choose there what the log does not say" if found.sizing is None else ""
    label = f"Explore it on the balance page, with what was read filled in{left}"
    st.page_link("app.py", label=label, query_params=to_query(found.scenario), icon="⚖️")


def _command_alone(scenario: Scenario, command: Command) -> None:
    """A command without a log: what it states goes to the balance page."""
    for sentence in (*(problem.sentence for problem in command.problems), *command.elsewhere):
        st.warning(plain(sentence))
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


show_page("Why am I clamped?", show_clamped, counting=("L",))
