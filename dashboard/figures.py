"""What every figure has: a frame, rows that share a time axis, words beside them, dated lines. Pure.

Heights and margins in px. Names come from outside, and plotly reads tags in every text: `safe` takes them
out.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from dashboard.axes import Axis, local
from dashboard.palette import Theme

FONT = "Source Sans, Source Sans Pro, sans-serif"
LEFT, RIGHT, TOP, BOTTOM, GAP = 44, 178, 40, 26, 18
NARROW_RIGHT = 56


class Tick(NamedTuple):
    """Something dated: a mark, or a change of the environment."""

    at: datetime
    text: str
    symbol: str = ""


class Window(NamedTuple):
    """What a chart looks out on: the range of time, the viewer's zone, the page's theme. `narrow`: a screen
    on which names have no room beside the chart, so that markers and numbers stand for them;
    `tight`: one with less room than usual."""

    start: datetime
    end: datetime
    zone: ZoneInfo
    theme: Theme
    narrow: bool = False
    tight: bool = False


def safe(text: str) -> str:
    """Text in which plotly finds no tag."""
    return html.escape(text, quote=False)


def bare(markup: str) -> str:
    """The text of lines that were made safe and put together with `<b>` and `<br>`."""
    return html.unescape(re.sub("</?b>", "", markup.replace("<br>", "; ")))


class Layout(NamedTuple):
    """`height` of the whole figure and the share of the plot that each row takes, topmost first."""

    height: float
    domains: list[tuple[float, float]]
    plot: float


def stacked(heights: Sequence[float]) -> Layout:
    """Rows of the given heights with a gap between them; a height of 0 takes no room."""
    plot = sum(heights) + GAP * (sum(height > 0 for height in heights) - 1)
    domains, top = [], plot
    for height in heights:
        domains.append(((top - height) / plot, top / plot))
        top -= height + GAP if height else 0
    return Layout(plot + TOP + BOTTOM, [(max(low, 0.0), min(high, 1.0)) for low, high in domains], plot)


def frame(theme: Theme, height: float) -> dict[str, Any]:
    return {
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 12, "color": theme.muted},
        "showlegend": False,
        "hovermode": "closest",
        "dragmode": False,
        "hoverlabel": {
            "bgcolor": theme.background,
            "bordercolor": theme.border,
            "font": {"color": theme.text, "family": FONT, "size": 12},
            "align": "left",
        },
    }


def new_figure(
    window: Window,
    height: float,
    right: int = RIGHT,
    *,
    left: int = LEFT,
    top: int = TOP,
    bottom: int = BOTTOM,
) -> go.Figure:
    return go.Figure(
        layout={
            **frame(window.theme, height),
            "margin": {"l": left, "r": NARROW_RIGHT if window.narrow else right, "t": top, "b": bottom},
            "xaxis": {
                "type": "date",
                "range": [local(window.start, window.zone), local(window.end, window.zone)],
                "fixedrange": True,
                "showgrid": False,
                "zeroline": False,
                "ticks": "",
                "tickformat": _date_format(window),
                "nticks": 3 if window.narrow else 8,
                "tickangle": 0,
                "anchor": "free",
                "position": 0,
            },
        }
    )


def _date_format(window: Window) -> str:
    days = (window.end - window.start) / timedelta(days=1)
    if days <= 1.5:
        return "%H:%M:%S" if days < 0.01 else "%H:%M"
    return "%-d %b" if days <= 300 else "%b %Y"


def axis_name(number: int) -> str:
    return "yaxis" if number == 1 else f"yaxis{number}"


def add_axis(figure: go.Figure, number: int, domain: tuple[float, float], axis: Axis, theme: Theme) -> None:
    figure.layout[axis_name(number)] = {
        "domain": domain,
        "range": [axis.low, axis.high],
        "tickvals": axis.ticks,
        "ticktext": axis.labels,
        "gridcolor": theme.grid,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
    }


def annotate(figure: go.Figure, notes: Iterable[go.layout.Annotation]) -> None:
    """All at once, since plotly reads every one anew with each that is added."""
    figure.layout.annotations += tuple(notes)


def note(text: str, theme: Theme, *, color: str = "", **place: Any) -> go.layout.Annotation:
    return go.layout.Annotation(
        **{"text": text, "showarrow": False, "xref": "paper", "yanchor": "middle", "align": "left", **place},
        font={"color": color or theme.muted, "size": 12},
    )


def beside(text: str, theme: Theme, y: float, *, color: str = "", shift: float = 0) -> go.layout.Annotation:
    """Words at the right of the plot, at a height given as a share of it."""
    return note(text, theme, color=color, x=1, y=y, yref="paper", xanchor="left", xshift=10, yshift=shift)


_MARK_WIDTH = 6.2
"""Px that a character of a mark's label takes, about."""
_PLOT_WIDTH, _TIGHT_WIDTH, _NARROW_WIDTH = 1050, 400, 250
"""Px between the margins on a screen of usual width, and on smaller ones: enough to tell which labels would
collide."""


def add_marks(figure: go.Figure, marks: Sequence[Tick], times: Sequence[datetime], window: Window) -> None:
    """Dated lines through all rows; labels in two lanes, and none where both are taken: its line still
    answers the pointer."""
    lanes = [0.0, 0.0]
    seconds = (window.end - window.start).total_seconds() or 1.0
    width = _NARROW_WIDTH if window.narrow else _TIGHT_WIDTH if window.tight else _PLOT_WIDTH
    shapes, labels = [], []
    for mark in sorted(marks):
        at = between(mark.at, times)
        shapes.append(_mark_line(at, window))
        text = f"{mark.symbol} {mark.text}"[:28]
        x = (at - window.start).total_seconds() / seconds * width
        lane = next((lane for lane, taken in enumerate(lanes) if taken <= x), None)
        if lane is not None:
            lanes[lane] = x + len(text) * _MARK_WIDTH + 8
            place = {"x": local(at, window.zone), "xref": "x", "y": 1, "yref": "paper", "xanchor": "left"}
            hover = {"yshift": 9 + 15 * lane, "hovertext": safe(mark.text)}
            labels.append(note(safe(text), window.theme, **place, **hover))
    figure.layout.shapes += tuple(shapes)
    annotate(figure, labels)


def _mark_line(at: datetime, window: Window) -> go.layout.Shape:
    x = local(at, window.zone)
    return go.layout.Shape(
        type="line", x0=x, x1=x, y0=0, y1=1, yref="paper", line=_mark_style(window), layer="above"
    )


def _mark_style(window: Window) -> dict[str, Any]:
    return {"color": window.theme.mark, "width": 1, "dash": "2px,3px"}


def between(at: datetime, times: Sequence[datetime]) -> datetime:
    """Between the last run that did not see it and the first that did, at most half a day before the latter.
    `times`: of the runs, sorted."""
    place = bisect_left(times, at)
    if place == len(times):
        return at
    later = times[place]
    earlier = times[place - 1] if place else later - timedelta(days=1)
    return later - min((later - earlier) / 2, timedelta(hours=12))
