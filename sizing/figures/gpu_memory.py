"""Where the GPU's memory goes, from the driver's total down: one stacked bar each, estimated or measured."""

from typing import NamedTuple

from sizing.answers import gpu_memory as parts
from sizing.answers.gpu_memory import GpuMemory
from sizing.basics.units import number
from sizing.figures.theme import HALF_COLUMN, SEEN_SHARE, SMALL, Figure, axis, layout, linear_ticks, source_axis, text

HEIGHT, HEIGHT_ALONE = 540, 420
MOST_TICKS = 8
BAR = 0.3  # of a row; the words over and below a bar take the rest
LABEL_SHARE = 0.17  # of the total: the narrowest piece that holds its label


LEAST_SAID_GIB = 0.05
SHORT = {parts.CONTEXT: "context", parts.GRAPHS: "graphs, activations", parts.BAND: "band"}
TOP = -0.42  # of the rows
# The words below a bar: before the pools, state, KV, and what is left beside both.
LINES = (
    (parts.CONTEXT, parts.WEIGHTS, parts.DRAFT, parts.IMAGES),
    (parts.STATE_POOL, parts.STATE, parts.STATE_IDLE, parts.RINGS, parts.DRAFT_STATES, parts.PADDING),
    (parts.KV_POOL, parts.KV, parts.KV_IDLE, parts.DRAFT_KV, parts.OUTSIDE),
    (parts.BAND, parts.UNCHARGED, parts.GRAPHS, parts.ENCODER, parts.BACKEND, parts.FREE),
)


class Look(NamedTuple):
    """How a piece is drawn: its colour, the colour on it and of its hatching."""

    colour: str
    ink: str
    edge: str
    pattern: str = ""
    """Plotly's name of a hatching; empty is solid. Idle memory is hatched, and what is neither pool."""


LOOKS = {
    parts.CONTEXT: Look("@grid", "@ink", "@other", "x"),
    parts.WEIGHTS: Look("@other", "@on_other", "@other"),
    parts.DRAFT: Look("@grid", "@ink", "@other", "/"),
    parts.IMAGES: Look("@other", "@on_other", "@other"),
    parts.STATE: Look("@state", "@on_state", "@state"),
    parts.STATE_IDLE: Look("@state_soft", "@ink", "@state", "/"),
    parts.PADDING: Look("@other", "@on_other", "@other"),
    parts.RINGS: Look("@state_pale", "@ink", "@state", "x"),
    parts.DRAFT_STATES: Look("@state_pale", "@ink", "@state_pale"),
    parts.STATE_POOL: Look("@state", "@on_state", "@state"),
    parts.KV_POOL: Look("@kv", "@on_kv", "@kv"),
    parts.KV: Look("@kv", "@on_kv", "@kv"),
    parts.KV_IDLE: Look("@kv_soft", "@ink", "@kv", "/"),
    parts.DRAFT_KV: Look("@kv_soft", "@ink", "@kv", "x"),
    parts.OUTSIDE: Look("@grid", "@ink", "@grid"),
    parts.BAND: Look("@paper", "@ink", "@other", "."),
    parts.UNCHARGED: Look("@grid", "@ink", "@kv", "/"),
    parts.GRAPHS: Look("@few", "@ink", "@few"),
    parts.ENCODER: Look("@few", "@ink", "@other", "/"),
    parts.BACKEND: Look("@few", "@ink", "@other", "x"),
    parts.FREE: Look("@paper", "@ink", "@muted"),
}


class Bar(NamedTuple):
    """One bar: where it stands, what it holds, and the words over it."""

    label: str
    memory: GpuMemory
    headline: str


