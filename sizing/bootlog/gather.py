"""From the lines of a boot to its facts.

Source: engine-sizing.md sections 1 to 3, 5, 7, 8 and 14; boot-log-formats.md sections 4, 5 and 9.
"""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from sizing.basics.dtypes import KvDtype
from sizing.basics.units import GIB, MIB, count, number
from sizing.bootlog import line_records as words
from sizing.bootlog.checks import conflicts_of, missing_of
from sizing.bootlog.facts import PAGE_UNSTATED, Facts
from sizing.bootlog.find import Line
from sizing.bootlog.line_records import Arguments, Decode, NoKvPool, RadixOff, Refused, Ring
from sizing.bootlog.measure import Measured, common, least, share, span, total
from sizing.bootlog.rank_facts import RankFacts
from sizing.bootlog.ranks import RankReport, reports_of
from sizing.bootlog.release import releases_of
from sizing.bootlog.rest import Charging, rest_from_weights
from sizing.bootlog.settings import Settings, kv_dtype, settings_of, with_given
from sizing.bootlog.slots import slots_per_request_of
from sizing.engine.padding import with_padding
from sizing.models import ModelRefusedError
from sizing.releases.architectures import support_of
from sizing.releases.rules import RELEASES, Release, rules_of
from sizing.scenario.from_model import geometry_of
from sizing.scenario.inputs import MAX_DCP, Attention

T = TypeVar("T")


def facts_of(lines: list[Line], given: Settings | None = None, possible: tuple[Release, ...] = RELEASES) -> Facts:
    """The facts of the lines of one boot.

    `given` are flags that are known from elsewhere, where the log has none, `possible` the releases that have them.
    """
    arguments = [line.record for line in lines if isinstance(line.record, Arguments)]
    settings = with_given(settings_of(max(arguments, key=lambda said: said.keys, default=None)), given)
    reports = reports_of(lines)
    model = _agreed(report.model for report in reports)
    releases = _narrowed(releases_of(lines), possible, model)
    page = settings.page_size or PAGE_UNSTATED
    refused = _refused(lines)
    speculation = _speculation(settings, reports)
    ranks = tuple(_rank_facts(report, page, speculation, settings) for report in reports)
    radix_off = next((line.record.words for line in lines if isinstance(line.record, RadixOff)), "")
    # Where ranks differ the least counts, of slots as of tokens, as the engine takes it.
    slots = _least_of(rank.slots for rank in ranks)
    slots = slots if slots is not None else refused.slots
    S = slots_per_request_of(
        reports,
        settings,
        releases,
        slots,
        refused.S,
        radix_off=bool(radix_off),
        model=model or _catalogued(settings.model_path),
        architecture=architecture_of(model, settings, releases),
    )
    running, printed = _least_of(rank.running for rank in ranks), _printed(reports)
    rows = _least_of(rank.kv_rows for rank in ranks)
    dcp = 1 if is_one_rank(lines) and settings.dcp_size is None else _dcp(settings, releases, rows, printed)
    drafts = _draft_tokens(settings, reports, running)
    ring = _agreed(report.ring for report in reports if report.ring and report.ring.sizes)
    pools = [pool for report in reports if (pool := _printed_gib(report))]
    facts = Facts(
        ranks=tuple(rank.name for rank in ranks),
        by_rank=ranks,
        ranks_differ=ranks_differ(ranks),
        releases=releases,
        settings=settings,
        model=model,
        slots=slots,
        slots_allocated=_least_of(rank.slots_allocated for rank in ranks),
        slots_in_use=_in_use(lines),
        slot_bytes=_bytes(ranks, "slot_bytes") or refused.slot_bytes,
        conv_bytes=_common(report.conv_bytes for report in reports),
        ssm_bytes=_common(report.ssm_bytes for report in reports),
        token_bytes=_bytes(ranks, "token_bytes"),
        token_bytes_of_either=_common(_either(report, page, speculation, settings) for report in reports),
        draft_token_bytes=_bytes(ranks, "draft_token_bytes"),
        attention=_attention(reports, speculation, settings),
        kv_cache_dtype=_kv_dtype(lines, reports, settings),
        S=S.S,
        S_from=S.source,
        S_possible=S.possible,
        draft_tokens=drafts,
        speculation=speculation,
        radix_off=radix_off,
        radix_cache=S.radix_cache,
        dcp_size=dcp,
        kv_rows=rows if rows is not None else _rows_printed(printed, dcp, settings, releases),
        kv_tokens=_tokens(rows, printed, dcp, settings, releases),
        printed_tokens=printed,
        running=running,
        asked=_least_of(report.asked for report in reports),
        context_length=settings.context_length
        or _agreed(report.summary and report.summary.context for report in reports)
        or _agreed(report.short and report.short.context for report in reports),
        begin_gib=_least(rank.begin_gib for rank in ranks),
        end_gib=_least(rank.end_gib for rank in ranks),
        rest_from_weights=_rest_from_weights(reports, ranks, settings),
        rest_from_pools=None,
        rest_from_pools_is_least=_is_least(lines, settings),
        rest_from_refusal=refused.rest,
        mem_fraction_least=refused.mem_fraction_least,
        pools_gib=max(pools, default=None),
        idle_gib=min((report.idle.value for report in reports if report.idle), default=None),
        ring=ring,
        ring_bytes_per_position=_ring_bytes(ring, slots, running),
        family=None if ring is None or ring.fold is None else "KDA" if ring.fold else "GDN",
        unified=_agreed(report.unified for report in reports),
        conflicts=conflicts_of(reports, rows, printed),
        missing=(),
    )
    facts = facts.model_copy(update={"rest_from_pools": _rest_from_pools(facts)})
    no_kv_pool = any(isinstance(line.record, NoKvPool) for line in lines)
    return facts.model_copy(update={"missing": missing_of(facts, no_kv_pool)})


