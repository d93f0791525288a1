"""The answer of every command in one fixed vocabulary: what `--json` prints under the key `answer`.

A number that is known is a number. One that was measured from rounded text, or estimated, is a `Measured` band. What
is not known is None and its key stands in `unknown`; None without that means that it does not apply.
"""

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, model_validator

EngineKind = Literal["flags", "no_state_memory", "no_kv_memory", "no_tokens", "no_requests", "does_not_fit"]
InputKind = Literal["other_engine", "not_a_log", "unreadable", "columns", "too_large", "not_served"]
About = Literal[
    "log_and_command_differ", "ranks_differ", "several_boots", "several_servers", "cut_short", "died_later",
    "flags_elsewhere", "unread_flags", "asked_more", "no_spare_slot", "ratio_not_used", "radix_cache_off",
    "not_charged", "memory_idle", "rest_of_other_deployment", "draft_config", "multi_turn", "failed_left_out",
    "no_output", "buckets",
]  # fmt: skip

ANSWERED, ENGINE_REFUSES, NOT_ANSWERED = 0, 1, 2  # exit status


class Measured(BaseModel):
    """A number with the band that holds the truth: low <= value <= high."""

    model_config = ConfigDict(frozen=True)

    value: float
    low: float
    high: float

    @model_validator(mode="after")
    def _in_order(self) -> "Measured":
        if not self.low <= self.value <= self.high:
            raise ValueError(f"{self.value} does not lie between {self.low} and {self.high}")
        return self


Number = int | float | Measured | None


class Refused(BaseModel):
    """Why there is no answer: the engine would refuse, or the input cannot be answered."""

    model_config = ConfigDict(frozen=True)

    kind: EngineKind | InputKind
    words: str


class Notice(BaseModel):
    """Something that a reader has to know, one a code."""

    model_config = ConfigDict(frozen=True)

    about: About
    words: str


def radix_off_words(why: str, S: int) -> str:
    """What a radix cache that is off means; `why` may be empty."""
    slots = "one slot" if S == 1 else f"{S} slots"
    return f"The radix cache is off{f' ({why})' if why else ''}: {slots} a request, nothing is kept."


class Best(BaseModel):
    """The split that runs most: ratio and pin as one would type them, and the range of ratios that run as many."""

    model_config = ConfigDict(frozen=True)

    ratio: float | None = None
    ratio_low: float | None = None
    ratio_high: float | None = None
    pin: int | None = None
    runs: Number = None


class Lengths(BaseModel):
    """Statistics of one kind of length [tokens]."""

    model_config = ConfigDict(frozen=True)

    mean: Number = None
    p50: Number = None
    p95: Number = None
    p99: Number = None


class TrafficLengths(BaseModel):
    """What is known of the lengths of requests."""

    model_config = ConfigDict(frozen=True)

    input: Lengths | None = None
    output: Lengths | None = None
    total: Lengths | None = None


class Answer(BaseModel):
    """What every command says."""

    model_config = ConfigDict(frozen=True)

    refused: Refused | None = None
    words: str
    """The headline, one or two sentences."""
    unknown: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def status(self) -> int:
        """The exit status of the command."""
        if self.refused is None:
            return ANSWERED
        return ENGINE_REFUSES if self.refused.kind in get_args(EngineKind) else NOT_ANSWERED


class SizingAnswer(Answer):
    """Of `plan`, `log`, `target` and `traffic`. Per rank (per attention-DP rank) unless said otherwise."""

    S: Number = None
    D: Number = None
    """Draft states charged for a running request; 0 without speculation and under ReplaySSM for speculation."""
    slots: Number = None
    clamp: Number = None
    kv_rows: Number = None
    kv_tokens: Number = None
    kv_cap: Number = None
    runs: Number = None
    binds: Literal["state", "kv", "cap"] | None = None
    L: Number = None
    rest_gib: Number = None
    state_bytes_per_slot: Number = None
    kv_bytes_per_token: Number = None
    draft_kv_bytes_per_token: Number = None
    token_equiv: Number = None
    r_star: Number = None
    best: Best | None = None
    mem_fraction_least: Number = None
    flags: tuple[str, ...] | None = None
    command: str | None = None


class TrafficAnswer(SizingAnswer):
    """Of `traffic`: L is the mean length."""

    requests: Number = None
    failed: Number = None
    lengths: TrafficLengths | None = None


class ModelAnswer(Answer):
    """Of `model`."""

    state_bytes_per_slot: Number = None
    kv_bytes_per_token: Number = None
    draft_kv_bytes_per_token: Number = None
    token_equiv: Number = None
    family: str | None = None
    state_layers: int | None = None
    kv_layers: int | None = None
    is_draft: bool | None = None


def refusal(kind: EngineKind | InputKind, words: str) -> Refused:
    """A refusal in words.

    >>> SizingAnswer(refused=refusal("not_a_log", "No line of SGLang in it."), words="Not a log.").status
    2
    """
    return Refused(kind=kind, words=words)
