"""What a user is told about wrong inputs and about deployments that SGLang would refuse: whole sentences."""

import json
from typing import Any

import pytest

from sizing import Problem, Refusal, Scenario, read_scenario, solve

NAN, INFINITY = float("nan"), float("inf")
PIN_IS_EMPTY = "The split is pinned but --max-mamba-cache-size is empty. Enter slots."


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param({"L": 0}, "L must be 1 or more, not “0”.", id="zero"),
        pytest.param({"L": -9216}, "L must be 1 or more, not “-9216”.", id="negative"),
        pytest.param({"L": "many"}, "L must be a whole number, not “many”.", id="no number"),
        pytest.param({"L": 1.5}, "L must be a whole number, not “1.5”.", id="fraction"),
        pytest.param({"L": None}, "L must be a whole number, not empty.", id="null"),
        pytest.param({"L": [9216]}, "L must be a whole number, not “[9216]”.", id="list"),
        pytest.param({"L": NAN}, "L must be a finite number, not “nan”.", id="NaN for a whole number"),
        pytest.param({"L": 2**24 + 1}, "L must be 16777216 or less, not “16777217”.", id="too long"),
        pytest.param({"L": 10**400}, f"L must be 16777216 or less, not “1{'0' * 39}…”.", id="huge"),
        pytest.param({"rest_gib": NAN}, "rest must be a finite number, not “nan”.", id="NaN"),
        pytest.param({"rest_gib": INFINITY}, "rest must be a finite number, not “inf”.", id="infinity"),
        pytest.param({"rest_gib": -INFINITY}, "rest must be a finite number, not “-inf”.", id="minus infinity"),
        pytest.param({"rest_gib": 10**400}, f"rest must be a number, not “1{'0' * 39}…”.", id="no float"),
        pytest.param({"L": True}, "L must be a number, not “true”.", id="true for a whole number"),
        pytest.param({"rest_gib": False}, "rest must be a number, not “false”.", id="false for a number"),
        pytest.param(
            {"max_mamba_cache_size": True},
            "--max-mamba-cache-size must be a number, not “true”.",
            id="true where empty is allowed",
        ),
        pytest.param(
            {"mamba_full_memory_ratio": 0}, "--mamba-full-memory-ratio must be more than 0, not “0”.", id="no ratio"
        ),
        pytest.param(
            {"disable_radix_cache": 2}, "--disable-radix-cache must be true or false, not “2”.", id="no switch"
        ),
        pytest.param(
            {"mamba_ssm_dtype": "fp8"},
            "--mamba-ssm-dtype must be one of 'float32', 'bfloat16' or 'float16', not “fp8”.",
            id="no choice",
        ),
        pytest.param({"name": 5}, "Name must be text, not “5”.", id="name is a number"),
        pytest.param({"name": "x" * 61}, f"Name must have 60 characters or fewer, not “{'x' * 40}…”.", id="long name"),
        pytest.param(
            {"name": "a\n"},
            "Name may hold letters, digits, spaces and . , : ; + - / ( ) _ = only, not “a?”.",
            id="line break in the name",
        ),
        pytest.param({"name": "\ud800"}, "Name must be readable text, not “?”.", id="half a character"),
        pytest.param({"\ud800": 1}, "An input must be readable text, not “?”.", id="half a character for a name"),
        pytest.param(
            {"mem_fraction": 0.85},
            "“mem_fraction” is not an input of this tool. Remove it or correct its name.",
            id="unknown",
        ),
        pytest.param({"split": "pin"}, PIN_IS_EMPTY, id="pin is empty"),
        pytest.param(
            {"conv_bytes_per_slot": 56_171_521},
            "The conv part (56,171,521 bytes) is larger than the whole slot (56,171,520 bytes). "
            "Correct one of the two.",
            id="conv is larger than the slot",
        ),
        pytest.param(
            {"conv_bytes_per_slot": None, "mamba_ssm_dtype": "bfloat16"},
            "To rescale the SSM part of a slot from float32 to bfloat16 its conv part must be known: fill in "
            "“of which conv”, or state the bytes at the dtype you run.",
            id="conv is unknown",
        ),
        pytest.param(
            {"state_bytes_per_slot": 56_171_521, "mamba_ssm_dtype": "bfloat16"},
            "The SSM part of 54,263,809 bytes is not a whole number of float32 elements. "
            "Correct the state bytes, the conv part or their dtype.",
            id="half an element of state",
        ),
        pytest.param(
            {"kv_bytes_per_token": 13_825, "kv_bytes_dtype": "bfloat16"},
            "13,825 bytes per token is not a whole number of bfloat16 elements. Correct the KV bytes or their dtype.",
            id="half an element of KV",
        ),
    ],
)
def test_problem_of_one_input(values: dict[str, Any], sentence: str) -> None:
    """One wrong input gives one sentence: what is wrong with it, and what was given."""
    problems = read_scenario(values)
    assert isinstance(problems, list)
    assert [problem.sentence for problem in problems] == [sentence]


