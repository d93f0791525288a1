"""A model in a scenario: its bytes follow at every width and dtype, and what is typed beside it must agree."""

import json
from pathlib import Path
from typing import Any

import pytest

from sizing import Problem, Scenario, Split, read_scenario, solve
from sizing.scenario.from_model import FILLED, draft_bytes, geometry_of, servable, suggested
from sizing.scenario.inputs import DEFAULTS, FIELDS, changed, widths_of

GOLDEN = json.loads((Path(__file__).parent / "golden" / "models.json").read_text(encoding="utf-8"))
# What the engine split with its own geometry. Left out: what it refused, models without a KV pool, and no_buffer
# with pages, which its flags refuse before these functions run.
SPLITS = [
    row
    for row in GOLDEN["pool_split"]
    if row["model"] in servable() and row.get("kv_rows") and (row["strategy"], row["page_size"]) != ("no_buffer", 64)
]
# The file does not say it: with fp8 KV this model was run with a bfloat16 SSM, as its 2,498 slots show.
NARROW = ("Qwen/Qwen3.5-397B-A17B", "fp8_e4m3")


def name(row: dict[str, Any]) -> str:
    """A row as a test id."""
    return f"{row['model']}, K {row['max_mamba_cache_size']}, S {row['engine_S']}, {row['strategy']}"


def test_the_defaults_are_those_of_the_model() -> None:
    """The byte constants of the worked example stand in the fields, and the model gives the same."""
    same = set(FILLED) - {"architecture"}  # empty where bytes are typed in
    assert {name: getattr(Scenario(), name) for name in same} == {name: DEFAULTS[name] for name in same}
    assert (Scenario().architecture, Scenario(model="").architecture) == ("KimiK3ForConditionalGeneration", "")
    assert set(FILLED) <= set(FIELDS)


@pytest.mark.parametrize("row", SPLITS, ids=name)
def test_a_model_splits_as_the_engine_split_it(row: dict[str, Any]) -> None:
    """From a model's name and flags alone: the engine's S, slots, clamp and rows."""
    radix_off = row["strategy"] == "radix disabled"
    flags = {
        "tp_size": row["tp"],
        "dcp_size": row["dcp"],
        "kv_cache_dtype": {"bf16": "bfloat16"}.get(row["kv"], row["kv"]),
        "mamba_ssm_dtype": "bfloat16" if (row["model"], row["kv"]) == NARROW else "float32",
        "disable_radix_cache": radix_off,
        "disable_overlap_schedule": not row["overlap"],
        "skip_decode_lock": row["skip_decode_lock"],
        "replayssm": "spec" if row["replayssm"] else "off",
        "split": "pin" if row["max_mamba_cache_size_arg"] else "ratio",
    }
    sizing = solve(
        Scenario(
            model=row["model"],
            rest_gib=row["rest_gib"],
            mamba_full_memory_ratio=row["r"],
            mamba_radix_cache_strategy="auto" if radix_off else row["strategy"],
            max_running_requests=row["max_running_requests_arg"],
            max_mamba_cache_size=row["max_mamba_cache_size_arg"],
            page_size=row["page_size"],
            D=row["D"],
            speculative_algorithm="NGRAM",  # the file's rows have no draft KV
            **flags,
        )
    )
    assert isinstance(sizing.now, Split)
    assert (sizing.S, sizing.now.slots, sizing.now.clamp) == (
        row["engine_S"],
        row["max_mamba_cache_size"],
        row["clamp"],
    )
    assert (sizing.now.kv_rows, sizing.now.kv_tokens) == (row["kv_rows"], row["kv_tokens_logical"])


@pytest.mark.parametrize("model", servable())
def test_every_servable_model_makes_a_scenario(model: str) -> None:
    """With its own dtypes and one rank each model gives bytes of both pools."""
    scenario = Scenario.model_validate({"model": model, "tp_size": 1, **suggested(geometry_of(model))})
    assert scenario.state_bytes_per_slot > 0
    assert scenario.kv_bytes_per_token > 0


def test_bytes_given_alone_mean_no_model() -> None:
    """Whoever types bytes means these bytes, not those of the worked example's model."""
    assert Scenario(kv_bytes_per_token=13_824).model == ""
    assert Scenario(tp_size=4).kv_bytes_per_token == 13_824  # MLA does not shrink
    assert Scenario(tp_size=4).state_bytes_per_slot == 2 * 56_171_520


def sentence(**values: Any) -> str:
    """The one sentence that these inputs meet."""
    found = read_scenario(values)
    assert isinstance(found, list)
    (problem,) = found
    assert isinstance(problem, Problem)
    return problem.sentence


def test_bytes_that_contradict_the_model_are_reported() -> None:
    """Neither wins in silence."""
    assert sentence(model="moonshotai/Kimi-K3", kv_bytes_per_token=1) == (
        "KV bytes per token follows from the model moonshotai/Kimi-K3 here (13824, not 1): leave it out, or leave the "
        "model empty to type bytes in."
    )
    assert read_scenario(Scenario(tp_size=4).model_dump()) == Scenario(tp_size=4)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"model": "nobody/nothing"}, "“nobody/nothing” is no model of the catalogue."),
        ({"model": "moonshotai/Kimi-K3", "tp_size": 7}, "cannot be spread over attention TP 7"),
        ({"dcp_size": 3}, "dcp_size 3 must divide attention TP 8."),
        ({"attn_dp_size": 3}, "--tp-size 8 is not a multiple of --attn-dp-size 3."),
        ({"pp_size": 64, "model": "Qwen/Qwen3.5-0.8B", "tp_size": 1}, "pp_size must be from 1 to 24 (layers), not 64."),
    ],
    ids=str,
)
def test_a_model_that_cannot_be_so_is_refused_in_one_sentence(values: dict[str, Any], words: str) -> None:
    """What the geometry refuses is a sentence, not a traceback."""
    assert words in sentence(**values)


