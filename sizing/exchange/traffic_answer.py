"""What traffic gives to other programs: the answer in the vocabulary of answer.py, and every number of the page."""

import json
from typing import Any

from sizing.answers.fleet import Fleet
from sizing.engine.split import Split
from sizing.exchange.answer import Best, Lengths, Measured, Notice, Number, TrafficAnswer, TrafficLengths
from sizing.exchange.sizing_answer import BINDS, best_of, sizing_answer
from sizing.traffic.exports import figures_of
from sizing.traffic.mix import Counts, Known, Mix
from sizing.traffic.running import MODEL_ERROR, Served, Traffic, traffic_of
from sizing.traffic.words import QUANTILES, admission_words, headline
from sizing.version import tool_version

_PARTS = {"input": "input", "output": "output", "total": "input + output"}  # as an answer and as a mix names them


def traffic_json(traffic: Traffic, fleet: Fleet | None = None, *, rest_given: bool = True) -> str:
    """Inputs and numbers of one outcome. Requests, slots and tokens are per rank; risk and overflow are shares; times
    are in seconds from the first request, which `first` dates. Servers and GPUs are those of the whole fleet.
    """
    mix, scenario = traffic.mix, traffic.sizing.scenario
    found = {
        "version": tool_version(),
        "scenario": scenario.differences(),
        "traffic": {
            "name": mix.name,
            "synthetic": mix.synthetic,
            "requests": mix.requests,
            "failed": mix.failed,
            "lengths": {name: figures_of(counts) for name, counts in mix.parts.items()},
        },
        "risk": traffic.risk,
        "declared": traffic.declared._asdict() if traffic.declared else None,
        "model_error": MODEL_ERROR,
        "held_in_flight": {"mean": traffic.one.mean, "deviation": traffic.one.deviation},
        "r_star_of_mean_length": traffic.sizing.r_star,
        "optimum": traffic.optimum.model_dump() if traffic.optimum else None,
        "ways": [way.model_dump() for way in traffic.ways],
        "runs_at_whole_lengths": traffic.whole,
        "longer_than_the_pool": traffic.never,
        "times": _times(mix),
        "fleet": fleet.model_dump() if fleet else None,
        "answer": traffic_answer(traffic, rest_given=rest_given).model_dump(mode="json"),
    }
    return json.dumps(found, indent=2, allow_nan=False)


def _times(mix: Mix) -> dict[str, Any] | None:
    """What the times of a file say; None where it has none."""
    times = mix.times
    if times is None:
        return None
    groups = {"in_flight": times.in_flight, "busiest": times.busiest, "waiting": times.waiting}
    curves = {"edges": times.edges, "came": times.came, "mean": times.mean, "most": times.most}
    return (
        {"first": times.first, "span": times.span, "rate": times.rate}
        | {name: None if one is None else one._asdict() for name, one in groups.items()}
        | {"curves": {name: None if one is None else one.tolist() for name, one in curves.items()}}
    )


def traffic_answer(traffic: Traffic, *, rest_given: bool = True) -> TrafficAnswer:
    """What runs of the traffic as set, and the best split for it. Per attention-DP rank."""
    mix, given = traffic.mix, rest_given
    at_mean = sizing_answer(traffic.sizing, rest_given=given)
    bounds = (
        [traffic_of(traffic.sizing.scenario, one, traffic.risk, traffic.declared) for one in mix.buckets.bounds]
        if mix.buckets
        else []
    )
    found: dict[str, Any] = {
        "notices": (*at_mean.notices, *(Notice(about=said.about, words=said.words) for said in mix.said)),
        "L": mean_length(mix),
        "requests": None if mix.synthetic else mix.requests,
        "failed": None if mix.synthetic else mix.failed,
        "lengths": lengths_of(mix),
    }
    if given:
        found |= {
            "words": " ".join(filter(None, (headline(traffic), admission_words(traffic)))),
            "best": _best(traffic),
            "flags": _flags(traffic),
        }
        found |= _running(traffic, bounds)
    if given and mix.buckets and mix.buckets.known["total"].mean is None:
        found |= _at_any_length(traffic, bounds)
    return TrafficAnswer.model_validate(at_mean.model_dump() | found)