def test_problem_names_its_input() -> None:
    """A problem says which input it is about, a clash of inputs none."""
    assert read_scenario({"L": 0}) == [Problem(where="L", sentence="L must be 1 or more, not “0”.")]
    assert read_scenario({"split": "pin"}) == [Problem(where="", sentence=PIN_IS_EMPTY)]


def test_problem_every_input_at_once() -> None:
    """All wrong inputs are reported together, in the order of the form."""
    problems = read_scenario({"page_size": 0, "L": 0, "rest_gib": "much"})
    assert isinstance(problems, list)
    assert [problem.sentence for problem in problems] == [
        "L must be 1 or more, not “0”.",
        "rest must be a number, not “much”.",
        "--page-size must be 1 or more, not “0”.",
    ]


def test_right_inputs_are_a_scenario() -> None:
    """Values that are right give the scenario, and numbers may come as text."""
    assert read_scenario({"L": "16384", "D": 4}) == Scenario(L=16_384, D=4)


@pytest.mark.parametrize("depth", [1, 19, 20, 21, 400])
def test_problem_nested_value(depth: int) -> None:
    """However deeply a value is nested, the sentence shows forty characters of it."""
    problems = read_scenario({"L": json.loads("[" * depth + "]" * depth)})
    shown = "[" * min(depth, 40) + ("]" * depth)[: max(40 - depth, 0)] + ("…" if depth > 20 else "")
    assert problems == [Problem(where="L", sentence=f"L must be a whole number, not “{shown}”.")]


# The engine's words, as far as we repeat them: engine-sizing.md section 8.
NO_STATE = (
    "SGLang would refuse to start: “Not enough GPU memory for hybrid (mamba/linear-attention) state cache. "
    "Computed max_mamba_cache_size={slots} (total_rest_memory={rest} GB, mamba_cache_per_req=53.57 MB).”"
)
NO_KV = (
    "SGLang would refuse to start: “Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static”"
)
NO_TOKENS = "SGLang would refuse to start: “Not enough memory. Please try to increase --mem-fraction-static.”"
NO_REQUESTS = (
    "SGLang would refuse to start: “Hybrid (mamba/linear-attention) state cache is too small to serve any requests. "
    "max_mamba_cache_size={slots}, mamba_ratio=5, resulting max_num_reqs=0.”"
)


