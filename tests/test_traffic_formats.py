"""Files of every tool: a sample for each format in the form that is documented, turns, failures, buckets."""

import json
import tempfile
from collections.abc import Iterable
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sizing import Scenario
from sizing.cli.main import main
from sizing.exchange.answer import Measured
from sizing.exchange.traffic_answer import traffic_answer
from sizing.traffic.buckets import Series, histogram_of, known_of, mix_of_pair
from sizing.traffic.formats import FORMATS, SUMMARIES
from sizing.traffic.layouts import FAILURES
from sizing.traffic.mix import Mix
from sizing.traffic.prometheus import METRICS
from sizing.traffic.reading import TraceError, columns_to_name, read_trace
from sizing.traffic.running import traffic_of
from sizing.traffic.shapes import LogNormal, mix_of_shape
from sizing.traffic.trace_file import TraceFile
from tests.test_properties import examples
from tests.test_traffic_mix import alike, mixed, told
from tests.test_traffic_reading import parquet_of, refusal, run, saved

REQUESTS = [(550, 212), (1550, 98), (40, 7)]


def lines(records: Iterable[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def about(mix: Mix) -> list[str]:
    return [said.about for said in mix.said]


def aiperf(output: str) -> str:
    def record(i: int, o: int | None, at: int) -> dict[str, Any]:
        tokens = {"value": o, "unit": "tokens"}
        return {
            "metadata": {
                "session_num": at,
                "x_request_id": str(at),
                "x_correlation_id": f"c{at}",
                "conversation_id": "same",
                "turn_index": 0,
                "benchmark_phase": "profiling",
                "was_cancelled": o is None,
            },
            "metrics": {"error_isl": {"value": i, "unit": "tokens"}}
            if o is None
            else {
                "input_sequence_length": {"value": i, "unit": "tokens"},
                "inter_chunk_latency": {"value": [4.9, 5.3], "unit": "ms"},
                output: tokens,
            },
            "error": {"code": 499, "type": "RequestCancellationError", "message": "x"} if o is None else None,
        }

    return lines([record(i, o, at) for at, (i, o) in enumerate([*REQUESTS, (550, None)])])


def guidellm() -> str:
    def record(i: int, o: int | None) -> dict[str, Any]:
        return {"type_": "generative_request_stats", "request_id": "x", "prompt_tokens": i, "output_tokens": o}

    groups = [(REQUESTS[:1], [(3, None)]), (REQUESTS[1:], [])]
    return json.dumps(
        {
            "metadata": {"version": 1},
            "benchmarks": [
                {
                    "requests": {
                        "successful": [record(i, o) for i, o in fine],
                        "incomplete": [],
                        "errored": [record(i, o) for i, o in errored],
                        "total": None,
                    },
                    "metrics": {"prompt_token_count": {"successful": {"mean": 3.5}}},
                }
                for fine, errored in groups
            ],
        }
    )


def lifecycle(info: Any) -> str:
    failed = {"error_type": "ClientPayloadError", "error_msg": "x"}
    records = [*((i, o, None) for i, o in REQUESTS), (9, 0, failed)]
    return json.dumps(
        [{"start_time": 0.5, "request": "{}", "info": info(i, o), "error": error} for i, o, error in records]
    )


# One sample for each row of the table, by its name: REQUESTS and one that failed where the format tells failures.
SAMPLES = {
    "AIPerf profile export": aiperf("output_sequence_length"),
    "AIPerf profile export, output_token_count alone": aiperf("output_token_count"),
    "GuideLLM": guidellm(),
    "inference-perf": lifecycle(
        lambda i, o: {"request_metrics": {"text": {"input_tokens": i}}, "response_metrics": {"output_tokens": o}}
    ),
    "inference-perf, before requests had metrics of their own": lifecycle(
        lambda i, o: {"input_tokens": i, "output_tokens": o, "output_token_times": [0.1, 0.2]}
    ),
    "agent trace with its requests in a list": lines(
        {"id": at, "models": ["m"], "requests": [{"t": 0.0, "in": i, "out": o, "hash_ids": [at]}]}
        for at, (i, o) in enumerate(REQUESTS)
    ),
    "OpenTelemetry spans of generative AI": lines(
        {
            "name": "chat m",
            "attributes": {"gen_ai.usage.input_tokens": i, "gen_ai.usage.output_tokens": o} | error,
            "status": {"status_code": "UNSET"},
        }
        for i, o, error in [*((i, o, {}) for i, o in REQUESTS), (9, 0, {"error.type": "timeout"})]
    ),
    "Bailian": lines(
        {
            "chat_id": at,
            "parent_chat_id": at - 1,
            "turn": at + 1,
            "input_length": i,
            "output_length": o,
            "hash_ids": [1],
        }
        for at, (i, o) in enumerate(REQUESTS)
    ),
    "Mooncake sessions, as AIPerf replays them": lines(
        {"session_id": f"s{at}", "delay": at, "input_length": i, "output_length": o, "hash_ids": [at]}
        for at, (i, o) in enumerate(REQUESTS)
    ),
    "Mooncake sessions without delays": lines(
        {"session_id": f"s{at}", "timestamp": at, "input_length": i, "output_length": o}
        for at, (i, o) in enumerate(REQUESTS)
    ),
    "vLLM benchmark_serving_multi_turn": "ttft_ms,input_num_turns,input_num_tokens,output_num_tokens,conversation_id\n"
    + "".join(f"1.5,1,{i},{o},c{i}\n" for i, o in REQUESTS),
}


def otlp(spans: list[dict[str, Any]]) -> str:
    """A line of the OTLP file exporter: attributes are lists of keys and typed values."""

    def span(at: int, attributes: dict[str, Any], code: int) -> dict[str, Any]:
        kinds = {int: "intValue", str: "stringValue"}
        return {
            "traceId": "5b8e",
            "spanId": f"{at:x}",
            "name": "chat m",
            "kind": 3,
            "startTimeUnixNano": f"{1_700_000_000_000_000_000 + at * 10**9}",
            "endTimeUnixNano": f"{1_700_000_002_000_000_000 + at * 10**9}",
            "attributes": [{"key": key, "value": {kinds[type(v)]: str(v)}} for key, v in attributes.items()],
            "status": {"code": code} if code else {},
        }

    held = [span(at, one["attributes"], one["code"]) for at, one in enumerate(spans)]
    scope = {"scope": {"name": "openai"}, "spans": held}
    return lines([{"resourceSpans": [{"resource": {"attributes": []}, "scopeSpans": [scope]}]}])


def spans_of() -> list[dict[str, Any]]:
    """Model calls, one that failed, a tool, and an agent whose usage is the sum of its calls."""

    def span(operation: str, code: int = 0, **usage: int) -> dict[str, Any]:
        used = {f"gen_ai.usage.{name}": value for name, value in usage.items()}
        return {"attributes": {"gen_ai.operation.name": operation, **used}, "code": code}

    calls = [span("chat", input_tokens=i, output_tokens=o) for i, o in REQUESTS]
    http = {"attributes": {"http.request.method": "POST"}, "code": 0}
    agent = span("invoke_agent", input_tokens=9999, output_tokens=999)
    return [*calls, span("chat", 2, input_tokens=9), span("execute_tool"), agent, http]


SAMPLES |= {
    "OpenTelemetry spans of generative AI, as OTLP JSON": otlp(spans_of()),
    "Mooncake": lines(
        {"timestamp": 3000 * at, "input_length": i, "output_length": o, "hash_ids": [46, 47, at]}
        for at, (i, o) in enumerate(REQUESTS)
    ),
    "Azure 2023 and 2024": "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    + "".join(f"2023-11-16 18:17:0{at}.9799600,{i},{o}\n" for at, (i, o) in enumerate(REQUESTS)),
    "BurstGPT": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
    + "".join(
        f"{5 + 40 * at},ChatGPT,{i},{o},{i + o},Conversation log\n" for at, (i, o) in enumerate([*REQUESTS, (9, 0)])
    ),
    "BurstGPT with sessions": "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,"
    "Log Type\n"
    + "".join(
        f"{5 + 40 * at},s{at},7.5,GPT-4,{i},{o},{i + o},API log\n" for at, (i, o) in enumerate([*REQUESTS, (9, 0)])
    ),
    "LLMPerf": json.dumps(
        [
            {
                "error_code": None if o else 500,
                "error_msg": "" if o else "x",
                "ttft_s": 0.1,
                "end_to_end_latency_s": 2.5,
                "number_total_tokens": i + o,
                "number_output_tokens": o,
                "number_input_tokens": i,
            }
            for i, o in [*REQUESTS, (0, 0)]
        ]
    ),
    "Locust, a row a request": "start_time,request_type,name,response_time,input_tokens,output_tokens,exception\n"
    + "".join(f"170000000{at}.5,POST,/v1/chat/completions,2500,{i},{o},\n" for at, (i, o) in enumerate(REQUESTS))
    + "1700000009.5,POST,/v1/chat/completions,10,,,CatchResponseError()\n",
}


def conversations(turns: str, speaker: str, tokens: str) -> str:
    """ShareGPT's form, with the tokens of every message beside its text."""
    human, model = ("human", "gpt") if speaker == "from" else ("user", "assistant")
    return json.dumps(
        [
            {
                "id": f"c{at}",
                turns: [{speaker: human, "value": "x", tokens: i}, {speaker: model, "value": "y", tokens: o}],
            }
            for at, (i, o) in enumerate(REQUESTS)
        ]
    )


SAMPLES |= {
    row.name: conversations(
        *row.name.removeprefix("conversations with token counts, ").replace(" of ", " and ").split(" and ")
    )
    for row in FORMATS
    if row.speaker
}
TELLS_FAILURES = {row.name for row in FORMATS if row.failed or row.failed_lists}


def test_every_format_has_a_sample() -> None:
    """One for each row of the table, and no other."""
    assert SAMPLES.keys() == {row.name for row in FORMATS}


@pytest.mark.parametrize("name", [row.name for row in FORMATS])
def test_format(tmp_path: Path, name: str) -> None:
    """Every row of the table: lengths, and what failed."""
    path = saved(tmp_path, SAMPLES[name])
    mix = read_trace(path)
    assert alike(mix, mixed(REQUESTS))
    assert mix.failed == (1 if name in TELLS_FAILURES else 0)
    assert about(mix) == (["failed_left_out"] if mix.failed else [])
    assert columns_to_name(path) == []


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ('{"input_sequence_length": {"unit": "tokens", "avg": 5.0}}', "give the profile_export.jsonl"),
        ("Metric,avg,min,max,p99\nInput Sequence Length (tokens),5,5,5,5\n", "give the profile_export.jsonl"),
        ('{"experiments": [{"requests": [{"response_timestamps": [1, 2]}]}]}', "run it with AIPerf"),
        ('{"successes": {"count": 3, "prompt_len": {"mean": 5.0}}}', "give per_request_lifecycle_metrics.json"),
        ('{"benchmarks": [{"metrics": {"prompt_token_count": {"mean": 1}}}]}', "give the benchmarks.json"),
        ("Type,Name,Request Count,Failure Count\nPOST,/v1,5,0\n", "holds Locust's statistics"),
        ("Timestamp,User Count,Type,Name,Requests/s\n1,5,POST,/v1,0\n", "holds Locust's statistics"),
    ],
)
def test_summaries_are_refused(tmp_path: Path, content: str, wanted: str) -> None:
    """Statistics hold no requests: the file beside them does."""
    assert len(SUMMARIES) == 7
    with pytest.raises(TraceError, match=wanted) as error:
        read_trace(saved(tmp_path, content))
    assert error.value.kind == "columns"


