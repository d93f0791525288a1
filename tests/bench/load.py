"""How does one server process hold up under fifty people moving the L slider?

Fifty websocket clients speak Streamlit's own protocol to the real page (`app.py`), each moving the
L slider every two seconds on average. The clock of a move runs from sending the rerun request to
receiving the "script finished" message of that rerun. Nothing is drawn: this is the server's part
of what `slider.py` measures, with company.

How to read it: p95 is the result. Its aim stands beside it; nothing fails when it is missed.
"showing it" counts the replies that contained the text "L = <new value>"; if that is fewer than the
moves, the clients did not really move the slider and the times are worthless. Fewer moves/s than
asked for means that the server could not keep up. The clients run on the same machine and take
their share of it, as does anything else that runs there; "CPU ms / move" depends on that the least
and is the number to compare two versions of the page by. The exit code is 1 only if something could
not be measured.

    python tests/bench/load.py [--sessions 50] [--seconds 20] [--gap 2.0] [--seed 1] [--app FILE]
"""

import argparse
import asyncio
import random
import re
import sys
import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Slider_pb2 import Slider

# Streamlit's own server is built on this library, so it is always there.
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.serving import HOST, ROOT, CannotMeasureError, Server, percentile, serve

AIM_P95_MS = 500
WARM_UP_S = 4.0
RERUN_LIMIT_S = 30.0
CONNECTING_AT_ONCE = 4  # first runs are the dearest; all at once would only measure their queue
MOST_SESSIONS, MOST_SECONDS = 200, 120
LARGEST_MESSAGE = 2**24


@dataclass(frozen=True)
class Move:
    """One slider move of one client."""

    sent_at: float
    elapsed_ms: float
    shown: bool


@dataclass(frozen=True)
class Usage:
    """What the server has used up to a moment."""

    at: float
    cpu_s: float
    mib: float

    @classmethod
    def of(cls, server: Server) -> "Usage":
        return cls(time.perf_counter(), server.cpu_s(), server.resident_mib())


@dataclass
class Client:
    """One browser's worth of session: a websocket, the L slider found on it, and its moves."""

    socket: ClientConnection
    chance: random.Random
    slider: Slider = field(default_factory=Slider)
    fragment: str = ""
    option: str = ""
    page: str = ""
    query: str = ""
    moves: list[Move] = field(default_factory=list)

    async def first_run(self) -> None:
        """Run the page once and learn from the reply what a browser would learn."""
        request = BackMsg()
        request.rerun_script.SetInParent()
        replies = [ForwardMsg.FromString(raw) for raw in await self.rerun(request)]
        found = find_l_slider(replies)
        self.slider, self.fragment = found.new_element.slider, found.fragment_id
        for reply in replies:
            if reply.HasField("navigation"):
                self.page = reply.navigation.page_script_hash

    async def play(self, gap_s: float, end: float) -> None:
        """Move until `end`. A late reply delays the next move; the schedule does not wait for it."""
        due = time.perf_counter()
        while True:
            due += self.chance.expovariate(1 / gap_s)
            if max(due, time.perf_counter()) >= end:
                return
            await asyncio.sleep(due - time.perf_counter())
            self.moves.append(await self.move_slider())

    async def move_slider(self) -> Move:
        self.option = self.chance.choice([option for option in self.slider.options if option != self.option])
        request = BackMsg()
        request.rerun_script.page_script_hash = self.page
        request.rerun_script.query_string = self.query
        request.rerun_script.fragment_id = self.fragment  # empty unless the page puts the slider in one
        state = request.rerun_script.widget_states.widgets.add(id=self.slider.id)
        # The value of a select_slider travels as the text of the option, not as its index.
        state.string_array_value.data.append(self.option)
        sent_at = time.perf_counter()
        replies = await self.rerun(request)
        elapsed_ms = (time.perf_counter() - sent_at) * 1000
        wanted = f"L = {tokens(self.option):,}".encode()
        return Move(sent_at, elapsed_ms, any(wanted in raw for raw in replies))

    async def rerun(self, request: BackMsg) -> list[bytes]:
        """Send one request and collect the messages up to the end of its run."""
        replies: list[bytes] = []
        await self.socket.send(request.SerializeToString())
        async with asyncio.timeout(RERUN_LIMIT_S):
            while True:
                replies.append(await self.socket.recv(decode=False))
                message = ForwardMsg.FromString(replies[-1])
                if message.HasField("page_info_changed"):
                    self.query = message.page_info_changed.query_string  # as a browser's address bar does
                if ends_run(message):
                    return replies


def ends_run(message: ForwardMsg) -> bool:
    """A run that st.rerun() cuts short also says "finished", but with another status than these."""
    status = ForwardMsg.ScriptFinishedStatus
    complete = (status.FINISHED_SUCCESSFULLY, status.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)
    return message.WhichOneof("type") == "script_finished" and message.script_finished in complete


