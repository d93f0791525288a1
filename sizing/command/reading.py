"""From a launch command to a Scenario's inputs, each with the flag it came from; unknown flags are kept.

Nothing of it is run. Source of the flags: flags.py.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from sizing.basics.problems import Problem, from_validation, shown
from sizing.command.flags import RULE_OF, VARIABLES, FlagRule, chief_name
from sizing.command.variables import ANY_EXPANSION, added_to, array_around, expanded, set_on_condition
from sizing.command.words import MAX_CHARACTERS, Layout, Word, is_open, layout_of, words_of
from sizing.releases.flags import releases_with, whole_name, words_taken
from sizing.releases.rules import EAGLE_KIND, Release
from sizing.scenario.inputs import DEFAULTS, INPUTS, LABELS, Scenario

_FLAG = re.compile(r"--[a-zA-Z][\w-]*")
_ENVIRONMENT = re.compile(r"(?:--env=|-e)?(SGLANG_\w{1,80})=(.*)", re.DOTALL)
_WHOLE, _NUMBER = re.compile(r"\d{1,15}"), re.compile(r"\d{1,15}(?:\.\d{1,15})?(?:[eE][+-]?\d{1,3})?|\.\d{1,15}")
_EXPANSION = re.compile(r"\$\{?[\w@*]{1,60}(?:\[@\]|\[\*\])?\}?|\$\(.*\)", re.DOTALL)
ROUTER = "sglang_router.launch_server"
READ_FOR_SIZING = frozenset(RULE_OF) - {"--model-path", "--config"}
# Values by which the engine decides on its own; what it decides is the default of the input, or not known.
_LEFT_TO_THE_ENGINE = {"--kv-cache-dtype": ("auto",), "--mamba-ssm-dtype": ("auto",)}
_ALIASES = {"bf16": "bfloat16", "fp8": "fp8_e4m3"}
_TRUE = ("1", "true", "yes", "y", "on", "t")


class Flag(NamedTuple):
    """One flag of the command as it stands: `value` is None for a switch. Places are offsets in the text."""

    name: str
    """As it is written, abbreviated perhaps."""
    value: str | None
    start: int
    end: int
    """Behind the value."""
    words: tuple[Word, ...]

    @property
    def chief(self) -> str:
        """The one name for all spellings of this flag."""
        return chief_name(self.name)

    @property
    def in_shell(self) -> bool:
        """Whether it stands in a command inside quotes, whatever is around that."""
        return self.words[0].inside


class Command(BaseModel):
    """A launch command that was read."""

    model_config = ConfigDict(frozen=True)

    text: str
    layout: Layout
    flags: tuple[Flag, ...]
    """All flags behind the launcher, in order."""
    environment: dict[str, str]
    """Variables that SGLang reads, whatever way they are given."""
    values: dict[str, Any]
    """A Scenario's inputs, by field name."""
    sources: dict[str, str]
    """For each value the flag or variable it came from."""
    model_path: str | None
    mem_fraction_static: float | None
    draft_steps: int | None
    """--speculative-num-steps."""
    unknown: tuple[str, ...]
    """Flags that sizing does not read; the writer keeps them as they are."""
    unread: tuple[str, ...]
    """Those of them that no release of SGLang has."""
    elsewhere: tuple[str, ...]
    """What flags or values stand in that is not given here, a sentence each: a file, a variable."""
    without_value: tuple[str, ...] | None
    """The flags whose values are not given here; None where whole flags may stand elsewhere."""
    releases: tuple[Release, ...]
    """The releases that have all of the flags, oldest first."""
    problems: tuple[Problem, ...]
    end: int
    """Where the command ends: new flags go here."""

    @property
    def given(self) -> bool:
        """Whether it holds anything: flags, or the model alone."""
        return bool(self.flags) or self.model_path is not None


