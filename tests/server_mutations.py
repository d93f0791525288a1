"""Mutated texts of a running server: nothing is raised, and no number is read that the text does not hold.

Run as a command it does as many as asked; the suite takes a fixed sample.

    python tests/server_mutations.py [--count 100000] [--seed 0]
"""

import argparse
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sizing import Scenario, Sizing, solve
from sizing.exchange.server_answer import serving, told
from sizing.figures import occupancy_figure
from sizing.releases.rules import RELEASES
from sizing.server import ServerFacts, read_server
from sizing.server.inputs import boot_lines
from sizing.server.texts import read_texts
from tests.server_texts import ASSERTIONS, UNIFIED, UNIFIED_BOOT, Moment, Server, pretty

_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
SNIPPETS = (
    "\n", "\r\n", ", ", "#", "{", "}", "[", "]", '"', "\\", "\x00", "é", "9" * 40, "-1", "1e999", "NaN", "Infinity",
    ".", "Decode batch, ", "Prefill batch, ", "#running-req: ", "mamba usage: ", "sglang:num_running_reqs ",
    "# scrape ", "KV cache pool is full. Retract requests. ", "Load weight begin", "server_args=", "internal_states",
    ": 0, ", " TP",
    "2026-13-45 99:99:99", "null", "true", '"max_mamba_cache_size": ', "[unified-memory-pool] ",
)  # fmt: skip


def text_of(rng: random.Random) -> str:
    """A text of some formats of one release."""
    roles, ranks = ("", "decode", "drafts", "window", "prefill"), ("TP0", "DP1 TP3", "")
    server = Server(rng.choice(RELEASES), role=rng.choice(roles), rank=rng.choice(ranks))
    moments = [
        Moment(second, rng.randint(0, 51), rng.randint(0, 20), rng.randint(0, server.tokens), rng.randint(0, 257))
        for second in range(rng.randint(1, 4))
    ]
    parts: list[str] = []
    for at in moments:
        parts.append(server.decode(at, hybrid=rng.random() < 0.9))
        parts += [server.prefill(at)] * (rng.random() < 0.3)
        parts += [server.scrape(at, retracted=rng.randint(0, 9))] * (rng.random() < 0.3)
        parts += [json.dumps(server.loads(at)) + "\n"] * (rng.random() < 0.3)
        parts += [server.retraction(at.second, rng.randint(1, 9), rng.randint(0, 2))] * (rng.random() < 0.2)
    parts += [rng.choice((json.dumps, pretty))(server.info()) + "\n"] * (rng.random() < 0.25)
    parts += [rng.choice((UNIFIED, UNIFIED_BOOT))] * (rng.random() < 0.15)
    parts += [rng.choice(list(ASSERTIONS.values()))] * (rng.random() < 0.1)
    rng.shuffle(parts)
    return "".join(parts)


def mutated(rng: random.Random) -> str:
    """The same with a few faults."""
    text = text_of(rng)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(text) + 1)
        length = min(int(rng.expovariate(1 / 12)), 400)
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:at] + text[at + length :]
        elif kind == 1:
            text = text[:at] + rng.choice(SNIPPETS) + text[at:]
        elif kind == 2:
            text = text[:at] + chr(rng.randrange(1, 256)) + text[at + 1 :]
        elif kind == 3:
            text = text[:at] + text[at : at + length] * 2 + text[at + length :]
        else:
            text = text[:at] if rng.random() < 0.3 else text[at:]
    return text


def numbers_in(text: str) -> set[float]:
    """Every number that a text holds, whole or from any digit on, as a prefix of a line may end before it."""
    found: set[float] = set()
    for match in _NUMBER.finditer(text):
        found.add(float(match[0]))
    return found


def numbers_read(facts: ServerFacts) -> Iterator[tuple[str, float]]:
    """Every number that was read, not computed, by its name."""
    for rank in facts.ranks:
        for point in rank.points:
            for name in ("running", "queued", "kv", "kv_low", "kv_high", "state", "state_low", "state_high", "slots"):
                value = getattr(point, name)
                if value is not None:
                    yield name, value
        if rank.format == "loads" and rank.limit is not None:
            yield "limit", rank.limit
    info = facts.info
    if info:
        yield from (("tokens", value) for value in (info.tokens,) if value is not None)
        for inner in info.ranks:
            yield from (
                (name, value) for name in ("slots", "limit", "tokens") if (value := getattr(inner, name)) is not None
            )
            yield from (("gib", size.value) for size in (inner.kv_gib, inner.weights_gib) if size is not None)
        for name, value in info.arguments.values.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield name, abs(value)
    for pool in facts.pools:
        for value in (pool.total_bytes, pool.label, pool.slots, pool.requests, pool.page_size):
            if value is not None:
                yield "pool", value
        yield from (("entry", part.entry_bytes) for part in pool.parts)


def check(text: str, sizing: Sizing) -> list[str]:
    """What is wrong with reading a text; also everything that is made of it must not raise."""
    facts = read_server(text)
    if facts is None:
        return []
    held = numbers_in(text)
    faults = [f"{name} {value} is not in the text" for name, value in numbers_read(facts) if value not in held]
    told(read_texts([[text.encode("utf-8", "replace")]]), L=9216).answer.model_dump_json()
    serving(facts, sizing).model_dump_json()
    json.dumps(occupancy_figure(facts), allow_nan=False)
    boot_lines(facts)
    return faults


def run(count: int, seed: int) -> list[tuple[int, list[str]]]:
    """So many texts from a seed on; those that are read wrong."""
    sizing, wrong = solve(Scenario()), []
    for number in range(seed, seed + count):
        faults = check(mutated(random.Random(number)), sizing)
        if faults:
            wrong.append((number, faults))
    return wrong


def main() -> Any:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wrong = run(options.count, options.seed)
    for number, faults in wrong[:20]:
        print(f"seed {number}: {'; '.join(faults[:3])}")
    print(f"{options.count:,} texts, {len(wrong):,} read wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
