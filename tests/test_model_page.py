"""The page Model and the command that says the same: bytes of a checkpoint or of a config.json, and refusals."""

import json
from functools import partial

import pytest
from streamlit.testing.v1 import AppTest

from pages.parts.state import HELD
from sizing.basics.units import count
from sizing.models import entry
from sizing.models.summary import TP_WIDTHS, at_widths, catalogue_rows, layers_in_words
from sizing.scenario.from_model import FILLED, geometry_of, servable
from sizing.scenario.inputs import Scenario
from tests.conftest import Run

TIMEOUT = 30  # seconds; the harness gives three unless told otherwise


@pytest.fixture
def page() -> AppTest:
    """The page, opened without a link."""
    return AppTest.from_file("../app.py", default_timeout=TIMEOUT).run().switch_page("pages/model.py").run()


def words(page: AppTest) -> str:
    """All words of the page, with the escapes of Markdown taken out."""
    shown = [element.value for element in page.main if hasattr(element, "value") and isinstance(element.value, str)]
    return "\n".join(shown).replace("\\", "")


def test_the_page_opens_on_the_worked_example(page: AppTest) -> None:
    """Kimi-K3 at TP8, byte for byte, and the boot log that agrees within what it prints."""
    assert not page.exception
    assert not page.error
    text = words(page)
    assert "Kimi-K3: a slot costs 56,171,520 bytes, a token 13,824 bytes on one rank at TP8" in text
    assert "69 x (12 x 128 x 128) x 4" in text
    assert "One slot costs as much as 4,063.33 KV tokens" in text
    assert "worked example agrees: 0.46 + 13.04 GiB over 257 + 1 slots is 56,142,547 to 56,225,783 bytes" in text


def test_another_width_has_other_bytes_and_no_word_of_the_log(page: AppTest) -> None:
    """The widths of the sidebar are those of the page."""
    page.session_state["tp_size"] = "4"
    text = words(page.run())
    assert "a slot costs 112,343,040 bytes" in text
    assert "worked example agrees" not in text


@pytest.mark.parametrize("model", servable())
def test_every_model_has_a_page(page: AppTest, model: str) -> None:
    """Chosen at one rank, each says its bytes and shows no fault."""
    page.session_state["tp_size"] = "1"
    page.selectbox(key="model").set_value(model)
    page.run()
    assert not page.exception
    assert not page.error
    scenario = Scenario(model=model, tp_size=1, mamba_ssm_dtype=page.session_state["mamba_ssm_dtype"])
    assert f"a slot costs {count(scenario.state_bytes_per_slot)} bytes" in words(page)
    assert layers_in_words(geometry_of(model)) in words(page)


def test_choosing_a_model_takes_its_dtypes(page: AppTest) -> None:
    """What a checkpoint asks for stands in the sidebar afterwards."""
    page.selectbox(key="model").set_value("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16").run()
    assert page.session_state["kv_cache_dtype"] == "bfloat16"
    assert page.session_state[HELD]["context_length"] == "262144"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "config.json is not JSON."),
        ("[1]", "config.json"),
        ('{"model_type": "llama", "num_attention_heads": 8}', "attention layers only"),
        ('{"model_type": "jamba"}', "SGLang 0.5.23 has no Jamba model"),
        ('{"model_type": "qwen3_next", "num_hidden_layers": 4}', "full_attention_interval"),
        ("<script>alert(1)</script>", "config.json is not JSON."),
    ],
)
def test_a_config_that_gives_no_bytes_is_refused_in_a_sentence(page: AppTest, text: str, sentence: str) -> None:
    """No traceback, no bytes of another model, and the text stays in its box."""
    page.text_area(key="config_text").set_value(text).run()
    assert not page.exception
    assert sentence in page.error[0].value.replace("\\", "")
    assert "a slot costs" not in words(page)
    assert page.text_area(key="config_text").value == text