def read_command(text: str) -> Command:
    """A launch command: a shell line, docker run, or the args of a container. Raises nothing.

    >>> command = read_command("SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK=1 sglang serve --model-path m --tp 8 --dp-size=2 "
    ...                        "--enable-dp-attention")
    >>> command.values["tp_size"], command.values["attn_dp_size"], command.values["skip_decode_lock"]
    (8, 2, True)
    """
    if len(text) > MAX_CHARACTERS:
        return _nothing(text, f"The command is longer than {MAX_CHARACTERS:,} characters: paste the command alone.")
    layout = layout_of(text)
    words = list(words_of(text, layout))
    own = _own_words(words, layout)
    on_condition: dict[str, tuple[str, ...]] = {}
    if layout == "shell":
        on_condition = set_on_condition(text, words, own)
        own = expanded(text, words, own)
    flags = tuple(_flags(own))
    environment, positional = _environment(words), _positional(words, own)
    reader = _Reader(flags, environment)
    if any(is_open(text[word.start : word.end]) for word in own if not word.inside):
        reader.problem("", "A quote is opened and never closed, so where a flag ends is not known: paste all of it.")
    if not flags and positional is None:
        reader.problem("", "No flag of SGLang was found. Paste the command from “sglang serve” or “launch_server” on.")
    return Command(
        text=text,
        layout=layout,
        flags=flags,
        environment=environment,
        values=reader.values,
        sources=reader.sources,
        model_path=reader.text_of("--model-path") or (positional.value if positional else None),
        mem_fraction_static=reader.values.get("mem_fraction_static"),
        draft_steps=reader.whole("--speculative-num-steps"),
        unknown=tuple(dict.fromkeys(flag.name for flag in flags if flag.chief not in RULE_OF)),
        unread=() if _is_router(words) else _unread(flags),
        elsewhere=(*_elsewhere(own, flags), *_perhaps(flags, on_condition)),
        without_value=_without_value(own, flags, on_condition),
        releases=releases_with([flag.name for flag in flags]),
        problems=tuple(reader.problems),
        end=max((each.end for each in (*flags, positional) if each), default=len(text.rstrip())),
    )


def _nothing(text: str, sentence: str) -> Command:
    return Command(
        text=text, layout="shell", flags=(), environment={}, values={}, sources={}, model_path=None,
        mem_fraction_static=None, draft_steps=None, unknown=(), unread=(), elsewhere=(), without_value=(), releases=(),
        problems=(Problem(where="command", sentence=sentence),), end=len(text),
    )  # fmt: skip


def _is_router(words: list[Word]) -> bool:
    """Whether the launcher is the router's, which has flags of its own besides."""
    return any(word.value == ROUTER for word in words)


def _unread(flags: tuple[Flag, ...]) -> tuple[str, ...]:
    """Flags that no release has, and beginnings that several flags have."""
    return tuple(dict.fromkeys(flag.name for flag in flags if whole_name(flag.name) is None))


def _elsewhere(own: list[Word], flags: tuple[Flag, ...]) -> Iterator[str]:
    """What is filled in from a file or by a shell, and is not in the text."""
    for flag in flags:
        if flag.chief == "--config" and flag.value:
            yield f"--config {shown(flag.value)} holds further flags: write them behind the command, or paste the file."
        elif flag.chief in READ_FOR_SIZING and ANY_EXPANSION.search(flag.value or ""):
            yield f"{flag.name} {shown(flag.value)} is filled in later: replace it by its value."
    for before, word in pairwise([Word("", 0, 0), *own]):
        if _hides_flags(before, word):
            yield f"{shown(word.value)} may hold further flags, which are not seen here: write them out."


def _without_value(
    own: list[Word], flags: tuple[Flag, ...], on_condition: dict[str, tuple[str, ...]]
) -> tuple[str, ...] | None:
    """The flags whose values are filled in later, or set in one case only; None where further flags may be hidden."""
    hides = any(_hides_flags(before, word) for before, word in pairwise([Word("", 0, 0), *own]))
    if hides or any(flag.chief == "--config" for flag in flags):
        return None
    perhaps = {word for held in on_condition.values() for word in held}
    return tuple(
        flag.chief
        for flag in flags
        if ANY_EXPANSION.search(flag.value or "") or not perhaps.isdisjoint(word.value for word in flag.words)
    )


def _perhaps(flags: tuple[Flag, ...], on_condition: dict[str, tuple[str, ...]]) -> Iterator[str]:
    """Flags of sizing, and their values, that a script sets in one case and not in another."""
    used = [word.value for flag in flags if flag.chief in READ_FOR_SIZING for word in flag.words]
    for name, held in on_condition.items():
        if any(value in held for value in used) or any(chief_name(word) in READ_FOR_SIZING for word in held):
            yield f"{name} is set in an “if” or a loop: whether it is so is not seen here. Write its value out."


def _hides_flags(before: Word, word: Word) -> bool:
    """Whether a word is a variable that may stand for flags: as the value of a flag it hides that value alone."""
    if not _EXPANSION.fullmatch(word.value):
        return False
    is_value = before.value.startswith("--") and "=" not in before.value and words_taken(before.value) != 0
    return not is_value or "[" in word.value