@pytest.mark.parametrize(
    ("inputs", "kind", "sentence"),
    [
        pytest.param(
            {"rest_gib": 0.1},
            "no_state_memory",
            f"{NO_STATE.format(slots=-1, rest='0.10')} One request needs rest of at least 0.663 GiB per rank "
            "at r = 0.9 (now 0.1 GiB): raise --mem-fraction-static.",
            id="no memory",
        ),
        pytest.param(
            {"rest_gib": 0.15},
            "no_state_memory",
            f"{NO_STATE.format(slots=0, rest='0.15')} One request needs rest of at least 0.663 GiB per rank "
            "at r = 0.9 (now 0.15 GiB): raise --mem-fraction-static.",
            id="only the padding slot",
        ),
        pytest.param(
            {"rest_gib": -5},
            "no_state_memory",
            f"{NO_STATE.format(slots=-47, rest='-5.00')} One request needs rest of at least 0.663 GiB per rank "
            "at r = 0.9 (now -5 GiB): raise --mem-fraction-static.",
            id="less than no memory",
        ),
        pytest.param(
            {"mamba_full_memory_ratio": 0.001},
            "no_state_memory",
            f"{NO_STATE.format(slots=-1, rest='28.53')} One request needs rest of at least 314.197 GiB per rank "
            "at r = 0.001 (now 28.529 GiB): raise --mem-fraction-static, or the ratio.",
            id="no slot at this ratio",
        ),
        pytest.param(
            {"mamba_full_memory_ratio": 1e-300},
            "no_state_memory",
            f"{NO_STATE.format(slots=-1, rest='28.53')} At r = 1e-300 no memory is enough for one request: "
            "raise the ratio.",
            id="no memory is enough",
        ),
        pytest.param(
            {"rest_gib": 0.6},
            "no_requests",
            f"{NO_REQUESTS.format(slots=4)} One request needs rest of at least 0.663 GiB per rank "
            "at r = 0.9 (now 0.6 GiB): raise --mem-fraction-static, or the ratio.",
            id="too few slots by ratio",
        ),
        pytest.param(
            {"split": "pin", "max_mamba_cache_size": 4},
            "no_requests",
            f"{NO_REQUESTS.format(slots=4)} Pin at least 5 slots.",
            id="too few slots by pin",
        ),
        pytest.param(
            {"max_total_tokens": 1, "page_size": 1},
            "no_requests",
            f"{NO_REQUESTS.format(slots=257)} --max-total-tokens 1 is less than the 2 tokens it takes: raise it.",
            id="one token",
        ),
        pytest.param(
            {"split": "pin", "max_mamba_cache_size": 700},
            "no_kv_memory",
            f"{NO_KV} 701 slots (one is padding) take 36.67 GiB of 28.529 GiB rest: "
            "lower --max-mamba-cache-size, or raise --mem-fraction-static.",
            id="pin too large",
        ),
        pytest.param(
            {"split": "pin", "max_mamba_cache_size": 500, "D": 4},
            "no_kv_memory",
            f"{NO_KV} 501 slots (one is padding) and draft states take 36.46 GiB of 28.529 GiB rest: "
            "lower --max-mamba-cache-size, or raise --mem-fraction-static.",
            id="pin too large with drafts",
        ),
        pytest.param(
            {"disable_radix_cache": True, "max_running_requests": 5000},
            "no_kv_memory",
            f"{NO_KV} 5,001 slots (one is padding) take 261.62 GiB of 28.529 GiB rest: "
            "lower --max-running-requests, or raise --mem-fraction-static.",
            id="too many requests without a radix cache",
        ),
        pytest.param(
            {"max_total_tokens": 63},
            "no_tokens",
            f"{NO_TOKENS} --max-total-tokens 63 is less than the 64 tokens it takes: raise it.",
            id="less than a page allowed",
        ),
        pytest.param(
            {"mamba_full_memory_ratio": 100_000, "page_size": 4096, "mamba_track_interval": 4096},
            "no_tokens",
            f"{NO_TOKENS} KV gets less than the 4096 tokens it takes: "
            "lower --mamba-full-memory-ratio, or raise --mem-fraction-static.",
            id="less than a page left",
        ),
    ],
)
def test_problem_refused_deployment(inputs: dict[str, Any], kind: str, sentence: str) -> None:
    """What SGLang would refuse is refused in its words, with the flag that cures it."""
    now = solve(Scenario(**inputs)).now
    assert isinstance(now, Refusal)
    assert (now.kind, now.sentence) == (kind, sentence)
