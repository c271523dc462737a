"""Whether it is alive: requests, heartbeats, schedules, events, leases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from store import models as m
from store.cron import GRACE
from store.database import NOW, Database
from store.records import RequestRow


class HeartbeatRow(NamedTuple):
    name: str
    at: datetime
    pid: int
    host: str
    started_at: datetime


class ScheduleRow(NamedTuple):
    name: str
    last_fire: datetime | None
    next_fire: datetime | None
    enabled: bool


class ExpectedRow(NamedTuple):
    schedule: str
    at: datetime


class DueRow(NamedTuple):
    """`due` is later than `scheduled_for` by the schedule's jitter. `begun`: by a collector that did not
    finish it; `run_ids` are those that it had noted."""

    schedule: str
    scheduled_for: datetime
    due: datetime
    begun: bool = False
    run_ids: Sequence[int] = ()


FireState = Literal["done", "late", "missed", "invalid", "skipped", "due"]


class FireRow(NamedTuple):
    """A fire of a schedule. done: every run is whole; late: so, but begun more than `store.cron.GRACE` after
    it was due; missed: nothing was run, though it should have been; invalid: a run is not whole, or the
    collector died over it; skipped: not run on purpose; due: to come, waiting, or at work since
    `started_at`. `due`: when it should begin, jitter and all. `reason` says why it is not done, for a
    person."""

    schedule: str
    scheduled_for: datetime
    state: FireState
    run_ids: tuple[int, ...]
    started_at: datetime | None
    reason: str | None
    due: datetime


class EventRow(NamedTuple):
    id: int
    at: datetime
    level: str
    source: str
    message: str
    run_id: int | None


class LeaseRow(NamedTuple):
    """`ends`: seconds since 1970, as the record has it to the last digit; `held`: that is not over yet, by
    the database's clock."""

    name: str
    owner: str
    token: int
    ends: float
    held: bool

    @property
    def expires(self) -> datetime:
        return datetime.fromtimestamp(self.ends, UTC)

    @property
    def given_back(self) -> bool:
        """Its holder has ended in good order, or was seen to be dead."""
        return self.ends == 0.0


def requests(db: Database, states: Sequence[str] | None = None, limit: int | None = 50) -> list[RequestRow]:
    """What was asked of the collector, newest first. states: queued, claimed, done, failed; `limit` None is
    all."""
    query = sa.select(*(m.request.c[name] for name in RequestRow._fields)).order_by(m.request.c.id.desc())
    if states is not None:
        query = query.where(m.request.c.state.in_(list(states)))
    with db.read() as connection:
        return [RequestRow(*row) for row in connection.execute(query.limit(limit))]


def heartbeats(db: Database) -> list[HeartbeatRow]:
    """Who said last when that it lives, by name."""
    query = sa.select(*(m.heartbeat.c[name] for name in HeartbeatRow._fields)).order_by(m.heartbeat.c.name)
    with db.read() as connection:
        return [HeartbeatRow(*row) for row in connection.execute(query)]


def schedules(db: Database) -> list[ScheduleRow]:
    """When each schedule fired and will fire, by name."""
    query = sa.select(*(m.schedule_state.c[name] for name in ScheduleRow._fields))
    with db.read() as connection:
        return [ScheduleRow(*row) for row in connection.execute(query.order_by(m.schedule_state.c.name))]


def next_expected(db: Database) -> ExpectedRow | None:
    """The next fire time ahead, of whatever schedule."""
    fire = m.fire.c
    ahead = sa.and_(fire.state == "expected", fire.scheduled_for > datetime.now(UTC))
    query = sa.select(fire.schedule, fire.scheduled_for).where(ahead).order_by(fire.scheduled_for)
    with db.read() as connection:
        row = connection.execute(query.limit(1)).first()
        return None if row is None else ExpectedRow(*row)


def due_fires(db: Database, now: datetime) -> list[DueRow]:
    """The fires that are due and that nobody has taken, by schedule, begun ones first, then oldest first."""
    fire = m.fire.c
    begun = fire.started_at.is_not(None)
    query = sa.select(fire.schedule, fire.scheduled_for, fire.due, begun, fire.run_ids)
    untaken = query.where(fire.state == "expected", fire.due <= now)
    with db.read() as connection:
        rows = connection.execute(untaken.order_by(fire.schedule, begun.desc(), fire.scheduled_for))
        return [DueRow(*row) for row in rows]


def unfinished_fires(db: Database, now: datetime) -> list[str]:
    """Of what is due the fires that are not over, as their states: expected (nobody took it) or claimed."""
    fire = m.fire.c
    query = sa.select(fire.state).where(fire.due <= now, fire.state.in_(["expected", "claimed"]))
    with db.read() as connection:
        return list(connection.execute(query).scalars())


def next_due(db: Database, now: datetime) -> datetime | None:
    """When the next fire is due after `now`, of whatever schedule, as far as fires are written ahead."""
    fire = m.fire.c
    ahead = sa.select(sa.func.min(fire.due)).where(fire.due > now, fire.state == "expected")
    with db.read() as connection:
        due: datetime | None = connection.execute(ahead).scalar()
    return due


