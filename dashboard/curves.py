"""A backend's series as traces: line, interval, levels, rings. Pure.

A year of nights is hundreds of points a line, drawn in every chart of a page. So each array is made at once
by numpy: plotly looks at every number of a list by itself, several times.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import plotly.graph_objects as go

from dashboard import axes
from dashboard.axes import local
from dashboard.figures import Window, safe
from dashboard.palette import Style
from store import words
from store.queries import TrendPoint

FEW = 8
"""Runs that are points before they are a line."""
MOST_MARKERS = 120
"""Of a line: more would touch each other."""

Clock = npt.NDArray[np.str_]
Values = npt.NDArray[np.float64]
Bounded = tuple[Clock, Values, Values]
"""x, lower and upper bound of a stretch without a gap."""


class Level(NamedTuple):
    """The mean of a metric between two changes, and the times of the first and last run of it."""

    first: datetime
    last: datetime
    mean: float


class Alert(NamedTuple):
    """A run at which a verdict turned: its time and value, in which colour, and what is said. `alert_id`: of
    the alert that it began, which is named beneath and opened by a click, 0 for none."""

    run_id: int
    at: datetime
    value: float
    colour: str
    text: str
    alert_id: int = 0


class Line(NamedTuple):
    """A backend's series, oldest first. `bold` ones get markers all along, and a band whatever the others
    have. `levels`: none where nothing changed; `control`: the backend whose frozen release it is, "" for any
    other; never with a band. `muted`: grey among highlighted ones, named by the pointer alone;
    `note`: its verdict in a word or two."""

    name: str
    style: Style
    points: Sequence[TrendPoint]
    bold: bool = False
    band: bool = False
    levels: Sequence[Level] = ()
    alerts: Sequence[Alert] = ()
    control: str = ""
    muted: bool = False
    note: str = ""


def shown_values(lines: Sequence[Line], metric: str) -> list[float]:
    """Every value that must fit on the axis: means, and the intervals that are shown."""
    values = [point.mean for line in lines for point in line.points]
    bounds = [
        bound for line in lines if line.band for point in line.points for bound in (point.low, point.high)
    ]
    return [value * axes.scale(metric) for value in [*values, *bounds] if value is not None]


# Series ------------------------------------------------------------------------


def add_line(figure: go.Figure, line: Line, metric: str, window: Window, number: int) -> None:
    """A line whose every point tells its run and opens it."""
    if line.points:
        _add_interval(figure, line, metric, window, number)
        figure.add_trace(_curve(line, metric, window, number))


def add_ends(figure: go.Figure, lines: Sequence[Line], metric: str, window: Window) -> None:
    """A marker at the end of each line, which tells it apart without its colour."""
    ends = [(line.style, line.points[-1]) for line in lines if line.points and not line.muted]
    figure.add_trace(
        go.Scatter(
            x=axes.clock([point.started_at for _, point in ends], window.zone),
            y=_drawn([point.mean for _, point in ends], metric),
            mode="markers", hoverinfo="skip", cliponaxis=False,
            marker={
                "symbol": [style.marker for style, _ in ends], "color": [style.colour for style, _ in ends],
                "size": 8,
            },
        )
    )  # fmt: skip


def _curve(line: Line, metric: str, window: Window, number: int) -> go.Scatter:
    """Points that bear no marker answer no click. A browser takes seconds to draw some thousands, but answers
    for those, too, that `maxdisplayed` leaves out."""
    x, y, gaps = _gapped(line.points, metric, window)
    seen = line.bold or (len(line.points) <= FEW and not line.muted)
    told = [f"{_shown(point, metric)} · n {point.n}" for point in line.points]
    marker = {"size": 6, "color": line.style.colour, "opacity": int(seen), "symbol": line.style.marker}
    return go.Scatter(
        x=x, y=y, customdata=np.insert(np.array([point.run_id for point in line.points]), gaps, 0),
        text=np.insert(np.array(told), gaps, ""),
        yaxis=f"y{number}", name=safe(line.name), mode="lines+markers",
        line={"color": line.style.colour, "width": 1.8 if line.bold else 1.2, "dash": _dash(line)},
        marker={**marker, "maxdisplayed": MOST_MARKERS if seen else 1},
        # a click would fade every other marker
        selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": int(seen)}},
        hovertemplate=f"<b>{safe(line.name)}</b> · %{{x|%a %-d %b, %H:%M}}<br>%{{text}}<br>"
        "run %{customdata}, click opens it<extra></extra>",
    )  # fmt: skip


def _gapped(
    points: Sequence[TrendPoint], metric: str, window: Window
) -> tuple[Clock, Values, npt.NDArray[np.intp]]:
    """x and y, with a point that is nowhere in each gap; and before which points these are."""
    times = [point.started_at for point in points]
    gaps = axes.gaps(times)
    x, y = axes.clock(times, window.zone), _drawn([point.mean for point in points], metric)
    return np.insert(x, gaps, x[gaps]), np.insert(y, gaps, np.nan), gaps


def _dash(line: Line) -> str:
    """Long dashes on a noisy line look like missing data: a bold one is drawn through."""
    return "solid" if line.bold else line.style.dash


def _shown(point: TrendPoint, metric: str) -> str:
    bounds = words.interval(metric, point.low, point.high)
    return words.amount(metric, point.mean) + (f" ({bounds})" if bounds else "")


def _drawn(values: Sequence[float], metric: str) -> Values:
    return np.round(np.array(values, dtype=float) * axes.scale(metric), 3)


# Intervals ------------------------------------------------------------------------


def _add_interval(figure: go.Figure, line: Line, metric: str, window: Window, number: int) -> None:
    known = [point for point in line.points if point.low is not None and point.high is not None]
    if not line.band or not known:
        return
    x = axes.clock([point.started_at for point in known], window.zone)
    low, high = (_drawn([getattr(point, bound) for point in known], metric) for bound in ("low", "high"))
    pieces = axes.segments([point.started_at for point in known])
    band = [(x[piece], low[piece], high[piece]) for piece in pieces]
    alone = [one for one in band if len(one[0]) == 1]
    figure.add_trace(_band(band, line, window, number))
    if alone:
        figure.add_trace(_bars(alone, line, number))


def _band(pieces: Sequence[Bounded], line: Line, window: Window, number: int) -> go.Scatter:
    """There along the upper bound, back along the lower."""
    return go.Scatter(
        x=np.concatenate([np.concatenate([x, x[::-1], x[:1]]) for x, _, _ in pieces]),
        y=np.concatenate([np.concatenate([high, low[::-1], [np.nan]]) for _, low, high in pieces]),
        fill="toself", fillcolor=_faded(line.style.colour, window.theme.band), mode="none",
        yaxis=f"y{number}", hoverinfo="skip",
    )  # fmt: skip


def _bars(pieces: Sequence[Bounded], line: Line, number: int) -> go.Scatter:
    """The intervals of runs that stand alone: a band has no width there."""
    return go.Scatter(
        x=np.concatenate([x.repeat(3) for x, _, _ in pieces]),
        y=np.concatenate([[*low, *high, np.nan] for _, low, high in pieces]),
        yaxis=f"y{number}", mode="lines", line={"color": line.style.colour, "width": 1}, hoverinfo="skip",
    )  # fmt: skip


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


# Verdicts ------------------------------------------------------------------------


def add_verdicts(figure: go.Figure, line: Line, metric: str, window: Window, number: int) -> None:
    """Levels between changes, and rings where a verdict turned, above all lines."""
    if line.levels:
        figure.add_trace(_levels(line, metric, window, number))
    if line.alerts:
        figure.add_trace(_rings(line.alerts, metric, window, number))


def _levels(line: Line, metric: str, window: Window, number: int) -> go.Scatter:
    ends = [[local(at, window.zone) for at in (level.first, level.last)] for level in line.levels]
    means = _drawn([level.mean for level in line.levels], metric)
    return go.Scatter(
        x=[x for pair in ends for x in (*pair, None)], y=[y for mean in means for y in (mean, mean, None)],
        yaxis=f"y{number}", mode="lines", line={"color": line.style.colour, "width": 3.4}, hoverinfo="skip",
    )  # fmt: skip


def _rings(alerts: Sequence[Alert], metric: str, window: Window, number: int) -> go.Scatter:
    return go.Scatter(
        x=[local(alert.at, window.zone) for alert in alerts],
        y=_drawn([alert.value for alert in alerts], metric),
        customdata=[[alert.run_id, *([alert.alert_id] if alert.alert_id else [])] for alert in alerts],
        text=[f"A-{alert.alert_id}" if alert.alert_id else "" for alert in alerts],
        textposition="bottom center", hovertext=[safe(alert.text) for alert in alerts],
        yaxis=f"y{number}", mode="markers+text", hovertemplate="%{hovertext}<extra></extra>",
        marker={
            "symbol": "circle-open", "size": 15,
            "line": {"width": 2.2, "color": [alert.colour for alert in alerts]},
            "color": [alert.colour for alert in alerts], "opacity": 1,
        },
        selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": 1}},
    )  # fmt: skip
