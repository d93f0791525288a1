"""What does a grid of what runs cost, for each kind of pair of inputs?

L, r, rest and the pin go into the rules as arrays; every other input is a scenario of its own for each value. So a
grid of two arrays is one call, a grid with one of the others costs a call for each of its values, and a grid of two
others costs a call for each cell.

How to read it: seconds depend on the machine. "the same" counts at how many of a sample of cells `solve` gives the
same number of running requests: all of them, or the grid is not exact. The exit code is always 0.

    python tests/bench/sweep.py [--points 200] [--rounds 5] [--sample 200]
"""

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing import Scenario, Split, solve
from sizing.answers.sweep import PIN, RATIO, Sweep, SweepInput, axis_of, sweep
from sizing.figures import sweep_figure

PAIRS: tuple[tuple[SweepInput, SweepInput], ...] = (
    ("L", RATIO),
    ("L", "rest_gib"),
    ("rest_gib", RATIO),
    ("L", PIN),
    ("L", "max_running_requests"),
    ("L", "dcp_size"),
    ("D", "page_size"),
    ("mamba_ssm_dtype", "kv_cache_dtype"),
)


def timed(rounds: int, names: tuple[SweepInput, SweepInput], points: int) -> tuple[list[float], Sweep]:
    """Seconds of each round, the axes made beforehand, and the last grid."""
    scenario = Scenario()
    x, y = (axis_of(scenario, name, points) for name in names)
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        found = sweep(scenario, x, y)
        seconds.append(time.perf_counter() - start)
    return seconds, found


def agreeing(found: Sweep, sample: int) -> int:
    """How many of so many cells, drawn at random, give the same requests when solved alone."""
    draw = random.Random(0)
    same = 0
    for _ in range(sample):
        row, column = draw.randrange(len(found.y.values)), draw.randrange(len(found.x.values))
        values = {found.x.name: found.x.values[column], found.y.name: found.y.values[row]}
        now = solve(Scenario.model_validate({**found.scenario.stated(), **values})).now
        same += int(found.runs[row, column]) == (now.runs if isinstance(now, Split) else 0)
    return same


def drawn(rounds: int) -> float:
    """Median seconds of the whole figure of L and r at its usual points."""
    sizing = solve(Scenario())
    x, y = axis_of(Scenario(), "L"), axis_of(Scenario(), RATIO)
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        sweep_figure(sizing, x, y)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description="Grids of what runs, by the pair of inputs.")
    parser.add_argument("--points", type=int, default=200, help="values on an axis of numbers (default 200)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each (default 5)")
    parser.add_argument("--sample", type=int, default=200, help="cells solved alone (default 200)")
    options = parser.parse_args()
    if min(options.points, options.rounds, options.sample) < 1:
        parser.error("every count must be at least 1")
    print(f"{'':44}{'cells':>9}{'best ms':>10}{'median ms':>11}{'cells/s':>14}  the same")
    for names in PAIRS:
        seconds, found = timed(options.rounds, names, options.points)
        median = statistics.median(seconds)
        print(
            f"{' x '.join(names):44}{found.runs.size:>9,}{min(seconds) * 1e3:>10.2f}{median * 1e3:>11.2f}"
            f"{found.runs.size / median:>14,.0f}  {agreeing(found, options.sample)} of {options.sample}"
        )
    print(f"the figure of L and r: {drawn(options.rounds) * 1e3:.1f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
