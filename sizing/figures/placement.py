"""Where words stand beside points so that nothing is covered: boxes in pixels from the axes' lower left corner."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
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
    """A rectangle [px]: two corners."""

    left: float
    bottom: float
    right: float
    top: float

    @classmethod
    def sized(cls, left: float, bottom: float, width: float, height: float) -> "Box":
        """From its lower left corner and its size [px]."""
        return cls(left, bottom, left + width, bottom + height)

    def is_clear(self, taken: Iterable["Box"]) -> bool:
        """Whether it shares no area with any of these."""
        left, bottom, right, top = self
        for low, foot, high, head in taken:
            if left < high and low < right and bottom < head and foot < top:
                return False
        return True

    def shared(self, other: "Box") -> Any:
        """The area that the two share [px²]; of boxes of arrays an array."""
        across = np.minimum(self.right, other.right) - np.maximum(self.left, other.left)
        up = np.minimum(self.top, other.top) - np.maximum(self.bottom, other.bottom)
        return np.maximum(across, 0) * np.maximum(up, 0)

    def inside(self, width: float, height: float) -> bool:
        """Whether it lies within axes of this size [px]."""
        return self.left >= 0 and self.bottom >= 0 and self.right <= width and self.top <= height

    def crossed_by(self, xs: Any, ys: Any) -> bool:
        """Whether a path of rising xs [px] runs through it."""
        under = np.interp(np.linspace(self.left, self.right, SAMPLES), xs, ys, left=np.nan, right=np.nan)
        under = under[~np.isnan(under)]
        return under.size > 0 and bool(under.min() < self.top and under.max() > self.bottom)


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
        left, bottom = x + right * off + (right - 1) / 2 * width, y + up * off + (up - 1) / 2 * height
        box = Box.sized(left, bottom, width, height)
        if box.inside(*within) and box.is_clear(taken) and not any(box.crossed_by(*path) for path in paths):
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
    """Words with the space before them, "S = 4" as one; a word that is wider than a line is cut."""
    found = [""]
    for at, char in enumerate(name):
        breaks = char == " " and "=" not in (name[at - 1], name[at + 1 : at + 2])
        if breaks or _wide(found[-1] + char) > width:
            found.append("")
        found[-1] += char
    return found


def _wide(words: str) -> float:
    """How many ordinary characters are as wide as these."""
    return sum(
        2 if char in "MWmw" or east_asian_width(char) in "FW" else 1.25 if char.isupper() else 1 for char in words
    )


class Spot(NamedTuple):
    """Where words may stand: beside a place in the axes' own units (their logarithm on a logarithmic axis)."""

    x: float
    y: float
    side: str
    """From the place, as Plotly names it (SIDES), or "middle center"."""
    off: tuple[float, float] = (0.0, 0.0)
    """From the place to the words [px], to the right and upward."""


class Frame(NamedTuple):
    """The axes as one screen or picture shows them: their size [px] and their ends in their own units."""

    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]

    def across(self, x: Any) -> Any:
        """How far right [px]."""
        return (np.asarray(x, float) - self.x[0]) / (self.x[1] - self.x[0]) * self.width

    def x_at(self, across: Any) -> Any:
        """What lies so far right [px]."""
        return self.x[0] + across / self.width * (self.x[1] - self.x[0])

    def up(self, y: Any) -> Any:
        """How far up [px]."""
        return (np.asarray(y, float) - self.y[0]) / (self.y[1] - self.y[0]) * self.height

    def box(self, spot: Spot, size: tuple[float, float]) -> Box:
        """What words of that size [px] would cover."""
        x, y, side, off = spot
        (right, up), (x0, x1), (y0, y1), (width, height) = SIDES.get(side, (0, 0)), self.x, self.y, size
        # As across() and up() have it, of one number: numpy would take longer than all the rest.
        left = (float(x) - x0) / (x1 - x0) * self.width + off[0] + (right - 1) / 2 * width
        bottom = (float(y) - y0) / (y1 - y0) * self.height + off[1] + (up - 1) / 2 * height
        return Box(left, bottom, left + width, bottom + height)


COLUMN = 4.0  # [px] a path is looked at in columns of this width
GAP = 3.0  # [px] from words to a line: half of the widest, and a little
BOLD = 1.1  # how much wider bold letters are
CHARACTER = {12: 6.3, 13: 6.8}  # [px] a letter of the figures' font by its size, of the wider of the usual ones
TAG = re.compile(r"</?\w[^>]*>")


def size_of(words: str, size: int = 13) -> tuple[float, float]:
    """Width and height [px] of words that Plotly draws, with <br> between lines."""
    lines = words.split("<br>")
    width = max(len(TAG.sub("", line).strip()) * (BOLD if "<b>" in line else 1) for line in lines)
    return width * CHARACTER[size] + 4, len(lines) * size * 1.3 + 2


