"""`python tests/watched.py FILE COMMAND...`: `streamlit COMMAND...`, with every way out of the machine shut and noted.

An audit hook cannot be taken back and sees every connection, datagram and name looked up, whichever library asks.
"""

import ipaddress
import sys
from pathlib import Path
from typing import Any

# Where in an event's arguments the address or the name stands, as Python's own socket module raises them.
ASKED = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
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


if __name__ == "__main__":
    watch(Path(sys.argv[1]))
    from streamlit.web import cli

    cli.main(sys.argv[2:], prog_name="streamlit")
