"""Why am I clamped?: what SGLang says, at boot or while it runs, and the launch command behind it, solved again."""

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import state
from pages.parts.blocks import plain, table_text, unbroken
from pages.parts.frame import show_page
from pages.parts.hardware import show_boot_memory
from pages.parts.inputs import take_inputs
from pages.parts.kept import kept_box
from pages.parts.paste import read_on_paste
from pages.parts.plot import show_figures
from pages.parts.presented import presented, slide
from pages.parts.state import fill
from pages.parts.words import code, show_words, the_change
from sizing import Scenario, read_scenario
from sizing.answers import limit_panel as lifts
from sizing.answers.recommended import recommended
from sizing.basics.units import count
from sizing.bootlog import Boot
from sizing.bootlog.diagnosis import Diagnosis, models_that_fit, named_model, readings, settled
from sizing.bootlog.text import MAX_BYTES
from sizing.command import Command, read_command
from sizing.exchange.answer import SizingAnswer
from sizing.exchange.link import to_query
from sizing.exchange.log_answer import model_named_by
from sizing.exchange.server_answer import Serving, Told, is_boot, told
from sizing.exchange.server_words import BESIDE_COLUMNS, COLUMNS, beside_rows, measured_rows
from sizing.explain.unified_memory import COLUMNS as UNIFIED_COLUMNS
from sizing.explain.verdict import advice, idle_words
from sizing.figures import crossing_figure, occupancy_figure
from sizing.scenario.from_model import FILLED, servable
from sizing.scenario.inputs import LABELS, MAX_L, MAX_SLOT_BYTES
from sizing.server.example import example
from sizing.server.inputs import NO_BYTES
from sizing.server.recorder import recorder
from sizing.server.texts import Read, read_texts

MAX_UPLOAD_MB = MAX_BYTES // 2**20
BOX_HEIGHT = 160  # [px] of a box to paste into
CHUNK = 2**20
READ = "log_read"  # in the session: what was read last, and what it gave
FILES, TEXT, COMMAND, STATE_BYTES = "log_file", "log_text", "command_text", "log_state_bytes"
MEGABYTE = 10**6
BELOW_WORDS = 415  # [px] of the figure on a slide
WHAT_TO_GIVE = (
    "Give a boot log (the lines from “Load weight begin” to “max_total_num_tokens=” are enough), or what a server says "
    "while it runs: /server_info, /metrics or /v1/loads, lines of prefill and decode batches. One of them, or several "
    "together. The launch command is optional: it fills in what a log does not hold, and is given back with other "
    "sizing flags."
)
RECORD = (
    "No scrapes yet? This loop asks a running server for ten minutes and writes one file to drop above. It runs where "
    "you start it; this page connects to nothing."
)


def show_log(scenario: Scenario) -> None:
    """The page, from the boxes down."""
    first = st.container()
    given, command = _given()
    if given is None:
        first.markdown(f"# Why am I clamped?\n\n{plain(WHAT_TO_GIVE)}")
        if command is not None:
            _command_alone(scenario, command)
        _recorder()
        return
    read = given.read
    for sentence in read.sentences:
        st.warning(plain(sentence))
    if read.log.last is None and read.facts is None:
        first.markdown("# Nothing to read in this log")
        return
    model, named = _model(read, command)
    typed = _bytes(read, command, model)
    found = told(read, command, scenario.L, model if typed or model != named else None, **typed)
    with first:
        st.markdown(_headline(found))
        if found.found is not None:
            _cure(found.answer, found.found, command)
        _whose(found, given, scenario, typed)
    if presented():
        _slide(found, given)
        return
    _notices(found, read)
    if found.unified is not None:
        st.markdown(f"## Static beside unified memory\n\n{table_text(UNIFIED_COLUMNS, found.unified.rows)}")
    if read.facts is not None and found.answer.serving is not None:
        if read.facts.main is not None:
            figure = occupancy_figure(read.facts, "" if given.name == PASTED else given.name)
            show_figures({"occupancy": (figure, found.sentences[0])}, key="occupancy")
        st.markdown("\n\n".join(_measured(found.answer.serving)))
    if found.found is not None and found.boot is not None and found.printed:
        show_boot_memory(found.boot, found.found, scenario.gpu)
        st.markdown("\n\n".join(_tables(found.boot, found.found, found.answer)))
    _recorder()


