"""Model: what a checkpoint's config.json makes of both pools, byte for byte, before the first boot."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts import state
from pages.parts.blocks import data_table, plain, sentence, table_text
from pages.parts.frame import show_page
from pages.parts.inputs import OWN, take_suggested
from pages.parts.plot import show_figures
from pages.parts.presented import presented, slide
from sizing import Scenario
from sizing.basics.units import count, number
from sizing.exchange.link import to_query
from sizing.explain.published_examples import within_printed
from sizing.figures import layers_figure, slots_figure, widths_figure
from sizing.models import VERIFICATION_MEANS, Geometry, ModelRefusedError, byte_steps, read_config
from sizing.models.fields import MAX_FILE_BYTES
from sizing.models.reading import QUANTISATION
from sizing.models.summary import AtWidth, at_widths, catalogue_rows, frame, heads_note, layers_in_words
from sizing.scenario.from_model import (
    costs_in_words,
    draft_steps,
    entry_of,
    filled,
    geometry_of,
    stage_steps,
    suggested,
)
from sizing.scenario.inputs import DEFAULTS, read_scenario, widths_of
from sizing.scenario.rest import checkpoint_of

MAX_UPLOAD_MB = MAX_FILE_BYTES // 2**20
# What `widths_of` takes, and the model.
COUNTING = (
    "model", "tp_size", "attn_dp_size", "dcp_size", "pp_size", "mamba_ssm_dtype", "mamba_conv_dtype", "kv_cache_dtype",
    "release", "draft_kv_layers",
)  # fmt: skip
BELOW_LAYERS = 318  # [px] of the figures below the layers on a slide
MAX_NAME = 60  # characters of a name from a file


def show_model(scenario: Scenario) -> None:
    """The model of the sidebar, or the config.json that is given here."""
    first = st.container()
    with st.expander("A model of your own: config.json", expanded=bool(_kept())):
        given = _given()
    try:
        geometry = read_config(*given) if given else geometry_of(scenario.model) if scenario.model else None
        if geometry is None:
            first.info("No model is chosen: the bytes are typed in. Choose one in the sidebar, or give a config.json.")
        else:
            _show(first, scenario, geometry, given)
    except ModelRefusedError as refused:
        first.error(plain(str(refused)))
    if not presented():
        _catalogue()


def _kept() -> dict[str, Any]:
    """What was uploaded or pasted, kept over page changes: `files` by name, and `text`."""
    kept: dict[str, Any] = state.noted_first("kept_config", {"files": {}, "text": ""})
    return kept if kept["files"] or kept["text"] else {}


def _given() -> tuple[str | bytes, ...]:
    """config.json, and hf_quant_config.json where it is there; empty for nothing."""
    kept = state.noted("kept_config")
    st.file_uploader(
        "config.json, with hf_quant_config.json where the checkpoint has one",
        type="json",
        accept_multiple_files=True,
        max_upload_size=MAX_UPLOAD_MB,
        key="config_files",
        on_change=_take_files,
    )
    state.noted_first("config_text", kept["text"])
    st.text_area("or paste config.json", key="config_text", height=120, on_change=_take_text, placeholder="{...}")
    files = kept["files"]
    if not files:
        return (kept["text"],) if kept["text"].strip() else ()
    configs = [name for name in files if name.lower() != QUANTISATION]
    st.caption(plain(f"Shown: {', '.join(name[:MAX_NAME] for name in files)}. Pasted text waits until they are gone."))
    st.button("Forget the uploaded files", on_click=_forget_files)
    if len(configs) != 1:
        raise ModelRefusedError("unreadable", "config.json", f"{len(configs)} files are a config.json; give one.")
    quantised = [files[name] for name in files if name.lower() == QUANTISATION]
    return (files[configs[0]], *quantised)


def _take_files() -> None:
    """Keep what was uploaded; a page that is left takes the boxes with it, but not this."""
    uploaded = state.noted("config_files")
    if uploaded:
        state.noted("kept_config")["files"] = {file.name: file.getvalue() for file in uploaded}
        _take_dtypes()


def _take_text() -> None:
    state.noted("kept_config")["text"] = state.noted("config_text")
    _take_dtypes()


def _forget_files() -> None:
    state.noted("kept_config")["files"] = {}


def _take_dtypes() -> None:
    """A model that is given brings its own dtypes and context, as one that is chosen does."""
    kept = state.noted("kept_config")
    files = {name.lower(): data for name, data in kept["files"].items()}
    config = next((data for name, data in files.items() if name != QUANTISATION), kept["text"])
    try:
        take_suggested(read_config(config, files.get(QUANTISATION)))
    except ModelRefusedError:
        return  # said when the page is drawn
    state.note(state.WHOLE, True)  # the sidebar's boxes too


def _name(scenario: Scenario, geometry: Geometry, *, own: bool) -> str:
    """The catalogue's name, or what a file calls its architecture, as short inert text."""
    if not own:
        return scenario.model
    return "".join(char for char in geometry.architecture or geometry.model_type if char.isalnum() or char in "_-.")[
        :MAX_NAME
    ]


