"""From the lines of a boot to its facts.

Source: engine-sizing.md sections 1 to 3, 5 and 7; boot-log-formats.md sections 4, 5 and 9.
"""

import re
from collections.abc import Iterable
from typing import TypeVar

from sizing.basics.dtypes import KvDtype
from sizing.bootlog import said as words
from sizing.bootlog.checks import conflicts_of, missing_of
from sizing.bootlog.facts import PAGE_UNSTATED, Facts
from sizing.bootlog.find import Line
from sizing.bootlog.measure import Measured, Printed, least, share, total
from sizing.bootlog.ranks import RankReport, reports_of
from sizing.bootlog.release import releases_of
from sizing.bootlog.said import Arguments, ContextShort, Decode, NoKvPool, Ring, WeightsEnd
from sizing.bootlog.settings import Settings, kv_dtype, settings_of, with_given
from sizing.bootlog.slots import slots_per_request_of
from sizing.releases.rules import Release, rules_of
from sizing.scenario.inputs import Attention

T = TypeVar("T")


def facts_of(lines: list[Line], given: Settings | None = None) -> Facts:
    """The facts of the lines of one boot; `given` are flags that are known from elsewhere, where the log has none."""
    arguments = [line.said for line in lines if isinstance(line.said, Arguments)]
    settings = with_given(settings_of(max(arguments, key=lambda said: said.keys, default=None)), given)
    reports, releases = reports_of(lines), releases_of(lines)
    page = settings.page_size or PAGE_UNSTATED
    # Where ranks differ the least counts, of slots as of tokens, so that all numbers are of the rank that binds.
    slots = min((report.slots for report in reports if report.slots is not None), default=None)
    slot_bytes = _most(report.slot_bytes for report in reports)
    S = slots_per_request_of(reports, settings, releases, slots)
    rows, printed = _rows(reports), _printed(reports)
    dcp = _dcp(settings, rows, printed, alone=_is_one_rank(lines))
    rows = rows if rows is not None else _rows_printed(printed, dcp, releases)
    ring = _first(report.ring for report in reports)
    facts = Facts(
        ranks=tuple(report.rank.name for report in reports),
        releases=releases,
        settings=settings,
        model=_first(line.said.model for line in lines if isinstance(line.said, WeightsEnd)),
        slots=slots,
        slots_in_use=_in_use(lines),
        slot_bytes=slot_bytes,
        conv_bytes=_most(report.conv_bytes for report in reports),
        ssm_bytes=_most(_ssm_bytes(report) for report in reports),
        token_bytes=_most(report.token_bytes(page) for report in reports),
        draft_token_bytes=_most(report.draft_token_bytes(page) for report in reports) if _drafts(settings) else None,
        attention=_attention(reports),
        kv_cache_dtype=_kv_dtype(lines, reports, settings),
        S=S.S,
        S_from=S.source,
        S_possible=S.possible,
        clamp=slots // S.S if slots is not None and S.S else None,
        draft_tokens=_draft_tokens(settings, reports),
        dcp_size=dcp,
        kv_rows=rows,
        kv_tokens=rows * dcp if rows is not None and dcp is not None else None,
        printed_tokens=printed,
        running=_running(reports),
        context_length=settings.context_length
        or _first(report.summary and report.summary.context for report in reports)
        or _first(line.said.context for line in lines if isinstance(line.said, ContextShort)),
        begin_gib=_least(report.begin for report in reports),
        end_gib=_least(report.end for report in reports),
        rest_from_weights=_rest_from_weights(reports, settings),
        rest_from_pools=_rest_from_pools(reports, releases, settings),
        idle_gib=min((report.free[-1].value for report in reports if report.free), default=None),
        ring=ring,
        ring_bytes_per_position=_ring_bytes(ring, slots, _running(reports)),
        family=None if ring is None or ring.fold is None else "KDA" if ring.fold else "GDN",
        unified=_first(report.unified for report in reports),
        conflicts=conflicts_of(reports, rows, printed),
        missing=(),
    )
    no_kv_pool = any(isinstance(line.said, NoKvPool) for line in lines)
    return facts.model_copy(update={"missing": missing_of(facts, no_kv_pool)})


def _first(items: Iterable[T | None]) -> T | None:
    return next((item for item in items if item is not None), None)


def _most(items: Iterable[Measured | None]) -> Measured | None:
    """The largest: with pipeline stages the one that has most layers is charged or bounds the tokens."""
    return max((item for item in items if item is not None), default=None)


def _least(items: Iterable[Printed | None]) -> Measured | None:
    given = [item.measured for item in items if item is not None]
    return least(given) if given else None


def _ssm_bytes(report: RankReport) -> Measured | None:
    if report.slot_bytes is None or report.state is None or report.state.slots is None:
        return None
    return share(report.state_sizes[1].measured, report.state.slots + 1)


def _rows(reports: tuple[RankReport, ...]) -> int | None:
    """Rows of one rank: the least, as ranks agree on the minimum."""
    return min((report.rows for report in reports if report.rows is not None), default=None)


def _printed(reports: tuple[RankReport, ...]) -> int | None:
    """max_total_num_tokens of the summary: the least, as of rows."""
    return min((report.summary.tokens for report in reports if report.summary is not None), default=None)


# A rank's name stands in the bracket of its lines wherever a width is above 1 (boot-log-formats.md, "Prefix").
_TIME_ALONE = re.compile(r"\[[\d :.,-]{8,40}\]")


def _is_one_rank(lines: list[Line]) -> bool:
    """Whether the lines are of a server of one rank: their bracket holds the time alone."""
    named = [line for line in lines if isinstance(line.said, RANKED)]
    return bool(named) and all(not line.rank.name and _TIME_ALONE.search(line.prefix) for line in named)


