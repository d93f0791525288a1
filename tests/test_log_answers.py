"""What people paste beside a boot log: refusals of flags as the engine words them, scripts, names of checkpoints."""

import json
from pathlib import Path

import pytest

from sizing.bootlog import read_text
from sizing.command import read_command
from sizing.engine.slots_per_request import possible_slots
from sizing.exchange.log_answer import log_answer
from sizing.scenario.from_model import named_in

ROWS = json.loads((Path(__file__).parent / "golden" / "refusals.json").read_text(encoding="utf-8"))["rows"]
WORDS = sorted({(row["type"], row["message"]) for row in ROWS if row["outcome"] == "refused"})


@pytest.mark.parametrize(("kind", "words"), WORDS)
def test_flags_that_a_release_refuses_are_a_refusal_in_a_log(kind: str, words: str) -> None:
    """Each release's own words at the end of a traceback, or the line of code that asserts."""
    end = f"    {words}\nAssertionError" if words.startswith("assert ") else f"{kind}: {words}"
    answer = log_answer(
        read_text(f'  File "sglang/srt/server_args.py", line 2258, in check_server_args\n{end}\n')
    ).answer
    assert answer.refused is not None
    assert (answer.refused.kind, answer.runs, answer.status) == ("flags", 0, 1)
    assert words[:28] in answer.words


@pytest.mark.parametrize(
    "words",
    [
        "ValueError: invalid literal for int() with base 10",
        "the flag --mamba-full-memory-ratio is documented there",
        "api_server.py: error: unrecognized arguments: --dcp-size 8",
    ],
)
def test_other_words_are_no_refusal_of_flags(words: str) -> None:
    """An error that names no combination of SGLang's flags, or speaks for another program."""
    refused = log_answer(read_text(f"{words}\n")).answer.refused
    assert refused is not None
    assert refused.kind == "not_a_log"


def pools(slots: int, rows: int) -> str:
    """Two pool lines that name neither S nor a model."""
    return (
        f"Mamba Cache is allocated. max_mamba_cache_size: {slots}, conv_state size: 0.44GB, ssm_state size: 24.84GB \n"
        f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {rows}, K size: 14.05 GB, V size: 14.05 GB\n"
    )


