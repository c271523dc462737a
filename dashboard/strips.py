"""A row a case, a cell a run: a point of pass rate is a few pixels, three rows turning dark convince.
Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go

from dashboard import axes
from dashboard.figures import Layout, Window, annotate, axis_name, beside, safe
from dashboard.palette import Style

MOST_COUNTED = 40
"""Runs in a row whose cells have room for "2/3"."""
ROW, ALONE = 9, 22
"""Px that a row takes among others, and that it takes where it is looked at by itself."""


class Cell(NamedTuple):
    """A case in one run: `passes` of `trials`; no trials where it got no answer. `again`: what came of asking
    again in doubt, as words."""

    run_id: int
    at: datetime
    passes: int
    trials: int
    again: str = ""


class Row(NamedTuple):
    """A case's fate on a backend, oldest run first; `words` stand beside it."""

    case: str
    backend: str
    style: Style
    cells: Sequence[Cell]
    words: str = ""


def height(rows: Sequence[Row]) -> float:
    return max(ROW * len(rows), ALONE) if rows else 0


def add_strip(
    figure: go.Figure, rows: Sequence[Row], number: int, domain: tuple[float, float], window: Window
) -> None:
    figure.layout[axis_name(number)] = {
        "domain": domain, "range": [0, len(rows)], "visible": False, "fixedrange": True
    }  # fmt: skip
    top = len(rows)
    for _, group in groupby(rows, lambda row: row.backend):
        together = list(group)
        top -= len(together)
        figure.add_trace(_cells(together, top, number, window))
    figure.add_trace(_clickable(rows, number, window))


def _cells(rows: Sequence[Row], base: int, number: int, window: Window) -> go.Heatmap:
    """The rows of one backend, which share its runs: z is the share of trials that failed, NaN where there
    was no answer. One trace for all of them, since each is painted by itself."""
    times = sorted({cell.at for row in rows for cell in row.cells})
    columns = _columns(times)
    found = [{cell.at: cell for cell in row.cells} for row in reversed(rows)]
    return go.Heatmap(
        x=axes.clock([edge for _, edge in columns], window.zone), y=np.arange(base, base + len(rows) + 1),
        z=np.array([[_failed(cells.get(at) if at else None) for at, _ in columns[:-1]] for cells in found]),
        yaxis=f"y{number}", zmin=0, zmax=1, showscale=False, hoverinfo="skip", xgap=1, ygap=1,
        colorscale=[[0, window.theme.passed], [1, rows[0].style.colour]],
    )  # fmt: skip


def _columns(times: Sequence[datetime]) -> list[tuple[datetime | None, datetime]]:
    """(run, left edge) for each column, None for a gap, and the right edge of the last at the end."""
    columns: list[tuple[datetime | None, datetime]] = []
    end: datetime | None = None
    for at, (start, stop) in zip(times, axes.edges(times), strict=True):
        if end is not None and end != start:
            columns.append((None, end))
        columns.append((at, start))
        end = stop
    return [*columns, (None, end)] if end is not None else []


def _failed(cell: Cell | None) -> float:
    return 1 - cell.passes / cell.trials if cell and cell.trials else np.nan


def _clickable(rows: Sequence[Row], number: int, window: Window) -> go.Scatter:
    """Cells of a heatmap answer no click: unseen markers lie over those that failed, and over the last
    one."""
    at, y, data, hover = [], [], [], []
    for place, row in enumerate(rows):
        for index, cell in enumerate(row.cells):
            if cell.passes == cell.trials and index < len(row.cells) - 1:
                continue
            at.append(cell.at)
            y.append(len(rows) - place - 0.5)
            data.append([cell.run_id, row.case, row.backend])
            hover.append(_fate(row, cell))
    unseen = {"marker": {"opacity": 0}}
    return go.Scatter(
        x=axes.clock(at, window.zone), y=np.array(y), yaxis=f"y{number}", customdata=data, text=hover,
        mode="markers", selected=unseen, unselected=unseen,
        marker={"symbol": "square", "size": 9, "opacity": 0, "maxdisplayed": 1},
        hovertemplate="%{text} · %{x|%a %-d %b, %H:%M}<br>click opens the case<extra></extra>",
    )  # fmt: skip


def _fate(row: Row, cell: Cell) -> str:
    if not cell.trials:
        outcome = "no answer"
    elif cell.trials == 1:
        outcome = "passed" if cell.passes else "failed"
    else:
        outcome = f"passed {cell.passes} of {cell.trials} trials"
    again = f"<br>{safe(cell.again)}" if cell.again else ""
    return f"<b>{safe(row.case)}</b><br>{safe(row.backend)}: {outcome}{again}"


def add_counts(figure: go.Figure, rows: Sequence[Row], window: Window) -> None:
    """How many trials passed, in each cell of a run that asked more than once, where there is room for it."""
    if window.narrow or max((len(row.cells) for row in rows), default=0) > MOST_COUNTED:
        return
    told = [
        (cell, len(rows) - place - 0.5)
        for place, row in enumerate(rows)
        for cell in row.cells
        if cell.trials > 1
    ]
    figure.add_trace(
        go.Scatter(
            x=axes.clock([cell.at for cell, _ in told], window.zone) if told else [],
            y=[y for _, y in told], text=[f"{cell.passes}/{cell.trials}" for cell, _ in told],
            mode="text", textfont={"size": 10, "color": window.theme.text}, hoverinfo="skip",
        )
    )  # fmt: skip


def add_strip_labels(
    figure: go.Figure, rows: Sequence[Row], counts: Mapping[str, int], layout: Layout, window: Window
) -> None:
    """Beside the strip: how many cases of which backend, drawn or not, at the height of its rows."""
    low, high = layout.domains[2]
    tall = (high - low) * layout.plot
    names = [row.backend for row in rows]
    backends = list(dict.fromkeys(names))
    wanted = [(names.index(name) + names.count(name) / 2) / len(rows) * tall for name in backends]
    glyphs = {row.backend: row.style.glyph for row in rows}
    notes = []
    for name, down in zip(backends, axes.apart(wanted, 16, 0, tall + 16), strict=True):
        n = counts.get(name, names.count(name))
        text = f"<b>{n}</b> {safe(name)} {'case' if n == 1 else 'cases'} broke"
        text = f"{glyphs[name]} <b>{n}</b>" if window.narrow else text
        notes.append(beside(text, window.theme, high - down / layout.plot))
    annotate(figure, notes)
