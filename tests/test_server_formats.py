"""Each format of each release is read right: what a line, a scrape or an answer says is what the facts hold."""

import gzip
import json
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from sizing import RefusedError, Scenario, Sizing, Split, solve
from sizing.answers.recommended import recommended
from sizing.command import read_command
from sizing.engine.resolve import resolution
from sizing.engine.unified import unified
from sizing.exchange.answer import Measured
from sizing.exchange.server_answer import Told, serving, told
from sizing.explain.unified_memory import unified_in_force
from sizing.releases.flags import has_flag
from sizing.releases.rules import RELEASES, Release, rules_of
from sizing.server import ServerFacts, batches, read_server, read_server_chunks
from sizing.server.comparison import beside
from sizing.server.inputs import ServerInputs, boot_lines, inputs_of_server, rows_of
from sizing.server.server_info import MAX_JSON
from sizing.server.texts import read_texts
from sizing.server.verdict import verdict
from tests.server_texts import ASSERTIONS, UNIFIED, Moment, Server, Values, pretty, since

GOLDEN = Path(__file__).parent / "golden"
BEGIN = 1_768_471_200  # 2026-01-15 10:00:00 UTC [s since 1970]
MOMENTS = [Moment(second, 51, 9 - second % 3, 478_691 + 51 * second, 204, 20) for second in range(12)]


def read(text: str) -> ServerFacts:
    """A text that says something."""
    facts = read_server(text)
    assert facts is not None
    return facts


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("role", ["", "drafts", "decode", "window"])
def test_decode_lines(release: str, role: str) -> None:
    """Both pools, running and waiting, K and the slots held, whatever the release prints between them."""
    server = Server(release, role=role)
    main = read("".join(map(server.decode, MOMENTS))).main
    assert main is not None
    assert (main.samples, main.seconds, main.rank, main.format) == (12, 11, "TP0", "batch lines")
    assert (main.peaks.running, main.peaks.queued, main.peaks.slots) == (51, 9, 204)
    assert (main.peaks.kv, main.peaks.state) == (0.41, 0.79)
    assert main.held == 4.0
    assert main.tokens_per_request == pytest.approx(478_691 / 51 + 5.5, abs=0.6)
    assert main.slots_between is not None
    assert main.slots_between.holds(257)
    assert (main.limit, main.limit_from, main.limit_kind, main.S) == (51, "observed", "state", 5)
    assert main.shares is not None
    assert main.shares.state == main.state_full == 1.0
    assert [point.queued for point in main.points] == [moment.queued for moment in MOMENTS]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("role", ["", "prefill"])
def test_prefill_lines(release: str, role: str) -> None:
    """Prefill lines tell occupancy and the queue, not the slots."""
    server = Server(release, role=role)
    main = read("".join(map(server.prefill, MOMENTS))).main
    assert main is not None
    assert (main.samples, main.peaks.running, main.peaks.queued, main.peaks.kv) == (12, 51, 9, 0.41)
    assert (main.held, main.tokens_per_request, main.slots) == (None, None, None)


@pytest.mark.parametrize("release", RELEASES)
def test_retraction_lines(release: str) -> None:
    """How often, and how many; eight TP ranks that all print it are one."""
    ranks = [Server(release, rank=f"TP{rank}") for rank in range(8)]
    text = "".join(rank.retraction(second, 2, aborted=1) for second in (5, 9, 70) for rank in ranks)
    facts = read("".join(map(ranks[0].decode, MOMENTS)) + text)
    assert (facts.retractions, facts.retracted) == (3, 6)
    assert facts.main is not None
    assert facts.main.aborted == (3 if release == "0.5.4" else 0)
    assert "KV ran full 3 times and 6 requests were put back." in verdict(facts)


