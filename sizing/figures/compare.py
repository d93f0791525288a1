"""Figure: what several scenarios run over context lengths, on the same axes, each line with its name."""

import math

from sizing.compare import of_deployment
from sizing.curves import L_HIGH, L_LOW, context_grid, over_context
from sizing.figures.theme import Figure, Label, axis, labels, layout, line, source_axis, text
from sizing.solve import Sizing
from sizing.split import Split
from sizing.units import count, tokens_text

HEIGHT = 470
CHARACTERS = 150  # of a line of inputs over the whole main column at 1440 px
SPREAD = 1 / 18  # of the axis: how far apart two names at the right end must stand
FLOOR = 0.8  # requests: where the axis ends, below one

# Six that stay apart in greyscale by their dash and weight; no colour of a pool among them.
LOOKS = (
    ("@ink", "solid", 3.0),
    ("@ink", "dash", 2.5),
    ("@muted", "solid", 3.0),
    ("@ink", "dot", 2.5),
    ("@muted", "dash", 2.5),
    ("@muted", "dot", 2.5),
)


def compare_figure(named: dict[str, Sizing]) -> Figure:
    """What runs over L for each of up to six scenarios [requests of the deployment]."""
    drawn = {name: sizing for name, sizing in named.items() if isinstance(sizing.now, Split)}
    what = [f"{name}: {_said(sizing)}" for name, sizing in named.items()]
    figure = layout(what, "What runs, side by side", height=HEIGHT, characters=CHARACTERS, right=210)
    ticks = [L_LOW * 4**step for step in range(7)]
    figure["xaxis"] = source_axis(
        "L, context per request [tokens]",
        "Solved as each scenario's own release does",
        type="log",
        tickvals=ticks,
        ticktext=[tokens_text(tick) for tick in ticks],
    )
    if not drawn:
        words = "None of these splits starts."
        figure["annotations"].append(text(words, x=0.5, y=0.5, xref="paper", yref="paper"))
        return {"data": [], "layout": figure}
    data, ends, most = [], [], 1
    for (name, sizing), (colour, dash, width) in zip(drawn.items(), LOOKS, strict=False):
        curve = over_context(_split(sizing), context_grid(_split(sizing)))
        runs = [of_deployment(sizing, int(value)) for value in curve.runs]
        most = max(most, *runs)
        shown = [float(value) if value else None for value in runs]
        data.append(line(curve.L.tolist(), shown, colour, width=width, dash=dash, name=name))
        ends.append((name, max(runs[-1], 1), colour))
    figure["yaxis"] = axis("requests of the deployment", type="log", **_ticks(most))
    data.append(labels(_apart(ends, (most * 1.5 / FLOOR) ** SPREAD)))
    return {"data": data, "layout": figure}


def _split(sizing: Sizing) -> Split:
    assert isinstance(sizing.now, Split)
    return sizing.now


def _said(sizing: Sizing) -> str:
    if not isinstance(sizing.now, Split):
        return "refused"
    return f"{count(of_deployment(sizing, sizing.now.runs))} run at L = {count(sizing.scenario.L)}"


def _ticks(most: int) -> Figure:
    steps = [digit * 10**power for power in range(8) for digit in (1, 2, 5)]
    return {
        "tickvals": [step for step in steps if step <= most * 2],
        "range": [math.log10(FLOOR), math.log10(most * 1.5)],
    }


def _apart(ends: list[tuple[str, int, str]], factor: float) -> list[Label]:
    """The names at the right ends, moved up by a factor on the logarithmic axis where two would meet."""
    found, last = [], 0.0
    for name, y, colour in sorted(ends, key=lambda end: end[1]):
        last = max(float(y), last * factor)
        found.append(Label(f"  {name}", L_HIGH, last, "middle right", colour, 12))
    return found
