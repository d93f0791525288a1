"""What a running server did: both pools over time on one axis, the requests that run and those that wait below."""

from sizing.basics.units import count, number, percent, requests_text
from sizing.figures.theme import SMALL, Figure, Label, axis, labels, layout, line, source_axis, text
from sizing.server.facts import RankFacts, ServerFacts
from sizing.server.measured import Point

HEIGHT = 600
CHARACTERS = 96
RIGHT = 148  # [px] for the words at the lines' ends
POOLS, RUNNING, WAITING = [0.46, 1.0], [0.24, 0.39], [0.0, 0.15]  # of the drawing area
TICKS = [0, 25, 50, 75, 100]
HEAD = 1.4  # of the largest count: room for words above it
ABOVE = 0.012  # of an axis: words above a line stand off it by that
APART = 0.09  # of the upper axis: words nearer than that would cover each other
FORMATS = {"metrics": "Prometheus scrapes", "loads": "/v1/loads", "batch lines": "lines of its log"}
LIMITS = {"state": "the state pool admits", "cap": "the cap on requests is"}


def occupancy_figure(facts: ServerFacts, title: str = "") -> Figure:
    """The rank that tells most; `title` names the deployment. Each line is the fullest moment of its stretch, the band
    around it the least and the most.
    """
    main = facts.main
    heading = f"Occupancy of both pools{f', {title}' if title else ''}"
    figure = layout(_inputs(facts), heading, height=HEIGHT, characters=CHARACTERS, right=RIGHT)
    points = main.points if main else ()
    timed = bool(points) and all(point.time is not None for point in points) and (main is None or bool(main.seconds))
    x = _times(points, timed)
    ends = [x[0], x[-1]] if len(x) > 1 else [0, 1]
    words = "minutes since the first line" if timed else "lines in order, as they carry no time"
    read = f"Read from {FORMATS.get(main.format, 'what it says')}" if main else "Read from what it says"
    figure["xaxis"] = source_axis(words, read, range=ends, anchor="y3")
    figure["yaxis"] = axis(
        "pool in use", range=[0, 104], domain=POOLS, tickvals=TICKS, ticktext=[f"{tick} %" for tick in TICKS]
    )
    figure["yaxis2"] = _counts(
        "requests", RUNNING, [*(point.running for point in points), main.limit if main else None]
    )
    figure["yaxis3"] = _counts("requests", WAITING, [point.queued for point in points])
    if main is None or not points:
        figure["annotations"].append(
            text("No line or scrape tells how full the pools were.", x=0.5, y=0.7, xref="paper", yref="paper")
        )
        return {"data": [], "layout": figure}
    data = [*_band(x, points, "state"), *_band(x, points, "kv"), *_pool(x, points)]
    data += _requests(x, points, main)
    data.append(_hover(x, points, timed))
    data.append(labels([*_ends(x, points), *_full_label(x, main)]) | {"name": "pools"})
    data.append(labels(_running_labels(x, points, main)) | {"name": "running words", "yaxis": "y2"})
    data.append(labels(_waiting_labels(x, points)) | {"name": "waiting words", "yaxis": "y3"})
    return {"data": data, "layout": figure}


def _counts(title: str, domain: list[float], values: list[float | None]) -> Figure:
    """An axis of requests from 0 on, with room for words above the largest."""
    most = max((value for value in values if value is not None), default=1)
    return axis(title, range=[0, max(most, 1) * HEAD], domain=domain, nticks=4, tickformat=",")


def _inputs(facts: ServerFacts) -> list[str]:
    main, info = facts.main, facts.info
    pieces = [f"SGLang {info.version}" if info and info.version else ""]
    if main:
        slots = main.slots_between
        between = f"K {count(-int(-slots.low // 1))} to {count(int(slots.high // 1))}" if slots else ""
        pieces += [
            main.source,
            main.rank,
            f"{count(main.samples)} lines" if main.format == "batch lines" else f"{count(main.samples)} samples",
            f"{number(main.seconds / 60, 1)} minutes" if main.seconds else "",
            f"K = {count(main.slots)}" if main.slots is not None else between,
            f"at most {count(main.limit)} requests" if main.limit else "",
            f"held {number(main.held, 1)} slots a request" if main.held is not None else "",
            f"{count(facts.length_in_use)} tokens a request" if facts.length_in_use else "",
            f"state pool admitted nobody {percent(main.state_full)} of the time" if main.state_full is not None else "",
            f"KV full {percent(main.kv_full)} of the time" if main.kv_full is not None else "",
            f"{requests_text(facts.retracted)} put back" if facts.retracted else "",
        ]
    return [piece for piece in pieces if piece] or ["nothing of its load was given"]


def _times(points: tuple[Point, ...], timed: bool) -> list[float]:
    """Minutes since the first point; else the number of the first row of each."""
    if timed:
        return [((point.time or 0.0) - (points[0].time or 0.0)) / 60 for point in points]
    found, at = [], 0
    for point in points:
        found.append(float(at))
        at += point.rows
    return found


