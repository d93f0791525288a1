"""An example to try: the boot log of the worked example, and what its server wrote in a simulated hour."""

from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("example.log")
COMMAND = (
    "sglang serve --model-path example/kda-mla-93l --tp-size 8 --mem-fraction-static 0.85 --page-size 64 "
    "--kv-cache-dtype fp8_e4m3 --mamba-full-memory-ratio 0.9"
)


class Example(NamedTuple):
    """A text to read and the command behind it."""

    log: str
    command: str


def example() -> Example:
    """Both; the lines after the boot are those of a simulation (tests/server_simulation.py), one in eighty."""
    return Example(FILE.read_text(encoding="utf-8"), COMMAND)
