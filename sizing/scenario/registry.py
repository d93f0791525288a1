"""What a field of `Scenario` carries beside its type: whatever draws, reads, writes or lists inputs asks here."""

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

Group = Literal[
    "Deployment", "Workload", "Split", "Serving",
    "Memory before the boot", "Scheduler and cache", "Speculation", "Ranks and roles", "Limits", "Name and conv dtype",
    "Byte constants",
]  # fmt: skip
"""Where the sidebar draws an input, in this order."""
OPEN: tuple[Group, ...] = ("Deployment", "Workload", "Split", "Serving")
"""Groups in sight; all others are folded away until something in them is set."""

Widget = Literal["toggle", "choice", "typed", "text", "number", "slider", "own", "none"]
"""How an input is asked for. typed: a whole or real number as text, which may be left empty; number: one that may not;
own: drawn by a function of its own in the sidebar; none: it is set with another input."""

Kind = Literal["switch", "whole", "number", "word"]
"""What a flag's value is; switch: it has none."""

Condition = Literal[
    "always", "never", "where rest is estimated", "for a GPU that is not listed", "where the split is by ratio",
    "where the split is pinned", "with the radix cache on", "with D above 0", "with ReplaySSM", "with pp_size above 1",
    "with unified memory", "on a decode server", "on a prefill or decode server", "for GQA", "with a window pool",
    "with a model", "without a model", "for a sparse index",
]  # fmt: skip
"""When an input changes a number. Only `with the radix cache on` takes a release's rules to tell (sheet/inputs.py)."""

WINDOWED = "GQA and sliding window"  # the attention of a model with a window pool

CONDITIONS: dict[Condition, Callable[[Any], bool]] = {
    "always": lambda stated: True,
    "never": lambda stated: False,
    "where rest is estimated": lambda stated: stated.rest_source in ("estimated", "unknown"),
    "for a GPU that is not listed": lambda stated: stated.gpu == "other",
    "where the split is by ratio": lambda stated: stated.split == "ratio",
    "where the split is pinned": lambda stated: stated.split == "pin",
    "with D above 0": lambda stated: stated.D > 0,
    "with ReplaySSM": lambda stated: stated.replayssm != "off",
    "with pp_size above 1": lambda stated: stated.pp_size > 1,
    "with unified memory": lambda stated: stated.enable_unified_memory,
    "on a decode server": lambda stated: stated.disaggregation_mode == "decode",
    "on a prefill or decode server": lambda stated: stated.disaggregation_mode != "null",
    "for GQA": lambda stated: stated.attention == "GQA",
    "with a window pool": lambda stated: stated.attention == WINDOWED,
    "with a model": lambda stated: bool(stated.model),
    "without a model": lambda stated: not stated.model,
    "for a sparse index": lambda stated: stated.index_page_tokens is not None,
}
"""What has the inputs as attributes in; a Scenario, or what stands in the sidebar."""


class Input(NamedTuple):
    """One field of Scenario."""

    group: Group
    widget: Widget
    unit: str
    flag: str
    """The newest release's flag, or the environment variable; empty where neither gives it."""
    aliases: tuple[str, ...]
    """Its other names: those of older releases, longer ones, a variable beside a flag."""
    no_flag: str
    """Why there is no flag; empty where there is one."""
    log_keys: tuple[str, ...]
    """Its keys in a boot log's arguments line, the newest release's first; empty where a log does not fill it in."""
    hint: str
    """What an empty box says."""
    counts: Condition
    hidden: bool
    """Whether its widget is drawn only where it counts."""
    source: str
    """The field that says where the value comes from; it says `typed in` once somebody types."""
    kind: Kind
    options: tuple[str, ...]
    """What a choice can be; empty for all else."""

    @property
    def names(self) -> tuple[str, ...]:
        """Its flag and its aliases that are flags."""
        return tuple(name for name in (self.flag, *self.aliases) if name.startswith("--"))

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that set it."""
        return tuple(name for name in (self.flag, *self.aliases) if name and not name.startswith("--"))
