"""How fast are the lines of a running server read from a file, and how much memory does that take?

It is read as the command and the page read it, for boots as well. The log is made here: decode lines of one rank, each
with its own numbers, or with `--mixed` those of four ranks among prefill lines, an access log and retractions. Reading
runs in a process of its own on one core, so that its peak memory is its own; a process that only imports the package
says how much of that is Python and its libraries. Points of the figure are counted too.

How to read it: MB/s depends on the machine (processor time is what it divides by); memory must stay below 300 MB.
"right" is whether the pool that the log starved was named. The exit code is always 0.

    python tests/bench/server.py [--lines 1000000] [--rounds 3] [--mixed]
"""

import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing.bootlog.text import chunks_of
from sizing.server.texts import read_texts
from tests.server_texts import Moment, Server

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 10**6
PIECE = 10_000  # lines that are written at once


def line(number: int, rng: random.Random, mixed: bool) -> str:
    """One line: a server that runs all its rows while others wait, nine tenths of the time."""
    rank = Server(rank=f"DP{number % 4} TP0") if mixed else Server()
    busy = rng.random() < 0.93
    running = 51 if busy else rng.randint(10, 48)
    second = number // 3
    at = Moment(
        second % 86_400, running, rng.randint(1, 90) if busy else 0, running * rng.randint(8000, 10_000), 4 * running
    )
    if mixed and number % 3 == 0:
        return f'[2026-01-15 10:00:00] INFO:     127.0.0.1:{30000 + number % 9999} - "POST /generate HTTP/1.1" 200 OK\n'
    if mixed and number % 997 == 0:
        return rank.retraction(at.second, 2)
    return rank.prefill(at) if mixed and number % 7 == 0 else rank.decode(at)


def write(path: Path, lines: int, mixed: bool) -> None:
    """The log as a file."""
    rng = random.Random(0)
    with path.open("w") as file:
        for begin in range(0, lines, PIECE):
            file.writelines(line(number, rng, mixed) for number in range(begin, min(begin + PIECE, lines)))


def read_here(path: Path | None) -> None:
    """In a process of its own: read the file, or nothing, and print seconds, peak memory and what was found."""
    begin = time.process_time()
    facts = read_texts([chunks_of(path)]).facts if path else None
    seconds = time.process_time() - begin
    main = facts.main if facts else None
    print(
        json.dumps(
            {
                "seconds": seconds,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "samples": main.samples if main else 0,
                "points": len(main.points) if main else 0,
                "held": main.held if main else None,
                "most": main.shares.most if main and main.shares else "",
            }
        )
    )


def read(path: Path | None) -> dict[str, Any]:
    """The same, measured from here."""
    command = [sys.executable, __file__, "--read", str(path or "")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def rounds(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Every round, on the same file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        write(path, arguments.lines, arguments.mixed)
        size = path.stat().st_size
        print(f"{arguments.lines:,} lines, {size / MEGABYTE:.0f} MB")
        for _ in range(arguments.rounds):
            yield read(path) | {"size": size}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mixed", action="store_true")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.read is not None:
        read_here(Path(arguments.read) if arguments.read else None)
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    empty = read(None)
    found = list(rounds(arguments))
    speeds = sorted(one["size"] / MEGABYTE / one["seconds"] for one in found)
    peak = max(one["peak"] for one in found)
    last = found[-1]
    print(f"MB/s: median {statistics.median(speeds):.0f}, {speeds[0]:.0f} to {speeds[-1]:.0f}")
    print(f"peak memory: {peak / MEGABYTE:.0f} MB, of which Python and libraries {empty['peak'] / MEGABYTE:.0f} MB")
    print(
        f"samples {last['samples']:,}, points {last['points']}, held {last['held']}, right: {last['most'] == 'state'}"
    )


if __name__ == "__main__":
    main()
