"""What does not fit together in a boot's lines, and what is not in them, in sentences that say what to do.

Source: boot-log-formats.md, "Cross-checks a parser can make".
"""

from sizing.basics.units import count
from sizing.bootlog.facts import PAGE_UNSTATED, Facts
from sizing.bootlog.ranks import RankReport
from sizing.engine.request_slots import RequestSlots


def conflicts_of(reports: tuple[RankReport, ...], rows: int | None, printed: int | None) -> tuple[str, ...]:
    """Where ranks disagree in what they should share, and where lines contradict each other; a sentence each.

    `rows` are a rank's KV rows, `printed` is the summary's count of tokens: the same, or dcp_size times as many.
    """
    found: list[str] = []
    for name, values in (
        ("max_mamba_cache_size", {report.rank.name: report.slots for report in reports}),
        ("#tokens of the KV pool", {report.rank.name: report.rows for report in reports}),
    ):
        found += _disagreement(name, {rank: value for rank, value in values.items() if value is not None})
    for report in reports:
        found += _contradictions(report)
    if rows and printed and printed % rows:
        found.append(
            f"The KV pool has {count(rows)} tokens and the summary says {count(printed)}, which is no multiple. Check "
            "that both lines are of one boot."
        )
    return tuple(dict.fromkeys(found))


def _disagreement(name: str, values: dict[str, int]) -> list[str]:
    if len(set(values.values())) < 2:
        return []
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    return [
        f"Ranks print different {name}: {count(values[low])} on {low or 'one'} and {count(values[high])} on "
        f"{high or 'another'}. Check that the log is of one deployment."
    ]


def _contradictions(report: RankReport) -> list[str]:
    capped, state, found = report.capped, report.state, []
    if capped is None or capped.slots is None:
        return []
    if state and state.slots is not None and not report.raised and capped.slots != state.slots:
        found.append(
            f"The clamp warning speaks of {count(capped.slots)} slots, the state pool of {count(state.slots)}. "
            "Check that both lines are of one boot."
        )
    each = RequestSlots(capped.S or 1)
    if capped.S and each.requests(capped.slots) != capped.requests:
        found.append(
            f"The clamp warning gives {count(capped.requests)} requests, but "
            f"{each.division(count(capped.slots))} is {count(each.requests(capped.slots))}. "
            "Check that the line is whole."
        )
    return found


def missing_of(facts: Facts, no_kv_pool: bool) -> tuple[str, ...]:
    """What to ask for, a sentence each. With `no_kv_pool` the engine has none, and nothing of it is asked for."""
    asks = []
    if facts.unified or facts.settings.enable_unified_memory:
        return (
            "The buffer of --enable-unified-memory prints no pool of its own: the bytes of a slot and of a token are "
            "those of its “sub-pool” lines, entry_bytes.",
        )
    if facts.slot_bytes is None:
        asks.append(_missing_state(facts))
    if facts.token_bytes is None and not no_kv_pool:
        asks.append(
            "KV bytes per token: the log has no whole “KV Cache is allocated” line with its sizes. Paste that line."
        )
    if facts.S is None:
        asks.append("S: neither the warning “is capped to” nor the flags are in the log. Choose the strategy.")
    if facts.rest is None:
        asks.append(
            "rest: it takes “Load weight begin”, “Load weight end” and mem_fraction_static of the arguments line, or "
            "both pool lines with their sizes. Paste them."
        )
    if facts.draft_tokens is None and not facts.settings.stated:
        asks.append("D: the arguments line is not in the log. Say how many draft tokens are used, 0 for none.")
    if facts.settings.page_size is None and facts.token_bytes is not None:
        asks.append(f"page_size: the arguments line is not in the log. {PAGE_UNSTATED} was taken.")
    return tuple(asks)


def _missing_state(facts: Facts) -> str:
    if facts.slots is None and facts.slot_bytes is None:
        return (
            "State bytes per slot: max_mamba_cache_size and both sizes of “Mamba Cache is allocated” are needed. "
            "Paste that line, or say how many slots the pool has."
        )
    return "State bytes per slot: the conv_state and ssm_state sizes of “Mamba Cache is allocated” are missing. " + (
        "Paste that line whole."
    )