def _narrowed(releases: tuple[Release, ...], possible: tuple[Release, ...], model: str | None) -> tuple[Release, ...]:
    """The releases that print the lines, have the flags and serve the model; what leaves none does not count."""
    for held in (possible, tuple(release for release in RELEASES if support_of(model or "", release).served)):
        releases = tuple(release for release in releases if release in held) or releases
    return releases


def architecture_of(model: str | None, settings: Settings, releases: tuple[Release, ...]) -> str:
    """The class of the model, by its weights, else by the catalogue's entry for its path; empty where no line tells.

    A class that none of the releases serves is a patch: its rules are not known.
    """
    found = model or _catalogued(settings.model_path)
    return found if any(support_of(found, release).served for release in releases or RELEASES) else ""


def _catalogued(path: str | None) -> str:
    last = (path or "").rstrip("/").rpartition("/")[2]
    for name in (path or "", last):
        try:
            return geometry_of(name).architecture or ""
        except (KeyError, ModelRefusedError):
            continue
    return ""


class _Refusal(NamedTuple):
    """What the words of a refusal say in numbers."""

    slots: int | None = None
    S: int | None = None
    rest: Measured | None = None
    slot_bytes: Measured | None = None
    mem_fraction_least: float | None = None


def _refused(lines: list[Line]) -> _Refusal:
    said = next((line.record for line in lines if isinstance(line.record, Refused)), None)
    if said is None:
        return _Refusal()
    slots, S = said.numbers.get("max_mamba_cache_size"), said.numbers.get("mamba_ratio")
    return _Refusal(
        slots=int(slots.value) if slots and slots.value >= 0 else None,
        S=int(S.value) if S else None,
        rest=said.numbers["total_rest_memory"].measured if "total_rest_memory" in said.numbers else None,
        slot_bytes=share(said.numbers["mamba_cache_per_req"].measured, MIB_OF_GIB)
        if "mamba_cache_per_req" in said.numbers
        else None,
        mem_fraction_least=said.numbers["mem_fraction_least"].value if "mem_fraction_least" in said.numbers else None,
    )


MIB_OF_GIB = GIB // MIB


def _agreed(items: Iterable[T | None]) -> T | None:
    """What all that say it say alike; None where they do not."""
    given = [item for item in items if item is not None]
    return given[0] if given and all(item == given[0] for item in given) else None


def _least_of(items: Iterable[int | None]) -> int | None:
    return min((item for item in items if item is not None), default=None)


def _least(items: Iterable[Measured | None]) -> Measured | None:
    given = [item for item in items if item is not None]
    return least(given) if given else None


def _common(items: Iterable[Measured | None]) -> Measured | None:
    return common(item for item in items if item is not None)


