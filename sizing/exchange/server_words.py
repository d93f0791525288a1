"""What a running server measured, as rows of words; the page and the command line print the same."""

from collections.abc import Iterator

from sizing.basics.units import count, number, percent
from sizing.exchange.server_answer import Occupancy, Serving

COLUMNS = ("measured", "value", "how")
BESIDE_COLUMNS = ("quantity", "predicted", "measured", "what explains the difference")
POOLS = {"state": "state pool", "kv": "KV pool"}
HELD = {
    "state": "the state pool",
    "cap": "a cap on requests",
    "kv": "the KV pool",
    "other": "neither: prefill work, or just come",
    "none": "nobody waited",
}


def beside_rows(serving: Serving) -> list[tuple[str, str, str, str]]:
    """Prediction beside measurement."""
    return [(row.quantity, row.predicted, row.measured, row.why) for row in serving.beside]


def measured_rows(serving: Serving) -> list[tuple[str, str, str]]:
    """Everything that was measured: what, how much, and what that means."""
    return [
        *_reading(serving),
        *_pool(
            "state pool", serving.state_pool, "admitted nobody", "every slot was used or kept for a running request"
        ),
        *_pool("KV pool", serving.kv_pool, "full", "no room for another request"),
        *_limits(serving),
        *_requests(serving),
    ]


def _reading(serving: Serving) -> Iterator[tuple[str, str, str]]:
    how = (
        f"over {number(serving.seconds / 60, 1)} minutes" if serving.seconds else "without times: each counts the same"
    )
    if serving.samples:
        yield "moments read", count(serving.samples), how


def _pool(name: str, pool: Occupancy | None, full: str, means: str) -> Iterator[tuple[str, str, str]]:
    if pool is None:
        return
    if pool.full is not None:
        yield f"{name} {full}", percent(pool.full), f"of the time: {means}"
    if pool.most is not None:
        yield f"{name} in use, most", percent(pool.most), ""


def _limits(serving: Serving) -> Iterator[tuple[str, str, str]]:
    if serving.limit_held is not None:
        for name, words in HELD.items():
            share = getattr(serving.limit_held, name)
            if share:
                yield f"waited for {words}" if name != "none" else words, percent(share), "of the time"
    if serving.full_first is not None:
        after = serving.full_after_seconds
        when = f"{number(after / 60, 1)} minutes after the first line" if after is not None else "no times are given"
        yield "full first", POOLS[serving.full_first], when


def _requests(serving: Serving) -> Iterator[tuple[str, str, str]]:
    if serving.running_most is not None:
        limit = f"of {count(serving.limit)} at most" if serving.limit is not None else ""
        yield "requests running, most", count(serving.running_most), limit
    if serving.queued_most is not None:
        yield "requests waiting, most", count(serving.queued_most), ""
    if serving.slots_held is not None:
        reserved = f"{count(serving.slots_reserved)} reserved" if serving.slots_reserved else ""
        yield "state slots held per running request", number(serving.slots_held, 1), reserved
    if serving.slots_cached is not None:
        yield (
            "slots that hold idle sessions, mean",
            number(serving.slots_cached, 0),
            "evicted when a request needs them",
        )
    if serving.length_in_use is not None:
        yield "KV tokens per running request", count(serving.length_in_use), "the length in use: the L to size for"
    if serving.retracted:
        times = f"{count(serving.retractions)} times" if serving.retractions else "by the counter of /metrics"
        yield "requests put back, KV being full", count(serving.retracted), times
