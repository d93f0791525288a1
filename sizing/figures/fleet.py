"""Figure: GPUs of a fleet over the requests it must carry at once, one line a way of setting its servers."""

import math
from itertools import groupby

import numpy as np

from sizing.answers.fleet import Fleet
from sizing.answers.solve import Sizing
from sizing.basics.units import count
from sizing.figures.theme import (
    SMALL,
    WHOLE_COLUMN,
    Figure,
    Label,
    axis,
    inputs,
    labels,
    layout,
    line,
    points,
    solved_as,
    source_axis,
)

HEIGHT = 480
NAMES = 210  # [px] of the right margin: the names of the lines
REACH = 1.5  # the axis of requests ends at so many times what is wanted
STEPS = 200  # of a line: with more servers than these a step is narrower than a figure of 1560 px can show
APART = 0.055  # of the axis: names of lines stand so far apart at least
COLOURS = ("@line1", "@line2", "@line3")
DASHES = ("solid", "dash", "solid")


def fleet_figure(sizing: Sizing, fleet: Fleet, said: str = "") -> Figure:
    """GPUs over requests at once; a mark on each line at what is wanted. `said` is what else the numbers rest on."""
    facts = [*([said] if said else []), f"{count(fleet.gpus_each)} GPUs a server", *inputs(sizing)]
    figure = layout(facts, "GPUs over requests at once", height=HEIGHT, characters=WHOLE_COLUMN, right=NAMES)
    right = fleet.wanted * REACH
    carrying = sorted((row for row in fleet.rows if row.runs), key=lambda row: -row.runs)
    figure["xaxis"] = source_axis(
        "requests at once, whole fleet", solved_as(sizing), range=[0, right], tickformat=",d", showgrid=False
    )
    if not carrying:
        figure["yaxis"] = axis("GPUs", range=[0, 1], tickvals=[0])
        return {"data": [], "layout": figure}
    top = 1.08 * fleet.gpus_each * -(-right // carrying[-1].runs)
    figure["yaxis"] = axis("GPUs", range=[0, top], tickformat=",d")
    look = dict(zip((row.name for row in fleet.rows), zip(COLOURS, DASHES, strict=True), strict=False))
    data, names, foot = [], [], -math.inf
    for _, equal in groupby(carrying, key=lambda row: row.runs):
        rows = list(equal)
        first = rows[0]
        colour, dash = look[first.name]
        x, y = _steps(first.runs, fleet.gpus_each, right)
        alike = [row.name for row in fleet.rows if row in rows]
        words = ", ".join(alike)
        drawn = line(x, y, colour, width=2.5, dash=dash, name=words) | {"hoverinfo": "all"}
        data.append(drawn | {"hovertemplate": f"%{{x:,.0f}} requests: %{{y:,.0f}} GPUs, {words}<extra></extra>"})
        half = APART * top * len(alike) / 2
        middle = max(float(y[-1]), foot + half)
        foot = middle + half
        said_there = ",<br>".join(f"  {name}" for name in alike)
        names.append(Label(f"{said_there}: <b>{count(first.gpus or 0)}</b>", right, middle, "middle right"))
    names.append(
        Label(f"  GPUs at {count(fleet.wanted)}", right, foot + APART * top / 2, "middle right", "@muted", SMALL)
    )
    data.append(line([fleet.wanted] * 2, [0, top], "@muted", width=1, dash="dot", name="wanted"))
    at = [row.gpus for row in carrying]
    data += [points([fleet.wanted] * len(at), at, ["circle"] * len(at)), labels(names)]
    return {"data": data, "layout": figure}


def _steps(runs: int, gpus_each: int, right: float) -> tuple[list[float], list[float]]:
    """The corners of a line that rises by a server where one more is needed, or straight where they are too many."""
    servers = np.arange(math.ceil(right / runs))
    if len(servers) > STEPS:
        x = np.linspace(0, right, STEPS)
        return x.tolist(), (np.ceil(x / runs) * gpus_each).tolist()
    ends = np.append(servers[1:] * runs, right)
    x = np.repeat(np.append(0.0, ends), 2)[1:-1]
    return x.tolist(), np.repeat((servers + 1.0) * gpus_each, 2).tolist()
