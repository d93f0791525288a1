"""A fleet: servers carry what is wanted and one fewer does not; a better split never takes more GPUs."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from sizing import Scenario, Split, solve
from sizing.answers.fleet import AS_SET, BALANCED, BEST, Carrier, FleetWanted, carriers, fleet_of, overloaded, peak_of
from sizing.cli.main import main
from sizing.exchange.fleet_text import fleet_from_query, fleet_to_query, read_fleet
from sizing.explain.fleet_words import fleet_headline, fleet_rows
from sizing.figures import LIGHT, painted
from sizing.figures.fleet import fleet_figure
from sizing.sheet import sheet_of
from sizing.traffic.running import carriers_of, traffic_of
from sizing.traffic.workload import Workload, mix_of_workload
from tests.conftest import Run
from tests.test_figures import EDGES
from tests.test_pages import component_data
from tests.test_printed_flags import held, runs, with_flags
from tests.test_properties import examples, scenarios

DEPLOYMENTS: list[dict[str, Any]] = [
    *EDGES,
    {"rest_gib": 28.529, "attn_dp_size": 2},
    {"rest_gib": 28.529, "pp_size": 2},
    {"rest_gib": 28.529, "release": "0.5.5", "model": ""},
    {"split": "pin", "max_mamba_cache_size": 341},
    {"split": "balanced", "max_running_requests": 30},
]


@given(st.integers(1, 10**8), st.lists(st.integers(0, 5000), min_size=1, max_size=5), st.integers(0, 6))
@examples(60)
def test_one_server_fewer_does_not_carry_it(users: int, carried: list[int], width: int) -> None:
    """And more that run never take more GPUs."""
    scenario = Scenario(tp_size=2**width, model="")
    fleet = fleet_of(FleetWanted(users=users), [Carrier(str(at), "", one) for at, one in enumerate(carried)], scenario)
    for row in fleet.rows:
        if row.replicas is None:
            assert row.runs == 0
            continue
        assert row.replicas * row.runs >= users > (row.replicas - 1) * row.runs
        assert row.gpus == row.replicas * 2**width
    rising = sorted((row for row in fleet.rows if row.gpus), key=lambda row: row.runs)
    assert [row.gpus for row in rising] == sorted((row.gpus or 0 for row in rising), reverse=True)


@given(scenarios(), st.integers(1, 10**6))
@examples(60)
def test_a_fleet_of_any_deployment(scenario: Scenario, users: int) -> None:
    """Every flag, fed back, runs what is said; the fewest servers carry it; the best split takes least."""
    sizing = solve(scenario)
    ways = carriers(sizing)
    for carrier in ways:
        if not carrier.flag.endswith("unset"):
            flags = [f"--{flag}" for flag in carrier.flag.removeprefix("--").split(" --")]
            assert runs(with_flags(held(sizing), *flags)) * scenario.attn_dp_size == carrier.runs, carrier
    fleet = fleet_of(FleetWanted(users=users), ways, scenario)
    for row in fleet.rows:
        if row.replicas is not None:
            assert row.replicas * row.runs >= users > (row.replicas - 1) * row.runs
    best = fleet.row(BEST)
    taken = [row.gpus for row in fleet.rows if row.gpus is not None]
    assert best is None or best.gpus is None or best.gpus == min(taken)


@pytest.mark.parametrize("values", DEPLOYMENTS, ids=str)
def test_ways_of_a_deployment(values: dict[str, Any]) -> None:
    """What each way runs is what solving it gives, and none runs more than the best."""
    scenario = Scenario.model_validate(values)
    sizing = solve(scenario)
    found = {carrier.name: carrier for carrier in carriers(sizing)}
    for name, split in ((AS_SET, sizing.now), (BALANCED, sizing.balanced)):
        if name in found:
            assert isinstance(split, Split)
            assert found[name].runs == split.runs * scenario.attn_dp_size
            assert found[name].runs <= found[BEST].runs
    fleet = fleet_of(FleetWanted(users=2000, gpu_hour=2.5), tuple(found.values()), scenario)
    assert fleet.gpus_each == scenario.tp_size * scenario.pp_size
    assert fleet.saved is None or fleet.saved >= 0
    text = json.dumps(painted(fleet_figure(sizing, fleet), LIGHT), allow_nan=False)
    assert '"@' not in text
    assert fleet_headline(fleet)
    assert len(fleet_rows(fleet)) == len(found)


def test_the_best_way_found_runs_as_typed() -> None:
    """Its flag, set and solved anew, runs what is said."""
    for values in (
        {},
        {"L": 32768},
        {"rest_gib": 28.529, "release": "0.5.5", "model": ""},
        {"max_running_requests": 20},
    ):
        scenario = Scenario.model_validate(values)
        best = next(carrier for carrier in carriers(solve(scenario)) if carrier.name == BEST)
        words = best.flag.split()
        typed = dict(zip(words[::2], words[1::2], strict=True))
        names = {
            "--max-mamba-cache-size": ("max_mamba_cache_size", int, {"split": "pin"}),
            "--mamba-full-memory-ratio": ("mamba_full_memory_ratio", float, {"split": "ratio"}),
            "--max-running-requests": ("max_running_requests", int, {}),
        }
        changes: dict[str, Any] = {}
        for flag, value in typed.items():
            name, kind, more = names[flag]
            changes |= {name: kind(value)} | more
        now = solve(scenario.model_copy(update=changes)).now
        assert isinstance(now, Split)
        assert now.runs == best.runs


def test_a_month_by_hand() -> None:
    """2,000 at once on the worked example, 8 GPUs a server at 2.50 an hour.

    As set 51 run: 2000 / 51 is 39.2, so 40 servers and 320 GPUs; balanced 74 run: 27.03, so 28 and 224. The
    difference of 96 GPUs x 730 h x 2.50 is 175,200.
    """
    scenario = Scenario()
    fleet = fleet_of(FleetWanted(users=2000, gpu_hour=2.5), carriers(solve(scenario)), scenario)
    assert [(row.name, row.runs, row.replicas, row.gpus) for row in fleet.rows] == [
        (AS_SET, 51, 40, 320),
        (BALANCED, 74, 28, 224),
        (BEST, 74, 28, 224),
    ]
    assert (fleet.saved, fleet.saved_a_month) == (96, 175_200)
    assert fleet_headline(fleet) == (
        "2,000 requests at once: 40 servers, 320 GPUs, as set; 28 servers, 224 GPUs, at the best split found: saves 96 "
        "GPUs and 175,200 a month."
    )


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"users": "2,000"}, 2000),
        ({"arrival_rate": "0.1", "time_in_system": "30"}, 3),
        ({"arrival_rate": "3.5", "time_in_system": "2.1"}, 8),
        ({"users": "", "gpu_hour": "2"}, 0),
    ],
)
def test_what_is_wanted(values: dict[str, str], wanted: int) -> None:
    """Requests at once, or by Little's law, rounded up as decimals are; into a link and back."""
    found = read_fleet(values)
    assert isinstance(found, FleetWanted)
    assert found.wanted == wanted
    assert fleet_from_query(fleet_to_query(found)["fleet"]) == found


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"time_in_system": "3"}, "needs the arrival rate"),
        ({"users": "5", "arrival_rate": "3", "time_in_system": "1"}, "give one or the other"),
        ({"arrival_rate": "1e9", "time_in_system": "1e9"}, "above 100,000,000 requests"),
        ({"users": "0"}, "must be 1 or more"),
        ({"users": "x"}, "must be a whole number"),
        ({"gpu_hour": "-1"}, "Price of a GPU hour must be"),
        ({"gpu_hour": "nan"}, "Price of a GPU hour must be"),
    ],
)
def test_what_cannot_be_wanted(values: dict[str, str], words: str) -> None:
    """A sentence for each fault."""
    found = read_fleet(values)
    assert isinstance(found, list)
    assert words in found[0].sentence