@pytest.mark.parametrize("slots", [4, 15, 39, 160, 2211])
@pytest.mark.parametrize("cap", [1, 8, 32])
@pytest.mark.parametrize("tokens", [4_096, 65_536, 4_194_304])
def test_what_every_S_gives_is_known(slots: int, cap: int, tokens: int) -> None:  # noqa: N802
    """Requests are said where no S that the log leaves open changes them, and only there."""
    command = read_command(f"sglang serve --model-path own/model --max-running-requests {cap}")
    found = log_answer(read_text(pools(slots, tokens)), command, 4096).answer
    possible = {min(slots // S, cap, tokens // 4096) for S in possible_slots() if slots // S}
    assert found.S is None or len(possible) == 1 or slots < 5
    if found.S is None:
        assert found.runs == (possible.pop() if len(possible) == 1 else None)


FLAGS = (
    "--tp 4 --kv-cache-dtype fp8_e4m3 --max-running-requests 8 --speculative-algorithm EAGLE --speculative-num-steps 3 "
    "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
)
LINES = FLAGS.replace(" --", "\n  --")
SCRIPTS = {
    "line": f"sglang serve --model-path m {FLAGS}",
    "array": f'CMD=(\n  sglang serve\n  --model-path m\n  {LINES}\n)\nexec "${{CMD[@]}}" > log 2>&1 &',
    "array in one line": f'CMD=(python3 -m sglang.launch_server --model-path m {FLAGS}); "${{CMD[@]}}"',
    "array of arrays": f'ARGS=(\n  {LINES}\n)\nCMD=(\n  sglang serve --model-path m "${{ARGS[@]}}")\n"${{CMD[@]}}"',
    "array that grows": f'CMD=(sglang serve --model-path m)\nCMD+=(\n  {LINES}\n)\n"${{CMD[@]}}"',
    "arguments that grow": f'A="--tp 4"\nA+=" {FLAGS.removeprefix("--tp 4 ")}"\nsglang serve --model-path m $A',
    "comments between": f"CMD=(\n  # tuned\n  sglang serve --model-path m\n  {LINES}  # all\n)\n",
}


@pytest.mark.parametrize("layout", SCRIPTS)
def test_a_script_says_the_same_however_it_holds_the_flags(layout: str) -> None:
    """Nothing is lost in an array, and nothing is called hidden that stands there."""
    found, plain = read_command(SCRIPTS[layout]), read_command(SCRIPTS["line"])
    assert found.values == plain.values
    assert (found.elsewhere, found.problems, found.model_path) == ((), (), "m")


def test_what_a_script_may_set_or_not_is_said() -> None:
    """A flag of sizing in an `if` is no fact; what sizing does not read may stand there, and sums are not done."""
    script = 'A=()\nif [ -n "$X" ]; then\n  A=({flag})\nfi\nsglang serve --model-path m "${{A[@]}}"'
    assert "“if”" in read_command(script.format(flag="--disable-radix-cache")).elsewhere[0]
    assert read_command(script.format(flag="--enable-metrics")).elsewhere == ()
    summed = read_command("N=$((2 * CONC))\nsglang serve --max-running-requests $N")
    assert summed.elsewhere
    assert "max_running_requests" not in summed.values
    assert summed.without_value == ("--max-running-requests",)


@pytest.mark.parametrize("backend", ["aiter", "triton", "ascend", "intel_xpu", "intel_amx", "wave", "dsa"])
def test_backends_of_other_devices_are_no_fault_of_a_command(backend: str) -> None:
    """They are names that SGLang takes."""
    assert read_command(f"sglang serve --model-path m --attention-backend {backend}").problems == ()


@pytest.mark.parametrize(
    ("path", "name", "quantised"),
    [
        ("moonshotai/Kimi-K3", "moonshotai/Kimi-K3", False),
        ("/data/hub/models--moonshotai--Kimi-K3/snapshots/9f62e4e9fffb", "moonshotai/Kimi-K3", False),
        ("Qwen/Qwen3.8-27B", "Qwen/Qwen3.5-27B", False),
        ("/models/qwen3.6-35b-a3b/", "Qwen/Qwen3.5-35B-A3B", False),
        ("Qwen/Qwen3.8-27B-FP8", None, False),
        ("Qwen/Qwen3.8-27B-FP8", "Qwen/Qwen3.5-27B", True),
        ("cyankiwi/Qwen3.6-27B-AWQ-INT4", "Qwen/Qwen3.5-27B", True),
        ("amd/Qwen3.5-397B-A17B-MXFP4", "Qwen/Qwen3.5-397B-A17B", True),
        ("own/finetune", None, True),
        ("", None, True),
    ],
)
def test_a_model_is_known_by_the_names_it_is_started_with(path: str, name: str | None, quantised: bool) -> None:
    """A name, a folder, a cache's snapshot; a quantisation's suffix only where measured bytes confirm the shapes."""
    assert named_in(path, quantised=quantised) == name


def test_a_crash_before_the_pools_is_said_as_one() -> None:
    """And a request that found no slot as that."""
    early = read_text(
        "[2025-12-24 20:07:43 TP0] Load weight begin. avail mem=177.15 GB\n"
        "[2025-12-24 20:07:45 TP0] Scheduler hit an exception: Traceback (most recent call last):\n"
    )
    assert "before its pools were sized" in log_answer(early).answer.words
    late = log_answer(read_text("AssertionError: Not enough space for mamba ping pong idx, try to increase\n")).answer
    assert "no free state slot" in late.words
    assert [notice.about for notice in late.notices] == ["died_later"]
