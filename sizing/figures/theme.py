"""One look for all figures. A colour means the same pool everywhere: orange is state, blue is KV.

Figures carry colour names ("@state"); a palette turns them into colours, in Python for exports and in the
browser for the page, so that one figure serves light and dark.
"""

import math
from collections.abc import Iterable
from textwrap import wrap
from typing import Any, NamedTuple

from sizing.answers.solve import Sizing
from sizing.basics.units import count, ratio_text, rest_text, stated_ratio_text
from sizing.figures.placement import SIDES, Spot
from sizing.scenario.rest import ENDS, OTHER, estimate_of, rest_of, variant_words

Figure = dict[str, Any]

PRODUCT = "Hybrid Pool Sizing"

WHOLE_COLUMN, HALF_COLUMN = 150, 88
"""Characters of a line of inputs in the whole and in half the main column at 1440 px."""
SEEN_SHARE = 0.003
"""Less of a bar is thinner than a pixel; the words below it say it all the same."""

# State is darker than KV in both palettes, so that a greyscale print keeps them apart. From @few to @many the
# lightness goes one way: a heatmap counts requests, which belong to neither pool. @line1 to @line6 are scenarios
# side by side, in hues of no pool: ink, then green, purple, teal, olive and wine of Paul Tol's “muted” scheme
# (https://personal.sron.nl/~pault/, SRON/EPS/TN/09-002). On dark, where olive and wine are too dark, they are the
# yellow of Okabe and Ito (https://jfly.uni-koeln.de/color/) and the olive of Tol's “light” scheme.
LIGHT = {
    "@ink": "#10141f",
    "@muted": "#5a6375",
    "@grid": "#e3e7ef",
    "@paper": "#ffffff",
    "@state": "#9a3606",
    "@state_soft": "rgba(154,54,6,0.10)",
    "@state_pale": "#e6c3ae",
    "@kv": "#246cbb",
    "@kv_soft": "rgba(36,108,187,0.10)",
    "@on_state": "#ffffff",
    "@on_kv": "#ffffff",
    "@other": "#8b93a3",
    "@on_other": "#10141f",
    "@few": "#d5e2df",
    "@many": "#0f4f46",
    "@line1": "#10141f",
    "@line2": "#117733",
    "@line3": "#aa4499",
    "@line4": "#44aa99",
    "@line5": "#999933",
    "@line6": "#882255",
}
DARK = {
    "@ink": "#e8ebf2",
    "@muted": "#a3acbd",
    "@grid": "#262c38",
    "@paper": "#0e1117",
    "@state": "#f0813f",
    "@state_soft": "rgba(240,129,63,0.12)",
    "@state_pale": "#6b4229",
    "@kv": "#6db3ff",
    "@kv_soft": "rgba(109,179,255,0.12)",
    "@on_state": "#10141f",
    "@on_kv": "#10141f",
    "@other": "#6b7485",
    "@on_other": "#ffffff",
    "@few": "#22303a",
    "@many": "#8fe3cf",
    "@line1": "#e8ebf2",
    "@line2": "#117733",
    "@line3": "#aa4499",
    "@line4": "#44aa99",
    "@line5": "#f0e442",
    "@line6": "#aaaa00",
}

FONT = "Source Sans, Source Sans Pro, DejaVu Sans, Arial, sans-serif"
SMALL, NORMAL, LARGE = 12, 13, 17
SEPARATOR = " · "
GOES_ON = " "  # at the end of a line whose piece goes on in the next
DOT = 22  # [px] size of the user's dot, which is a letter
OWN = "own"  # the name of shapes and annotations that stand for the input that is set (hand.py)
TITLE_HEIGHT = 34  # [px] from the top edge to the title's foot
LINE_HEIGHT = 17  # [px] of the small lines under a title


def painted(value: Any, palette: dict[str, str]) -> Any:
    """A figure (or any part of one) with its colour names replaced by the palette's colours."""
    if isinstance(value, dict):
        return {key: painted(item, palette) for key, item in value.items()}
    if isinstance(value, list):
        return [painted(item, palette) for item in value]
    return palette.get(value, value) if isinstance(value, str) else value