RANKED = (words.StatePool, words.KvPool, words.Summary, words.Capped, WeightsEnd)


def _dcp(settings: Settings, rows: int | None, printed: int | None, *, alone: bool) -> int | None:
    """dcp_size: as stated; else a whole number of logical tokens for each row; 1 where both counts are the same."""
    if settings.dcp_size is not None:
        return settings.dcp_size
    if rows and printed and printed % rows == 0:
        return printed // rows if printed // rows <= MAX_DCP else None
    return 1 if settings.stated or alone else None


MAX_DCP = 64  # the widest dcp_size that a Scenario takes


def _rows_printed(printed: int | None, dcp: int | None, releases: tuple[Release, ...]) -> int | None:
    """Rows of one rank from the summary alone: it prints logical tokens since 0.5.21."""
    if printed is None or dcp is None or dcp == 1:
        return printed
    logical = {rules_of(release).prints_logical_tokens for release in releases}
    return None if len(logical) != 1 else printed // dcp if logical.pop() else printed


def _in_use(lines: list[Line]) -> Measured | None:
    """K from the decode batch that tells it most closely: slots in use / their share of the pool."""
    found = [line.said for line in lines if isinstance(line.said, Decode) and line.said.slots]
    found = [said for said in found if said.usage.value > said.usage.half]
    if not found:
        return None
    best = max(found, key=lambda said: said.usage.value)
    usage = best.usage.measured
    return Measured(best.slots / usage.value, best.slots / usage.high, best.slots / usage.low)


def _drafts(settings: Settings) -> bool:
    """Whether a second KV pool of a rank is a draft's: not where the flags say that there is no speculation."""
    return settings.draft_tokens != 0


def _attention(reports: tuple[RankReport, ...]) -> Attention | None:
    """MLA prints one size, GQA prints K and V; post-capture sizing prints their sum, which tells nothing."""
    sizes = _first(len(report.kv.sizes) or None for report in reports if report.kv)
    return None if sizes is None else "MLA" if sizes == 1 else "GQA"


def _kv_dtype(lines: list[Line], reports: tuple[RankReport, ...], settings: Settings) -> KvDtype | None:
    """As the pool prints it, else a line of its own, else the flag; never the dtype of the weights."""
    pools = _first(report.kv.dtype for report in reports if report.kv)
    later = _first(report.after_capture.dtype for report in reports)
    own = _first(line.said.dtype for line in lines if isinstance(line.said, words.KvDtype))
    return kv_dtype(pools or later or own) or (None if pools or later or own else settings.kv_cache_dtype)


def _draft_tokens(settings: Settings, reports: tuple[RankReport, ...]) -> int | None:
    """D as stated; 0 for a state pool without draft states where the flags are not in the log; else by their size.

    The draft states are those of the running requests and one more, each as large as the SSM part (section 4).
    """
    if settings.draft_tokens is not None:
        return settings.draft_tokens
    states = [report.state for report in reports if report.state and report.state.ssm]
    if not states or states[0].ssm is None:
        return None
    state, running = states[0], _running(reports)
    if state.draft_ssm is None:
        return 0
    if not running or not state.slots or not state.draft_ssm.value:
        return None
    slot = share(state.ssm.measured, state.slots + 1) if state.ssm else None
    held = share(state.draft_ssm.measured, running + 1)
    if slot is None or slot.low <= 0:
        return None
    low, high = held.low / slot.high, held.high / slot.low
    whole = [number for number in range(int(low), int(high) + 2) if low <= number <= high][:2]
    return whole[0] if len(whole) == 1 else None


def _running(reports: tuple[RankReport, ...]) -> int | None:
    """What the engine runs with: the last word on it, of the first rank that has one."""
    for found in (
        _first(report.after_capture.requests for report in reports),
        _first(report.summary and report.summary.requests for report in reports),
        _first(report.unified and report.unified.requests for report in reports),
        _first(report.capped and report.capped.requests for report in reports),
    ):
        if found is not None:
            return found
    return None


def _rest_from_weights(reports: tuple[RankReport, ...], settings: Settings) -> Measured | None:
    """rest = end - begin x (1 - mem_fraction_static), each the least of all ranks (engine-sizing.md section 1).

    Post-capture sizing keeps another slack, which is not printed.
    """
    if any(report.after_capture.rows is not None for report in reports):
        return None
    begin, end = _least(report.begin for report in reports), _least(report.end for report in reports)
    if begin is None or end is None or settings.mem_fraction_static is None:
        return None
    kept = 1 - settings.mem_fraction_static
    return Measured(end.value - begin.value * kept, end.low - begin.high * kept, end.high - begin.low * kept)


def _rest_from_pools(
    reports: tuple[RankReport, ...], releases: tuple[Release, ...], settings: Settings
) -> Measured | None:
    """The sum of one rank's pools, the least of all ranks; a draft's KV counts where the release charges it."""
    charged = _drafts(settings) and any(rules_of(release).charged_draft_kv for release in releases)
    pools = [gib for report in reports if (gib := report.pools_gib(with_draft_kv=charged))]
    return least(pools) if pools else None


def _ring_bytes(ring: Ring | None, slots: int | None, running: int | None) -> Measured | None:
    """One position of a ring [bytes]: KDA has a ring on each of N + 1 slots, GDN on the running requests and one."""
    if ring is None or ring.fold is None:
        return None
    holders = slots if ring.fold else running
    return share(total(ring.sizes), (holders + 1) * ring.length) if holders is not None and ring.length else None
