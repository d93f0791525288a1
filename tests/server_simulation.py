"""A simulated hour of one server: the engine's scheduler, request by request, which writes the lines and the scrapes.

It follows the same rules as tests/replay.py (fcfs, retraction of the least advanced, what the engine keeps free for
tokens to come) and adds request rows, state slots and time. It knows nothing of sizing/server.

Left out: the time that a prefill takes, pages, the tree of cached states, and speculation.
"""

import heapq
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.replay import RESERVED, Running
from tests.server_texts import Moment, Server

STEP = 0.03  # seconds of one decode step
LOG_STEPS = 40  # --decode-log-interval
SCRAPE_STEPS = 500  # every 15 seconds
HOUR = 3600


class Setting(NamedTuple):
    """Pools, traffic and what a request holds."""

    server: Server
    held: int
    """State slots of a running request."""
    rate: float
    """Requests that come in a second, from the tenth minute on; a fifth of it before."""
    input: tuple[int, int]
    """Least and most [tokens]."""
    output: tuple[int, int]
    max_new_tokens: int | None = None
    """What everyone asks for; None: the engine keeps nothing free."""


class Hour(NamedTuple):
    """What the server wrote, and what really was so."""

    lines: str
    scrapes: str
    retractions: int
    retracted: int
    blocked: dict[str, float]
    """Shares of the time in which requests waited: for a row, for KV, or none did."""
    most_running: int
    first: dict[str, float]
    """Seconds after which each first kept a request waiting."""
    full: dict[str, float]
    """Seconds after which all rows first ran, and after which KV first kept a request waiting."""
    tokens_per_request: float


def simulate(setting: Setting, rng: Any) -> Hour:
    """An hour of it."""
    server, steps = setting.server, round(HOUR / STEP)
    coming = deque(sorted(_arrivals(setting, rng)))
    queue: deque[tuple[int, int, int]] = deque()
    running: list[Running] = []
    lines, scrapes = [], []
    now = used = retractions = retracted = most = 0
    held_time, held_tokens, rows_full = 0.0, 0.0, float(HOUR)
    blocked = dict.fromkeys(("rows", "kv", "none"), 0.0)
    first: dict[str, float] = {}
    while now < steps:
        while coming and coming[0] <= now:
            coming.popleft()
            queue.append((int(rng.integers(*setting.input)), int(rng.integers(*setting.output)), 0))
        admitted = 0
        while queue and len(running) < server.limit and _fits(setting, queue[0], running, used, now):
            input, output, done = queue.popleft()
            used += input + done
            admitted += 1
            heapq.heappush(running, Running(now + output - done, now - done, input, output))
        at = Moment(int(now * STEP), len(running), len(queue), used, setting.held * len(running))
        if admitted:
            lines.append(server.prefill(at))
        gone = 0
        while used + len(running) > server.tokens and len(running) > 1:
            victim = max(running, key=lambda one: (one.begun, one.input))
            running.remove(victim)
            heapq.heapify(running)
            used -= victim.input + now - victim.begun
            queue.append((victim.input, victim.output, now - victim.begun))
            gone += 1
        if gone:
            retractions += 1
            retracted += gone
            lines.append(server.retraction(at.second, gone, slots=gone * setting.held))
        most = max(most, len(running))
        ahead = _ahead(setting, running, coming, used, now, steps)
        why = "none" if not queue else "rows" if len(running) >= server.limit else "kv"
        blocked[why] += ahead
        first.setdefault(why, now * STEP)
        if len(running) >= server.limit:
            rows_full = min(rows_full, now * STEP)
        for step in range(now + 1, now + ahead + 1):
            tokens = used + (step - now) * len(running)
            at = Moment(int(step * STEP), len(running), len(queue), tokens, setting.held * len(running))
            if step % LOG_STEPS == 0 and running:
                lines.append(server.decode(at))
            if step % SCRAPE_STEPS == 0:
                scrapes.append(server.scrape(at, retracted=retracted))
        held_time += ahead * len(running)
        held_tokens += ahead * (used + len(running) * (ahead + 1) / 2)
        now += ahead
        used += ahead * len(running)
        while running and running[0].ends <= now:
            ended = heapq.heappop(running)
            used -= ended.input + ended.output
    return Hour(
        lines="".join(lines),
        scrapes="".join(scrapes),
        retractions=retractions,
        retracted=retracted,
        blocked={name: share / steps for name, share in blocked.items()},
        most_running=most,
        first=first,
        full={"rows": rows_full, "kv": first.get("kv", float(HOUR))},
        tokens_per_request=held_tokens / held_time,
    )


EVERY = 80  # of the lines of the example that is tried one is kept


def example_log() -> str:
    """The text of sizing/server/example.log: a boot of a golden log, and an hour in which its state pool is short."""
    boot = Path(__file__).parent / "golden" / "boot_logs" / "0.5.23_kda_mla_tp8_default.log"
    setting = Setting(Server(slots=257, tokens=1_167_552, limit=51), 4, 1.7, (4_000, 14_000), (300, 2_000))
    lines = simulate(setting, np.random.default_rng(7)).lines.splitlines(keepends=True)
    return boot.read_text(encoding="utf-8") + "".join(lines[::EVERY])


def _arrivals(setting: Setting, rng: Any) -> list[int]:
    """The steps in which requests come: few in the first ten minutes."""
    calm, busy = rng.poisson(setting.rate / 5 * 600), rng.poisson(setting.rate * (HOUR - 600))
    return [*(rng.uniform(0, 600, calm) / STEP).astype(int), *(rng.uniform(600, HOUR, busy) / STEP).astype(int)]


def _fits(setting: Setting, one: tuple[int, int, int], running: list[Running], used: int, now: int) -> bool:
    input, _, done = one
    if setting.max_new_tokens is None:
        return used + input + done + len(running) + 1 <= setting.server.tokens
    others = sum(setting.max_new_tokens - (now - other.begun) for other in running)
    return used + input + done + setting.max_new_tokens + RESERVED * others < setting.server.tokens


def _ahead(setting: Setting, running: list[Running], coming: deque[int], used: int, now: int, steps: int) -> int:
    """Steps until something changes: a request ends or comes, or the next step does not fit."""
    until = [steps - now]
    if coming:
        until.append(max(coming[0] - now, 1))
    if running:
        until.append(running[0].ends - now)
        room = (setting.server.tokens - used) // len(running)
        until.append(room if room >= 1 else 1)
    return max(min(until), 1)
