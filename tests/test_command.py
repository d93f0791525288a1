"""Launch commands: every layout gives the same inputs, and is written back byte for byte but for the sizing flags."""

import random
from typing import Any

import pytest

from sizing import Scenario, read_scenario
from sizing.command import SIZING_FLAGS, read_command, rewritten
from sizing.releases.rules import LATEST

RATIO, PIN, REQUESTS, FRACTION = SIZING_FLAGS

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
        ("sglang serve --page-size", "--page-size has no value. Give it one, or remove it."),
        ("sglang serve --page-size --tp 8", "--page-size has no value. Give it one, or remove it."),
        (
            "sglang serve --mem-fraction-static 85",
            "--mem-fraction-static must be less than 1, not “85.0”. It was left out.",
        ),
        (
            "sglang serve --speculative-algorithm DFLASH",
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
        ("sglang serve --trust-remote-code $EXTRA", "further flags"),
        ("sglang serve --model-path m --tp 8 $EXTRA --dp-size 2", "further flags"),
        ('sglang serve --model-path m "${ARGS[@]}" --tp 8', "further flags"),
        ("sglang serve --model-path m $(cat flags) --tp 8", "further flags"),
        ("sglang serve --config decode.yaml --tp 8", "holds further flags"),
        ("sglang serve --mem-fraction-static $MEM --tp 8", "is filled in later"),
        ("sglang serve --model-path $MODEL --port $PORT --tp 8", None),
        ("sglang serve --model-path 'it is' --served-model-name \"it's\" --tp 8", None),
    ],
)
def test_what_stands_elsewhere_is_said(text: str, word: str | None) -> None:
    """A file, and a variable that may hold flags or a number, are named: nothing is taken as left out."""
    command = read_command(text)
    assert command.values.get("tp_size") == 8 or word == "further flags"
    assert (word is None and command.elsewhere == ()) or any(word in said for said in command.elsewhere if word)


@pytest.mark.parametrize(
    ("text", "added"),
    [
        ("sglang serve {} # mine", "sglang serve {} --max-mamba-cache-size 371 # mine"),
        (
            "docker run i sglang serve {} --tp 8 | tee x",
            "docker run i sglang serve {} --tp 8 --max-mamba-cache-size 371 | tee x",
        ),
        ('M={}\nsglang serve "$M" --tp 8', 'M={}\nsglang serve "$M" --tp 8 --max-mamba-cache-size 371'),
        (
            'args: ["sglang", "serve", "{}", "--tp=8"]',
            'args: ["sglang", "serve", "{}", "--tp=8", "--max-mamba-cache-size=371"]',
        ),
    ],
)
def test_the_model_may_stand_right_behind_serve(text: str, added: str) -> None:
    """Without --model-path, in every layout; a flag is then added behind it."""
    command = read_command(text.format("org/Kimi-K3"))
    assert (command.model_path, command.problems, command.elsewhere) == ("org/Kimi-K3", (), ())
    assert rewritten(command, {"--max-mamba-cache-size": "371"}) == added.format("org/Kimi-K3")
    assert read_command("sglang serve --tp 8").model_path is None


def test_an_open_quote_is_said() -> None:
    """Where a flag ends is not known then."""
    (problem,) = read_command('sglang serve --model-path "m --tp 8 --mamba-full-memory-ratio 0.9').problems
    assert "quote" in problem.sentence


GIVEN = {"tp_size": 4, "page_size": 64, "max_mamba_cache_size": 100, "split": "pin"}


@pytest.mark.parametrize(
    "text",
    [
        "TP=4\nsglang serve --model-path m --tp $TP --page-size ${PAGE:-64} --max-mamba-cache-size=100",
        "export TP=4 PINNED=100; sglang serve --model-path m --tp-size=${TP} --page-size 64 --max-mamba $PINNED",
        'FLAGS="--tp 4 --page-size 64"\nsglang serve --model-path m $FLAGS --max-mamba-cache-size 100',
        'ARGS=(--tp 4\n  --page-size 64)\npython -m sglang.launch_server "${ARGS[@]}" --max-mamba-cache-size 100',
        'SIZES="--page-size 64"\nALL="--tp 4 $SIZES"\nsglang serve $ALL --max-mamba-cache-size 100',
    ],
)
def test_variables_that_are_given_are_filled_in(text: str) -> None:
    """One value, several flags, an array, a default a variable in a variable; the pin is replaced there."""
    command = read_command(text)
    assert (command.values, command.elsewhere, command.unread) == (GIVEN, (), ())
    after = read_command(rewritten(command, {PIN: None, RATIO: "1.25"}))
    assert after.values == {"tp_size": 4, "page_size": 64, "mamba_full_memory_ratio": 1.25, "split": "ratio"}


def test_a_flag_inside_a_variable_is_changed_there() -> None:
    """It is written once, so it is replaced once."""
    command = read_command('FLAGS="--tp 4 --mamba-full-memory-ratio 0.9"\nsglang serve --model-path m $FLAGS')
    after = rewritten(command, {RATIO: "2"})
    assert after == 'FLAGS="--tp 4 --mamba-full-memory-ratio 2"\nsglang serve --model-path m $FLAGS'


@pytest.mark.parametrize("depth", [3, 60])
def test_variables_that_hold_each_other_end(depth: int) -> None:
    """Nothing is filled in without end."""
    text = (
        "".join(f'V{at}="$V{at + 1} $V{at + 1}"\n' for at in range(depth, 0, -1)) + "A=$A\nsglang serve $V1 $A --tp 4"
    )
    assert read_command(text).values["tp_size"] == 4


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("sglang serve --tp 4 --gdn-mtp-cache-mode none --page-size 1", ("--gdn-mtp-cache-mode",)),
        ("sglang serve --tp 4 --max 3", ("--max",)),
        ("sglang serve --tp 4 --trust-remote-code --mamba-sched no_buffer --enable-dp-attention", ()),
        ("python -m sglang_router.launch_server --tp 4 --router-policy cache_aware", ()),
    ],
)
def test_flags_that_no_release_has(text: str, unread: tuple[str, ...]) -> None:
    """They are named; abbreviations that only one flag has are read, those of several are not."""
    assert read_command(text).unread == unread


@pytest.mark.parametrize(
    ("flags", "drafts"),
    [
        ("EAGLE", 4),
        ("NEXTN --speculative-num-steps 3 --speculative-eagle-topk 1", 4),
        ("EAGLE --speculative-num-steps 5 --speculative-eagle-topk 1 --speculative-num-draft-tokens 3", 6),
        ("EAGLE --speculative-num-steps 3 --speculative-eagle-topk 4 --speculative-num-draft-tokens 16", 16),
        ("NGRAM", 12),
        ("DFLASH", None),
    ],
)
def test_draft_tokens_are_the_engines(flags: str, drafts: int | None) -> None:
    """A chain takes one more than its steps whatever is asked; what is left out is the engine's own; NEXTN is EAGLE."""
    values = read_command(f"sglang serve --tp 8 --speculative-algorithm {flags}").values
    assert values.get("D") == drafts
    assert values["speculative_algorithm"] != "NEXTN"


def test_releases_that_have_the_flags() -> None:
    """A flag of its time narrows the releases that a command can be of."""
    old = read_command("sglang serve --mamba-scheduler-strategy no_buffer --tp 8")
    assert (old.releases[0], old.releases[-1]) == ("0.5.7", "0.5.19")
    new = read_command("sglang serve --attn-dp-size 2")
    assert (new.releases[0], new.releases[-1]) == ("0.5.22", LATEST)