@pytest.mark.parametrize("release", RELEASES)
def test_scrapes(release: str) -> None:
    """One or many scrapes: K as the sum of three gauges since 0.5.12, slots in use, the counter of retractions."""
    server = Server(release)
    facts = read("".join(server.scrape(at, retracted=3 + at.second) for at in MOMENTS))
    main = facts.main
    assert main is not None
    assert (main.format, main.samples, main.seconds, main.rank) == ("metrics", 12, 11, "TP0")
    assert main.peaks.running == 51
    assert main.peaks.kv == pytest.approx(MOMENTS[-1].tokens / server.tokens)
    assert main.peaks.state == (pytest.approx(204 / 257) if since(release, "0.5.5") else None)
    assert (main.slots, main.cached, main.held) == ((257, 20, 4) if since(release, "0.5.12") else (None, None, None))
    assert facts.retracted == (11 if since(release, "0.5.7") else 0)
    assert main.kv_tokens == (server.tokens if since(release, "0.5.6") else None)


def test_scrapes_without_marks_or_times() -> None:
    """A scrape ends where the same series comes again; without times every one counts the same."""
    server = Server()
    main = read("".join(server.scrape(at, mark=False) for at in MOMENTS)).main
    assert main is not None
    assert (main.samples, main.seconds) == (12, None)
    assert main.shares is not None
    assert main.shares.state == 1


def test_ranks_and_instances_are_apart() -> None:
    """Each rank of each instance has a series of its own."""
    ranks = [Server(rank=f"DP{rank} TP0") for rank in range(4)]
    text = "".join(rank.scrape(at) for at in MOMENTS[:3] for rank in ranks)
    text += "".join(rank.scrape(at, labels='instance="b:3"') for at in MOMENTS[:3] for rank in ranks[:1])
    found = {(rank.source, rank.rank): rank.samples for rank in read(text).ranks}
    assert found == {**{("", f"DP{rank} TP0"): 3 for rank in range(4)}, ("b:3", "DP0 TP0"): 3}
    lines = "".join(rank._replace(source="pod-1  | ").decode(at) for at in MOMENTS for rank in ranks)
    assert {(rank.source, rank.rank, rank.samples) for rank in read(lines).ranks} == {
        ("pod-1", f"DP{rank} TP0", 12) for rank in range(4)
    }


@pytest.mark.parametrize("release", [release for release in RELEASES if since(release, "0.5.8")])
def test_loads(release: str) -> None:
    """/v1/loads knows the limit and KV, and no state pool."""
    server = Server(release)
    facts = read("".join(json.dumps(server.loads(at)) + "\n" for at in MOMENTS))
    main = facts.main
    assert main is not None
    assert (main.format, main.samples, main.seconds, main.rank) == ("loads", 12, 11, "DP0")
    assert (facts.limit, main.limit_from, main.kv_tokens, main.peaks.state) == (51, "loads", server.tokens, None)


def test_loads_as_prometheus_and_of_old_releases() -> None:
    """The same numbers in Prometheus' form; /get_load of 0.5.4 to 0.5.20 tells those that wait alone."""
    text = "".join(
        f'sglang_{name}{{dp_rank="1"}} {value}\n'
        for name, value in {"num_running_reqs": 5, "num_waiting_reqs": 2, "max_running_requests": 9}.items()
    )
    main = read(text).main
    assert main is not None
    assert (main.rank, main.limit, main.peaks.running, main.peaks.queued) == ("DP1", 9, 5, 2)
    old = read('[{"dp_rank": 0, "num_reqs": 7, "num_waiting_reqs": 3, "num_tokens": 900}]\n').main
    assert old is not None
    assert (old.peaks.running, old.peaks.queued) == (None, 3)


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("write", [json.dumps, pretty], ids=["line", "pretty"])
def test_server_info(release: str, write: Any) -> None:
    """K as solved, the requests that run since 0.5.8, tokens, memory, and the arguments as a boot log has them."""
    server = Server(release)
    facts = read(write(server.info(max_running_requests=200)) + "\n")
    info = facts.info
    assert info is not None
    assert (info.version, info.release, info.tokens) == (release, release, server.tokens)
    assert (facts.slots, facts.limit) == (257, 51 if since(release, "0.5.8") else None)
    settings = info.settings
    assert (settings.tp_size, settings.page_size, settings.max_running_requests) == (8, 64, 200)
    assert (settings.mamba_radix_cache_strategy, settings.max_mamba_cache_size) == ("extra_buffer", None)
    (rank,) = info.ranks
    assert rank.kv_gib is not None
    assert rank.kv_gib.holds(1_167_616 * 13_824 / 2**30)  # a padding page more than the tokens
    assert rank.graphs_gib is not None
    assert rank.graphs_gib.value == 1.75


