"""The occupancy figure shows the rows that were read, is strict JSON, and holds with whatever is missing."""

import json
from functools import cache

import numpy as np
import pytest

from sizing.figures import DARK, LIGHT, occupancy_figure, painted
from sizing.figures.theme import Figure
from sizing.server import ServerFacts, read_server
from sizing.server.facts import frame
from sizing.server.measured import MAX_POINTS
from tests.server_simulation import simulate
from tests.server_texts import ASSERTIONS, UNIFIED, Moment, Server
from tests.test_server_simulation import SETTINGS


def facts_of(text: str) -> ServerFacts:
    """A text that says something."""
    facts = read_server(text)
    assert facts is not None
    return facts


@cache
def hour() -> str:
    """Lines of a simulated hour in which the state pool is short."""
    return simulate(SETTINGS["state"], np.random.default_rng(3)).lines


def trace(figure: Figure, name: str) -> Figure:
    """One trace by its name."""
    (found,) = [item for item in figure["data"] if item.get("name") == name]
    return dict(found)


SERVER = Server()
MOMENTS = [Moment(second, 51, 9, 400_000 + second, 204, 20) for second in range(3)]
TEXTS = {
    "lines": "".join(map(SERVER.decode, MOMENTS)),
    "prefill": "".join(map(SERVER.prefill, MOMENTS)),
    "scrapes": "".join(map(SERVER.scrape, MOMENTS)),
    "no times": "".join(SERVER.scrape(at, mark=False) for at in MOMENTS),
    "one": SERVER.decode(MOMENTS[0]),
    "loads": json.dumps(SERVER.loads(MOMENTS[0])) + "\n",
    "info": json.dumps(SERVER.info()) + "\n",
    "retraction": SERVER.retraction(5, 2),
    "end": ASSERTIONS["new request"],
    "unified": UNIFIED,
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_strict_json_in_both_palettes(name: str, palette: dict[str, str]) -> None:
    """Nothing stops it, no value is NaN, no colour name is left unpainted; it says what it is and from where."""
    text = json.dumps(painted(occupancy_figure(facts_of(TEXTS[name]), "my server"), palette), allow_nan=False)
    assert '"@' not in text
    assert "Occupancy of both pools, my server" in text
    assert "Hybrid Pool Sizing" in text


def test_it_draws_what_was_read() -> None:
    """Shares, running and waiting are those of the lines, at their minutes; words stand at the lines' ends."""
    figure = occupancy_figure(facts_of(TEXTS["lines"]))
    assert trace(figure, "state pool")["y"] == [79.0] * 3
    assert trace(figure, "KV pool")["y"] == pytest.approx([34.0] * 3)
    assert trace(figure, "state pool")["x"] == [0, 1 / 60, 2 / 60]
    assert trace(figure, "running")["y"] == [51] * 3
    assert trace(figure, "waiting")["y"] == [9] * 3
    words = {words.strip() for words in trace(figure, "pools")["text"]}
    assert words == {"state pool", "KV pool", "full here: 51 requests, 4.0 slots each"}
    assert trace(figure, "state pool is full")["y"] == pytest.approx(
        [100 * 204 / 257] * 2, rel=0.01
    )  # K from rounded shares
    assert trace(figure, "hover")["customdata"][0] == ["0.0 min", "79 %", "34 %", "51", "9"]


def test_frame_has_a_row_a_moment() -> None:
    """The series as a table, with units."""
    table = frame(facts_of(TEXTS["lines"] + TEXTS["scrapes"]))
    assert len(table) == 6
    assert list(table["running [requests]"]) == [51.0] * 6
    assert list(table["format"]) == ["batch lines"] * 3 + ["metrics"] * 3


def test_an_hour_stays_readable() -> None:
    """However many lines there are, so many points at most; each is one that was read, within its band."""
    facts = facts_of(hour())
    assert facts.main is not None
    assert facts.main.samples > 10 * MAX_POINTS > 0
    points = facts.main.points
    assert len(points) == MAX_POINTS
    assert sum(point.rows for point in points) == facts.main.samples
    for point in points:
        assert point.state is not None
        assert point.state_low is not None
        assert point.state_high is not None
        assert point.state_low <= point.state <= point.state_high
        assert f"mamba usage: {point.state:.2f}, " in hour()
    figure = occupancy_figure(facts)
    assert {"state least", "state most", "kv least", "kv most"} <= {item["name"] for item in figure["data"]}
