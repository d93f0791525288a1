"""A running server of any release in RELEASES: what it tells while it runs, beside what was predicted.

>>> from sizing.server import read_server
>>> facts = read_server('''
... [2026-01-15 10:00:05 TP0] Decode batch, #running-req: 51, #full token: 478691, full token usage: 0.41, mamba num: \
204, mamba usage: 0.79, cuda graph: True, gen throughput (token/s): 812.40, #queue-req: 9
... [2026-01-15 10:00:06 TP0] Decode batch, #running-req: 51, #full token: 478742, full token usage: 0.41, mamba num: \
204, mamba usage: 0.79, cuda graph: True, gen throughput (token/s): 809.12, #queue-req: 9
... ''')
>>> facts.main.held, facts.main.peaks.kv, facts.length_in_use
(4.0, 0.41, 9387)
"""

from collections.abc import Iterable
from pathlib import Path

from sizing.bootlog.text import Progress
from sizing.server.facts import RankFacts, ServerFacts, facts_of
from sizing.server.reading import reading_of, reading_of_file

__all__ = ["RankFacts", "ServerFacts", "read_server", "read_server_chunks", "read_server_file"]


def read_server(text: str) -> ServerFacts | None:
    """What a text says of a running server; None where it says nothing. Raises nothing."""
    return facts_of(reading_of([text.encode("utf-8", "replace")]))


def read_server_chunks(chunks: Iterable[bytes], progress: Progress | None = None) -> ServerFacts | None:
    """The same of chunks of bytes, plain or gzip; `progress` is called with the bytes taken so far."""
    return facts_of(reading_of(chunks, progress))


def read_server_file(path: Path, progress: Progress | None = None) -> ServerFacts | None:
    """The same of a file. Raises OSError where it cannot be read."""
    return facts_of(reading_of_file(path, progress))