def inputs(sizing: Sizing) -> list[str]:
    """Every input that matters for the figure, so that it alone says what deployment it shows."""
    scenario = sizing.scenario
    split = {
        "ratio": f"r = {stated_ratio_text(scenario.mamba_full_memory_ratio)}",
        "balanced": f"r* = {ratio_text(sizing.ratio_now)}",
        "pin": f"pin {count(scenario.max_mamba_cache_size or 0)}",
    }[scenario.split]
    strategy = (sizing.resolved.strategy or "radix cache") if sizing.resolved.radix_cache else "radix cache off"
    ranks = scenario.attn_dp_size
    pieces = [
        scenario.title,
        f"L = {count(scenario.L)}",
        split,
        f"{strategy}: S = {sizing.S}",
        _drafts(sizing),
        f"dcp_size = {scenario.dcp_size}" if scenario.dcp_size > 1 else "",
        f"pp_size = {scenario.pp_size}" if scenario.pp_size > 1 else "",
        f"one of {ranks} attention-DP ranks" if ranks > 1 else "",
        f"PD {scenario.disaggregation_mode}" if scenario.disaggregation_mode != "null" else "",
        *_rest(sizing),
        f"slot {count(sizing.slot_bytes)} B ({scenario.mamba_ssm_dtype})",
        f"ring {count(sizing.ring_bytes)} B" if sizing.ring_bytes else "",
        f"token {count(sizing.token_bytes)} B ({scenario.kv_cache_dtype})",
        f"page {sizing.resolved.page_size}",
        f"max_running_requests {count(scenario.max_running_requests)}" if scenario.max_running_requests else "",
    ]
    return [piece for piece in pieces if piece]


def _rest(sizing: Sizing) -> tuple[str, ...]:
    """rest with its source; an estimate with its band and with what it was made from."""
    scenario = sizing.scenario
    drawn = f", drawn at its {scenario.rest_source}" if scenario.rest_source in ENDS else ""
    rest = estimate_of(scenario) if drawn else rest_of(scenario)
    if rest.estimate is None:
        return (f"rest {rest_text(scenario.rest_gib)} per rank ({rest_of(scenario).origin})",)
    gpus = scenario.tp_size * scenario.pp_size
    gpu = (
        f"{gpus} x {scenario.gpu}"
        if scenario.gpu != OTHER
        else f"{gpus} GPUs of {count(scenario.gpu_memory_mib or 0)} MiB"
    )
    fraction = f"mem_fraction_static {rest.estimate.mem_fraction_static:.4g}"
    automatic = " (automatic)" if scenario.mem_fraction_static is None else ""
    stored = variant_words(scenario)
    return f"rest {rest.words} per rank{drawn}", gpu, f"{fraction}{automatic}", f"weights {stored}"


def _drafts(sizing: Sizing) -> str:
    D = sizing.scenario.D
    if D == 0:
        return ""
    return f"D = {D}" if sizing.drafts_charged else f"D = {D}, none charged"


def layout(inputs: list[str], title: str, *, height: int, characters: int, bottom: int = 76, right: int = 24) -> Figure:
    """What all figures share: title, inputs wrapped to `characters` a line, source line, fonts and margins [px]."""
    lines = _wrapped(inputs, characters)
    top = TITLE_HEIGHT + LINE_HEIGHT * len(lines) + 20
    return {
        "height": height,
        "autosize": True,
        "showlegend": False,
        "paper_bgcolor": "@paper",
        "plot_bgcolor": "@paper",
        "font": {"family": FONT, "size": NORMAL, "color": "@ink"},
        "margin": {"l": 64, "r": right, "t": top, "b": bottom},
        "hoverlabel": {
            "bgcolor": "@paper",
            "bordercolor": "@muted",
            "font": {"color": "@ink", "size": NORMAL},
        },
        "title": {
            "text": title,
            "font": {"size": LARGE, "color": "@ink", "weight": 600},
            "x": 0,
            "xanchor": "left",
            "xref": "container",
            # Set off from the axes, so that it stands as high above them on a picture of another height.
            "pad": {"l": 12, "b": top - TITLE_HEIGHT},
            "y": 1,
            "yanchor": "bottom",
            "yref": "paper",
            "subtitle": {"text": "<br>".join(lines), "font": {"size": SMALL, "color": "@muted"}},
        },
        "annotations": [],
    }


def _wrapped(pieces: list[str], characters: int) -> list[str]:
    """Pieces joined into lines of at most so many characters; a piece is broken only where it is longer than a line."""
    lines: list[str] = []
    for whole in pieces:
        piece, *rest = (wrap(whole, characters) if len(whole) > characters else []) or [whole]
        if lines and len(lines[-1]) + len(SEPARATOR) + len(piece) <= characters:
            lines[-1] += SEPARATOR + piece
        else:
            lines.append(piece)
        for more in rest:
            lines[-1] += GOES_ON
            lines.append(more)
    return lines


class Label(NamedTuple):
    """Words at a place in a figure's own units; `side` says where they stand from there, as Plotly names it."""

    words: str
    x: float | str
    """A number, or the name of a category."""
    y: float
    side: str
    color: str = "@ink"
    size: int = NORMAL


