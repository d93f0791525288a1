"""The formats of files with a record a request, one row each: how it is known, and where what counts stands in it.

Paths are dotted; [] is a list of records. Read where it is documented: docs/tutorials/working-with-profile-exports.md
and docs/benchmark-modes/trace-replay.md of ai-dynamo/aiperf; src/guidellm/schemas/request_stats.py of
vllm-project/guidellm; inference_perf/reportgen/base.py of kubernetes-sigs/inference-perf; the README of
alibaba-edu/qwen-bailian-usagetraces-anon; opentelemetry/proto/trace/v1/trace.proto of
open-telemetry/opentelemetry-proto, as JSON, and the semantic conventions for generative AI; the README of
HPMLL/BurstGPT; RequestStats in benchmarks/multi_turn/benchmark_serving_multi_turn.py of vllm-project/vllm; the request
event of locustio/locust.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from sizing.traffic.duckdb_file import Place
from sizing.traffic.layouts import (
    ENDS,
    FAILURES,
    HASHES,
    SESSIONS,
    STARTS,
    TOOK,
    TURNS,
    Columns,
    Sign,
    first,
    guess,
    missing_details,
    plain_name,
    timed,
)

Context = Literal["whole", "added", "added unless they grow", "by the lengths"]
_TURN_LISTS = tuple(f'"{name}"[*]' for name in ("turns", "rounds", "conversation", "conversations", "dialog", "steps"))
_NUMBERS = ("UBIGINT", "BIGINT", "DOUBLE", "HUGEINT", "UHUGEINT")


class Format(NamedTuple):
    """One way to write a record a request."""

    name: str
    known_by: tuple[str, ...]
    """Paths that it has, all of them."""
    input: str = ""
    output: str = ""
    failed: tuple[tuple[str, Sign], ...] = ()
    """Where a failed request is told by."""
    failed_lists: tuple[str, ...] = ()
    """Lists of requests that failed, beside the list of those that did not."""
    session: tuple[str, ...] = ()
    """What links turns; the first that there is."""
    turn: str = ""
    hashes: str = ""
    turns_in_list: bool = False
    """Whether the records of one list are the turns of a session."""
    context: Context = "by the lengths"
    """What a turn's input is: the whole context, what the turn adds, or not said, so that its length has to show it."""
    start: str = ""
    end: str = ""
    took: str = ""
    """When a request came, when it ended, or how long it took."""
    seconds: float | None = None
    """The unit of these [s]; None where their names say it, or dates do."""
    only: tuple[str, tuple[str, ...]] = ("", ())
    """What tells requests from other records, and its values for requests; one without it is a request by its input."""
    speaker: str = ""
    """Where records are messages, who speaks; the words of an answer are in ANSWERS."""


ANSWERS = ("assistant", "gpt", "model", "bot", "chatgpt", "ai")
# gen_ai.operation.name of the spans that are a model's calls; those of agents hold the sum of their calls.
_CALLS = ("chat", "text_completion", "generate_content")
_SPAN = "resourceSpans[].scopeSpans[].spans[]"

_AIPERF = Format(
    "AIPerf profile export",
    ("metrics.input_sequence_length.value", "metrics.output_sequence_length.value"),
    "metrics.input_sequence_length.value",
    "metrics.output_sequence_length.value",
    (("error", "filled"), ("metadata.was_cancelled", "true")),
    session=("metadata.x_correlation_id", "metadata.conversation_id"),
    turn="metadata.turn_index",
    start="metadata.request_start_ns",
    end="metadata.request_end_ns",
)

_MOONCAKE = Format(
    "Mooncake sessions, as AIPerf replays them",
    ("session_id", "delay", "input_length", "output_length"),
    "input_length",
    "output_length",
    session=("session_id",),
    hashes="hash_ids",
    context="added",
)

# "some failure that Response tokens are 0s" (README of HPMLL/BurstGPT). Times are seconds from the first day.
_BURSTGPT = Format(
    "BurstGPT",
    ("Timestamp", "Model", "Request tokens", "Response tokens", "Log Type"),
    "Request tokens",
    "Response tokens",
    (("Response tokens", "zero"),),
    start="Timestamp",
    seconds=1.0,
)

