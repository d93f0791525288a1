"""Figure: one bar for each way that carries what is wanted, the cheapest on top, and a line at what is wanted."""

from collections.abc import Sequence

from sizing.answers.carrying_settings import Want
from sizing.answers.carrying_ways import CarryingWay
from sizing.basics.units import count
from sizing.explain.target_words import carrying_price
from sizing.figures.theme import SMALL, WHOLE_COLUMN, Figure, axis, layout, line, source_axis, text

ROW = 72  # [px] of a bar with the two lines of words above it
BAR = 0.30  # of a row
BOTTOM, RIGHT = 76, 150  # [px] margins; what a bar runs stands in the right one where the bar is long
ROOM = 1.02  # the axis ends at so many times the most
OVER = 14  # [px] above the bars: what is wanted
FOOT = -0.28  # of a row, from its middle to where its bar is


def ways_figure(found: Sequence[CarryingWay], wants: Sequence[Want], *, dearer: bool = False) -> Figure:
    """Bars of the ways, at least one: to what the flags run, and paler to the most of the way. `dearer` names the ways
    that come behind the cheapest.
    """
    first, release = wants[0], found[0].way.scenario.release
    held = ["the other lengths are held"] if len(wants) > 1 else []
    ways = "Dearer ways" if dearer else "Ways"
    title = f"{ways} that carry {count(first.requests)} at L = {count(first.L)}, the cheapest first"
    said = ["cheapest: no other flag changes; then by what it costs: speed, prefix reuse, precision"]
    said += ["strong: what the flags run; faint: the most that the way runs with another split", *held]
    figure = layout(said, title, height=0, characters=WHOLE_COLUMN, bottom=BOTTOM, right=RIGHT)
    figure["margin"] |= {"l": 24, "t": figure["margin"]["t"] + OVER}
    figure["title"]["pad"]["b"] += OVER
    figure["height"] = figure["margin"]["t"] + BOTTOM + ROW * len(found)
    figure["barmode"] = "overlay"
    rows = list(range(len(found)))
    figure["xaxis"] = source_axis(
        "requests that run at once, of the deployment",
        f"Solved as SGLang {release} does",
        range=[0, ROOM * widest(found)],
        tickformat=",d",
    )
    figure["yaxis"] = axis("", range=[len(found) - 0.5, -0.5], tickvals=[], ticks="", showgrid=False)
    figure["annotations"] += [note for at, one in zip(rows, found, strict=True) for note in _words(at, one)]
    figure["annotations"].append(
        text(f"{count(first.requests)} wanted", x=first.requests, y=-0.5, size=SMALL) | {"yanchor": "bottom"}
    )
    at = [row - FOOT for row in rows]
    most = _bars("the most", at, [one.most for one in found], "@few", [_said(one, widest=True) for one in found])
    now = [_said(one, widest=False) for one in found]
    runs = _bars("with these flags", at, [one.runs for one in found], "@many", now)
    on_bars = [edge for middle in at for edge in (middle - BAR * 0.7, middle + BAR * 0.7, None)]
    wanted = line([first.requests] * len(on_bars), on_bars, "@ink", width=3, name="wanted")
    return {"data": [most, runs, wanted], "layout": figure}


def widest(found: Sequence[CarryingWay]) -> int:
    """The most that any of them runs [requests]."""
    return max((one.most for one in found), default=1)


def _bars(name: str, at: list[float], x: list[int], colour: str, said: list[str]) -> Figure:
    return {
        "type": "bar",
        "name": name,
        "orientation": "h",
        "x": x,
        "y": at,
        "width": [BAR] * len(at),
        "marker": {"color": colour, "line": {"width": 0}},
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _said(one: CarryingWay, *, widest: bool) -> str:
    runs, flags = (one.most, one.widest_flags) if widest else (one.runs, one.flags)
    return f"{count(runs)} run with<br>{'<br>'.join(flags)}"


def _words(at: int, one: CarryingWay) -> list[Figure]:
    """The flags and the price above a bar, and what runs behind it."""
    left = {"xanchor": "left", "yanchor": "middle", "align": "left"}
    more = f", up to {count(one.most)}" if one.most > one.runs else ""
    return [
        text(f"<b>{' '.join(one.flags)}</b>", x=0, y=at - 0.30) | left,
        text(carrying_price(one), x=0, y=at - 0.04, color="@muted", size=SMALL) | left,
        text(f"<b>{count(one.runs)}</b>{more}", x=one.most, y=at - FOOT)
        | left
        | {"xshift": 6, "bgcolor": "rgba(0,0,0,0)"},
    ]
