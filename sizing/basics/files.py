"""Opening a file that a user named."""

import os
import stat
from pathlib import Path
from typing import BinaryIO

GZIP = b"\x1f\x8b"
"""What a packed file begins with."""
PIPES = ("/dev/", "/proc/")  # where a shell puts the pipes it makes itself, as <(zcat FILE)


def opened(path: Path) -> BinaryIO:
    """The file, to read its bytes. A pipe that lies in a folder is refused: nobody may ever write into it.

    Raises OSError, and ValueError for a name that no file can have.
    """
    if stat.S_ISFIFO(os.stat(path).st_mode) and not str(path).startswith(PIPES):
        raise OSError("a pipe")
    return path.open("rb")
