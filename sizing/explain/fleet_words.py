"""A fleet in words and rows: pages, sheet and command line say the same."""

from collections.abc import Sequence

from sizing.answers.fleet import (
    AS_SET,
    BEST,
    PEAK,
    Carrier,
    Fleet,
    FleetWanted,
    longest_stay,
    overloaded,
    peak_of,
)
from sizing.basics.units import NOTHING, count, number, percent, requests_text
from sizing.scenario.inputs import Scenario

LABELS = {
    "users": "Requests at once, whole fleet",
    "arrival_rate": "or: arrival rate [requests/s]",
    "time_in_system": "and time in system [s]",
    "gpu_hour": "Price of a GPU hour",
}
FLEET_COLUMNS = ("setting", "one server runs", "servers", "GPUs", "set")
PRICED_COLUMNS = (*FLEET_COLUMNS[:4], "a month", FLEET_COLUMNS[4])


def fleet_headline(fleet: Fleet) -> str:
    """What is set takes, what the best split found takes, and the difference."""
    return f"{_headline(fleet).rstrip('.')}{fleet.condition}."


def _headline(fleet: Fleet) -> str:
    now, best, wanted = fleet.row(AS_SET), fleet.row(BEST), requests_text(fleet.wanted)
    if best is None or best.gpus is None or best.replicas is None:
        return f"No way of setting a server that was found runs a request: no fleet carries {wanted} at once."
    said = f"{_servers(best.replicas)}, {_gpus(best.gpus)}, at the best split found"
    if now is None or now.gpus is None or now.replicas is None:
        return f"{wanted} at once: {said}; as set a server runs nothing."
    first = f"{wanted} at once: {_servers(now.replicas)}, {_gpus(now.gpus)}, as set"
    if not fleet.saved:
        return f"{first}; no way found takes fewer."
    a_month = f" and {money(fleet.saved_a_month)} a month" if fleet.saved_a_month is not None else ""
    return f"{first}; {said}: saves {_gpus(fleet.saved)}{a_month}."


def _peak(wanted: FleetWanted) -> int:
    assert wanted.arrival_rate is not None
    assert wanted.time_in_system is not None
    return peak_of(wanted.arrival_rate * wanted.time_in_system)


def rate_words(wanted: FleetWanted, carriers: Sequence[Carrier]) -> str:
    """How long each request may stay on one server, where the arrival rate alone is known; empty where it is not."""
    if wanted.arrival_rate is None or wanted.time_in_system is not None:
        return ""
    stays = [
        f"{number(longest_stay(wanted.arrival_rate, carrier.runs), 1)} s {words}"
        for name, words in ((AS_SET, "as set"), (BEST, "at the best split found"))
        for carrier in carriers
        if carrier.name == name
    ]
    if not stays:
        return ""
    return (
        f"At {wanted.arrival_rate:,g} requests/s one server keeps up where each stays {', '.join(stays)} in the mean, "
        "or less (Little's law). Enter the time in system to see how many servers and GPUs."
    )


def fleet_columns(fleet: Fleet) -> tuple[str, ...]:
    """With a column of money where there is a price."""
    return PRICED_COLUMNS if any(row.month is not None for row in fleet.rows) else FLEET_COLUMNS


def fleet_rows(fleet: Fleet) -> list[tuple[str, ...]]:
    """Each way of setting the servers, under `fleet_columns`."""
    priced = fleet_columns(fleet) == PRICED_COLUMNS
    return [
        (
            row.name,
            count(row.runs),
            NOTHING if row.replicas is None else count(row.replicas),
            NOTHING if row.gpus is None else count(row.gpus),
            *([NOTHING if row.month is None else money(row.month)] if priced else []),
            row.flag,
        )
        for row in fleet.rows
    ]


def fleet_notes(fleet: Fleet, wanted: FleetWanted, scenario: Scenario, risk: float | None) -> str:
    """How the numbers come about; `risk` is that of one server [-], None where each request is counted at L."""
    said = [f"One server is {_gpus(fleet.gpus_each)} (tp_size x pp_size)."]
    if wanted.arrival_rate is not None and wanted.time_in_system is not None:
        said.append(
            f"Little's law: {wanted.arrival_rate:,g} requests/s x {wanted.time_in_system:,g} s are "
            f"{count(fleet.wanted)} in flight in the mean. Where they come at random, {count(_peak(wanted))} or fewer "
            f"{percent(PEAK)} of the time."
        )
    best = fleet.row(BEST)
    if risk is None:
        said.append(f"Every request is counted at L = {count(scenario.L)}, so KV does not overflow.")
    elif best is not None and best.replicas:
        at_once = percent(overloaded(risk, best.replicas))
        said.append(
            f"Each server is short of KV {percent(risk)} of the time at most; one or more of "
            f"{count(best.replicas)} that are so independently {at_once}."
        )
    said.append("Requests are taken as spread evenly over the servers, and none is kept in reserve.")
    if scenario.disaggregation_mode != "null":
        said.append(f"These are servers of the role {scenario.disaggregation_mode} alone.")
    if wanted.gpu_hour is not None:
        said.append("A month has 730 hours; money is in the currency of the price.")
    return " ".join(said)


def money(amount: float | None) -> str:
    """An amount without its currency, to a whole unit where it is large.

    >>> money(175200.0), money(-12.5)
    ('175,200', '-12.50')
    """
    if amount is None:
        return NOTHING
    return f"{amount:,.0f}" if abs(amount) >= 1000 else f"{amount:,.2f}"


def _servers(replicas: int) -> str:
    return f"{count(replicas)} server{'' if replicas == 1 else 's'}"


def _gpus(gpus: int) -> str:
    return f"{count(gpus)} GPU{'' if gpus == 1 else 's'}"
