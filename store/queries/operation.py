"""Whether it is alive: requests, heartbeats, schedules, events, leases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import sqlalchemy as sa

from store import models as m
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


class EventRow(NamedTuple):
    id: int
    at: datetime
    level: str
    source: str
    message: str
    run_id: int | None


class LeaseRow(NamedTuple):
    """`held`: not expired yet, by the database's clock."""

    name: str
    owner: str
    token: int
    expires: datetime
    held: bool


def requests(db: Database, states: Sequence[str] | None = None, limit: int = 50) -> list[RequestRow]:
    """What was asked of the collector, newest first. states: queued, claimed, done, failed."""
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
    at = m.expected_run.c.scheduled_for
    query = sa.select(m.expected_run.c.schedule, at).where(at > datetime.now(UTC)).order_by(at).limit(1)
    with db.read() as connection:
        row = connection.execute(query).first()
        return None if row is None else ExpectedRow(*row)


def events(
    db: Database, limit: int = 50, levels: Sequence[str] | None = None, since: datetime | None = None
) -> list[EventRow]:
    """What happened, newest first. levels: info, warning, error."""
    query = sa.select(*(m.event.c[name] for name in EventRow._fields)).order_by(m.event.c.id.desc())
    if levels is not None:
        query = query.where(m.event.c.level.in_(list(levels)))
    if since is not None:
        query = query.where(m.event.c.at >= since)
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
    return [
        LeaseRow(name, owner, token, datetime.fromtimestamp(expires, UTC), held)
        for name, owner, token, expires, held in rows
    ]


def clock(db: Database) -> datetime:
    """The time by the database's clock, which leases go by."""
    with db.read() as connection:
        return datetime.fromtimestamp(float(connection.execute(sa.select(NOW)).scalar_one()), UTC)
