"""Hardware the other way round: what would fit, which GPUs carry a model, and what SGLang sets by itself."""

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from sizing import Scenario, solve
from sizing.answers.fleet import AS_SET, BEST, carriers
from sizing.answers.hardware import hardware_of, no_fit
from sizing.exchange.sizing_answer import sizing_answer
from sizing.explain.hardware_words import automatic_rows, carried_rows, hardware_headline, no_fit_words
from sizing.models.gpus import ALL_GPUS
from sizing.scenario.inputs import changed
from sizing.scenario.rest import rest_of
from tests.conftest import Run
from tests.test_pages import parts, words

QWEN: dict[str, Any] = {
    "model": "Qwen/Qwen3.5-397B-A17B", "gpu": "H200", "checkpoint": "fp8", "D": 4, "L": 32_768,
    "kv_cache_dtype": "bfloat16",
}  # fmt: skip


def scenario(**values: Any) -> Scenario:
    """A deployment of Qwen3.5-397B-A17B."""
    return Scenario.model_validate({**QWEN, **values})


def test_every_row_is_the_solve_of_its_hardware() -> None:
    """GPU and width set, all else as it stands: what runs as set, at the best way, and servers for 1,000."""
    base = scenario()
    found = hardware_of(base)
    assert found.carried
    for row in found.carried[::7]:
        other = changed(base, gpu=row.gpu.name, tp_size=row.tp_size)
        assert isinstance(other, Scenario)
        runs = {way.name: way.runs for way in carriers(solve(other))}
        assert (row.runs, row.best_runs) == (runs[AS_SET], runs[BEST])
        assert row.rest == rest_of(other)
        servers, rest = divmod(1000, row.best_runs)
        assert row.gpus_per_thousand == (servers + bool(rest)) * row.gpus
    listed = {row.gpu.name for row in found.carried} | set(found.nothing) | {name for name, _ in found.unknown}
    assert listed == {gpu.name for gpu in ALL_GPUS}
    assert [name for name, _ in found.unknown] == [gpu.name for gpu in ALL_GPUS if gpu.unified]
    thousands = [row.gpus_per_thousand for row in found.carried]
    assert thousands == sorted(thousands, key=lambda gpus: gpus or 0)


def test_what_is_wanted_filters_the_table() -> None:
    """64 requests: only servers that run so many, the fewest GPUs first; and a number that none carries."""
    found = hardware_of(scenario())
    rows = found.carrying(64)
    assert 0 < len(rows) < len(found.carried)
    assert min(row.best_runs for row in rows) >= 64
    assert [row.gpus for row in rows] == sorted(row.gpus for row in rows)
    assert len(carried_rows(found, 64)) == len(rows)
    assert "No server of the table carries" in hardware_headline(found, 1_000_000)
    frame = found.frame()
    assert len(frame) == len(found.carried)
    assert list(frame["best_runs [requests of the deployment]"]) == [row.best_runs for row in found.carried]


def test_a_stated_rest_holds_for_its_own_hardware_alone() -> None:
    """Every other row is estimated."""
    found = hardware_of(scenario(rest_gib=50.0))
    own = [row for row in found.carried if row.rest.source == "typed in"]
    assert [(row.gpu.name, row.tp_size) for row in own] == [("NVIDIA H200 141 GB", 8)]
    assert {row.rest.source for row in found.carried if row not in own} == {"estimated"}