def _launchers(words: list[Word]) -> Iterator[int]:
    """Where the words behind a launcher begin."""
    for index, (word, after) in enumerate(pairwise([*words, Word("", 0, 0)])):
        if word.value in ("sglang.launch_server", ROUTER) or word.value.endswith("launch_server.py"):
            yield index + 1
        elif word.value.rpartition("/")[2] == "sglang" and after.value == "serve":
            yield index + 2


def _positional(words: list[Word], own: list[Word]) -> Word | None:
    """The model where it stands right behind `sglang serve`, without --model-path."""
    start = next(_launchers(words), 0)
    serves = start > 0 and words[start - 1].value == "serve"
    first = own[0] if own and serves else None
    return None if first is None or first.value.startswith("-") or ANY_EXPANSION.search(first.value) else first


def _own_words(words: list[Word], layout: Layout) -> list[Word]:
    """The words of the first launch command; all of them where only arguments are given."""
    start = next(_launchers(words), 0)
    rest = words[start:]
    if layout != "shell":
        return [word for word in rest if word.kind == "word"]
    if array := array_around(words, start):
        name, closed = array
        return [*(word for word in words[start:closed] if word.kind == "word"), *added_to(words, name, closed)]
    own: list[Word] = []
    for word, after in pairwise([*_without_empty_lines(rest), Word("", 0, 0)]):
        if word.kind == "operator" and own:
            break
        if word.kind == "line" and own and not after.value.startswith("-") and not _waits(own[-1]):
            break
        if word.kind == "word":
            own.append(word)
    return own


def _without_empty_lines(words: list[Word]) -> list[Word]:
    """One line end for several in a row."""
    return [word for word, after in pairwise([*words, Word("", 0, 0)]) if not word.kind == after.kind == "line"]


def _waits(word: Word) -> bool:
    """Whether a flag's value is still to come."""
    return words_taken(word.value) in (1, None) if _FLAG.fullmatch(word.value) else False


def _flags(words: list[Word]) -> Iterator[Flag]:
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        name, equals, value = word.value.partition("=")
        if not _FLAG.fullmatch(name):
            continue
        taken = [word]
        if not equals:
            most = words_taken(name)
            most = len(words) if most is None else most
            while index < len(words) and len(taken) <= most and _is_value(words[index].value):
                taken.append(words[index])
                index += 1
            value = " ".join(item.value for item in taken[1:])
        yield Flag(name, value if equals or len(taken) > 1 else None, word.start, taken[-1].end, tuple(taken))


def _is_value(text: str) -> bool:
    """Whether a word is a flag's value: not another flag, and not a key of the YAML around the list."""
    return not _FLAG.match(text) and not re.fullmatch(r"-[A-Za-z]", text) and not re.fullmatch(r"\w+:", text)


def _environment(words: list[Word]) -> dict[str, str]:
    """NAME=value before the command or behind -e, `NAME: value`, and a container's `name: NAME` with `value: ...`."""
    found: dict[str, str] = {}
    values = [word.value for word in words if word.kind == "word"]
    for index, value in enumerate(values):
        behind = values[index + 1 : index + 3]
        if match := _ENVIRONMENT.fullmatch(value):
            found[match[1]] = match[2]
        elif re.fullmatch(r"SGLANG_\w{1,80}:", value) and behind:
            found[value[:-1]] = behind[0]
        elif value in ("name:", "{name:") and len(behind) == 2 and behind[0].startswith("SGLANG_"):
            given = values[index + 3 : index + 4]
            if behind[1] == "value:" and given:
                found[behind[0]] = given[0].rstrip("}")
    return found


# `_auto_choose_speculative_params` for the models that have state, 0.5.8 to 0.5.23 (8 before), and `_handle_ngram`.
AUTO_DRAFT_TOKENS, NGRAM_DRAFT_TOKENS = 4, 12