def test_a_pasted_config_is_sized_and_carried_by_its_bytes(page: AppTest) -> None:
    """A model that is not in the sidebar goes to the balance page as typed bytes."""
    page.text_area(key="config_text").set_value(json.dumps(entry("Qwen/Qwen3.5-0.8B").config))
    page.session_state["tp_size"] = "1"
    page.run()
    assert not page.exception
    assert "a slot costs" in words(page)
    link = next(item.proto for item in page.get("page_link") if item.proto.label.startswith("Use its bytes"))
    assert "state_bytes_per_slot" in str(link)


def test_the_catalogue_is_found_by_name(page: AppTest) -> None:
    """Also a model that has the shapes of another; a word that no name holds is said to be none."""
    (shown,) = page.text_input(key="catalogue_find").set_value("coder-next").run().dataframe
    assert "Qwen/Qwen3-Next-80B-A3B-Instruct" in set(shown.value["model"])
    assert not any("Kimi-Linear" in name for name in shown.value["model"])
    none = page.text_input(key="catalogue_find").set_value("zzz").run()
    assert "No model of the catalogue has “zzz”" in none.main.caption[-1].value.replace("\\", "")


def test_catalogue_rows_are_all_there_with_a_geometry_or_a_reason() -> None:
    """Each has one or the other, and at every width bytes or a reason."""
    rows = catalogue_rows()
    assert all(bool(row.geometry) != bool(row.why_not) for row in rows)
    for row in rows:
        if row.geometry:
            widths = at_widths(row.geometry, "float32", "bfloat16", "bfloat16")
            assert [width.tp for width in widths] == list(TP_WIDTHS)
            assert all((width.slot is None) == bool(width.why_not) for width in widths)


@pytest.fixture
def model(sizing_command: Run) -> Run:
    """`model ARGUMENTS`."""
    return partial(sizing_command, "model")


def test_the_command_prints_the_bytes(model: Run) -> None:
    """By name, from standard input: the same bytes as the page."""
    status, printed, said = model("moonshotai/Kimi-K3", "--tp", "8", "--kv-dtype", "fp8_e4m3")
    assert (status, said) == (0, "")
    assert "  State bytes per slot  56,171,520  conv part + SSM part: 1,907,712 + 54,263,808" in printed
    assert "token_equiv 4,063.33 tokens per slot (float32 SSM, fp8_e4m3 KV, TP8)" in printed
    config = json.dumps(entry("moonshotai/Kimi-K3").config)
    assert model("-", "--tp", "8", "--kv-dtype", "fp8_e4m3", stdin=config) == (0, printed, "")


def test_the_command_reads_a_file_and_a_folder(model: Run, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A config.json, or the folder it stands in."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "config.json").write_text(json.dumps(entry("Qwen/Qwen3.5-0.8B").config), encoding="utf-8")
    by_folder = model(str(folder))
    assert by_folder[0] == 0
    assert by_folder == model(str(folder / "config.json"))


@pytest.mark.parametrize(
    ("arguments", "wanted", "sentence"),
    [
        (("moonshotai/Kimi-K3", "--tp", "7"), 1, "cannot be spread over attention TP 7"),
        (("moonshotai/Kimi-K3", "--pp", "94"), 1, "pp_size must be from 1 to 93 (layers), not 94."),
        (("no/such",), 2, "“no/such” is no name of the catalogue, and no file or folder to read."),
    ],
)
def test_the_command_refuses_in_one_sentence(
    model: Run, arguments: tuple[str, ...], wanted: int, sentence: str
) -> None:
    """Status 1 for a width that the engine refuses, 2 for what is no model; one line on the error stream."""
    status, printed, said = model(*arguments)
    assert (status, printed) == (wanted, "")
    assert sentence in said
    assert said.count("\n") == 1


def test_filled_fields_are_not_shown_as_boxes(page: AppTest) -> None:
    """With a model chosen its bytes cannot be typed over; without one they can."""
    boxes = {widget.key for widget in page.text_input}
    assert not boxes & set(FILLED)
    typed = page.selectbox(key="model").set_value("").run().switch_page("app.py").run()
    assert {"state_bytes_per_slot", "kv_bytes_per_token"} <= {widget.key for widget in typed.text_input}
