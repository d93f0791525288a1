"""Figure: what runs over two inputs at once, as a heatmap with the ridge of r* and the deployment's own point."""

import math
from typing import Any

from sizing.answers.band import at_low_end
from sizing.answers.solve import Sizing
from sizing.answers.sweep import PIN, RATIO, Axis, Sweep, SweepInput, sweep
from sizing.basics.units import count, flag_ratio, number, ratio_text, stated_ratio_text, tokens_text
from sizing.engine.slots import is_pinned
from sizing.figures.hand import Hand
from sizing.figures.placement import Ground, Spot
from sizing.figures.theme import (
    LARGE,
    SMALL,
    WHOLE_COLUMN,
    Figure,
    Wanted,
    axis,
    inputs,
    layout,
    line,
    own_dot,
    placed,
    requests_axis,
    solved_as,
    source_axis,
    text,
)
from sizing.scenario.inputs import FIELDS, INPUTS

HEIGHT = 510
COLOUR_BAR = 118  # [px] of the right margin: the scale, its numbers and its title
LEFT, LEFT_OF_NAMES = 84, 128  # [px] of the left margin; names of dtypes are the widest labels of an axis
DECADES = 2  # an axis that spans more of them is labelled at powers of ten only
STANDOFF = 6  # [px] from the labels of the vertical axis to its title
OFF = 12  # [px] from a mark to its label
MARK = 17  # [px] of a mark with its rim

FEW = 20  # values: an axis of no more is drawn as cells of one size, each with its value
LARGE_CELLS = 8  # of them side by side have room for large numbers
FEW_REQUESTS = 6  # up to which the scale names each
LABEL = 22  # [px] of a line of words between the inputs and the cells

LOGARITHMIC = ("L", RATIO, "rest_gib", PIN, "max_running_requests")
# What the line of inputs says of each, which is no longer one number where it is swept.
SAID_AS: dict[str, tuple[str, ...]] = {
    "L": ("L = ",),
    RATIO: ("r = ", "r* = ", "pin "),
    PIN: ("r = ", "r* = ", "pin "),
    "rest_gib": ("rest ",),
    "D": ("D = ",),
    "dcp_size": ("dcp_size = ", "token "),
    "max_running_requests": ("max_running_requests ",),
    "page_size": ("page ",),
    "attn_dp_size": ("one of ",),
    "mamba_ssm_dtype": ("slot ",),
    "kv_cache_dtype": ("token ",),
}


def sweep_figure(sizing: Sizing, x: Axis, y: Axis) -> Figure:
    """What runs for every pair of values. Raises ValueError like `sweep`."""
    found = sweep(sizing.scenario, x, y)
    figure = layout(
        _inputs(at_low_end(sizing), x, y),
        f"Requests that run, over {_name(x)} and {_name(y)}",
        height=HEIGHT,
        characters=WHOLE_COLUMN,
        right=COLOUR_BAR,
    )
    figure["margin"]["l"] = LEFT_OF_NAMES if y.is_category else LEFT
    refused = ", blank where it refuses to start" if found.refused.any() else ""
    figure["xaxis"] = source_axis(_title(x), solved_as(sizing) + refused, **_scale(x))
    figure["yaxis"] = axis(_title(y), **_scale(y))
    figure["yaxis"]["title"]["standoff"] = STANDOFF
    data = [_cells(sizing, found), *_ridge(found)]
    own = _own_cell(sizing, found)
    ground = _ground(figure, found)
    if own and _is_short(x) and _is_short(y):
        _outline(figure, found, *own)
    elif own:
        at = _serial(x, own[0]), _serial(y, own[1])
        ground.point(*at, MARK)
        figure["annotations"].append(own_dot(*at, shadow="auto"))  # a rim, which lifts it off the cells
        figure["annotations"].append(_beside(ground, found, _own_words(found, *own), [at], own=True))
    figure["annotations"] += _ridge_label(found, own, ground)
    if _is_short(x) and _is_short(y):
        size = LARGE if max(len(x.values), len(y.values)) <= LARGE_CELLS else SMALL
        data[0] |= {"texttemplate": "%{z:,}", "textfont": {"size": size}, "xgap": 2, "ygap": 2}
    return {"data": data, "layout": figure}


def sweep_hand(sizing: Sizing, x: Axis, y: Axis) -> Hand:
    """Both inputs under the hand (hand.py): every cell of the figure is a stop, and says there what runs."""
    said = "{at}, {up}: "
    return {
        "axes": [
            {"input": each.name, "name": _name(each), "at": list(each.values), "own": _own(sizing, each.name)}
            for each in (x, y)
        ],
        "words": [_written(x, value) for value in x.values],
        "up": [_written(y, value) for value in y.values],
        "forms": [{"label": said + "<b>{runs} run</b>"}, {"label": said + "refused"}],
    }


def _inputs(sizing: Sizing, x: Axis, y: Axis) -> list[str]:
    swept = (*SAID_AS[x.name], *SAID_AS[y.name])
    return [piece for piece in inputs(sizing) if not piece.startswith(swept)]


