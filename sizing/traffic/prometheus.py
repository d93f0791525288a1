"""Histograms of lengths as Prometheus writes them: /metrics, the answer of its HTTP API, or a table with `le`.

Formats: the text exposition format and HTTP API of Prometheus (instrumenting/exposition_formats, querying/api).
"""

import gzip
import json
import math
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from sizing.basics.problems import shown
from sizing.traffic.buckets import CUMULATIVE, Histogram, Series, histogram_of, mix_of_pair, mix_of_total
from sizing.traffic.duckdb_file import Opened
from sizing.traffic.layouts import PAIRS, first, plain_names
from sizing.traffic.mix import Mix, TrafficNotice
from sizing.traffic.trace_file import TraceFile

MAX_TEXT = 2**26  # bytes of a scrape that are read: a busy server writes some hundred kB
MAX_ROWS = 100_000  # of a table of buckets

# Which histograms hold lengths [tokens], of input and of output. python/sglang/srt/metrics/collector.py of
# sgl-project/sglang; vllm/v1/metrics/loggers.py of vllm-project/vllm; router/src of
# huggingface/text-generation-inference; the metrics of ai-dynamo/dynamo and of kubernetes-sigs'
# gateway-api-inference-extension.
METRICS = {
    "sglang:prompt_tokens_histogram": "sglang:generation_tokens_histogram",
    "sglang_prompt_tokens_histogram": "sglang_generation_tokens_histogram",
    "vllm:request_prompt_tokens": "vllm:request_generation_tokens",
    "vllm_request_prompt_tokens": "vllm_request_generation_tokens",
    "request_prompt_tokens": "request_generation_tokens",
    "tgi_request_input_length": "tgi_request_generated_tokens",
    "dynamo_frontend_input_sequence_tokens": "dynamo_frontend_output_sequence_tokens",
    "inference_objective_input_tokens": "inference_objective_output_tokens",
    "inference_model_input_tokens": "inference_model_output_tokens",
}
# One histogram for both, told apart by a label: gen_ai.client.token.usage of OpenTelemetry's semantic conventions.
BY_LABEL = ("gen_ai_client_token_usage", "gen_ai_token_type")

