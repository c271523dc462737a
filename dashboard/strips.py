"""A row a case, a cell a run: a point of pass rate is a few pixels, three rows turning dark convince.
Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import plotly.graph_objects as go

from dashboard import axes
from dashboard.axes import local
from dashboard.figures import Layout, Window, annotate, axis_name, safe
from dashboard.palette import Style, Theme
from store import words

ROW, ALONE = 9, 22
"""Px that a row takes among others, and that it takes where it is looked at by itself."""


class Cell(NamedTuple):
    """A case in one run: `passes` of `trials`; no trials where it got no answer."""

    run_id: int
    at: datetime
    passes: int
    trials: int


class Row(NamedTuple):
    """A case's fate on a backend, oldest run first; `words` stand beside it."""

    case: str
    backend: str
    style: Style
    cells: Sequence[Cell]
    words: str = ""


BEFORE = 10
"""Runs before a fall that say whether the case had been passing."""


def broke(outcomes: Sequence[bool]) -> bool:
    """Whether a case that had passed fails now (oldest run first): it passed in most of the ten runs before
    the failures at the end. One that passed by chance among failures did not break, nor did one that passed
    once or twice when a longer record begins; one that turns to and fro broke when it has failed three times
    on end."""
    passes = [place for place, passed in enumerate(outcomes) if passed]
    if not passes or outcomes[-1]:
        return False
    before = outcomes[max(passes[-1] + 1 - BEFORE, 0) : passes[-1] + 1]
    failures = len(outcomes) - passes[-1] - 1
    had_passed = 2 * sum(before) > len(before) and (len(before) > 2 or len(outcomes) <= 5)
    return had_passed and (failures >= 3 or not words.is_flaky(outcomes))


def height(rows: Sequence[Row]) -> float:
    return max(ROW * len(rows), ALONE) if rows else 0


def add_strip(
    figure: go.Figure, rows: Sequence[Row], number: int, domain: tuple[float, float], window: Window
) -> None:
    figure.layout[axis_name(number)] = {
        "domain": domain, "range": [0, len(rows)], "visible": False, "fixedrange": True
    }  # fmt: skip
    for place, row in enumerate(rows):
        figure.add_trace(_cells(row, len(rows) - place - 1, number, window))
    figure.add_trace(_clickable(rows, number, window))


def _cells(row: Row, base: int, number: int, window: Window) -> go.Heatmap:
    """The runs of one case: z is the share of trials that failed, None where there was no answer."""
    xs: list[str] = []
    zs: list[float | None] = []
    for cell, (start, end) in zip(row.cells, axes.edges([cell.at for cell in row.cells]), strict=True):
        begin = local(start, window.zone)
        if xs and xs[-1] != begin:  # a gap is a cell without a colour
            xs.append(begin)
            zs.append(None)
        xs = xs or [begin]
        xs.append(local(end, window.zone))
        zs.append(1 - cell.passes / cell.trials if cell.trials else None)
    return go.Heatmap(
        x=xs, y=[base, base + 1], z=[zs], yaxis=f"y{number}", zmin=0, zmax=1, showscale=False,
        hoverinfo="skip", xgap=1, ygap=1, colorscale=[[0, window.theme.passed], [1, row.style.colour]],
    )  # fmt: skip


def _clickable(rows: Sequence[Row], number: int, window: Window) -> go.Scatter:
    """Cells of a heatmap answer no click: unseen markers lie over those that failed, and over the last
    one."""
    x, y, data, hover = [], [], [], []
    for place, row in enumerate(rows):
        for index, cell in enumerate(row.cells):
            if cell.passes == cell.trials and index < len(row.cells) - 1:
                continue
            x.append(local(cell.at, window.zone))
            y.append(len(rows) - place - 0.5)
            data.append([cell.run_id, row.case, row.backend])
            hover.append(_fate(row, cell))
    unseen = {"marker": {"opacity": 0}}
    return go.Scatter(
        x=x, y=y, yaxis=f"y{number}", customdata=data, text=hover, mode="markers", selected=unseen,
        unselected=unseen, marker={"symbol": "square", "size": 9, "opacity": 0},
        hovertemplate="%{text} · %{x|%a %-d %b, %H:%M}<br>click opens the case<extra></extra>",
    )  # fmt: skip


def _fate(row: Row, cell: Cell) -> str:
    if not cell.trials:
        outcome = "no answer"
    elif cell.trials == 1:
        outcome = "passed" if cell.passes else "failed"
    else:
        outcome = f"passed {cell.passes} of {cell.trials} trials"
    return f"<b>{safe(row.case)}</b><br>{safe(row.backend)}: {outcome}"


def add_strip_labels(figure: go.Figure, rows: Sequence[Row], layout: Layout, theme: Theme) -> None:
    """Beside the strip: how many cases of which backend, at the height of its rows."""
    low, high = layout.domains[2]
    names = list(dict.fromkeys(row.backend for row in rows))
    groups = {name: [place for place, row in enumerate(rows) if row.backend == name] for name in names}
    tall = (high - low) * layout.plot
    wanted = [(places[0] + len(places) / 2) / len(rows) * tall for places in groups.values()]
    for (name, places), down in zip(groups.items(), axes.apart(wanted, 16, 0, tall + 16), strict=True):
        noun = "case" if len(places) == 1 else "cases"
        text = f"<b>{len(places)}</b> {safe(name)} {noun} broke"
        place = {"x": 1, "y": high - down / layout.plot, "yref": "paper", "xanchor": "left", "xshift": 10}
        annotate(figure, text, theme, **place)
