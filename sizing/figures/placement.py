"""Where words stand beside points so that nothing is covered: boxes in pixels from the axes' lower left corner."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, tee
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


Size = tuple[float, float]
"""Width and height [px]."""
Ends = tuple[float, float]
"""Both ends of an axis, or two places on it, in its own units."""
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


class Seen(NamedTuple):
    """Paths as they run through columns of some pixels: the lowest and the highest point of each in each column, in the
    axes' own units. Arrays of [paths, columns], the columns of all sizes in a row.
    """

    low: Any
    high: Any


class Ground:
    """What is drawn already on every screen or picture, and the words that have found a place among it."""

    def __init__(self, sizes: Sequence[Size], x: Ends, y: Ends, drawn: Sequence[Seen] = ()) -> None:
        """The sizes of the axes that a figure is shown with; what is drawn is seen on axes of their widths."""
        self.x, self.y = x, y
        self.screens = [_Screen(size, *columns) for size, columns in zip(sizes, _columns(sizes, y, drawn), strict=True)]
        self._asked = [*self.screens]

    def upright(self, x: float, y: Ends | None = None) -> None:
        """A line straight up through an x, over the whole height or from one y to another."""
        low, high = (_share(end, self.y) for end in y) if y else (0.0, 1.0)
        for screen in self.screens:
            across, foot, head = _share(x, self.x) * screen.width, low * screen.height, high * screen.height
            screen.taken.append(Box(across - 2, foot, across + 2, head))

    def point(self, x: float, y: float, size: float) -> None:
        """A mark of that size [px]."""
        _take(self._boxes(Spot(x, y, "middle center"), (size, size), self.screens))

    def place(self, words: str, spots: Iterable[Spot], *, size: int = 13) -> Spot | None:
        """The first spot where the words cover nothing on any frame, taken for them; None where there is none."""
        return self._first(size_of(words, size), spots, lines=True)

    def place_anyway(self, words: str, spots: Iterable[Spot], *, size: int = 13) -> tuple[Spot, bool]:
        """The same; else the first where they cover lines alone, or where they cover least: there they need a ground of
        their own, which is what the second value says.
        """
        needed = size_of(words, size)
        free, off_words, every = tee(spots, 3)  # many are made while they are tried, and most are not
        if spot := self._first(needed, free, lines=True):
            return spot, False
        if spot := self._first(needed, off_words, lines=False):
            return spot, True
        known = list(every)
        spot = known[int(np.argmin(self._covered(known, needed)))]
        _take(self._boxes(spot, needed, self.screens))
        return spot, True

    def _first(self, size: Size, spots: Iterable[Spot], *, lines: bool) -> Spot | None:
        for spot in spots:
            boxes = self._free(spot, size, lines=lines)
            if boxes:
                _take(boxes)
                return spot
        return None

    def _free(self, spot: Spot, size: Size, *, lines: bool) -> list[tuple["_Screen", Box]]:
        """What the words would cover on each screen, where they cover nothing on any; else nothing. The screen that
        refused last is asked first: it is likely to refuse again.
        """
        found = []
        for screen, box in self._boxes(spot, size, self._asked):
            if not screen.is_free(box, lines=lines):
                self._asked.remove(screen)
                self._asked.insert(0, screen)
                return []
            found.append((screen, box))
        return found

    def _covered(self, spots: Sequence[Spot], size: Size) -> Any:
        """How much of words and marks the words would cover at each spot, and how much of them would lie outside the
        axes [px²].
        """
        found: Any = 0.0
        for screen in self.screens:
            boxes = Box(*np.array([box for spot in spots for _, box in self._boxes(spot, size, [screen])]).T)
            others = Box(*np.reshape(screen.taken, (-1, 4)).T[:, :, np.newaxis])
            inside = boxes.shared(Box(0, 0, screen.width, screen.height))
            found += boxes.shared(others).sum(axis=0) + size[0] * size[1] - inside
        return found

    def _boxes(self, spot: Spot, size: Size, screens: Iterable["_Screen"]) -> Iterator[tuple["_Screen", Box]]:
        """What words of that size [px] would cover on each screen."""
        (x0, x1), (y0, y1), (width, height) = self.x, self.y, size
        x, y, side, (off_x, off_y) = spot
        right, up = SIDES.get(side, (0, 0))
        x, y, shift_x, shift_y = (
            (x - x0) / (x1 - x0),
            (y - y0) / (y1 - y0),
            (right - 1) / 2 * width,
            (up - 1) / 2 * height,
        )
        for screen in screens:
            left, bottom = x * screen.width + off_x + shift_x, y * screen.height + off_y + shift_y
            yield screen, Box(left, bottom, left + width, bottom + height)


class _Screen:
    """The axes at one size [px], with all that is drawn on them."""

    __slots__ = ("height", "high", "low", "taken", "width")

    def __init__(self, size: Size, low: Any, high: Any) -> None:
        """`low` and `high` are the lowest and the highest point [px] in each column of each path."""
        (self.width, self.height), self.low, self.high = size, low, high
        self.taken: list[Box] = []

    def is_free(self, box: Box, *, lines: bool) -> bool:
        """Whether a box lies inside the axes and covers nothing, no path either where `lines` count."""
        if not box.inside(self.width, self.height) or not box.is_clear(self.taken):
            return False
        return not (lines and self._crossed(box))

    def _crossed(self, box: Box) -> bool:
        left, bottom, right, top = box
        under = slice(int((left - GAP) / COLUMN), int((right + GAP) / COLUMN) + 1)
        return bool(np.count_nonzero((self.low[under] < top + GAP) & (self.high[under] > bottom - GAP)))


def _take(boxes: Iterable[tuple[_Screen, Box]]) -> None:
    for screen, box in boxes:
        screen.taken.append(box)


def _share(at: Any, ends: Ends) -> Any:
    """How far along an axis [-]."""
    return (at - ends[0]) / (ends[1] - ends[0])


def seen(widths: tuple[float, ...], x: Ends, paths: Sequence[tuple[Any, Any]]) -> Seen:
    """Paths on axes of such widths [px]. They run from left to right, in the axes' own units; a gap is not a number."""
    across, firsts = _edges(widths)
    at = x[0] + across * (x[1] - x[0])
    ups = np.empty((len(paths), at.size))
    for number, path in enumerate(paths):
        ups[number] = np.interp(at, *path, left=np.nan, right=np.nan)
    low, high = np.fmin(ups, np.inf), np.fmax(ups, -np.inf)
    low[:, :-1], high[:, :-1] = np.minimum(low[:, :-1], low[:, 1:]), np.maximum(high[:, :-1], high[:, 1:])
    # Where a path turns, begins or ends inside a column: a steep one goes far within it.
    xs, ys = (np.concatenate([path[axis] for path in paths]) for axis in (0, 1))
    column = _share(xs, x) * np.array(widths)[:, np.newaxis] / COLUMN
    inside = np.isfinite(ys) & (column >= 0) & (column < np.diff(firsts)[:, np.newaxis] - 1)
    rows = np.repeat(np.arange(len(paths)) * at.size, [len(path[0]) for path in paths])
    cells = (firsts[:-1, np.newaxis] + column.astype(int) + rows)[inside]
    turns = np.broadcast_to(ys, inside.shape)[inside]
    np.minimum.at(low.ravel(), cells, turns)
    np.maximum.at(high.ravel(), cells, turns)
    return Seen(low, high)


@lru_cache(maxsize=64)  # the widths stand still while something moves
def _edges(widths: tuple[float, ...]) -> tuple[Any, Any]:
    """The edges of all columns, as shares of the width [-], and where those of each width begin, and the end."""
    edges = [np.arange(0, width + 2 * COLUMN, COLUMN) for width in widths]
    shares = [each / width for each, width in zip(edges, widths, strict=True)]
    return np.concatenate(shares), np.cumsum([0, *map(len, edges)])


def _columns(sizes: Sequence[Size], y: Ends, drawn: Sequence[Seen]) -> list[tuple[Any, Any]]:
    """For each size the lowest and the highest point [px] in each column of each path."""
    if not drawn:
        return [(np.empty((0, 0)),) * 2 for _ in sizes]
    _, firsts = _edges(tuple(width for width, _ in sizes))
    heights = np.repeat([height for _, height in sizes], np.diff(firsts))
    # A column's paths side by side: what lies under a box is then one piece of memory.
    low, high = (
        np.ascontiguousarray((_share(np.concatenate(ends), y) * heights).T) for ends in zip(*drawn, strict=True)
    )
    return [(low[first:end], high[first:end]) for first, end in pairwise(firsts.tolist())]
