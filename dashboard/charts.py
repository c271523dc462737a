"""Rows in, plotly figures out: no streamlit, no SQL. Heights and margins in px.

Names stand at the line's end, not in a legend. `customdata` carries what a click opens: plotly counts points
anew with every redraw. Names come from outside, and plotly reads tags in every text: `safe` takes them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from dashboard import axes, strips
from dashboard.axes import Axis, local
from dashboard.figures import (
    BOTTOM,
    TOP,
    Layout,
    Tick,
    Window,
    add_axis,
    add_marks,
    annotate,
    beside,
    frame,
    mark_lines,
    new_figure,
    safe,
    stacked,
)
from dashboard.palette import Style, Theme
from dashboard.strips import Row
from store import words
from store.queries import TrendPoint

MAIN, PANEL, SMALL, TICKS = 330, 104, 132, 22
LABEL_GAP = 19
FEW = 8
"""Runs that are points before they are a line."""
MOST_BANDS = 4
"""Bands of more backends over many runs hide each other."""

CONFIG = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False, "showAxisDragHandles": False}
"""For `st.plotly_chart`: a chart to read and to click, not to drag about."""


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
    other; never with a band."""

    name: str
    style: Style
    points: Sequence[TrendPoint]
    bold: bool = False
    band: bool = False
    levels: Sequence[Level] = ()
    alerts: Sequence[Alert] = ()
    control: str = ""


class Extras(NamedTuple):
    """What stands around the lines. `counts` says by backend how many cases broke, which may be more than
    the rows of `broken`; `floors` are stored values by name."""

    marks: Sequence[Tick] = ()
    changes: Sequence[Tick] = ()
    broken: Sequence[Row] = ()
    counts: Mapping[str, int] = {}
    floors: Mapping[str, float] = {}


# Trends ------------------------------------------------------------------------


def trend(lines: Sequence[Line], metric: str, window: Window, extras: Extras) -> go.Figure:
    """All backends together; below, on the same time axis, environment changes and the cases that broke."""
    lines, strip = _banded(lines), strips.height(extras.broken)
    layout = stacked([MAIN, TICKS if extras.changes else 0, strip])
    figure = new_figure(window, layout.height)
    axis = axes.axis(metric, shown_values(lines, metric))
    add_axis(figure, 1, layout.domains[0], axis, window.theme)
    for line in sorted(lines, key=lambda line: line.bold):
        add_line(figure, line, metric, window, 1)
        _add_end_marker(figure, line, metric, window)
    for line in lines:
        add_verdicts(figure, line, metric, window, 1)
    _add_floors(figure, metric, extras.floors, axis, window)
    _add_end_labels(figure, lines, metric, axis, layout, window.theme)
    if extras.changes:
        _add_changes(figure, extras.changes, layout, window)
    if extras.broken:
        strips.add_strip(figure, extras.broken, 3, layout.domains[2], window)
        strips.add_strip_labels(figure, extras.broken, extras.counts, layout, window.theme)
    add_marks(figure, extras.marks, _times(lines), window)
    return figure


def each(lines: Sequence[Line], metric: str, window: Window, marks: Sequence[Tick]) -> go.Figure:
    """A panel a backend, with its control, all of one height in points, each around its own middle."""
    controls = {line.control: line for line in lines if line.control}
    own = [line._replace(bold=True, band=True) for line in lines if not line.control]
    panels = [[line, *filter(None, [controls.get(line.name)])] for line in own]
    layout, spans = (
        stacked([PANEL] * len(panels)),
        axes.same_span(metric, [shown_values(p, metric) for p in panels]),
    )
    figure = new_figure(window, layout.height)
    for number, (drawn, axis) in enumerate(zip(panels, spans, strict=True), start=1):
        add_axis(figure, number, layout.domains[number - 1], axis, window.theme)
        for line in reversed(drawn):
            add_line(figure, line, metric, window, number)
        add_verdicts(figure, drawn[0], metric, window, number)
        _add_panel_label(figure, drawn, metric, layout.domains[number - 1], window.theme)
    add_marks(figure, marks, _times(own), window)
    return figure


def panel(lines: Sequence[Line], metric: str, window: Window, marks: Sequence[Tick]) -> go.Figure:
    """A small multiple: thin lines with their markers at the end."""
    figure = new_figure(window, SMALL, right=14, top=6, bottom=22)
    axis = axes.axis(metric, shown_values(lines, metric))
    add_axis(figure, 1, (0.0, 1.0), axis._replace(**_every_other(axis)), window.theme)
    for line in lines:
        mode = "lines+markers" if len(line.points) <= FEW else "lines"
        add_line(figure, line._replace(bold=False), metric, window, 1, mode)
        _add_end_marker(figure, line, metric, window)
    if marks:
        figure.add_trace(mark_lines(marks, _times(lines), axis, window))
    return figure


