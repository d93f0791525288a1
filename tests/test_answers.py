"""The answers of `plan`, `target` and `model`: every key in its vocabulary, known and not, refused and not."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from sizing.cli.main import main

EXAMPLE = {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp_size": 4, "kv_cache_dtype": "bfloat16"}
ON_REST = {"rest_gib", "slots", "clamp", "kv_rows", "kv_tokens", "kv_cap", "runs", "binds", "best"}


def asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], *words: str
) -> tuple[int, dict[str, Any]]:
    """The exit status and the answer of a command on a scenario."""
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps(values)))
    status = main([words[0], "-", *words[1:], "--json"])
    return status, json.loads(capsys.readouterr().out)["answer"]


def abouts(answer: dict[str, Any]) -> set[str]:
    """The codes of the notices, each at most once."""
    codes = [notice["about"] for notice in answer["notices"]]
    assert len(codes) == len(set(codes))
    return set(codes)


@pytest.mark.parametrize("command", [("plan",), ("target", "40")], ids=str)
@pytest.mark.parametrize(
    "values", [EXAMPLE, {"tp_size": 4}, {"state_bytes_per_slot": 20_000_000, "conv_bytes_per_slot": None}], ids=str
)
def test_rest_of_another_deployment_is_asked_for(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, Any],
    command: tuple[str, ...],
) -> None:
    """Another model or width without rest: all that rests on it is unknown, what does not is there; nothing is said of
    the worked example's 28.529 GiB.
    """
    status, answer = asked(capsys, monkeypatch, values, *command)
    assert (status, answer["refused"], abouts(answer)) == (0, None, {"rest_of_other_deployment"})
    assert set(answer["unknown"]) == ON_REST
    assert {name for name in ON_REST if answer[name] is not None} == set()
    assert answer["flags"] is None
    for name in ("S", "D", "L", "state_bytes_per_slot", "kv_bytes_per_token", "token_equiv", "r_star"):
        assert answer[name] is not None
    assert "28.529" not in json.dumps(answer)


def test_rest_that_is_given_is_taken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it is the number of the worked example; other inputs than model and width leave that one standing."""
    for values in ({**EXAMPLE, "rest_gib": 28.529}, {"L": 4096}, {"D": 4}):
        _, answer = asked(capsys, monkeypatch, values, "plan")
        assert answer["rest_gib"] == 28.529
        assert answer["unknown"] == []
        assert answer["runs"] > 0


def test_pinned_slots_do_not_rest_on_rest(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """K and the clamp follow from the pin."""
    _, answer = asked(capsys, monkeypatch, {**EXAMPLE, "split": "pin", "max_mamba_cache_size": 101}, "plan")
    assert (answer["slots"], answer["clamp"]) == (101, 20)
    assert set(answer["unknown"]) == ON_REST - {"slots", "clamp"}


def test_flags_that_are_refused_leave_what_is_known(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kind flags, exit 1, nothing runs; the bytes and rest stay."""
    values = {**EXAMPLE, "rest_gib": 40, "mamba_radix_cache_strategy": "no_buffer"}
    status, answer = asked(capsys, monkeypatch, values, "plan")
    assert (status, answer["refused"]["kind"], answer["runs"]) == (1, "flags", 0)
    assert (answer["rest_gib"], answer["state_bytes_per_slot"]) == (40, 19_316_736)
    assert answer["best"] is None


def test_a_target_that_fits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The pools are those of what is proposed, and it runs what was wanted with a slot to spare."""
    status, answer = asked(capsys, monkeypatch, {}, "target", "74")
    assert (status, answer["refused"], answer["flags"]) == (0, None, ["--max-mamba-cache-size 371"])
    assert (answer["slots"], answer["clamp"], answer["runs"]) == (371, 74, 74)
    assert (answer["best"]["runs"], answer["best"]["pin"]) == (74, 371)
    assert answer["best"]["ratio_low"] <= answer["best"]["ratio"] <= answer["best"]["ratio_high"]
    assert abouts(answer) == set()


def test_a_target_that_does_not_fit(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Kind does_not_fit, exit 1, the words say the most that does; nothing is proposed."""
    status, answer = asked(capsys, monkeypatch, {}, "target", "96")
    assert (status, answer["refused"]["kind"]) == (1, "does_not_fit")
    assert "at most 74" in answer["words"]
    assert (answer["best"], answer["flags"], answer["S"]) == (None, None, 5)


def test_nothing_is_proposed_that_gains_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the best split there is no flag to set; fewer requests, or no slot to spare, have one."""
    flags = {
        str(values): asked(capsys, monkeypatch, values, "plan")[1]["flags"]
        for values in (
            {"split": "balanced"},
            {},
            {"split": "pin", "max_mamba_cache_size": 370},
            {"split": "pin", "max_mamba_cache_size": 371},
        )
    }
    assert list(flags.values()) == [
        None,
        ["--mamba-full-memory-ratio 2.2045"],
        ["--mamba-full-memory-ratio 2.2045"],
        None,
    ]


def test_input_that_cannot_be_answered(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A broken file and a scenario with a fault are unreadable, exit 2, in one answer."""
    for text in ("", "{", '{"L": -1}', "[1]"):
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        assert main(["plan", "-", "--json"]) == 2
        answer = json.loads(capsys.readouterr().out)["answer"]
        assert answer["refused"]["kind"] == "unreadable"
    assert main(["plan", str(tmp_path / "missing.json"), "--json"]) == 2


DRAFT = {
    "architectures": ["LingDSparkModel"],
    "num_hidden_layers": 5,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "dtype": "bfloat16",
}


def test_a_draft_has_a_row_and_no_state(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """8 heads x (128 + 128) x 5 layers x 2 bytes at TP1; a draft of another form of row has an unknown one."""
    status, answer = asked(capsys, monkeypatch, DRAFT, "model")
    assert (status, answer["is_draft"], abouts(answer)) == (0, True, {"draft_config"})
    assert answer["draft_kv_bytes_per_token"] == 8 * 256 * 5 * 2
    assert (answer["state_bytes_per_slot"], answer["kv_bytes_per_token"], answer["unknown"]) == (None, None, [])
    status, answer = asked(capsys, monkeypatch, DRAFT | {"architectures": ["MiMoV2MTP"]}, "model")
    assert (status, answer["is_draft"], abouts(answer)) == (0, True, {"draft_config"})
    assert "draft_kv_bytes_per_token" in answer["unknown"]


@pytest.mark.parametrize(
    ("text", "options", "kind", "status"),
    [
        ("{", (), "unreadable", 2),
        ("", (), "unreadable", 2),
        ('{"model_type": "llama"}', (), "not_served", 2),
        (" " * (4 * 2**20 + 1), (), "too_large", 2),
        ('{"model_type": "qwen3_next"}', (), "unreadable", 2),
        ("moonshotai/Kimi-K3", ("--tp", "7"), "flags", 1),
        ("no/such-model", (), "unreadable", 2),
    ],
    ids=["broken", "empty", "dense", "large", "fields missing", "width", "no name"],
)
def test_a_model_that_is_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    options: tuple[str, ...],
    kind: str,
    status: int,
) -> None:
    """The kind says whether the file, the model or the width is at fault."""
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    assert main(["model", text if "/" in text else "-", *options, "--json"]) == status
    assert json.loads(capsys.readouterr().out)["answer"]["refused"]["kind"] == kind
