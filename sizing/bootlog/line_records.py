"""What one line of a boot log says, one small record for each kind of line. Sizes are in GiB as printed.

Source: boot-log-formats.md, "Lines, in order of appearance"; the numbers of its sections are given here.
A field is None where the line does not hold it.
"""

from typing import Literal, NamedTuple

from sizing.basics.problems import RefusalKind
from sizing.bootlog.measure import Printed

ArgumentsForm = Literal["dict", "ServerArgs", "quoted"]
Value = int | float | str | bool | None


class Arguments(NamedTuple):
    """Section 1: the flags. `values` holds what sizing reads; `keys` counts all of them."""

    values: dict[str, Value]
    names: frozenset[str]
    """The keys of what sizing reads, also where the value is none that it understands."""
    form: ArgumentsForm
    keys: int
    complete: bool
    """Whether the closing bracket was there."""


class WeightsBegin(NamedTuple):
    """Section 2: free memory before weights; None in a line that is cut."""

    available: Printed | None


class WeightsEnd(NamedTuple):
    """Section 2: free memory after weights, of the target or of a draft model."""

    model: str | None
    available: Printed | None


class Capped(NamedTuple):
    """Section 3: the only line that states S. A line that is cut has the requests alone, or the slots too."""

    requests: int
    slots: int | None = None
    S: int | None = None


class Reduced(NamedTuple):
    """Section 3: fewer requests than asked, because of KV tokens."""

    asked: int
    requests: int


class TokensLowered(NamedTuple):
    """Section 3: --max-total-tokens was above what memory gives."""

    asked: int
    profiled: int


class Finalized(NamedTuple):
    """Section 3, 0.5.13 only: requests per data-parallel worker."""

    requests: int


class Raised(NamedTuple):
    """Section 5: a PD decode server allocates more slots than it was charged."""

    charged: int
    allocated: int


class RadixOff(NamedTuple):
    """The engine turned the radix cache off by itself: for a model, or on a PD decode server (section 5)."""

    words: str


DraftStates = Literal["none", "printed", "unknown"]


class StatePool(NamedTuple):
    """Section 4: the state pool of one rank. The sizes cover `slots` + 1."""

    slots: int | None = None
    conv: Printed | None = None
    ssm: Printed | None = None
    draft_ssm: Printed | None = None
    draft_conv: Printed | None = None
    drafts: DraftStates = "unknown"
    """none: the line ends without them; unknown: it may have lost its end."""
    slots_at_end: int | None = None
    """A count with nothing behind it but the line's end: it may have lost digits."""


class Ring(NamedTuple):
    """Section 4: ReplaySSM rings."""

    length: int | None
    fold: bool | None
    """True is KDA, a ring on each of N + 1 slots; False is GDN; None where the line does not say."""
    sizes: tuple[Printed, ...]


class KvPool(NamedTuple):
    """Section 5: the KV pool of one rank, or a draft's. The sizes, one or K and V, cover `rows` + a page."""

    rows: int | None
    sizes: tuple[Printed, ...]
    dtype: str | None
    reserved: bool = False
    """Section 7: an upper bound of addresses, not memory."""


class NoKvPool(NamedTuple):
    """Section 5: the KV pool was skipped."""


class PoolEnd(NamedTuple):
    """Section 6: free memory after a pool set; None in a line that is cut."""

    available: Printed | None


class AfterCapture(NamedTuple):
    """Section 7: what post-capture sizing made of the reservation."""

    rows: int | None = None
    size: Printed | None = None
    dtype: str | None = None
    requests: int | None = None


class Capture(NamedTuple):
    """Section 8: free memory around graph capture; None in a line that is cut."""

    available: Printed | None
    ended: str = ""
    """The word `end` where it is what a capture left."""


class Summary(NamedTuple):
    """Section 9: the scheduler's line. `tokens` are rows of a rank up to 0.5.20, logical since 0.5.21."""

    tokens: int | None
    requests: int | None = None
    context: int | None = None
    chunked: int | None = None
    available: Printed | None = None


class ContextShort(NamedTuple):
    """Section 9: the KV pool holds less than one context."""

    tokens: int
    context: int


class Unified(NamedTuple):
    """Section 4: the unified memory pool, which is not split in two."""

    total_bytes: int
    tokens: int
    slots: int
    requests: int


class KvDtype(NamedTuple):
    """The dtype of KV, from a line of its own."""

    dtype: str


class Decode(NamedTuple):
    """A decode batch while serving: state slots in use, and the share of the pool that they are."""

    slots: int
    usage: Printed


class Refused(NamedTuple):
    """The engine would not start (engine-sizing.md section 8); numbers as printed, under the engine's names."""

    kind: RefusalKind
    numbers: dict[str, Printed]


class Crashed(NamedTuple):
    """A scheduler process ended with an exception that is no refusal."""


class NoSlot(NamedTuple):
    """A request found no free state slot: an assertion ended the process (running-server.md 6.5)."""


LineRecord = (
    Arguments
    | WeightsBegin
    | WeightsEnd
    | Capped
    | Reduced
    | TokensLowered
    | Finalized
    | Raised
    | RadixOff
    | StatePool
    | Ring
    | KvPool
    | NoKvPool
    | PoolEnd
    | AfterCapture
    | Capture
    | Summary
    | ContextShort
    | Unified
    | KvDtype
    | Decode
    | Refused
    | Crashed
    | NoSlot
)