def _bytes(ranks: tuple[RankFacts, ...], name: str) -> Measured | None:
    """What the ranks of a stage allow together, None where they print different bytes; of the stage that has most."""
    stages: dict[int | None, list[Measured]] = {}
    for rank in ranks:
        if (measured := getattr(rank, name)) is not None:
            stages.setdefault(rank.stage, []).append(measured)
    of_stages = [common(measured) for measured in stages.values()]
    return None if None in of_stages else max((one for one in of_stages if one is not None), default=None)


def ranks_differ(ranks: tuple[RankFacts, ...]) -> str:
    """A sentence with the number that ranks print differently, by more than rounding; empty where they agree."""
    for what, counts in (
        ("K, max_mamba_cache_size,", {rank.name: rank.slots for rank in ranks}),
        ("KV tokens", {rank.name: rank.kv_rows for rank in ranks}),
    ):
        given = {name: value for name, value in counts.items() if value is not None}
        if len(set(given.values())) > 1:
            low, high = min(given, key=given.__getitem__), max(given, key=given.__getitem__)
            return (
                f"Ranks differ: {what} is {count(given[low])} on {low or 'one'}, {count(given[high])} on "
                f"{high or 'another'}."
            )
    for what, sizes in (
        ("bytes of a state slot", {rank.name: rank.slot_bytes for rank in ranks}),
        ("KV bytes of a token", {rank.name: rank.token_bytes for rank in ranks}),
        ("KV bytes of a draft's token", {rank.name: rank.draft_token_bytes for rank in ranks}),
    ):
        printed = {name: value for name, value in sizes.items() if value is not None}
        if printed and common(printed.values()) is None:
            low, high = min(printed, key=printed.__getitem__), max(printed, key=printed.__getitem__)
            return (
                f"Ranks differ: {what} are {number(printed[low].value, 0)} on {low or 'one'}, "
                f"{number(printed[high].value, 0)} on {high or 'another'}."
            )
    return ""


def _rank_facts(report: RankReport, page: int, speculation: bool | None, settings: Settings) -> RankFacts:
    unsure = _unsure(report, speculation, settings)
    allocated = report.state.slots if report.state else None
    return RankFacts(
        name=report.rank.name,
        stage=report.rank.pp,
        slots=report.slots,
        slots_allocated=allocated,
        state_gib=total(report.state_sizes) if report.state_sizes and allocated is not None else None,
        slot_bytes=report.slot_bytes,
        kv_rows=None if unsure and settings.dcp_size != 1 else report.rows,
        kv_gib=None if unsure else report.kv_gib,
        token_bytes=None if unsure else report.token_bytes(page),
        draft_token_bytes=report.draft_token_bytes(page) if speculation is not False else None,
        ring_gib=total(report.ring.sizes) if report.ring and report.ring.sizes else None,
        begin_gib=report.begin.measured if report.begin else None,
        end_gib=report.end.measured if report.end else None,
        running=report.running,
    )


def _speculation(settings: Settings, reports: tuple[RankReport, ...]) -> bool | None:
    """By the flags; else by the state lines, which have draft states under speculation alone; else by the weights."""
    if settings.D is not None or settings.speculative_algorithm is not None:
        return bool(settings.D) or settings.speculative_algorithm is not None
    told = {report.state.drafts for report in reports if report.state}
    if "printed" in told or any(report.loads_draft for report in reports):
        return True
    return False if "none" in told else None


def _unsure(report: RankReport, speculation: bool | None, settings: Settings) -> bool:
    """Whether the only KV line may be the draft's; NGRAM has no draft model."""
    return report.kv_alone and bool(speculation) and settings.speculative_algorithm != "NGRAM"


def _either(report: RankReport, page: int, speculation: bool | None, settings: Settings) -> Measured | None:
    return report.token_bytes(page) if _unsure(report, speculation, settings) else None


def _printed_gib(report: RankReport) -> Measured | None:
    """All that is printed of the target's pools [GiB]; None where the state or the KV pool has no size."""
    if not report.state_sizes or report.state is None or report.kv_gib is None:
        return None
    if report.state.drafts == "unknown" or (report.state.draft_ssm and not report.state.draft_conv):
        return None
    drafts = [size for size in (report.state.draft_ssm, report.state.draft_conv) if size]
    rings = list(report.ring.sizes) if report.ring else []
    if report.ring and not rings:
        return None
    return span(total([*report.state_sizes, *drafts, *rings]), report.kv_gib)