def labels(found: list[Label]) -> Figure:
    """All labels of a figure as one trace: an annotation each would cost as much time as the lines."""
    return {
        "type": "scatter",
        "mode": "text",
        "name": "labels",
        "x": [label.x for label in found],
        "y": [label.y for label in found],
        "text": [label.words for label in found],
        "textposition": [label.side for label in found],
        "textfont": {"color": [label.color for label in found], "size": [label.size for label in found]},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }


def text(words: str, *, x: float, y: float, color: str = "@ink", size: int = NORMAL, **more: Any) -> Figure:
    """A label without an arrow that may stand on a ground of its own."""
    return {"text": words, "x": x, "y": y, "showarrow": False, "font": {"color": color, "size": size}} | more


def own_dot(x: float, y: float, **font: Any) -> Figure:
    """Where the deployment stands, as the axes count annotations: a letter, which Plotly moves without a new drawing of
    all else, as it would for a marker.
    """
    dot = text("●", x=x, y=y, size=DOT)
    return dot | {"font": dot["font"] | font, "yanchor": "middle", "name": OWN}


class Wanted(NamedTuple):
    """Words that a figure says, and where they may stand, the best first."""

    words: str
    spots: Iterable[Spot]
    """Asked for once."""
    color: str = "@ink"
    size: int = NORMAL
    grounded: bool = False
    """Whether they always have a ground of their own."""
    own: bool = False
    """Whether they say what is set, which a hand on the figure hides."""


def placed(wanted: Wanted, spot: Spot, *, grounded: bool) -> Figure:
    """Words at their spot, on a ground of their own where they cover a line."""
    right, up = SIDES.get(spot.side, (0, 0))
    place: Figure = {
        "xanchor": {1: "left", 0: "center", -1: "right"}[right],
        "yanchor": {1: "bottom", 0: "middle", -1: "top"}[up],
        "align": {1: "left", 0: "center", -1: "right"}[right],
        "xshift": spot.off[0],
        "yshift": spot.off[1],
        "borderpad": 0,
    }
    place |= {"bgcolor": "@paper"} if grounded or wanted.grounded else {}
    place |= {"name": OWN} if wanted.own else {}
    return text(wanted.words, x=spot.x, y=spot.y, color=wanted.color, size=wanted.size, **place)


def solved_as(sizing: Sizing) -> str:
    """The source of a figure of a solved scenario."""
    return f"Solved as SGLang {sizing.scenario.release} does"


def requests_axis(sizing: Sizing) -> str:
    """The title of an axis of requests: under attention DP they are those of one rank."""
    return "requests that run at once" + (" per rank" if sizing.scenario.attn_dp_size > 1 else "")


def source_axis(title: str, solved: str, **more: Any) -> Figure:
    """A horizontal axis whose title carries the figure's source line below it; one text costs less than two."""
    source = f"<span style='font-size:{SMALL}px'>{solved} · {PRODUCT}</span>"
    return axis(f"{title}<br>{source}", **more)


def axis(title: str, **more: Any) -> Figure:
    """An axis with its title in words and units; margins are fixed because measuring labels costs time."""
    return {
        "title": {"text": title, "font": {"size": NORMAL, "color": "@muted"}, "standoff": 8},
        "gridcolor": "@grid",
        "linecolor": "@muted",
        "zeroline": False,
        "ticks": "outside",
        "tickcolor": "@muted",
        "tickfont": {"size": SMALL, "color": "@ink"},
        "automargin": False,
    } | more


def linear_ticks(high: float, most: int) -> Figure:
    """Ticks from 0 to the end of a linear axis, at most so many steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(high / most))
    step = next(power * mantissa for mantissa in (1, 2, 5, 10) if high / (power * mantissa) <= most)
    ticks = [index * step for index in range(int(high / step * (1 + 1e-9)) + 1)]
    return {"tickvals": ticks, "ticktext": [f"{tick:,.12g}" for tick in ticks]}


def log_ticks(low: float, high: float) -> list[int]:
    """1, 2 and 5 of each power of ten from 1 up, as far as they lie between the two."""
    steps = (digit * 10**power for power in range(8) for digit in (1, 2, 5))
    return [step for step in steps if low <= step <= high]


def line(x: Any, y: Any, color: str, *, width: float = 2, dash: str = "solid", **more: Any) -> Figure:
    """A line that says nothing on hovering; `simplify` off, or Plotly cuts corners."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": x,
        "y": y,
        "line": {"color": color, "width": width, "dash": dash, "simplify": False},
        "hoverinfo": "skip",
    } | more


def points(x: list[Any], y: list[Any], symbols: list[str], **look: Any) -> Figure:
    """Markers with a rim in the background's colour, so that they stand out on a line; `look` is Plotly's `marker`."""
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "marks",
        "x": x,
        "y": y,
        "marker": {"color": "@ink", "size": 13, "symbol": symbols, "line": {"color": "@paper", "width": 2}} | look,
        "hoverinfo": "skip",
    }
