"""A move reaches the browser whole.

Streamlit sends each element when it is made, and says when a script begins and ends. For each of these the browser goes
through every widget of the page, which took an eighth to a quarter of the time of a change (tests/bench/inputs.py). So
what a run sends is held until it has ended, and the browser is not told that it ran. The first run of a page that is
opened, and one that takes longer, are sent as Streamlit does.
"""

import asyncio
from contextlib import suppress
from functools import partial

from google.protobuf.message import DecodeError
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

WAIT_S = 0.2  # a reader who has waited so long should see that something runs
SHORT = 512  # bytes; what says that a script began or ended is shorter, an answer need not be read


class WholeMoves:
    """Lets each move of each browser pass as a whole."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one WebSocket."""
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        browser = _Browser(send)
        try:
            await self.app(scope, partial(browser.received, receive), browser.sent)
        finally:
            browser.stop_waiting()


class _Browser:
    """What is held back from one browser."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._in_turn = asyncio.Lock()
        self._held: list[tuple[Message, str]] | None = None
        """In order, each with what it says of the script; None while nothing is held."""
        self._waiting: asyncio.Task[None] | None = None
        self._told_running = False
        self._asked_since = False
        """Whether another run was asked for that what is held does not answer."""

    async def received(self, receive: Receive) -> Message:
        """The browser's next message; from one that asks for a run on, what is sent is held."""
        message = await receive()
        if _asks_again(message):
            if self._held is None:
                self._hold()
            else:
                self._asked_since = True
        return message

    async def sent(self, message: Message) -> None:
        """One message to the browser, now or with the others of its run."""
        async with self._in_turn:
            said = _said(message)
            if said == "stands" and not self._told_running:
                return
            if self._held is None:
                await self._pass_on(message, said)
                return
            self._held.append((message, said))
            if said == "cut short":  # the run that follows at once is of what was asked since
                self._asked_since = False
            elif said == "ended" or message["type"] != "websocket.send":
                self.stop_waiting()
                await self._let_go(ended=True)
                if self._asked_since:
                    self._hold()

    def stop_waiting(self) -> None:
        """Nobody waits for the end of a run any more."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _hold(self) -> None:
        self._held, self._asked_since = [], False
        self._waiting = asyncio.create_task(self._wait())

    async def _wait(self) -> None:
        await asyncio.sleep(WAIT_S)
        self._waiting = None  # from here on it is not cancelled
        with suppress(OSError, RuntimeError):  # the browser went meanwhile
            async with self._in_turn:
                await self._let_go(ended=False)

    async def _let_go(self, *, ended: bool) -> None:
        """Send what is held; that a script runs only if it still does."""
        held, self._held = self._held or [], None
        for message, said in held:
            if not (ended and said == "runs"):
                await self._pass_on(message, said)

    async def _pass_on(self, message: Message, said: str) -> None:
        if said in ("runs", "stands"):
            self._told_running = said == "runs"
        await self._send(message)


def _asks_again(message: Message) -> bool:
    """Whether a browser asks for a run of a page that it has; its first request names none."""
    try:
        asked = BackMsg.FromString(message.get("bytes") or b"")
    except DecodeError:  # Streamlit says what it thinks of that
        return False
    return bool(asked.rerun_script.page_script_hash)


def _said(message: Message) -> str:
    """What a message to the browser says of the script: that it "runs", was "cut short" by the next or "ended",
    or that it "stands"; nothing else.
    """
    data = message.get("bytes") or b""
    if not 0 < len(data) <= SHORT:
        return ""
    told = ForwardMsg.FromString(data)
    kind = told.WhichOneof("type")
    if kind == "session_status_changed":
        return "runs" if told.session_status_changed.script_is_running else "stands"
    if kind != "script_finished":
        return ""
    early = ForwardMsg.ScriptFinishedStatus.FINISHED_EARLY_FOR_RERUN
    return "cut short" if told.script_finished == early else "ended"
