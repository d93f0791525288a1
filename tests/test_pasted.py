"""A pasted line settles rest: exact from the weight line, the GPU from nvidia-smi, a sentence for anything else."""

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sizing import Scenario
from sizing.bootlog.log import read_text
from sizing.bootlog.pasted import MAX_LENGTH, NOTHING, settle
from sizing.models.gpus import GPUS
from tests.test_pages import words

LOGS = sorted((Path(__file__).parent / "golden" / "boot_logs").glob("*.log"))
QWEN = {"model": "Qwen/Qwen3.5-9B", "gpu": "H100", "tp_size": 1, "kv_cache_dtype": "bfloat16"}
END = (
    "[2026-01-15 10:00:03 TP0] Load weight end. elapsed=9.2 s, type=Qwen3_5ForConditionalGeneration, "
    "avail mem=60.70 GB, mem usage=17.60 GB."
)
SMI = """
|   0  NVIDIA H200                    On  |   00000000:1B:00.0 Off |                    0 |
| N/A   30C    P0             76W /  700W |    {used}MiB / 143771MiB |      0%      Default |
|   1  NVIDIA H200                    On  |   00000000:43:00.0 Off |                    0 |
| N/A   30C    P0             76W /  700W |       4MiB / 143771MiB |      0%      Default |
"""


def test_the_line_after_weights_is_exact() -> None:
    """60.70 and 17.60 make 78.30 before; the automatic fraction of the H100 gives the slack, images 0.1 GiB."""
    scenario = Scenario.model_validate(QWEN)
    fraction = 0.830 * 0.924765625  # rest-before-boot.md sections 1.2 to 1.6
    found = settle(END, scenario)
    assert found.values["rest_gib"] == pytest.approx(60.70 - 78.30 * (1 - fraction) - 100 / 1024, abs=2e-3)
    assert found.values["rest_source"] == "boot log"
    given = settle(END, Scenario.model_validate({**QWEN, "mem_fraction_static": 0.85}))
    assert given.values["rest_gib"] == pytest.approx(60.70 - 78.30 * 0.15 - 100 / 1024, abs=2e-3)
    assert "GPU" in settle(END, Scenario.model_validate({**QWEN, "gpu": ""})).words


def test_under_speculation_the_draft_s_own_line_is_needed() -> None:
    """The target's line alone leaves the draft estimated; both lines are exact."""
    scenario = Scenario.model_validate({**QWEN, "D": 4, "mem_fraction_static": 0.85})
    alone = settle(END, scenario)
    assert set(alone.values) == {"free_gib", "weights_bytes"}
    assert alone.values["free_gib"] == 78.3
    draft = END.replace("60.70", "59.00").replace("17.60", "1.70")
    both = settle(f"{END}\n{draft}", scenario)
    assert both.values["rest_gib"] == pytest.approx(59.0 - 78.3 * 0.15 - 100 / 1024, abs=2e-3)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_a_whole_log_gives_what_the_page_log_reads(path: Path) -> None:
    """One reader stands behind both."""
    text = path.read_text(encoding="utf-8")
    boot = read_text(text).last
    assert boot is not None
    assert boot.facts.rest is not None
    assert settle(text, Scenario()).values["rest_gib"] == round(boot.facts.rest.value, 3)


def test_the_line_before_weights_gives_what_is_free() -> None:
    """Then the estimate stands on it."""
    found = settle("[x TP0] Load weight begin. avail mem=77.90 GB", Scenario.model_validate(QWEN))
    assert found.values == {"free_gib": 77.9}


def test_nvidia_smi_names_the_gpu() -> None:
    """The smallest GPU by its memory; of equal ones that which is named; what others hold comes off."""
    assert settle(SMI.format(used=4), Scenario()).values == {"gpu": "NVIDIA H200 141 GB"}
    busy = settle(SMI.format(used=20480), Scenario()).values
    assert busy["free_gib"] == pytest.approx(143771 / 1024 - 2.4 - 20, abs=0.01)
    for gpu in GPUS:
        found = settle(f"{gpu.memory_mib} MiB\n", Scenario()).values["gpu"]
        assert next(other for other in GPUS if other.name == found).memory_mib == gpu.memory_mib
    assert settle("12345 MiB", Scenario()).values == {"gpu": "other", "gpu_memory_mib": 12345}


@pytest.mark.parametrize(
    "text",
    [
        "", "hello", "Load weight end.", "avail mem=1 GB", "9" * 400 + " MiB", "Load weight end" + "x" * 5000,
        "Load weight begin. avail mem=1e9 GB", "| 0 | 5MiB / 7MiB |", "\x00" * 100,
    ],
)  # fmt: skip
def test_anything_else_settles_nothing(text: str) -> None:
    """One sentence, no values."""
    assert settle(text, Scenario.model_validate(QWEN)) == ({}, NOTHING)


def test_too_much_is_not_read() -> None:
    """A paste is bounded."""
    assert settle("x" * (MAX_LENGTH + 1), Scenario()).values == {}


def headlines(page: AppTest) -> str:
    """Every heading of the main column."""
    return "\n".join(line for line in words(page).split("\n") if line.startswith("#"))


def test_a_paste_on_the_page_settles_rest() -> None:
    """The estimate's headline becomes one without a condition, and the sidebar says whose rest it is."""
    page = AppTest.from_file("../app.py", default_timeout=30)
    for name, value in QWEN.items():
        page.query_params[name] = str(value)
    page.run()
    assert "a boot log makes it exact" in headlines(page)
    page.text_area(key="paste_rest").set_value(END).run()
    assert not page.exception
    assert "a boot log makes it exact" not in headlines(page)
    assert "from your log" in "".join(caption.value for caption in page.sidebar.caption).replace("\\", "")
