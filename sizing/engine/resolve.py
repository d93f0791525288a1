"""From a scenario to what its release and its model make of it, once: everything that stands before memory is split."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from pydantic import ValidationError

from sizing.basics.problems import RefusedError
from sizing.engine.byte_costs import byte_costs
from sizing.engine.refused_flags import refusal_of
from sizing.engine.resolved import Resolved
from sizing.engine.slots_per_request import slot_uses, what_runs
from sizing.releases.architectures import support_of
from sizing.releases.rules import Release, rules_of
from sizing.scenario.inputs import DEFAULTS, Scenario

# Of a deployment over several stages a scenario wants the state of all of them.
STAND_IN = {"state_bytes_all_stages": DEFAULTS["state_bytes_per_slot"]}


def resolve(scenario: Scenario) -> Resolved:
    """What the release and the model make of a scenario. Raises RefusedError for flags that the engine refuses.

    >>> from sizing import Scenario
    >>> [use.count for use in resolve(Scenario()).uses]
    [3, 2]
    """
    resolved = resolution(scenario)
    if resolved.refusal:
        raise RefusedError(resolved.refusal)
    return resolved


def slots_per_request(scenario: Scenario) -> int:
    """S [slots per running request]. Raises RefusedError like `resolve`."""
    return resolve(scenario).S


def slots_by_flags(flags: Mapping[str, Any], releases: Iterable[Release], architectures: Sequence[str]) -> set[int]:
    """Every S [slots per running request] that flags, named as in `Scenario`, come to in these releases and models.

    Bytes do not enter S: those of the worked example stand for them. A release that refuses the flags gives none.
    """
    try:
        scenario = Scenario.model_validate({"model": "", **STAND_IN, **flags})
    except ValidationError:
        return set()
    found = set()
    for release, architecture in product(releases, architectures):
        with suppress(RefusedError):
            found.add(slots_per_request(scenario.model_copy(update={"release": release, "architecture": architecture})))
    return found


def resolution(scenario: Scenario) -> Resolved:
    """The same, but a refusal is a field of the result and is not raised."""
    rules, support = rules_of(scenario.release), support_of(scenario.architecture, scenario.release)
    runs = what_runs(scenario, rules, support)
    resolved = Resolved(
        scenario=scenario,
        rules=rules,
        support=support,
        strategy=runs.strategy,
        radix_off_why=runs.radix_off_why,
        overlap=runs.overlap,
        page_size=runs.page_size,
        uses=slot_uses(scenario, rules, runs),
        max_running_requests=scenario.max_running_requests or (rules.speculation_requests if scenario.D else None),
        refusal=None,
        costs=byte_costs(scenario, rules),
    )
    refusal = refusal_of(resolved)
    return resolved.model_copy(update={"refusal": refusal}) if refusal else resolved
