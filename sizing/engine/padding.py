"""The padding slot: every release allocates it beside K, and since 0.5.17 it is charged as well.

Source: engine-sizing.md section 5 ("charged at the whole per"), engine-versions.md.
"""

from typing import TypeVar

from sizing.basics.numeric import Numeric
from sizing.releases.rules import Rules

Count = TypeVar("Count", int, float, Numeric)

PADDING = 1  # slots, and rows of requests


def slots_charged(rules: Rules, slots: Count) -> Count:
    """What K is charged as [slots]: with the padding slot, where the release charges it."""
    return slots + PADDING if rules.charges_padding else slots


def with_padding(held: Count) -> Count:
    """How many slots, or request rows, are in memory: those that are held and one of padding."""
    return held + PADDING


def slots_charged_words(rules: Rules, *, factor: bool = False) -> str:
    """What K is charged as, in words; as a factor in brackets where it is a sum."""
    words = f"K + {PADDING}" if rules.charges_padding else "K"
    return f"({words})" if factor and rules.charges_padding else words
