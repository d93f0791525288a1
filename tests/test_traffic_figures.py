"""Figures of traffic show the curves' own values, and the curves are those of the model to less than a pixel."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from sizing.answers.what_runs import kv_tokens_for
from sizing.engine.pools import pools_from_slots
from sizing.engine.rank import rank_of
from sizing.figures import DARK, LIGHT, painted
from sizing.figures.theme import Figure
from sizing.figures.traffic import BAR, RIGHT_MOST, lengths_figure, needs_figure, overflow_figure
from sizing.traffic.curves import counted, in_use, lengths, needs
from sizing.traffic.kv_in_flight import kv_needed
from sizing.traffic.mix import Counts, mix_of, mix_of_lengths
from sizing.traffic.running import around
from tests.traffic_cases import DEPLOYMENTS, traffic_case

SLIDE = 415  # [px] from 0 to the highest point on a slide of 1280 x 720
CURVED = ["usual", "two lengths", "long", "one giant", "thousands of short ones", "lengths only"]


def trace(figure: Figure, name: str) -> Figure:
    """One trace by its name."""
    (found,) = [item for item in figure["data"] if item.get("name") == name]
    return dict(found)


def said(figure: Figure) -> list[str]:
    """Every label and every note of a figure."""
    written = [words for item in figure["data"] if item.get("name") == "labels" for words in item["text"]]
    return [words.strip() for words in written] + [note["text"] for note in figure["layout"]["annotations"]]


@pytest.mark.parametrize("name", DEPLOYMENTS)
def test_every_figure_is_what_plotly_reads(name: str) -> None:
    """No traffic stops a figure, no value is NaN, no colour name is left unpainted, each says what it is of."""
    traffic = traffic_case(name)
    for figure in (lengths_figure(traffic.mix), needs_figure(traffic), overflow_figure(traffic)):
        for palette in (LIGHT, DARK):
            text = json.dumps(painted(figure, palette), allow_nan=False)
            assert '"@' not in text
            assert go.Figure(json.loads(text)).layout.title.subtitle.text.startswith(traffic.mix.name)
    assert "risk 1 %" in needs_figure(traffic)["layout"]["title"]["subtitle"]["text"]


def test_lengths_are_the_histogram_s() -> None:
    """Bars, curve and quantiles of each row; the axis begins at the shortest request."""
    mix = traffic_case("usual").mix
    figure = lengths_figure(mix)
    assert mix.inputs is not None
    assert mix.outputs is not None
    for name, counts in (("input", mix.inputs), ("output", mix.outputs), ("input + output", mix.lengths)):
        drawn = lengths(counts)
        curve = trace(figure, name)
        assert curve["line"]["shape"] == "hv"
        assert curve["x"][1:-1] == drawn.tokens.tolist()
        assert curve["y"] == [0, *(drawn.below * 100).tolist(), 100]
        bars = trace(figure, f"{name}, bars")
        assert max(bars["y"]) == BAR
        assert sum(bars["customdata"]) == pytest.approx(100)
        quantiles = ", ".join(f"p{share} {counts.quantile(share / 100):,}" for share in (50, 95, 99))
        assert f"<b>{name}</b>: {quantiles} tokens" in said(figure)
    low, high = (10**end for end in figure["layout"]["xaxis"]["range"])
    assert mix.outputs.values[0] / 1.3 < low < mix.outputs.values[0]
    assert mix.lengths.values[-1] < high < mix.lengths.values[-1] * 1.3


@pytest.mark.parametrize("length", [1, 50, 9216, 2**24])
def test_one_length_has_an_axis(length: int) -> None:
    """A single length stands inside an axis of some octaves with some ticks, and its curve is a step."""
    figure = lengths_figure(mix_of_lengths("one", np.array([length])))
    axis = figure["layout"]["xaxis"]
    low, high = (10**end for end in axis["range"])
    assert low < length < high
    assert high / low == pytest.approx(16)
    assert len(axis["tickvals"]) >= 2
    assert all(low / 1.0001 <= tick <= high * 1.0001 for tick in axis["tickvals"])  # roots and powers round
    assert trace(figure, "input + output")["y"] == [0, 100, 100]


def test_nothing_has_a_place_on_the_axis() -> None:
    """A request that generates nothing is drawn where one token is, and the figure says so."""
    figure = lengths_figure(traffic_case("nothing is generated").mix)
    assert trace(figure, "output")["x"][1:-1] == [1, 3]
    assert "0 is drawn at 1" in figure["layout"]["title"]["subtitle"]["text"]


def test_the_thin_curve_of_lengths_is_right_to_one_percent() -> None:
    """Of 20,000 distinct lengths and one that is common, no step of more than 1 % is lost and none is moved."""
    values = np.arange(1, 20_001)
    counts = Counts(values, np.where(values == 7777, 300, 1))
    drawn = lengths(counts)
    exact = np.cumsum(counts.counts) / counts.total
    shown = drawn.below[np.searchsorted(drawn.tokens, values, side="right") - 1]
    assert np.abs(exact - shown).max() < 0.01
    assert 7777 in drawn.tokens
    assert drawn.shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("name", CURVED)
def test_needs_are_right_to_a_pixel(name: str) -> None:
    """The line of what is needed lies where the model says, at places where it was not worked out too."""
    traffic = traffic_case(name)
    figure = needs_figure(traffic)
    x, y = (np.array(trace(figure, "needed at 1 % risk")[axis]) for axis in ("x", "y"))
    top = max(y.max(), *trace(figure, "left")["y"])
    pixel = top / SLIDE
    for requests in np.unique(np.linspace(1, int(x[-1]), 40).astype(int)).tolist():
        exact = kv_needed(traffic.one, requests, around(traffic.risk))[1]
        assert np.interp(requests, x, y) == pytest.approx(exact, abs=pixel)


@pytest.mark.parametrize("name", ["usual", "a cap that binds", "attention DP", "thousands of short ones"])
def test_what_is_left_is_the_solve_s(name: str) -> None:
    """KV beside C x S slots, up to the last C that is admitted, and each split's own mark."""
    traffic = traffic_case(name)
    rank, left = rank_of(traffic.sizing.scenario), trace(needs_figure(traffic), "left")
    requests = np.array(left["x"])
    assert left["y"] == kv_tokens_for(pools_from_slots(rank, requests * rank.S), requests).tolist()
    after = requests[-1:] + 1
    cap = int(kv_tokens_for(pools_from_slots(rank, after * rank.S), after)[0])
    assert cap < 0 or requests[-1] == needs_figure(traffic)["layout"]["xaxis"]["range"][1]
    marks = trace(needs_figure(traffic), "marks")
    assert marks["x"] == [way.split.admitted for way in traffic.ways]
    assert marks["y"] == [way.split.kv_tokens for way in traffic.ways]