def _notices(found: Told, read: Read) -> None:
    """What a reader has to know of the text."""
    for notice in found.answer.notices:
        (st.warning if notice.about in SERIOUS else st.info)(plain(notice.words))
    for other in read.log.failed:
        if other is not found.boot and other.refused:
            st.caption(plain(f"Line {count(other.first_line)}: {other.refused.refusal.sentence}"))
    if found.found is not None and found.printed:
        for sentence in found.found.facts.conflicts:
            st.warning(plain(sentence))


# What makes the numbers those of another run, of no run, or of a part of it.
SERIOUS = ("log_and_command_differ", "ranks_differ", "cut_short", "died_later", "flags_elsewhere", "unread_flags")


class Given(NamedTuple):
    """What was read, and what it is called."""

    name: str
    read: Read
    simulated: bool = False
    """Whether it is the example."""


def _slide(found: Told, given: Given) -> None:
    """The one figure of a presented page: what the server did, else where the memory of the boot went."""
    facts = given.read.facts
    if facts is not None and facts.main is not None:
        figure = slide(occupancy_figure(facts, "" if given.name == PASTED else given.name), BELOW_WORDS)
        show_figures({"occupancy": (figure, found.sentences[0])}, key="occupancy")
    elif found.found is not None and found.found.sizing is not None:
        figure = slide(crossing_figure(found.found.sizing), BELOW_WORDS)
        show_figures({"crossing": (figure, found.sentences[0])}, key="log_crossing")


def _given() -> tuple[Given | None, Command | None]:
    """All boxes, kept over page changes; files and pasted text are read as one."""
    if not presented():
        read_on_paste()
    left, right = st.columns([2, 1])
    files = [] if presented() else _files(left)
    sample = "[... TP0] Load weight begin. avail mem=178.00 GB"
    paste = partial(left.text_area, "or paste the log", height=BOX_HEIGHT, placeholder=sample)
    sample = "sglang serve --model-path ..."
    launch = partial(right.text_area, "Launch command, if you have it", height=BOX_HEIGHT, placeholder=sample)
    pasted, typed = str(kept_box(TEXT, "", paste)), str(kept_box(COMMAND, "", launch))
    if not presented():
        row = right.container(horizontal=True)
        row.button("Read", help="What is pasted is read at once; this reads what was typed.")
        if not files and not pasted.strip():
            row.button("Try an example", on_click=_try, type="tertiary")
    given = _read(files, pasted)
    if given is not None and not files and given.name != PASTED:
        left.caption(plain(f"Shown: {given.name}."))
        left.button("Forget this log", on_click=_forget)
    return given, read_command(typed) if typed.strip() else None


def _files(place: DeltaGenerator) -> list[Any]:
    return list(
        place.file_uploader(
            "Boot log, answers or scrapes of a server, plain or gzip",
            max_upload_size=MAX_UPLOAD_MB,
            accept_multiple_files=True,
            key=FILES,
            on_change=_forget,
        )
    )


def _try() -> None:
    for box, text in zip((TEXT, COMMAND), example(), strict=True):
        state.note(box, text)
        fill(box, text)


def _forget() -> None:
    state.forget(READ)


PASTED = "pasted text"


def _read(files: list[Any], pasted: str) -> Given | None:
    """What is there now, or an uploaded file that was read before the page was left; the same is not read again."""
    what = (tuple(file.file_id for file in files), pasted.strip())
    kept = state.noted(READ)
    if kept is not None and (kept[0] == what or (kept[0][0] and not files)):
        given: Given = kept[1]
        return given
    if not any(what):
        return None
    size = sum(file.size for file in files) + len(pasted)
    bar = st.progress(0.0, "Reading the log")

    def show(done: int) -> None:
        bar.progress(min(done / max(size, 1), 1.0), f"Read {done // MEGABYTE} of {size // MEGABYTE} MB")

    name = ", ".join(file.name for file in files[:3]) + (", ..." if len(files) > 3 else "") or PASTED
    given = Given(name, read_texts(_texts(files, pasted), show), not files and pasted.strip() == example().log.strip())
    bar.empty()
    state.note(READ, (what, given))
    return given


def _texts(files: list[Any], pasted: str) -> Iterator[Iterable[bytes]]:
    for file in files:
        file.seek(0)
        yield iter(partial(file.read, CHUNK), b"")
    if pasted.strip():
        yield [pasted.encode("utf-8", "replace")]


