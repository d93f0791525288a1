"""The flags and environment variables that sizing reads, each with its older names.

Those of an input stand at the input (sizing/scenario/inputs.py); here are those that are none, or several, of them.
Shorter ones are resolved by sizing/releases/flags.py.

Source: boot-log-formats.md section 1, engine-versions.md ("Flags and environment"), engine-sizing.md sections 2 to 5.
"""

from typing import NamedTuple

from sizing.releases.flags import PIN, RATIO, REQUESTS, whole_name
from sizing.scenario.inputs import INPUTS
from sizing.scenario.registry import Kind


class FlagRule(NamedTuple):
    """One flag: what its value is, and the Scenario input it gives (empty where none takes it as it is)."""

    kind: Kind
    field: str
    names: tuple[str, ...]


FRACTION = "--mem-fraction-static"
SIZING_FLAGS = (RATIO, PIN, REQUESTS, FRACTION)
"""The flags that the writer may set, replace or remove."""

RULES: tuple[FlagRule, ...] = (
    *(FlagRule(own.kind, name, own.names) for name, own in INPUTS.items() if own.names),
    FlagRule("whole", "", ("--dp-size", "--data-parallel-size")),
    FlagRule("switch", "", ("--enable-dp-attention",)),
    FlagRule("switch", "", ("--enable-linear-replayssm",)),
    FlagRule("switch", "", ("--enable-linear-replayssm-spec", "--enable-gdn-replayssm-spec")),
    FlagRule("word", "", ("--config",)),
    FlagRule("word", "", ("--model-path", "--model")),
)
VARIABLES: dict[str, str] = {name: field for field, own in INPUTS.items() for name in own.variables}
"""Environment variables, and the input that each sets where no flag does."""
RULE_OF: dict[str, FlagRule] = {name: rule for rule in RULES for name in rule.names}


def chief_name(name: str) -> str:
    """The one name of a flag for all its spellings, abbreviated or older; the name itself where no release has it.

    >>> chief_name("--tp"), chief_name("--tensor-parallel-size"), chief_name("--mamba-scheduler-strategy")
    ('--tp-size', '--tp-size', '--mamba-radix-cache-strategy')
    """
    whole = whole_name(name) or name
    rule = RULE_OF.get(whole)
    return rule.names[0] if rule else whole