@pytest.mark.parametrize(
    "content", ['{"messages": [{"role": "user", "content": "x"}], "output_length": 5}\n', "prompt\nx\n"]
)
def test_text_without_lengths(tmp_path: Path, content: str) -> None:
    """Which column holds it, and what to do."""
    sentence = refusal(saved(tmp_path, content))
    assert "count its tokens with the model's tokenizer" in sentence
    assert "--input-column" in sentence


def test_paths_of_nested_files(tmp_path: Path) -> None:
    """Offered where nothing is known, and named with dots; in JSON and in Parquet."""
    path = saved(tmp_path, json.dumps({"a": {"b.c": [{"x": {"fed": 5}, "y": 4, "z": "s"}, {"x": {"fed": 6}, "y": 2}]}}))
    assert columns_to_name(path) == ["a.b.c[].x.fed", "a.b.c[].y"]
    assert "“a.b.c[].x.fed”, “a.b.c[].y”" in refusal(path)
    assert alike(read_trace(path, input_column="a.b.c[].x.fed", output_column="a.b.c[].y"), mixed([(5, 4), (6, 2)]))
    assert refusal(path, input_column="a.nothing", output_column="a.b.c[].y").startswith(
        "has no column “a.nothing”: take"
    )
    parquet = parquet_of(tmp_path / "p", "SELECT {'fed': {'n': 5}, 'got': 4} AS held, [{'k': 1}] AS more")
    assert alike(read_trace(parquet, input_column="held.fed.n", output_column="held.got"), mixed([(5, 4)]))
    assert "different lists" in refusal(parquet, input_column="held.got", output_column="more[].k")