def answered(text: str, *args: Any, **named: Any) -> Told:
    """The answer for a text."""
    return told(read_texts([[text.encode()]]), *args, **named)


def inputs(text: str, *args: Any, **named: Any) -> ServerInputs:
    """What a server says as a scenario."""
    found = inputs_of_server(read(text), *args, **named)
    assert found is not None
    return found


def test_server_info_is_a_scenario() -> None:
    """With the model that the path names: bytes from its geometry, rest from K and tokens, and the same split."""
    text = json.dumps(Server().info()) + "\n"
    found = inputs(text, L=9216)
    assert found.diagnosis.scenario is not None, found.why_not
    assert found.diagnosis.model == "moonshotai/Kimi-K3"
    assert found.rest is not None
    assert found.rest.holds(28.529)
    assert found.rest.high - found.rest.low < 0.001
    sizing = solve(found.diagnosis.scenario)
    now = solve(Scenario()).now
    assert (sizing.now.slots, sizing.now.kv_rows, sizing.now.admitted) == (257, 1_167_552, 51)  # type: ignore[union-attr]
    assert sizing.now.runs == now.runs  # type: ignore[union-attr]
    assert found.diagnosis.inputs.sources["tp_size"] == "running server"
    log = boot_lines(read(text))
    assert "max_mamba_cache_size: 257," in log
    assert "max_running_requests=51" in log


@pytest.mark.parametrize("release", RELEASES)
def test_server_info_alone_is_answered_like_a_boot_log(release: str) -> None:
    """Every key of the vocabulary, the best split and its flag, from one answer of a server of any release."""
    model, strategy = "Qwen/Qwen3-Next-80B-A3B-Instruct", "no_buffer"
    named = {"mamba_radix_cache_strategy": strategy} if since(release, "0.5.7") else {}
    scenario = Scenario.model_validate(
        {
            "model": model, "release": release, "tp_size": 4, "page_size": 1, "kv_cache_dtype": "bfloat16",
            "disable_overlap_schedule": True, "rest_gib": 41.5, "L": 32_768, **named,
        }
    )  # fmt: skip
    sizing = solve(scenario)
    now = sizing.now
    assert isinstance(now, Split)
    server = Server(release, slots=now.slots, tokens=now.kv_rows, limit=now.admitted)
    info = server.info(
        model_path=model, tp_size=4, page_size=1, kv_cache_dtype="auto", disable_overlap_schedule=True,
        **({"mamba_radix_cache_strategy" if since(release, "0.5.14") else "mamba_scheduler_strategy": strategy}),
    )  # fmt: skip
    if not named:
        del info["mamba_scheduler_strategy"], info["internal_states"][0]["mamba_scheduler_strategy"]
    del info["internal_states"][0]["memory_usage"]["kvcache"]
    answer = answered(json.dumps(info) + "\n", L=32_768).answer
    assert (answer.refused, answer.status, answer.unknown) == (None, 0, ())
    assert (answer.S, answer.D, answer.slots, answer.clamp) == (sizing.S, 0, now.slots, now.clamp)
    assert (answer.kv_rows, answer.kv_tokens, answer.kv_cap) == (now.kv_rows, now.kv_tokens, now.kv_cap)
    assert (answer.runs, answer.binds) == (now.runs, {"state pool": "state", "KV pool": "kv"}[now.binding.name])
    assert answer.state_bytes_per_slot == sizing.scenario.state_bytes_per_slot
    assert answer.kv_bytes_per_token == sizing.scenario.kv_bytes_per_token
    assert isinstance(answer.rest_gib, Measured)
    assert answer.rest_gib.low <= 41.5 <= answer.rest_gib.high
    assert answer.best is not None
    assert sizing.optimum is not None
    assert answer.best.runs == sizing.optimum.runs


