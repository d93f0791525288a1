"""How long does it take from a trace of ten million requests in a file to the figures, and how much memory?

The trace is made here, with lengths of the shape "chat" or, with --long, of "agent", of which hardly two are equal.
Each round runs in a process of its own, so that its peak memory is its own: it reads the file into a mix, solves the
worked example for it and makes the three figures of the page Traffic. The last row only imports.

How to read it: seconds depend on the machine and on what else it does; "cpu s" is what all threads spent together. The
aim is below 10 s on two cores and below 2 GiB. The exit code is always 0.

    python tests/bench/traffic.py [--requests 10000000] [--rounds 3] [--csv] [--long]
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import duckdb
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing import Scenario
from sizing.figures.traffic import lengths_figure, needs_figure, overflow_figure
from sizing.traffic.reading import read_trace
from sizing.traffic.running import traffic_of
from sizing.traffic.shapes import SHAPES

PHASES = ("read", "solve", "figures", "total", "cpu")
RISK = 0.01
PER_GIB = 2**20  # ru_maxrss is in KiB on Linux


def write(path: Path, requests: int, shape: str) -> None:
    """A trace in Parquet or CSV, the same every time."""
    random, lengths = np.random.default_rng(0), SHAPES[shape].lengths
    columns = {
        name: np.ceil(random.lognormal(math.log(median), math.log(p95 / median) / NormalDist().inv_cdf(0.95), requests))
        for name, median, p95 in (
            ("input_length", lengths.median_input, lengths.p95_input),
            ("output_length", lengths.median_output, lengths.p95_output),
        )
    }
    with duckdb.connect(":memory:") as connection:
        connection.register("lengths", {name: values.astype(np.int64) for name, values in columns.items()})
        connection.execute(f"COPY (FROM lengths) TO '{path}'")


def measured(path: str) -> dict[str, float]:
    """Seconds of each phase in this process, and its peak memory [GiB]; an empty path only imports."""
    marks, spent = [time.perf_counter()], time.process_time()
    if path:
        mix = read_trace(path)
        marks.append(time.perf_counter())
        traffic = traffic_of(Scenario(), mix, RISK)
        marks.append(time.perf_counter())
        json.dumps([lengths_figure(mix), needs_figure(traffic), overflow_figure(traffic)])
        marks.append(time.perf_counter())
    taken = [later - earlier for earlier, later in pairwise(marks)]
    found = dict(zip(PHASES, [*taken, marks[-1] - marks[0], time.process_time() - spent], strict=False))
    return found | {"gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / PER_GIB}


def apart(*arguments: str) -> dict[str, float]:
    """The same in a process of its own; writing too, for the peak of a process is at least its parent's."""
    done = subprocess.run([sys.executable, __file__, *arguments], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="A trace of many requests, from file to figures.")
    parser.add_argument("--requests", type=int, default=10_000_000, help="in the trace (default ten million)")
    parser.add_argument("--rounds", type=int, default=3, help="processes that read it (default 3)")
    parser.add_argument("--csv", action="store_true", help="write CSV instead of Parquet")
    parser.add_argument("--long", action="store_true", help="long requests, of which hardly two are equal")
    parser.add_argument("--write", metavar="PATH", help=argparse.SUPPRESS)
    parser.add_argument("--read", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if min(options.requests, options.rounds) < 1:
        parser.error("every count must be at least 1")
    if options.write:
        write(Path(options.write), options.requests, "agent" if options.long else "chat")
    if options.write or options.read is not None:
        print(json.dumps(measured(options.read or "")))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"trace.{'csv' if options.csv else 'parquet'}"
        apart("--write", str(path), "--requests", str(options.requests), *["--long"] * options.long)
        print(f"{options.requests:,} requests, {path.stat().st_size / 2**20:,.0f} MiB of {path.suffix[1:]}")
        rounds = [apart("--read", str(path)) for _ in range(options.rounds)]
        idle = apart("--read", "")["gib"]
    print(f"{'':12}" + "".join(f"{f'{phase} s':>10}" for phase in PHASES) + f"{'peak GiB':>12}")
    for name, of in (("best", min), ("median", statistics.median)):
        cells = "".join(f"{of([one[phase] for one in rounds]):>10.2f}" for phase in PHASES)
        print(f"{name:12}{cells}{max(one['gib'] for one in rounds):>12.2f}")
    print(f"{'import alone':12}{'':>50}{idle:>12.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
