"""Figures of a model: its layers as a strip, and what one slot costs in tokens over TP widths and dtypes."""

from typing import NamedTuple

from sizing.basics.dtypes import KvDtype, StateDtype
from sizing.basics.units import KIB, MIB, count, number
from sizing.figures.theme import (
    HALF_COLUMN,
    WHOLE_COLUMN,
    Figure,
    Label,
    axis,
    labels,
    layout,
    line,
    log_ticks,
    source_axis,
    text,
)
from sizing.models.geometry import Geometry
from sizing.models.summary import TP_WIDTHS, at_widths, layers_in_words

STRIP_HEIGHT, WIDTHS_HEIGHT = 220, 420
HEADROOM = 1.12  # of the highest bar: room for its label
READ_AS = "Geometry as SGLang 0.5.23 reads it"


def layers_figure(geometry: Geometry, name: str) -> Figure:
    """One cell a layer: orange holds state, blue holds KV; a layer that holds both is drawn half and half."""
    figure = layout(
        [name, layers_in_words(geometry).rstrip(".")], "Layers", height=STRIP_HEIGHT, characters=WHOLE_COLUMN, right=12
    )
    figure["margin"]["l"] = 12
    figure["barmode"] = "stack"
    figure["bargap"] = 0.12
    step = max(1, geometry.layers // 16)
    figure["xaxis"] = source_axis(
        "layer, from 0", READ_AS, range=[-0.6, geometry.layers - 0.4], tickvals=list(range(0, geometry.layers, step))
    )
    figure["yaxis"] = axis("", range=[0, 1.4], tickvals=[], ticks="", gridcolor="@paper")
    figure["annotations"] += _legend(geometry)
    state, kv = set(geometry.state_layers), set(geometry.kv_layers)
    neither = [layer for layer in range(geometry.layers) if layer not in state | kv]
    pieces = (
        ("state", sorted(state), [0.5 if layer in kv else 1 for layer in sorted(state)], "@state"),
        ("KV", sorted(kv), [0.5 if layer in state else 1 for layer in sorted(kv)], "@kv"),
        ("neither", neither, [1] * len(neither), "@grid"),
    )
    return {"data": [_cells(*piece) for piece in pieces if piece[1]], "layout": figure}


def _cells(name: str, at: list[int], heights: list[float], colour: str) -> Figure:
    return {
        "type": "bar",
        "name": name,
        "x": at,
        "y": heights,
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": f"layer %{{x}}: {name}<extra></extra>",
    }


def _legend(geometry: Geometry) -> list[Figure]:
    """How many layers hold each, in its colour, above the strip."""
    state, kv = set(geometry.state_layers), set(geometry.kv_layers)
    both = " (in the same layers)" if state & kv else ""
    named = (
        ("state", len(state), "@state"),
        (f"KV{both}", len(kv), "@kv"),
        ("neither", geometry.layers - len(state | kv), "@muted"),
    )
    return [
        text(f"<b>{words} {number}</b>", x=at * 0.1, y=1.06, xref="paper", yref="y", color=colour, size=12)
        | {"xanchor": "left", "yanchor": "bottom"}
        for at, (words, number, colour) in enumerate(kind for kind in named if kind[1])
    ]


def slots_figure(geometry: Geometry, name: str, ssm: StateDtype, conv: StateDtype) -> Figure:
    """The bytes of a slot at each TP width, its conv part on its SSM part."""
    title, given = "Bytes of a slot by TP width", [name, f"SSM {ssm}, conv {conv}", "no pipeline stages"]
    figure = layout(given, title, height=WIDTHS_HEIGHT, characters=HALF_COLUMN)
    slots = {f"TP{row.tp}": (row.ssm or 0, row.conv or 0) for row in at_widths(geometry, ssm, conv, "bfloat16")}
    most = max((sum(parts) for parts in slots.values()), default=0)
    unit, scale = ("MiB", MIB) if most >= MIB else ("KiB", KIB)
    whole = {width: sum(parts) / scale for width, parts in slots.items() if any(parts)}
    figure["barmode"] = "stack"
    figure["bargap"] = 0.45
    figure["xaxis"] = source_axis("attention TP width", READ_AS, type="category")
    figure["yaxis"] = axis(f"{unit} per slot on one rank", range=[0, HEADROOM * max(whole.values(), default=1)])
    figure["annotations"] += [_part_name(at, *named) for at, named in enumerate(PARTS)]
    bars = [_part(*part, list(whole), [slots[width][at] for width in whole], scale) for at, part in enumerate(PARTS)]
    over = [Label(f"{number(size)} {unit}", width, size, "top center") for width, size in whole.items()]
    return {"data": [*bars, labels(over)], "layout": figure}


# The parts of a slot as they are drawn: name, colour, hatching.
PARTS = (("SSM part", "@state", ""), ("conv part", "@state_pale", "/"))


def _part_name(at: int, words: str, colour: str, pattern: str) -> Figure:
    shown = f"<b>{words}{', hatched' if pattern else ''}</b>"
    ink = "@state" if pattern else colour
    return text(shown, x=0.98, y=0.98 - 0.07 * at, xref="paper", yref="paper", color=ink) | {"xanchor": "right"}


def _part(words: str, colour: str, pattern: str, names: list[str], sizes: list[int], scale: int) -> Figure:
    return {
        "type": "bar",
        "name": words,
        "x": names,
        "y": [size / scale for size in sizes],
        "customdata": [count(size) for size in sizes],
        "hovertemplate": f"{words}: %{{customdata}} bytes<extra></extra>",
        "marker": {
            "color": colour,
            "line": {"color": "@paper", "width": 1},
            "pattern": {"shape": pattern, "fgcolor": "@state", "size": 7, "solidity": 0.2, "fillmode": "overlay"},
        },
    }


def widths_figure(geometry: Geometry, name: str) -> Figure:
    """token_equiv over TP widths for two SSM dtypes and two KV dtypes, each line with its name."""
    title = "What one slot costs in KV tokens"
    figure = layout(
        [name, "no DCP, no pipeline stages"], title, height=WIDTHS_HEIGHT, characters=HALF_COLUMN, right=170
    )
    figure["xaxis"] = source_axis("attention TP width", READ_AS, type="log", tickvals=list(TP_WIDTHS))
    lines, named = [], []
    looks = LOOKS if any(row.ssm for row in at_widths(geometry, "float32", "bfloat16", "bfloat16")) else CONV_ALONE
    for look in looks:
        rows = [row for row in at_widths(geometry, look.ssm, "bfloat16", look.kv) if row.token_equiv]
        if rows:
            y = [float(row.token_equiv or 0) for row in rows]
            drawn = line([row.tp for row in rows], y, look.colour, dash=look.dash, name=look.words)
            lines.append(drawn | {"mode": "lines+markers"})
            named.append(Label(f"  {look.words}", rows[-1].tp, y[-1] * look.shift, look.side, size=12))
    figure["yaxis"] = axis(
        "token_equiv [tokens per slot]", type="log", tickvals=_ticks([y for item in lines for y in item["y"]])
    )
    if not lines:
        words = "No attention layers: a slot has no price in tokens."
        figure["annotations"].append(text(words, x=0.5, y=0.5, xref="paper", yref="paper"))
        return {"data": [], "layout": figure}
    return {"data": [*lines, labels(named)], "layout": figure}


def _ticks(values: list[float]) -> list[int]:
    """1, 2 and 5 of each power of ten around the values."""
    return log_ticks(min(values, default=1) / 2.5, max(values, default=1) * 2.5)


class Look(NamedTuple):
    """One line: its dtypes, its words, how it is drawn, and where its name stands so that two do not meet."""

    ssm: StateDtype
    kv: KvDtype
    words: str
    colour: str
    dash: str
    side: str
    shift: float = 1.0
    """How far its name stands above or below the end of the line."""


# float32 over bf16 KV and bf16 over fp8 KV are nearly one line: the conv part alone keeps them apart.
LOOKS = (
    Look("float32", "fp8_e4m3", "float32 SSM, fp8 KV", "@ink", "solid", "middle right"),
    Look("float32", "bfloat16", "float32 SSM, bf16 KV", "@ink", "dash", "middle right", 1.13),
    Look("bfloat16", "fp8_e4m3", "bf16 SSM, fp8 KV", "@muted", "solid", "middle right", 1 / 1.13),
    Look("bfloat16", "bfloat16", "bf16 SSM, bf16 KV", "@muted", "dash", "middle right"),
)
# Without an SSM part its dtype changes nothing.
CONV_ALONE = (
    Look("float32", "fp8_e4m3", "fp8 KV", "@ink", "solid", "middle right"),
    Look("float32", "bfloat16", "bf16 KV", "@ink", "dash", "middle right"),
)