def alt(what: str, lines: Sequence[Line], metric: str) -> str:
    """A chart for those who cannot see it: newest value and n of each line."""
    newest = [
        f"{line.name} {words.amount(metric, line.points[-1].mean)} (n {line.points[-1].n})"
        for line in lines
        if line.points
    ]
    return f"{what}: {', '.join(newest)}" if newest else f"{what}: no data"


# Cases and suites ------------------------------------------------------------------------


def history(rows: Sequence[Row], window: Window, marks: Sequence[Tick] = ()) -> go.Figure:
    """How one case fared on every backend: a row each, a cell a run."""
    layout = stacked([strips.ALONE * len(rows)])
    top = TOP if marks else 6
    figure = new_figure(window, layout.plot + top + BOTTOM, left=140, top=top)
    grey = [row._replace(style=row.style._replace(colour=window.theme.failed)) for row in rows]
    strips.add_strip(figure, grey, 1, layout.domains[0], window)
    for place, row in enumerate(rows):
        y = len(rows) - place - 0.5
        name = f"{row.style.glyph} {safe(row.backend)}"
        annotate(figure, name, window.theme, x=0, y=y, xanchor="right", xshift=-8, color=row.style.colour)
        annotate(figure, safe(row.words), window.theme, x=1, y=y, xanchor="left", xshift=10)
    add_marks(figure, marks, [], window)
    return figure


def coverage(tags: Sequence[tuple[str, int]], theme: Theme) -> go.Figure:
    """Cases by tag, as bars with their numbers."""
    names = [safe(tag) for tag, _ in tags]
    figure = go.Figure(
        go.Bar(
            x=[cases for _, cases in tags],
            y=names,
            orientation="h",
            marker={"color": theme.floor, "line": {"width": 0}},
            text=[words.count(cases, "case") for _, cases in tags],
            textposition="outside",
            textfont={"color": theme.muted},
            hoverinfo="skip",
            cliponaxis=False,
        )
    )
    figure.update_layout(**frame(theme, 26 * len(tags) + 16), bargap=0.45)
    figure.update_layout(margin={"l": 130, "r": 70, "t": 4, "b": 4})
    top = max((cases for _, cases in tags), default=1)
    figure.update_xaxes(visible=False, range=[0, top * 1.02], fixedrange=True)
    figure.update_yaxes(
        autorange=False,
        range=[len(tags) - 0.5, -0.5],
        fixedrange=True,
        ticks="",
        ticklabelstandoff=8,
        showgrid=False,
    )
    return figure


def _every_other(axis: Axis) -> dict[str, Any]:
    step = 2 if len(axis.ticks) > 4 else 1
    return {"ticks": axis.ticks[::step], "labels": axis.labels[::step]}


# Lines ------------------------------------------------------------------------


def _banded(lines: Sequence[Line]) -> list[Line]:
    """Which lines show their intervals: all where they can be told apart, else the bold ones."""
    clear = banded(lines)
    return [line._replace(band=line.bold or (clear and not line.control)) for line in lines]


def banded(lines: Sequence[Line]) -> bool:
    """Whether the intervals of all lines can be told apart."""
    own = [line for line in lines if not line.control]
    return len(own) <= MOST_BANDS or all(len(line.points) <= FEW for line in own)


def shown_values(lines: Sequence[Line], metric: str) -> list[float]:
    """Every value that must fit on the axis: means, and the intervals that are shown."""
    values = [point.mean for line in lines for point in line.points]
    bounds = [
        bound for line in lines if line.band for point in line.points for bound in (point.low, point.high)
    ]
    return [value * axes.scale(metric) for value in [*values, *bounds] if value is not None]


def _times(lines: Sequence[Line]) -> list[datetime]:
    return sorted({point.started_at for line in lines for point in line.points})


def add_line(
    figure: go.Figure, line: Line, metric: str, window: Window, number: int, mode: str = "lines+markers"
) -> None:
    """Without a marker a point answers no click; a browser takes seconds to draw many markers."""
    if not line.points:
        return
    pieces = [line.points[piece] for piece in axes.segments([point.started_at for point in line.points])]
    if line.band:
        figure.add_trace(_band(pieces, line, metric, window, number))
        figure.add_trace(_bars(pieces, line, metric, window, number))
    figure.add_trace(_curve(pieces, line, metric, window, number, mode))