def test_lengths_by_name_within_objects(tmp_path: Path) -> None:
    """A batch of the OpenAI API: usage below response, the status above it."""
    fine = {
        "custom_id": "1",
        "response": {"status_code": 200, "body": {"usage": {"prompt_tokens": 5, "completion_tokens": 7}}},
    }
    broken = {"custom_id": "2", "response": {"status_code": 500, "body": {}}}
    mix = read_trace(saved(tmp_path, lines([fine | {"error": None}, broken | {"error": None}])))
    assert alike(mix, mixed([(5, 7)]))
    assert mix.failed == 1
    two = {"request": {"input_tokens": 5, "output_tokens": 7}, "retry": {"input_tokens": 5, "output_tokens": 7}}
    assert refusal(saved(tmp_path, json.dumps(two))).startswith("has no columns known to hold lengths: say which of")
    assert read_trace(saved(tmp_path, json.dumps({"results": [two["request"]] * 3}))).said == ()


@pytest.mark.parametrize("names", ["a,a,input,output", ",,input,output", '"","",input,output', "x,x,Input,OUTPUT"])
def test_names_before_the_lengths(tmp_path: Path, names: str) -> None:
    """A name that stands twice, or is empty, moves nothing."""
    assert told(read_trace(saved(tmp_path, f"{names}\n1,2,300,40\n")).lengths) == {340: 1}


