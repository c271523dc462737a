"""Drills: begun before anything else, so that one which was killed is known to have failed."""

from __future__ import annotations

from sqlalchemy.engine import Connection

from store import models as m
from store.database import Database
from store.hiding import redacted
from store.writes.common import changed, insert, now

DIED = "the process that ran it ended before the drill did"


def begin_proof(db: Database, suite: str, backend: str, fault: str, channel: str) -> int:
    """Say that a drill begins; what an earlier one did not come to say is said for it, and what it did not
    come to send is not sent. One runs at a time."""
    with db.write() as connection:
        _drop(connection)
        left = m.proof.update().where(m.proof.c.finished_at.is_(None))
        connection.execute(left.values(finished_at=now(), error=DIED))
        row = {"suite": suite, "backend": backend, "fault": fault, "channel": channel}
        return insert(connection, m.proof, started_at=now(), **row)


def finish_proof(
    db: Database,
    proof_id: int,
    alert_id: int | None,
    detected_s: float | None,
    confirmed_s: float | None,
    delivered_s: float | None,
    error: str | None,
) -> None:
    """The receipt: seconds from the drill's start, None for what it did not come to, and then why. What has
    not arrived by now is not sent any more."""
    values = {"detected_s": detected_s, "confirmed_s": confirmed_s, "delivered_s": delivered_s}
    told = {"alert_id": alert_id, "finished_at": now(), "error": redacted(error) if error else None}
    with db.write() as connection:
        connection.execute(m.proof.update().where(m.proof.c.id == proof_id).values(**values, **told))
        _drop(connection)
        changed(connection)


def call_off_proof(db: Database, proof_id: int) -> None:
    """A drill that was stopped on purpose neither passed nor failed."""
    with db.write() as connection:
        connection.execute(m.proof.delete().where(m.proof.c.id == proof_id))


def _drop(connection: Connection) -> None:
    """Those under way too: a refusal would put them off until after the drill."""
    pending = m.delivery.c.state.in_(("queued", "claimed"))
    late = m.delivery.update().where(m.delivery.c.kind == "drill", pending)
    connection.execute(late.values(state="dropped"))
