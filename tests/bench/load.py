"""What a move costs the server, and how one server process holds up under sixty people who move L, D and the ratio.

Websocket clients speak Streamlit's own protocol to the real page (`app.py`). The clock of a move runs from sending the
rerun request to receiving the "script finished" message of that rerun. Nothing is drawn: this is the server's part of
what `slider.py` measures, with company.

    python tests/bench/load.py [--sessions 60] [--servers 1] [--seconds 20] [--gap 2.0] [--seed 1]
        [--beside REVISION] [--app FILE]

Beside this tree an older revision and the floor (`floor_app.py`: one slider, one line of text) are measured in the same
minutes, their moves in turn. First one client makes moves one at a time: the processor time of the server for each, and
its messages. Then all clients move at random times, each one of the three inputs in turn.

How to read it: "CPU ms / move" and p95 are the results. Their aims stand beside them; nothing fails when one is missed.
"showing it" counts the replies that brought the new value; if that is fewer than the moves, the clients did not really
move anything and the times are worthless. Fewer moves/s than asked for means that the server could not keep up. The
clients run on the same machine and take their share of it, as does anything else that runs there; processor time
depends on that the least and is the number to compare two versions of the page by. "queue p95" leaves all that out:
what the replies would take if the server had one core to itself. The exit code is 1 only if something
could not be measured.
"""

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.Slider_pb2 import Slider

# Streamlit's own server is built on this library, so it is always there.
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException
from websockets.typing import Subprotocol

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.bench.serving import HOST, ROOT, CannotMeasureError, Server, measuring, percentile, serve

AIM_P95_MS, AIM_CPU_MS = 500, 10
WARM_UP_S = 4.0
WARM_UP_MOVES = 5
ALONE = 40  # moves of one client for each input
ROUNDS = 4  # in so many turns, so that what else runs on the machine meets every version
RERUN_LIMIT_S = 30.0
CONNECTING_AT_ONCE = 4  # first runs are the dearest; all at once would only measure their queue
MOST_SESSIONS, MOST_SECONDS, MOST_SERVERS = 200, 120, 8
LARGEST_MESSAGE = 2**24
RATIOS = [round(0.21 + step / 50, 2) for step in range(120)]  # not the default, which no address holds


@dataclass(frozen=True)
class Control:
    """A widget as a browser knows it, and what it may be moved to."""

    widget: str
    fragment: str
    """Empty where a move runs the whole page."""
    values: list[str] | list[float]


@dataclass(frozen=True)
class Move:
    """One move of one client."""

    sent_at: float
    elapsed_ms: float
    shown: bool
    messages: int
    size: int


@dataclass(frozen=True)
class Usage:
    """What the server has used up to a moment."""

    at: float
    cpu_s: float
    mib: float

    @classmethod
    def of(cls, server: Server) -> "Usage":
        return cls(time.perf_counter(), server.cpu_s(), server.resident_mib())

    @classmethod
    def of_all(cls, servers: Iterable[Server]) -> "Usage":
        """Of several together."""
        found = [cls.of(server) for server in servers]
        return cls(found[-1].at, sum(each.cpu_s for each in found), sum(each.mib for each in found))


@dataclass
class Client:
    """One browser's worth of session: a websocket, the widgets found on the page, and its moves."""

    socket: ClientConnection
    chance: random.Random
    controls: dict[str, Control] = field(default_factory=dict)
    at: dict[str, str | float] = field(default_factory=dict)
    page: str = ""
    query: str = ""
    moves: list[Move] = field(default_factory=list)

    async def first_run(self, query: str) -> None:
        """Open the page with a link and learn from the reply what a browser would learn."""
        request = BackMsg()
        request.rerun_script.query_string = query
        replies = [ForwardMsg.FromString(raw) for raw in await self.rerun(request)]
        self.controls = find_controls(replies)
        for reply in replies:
            if reply.HasField("navigation"):
                self.page = reply.navigation.page_script_hash

    async def play(self, gap_s: float, end: float) -> None:
        """Move each input in turn until `end`. A late reply delays the next move; the schedule does not wait for it."""
        due = time.perf_counter()
        while True:
            due += self.chance.expovariate(1 / gap_s)
            if max(due, time.perf_counter()) >= end:
                return
            await asyncio.sleep(due - time.perf_counter())
            names = list(self.controls)
            self.moves.append(await self.move(names[len(self.moves) % len(names)]))

    async def move(self, name: str) -> Move:
        """Set one input to another value, and wait for the page."""
        control = self.controls[name]
        value = self.chance.choice([value for value in control.values if value != self.at.get(name)])
        self.at[name] = value
        request = BackMsg()
        request.rerun_script.page_script_hash = self.page
        request.rerun_script.query_string = self.query
        request.rerun_script.fragment_id = control.fragment
        state = request.rerun_script.widget_states.widgets.add(id=control.widget)
        if isinstance(value, str):
            # The value of a select_slider travels as the text of the option, not as its index.
            state.string_array_value.data.append(value)
        else:
            state.double_value = value
        sent_at = time.perf_counter()
        replies = await self.rerun(request)
        elapsed_ms = (time.perf_counter() - sent_at) * 1000
        return Move(sent_at, elapsed_ms, self.shows(name, replies), len(replies), sum(map(len, replies)))

    def shows(self, name: str, replies: list[bytes]) -> bool:
        """Whether the reply brought the new value: in the words of the page, or in its address."""
        value = self.at[name]
        if name == "L":
            wanted = f"L = {tokens(str(value)):,}".encode()
            return any(wanted in raw for raw in replies)
        return f"{name}={value}" in self.query.split("&")

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