@given(st.lists(st.sampled_from(["", "a", "b", "ts"]), max_size=6), st.lists(st.sampled_from(["", "a"]), max_size=3))
@examples(10)
def test_any_header(before: list[str], between: list[str]) -> None:
    """Wherever the lengths stand, their own columns are read."""
    names = [*before, "input", *between, "output", "a"]
    row = [300 if name == "input" else 40 if name == "output" else at for at, name in enumerate(names)]
    with tempfile.TemporaryDirectory() as folder:
        path = saved(Path(folder), f"{','.join(names)}\n{','.join(map(str, row))}\n")
        assert told(read_trace(path).lengths) == {340: 1}


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("input,input,output", {}),
        ("Input,input,output", {}),
        ("input,output,count,count", {}),
        ("x,x,y", {"input_column": "x", "output_column": "y"}),
        ("x,x,y", {"length_column": "x"}),
    ],
)
def test_a_length_that_stands_twice(tmp_path: Path, header: str, columns: dict[str, str]) -> None:
    """Which of the two is meant is not known."""
    path = saved(tmp_path, f"{header}\n{','.join('1' for _ in header.split(','))}\n")
    assert refusal(path, **columns).endswith("twice, and which one holds the lengths is not known: rename one.")
    with pytest.raises(TraceError) as error:
        read_trace(path, **columns)  # type: ignore[arg-type]
    assert error.value.kind == "columns"


BAD = {"filled": "timeout", "true": "True", "false": "false", "status": "failed", "code": "503"}  # by name
GOOD = {"filled": ("", "null", "None", "0"), "true": ("false", ""), "false": ("true", ""), "status": ("ok", "200"),
        "code": ("200", "")}  # fmt: skip


@pytest.mark.parametrize("name", FAILURES)
def test_failures_by_name(tmp_path: Path, name: str) -> None:
    """What marks a request as failed; its lengths may be missing."""
    sign = FAILURES[name]
    good = "".join(f"10,2,{mark}\n" for mark in GOOD[sign])
    mix = read_trace(saved(tmp_path, f"input,output,{name}\n{good},,{BAD[sign]}\n5,5,{BAD[sign]}\n"))
    assert told(mix.lengths) == {12: len(GOOD[sign])}
    assert (mix.failed, about(mix)) == (2, ["failed_left_out"])
    assert refusal(saved(tmp_path, f"input,output,{name}\n,,{BAD[sign]}\n")) == (
        "holds no request that succeeded: give a run that did."
    )
    sentence = refusal(saved(tmp_path, f"input,output,{name}\n,,{BAD[sign]}\n1,x,{GOOD[sign][0]}\n"))
    assert sentence.startswith("has “x” as “output” in row 3")


@pytest.mark.parametrize(
    ("more", "failed"),
    [
        ({"completed": 2, "total_input_tokens": 30}, 1),
        ({"completed": 2}, 1),
        ({"completed": 3, "total_input_tokens": 35}, 0),
        ({}, 0),
        ({"successes": [True, True, False]}, 1),
        ({"errors": [None, None, "x"]}, 1),
        ({"errors": [None, "x", None], "completed": 1, "total_input_tokens": 10}, 2),
        ({"errors": ["", "", ""], "completed": 2, "total_input_tokens": 30}, 1),
        ({"errors": ["", "", ""], "completed": 2, "total_input_tokens": 7}, 0),
    ],
)
def test_failures_by_totals(tmp_path: Path, more: dict[str, Any], failed: int) -> None:
    """By successes and errors, else by what the run's own totals leave out."""
    mix = read_trace(saved(tmp_path, json.dumps({"input_lens": [10, 20, 5], "output_lens": [3, 4, 0], **more})))
    assert (mix.failed, mix.requests) == (failed, 3 - failed)
    assert ("no_output" in about(mix)) == (failed == 0)


@pytest.mark.parametrize("more", [{"completed": 1}, {"completed": 2, "total_input_tokens": 25}])
def test_failures_that_are_not_told(tmp_path: Path, more: dict[str, Any]) -> None:
    """Totals that say how many failed and not which."""
    sentence = refusal(saved(tmp_path, json.dumps({"input_lens": [10, 20, 5], "output_lens": [3, 4, 0], **more})))
    assert sentence.startswith(f"run 1 completed {more['completed']} of its 3 requests and does not say which failed")


def turned(sessions: dict[str, list[tuple[int, int]]], *, hashes: bool = False, **more: Any) -> str:
    """Rows of sessions, one turn of each after the other."""
    rows = [(name, at, i, o) for name, turns in sessions.items() for at, (i, o) in enumerate(turns)]
    rows.sort(key=lambda row: row[1])
    return lines(
        {"session_id": name, "input_tokens": i, "output_tokens": o}
        | ({"hash_ids": [name, *range(at)]} if hashes else {})
        | dict.fromkeys(more, at)
        for name, at, i, o in rows
    )