def test_at_the_mean_is_what_the_balance_page_counts() -> None:
    """C x L, L the mean length."""
    traffic = traffic_case("usual")
    drawn = needs(traffic, 80)
    assert drawn.requests[-1] == 80
    assert drawn.at_mean.tolist() == (drawn.requests * round(traffic.mix.lengths.mean)).tolist()


@pytest.mark.parametrize("name", CURVED)
def test_kv_in_use_overflows_as_often_as_the_model_says(name: str) -> None:
    """The part of each drawn area that lies beyond the pool is the share of time that is printed beside it."""
    traffic = traffic_case(name)
    for way in traffic.ways:
        curve = in_use(way, traffic)
        assert curve.density.max() == 1
        assert np.all(np.diff(curve.pool) >= 0)
        beyond = np.interp(np.linspace(1, max(1, curve.pool[-1]), 20_001), curve.pool, curve.density, right=0)
        area = np.trapezoid(curve.density, curve.pool)
        share = np.trapezoid(beyond, dx=max(0, curve.pool[-1] - 1) / 20_000) / area
        assert share == pytest.approx(way.now.overflow, abs=0.02)
        assert np.trapezoid(curve.density * curve.pool, curve.pool) / area == pytest.approx(
            way.split.admitted * traffic.one.mean / way.split.kv_tokens, rel=0.03
        )


def test_counting_in_steps_keeps_the_mean() -> None:
    """The variance grows by no more than a quarter of a step squared."""
    one = traffic_case("usual").one
    for step in (1, 7, 1000):
        steps = counted(one, step)
        tokens = np.arange(len(steps.shares)) * step
        assert steps.shares.sum() == pytest.approx(1)
        assert steps.shares @ tokens == pytest.approx(one.mean)
        variance = steps.shares @ (tokens - one.mean) ** 2
        assert one.deviation**2 * (1 - 1e-9) <= variance <= one.deviation**2 + step**2 / 4


