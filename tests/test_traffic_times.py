"""Times of requests: what is in flight, waits and is busiest, beside counting second by second."""

import json
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from sizing import Scenario
from sizing.cli.main import main
from sizing.figures import LIGHT, painted
from sizing.figures.traffic import times_figure
from sizing.traffic.reading import read_trace
from sizing.traffic.rows import Clocks
from sizing.traffic.running import traffic_of
from sizing.traffic.times import BINS, HOUR, Times, times_of
from sizing.traffic.words import headline, times_words
from tests.test_pages import words
from tests.test_properties import examples
from tests.test_traffic_mix import alike, mixed, told
from tests.test_traffic_reading import saved

# Session, start and time in flight, in whole seconds.
REQUESTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 9000), st.integers(1, 900), st.integers(1, 5000)),
    min_size=2,
    max_size=25,
    unique_by=lambda one: one[1],
)


def counted(intervals: list[tuple[int, int]], span: int) -> list[int]:
    """How many intervals hold each second."""
    held = np.zeros(span, int)
    for begin, end in intervals:
        held[begin:end] += 1
    return held.tolist()


def p95(held: list[int]) -> int:
    return sorted(held)[-(-len(held) * 95 // 100) - 1]


def solved(requests: list[tuple[int, int, int, int]], *, ended: bool = True, at: float = 0) -> Times:
    session, start, stay, contexts = (np.array(column) for column in zip(*requests, strict=True))
    found = times_of(Clocks(start + at, start + stay + at if ended else None), contexts, session)
    assert found is not None
    return found


@given(REQUESTS, st.sampled_from([0.0, 1_700_000_000.0]))
@examples(60)
def test_beside_a_direct_count(requests: list[tuple[int, int, int, int]], at: float) -> None:
    """In flight, by Little's law and counted; waiting sessions; the busiest hour."""
    origin = min(start for _, start, _, _ in requests)
    span = max(start + stay for _, start, stay, _ in requests) - origin
    times = solved(requests, at=at)
    intervals = [(start - origin, start - origin + stay) for _, start, stay, _ in requests]
    held = counted(intervals, span)
    assert times.in_flight is not None
    assert times.in_flight.mean == pytest.approx(sum(held) / span)
    assert times.in_flight.little == pytest.approx(sum(held) / span)
    assert (times.in_flight.p95, times.in_flight.most) == (p95(held), max(held))
    assert times.came.sum() == len(requests)
    assert times.mean is not None
    assert times.most is not None
    assert times.mean @ np.diff(times.edges) == pytest.approx(sum(held))
    assert times.most.max() == max(held)

    waits = []
    for session in {one[0] for one in requests}:
        turns = sorted(one for one in requests if one[0] == session)
        for one, other in pairwise(turns):
            if other[1] > one[1] + one[2]:
                waits.append((one[1] + one[2] - origin, other[1] - origin, one[3]))
    waiting = counted([(begin, end) for begin, end, _ in waits], span)
    if times.waiting is None:
        assert not waits
    else:
        assert times.waiting.mean == pytest.approx(sum(waiting) / span)
        assert (times.waiting.p95, times.waiting.most) == (p95(waiting), max(waiting))
        kept = sum((end - begin) * tokens for begin, end, tokens in waits)
        assert times.waiting.tokens == round(kept / sum(waiting) if waits else 0)
        assert not times.waiting.at_most

    if span <= HOUR:
        assert times.busiest is None
        return
    assert times.busiest is not None
    hours = [sum(held[low : low + 3600]) / 3600 for low in range(0, span - 3600 + 60, 60)]
    low = int(times.busiest.start)
    assert times.busiest.mean == pytest.approx(max(hours))
    assert times.busiest.mean == pytest.approx(hours[low // 60])
    assert times.busiest.most == max(held[low : low + 3600])
    assert times.busiest.requests == sum(begin < low + 3600 and end > low for begin, end in intervals)


@given(REQUESTS)
@examples(20)
def test_without_ends(requests: list[tuple[int, int, int, int]]) -> None:
    """Arrivals are known, what is in flight is not, and what waits is at most so many."""
    span = max(one[1] for one in requests) - min(one[1] for one in requests)
    times = solved(requests, ended=False)
    assert times.in_flight is None
    assert times.rate == pytest.approx(len(requests) / span)
    whole = solved(requests)
    if times.waiting and whole.waiting:
        assert times.waiting.at_most
        assert times.waiting.mean * span >= whole.waiting.mean * whole.span - 1e-6
    if times.busiest:
        began = [one[1] - min(one[1] for one in requests) for one in requests]
        most = max(sum(low <= at < low + 3600 for at in began) for low in range(0, span - 3600 + 60, 60))
        assert (times.busiest.requests, times.busiest.mean) == (most, None)


def test_at_once_or_never() -> None:
    """No span, a time that is missing, or dates that are none."""
    ends = np.array([5.0, 6.0])
    for start, end in (([5.0, 5.0], None), ([1.0, np.nan], ends), ([0.0, 1e12], None)):
        assert times_of(Clocks(np.array(start), end), np.array([1, 1]), None) is None
    before = times_of(Clocks(np.array([7.0, 1.0]), ends), np.array([1, 1]), None)
    assert before is not None
    assert before.in_flight is None


STAMPS: dict[str, tuple[str, Callable[[float], Any], str, Callable[[float, float], Any]]] = {
    "seconds of the epoch": ("start_time", lambda t: t, "end_time", lambda t, d: t + d),
    "milliseconds of the epoch": ("timestamp", lambda t: round(t * 1e3), "latency_ms", lambda t, d: d * 1e3),
    "nanoseconds by name": ("start_ns", lambda t: round(t * 1e9), "end_ns", lambda t, d: round((t + d) * 1e9)),
    "a date": ("created_at", lambda t: datetime.fromtimestamp(t, UTC).isoformat(), "duration_seconds", lambda t, d: d),
}


@pytest.mark.parametrize("name", STAMPS)
@pytest.mark.parametrize("kind", ["CSV", "JSON"])
def test_forms_of_times(tmp_path: Path, name: str, kind: str) -> None:
    """Dates and numbers in any unit; the size of a number shows that of an epoch."""
    start, come, end, go = STAMPS[name]
    rows = [
        {"input": 10 * at + 10, "output": 5, start: come(1.7e9 + 2.5 * at), end: go(1.7e9 + 2.5 * at, 4)}
        for at in range(4)
    ]
    csv = "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)])
    mix = read_trace(saved(tmp_path, csv + "\n" if kind == "CSV" else json.dumps(rows)))
    assert mix.times is not None
    assert mix.times.first == pytest.approx(1.7e9, abs=1e-3)
    assert mix.times.span == pytest.approx(11.5, abs=1e-3)
    assert mix.times.in_flight is not None
    assert mix.times.in_flight.mean == pytest.approx(16 / 11.5, rel=1e-4)
    assert mix.times.in_flight.most == 2
    assert alike(mix, mixed([(10, 5), (20, 5), (30, 5), (40, 5)]))


@pytest.mark.parametrize(
    "content",
    ["input,output,timestamp\n5,5,1\n5,5,9\n", "input,output,count,start_time_s\n5,5,2,1\n6,6,1,9\n"],
)
def test_times_that_are_not_read(tmp_path: Path, content: str) -> None:
    """A number without a unit that is no date, and a row that stands for several requests."""
    assert read_trace(saved(tmp_path, content)).times is None


RUN = {
    "backend": "vllm",
    "input_lens": [10, 20, 30, 40],
    "output_lens": [5, 5, 5, 0],
    "errors": ["", "", "", "timed out"],
    "completed": 3,
    "total_input_tokens": 60,
    "start_times": [5000.5, 5001.0, 5001.5, 5002.0],
}
WHEN = {"ttfts": [0.5, 0.25, 1.0, 0.0], "itls": [[0.5, 1.0], [], [0.25], []]}


@pytest.mark.parametrize(
    ("more", "in_flight"),
    [
        (WHEN, (3.5, 2)),  # 2 s, 0.25 s and 1.25 s, over 2.25 s: what failed does not count
        ({"latencies": [2.0, 0.25, 1.25, 0.0]}, (3.5, 2)),
        ({"ttfts": [0.5, 0.25, 1.0, 0.0]}, None),
        ({"ttfts": [0.5], "itls": [[1.0]]}, None),
    ],
)
def test_times_of_a_benchmark(tmp_path: Path, more: dict[str, Any], in_flight: tuple[float, int] | None) -> None:
    """vLLM's --save-detailed: when each came, the first token, and the gaps after it; or how long each took."""
    mix = read_trace(saved(tmp_path, json.dumps(RUN | more)))
    assert alike(mix, mixed([(10, 5), (20, 5), (30, 5)]))
    assert mix.failed == 1
    assert mix.times is not None
    if in_flight is None:
        assert mix.times.in_flight is None
        return
    assert mix.times.in_flight is not None
    assert mix.times.in_flight.mean * mix.times.span == pytest.approx(in_flight[0])
    assert mix.times.in_flight.most == in_flight[1]


@pytest.mark.parametrize(
    "runs",
    [[RUN | WHEN, RUN | WHEN], [RUN | {"start_times": ["x"] * 4}], [RUN | {"start_times": [1.0]}]],
    ids=["two runs on clocks of their own", "times that are none", "too few"],
)
def test_times_of_a_benchmark_that_say_nothing(tmp_path: Path, runs: list[dict[str, Any]]) -> None:
    """The lengths count all the same."""
    mix = read_trace(saved(tmp_path, "".join(json.dumps(run) + "\n" for run in runs)))
    assert mix.requests == 3 * len(runs)
    assert mix.times is None


# What a turn adds and generates [tokens], and how long it takes and the next one waits [s].
TURN = st.tuples(st.integers(1, 500), st.integers(1, 90), st.integers(1, 50), st.integers(1, 300))


@given(st.dictionaries(st.sampled_from("abcd"), st.lists(TURN, min_size=1, max_size=5), min_size=1))
@examples(15)
def test_a_file_of_conversations(sessions: dict[str, list[tuple[int, int, int, int]]]) -> None:
    """Contexts, their mean and percentiles, and who waits, where all is known; rows stand by when they came."""
    rows, contexts, waits, ends = [], [], [], []
    for at, (name, turns) in enumerate(sessions.items()):
        now, context = 1_700_000_000 + at, 0
        for added, output, stay, pause in turns:
            context += added
            rows.append({"session_id": name, "start_time": now, "latency_s": stay, "isl": added, "osl": output})
            contexts.append((context, output))
            context += output
            waits.append((now + stay, now + stay + pause, context))
            now += stay + pause
        ends.append(waits.pop()[0])
    rows.sort(key=lambda row: (row["start_time"], row["session_id"]))
    with tempfile.TemporaryDirectory() as folder:
        mix = read_trace(saved(Path(folder), json.dumps(rows)), turns="added")
    assert alike(mix, mixed(contexts))
    totals = sorted(i + o for i, o in contexts)
    assert told(mix.lengths) == {total: totals.count(total) for total in totals}
    for share in (50, 95, 99):
        assert mix.lengths.quantile(share / 100) == totals[-(-len(totals) * share // 100) - 1]
    assert mix.times is not None
    if not waits:
        assert mix.times.waiting is None
        return
    assert mix.times.waiting is not None
    span = max(ends) - 1_700_000_000
    held = counted([(begin - 1_700_000_000, end - 1_700_000_000) for begin, end, _ in waits], span)
    assert mix.times.waiting.mean == pytest.approx(sum(held) / span, rel=1e-4)
    assert mix.times.waiting.most == max(held)
    kept = sum((end - begin) * tokens for begin, end, tokens in waits) / sum(held)
    assert mix.times.waiting.tokens == pytest.approx(kept, abs=1)


def test_the_busiest_hour_is_a_mix(tmp_path: Path) -> None:
    """Of the requests that were in flight in it; where no end is known of those that came."""
    quiet = [(at * 600, 100, 10) for at in range(30)]
    busy = [(9000 + at * 30, 4000, 50) for at in range(60)]
    rows = sorted([*quiet, *busy])
    head = "timestamp,input,output,latency_ms\n"
    dated = [(1_700_000_000 + at, i, o) for at, i, o in rows]
    mix = read_trace(saved(tmp_path, head + "".join(f"{at},{i},{o},20000\n" for at, i, o in dated)))
    assert mix.times is not None
    assert mix.times.busiest is not None
    low = mix.times.busiest.start
    inside = [(i, o) for at, i, o in rows if low < at + 20 and at < low + HOUR]
    assert sum(i == 4000 for i, _ in inside) == 60
    assert mix.busiest is not None
    assert alike(mix.busiest, mixed(inside))
    assert len(mix.times.came) == BINS


def conversations(folder: Path) -> Path:
    """A file of four hours: sessions of turns, most of them, and the long ones, in the second hour."""
    rows = []
    for session in range(40):
        now = 1_700_000_000 + (4500 + session * 60 if session < 30 else session * 380)
        for turn in range(3):
            rows.append(f"{now},{session},{(4000 if session < 30 else 1000) * (turn + 1) + 200 * turn},{200},{20000}")
            now += 20 + 90
    return saved(folder, "timestamp,session_id,input,output,latency_ms\n" + "\n".join(rows) + "\n")


def test_the_command_says_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rate, Little's law beside the count, the busiest hour with its split, and the sessions that wait."""
    scenario, trace = saved(tmp_path, "{}", "scenario.json"), conversations(tmp_path)
    assert main(["traffic", str(scenario), str(trace)]) == 0
    printed = capsys.readouterr().out
    mix = read_trace(trace)
    assert mix.times is not None
    assert mix.times.waiting is not None
    traffic = traffic_of(Scenario(), mix, 0.01)
    for line in times_words(traffic).splitlines():
        assert line in printed
    assert "by Little's law (x 20.0 s each)" in printed
    assert "Busiest hour: from" in printed
    assert f"of {mix.times.waiting.p95} " in printed
    assert main(["traffic", str(scenario), str(trace), "--idle-sessions", "0"]) == 0
    assert "sessions that stay" not in capsys.readouterr().out
    assert main(["traffic", str(scenario), str(trace), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["times"]
    assert found["in_flight"]["little"] == pytest.approx(found["in_flight"]["mean"])
    assert len(found["curves"]["came"]) == BINS


def test_the_busiest_hour_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its requests in place of all; a file without one is a sentence."""
    scenario, trace = saved(tmp_path, "{}", "scenario.json"), conversations(tmp_path)
    mix = read_trace(trace)
    assert mix.busiest is not None
    assert mix.busiest.requests < mix.requests
    assert main(["traffic", str(scenario), str(trace), "--busiest-hour", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["traffic"]["requests"] == mix.busiest.requests
    short = saved(tmp_path, "input,output\n5,5\n", "short")
    assert main(["traffic", str(scenario), str(short), "--busiest-hour"]) == 2
    assert "no times that span more than an hour" in capsys.readouterr().err


def test_the_figure_and_the_page(tmp_path: Path) -> None:
    """Curves of the file, as it is and without the ends; the page says what the words say."""
    mix = read_trace(conversations(tmp_path))
    traffic = traffic_of(Scenario(), mix, 0.01)
    assert mix.times is not None
    without = mix._replace(times=mix.times._replace(mean=None, most=None, in_flight=None))
    for one in (mix, without):
        drawn = times_figure(traffic_of(Scenario(), one, 0.01))
        assert '"@' not in json.dumps(painted(drawn, LIGHT), allow_nan=False)
    figure = times_figure(traffic)
    assert mix.times.mean is not None
    assert figure["data"][1]["y"] == mix.times.mean.tolist()
    app = AppTest.from_file("../app.py", default_timeout=60)
    app.session_state["own_traffic"] = mix
    app.run().switch_page("pages/traffic.py").run()
    assert not app.exception
    said = words(app)
    for line in times_words(traffic).splitlines():
        assert line in said
    app.checkbox(key="traffic_busiest").check().run()
    assert not app.exception
    assert mix.at_busiest is not None
    busiest = headline(traffic_of(Scenario(), mix.at_busiest, 0.01))
    assert busiest != headline(traffic)
    assert busiest in words(app)