def test_changing_a_width_changes_the_bytes() -> None:
    """`changed` follows the model; bytes that were typed stay."""
    four = changed(Scenario(), tp_size=4, dcp_size=2)
    assert isinstance(four, Scenario)
    assert (four.state_bytes_per_slot, four.kv_bytes_dcp_size) == (2 * 56_171_520, 2)
    typed = changed(Scenario(model=""), tp_size=4)
    assert isinstance(typed, Scenario)
    assert typed.state_bytes_per_slot == 56_171_520


def test_stages_of_a_model_are_charged_as_the_engine_charges_them() -> None:
    """93 layers at PP 2: the second stage has 47, of which 35 linear; KV is bounded by the stage with 12 or 13."""
    scenario = Scenario(tp_size=4, pp_size=2)
    assert scenario.state_bytes_per_slot == int(2 * 56_171_520 * (35 / 69))
    assert scenario.state_bytes_all_stages == 2 * 56_171_520


def test_a_model_s_own_draft_head_has_kv_bytes() -> None:
    """int(row x draft layers / full layers); a model without such a head has none."""
    geometry = geometry_of("moonshotai/Kimi-K3")
    scenario = Scenario()
    expected = int(13_824 * geometry.draft_layers / 24)
    assert draft_bytes(geometry, widths_of(scenario)) == expected


QWEN = {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "kv_cache_dtype": "bfloat16", "D": 4, "rest_gib": 50.0}


def test_the_draft_s_bytes_follow_from_the_model() -> None:
    """One layer of 12 at 12,288 bytes a row, at every width; stated bytes stand, 0 too; a link carries those alone."""
    for tp, row in ((4, 1024), (1, 2048)):
        scenario = Scenario.model_validate({**QWEN, "tp_size": tp})
        assert scenario.draft_kv_bytes_per_token == row
        assert "draft_kv_bytes_per_token" not in scenario.differences()
        assert read_scenario(scenario.differences()) == read_scenario(scenario.model_dump()) == scenario
        assert solve(scenario).draft_row_bytes == row
    following = Scenario.model_validate({**QWEN, "tp_size": 4})
    wider = changed(following, tp_size=1)
    assert isinstance(wider, Scenario)
    assert wider.draft_kv_bytes_per_token == 2048
    for stated in (0, 5120):
        own = Scenario.model_validate({**QWEN, "draft_kv_bytes_per_token": stated})
        assert own.differences()["draft_kv_bytes_per_token"] == own.draft_kv_bytes_per_token == stated
        assert read_scenario(own.stated()) == own


@pytest.mark.parametrize("algorithm", ["EAGLE3", "STANDALONE", "NGRAM", "DFLASH", "DSPARK"])
def test_a_draft_that_is_not_the_checkpoint_s_is_not_guessed(algorithm: str) -> None:
    """Another algorithm runs another draft, whose bytes a user states; and a model may have no MTP layer."""
    assert Scenario.model_validate({**QWEN, "speculative_algorithm": algorithm}).draft_kv_bytes_per_token == 0
    assert Scenario(D=4).draft_kv_bytes_per_token == 0


@pytest.mark.parametrize(
    "update",
    [
        {"tp_size": 4},
        {"mamba_ssm_dtype": "bfloat16"},
        {"kv_cache_dtype": "bfloat16"},
        {"dcp_size": 2},
        {"pp_size": 2},
        {"release": "0.5.17"},
        {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct"},
        {"model": ""},
    ],
    ids=str,
)
def test_a_copy_is_what_the_constructor_gives(update: dict[str, Any]) -> None:
    """What follows from other inputs follows them in a copy too: no computed field stands in a scenario."""
    copied, made = Scenario().model_copy(update=update), Scenario.model_validate(update)
    assert copied == made
    assert hash(copied) == hash(made)
    assert copied.model_dump() == made.model_dump()


def test_bytes_beside_a_model_are_never_taken_without_a_word() -> None:
    """Beside a model that says otherwise they are refused, copied as well as constructed; with no model they stand."""
    bytes_typed = {"state_bytes_per_slot": 60_000_000}
    with pytest.raises(ValueError, match="follows from the model moonshotai/Kimi-K3"):
        Scenario().model_copy(update=bytes_typed)
    with pytest.raises(ValueError, match="follows from the model moonshotai/Kimi-K3"):
        Scenario.model_validate(bytes_typed | {"model": "moonshotai/Kimi-K3"})
    assert Scenario().model_copy(update=bytes_typed | {"model": ""}).state_bytes_per_slot == 60_000_000
    agreeing = Scenario().model_copy(update={"state_bytes_per_slot": Scenario().state_bytes_per_slot})
    assert agreeing == Scenario()