def test_requests_of_one_length_are_upright_lines() -> None:
    """What all admitted hold together is one number."""
    traffic = traffic_case("one length")
    figure = overflow_figure(traffic)
    for way in traffic.ways:
        at = way.split.admitted * 9216 / way.split.kv_tokens
        assert trace(figure, way.name)["x"] == pytest.approx([at, at])
        assert trace(figure, way.name)["y"] == [0, 1]


def test_overflow_is_filled_from_the_pool_s_end() -> None:
    """Beyond 100 % the curve goes on from its own height there."""
    traffic = traffic_case("usual")
    figure, way = overflow_figure(traffic), traffic.ways[-1]
    curve = in_use(way, traffic)
    assert trace(figure, way.name)["y"] == curve.density.tolist()
    beyond = trace(figure, f"{way.name}, beyond")
    assert beyond["x"][0] == 1
    assert beyond["y"][0] == pytest.approx(np.interp(1, curve.pool, curve.density))
    assert beyond["x"][1:] == curve.pool[curve.pool > 1].tolist()


MARKED: dict[str, list[str]] = {
    "usual": ["r* of the mean length: <b>74</b>", "best for this traffic: <b>68</b>", "as set: <b>51</b>"],
    "one length": ["best for this traffic,<br>  r* of the mean length: <b>74</b>", "as set: <b>51</b>"],
    "a cap that binds": ["as set,<br>  best for this traffic,<br>  r* of the mean length: <b>40</b>"],
    "long": [
        "r* of the mean length: <b>2</b>",
        "best for this traffic: <b>1</b>",
        "as set: <b>51</b>, beyond this axis →",
    ],
    "as set is refused": ["r* of the mean length: <b>74</b>", "best for this traffic: <b>68</b>"],
    "too long for any pool": ["as set: <b>51</b>, beyond this axis →"],
}


@pytest.mark.parametrize("name", MARKED)
def test_every_split_is_named_below_its_mark(name: str) -> None:
    """From right to left in lines of their own, the uppermost first; one name for all that admit equally many."""
    figure = needs_figure(traffic_case(name))
    names = trace(figure, "labels")
    below = [(words.strip(), y) for words, y in zip(names["text"], names["y"], strict=True) if y < 0]
    assert [words for words, _ in below] == MARKED[name]
    heights = [y for _, y in below]
    assert heights == sorted(heights, reverse=True)
    assert min(heights) > figure["layout"]["yaxis"]["range"][0]


@pytest.mark.parametrize("name", ["usual", "long", "too long for any pool", "thousands of short ones"])
def test_names_of_lines_stand_apart(name: str) -> None:
    """The upper line's name is over its end and the lower one's right of its end, at different places."""
    names = trace(needs_figure(traffic_case(name)), "labels")
    lines = list(zip(names["x"], names["y"], names["textposition"], strict=True))[:3]
    assert [side for _, _, side in lines][1:] == ["top left", "middle right"]
    assert len({(x, y) for x, y, _ in lines}) == 3


def test_splits_of_the_same_pools_share_a_row() -> None:
    """One area with both names where the split that is set is the best one."""
    figure = overflow_figure(traffic_case("as set is the best"))
    rows = [words for words in said(figure) if "admitted" in words]
    assert rows[0].startswith("<b>as set, best for this traffic</b><br>68 admitted, KV overflows 0.")
    assert rows[1].startswith("<b>r* of the mean length</b><br>74 admitted, KV overflows ")


def test_what_wants_many_pools_does_not_press_the_rest() -> None:
    """The axis ends at some pools, and the row says that its area lies beyond."""
    figure = overflow_figure(traffic_case("long"))
    assert figure["layout"]["xaxis"]["range"][1] <= RIGHT_MOST
    assert "<b>as set</b><br>51 admitted, KV overflows 100 % of the time, far beyond this axis" in said(figure)


@pytest.mark.parametrize("build", [needs_figure, overflow_figure])
def test_without_a_split_a_figure_says_so(build: Any) -> None:
    """It is empty otherwise."""
    figure = build(traffic_case("no split starts"))
    assert figure["data"] == []
    assert said(figure) == ["No split starts."]


def test_a_name_is_no_markup() -> None:
    """The name of a file is text, and a long one is cut."""
    mix = mix_of("<b>" + "n" * 300, np.array([5]), np.array([5]))
    text = lengths_figure(mix)["layout"]["title"]["subtitle"]["text"]
    assert text.startswith("&lt;b&gt;nnn")
    assert "n…: 1 request" in text
    assert len(text) < 250