def _name(found: Axis) -> str:
    """The input's name inside a line: `Ratio r` without its capital, `KV dtype` as it is."""
    title = str(FIELDS[found.name].title).split(",")[0]
    return title[0].lower() + title[1:] if title[1:2].islower() else title


def _title(found: Axis) -> str:
    """The input in words, its flag and its unit."""
    flag, unit = INPUTS[found.name].flag, INPUTS[found.name].unit
    title = str(FIELDS[found.name].title)
    named = f"{title}, {flag}" if flag and flag.lstrip("-").replace("-", "_") != title else title
    return named + (f" [{unit}]" if unit else "")


def _is_short(found: Axis) -> bool:
    """Whether the values stand one beside the other, as names do: those of a discrete input, or few of any."""
    return found.name not in LOGARITHMIC or len(found.values) <= FEW


def _is_logarithmic(found: Axis) -> bool:
    return not _is_short(found) and all(float(value) > 0 for value in found.values)


def _value(found: Axis, value: Any) -> Any:
    """A value as the axis holds it: on a short axis its text."""
    return _text(found, value) if _is_short(found) else value


def _text(found: Axis, value: Any) -> str:
    """A value as it is written beside a short axis, with every digit."""
    if found.name == RATIO:
        return stated_ratio_text(value)
    return count(value) if isinstance(value, int) else f"{value:,.12g}" if isinstance(value, float) else value


def _scale(found: Axis) -> dict[str, Any]:
    if _is_short(found):
        names = [_text(found, value) for value in found.values]
        return {"type": "category", "categoryarray": names, "range": [-0.5, len(names) - 0.5]}
    if not _is_logarithmic(found):
        return {"type": "linear"}
    low, high = float(found.values[0]), float(found.values[-1])
    ticks = _ticks(found.name, low, high)
    return {
        "type": "log",
        "range": [math.log10(low), math.log10(high)],
        "tickvals": ticks,
        "ticktext": [tokens_text(int(tick)) if found.name == "L" else f"{tick:,.12g}" for tick in ticks],
    }


def _ticks(name: SweepInput, low: float, high: float) -> list[float]:
    """Powers of four for L, else powers of ten, and on a short axis twice and five times those."""
    if name == "L":
        found = [4.0**power for power in range(math.floor(math.log(high, 4)) + 1)]
    else:
        mantissas = (1,) if math.log10(high / low) > DECADES else (1, 2, 5)
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        found = [mantissa * 10.0**power for power in powers for mantissa in mantissas]
    return [tick for tick in found if low <= tick <= high]


def _cells(sizing: Sizing, found: Sweep) -> Figure:
    """Whole numbers, and a gap where the engine refuses."""
    cells = [
        [None if refused else runs for runs, refused in zip(*lines, strict=True)]
        for lines in zip(found.runs.tolist(), found.refused.tolist(), strict=True)
    ]
    return {
        "type": "heatmap",
        "name": "runs",
        "x": [_value(found.x, value) for value in found.x.values],
        "y": [_value(found.y, value) for value in found.y.values],
        "z": cells,
        "zmin": 0,
        "zmax": max(int(found.runs.max()), 1),
        "zsmooth": False,
        "hoverongaps": False,
        "colorscale": [[0, "@few"], [1, "@many"]],
        "colorbar": {
            "title": {
                "text": _requests(sizing, found),
                "side": "right",
                "font": {"size": SMALL, "color": "@muted"},
            },
            "thickness": 14,
            "outlinewidth": 0,
            "tickfont": {"size": SMALL, "color": "@ink"},
            "tickformat": ",d",
            "x": 1.02,
            **({"dtick": 1} if found.runs.max() <= FEW_REQUESTS else {}),
        },
        "hovertemplate": f"{_hover(found.x, 'x')}<br>{_hover(found.y, 'y')}<br><b>%{{z:,}} run</b><extra></extra>",
    }


def _requests(sizing: Sizing, found: Sweep) -> str:
    """Where attention DP is an axis the cells are those of one rank, whatever the deployment's own width."""
    swept = "attn_dp_size" in (found.x.name, found.y.name)
    return "requests that run at once per rank" if swept else requests_axis(sizing)


def _hover(found: Axis, letter: str) -> str:
    """Name and value of one axis, written as the value is."""
    written = "" if _is_short(found) else {RATIO: ":.5g", "rest_gib": ":.3f"}.get(found.name, ":,")
    return f"{_name(found)} %{{{letter}{written}}}"


def _ridge(found: Sweep) -> list[Figure]:
    """r* for each value of the other axis, as far as it lies on the axis of ratios; a casing lifts it off the cells."""
    if found.ridge is None or _is_short(found.x if found.x.name == RATIO else found.y):
        return []
    ratio, other = (found.x, found.y) if found.x.name == RATIO else (found.y, found.x)
    low, high = float(ratio.values[0]), float(ratio.values[-1])
    along = [_value(other, value) for value in other.values]
    ridge = [flag_ratio(exact) if exact is not None and low <= exact <= high else None for exact in found.ridge]
    x, y = (ridge, along) if ratio is found.x else (along, ridge)
    return [line(x, y, "@paper", width=6, name="casing"), line(x, y, "@ink", width=2, name="r*")]


