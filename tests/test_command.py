"""Launch commands: every layout gives the same inputs, and is written back byte for byte but for the sizing flags."""

import random
from typing import Any

import pytest

from sizing import Scenario, read_scenario
from sizing.command import SIZING_FLAGS, read_command, rewritten

RATIO, PIN, REQUESTS = SIZING_FLAGS

# One deployment in every layout: TP 8, two attention-DP ranks, ratio 0.9, page 64, the decode-lock skip.
LAYOUTS = {
    "one line": "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1 python -m sglang.launch_server --model-path m/n --tp 8 "
    "--dp-size 2 --enable-dp-attention --mamba-full-memory-ratio 0.9 --page-size 64",
    "continued": "export SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1\npython3 -m sglang.launch_server \\\n"
    "  --model-path m/n \\\n  --tp-size=8 \\\n  --dp 2 \\\n  --enable-dp-attention \\\n"
    "  --mamba-full-memory-ratio 0.9 \\\n  --page-size 64\n",
    "serve": "env SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=true sglang serve --model-path 'm/n' --tensor-parallel-size \"8\" "
    "--attn-dp-size 2 --mamba-full-memory-ratio=0.9 --page-size=64 # as agreed",
    "docker": "docker run --gpus all --shm-size 32g -e SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1 --ipc=host -p 30000:30000 "
    "lmsysorg/sglang:v0.5.23 \\\n  python3 -m sglang.launch_server --model-path m/n --tp 8 --attn-dp-size 2 "
    "--mamba-full-memory-ratio 0.9 --page-size 64 --host 0.0.0.0 > log.txt 2>&1 &",
    "shell in docker": "docker run -e SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1 image bash -c \"python3 -m "
    "sglang.launch_server --model-path m/n --tp 8 --attn-dp-size 2 --mamba-full-memory-ratio 0.9 --page-size 64 "
    "&& echo done\"",
    "kubernetes": """containers:
  - name: engine
    image: sglang
    command: ["python3", "-m", "sglang.launch_server"]
    args:
      - --model-path
      - m/n
      - --tp
      - "8"
      - --attn-dp-size=2
      - --mamba-full-memory-ratio
      - "0.9"
      - "--page-size=64"
    env:
      - name: SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK
        value: "1"
    ports:
      - containerPort: 30000
""",
    "json": '{"command": ["sglang", "serve"], "args": ["--model-path", "m/n", "--tp", "8", "--attn-dp-size", "2", '
    '"--mamba-full-memory-ratio", "0.9", "--page-size", "64"], '
    '"env": [{"name": "SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK", "value": "1"}]}',
    "shell in a list": 'command: ["bash", "-c", "python3 -m sglang.launch_server --model-path m/n --tp 8 '
    '--attn-dp-size 2 --mamba-full-memory-ratio 0.9 --page-size 64"]\nenvironment:\n'
    "  SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK: 1\n",
    "compose": "environment:\n  - SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1\ncommand: >\n  python3 -m sglang.launch_server\n"
    "  --model-path m/n\n  --tp 8 --attn-dp-size 2\n  --mamba-full-memory-ratio 0.9\n  --page-size 64\n",
    "Windows": "set SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1\r\npython -m sglang.launch_server ^\r\n  --model-path m/n ^\r\n"
    "  --tp 8 --attn-dp-size 2 ^\r\n  --mamba-full-memory-ratio 0.9 ^\r\n  --page-size 64\r\n",
    "arguments only": "--model-path m/n --tp 8 --attn-dp-size 2 --mamba-full-memory-ratio 0.9 --page-size 64",
}  # fmt: skip
EXPECTED: dict[str, Any] = {
    "tp_size": 8,
    "attn_dp_size": 2,
    "mamba_full_memory_ratio": 0.9,
    "page_size": 64,
    "skip_decode_lock": True,
    "split": "ratio",
}
layouts = pytest.mark.parametrize("name", LAYOUTS)


def changed(before: str, after: str) -> tuple[str, str]:
    """What was cut out of the one text, and what stands there in the other."""
    head = next((at for at, (one, two) in enumerate(zip(before, after, strict=False)) if one != two), None)
    if head is None:
        head = min(len(before), len(after))
    tail = 0
    while tail < min(len(before), len(after)) - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return before[head : len(before) - tail], after[head : len(after) - tail]


