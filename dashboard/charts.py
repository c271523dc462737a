"""Rows in, plotly figures out: no streamlit, no SQL. Heights and margins in px.

Names stand at the line's end, not in a legend. `customdata` carries what a click opens: plotly counts points
anew with every redraw. Names come from outside, and plotly reads tags in every text: `safe` takes them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import plotly.graph_objects as go

from dashboard import axes, strips
from dashboard.axes import Axis, local
from dashboard.curves import FEW, Line, add_ends, add_line, add_verdicts, shown_values
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
    new_figure,
    note,
    safe,
    stacked,
)
from dashboard.palette import Theme
from dashboard.strips import Row
from store import words

MAIN, PANEL, TICKS = 330, 104, 22
LABEL_GAP = 19
MOST_BANDS = 4
"""Bands of more backends over many runs hide each other."""

CONFIG = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False, "showAxisDragHandles": False}
"""For `st.plotly_chart`: a chart to read and to click, not to drag about."""


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
    for line in sorted(lines, key=lambda line: (not line.muted, line.bold)):
        add_line(figure, line, metric, window, 1)
    add_ends(figure, lines, metric, window)
    annotate(figure, [_what(lines, metric, axis, window.theme)])
    for line in lines:
        add_verdicts(figure, line, metric, window, 1)
    _add_floors(figure, metric, extras.floors, axis, window)
    _add_end_labels(figure, lines, metric, axis, layout, window)
    if extras.changes:
        _add_changes(figure, extras.changes, layout, window)
    if extras.broken:
        strips.add_strip(figure, extras.broken, 3, layout.domains[2], window)
        strips.add_strip_labels(figure, extras.broken, extras.counts, layout, window)
    add_marks(figure, extras.marks, _times(lines), window)
    return figure


def fitted(window: Window, times: Sequence[datetime]) -> Window:
    """A record younger than the range fills the chart: from a little before its first run to the last."""
    first, last = min(times), max(times)
    margin = max((last - first) * 0.012, timedelta(minutes=1))
    return window._replace(start=max(window.start, first - margin), end=last + margin)


def blank(window: Window) -> go.Figure:
    """The frame of what is to come."""
    figure = new_figure(window, stacked([MAIN]).height)
    add_axis(figure, 1, (0.0, 1.0), Axis(0.0, 1.0, (), ()), window.theme)
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
        _add_panel_label(figure, drawn, metric, layout.domains[number - 1], window)
    add_marks(figure, marks, _times(own), window)
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
    left = 26 if window.narrow else 140
    figure = new_figure(window, layout.plot + top + BOTTOM, left=left, top=top)
    grey = [row._replace(style=row.style._replace(colour=window.theme.failed)) for row in rows]
    strips.add_strip(figure, grey, 1, layout.domains[0], window)
    for place, row in enumerate(rows):
        y = len(rows) - place - 0.5
        name = row.style.glyph if window.narrow else f"{row.style.glyph} {safe(row.backend)}"
        before = note(name, window.theme, x=0, y=y, xanchor="right", xshift=-8, color=row.style.colour)
        said = "" if window.narrow else safe(row.words)
        annotate(figure, [before, note(said, window.theme, x=1, y=y, xanchor="left", xshift=10)])
    strips.add_counts(figure, rows, window)
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


# Lines ------------------------------------------------------------------------


def _banded(lines: Sequence[Line]) -> list[Line]:
    """Which lines show their intervals: all where they can be told apart, else the bold ones."""
    clear = banded(lines)
    return [
        line._replace(band=line.bold or (clear and not line.control and not line.muted)) for line in lines
    ]


def banded(lines: Sequence[Line]) -> bool:
    """Whether the intervals of all lines can be told apart."""
    own = [line for line in lines if not line.control]
    return len(own) <= MOST_BANDS or all(len(line.points) <= FEW for line in own)


def _times(lines: Sequence[Line]) -> list[datetime]:
    return sorted({point.started_at for line in lines for point in line.points})


# Around the lines ------------------------------------------------------------------------


def _what(lines: Sequence[Line], metric: str, axis: Axis, theme: Theme) -> go.layout.Annotation:
    """What the axis measures, in which unit, over how many cases."""
    text = ", ".join(filter(None, [words.label(metric), unit(metric), ns(lines)]))
    place = {"x": 0, "y": axis.high, "xanchor": "left", "xshift": 6, "yshift": -9}
    return note(text, theme, bgcolor=theme.background, **place)


def unit(metric: str) -> str:
    """ "ms", "tokens", "USD", "points" of a drift; "" of shares, whose ticks say it, and of counts."""
    told = words.unit(metric).strip()
    return "" if told == "%" else told


def ns(lines: Sequence[Line]) -> str:
    """What the newest points rest on: a metric may apply to more cases on one backend than on another."""
    found = [line.points[-1].n for line in lines if line.points]
    low, high = min(found, default=0), max(found, default=0)
    return f"n {low}" if low == high else f"n {low} to {high}"


def _add_end_labels(
    figure: go.Figure, lines: Sequence[Line], metric: str, axis: Axis, layout: Layout, window: Window
) -> None:
    """Names, or on a narrow screen their markers alone."""
    shown = [line for line in lines if line.points and not line.muted]
    values = [line.points[-1].mean * axes.scale(metric) for line in shown]
    wanted = [(axis.high - value) / (axis.high - axis.low) * MAIN for value in values]
    notes = []
    for line, down in zip(shown, axes.apart(wanted, LABEL_GAP, 0, MAIN), strict=True):
        named = "" if window.narrow else f" <b>{safe(line.name)}</b>"
        text = f"{line.style.glyph}{named} {words.bare(metric, line.points[-1].mean)}"
        notes.append(beside(text, window.theme, 1 - down / layout.plot, color=line.style.colour))
    grey = sum(line.muted for line in lines)
    if grey and not window.narrow:
        notes.append(beside(f"{grey} more in grey: point at one", window.theme, 1, shift=18))
    annotate(figure, notes)


def _add_panel_label(
    figure: go.Figure, drawn: Sequence[Line], metric: str, domain: tuple[float, float], window: Window
) -> None:
    """A backend's, and below it that of its control; on a narrow screen the marker and the value."""
    line, middle, theme = drawn[0], sum(domain) / 2, window.theme
    if not line.points:
        return
    last = line.points[-1]
    if window.narrow:
        text = f"{line.style.glyph} {words.bare(metric, last.mean)}"
        annotate(figure, [beside(text, theme, middle, color=line.style.colour)])
        return
    bounds = f"{words.interval(metric, last.low, last.high)} · n {last.n}"
    notes = [beside(bounds, theme, middle, shift=-9), beside(line.note, theme, middle, shift=-26)]
    for shift, one in zip((8, -43), drawn, strict=False):
        text = f"{one.style.glyph} <b>{safe(one.name)}</b> {words.amount(metric, one.points[-1].mean)}"
        notes.append(beside(text, theme, middle, color=one.style.colour, shift=shift))
    annotate(figure, notes)


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
        place = {"x": 0, "y": value * factor, "xanchor": "left", "xshift": 6, "yshift": 8}
        annotate(figure, [note(text, window.theme, **place)])
    if len(inside) < len(floors):
        said = note(  # a mark's line may pass below it
            _outside(metric, floors, axis), window.theme, x=0.25 if inside else 0, y=axis.low,
            xanchor="left", xshift=6, yshift=9, bgcolor=window.theme.background,
        )  # fmt: skip
        annotate(figure, [said])


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
    text = "changes" if window.narrow else "environment changes"
    annotate(figure, [beside(text, window.theme, middle)])
