"""How fast is a trace of ten million requests read from a file into a mix, and how much memory does it take?

The trace is made here: input and output lengths, each log-normal, most pairs of them distinct. Each reading runs in a
process of its own, so that its peak memory is its own, and so does one that only imports the package. "rows" is the
way of `read_trace`, one request after the other into numpy; "grouped" lets DuckDB count equal pairs first, which is
what one would do if it were the cheaper way. The first shares its work over as many as two cores: "cpu s" is what
both spent together.

How to read it: seconds depend on the machine and on what else it does, cpu seconds less so; memory must stay below
2 GiB at the most requests that are read. "same" is whether both ways give the same mix. The exit code is always 0.

    python tests/bench/traffic.py [--requests 10000000] [--rounds 3] [--csv] [--long]
"""

import argparse
import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing.traffic.mix import Mix, mix_of
from sizing.traffic.reading import read_trace

TYPICAL = (1000, 1.2, 200, 1.0)  # median and sigma of input and of output [tokens]
LONG = (30_000, 1.2, 2000, 1.0)
PER_GIB = 2**20  # ru_maxrss is in KiB on Linux, in bytes on macOS


def write(path: Path, requests: int, lengths: tuple[float, ...]) -> None:
    """A trace in Parquet or CSV, the same every time."""
    random = np.random.default_rng(0)
    columns = [
        np.clip(random.lognormal(np.log(median), sigma, requests), 1, 2**23).astype(np.int64)
        for median, sigma in (lengths[:2], lengths[2:])
    ]
    with duckdb.connect(":memory:") as connection:
        connection.register("lengths", dict(zip(("input_length", "output_length"), columns, strict=True)))
        connection.execute(f"COPY (FROM lengths) TO '{path}'")


def grouped(path: str) -> Mix:
    """The mix by way of distinct pairs."""
    query = "SELECT input_length::INTEGER, output_length::INTEGER, count(*) FROM '{}' GROUP BY ALL"
    with duckdb.connect(":memory:", config={"threads": 2}) as connection:
        inputs, outputs, times = connection.execute(query.format(path)).fetchnumpy().values()
    return mix_of("trace", inputs, outputs, times)


def here(way: str, path: str) -> dict[str, Any]:
    """One reading in this process: seconds, peak memory [GiB] and a digest of the mix."""
    start, spent = time.perf_counter(), time.process_time()
    mix = read_trace(path, name="trace") if way == "rows" else grouped(path) if way == "grouped" else None
    found = {"s": time.perf_counter() - start, "cpu": time.process_time() - spent}
    digest = hashlib.sha256()
    for spans in (mix.spans, mix.tail_doubled, mix.outputs_doubled) if mix else ():
        for counts in (spans.starts, spans.ends, spans.whole) if spans else ():
            digest.update(counts.values.tobytes() + counts.counts.tobytes() if counts else b"")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (PER_GIB if sys.platform == "linux" else 2**30)
    return {**found, "gib": peak, "digest": digest.hexdigest(), "requests": mix.requests if mix else 0}


def apart(way: str, path: Path, *options: str) -> dict[str, Any]:
    """The same in a process of its own; writing too, for the peak of a process is at least its parent's."""
    command = [sys.executable, __file__, "--here", way, str(path), *options]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def row(name: str, readings: list[dict[str, Any]]) -> str:
    seconds = [reading["s"] for reading in readings]
    cpu = statistics.median(reading["cpu"] for reading in readings)
    peak = max(reading["gib"] for reading in readings)
    return f"{name:16}{min(seconds):>10.2f}{statistics.median(seconds):>10.2f}{cpu:>10.2f}{peak:>12.2f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="A trace of many requests, from file to mix.")
    parser.add_argument("--requests", type=int, default=10_000_000, help="in the trace (default ten million)")
    parser.add_argument("--rounds", type=int, default=3, help="readings each way (default 3)")
    parser.add_argument("--csv", action="store_true", help="write CSV instead of Parquet")
    parser.add_argument("--long", action="store_true", help="long requests, of which hardly two are equal")
    parser.add_argument("--here", nargs=2, metavar=("WAY", "PATH"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.requests, options.rounds) < 1:
        parser.error("every count must be at least 1")
    if options.here:
        way, path = options.here
        if way == "write":
            write(Path(path), options.requests, LONG if options.long else TYPICAL)
        print(json.dumps(here(way, path)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"trace.{'csv' if options.csv else 'parquet'}"
        apart("write", path, "--requests", str(options.requests), *["--long"] * options.long)
        print(f"{options.requests:,} requests, {path.stat().st_size / 2**20:,.0f} MiB of {path.suffix[1:]}")
        readings = {way: [apart(way, path) for _ in range(options.rounds)] for way in ("rows", "grouped")}
        idle = apart("nothing", path)
    print(f"{'':16}{'best s':>10}{'median s':>10}{'cpu s':>10}{'peak GiB':>12}")
    for way, found in readings.items():
        print(row(way, found))
    print(f"{'import alone':16}{'':>30}{idle['gib']:>12.2f}")
    digests = {reading["digest"] for found in readings.values() for reading in found}
    print(f"{'same':16}{'yes' if len(digests) == 1 else 'NO'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
