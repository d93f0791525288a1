"""What does one exact solve cost, alone and as one of a million in a vectorised call?

`over_ratio` solves the deployment at many ratios with numpy: it is what the ratio figure is drawn
from. `solve` is the whole answer for one scenario: several splits, their memory and the optimum.
They do not do the same amount of work per solve, so the ratio says how much cheaper a point on a
curve is than an answer, not how fast numpy is.

How to read it: seconds depend on the machine, the ratio much less so. "the same" counts at how many
of a sample of ratios both roads give the same number of running requests: all of them, or the fast
one is no exact solve. The exit code is always 0.

    python tests/bench/solves.py [--vectorised 1000000] [--single 10000] [--rounds 5]
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from sizing import Scenario, Split, solve
from sizing.answers.curves import over_ratio

LOWEST_RATIO, HIGHEST_RATIO = 1e-3, 1e3  # both ends far outside what anyone sets
SAMPLE = 500


def timed(rounds: int, work: Callable[[], object]) -> list[float]:
    """Seconds of each round."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return seconds


def solve_vectorised(count: int) -> Callable[[], object]:
    scenario, ratios = Scenario(), np.geomspace(LOWEST_RATIO, HIGHEST_RATIO, count)
    return lambda: over_ratio(scenario, ratios)


def solve_one_by_one(count: int) -> Callable[[], object]:
    """The scenarios are made beforehand: their validation is not part of a solve."""
    ratios = np.geomspace(LOWEST_RATIO, HIGHEST_RATIO, count)
    scenarios = [Scenario(mamba_full_memory_ratio=ratio) for ratio in ratios.tolist()]

    def loop() -> None:
        for scenario in scenarios:
            solve(scenario)

    return loop


def agreeing(count: int) -> int:
    """How many of so many ratios give the same requests on both roads; a refused split runs none."""
    ratios = np.geomspace(LOWEST_RATIO, HIGHEST_RATIO, count)
    splits = [solve(Scenario(mamba_full_memory_ratio=ratio)).now for ratio in ratios.tolist()]
    singly = [split.runs if isinstance(split, Split) else 0 for split in splits]
    return int(np.sum(over_ratio(Scenario(), ratios).runs == singly))


def row(name: str, count: int, seconds: list[float]) -> str:
    best, median = min(seconds), statistics.median(seconds)
    return f"{name:16}{count:>11,}{best:>10.3f}{median:>10.3f}{count / median:>14,.0f}"


def main() -> int:
    parser = argparse.ArgumentParser(description="One vectorised call against a loop of single solves.")
    parser.add_argument("--vectorised", type=int, default=1_000_000, help="solves in one call")
    parser.add_argument("--single", type=int, default=10_000, help="solves in the loop")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each (default 5)")
    options = parser.parse_args()
    if min(options.vectorised, options.single, options.rounds) < 1:
        parser.error("every count must be at least 1")
    vectorised = timed(options.rounds, solve_vectorised(options.vectorised))
    single = timed(options.rounds, solve_one_by_one(options.single))
    per_point = statistics.median(vectorised) / options.vectorised
    per_solve = statistics.median(single) / options.single
    print(f"{'':16}{'solves':>11}{'best s':>10}{'median s':>10}{'solves/s':>14}")
    print(row("one call", options.vectorised, vectorised))
    print(row("one by one", options.single, single))
    print(f"{'ratio':16}one single solve costs as much as {per_solve / per_point:,.0f} points of the call")
    print(f"{'the same':16}{agreeing(SAMPLE)} of {SAMPLE} ratios")
    return 0


if __name__ == "__main__":
    sys.exit(main())
