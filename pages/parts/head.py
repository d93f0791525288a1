"""The frame's style stands in the page that the server sends, so that nothing moves when the first run is drawn.

Streamlit has no way to state one: what `st.html` brings is there after what it should place.
"""

from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.parts.presented import PRESENT

HERE = Path(__file__).parent
# Behind Streamlit's own styles, which it appends to the head; `early.css` before what a page itself brings.
BEGIN, END = b"<body>", b"</body>"
# What would let a browser, or Streamlit, answer with the page as it was.
CONDITIONS = {b"accept-encoding", b"if-none-match", b"if-modified-since", b"range"}


class Head:
    """Adds the style to each page; everything else passes as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        frame, early = ((HERE / name).read_text(encoding="utf-8") for name in ("chrome.css", "early.css"))
        self.frame, self.early = (f"<style>{text}</style>".encode() for text in (frame, early))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one WebSocket."""
        if scope["type"] != "http" or scope["method"] != "GET" or not _wants_page(scope):
            await self.app(scope, receive, send)
            return
        early = b"" if PRESENT.encode() in scope["query_string"] else self.early
        headers = [pair for pair in scope["headers"] if pair[0] not in CONDITIONS]
        await self.app({**scope, "headers": headers}, receive, _styled(send, early, self.frame))


def _wants_page(scope: Scope) -> bool:
    return any(name == b"accept" and b"text/html" in value for name, value in scope["headers"])


def _styled(send: Send, early: bytes, frame: bytes) -> Send:
    """The answer with the styles in it, once all of it is there; what is no page unchanged."""
    start: list[Message] = []
    parts: list[bytes] = []

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            if dict(message["headers"]).get(b"content-type", b"").startswith(b"text/html"):
                start.append(message)
                return
        elif start and message["type"] == "http.response.body":
            parts.append(message.get("body", b""))
            if message.get("more_body"):
                return
            body = b"".join(parts).replace(BEGIN, BEGIN + early).replace(END, frame + END)
            headers = MutableHeaders(raw=list(start[0]["headers"]))
            headers["content-length"] = str(len(body))
            for name in ("etag", "last-modified"):  # of the file without it
                del headers[name]
            await send({**start[0], "headers": headers.raw})
            message = {**message, "body": body}
        await send(message)

    return sent
