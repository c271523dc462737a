"""The tables of Health and Settings: rows in, frames out. A cell is never markup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import parts, tables
from dashboard.palette import Style
from store import health_words, words
from store.queries import (
    CalibrationPoint,
    EventRow,
    FireRow,
    HeartbeatRow,
    IndexCount,
    LeaseRow,
    RunPace,
    RunState,
)

LEG = "A leg of its search: vector, keyword."
LEVELS = {"error": "red", "warning": "orange", "info": ""}
"""Levels of events with their colours, the worst first."""


def table(frame: pd.DataFrame, key: str, columns: Mapping[str, Any], most: int = 12) -> None:
    """A table as high as its rows, up to `most` of them; further ones are scrolled to."""
    st.dataframe(
        frame, key=key, hide_index=True, height="content" if len(frame) <= most else 31 * (most + 1) + 6,
        placeholder="–", column_config=dict(columns),
    )  # fmt: skip


def badges(label: str, colours: Mapping[str, str], width: int) -> Any:
    """A column of words with a colour where there is something to say; "" is the quiet one."""
    clear = "#00000000" if parts.theme().mode == "dark" else "#ffffff00"
    told = [colour or clear for colour in colours.values()]
    return st.column_config.MultiselectColumn(label, options=list(colours), color=told, width=width)


def moment_column(label: str) -> Any:
    return st.column_config.DatetimeColumn(label, format="D MMM, HH:mm", timezone=parts.zone().key, width=105)


def run_column() -> Any:
    return st.column_config.NumberColumn("Run", format="%d", width=60)


# Fires ----------------------------------------------------------------------------------------------------

FIRE_COLOURS = {"missed": "red", "does not count": "violet", "skipped": "", "late": "orange", "waits": "blue"}


def fires_frame(fires: Sequence[FireRow], runs: Sequence[RunState]) -> pd.DataFrame:
    """What was not done as it should have been, or waits for something, the newest first. `runs`: at least
    those of the fires."""
    known = {run.run_id: run for run in runs}
    wrong = [fire for fire in reversed(fires) if fire.state not in ("done", "due") or _waits(fire)]
    return pd.DataFrame([_fire(fire, known) for fire in wrong])


def _waits(fire: FireRow) -> bool:
    return fire.state == "due" and fire.reason is not None


def _fire(fire: FireRow, known: Mapping[int, RunState]) -> dict[str, Any]:
    return {
        "at": fire.scheduled_for.astimezone(parts.zone()),
        "schedule": fire.schedule,
        "state": ["waits" if _waits(fire) else health_words.STATES[fire.state]],
        "reason": "; ".join(_why(fire, known)),
        "runs": words.count(len(fire.run_ids), "run") if fire.run_ids else "",
    }


def _why(fire: FireRow, known: Mapping[int, RunState]) -> Iterator[str]:
    if fire.state == "late" and fire.started_at:
        yield health_words.begun(fire.started_at - fire.scheduled_for)
    broken = [run for run_id in fire.run_ids if (run := known.get(run_id)) and run.status in words.PROBLEMS]
    yield from (f"{run.backend} on {run.suite}, run {run.run_id}: {run.status}" for run in broken[:3])
    if len(broken) > 3:
        yield f"and {len(broken) - 3} more"
    if fire.reason and not broken:
        yield fire.reason


def fires_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "at": moment_column("Scheduled for"),
        "schedule": column.TextColumn("Schedule", width=110),
        "state": badges("State", FIRE_COLOURS, 120),
        "reason": column.TextColumn("Why", width=560),
        "runs": column.TextColumn("Made", width=70),
    }


def fires_csv(fires: Sequence[FireRow]) -> pd.DataFrame:
    """Every fire, with the ids of its runs."""
    return pd.DataFrame([_fire_csv(fire) for fire in fires], columns=list(FireRow._fields))


def _fire_csv(fire: FireRow) -> dict[str, Any]:
    times = {name: iso(getattr(fire, name)) for name in ("scheduled_for", "started_at")}
    return fire._asdict() | times | {"run_ids": " ".join(map(str, fire.run_ids))}


def iso(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at else None


def rows_csv(rows: Iterable[Any]) -> pd.DataFrame:
    """Named tuples as they are, times in UTC."""
    told = [
        {name: iso(value) if isinstance(value, datetime) else value for name, value in row._asdict().items()}
        for row in rows
    ]
    return pd.DataFrame(told)


# Index counts ---------------------------------------------------------------------------------------------


def counts_frame(rows: Sequence[IndexCount], styles: Mapping[str, Style]) -> pd.DataFrame:
    """A row a leg, with what it held in every run."""
    ordered = sorted(rows, key=lambda row: (row.suite, row.backend))
    found = []
    for _, group in groupby(ordered, lambda row: (row.suite, row.backend)):
        found += _index(list(group), styles)
    return pd.DataFrame(found)


def _index(rows: Sequence[IndexCount], styles: Mapping[str, Style]) -> list[dict[str, Any]]:
    newest = max(row.run_id for row in rows)
    last = [row for row in rows if row.run_id == newest]
    counted = [row.counted for row in last]
    return [
        {
            "mark": tables.marker(styles[row.backend]),
            "backend": row.backend,
            "suite": row.suite,
            "leg": row.leg,
            "count": row.counted,
            "over": [float(one.counted) for one in rows if one.leg == row.leg],
            "stands": [_stands(counted, row)],
        }
        for row in last
    ]


def legs_off(rows: Sequence[IndexCount]) -> list[str]:
    """Legs that did not hold what they should when they were last counted, in words."""
    newest = {(row.suite, row.backend): row.run_id for row in rows}  # the oldest come first
    last = [row for row in rows if newest[row.suite, row.backend] == row.run_id]
    found = []
    for row in last:
        counted = [one.counted for one in last if one.run_id == row.run_id]
        if (stands := _stands(counted, row)) not in health_words.FINE:
            found.append(health_words.leg_off(row.backend, row.leg, stands))
    return list(dict.fromkeys(found))


def _stands(counted: Sequence[int], row: IndexCount) -> str:
    return health_words.legs(counted, row.expected, row.counted)


def counts_columns(frame: pd.DataFrame) -> dict[str, Any]:
    column = st.column_config
    told = sorted({word for words_ in frame["stands"] for word in words_})
    colours = {word: "" if word in health_words.FINE else "red" for word in told}
    return {
        "mark": column.ImageColumn("", width=34),
        "backend": column.TextColumn("Backend", width=84),
        "suite": column.TextColumn("Suite", width=80),
        "leg": column.TextColumn("Index", width=74, help=LEG),
        "count": column.NumberColumn("Memories", format="%d", width=72),
        "over": column.LineChartColumn("30 days", y_min=0, width=86, color="gray"),
        "stands": badges("Stands", colours, 106),
    }


# Leases ---------------------------------------------------------------------------------------------------


def leases_frame(leases: Sequence[LeaseRow], beats: Sequence[HeartbeatRow], clock: datetime) -> pd.DataFrame:
    """Who says that it lives, and who holds what; ages and ends by the database's clock."""
    rows = [_beat(beat, clock) for beat in beats]
    held = sorted(leases, key=lambda lease: not lease.held)
    return pd.DataFrame(rows + [_lease(lease, clock) for lease in held])