@layouts
def test_every_layout_gives_the_same_inputs(name: str) -> None:
    """Values, where they come from, the model, and no problem."""
    command = read_command(LAYOUTS[name])
    expected = dict(EXPECTED)
    if name == "arguments only":
        del expected["skip_decode_lock"]
    assert command.values == expected
    assert command.sources["mamba_full_memory_ratio"] == RATIO
    assert (command.model_path, command.problems) == ("m/n", ())
    assert isinstance(read_scenario(command.values), Scenario)


@layouts
def test_nothing_to_change_changes_nothing(name: str) -> None:
    """Also where the removed flag is not there."""
    command = read_command(LAYOUTS[name])
    assert rewritten(command, {}) == LAYOUTS[name]
    assert rewritten(command, {PIN: None}) == LAYOUTS[name]
    assert rewritten(command, {RATIO: "0.9"}) == LAYOUTS[name]


@layouts
def test_replace_touches_the_value_alone(name: str) -> None:
    """0.9 becomes 2.2045 where it stands."""
    before = LAYOUTS[name]
    after = rewritten(read_command(before), {RATIO: "2.2045"})
    assert after == before.replace("0.9", "2.2045", 1)
    assert read_command(after).values == read_command(before).values | {"mamba_full_memory_ratio": 2.2045}


@layouts
def test_remove_leaves_the_rest(name: str) -> None:
    """The ratio goes with its value and what set it apart; all other flags stay as they were."""
    before = read_command(LAYOUTS[name])
    text = rewritten(before, {RATIO: None})
    after = read_command(text)
    assert [(flag.name, flag.value) for flag in after.flags] == [
        (flag.name, flag.value) for flag in before.flags if flag.name != RATIO
    ]
    cut, put = changed(before.text, text)
    assert ("mamba-full-memory-ratio" in cut, put) == (True, "")
    assert after.environment == before.environment


@layouts
def test_add_then_remove_gives_the_text_back(name: str) -> None:
    """A pin is put behind the last flag and taken away again."""
    text = LAYOUTS[name]
    pinned = rewritten(read_command(text), {PIN: "371"})
    command = read_command(pinned)
    assert (command.values["max_mamba_cache_size"], command.values["split"]) == (371, "pin")
    assert changed(text, pinned)[0] == ""
    assert rewritten(command, {PIN: None}) == text


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("sglang serve --mamba-scheduler-strategy extra_buffer", {"mamba_radix_cache_strategy": "extra_buffer"}),
        ("sglang serve --enable-gdn-replayssm-spec", {"replayssm": "spec"}),
        ("sglang serve --enable-linear-replayssm --linear-replayssm-cache-len 8", {"replayssm": "decode"}),
        ("sglang serve --dp-size 4 --tp 8", {"tp_size": 8}),  # replicas of their own: no attention DP
        ("sglang serve --pipeline-parallel-size 2", {"pp_size": 2}),
        ("sglang serve --kv-cache-dtype auto --page-size 1", {"page_size": 1}),
        ("sglang serve --kv-cache-dtype bf16", {"kv_cache_dtype": "bfloat16"}),
        ("sglang serve --speculative-num-draft-tokens 4", {}),  # no algorithm, no speculation
        ("sglang serve --speculative-algorithm EAGLE --speculative-num-draft-tokens 4", {"D": 4}),
        ("sglang serve --tp 4 --tp 8", {"tp_size": 8}),
        ("SGLANG_MAMBA_SSM_DTYPE=bfloat16 sglang serve --tp 8", {"mamba_ssm_dtype": "bfloat16"}),
        ("SGLANG_MAMBA_CONV_DTYPE=float32 sglang serve --tp 8", {"mamba_conv_dtype": "float32"}),
        ("sglang serve --linear-attn-backend flashinfer", {"linear_attn_backend": "flashinfer"}),
        ("sglang serve --disable-radix-cache --disable-overlap-schedule", {"disable_radix_cache": True}),
        ("sglang serve --max-mamba-cache-size 371", {"max_mamba_cache_size": 371, "split": "pin"}),
        ("echo --tp 2; /opt/venv/bin/sglang serve --tp 8 | tee --append log", {"tp_size": 8}),
    ],
)
def test_flag(text: str, values: dict[str, Any]) -> None:
    """Old names, short names and flags that work together."""
    found = read_command(text).values
    assert values.items() <= found.items()
    assert "attn_dp_size" not in found
    assert ("D" in found) == ("D" in values)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("sglang serve --tp eight", "--tp must be a whole number, not “eight”. It was left out."),
        ("sglang serve --tp $TP", "--tp “$TP” is filled in later. Replace it by its value."),
        ("sglang serve --page-size", "--page-size has no value. Give it one, or remove it."),
        ("sglang serve --page-size --tp 8", "--page-size has no value. Give it one, or remove it."),
        ("sglang serve --mem-fraction-static 85", "--mem-fraction-static must be above 0 and at most 1, not “85”."),
        (
            "sglang serve --speculative-algorithm EAGLE",
            "--speculative-algorithm is there without --speculative-num-draft-tokens: enter D, the draft tokens that "
            "the engine chooses.",
        ),
        (
            "sglang serve --mamba-ssm-dtype int8",
            "--mamba-ssm-dtype must be one of 'float32', 'bfloat16' or 'float16', not “int8”. It was left out.",
        ),
        ("ls -l", "No flag of SGLang was found. Paste the command from “sglang serve” or “launch_server” on."),
        ("x" * 100_001, "The command is longer than 100,000 characters: paste the command alone."),
    ],
)
def test_problem_is_one_sentence(text: str, sentence: str) -> None:
    """What cannot be taken is said, and left out."""
    assert [problem.sentence for problem in read_command(text).problems] == [sentence]