@given(
    st.dictionaries(
        st.sampled_from("abcdef"),
        st.lists(st.tuples(st.integers(1, 5000), st.integers(0, 900)), min_size=1, max_size=6),
    ).filter(bool)
)
@examples(10)
def test_contexts_of_turns(sessions: dict[str, list[tuple[int, int]]]) -> None:
    """What turns add and the whole contexts are the same requests, mixed among each other or not."""
    whole = {
        name: [(end - o, o) for end, (_, o) in zip(accumulate(i + o for i, o in turns), turns, strict=True)]
        for name, turns in sessions.items()
    }
    wanted = mixed([turn for turns in whole.values() for turn in turns])
    with tempfile.TemporaryDirectory() as held:
        folder = Path(held)
        assert alike(read_trace(saved(folder, turned(sessions)), turns="added"), wanted)
        assert alike(read_trace(saved(folder, turned(whole))), wanted)
        found = read_trace(saved(folder, turned(whole, hashes=True)))
        assert alike(found, wanted)
        assert found.said == read_trace(saved(folder, turned(whole)), turns="whole").said


def test_turns_that_hold_what_they_add(tmp_path: Path) -> None:
    """Known by their numbers, by the format, or by blocks that do not go on."""
    falling = {"a": [(500, 10), (40, 20)], "b": [(300, 5), (30, 6), (20, 1)]}
    for content in (
        turned(falling, turn=True),
        lines(
            {"session_id": s, "input_length": i, "output_length": o} for s, turns in falling.items() for i, o in turns
        ),
        lines({"turns": [{"input_tokens": i, "output_tokens": o} for i, o in turns]} for turns in falling.values()),
        json.dumps({"sessions": [{"turns": [{"isl": i, "osl": o} for i, o in turns]} for turns in falling.values()]}),
    ):
        mix = read_trace(saved(tmp_path, content))
        assert about(mix) == ["multi_turn"]
        assert "what came before plus what it adds" in mix.note
        assert told(mix.lengths) == {510: 1, 570: 1, 305: 1, 341: 1, 362: 1}
        assert alike(
            read_trace(saved(tmp_path, content), turns="whole"), mixed([t for s in falling.values() for t in s])
        )


@pytest.mark.parametrize(
    ("sessions", "why"),
    [
        ({"a": [(500, 10), (500, 20)], "b": [(300, 5), (300, 6)]}, "carry the same input"),
        ({"a": [(500, 90), (520, 20), (100, 5), (130, 9)], "b": [(300, 5), (301, 6)]}, "cannot be told"),
    ],
)
def test_turns_of_which_it_cannot_be_told(tmp_path: Path, sessions: dict[str, Any], why: str) -> None:
    """Taken as they stand, and called a lower bound."""
    mix = read_trace(saved(tmp_path, turned(sessions)))
    assert alike(mix, mixed([turn for turns in sessions.values() for turn in turns]))
    assert about(mix) == ["multi_turn"]
    assert why in mix.note
    assert "lower bound" in mix.note


def test_turns_that_add_more_and_more(tmp_path: Path) -> None:
    """Longer inputs show whole contexts, except where the format says that they are added."""
    rows = [{"session_id": "a", "input_length": i, "output_length": 5} for i in (100, 300)]
    delayed = [row | {"delay": 2000} for row in rows]
    blocks = [row | {"hash_ids": [at]} for at, row in enumerate(rows)]
    for content, second in (
        (rows, 305),
        (delayed, 410),
        (blocks, 410),
        ([row | {"hash_ids": [7]} for row in delayed], 305),
    ):
        assert told(read_trace(saved(tmp_path, lines(content))).lengths) == {105: 1, second: 1}


def test_sessions_of_one_request_are_no_turns(tmp_path: Path) -> None:
    """Nor are rows without a session, or a histogram."""
    assert read_trace(saved(tmp_path, turned({"a": [(5, 5)], "b": [(4, 4)]}))).note == ""
    assert read_trace(saved(tmp_path, "session_id,input,output\n,5,5\n,4,4\n")).note == ""
    assert read_trace(saved(tmp_path, "session_id,input,output,count\na,5,5,2\na,4,4,1\n")).note == ""


def test_a_session_that_outgrows_every_request(tmp_path: Path) -> None:
    """What adds up beyond the longest request is no addition."""
    sentence = refusal(saved(tmp_path, turned({"a": [(2**23, 9), (2**23, 9)]})), turns="added")
    assert sentence.startswith("adds up to a context of 16,777,234 tokens in one session")


def test_rounds_that_carry_the_first_length(tmp_path: Path) -> None:
    """A chat benchmark of conversations, before rounds had lengths of their own."""
    rounds = run([10, 10, 700, 700], [2, 3, 5, 50], backend="sglang-oai-chat")
    mix = read_trace(saved(tmp_path, rounds))
    assert about(mix) == ["multi_turn"]
    assert "lower bound" in mix.note
    assert read_trace(saved(tmp_path, run([10, 14, 700, 760], [2, 3, 5, 50], backend="sglang-oai-chat"))).note == ""
    assert read_trace(saved(tmp_path, run([10, 10, 700, 700], [2, 3, 5, 50], backend="sglang"))).note == ""
    assert read_trace(saved(tmp_path, run([10, 10, 10, 10], [2, 3, 5, 50], backend="vllm-chat"))).note == ""


