"""What real traffic does, in words and tables; the page and the command line say the same.

Requests, slots and tokens are per rank, and the words say so where there is more than one.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

from sizing.basics.units import count, number, percent, ratio_range_text, requests_text
from sizing.engine.slots import pin_is_ignored
from sizing.explain.launch_flags import pin_words
from sizing.explain.unified_memory import static_alone
from sizing.scenario.rest import condition
from sizing.traffic.admission import CLIP, SHARE, kept_free
from sizing.traffic.kv_in_flight import KvInFlight
from sizing.traffic.mix import Counts, Mix
from sizing.traffic.running import LONG, MODEL_ERROR, Served, Traffic, Way, WayName, busiest_of, page_of
from sizing.traffic.sessions import Residency, Room
from sizing.traffic.times import EPOCH, HOUR, Times

QUANTILES = (0.5, 0.95, 0.99)
LENGTH_COLUMNS = ("tokens", "mean", "p50", "p95", "p99", "longest")


def ranks(traffic: Traffic) -> str:
    """What the numbers are of, where there is more than one rank."""
    return " per rank" if traffic.sizing.scenario.attn_dp_size > 1 else ""


def headline(traffic: Traffic) -> str:
    """What runs and what could, in one line, and whether the lengths are a lower bound."""
    bound = " The lengths of its turns are a lower bound." if traffic.mix.at_least else ""
    return f"{_runs(traffic)}{bound}{static_alone(traffic.sizing.scenario)}"


def _runs(traffic: Traffic) -> str:
    best, now = traffic.way("best for this traffic"), traffic.way("as set")
    at = f"with KV overflowing at most {percent(traffic.risk)} of the time"
    where = condition(traffic.sizing.scenario)
    if best is None:
        return f"No split runs a request of this traffic {at}{ranks(traffic)}{where}."
    most, any_split = best.served.runs, traffic.optimum.unspared if traffic.optimum else 0
    more = f", {count(any_split)} with no slot to spare" if any_split > most else ""
    if now is None:
        said = f"As set SGLang would refuse to start; the best split runs {requests_text(most)}{ranks(traffic)}"
        return f"{said}{more} of this traffic {at}{where}."
    runs = now.served.runs
    said = f"{requests_text(runs)}{ranks(traffic)} of this traffic {'runs' if runs == 1 else 'run'} {at}"
    if most > runs:
        return f"{said}; the best split runs {count(most)}{more}{where}."
    spared = " with a slot to spare" if any_split > runs else ""
    return f"{said}; no split{spared} runs more{where}."


def change_numbers(traffic: Traffic) -> str:
    """What runs now and with the best split, at the risk; the one number where they are the same."""
    best, now = traffic.way("best for this traffic"), traffic.way("as set")
    after = best.served.runs if best else 0
    before = "" if now and now.served.runs == after else f"{count(now.served.runs) if now else 'refused'} → "
    return f"{before}{count(after)} {'runs' if after == 1 else 'run'} at {percent(traffic.risk)} risk{ranks(traffic)}"


def synthetic(mix: Mix) -> str:
    """That the traffic is made up, and from what."""
    return f"Synthetic traffic, made from the shape “{mix.name}”, not from requests of yours. {mix.note}".rstrip()


def best_words(traffic: Traffic) -> str:
    """How the flag of the best split comes about, and the ratios that give the same or more; one line."""
    best = traffic.optimum
    if best is None or pin_is_ignored(traffic.sizing.resolved):
        return ""
    said = pin_words(traffic.sizing, best)
    if best.ratio_low is None:
        return said
    ratios = ratio_range_text(best.ratio_low, best.ratio_high)
    return f"{said} By ratio: --mamba-full-memory-ratio {ratios} runs {count(best.runs)}{ranks(traffic)}."


def whose(traffic: Traffic) -> str:
    """What the numbers are of, and which L they are at."""
    scenario = traffic.sizing.scenario
    own = "Requests, slots and tokens are those of one rank, what is set is of the whole deployment. "
    mean = f"L is the traffic's mean, {count(scenario.L)} tokens."
    return f"{own if scenario.attn_dp_size > 1 else ''}{mean}"


def reasons(traffic: Traffic) -> str:
    """Why, for the split that is set and for r* of the mean length."""
    said = []
    if now := traffic.way("as set"):
        said.append(f"As set: {_reason(now, traffic)}")
    if mean := traffic.way("r* of the mean length"):
        length = count(traffic.sizing.scenario.L)
        said.append(f"Tuned to the mean length of {length} tokens (r* {_ratio(mean)}): {_reason(mean, traffic)}")
    if traffic.never:
        never = f"{requests_text(traffic.never)} of the traffic {'is' if traffic.never == 1 else 'are'} longer than"
        said.append(f"{never} the whole KV pool of the split that is set and can never end there.")
    return "\n".join(said)


def _ratio(way: Way) -> str:
    return way.flag.rpartition(" ")[2]


def _reason(way: Way, traffic: Traffic) -> str:
    """Which pool is short first, what the other would carry, and what overflow costs."""
    served, risk = way.now, percent(traffic.risk)
    if served.admitted <= served.by_kv:
        carried = f"KV would carry {count(served.by_kv)}{' or more' if served.or_more else ''} at {risk} risk"
        return f"{_admits(way)}, and {carried}. With all {count(served.admitted)} running KV {_overflows(served)}."
    return (
        f"{_admits(way)}, but KV carries {count(served.by_kv)} at {risk} risk. With all "
        f"{count(served.admitted)} running KV {_overflows(served)}, then by {number(served.missing, 1)} requests on "
        "average."
    )


def _overflows(served: Served) -> str:
    return f"overflows {percent(served.overflow)} of the time" if served.overflow else "does not overflow"


def _admits(way: Way) -> str:
    limit = next(limit for limit in way.split.limits if limit.name != "KV pool")
    admitted = way.split.admitted
    return f"{requests_text(admitted)} {'is' if admitted == 1 else 'are'} admitted ({limit.why})"


SHIFTS = (
    "p95 doubled: requests at or above the 95th percentile of input + output are twice as long. Outputs doubled: every "
    "request generates twice as many tokens. “Runs” is at the same risk. “Overflows” is the share of the time, with as "
    "many in flight as the split admits."
)


# Which one is retracted: ScheduleBatch.retract_decode of sgl-project/sglang, schedule_batch.py.
def asymmetry(traffic: Traffic) -> str:
    """What one request too many costs on either side, with this traffic's numbers."""
    S, mean = traffic.sizing.S, traffic.one.mean
    slots = "slot" if S == 1 else f"{S} slots"
    return (
        f"Too few slots: a request beyond the clamp waits until another frees its {slots}, however short it is, and "
        "so all the time. Too little KV: now and then it overflows, and the engine retracts the request with the "
        "fewest output tokens and later computes it again; one in flight holds "
        f"{count(round(mean))} tokens in the mean. A retraction costs some work; a missing slot costs requests in "
        "flight all the time."
    )