def schedule_calendar(db: Database, since: datetime, until: datetime) -> list[FireRow]:
    """Every fire of every schedule from `since` to `until`, both included, by time and name. It needs no
    living collector: what nobody took is missed, by the clock of who asks."""
    return _calendar(db, datetime.now(UTC), m.fire.c.scheduled_for.between(since, until))


def first_fire(db: Database, schedule: str, until: datetime) -> datetime | None:
    """When a schedule was to fire for the first time, as far as the record knows; None before that."""
    fire = m.fire.c
    query = sa.select(sa.func.min(fire.scheduled_for)).where(fire.schedule == schedule)
    with db.read() as connection:
        first: datetime | None = connection.execute(query.where(fire.scheduled_for <= until)).scalar()
    return first


def waiting_fires(db: Database) -> list[FireRow]:
    """The fires that a collector has taken and put off, each with the `reason`."""
    fire = m.fire.c
    rows = _calendar(db, datetime.now(UTC), sa.and_(fire.state == "claimed", fire.reason.is_not(None)))
    return [row for row in rows if row.state == "due"]


def waiting_requests(db: Database) -> list[RequestRow]:
    """The queued requests that a collector has put off, each with the reason as its `error`, oldest first."""
    query = sa.select(*(m.request.c[name] for name in RequestRow._fields)).order_by(m.request.c.id)
    with db.read() as connection:
        found = connection.execute(query.where(m.request.c.state == "queued", m.request.c.error.is_not(None)))
        return [RequestRow(*row) for row in found]


def missed(db: Database, now: datetime) -> list[FireRow]:
    """The fires missed until `now` and not made up for: those of schedules in force that have not run
    since."""
    fire, ran, state = m.fire.c, m.fire.alias("ran"), m.schedule_state.c
    last = sa.select(sa.func.max(ran.c.scheduled_for)).where(
        ran.c.schedule == fire.schedule, ran.c.started_at.is_not(None)
    )
    off = sa.exists().where(state.name == fire.schedule, ~state.enabled)
    since = sa.or_(last.scalar_subquery().is_(None), fire.scheduled_for > last.scalar_subquery())
    rows = _calendar(
        db, now, sa.and_(fire.state.in_(["expected", "claimed", "missed"]), fire.due <= now, since, ~off)
    )
    return [row for row in rows if row.state == "missed"]


def _calendar(db: Database, now: datetime, which: sa.ColumnElement[bool]) -> list[FireRow]:
    fire, lease = m.fire.c, m.lease.c
    leads = sa.exists().where(lease.name == m.LEADER_LEASE, lease.token == fire.token, lease.expires > NOW)
    query = sa.select(m.fire, leads.label("leads")).where(which)
    with db.read() as connection:
        rows = connection.execute(query.order_by(fire.scheduled_for, fire.schedule)).all()
    return [_fire_row(row, now) for row in rows]


def _fire_row(row: Any, now: datetime) -> FireRow:
    state, reason = _fire_state(row, now)
    runs = tuple(row.run_ids)
    return FireRow(
        row.schedule, row.scheduled_for, state, runs, row.started_at, row.reason or reason, row.due
    )


def _fire_state(row: Any, now: datetime) -> tuple[FireState, str | None]:
    """With the reason where nobody was there to write one down."""
    match row.state:
        case "expected" | "claimed" if not row.started_at and not row.leads and row.due + GRACE < now:
            return "missed", "no collector ran"
        case "expected" | "claimed" if row.started_at and not row.leads:
            return (
                "invalid",
                "the collector that ran it died or was stopped, and none has gone on with it yet",
            )
        case "expected" | "claimed":
            return "due", None
        case "done":
            return ("late" if row.started_at > row.due + GRACE else "done"), None
        case "failed":
            return "invalid", None
        case "skipped":
            return "skipped", None
        case _:
            return "missed", None


def events(
    db: Database,
    limit: int = 50,
    levels: Sequence[str] | None = None,
    since: datetime | None = None,
    source: str | None = None,
) -> list[EventRow]:
    """What happened, newest first. levels: info, warning, error; source: the part that speaks."""
    query = sa.select(*(m.event.c[name] for name in EventRow._fields)).order_by(m.event.c.id.desc())
    if levels is not None:
        query = query.where(m.event.c.level.in_(list(levels)))
    if since is not None:
        query = query.where(m.event.c.at >= since)
    if source is not None:
        query = query.where(m.event.c.source == source)
    with db.read() as connection:
        return [EventRow(*row) for row in connection.execute(query.limit(limit))]


def leases(db: Database) -> list[LeaseRow]:
    """Who holds, or held last, what; by name."""
    lease = m.lease.c
    query = sa.select(lease.name, lease.owner, lease.token, lease.expires, lease.expires > NOW).order_by(
        lease.name
    )
    with db.read() as connection:
        rows = connection.execute(query).all()
    return [LeaseRow(*row) for row in rows]


def clock(db: Database) -> datetime:
    """The time by the database's clock, which leases go by."""
    with db.read() as connection:
        return datetime.fromtimestamp(float(connection.execute(sa.select(NOW)).scalar_one()), UTC)
