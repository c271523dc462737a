"""Schedules against runs: a row a suite and backend, a cell a day. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import plotly.graph_objects as go

from dashboard.figures import annotate, frame, note, safe
from dashboard.palette import Style, Theme
from store import words
from store.health_words import STATES
from store.queries import FireRow, RunState

ROW, HEAD, GAP = 14, 22, 6
"""Px that a row takes, the line that names its schedule and suite, and what lies between two of those."""
LEFT, RIGHT, TOP, BOTTOM = 104, 66, 2, 24
GLYPHS = {"late": "»", "skipped": "–", "invalid": "!", "missed": "×"}
"""What a cell bears beside its colour."""
COUNTED = ("done", "late", "invalid", "missed")
"""States of fires that should have brought a run."""
_OF_RUN = {"whole": "done", "running": "due"}


class Cell(NamedTuple):
    """What became of the fires of one day: the worst `state` of them, the run that is in it, if any, and
    words for whoever points at it. `due` fires should have run, `done` of them did."""

    state: str
    run_id: int | None
    told: str
    due: int
    done: int


class Row(NamedTuple):
    """A suite on a backend, as a schedule runs it; `suite` and `backend` are "" where a schedule has never
    run anything. `cells` by day; a day without one had no fire of it."""

    schedule: str
    suite: str
    backend: str
    cells: Mapping[date, Cell]


class _Fate(NamedTuple):
    """What became of one fire for one suite and backend."""

    day: date
    state: str
    run_id: int | None
    told: str


# Rows -----------------------------------------------------------------------------------------------------


def rows(fires: Sequence[FireRow], runs: Sequence[RunState], zone: ZoneInfo) -> list[Row]:
    """`fires` oldest first, `runs` at least those that they name."""
    known = {run.run_id: run for run in runs}
    found = []
    for schedule, group in groupby(sorted(fires, key=lambda fire: fire.schedule), lambda fire: fire.schedule):
        own = list(group)
        pairs = list(dict.fromkeys(pair for fire in own for pair in _by_pair(fire, known))) or [("", "")]
        found += [Row(schedule, *pair, _cells(_fates(own, pair, known, zone))) for pair in pairs]
    return sorted(found, key=lambda row: row[:2])  # backends stay in the order of the runs


def _by_pair(fire: FireRow, known: Mapping[int, RunState]) -> dict[tuple[str, str], RunState]:
    """The last run of each suite and backend."""
    runs = [known[run_id] for run_id in fire.run_ids if run_id in known]
    return {(run.suite, run.backend): run for run in runs}


def _fates(
    fires: Sequence[FireRow], pair: tuple[str, str], known: Mapping[int, RunState], zone: ZoneInfo
) -> Iterator[_Fate]:
    """A pair is scheduled from its first run on; of a fire that ran others alone, it had no part."""
    runs = [_by_pair(fire, known).get(pair) for fire in fires]
    first = next((place for place, run in enumerate(runs) if run), 0)
    for fire, run in list(zip(fires, runs, strict=True))[first:]:
        if run or not fire.run_ids:
            yield _fate(fire, run, zone)


def _fate(fire: FireRow, run: RunState | None, zone: ZoneInfo) -> _Fate:
    state = _OF_RUN.get(run.status, "invalid") if run else fire.state
    if (state, fire.state) == ("done", "late"):
        state = "late"
    at = fire.scheduled_for.astimezone(zone)
    said = [f"{at:%a} {at.day} {at:%b}, {at:%H:%M}", STATES[state]]
    if run:
        said += [f"run {run.run_id}", *([run.status] if state == "invalid" else [])]
    elif fire.reason:
        said.append(fire.reason)
    return _Fate(at.date(), state, run.run_id if run else None, " · ".join(said))


def _cells(fates: Iterator[_Fate]) -> dict[date, Cell]:
    return {day: _cell(list(group)) for day, group in groupby(fates, lambda fate: fate.day)}


def _cell(fates: Sequence[_Fate]) -> Cell:
    """The worst of a day, the last one of several alike."""
    order = list(STATES)
    worst = max(reversed(fates), key=lambda fate: order.index(fate.state))
    due = [fate for fate in fates if fate.state in COUNTED]
    done = sum(fate.state in ("done", "late") for fate in due)
    many = f" · {done} of {len(due)} ran that day" if len(fates) > 1 else ""
    return Cell(worst.state, worst.run_id, worst.told + many, len(due), done)


def alt(rows: Sequence[Row]) -> str:
    """The figure in words."""
    due, done = (sum(getattr(cell, name) for row in rows for cell in row.cells.values()) for name in _COUNTS)
    names = words.listed(list(dict.fromkeys(row.schedule for row in rows)))
    return f"Schedules against runs: {done} of {words.count(due, 'scheduled run')} of {names} counted"


_COUNTS = ("due", "done")


# The figure -----------------------------------------------------------------------------------------------


class Look(NamedTuple):
    """`days` from the first to the last that is drawn."""

    days: Sequence[date]
    styles: Mapping[str, Style]
    theme: Theme


def days_between(first: date, last: date) -> list[date]:
    return [first + timedelta(days=day) for day in range((last - first).days + 1)]


def figure(rows: Sequence[Row], look: Look) -> go.Figure:
    """The rows of a schedule and suite together under its name; right of each how many of its fires ran."""
    groups = [list(group) for _, group in groupby(rows, lambda row: row[:2])]
    height = sum(HEAD + ROW * len(group) for group in groups) + GAP * (len(groups) - 1)
    drawn = _empty(height, look)
    top = float(height)
    notes = []
    for group in groups:
        notes.append(_head(group[0], top, look.theme))
        top -= HEAD
        drawn.add_trace(_heat(group, top, look))
        drawn.add_trace(_clickable(group, top, look))
        for place, row in enumerate(group):
            notes += _labels(row, top - ROW * (place + 0.5), look)
        top -= ROW * len(group) + GAP
    annotate(drawn, notes)
    return drawn


def _empty(height: float, look: Look) -> go.Figure:
    shown = range(len(look.days) - 1, -1, -7)
    labels = [f"{look.days[place].day} {look.days[place]:%b}" for place in shown]
    drawn = go.Figure()
    drawn.update_layout(
        **frame(look.theme, height + TOP + BOTTOM), margin={"l": LEFT, "r": RIGHT, "t": TOP, "b": BOTTOM},
        xaxis={
            "range": [0, len(look.days)], "tickvals": [place + 0.5 for place in shown], "ticktext": labels,
            "showgrid": False, "zeroline": False, "fixedrange": True, "ticks": "", "tickangle": 0,
        },
        yaxis={"range": [0, height], "visible": False, "fixedrange": True},
    )  # fmt: skip
    return drawn


def _head(row: Row, top: float, theme: Theme) -> go.layout.Annotation:
    name = f"<b>{safe(row.schedule)}</b>" + (f" · {safe(row.suite)}" if row.suite else "")
    return note(
        name, theme, color=theme.text, x=0, xanchor="left", xshift=-LEFT + 4, y=top - HEAD / 2, yref="y"
    )


def _heat(group: Sequence[Row], top: float, look: Look) -> go.Heatmap:
    order = list(STATES)
    found = [[row.cells.get(day) for day in look.days] for row in reversed(group)]
    return go.Heatmap(
        x=list(range(len(look.days) + 1)),
        y=[top - ROW * place for place in range(len(group), -1, -1)],
        z=[[order.index(cell.state) if cell else None for cell in cells] for cells in found],
        text=[[GLYPHS.get(cell.state, "") if cell else "" for cell in cells] for cells in found],
        texttemplate="%{text}", textfont={"color": look.theme.background}, xgap=2, ygap=2,
        zmin=-0.5, zmax=len(order) - 0.5, colorscale=_scale(look.theme), showscale=False, hoverinfo="skip",
    )  # fmt: skip


def _scale(theme: Theme) -> list[list[Any]]:
    """Each state its colour, without one between two."""
    colours = colours_of(theme)
    steps = len(STATES)
    return [[(place + end) / steps, colours[name]] for place, name in enumerate(STATES) for end in (0, 1)]


def colours_of(theme: Theme) -> dict[str, str]:
    """State -> colour: grey is the good one."""
    return {
        "due": theme.passed, "done": theme.border, "late": theme.suspected, "skipped": theme.mark,
        "invalid": theme.problem, "missed": theme.worse,
    }  # fmt: skip


def _clickable(group: Sequence[Row], top: float, look: Look) -> go.Scatter:
    """Cells of a heatmap answer no click: unseen markers lie over them."""
    places = {day: place + 0.5 for place, day in enumerate(look.days)}
    cells = [
        (places[day], top - ROW * (line + 0.5), row, cell)
        for line, row in enumerate(group)
        for day, cell in row.cells.items()
        if day in places
    ]
    unseen = {"marker": {"opacity": 0}}
    return go.Scatter(
        x=[x for x, *_ in cells], y=[y for _, y, *_ in cells], mode="markers", selected=unseen,
        unselected=unseen,
        marker={"symbol": "square", "size": ROW - 2, "opacity": 0, "maxdisplayed": 1},
        customdata=[[cell.run_id] for *_, cell in cells], text=[_hover(row, cell) for *_, row, cell in cells],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def _hover(row: Row, cell: Cell) -> str:
    who = " · ".join(filter(None, [row.schedule, row.suite, row.backend]))
    opens = "<br>click opens the run" if cell.run_id is not None else ""
    return f"<b>{safe(who)}</b><br>{safe(cell.told)}{opens}"


def _labels(row: Row, y: float, look: Look) -> list[go.layout.Annotation]:
    due, done = (sum(getattr(cell, name) for cell in row.cells.values()) for name in _COUNTS)
    notes = [note(f"{done} of {due}", look.theme, x=1, xanchor="left", xshift=8, y=y, yref="y")]
    if row.backend:
        style = look.styles[row.backend]
        place = {"x": 0, "xanchor": "right", "xshift": -6, "y": y, "yref": "y"}
        text = f"{safe(_short(row.backend))} {style.glyph}"
        notes.append(note(text, look.theme, color=style.colour, **place))
    return notes


def _short(name: str, longest: int = 14) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"