def _band(
    pieces: list[Sequence[TrendPoint]], line: Line, metric: str, window: Window, number: int
) -> go.Scatter:
    x: list[str | None] = []
    y: list[float | None] = []
    for piece in pieces:
        bounded = [point for point in piece if point.low is not None and point.high is not None]
        there, back = bounded, bounded[::-1]
        x += [local(point.started_at, window.zone) for point in [*there, *back]] + [None]
        ends = [point.high for point in there] + [point.low for point in back]
        y += [*(_rounded(end, metric) for end in ends), None]
    return go.Scatter(
        x=x, y=y, fill="toself", fillcolor=_faded(line.style.colour, window.theme.band), mode="none",
        yaxis=f"y{number}", hoverinfo="skip",
    )  # fmt: skip


def _bars(
    pieces: list[Sequence[TrendPoint]], line: Line, metric: str, window: Window, number: int
) -> go.Scatter:
    """The intervals of runs that stand alone: a band has no width there."""
    alone = [piece[0] for piece in pieces if len(piece) == 1]
    at = [local(point.started_at, window.zone) for point in alone]
    bounds = [(_rounded(point.low, metric), _rounded(point.high, metric)) for point in alone]
    return go.Scatter(
        x=[x for stamp in at for x in (stamp, stamp, None)],
        y=[y for low, high in bounds for y in (low, high, None)],
        yaxis=f"y{number}", mode="lines", line={"color": line.style.colour, "width": 1}, hoverinfo="skip",
    )  # fmt: skip


def _curve(
    pieces: list[Sequence[TrendPoint]], line: Line, metric: str, window: Window, number: int, mode: str
) -> go.Scatter:
    x: list[str | None] = []
    y: list[float | None] = []
    data: list[list[Any]] = []
    for piece in pieces:
        x += [*(local(point.started_at, window.zone) for point in piece), None]
        y += [*(_rounded(point.mean, metric) for point in piece), None]
        data += [*([point.run_id, _shown(point, metric), point.n] for point in piece), [0, "", 0]]
    seen = int(line.bold or len(line.points) <= FEW)
    return go.Scatter(
        x=x, y=y, customdata=np.array(data, dtype=object),  # of lists plotly copies every number by itself
        yaxis=f"y{number}", name=safe(line.name), mode=mode,
        line={"color": line.style.colour, "width": 1.8 if line.bold else 1.2, "dash": _dash(line)},
        marker={"size": 6, "color": line.style.colour, "opacity": seen, "symbol": line.style.marker},
        # a click would fade every other marker
        selected={"marker": {"opacity": 1}}, unselected={"marker": {"opacity": seen}},
        hovertemplate=f"<b>{safe(line.name)}</b> · %{{x|%a %-d %b, %H:%M}}<br>%{{customdata[1]}} · "
        f"n %{{customdata[2]}}<br>run %{{customdata[0]}}, click opens it<extra></extra>",
    )  # fmt: skip


def _dash(line: Line) -> str:
    """Long dashes on a noisy line look like missing data: a bold one is drawn through."""
    return "solid" if line.bold else line.style.dash


def _shown(point: TrendPoint, metric: str) -> str:
    bounds = words.interval(metric, point.low, point.high)
    return words.amount(metric, point.mean) + (f" ({bounds})" if bounds else "")


def _rounded(value: float | None, metric: str) -> float | None:
    return None if value is None else round(value * axes.scale(metric), 3)


def _faded(colour: str, opacity: float) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"


def _add_end_marker(figure: go.Figure, line: Line, metric: str, window: Window) -> None:
    if not line.points:
        return
    last = line.points[-1]
    figure.add_trace(
        go.Scatter(
            x=[local(last.started_at, window.zone)], y=[_rounded(last.mean, metric)], mode="markers",
            marker={"symbol": line.style.marker, "size": 8, "color": line.style.colour}, hoverinfo="skip",
            cliponaxis=False,
        )
    )  # fmt: skip


def add_verdicts(figure: go.Figure, line: Line, metric: str, window: Window, number: int) -> None:
    """Levels between changes, and rings where a verdict turned, above all lines."""
    if line.levels:
        figure.add_trace(_levels(line, metric, window, number))
    if line.alerts:
        figure.add_trace(_rings(line.alerts, metric, window, number))


