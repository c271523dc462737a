"""Leases: who may use a backend, or lead, until when."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from store import models as m
from store.database import NOW, Database, upsert
from store.errors import StoreError
from store.queries.operation import LeaseRow

LEADER_LEASE = m.LEADER_LEASE


class Deposed(StoreError):
    """A collector that does not lead any more would write: another has taken over."""


def refuse_deposed(connection: Connection, leader: int | None) -> None:
    """Raises `Deposed` unless `leader` is the token of the leader's lease, where there was one ever. None
    is no collector, and passes."""
    if leader is None:
        return
    token = sa.select(m.lease.c.token).where(m.lease.c.name == m.LEADER_LEASE)
    held = connection.execute(token.with_for_update(read=True)).scalar()  # nobody takes over before we commit
    if held is not None and held != leader:
        raise Deposed("another collector has taken over; this one leaves fires and requests to it")


def backend_lease(backend: str) -> str:
    """The name of the lease that a run on this backend holds."""
    return m.BACKEND_LEASE + backend


def acquire_lease(
    db: Database, name: str, owner: str, ttl_s: float, left: LeaseRow | None = None
) -> int | None:
    """Take a lease that no one holds, for `ttl_s` seconds of the database's clock. Returns its fencing
    token, higher each time, or None while someone holds it, `owner` included. `left`: the lease as it was
    seen when its holder was found to be gone, whatever the clock says; None too where it was taken or renewed
    since."""
    lease = m.lease.c
    free = upsert(m.lease).values(name=name, owner=owner, token=1, expires=NOW + ttl_s)
    taken = free.on_conflict_do_update(
        index_elements=["name"],
        set_={"owner": owner, "token": lease.token + 1, "expires": NOW + ttl_s},
        where=lease.expires <= NOW
        if left is None
        else sa.and_(lease.token == left.token, lease.expires == left.ends),
    ).returning(m.lease.c.token)
    with db.write() as connection:
        return connection.execute(taken).scalar()


def renew_lease(db: Database, name: str, token: int, ttl_s: float) -> bool:
    """Hold a lease for `ttl_s` seconds from now. False when it was lost: another has taken it since."""
    return _move_lease(db, name, token, NOW + ttl_s)


def release_lease(db: Database, name: str, token: int) -> bool:
    """Give a lease back. False when it was lost before. The row stays, so that tokens keep rising."""
    return _move_lease(db, name, token, sa.literal(0.0))


def _move_lease(db: Database, name: str, token: int, expires: sa.ColumnElement[float]) -> bool:
    held = m.lease.update().where(m.lease.c.name == name, m.lease.c.token == token)
    with db.write() as connection:
        return connection.execute(held.values(expires=expires)).rowcount == 1
