"""Model: what a checkpoint's config.json makes of both pools, byte for byte, before the first boot."""

from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.parts.blocks import plain, table_text
from pages.parts.frame import show_page
from pages.parts.plot import show_figures
from sizing import Scenario
from sizing.examples import within_printed
from sizing.figures import layers_figure, slots_figure, widths_figure
from sizing.from_model import filled, geometry_of, suggested
from sizing.gpus import GPUS, estimate_rest
from sizing.link import to_query
from sizing.models import VERIFICATION_MEANS, Geometry, ModelRefusedError, byte_steps, entry, read_config
from sizing.models.summary import AtWidth, at_widths, catalogue_rows, layers_in_words
from sizing.scenario import read_scenario, widths_of
from sizing.units import GIB, count, number

MAX_UPLOAD_MB = 4  # the reader takes no more
GUESS = (
    "An estimate, not the engine's number: it leaves out weights that every rank repeats, a draft model's weights, "
    "what loading leaves behind, the multimodal reservation and post-capture slack, each of which makes the real rest "
    "smaller. A boot log of your own flags always overrides it."
)


def show_model(scenario: Scenario) -> None:
    """The model of the sidebar, or the config.json that is given here."""
    first = st.container()
    with st.expander("A model of your own: config.json", expanded=bool(st.session_state.get("kept_config"))):
        pasted = _given()
    try:
        geometry = read_config(*pasted) if pasted else _chosen(scenario)
        if geometry is None:
            first.info("No model is chosen: the bytes are typed in. Choose one in the sidebar, or give a config.json.")
        else:
            _show(first, scenario, geometry, own=bool(pasted))
    except ModelRefusedError as refused:
        first.error(plain(str(refused)))
    _rest(scenario)
    _catalogue()


def _given() -> tuple[str | bytes, ...]:
    """What was uploaded or pasted: config.json, and hf_quant_config.json where it is there; empty for nothing."""
    files = st.file_uploader(
        "config.json, with hf_quant_config.json where the checkpoint has one",
        type="json",
        accept_multiple_files=True,
        max_upload_size=MAX_UPLOAD_MB,
    )
    if "pasted_config" not in st.session_state:
        st.session_state["pasted_config"] = st.session_state.get("kept_config", "")
    text = st.text_area("or paste config.json", key="pasted_config", height=120, placeholder='{"model_type": "..."}')
    st.session_state["kept_config"] = text
    by_name = {file.name.lower(): file.getvalue() for file in files}
    config = next((data for name, data in by_name.items() if "quant" not in name), None) or text.strip()
    quantisation = next((data for name, data in by_name.items() if "quant" in name), None)
    if not config:
        return ()
    return (config, quantisation) if quantisation else (config,)


def _chosen(scenario: Scenario) -> Geometry | None:
    return geometry_of(scenario.model) if scenario.model else None


def _show(first: DeltaGenerator, scenario: Scenario, geometry: Geometry, *, own: bool) -> None:
    """One model: bytes, layers, widths, formulas, and the way to the balance page. Raises ModelRefusedError."""
    name = (geometry.architecture or geometry.model_type) if own else scenario.model
    tp = scenario.tp_size // scenario.attn_dp_size
    dtypes = (scenario.mamba_ssm_dtype, scenario.mamba_conv_dtype, scenario.kv_cache_dtype)
    steps = byte_steps(geometry, tp, dtypes[2], scenario.dcp_size, dtypes[0], dtypes[1])
    bytes_here = filled(geometry, widths_of(scenario))
    slot, token = bytes_here["state_bytes_per_slot"], bytes_here["kv_bytes_per_token"]
    ranks = f"TP{tp}" + (f", {scenario.pp_size} stages" if scenario.pp_size > 1 else "")
    price = f"One slot costs as much as {number(slot / token)} KV tokens (token_equiv)."
    first.markdown(
        f"### {plain(name.partition('/')[2] or name)}: a slot costs {count(slot)} bytes, a token {count(token)} bytes "
        f"on one rank at {ranks}\n\n" + plain(f"{layers_in_words(geometry)} {price}")
    )
    _to_balance(first, scenario, geometry, bytes_here, own=own)
    show_figures(
        {
            "layers": (layers_figure(geometry, name), layers_in_words(geometry)),
            "slots": (slots_figure(geometry, name, dtypes[0], dtypes[1]), "Bytes of a slot over TP widths."),
            "widths": (widths_figure(geometry, name), "token_equiv over TP widths and dtypes."),
        },
        key="model_figures",
    )
    st.markdown("\n\n".join(_words(scenario, geometry, steps, own=own)))