def test_rounds_whose_lengths_the_server_counted(tmp_path: Path) -> None:
    """SGLang's bench_serving from 0.5.21 on: each round holds its whole context, and nothing warns."""
    inputs, outputs = [900, 1300, 1700, 400, 700, 1000], [200] * 6
    run = {"backend": "sglang-oai-chat", "input_lens": inputs, "output_lens": outputs, "errors": [""] * 6}
    mix = read_trace(saved(tmp_path, json.dumps(run)))
    assert alike(mix, mixed(list(zip(inputs, outputs, strict=True))))
    assert (mix.said, mix.at_least) == ((), False)


def scrape(name: str, buckets: dict[str, int], total: float, labels: str = "") -> str:
    """A histogram in Prometheus' text."""
    rows = [f'{name}_bucket{{le="{le}"{labels}}} {count}.0' for le, count in buckets.items()]
    of = f"{{{labels.strip(',')}}}" if labels else ""
    return "\n".join(
        [f"# TYPE {name} histogram", f"{name}_sum{of} {total}", *rows, f"{name}_count{of} {buckets['+Inf']}.0", ""]
    )


INPUTS, OUTPUTS = {"100.0": 40, "1000.0": 310, "5000.0": 480, "+Inf": 500}, {"100.0": 200, "1000.0": 490, "+Inf": 500}


@pytest.mark.parametrize("name", METRICS)
def test_histograms_of_servers(tmp_path: Path, name: str) -> None:
    """Counts are cumulative; means are exact, and quantiles lie in a bucket."""
    text = scrape(name, INPUTS, 1.234e6, ',model_name="a, \\"b\\" } c"') + scrape(METRICS[name], OUTPUTS, 150000)
    mix = read_trace(saved(tmp_path, "# HELP other x\n# TYPE other counter\nother 3\n" + text))
    assert (mix.requests, about(mix)) == (500, ["buckets"])
    assert [counts.mean for counts in mix.parts.values()] == [2468, 300, 2768]
    assert mix.buckets is not None
    known = mix.buckets.known
    assert [known[part].mean for part in ("input", "output", "total")] == [2468, 300, 2768]
    assert known["input"].quantiles[0.5][1:] == (101, 1000)
    assert known["output"].quantiles[0.95][1:] == (101, 1000)
    for bound in mix.buckets.bounds:
        assert [counts.mean for counts in bound.parts.values()] == [2468, 300, 2768]


def test_several_series_and_scrapes(tmp_path: Path) -> None:
    """Engines are added up, scrapes are differenced; a server that started anew counts from there."""
    name = "sglang:prompt_tokens_histogram"
    first = scrape(name, {"10.0": 1, "+Inf": 2}, 30) + scrape(METRICS[name], {"10.0": 2, "+Inf": 2}, 9)
    later = scrape(name, {"10.0": 4, "+Inf": 9}, 330) + scrape(METRICS[name], {"10.0": 9, "+Inf": 9}, 29)
    mix = read_trace(saved(tmp_path, first + later))
    assert (mix.requests, mix.parts["input"].mean, "2 scrapes" in mix.note) == (7, 300 / 7, True)
    mix = read_trace(saved(tmp_path, later + first))
    assert (mix.requests, mix.parts["input"].mean, "started anew" in mix.note) == (2, 15, True)
    labels = [f',engine="{engine}",model_name="{engine}"' for engine in "01"]
    both = [scrape(name, INPUTS, 1.234e6, one) + scrape(METRICS[name], OUTPUTS, 150000, one) for one in labels]
    mix = read_trace(saved(tmp_path, "".join(both)))
    assert (mix.requests, mix.parts["input"].mean, "2 models" in mix.note) == (1000, 2468, True)


def test_the_api_of_prometheus(tmp_path: Path) -> None:
    """A vector, and a matrix over time."""
    counts = (("request_prompt_tokens", "10"), ("request_generation_tokens", "5"))

    def answer(kind: str, key: str, values: Any) -> str:
        result = [
            {"metric": {"__name__": f"vllm:{name}_bucket", "le": le, "job": "x"}, key: values("3")}
            for name, bound in counts
            for le in (bound, "+Inf")
        ]
        return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}})

    for content in (
        answer("vector", "value", lambda count: [1.5, count]),
        answer("matrix", "values", lambda count: [[1, "0"], [2, count]]),
    ):
        mix = read_trace(saved(tmp_path, content))
        assert (mix.requests, about(mix)) == (3, ["buckets"])
        assert mix.buckets is not None
        assert mix.buckets.known["input"].quantiles[0.95][1:] == (1, 10)


