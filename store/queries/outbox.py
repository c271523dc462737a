"""The outbox: what waits for a channel, and whether the channel takes anything."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from store import models as m
from store.database import NOW, Database
from store.queries.baselines import GATE

HOUR_S = 3600.0
DIGEST = "digest"
FOLDED = "told in "
"""How the reason of a message begins that a digest took the place of."""


class DeliveryRow(NamedTuple):
    """A message for one channel. `payload` is what it is made of."""

    id: int
    key: str
    channel: str
    kind: str
    alert_id: int | None
    step_id: int | None
    payload: dict[str, Any]
    state: str
    attempts: int
    queued_at: datetime
    due: datetime
    sent_at: datetime | None
    status: int | None
    error: str | None


class Load(NamedTuple):
    """`sent` within the last hour of the database's clock, and `waiting`; urgent messages left out, and of
    those that wait digests too. `disabled`: of a channel that takes nothing, the hash of its address."""

    sent: int
    waiting: int
    disabled: str | None


class Waiting(NamedTuple):
    """A message that may go into a digest."""

    id: int
    payload: dict[str, Any]


class Disabled(NamedTuple):
    """A channel that takes nothing. `address`: a hash of its address."""

    name: str
    disabled_at: datetime
    reason: str
    address: str


def foldable(channel: str | sa.BindParameter[str]) -> sa.ColumnElement[bool]:
    """What becomes a digest where there is too much of it."""
    delivery = m.delivery.c
    waits = sa.and_(delivery.channel == channel, delivery.state == "queued")
    return sa.and_(waits, ~delivery.urgent, delivery.kind != DIGEST)


def is_folded() -> sa.ColumnElement[bool]:
    """Whether a message was told in a digest."""
    told = sa.func.coalesce(m.delivery.c.error, "").startswith(FOLDED)
    return sa.and_(m.delivery.c.state == "dropped", told)


def channel_load(db: Database, channel: str) -> Load:
    """How much a channel was sent of late, how much waits for it, and whether it takes anything."""
    with db.read() as connection:
        return Load(*connection.execute(_load(), {"name": channel}).one())


@cache
def _load() -> sa.Select[Any]:
    """Made once, since it is asked before each message."""
    delivery, name, count = m.delivery.c, sa.bindparam("name", type_=sa.String), sa.func.count()
    lately = sa.and_(delivery.channel == name, delivery.sent_at.between(NOW - HOUR_S, NOW), ~delivery.urgent)
    sent = sa.select(count).select_from(m.delivery).where(lately)
    waiting = sa.select(count).select_from(m.delivery).where(foldable(name))
    disabled = sa.select(m.channel_state.c.address).where(m.channel_state.c.name == name)
    return sa.select(sent.scalar_subquery(), waiting.scalar_subquery(), disabled.scalar_subquery())


def deliveries(
    db: Database, *, alert_id: int | None = None, states: Collection[str] | None = None, limit: int = 200
) -> list[DeliveryRow]:
    """Newest first."""
    query = _deliveries()
    if alert_id is not None:
        query = query.where(m.delivery.c.alert_id == alert_id)
    if states is not None:
        query = query.where(m.delivery.c.state.in_(states))
    with db.read() as connection:
        return [DeliveryRow(*row) for row in connection.execute(query.limit(limit))]


def _deliveries() -> sa.Select[Any]:
    return sa.select(*(m.delivery.c[name] for name in DeliveryRow._fields)).order_by(m.delivery.c.id.desc())


def undelivered(db: Database, limit: int = 100) -> list[DeliveryRow]:
    """What did not arrive, or waits: what failed first, and of either the newest first. What a digest told
    has arrived, and a test that failed is over once its channel has taken a message."""
    state = m.delivery.c.state
    query = _deliveries().where(state != "sent", ~is_folded(), ~_is_tested_again()).order_by(None)
    query = query.order_by((state == "failed").desc(), m.delivery.c.id.desc())
    with db.read() as connection:
        return [DeliveryRow(*row) for row in connection.execute(query.limit(limit))]


def _is_tested_again() -> sa.ColumnElement[bool]:
    delivery, sent = m.delivery.c, m.delivery.alias("sent").c
    since = sa.exists().where(sent.channel == delivery.channel, sent.state == "sent", sent.id > delivery.id)
    return sa.and_(delivery.kind == "test", delivery.state == "failed", since)


def is_queued(db: Database, key: str) -> bool:
    """Whether a message of that key was put into the outbox ever."""
    with db.read() as connection:
        return bool(connection.execute(sa.select(sa.exists().where(m.delivery.c.key == key))).scalar())


def waiting(db: Database, channel: str) -> list[Waiting]:
    """What may go into a digest, the oldest first."""
    query = (
        sa.select(m.delivery.c.id, m.delivery.c.payload).where(foldable(channel)).order_by(m.delivery.c.id)
    )
    with db.read() as connection:
        return [Waiting(*row) for row in connection.execute(query)]


def disabled_channels(db: Database) -> dict[str, Disabled]:
    """Name -> since when and why it takes nothing."""
    columns = [m.channel_state.c[name] for name in Disabled._fields]
    with db.read() as connection:
        return {row.name: Disabled(*row) for row in connection.execute(sa.select(*columns))}


def looks_a_month(db: Database, since: datetime) -> list[tuple[str, str, str, int]]:
    """Suite, backend, owner and whole runs since then, of those that a suspicion may come of: what the false
    alarms to be expected are reckoned from."""
    owner = sa.case((m.suite.c.owner != "default", m.suite.c.owner), else_=m.backend.c.owner)
    query = (
        sa.select(m.suite.c.name, m.backend.c.name, owner, sa.func.count())
        .select_from(m.run)
        .join(m.suite, m.suite.c.id == m.run.c.suite_id)
        .join(m.backend, m.backend.c.id == m.run.c.backend_id)
        .where(m.run.c.status == "whole", m.run.c.subset == "", m.run.c.trigger != GATE)
        .where(m.run.c.id.not_in(sa.select(m.control.c.control_id)))
        .where(m.run.c.started_at >= since)
        .group_by(m.suite.c.name, m.backend.c.name, owner)
        .order_by(m.suite.c.name, m.backend.c.name)
    )
    with db.read() as connection:
        return [(row[0], row[1], row[2], row[3]) for row in connection.execute(query)]