def test_an_arrival_rate_alone(sizing_command: Run) -> None:
    """51 run as set and 74 at best: at 3 a second each may stay 17 s and 24.7 s. For a shape too, and in JSON."""
    status, printed, _ = sizing_command("target", "-", "64", "--arrival-rate", "3", stdin="{}")
    assert status == 0
    assert "where each stays 17.0 s as set, 24.7 s at the best split found in the mean, or less" in printed
    status, printed, _ = sizing_command("traffic", "-", "chat", "--arrival-rate", "3", "--json", stdin="{}")
    assert (status, json.loads(printed)["fleet"]) == (0, None)
    status, printed, _ = sizing_command("traffic", "-", "chat", "--arrival-rate", "3", stdin="{}")
    assert "At 3 requests/s one server keeps up" in printed


@given(st.floats(0.01, 3000))
@examples(60)
def test_peaks_of_arrivals_at_random(mean: float) -> None:
    """The least number that a Poisson one stays at or below 99 % of the time, added up term by term."""
    term, reached, at = Decimal(-mean).exp(), Decimal(0), 0
    while (reached := reached + term) < Decimal("0.99"):
        at += 1
        term = term * Decimal(mean) / at
    assert peak_of(mean) == at


def test_hostile_links() -> None:
    """One sentence, and nothing wanted."""
    for text in ("", "[]", '{"users": 1e99}', '{"no": 1}', "x" * 5000):
        found = fleet_from_query(text)
        assert isinstance(found, list)
        assert found[0].sentence.startswith("In the link, of the fleet: ")


