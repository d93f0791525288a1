"""Figure 3: where memory goes, in GiB: each pool of `rest` in use and idle at what runs, and with a GPU that is known
all of it, from the driver's total down.
"""

from typing import NamedTuple

from sizing.answers.band import at_low_end
from sizing.answers.gpu_memory import gpu_memory
from sizing.answers.recommended import recommended, recommended_split
from sizing.answers.solve import Sizing
from sizing.basics.problems import Refusal
from sizing.basics.units import GIB, count, gib, number, ratio_text
from sizing.engine.slots import is_pinned, ratio_is_ignored
from sizing.engine.split import Memory, Split
from sizing.explain.hardware_words import lever_words, no_room_words
from sizing.figures.gpu_memory import Bar, gpu_memory_figure
from sizing.figures.theme import (
    HALF_COLUMN,
    SEEN_SHARE,
    SMALL,
    Figure,
    axis,
    inputs,
    layout,
    linear_ticks,
    solved_as,
    source_axis,
    text,
)
from sizing.scenario.inputs import DEFAULT_RATIO

HEIGHT = 440
MOST_TICKS = 6  # steps of the axis of GiB
BAR = 0.42  # of a row; the words over and below a bar take the rest
LABEL_SHARE = 0.18  # of the bar: the narrowest piece that holds its label


class Piece(NamedTuple):
    """One piece of a bar: its name, its field in Memory, its colour, the colour on it and of its hatching."""

    name: str
    field: str
    colour: str
    ink: str
    edge: str
    pattern: str
    """Plotly's name of a hatching; empty is solid. Idle memory is hatched, and what is neither pool."""


PIECES = (
    Piece("state in use", "state_used", "@state", "@on_state", "@state", ""),
    Piece("state idle", "state_idle", "@state_soft", "@ink", "@state", "/"),
    Piece("padding slot", "state_padding", "@other", "@on_other", "@other", ""),
    Piece("rings", "rings", "@state_pale", "@ink", "@state", "x"),
    Piece("draft states", "draft_reserve", "@state_pale", "@ink", "@state_pale", ""),
    Piece("KV in use", "kv_used", "@kv", "@on_kv", "@kv", ""),
    Piece("KV idle", "kv_idle", "@kv_soft", "@ink", "@kv", "/"),
    Piece("unsplit", "unsplit", "@grid", "@ink", "@grid", ""),
)


def memory_figure(sizing: Sizing) -> Figure:
    """One bar for the split that is set and one for the recommended one; of an estimated `rest` its low end."""
    lever, sizing = lever_words(sizing), at_low_end(sizing)
    bars = {name: split for name, split in _bars(sizing).items() if isinstance(split, Split)}
    if whole := _whole_gpu(sizing, bars, lever):
        return whole
    figure = layout(inputs(sizing), "Memory of one rank", height=HEIGHT, characters=HALF_COLUMN)
    figure["margin"]["l"] = 104
    figure["barmode"] = "stack"
    figure["bargap"] = 1 - BAR
    rest = max(sizing.scenario.rest_gib, 0.001)
    figure["xaxis"] = source_axis("GiB per rank", solved_as(sizing), range=[0, rest], **linear_ticks(rest, MOST_TICKS))
    figure["yaxis"] = axis("", range=[1.5, -0.5], ticks="", gridcolor="@paper", type="category")
    figure["annotations"] += [label for row, split in enumerate(bars.values()) for label in _words(row, split)]
    if not bars:
        figure["annotations"].append(
            text("No split shown: SGLang would refuse to start.", x=0.5, y=0.5, xref="paper", yref="paper")
        )
    data = [_piece(piece, bars, sizing.scenario.rest_gib) for piece in PIECES]
    seen = max(sizing.scenario.rest_gib, 0) * SEEN_SHARE
    return {"data": [trace for trace in data if max(trace["x"], default=0) > seen], "layout": figure}