def test_unknown_flags_are_kept() -> None:
    """With their values, in order; also one whose value looks like a number."""
    text = "sglang serve --trust-remote-code --cuda-graph-bs 1 2 4 --port 30000 --mamba-full-memory-ratio 0.9"
    command = read_command(text)
    assert command.unknown == ("--trust-remote-code", "--cuda-graph-bs", "--port")
    assert rewritten(command, {RATIO: "2"}) == text.removesuffix("0.9") + "2"


def test_several_changes_at_once() -> None:
    """A ratio gives way to a pin, and a request cap is set."""
    text = "sglang serve --tp 8 \\\n  --mamba-full-memory-ratio 0.9 \\\n  --max-running-requests 64 \\\n  --port 1\n"
    after = rewritten(read_command(text), {RATIO: None, PIN: "371", REQUESTS: "74"})
    assert (
        after == "sglang serve --tp 8 \\\n  --max-running-requests 74 \\\n  --port 1 \\\n  --max-mamba-cache-size 371\n"
    )


@pytest.mark.parametrize(("name", "value"), [("--tp", "8"), (RATIO, "2; rm -r x"), (RATIO, "nan"), (PIN, "-1")])
def test_only_sizing_flags_with_plain_numbers_are_written(name: str, value: str) -> None:
    """Anything else is a mistake of the caller."""
    with pytest.raises(ValueError, match=r"is not one of|takes a plain number"):
        rewritten(read_command("sglang serve"), {name: value})


def test_any_text_can_be_read() -> None:
    """Cut, shuffled and odd texts raise nothing, and are written back as they were."""
    draw = random.Random(4)
    pieces = [*"'\"\\\n\r\t ,[]{}-=#;&|$`^", *" ".join(LAYOUTS.values()).split()]
    for _ in range(3000):
        text = draw.choice(["", " "]).join(draw.choices(pieces, k=draw.randrange(40)))
        command = read_command(text)
        assert rewritten(command, {}) == text
        after = rewritten(command, {RATIO: "2"}) if command.flags else text
        assert all(problem.sentence for problem in read_command(after).problems)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('sglang serve --model-path "m --tp 8 --mamba-full-memory-ratio 0.9', "quote"),
        ('ARGS=(--tp 8)\nsglang serve --model-path m "${ARGS[@]}"', "further flags"),
        ("sglang serve --trust-remote-code $EXTRA", None),
        ("sglang serve --model-path m --tp 8 $EXTRA --dp-size 2", "further flags"),
        ("sglang serve --model-path $MODEL --tp 8", None),
        ("sglang serve --model-path 'it is' --served-model-name \"it's\" --tp 8", None),
    ],
)
def test_what_a_shell_would_expand_is_said(text: str, word: str | None) -> None:
    """An open quote and a variable that may hold flags are named: a cure would be written around what is not seen."""
    sentences = [problem.sentence for problem in read_command(text).problems]
    assert (word is None and sentences == []) or (word is not None and any(word in said for said in sentences))
