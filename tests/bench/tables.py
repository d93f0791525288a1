"""How long does it take to count a table where it is, in DuckDB and in Spark, and how much memory?

The trace of tests/bench/traffic.py, each engine in a process of its own, at a tenth of the rows and at all of them: the
slope between the two is what a larger table costs, the rest is the start. Whether both give the same histogram, row
for row, is the last line. Peak memory is that of Python and of the JVM below it. What travels is the histogram alone.

How to read it: seconds depend on the machine and on what else it does. The exit code is always 0.

    python tests/bench/tables.py [--requests 10000000] [--engine spark:local[2]]
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing.traffic.layouts import Columns
from sizing.traffic.tables import count_table
from tests.bench.traffic import write

BILLION = 10**9
# Spark's own gigabyte for the driver does not hold a histogram of two million rows on its way to Python.
ROOM = {"PYSPARK_SUBMIT_ARGS": "--driver-memory 3g pyspark-shell"}


def peak_gib() -> float:
    """The peak of this process and of those below it [GiB], as Linux keeps it."""
    pids, found = [str(Path("/proc/self").resolve().name)], 0.0
    while pids:
        pid = pids.pop()
        for task in Path(f"/proc/{pid}/task").iterdir():
            pids += (task / "children").read_text().split()
        status = dict(
            line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line
        )
        found += int(status["VmHWM"].split()[0]) / 2**20
    return found


def measured(path: str, engine: str) -> dict[str, float | int | str]:
    """Seconds, peak memory and the histogram's size and digest, in this process."""
    begun = time.perf_counter()
    found = count_table(path, engine, Columns())
    taken = time.perf_counter() - begun
    order = np.lexsort(found.lengths)
    digest = hashlib.sha256(b"".join(column[order].tobytes() for column in (*found.lengths, found.counts))).hexdigest()
    out = Path(path).with_suffix(f".{engine.partition(':')[0]}.parquet")
    found.write(out)
    return {
        "seconds": taken,
        "gib": peak_gib(),
        "rows": len(found.counts),
        "mib": out.stat().st_size / 2**20,
        "digest": digest,
    }


def apart(path: Path, engine: str) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--read", str(path), "--engine", engine]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=ROOM | os.environ)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="A table of many requests, counted in engines.")
    parser.add_argument("--requests", type=int, default=10_000_000, help="in the table (default ten million)")
    parser.add_argument("--engine", default="spark:local[2]", help="beside DuckDB (default spark:local[2])")
    parser.add_argument("--read", metavar="PATH", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        print(json.dumps(measured(options.read, options.engine)))
        return 0
    sizes, same = (max(options.requests // 10, 1), options.requests), True
    print(f"{'engine':16}{'rows':>14}{'s':>9}{'peak GiB':>10}{'histogram rows':>16}{'MiB':>8}")
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"trace-{size}.parquet" for size in sizes]
        for path, size in zip(paths, sizes, strict=True):
            write(path, size, "chat")
        digests = []
        for engine in ("duckdb", options.engine):
            found = [apart(path, engine) for path in paths]
            for size, one in zip(sizes, found, strict=True):
                print(
                    f"{engine:16}{size:>14,}{one['seconds']:>9.1f}{one['gib']:>10.2f}{one['rows']:>16,}{one['mib']:>8.1f}"
                )
            slope = (found[1]["seconds"] - found[0]["seconds"]) / (sizes[1] - sizes[0])
            print(f"{'':16}a billion rows at this slope: {slope * BILLION:,.0f} s on this machine")
            digests.append([one["digest"] for one in found])
        same = digests[0] == digests[1]
    print("the same histogram, row for row" if same else "THE HISTOGRAMS DIFFER")
    return 0


if __name__ == "__main__":
    sys.exit(main())