FORMATS = (
    _AIPERF,
    _AIPERF._replace(
        name="AIPerf profile export, output_token_count alone",
        known_by=("metrics.input_sequence_length.value", "metrics.output_token_count.value"),
        output="metrics.output_token_count.value",
    ),
    Format(
        "GuideLLM",
        ("benchmarks[].requests.successful[].prompt_tokens", "benchmarks[].requests.successful[].output_tokens"),
        "benchmarks[].requests.successful[].prompt_tokens",
        "benchmarks[].requests.successful[].output_tokens",
        failed_lists=("benchmarks[].requests.errored[]", "benchmarks[].requests.incomplete[]"),
        start="benchmarks[].requests.successful[].request_start_time",
        end="benchmarks[].requests.successful[].request_end_time",
    ),
    Format(
        "inference-perf",
        ("info.request_metrics.text.input_tokens", "info.response_metrics.output_tokens"),
        "info.request_metrics.text.input_tokens",
        "info.response_metrics.output_tokens",
        (("error", "filled"),),
        session=("info.session_id",),
        start="start_time",
        end="end_time",
        seconds=1.0,
    ),
    Format(
        "inference-perf, before requests had metrics of their own",
        ("info.input_tokens", "info.output_tokens"),
        "info.input_tokens",
        "info.output_tokens",
        (("error", "filled"),),
        start="start_time",
        end="end_time",
        seconds=1.0,
    ),
    Format(
        "agent trace with its requests in a list",
        ("requests[].in", "requests[].out"),
        "requests[].in",
        "requests[].out",
        hashes="requests[].hash_ids",
        turns_in_list=True,
    ),
    Format(
        "OpenTelemetry spans of generative AI",
        ("attributes.gen_ai.usage.input_tokens", "attributes.gen_ai.usage.output_tokens"),
        "attributes.gen_ai.usage.input_tokens",
        "attributes.gen_ai.usage.output_tokens",
        (("attributes.error.type", "filled"), ("status.status_code", "status")),
        session=("attributes.gen_ai.conversation.id",),
        start="start_time",
        end="end_time",
        only=("attributes.gen_ai.operation.name", _CALLS),
    ),
    Format(
        "OpenTelemetry spans of generative AI, as OTLP JSON",
        (f"{_SPAN}.attributes[].key", f"{_SPAN}.startTimeUnixNano"),
        f"{_SPAN}.attributes{{gen_ai.usage.input_tokens}}",
        f"{_SPAN}.attributes{{gen_ai.usage.output_tokens}}",
        ((f"{_SPAN}.attributes{{error.type}}", "filled"), (f"{_SPAN}.status.code", "span")),
        session=(f"{_SPAN}.attributes{{gen_ai.conversation.id}}",),
        start=f"{_SPAN}.startTimeUnixNano",
        end=f"{_SPAN}.endTimeUnixNano",
        only=(f"{_SPAN}.attributes{{gen_ai.operation.name}}", _CALLS),
    ),
    *(
        Format(
            f"conversations with token counts, {turns} of {speaker} and {tokens}",
            (f"{turns}[].{speaker}", f"{turns}[].{tokens}"),
            f"{turns}[].{tokens}",
            speaker=f"{turns}[].{speaker}",
        )
        for turns, speaker in (("conversations", "from"), ("conversation", "role"), ("messages", "role"))
        for tokens in ("tokens", "num_tokens", "token_count", "n_tokens", "length")
    ),
    Format(
        "Bailian",
        ("chat_id", "parent_chat_id", "input_length", "output_length"),
        "input_length",
        "output_length",
        session=("chat_id",),
        context="whole",
        start="timestamp",
        seconds=1.0,
    ),
    _MOONCAKE,
    _MOONCAKE._replace(
        name="Mooncake sessions without delays",
        known_by=("session_id", "input_length", "output_length"),
        context="added unless they grow",
    ),
    Format(
        "vLLM benchmark_serving_multi_turn",
        ("conversation_id", "input_num_turns", "input_num_tokens", "output_num_tokens"),
        "input_num_tokens",
        "output_num_tokens",
        session=("conversation_id",),
        turn="input_num_turns",
        context="whole",
        start="start_time_ms",
        took="latency_ms",
    ),
    Format(
        "Mooncake",
        ("timestamp", "input_length", "output_length", "hash_ids"),
        "input_length",
        "output_length",
        context="whole",
        start="timestamp",
        seconds=1e-3,
    ),
    Format(
        "Azure 2023 and 2024",
        ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
        "ContextTokens",
        "GeneratedTokens",
        start="TIMESTAMP",
    ),
    _BURSTGPT._replace(
        name="BurstGPT with sessions",
        known_by=(*_BURSTGPT.known_by, "Session ID", "Elapsed time"),
        session=("Session ID",),
        took="Elapsed time",
    ),
    _BURSTGPT,
    Format(
        "LLMPerf",
        ("number_input_tokens", "number_output_tokens", "error_code", "end_to_end_latency_s"),
        "number_input_tokens",
        "number_output_tokens",
        (("error_code", "filled"), ("error_msg", "filled")),
        took="end_to_end_latency_s",
    ),
    Format(
        "Locust, a row a request",
        ("request_type", "name", "response_time", "input_tokens", "output_tokens"),
        "input_tokens",
        "output_tokens",
        (("exception", "filled"),),
        start="start_time",
        took="response_time",
        seconds=1e-3,
    ),
)