def _beat(beat: HeartbeatRow, clock: datetime) -> dict[str, Any]:
    alive = health_words.is_alive(health_words.age(beat, clock))
    return {
        "what": f"heartbeat of {beat.name}",
        "state": ["alive" if alive else "silent"],
        "owner": f"{beat.host}, process {beat.pid}",
        "when": f"beat {words.ago(beat.at, clock)}, started {words.ago(beat.started_at, clock)}",
        "token": None,
    }


def _lease(lease: LeaseRow, clock: datetime) -> dict[str, Any]:
    left = (lease.expires - clock).total_seconds()
    ended = f"expired {words.ago(lease.expires, clock)}" if lease.expires.year > 1970 else "given back"
    return {
        "what": f"lease of {lease.name}",
        "state": ["held" if lease.held else "free"],
        "owner": lease.owner,
        "when": f"ends in {words.duration(max(left, 0))} unless renewed" if lease.held else ended,
        "token": lease.token,
    }


def leases_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "what": column.TextColumn("What", width=200),
        "state": badges("State", {"alive": "", "silent": "violet", "held": "blue", "free": ""}, 80),
        "owner": column.TextColumn("Owner", width="medium"),
        "when": column.TextColumn("By the database's clock", width="medium"),
        "token": column.NumberColumn("Token", format="%d", width=70, help="Higher each time it is taken."),
    }