WAY_COLUMNS = ("split", "set", "slots", "admitted", "KV carries", "runs", "overflows, all in flight")


def way_rows(traffic: Traffic) -> list[tuple[str, ...]]:
    """Each way to split with what runs at the risk; the range is what the stated error of the model leaves open."""
    return [
        (
            way.name,
            way.flag,
            count(way.split.slots),
            count(way.split.admitted),
            _ranged(way.now),
            count(way.now.runs),
            percent(way.now.overflow),
            *((count(way.admitting.runs),) if way.admitting else ()),
        )
        for way in traffic.ways
    ]


def way_columns(traffic: Traffic) -> tuple[str, ...]:
    """Of the table of ways to split; one more where it is declared what requests may generate."""
    return (*WAY_COLUMNS, *(("runs as admitted",) if traffic.declared else ()))


def admission_words(traffic: Traffic) -> str:
    """What the engine keeps free at admission, and what that makes of what runs; empty where nothing is declared."""
    now, outputs = traffic.way("as set"), traffic.mix.outputs
    if traffic.declared is None or now is None or now.admitting is None or outputs is None:
        return ""
    kept = kept_free(outputs, traffic.declared, page_of(traffic.sizing))
    return (
        f"With {traffic.declared.words} declared, {requests_text(now.admitting.runs)} run; with nothing kept free, "
        f"{count(now.now.runs)}. At admission {count(kept.next)} tokens are kept free for the next request and "
        f"{count(kept.each)} for each that runs: {percent(SHARE)} of what it may still generate, up to {count(CLIP)}."
    )