def find_l_slider(replies: Iterable[ForwardMsg]) -> Delta:
    for reply in replies:
        slider = reply.delta.new_element.slider
        if slider.type == Slider.Type.SELECT_SLIDER and slider.label.startswith("L"):
            return reply.delta
    raise CannotMeasureError("the page has no select_slider whose label starts with L")


def tokens(option: str) -> int:
    """The number in an option of the L slider, however it is punctuated."""
    return int(re.sub(r"\D", "", option) or 0)


async def open_clients(stack: AsyncExitStack, port: int, count: int, seed: int) -> list[Client]:
    """Connect all clients and let each run the page once."""
    gate = asyncio.Semaphore(CONNECTING_AT_ONCE)

    async def open_client(number: int) -> Client:
        async with gate:
            connection = connect(
                f"ws://{HOST}:{port}/_stcore/stream",
                subprotocols=[Subprotocol("streamlit")],
                max_size=LARGEST_MESSAGE,
                proxy=None,  # a proxy set in the environment must never see this traffic
            )
            socket = await stack.enter_async_context(connection)
            client = Client(socket, random.Random(f"{seed}-{number}"))
            await client.first_run()
            return client

    return list(await asyncio.gather(*(open_client(number) for number in range(count))))


async def measure(server: Server, options: argparse.Namespace) -> str:
    """Open all clients, let them play, and tell how it went."""
    before = Usage.of(server)
    async with AsyncExitStack() as stack:
        clients = await open_clients(stack, server.port, options.sessions, options.seed)
        opened = Usage.of(server)
        start = time.perf_counter() + WARM_UP_S
        await asyncio.gather(*(client.play(options.gap, start + options.seconds) for client in clients))
        played = Usage.of(server)
    moves = [move for client in clients for move in client.moves]
    measured = [move for move in moves if move.sent_at >= start]
    if not measured:
        raise CannotMeasureError("no client made a move: give it more sessions or more seconds")
    return report(measured, options) + "\n" + report_usage((before, opened, played), len(moves))


def report(moves: list[Move], options: argparse.Namespace) -> str:
    times = [move.elapsed_ms for move in moves]
    rate, asked = len(moves) / options.seconds, options.sessions / options.gap
    p95 = percentile(times, 95)
    return table(
        ("sessions", f"{options.sessions}", ""),
        ("moves", f"{len(moves)}", ""),
        ("  showing it", f"{sum(move.shown for move in moves)}", "must equal the moves"),
        ("moves/s", f"{rate:.1f}", f"{rate / asked:.2f} of the {asked:.1f} asked for"),
        ("rerun p50 ms", f"{percentile(times, 50):.0f}", ""),
        ("rerun p95 ms", f"{p95:.0f}", f"{p95 / AIM_P95_MS:.2f} of the aim: p95 under {AIM_P95_MS} ms"),
        ("rerun max ms", f"{max(times):.0f}", ""),
    )


def report_usage(usage: tuple[Usage, Usage, Usage], moves: int) -> str:
    before, opened, played = usage
    cpu_s, wall_s = played.cpu_s - opened.cpu_s, played.at - opened.at
    return table(
        ("CPU ms / move", f"{1000 * cpu_s / moves:.1f}", "of the server, warm-up included"),
        ("CPU cores", f"{cpu_s / wall_s:.2f}", "it cannot use much more than 1: Python's lock"),
        ("server MiB", f"{before.mib:.0f}", "before the first session"),
        ("", f"{opened.mib:.0f}", "all sessions open"),
        ("", f"{played.mib:.0f}", "after the moves"),
    )


def table(*rows: tuple[str, str, str]) -> str:
    return "\n".join(f"{name:14}{value:>8}  {note}".rstrip() for name, value, note in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description="Many sessions on one server process.")
    parser.add_argument("--sessions", type=int, default=50, help="clients (default 50)")
    parser.add_argument("--seconds", type=float, default=20, help="measured time (default 20)")
    parser.add_argument("--gap", type=float, default=2.0, help="mean seconds between two moves")
    parser.add_argument("--seed", type=int, default=1, help="of the moves and their times")
    parser.add_argument("--app", type=Path, default=ROOT / "app.py", help="the page to serve")
    options = parser.parse_args()
    if not (1 <= options.sessions <= MOST_SESSIONS and 1 <= options.seconds <= MOST_SECONDS):
        parser.error(f"at most {MOST_SESSIONS} sessions and {MOST_SECONDS} seconds")
    if options.gap <= 0:
        parser.error("--gap must be more than 0")
    try:
        with serve(options.app) as server:
            print(asyncio.run(measure(server, options)))
    except (CannotMeasureError, TimeoutError, WebSocketException) as error:
        print(f"could not measure: {error or type(error).__name__}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