# Files of statistics, which hold no request: what they are known by, and what to give instead.
SUMMARIES = (
    (
        ("input_sequence_length.avg",),
        "holds the summary of an AIPerf or GenAI-Perf run and not its requests: give the profile_export.jsonl beside "
        "it, which has one record a request.",
    ),
    (
        ("Metric", "avg", "p99"),
        "holds the summary of an AIPerf or GenAI-Perf run and not its requests: give the profile_export.jsonl beside "
        "it, which has one record a request.",
    ),
    (
        ("experiments[].requests[].response_timestamps",),
        "holds GenAI-Perf's times and texts and no lengths in tokens: run it with AIPerf and give its "
        "profile_export.jsonl, or give one row a request with the columns input and output.",
    ),
    (
        ("successes.prompt_len.mean",),
        "holds the summary of an inference-perf run and not its requests: give per_request_lifecycle_metrics.json, "
        "which report.request_lifecycle.per_request: true writes.",
    ),
    (
        ("Type", "Name", "Request Count", "Failure Count"),
        "holds Locust's statistics and not its requests: write a row in its request event for each, with the columns "
        "input_tokens and output_tokens.",
    ),
    (
        ("Timestamp", "User Count", "Type", "Name", "Requests/s"),
        "holds Locust's statistics and not its requests: write a row in its request event for each, with the columns "
        "input_tokens and output_tokens.",
    ),
    (
        ("benchmarks[].metrics.prompt_token_count",),
        "holds GuideLLM's statistics and not its requests: give the benchmarks.json that has them.",
    ),
)

# Text in place of lengths: of AIPerf's and ShareGPT's conversations, and of prompts in general.
TEXTS = ("messages", "conversations", "conversation", "turns", "prompt", "text_input", "text", "payload", "payloads")


class Clock(NamedTuple):
    """Where a time stands, and its unit [s]; None where dates or their size say it."""

    place: Place
    unit: float | None


class Plan(NamedTuple):
    """What is read of a file: where each thing stands; None where it does not."""

    input: Place
    """Input + output where `output` is None."""
    output: Place | None = None
    times: Place | None = None
    named: tuple[str, ...] = ()
    """What sentences call the columns of the above."""
    failed: tuple[tuple[Place, Sign], ...] = ()
    failed_lists: tuple[Place, ...] = ()
    session: Place | None = None
    session_name: str = ""
    turn: Place | None = None
    hashes: Place | None = None
    turns_in_list: bool = False
    context: Context = "by the lengths"
    start: Clock | None = None
    end: Clock | None = None
    took: Clock | None = None
    only: Place | None = None
    calls: tuple[str, ...] = ()
    speaker: Place | None = None


def plan_of(columns: Columns, places: Mapping[str, Place]) -> Plan:
    """A plan for columns known by name, with what stands beside them in the same record."""
    named = tuple(name for name in columns if name is not None)
    start = places[columns.length or str(columns.input)]
    around = _beside(start, places)
    beside = {name: path for name, path in _by_leaf(around, places).items() if path not in named}
    clocks = {
        name: Clock(places[path], unit) for path in reversed(around) for name, unit in (timed(_leaf(path, places)),)
    }
    session = first(beside, SESSIONS)
    plan = Plan(
        start,
        None if columns.length else places[str(columns.output)],
        places[columns.times] if columns.times else None,
        named,
        tuple((places[path], FAILURES[name]) for name, path in beside.items() if name in FAILURES),
        session=places.get(session or ""),
        session_name=session or "",
        turn=places.get(first(beside, TURNS) or ""),
        hashes=places.get(first(beside, HASHES) or ""),
        turns_in_list=f'"{start.column}"{start.lists.removeprefix("$")}'.endswith(_TURN_LISTS),
        start=first(clocks, STARTS),
        end=first(clocks, ENDS),
        took=first(clocks, TOOK),
    )
    known = next((row for row in FORMATS if _is(row, plan, places)), None)
    if known is None:
        return plan
    filled = _filled(known, places)
    turn, hashes = filled.turn or plan.turn, filled.hashes or plan.hashes
    failed = tuple(dict.fromkeys((*plan.failed, *filled.failed)))
    return filled._replace(
        failed=failed,
        turn=turn,
        hashes=hashes,
        start=filled.start or plan.start,
        end=filled.end or plan.end,
        took=filled.took or plan.took,
    )