def _words(scenario: Scenario, geometry: Geometry, steps: Any, *, own: bool) -> list[str]:
    """Formulas, bytes by TP width, what the file says, and how sure the entry is."""
    rows = at_widths(geometry, scenario.mamba_ssm_dtype, scenario.mamba_conv_dtype, scenario.kv_cache_dtype)
    asks = ", ".join(f"{field} {value}" for field, value in suggested(geometry).items())
    parts = [
        "#### The bytes, with the model's numbers",
        table_text(
            ("quantity", "formula", "numbers", "result"),
            ((step.quantity, step.formula, step.numbers, step.result) for step in steps),
        ),
        f"#### By TP width, {plain(scenario.mamba_ssm_dtype)} SSM and {plain(scenario.kv_cache_dtype)} KV, one rank",
        _widths_table(rows),
        plain(f"Without flags the checkpoint itself asks for {asks}. {' '.join(geometry.notes)}"),
    ]
    if not own:
        found = entry(scenario.model)
        parts.append(
            plain(
                f"How sure: {found.verification}, {VERIFICATION_MEANS[found.verification]}. Sources: "
                f"{'; '.join(found.sources)}. {' '.join(found.notes)}"
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
            row.why_not,
        )
        for row in rows
    ]
    if any(row.why_not for row in rows):
        return table_text((*columns, "why not"), cells)
    return table_text(columns, (row[:-1] for row in cells))


def _or_dash(value: int | None) -> str:
    return "-" if value is None else count(value)


def _to_balance(
    place: DeltaGenerator, scenario: Scenario, geometry: Geometry, bytes_here: dict[str, Any], *, own: bool
) -> None:
    """One button that carries the model to the balance page: by name, or a model of one's own by its bytes."""
    if not own:
        place.page_link("app.py", label="Use it on the balance page", query_params=to_query(scenario), icon="⚖️")
        return
    context = {"context_length": geometry.context_length} if geometry.context_length else {}
    values = scenario.stated() | context | bytes_here
    name = "".join(char for char in geometry.architecture or geometry.model_type if char.isalnum())[:50]
    found = read_scenario(values | {"model": "", "name": f"{name}, TP{scenario.tp_size}"})
    if isinstance(found, Scenario):
        label = "Use its bytes on the balance page (they hold for this TP width)"
        place.page_link("app.py", label=label, query_params=to_query(found), icon="⚖️")


def _rest(scenario: Scenario) -> None:
    """A first estimate of rest from a GPU, the weights and the fraction."""
    st.markdown("#### Before there is a boot log: an estimate of rest")
    gpu, weights, fraction = st.columns(3)
    chosen = gpu.selectbox("GPU", GPUS, format_func=lambda item: item.name, key="gpu")
    size = weights.number_input("Weights of the whole model [GiB]", value=None, min_value=0.0, key="weights_gib")
    static = fraction.number_input(
        "--mem-fraction-static", value=None, min_value=0.01, max_value=0.99, step=0.01, key="fraction"
    )
    if size is None or static is None:
        st.caption("Enter the weights and the fraction that you start with.")
        return
    rest = estimate_rest(chosen.memory_bytes, round(size * GIB), static, scenario.tp_size, scenario.pp_size)
    steps = (
        f"rest = {chosen.memory_bytes / GIB:.2f} x {static:g} - {size:g} / {scenario.tp_size * scenario.pp_size} "
        f"= {number(rest)} GiB per rank."
    )
    st.markdown(plain(f"{steps} {GUESS}"))
    if rest <= 0:
        st.error("The weights do not fit: raise the fraction, or spread them over more ranks.")
        return
    found = read_scenario(scenario.stated() | {"rest_gib": round(rest, 3)})
    if isinstance(found, Scenario):
        st.page_link("app.py", label="Use this rest on the balance page", query_params=to_query(found), icon="⚖️")


def _catalogue() -> None:
    """Every checkpoint of the catalogue; the box finds by name, also models of the same shapes."""
    st.markdown("#### The catalogue")
    wanted = st.text_input("Find a model", key="catalogue_find", placeholder="kimi, qwen3, nemotron").strip().lower()
    rows = [row for row in _rows() if any(wanted in name.lower() for name in (row.entry.id, *row.entry.same_shapes))]
    if not rows:
        st.caption(plain(f"No model of the catalogue has “{wanted[:40]}” in its name."))
        return
    st.container(height=460).markdown(
        table_text(
            ("model", "state layers", "KV layers", "family", "attention", "how sure", "also, of the same shapes"),
            (
                (
                    row.entry.id,
                    count(len(row.geometry.state_layers)) if row.geometry else "-",
                    count(len(row.geometry.kv_layers)) if row.geometry else "-",
                    row.geometry.family if row.geometry else row.why_not,
                    row.geometry.attention if row.geometry else "-",
                    row.entry.verification,
                    ", ".join(row.entry.same_shapes) or "-",
                )
                for row in rows
            ),
        )
    )


@st.cache_data
def _rows() -> Any:
    return catalogue_rows()


show_page("Model", show_model)
