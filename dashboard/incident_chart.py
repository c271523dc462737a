"""The series that an alert is about: before and since, what came with it, and beneath, on the same time axis,
the cases that broke. Pure. Heights and margins in px."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import plotly.graph_objects as go

from dashboard import axes, curves, strips
from dashboard.curves import Level, Line
from dashboard.figures import (
    LEFT,
    Tick,
    Window,
    add_axis,
    add_marks,
    annotate,
    new_figure,
    note,
    safe,
    stacked,
)
from dashboard.strips import Row
from store import words
from store.queries import TrendPoint

MAIN, NAMES, RIGHT = 210, 150, 50
LONGEST = 24
"""Characters of a case's name beside its row."""


def levels(
    points: Sequence[TrendPoint], began: datetime | None, ended: datetime | None = None
) -> list[Level]:
    """The mean before the alert began and the mean since, up to the last bad run of one that is over, each
    over its runs; none where one has no run."""
    if began is None:
        return []
    since = [p for p in points if p.started_at >= began and (ended is None or p.started_at <= ended)]
    sides = [[p for p in points if p.started_at < began], since]
    if not all(sides):
        return []
    return [
        Level(side[0].started_at, side[-1].started_at, sum(point.mean for point in side) / len(side))
        for side in sides
    ]


def figure(line: Line, metric: str, rows: Sequence[Row], window: Window, marks: Sequence[Tick]) -> go.Figure:
    """`rows`: the lost cases, each named at the left."""
    layout = stacked([MAIN, strips.ALONE * len(rows)])
    figure = new_figure(window, layout.height, RIGHT, left=NAMES if rows else LEFT)
    if window.tight and not window.narrow:  # it shares the width with what stands beside it
        figure.update_xaxes(nticks=4)
    axis = axes.axis(metric, curves.shown_values([line], metric))
    add_axis(figure, 1, layout.domains[0], axis, window.theme)
    curves.add_line(figure, line, metric, window, 1)
    curves.add_verdicts(figure, line, metric, window, 1)
    _name_levels(figure, line, metric, window)
    if rows:
        strips.add_strip(figure, rows, 2, layout.domains[1], window)
        _name_rows(figure, rows, window)
    add_marks(figure, marks, [point.started_at for point in line.points], window)
    return figure


def _name_levels(figure: go.Figure, line: Line, metric: str, window: Window) -> None:
    notes = []
    for level, when in zip(line.levels, ("before", "since"), strict=False):
        middle = axes.local(level.first + (level.last - level.first) / 2, window.zone)
        under = [p.mean for p in line.points if level.first <= p.started_at <= level.last]
        text = f"<b>{words.amount(metric, level.mean)}</b> {when}"
        notes.append(note(
            text, window.theme, color=line.style.colour, x=middle, xref="x", xanchor="center",
            y=max(under) * axes.scale(metric), yref="y", yshift=13,
        ))  # fmt: skip
    annotate(figure, notes)


def _name_rows(figure: go.Figure, rows: Sequence[Row], window: Window) -> None:
    notes = []
    for place, row in enumerate(rows):
        name = row.case if len(row.case) <= LONGEST else f"{row.case[: LONGEST - 1]}…"
        y = len(rows) - place - 0.5
        notes.append(note(safe(name), window.theme, x=0, xanchor="right", xshift=-8, y=y, yref="y2"))
    annotate(figure, notes)


def alt(line: Line, metric: str, rows: Sequence[Row]) -> str:
    """For those who do not see it."""
    told = [f"{words.amount(metric, level.mean)} {when}"
            for level, when in zip(line.levels, ("before", "since"), strict=False)]  # fmt: skip
    lost = f"; below, {words.count(len(rows), 'lost case')} over the same time" if rows else ""
    return f"{words.label(metric)} of {line.name}: {', '.join(told) or 'over time'}{lost}"