def find_controls(replies: Iterable[ForwardMsg]) -> dict[str, Control]:
    """The widgets of L, D and the ratio; of the floor, L alone."""
    deltas = [reply.delta for reply in replies]
    sliders = [
        delta
        for delta in deltas
        if delta.new_element.slider.type == Slider.Type.SELECT_SLIDER and delta.new_element.slider.options
    ]
    found = {
        "L": _slider(sliders, lambda label: label.startswith("L")),
        "D": _slider(sliders, lambda label: "raft tokens" in label, least="1"),
    }
    for delta in deltas:
        box = delta.new_element.number_input
        if "ratio" in box.label.lower():
            found["mamba_full_memory_ratio"] = Control(box.id, delta.fragment_id, RATIOS)
    controls = {name: control for name, control in found.items() if control is not None}
    if "L" not in controls:
        raise CannotMeasureError("the page has no select_slider whose label starts with L")
    return controls


def _slider(sliders: list[Delta], fits: Callable[[str], bool], least: str = "") -> Control | None:
    for delta in sliders:
        slider = delta.new_element.slider
        if fits(slider.label):
            options = list(slider.options)
            return Control(slider.id, delta.fragment_id, options[options.index(least) if least else 0 :])
    return None


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
            # Each of a deployment of its own: what is kept for one is of no use to another.
            await client.first_run(f"rest_gib={28 + seed + number / 1000:.3f}")
            return client

    return list(await asyncio.gather(*(open_client(number) for number in range(count))))


