"""What goes wrong, in one sentence each: a Problem is the user's to mend, a Refusal is the engine's answer."""

from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

RefusalKind = Literal[
    "flags",
    "no_such_flag",
    "not_served",
    "engine_crash",
    "no_state_memory",
    "no_kv_memory",
    "no_tokens",
    "no_requests",
    "rest_unknown",
]
AnswerKind = Literal["flags", "not_served", "no_state_memory", "no_kv_memory", "no_tokens", "no_requests"]


class Problem(BaseModel):
    """One wrong input: where it stands (a field name) and a sentence saying what is wrong and what to do."""

    model_config = ConfigDict(frozen=True)

    where: str
    sentence: str


class Refusal(BaseModel):
    """The engine would not start: its own words, and the flag or input that cures it.

    Kinds and words: engine-sizing.md sections 4, 8 and 12. The words are empty where they were not read.
    `no_such_flag`: the release lacks a flag; `not_served`: it lacks the model; `engine_crash`: an exception that
    gives no advice. `rest_unknown` is not the engine's: nothing is known of the memory, and the cure says what to give.
    """

    model_config = ConfigDict(frozen=True)

    kind: RefusalKind
    engine_words: str
    cure: str

    @property
    def answer_kind(self) -> AnswerKind:
        """The kind in the words of an answer: a missing flag and a crash are refusals of the flags."""
        if self.kind == "no_such_flag" or self.kind == "engine_crash" or self.kind == "rest_unknown":
            return "flags"
        return self.kind

    @property
    def sentence(self) -> str:
        """Both halves in one line, for a page or a terminal."""
        if self.kind in ("not_served", "rest_unknown"):
            return self.cure
        if self.kind == "engine_crash":
            return f"SGLang would crash at the start: {self.words} {self.cure}"
        return f"SGLang would refuse to start{': ' if self.engine_words else ', '}{self.words} {self.cure}"

    @property
    def words(self) -> str:
        """The engine's words in quotation marks, or that they are not known."""
        if self.engine_words:
            return f"“{self.engine_words}”"
        return "in words that were not read."


class RefusedError(Exception):
    """Raised when a combination of flags is refused before any memory is counted."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.sentence)
        self.refusal = refusal


def from_validation(error: ValidationError, names: dict[str, str]) -> list[Problem]:
    """Pydantic's findings as sentences; `names` gives the words a user knows a field by (flag or title)."""
    return [_sentence(item, names) for item in error.errors(include_url=False, include_context=True)]


def from_link(error: ValidationError, names: dict[str, str], where: str, what: str) -> list[Problem]:
    """The same of a link's parameter `where`, which holds the inputs of `what`."""
    found = from_validation(error, names)
    return [Problem(where=where, sentence=f"In the link, of the {what}: {one.sentence}") for one in found]


def _sentence(item: Any, names: dict[str, str]) -> Problem:
    where = str(item["loc"][0]) if item["loc"] else ""
    name = names.get(where, where) or "An input"
    context = item.get("ctx", {})
    expected = _EXPECTED.get(item["type"], "is not valid")
    if item["type"] == "extra_forbidden":
        sentence = f"{shown(where)} is not an input of this tool. Remove it or correct its name."
    elif item["type"] == "value_error" and not where:
        sentence = str(context["error"])
    else:
        bounds = {key: f"{value:g}" if isinstance(value, float) else value for key, value in context.items()}
        sentence = f"{name} {expected.format(**bounds)}, not {shown(item.get('input'))}."
    return Problem(where=where, sentence=sentence)


_EXPECTED = {
    "value_error": "must be a number",  # of one field: true or false where a number belongs
    "which_number": "may be {small} or {large}: write one of them",
    "greater_than_equal": "must be {ge} or more",
    "greater_than": "must be more than {gt}",
    "less_than_equal": "must be {le} or less",
    "less_than": "must be less than {lt}",
    "literal_error": "must be one of {expected}",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a smaller whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "string_unicode": "must be readable text",
    "string_too_long": "must have {max_length} characters or fewer",
    "string_pattern_mismatch": "may hold letters, digits, spaces and . , : ; + - / ( ) _ = only",
    "model_type": "must be a set of named inputs (a JSON object)",
}


def shown(value: object, limit: int = 40) -> str:
    """What was given, cut short, as inert text: it may come from a stranger's link."""
    if value is None or value == "":
        return "empty"
    if isinstance(value, bool):
        value = str(value).lower()  # as JSON and links write it
    text = "".join(char if char.isprintable() and char not in "`<>\\" else "?" for char in str(value)[: limit + 1])
    return f"“{text[:limit]}…”" if len(text) > limit else f"“{text}”"


def listed(problems: Iterable[Problem]) -> str:
    """All sentences, one a line: a user should meet every fault at once."""
    return "\n".join(problem.sentence for problem in problems)
