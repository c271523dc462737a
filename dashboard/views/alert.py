"""Is this one real, how bad is it, and what brought it? The evidence, what changed, what became of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import streamlit as st

from dashboard import (
    addresses,
    alert_tables,
    axes,
    channels,
    charts,
    configuration,
    data,
    findings,
    health_tables,
    incident_actions,
    incident_chart,
    incidents,
    navigation,
    parts,
    tables,
)
from dashboard.curves import Line
from dashboard.figures import Tick, Window
from dashboard.parts import plain
from dashboard.strips import Cell, Row
from store import alert_titles, alert_words, queries, verdict_words, words
from store.alert_kinds import KINDS
from store.alert_life import Incident
from store.alert_signals import Signal
from store.metrics import METRICS
from store.queries import AlertRow, RunRow, TrendPoint

BEFORE = timedelta(days=30)
"""So far before it began the chart looks back."""
UNOWNED = "default"
"""The owner of what nobody was named for."""
MOST_ROWS = 10
"""Lost cases that are drawn; the table has all."""


def page() -> None:
    asked = addresses.number(st.query_params.get("alert", ""))
    row = None if asked is None else data.now(queries.alert, asked)
    if row is None:
        _unknown()
        return
    signal = alert_words.lead(row.incident)
    run = data.ask(queries.run, signal.run_id) if signal.run_id is not None else None
    _facts(row)
    parts.title(alert_titles.alert_title(row.incident), _newest(signal))
    _standing(row)
    left, right = st.columns([1.6, 1], gap="medium")
    with left:
        _cards(row.incident, signal)
        _chart(row, signal)
        _cases(row.incident, signal, run)
        _signals(row.incident)
    with right:
        _suspects(row, signal)
        _timeline(row)
        _deliveries(row)


def _newest(signal: Signal) -> datetime | None:
    """When the newest run of its series ended; of any, where it is about none."""
    rows = data.ask(queries.overview)
    own = [one for one in rows if (one.suite, one.backend) == (signal.key.suite, signal.key.backend)]
    return parts.newest(one.latest for one in own or rows)


def _unknown() -> None:
    parts.title("There is no such alert", None)
    st.markdown("The address names none, or one that this record does not hold.")
    st.page_link("views/alerts.py", label="All alerts", icon=":material/arrow_back:")


# Above ----------------------------------------------------------------------------------------------------


def _facts(row: AlertRow) -> None:
    it = row.incident
    over = f"over since {parts.moment(row.closed_at)}" if row.closed_at else ""
    facts = [
        incidents.number(row.id),
        plain(it.kind.words.lower()),
        incidents.where(row),
        f"seen first {parts.moment(it.opened_at)}",
        over or f"for {alert_titles.lasted(it.opened_at, parts.now())}",
        *([f"owner {plain(it.owner)}"] if it.owner != UNOWNED else []),
        *(["a drill, raised on purpose"] if it.drill else []),
    ]
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        st.page_link("views/alerts.py", label="Alerts", icon=":material/arrow_back:")
        st.markdown(f":small[:gray[{' · '.join(filter(None, facts))}]]", width="content")


def _standing(row: AlertRow) -> None:
    told, ways = st.columns([1, 1.9], vertical_alignment="center")
    with told.container(horizontal=True, vertical_alignment="center", gap="small"):
        incidents.badge(row.incident)
        judged = f"judged {row.incident.judged}" if row.incident.judged else ""
        facts = [*_state(row.incident), incidents.holder(row.incident), judged]
        st.markdown(f":gray[{' · '.join(filter(None, facts))}]", width="content")
    with ways:
        incident_actions.buttons(row)


def _state(it: Incident) -> list[str]:
    """Where the badge does not say it."""
    state = alert_words.STATES[it.state]
    return [] if state == alert_words.badge(it) else [state.lower()]


# What is wrong --------------------------------------------------------------------------------------------


def _cards(it: Incident, signal: Signal) -> None:
    """Two questions, two cards; what is no matter of a comparison has one."""
    judged = "difference" in signal.content
    places = st.columns(2 if judged else 1, gap="small")
    with places[0].container(border=True, height="stretch", gap="small"):
        st.markdown("Did it change?" if judged else "What is wrong?")
        st.markdown(f"**{plain(alert_words.evidence(it))}**")
        if judged:
            _sure(signal)
        _notes([verdict_words.blind_spot(signal.content) if judged else KINDS[signal.key.kind].meaning])
    if judged:
        with places[1].container(border=True, height="stretch", gap="small"):
            way = "better" if signal.key.kind == "improvement" else "worse"
            st.markdown(f"How much {way} for questions like these?")
            findings.difference(signal.content)
            _notes([_counts(it, signal), _tags(it)])


def _notes(notes: Sequence[str]) -> None:
    for note in filter(None, notes):
        st.markdown(f":small[:gray[{plain(note)}]]")


def _sure(signal: Signal) -> None:
    """How sure it is in a sentence, with the numbers behind it."""
    if sure := verdict_words.how_sure(signal.content):
        st.markdown(f":small[:gray[{plain(sure)}]]", help=_asked(signal) or None)


def _asked(signal: Signal) -> str:
    """What each look found by chance alone."""
    looks = signal.content.get("looks") or ()
    side = "p_better" if signal.key.kind == "improvement" else "p_worse"
    found = [f"{look[side]:.2g}" for look in looks if look[side] is not None]
    return f"p = {', then '.join(found)} on fresh trials" if len(found) > 1 else "".join(
        f"p = {one}" for one in found
    )  # fmt: skip


def _counts(it: Incident, signal: Signal) -> str:
    lost, gained = (len(signal.content.get(side) or ()) for side in ("lost", "gained"))
    how = words.listed([f"{n} {failure}" for failure, n in it.context.get("failures", {}).items()])
    return f"{lost} lost, {gained} gained" + (f": {how}" if how else "")


def _tags(it: Incident) -> str:
    """Where it hit most."""
    told = [f"{tag} {n} of {of}" for tag, n, of in it.context.get("tags", ())]
    return f"hit most: {words.listed(told)}" if told else ""


# Over time ------------------------------------------------------------------------------------------------


def _chart(row: AlertRow, signal: Signal) -> None:
    metric, style = incidents.metric_of(signal), parts.styles().get(signal.key.backend)
    points = incidents.series(signal, metric, row.incident.opened_at - BEFORE) if metric in METRICS else []
    if len(points) < 2 or style is None:
        return
    began = _began(signal, points)
    window = _window(points)
    found = incident_chart.levels(points, began, _ended(row, signal, points))
    line = Line(signal.key.backend, style, points, True, True, found)
    rows = _rows(row.incident, signal, points[0])
    figure = incident_chart.figure(line, metric, rows, window, _marks(row.incident, points, signal))
    st.plotly_chart(
        figure, key="series", on_select=_opened, selection_mode="points", theme=None, config=charts.CONFIG,
        alt=incident_chart.alt(line, metric, rows),
    )  # fmt: skip
    squares = ", a square for its case" if rows else ""
    drawn = f" {MOST_ROWS} of {len(row.incident.cases)} lost cases are drawn." if _are_more(row) else ""
    what = (
        f"{words.label(metric).capitalize()} of whole runs with its 95 % interval, newest n {points[-1].n}."
    )
    tables.beneath(
        f"{what}{drawn} Click a point for its run{squares}.", f"alert-{row.id}.csv",
        lambda: tables.lines_frame([line], metric),
    )  # fmt: skip


def _ended(row: AlertRow, signal: Signal, points: Sequence[TrendPoint]) -> datetime | None:
    """When the last bad run of an alert that is over was; None while it lasts."""
    bad = (point.started_at for point in points if point.run_id == signal.run_id)
    return next(bad, None) if row.closed_at else None


def _began(signal: Signal, points: Sequence[TrendPoint]) -> datetime | None:
    """When the first run of the new state was, where it is drawn: a leak is seen weeks after it began."""
    leak = signal.content.get("leak") if signal.key.kind == "leak" else None
    first = leak["first_bad"] if leak else signal.first_run_id
    return next((point.started_at for point in points if point.run_id == first), None)


def _are_more(row: AlertRow) -> bool:
    return len(row.incident.cases) > MOST_ROWS


def _window(points: Sequence[TrendPoint]) -> Window:
    half = axes.usual_step([point.started_at for point in points]) / 2
    first, last = points[0].started_at - half, points[-1].started_at + half
    return Window(first, last, parts.zone(), parts.theme(), *navigation.room())


def _rows(it: Incident, signal: Signal, first: TrendPoint) -> list[Row]:
    style = parts.styles()[signal.key.backend]
    found = []
    for name in it.cases[:MOST_ROWS]:
        history = [
            Cell(
                one.run_id,
                one.started_at,
                one.passes,
                0 if one.status in ("error", "skipped") else one.trials,
            )
            for one in data.ask(queries.case_history, signal.key.suite, name)
            if one.backend == signal.key.backend and one.started_at >= first.started_at
        ]
        if history:
            found.append(Row(name, signal.key.backend, style, history))
    return found


def _marks(it: Incident, points: Sequence[TrendPoint], signal: Signal) -> list[Tick]:
    """The first suspect where the first bad run stands."""
    began = _began(signal, points)
    first = next((one["sentence"] for one in it.suspects if not one["moved_before"]), "")
    half = axes.usual_step([point.started_at for point in points]) / 2
    return [Tick(began - half, first or "began")] if began else []


def _opened() -> None:
    """A point opens its run, a square its case."""
    for point in st.session_state.series.selection.points:
        run_id, *case = point["customdata"]
        if len(case) == 2 and isinstance(case[1], str):
            navigation.go("case", case=case[0], run=run_id)
        else:
            navigation.go("run", run=run_id)


# Cases and signals ----------------------------------------------------------------------------------------


def _cases(it: Incident, signal: Signal, run: RunRow | None) -> None:
    if not it.cases or run is None:
        return
    found = {row.case: row for row in data.ask(queries.run_cases, run.id)}
    with parts.heading(f"Lost: {words.count(len(it.cases), 'case')}" if signal.key.kind != "improvement"
                       else f"Gained: {words.count(len(it.cases), 'case')}"):  # fmt: skip
        tables.download("CSV", "cases.csv", lambda: alert_tables.cases_frame(it.cases, found))
    st.session_state["_cases"], st.session_state["_run"] = list(it.cases), run.id
    st.dataframe(
        alert_tables.cases_frame(it.cases, found), key="lost", hide_index=True, on_select=_case_opened,
        placeholder="–", selection_mode="single-cell", column_config=alert_tables.cases_columns(),
        height="content" if len(it.cases) <= 12 else 400,
    )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        st.caption(f"As they stood in run {run.id}. A click on a row opens the case.", width="content")
        tables.opener("Or open one by name", it.cases, "open-case", _open)


def _case_opened() -> None:
    place = tables.clicked("lost")
    if place is not None:
        _open(place)


def _open(place: int) -> None:
    navigation.go("case", case=st.session_state["_cases"][place], run=st.session_state["_run"])


def _signals(it: Incident) -> None:
    if len(it.signals) < 2:
        return
    frame = alert_tables.signals_frame(it.signals)
    with parts.heading("All that is wrong in it"):
        tables.download("CSV", "signals.csv", lambda: frame)
    health_tables.table(frame, "signals", alert_tables.signals_columns())


# Beside ---------------------------------------------------------------------------------------------------


def _suspects(row: AlertRow, signal: Signal) -> None:
    it = row.incident
    if signal.run_id is None:
        _ways(row, signal)
        return
    frame = alert_tables.suspects_frame(it.suspects)
    with parts.heading("Suspects", "What changed between the last good and the first bad run."):
        if it.suspects:
            tables.download("CSV", "suspects.csv", lambda: frame)
    if it.suspects:
        health_tables.table(frame, "suspects", alert_tables.suspects_columns())
        if any(one["moved_before"] for one in it.suspects):
            st.caption("Unlikely: it had changed before, without effect.")
    elif it.last_good_run_id is None:
        st.markdown("There is no good run before it to compare with.")
    else:
        st.markdown("Nothing that is recorded changed between the last good and the first bad run.")
    told = verdict_words.control(signal.content) if "difference" in signal.content else ""
    if told:
        st.markdown(f":material/science: {plain(told)}")
    _ways(row, signal)


def _ways(row: AlertRow, signal: Signal) -> None:
    """Onward to the runs before and after, and to the trend."""
    runs: list[tuple[str, int | None]] = [
        ("Last good run", row.incident.last_good_run_id),
        ("First bad run", row.first_bad_run_id),
        ("Newest bad run", signal.run_id if signal.run_id != row.first_bad_run_id else None),
    ]
    with st.container(horizontal=True, gap="small"):
        for label, run_id in runs:
            if run_id is not None:
                parts.onward("run", f"{label} ({run_id})", run=str(run_id))
        if sides := alert_words.compared(row.incident, signal):
            parts.onward("compare", "Compare them", **sides)
        if signal.key.suite and not row.incident.drill:
            parts.onward("trends", "Trend", suite=signal.key.suite, backends=signal.key.backend)
        if signal.key.kind in ("missed", "proof"):
            parts.onward("health", "Health")


def _timeline(row: AlertRow) -> None:
    steps = data.now(queries.alert_steps, row.id)
    with parts.heading("Timeline"):
        if steps:
            tables.download("CSV", "timeline.csv", lambda: health_tables.rows_csv(steps))
    frame = alert_tables.steps_frame(row, steps)
    health_tables.table(frame, "timeline", alert_tables.steps_columns())


def _deliveries(row: AlertRow) -> None:
    rows = data.now(queries.deliveries, alert_id=row.id)
    with parts.heading("Deliveries"):
        if rows:
            tables.download("CSV", "deliveries.csv", lambda: alert_tables.deliveries_csv(rows))
    if rows:
        channels.deliveries(rows, "deliveries", alerts=False)
        return
    if row.incident.told_at is None:
        st.markdown("It is a suspicion: only channels with `suspicions = true` would have heard of it.")
    elif not configuration.settings().channels:
        st.markdown(
            "Nobody was told: no channel is configured. `[channels.NAME]` in memtrend.toml makes one."
        )
    else:
        st.markdown(
            "No channel asked for it, by the `owners`, `tags`, `kinds` and `severity` of `[channels.NAME]`."
        )


page()
