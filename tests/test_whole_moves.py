"""What a move sends: to the browser as one piece, in order, whatever comes between."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.types import Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages.parts import whole_moves
from pages.parts.whole_moves import SHORT, WholeMoves

FINISHED = ForwardMsg.ScriptFinishedStatus
ENDS = {
    "ended": FINISHED.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
    "failed": FINISHED.FINISHED_WITH_COMPILE_ERROR,
    "cut short": FINISHED.FINISHED_EARLY_FOR_RERUN,
}
LARGE = "large " + "x" * SHORT
Step = Callable[[Receive, Send], Awaitable[None]]


def told(what: str) -> Message:
    """A message of the server: a status, an end, or an element of that text."""
    message = ForwardMsg()
    if what in ("runs", "stands"):
        message.session_status_changed.script_is_running = what == "runs"
    elif what in ENDS:
        message.script_finished = ENDS[what]
    else:
        message.delta.new_element.text.body = what
    return {"type": "websocket.send", "bytes": message.SerializeToString()}


def words(message: Message) -> str:
    """What `told` made the message of."""
    return next(what for what in (*ENDS, "runs", "stands", "a", "b", "c", LARGE) if told(what) == message)


def asked(page: str) -> Message:
    """A message of the browser: run this page, or the first."""
    message = BackMsg()
    message.rerun_script.query_string = "L=4096"
    message.rerun_script.page_script_hash = page
    return {"type": "websocket.receive", "bytes": message.SerializeToString()}


def pieces(*steps: str | Message) -> list[list[str]]:
    """What the browser has got after each message that the server sends or the browser asks with, "..." being a wait
    longer than a run is held.
    """
    got: list[str] = []
    found: list[list[str]] = []

    async def send(message: Message) -> None:
        await asyncio.sleep(0)  # a socket may let others go first
        got.append(words(message))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for step in steps:
            if step == "...":
                await asyncio.sleep(10 * whole_moves.WAIT_S)
            elif isinstance(step, str):
                await send(told(step))
            else:
                assert await receive() == step
            found.append(got.copy())
            got.clear()

    arriving = iter([step for step in steps if not isinstance(step, str)])

    async def receive() -> Message:
        return next(arriving)

    asyncio.run(WholeMoves(app)({"type": "websocket"}, receive, send))
    assert not got
    return found


@pytest.fixture(autouse=True)
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait that no test notices."""
    monkeypatch.setattr(whole_moves, "WAIT_S", 0.02)


FIRST, MOVE = asked(""), asked("page")


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        # the first run: as Streamlit sends it
        ((FIRST, "runs", "a", "ended", "stands"), [[], ["runs"], ["a"], ["ended"], ["stands"]]),
        # a move: at once when it has ended, and nothing of that it ran
        ((MOVE, "stands", "a", "runs", LARGE, "b", "ended", "stands"),
         [[], [], [], [], [], [], ["a", LARGE, "b", "ended"], []]),
        # a long one: from then on as Streamlit does
        ((MOVE, "a", "runs", "...", "b", "ended", "stands"), [[], [], [], ["a", "runs"], ["b"], ["ended"], ["stands"]]),
        # the move after it is held again
        ((MOVE, "runs", "...", "a", "ended", "stands", MOVE, "b", "runs", "ended", "stands"),
         [[], [], ["runs"], ["a"], ["ended"], ["stands"], [], [], [], ["b", "ended"], []]),
        # one that is cut short by the next: both together
        ((MOVE, "runs", "a", MOVE, "cut short", "b", "ended", "stands"),
         [[], [], [], [], [], [], ["a", "cut short", "b", "ended"], []]),
        # one that had ended when the next was asked for: each as a whole
        ((MOVE, "a", MOVE, "ended", "stands", "runs", "b", "ended", "stands"),
         [[], [], [], ["a", "ended"], [], [], [], ["b", "ended"], []]),
        # the first run is under way when a move begins: what was told is untold
        ((FIRST, "runs", "a", MOVE, "cut short", "b", "ended", "stands"),
         [[], ["runs"], ["a"], [], [], [], ["cut short", "b", "ended"], ["stands"]]),
        # an error ends a run too
        ((MOVE, "runs", "a", "failed", "stands"), [[], [], [], ["a", "failed"], []]),
    ],
)  # fmt: skip
def test_moves_are_whole(steps: tuple[str | Message, ...], expected: list[list[str]]) -> None:
    assert pieces(*steps) == expected


@pytest.mark.parametrize("data", [b"\xff\xff", b"", None])
def test_what_is_no_message_passes(data: bytes | None) -> None:
    """Of what Streamlit does not speak nothing is held, and nothing fails."""
    strange: Message = {"type": "websocket.receive", "bytes": data}
    assert pieces(strange, "runs", "a") == [[], ["runs"], ["a"]]


def test_a_closed_socket_takes_what_was_held() -> None:
    """The close comes after what was sent before it, and nobody waits on."""
    got: list[str] = []

    async def send(message: Message) -> None:
        got.append(message["type"])

    async def receive() -> Message:
        return MOVE

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send(told("a"))
        await send({"type": "websocket.close", "code": 1000})

    async def run() -> None:
        await WholeMoves(app)({"type": "websocket"}, receive, send)
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(run())
    assert got == ["websocket.send", "websocket.close"]