@pytest.mark.parametrize(
    "values",
    [{"tp_size": 2}, {"tp_size": 4, "checkpoint": "bf16"}, {"gpu": "A100 80", "tp_size": 4}, {"tp_size": 4}],
    ids=str,
)
def test_what_would_fit_does(values: dict[str, Any]) -> None:
    """The fewest GPUs, the least fraction and the smaller variants each leave something; one step less does not."""
    base = scenario(**values)
    found = no_fit(base)
    if rest_of(base).low is not None and (rest_of(base).low or 0) > 0:
        assert found is None
        assert no_fit_words(base) == ()
        return
    assert found is not None
    assert found.least is not None
    wider, narrower = (changed(base, tp_size=tp) for tp in (found.least.tp_size, found.least.tp_size // 2))
    assert isinstance(wider, Scenario)
    assert isinstance(narrower, Scenario)
    assert (rest_of(wider).low or 0) > 0 >= (rest_of(narrower).low or 0)
    for variant, left in found.variants:
        smaller = changed(base, checkpoint=variant)
        assert isinstance(smaller, Scenario)
        assert rest_of(smaller).low == pytest.approx(left.low_gib, abs=1e-3)
        assert left.low_gib > 0
    if found.least_fraction is not None:
        ends = [changed(base, mem_fraction_static=found.least_fraction - step) for step in (0, 0.001)]
        lows = [rest_of(end).low for end in ends if isinstance(end, Scenario)]
        assert (lows[0] or 0) > 0 >= (lows[1] or 0)
    assert str(found.least.gpus) in " ".join(no_fit_words(base))


def test_the_least_fraction_is_named_where_one_is_enough() -> None:
    """At 0.3 of an H200 the weights of TP8 do not fit; the fraction that is named does."""
    base = scenario(mem_fraction_static=0.3)
    found = no_fit(base)
    assert found is not None
    assert found.least_fraction is not None
    answer = sizing_answer(solve(base))
    assert answer.refused is not None
    assert (answer.refused.kind, answer.status, answer.mem_fraction_least) == (
        "does_not_fit", 1, found.least_fraction,
    )  # fmt: skip


def test_a_command_says_by_how_much(sizing_command: Run) -> None:
    """The refusal in the vocabulary of answers, and exit status 1."""
    status, printed, _ = sizing_command("plan", "-", "--json", stdin=json.dumps({"tp_size": 4, "gpu": "B300"}))
    answer = json.loads(printed)["answer"]
    assert (status, answer["refused"]["kind"]) == (1, "does_not_fit")
    assert "142.8 ± 28.3 GiB are missing on each rank" in answer["words"]
    assert "Fewest of these GPUs: 8" in answer["words"]


def test_unified_memory_asks_for_what_is_available() -> None:
    """No estimate without MemAvailable; with it there is one."""
    base = {"model": "Qwen/Qwen3.5-27B", "gpu": "DGX Spark", "tp_size": 1, "kv_cache_dtype": "bfloat16"}
    asked = Scenario.model_validate(base)
    assert asked.rest_source == "unknown"
    assert "MemAvailable" in rest_of(asked).missing
    assert rest_of(asked).where == "free_gib"
    assert Scenario.model_validate({**base, "free_gib": 111.7}).rest_source == "estimated"


def test_what_sglang_sets_is_shown_with_its_rule() -> None:
    """Every automatic value once; a flag typed in stands in its place."""
    rows = {row[0]: row for row in automatic_rows(scenario())}
    assert rows["chunked_prefill_size"][1] == "8,192"
    assert rows["mem_fraction_static"][1] == "0.825816"
    assert "multimodal" in rows["mem_fraction_static"][2]
    assert rows["max_running_requests"][1] == "48"
    typed = {row[0]: row for row in automatic_rows(scenario(mem_fraction_static=0.9, chunked_prefill_size=4096))}
    assert typed["mem_fraction_static"][1:] == ("0.9", "the flag that is set")
    assert typed["chunked_prefill_size"][1:] == ("4,096", "the flag that is set")
    assert automatic_rows(Scenario()) == []


def test_the_pages_show_them() -> None:
    """The panel on the balance page, the table on the page Target, and what does not fit as the headline."""
    page = AppTest.from_file("../app.py", default_timeout=60)
    for name, value in QWEN.items():
        page.query_params[name] = str(value)
    page.run()
    assert not page.exception
    assert "What SGLang sets by itself" in [part.get("title") for part in parts(page)]
    page = page.switch_page("pages/target.py").run()
    page = page.text_input(key="target_requests").set_value("64").run()
    assert not page.exception
    text = words(page)
    assert hardware_headline(hardware_of(scenario(context_length=262_144)), 64) in text
    lacking = AppTest.from_file("../app.py", default_timeout=60)
    lacking.query_params["tp_size"], lacking.query_params["gpu"] = "4", "B300"
    lacking.run()
    text = words(lacking)
    assert "142.8 ± 28.3 GiB are missing on each rank" in text