class _Reader:
    """Reads flags into values, one problem for each that cannot be taken."""

    def __init__(self, flags: tuple[Flag, ...], environment: dict[str, str]) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.problems: list[Problem] = []
        # The last of several counts, as in the engine's own parser.
        self._flags = {flag.chief: flag for flag in flags}
        for name, flag in self._flags.items():
            rule = RULE_OF.get(name)
            if rule and rule.field:
                self._take(rule, flag)
        self._attention_dp()
        self._speculation()
        self._replayssm()
        self._others(environment)

    def problem(self, where: str, sentence: str) -> None:
        self.problems.append(Problem(where=where, sentence=sentence))

    def text_of(self, name: str) -> str | None:
        """What stands behind a flag; None without it."""
        return self._flags[name].value if name in self._flags else None

    def whole(self, name: str) -> int | None:
        """The whole number behind a flag; None without one."""
        text = self.text_of(name)
        return int(text) if text and _WHOLE.fullmatch(text) else None

    def _set(self, field: str, value: object, source: str) -> None:
        """Take a value that the Scenario takes."""
        try:
            Scenario.__pydantic_validator__.validate_assignment(Scenario.model_construct(**DEFAULTS), field, value)
        except ValidationError as error:
            own = [item for item in from_validation(error, LABELS | {field: source}) if item.where == field]
            if own:
                self.problem(source, f"{own[0].sentence} It was left out.")
                return
        self.values[field], self.sources[field] = value, source

    def _take(self, rule: FlagRule, flag: Flag) -> None:
        if rule.kind == "switch":
            self._set(rule.field, True, flag.name)
        elif flag.value is None or not flag.value:
            self.problem(flag.name, f"{flag.name} has no value. Give it one, or remove it.")
        elif ANY_EXPANSION.search(flag.value):
            return  # said among what stands elsewhere
        elif flag.value not in _LEFT_TO_THE_ENGINE.get(flag.name, ()):
            self._set(rule.field, _typed(rule, flag.value), flag.name)

    def _attention_dp(self) -> None:
        """--dp-size counts with --enable-dp-attention only: without it each rank of it is a server of its own."""
        flag = self._flags.get("--dp-size")
        if flag and "--enable-dp-attention" in self._flags and "attn_dp_size" not in self.values:
            self._take(FlagRule("whole", "attn_dp_size", (flag.name,)), flag)

    def _speculation(self) -> None:
        """D as the engine's own rules make it of the flags (`_handle_eagle_family`, `_handle_ngram`).

        Without an algorithm there is no speculation, whatever the number of draft tokens.
        """
        algorithm = self.text_of("--speculative-algorithm")
        if algorithm is None:
            self._leave_out("D", "speculative_num_steps")
            return
        if algorithm == "NEXTN":
            self.values["speculative_algorithm"] = "EAGLE"
        steps, topk = self.whole("--speculative-num-steps"), self.whole("--speculative-eagle-topk")
        if algorithm in EAGLE_KIND and steps is not None and topk == 1:
            self._set("D", steps + 1, "--speculative-num-steps")
        elif "D" not in self.values and algorithm in EAGLE_KIND and steps is None:
            self._set("D", AUTO_DRAFT_TOKENS, "--speculative-algorithm")
        elif "D" not in self.values and algorithm == "NGRAM":
            self._set("D", NGRAM_DRAFT_TOKENS, "--speculative-algorithm")
        elif "D" not in self.values and "--speculative-num-draft-tokens" not in self._flags:
            self.problem(
                "--speculative-num-draft-tokens",
                "--speculative-algorithm is there without --speculative-num-draft-tokens: enter D, the draft tokens "
                "that the engine chooses.",
            )
        if steps is not None and steps == self.values.get("D", 0) - 1:
            self._leave_out("speculative_num_steps")  # it follows from D

    def _leave_out(self, *fields: str) -> None:
        for field in fields:
            self.values.pop(field, None)
            self.sources.pop(field, None)

    def _replayssm(self) -> None:
        for name, kind in (("--enable-linear-replayssm", "decode"), ("--enable-linear-replayssm-spec", "spec")):
            if name in self._flags:
                other = self.values.get("replayssm", kind)
                self.values["replayssm"] = kind if other == kind else "both"
                self.sources["replayssm"] = self._flags[name].name

    def _others(self, environment: dict[str, str]) -> None:
        if "max_mamba_cache_size" in self.values:
            self.values["split"], self.sources["split"] = "pin", self.sources["max_mamba_cache_size"]
        elif self._flags:
            self.values["split"] = "ratio"
            self.sources["split"] = self.sources.get("mamba_full_memory_ratio", "no pin")
        for variable, field in VARIABLES.items():
            own = INPUTS[field]
            if variable in environment and not any(name in self._flags for name in own.names):
                text = environment[variable]
                self._set(field, text.lower() in _TRUE if own.kind == "switch" else text, variable)


def _typed(rule: FlagRule, text: str) -> object:
    """The value as the Scenario takes it; what is no number stays text, and is refused there in a sentence."""
    if rule.kind == "whole" and _WHOLE.fullmatch(text):
        return int(text)
    if rule.kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    return _ALIASES.get(text, text) if rule.field == "kv_cache_dtype" else text