def plan_of_format(places: Mapping[str, Place]) -> Plan | None:
    """The plan for a nested file: of a format in the table, else where one record alone has two lengths by name."""
    for row in FORMATS:
        if all(path in places for path in row.known_by):
            return _filled(row, places)
    pairs = [pair for pair in _pairs(places) if pair.found and pair.length is None]
    return plan_of(pairs[0], places) if len(pairs) == 1 else None


def _pairs(places: Mapping[str, Place]) -> list[Columns]:
    """The lengths by name of each object that holds numbers, as paths."""
    found: dict[str, list[str]] = {}
    for path, place in places.items():
        if place.kind in _NUMBERS and "." in path:
            found.setdefault(path.rpartition(".")[0], []).append(path)
    pairs = []
    for paths in found.values():
        leaves = {path.rpartition(".")[2]: path for path in paths}
        pair = guess(leaves)
        pairs.append(Columns(*(leaves.get(name or "") for name in pair[:3])))
    return pairs


def why_not(places: Mapping[str, Place]) -> str:
    """Why no lengths are found, and what to do; one sentence without the file's name."""
    paths = list(places)
    if flag := missing_details(paths):
        return f"holds a benchmark's totals and not its requests: run the benchmark again with {flag}."
    for known_by, sentence in SUMMARIES:
        if all(any(path == known or path.startswith(f"{known}.") for path in paths) for known in known_by):
            return sentence
    return ""


def texts_in(places: Mapping[str, Place]) -> str | None:
    """The column that holds text in place of lengths, if one does."""
    return first(_by_leaf(list(places), places), TEXTS)


def numeric_paths(places: Mapping[str, Place]) -> list[str]:
    """The paths that may be named as columns: numbers of a nested file, or all columns of a flat one."""
    numbers = [path for path, place in places.items() if place.kind in _NUMBERS]
    return numbers or [path for path, place in places.items() if not place.lists and not place.field]


def _is(row: Format, plan: Plan, places: Mapping[str, Place]) -> bool:
    """Whether a flat file is of this format, read by the columns that the plan has."""
    return all(path in places for path in row.known_by) and set(plan.named) == {row.input, row.output}


def _filled(row: Format, places: Mapping[str, Place]) -> Plan:
    places = {**places, **_attributes(row, places)}
    session = next((path for path in row.session if path in places), "")

    def clock(path: str) -> Clock | None:
        unit = row.seconds if row.seconds is not None else timed(path.rpartition(".")[2])[1]
        return Clock(places[path], unit) if path in places else None

    return Plan(
        places[row.input],
        places[row.output] if row.output else None,
        None,
        (row.input, row.output) if row.output else (row.input,),
        tuple((places[path], sign) for path, sign in row.failed if path in places),
        tuple(places[path] for path in row.failed_lists if path in places),
        places.get(session),
        session,
        places.get(row.turn),
        places.get(row.hashes),
        row.turns_in_list,
        row.context,
        clock(row.start),
        clock(row.end),
        clock(row.took),
        places.get(row.only[0]),
        row.only[1],
        places.get(row.speaker),
    )


def _attributes(row: Format, places: Mapping[str, Place]) -> dict[str, Place]:
    """The places of a row that name one entry of a list of keys and values, written attributes{key}."""
    paths = (row.input, row.output, *(path for path, _ in row.failed), *row.session, row.only[0])
    found = {}
    for path in paths:
        held, _, key = path.removesuffix("}").partition("{")
        if key and held in places:
            found[path] = places[held]._replace(key=key)
    return found


def _beside(start: Place, places: Mapping[str, Place]) -> list[str]:
    """Paths of the same record that stand beside a length or above it, so that they speak of the whole request."""
    same = start.column if start.lists else None
    held = f".{start.column}{start.field}" if not start.lists else start.field
    return [
        path
        for path, at in places.items()
        if at.lists == start.lists and same in (None, at.column) and held.startswith(_above(at, same))
    ]


def _above(at: Place, same: str | None) -> str:
    """The path of the object that a value stands in, with a dot at its end."""
    field = at.field if same else (f".{at.column}{at.field}" if at.field else "")
    return field[: field.rfind(".") + 1] if '"' not in field else field[: field.rfind('."')]


def _by_leaf(paths: list[str], places: Mapping[str, Place]) -> dict[str, str]:
    """Paths by the plain name of what stands at their end; a column by its whole name, whatever dots it has."""
    found: dict[str, str] = {}
    for path in paths:
        found.setdefault(plain_name(_leaf(path, places)), path)
    return found


def _leaf(path: str, places: Mapping[str, Place]) -> str:
    place = places[path]
    return path if not place.field and not place.lists else path.rpartition(".")[2]
