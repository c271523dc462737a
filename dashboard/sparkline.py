"""A card's chart as SVG text: ten of them draw in half the time that plotly takes. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from dashboard.axes import segments
from dashboard.curves import Level
from dashboard.palette import Style, Theme

WIDTH, HEIGHT, END = 216.0, 44.0, 8.0
"""Pixels; `END` is kept free for the marker at the right."""
SHORTEST = timedelta(days=1)
"""A chart looks back so far at the least: the runs of a first hour stand at its end."""


class Dot(NamedTuple):
    """A value with its interval at a time, as shares from 0 to 1."""

    at: datetime
    mean: float
    low: float | None
    high: float | None


def span(widths: Sequence[float]) -> float:
    """One height for all charts of a suite, in points: 1.8 times the usual interval, even, at least 10."""
    usual = sorted(widths)[len(widths) // 2] * 100 if widths else 0.0
    return max(10.0, math.ceil(usual * 1.8 / 2) * 2.0)


class Frame(NamedTuple):
    """What the charts of a suite share: the range of time, and a height in points of a share. `width` in px;
    `mark`: when something happened that a line is to show."""

    start: datetime
    end: datetime
    points: float
    width: float = WIDTH
    mark: datetime | None = None


def sparkline(
    dots: Sequence[Dot], style: Style, theme: Theme, frame: Frame, levels: Sequence[Level] = ()
) -> str:
    """The dots within the frame, around their own middle, with the levels between changes."""
    if not dots:
        return _svg("", frame.width)
    place = _Place(
        min(frame.start, frame.end - SHORTEST), frame.end, _middle(dots), frame.points / 100, frame.width
    )
    runs = [dots[piece] for piece in segments([dot.at for dot in dots])]
    bands = "".join(_band(run, place, style, theme) for run in runs)
    lines = "".join(_line(run, place, style) for run in runs)
    lines += "".join(_level(level, place, style) for level in levels)
    mark = _mark(place.x(frame.mark), theme) if frame.mark else ""
    end = marker(place.x(dots[-1].at), place.y(dots[-1].mean), style)
    return _svg(bands + lines + mark + end, frame.width)


def _mark(x: float, theme: Theme) -> str:
    line = f'stroke="{theme.worse}" stroke-width="1.4" stroke-dasharray="2,2"'
    return f'<line x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}" {line}/>'


def _level(level: Level, place: _Place, style: Style) -> str:
    y = place.y(level.mean)
    ends = f'x1="{place.x(level.first)}" x2="{place.x(level.last)}" y1="{y}" y2="{y}"'
    return f'<line {ends} stroke="{style.colour}" stroke-width="3"/>'


class _Place(NamedTuple):
    start: datetime
    end: datetime
    middle: float
    height: float
    width: float

    def x(self, at: datetime) -> float:
        total = (self.end - self.start).total_seconds()
        share = min(max((at - self.start).total_seconds() / total, 0.0), 1.0)
        return round(2 + share * (self.width - END - 2), 1)

    def y(self, value: float) -> float:
        share = (self.middle - value) / self.height + 0.5
        return round(min(max(share, 0.0), 1.0) * HEIGHT, 1)


def _middle(dots: Sequence[Dot]) -> float:
    means = sorted(dot.mean for dot in dots)
    return means[len(means) // 2]


def _band(dots: Sequence[Dot], place: _Place, style: Style, theme: Theme) -> str:
    known = [dot for dot in dots if dot.low is not None and dot.high is not None]
    if not known:
        return ""
    above = [(place.x(dot.at), place.y(dot.high)) for dot in known if dot.high is not None]
    below = [(place.x(dot.at), place.y(dot.low)) for dot in known if dot.low is not None]
    if above[-1][0] - above[0][0] < 6:  # a single night has no width: give it that of the marker
        above, below = _widened(above[-1], place.width), _widened(below[-1], place.width)
    corners = " ".join(f"{x},{y}" for x, y in [*above, *reversed(below)])
    return f'<polygon points="{corners}" fill="{style.colour}" fill-opacity="{theme.band * 1.3:.2f}"/>'


def _widened(corner: tuple[float, float], width: float) -> list[tuple[float, float]]:
    x, y = corner
    return [(max(x - 5, 0), y), (min(x + 5, width), y)]


def _line(dots: Sequence[Dot], place: _Place, style: Style) -> str:
    corners = " ".join(f"{place.x(dot.at)},{place.y(dot.mean)}" for dot in dots)
    return f'<polyline points="{corners}" fill="none" stroke="{style.colour}" stroke-width="1.4"/>'


def mark(style: Style) -> str:
    """The backend's marker alone, for a cell of a table, with room around it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-9 -9 18 18" width="34" height="34">'
        f"{marker(0, 0, style, 3.6)}</svg>"
    )


def marker(x: float, y: float, style: Style, r: float = 3.4) -> str:
    """A backend's marker around a point."""
    if style.marker == "circle":
        return f'<circle cx="{x}" cy="{y}" r="{r}" fill="{style.colour}"/>'
    if style.marker == "circle-open":
        return _ring_marker(x, y, style, r)
    if style.marker in ("cross", "x", "line-ew"):
        return _strokes(x, y, style, r)
    corners = " ".join(f"{x + dx * r:.1f},{y + dy * r:.1f}" for dx, dy in _OUTLINES[style.marker])
    return f'<polygon points="{corners}" fill="{style.colour}"/>'


def _ring_marker(x: float, y: float, style: Style, r: float) -> str:
    stroke = f'stroke="{style.colour}" stroke-width="{r * 0.4:.1f}"'
    return f'<circle cx="{x}" cy="{y}" r="{r}" {stroke} fill="none"/>'


def _strokes(x: float, y: float, style: Style, r: float) -> str:
    ways = {"cross": ((1, 0), (0, 1)), "x": ((0.8, 0.8), (0.8, -0.8)), "line-ew": ((1, 0),)}[style.marker]
    path = " ".join(
        f"M{x - dx * r:.1f},{y - dy * r:.1f} L{x + dx * r:.1f},{y + dy * r:.1f}" for dx, dy in ways
    )
    return f'<path d="{path}" stroke="{style.colour}" stroke-width="{r * 0.65:.1f}" fill="none"/>'


def _ring(corners: int, turn: float = 0.0, inner: float = 1.0) -> list[tuple[float, float]]:
    steps = corners if inner == 1.0 else corners * 2
    radii = [1.15 if inner == 1.0 or step % 2 == 0 else 1.25 * inner for step in range(steps)]
    angles = [math.tau * step / steps - math.tau / 4 + turn for step in range(steps)]
    return [(r * math.cos(angle), r * math.sin(angle)) for r, angle in zip(radii, angles, strict=True)]


_OUTLINES = {
    "diamond": _ring(4),
    "square": [(-0.95, -0.95), (0.95, -0.95), (0.95, 0.95), (-0.95, 0.95)],
    "triangle-up": [(0, -1.1), (1.1, 0.9), (-1.1, 0.9)],
    "triangle-down": [(0, 1.1), (1.1, -0.9), (-1.1, -0.9)],
    "star": _ring(5, inner=0.45),
    "pentagon": _ring(5),
    "hexagon": _ring(6),
}


def _svg(content: str, width: float) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {HEIGHT:g}" '
        f'width="{width:g}" height="{HEIGHT:g}">{content}</svg>'
    )