def test_server_info_and_a_command() -> None:
    """The command is given back with the flags; one that contradicts what runs is told and nothing is proposed."""
    text = json.dumps(Server().info()) + "\n"
    own = read_command("sglang serve --model-path moonshotai/Kimi-K3 --tp-size 8")
    answer = answered(text, own, 9216).answer
    assert answer.command is not None
    assert "--mamba-full-memory-ratio 2.2" in answer.command
    other = answered(text, read_command("sglang serve --model-path moonshotai/Kimi-K3 --tp-size 4"), 9216).answer
    assert (other.flags, other.command) == (None, None)
    assert "log_and_command_differ" in [notice.about for notice in other.notices]
    assert (other.slots, other.runs) == (257, 51)


def test_scrapes_and_a_command_are_a_scenario() -> None:
    """K as a sum, tokens, and the flags: rest follows, and with it what runs instead."""
    server = Server()
    text = "".join(server.scrape(at) for at in MOMENTS)
    command = "sglang serve --model-path moonshotai/Kimi-K3 --tp 8 --page-size 64 --kv-cache-dtype fp8_e4m3"
    command += " --mamba-radix-cache-strategy extra_buffer --mem-fraction-static 0.85"
    answer = answered(text, read_command(command), 9216).answer
    assert (answer.S, answer.slots, answer.kv_rows, answer.clamp, answer.runs) == (5, 257, 1_167_552, 51, 51)
    assert answer.flags == ("--mamba-full-memory-ratio 2.2045",)
    alone = answered(text, L=9216).answer
    assert (alone.rest_gib, alone.flags, alone.best) == (None, None, None)
    assert "rest_gib" in alone.unknown


def test_a_boot_log_beside_what_it_serves() -> None:
    """Several files: what the boot printed stays exact, and what is measured comes on top."""
    boot = (GOLDEN / "boot_logs" / "0.5.23_kda_mla_tp8_default.log").read_bytes()
    server = Server()
    lines = "".join(map(server.decode, MOMENTS)).encode()
    plain = told(read_texts([[boot]]), L=9216).answer
    both = told(read_texts([[gzip.compress(boot)], [lines]]), L=9216)
    for name in ("S", "slots", "clamp", "kv_rows", "kv_tokens", "runs", "binds", "rest_gib", "best", "flags"):
        assert getattr(both.answer, name) == getattr(plain, name), name
    assert both.answer.serving is not None
    assert plain.serving is None
    assert both.answer.serving.slots_held == 4.0
    assert both.sentences[0].startswith(
        "State pool admitted nobody 100 % of the time, KV never above 41 %: r = 2.2053 runs 74 at L"
    )
    assert {row.quantity for row in both.answer.serving.beside} >= {"K, state slots", "state slots per running request"}


def test_what_is_nothing_of_both() -> None:
    """Neither a boot nor a server: refused as before, and without the further keys."""
    answer = answered("hello\n").answer
    assert answer.refused is not None
    assert (answer.refused.kind, answer.serving, answer.status) == ("not_a_log", None, 2)


def test_server_info_without_its_model() -> None:
    """The bytes of a slot are in no field: they are asked for, and once given rest follows."""
    text = json.dumps(Server().info(model_path="/models/own-finetune")) + "\n"
    found = inputs(text)
    assert (found.diagnosis.scenario, found.rest) == (None, None)
    assert found.why_not.startswith("the bytes of a state slot are in no field")
    given = inputs(text, state_bytes_per_slot=56_171_520, conv_bytes_per_slot=1_907_712, L=9216)
    assert given.rest is not None
    assert given.rest.holds(28.529)
    assert inputs(text, model="moonshotai/Kimi-K3").rest is not None
    answer = answered(text, L=9216).answer
    assert (answer.slots, answer.runs, answer.state_bytes_per_slot, answer.rest_gib) == (257, 51, None, None)
    assert {"state_bytes_per_slot", "rest_gib", "best"} <= set(answer.unknown)


