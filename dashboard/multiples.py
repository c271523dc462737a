"""Small multiples as SVG text: six of them draw in the time that plotly takes for one. Pure.

Thin lines of all backends with their markers at the end; times only at the two ends, since the chart above
has the same. They answer no pointer: the page offers to draw the metric large.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dashboard import axes
from dashboard.axes import Axis
from dashboard.curves import FEW, Line, shown_values
from dashboard.figures import FONT, Tick, Window, between
from dashboard.sparkline import marker
from store import words

WIDTH, HEIGHT = 440, 138
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 7, 20
"""Pixels around the plot."""


class _Plot(NamedTuple):
    axis: Axis
    window: Window

    def x(self, times: Sequence[datetime]) -> npt.NDArray[np.float64]:
        start, end = self.window.start.timestamp(), self.window.end.timestamp()
        shares = (np.array([at.timestamp() for at in times]) - start) / ((end - start) or 1.0)
        return np.round(LEFT + shares * (WIDTH - LEFT - RIGHT), 1)

    def y(self, values: Sequence[float]) -> npt.NDArray[np.float64]:
        """Of values as drawn."""
        shares = (self.axis.high - np.array(values, dtype=float)) / (self.axis.high - self.axis.low)
        return np.round(TOP + shares * (HEIGHT - TOP - BOTTOM), 1)


def multiple(lines: Sequence[Line], metric: str, window: Window, marks: Sequence[Tick]) -> str:
    """One metric of all backends; `window` in the viewer's zone."""
    plot = _Plot(axes.axis(metric, shown_values(lines, metric)), window)
    parts = [_grid(plot), _ends(lines, window), _marks(plot, marks, lines)]
    parts += [_line(plot, line, metric) for line in sorted(lines, key=_muted_first) if line.points]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="{html.escape(FONT)}" font-size="11.5" '
        f'fill="{window.theme.muted}">{"".join(parts)}</svg>'
    )


def _muted_first(line: Line) -> bool:
    return not line.muted


def _grid(plot: _Plot) -> str:
    """Every other tick where there are many."""
    step = 2 if len(plot.axis.ticks) > 4 else 1
    ticks, labels = plot.axis.ticks[::step], plot.axis.labels[::step]
    return "".join(
        f'<path d="M{LEFT} {y} H{WIDTH - RIGHT}" stroke="{plot.window.theme.grid}"/>'
        f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{html.escape(label)}</text>'
        for y, label in zip(plot.y(ticks), labels, strict=True)
    )


def _ends(lines: Sequence[Line], window: Window) -> str:
    """When the first run was, and the last."""
    known = [line.points for line in lines if line.points]
    if not known:
        return ""
    first = min(points[0].started_at for points in known).astimezone(window.zone)
    last = max(points[-1].started_at for points in known).astimezone(window.zone)
    told, y = words.day if last - first > timedelta(days=2) else words.moment, HEIGHT - 5
    return (
        f'<text x="{LEFT}" y="{y}">{told(first, last)}</text>'
        f'<text x="{WIDTH - RIGHT}" y="{y}" text-anchor="end">{told(last, last)}</text>'
    )


def _marks(plot: _Plot, marks: Sequence[Tick], lines: Sequence[Line]) -> str:
    if not marks:
        return ""
    times = sorted({point.started_at for line in lines for point in line.points})
    path = " ".join(f"M{x} {TOP} V{HEIGHT - BOTTOM}" for x in plot.x([between(m.at, times) for m in marks]))
    return f'<path d="{path}" stroke="{plot.window.theme.mark}" stroke-dasharray="2 3"/>'


def _line(plot: _Plot, line: Line, metric: str) -> str:
    """A run that stands alone is a dot, which the round end of a line without length is."""
    times = [point.started_at for point in line.points]
    x, y = plot.x(times), plot.y([point.mean * axes.scale(metric) for point in line.points])
    corners = [f"{at} {height}" for at, height in zip(x.tolist(), y.tolist(), strict=True)]
    path = "".join(f"M{corners[piece.start]} L{' '.join(corners[piece])}" for piece in axes.segments(times))
    few = len(corners) <= FEW
    seen = [] if line.muted else range(len(corners)) if few else [len(corners) - 1]
    return (
        f'<path d="{path}" fill="none" stroke="{line.style.colour}" stroke-width="1.2" '
        f'stroke-linecap="round"{_dashed(line)}/>'
        + "".join(marker(x[place], y[place], line.style) for place in seen)
    )


def _dashed(line: Line) -> str:
    """Of plotly's "5px,2px"."""
    dash = line.style.dash
    return "" if dash == "solid" else f' stroke-dasharray="{dash.replace("px", "")}"'