def _ranged(served: Served) -> str:
    if served.or_more:
        return f"{count(served.by_kv)} or more"
    if served.by_kv_least == served.by_kv_most:
        return count(served.by_kv)
    return f"{count(served.by_kv)} ({count(served.by_kv_least)} to {count(served.by_kv_most)})"


def shift_columns(traffic: Traffic) -> tuple[str, ...]:
    """Of the table of what happens when the traffic shifts."""
    outputs = ("outputs doubled: runs", "overflows") if traffic.mix.outputs_doubled else ()
    return ("split", "runs", "overflows", "p95 doubled: runs", "overflows", *outputs)


def shift_rows(traffic: Traffic) -> list[tuple[str, ...]]:
    """What each way still runs at the risk, and how often KV overflows with all that it admits."""
    return [(way.name, *(cell for served in _shifts(way) for cell in _cells(served))) for way in traffic.ways]


def _shifts(way: Way) -> list[Served]:
    return [served for served in (way.now, way.tail_doubled, way.outputs_doubled) if served is not None]


def _cells(served: Served) -> tuple[str, str]:
    return count(served.runs), percent(served.overflow)


def length_rows(traffic: Traffic) -> list[tuple[str, ...]]:
    """Mean and quantiles of what is known of the lengths, and of what one in flight holds."""
    rows = [_length_row(name, counts) for name, counts in traffic.mix.parts.items()]
    return [*rows, ("held in flight", *_held_cells(traffic.one))]


def _length_row(name: str, counts: Counts) -> tuple[str, ...]:
    quantiles = (count(counts.quantile(share)) for share in QUANTILES)
    return (name, count(round(counts.mean)), *quantiles, count(int(counts.values[-1])))


def _held_cells(one: KvInFlight) -> tuple[str, ...]:
    return (count(round(one.mean)), *(count(one.quantile(share)) for share in QUANTILES), count(one.most))


# What the engine keeps free: PrefillAdder.add_one_req of sgl-project/sglang, schedule_policy.py; what it does to a mix:
# test_what_the_engine_keeps_free_is_kv_less in tests/test_traffic_replay.py.
NOT_MODELLED = (
    "Declare max_new_tokens if your clients send it. The engine admits a request only where its input and its "
    "max_new_tokens (at most 4,096 of them) are free, beside a share of what the others may still generate: where far "
    "less is generated, fewer run and fewer are retracted. Not modelled: the time of prefill, in which a request "
    "holds KV and generates nothing; prefixes that requests share, for here each holds its own; whole pages, up to "
    "page_size - 1 tokens more for each request; a queue that runs empty, which leaves KV free."
)


def model_words(traffic: Traffic) -> str:
    """The model, its source and its error, and what the same split runs with every request at its whole length."""
    if traffic.one.deviation == 0 or traffic.mix.spans.in_step:
        model = (
            "Every request is counted at its whole length, which is how the balance page counts L: all generate "
            "equally many tokens, so those begun together stay in step and end together."
            if traffic.mix.outputs is not None
            else "Only whole lengths are known, so every request is counted at its whole length."
        )
    else:
        model = (
            "A request in flight is part-way through its output, at any step with the same chance; so one that "
            "generates twice as long is met twice as often (the age of a renewal process; D. R. Cox, Renewal Theory, "
            "1962). What they hold is added up as independent, by convolution."
        )
        if traffic.whole is not None:
            model += f" If each held its whole length from the start, {count(traffic.whole)} would run as set."
    error = (
        "In replays token by token (five mixes, risks of 1 % and 5 %, up to 48 in flight) the overflow was between "
        f"1/{MODEL_ERROR:g} and {MODEL_ERROR:g} times the model's; the brackets show that range."
    )
    pools = [way.split.kv_tokens for way in traffic.ways]
    if pools and traffic.one.most > LONG * min(pools):
        error += (
            f" The longest request of {count(traffic.one.most)} tokens takes more than half of a KV pool here: in "
            "replays of such traffic KV overflowed up to twice as often as predicted."
        )
    return f"{model} {error}"


RESIDENCY_COLUMNS = (
    "split",
    "runs",
    "slots left",
    "KV left [tokens]",
    "sessions that stay",
    "bound by",
    "runs beside all",
)


