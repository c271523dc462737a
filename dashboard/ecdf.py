"""How fast each side answered: the share of answers that had come by a time. Pure. Sizes in px."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import plotly.graph_objects as go

from dashboard import axes, palette
from dashboard.figures import annotate, frame, note, safe
from dashboard.palette import Pair, Style, Theme
from store import words
from store.comparisons import Comparison

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 246, 44, 16, 24, 26
MARKED = {0.5: "median", 0.95: "p95"}
LONGEST = 20
"""Characters of a name."""


class _Side(NamedTuple):
    """`times`: sorted, in ms."""

    name: str
    style: Style
    times: Sequence[float]

    def at(self, share: float) -> float:
        return float(np.quantile(self.times, share))


def figure(c: Comparison, theme: Theme, styles: Pair | None = None) -> go.Figure:
    """On a logarithmic axis, since recall times differ by factors. Without a common case: its frame."""
    drawn = _sides(c, styles or palette.pair(theme))
    chart = go.Figure(layout=_layout(theme, [time for side in drawn for time in side.times]))
    for side in drawn:
        chart.add_traces([_line(side), _points(side)])
    annotate(chart, [_names(drawn, theme)])
    return chart


def _sides(c: Comparison, styles: Pair) -> list[_Side]:
    """The faster one first."""
    told = zip((c.a.name, c.b.name), styles, c.latencies, strict=True)
    found = [
        _Side(name, style, sorted(max(time, 0.001) for time in times)) for name, style, times in told if times
    ]
    return sorted(found, key=lambda side: side.at(0.5))


def _layout(theme: Theme, times: Sequence[float]) -> dict[str, Any]:
    low, high = (min(times), max(times)) if times else (1.0, 10.0)
    ticks = _ticks(low, high)
    axis = {"fixedrange": True, "zeroline": False, "ticks": "", "gridcolor": theme.grid}
    return {
        **frame(theme, HEIGHT),
        "margin": {"l": LEFT, "r": RIGHT, "t": TOP, "b": BOTTOM},
        "xaxis": {
            **axis, "type": "log", "tickvals": ticks, "ticktext": [_time(tick) for tick in ticks],
            "range": [math.log10(low) - 0.04, math.log10(high) + 0.04], "showgrid": False,
        },
        "yaxis": {
            **axis, "range": [-0.02, 1.03], "tickvals": [0, 0.5, 0.95], "ticktext": ["0 %", "50 %", "95 %"],
        },
    }  # fmt: skip


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times the powers of ten; over many powers these alone, within less than one even steps."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    steps = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    found = [tick for tick in ticks if low <= tick <= high]
    if len(found) > 1 or low == high:
        return found
    step = axes.nice_step((high - low) / 3)
    return [place * step for place in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _time(ms: float) -> str:
    return f"{ms / 1000:g} s" if ms >= 1000 else f"{ms:g} ms"


def _line(side: _Side) -> go.Scatter:
    n = len(side.times)
    return go.Scatter(
        x=[side.times[0], *side.times], y=[0.0, *((place + 1) / n for place in range(n))], mode="lines",
        line={"color": side.style.colour, "width": 2, "shape": "hv"}, hoverinfo="skip",
    )  # fmt: skip


def _points(side: _Side) -> go.Scatter:
    name, n = safe(side.name), words.count(len(side.times), "case")
    told = [f"<b>{name}</b> · {word} {words.amount('recall_ms', side.at(share))}<br>of {n}"
            for share, word in MARKED.items()]  # fmt: skip
    return go.Scatter(
        x=[side.at(share) for share in MARKED], y=list(MARKED), mode="markers", text=told,
        hovertemplate="%{text}<extra></extra>", cliponaxis=False,
        marker={"color": side.style.colour, "symbol": side.style.marker, "size": 9},
    )  # fmt: skip


def _names(drawn: Sequence[_Side], theme: Theme) -> go.layout.Annotation:
    """Above the plot, where neither line hides them on any screen."""
    told = [
        f'<span style="color:{side.style.colour}">{side.style.glyph} <b>{safe(_cut(side.name))}</b></span>'
        for side in drawn
    ]
    return note("   ".join(told), theme, x=0, xanchor="left", y=1, yref="paper", yshift=11)


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def alt(c: Comparison) -> str:
    """For those who do not see it."""
    told = [
        f"{side.name}: median {words.amount('recall_ms', side.at(0.5))}, "
        f"p95 {words.amount('recall_ms', side.at(0.95))}, n {len(side.times)}"
        for side in _sides(c, palette.pair(palette.THEMES["light"]))
    ]
    return "Recall times. " + ("; ".join(told) or "None was taken on both sides.")