def test_a_model_that_did_not_run_is_told() -> None:
    """Where no rest gives what runs, nothing is made up."""
    found = inputs(json.dumps(Server(slots=300).info()) + "\n")
    assert (found.diagnosis.scenario, found.rest) == (None, None)
    assert "no rest gives the 300 slots" in found.why_not
    other = inputs(json.dumps(Server().info()) + "\n", model="Qwen/Qwen3-Next-80B-A3B-Instruct")
    assert other.diagnosis.scenario is None
    assert "has other KV bytes than what runs" in other.why_not


def test_rows_under_dcp() -> None:
    """The tokens of an answer are rows up to 0.5.20 and logical since 0.5.21."""
    for release, tokens in (("0.5.20", 100_000), ("0.5.21", 800_000)):
        text = json.dumps(Server(release, tokens=tokens).info(dcp_size=8)) + "\n"
        info = read(text).info
        assert info is not None
        assert rows_of(info) == 100_000
        assert inputs(text).diagnosis.inputs.values["dcp_size"] == 8


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.95])
def test_an_answer_that_breaks_off(cut: float) -> None:
    """What stands before the break counts; a number at the break does not."""
    text = json.dumps(Server().info())
    facts = read_server(text[: int(len(text) * cut)])
    if facts is not None:
        assert facts.info is not None
        assert facts.slots in (None, 257)
    assert read(text[: text.rindex("257") + 2]).slots is None  # 25, or 257?


@pytest.mark.parametrize("kind", ASSERTIONS)
def test_the_end_of_a_server(kind: str) -> None:
    """It is said why a server died with KV free, and which pin prevents it."""
    server = Server()
    text = "".join(map(server.decode, MOMENTS)) + "Traceback (most recent call last):\n" + ASSERTIONS[kind]
    facts = read(text)
    assert [end.why for end in facts.ends] == [kind]
    assert "set --max-mamba-cache-size to at least 51 x 5 + 1 = 256." in verdict(facts)
    assert [notice.about for notice in answered(text).answer.notices] == ["died_later"]


def test_mixed_in_one_text() -> None:
    """A boot log, an answer, scrapes and lines in one file: each is read, and the answer's K and limit count."""
    server = Server()
    text = "Mamba Cache is allocated. max_mamba_cache_size: 257, conv_state size: 0.46GB, ssm_state size: 13.04GB\n"
    text += "$ curl localhost:30000/server_info\n" + pretty(server.info())
    for at in MOMENTS:
        text += server.decode(at) + server.scrape(at) + json.dumps(server.loads(at)) + "\n" + server.prefill(at)
    text += 'INFO:     127.0.0.1:3000 - "POST /generate HTTP/1.1" 200 OK\n'
    facts = read(text)
    assert set(facts.formats) == {"server_info", "batch lines", "metrics", "loads"}
    assert {rank.format: rank.samples for rank in facts.ranks} == {"batch lines": 24, "metrics": 12, "loads": 12}
    assert all(rank.limit == 51 for rank in facts.ranks)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda line: "sglang-1  | " + line,
        lambda line: "\x1b[32m" + line.rstrip("\n") + "\x1b[0m\n",
        lambda line: json.dumps({"log": line, "stream": "stderr"}) + "\n",
        lambda line: line.replace("\n", "\r\n"),
        lambda line: line.replace(" TP0]", ".123 TP0]"),
        lambda line: line.replace("cuda graph", "npu graph"),  # sgl-project/sglang#30047
        lambda line: line.replace(" TP0]", ".010 PP0 TP0 EP0]"),
        lambda line: "Sep 08 00:21:09 gpu1 python3[123]: " + line,
        lambda line: "[pod/sglang-0/sglang] 2026-01-15T10:00:00.123456789Z " + line,
        lambda line: line,
    ],
    ids=["compose", "colours", "docker", "windows", "ms", "npu", "stages", "journal", "kubectl", "plain"],
)
def test_collectors(wrap: Any) -> None:
    """What a collector makes of a line does not change what it says."""
    text = "".join(wrap(Server().decode(at)) for at in MOMENTS)
    plain, found = read("".join(map(Server().decode, MOMENTS))).main, read(text).main
    assert plain is not None
    assert found is not None
    assert (found.samples, found.held, found.peaks, found.shares) == (12, 4.0, plain.peaks, plain.shares)
    packed = read_server_chunks([gzip.compress(text.encode())])
    assert packed is not None
    assert packed.main == found