def _model(read: Read, command: Command | None) -> tuple[str, str]:
    """The model whose exact bytes are taken, and the one that is taken where none is chosen, as by the command `log`:
    the one that is named, if any; another model may have the printed sizes too.
    """
    boot = read.log.last
    if boot is not None and is_boot(boot):
        facts = settled(boot, command)
        fits, first = models_that_fit(facts), model_named_by(boot, command)
        key = f"log_model_{boot.first_line}_{facts.slots}_{facts.settings.tp_size}"
    else:
        found = told(read, command).found
        fits, first, key = (), found.model if found else "", "log_model_of_server"
    options = ["", *fits, *(model for model in servable() if model not in fits)]

    def named(model: str) -> str:
        return f"{model} (fits the printed sizes)" if model in fits else model or "none: the printed sizes"

    box = partial(
        st.selectbox,
        "Model, for exact bytes",
        options,
        format_func=named,
        help="Two decimals of GiB leave an interval; a model whose bytes lie in it makes the numbers exact.",
    )
    return str(kept_box(f"{key}_{first}", first, box, options)), first


def _bytes(read: Read, command: Command | None, model: str) -> dict[str, Any]:
    """State bytes of one slot, asked for where no field of a running server has them and no model is chosen."""
    if model or read.facts is None or read.facts.info is None or told(read, command, model="").why_not != NO_BYTES:
        return {}
    box = partial(st.text_input, "State bytes per slot, where the model is not in the list", max_chars=20)
    typed = str(kept_box(STATE_BYTES, "", box)).replace(",", "").strip()
    if not typed:
        return {}
    if not typed.isdigit() or not 0 < int(typed) <= MAX_SLOT_BYTES:
        st.error("State bytes per slot: a whole number of bytes is needed, such as 56171520.")
        return {}
    return {"state_bytes_per_slot": int(typed), "conv_bytes_per_slot": None}  # unknown


def _whose(found: Told, given: Given, scenario: Scenario, typed: dict[str, Any]) -> None:
    """Which numbers are the log's and which are not, with the length in use as the L to take."""
    facts = given.read.facts
    words = " ".join(_sources(found, given, typed))
    words += f" From the sidebar: L = {count(scenario.L)}"
    length = facts.length_in_use if facts else None
    words += ", because no log says how long requests will be." if length is None else "."
    other = _differs(found.found.scenario if found.found else None, scenario)
    if other:
        words += f" The sidebar describes another deployment: it differs in {other}."
    st.caption(plain(words))
    if length is not None and length != scenario.L and length <= MAX_L and not presented():
        label = f"Take L = {count(length)}, the length in use"
        st.button(label, on_click=take_inputs, args=({"L": length},), help="KV tokens per running request, measured.")


def _sources(found: Told, given: Given, typed: dict[str, Any]) -> Iterator[str]:
    """Where the numbers are from, but for L."""
    if given.simulated:
        yield "Example: a boot of the engine's own sizing code, and an hour of load that is simulated."
    answer, facts, model = found.answer, given.read.facts, found.found.model if found.found else ""
    of_text = {
        "slots": answer.slots is not None,
        "tokens": answer.kv_tokens is not None,
        "rest": answer.rest_gib is not None,
        "bytes": answer.state_bytes_per_slot is not None and not model and not typed,
        "occupancy": facts is not None and facts.main is not None,
    }
    if any(of_text.values()):
        told_by = "log" if found.printed else "server"
        yield f"From the {told_by}: {', '.join(name for name, there in of_text.items() if there)}."
    if model:
        yield f"From the catalogue: the bytes of {model}."


# What makes another deployment of it, the first first; of those that differ so many are named.
TOLD_APART = (
    "model", "release", "tp_size", "pp_size", "attn_dp_size", "dcp_size", "rest_gib", "kv_cache_dtype",
    "mamba_ssm_dtype", "D", "max_running_requests", "disaggregation_mode", "enable_unified_memory",
)  # fmt: skip
SHOWN_APART = 4


def _differs(log: Scenario | None, sidebar: Scenario) -> str:
    """The inputs in which the deployment of the log and that of the sidebar differ; empty where they agree."""
    if log is None:
        return ""
    names = [LABELS[name] for name in TOLD_APART if getattr(sidebar, name) != getattr(log, name)]
    more = len(names) - SHOWN_APART
    return ", ".join(names[:SHOWN_APART]) + (f" and {more} more" if more > 0 else "")


