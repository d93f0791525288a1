"""How fast is a large log read from a file, and how much memory does it take?

The log is made here: a boot of eight ranks, hours of serving, a restart, and serving again up to the size asked for.
Reading runs in a process of its own on one core, so that its peak memory is its own; a process that only imports the
package says how much of that is Python and its libraries.

How to read it: MB/s depends on the machine; memory must not grow with the size. "same" is whether both boots were
found with their facts. The exit code is always 0.

    python tests/bench/bootlog.py [--megabytes 200] [--rounds 3] [--gzip]
"""

import argparse
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing.bootlog import read_file

ROOT = Path(__file__).resolve().parents[2]
MEGABYTE = 10**6
BOOT = ROOT / "tests" / "golden" / "boot_logs" / "0.5.23_kda_mla_tp8_default.log"
RANKS = 8
EXPECTED = [(257, 51), (257, 51)]  # slots and running requests of both boots
PIECE = 5_000  # lines of serving that are written at once


def boot() -> str:
    """One boot: the arguments line once, every other line once for each rank."""
    first, *others = BOOT.read_text(encoding="utf-8").splitlines()
    ranks = [line.replace("TP0", f"TP{rank}") for line in others for rank in range(RANKS)]
    return "\n".join([first, *ranks]) + "\n"


def serving(second: int) -> str:
    """Some minutes of traffic: decode batches, a prefill now and then, the access log."""
    lines = []
    for step in range(PIECE):
        clock = f"2026-01-15 {(second + step) // 3600 % 24:02d}:{(second + step) // 60 % 60:02d}:{step % 60:02d}"
        if step % 3 == 0:
            lines.append(f'[{clock}] INFO:     127.0.0.1:{30000 + step} - "POST /v1/completions HTTP/1.1" 200 OK')
        elif step % 7 == 0:
            lines.append(
                f"[{clock} TP0] Prefill batch, #new-seq: 1, #new-token: {step}, #cached-token: 0, token usage: 0.41, "
                f"mamba usage: 0.77, #running-req: 51, #queue-req: {step % 90}"
            )
        else:
            lines.append(
                f"[{clock} TP0] Decode batch, #running-req: 51, #token: {step * 97}, token usage: 0.41, mamba num: "
                f"204, mamba usage: 0.79, cuda graph: True, gen throughput (token/s): {step}.12, #queue-req: 4"
            )
    return "\n".join(lines) + "\n"


def pieces(size: int) -> Iterator[bytes]:
    """A log of about so many bytes, in pieces."""
    start, written, second = boot().encode(), 0, 0
    while written < size:
        piece = start if written == 0 or written < size // 2 <= written + len(start) else b""
        piece += serving(second).encode()
        if written < size // 2 <= written + len(piece):
            piece += start
        written += len(piece)
        second += PIECE
        yield piece


def write(path: Path, size: int, packed: bool) -> None:
    """The log as a file, plain or gzip."""
    with gzip.open(path, "wb", compresslevel=1) if packed else path.open("wb") as file:
        for piece in pieces(size):
            file.write(piece)


def read_here(path: Path | None) -> None:
    """In a process of its own: read the file, or nothing, and print seconds, peak memory and facts."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    start = time.perf_counter()
    log = read_file(path) if path else None
    seconds = time.perf_counter() - start
    facts = [(boot.facts.slots, boot.facts.running) for boot in log.boots] if log else []
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "facts": facts, "bytes": log.bytes_read if log else 0}))


def measure(path: Path | None) -> dict[str, object]:
    """What `read_here` prints."""
    command = [sys.executable, __file__, "--read", str(path) if path else ""]
    found: dict[str, object] = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description="Read a large boot log from a file.")
    parser.add_argument("--megabytes", type=int, default=200, help="size of the log (default 200)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds (default 3)")
    parser.add_argument("--gzip", action="store_true", help="read it packed")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read is not None:
        read_here(Path(options.read) if options.read else None)
        return 0
    if min(options.megabytes, options.rounds) < 1:
        parser.error("size and rounds must be at least 1")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "server.log"
        write(path, options.megabytes * MEGABYTE, options.gzip)
        report([measure(path) for _ in range(options.rounds)], measure(None))
    return 0


def report(rounds: list[dict[str, object]], nothing: dict[str, object]) -> None:
    """One line for each figure."""
    size = float(str(rounds[0]["bytes"])) / MEGABYTE
    seconds = [float(str(found["seconds"])) for found in rounds]
    peak, base = max(float(str(found["peak"])) for found in rounds), float(str(nothing["peak"]))
    same = all([tuple(facts) for facts in found["facts"]] == EXPECTED for found in rounds)  # type: ignore[attr-defined]
    print(f"{'size':12}{size:>10,.0f} MB")
    print(f"{'best':12}{size / min(seconds):>10,.0f} MB/s")
    print(f"{'median':12}{size / statistics.median(seconds):>10,.0f} MB/s")
    print(f"{'peak':12}{peak / MEGABYTE:>10,.0f} MB, {(peak - base) / MEGABYTE:,.0f} MB of it to read")
    print(f"{'same':12}{'yes' if same else 'no':>10}")


if __name__ == "__main__":
    sys.exit(main())
