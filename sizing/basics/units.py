"""Bytes, GiB and how numbers are written and read. Numbers on pages are written by these functions.

`GiB` is 2**30 bytes, also where the engine prints "GB" (engine-sizing.md, first line).
"""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from pydantic_core import PydanticCustomError

GIB = 2**30
MIB = 2**20
KIB = 2**10


NOTHING = "-"
"""A cell that has no value: not known, not printed, not reachable."""


def count(value: int) -> str:
    """Whole number [any unit] with thousands separated: 1,167,552."""
    return f"{value:,}"


def requests_text(requests: int) -> str:
    """A count of requests with its noun: 1 request, 51 requests."""
    return f"{count(requests)} {'request' if requests == 1 else 'requests'}"


def gib(value_bytes: float, digits: int = 2) -> str:
    """Bytes [bytes] as text in GiB: 13.50 GiB."""
    return f"{value_bytes / GIB:.{digits}f} GiB"


def number(value: float, digits: int = 2) -> str:
    """A measured or computed real number with a fixed count of decimals: 4,063.33."""
    return f"{value:,.{digits}f}"


def percent(share: float) -> str:
    """A share [-] in percent with two significant digits: 1 %, 0.48 %, 39 %; what is too small to say is said so.

    >>> percent(0.01), percent(0.0048), percent(0.391), percent(1), percent(0), percent(2e-6)
    ('1 %', '0.48 %', '39 %', '100 %', '0 %', 'less than 0.01 %')
    """
    if 0 < share < 0.0001:
        return "less than 0.01 %"
    return f"{_typed(Decimal(f'{share * 100:.2g}'))} %"


def flag_ratio(ratio: float) -> float:
    """The ratio [-] as it is written on a command line: five significant digits.

    The balanced split is solved at this value, so the flag that is copied gives the number that is shown.
    """
    return float(f"{ratio:.5g}")


def ratio_text(ratio: float) -> str:
    """A ratio [-] as it is typed after the flag, in five digits: 2.2045, 0.9, 14."""
    return _typed(Decimal(f"{ratio:.5g}"))


def stated_ratio_text(ratio: float) -> str:
    """A ratio [-] that was given, with every digit it was given with."""
    return _typed(Decimal(repr(float(ratio))))


def _typed(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


RATIO_DIGITS = range(2, 18)  # the shortest text that lies in the range; 17 digits name any float


def typed_ratio(low: float, high: float | None) -> float:
    """The ratio [-] in a range that takes the fewest digits: near the geometric middle, or just above an open range's
    low end.

    >>> typed_ratio(2.42239, 2.53334), typed_ratio(4.11, None)
    (2.5, 4.2)
    """
    middle = Decimal(low if high is None else (low * high) ** 0.5)
    for digits in RATIO_DIGITS:
        step = Decimal(1).scaleb(middle.adjusted() - digits + 1)
        found = float(middle.quantize(step, rounding=ROUND_CEILING) if high is None else middle.quantize(step))
        if low <= found <= (found if high is None else high):
            return found
    return low


def ratio_range_text(low: float, high: float | None) -> str:
    """A range of ratios [-] that lies inside the exact one, so that each end can be typed; open without a high end.

    >>> ratio_range_text(2.42239, 2.53334), ratio_range_text(4.1, None)
    ('2.4224 to 2.5333', '4.1 or more')
    """
    first, last = typed_range(low, high)
    if last is None:
        return f"{first} or more"
    return first if first == last else f"{first} to {last}"


def typed_range(low: float, high: float | None) -> tuple[str, str | None]:
    """Both ends of a range of ratios [-] as they are typed, inside the exact range; no high end where it is open."""
    if high is None:
        return _rounded(low, 5, ROUND_CEILING), None
    for digits in range(5, 17):
        first, last = _rounded(low, digits, ROUND_CEILING), _rounded(high, digits, ROUND_FLOOR)
        if Decimal(first) <= Decimal(last):
            return first, last
    return stated_ratio_text(low), stated_ratio_text(low)


def _rounded(ratio: float, digits: int, direction: str) -> str:
    exact = Decimal(ratio)
    return _typed(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding=direction))


def rest_text(rest_gib: float) -> str:
    """`rest` [GiB] with every digit that was given: 28.529 GiB."""
    return f"{rest_gib:.12g} GiB"


def tokens_text(tokens: int) -> str:
    """A context length [tokens] in the short form of axes and tables: 131,072 is 128K, 10,001 stays."""
    if tokens >= 2**20 and tokens % 2**20 == 0:
        return f"{tokens // 2**20}M"
    if tokens >= 2**10 and tokens % 2**10 == 0:
        return f"{tokens // 2**10}K"
    return count(tokens)


SHORT_TOKENS = re.compile(r"(\d{1,9})\s*([KkMm])")
GROUPED_DIGITS = re.compile(r"\d{1,3}(,\d{3})+")


def tokens_from_text(value: object) -> object:
    """Tokens as people write them: 32K is 32,768, 1M is 1,048,576, 9,216 is 9216; anything else as it came.

    >>> tokens_from_text("32K"), tokens_from_text("9,216"), tokens_from_text(512)
    (32768, '9216', 512)
    """
    if not isinstance(value, str):
        return value
    if found := SHORT_TOKENS.fullmatch(value.strip()):
        return int(found[1]) * (2**10 if found[2] in "Kk" else 2**20)
    return ungrouped(value)


DOTTED = re.compile(r"(\d{1,3})((?:\.\d{3})+)")  # 1.000: one with three decimals, or one thousand
POWER = re.compile(r"\d{1,9}(?:\.\d{1,9})?[eE]\+?\d{1,2}")


def ungrouped(value: object) -> object:
    """A whole number with its thousands separated, or as a power of ten, as digits alone; anything else as it came.

    Raises PydanticCustomError `which_number` for 1.000, which may be either.

    >>> ungrouped("1,000"), ungrouped("1e9"), ungrouped("1.5e3"), ungrouped("1e-3")
    ('1000', '1000000000', '1500', '1e-3')
    """
    text = value.strip() if isinstance(value, str) else ""
    if found := DOTTED.fullmatch(text):
        numbers = {"small": found[1], "large": text.replace(".", "")}
        raise PydanticCustomError("which_number", "may be {small} or {large}", numbers)
    if POWER.fullmatch(text) and (whole := Decimal(text)) == whole.to_integral_value():
        return f"{whole:f}".partition(".")[0]
    return value.replace(",", "") if isinstance(value, str) and GROUPED_DIGITS.fullmatch(value.strip()) else value


def bytes_of(amount_gib: float) -> int:
    """Whole bytes of an amount that was stated in GiB."""
    return round(amount_gib * GIB)