RESIDENCY_NOTE = (
    "A session that waits keeps its KV and its last state in the radix cache, unlocked: a request that needs the room "
    "evicts it, least recently used first, and its next turn is computed from the start. Chunked prefill leaves more "
    "states of the same session behind (sgl-project/sglang#38000), so a session may take more slots than it needs. "
    "Not modelled: contexts that sessions share, a host tier, streaming sessions."
)


NOT_KEPT = (
    "With the radix cache off nothing is kept between turns: every turn is computed from the start, and sessions that "
    "wait take nothing of either pool."
)


def keeps_sessions(traffic: Traffic) -> bool:
    """Whether anything of a session is kept between turns: only the radix cache does."""
    return traffic.sizing.resolved.radix_cache


def residency_rows(found: Mapping[WayName, Residency], traffic: Traffic) -> list[tuple[str, ...]]:
    """What waiting sessions find in each way to split, by the way's name."""
    runs = {way.name: way.now.runs for way in traffic.ways}
    return [
        (
            name,
            count(runs[name]),
            count(one.slots_left),
            count(one.tokens_left),
            f"{count(one.resident)} of {count(one.sessions)}",
            one.bound,
            count(one.beside),
        )
        for name, one in found.items()
    ]


def room_words(room: Room | None, traffic: Traffic) -> str:
    """The split that keeps every session, as it is typed."""
    if pin_is_ignored(traffic.sizing.resolved):
        return f"SGLang {traffic.sizing.scenario.release} ignores a pin, so no slots can be kept for them."
    if room is None:
        return "No pin keeps all of these sessions and runs a request beside them."
    return (
        f"To keep all of them, {requests_text(room.runs)}{ranks(traffic)} at most: --max-mamba-cache-size {room.pin} "
        f"--max-running-requests {room.asked}. Without the second flag new requests take the sessions' slots."
    )


def times_words(traffic: Traffic) -> str:
    """What the times of a file say, a line each: how often requests come, what is in flight, the busiest hour and the
    split for it, and sessions that wait; empty where it has no times.
    """
    times = traffic.mix.times
    if times is None:
        return ""
    said = [in_flight_words(times)]
    if times.busiest is not None:
        said.append(_busiest_words(traffic, times))
    if waiting := times.waiting:
        bound = " at most, for the file does not say when turns ended" if waiting.at_most else ""
        said.append(
            f"Between turns, of {count(waiting.sessions)} sessions with several: {number(waiting.mean, 1)} in the mean "
            f"over time, p95 {count(waiting.p95)}, the most {count(waiting.most)}{bound}; one that waits has "
            f"{count(waiting.tokens)} tokens in the mean. The p95 counts where no number of sessions is stated."
        )
    return "\n".join(said)


def in_flight_words(times: Times) -> str:
    """How often the requests of a file came, and what was in flight."""
    said = f"The file spans {_lasting(times.span)} at {number(times.rate, 3)} requests a second"
    found = times.in_flight
    if found is None:
        return f"{said}; when they ended is not in it, so what is in flight is not known."
    return (
        f"{said}. In flight: {number(found.little, 1)} in the mean by Little's law (x {number(found.stay, 1)} s each), "
        f"{number(found.mean, 1)} counted, p95 {count(found.p95)}, the most {count(found.most)}."
    )


def _busiest_words(traffic: Traffic, times: Times) -> str:
    found, solved = times.busiest, busiest_of(traffic)
    assert found is not None
    at = times.first + found.start
    when = f" ({datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC)" if times.first > EPOCH else ""
    held = (
        f"{requests_text(found.requests)} came"
        if found.mean is None
        else f"{number(found.mean, 1)} in flight in the mean and {count(found.most or 0)} at most"
    )
    said = f"Busiest hour: from {_lasting(found.start)} after the first request{when}, {held}."
    best = solved.way("best for this traffic") if solved else None
    if best is None or solved is None:
        return said
    length = count(solved.sizing.scenario.L)
    runs = f"{best.flag} runs {count(best.now.runs)}{ranks(traffic)}"
    return f"{said} For its requests, {length} tokens in the mean: {runs}."


def _lasting(seconds: float) -> str:
    """A time in a unit that suits it."""
    for unit, name in ((86_400.0, "days"), (HOUR, "h"), (60.0, "min")):
        if seconds >= 2 * unit:
            return f"{number(seconds / unit, 1)} {name}"
    return f"{number(seconds, 1)} s"