def gpu_memory_figure(bars: list[Bar], inputs: list[str], source: str, title: str) -> Figure:
    """The bars of one GPU, on one axis up to the driver's total; what is asked beyond it goes past the line there."""
    total = max(bar.memory.total_gib for bar in bars)
    taken = max(sum(gib for _, gib in bar.memory.pieces) for bar in bars)
    figure = layout(inputs, title, height=HEIGHT if len(bars) > 1 else HEIGHT_ALONE, characters=HALF_COLUMN, right=40)
    figure["margin"]["l"] = 104
    figure["barmode"], figure["bargap"] = "stack", 1 - BAR
    most = max(total, taken)
    figure["xaxis"] = source_axis("GiB of one GPU", source, range=[0, most * 1.005], **linear_ticks(most, MOST_TICKS))
    ends = [len(bars) - 0.42, TOP]  # the words below a bar take more room than those over it
    figure["yaxis"] = axis("", range=ends, ticks="", gridcolor="@paper", type="category")
    figure["shapes"] = [_total_line(total, row, ends) for row in range(len(bars))]
    figure["annotations"] += [label for row, bar in enumerate(bars) for label in _words(row, bar)]
    figure["annotations"].append(_total_words(total))
    data = [_piece(name, look, bars, max(total, taken)) for name, look in LOOKS.items()]
    seen = total * SEEN_SHARE
    return {"data": [trace for trace in data if max(trace["x"], default=0) > seen], "layout": figure}


def _total_line(total: float, row: int, ends: list[float]) -> Figure:
    """At the GPU's end, across one bar; in shares of the axes, as rows have no numbers of their own."""
    first, last = ((ends[0] - (row + side * BAR * 0.6)) / (ends[0] - ends[1]) for side in (-1, 1))
    at = {"x0": total, "x1": total, "xref": "x", "y0": first, "y1": last, "yref": "paper"}
    return {"type": "line", "line": {"color": "@ink", "width": 1.5, "dash": "dot"}, **at}


def _total_words(total: float) -> Figure:
    words = f"the GPU: {number(total, 1)} GiB"
    return text(words, x=total, y=TOP, color="@muted", size=SMALL) | {"xanchor": "right", "yanchor": "top"}


def _piece(name: str, look: Look, bars: list[Bar], whole: float) -> Figure:
    sizes = [bar.memory.of(name) for bar in bars]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": sizes,
        "y": [bar.label for bar in bars],
        "text": [f"{_broken(name)}<br>{number(gib, 1)} GiB" if gib > whole * LABEL_SHARE else "" for gib in sizes],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "constraintext": "none",
        "textfont": {"color": look.ink, "size": 12},
        "marker": {
            "color": look.colour,
            "line": {"color": "@paper" if look.colour != "@paper" else "@muted", "width": 1},
            "pattern": {
                "shape": look.pattern,
                "fillmode": "overlay",
                "fgcolor": look.edge,
                "size": 8,
                "solidity": 0.1,
            },
        },
        "customdata": [f"{number(gib, 3)} GiB" for gib in sizes],
        "hovertemplate": f"{name}: %{{customdata}}<extra></extra>",
    }


def _broken(name: str) -> str:
    """A long name on two lines."""
    return name.replace(" and ", " and<br>") if len(name) > 16 else name


def _words(row: int, bar: Bar) -> list[Figure]:
    """The headline over the bar, and every piece in words below it: a narrow piece has no room for its own label."""
    written = {
        name: f"{SHORT.get(name, name)} {number(gib)}" for name, gib in bar.memory.pieces if gib >= LEAST_SAID_GIB
    }
    lines = [", ".join(written[name] for name in line if name in written) for line in LINES]
    lines = [f"{line} [GiB]" for line in lines if line]
    left: Figure = {"xanchor": "left", "align": "left", "borderpad": 0}
    return [
        text(f"<b>{bar.headline}</b>", x=0, y=row - BAR / 2, yshift=2, yanchor="bottom", **left),
        text("<br>".join(lines), x=0, y=row + BAR / 2, yshift=-2, color="@muted", size=SMALL, yanchor="top", **left),
    ]
