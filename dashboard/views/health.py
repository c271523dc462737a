"""Is the monitor alive? Schedules against runs, who holds what, what went wrong, what watching takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, time, timedelta
from statistics import median
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import channels, charts, configuration, data, fires, health_tables, navigation, parts, tables
from dashboard.fires import Look
from dashboard.parts import plain
from store import health_words, queries, words
from store.health_words import Pulse
from store.queries import CalibrationPoint, EventRow, FireRow, HeartbeatRow, LeaseRow, RunState
from store.records import RequestRow

NIGHTS = 30
EVENTS = 500
REQUESTS = 50
"""Of so many requests it is told how long they waited."""
A_AGAINST_A = (
    "A against A: a backend is run twice in a row, and held against itself as if it had changed. What "
    "differs is noise."
)
WAITING = ("queued", "claimed")
COMMANDS = (
    ("Run the suites, collect by the schedules and serve these pages", "memtrend up"),
    ("Collect alone, beside a dashboard that is served elsewhere", "memtrend collect"),
    ("See what is configured and what is missing", "memtrend doctor"),
)


def page() -> None:
    known = _beats() or data.now(queries.schedules) or data.ask(queries.overview)
    if not (known or configuration.problem()):
        title = health_words.health_title(Pulse(None, alive=False, scheduled=False), parts.now())
        parts.nothing_yet(title, "A collector runs what is scheduled, and says here that it lives.", COMMANDS)
        return
    st.fragment(_pulses, run_every=10)()
    _calendar()
    left, right = st.columns(2, gap="medium")
    with left:
        _counts()
        _noise()
        _environments()
    with right:
        _paces()
    _alarm()
    st.fragment(_leases, run_every=10)()
    _events()


# Pulses ---------------------------------------------------------------------------------------------------


def _pulses() -> None:
    """The title and the cards, drawn again by themselves: that a collector died shows without a reload."""
    beats, clock = _beats(), data.now(queries.clock)
    closed = _closed()
    refused, trouble = data.now(configuration.refused), data.database().trouble()
    pulse = _pulse(beats, clock, closed, bool(refused))._replace(unwritable=bool(trouble))
    parts.title(health_words.health_title(pulse, parts.now()), parts.newest(closed) or _last_run())
    if trouble:
        _how(trouble, "memtrend doctor")
    if not pulse.alive:
        _how("A collector runs what is scheduled. Start one, and leave it running:", "memtrend collect")
    if refused:
        _how(refused[0].upper() + refused[1:], "memtrend doctor")
    with st.grid(5, min_column_width=190, gap="small"):
        parts.card("Collector", *_alive(pulse, beats, clock))
        parts.card("Runs of the last 24 hours", *_whole(closed))
        parts.card("Next scheduled run", *_next(clock))
        parts.card("Queue of requests", *_queue(clock))
        parts.card("False alarms at rest", *_false(_calibrations()), meaning=A_AGAINST_A)


def _beats() -> list[HeartbeatRow]:
    """Of collectors, the newest first."""
    found = [beat for beat in data.now(queries.heartbeats) if beat.name.startswith(health_words.COLLECTOR)]
    return sorted(found, key=lambda beat: beat.at, reverse=True)


def _closed() -> list[queries.RunRow]:
    since = (parts.now() - timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    return [run for run in data.ask(queries.runs, since=since, limit=None) if run.status != "running"]


def _last_run() -> datetime | None:
    return parts.newest(row.last_whole for row in data.ask(queries.overview))


def _pulse(
    beats: Sequence[HeartbeatRow], clock: datetime, closed: Sequence[queries.RunRow], refused: bool
) -> Pulse:
    age = min((health_words.age(beat, clock) for beat in beats), default=None)
    week = parts.now() - health_words.WEEK
    missed = [fire for fire in _fires() if fire.state == "missed" and fire.scheduled_for >= week]
    return Pulse(
        age,
        alive=health_words.is_alive(age),
        scheduled=any(row.enabled for row in data.now(queries.schedules)),
        missed=[fire.scheduled_for.astimezone(parts.zone()) for fire in missed],
        broken=sum(run.status in words.PROBLEMS for run in closed),
        closed=len(closed),
        configuration=refused,
        indexes=health_tables.legs_off(_index_counts()),
    )


def _how(text: str, command: str) -> None:
    with st.container(border=True, gap="xsmall"):
        st.markdown(f":material/heart_broken: :violet[{plain(text)}]")
        st.code(command, language="bash", width=480)


def _alive(pulse: Pulse, beats: Sequence[HeartbeatRow], clock: datetime) -> tuple[str, ...]:
    if pulse.age is None:
        return "never seen", "memtrend collect starts one"
    held = [row for row in data.now(queries.leases) if row.name == health_words.COLLECTOR and row.held]
    who = f"{beats[0].host}, process {beats[0].pid}"
    return (
        f"beat {words.ago(clock - timedelta(seconds=pulse.age), clock)}",
        who if pulse.alive else f"gone: {who}",
        "" if held else "nobody leads",
    )


def _whole(closed: Sequence[queries.RunRow]) -> tuple[str, ...]:
    if not closed:
        return "none", "no run ended in that time"
    whole = sum(run.status == "whole" for run in closed)
    broken = [f"{run.backend} on {run.suite}: {run.status}" for run in closed if run.status in words.PROBLEMS]
    return f"{whole} of {len(closed)} whole", *broken[:2], *(["and more"] if len(broken) > 2 else [])


def _next(clock: datetime) -> tuple[str, ...]:
    """When it is, and how late those before it began."""
    late = health_words.punctuality(data.now(queries.schedule_calendar, clock - timedelta(days=1), clock))
    notes = [late] if late else []
    expected = data.now(queries.next_expected)
    if expected is None:
        return "none", "nothing is scheduled: [schedules] in memtrend.toml", *notes
    names = [row.name for row in data.now(queries.schedules) if row.enabled]
    which = f"{expected.schedule}, one of {words.count(len(names), 'schedule')}"
    return parts.moment(expected.at), which, *notes


def _queue(clock: datetime) -> tuple[str, ...]:
    """How many wait, and how long those before them waited."""
    asked = data.now(queries.requests, limit=REQUESTS)
    waiting = [row for row in asked if row.state in WAITING]
    took = [(row.claimed_at - row.created_at).total_seconds() for row in asked if row.claimed_at]
    notes = [f"oldest asked {words.ago(waiting[-1].created_at, clock)}"] if waiting else []
    if took:
        notes.append(f"taken {health_words.taken(median(took))}, median of {len(took)}")
    return f"{len(waiting)} waiting" if waiting else "empty", *notes, *_answered(asked)


def _answered(asked: Sequence[RequestRow]) -> list[str]:
    failed = sum(row.state == "failed" for row in asked)
    return [f"{failed} of the last {len(asked)} failed" if failed else "none failed"] if asked else []


def _calibrations() -> dict[tuple[str, str], list[CalibrationPoint]]:
    """By suite and backend."""
    pairs = [(row.suite, row.backend) for row in data.ask(queries.overview)]
    return {pair: data.ask(queries.calibrations, *pair) for pair in pairs}


def _false(found: dict[tuple[str, str], list[CalibrationPoint]]) -> tuple[str, ...]:
    told = [one.false_verdict for points in found.values() for one in points if one.false_verdict is not None]
    if not told:
        few = "told from five days of baseline on"
        return "–", few if any(found.values()) else "no calibration yet"
    return f"{sum(told):.0f} of {len(told)}", "looks at an unchanged backend; 1 in 20 is to be expected"


# Calendar -------------------------------------------------------------------------------------------------


def _fires() -> list[FireRow]:
    now = parts.now()
    first = datetime.combine(now.date() - timedelta(days=NIGHTS - 1), time(), parts.zone())
    return data.now(queries.schedule_calendar, first, now)


def _calendar() -> None:
    found = _fires()
    with parts.heading(f"Schedules against runs, last {NIGHTS} days"):
        tables.download("Fires as CSV", "fires.csv", lambda: health_tables.fires_csv(found))
    if not found:
        st.markdown(
            "No schedule was due in that time. `[schedules.NAME]` in memtrend.toml makes one; "
            "a collector follows it: `memtrend collect`."
        )
        return
    ids = sorted({run_id for fire in found for run_id in fire.run_ids})
    runs = data.ask(queries.run_states, ids)
    _strip(found, runs)
    st.caption(
        "Grey: done. Orange »: late. Violet !: does not count. Red ×: missed. Dark grey –: skipped on "
        "purpose. Blank: not scheduled. A click opens the run; of several fires of a day the worst is shown."
    )
    wrong = health_tables.fires_frame(found, runs)
    off = [fire for fire in found if fire.state not in ("done", "due")]
    if not wrong.empty:
        with parts.heading("What did not run as planned"):
            tables.download("CSV", "fires-wrong.csv", lambda: health_tables.fires_csv(off))
        health_tables.table(wrong, "fires-wrong", health_tables.fires_columns(), most=6)


def _strip(found: Sequence[FireRow], runs: Sequence[RunState]) -> None:
    rows = fires.rows(found, runs, parts.zone())
    today = parts.now().date()
    look = Look(fires.days_between(today - timedelta(days=NIGHTS - 1), today), parts.styles(), parts.theme())
    st.plotly_chart(
        fires.figure(rows, look), key="fires", theme=None, config=charts.CONFIG, on_select=_opened,
        selection_mode="points", alt=fires.alt(rows),
    )  # fmt: skip


def _opened() -> None:
    for point in st.session_state.fires.selection.points:
        if point["customdata"][0] is not None:
            navigation.go("run", run=point["customdata"][0])


# Tables ---------------------------------------------------------------------------------------------------


def _index_counts() -> list[queries.IndexCount]:
    since = (parts.now() - timedelta(days=NIGHTS)).replace(hour=0, minute=0, second=0, microsecond=0)
    return data.ask(queries.index_counts, since)


def _counts() -> None:
    rows = _index_counts()
    with parts.heading("Index counts", "Does each index hold as many memories as it should?"):
        if rows:
            tables.download("CSV", "index-counts.csv", lambda: health_tables.rows_csv(rows))
    if not rows:
        st.markdown(
            "No run counted an index yet. A suite of kind `index_health` does; what its legs should hold is "
            "recorded once: `memtrend canary record`."
        )
        return
    frame = health_tables.counts_frame(rows, parts.styles())
    health_tables.table(frame, "counts", health_tables.counts_columns(frame))


def _leases() -> None:
    """The dead-man switch, which beats for somebody else, stands with the alarm."""
    leases, clock = data.now(queries.leases), data.now(queries.clock)
    beats = [beat for beat in data.now(queries.heartbeats) if beat.name != health_words.DEAD_MAN]
    with parts.heading("Leases and heartbeats", "Who lives, and who has which backend until when."):
        if beats or leases:
            tables.download("CSV", "leases.csv", lambda: _held_csv(beats, leases))
    if not (beats or leases):
        st.markdown("Nobody has ever held this record: `memtrend collect` starts a collector.")
        return
    frame = health_tables.leases_frame(leases, beats, clock)
    health_tables.table(frame, "leases", health_tables.leases_columns())


def _held_csv(beats: Sequence[HeartbeatRow], leases: Sequence[LeaseRow]) -> pd.DataFrame:
    return health_tables.rows_csv([*beats, *leases])


def _noise() -> None:
    found = _calibrations()
    with parts.heading("Noise: cases that differ when nothing changed", A_AGAINST_A):
        if any(found.values()):
            tables.download("CSV", "calibrations.csv", lambda: _noise_csv(found))
    if not any(found.values()):
        st.markdown(
            'No backend was held against itself yet. A schedule with `kind = "calibration"` in memtrend.toml '
            "does so, once a collector follows it: `memtrend collect`."
        )
        return
    frame = health_tables.noise_frame(found, parts.styles())
    health_tables.table(frame, "noise", health_tables.noise_columns())


def _noise_csv(found: dict[tuple[str, str], list[CalibrationPoint]]) -> pd.DataFrame:
    frames = [
        health_tables.rows_csv(points).assign(suite=suite, backend=backend)
        for (suite, backend), points in found.items()
    ]
    return pd.concat(frames)


def _paces() -> None:
    rows = data.ask(queries.run_paces)
    with parts.heading("What the newest whole runs took"):
        if rows:
            tables.download("CSV", "paces.csv", lambda: health_tables.rows_csv(rows))
    if not rows:
        st.markdown("No whole run yet: `memtrend run` makes the first ones.")
        return
    frame = health_tables.paces_frame(rows, parts.styles())
    health_tables.table(frame, "paces", health_tables.paces_columns(), most=16)


def _environments() -> None:
    frame = pd.DataFrame(_environment_rows())
    with parts.heading("Environments that backends ran in"):
        if not frame.empty:
            tables.download("CSV", "environments.csv", lambda: frame)
    if frame.empty:
        st.markdown("No backend has run yet: `memtrend backend envs` lists the environments of releases.")
        return
    column = st.column_config
    health_tables.table(
        frame, "environments",
        {
            "backend": column.TextColumn("Backend", width=100),
            "packages": column.TextColumn("Its packages", width=165),
            "python": column.TextColumn("Python", width=64), "os": column.TextColumn("System", width=90),
            "since": column.TextColumn("Last run", width=104),
        },
    )  # fmt: skip


def _environment_rows() -> list[dict[str, Any]]:
    """Of the newest run of each backend."""
    newest: dict[str, queries.RunRow] = {}
    for row in data.ask(queries.overview):
        runs = [run for run in (row.latest, newest.get(row.backend)) if run]
        if runs:
            newest[row.backend] = max(runs, key=lambda run: run.started_at)
    return [_environment(backend, run) for backend, run in newest.items()]


def _environment(backend: str, run: queries.RunRow) -> dict[str, Any]:
    known = run.environment_id is not None
    content = data.ask(queries.environment, run.environment_id) if known else {}
    packages = content.get("packages", {})
    own = [f"{name} {packages.get(name, '')}".strip() for name in content.get("of_backend", {})]
    return {
        "backend": backend,
        "packages": ", ".join(own) or "memtrend's own",
        "python": content.get("python") or "–",
        "os": content.get("os") or "–",
        "since": parts.moment(run.started_at),
    }


# Alarm ----------------------------------------------------------------------------------------------------


def _alarm() -> None:
    """Whether somebody would be told, and whether what was told was right."""
    st.fragment(channels.channels, run_every=10)()
    channels.precision()
    channels.dead_man()
    channels.proofs(5)


# Events ---------------------------------------------------------------------------------------------------


def _events() -> None:
    with parts.heading("Errors and events"):
        levels = st.pills(
            "Level", list(health_tables.LEVELS), default=["error", "warning"], key="level",
            selection_mode="multi", bind="query-params", label_visibility="collapsed",
        )  # fmt: skip
        found = data.now(queries.events, EVENTS, levels=list(levels) or None)
        if found:
            tables.download("Events as CSV", "events.csv", lambda: health_tables.rows_csv(found))
    if not found:
        what = words.listed([f"{level}s" for level in levels if level != "info"]) or "events"
        st.markdown(f"No {what} in this record.")
        return
    _event_table(found)


def _event_table(found: Sequence[EventRow]) -> None:
    st.session_state["_event_runs"] = [event.run_id for event in found]
    st.dataframe(
        health_tables.events_frame(found), key="events", hide_index=True, placeholder="–",
        height="content" if len(found) <= 12 else 400, on_select=_event_opened,
        selection_mode="single-cell", column_config=health_tables.events_columns(),
    )  # fmt: skip
    newest = f"The newest {EVENTS}. " if len(found) == EVENTS else ""
    st.caption(f"{newest}A click on a row that names a run opens it.")


def _event_opened() -> None:
    place = tables.clicked("events")
    if place is not None and (run_id := st.session_state["_event_runs"][place]) is not None:
        navigation.go("run", run=run_id)


page()
