"""Where words stand beside points so that nothing is covered: boxes in pixels from the axes' lower left corner."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import numpy as np

LINE_WIDTH = 32  # characters of a line of a name, as wide as the margin that it stands in
MOST_LINES = 3  # of a name
DIGIT, LINE = 8.0, 16.0  # [px] of one character and of one line in the figures' normal size
SAMPLES = 24  # of a path under a box
# Where Plotly puts words beside a mark: the signs of the way from the mark, to the right and upward.
SIDES = {
    "top center": (0, 1),
    "bottom center": (0, -1),
    "top right": (1, 1),
    "bottom left": (-1, -1),
    "middle right": (1, 0),
    "bottom right": (1, -1),
    "top left": (-1, 1),
    "middle left": (-1, 0),
}


class Box(NamedTuple):
    """A rectangle [px]: its lower left corner and its size."""

    left: float
    bottom: float
    width: float
    height: float

    def meets(self, other: "Box") -> bool:
        """Whether the two share any area."""
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.bottom < other.bottom + other.height
            and other.bottom < self.bottom + self.height
        )

    def crossed_by(self, xs: Any, ys: Any) -> bool:
        """Whether a path of rising xs [px] runs through it."""
        under = np.interp(np.linspace(self.left, self.left + self.width, SAMPLES), xs, ys, left=np.nan, right=np.nan)
        under = under[~np.isnan(under)]
        return under.size > 0 and bool(under.min() < self.bottom + self.height and under.max() > self.bottom)


def first_free(
    words: str,
    x: float,
    y: float,
    mark: float,
    taken: Sequence[Box],
    paths: Sequence[tuple[Any, Any]],
    within: tuple[float, float],
) -> tuple[str, Box | None]:
    """The first side of a mark of such a size [px] where words cover no box, no path and no edge; "" for none."""
    width, height, off = DIGIT * len(words), LINE, mark / 2 / 0.8 + 1  # as Plotly sets words off from a mark
    for side, (right, up) in SIDES.items():
        box = Box(x + right * off + (right - 1) / 2 * width, y + up * off + (up - 1) / 2 * height, width, height)
        inside = (
            box.left >= 0 and box.bottom >= 0 and box.left + width <= within[0] and box.bottom + height <= within[1]
        )
        if inside and not any(map(box.meets, taken)) and not any(box.crossed_by(*path) for path in paths):
            return side, box
    return "", None


def spread(wanted: Sequence[float], heights: Sequence[float], most: float) -> list[float]:
    """Centres [px] for words of such heights, rising, apart, below `most` and else as near to the wanted as can be."""
    found: list[float] = []
    top = 0.0
    for at, height in zip(wanted, heights, strict=True):
        top = max(at + height / 2, top + height)
        found.append(top - height / 2)
    bottom = most
    for index in reversed(range(len(found))):
        bottom = min(found[index] - heights[index] / 2, bottom - heights[index])
        found[index] = bottom + heights[index] / 2
    return found


def wrapped(name: str, width: int = LINE_WIDTH, lines: int = MOST_LINES) -> str:
    """A name in lines of about so many ordinary characters, cut where it would take more lines than that."""
    found = [""]
    for word in _pieces(name, width):
        fits = _wide(found[-1]) + _wide(word) <= width
        found = [*found[:-1], found[-1] + word] if fits else [*found, word.lstrip()]
    found = [line.rstrip() for line in found if line.strip()]
    return "<br>".join(found if len(found) <= lines else [*found[: lines - 1], found[lines - 1][:-1] + "…"])


def _pieces(name: str, width: int) -> list[str]:
    """Words with the space before them; a word that is wider than a line is cut."""
    found = [""]
    for char in name:
        if char == " " or _wide(found[-1] + char) > width:
            found.append("")
        found[-1] += char
    return found


def _wide(words: str) -> float:
    """How many ordinary characters are as wide as these."""
    return sum(
        2 if char in "MWmw" or east_asian_width(char) in "FW" else 1.25 if char.isupper() else 1 for char in words
    )