_SAMPLE = re.compile(r"([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$")
_LABEL = re.compile(r'\s*([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_COUNTS = ("count", "value", "cumulative", "cumulative_count", "requests", "cnt", "num", "n")
_NAMES = ("name", "metric", "series", "kind")


class _Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


_Parts = dict[str, dict[tuple[Any, ...], list[_Sample]]]
"""The samples of a histogram by part (bucket, sum, count) and series; several where there are several scrapes."""


def read_metrics(file: TraceFile) -> Mix:
    """The mix of the lengths that a scrape of /metrics has; raises TraceError."""
    if file.size > MAX_TEXT:
        file.fail(
            f"is {file.size / 2**20:.0f} MiB of metrics, and at most 64 MiB are read: give one scrape.", "too_large"
        )
    with (
        gzip.open(file.path, "rt", encoding="utf-8-sig")
        if file.packed
        else open(file.path, encoding="utf-8-sig") as text
    ):
        try:
            return _mix(file, list(_samples(text)))
        except UnicodeDecodeError:
            file.fail("is not text in UTF-8: save it as UTF-8.")


def read_api(trace: Opened) -> Mix:
    """The mix of the lengths in an answer of Prometheus' HTTP API: vectors, or matrices over time."""
    rows = trace.rows({"data": "JSON"})
    held = trace.connection.execute(f"SELECT data FROM {rows}", [trace.pattern]).fetchall()
    samples = []
    for (data,) in held[:MAX_ROWS]:
        for one in json.loads(data).get("result", []) if len(data) <= MAX_TEXT else []:
            labels = {str(key): str(value) for key, value in one.get("metric", {}).items()}
            pairs = one.get("values") or [one.get("value")]
            samples += [_Sample(labels.get("__name__", ""), labels, _number(pair[1])) for pair in pairs if pair]
    return _mix(trace.file, samples)


def has_buckets(names: tuple[str, ...]) -> bool:
    """Whether a table has the bounds of buckets."""
    return "le" in plain_names(names)


def read_table(trace: Opened) -> Mix:
    """The mix of a table with the column le and counts up to it: of input and output, by a name, or of one length."""
    names = plain_names(trace.names)
    pair = next((pair for pair in PAIRS if pair[0] in names and pair[1] in names), None)
    counts = first(names, _COUNTS)
    wanted = [names[name] for name in pair] if pair else [counts] if counts else []
    if not wanted:
        trace.file.fail(f"has the bounds le and no counts: add a column count ({CUMULATIVE}).", "columns")
    for name in ("le", *wanted):
        if list(trace.names).count(name) > 1:
            trace.file.fail_twice(name)
    label = first(names, _NAMES) if not pair else None
    columns = [names["le"], *wanted, *([label] if label else [])]
    types = dict.fromkeys(columns, "VARCHAR")
    listed = ", ".join(f"{trace.column(name)}::VARCHAR" for name in columns)
    query = f"SELECT {listed} FROM {trace.rows(types)} LIMIT {MAX_ROWS + 1}"
    rows = trace.connection.execute(query, [trace.pattern]).fetchall()
    if len(rows) > MAX_ROWS:
        trace.file.fail(f"has more than {MAX_ROWS:,} rows of buckets: give one scrape.", "too_large")
    if not rows:
        trace.file.fail("names columns and holds no buckets: give a row a bound.")
    if label:
        samples = [_Sample(str(name), {"le": str(le)}, _number(value)) for le, value, name in rows]
        return _mix(trace.file, samples)
    found = [_histogram(trace.file, rows, at + 1, name, 1 - at) for at, name in enumerate(wanted)]
    return mix_of_pair(trace.file, *found) if pair else mix_of_total(trace.file, found[0])


def _histogram(file: TraceFile, rows: list[tuple[Any, ...]], at: int, name: str, first: int) -> Histogram:
    cumulative: dict[float, float] = {}
    for row in rows:
        bound, value = _number(row[0]), _number(row[at])
        if math.isnan(bound) or math.isnan(value):
            file.fail(f"has {shown(str(row[at]))} up to le = {shown(str(row[0]))}: both must be numbers.", "columns")
        if bound in cumulative:
            file.fail(
                f"has the bound le = {bound:g} twice: give one histogram, or a column name that tells them apart.",
                "columns",
            )
        cumulative[bound] = value
    return histogram_of(file, [Series(cumulative, None)], "requests" if name in _COUNTS else name, first)


def _samples(lines: Any) -> Iterator[_Sample]:
    """The samples of the histograms that are known, line by line."""
    for line in lines:
        if line.startswith("#") or not (found := _SAMPLE.match(line)):
            continue
        labels = dict(_LABEL.findall(found[2] or ""))
        yield _Sample(found[1], labels, _number(found[3]))


def _number(text: Any) -> float:
    try:
        return float(str(text).replace("Inf", "inf"))
    except ValueError:
        return math.nan


def _mix(file: TraceFile, samples: list[_Sample]) -> Mix:
    """The lengths among all samples of a file."""
    families: dict[str, _Parts] = {}
    for sample in samples:
        base, part = _parts(sample)
        if base:
            key = tuple(
                sorted((name, value) for name, value in sample.labels.items() if name not in ("le", "__name__"))
            )
            bound = sample.labels.get("le") if part == "bucket" else None
            families.setdefault(base, {}).setdefault(part, {}).setdefault((key, bound), []).append(sample)
    pairs = [(name, other) for name, other in _known().items() if name in families]
    if not pairs:
        held = sorted({sample.name.removesuffix("_bucket") for sample in samples if "le" in sample.labels})[:8]
        listed = f"its histograms are {', '.join(shown(name) for name in held)}" if held else "it has no histogram"
        file.fail(
            f"has no histogram of lengths that is known, such as {next(iter(METRICS))} (cumulative buckets of input "
            f"and output tokens); {listed}: give the /metrics of SGLang with --enable-metrics, or one row a request.",
            "columns",
        )
    name, other = pairs[0]
    if other not in families:
        file.fail(f"has {shown(name)} and not {shown(other)}: give both, cumulative buckets and sums.", "columns")
    grown = _grown(families[name]) and _grown(families[other])
    inputs, outputs = (
        _merged(file, families[of], what, grown=grown) for of, what in ((name, "inputs"), (other, "outputs"))
    )
    mix = mix_of_pair(file, inputs, outputs)
    more = _over_time(families[name], grown=grown)
    if not more:
        return mix
    said = TrafficNotice("buckets", f"{mix.said[0].words} {more}")
    return mix._replace(said=(said,), note=said.words)


def _known() -> dict[str, str]:
    return {**METRICS, f"{BY_LABEL[0]} input": f"{BY_LABEL[0]} output"}


def _parts(sample: _Sample) -> tuple[str, str]:
    """The histogram of lengths that a sample belongs to, and whether it is a bucket, sum or count; empty for others."""
    base, _, part = sample.name.rpartition("_")
    if part not in ("bucket", "sum", "count"):
        base, part = sample.name, "bucket" if "le" in sample.labels else ""
    if base == BY_LABEL[0]:
        base = f"{base} {sample.labels.get(BY_LABEL[1], '')}"
    known = _known()
    return (base, part) if part and (base in known or base in known.values()) else ("", "")


def _merged(file: TraceFile, parts: _Parts, what: str, *, grown: bool) -> Histogram:
    """All series of a histogram together: models, engines and ranks."""
    cumulative: dict[tuple[Any, ...], dict[float, float]] = {}
    for (key, bound), found in parts.get("bucket", {}).items():
        le = _number(bound)
        if math.isnan(le):
            file.fail(f"has a bucket of {what} without a bound le that is a number.", "columns")
        cumulative.setdefault(key, {})[le] = _increase(found, grown=grown)
    sums = parts.get("sum", {})
    total = sum(_increase(found, grown=grown) for found in sums.values()) if sums else None
    series = [Series(counts, None) for counts in cumulative.values()]
    if not series:
        file.fail(f"has a sum and no cumulative buckets of {what}: give all of /metrics.", "columns")
    shortest = int(what == "inputs")
    merged = histogram_of(file, series, what, shortest)
    checked = Series(_again(merged), total if total is not None and math.isfinite(total) else None)
    return histogram_of(file, [checked], what, shortest)


def _again(histogram: Histogram) -> dict[float, float]:
    return dict(zip(histogram.bounds, map(float, np.cumsum(histogram.counts)), strict=True))


def _grown(parts: _Parts) -> bool:
    """Whether no counter of several scrapes fell, as all do where a server starts anew."""
    values = ([sample.value for sample in found] for series in parts.values() for found in series.values())
    return all(one <= other for held in values for one, other in pairwise(held))


def _increase(found: list[_Sample], *, grown: bool) -> float:
    """What a counter grew by between the first and the last of several scrapes, else what it stands at."""
    return found[-1].value - found[0].value if grown and len(found) > 1 else found[-1].value


def _over_time(parts: _Parts, *, grown: bool) -> str:
    scrapes = max(len(found) for series in parts.values() for found in series.values())
    models = {dict(key).get("model_name") for series in parts.values() for key, _ in series} - {None}
    words = []
    if scrapes > 1 and grown:
        words.append(f"The requests between the first and the last of {scrapes:,} scrapes are read.")
    elif scrapes > 1:
        words.append(f"The server started anew between {scrapes:,} scrapes: the last one is read.")
    if len(models) > 1:
        words.append(f"{len(models)} models are counted together.")
    return " ".join(words)