def test_of_traffic() -> None:
    """At the risk; each server overflows by itself."""
    traffic = traffic_of(Scenario(rest_gib=28.529, attn_dp_size=2), mix_of_workload(Workload()), 0.01)
    found = {carrier.name: carrier for carrier in carriers_of(traffic)}
    now, best = traffic.way("as set"), traffic.way("best for this traffic")
    assert now is not None
    assert best is not None
    assert (found[AS_SET].runs, found[BEST].runs) == (2 * now.now.runs, 2 * best.now.runs)
    assert overloaded(0.01, 1) == pytest.approx(0.01)
    assert overloaded(0.5, 2) == 0.75


def test_the_commands_say_it(sizing_command: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As the core does; JSON of traffic holds it too, and the sheet shows it."""
    line = "2,000 requests at once: 40 servers, 320 GPUs, as set; 28 servers, 224 GPUs, at the best split found"
    sheet = tmp_path / "sheet.html"
    options = ("--fleet", "2000", "--gpu-hour", "2.5")
    status, printed, _ = sizing_command("target", "-", "64", *options, "--sheet", str(sheet), stdin="{}")
    assert status == 0
    assert line in printed
    assert line in sheet.read_text(encoding="utf-8")
    status, printed, _ = sizing_command("traffic", "-", "chat", "--arrival-rate", "3", "--time-in-system", "99.5",
                                        "--json", stdin="{}")  # fmt: skip
    assert status == 0
    assert json.loads(printed)["fleet"]["wanted"] == 299
    for wrong, words in (
        (("--gpu-hour", "2"), "It counts beside --fleet"),
        (("--fleet", "x"), "must be a whole number"),
    ):
        status, _, said = sizing_command("target", "-", "64", *wrong, stdin="{}")
        assert status == 2
        assert words in said


def test_the_sheet_draws_it() -> None:
    """Where something is wanted, and nothing of it where nothing is."""
    html = sheet_of(Scenario(), on=date(2026, 1, 1), fleet=FleetWanted(users=2000))
    assert 'data-figure="fleet"' in html
    assert "A fleet of such servers" in html
    assert "?fleet=" in html
    assert "A fleet of such servers" not in sheet_of(Scenario(), on=date(2026, 1, 1), fleet=FleetWanted())


@pytest.mark.parametrize("name", ["target", "traffic"])
def test_the_pages_say_it(name: str) -> None:
    """Boxes are read, from a link too; what is wrong is a sentence."""
    app = AppTest.from_file("../app.py", default_timeout=60)
    app.query_params["fleet"] = '{"users": 2000}'
    app.run().switch_page(f"pages/{name}.py").run()
    assert not app.exception
    assert app.text_input(key="fleet_users").value == "2000"
    said = "\n".join(map(component_data, app.get("bidi_component"))).replace("\\", "")
    assert "2,000 requests at once: 40 servers, 320 GPUs, as set" in said
    app.text_input(key="fleet_users").set_value("none").run()
    assert not app.exception
    assert any("whole number" in error.value for error in app.error)


def test_main_is_quiet_without_a_fleet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Nothing of it is printed where nothing is wanted."""
    file = tmp_path / "scenario.json"
    file.write_text("{}")
    assert main(["target", str(file), "64"]) == 0
    assert "server" not in capsys.readouterr().out