DATES = (
    "%a %b %d %H:%M:%S UTC %Y",
    "%a %b %d %I:%M:%S %p UTC %Y",
    "%a, %d %b %Y %H:%M:%S +0000",
    "%Y-%m-%dT%H:%M:%S+00:00",
)


@pytest.mark.parametrize("mark", [*(f"{date}\n" for date in DATES), "==== %s ====\n", "%s\n"])
def test_scrapes_of_any_loop(mark: str) -> None:
    """What `date` prints before a scrape is its time; scrapes out of order are put in order, and a counter that a new
    start set to 0 goes on from there.
    """
    counter = (5, 5, 9, 9, 0, 0, 2, 2, 2, 3, 3, 3)
    text = [
        datetime.fromtimestamp(BEGIN + at.second, UTC).strftime(mark.replace("%s", str(BEGIN + at.second)))
        + Server().scrape(at, mark=False, retracted=count)
        for at, count in zip(MOMENTS, counter, strict=True)
    ]
    for order in (text, text[::-1], text[1::2] + text[::2]):
        facts = read("".join(order))
        assert facts.main is not None
        assert (facts.main.samples, facts.main.seconds) == (12, 11)
        assert facts.retracted == 4 + 3
        assert [point.queued for point in facts.main.points] == [moment.queued for moment in MOMENTS]


def test_the_old_answer_of_load_says_who_waits() -> None:
    """/get_load has the queue, and nothing of a pool."""
    answer = [{"dp_rank": 0, "num_reqs": 60, "num_waiting_reqs": 9, "num_tokens": 478_691}]
    assert verdict(read(json.dumps(answer) + "\n")).startswith("9 requests waited at most; which pool was short is not")


def test_chunks_of_any_size_are_one_text() -> None:
    """Where a text is cut into chunks does not matter."""
    server = Server()
    text = pretty(server.info()) + "".join(server.decode(at) + server.scrape(at) for at in MOMENTS)
    whole = read(text)
    for size in (1, 7, 4096):
        data = text.encode()
        assert read_server_chunks(data[at : at + size] for at in range(0, len(data), size)) == whole


def test_a_new_start_begins_anew() -> None:
    """What a server served before it was started again does not count, unless it never served again."""
    before, after = Server(slots=100, limit=20), Server()
    first = "".join(before.decode(Moment(second, 20, 1, 9000, 80)) for second in range(5))
    start = "[2026-01-15 10:30:00] server_args={'tp_size': 8}\n"
    start += "[2026-01-15 10:30:01 TP0] Load weight begin. avail mem=1 GB\n"
    text = first + start + "".join(map(after.decode, MOMENTS))
    facts = read(text)
    assert facts.main is not None
    assert (facts.main.samples, facts.starts, facts.main.peaks.running) == (12, 1, 51)
    assert answered(text).answer.notices[0].about == "several_boots"
    alone = read(first + start).main
    assert alone is not None
    assert alone.samples == 5


def test_two_servers_do_not_agree_on_a_size() -> None:
    """Lines of two pools without anything to tell them apart give no K."""
    text = "".join(Server(slots=k, rank="").decode(Moment(k, 10, 0, 90, 40)) for k in (60, 257))
    main = read(text).main
    assert main is not None
    assert (main.slots, main.slots_between) == (None, None)