def _printed(reports: tuple[RankReport, ...]) -> int | None:
    """max_total_num_tokens of all ranks: the least, as of rows."""
    return _least_of(report.printed_tokens for report in reports)


# A rank's name stands in the bracket of its lines wherever a width is above 1 (boot-log-formats.md, "Prefix").
_TIME_ALONE = re.compile(r"\[[\d :.,-]{8,40}\]")
_RANKED = (words.StatePool, words.KvPool, words.Summary, words.Capped)


def is_one_rank(lines: list[Line]) -> bool:
    """Whether the lines are of a server of one rank: their bracket holds the time alone. It has no dcp_size then."""
    named = [line for line in lines if isinstance(line.record, _RANKED)]
    return bool(named) and all(not line.rank.name and _TIME_ALONE.search(line.prefix) for line in named)


def _dcp(settings: Settings, releases: tuple[Release, ...], rows: int | None, printed: int | None) -> int | None:
    """dcp_size: as stated; 1 in releases without it; else a whole number of logical tokens for each row.

    Both counts are the same at any dcp_size up to 0.5.20, so equal counts alone do not say 1 there.
    """
    if settings.dcp_size is not None:
        return settings.dcp_size
    possible = [rules_of(release) for release in releases]
    if settings.complete or (possible and not any(rules.dcp for rules in possible)):
        return 1
    if rows and printed and printed % rows == 0 and (printed > rows or _all_logical(releases)):
        return printed // rows if printed // rows <= MAX_DCP else None
    return None


def _all_logical(releases: tuple[Release, ...]) -> bool:
    """Whether max_total_num_tokens is rows x dcp_size in all of these that know dcp_size."""
    possible = [rules_of(release) for release in releases]
    return bool(possible) and all(rules.prints_logical_tokens or not rules.dcp for rules in possible)


def _rows_printed(
    printed: int | None, dcp: int | None, settings: Settings, releases: tuple[Release, ...]
) -> int | None:
    """Rows of one rank from the summary alone: it prints logical tokens since 0.5.21.

    Without a line that could state --dcp-size nothing says that it is set.
    """
    if printed is None or dcp == 1 or (dcp is None and not settings.stated):
        return printed
    logical = {rules_of(release).prints_logical_tokens for release in releases}
    if len(logical) != 1:
        return None
    if not logical.pop():
        return printed
    return None if dcp is None else printed // dcp


def _tokens(
    rows: int | None, printed: int | None, dcp: int | None, settings: Settings, releases: tuple[Release, ...]
) -> int | None:
    """Logical tokens: rows x dcp_size; by the summary where that is logical, or where no line could state dcp_size."""
    if rows is not None and dcp is not None:
        return rows * dcp
    if dcp is not None:
        single = _rows_printed(printed, dcp, settings, releases)
        return None if single is None else single * dcp
    return printed if _all_logical(releases) or not settings.stated else None


def _in_use(lines: list[Line]) -> Measured | None:
    """K from the decode batch that tells it most closely: slots in use / their share of the pool."""
    found = [line.record for line in lines if isinstance(line.record, Decode) and line.record.slots]
    found = [said for said in found if said.usage.value > said.usage.half]
    if not found:
        return None
    best = max(found, key=lambda said: (said.usage.value, -said.slots))
    usage = best.usage.measured
    return Measured(best.slots / usage.value, best.slots / usage.high, best.slots / usage.low)


def _attention(reports: tuple[RankReport, ...], speculation: bool | None, settings: Settings) -> Attention | None:
    """MLA prints one size, GQA prints K and V; post-capture sizing prints their sum, which tells nothing."""
    sizes = _agreed(
        len(report.kv.sizes) or None for report in reports if report.kv and not _unsure(report, speculation, settings)
    )
    return None if sizes is None else "MLA" if sizes == 1 else "GQA"


