"""What keeps it going: marks, events, heartbeats, requests, when schedules fire next."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from store import models as m
from store.database import Database, upsert
from store.errors import StoreError
from store.hiding import redacted
from store.records import RequestRow
from store.writes.common import PROJECT, changed, insert, insert_event, now
from store.writes.leases import refuse_deposed


def add_mark(
    db: Database,
    text: str,
    at: datetime | None = None,
    kind: str = "mark",
    author: str = "local",
    meta: Mapping[str, Any] | None = None,
) -> int:
    """Draw a dated line on every chart: a deploy, an upgrade, an intended change. `at` defaults to now."""
    row = {"at": at or now(), "text": text, "kind": kind, "author": author, "meta": meta or {}}
    with db.write() as connection:
        changed(connection)
        return insert(connection, m.mark, project=PROJECT, **row)


def add_event(db: Database, level: str, source: str, message: str, run_id: int | None = None) -> int:
    """Note what happened. level: info, warning or error; source: the part that speaks."""
    with db.write() as connection:
        return insert_event(connection, level, source, message, run_id)


def beat(db: Database, name: str, pid: int, host: str) -> None:
    """Say that a process lives. Another pid or host under the same name is a new start; and what lives has
    not started later than now, whatever the clock said then."""
    at = now()
    same = sa.and_(m.heartbeat.c.pid == pid, m.heartbeat.c.host == host, m.heartbeat.c.started_at <= at)
    row = {"at": at, "pid": pid, "host": host}
    started = sa.case((same, m.heartbeat.c.started_at), else_=sa.literal(at, m.heartbeat.c.started_at.type))
    alive = upsert(m.heartbeat).values(name=name, started_at=at, **row)
    alive = alive.on_conflict_do_update(index_elements=["name"], set_={**row, "started_at": started})
    with db.write() as connection:
        connection.execute(alive)


def add_request(db: Database, kind: str, payload: Mapping[str, Any], author: str = "local") -> int:
    """Ask the collector to do something. kind: run, look or proof."""
    row = {"kind": kind, "payload": payload, "author": author, "state": "queued", "run_ids": []}
    with db.write() as connection:
        return insert(connection, m.request, created_at=now(), **row)


def ask_for_look(db: Database, run_id: int, leader: int = 0) -> bool:
    """Ask that a run be looked at once more. False where that was asked before. Raises `Deposed` once another
    collector than `leader` leads."""
    payload, asked = {"run": run_id}, m.request.c
    known = sa.exists().where(asked.kind == "look", asked.payload == payload)
    row = {"kind": "look", "payload": payload, "author": "memtrend", "state": "queued", "run_ids": []}
    with db.write() as connection:
        refuse_deposed(connection, leader)
        if connection.execute(sa.select(known)).scalar_one():
            return False
        insert(connection, m.request, created_at=now(), **row)
        return True


def claim_request(db: Database, leader: int = 0, passing_over: Collection[int] = ()) -> RequestRow | None:
    """Take the oldest queued request but those passed over, or None. No two callers get the same one.
    `leader`: the fencing token of the collector that asks. Raises `Deposed` once another leads."""
    waiting = sa.and_(m.request.c.state == "queued", m.request.c.id.not_in(passing_over))
    oldest = sa.select(sa.func.min(m.request.c.id)).where(waiting).scalar_subquery()
    claim = m.request.update().where(m.request.c.id == oldest, m.request.c.state == "queued")
    with db.write() as connection:
        refuse_deposed(connection, leader)
        taken = claim.values(state="claimed", claimed_at=now(), error=None)
        row = connection.execute(taken.returning(m.request)).first()
        return None if row is None else RequestRow(*row)


def put_back_request(
    db: Database, request_id: int, run_ids: Sequence[int], reason: str | None, leader: int = 0
) -> None:
    """Queue a claimed request again, with the runs that it has begun and, until it is claimed anew, why it
    waits; None for nothing but its turn. Raises `Deposed` once another collector than `leader` leads, and
    `StoreError` when it is not claimed."""
    told = redacted(reason) if reason else None
    values = {"state": "queued", "run_ids": list(run_ids), "error": told, "claimed_at": None}
    claimed = m.request.update().where(m.request.c.id == request_id, m.request.c.state == "claimed")
    with db.write() as connection:
        refuse_deposed(connection, leader)
        if connection.execute(claimed.values(**values)).rowcount != 1:
            raise StoreError(f"request {request_id} is not claimed, so it cannot be queued again")


def finish_request(
    db: Database, request_id: int, run_ids: Sequence[int], error: str | None = None, leader: int = 0
) -> None:
    """Say what became of a claimed request: the runs it made, or why it failed. Raises `Deposed` once
    another collector than `leader` leads."""
    told = redacted(error) if error else None
    values = {"state": "failed" if error else "done", "run_ids": list(run_ids), "error": told}
    claimed = m.request.update().where(m.request.c.id == request_id, m.request.c.state == "claimed")
    with db.write() as connection:
        refuse_deposed(connection, leader)
        if connection.execute(claimed.values(finished_at=now(), **values)).rowcount != 1:
            raise StoreError(f"request {request_id} is not claimed, so it cannot be finished")


def record_schedule(
    db: Database, name: str, next_fire: datetime | None, enabled: bool, *, leader: int | None = None
) -> None:
    """Say when a schedule fires next; its last fire stays. Raises `Deposed` once another than `leader`
    leads."""
    values = {"next_fire": next_fire, "enabled": enabled}
    state = upsert(m.schedule_state).values(name=name, **values)
    with db.write() as connection:
        refuse_deposed(connection, leader)
        connection.execute(state.on_conflict_do_update(index_elements=["name"], set_=values))
