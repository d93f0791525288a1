"""Who is answered: requests under a name that is served, from a page of that name, for what a browser needs.

`server.allowedHosts` names the hosts; without it the dashboard answers to this machine's own names alone. Streamlit
compares hosts on its WebSocket only, lets every port of localhost in as an origin, and asks an outside service for the
machine's address before it refuses one (streamlit/web/server/server_util.py); so it sees only what has passed here.
"""

import re
from collections.abc import Iterable

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from streamlit import config, net_util

from pages.parts.head import Head
from pages.parts.whole_moves import WholeMoves

HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[\w.-]+))(?::\d{1,5})?", re.ASCII)
LOCAL = ("localhost", "127.0.0.1", "::1")
EVERY = ("0.0.0.0", "::")  # addresses to listen at that are no names
# What a browser asks of Streamlit's own routes (streamlit/web/server/starlette/starlette_routes.py); its counters and
# its interface for agents are not served.
CORE, NEEDED = "_stcore", ("health", "host-config", "stream", "upload_file", "bidi-components")
FOREIGN = {b"cross-site", b"same-site"}  # of another site, or of another port or name below the same one
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"referrer-policy", b"same-origin"),  # the address holds the inputs
)
REFUSED_HOST = "This dashboard is not served under this name. Start it with --server.allowedHosts NAME."
REFUSED_ORIGIN = "This dashboard answers its own pages only."
CLOSED = "Not served."
MOVED = {"clamped": "log"}  # pages by the name in an address, former and now


class Guard:
    """Answers 403 or 404 in place of the app where a request is none of a reader's own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one WebSocket."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
        elif refused := refusal(scope):
            await _refuse(scope, receive, send, *refused)
        elif scope["type"] == "http" and (place := moved(scope)):
            await _answer(send, 308, "", (b"location", place))
        else:
            await self.app(scope, receive, _hardened(send) if scope["type"] == "http" else send)


def refusal(scope: Scope) -> tuple[int, str] | None:
    """The status and the sentence for a request that is not let through."""
    hosts, origins = _values(scope, b"host"), _values(scope, b"origin")
    if len(hosts) != 1 or _host(hosts[0]) not in served():
        return 403, REFUSED_HOST
    if origins and not (len(origins) == 1 and own_origin(origins[0], hosts[0])):
        return 403, REFUSED_ORIGIN
    if _fetched_from_elsewhere(scope):
        return 403, REFUSED_ORIGIN
    return None if _needed(scope["path"]) else (404, CLOSED)


def moved(scope: Scope) -> bytes | None:
    """Where a page of a former name is now, seen from its own address, with the query as it came; None elsewhere.

    >>> moved({"path": "/clamped", "query_string": b"L=1024"}), moved({"path": "/base/clamped/", "query_string": b""})
    (b'log?L=1024', b'../log')
    """
    name = MOVED.get(scope["path"].rstrip("/").rpartition("/")[2])
    if name is None:
        return None
    up, query = "../" if scope["path"].endswith("/") else "", scope["query_string"]
    return f"{up}{name}".encode() + (b"?" + query if query else b"")


def served() -> frozenset[str]:
    """The names that are answered to, in small letters, without ports."""
    stated = {_host(str(name).strip()) for name in config.get_option("server.allowedHosts")}
    address = str(config.get_option("server.address") or "").lower()
    return frozenset({*LOCAL, *stated, *({address} - {*EVERY, ""})})


def own_origin(origin: str, host: str) -> bool:
    """Whether an origin is that of the host's own pages, port included; or one that `corsAllowedOrigins` states.

    >>> own_origin("http://localhost:8501", "localhost:8501"), own_origin("http://localhost:1", "localhost:8501")
    (True, False)
    >>> own_origin("https://sizing.example", "sizing.example"), own_origin("null", "sizing.example")
    (True, False)
    """
    if origin in config.get_option("server.corsAllowedOrigins"):
        return True
    scheme, _, place = origin.partition("://")
    return scheme in ("http", "https") and place == host


def _host(stated: str) -> str:
    """The name in a Host header, without its port; empty where it is none."""
    found = HOST.fullmatch(stated.lower())
    return (found["address"] or found["name"]).rstrip(".") if found else ""


def _fetched_from_elsewhere(scope: Scope) -> bool:
    """Whether a page of another origin wants a part of this one; that it links here is well.

    A browser says so itself for a script, an image or a frame, which bring no Origin.
    """
    if not FOREIGN.intersection(_raw(scope, b"sec-fetch-site")):
        return False
    return _values(scope, b"sec-fetch-mode") != ["navigate"] or _values(scope, b"sec-fetch-dest") != ["document"]


def _needed(path: str) -> bool:
    """Whether a path is a page's, a file's, or one of Streamlit's own that a browser asks for."""
    parts = [part for part in path.split("/") if part]
    return CORE not in parts or next(iter(parts[parts.index(CORE) + 1 :]), "") in NEEDED


def _raw(scope: Scope, name: bytes) -> Iterable[bytes]:
    return (value for key, value in scope["headers"] if key == name)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for value in _raw(scope, name)]


def _hardened(send: Send) -> Send:
    """The app's answer with headers that keep other sites from framing it or reading it."""

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            ours = {name for name, _ in HEADERS}
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() not in ours and not _any(pair)]
            message = {**message, "headers": [*kept, *HEADERS]}
        await send(message)

    return sent


def _any(header: tuple[bytes, bytes]) -> bool:
    """Whether a header opens an answer to every origin."""
    return header[0].lower() == b"access-control-allow-origin" and header[1] == b"*"


async def _refuse(scope: Scope, receive: Receive, send: Send, status: int, words: str) -> None:
    if scope["type"] == "websocket":
        await receive()  # the connect; a close before it is accepted is a 403 to the browser
        await send({"type": "websocket.close", "code": 1008, "reason": words})
        return
    await _answer(send, status, words)


async def _answer(send: Send, status: int, words: str, *more: tuple[bytes, bytes]) -> None:
    body = words.encode()
    plain = (b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*plain, *more, *HEADERS]})
    await send({"type": "http.response.body", "body": body})


def _nowhere() -> None:
    """No address: nothing is looked up."""


def guarded() -> list[Middleware]:
    """The guard for Streamlit's App, the pages' style, and moves as a whole; from now on no address of this machine is
    looked up.
    """
    net_util.get_external_ip = net_util.get_internal_ip = _nowhere
    return [Middleware(Guard), Middleware(Head), Middleware(WholeMoves)]