def _band(x: list[float], points: tuple[Point, ...], pool: str) -> list[Figure]:
    """From the least to the most of each stretch; nothing where every point is one row."""
    if all(point.rows == 1 for point in points):
        return []
    low, high = (_percents(points, f"{pool}_{end}") for end in ("low", "high"))
    edge = line(x, low, f"@{pool}", width=0, name=f"{pool} least")
    fill = line(x, high, f"@{pool}", width=0, name=f"{pool} most", fill="tonexty", fillcolor=f"@{pool}_soft")
    return [edge, fill]


def _pool(x: list[float], points: tuple[Point, ...]) -> list[Figure]:
    return [
        line(x, _percents(points, "state"), "@state", width=2.5, name="state pool"),
        line(x, _percents(points, "kv"), "@kv", width=2.5, dash="dash", name="KV pool"),
    ]


def _percents(points: tuple[Point, ...], name: str) -> list[float | None]:
    return [None if (value := getattr(point, name)) is None else value * 100 for point in points]


def _requests(x: list[float], points: tuple[Point, ...], main: RankFacts) -> list[Figure]:
    queued, running = [point.queued for point in points], [point.running for point in points]
    found = [
        line(x, running, "@ink", width=2, name="running", yaxis="y2"),
        line(x, queued, "@muted", width=1.5, name="waiting", yaxis="y3", fill="tozeroy", fillcolor="@grid"),
    ]
    if main.limit:
        found.append(line([x[0], x[-1]], [main.limit] * 2, "@muted", width=1, dash="dot", name="limit", yaxis="y2"))
    if (full := _full_share(main)) is not None:
        found.append(line([x[0], x[-1]], [full * 100] * 2, "@state", width=1, dash="dot", name="state pool is full"))
    return found


def _full_share(main: RankFacts) -> float | None:
    """The share of the state pool that is in use when all rows run: the slots that S reserves are not all held."""
    size = main.slots or (main.slots_between.value if main.slots_between else None)
    if main.limit_kind != "state" or not main.limit or main.held is None or not size:
        return None
    return min(main.limit * main.held / size, 1.0)


def _full_label(x: list[float], main: RankFacts) -> list[Label]:
    full = _full_share(main)
    if full is None or main.held is None:
        return []
    words = f"full here: {count(main.limit or 0)} requests, {number(main.held, 1)} slots each "
    return [Label(words, x[-1], full * 100 + ABOVE * 100, "top left", "@state", SMALL)]


def _hover(x: list[float], points: tuple[Point, ...], timed: bool) -> Figure:
    """All numbers of a moment, found anywhere above it."""
    rows = [
        [
            f"{at:.1f} min" if timed else f"line {at + 1:.0f}",
            "not said" if point.state is None else percent(point.state),
            "not said" if point.kv is None else percent(point.kv),
            "?" if point.running is None else count(round(point.running)),
            "?" if point.queued is None else count(round(point.queued)),
        ]
        for at, point in zip(x, points, strict=True)
    ]
    template = (
        "%{customdata[0]}: state pool %{customdata[1]}, KV %{customdata[2]}, %{customdata[3]} run, "
        "%{customdata[4]} wait<extra></extra>"
    )
    tops = [max(point.state or 0, point.kv or 0) * 100 for point in points]
    return line(x, tops, "rgba(0,0,0,0)", width=0, name="hover") | {
        "customdata": rows,
        "hovertemplate": template,
        "hoverinfo": "all",
    }


def _ends(x: list[float], points: tuple[Point, ...]) -> list[Label]:
    """The pools' names at their lines' ends, apart from each other."""
    last = {name: _last(_percents(points, name)) for name in ("state", "kv")}
    found = [
        (value, words, f"@{name}")
        for name, words in (("state", "state pool"), ("kv", "KV pool"))
        if (value := last[name]) is not None
    ]
    if len(found) == 2:
        low, high = sorted(found)
        if high[0] - low[0] < APART * 100:
            middle = min(max((high[0] + low[0]) / 2, APART * 50), 104 - APART * 50)
            found = [(middle - APART * 50, *low[1:]), (middle + APART * 50, *high[1:])]
    return [Label(f" {words}", x[-1], value, "middle right", color) for value, words, color in found]


def _running_labels(x: list[float], points: tuple[Point, ...], main: RankFacts) -> list[Label]:
    running = _last([point.running for point in points])
    found = [] if running is None else [Label(" requests running", x[-1], running, "middle right")]
    if main.limit:
        words = f"{LIMITS.get(main.limit_kind or '', 'at most')} {count(main.limit)} "
        most = max(main.limit, *(point.running or 0 for point in points)) * HEAD
        found.append(Label(words, x[-1], main.limit + 4 * ABOVE * most, "top left", "@muted", SMALL))
    return found


def _waiting_labels(x: list[float], points: tuple[Point, ...]) -> list[Label]:
    queued = _last([point.queued for point in points])
    return [] if queued is None else [Label(" requests waiting", x[-1], queued, "middle right", "@muted")]


def _last(values: list[float | None]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)
