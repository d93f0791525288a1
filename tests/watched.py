"""`python tests/watched.py FILE COMMAND...`: `streamlit COMMAND...`, with every way out of the machine shut and noted.

An audit hook cannot be taken back and sees every connection, datagram and name looked up, whichever library asks; but
for uvloop, which asks the system itself and is made to say so.
"""

import ipaddress
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import uvloop

# Where in an event's arguments the address or the name stands, as Python's own socket module raises them.
ASKED = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
}


# What a loop of uvloop asks of the system, and where the host stands in its arguments.
BY_LOOP: dict[str, Callable[..., Any]] = {
    "create_connection": lambda self, factory, host=None, *_, **__: host,
    "create_datagram_endpoint": lambda self, factory, local_addr=None, remote_addr=None, **_: remote_addr,
    "getaddrinfo": lambda self, host, *_, **__: host,
    "sock_connect": lambda self, sock, address: address,
    "sock_sendto": lambda self, sock, data, address: address,
}


def outside(event: str, arguments: tuple[Any, ...]) -> str | None:
    """The host that is not this machine; None for every other event."""
    if event not in ASKED:
        return None
    address = arguments[ASKED[event]]
    host = address[0] if isinstance(address, tuple) else address
    if host is None or not isinstance(host, str) or host in ("localhost", "", "unix"):
        return None
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return None if host.startswith("/") else host
    return None if found.is_loopback or found.is_unspecified else host


def watch(notes: Path) -> None:
    """From now on nothing leaves; what wanted to is a line of `notes`."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        host = outside(event, arguments)
        if host is not None:
            with notes.open("a", encoding="utf-8") as file:
                file.write(f"{event} {host}\n")
            raise OSError(f"{event} {host}: nothing leaves this machine")

    sys.addaudithook(hook)
    for name, host_of in BY_LOOP.items():
        setattr(uvloop.Loop, name, told(getattr(uvloop.Loop, name), host_of))


def told(ask: Callable[..., Any], host_of: Callable[..., Any]) -> Callable[..., Any]:
    """A method of a loop that says first whom it asks for."""

    async def asked(*arguments: Any, **named: Any) -> Any:
        sys.audit("socket.connect", None, host_of(*arguments, **named))
        return await ask(*arguments, **named)

    return asked


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
    from streamlit.web import cli

    cli.main(sys.argv[2:], prog_name="streamlit")
