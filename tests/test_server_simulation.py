"""A simulated hour: the readers name the pool that the simulation starved, the slots held and the retractions made."""

from functools import cache

import numpy as np
import pytest

from sizing.server import RankFacts, ServerFacts, read_server
from sizing.server.verdict import verdict
from tests.server_simulation import Hour, Setting, simulate
from tests.server_texts import Server

SHORT, LONG = ((500, 4_000), (200, 800)), ((2_000, 9_000), (500, 3_000))
SETTINGS = {
    "state": Setting(Server(slots=257, tokens=1_167_552, limit=51), 4, 12.0, *SHORT),
    "state, three held": Setting(Server(slots=120, tokens=900_000, limit=30), 3, 5.0, *SHORT),
    "kv": Setting(Server(slots=600, tokens=150_000, limit=120), 4, 1.2, *LONG),
    "kv, with room kept": Setting(Server(slots=600, tokens=250_000, limit=120), 4, 1.2, *LONG, max_new_tokens=3_000),
    "cap": Setting(Server(slots=257, tokens=1_167_552, limit=20), 4, 9.0, *SHORT),
    "nothing": Setting(Server(slots=257, tokens=1_167_552, limit=51), 4, 1.0, *SHORT),
}
BEGIN = 1_768_471_200  # 2026-01-15 10:00:00, when the simulation begins [s since 1970]
STARVED = {"rows": "state", "kv": "kv", "none": "none"}


@cache
def hour(name: str) -> Hour:
    """The hour of one setting; the same one on every call."""
    return simulate(SETTINGS[name], np.random.default_rng(7))


def read(name: str, text: str) -> tuple[ServerFacts, RankFacts]:
    """What the readers make of it."""
    facts = read_server(text)
    assert facts is not None
    assert facts.main is not None
    assert facts.main.shares is not None
    return facts, facts.main


def starved(name: str) -> str:
    """What the simulation kept waiting for most of the time."""
    why = max(("rows", "kv"), key=lambda why: hour(name).blocked[why])
    if not hour(name).blocked[why] > 0.01:
        return "none"
    return "cap" if name == "cap" else STARVED[why]


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("form", ["lines", "scrapes"])
def test_the_starved_pool_is_named(name: str, form: str) -> None:
    """Which limit held, how long, and what was full first, from lines as from scrapes."""
    found = hour(name)
    main = read(name, getattr(found, form))[1]
    assert main.shares is not None
    assert main.shares.most == starved(name) or starved(name) == "none"
    waited = found.blocked["rows"] + found.blocked["kv"]
    assert 1 - main.shares.none == pytest.approx(waited, abs=0.03)
    if starved(name) != "none":
        assert getattr(main.shares, main.shares.most) == pytest.approx(
            max(found.blocked[k] for k in ("rows", "kv")), abs=0.04
        )
    if starved(name) in ("state", "kv"):
        assert main.first is not None
        assert main.first.pool == starved(name)
        why = "rows" if starved(name) == "state" else "kv"
        assert main.first.time is not None
        assert found.full[why] - 30 <= main.first.time - BEGIN <= found.first[why] + 60


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("form", ["lines", "scrapes"])
def test_slots_held_and_length_in_use(name: str, form: str) -> None:
    """Slots per running request to a tenth, and tokens per running request within two in a hundred."""
    setting, found = SETTINGS[name], hour(name)
    main = read(name, getattr(found, form))[1]
    assert main.held == pytest.approx(setting.held, abs=0.05)
    assert main.tokens_per_request == pytest.approx(found.tokens_per_request, rel=0.03)
    assert main.peaks.running is not None
    assert 0.8 * found.most_running <= main.peaks.running <= found.most_running
    if form == "scrapes":
        assert main.slots == setting.server.slots
    else:
        assert main.slots_between is not None
        assert main.slots_between.holds(setting.server.slots)


@pytest.mark.parametrize("name", SETTINGS)
def test_retractions_are_counted(name: str) -> None:
    """Every one of the lines; of the scrapes what the counter rose by while it was asked."""
    found = hour(name)
    lines, scrapes = read(name, found.lines)[0], read(name, found.scrapes)[0]
    assert (lines.retractions, lines.retracted) == (found.retractions, found.retracted)
    assert scrapes.retracted == found.retracted
    if name == "kv":
        assert found.retracted > 20
        assert f"{found.retractions:,} times" in verdict(lines)


def test_words() -> None:
    """The verdict names the pool, and the other one's most."""
    assert verdict(read("state", hour("state").lines)[0]).startswith("State pool admitted nobody ")
    assert "held 4.0 slots a request, 5 reserved" in verdict(read("state", hour("state").lines)[0])
    assert verdict(read("kv", hour("kv").lines)[0]).startswith("KV short ")
    assert verdict(read("cap", hour("cap").lines)[0]).startswith("The cap of 20 requests held ")
    assert verdict(read("nothing", hour("nothing").lines)[0]).startswith("No request waited")