def test_tables_of_buckets(tmp_path: Path) -> None:
    """One length, two, or by name."""
    one = read_trace(saved(tmp_path, "le,count\n10,2\n20,5\n+Inf,5\n"))
    assert (one.requests, about(one), one.inputs) == (5, ["buckets"], None)
    assert one.buckets is not None
    assert one.buckets.known["total"].quantiles[0.5][1:] == (11, 20)
    two = read_trace(saved(tmp_path, "le,prompt_tokens,completion_tokens\n10,2,3\n20,5,5\n+Inf,5,5\n"))
    assert (two.requests, list(two.parts)) == (5, ["input", "output", "input + output"])
    rows = "".join(f"{name}_bucket,{le},5\n" for name in next(iter(METRICS.items())) for le in ("10", "+Inf"))
    assert read_trace(saved(tmp_path, f"name,le,value\n{rows}")).requests == 5


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("le,count\n100,40\n1000,310\n+Inf,500\n", "has 190 of its 500 requests beyond the last bound of 1000"),
        ("le,count\n100,40\n1000,30\n+Inf,500\n", "and the counts of le are cumulative: add up"),
        ("le,count\n100,40\n1000,300\n", "has no bucket +Inf of requests"),
        ("le,count\n100,0\n+Inf,0\n", "counts no requests"),
        ("le,count\n100,1.5\n+Inf,2\n", "give whole counts"),
        ("le,count\n100,x\n+Inf,2\n", "both must be numbers"),
        ("le,count\n100,1\n100,1\n+Inf,2\n", "has the bound le = 100 twice"),
        ("le,count,count\n100,1,1\n+Inf,2,2\n", "names the column “count” twice"),
        ("le,x\n100,1\n", "has the bounds le and no counts"),
        ("le,count\n", "holds no buckets"),
        ("# TYPE a histogram\na_bucket{le=\"1\"} 5\n", "its histograms are “a”: give the /metrics"),
        ("# TYPE a counter\na 5\n", "it has no histogram"),
        (scrape("vllm:request_prompt_tokens", INPUTS, 5e5), "and not “vllm:request_generation_tokens”"),
        (scrape("vllm:request_prompt_tokens", INPUTS, 5) + scrape("vllm:request_generation_tokens", OUTPUTS, 150000),
         "which its buckets cannot have"),
    ],
)  # fmt: skip
def test_buckets_that_are_refused(tmp_path: Path, content: str, wanted: str) -> None:
    """What is wrong with them, and what to give."""
    assert wanted in refusal(saved(tmp_path, content))


FILE = TraceFile("/x", "x", "metrics", packed=False, size=1, head="")


@given(
    st.lists(st.tuples(st.integers(1, 9000), st.integers(0, 2000)), min_size=1, max_size=60),
    st.sets(st.integers(1, 9000), min_size=1, max_size=6),
)
@examples(60)
def test_buckets_hold_the_truth(pairs: list[tuple[int, int]], bounds: set[int]) -> None:
    """Quantiles lie in their bands, and what stands for the requests has their counts and sums."""
    found = []
    for at in (0, 1):
        lengths = sorted(pair[at] for pair in pairs)
        edges = [*map(float, sorted(bounds)), float("inf")]
        cumulative = {le: float(sum(length <= le for length in lengths)) for le in edges}
        found.append(histogram_of(FILE, [Series(cumulative, float(sum(lengths)))], "x", 1 - at))
        for share, (value, low, high) in known_of(found[at]).quantiles.items():
            rank = -(-Fraction(share).limit_denominator(100) * len(lengths) // 1)
            assert high is not None
            assert low <= lengths[int(rank) - 1] <= high
            assert low <= value <= high
    mix = mix_of_pair(FILE, *found)
    assert mix.buckets is not None
    for one in (mix, *mix.buckets.bounds):
        for at, part in enumerate(("input", "output")):
            counts = one.parts[part]
            assert counts.total == len(pairs)
            assert int(counts.values @ counts.counts) == sum(pair[at] for pair in pairs)
            for le in bounds:
                assert counts.counts[counts.values <= le].sum() == sum(pair[at] <= le for pair in pairs)


def answered(mix: Mix, **scenario: Any) -> Any:
    return traffic_answer(traffic_of(Scenario.model_validate(scenario), mix, 0.01))


def test_answer_of_requests() -> None:
    """Statistics exact, and what runs as the page says."""
    answer = answered(mixed([(100 * n, n) for n in range(1, 201)]))
    total = [101 * n for n in range(1, 201)]
    assert answer.lengths.total.model_dump() == {
        "mean": sum(total) / 200,
        "p50": total[99],
        "p95": total[189],
        "p99": total[197],
    }
    assert (answer.requests, answer.failed, answer.L) == (200, 0, sum(total) / 200)
    assert answer.status == 0
    assert answer.flags == (f"--max-mamba-cache-size {answer.best.pin}",)


def test_answer_of_a_shape() -> None:
    """Lengths of what is made up, and no requests that were counted."""
    answer = answered(mix_of_shape("chat", LogNormal()))
    assert (answer.requests, answer.failed) == (None, None)
    assert answer.lengths.input.p95 == 2345


def test_answer_of_turns(tmp_path: Path) -> None:
    """A lower bound is said in the first line."""
    answer = answered(read_trace(saved(tmp_path, turned({"a": [(500, 10), (500, 20)]}))))
    assert answer.words.endswith("The lengths of its turns are a lower bound.")
    assert [notice.about for notice in answer.notices] == ["multi_turn"]


def test_answer_of_buckets(tmp_path: Path) -> None:
    """Bands where the numbers rest on buckets."""
    name = next(iter(METRICS))
    path = saved(tmp_path, scrape(name, INPUTS, 1.234e6) + scrape(METRICS[name], OUTPUTS, 150000))
    answer = answered(read_trace(path), split="pin", max_mamba_cache_size=500)
    assert answer.binds == "kv"
    assert isinstance(answer.runs, Measured)
    assert (answer.L, answer.lengths.total.p50, answer.lengths.input.mean) == (2768, None, 2468)
    assert answer.lengths.input.p50 == Measured(value=answer.lengths.input.p50.value, low=101, high=1000)
    unsummed = answered(read_trace(saved(tmp_path, "le,count\n1000,2\n2000,5\n+Inf,5\n")))
    assert unsummed.L.model_dump() == {"value": 1100.4, "low": 601, "high": 1600}
    assert unsummed.best is None
    assert set(unsummed.unknown) == {"best", "flags"}


@pytest.mark.parametrize(
    ("content", "options", "kind"),
    [
        ("a,b\n1,2\n", [], "columns"),
        ("", [], "unreadable"),
        ("input,output\n1,-2\n", [], "unreadable"),
        (",".join(f"c{at}" for at in range(1001)), [], "too_large"),
        ("a,b\n300,40\n", ["--input-column", "a", "--output-column", "b"], None),
        (turned({"a": [(500, 10), (500, 20)]}), ["--turns", "added"], None),
    ],
)
def test_answer_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, options: list[str], kind: str | None
) -> None:
    """One object with the answer, also for a trace that is refused."""
    files = [str(saved(tmp_path, "{}", "scenario.json")), str(saved(tmp_path, content))]
    status = main(["traffic", *files, *options, "--json"])
    answer = json.loads(capsys.readouterr().out)["answer"]
    assert status == (2 if kind else 0)
    assert (answer["refused"] or {}).get("kind") == kind
    assert (answer["runs"] is None) == (kind is not None)
    assert (answer["lengths"] is None) == (kind is not None)