# Pace -----------------------------------------------------------------------------------------------------


def paces_frame(rows: Sequence[RunPace], styles: Mapping[str, Style]) -> pd.DataFrame:
    return pd.DataFrame([_pace(row, styles) for row in rows])


def _pace(row: RunPace, styles: Mapping[str, Style]) -> dict[str, Any]:
    minutes = row.seconds / 60
    return {
        "mark": tables.marker(styles[row.backend]),
        "backend": row.backend,
        "suite": row.suite,
        "took": words.duration(row.seconds),
        "pace": row.scenarios / minutes if minutes else None,
        "diagnosis": row.diagnosis_ms / row.busy_ms * 100 if row.busy_ms else None,
        "run": row.run_id,
    }


def paces_columns() -> dict[str, Any]:
    column = st.column_config
    share = "Of the time for which the backend was kept at work: planting, settling, asking, diagnosing."
    return {
        "mark": column.ImageColumn("", width=34),
        "backend": column.TextColumn("Backend", width=90),
        "suite": column.TextColumn("Suite", width=90),
        "took": column.TextColumn("Took", width=80),
        "pace": column.NumberColumn("Scenarios a minute", format="%.1f", width=116),
        "diagnosis": column.NumberColumn("Diagnosis", format="%.0f %%", width=80, help=share),
        "run": run_column(),
    }


# A against A ----------------------------------------------------------------------------------------------


def noise_frame(
    found: Mapping[tuple[str, str], Sequence[CalibrationPoint]], styles: Mapping[str, Style]
) -> pd.DataFrame:
    """A row a suite and backend that was ever held against itself."""
    return pd.DataFrame([_noise(*pair, points, styles) for pair, points in found.items() if points])


def _noise(
    suite: str, backend: str, points: Sequence[CalibrationPoint], styles: Mapping[str, Style]
) -> dict[str, Any]:
    told = [point.false_verdict for point in points if point.false_verdict is not None]
    last = points[-1]
    return {
        "mark": tables.marker(styles[backend]),
        "backend": backend,
        "suite": suite,
        "flips": f"{last.noise_floor * last.n:.0f} of {last.n}",
        "over": [point.noise_floor * 100 for point in points],
        "false": f"{sum(told):.0f} of {len(told)}" if told else "",
        "last": last.started_at.astimezone(parts.zone()),
    }


def noise_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "mark": column.ImageColumn("", width=34),
        "backend": column.TextColumn("Backend", width=84),
        "suite": column.TextColumn("Suite", width=72),
        "flips": column.TextColumn("Differ", width=74, help="Cases whose two answers came out otherwise."),
        "over": column.LineChartColumn("So far", y_min=0, width=74, color="gray"),
        "false": column.TextColumn("False alarms", width=94),
        "last": moment_column("Last"),
    }


# Events ---------------------------------------------------------------------------------------------------


def events_frame(events: Sequence[EventRow]) -> pd.DataFrame:
    return pd.DataFrame([_event(event) for event in events])


def _event(event: EventRow) -> dict[str, Any]:
    return {
        "at": event.at.astimezone(parts.zone()),
        "level": [event.level],
        "source": event.source,
        "message": event.message,
        "run": event.run_id,
    }


def events_columns() -> dict[str, Any]:
    column = st.column_config
    return {
        "at": moment_column("When"),
        "level": badges("Level", LEVELS, 80),
        "source": column.TextColumn("From", width=130),
        "message": column.TextColumn("What", width=640),
        "run": run_column(),
    }