class Ground:
    """What is drawn already on every frame, and the words that have found a place among it."""

    def __init__(self, frames: Sequence[Frame], paths: Sequence[tuple[Any, Any]]) -> None:
        """Paths run from left to right, in the axes' own units; a gap is not a number."""
        self.frames = frames
        self.taken: list[list[Box]] = [[] for _ in frames]
        self._columns = _columns(frames, paths)

    def upright(self, x: float, y: tuple[float, float] | None = None) -> None:
        """A line straight up through an x, over the whole height or from one y to another."""
        for frame, taken in zip(self.frames, self.taken, strict=True):
            low, high = (float(frame.up(end)) for end in y) if y else (0.0, frame.height)
            taken.append(Box.sized(float(frame.across(x)) - 2, low, 4, high - low))

    def point(self, x: float, y: float, size: float) -> None:
        """A mark of that size [px]."""
        for frame, taken in zip(self.frames, self.taken, strict=True):
            taken.append(frame.box(Spot(x, y, "middle center"), (size, size)))

    def place(self, words: str, spots: Sequence[Spot], *, size: int = 13) -> Spot | None:
        """The first spot where the words cover nothing on any frame, taken for them; None where there is none."""
        return self._first(size_of(words, size), spots, lines=True)

    def place_anyway(self, words: str, spots: Sequence[Spot], *, size: int = 13) -> tuple[Spot, bool]:
        """The same; else the first where they cover lines alone, or where they cover least: there they need a ground of
        their own, which is what the second value says.
        """
        needed = size_of(words, size)
        if spot := self._first(needed, spots, lines=True):
            return spot, False
        spot = self._first(needed, spots, lines=False) or spots[int(np.argmin(self._covered(spots, needed)))]
        self._take(spot, needed)
        return spot, True

    def _first(self, size: tuple[float, float], spots: Sequence[Spot], *, lines: bool) -> Spot | None:
        for spot in spots:
            for number, frame in enumerate(self.frames):
                if not self._is_free(number, frame.box(spot, size), lines):
                    break
            else:
                if lines:
                    self._take(spot, size)
                return spot
        return None

    def _covered(self, spots: Sequence[Spot], size: tuple[float, float]) -> Any:
        """How much of words and marks the words would cover at each spot, and how much of them would lie outside the
        axes [px²].
        """
        found: Any = 0.0
        for frame, taken in zip(self.frames, self.taken, strict=True):
            boxes = Box(*np.array([frame.box(spot, size) for spot in spots]).T)
            others = Box(*np.reshape(taken, (-1, 4)).T[:, :, np.newaxis])
            inside = boxes.shared(Box(0, 0, frame.width, frame.height))
            found += boxes.shared(others).sum(axis=0) + size[0] * size[1] - inside
        return found

    def _take(self, spot: Spot, size: tuple[float, float]) -> None:
        for frame, taken in zip(self.frames, self.taken, strict=True):
            taken.append(frame.box(spot, size))

    def _is_free(self, number: int, box: Box, lines: bool) -> bool:
        frame = self.frames[number]
        if not box.inside(frame.width, frame.height) or not box.is_clear(self.taken[number]):
            return False
        if not lines:
            return True
        under = slice(max(int((box.left - GAP) / COLUMN), 0), int((box.right + GAP) / COLUMN) + 1)
        low, high = self._columns[number]
        return not np.count_nonzero((low[under] < box.top + GAP) & (high[under] > box.bottom - GAP))


def _columns(frames: Sequence[Frame], paths: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """For each frame the lowest and highest point [px] in each column of each path; looked up once for all frames."""
    edges = [np.arange(0, frame.width + 2 * COLUMN, COLUMN) for frame in frames]
    firsts = np.cumsum([0, *map(len, edges)])
    at = np.concatenate([frame.x_at(each) for frame, each in zip(frames, edges, strict=True)])
    ups = np.empty((at.size, len(paths)))
    for number, (xs, ys) in enumerate(paths):
        ups[:, number] = np.interp(at, xs, ys, left=np.nan, right=np.nan)
    low, high = np.fmin(ups, np.inf), np.fmax(ups, -np.inf)
    low[:-1], high[:-1] = np.minimum(low[:-1], low[1:]), np.maximum(high[:-1], high[1:])
    # Where a path turns, begins or ends inside a column: a steep one goes far within it.
    xs, ys = (np.concatenate([*(path[axis] for path in paths), []]) for axis in (0, 1))
    column = np.stack([frame.across(xs) for frame in frames]) / COLUMN
    seen = np.isfinite(ys) & (column >= 0) & (column < np.diff(firsts)[:, np.newaxis] - 1)
    which = np.repeat(np.arange(len(paths)), [len(path[0]) for path in paths])
    cells = ((firsts[:-1, np.newaxis] + column.astype(int)) * len(paths) + which)[seen]
    turns = np.broadcast_to(ys, seen.shape)[seen]
    np.minimum.at(low.ravel(), cells, turns)
    np.maximum.at(high.ravel(), cells, turns)
    parts = [(frame, slice(*ends)) for frame, ends in zip(frames, pairwise(firsts), strict=True)]
    return [(frame.up(low[part]), frame.up(high[part])) for frame, part in parts]