def _levels(line: Line, metric: str, window: Window, number: int) -> go.Scatter:
    ends = [[local(at, window.zone) for at in (level.first, level.last)] for level in line.levels]
    means = [_rounded(level.mean, metric) for level in line.levels]
    return go.Scatter(
        x=[x for pair in ends for x in (*pair, None)], y=[y for mean in means for y in (mean, mean, None)],
        yaxis=f"y{number}", mode="lines", line={"color": line.style.colour, "width": 3.4}, hoverinfo="skip",
    )  # fmt: skip


def _rings(alerts: Sequence[Alert], metric: str, window: Window, number: int) -> go.Scatter:
    return go.Scatter(
        x=[local(alert.at, window.zone) for alert in alerts],
        y=[_rounded(alert.value, metric) for alert in alerts],
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


# Around the lines ------------------------------------------------------------------------


def _add_end_labels(
    figure: go.Figure, lines: Sequence[Line], metric: str, axis: Axis, layout: Layout, theme: Theme
) -> None:
    shown = [line for line in lines if line.points]
    values = [line.points[-1].mean * axes.scale(metric) for line in shown]
    wanted = [(axis.high - value) / (axis.high - axis.low) * MAIN for value in values]
    for line, down in zip(shown, axes.apart(wanted, LABEL_GAP, 0, MAIN), strict=True):
        text = f"{line.style.glyph} <b>{safe(line.name)}</b> {words.bare(metric, line.points[-1].mean)}"
        beside(figure, text, theme, 1 - down / layout.plot, color=line.style.colour)


def _add_panel_label(
    figure: go.Figure, drawn: Sequence[Line], metric: str, domain: tuple[float, float], theme: Theme
) -> None:
    """A backend's, and below it that of its control."""
    line, middle = drawn[0], sum(domain) / 2
    if not line.points:
        return
    last = line.points[-1]
    bounds = f"{words.interval(metric, last.low, last.high)} · n {last.n}"
    beside(figure, bounds, theme, middle, shift=-9)
    for shift, one in zip((8, -26), drawn, strict=False):
        text = f"{one.style.glyph} <b>{safe(one.name)}</b> {words.amount(metric, one.points[-1].mean)}"
        beside(figure, text, theme, middle, color=one.style.colour, shift=shift)


def _add_floors(
    figure: go.Figure, metric: str, floors: Mapping[str, float], axis: Axis, window: Window
) -> None:
    """Floors inside the axis are lines; the others are said."""
    factor = axes.scale(metric)
    inside = {name: value for name, value in floors.items() if axis.low <= value * factor <= axis.high}
    for name, value in inside.items():
        figure.add_hline(
            y=value * factor, line={"color": window.theme.floor, "width": 1, "dash": "2px,3px"}, layer="below"
        )
        text = f"floor: {safe(name)} {words.bare(metric, value)}"
        annotate(figure, text, window.theme, x=0, y=value * factor, xanchor="left", xshift=6, yshift=8)
    if len(inside) < len(floors):
        annotate(  # a mark's line may pass below it
            figure, _outside(metric, floors, axis), window.theme, x=0, y=axis.low, xanchor="left", xshift=6,
            yshift=9, bgcolor=window.theme.background,
        )  # fmt: skip


def _outside(metric: str, floors: Mapping[str, float], axis: Axis) -> str:
    factor = axes.scale(metric)
    far = {name: value for name, value in floors.items() if not axis.low <= value * factor <= axis.high}
    below = all(value * factor < axis.low for value in far.values())
    values = ", ".join(f"{safe(name)} {words.amount(metric, value)}" for name, value in far.items())
    return f"{'↓ floors lie below' if below else 'floors lie outside'} this axis: {values}"


def _add_changes(figure: go.Figure, changes: Sequence[Tick], layout: Layout, window: Window) -> None:
    figure.layout.yaxis2 = {
        "domain": layout.domains[1],
        "range": [-1, 1],
        "visible": False,
        "fixedrange": True,
    }
    figure.add_trace(
        go.Scatter(
            x=[local(change.at, window.zone) for change in changes], y=[0] * len(changes), yaxis="y2",
            mode="markers", text=[change.text for change in changes], hovertemplate="%{text}<extra></extra>",
            marker={"symbol": "line-ns", "size": 12, "line": {"width": 1.6, "color": window.theme.text}},
            selected={"marker": {"opacity": 0.7}}, unselected={"marker": {"opacity": 0.7}}, opacity=0.7,
        )
    )  # fmt: skip
    middle = sum(layout.domains[1]) / 2
    text = "environment changes"
    annotate(figure, text, window.theme, x=1, y=middle, yref="paper", xanchor="left", xshift=10)