def test_unified_memory_lines() -> None:
    """The entries give the bytes; with them everything of the buffer can be checked."""
    (pool,) = read(UNIFIED).pools
    assert (pool.state_entry_bytes, pool.kv_entry_bytes, pool.total_bytes) == (38_633_472, 12_288, 38_616_072_192)
    assert (pool.label, pool.slots, pool.requests, pool.page_size) == (1_658_616, 472, 94, 1)
    scenario = Scenario(
        model="", state_bytes_per_slot=38_633_472, conv_bytes_per_slot=884_736, kv_bytes_per_token=12_288, page_size=1,
        attention="GQA", kv_heads=1, tp_size=1, rest_gib=36.0, kv_cache_dtype="bfloat16", kv_bytes_dtype="bfloat16",
        release="0.5.22", mamba_full_memory_ratio=0.9,
    )  # fmt: skip
    found = unified(scenario, 472)
    assert (found.total_bytes, found.label) == (pool.total_bytes, pool.label)
    cut = read(UNIFIED[: UNIFIED.index("38633472") + 6]).pools
    assert [pool.state_entry_bytes for pool in cut] == [None]


def test_metrics_under_unified_memory_give_no_slots() -> None:
    """There the gauges count the slots of the whole buffer."""
    facts = read(UNIFIED + "".join(Server(slots=999).scrape(at) for at in MOMENTS))
    assert facts.slots == 472
    assert any("K is not known from them" in problem.sentence for problem in facts.problems)


def test_verdict_of_the_worked_example() -> None:
    """The sentence of a clamped server, with what runs instead at the same length."""
    server = Server()
    text = json.dumps(server.info()) + "\n"
    text += "".join(server.decode(Moment(second, 51, 9 if second < 93 else 0, 478_691, 204)) for second in range(93))
    text += "".join(server.decode(Moment(second, 40, 0, 300_000, 160)) for second in range(93, 100))
    facts = read(text)
    sizing = solve(Scenario())
    assert verdict(facts, sizing) == (
        "State pool admitted nobody 93 % of the time, KV never above 41 %: r = 2.2045 runs 74 at L = 9,216; held 4.0 "
        "slots a request, 5 reserved. Requests hold 9,281 tokens each: the L to size for, not 9,216."
    )
    rows = {row.quantity: row for row in beside(facts, sizing)}
    assert (rows["K, state slots"].why, rows["max_running_requests"].why, rows["KV tokens"].why) == ("", "", "")
    assert "the peak between prefill and decode" in rows["state slots per running request"].why
    further = serving(facts, sizing)
    assert (further.slots_held, further.slots_reserved, further.full_first) == (4.0, 5, "state")
    assert further.length_in_use == facts.length_in_use == 9281
    answer = answered(text, L=9216).answer
    assert (answer.S, answer.slots, answer.clamp, answer.runs, answer.binds) == (5, 257, 51, 51, "state")
    assert (answer.kv_tokens, answer.kv_cap) == (1_167_552, 126)