async def alone(servers: dict[str, Server], seed: int) -> str:
    """One client of each server moves each input, one move at a time, the servers in turn."""
    costs: dict[tuple[str, str], list[tuple[float, int, list[Move]]]] = {}
    async with AsyncExitStack() as stack:
        clients = {name: (await open_clients(stack, server.port, 1, seed))[0] for name, server in servers.items()}
        for turn in range(ROUNDS + 1):
            for name, client in clients.items():
                for control in client.controls:
                    before = servers[name].cpu_s()
                    moves = [await client.move(control) for _ in range(ALONE // ROUNDS if turn else WARM_UP_MOVES)]
                    cost = servers[name].cpu_s() - before
                    if turn:
                        costs.setdefault((name, control), []).append((cost, len(moves), moves))
    rows = []
    for (name, control), turns in costs.items():
        made = [move for _, _, moves in turns for move in moves]
        if not all(move.shown for move in made):
            raise CannotMeasureError(f"{name}: {control} was not moved")
        cpu = 1000 * sum(cost for cost, _, _ in turns) / len(made)
        rows.append(
            f"{name:10}{control:25}{cpu:>8.1f}{percentile([move.elapsed_ms for move in made], 50):>8.1f}"
            f"{sum(move.messages for move in made) / len(made):>10.1f}"
            f"{sum(move.size for move in made) / len(made) / 1024:>8.1f}"
        )
    title = f"{'version':10}{'input moved':25}{'CPU ms':>8}{'p50 ms':>8}{'messages':>10}{'KiB':>8}"
    return "\n".join((f"One move at a time, aim {AIM_CPU_MS} ms of processor", title, *rows))


async def measure(servers: list[Server], options: argparse.Namespace) -> str:
    """Open all clients, shared out over the servers, let them play, and tell how it went."""

    async def open_more(count: int, seed: int) -> list[Client]:
        shares = [len(range(number, count, len(servers))) for number in range(len(servers))]
        found = [
            await open_clients(stack, server.port, share, seed + number)
            for number, (server, share) in enumerate(zip(servers, shares, strict=True))
        ]
        return [client for clients in found for client in clients]

    async with AsyncExitStack() as stack:
        few = await open_more(max(options.sessions // 4, len(servers)), options.seed)
        before = Usage.of_all(servers)  # with what the first sessions load, once for all
        clients = few + await open_more(options.sessions - len(few), options.seed + len(servers))
        opened = Usage.of_all(servers)
        own = time.process_time()
        start = time.perf_counter() + WARM_UP_S
        await asyncio.gather(*(client.play(options.gap, start + options.seconds) for client in clients))
        played, own = Usage.of_all(servers), time.process_time() - own
    moves = [move for client in clients for move in client.moves]
    measured = [move for move in moves if move.sent_at >= start]
    if not measured:
        raise CannotMeasureError("no client made a move: give it more sessions or more seconds")
    usage = report_usage((before, opened, played), len(clients) - len(few), len(moves), own)
    each_ms = 1000 * (played.cpu_s - opened.cpu_s) / len(moves)
    return "\n".join((report(measured, options), report_queue(options, each_ms), usage))


def report(moves: list[Move], options: argparse.Namespace) -> str:
    times = [move.elapsed_ms for move in moves]
    rate, asked = len(moves) / options.seconds, options.sessions / options.gap
    p95 = percentile(times, 95)
    return table(
        ("sessions", f"{options.sessions}", ""),
        ("moves", f"{len(moves)}", "L, D and the ratio in turn"),
        ("  showing it", f"{sum(move.shown for move in moves)}", "must equal the moves"),
        ("moves/s", f"{rate:.1f}", f"{rate / asked:.2f} of the {asked:.1f} asked for"),
        ("rerun p50 ms", f"{percentile(times, 50):.0f}", ""),
        ("rerun p95 ms", f"{p95:.0f}", f"{p95 / AIM_P95_MS:.2f} of the aim: p95 under {AIM_P95_MS} ms"),
        ("rerun max ms", f"{max(times):.0f}", ""),
    )


def report_queue(options: argparse.Namespace, each_ms: float) -> str:
    """Moves at the rate asked for of one server, one after another on a core that nothing else uses."""
    chance, at, free_at, waits = random.Random(options.seed), 0.0, 0.0, []
    while at < options.seconds:
        at += chance.expovariate(options.sessions / options.gap / options.servers)
        free_at = max(free_at, at) + each_ms / 1000
        waits.append(1000 * (free_at - at))
    p95 = percentile(waits, 95)
    note = f"{p95 / AIM_P95_MS:.2f} of the aim, computed from CPU ms / move at the rate asked for"
    return table(("queue p95 ms", f"{p95:.0f}", note))


def report_usage(usage: tuple[Usage, Usage, Usage], later: int, moves: int, clients_s: float) -> str:
    """`later` sessions were opened between the first two; the clients took `clients_s` of processor time [s]."""
    before, opened, played = usage
    cpu_s, wall_s = played.cpu_s - opened.cpu_s, played.at - opened.at
    each = cpu_s / moves
    return table(
        ("CPU ms / move", f"{1000 * each:.1f}", "of the server, warm-up included"),
        (
            "CPU cores",
            f"{cpu_s / wall_s:.2f}",
            f"a server cannot use much more than 1; the clients took {clients_s / wall_s:.2f}",
        ),
        ("moves/s/core", f"{1 / each:.0f}", "what one core could answer"),
        ("server MiB", f"{before.mib:.0f}", "a quarter of the sessions open"),
        ("", f"{opened.mib:.0f}", "all sessions open"),
        ("", f"{played.mib:.0f}", "after the moves"),
        ("MiB / session", f"{(opened.mib - before.mib) / max(later, 1):.2f}", "from the two above"),
    )


def table(*rows: tuple[str, str, str]) -> str:
    return "\n".join(f"{name:14}{value:>8}  {note}".rstrip() for name, value, note in rows)


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """The page of another revision, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision], check=False, cwd=ROOT, capture_output=True)
        if archive.returncode:
            raise CannotMeasureError(f"git has no revision {revision}")
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder) / "app.py"


def run(options: argparse.Namespace) -> None:
    """Every version alone, then each under load."""
    with ExitStack() as stack:
        pages: dict[str, Any] = {"floor": Path(__file__).with_name("floor_app.py")}
        if options.beside:
            pages["before"] = stack.enter_context(checked_out(options.beside))
        pages["now"] = options.app
        servers = {name: stack.enter_context(serve(page)) for name, page in pages.items()}
        print(asyncio.run(alone(servers, options.seed)))
        for name in [name for name in servers if name != "floor"]:
            more = [stack.enter_context(serve(pages[name])) for _ in range(options.servers - 1)]
            print(f"\nUnder load, {name}\n{asyncio.run(measure([servers[name], *more], options))}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description="What a move costs, and many sessions on one server process.")
    parser.add_argument("--sessions", type=int, default=60, help="clients (default 60)")
    parser.add_argument("--servers", type=int, default=1, help="server processes that share them (default 1)")
    parser.add_argument("--seconds", type=float, default=20, help="measured time (default 20)")
    parser.add_argument("--gap", type=float, default=2.0, help="mean seconds between two moves")
    parser.add_argument("--seed", type=int, default=1, help="of the moves and their times")
    parser.add_argument("--beside", metavar="REVISION", help="an older revision, measured in the same run")
    parser.add_argument("--app", type=Path, default=ROOT / "app.py", help="the page to serve")
    options = parser.parse_args()
    if not 1 <= options.servers <= min(MOST_SERVERS, options.sessions // 2):
        parser.error(f"at most {MOST_SERVERS} servers, and two sessions for each")
    if not (1 <= options.sessions <= MOST_SESSIONS and 1 <= options.seconds <= MOST_SECONDS):
        parser.error(f"at most {MOST_SESSIONS} sessions and {MOST_SECONDS} seconds")
    if options.gap <= 0:
        parser.error("--gap must be more than 0")
    with measuring(TimeoutError, WebSocketException):
        run(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