def _ridge_label(found: Sweep, own: tuple[int, int] | None, ground: Ground) -> list[Figure]:
    """Beside what shows of the ridge, a quarter from its end that is farther from the deployment's own point."""
    drawn = _ridge(found)
    if not drawn:
        return []
    ratio_across = found.x.name == RATIO
    other, along = (found.y, drawn[-1]["x"]) if ratio_across else (found.x, drawn[-1]["y"])
    seen = [(serial, ratio) for serial, ratio in enumerate(along) if ratio is not None]
    if not seen:
        return []
    start = own[ratio_across] if own else 0
    quarters = [seen[len(seen) * part // 8] for part in (2, 6, 1, 7, 3, 5, 4, 0)]
    quarters.sort(key=lambda place: abs(place[0] - start) < len(along) / 4)  # sorted keeps the order of equals
    places = [(math.log10(ratio), _serial(other, serial)) for serial, ratio in quarters]
    at = places if ratio_across else [(up, across) for across, up in places]
    return [_beside(ground, found, "r*, the balance ratio", at)]


def _own_cell(sizing: Sizing, found: Sweep) -> tuple[int, int] | None:
    """Column and row of what is set; None where the split that is set, or its value, is not on the axes."""
    own = {axis.name: _own(sizing, axis.name) for axis in (found.x, found.y)}
    if own[found.x.name] not in found.x.values or own[found.y.name] not in found.y.values:
        return None
    return found.x.values.index(own[found.x.name]), found.y.values.index(own[found.y.name])


def _own(sizing: Sizing, name: SweepInput) -> Any:
    if name == RATIO:
        return None if is_pinned(sizing.resolved) else sizing.ratio_now
    if name == PIN and not is_pinned(sizing.resolved):
        return None
    return getattr(sizing.scenario, name)


def _own_words(found: Sweep, column: int, row: int) -> str:
    x, y = found.x.values[column], found.y.values[row]
    runs = "refused" if found.refused[row, column] else f"<b>{count(int(found.runs[row, column]))} run</b>"
    return f"now, {_written(found.x, x)}, {_written(found.y, y)}: {runs}"


def _outline(figure: Figure, found: Sweep, column: int, row: int) -> None:
    """A few large cells: a frame around the own one, and its words above all cells, where they cover none."""
    frame = {"type": "rect", "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5}
    looks = ({"color": "@paper", "width": 7}, {"color": "@ink", "width": 3})  # the casing lifts it off the cells
    figure["shapes"] = [frame | {"line": look} for look in looks]
    figure["margin"]["t"] += LABEL
    figure["title"]["pad"]["b"] += LABEL
    above: dict[str, Any] = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom", "yshift": 6}
    words = f"In the frame: {_own_words(found, column, row)}"
    figure["annotations"].append(text(words, x=0, y=1, **above))


def _written(found: Axis, value: Any) -> str:
    if found.name == RATIO:
        return f"r {ratio_text(value)}"
    if found.name == "rest_gib":
        return f"rest {number(value)}"
    return f"{_name(found)} {count(value) if isinstance(value, int) else value}"


def _ground(figure: Figure, found: Sweep) -> Ground:
    """The axes as the page shows them at 1440, as a picture, and at 1920."""
    margin = figure["margin"]
    across, up = margin["l"] + margin["r"], margin["t"] + margin["b"]
    x, y = (
        tuple(found_axis["range"]) if "range" in found_axis else (float(values[0]), float(values[-1]))
        for found_axis, values in ((figure["xaxis"], found.x.values), (figure["yaxis"], found.y.values))
    )
    sizes = ((972.0, HEIGHT), (1280.0, 720), (1452.0, HEIGHT))
    return Ground([(width - across, height - up) for width, height in sizes], x, y)


def _serial(found: Axis, index: int) -> float:
    """Where a value stands in the axis' own units: its number on a short axis."""
    return float(index) if _is_short(found) else float(_place(found, found.values[index]))


def _beside(
    ground: Ground, found: Sweep, words: str, places: list[tuple[float, float]], *, own: bool = False
) -> Figure:
    """A label on a ground of its own beside the first of the places where it fits, and covers no other."""
    sides = [
        ("middle right", (OFF, 0)),
        ("middle left", (-OFF, 0)),
        ("top right", (OFF, 4)),
        ("bottom right", (OFF, -4)),
        ("top left", (-OFF, 4)),
        ("bottom left", (-OFF, -4)),
        ("top center", (0, OFF)),
        ("bottom center", (0, -OFF)),
    ]
    spots = [Spot(*place, side, off) for place in places for side, off in sides]
    spot, _ = ground.place_anyway(words, spots)
    return placed(Wanted(words, spots, grounded=True, own=own), spot, grounded=True) | {"borderpad": 2}


def _place(found: Axis, value: Any) -> Any:
    """Where an annotation stands: Plotly takes the logarithm on a logarithmic axis."""
    return math.log10(value) if _is_logarithmic(found) else value
