"""A replay of the engine's scheduler, request by request: the share of time in which KV holds fewer than are admitted.

It knows nothing of sizing/traffic. It follows sgl-project/sglang, python/sglang/srt/managers, release 0.5.23:

- schedule_batch.py, ScheduleBatch.retract_decode: where the next step does not fit, the request with the fewest output
  tokens is retracted, of those the one with the longest input, until it fits. It frees its KV and keeps its output.
- scheduler.py, Scheduler._add_request_to_queue: a retracted request goes to the end of the waiting queue.
- schedule_policy.py, SchedulePolicy "fcfs": the first in the queue is admitted next, or nobody is.

Left out: the time that a prefill takes, pages, the radix cache and speculation.
"""

import heapq
from collections import deque
from typing import Any, NamedTuple

# environ.py: SGLANG_INIT_NEW_TOKEN_RATIO 0.7 x SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR 0.14, reached 600 steps after a boot
# or a retraction.
CLIP = 4096  # environ.py: SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION
RESERVED = 0.7 * 0.14  # [-] of the output that each running request may still generate


class Running(NamedTuple):
    """One request in flight; of several the next to end is the least."""

    ends: int
    """The step after which it has all of its output."""
    begun: int
    """The step at which it would have begun, had it never stood still: the later, the fewer output tokens it has."""
    input: int
    """[tokens]"""
    output: int
    """[tokens]"""


def replay(
    inputs: Any,
    outputs: Any,
    admitted: int,
    tokens: int,
    requests: int,
    rng: Any,
    *,
    waiting: int = 0,
    max_new_tokens: int | None = None,
    margin: int | None = None,
) -> float:
    """The share of steps [-] in which fewer than `admitted` requests run because KV of so many `tokens` is short.

    `admitted` requests and so many `waiting` ones are there at any time: when one ends another joins the queue, drawn
    from the two arrays. It ends with the last of so many `requests`; the first tenth is not counted. No request may be
    longer than `tokens`.

    A request is admitted where what it holds and one token for everyone fit. With `max_new_tokens` that everyone asks
    for, or with a `margin` above its own output, the engine's own rule holds, which keeps room for tokens to come:
    schedule_policy.py, PrefillAdder.add_one_req.
    """
    draws = rng.integers(len(inputs), size=requests)
    coming = zip(inputs[draws].tolist(), outputs[draws].tolist(), strict=True)
    queue = deque((*next(coming), 0) for _ in range(admitted + waiting))
    running: list[Running] = []
    now = used = ended = counted = short = 0
    while True:
        while len(running) < admitted:
            input, output, done = queue[0]
            if max_new_tokens is None and margin is None:
                fits = used + input + done + len(running) + 1 <= tokens
            else:
                others = sum(min(_asked(one.output, max_new_tokens, margin) - now + one.begun, CLIP) for one in running)
                own = min(_asked(output, max_new_tokens, margin) - done, CLIP)
                fits = used + input + done + own + RESERVED * others < tokens
            if not fits:
                break
            queue.popleft()
            used += input + done
            heapq.heappush(running, Running(now + output - done, now - done, input, output))
        retracts = used + len(running) > tokens
        while used + len(running) > tokens:
            victim = max(running, key=lambda one: (one.begun, one.input))
            running.remove(victim)
            heapq.heapify(running)
            used -= victim.input + now - victim.begun
            queue.append((victim.input, victim.output, now - victim.begun))
        # Nobody is admitted before one ends, except where a retraction has just made room.
        steps = 1 if retracts else min(running[0].ends - now, (tokens - used) // len(running))
        now += steps
        used += steps * len(running)
        if ended > requests // 10:
            counted += steps
            short += steps * (len(running) < admitted)
        while running and running[0].ends == now:
            gone = heapq.heappop(running)
            used -= gone.input + gone.output
            ended += 1
            if (new := next(coming, None)) is None:
                return short / counted
            queue.append((*new, 0))


def _asked(output: int, max_new_tokens: int | None, margin: int | None) -> int:
    """What a request declares that it may generate [tokens]."""
    return output + (margin or 0) if max_new_tokens is None else max_new_tokens