def _show(first: DeltaGenerator, scenario: Scenario, geometry: Geometry, given: tuple[str | bytes, ...]) -> None:
    """One model: bytes, layers, widths, formulas, and the way to the balance page. Raises ModelRefusedError.

    `given` are the files of a model of one's own.
    """
    own = bool(given)
    name, widths = _name(scenario, geometry, own=own), widths_of(scenario)
    tp = widths.attn_tp_size
    steps = byte_steps(geometry, tp, widths.kv, widths.dcp_size, widths.ssm, widths.conv)
    bytes_here = dict(filled(geometry, widths))
    headline, price = costs_in_words(name if own else name.partition("/")[2], geometry, widths)
    first.markdown(f"# {plain(headline)}\n\n{plain(price)}")
    if note := heads_note(geometry, tp):
        first.warning(plain(sentence(note)))
    if own:
        # With a file on how it is quantised, config.json alone does not say how weights are stored.
        stored = checkpoint_of(given[0]) if len(given) == 1 else {}
        _to_balance(first, scenario, geometry, bytes_here | stored)
    else:
        first.page_link("app.py", label="Use it on the balance page", query_params=to_query(scenario), icon="⚖️")
    if presented():
        drawn = slots_figure(geometry, name, widths.ssm, widths.conv), widths_figure(geometry, name)
        show_figures(
            {
                "layers": (layers_figure(geometry, name), layers_in_words(geometry)),
                "slots": (slide(drawn[0], BELOW_LAYERS), "Bytes of a slot over TP widths."),
                "widths": (slide(drawn[1], BELOW_LAYERS), "token_equiv over TP widths and dtypes."),
            },
            key="model_figures",
        )
        return
    show_figures(
        {
            "layers": (layers_figure(geometry, name), layers_in_words(geometry)),
            "slots": (slots_figure(geometry, name, widths.ssm, widths.conv), "Bytes of a slot over TP widths."),
            "widths": (widths_figure(geometry, name), "token_equiv over TP widths and dtypes."),
        },
        key="model_figures",
    )
    steps = (*steps, *stage_steps(geometry, widths, bytes_here), *draft_steps(geometry, widths))
    st.markdown("\n\n".join(_words(scenario, geometry, steps, own=own)))


def _words(scenario: Scenario, geometry: Geometry, steps: Any, *, own: bool) -> list[str]:
    """Formulas, bytes by TP width, what the file says, and how sure the entry is."""
    rows = at_widths(geometry, scenario.mamba_ssm_dtype, scenario.mamba_conv_dtype, scenario.kv_cache_dtype)
    ssm = f"{plain(scenario.mamba_ssm_dtype)} SSM and " if any(row.ssm for row in rows) else ""
    asks = ", ".join(
        f"{field} {count(value) if isinstance(value, int) else value}" for field, value in suggested(geometry).items()
    )
    parts = [
        "## The bytes, with the model's numbers",
        table_text(
            ("quantity", "formula", "numbers", "result"),
            ((step.quantity, step.formula, step.numbers, step.result) for step in steps),
        ),
        f"## By TP width, {ssm}{plain(scenario.kv_cache_dtype)} KV, one rank",
        _widths_table(rows),
        plain(f"Without flags the checkpoint itself asks for {asks}. {' '.join(geometry.notes)}"),
    ]
    if not own:
        found = entry_of(scenario.model)
        notes = f" Notes: {'; '.join(found.notes)}." if found.notes else ""
        parts.append(
            plain(
                f"Configuration: {VERIFICATION_MEANS[found.verification]}. Sources: {'; '.join(found.sources)}.{notes}"
            )
        )
        if agrees := within_printed(scenario):
            parts.append(plain(agrees))
    return parts


def _widths_table(rows: tuple[AtWidth, ...]) -> str:
    """Bytes by TP width; why a width cannot be where one cannot."""
    columns = ("attention TP", "conv bytes", "SSM bytes", "bytes per slot", "bytes per token", "token_equiv")
    cells = [
        (
            str(row.tp),
            *(_or_dash(value) for value in (row.conv, row.ssm, row.slot, row.token)),
            number(row.token_equiv) if row.token_equiv else "-",
            row.why_not or row.note,
        )
        for row in rows
    ]
    if any(row.why_not or row.note for row in rows):
        return table_text((*columns, "note"), cells)
    return table_text(columns, (row[:-1] for row in cells))


def _or_dash(value: int | None) -> str:
    return "-" if value is None else count(value)


def _to_balance(place: DeltaGenerator, scenario: Scenario, geometry: Geometry, bytes_here: dict[str, Any]) -> None:
    """One button that carries a model of one's own to the balance page by its bytes."""
    # The sidebar's are another model's.
    unstated = {name: DEFAULTS[name] for name in ("rest_gib", "rest_source", "weights_bytes", "checkpoint")}
    values = (
        scenario.stated()
        | unstated
        | bytes_here
        | {"model": "", "name": f"{OWN}{_name(scenario, geometry, own=True)}"[:MAX_NAME]}
    )
    found = read_scenario(values)
    if isinstance(found, Scenario):
        label = "Use its bytes on the balance page (they hold for these widths)"
        place.page_link("app.py", label=label, query_params=to_query(found), icon="⚖️")
    else:
        place.caption(plain("\n".join(problem.sentence for problem in found)))


def _catalogue() -> None:
    """Every checkpoint of the catalogue; the box finds by name, also models of the same shapes."""
    st.markdown("## The catalogue")
    wanted = st.text_input("Find a model", key="catalogue_find", placeholder="kimi, qwen3, nemotron").strip().lower()
    rows = [row for row in _rows() if any(wanted in name.lower() for name in (row.entry.id, *row.entry.same_shapes))]
    if not rows:
        st.caption(plain(f"No model of the catalogue has “{wanted[:40]}” in its name."))
        return
    data_table(frame(rows), key="catalogue")


@st.cache_data
def _rows() -> Any:
    return catalogue_rows()


show_page("Model", show_model, COUNTING)