def _whole_gpu(sizing: Sizing, bars: dict[str, Split], lever: str) -> Figure | None:
    """The same from the driver's total down; None where no GPU is known."""
    shown: dict[str, Split | None] = {**bars} or {"now": None}
    found = [
        Bar(name, memory, f"{count(split.runs)} run" if split else no_room_words(sizing))
        for name, split in shown.items()
        if (memory := gpu_memory(sizing, split))
    ]
    title = "Where the GPU's memory goes, estimated"
    stated = [piece for piece in (*inputs(sizing), lever) if piece]
    return gpu_memory_figure(found, stated, solved_as(sizing), title) if found else None


def _bars(sizing: Sizing) -> dict[str, Split | Refusal]:
    """The split that is set and the recommended one; where these are the same, the engine's default beside it."""
    found, best = recommended(sizing), recommended_split(sizing)
    if ratio_is_ignored(sizing.resolved) and not is_pinned(sizing.resolved):
        return {"now<br>no ratio": sizing.now}
    by = "pinned" if is_pinned(sizing.resolved) else f"r = {ratio_text(sizing.ratio_now)}"
    if sizing.scenario.enable_unified_memory:
        return {f"static split<br>{by}": sizing.now}
    if found is None or best is None:
        return {f"now<br>{by}": sizing.now}
    if not found.change:
        return {f"default<br>r = {ratio_text(DEFAULT_RATIO)}": sizing.default, f"now<br>{by}": sizing.now}
    how = (
        f"r = {ratio_text(best.ratio)}"
        if best.ratio is not None
        else f"pin {count(found.scenario.max_mamba_cache_size or 0)}"
    )
    return {f"now<br>{by}": sizing.now, f"recommended<br>{how}": best}


def _piece(piece: Piece, bars: dict[str, Split], rest_gib: float) -> Figure:
    sizes = [getattr(split.memory, piece.field) for split in bars.values()]
    wide = [size / GIB > rest_gib * LABEL_SHARE for size in sizes]
    return {
        "type": "bar",
        "orientation": "h",
        "name": piece.name,
        "x": [size / GIB for size in sizes],
        "y": list(bars),
        "text": [f"{piece.name}<br>{gib(size)}" if fits else "" for size, fits in zip(sizes, wide, strict=True)],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"color": piece.ink, "size": 12},
        "marker": {
            "color": piece.colour,
            "line": {"color": "@paper", "width": 1},
            "pattern": {
                "shape": piece.pattern,
                "fillmode": "overlay",
                "fgcolor": piece.edge,
                "size": 8,
                "solidity": 0.1,
            },
        },
        "customdata": [gib(size, 3) for size in sizes],
        "hovertemplate": f"{piece.name}: %{{customdata}}<extra></extra>",
    }


def _words(row: int, split: Split) -> list[Figure]:
    """What runs, over each bar, and every piece in words below it: a narrow piece has no room for its own label."""
    memory = split.memory
    drafts = f", draft states {number(memory.draft_reserve / GIB)}" if memory.draft_reserve else ""
    drafts += f", rings {number(memory.rings / GIB)}" if memory.rings else ""
    pieces = (
        f"state {number(memory.state_used / GIB)} in use + {number(memory.state_idle / GIB)} idle{drafts} [GiB]<br>"
        f"KV {number(memory.kv_used / GIB)} in use + {number(memory.kv_idle / GIB)} idle{_outside(memory)} [GiB]"
    )
    left: Figure = {"xanchor": "left", "align": "left", "borderpad": 0}
    return [
        text(f"<b>{count(split.runs)} run</b>", x=0, y=row - BAR / 2, yshift=2, yanchor="bottom", **left),
        text(pieces, x=0, y=row + BAR / 2, yshift=-2, color="@muted", size=SMALL, yanchor="top", **left),
    ]


def _outside(memory: Memory) -> str:
    """What no pool takes: said where it shows, which is when --max-total-tokens caps the KV pool."""
    return f", outside {number(memory.unsplit / GIB)}" if memory.unsplit > GIB / 100 else ""
