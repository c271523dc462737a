"""What happened in a week."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

import sqlalchemy as sa

from store import models as m
from store.alert_life import STANDING_STATES
from store.database import Database
from store.dialects.sql import plain_rows
from store.queries.alerts import AlertRow, alerts
from store.queries.operation import FireRow, schedule_calendar
from store.queries.policy import CaseStanding, case_standings
from store.queries.runs import RunRow, runs
from store.queries.said import VerdictRow, verdicts
from store.queries.series import TrendPoint, environment_changes, marks, trend
from store.queries.suites import backends, suites
from store.week import ORIGINS, SeriesWeek, Spent, Upgrade, Week, merged

WEEK = timedelta(days=7)
BACK = timedelta(days=45)
"""How far charts look back, and how old the run before the week may be."""
FLOORS = ("nothing", "everything")


def week(db: Database, until: datetime) -> Week:
    """The 7 days up to `until` (aware). States of alerts are those of now."""
    since = until - WEEK
    rows = [row for row in runs(db, since=since - BACK, limit=None) if row.started_at <= until]
    series = _Series(db, since, rows)
    ran = {one.suite for one in series.told}
    told = [one for one in alerts(db, limit=None) if one.incident.told_at and one.incident.told_at <= until]
    return Week(
        since,
        until,
        tuple(series.told),
        tuple(one for one in told if _within(one.incident.told_at, since, until)),
        tuple(one for one in told if _within(one.closed_at, since, until)),
        tuple(one for one in told if _stood(one, until)),
        tuple(one for one in marks(db, since=since) if one.at <= until),
        _upgrades(db, ran, series.own, since, until),
        tuple(_missed(db, since, until)),
        tuple(_spent(db, [row for row in rows if row.started_at > since])),
        tuple(_ending(db, ran, until)),
        tuple(one for one in suites(db) if one.name in ran),
    )


def _within(at: datetime | None, since: datetime, until: datetime) -> bool:
    return at is not None and since < at <= until


def _stood(alert: AlertRow, until: datetime) -> bool:
    if alert.closed_at is None:
        return alert.incident.state in STANDING_STATES
    return alert.closed_at > until


def _missed(db: Database, since: datetime, until: datetime) -> Iterable[FireRow]:
    calendar = schedule_calendar(db, since, until)
    return (fire for fire in calendar if fire.state in ("missed", "invalid", "late"))


def _upgrades(
    db: Database, suites_: Collection[str], of: Collection[str], since: datetime, until: datetime
) -> tuple[Upgrade, ...]:
    found = [
        Upgrade(one.backend, one.run_id, one.at, tuple(one.changes))
        for suite in sorted(suites_)
        for one in environment_changes(db, suite, list(of), since)
        if one.at <= until
    ]
    return merged(found)


def _ending(db: Database, suites_: Collection[str], until: datetime) -> Iterable[tuple[str, CaseStanding]]:
    for suite in sorted(suites_):
        for case in case_standings(db, suite):
            if case.standing == "quarantine" and case.expires and case.expires <= until + WEEK:
                yield suite, case


class _Of(NamedTuple):
    """A series' runs, oldest first, whatever they were for."""

    suite: str
    backend: str
    rows: list[RunRow]


class _Series:
    """The series that ran in the week, in order of the suites and backends. `own`: backends that are no
    controls."""

    def __init__(self, db: Database, since: datetime, rows: Iterable[RunRow]) -> None:
        self.since = since
        known = backends(db)
        self.own = [one.name for one in known if not one.control_of]
        self._floors = {one.name for one in known if one.type in FLOORS}
        found = [_Of(*key, of) for key, of in _grouped(rows, self.own).items() if of[-1].started_at > since]
        self._said = verdicts(db, [row.id for one in found for row in one.rows if not row.subset])
        self._points = _points(db, {one.suite for one in found}, self.own, since)
        self.told = [told for one in found if (told := self._told(one))]

    def _told(self, of: _Of) -> SeriesWeek | None:
        """None where only parts of the suite were run."""
        nights = [row for row in of.rows if not row.subset and row.status != "running"]
        fresh = [row for row in nights if row.started_at > self.since]
        if not fresh:
            return None
        whole = [row for row in fresh if row.status == "whole"]
        before = [row for row in nights if row.started_at <= self.since and row.status == "whole"]
        return SeriesWeek(
            of.suite,
            of.backend,
            of.rows[-1].origin,
            of.backend in self._floors,
            len(whole),
            tuple(row for row in fresh if row.status != "whole"),
            fresh[-1],
            before[-1].metrics.get("pass") if before else None,
            whole[-1].metrics.get("pass") if whole else None,
            next(iter(self._said_of(before[-1:])), None),
            self._said_of(whole),
            tuple(
                one for one in self._points[of.suite, of.backend] if one.started_at <= fresh[-1].started_at
            ),
        )

    def _said_of(self, rows: Iterable[RunRow]) -> tuple[VerdictRow, ...]:
        return tuple(self._said[row.id] for row in rows if row.id in self._said)


def _grouped(rows: Iterable[RunRow], own: Collection[str]) -> dict[tuple[str, str], list[RunRow]]:
    """By suite and backend, in the order in which both appeared, runs oldest first."""
    places = {name: place for place, name in enumerate(own)}
    found: dict[tuple[str, str], list[RunRow]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.started_at, row.id)):
        if row.backend in places:
            found[row.suite, row.backend].append(row)
    return dict(sorted(found.items(), key=lambda item: (item[0][0], places[item[0][1]])))


def _points(
    db: Database, suites_: Iterable[str], own: list[str], since: datetime
) -> Mapping[tuple[str, str], list[TrendPoint]]:
    found: dict[tuple[str, str], list[TrendPoint]] = defaultdict(list)
    for suite in suites_:
        for point in trend(db, suite, "pass", backends=own, since=since - BACK):
            found[suite, point.backend].append(point)
    return found


def _spent(db: Database, rows: Sequence[RunRow]) -> Iterable[Spent]:
    spent = m.spent.c
    query = sa.select(spent.run_id, sa.func.sum(spent.money)).where(
        spent.run_id.in_([row.id for row in rows])
    )
    with db.read() as connection:
        money: dict[int, float] = dict(plain_rows(connection, query.group_by(spent.run_id)))
    for origin in ORIGINS:
        own = [row for row in rows if row.origin == origin]
        seconds = sum((row.finished_at - row.started_at).total_seconds() for row in own if row.finished_at)
        if own:
            yield Spent(origin, len(own), seconds, sum(money.get(row.id, 0.0) for row in own))
