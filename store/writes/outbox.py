"""The outbox as it is emptied: messages claimed, sent, put off, given up or folded into a digest, and
channels that take nothing any more.

All times here are of the database's clock. A message that would be due later than `LONGEST_WAIT_S` from now
is due at once, and a claim that would last longer than `CLAIM_S` is over: then that clock was set back, by
more than `SLACK_S`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.sql.base import Executable

from store import models as m
from store import words
from store.alert_messages import frozen, sample
from store.database import NOW, Database, upsert
from store.hiding import redacted
from store.queries.outbox import FOLDED, foldable
from store.writes.alerts import NewDelivery, queue_delivery
from store.writes.common import changed, insert_event, now

CLAIM_S = 120.0
"""Longer than any sending takes: who claimed a message and did not say what became of it, is gone."""
LONGEST_WAIT_S = 3600.0
"""Between two attempts."""
SLACK_S = 60.0
"""By so much a clock may be corrected without anything being taken for late."""
SOURCE = "delivery"


class Claim(NamedTuple):
    """A message that nobody else sends until the claim ends. `attempts` counts this one."""

    id: int
    key: str
    channel: str
    kind: str
    alert_id: int | None
    payload: dict[str, Any]
    attempts: int
    claimed_by: str


def claim_delivery(
    db: Database, channel: str, owner: str, *, urgent: bool = False, seconds: float = CLAIM_S
) -> Claim | None:
    """Take the oldest message that is due to a channel, or None: no two callers get the same one. What is
    told of one alert is told in its order. `owner`: no other sender's name; `urgent`: only one that waits for
    no rate; `seconds`: at most `CLAIM_S`."""
    given = {"to_channel": channel, "of_owner": owner, "for_s": seconds}
    with db.write() as connection:
        row = connection.execute(_claiming(urgent), given).first()
        return None if row is None else Claim(*row)


@cache
def _claiming(urgent: bool) -> Executable:
    """Made once, since it is asked before each message."""
    delivery = m.delivery.c
    free = sa.and_(delivery.id == _oldest(urgent), delivery.state.in_(("queued", "claimed")))
    claim = m.delivery.update().where(free)
    until, attempts = NOW + sa.bindparam("for_s", type_=sa.Float), delivery.attempts + 1
    owner = sa.bindparam("of_owner", type_=sa.String)
    claim = claim.values(state="claimed", claimed_by=owner, claimed_until=until, attempts=attempts)
    return claim.returning(*(delivery[name] for name in Claim._fields))


def _oldest(urgent: bool) -> sa.ScalarSelect[int]:
    one, before = m.delivery.alias("one"), m.delivery.alias("before").c
    channel = sa.bindparam("to_channel", type_=sa.String)
    queued = sa.and_(one.c.state == "queued", _is_past(one.c.due, LONGEST_WAIT_S))
    left = sa.and_(one.c.state == "claimed", _is_past(one.c.claimed_until, CLAIM_S))
    pending = before.state.in_(("queued", "claimed"))
    of_the_alert = sa.and_(before.alert_id == one.c.alert_id, before.channel == channel)
    earlier = sa.exists().where(of_the_alert, before.id < one.c.id, pending)
    query = sa.select(sa.func.min(one.c.id)).where(one.c.channel == channel, sa.or_(queued, left), ~earlier)
    return (query.where(one.c.urgent) if urgent else query).scalar_subquery()


def _is_past(time: sa.ColumnElement[Any], longest_s: float) -> sa.ColumnElement[bool]:
    return sa.or_(time <= NOW, time > NOW + longest_s + SLACK_S)


def mark_sent(db: Database, claim: Claim, status: int | None) -> bool:
    """Say that it has arrived. False where the claim was lost meanwhile: then it may arrive twice, under one
    key."""
    return _settle(db, claim, state="sent", sent_at=NOW, status=status, error=None)


def put_off(db: Database, claim: Claim, wait_s: float, status: int | None, error: str) -> bool:
    """Try again, `wait_s` seconds from now; at most `LONGEST_WAIT_S`. False where the claim was lost."""
    due = NOW + min(wait_s, LONGEST_WAIT_S)
    return _settle(db, claim, state="queued", due=due, status=status, error=redacted(error))


def give_up(db: Database, claim: Claim, status: int | None, error: str) -> bool:
    """It will not be sent, and an event says so. False where the claim was lost."""
    why = redacted(error)
    with db.write() as connection:
        if not _settled(connection, claim, state="failed", status=status, error=why):
            return False
        tries = words.count(claim.attempts, "attempt")
        message = f"{claim.key} was not delivered, after {tries}: {why}"
        insert_event(connection, "error", SOURCE, message, None)
        return True


def _settle(db: Database, claim: Claim, **values: Any) -> bool:
    with db.write() as connection:
        return _settled(connection, claim, **values)


def _settled(connection: Connection, claim: Claim, **values: Any) -> bool:
    """The number of the attempt fences: a claim that ended and was taken anew is another one."""
    delivery = m.delivery.c
    held = sa.and_(delivery.state == "claimed", delivery.claimed_by == claim.claimed_by)
    mine = m.delivery.update().where(delivery.id == claim.id, held, delivery.attempts == claim.attempts)
    free = {"claimed_by": None, "claimed_until": None}
    if connection.execute(mine.values(**free, **values)).rowcount != 1:
        return False
    changed(connection)
    return True


def fold(db: Database, digest: NewDelivery, upto: int, n: int) -> bool:
    """Put one message in the place of the `n` that wait for its channel, up to the one with the id `upto`.
    False where they are not these any more: then nothing has changed."""
    these = sa.and_(foldable(digest.channel), m.delivery.c.id <= upto)
    count = sa.select(sa.func.count()).select_from(m.delivery).where(these)
    with db.write() as connection:
        if connection.execute(count).scalar_one() != n or not queue_delivery(connection, digest):
            return False
        folded = m.delivery.update().where(these)
        connection.execute(folded.values(state="dropped", error=f"{FOLDED}{digest.key}"))
        changed(connection)
        return True


def drop_others(db: Database, channels: Collection[str]) -> int:
    """What waits for a channel that is not configured any more will not be sent. How much that was."""
    delivery = m.delivery.c
    pending = delivery.state.in_(("queued", "claimed"))  # nobody ends the claim of a sender that was killed
    gone = sa.and_(pending, delivery.channel.not_in(channels))
    with db.write() as connection:
        row = m.delivery.update().where(gone)
        dropped = connection.execute(
            row.values(state="dropped", error="its channel is not configured any more")
        )
        return dropped.rowcount


# Channels that take nothing


def disable_channel(db: Database, claim: Claim, status: int, reason: str, address: str) -> None:
    """Send nothing more to the channel that refused a message for good; what waits for it waits on, that
    message too. `address`: a hash of where it was sent."""
    why = redacted(reason)
    row = {"disabled_at": now(), "reason": why, "address": address}
    off = upsert(m.channel_state).values(name=claim.channel, **row)
    with db.write() as connection:
        _settled(connection, claim, state="queued", due=NOW, status=status, error=why)
        connection.execute(off.on_conflict_do_update(index_elements=["name"], set_=row))
        insert_event(connection, "error", SOURCE, f"channel {claim.channel} is disabled: {why}", None)
        changed(connection)


def enable_channel(db: Database, name: str, why: str) -> bool:
    """Send to it again. False where it was not disabled."""
    with db.write() as connection:
        gone = connection.execute(m.channel_state.delete().where(m.channel_state.c.name == name)).rowcount
        if gone:
            insert_event(connection, "info", SOURCE, f"channel {name} is sent to again: {why}", None)
            changed(connection)
        return bool(gone)


def a_test(channel: str) -> NewDelivery:
    """A message to see whether a channel takes one."""
    key = f"test {now().isoformat()} channel {channel}"
    return NewDelivery(key, channel, "test", frozen(sample(key, channel)), urgent=True)


def record_test(db: Database, delivery: NewDelivery, status: int | None, error: str | None) -> None:
    """A message that was sent at once, to see whether a channel takes it, and what became of it."""
    told = {
        "state": "failed" if error else "sent",
        "status": status,
        "error": redacted(error) if error else None,
    }
    times = {} if error else {"sent_at": NOW}
    with db.write() as connection:
        queue_delivery(connection, delivery)
        row = m.delivery.update().where(m.delivery.c.key == delivery.key)
        connection.execute(row.values(attempts=1, **told, **times))