def test_a_nested_file_that_breaks_off(tmp_path: Path) -> None:
    """Said as of any other JSON."""
    content = aiperf("output_sequence_length") * 100 + '{"metadata": {}, "metrics": '
    assert refusal(saved(tmp_path, content)) == "breaks off within an object: write it again, or remove its end."


def test_arrays_of_masked_turns(tmp_path: Path) -> None:
    """Rows that name no session stand for themselves beside those that do."""
    rows = [{"session_id": "a", "input_tokens": 500, "output_tokens": 5}, {"input_tokens": 7, "output_tokens": 1}]
    rows.append({"session_id": "a", "input_tokens": 40, "output_tokens": 5})
    mix = read_trace(saved(tmp_path, lines(rows)), turns="added")
    assert told(mix.lengths) == {505: 1, 8: 1, 550: 1}
    assert np.all(mix.lengths.counts == 1)


def test_conversations_of_messages(tmp_path: Path) -> None:
    """Each answer is a request, with all that stands before it in its conversation as its input."""
    talks = [[(12, 50), (7, 30), (0, 4)], [(900, 2)]]
    content = json.dumps(
        [
            {
                "conversations": [
                    {"from": "system", "tokens": 100},
                    *(
                        {"from": who, "value": "x", "tokens": n}
                        for i, o in talk
                        for who, n in (("human", i), ("gpt", o))
                    ),
                ]
            }
            for talk in talks
        ]
    )
    mix = read_trace(saved(tmp_path, content))
    assert alike(mix, mixed([(112, 50), (169, 30), (199, 4), (1000, 2)]))
    assert "all that stands before it" in mix.note
    only = json.dumps([{"conversations": [{"from": "human", "tokens": 5}]}])
    assert refusal(saved(tmp_path, only)).startswith("holds no answer of a model")


def test_spans_of_a_session(tmp_path: Path) -> None:
    """OTLP in several lines, its turns linked by gen_ai.conversation.id."""
    spans = [
        {
            "attributes": {
                "gen_ai.operation.name": "chat",
                "gen_ai.conversation.id": "a",
                "gen_ai.usage.input_tokens": i,
                "gen_ai.usage.output_tokens": 5,
            },
            "code": 0,
        }
        for i in (100, 250)
    ]
    mix = read_trace(saved(tmp_path, otlp(spans[:1]) + otlp(spans[1:])))
    assert told(mix.lengths) == {105: 1, 255: 1}
    assert "Rows are turns of 1 session" in mix.note