def _running(traffic: Traffic, bounds: list[Traffic]) -> dict[str, Any]:
    """What runs as set and what sets it; nothing where the engine refuses."""
    now = traffic.way("as set")
    if now is None:
        return {}
    found = [way.served for way in (one.way("as set") for one in (traffic, *bounds)) if way]
    low, high = min(map(_least, found)), max(map(_most, found))
    limit = next(limit for limit in now.split.limits if limit.name != "KV pool")
    binds = "kv" if now.served.by_kv < now.served.admitted else BINDS.get(limit.name, "cap")
    return {"runs": _band(now.served.runs, low, high), "binds": binds}


def _least(served: Served) -> int:
    return min(served.admitted, served.by_kv_least)


def _most(served: Served) -> int:
    return min(served.admitted, served.by_kv_most)


def _at_any_length(traffic: Traffic, bounds: list[Traffic]) -> dict[str, Any]:
    """What follows from a mean length of which only bounds are known."""
    means = [one.mix.lengths.mean for one in (traffic, *bounds)]
    ratios = [one.sizing.r_star for one in (traffic, *bounds)]
    now = traffic.sizing.now
    caps = [now.kv_tokens // max(1, round(mean)) for mean in means] if isinstance(now, Split) else None
    return {
        "r_star": _band(ratios[0], min(ratios), max(ratios)),
        "kv_cap": _band(caps[0], min(caps), max(caps)) if caps else None,
        "best": None,
        "flags": None,
        "unknown": ("best", "flags"),
    }


def _best(traffic: Traffic) -> Best | None:
    return best_of(traffic.sizing.resolved, traffic.optimum) if traffic.optimum else None


def _flags(traffic: Traffic) -> tuple[str, ...] | None:
    """What to set where it runs more than what is set."""
    best, now = traffic.way("best for this traffic"), traffic.way("as set")
    return (best.flag,) if best and (now is None or best.served.runs > now.served.runs) else None


def lengths_of(mix: Mix) -> TrafficLengths:
    """Mean and quantiles of what is known of the lengths [tokens]; bands where only buckets are."""
    if mix.buckets:
        return TrafficLengths(**{name: _of_buckets(known) for name, known in mix.buckets.known.items()})
    counted = {name: mix.parts[part] for name, part in _PARTS.items() if part in mix.parts}
    return TrafficLengths(**{name: _counted(counts) for name, counts in counted.items()})


def mean_length(mix: Mix) -> Number:
    """The mean of input + output [tokens]; a band where buckets alone say how long requests are."""
    if not mix.buckets:
        return _plain(mix.lengths.mean)
    mean = mix.buckets.known["total"].mean
    if mean is not None:
        return _plain(mean)
    low, high = sorted(one.lengths.mean for one in mix.buckets.bounds)
    return _band(mix.lengths.mean, low, high)


def _counted(counts: Counts) -> Lengths:
    p50, p95, p99 = (counts.quantile(share) for share in QUANTILES)
    return Lengths(mean=_plain(counts.mean), p50=p50, p95=p95, p99=p99)


def _of_buckets(known: Known) -> Lengths:
    found = [known.quantiles.get(share) for share in QUANTILES]
    p50, p95, p99 = (_band(*one) if one and one[2] is not None else None for one in found)
    return Lengths(mean=None if known.mean is None else _plain(known.mean), p50=p50, p95=p95, p99=p99)


def _plain(number: float) -> Number:
    return int(number) if number == int(number) else number


def _band(value: float, low: float, high: float | None) -> Number:
    """One number where the band is a point."""
    if high is None:
        return None
    return _plain(value) if low == high else Measured(value=min(max(value, low), high), low=low, high=high)
