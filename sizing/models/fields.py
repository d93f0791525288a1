"""A config.json as checked fields: bounded, JSON only, and every wrong value is a sentence that names its field.

The file comes from a stranger. Nothing is taken from it without its type and bounds being looked at first.
"""

import json
from collections.abc import Mapping
from typing import NoReturn

from sizing.basics.problems import shown
from sizing.models.refusal import ModelRefusedError

MAX_FILE_BYTES = 4 * 2**20  # a bound for hostile input; real files hold a few tens of kB
MAX_DEPTH = 32  # the same; real files nest four or five deep
MAX_LAYERS = 4096  # the same; the deepest model of the catalogue has 118
MAX_WIDTH = 2**24  # the same, for every other count and dimension
MAX_RANKS = 4096  # the same, for widths of parallelism


def parse(source: str | bytes, name: str = "config.json") -> dict[str, object]:
    """The JSON object in `source`, at most MAX_FILE_BYTES [bytes] and MAX_DEPTH levels.

    Raises ModelRefusedError (unreadable) for anything else; `name` is what the sentence calls the file.
    """
    # A character has at least one byte, so that a text that is too long is too large as well.
    if len(source) > MAX_FILE_BYTES:
        raise ModelRefusedError("unreadable", name, f"{name} is larger than {MAX_FILE_BYTES // 2**20} MiB.")
    try:
        text = source.decode("utf-8-sig") if isinstance(source, bytes) else source
        values = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):  # not UTF-8, not JSON, a number of thousands of digits, far too deep
        raise ModelRefusedError("unreadable", name, f"{name} is not JSON. Paste the whole file.") from None
    return checked_object(values, name)


def object_of(source: str | bytes | Mapping[str, object], name: str = "config.json") -> dict[str, object]:
    """The JSON object of a file's text or bytes, or one that is parsed already; refused like `parse`."""
    return parse(source, name) if isinstance(source, str | bytes) else checked_object(source, name)


def checked_object(values: object, name: str = "config.json") -> dict[str, object]:
    """`values` as an object whose keys are texts, nested at most MAX_DEPTH levels; refused like `parse`."""
    if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
        raise ModelRefusedError(
            "unreadable", name, f"{name} is not a JSON object: it must begin with {{ and name its fields."
        )
    level: list[object] = [values]
    for _ in range(MAX_DEPTH):
        level = [inner for value in level for inner in _members(value)]
        if not level:
            return dict(values)
    raise ModelRefusedError("unreadable", name, f"{name} is nested more than {MAX_DEPTH} levels deep.")


def _members(value: object) -> list[object]:
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
    return [item for item in inner if isinstance(item, Mapping | list | tuple)]


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class Fields:
    """The fields of one JSON object; `path` is where it stands in the file, as in `text_config.`."""

    def __init__(self, values: Mapping[str, object], path: str = "") -> None:
        self._values = values
        self._path = path

    def name(self, field: str) -> str:
        """The field with its place in the file: text_config.head_dim."""
        return self._path + field

    def has(self, field: str) -> bool:
        """Whether the field is there and not null."""
        return self._values.get(field) is not None

    def names(self) -> tuple[str, ...]:
        """All fields, null or not."""
        return tuple(self._values)

    def missing(self, field: str, why: str = "") -> ModelRefusedError:
        """The refusal for a field that is not there, or null."""
        return ModelRefusedError(
            "missing", self.name(field), f"{self.name(field)} is missing.{f' {why}' if why else ''}"
        )

    def wrong(self, field: str, must: str) -> ModelRefusedError:
        """The refusal for a value that cannot be; `must` completes “the field must ...”."""
        return ModelRefusedError(
            "wrong", self.name(field), f"{self.name(field)} must {must}, not {shown(self._values.get(field))}."
        )

    def whole(self, field: str, low: int = 1, high: int = MAX_WIDTH) -> int:
        """A whole number from `low` to `high`; true and false are not numbers."""
        if not self.has(field):
            raise self.missing(field)
        value = self._values[field]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.wrong(field, f"be a whole number from {low:,} to {high:,}")
        return value

    def layers(self, field: str = "num_hidden_layers") -> int:
        """A count of layers."""
        return self.whole(field, high=MAX_LAYERS)

    def number(self, field: str) -> float:
        """A number above 0 and at most MAX_WIDTH."""
        if not self.has(field):
            raise self.missing(field)
        value = self._values[field]
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= MAX_WIDTH:
            raise self.wrong(field, f"be a number above 0 and at most {MAX_WIDTH:,}")
        return float(value)

    def text(self, field: str) -> str | None:
        """A text; None when the field is absent or null."""
        value = self._values.get(field)
        if value is not None and not isinstance(value, str):
            raise self.wrong(field, "be text")
        return value

    def says(self, field: str, value: str | int) -> bool:
        """Whether the field holds exactly this text or number."""
        found = self._values.get(field)
        return type(found) is type(value) and found == value

    def true(self, field: str) -> bool:
        """True or false; absent and null are false."""
        value = self._values.get(field)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(field, "be true or false")
        return bool(value)

    def inner(self, field: str) -> "Fields":
        """An object inside this one."""
        if not self.has(field):
            raise self.missing(field)
        value = self._values[field]
        if not isinstance(value, Mapping):
            raise self.wrong(field, "be an object with named fields")
        return Fields(value, f"{self.name(field)}.")

    def over(self, outer: "Fields") -> "Fields":
        """These fields, and where one is absent the outer object's."""
        return Fields({**outer._values, **self._values}, self._path)

    def is_object(self, field: str) -> bool:
        """Whether the field holds an object."""
        return isinstance(self._values.get(field), Mapping)

    def is_list(self, field: str) -> bool:
        """Whether the field holds a list."""
        return isinstance(self._values.get(field), list | tuple)

    def words(self, field: str, allowed: Mapping[str, str]) -> tuple[str, ...]:
        """A list of texts, each replaced by what it means in `allowed`; any other word is refused."""
        words = self.items(field)
        if not words:
            raise self.wrong(field, "have at least one entry")
        for word in words:
            if not isinstance(word, str) or word not in allowed:
                raise ModelRefusedError(
                    "wrong",
                    self.name(field),
                    f"{self.name(field)} holds {shown(word)}, which is no layer type of this family.",
                )
        return tuple(allowed[str(word)] for word in words)

    def wholes(self, field: str) -> tuple[int, ...]:
        """A list of whole numbers from 0 to MAX_WIDTH."""
        found = self.items(field)
        if not all(isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= MAX_WIDTH for item in found):
            raise self.wrong(field, f"be a list of whole numbers from 0 to {MAX_WIDTH:,}")
        return tuple(item for item in found if isinstance(item, int))

    def items(self, field: str) -> tuple[object, ...]:
        """A list of anything, at most MAX_LAYERS long; it may be empty."""
        if not self.has(field):
            raise self.missing(field)
        value = self._values[field]
        if not isinstance(value, list | tuple) or len(value) > MAX_LAYERS:
            raise self.wrong(field, f"be a list of at most {MAX_LAYERS:,} entries")
        return tuple(value)
