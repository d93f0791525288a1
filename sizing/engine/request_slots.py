"""Slots to requests and back: the mamba clamp K // S, the fewest slots C x S, and the slot to keep free beside them.

Every page, answer, log and server asks here. A rule by which requests take other slots than S each is written here
alone: a field of `RequestSlots`, set in `request_slots_of`, and what `requests` and `slots` make of it. Most rules are
about S itself: what it is made of stands in slots_per_request.py.

Source: engine-sizing.md section 7 (`resolve_max_num_reqs`).
"""

from typing import NamedTuple, Protocol, overload

from sizing.basics.numeric import Numeric
from sizing.releases.rules import Rules
from sizing.scenario.inputs import Scenario

CLAMP_FORMULA = "K // S"
"""The mamba clamp as it is written."""
SLOTS_FORMULA = "C x S"
"""The fewest slots of C requests."""
SPARE_FORMULA = f"{SLOTS_FORMULA} + 1"
"""The same with the slot to spare."""


class Solved(Protocol):
    """What knows S and what it follows from: `Resolved` and `Rank`."""

    @property
    def S(self) -> Numeric:  # noqa: N802, the specification's letter
        """State slots [slots per running request]."""

    @property
    def scenario(self) -> Scenario:
        """What is stated."""

    @property
    def rules(self) -> Rules:
        """What the release does."""

    @property
    def radix_cache(self) -> bool:
        """Whether finished requests are kept for reuse."""


class RequestSlots(NamedTuple):
    """What running requests take of the state pool. Slots are those of one rank; numbers or numpy arrays.

    >>> five = RequestSlots(5)
    >>> five.requests(257), five.slots(51), five.slots(51, spare=True)
    (51, 255, 256)
    """

    S: Numeric
    """State slots [slots per running request]; an array where several are asked at once."""
    radix_cache: bool = True
    """Whether finished requests are kept for reuse."""

    @overload
    def requests(self, slots: int) -> int: ...
    @overload
    def requests(self, slots: Numeric) -> Numeric: ...
    def requests(self, slots: Numeric) -> Numeric:
        """The mamba clamp [requests]: the most that K = `slots` admit."""
        return slots // self.S

    @overload
    def slots(self, requests: int, *, spare: bool = False) -> int: ...
    @overload
    def slots(self, requests: Numeric, *, spare: bool = False) -> Numeric: ...
    def slots(self, requests: Numeric, *, spare: bool = False) -> Numeric:
        """The fewest slots [slots] that admit so many requests, with the one to spare if wanted."""
        return requests * self.S + (self.spare if spare else 0)

    @property
    def spare(self) -> int:
        """Slots to keep free beyond those [slots]: 1 where the radix cache is on, 0 where it is off.

        At a chunk border a request takes a new slot before it gives one up; where all K = C x S are locked, the
        assertion "Can not alloc mamba cache" ends the server (sgl-project/sglang#37066, #37074). With the radix cache
        off nothing is tracked.
        """
        return int(self.radix_cache)

    def is_tight(self, slots: int, requests: int) -> bool:
        """Whether so many requests take all slots although one should stay free."""
        return self.spare > 0 and slots == self.slots(requests)

    def division(self, slots: str) -> str:
        """The clamp with its numbers filled in; `slots` is a text.

        >>> RequestSlots(5).division("257")
        '257 // 5'
        """
        return f"{slots} // {self.S}"

    def product(self, requests: str, spare: int = 0, letter: str = "S ") -> str:
        """The fewest slots with their numbers filled in; `requests` is a text, `letter` stands before S.

        >>> RequestSlots(5).product("69", spare=1, letter=""), RequestSlots(5).product("69 requests")
        ('69 x 5 + 1', '69 requests x S 5')
        """
        return f"{requests} x {letter}{self.S}{f' + {spare}' if spare else ''}"


def request_slots_of(solved: Solved) -> RequestSlots:
    """What running requests take, by all that is known of a deployment."""
    return RequestSlots(solved.S, solved.radix_cache)