def _headline(found: Told) -> str:
    """What happened, in one line with its reasons."""
    headline, *rest = found.sentences
    flags = found.answer.flags  # the change below says them with what they give
    rest = [sentence for sentence in rest if not (flags and sentence.startswith(f"{' '.join(flags)}: "))]
    sizing = found.found.sizing if found.found is not None else None
    shown = sizing is not None and found.answer.flags is not None and found.unified is None
    idle = idle_words(sizing) if sizing is not None and shown else ""
    return f"# {plain(unbroken([headline])[0])}\n\n{plain(' '.join((*rest, idle)).strip())}"


def _measured(serving: Serving) -> list[str]:
    """Prediction beside measurement, and everything that was measured."""
    parts = []
    if serving.beside:
        parts += ["## Predicted beside measured", table_text(BESIDE_COLUMNS, beside_rows(serving))]
    if rows := measured_rows(serving):
        parts += ["## What the server did", table_text(COLUMNS, rows)]
    return parts


def _recorder() -> None:
    if presented():
        return
    with st.expander("Record a running server: ten minutes, one file"):
        st.markdown(plain(RECORD))
        st.code(recorder(), language="bash", wrap_lines=True)


def _tables(boot: Boot, found: Diagnosis, answer: SizingAnswer) -> list[str]:
    """What was printed, predicted beside printed, what is missing and assumed, every limit, and the advice."""
    parts = []
    if found.beside and boot.refused is None:
        parts += [
            "## Predicted beside printed",
            table_text(("quantity", "predicted", "printed", "why they differ"), found.beside),
        ]
    parts += [
        "## What the log says, per rank",
        table_text(("quantity", "value", "between", "from"), readings(found.facts, found)),
    ]
    for title, sentences in (
        ("What the log does not say", found.inputs.missing),
        ("What was assumed", found.inputs.assumed),
    ):
        parts += [f"## {title}", _list(sentences)] if sentences else []
    # Both name flags: where none are proposed, nothing below proposes any.
    # Limits and advice are those of two pools.
    shown = found.sizing is not None and answer.flags is not None and boot.refused is None
    shown = shown and found.sizing is not None and not found.sizing.scenario.enable_unified_memory
    rows = lifts.lift_rows(found.sizing) if shown and found.sizing is not None else []
    parts += ["## Every limit, the smallest first", table_text(lifts.COLUMNS, rows)] if rows else []
    if shown and found.sizing is not None:
        found_advice = tuple(f"{item.topic}. {item.text}" for item in advice(found.sizing))
        parts += ["## What applies now", _list(found_advice)] if found_advice else []
    return parts


def _list(sentences: tuple[str, ...]) -> str:
    return "\n".join(f"- {plain(sentence)}" for sentence in sentences)


def _cure(answer: SizingAnswer, found: Diagnosis, command: Command | None) -> None:
    """The flags to set, the command with them, and the way to the balance page with everything filled in."""
    if answer.flags is not None:
        best = recommended(found.sizing) if found.sizing is not None else None
        numbers = best.numbers if best is not None and best.flags == answer.flags else "The cure"
        change = "\n".join(_changed(answer, command))
        reason = best.reason if best is not None and best.flags == answer.flags else ""
        show_words(the_change(numbers, change, reason, language="diff" if answer.command else ""), key="change")
        if answer.command:
            show_words(code(answer.command), key="log_command")
            st.caption("Your command with the lines above changed, everything else as it was.")
    if found.scenario is None or presented():
        return
    left = "; choose there what the log does not say" if found.sizing is None else ""
    label = f"Explore it on the balance page, with what was read filled in{left}"
    st.page_link("app.py", label=label, query_params=to_query(found.scenario), icon="⚖️")


def _changed(answer: SizingAnswer, command: Command | None) -> list[str]:
    """What changes: flags that go with a minus, flags that come with a plus; without a command the flags alone."""
    flags = list(answer.flags or ())
    if not answer.command or command is None:
        return flags
    before, after = (re.split(r"[\s\\]+(?=--)", text.strip()) for text in (command.text, answer.command))
    lines = difflib.ndiff([one.strip() for one in before], [one.strip() for one in after])
    return [line for line in lines if line.startswith(("- --", "+ --"))] or flags


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


show_page("Log", show_log, counting=("L",))