@pytest.mark.parametrize("words", ["Decode batch, ", "Retract requests. ", "Prefill batch, Decode batch, "])
def test_no_character_is_read_twice(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work grows with the text alone, also where its words stand in one line again and again."""
    seen: list[int] = []

    def note(line: str, whole: bool) -> None:
        seen.append(len(line))

    monkeypatch.setattr(batches, "_read", note)
    text = words * 5000
    assert list(batches.lines_of(text)) == []
    assert 0 < sum(seen) <= len(text)


def test_a_count_with_a_fraction_is_none() -> None:
    """Of requests, slots and tokens there are whole ones only, in a scrape as in an answer."""
    load = Server().loads(MOMENTS[0])
    load["loads"][0]["max_running_requests"] = 5.1
    answered = read(json.dumps(load) + "\n").main
    assert answered is not None
    assert answered.limit_from == "observed"
    main = read("sglang:num_running_reqs 5.1\nsglang:num_queue_reqs 2.0\n").main
    assert main is not None
    assert (main.peaks.running, main.peaks.queued) == (None, 2)


def test_nothing_is_nothing() -> None:
    """A text that says nothing of a running server gives nothing, however large or odd."""
    for text in (
        "",
        "\n",
        "hello",
        "{}",
        "[]",
        "{" * 5000,
        "[" * 5000,
        "\x00" * 99,
        "sglang:",
        "Decode batch, ",
        "9" * MAX_JSON,
    ):
        assert read_server(text) is None


KIMI = {"model": "moonshotai/Kimi-K3", "tp_size": 8}
QWEN = {"model": "Qwen/Qwen3-Next-80B-A3B-Instruct", "tp_size": 4, "kv_cache_dtype": "bfloat16"}
DEPLOYMENTS: tuple[Values, ...] = (
    {}, {"attn_dp_size": 2}, {"attn_dp_size": 2, "max_running_requests": 100}, {"pp_size": 2}, {"dcp_size": 4},
    {"disable_radix_cache": True}, {"max_running_requests": 30}, {"split": "pin", "max_mamba_cache_size": 200},
    {"mamba_ssm_dtype": "bfloat16"}, {"kv_cache_dtype": "bfloat16"}, {"kv_cache_dtype": "fp8_e4m3"},
    {"D": 4, "speculative_algorithm": "EAGLE"}, {"enable_unified_memory": True},
)  # fmt: skip


@pytest.mark.parametrize("release", RELEASES)
def test_server_info_of_every_deployment(release: Release) -> None:
    """What a solved deployment says of itself comes out again: K, S, what runs, and the change to make."""
    met = 0
    for model, more in product((KIMI, QWEN), DEPLOYMENTS):
        scenario = Scenario.model_validate({**model, "rest_gib": 40, "L": 16_384, "release": release, **more})
        flags = {name: f"--{name.replace('_', '-')}" for name in more if name not in ("D", "attn_dp_size", "split")}
        own_draft = model is QWEN  # a draft model's bytes are in no field of a server
        if not all(has_flag(release, flag) for flag in flags.values()) or ("D" in more and not own_draft):
            continue
        try:
            sizing = solve(scenario)
        except RefusedError:
            continue
        if not isinstance(sizing.now, Split):
            continue
        found = told(read_texts([[json.dumps(info_of(sizing, sizing.now)).encode()]]), None, 16_384).answer
        one, change = unified_in_force(sizing), recommended(sizing)
        chosen = one or change
        flags_to_set = chosen.flags if chosen is not None and chosen.change else None
        runs = one.runs if one else sizing.now.runs
        assert (found.slots, found.S, found.runs, found.flags) == (sizing.now.slots, sizing.S, runs, flags_to_set), more
        met += 1
    assert met >= 6


def info_of(sizing: Sizing, now: Split) -> Values:
    """The answer of /server_info of a deployment, with the arguments that its release has."""
    scenario, rules = sizing.scenario, rules_of(sizing.scenario.release)
    release, ranks = scenario.release, scenario.attn_dp_size
    tokens = now.kv_tokens if rules.prints_logical_tokens else now.kv_rows
    arguments: Values = {
        "model_path": scenario.model, "dp_size": ranks, "enable_dp_attention": ranks > 1,
        "speculative_algorithm": scenario.speculative_algorithm if scenario.D else None,
        "speculative_num_draft_tokens": scenario.D or None, "mamba_radix_cache_strategy": "auto",
        "mamba_scheduler_strategy": "auto",
        **{
            name: getattr(scenario, name)
            for name in (
                "tp_size", "pp_size", "dcp_size", "page_size", "kv_cache_dtype", "mamba_ssm_dtype",
                "disable_radix_cache", "max_running_requests", "max_mamba_cache_size", "enable_unified_memory",
            )
        },
    }  # fmt: skip
    info = Server(release, slots=now.slots, tokens=tokens, limit=now.admitted).info(**arguments)
    newer = ("dcp_size", "enable_unified_memory", "mamba_radix_cache_strategy", "mamba_scheduler_strategy")
    absent = [name for name in newer if not has_flag(release, f"--{name.replace('_', '-')}")]
    inner = {name: value for name, value in info["internal_states"][0].items() if name not in absent}
    size = (now.kv_rows + scenario.page_size) * resolution(scenario).costs.target_token / 2**30
    inner["memory_usage"]["kvcache"] = round(size, 3 if since(release, "0.5.17") else 2)
    return {name: value for name, value in info.items() if name not in absent} | {"internal_states": [inner] * ranks}
