"""Does one server stay flat over tens of thousands of reruns, with readers who come and go?

Clients of `load.py` move L, D and the ratio as fast as the server answers; every so often one closes its page and
another opens. The server's memory is read after each part of the reruns.

    python tests/bench/soak.py [--reruns 50000] [--sessions 12] [--stay 60] [--seed 1] [--app FILE]

How to read it: the last line is the result: how much memory grew over the second half of the reruns, in which nothing
is loaded for the first time any more, for each ten thousand of them. Processor time of a move in the first and in the
last part stand beside it. The exit code is 1 only if something could not be measured.
"""

import argparse
import asyncio
import itertools
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from websockets.exceptions import WebSocketException

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.load import Usage, open_clients
from tests.bench.serving import ROOT, CannotMeasureError, Server, measuring, serve

PARTS = 20


async def soak(server: Server, options: argparse.Namespace) -> list[Usage]:
    """The server's usage at the start and after each part."""
    part = -(-options.reruns // PARTS)
    found = [Usage.of(server)]
    seeds = itertools.count(options.seed)
    done = 0

    async def reader() -> None:
        nonlocal done
        while done < part * PARTS:
            async with AsyncExitStack() as stack:
                (client,) = await open_clients(stack, server.port, 1, next(seeds))
                for name in itertools.islice(itertools.cycle(client.controls), options.stay):
                    if not (await client.move(name)).shown:
                        raise CannotMeasureError(f"{name} was not moved")
                    done += 1
                    if done % part == 0:
                        found.append(Usage.of(server))
                        say(found, done)

    await asyncio.gather(*(reader() for _ in range(options.sessions)))
    return found


def say(found: list[Usage], done: int) -> None:
    before, now = found[-2:]
    part = done / (len(found) - 1)
    print(
        f"{done:>8} reruns {now.mib:>8.1f} MiB {1000 * (now.cpu_s - before.cpu_s) / part:>7.1f} CPU ms / rerun",
        flush=True,
    )


def verdict(found: list[Usage], reruns: int) -> str:
    """Memory over the second half, by least squares over its parts."""
    late = [usage.mib for usage in found[len(found) // 2 :]]
    middle, mean = (len(late) - 1) / 2, sum(late) / len(late)
    slope = sum((at - middle) * (mib - mean) for at, mib in enumerate(late)) / sum(
        (at - middle) ** 2 for at in range(len(late))
    )
    each = reruns / (len(found) - 1)
    return f"second half: {slope / each * 10_000:+.2f} MiB per 10,000 reruns, from {late[0]:.1f} to {late[-1]:.1f} MiB"


def main() -> int:
    parser = argparse.ArgumentParser(description="One server over many reruns.")
    parser.add_argument("--reruns", type=int, default=50_000, help="in all (default 50000)")
    parser.add_argument("--sessions", type=int, default=12, help="open at a time (default 12)")
    parser.add_argument("--stay", type=int, default=60, help="moves before a reader leaves (default 60)")
    parser.add_argument("--seed", type=int, default=1, help="of the moves")
    parser.add_argument("--app", type=Path, default=ROOT / "app.py", help="the page to serve")
    options = parser.parse_args()
    if min(options.reruns // PARTS, options.sessions, options.stay) < 1:
        parser.error(f"at least {PARTS} reruns, one session and one move")
    with measuring(TimeoutError, WebSocketException), serve(options.app) as server:
        print(verdict(asyncio.run(soak(server, options)), options.reruns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