def _kv_dtype(lines: list[Line], reports: tuple[RankReport, ...], settings: Settings) -> KvDtype | None:
    """As the pool prints it, else a line of its own, else the flag; never the dtype of the weights."""
    pools = _agreed(report.kv.dtype for report in reports if report.kv)
    later = _agreed(report.after_capture.dtype for report in reports)
    own = _agreed(line.record.dtype for line in lines if isinstance(line.record, words.KvDtype))
    return kv_dtype(pools or later or own) or (None if pools or later or own else settings.kv_cache_dtype)


def _draft_tokens(settings: Settings, reports: tuple[RankReport, ...], running: int | None) -> int | None:
    """D as stated; 0 for state lines that end without draft states; else by the size of those states.

    The draft states are those of the running requests and one more, each as large as the SSM part (section 4).
    """
    if settings.D is not None:
        return settings.D
    if settings.speculative_algorithm is not None:
        return None
    states = [report.state for report in reports if report.state]
    if any(state.drafts != "printed" for state in states):
        return 0 if all(state.drafts == "none" for state in states) else None
    found = {_drafts_by_size(state, running) for state in states if state.ssm}
    return found.pop() if len(found) == 1 else None


def _drafts_by_size(state: words.StatePool, running: int | None) -> int | None:
    if not running or state.slots is None or state.ssm is None or not state.draft_ssm or not state.draft_ssm.value:
        return None
    slot = share(state.ssm.measured, with_padding(state.slots))
    held = share(state.draft_ssm.measured, with_padding(running))
    if slot.low <= 0:
        return None
    low, high = held.low / slot.high, held.high / slot.low
    whole = [number for number in range(int(low), int(high) + 2) if low <= number <= high][:2]
    return whole[0] if len(whole) == 1 else None


def _rest_from_weights(
    reports: tuple[RankReport, ...], ranks: tuple[RankFacts, ...], settings: Settings
) -> Measured | None:
    """By the ranks that print both ends, each the least of them; the slack of post-capture sizing is not printed."""
    if any(report.after_capture.rows is not None for report in reports):
        return None
    both = [rank for rank in ranks if rank.begin_gib and rank.end_gib]
    return rest_from_weights(
        _least(rank.begin_gib for rank in both), _least(rank.end_gib for rank in both), settings.mem_fraction_static
    )


def _is_least(lines: list[Line], settings: Settings) -> bool:
    """Whether the pools may have left memory unused."""
    lowered = any(isinstance(line.record, words.TokensLowered) for line in lines)
    staged = any((line.rank.pp or 0) > 0 for line in lines) or (settings.pp_size or 1) > 1
    return (settings.max_total_tokens is not None and not lowered) or staged


def _rest_from_pools(facts: Facts) -> Measured | None:
    """Over the releases that the log may be of; None where one of them needs what the log does not say."""
    found = [facts.rest_by_pools_at(charging) for charging in _chargings(facts)]
    if not found or None in found:
        return None
    given = [rest for rest in found if rest is not None]
    return Measured(given[-1].value, min(rest.low for rest in given), max(rest.high for rest in given))


def _chargings(facts: Facts) -> Iterator[Charging]:
    settings, asked = facts.settings, facts.settings.max_running_requests
    drafts = 0 if facts.speculation is False else facts.draft_tokens
    width = settings.attn_dp_size or (1 if settings.complete else None)
    if drafts and (not settings.complete or width is None):
        return
    for release in facts.releases or RELEASES[-1:]:
        yield Charging(
            release=release,
            page_size=facts.page_size,
            dcp_size=facts.dcp_size or 1,
            S=facts.S,
            D=drafts,
            requests=asked // (width or 1 if rules_of(release).drafts_over_dp else 1) if asked else None,
            algorithm=settings.speculative_algorithm,
            steps=settings.speculative_num_steps,
            topk=settings.speculative_eagle_topk,
            replayssm=settings.replayssm or "off",
            family=facts.family,
            role=settings.disaggregation_mode,
            by_ratio=settings.max_mamba_cache_size is None and not (facts.radix_cache is False and (asked or drafts)),
        )


def _ring_bytes(ring: Ring | None, slots: int | None, running: int | None) -> Measured | None:
    """One position of a ring [bytes]: KDA has a ring on each of N + 1 slots, GDN on the running requests and one."""
    if ring is None or ring.fold is None:
        return None
    holders = slots if ring.fold else running
    if holders is None or not ring.length:
        return None
    return share(total(ring.sizes), with_padding(holders) * ring.length)
